package show

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/view"
)

func TestCheckNamesTheIntervalThatLosesLeast(t *testing.T) {
	timed := func(w *incident.Workload) {
		w.Pace.Saves, w.Pace.Mode = []int64{20, 30, 40}, events.SaveSignal
	}
	for name, c := range map[string]struct {
		change []func(*incident.Workload)
		losses int
		says   []string
		not    string
	}{
		"nothing is measured": {nil, 0, nil, "interval"},
		"too little is measured": {[]func(*incident.Workload){func(w *incident.Workload) {
			w.Pace.Gaps = []int64{9000, 9000}
		}}, 0, nil, "interval"},
		"often enough": {[]func(*incident.Workload){deploymenttest.SavesEvery(55 * time.Minute)}, 0, []string{"good      interval: it saves every 55 m 0 s\n"}, "loses least"},
		"seldom, and losses are frequent": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(3 * time.Hour), timed},
			20,
			[]string{
				"warn      interval: it saves every 3 h 0 m; 20 losses of unsaved steps in 9 d 14 h of training, besides an assumed one in 12 h; a save takes 30 s (3 timed)",
				"you: save every 26 m 0 s: it loses least, and gains 8.8 points of goodput",
			},
			"",
		},
		"no save was timed": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(3 * time.Hour)}, 20, []string{"no save was timed, so one of 1 m 0 s is assumed", "you: save every 38 m 0 s"}, "",
		},
		"hourly, and losses are frequent": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(time.Hour), timed}, 20, []string{"warn      interval: it saves every 1 h 0 m; 20 losses"}, "",
		},
		"seldom, and little is lost": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(65 * time.Minute)},
			8,
			[]string{"warn      interval: it saves every 1 h 5 m\n", "you: save about every hour, as Google's guides say"},
			"loses least",
		},
		"seldom, and nothing is lost": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(2 * time.Hour)},
			0,
			[]string{"warn      interval: it saves every 2 h 0 m\n", "so few losses are known that this would lose more"},
			"loses least",
		},
		"very seldom, and nothing is lost": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(20 * time.Hour)}, 0, []string{"you: save every 2 h 54 m: it loses least"}, "",
		},
		"no history is a reason to save less often than hourly": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(20 * time.Minute), func(w *incident.Workload) {
				w.Pace.Saves, w.Pace.Mode = []int64{60}, events.SaveSignal
			}}, 0, []string{"if training goes on during a save, change nothing", "you: save about every hour, as Google's guides say: it gains 3.1 points of goodput"}, "",
		},
		"an assumed save is no reason to save less often": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(20 * time.Minute)}, 0, []string{"good      interval: it saves every 20 m 0 s\n"}, "you: save",
		},
		"too often": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(11 * time.Minute), func(w *incident.Workload) {
				w.Pace.Saves, w.Pace.Mode = []int64{300}, events.SaveSignal
			}}, 0, []string{"it saves every 11 m 0 s; 0 losses", "a save takes 5 m 0 s (1 timed)", "you: save about every hour, as Google's guides say: it gains 36.9 points of goodput"}, "more often",
		},
		"what is told every five minutes may be more often": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(5 * time.Minute), func(w *incident.Workload) {
				w.Pace.Saves, w.Pace.Mode = []int64{0}, events.SaveSignal
			}}, 400, []string{"good      interval: it saves every 5 m 0 s\n"}, "loses least",
		},
		"a save that waits for the next checkpoint is no measure": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(3 * time.Hour), func(w *incident.Workload) {
				w.Pace.Saves, w.Pace.Mode = []int64{3000}, events.SaveNatural
			}}, 20, []string{"no save was timed"}, "3000",
		},
		"the next save is overdue": {
			[]func(*incident.Workload){deploymenttest.SavesEvery(20 * time.Minute), func(w *incident.Workload) {
				w.Progress.CheckpointAt = w.Progress.At.Add(-150 * time.Minute)
			}}, 0, []string{"warn      interval: no checkpoint for 2 h 30 m"}, "",
		},
		"finished": {[]func(*incident.Workload){deploymenttest.SavesEvery(3 * time.Hour), func(w *incident.Workload) { w.Crew.Finished = true }}, 0, nil, "interval"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
			for _, change := range c.change {
				b.Change(change)
			}
			b.Loses(c.losses, 11*time.Hour)
			got := wantsCheck(t, b, c.says...)
			if c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("it says %q:\n%s", c.not, got)
			}
		})
	}
}

func TestACheckpointOverAnHourOldIsAWarning(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	b.Now = func() time.Time { return deploymenttest.Noon.Add(45 * time.Minute) } // the checkpoint is from 20 minutes before noon
	wantsCheck(t, b, "warn      checkpoint: the last complete one is step 48,000, 1 h 5 m old", "warn      interval: no checkpoint for 1 h 5 m")
	b.Now = func() time.Time { return deploymenttest.Noon.Add(39 * time.Minute) }
	wantsCheck(t, b, "good      checkpoint: the last complete one is step 48,000, 59 m 0 s old")
}

// TestAnOutageIsNoTimeWithoutASave: the checkpoint is older than an hour, but training runs again for minutes only.
func TestAnOutageIsNoTimeWithoutASave(t *testing.T) {
	for name, change := range map[string]func(*incident.Workload){
		"the incident has just closed": func(w *incident.Workload) {
			w.Crew.Started = deploymenttest.Noon.Add(-5 * time.Hour)
			w.Closed = &incident.Incident{ID: "before", Down: deploymenttest.Noon.Add(-10 * time.Minute), Closed: deploymenttest.Noon.Add(40 * time.Minute)}
		},
		"the attempt has just begun": func(w *incident.Workload) { w.Crew.Started = deploymenttest.Noon.Add(40 * time.Minute) },
	} {
		b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
		b.Change(change)
		b.Now = func() time.Time { return deploymenttest.Noon.Add(45 * time.Minute) } // the checkpoint is from 20 minutes before noon
		got := wantsCheck(t, b, "warn      checkpoint: the last complete one is step 48,000, 1 h 5 m old")
		if strings.Contains(got, "no checkpoint for") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// wantsCheck calls check for a workload that would come back.
func wantsCheck(t *testing.T, b *deploymenttest.Bench, says ...string) string {
	t.Helper()
	got, err := b.Call("check", "llama-8b")
	if err != nil {
		t.Fatalf("%v:\n%s", err, got)
	}
	deploymenttest.WantText(t, got, says...)
	return got
}

// TestWhatCountsAsALoss: a stop with unsaved steps, once.
func TestWhatCountsAsALoss(t *testing.T) {
	stopped := view.Incident{Down: deploymenttest.Noon.Add(-5 * time.Hour), Closed: deploymenttest.Noon.Add(-4 * time.Hour)}
	saved, withdrawn, retried, open := stopped, stopped, stopped, stopped
	saved.Save.Verified, withdrawn.Down, retried.Retried, open.Closed = true, time.Time{}, true, time.Time{}
	for name, c := range map[string]struct {
		in      view.Incident
		losses  int
		trained time.Duration
	}{
		"a stop":                          {stopped, 1, 9 * time.Hour},
		"a stop after a save":             {saved, 0, 9 * time.Hour},
		"maintenance that never came":     {withdrawn, 0, 10 * time.Hour},
		"another try after an escalation": {retried, 0, 10 * time.Hour},
		"a stop that lasts":               {open, 1, 5 * time.Hour},
	} {
		if h := historyOf([]view.Incident{c.in}, deploymenttest.Noon.Add(-10*time.Hour), deploymenttest.Noon); h.losses != c.losses || h.trained != c.trained {
			t.Errorf("%s: %d losses in %v, want %d in %v", name, h.losses, h.trained, c.losses, c.trained)
		}
	}
	if h := historyOf(nil, time.Time{}, deploymenttest.Noon); h.trained != 0 {
		t.Errorf("what was never seen has trained for %v", h.trained)
	}
}

// TestALongHistoryIsReadFromItsEnd: only the latest losses count, over the time in which they fell.
func TestALongHistoryIsReadFromItsEnd(t *testing.T) {
	reads := 0
	tap := &ledgertest.Tap{Before: func(_ context.Context, c ledgertest.Call) error {
		if c.Collection == ledger.Archive {
			reads++
		}
		return nil
	}}
	b := deploymenttest.New(t, tap.On(ledgertest.NewStore().Open), deploymenttest.Trains("llama-8b"))
	b.Change(deploymenttest.SavesEvery(3 * time.Hour))
	b.Loses(100, 2*time.Hour)
	reads = 0
	past := newHistorian(b.Ledger)
	for range 3 {
		past.again()
		h, err := past.of(t.Context(), deployment.ShownAt(b.Workload(), deploymenttest.Noon), deploymenttest.Noon)
		if want := lastLosses * 3 * time.Hour / 2; err != nil || h.losses != lastLosses || h.trained != want {
			t.Errorf("%v: %d losses in %v, want %d in %v", err, h.losses, h.trained, lastLosses, want)
		}
	}
	if reads != 1+lastLosses {
		t.Errorf("%d reads of the archive: what is known was read again", reads)
	}
}

func TestStatusWarnsOfSavesMoreThanAnHourApart(t *testing.T) {
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("llama-8b"))
	b.Loses(20, 11*time.Hour)
	b.Change(deploymenttest.SavesEvery(time.Hour))
	got, err := b.Call("status")
	if err != nil || strings.Contains(got, "  saves ") {
		t.Errorf("%v:\n%s", err, got)
	}
	b.Change(deploymenttest.SavesEvery(3 * time.Hour))
	b.Want([]string{"status"}, "  saves     it saves every 3 h 0 m; save every 38 m 0 s: it loses least", "(20 losses of unsaved steps in")
	if got, err = b.Call("status", "--json"); err != nil {
		t.Fatal(err)
	}
	var st struct {
		Saving saving `json:"saving"`
	}
	if err := json.Unmarshal([]byte(got), &st); err != nil || st.Saving.EverySeconds != 10_800 || st.Saving.Losses != 20 || st.Saving.GainPoints < 5 {
		t.Errorf("%v: %+v", err, st.Saving)
	}
}

func TestAnUnreadableArchiveIsAnError(t *testing.T) {
	broken := errors.New("no answer")
	tap := &ledgertest.Tap{Before: func(_ context.Context, c ledgertest.Call) error {
		if c.Collection == ledger.Archive {
			return broken
		}
		return nil
	}}
	w := deploymenttest.Trains("llama-8b")
	deploymenttest.SavesEvery(3 * time.Hour)(&w)
	b := deploymenttest.New(t, tap.On(ledgertest.NewStore().Open), w)
	if _, err := b.Call("status"); !errors.Is(err, broken) {
		t.Errorf("status ends with %v", err)
	}
}
