package show

import (
	"context"
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/console"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/saving"
)

func TestCheckNamesTheIntervalThatLosesLeast(t *testing.T) {
	every := deploymenttest.SavesEvery
	took := func(mode events.SaveMode, all ...time.Duration) func(*deploymenttest.Story) {
		return func(s *deploymenttest.Story) { s.Policy.Save, s.Policy.Lead, s.Timed = mode, 2*time.Hour, all }
	}
	timed := took(events.SaveSignal, 20*time.Second, 30*time.Second, 40*time.Second)
	finished := func(s *deploymenttest.Story) { s.Done = true }
	type but []func(*deploymenttest.Story)
	for name, c := range map[string]struct {
		but    but
		losses int
		says   []string
		not    string
	}{
		"nothing is measured":    {nil, 0, nil, "interval"},
		"too little is measured": {but{every(150 * time.Minute), func(s *deploymenttest.Story) { s.Told = 2 }}, 0, nil, "interval"},
		"often enough":           {but{every(55 * time.Minute)}, 0, []string{"good      interval: it saves every 55 m 0 s\n"}, "instead of"},
		"seldom, and losses are frequent": {
			but{every(3 * time.Hour), timed},
			20,
			[]string{
				"warn      interval: it saves every 3 h 0 m; 20 losses of unsaved steps in 9 d 14 h of training, besides an assumed one in 12 h; a save takes 30 s (3 timed)",
				"you: save every 26 m 0 s instead of 3 h 0 m: +8.4 points of goodput [5.4, 11.9], 981 chip-hours a month, 491 dollars",
			},
			"",
		},
		"no save was timed": {
			but{every(3 * time.Hour)}, 20, []string{"no save was timed, so one of 1 m 0 s is assumed", "you: save every 38 m 0 s"}, "",
		},
		"hourly, and losses are frequent": {
			but{every(time.Hour), timed}, 20, []string{"warn      interval: it saves every 1 h 0 m; 20 losses"}, "",
		},
		"seldom, and little is lost": {
			but{every(65 * time.Minute)},
			8,
			[]string{"warn      interval: it saves every 1 h 5 m\n", "you: save about every hour, as Google's guides say"},
			"instead of",
		},
		"seldom, and nothing is lost": {
			but{every(2 * time.Hour)},
			0,
			[]string{"warn      interval: it saves every 2 h 0 m\n", "so few losses are known that it may gain nothing"},
			"instead of",
		},
		"very seldom, and nothing is lost": {
			but{every(20 * time.Hour)}, 0, []string{"so few losses are known that it may gain nothing"}, "instead of",
		},
		"no history is a reason to save less often than hourly": {
			but{every(20 * time.Minute), took(events.SaveSignal, 60*time.Second)}, 0, []string{"if training goes on during a save, change nothing", "you: save every 1 h 0 m instead of 20 m 0 s: +3.2 points of goodput"}, "",
		},
		"an assumed save is no reason to save less often": {
			but{every(20 * time.Minute)}, 0, []string{"good      interval: it saves every 20 m 0 s\n"}, "you: save",
		},
		"too often": {
			but{every(11 * time.Minute), took(events.SaveSignal, 300*time.Second)}, 0, []string{"it saves every 11 m 0 s; 0 losses", "a save takes 5 m 0 s (1 timed)", "you: save every 1 h 0 m instead of 11 m 0 s: +36.9 points of goodput"}, "more often",
		},
		"what is told every five minutes may be more often": {
			but{every(5 * time.Minute), took(events.SaveSignal, 0)}, 400, []string{"good      interval: it saves every 5 m 0 s\n"}, "instead of",
		},
		"a save that waits for the next checkpoint is no measure": {
			but{every(3 * time.Hour), took(events.SaveNatural, 3000*time.Second)}, 20, []string{"no save was timed"}, "3000",
		},
		"the next save is overdue": {
			but{every(20 * time.Minute), func(s *deploymenttest.Story) { s.Overdue = 150 * time.Minute }}, 0, []string{"warn      interval: no checkpoint for 2 h 30 m"}, "",
		},
		"finished": {but{every(3 * time.Hour), finished}, 0, nil, "interval"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew, c.but...)
			b.Loses(c.losses, 11*time.Hour)
			got := wantsCheck(t, b, c.says...)
			if c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("it says %q:\n%s", c.not, got)
			}
		})
	}
}

// TestTheIntervalIsNamedInSteps: a person sets it in steps, and how long one takes is known where the crew has told the first step.
func TestTheIntervalIsNamedInSteps(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew, deploymenttest.SavesEvery(3*time.Hour))
	now := deploymenttest.Noon.Add(-10 * time.Minute)
	b.Tells(func(s *deploymenttest.Story) {
		s.Now = now
		s.Writes(events.CrewReport{
			Report: events.ReportProgress, Attempt: 3, Step: 48_601, StepAt: now, FirstStep: 48_301, FirstStepAt: now.Add(-40 * time.Minute), CheckpointStep: 48_600, CheckpointURI: "gs://ckpt/llama-8b/48600",
		})
	})
	b.Loses(20, 11*time.Hour)
	wantsCheck(t, b, "you: save every 290 steps (38 m 0 s) instead of 1,400 steps (3 h 0 m): ")
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
	at := func(minutes time.Duration) time.Time { return deploymenttest.Noon.Add(minutes * time.Minute) }
	for name, tell := range map[string]func(*deploymenttest.Story){
		"the incident has just closed": func(s *deploymenttest.Story) {
			s.Now = at(-5)
			s.Announces(events.Notice{Status: events.NoticeOngoing, WindowStart: at(-5), WindowEnd: at(60)}).Reads(deploymenttest.Is(evidence.Unhealthy, "REPAIRING"))
			s.Now = at(39)
			s.Announces(events.Notice{Status: events.NoticeGone}).Reads(deploymenttest.Is(evidence.Ready, "READY"))
			s.Now = at(40)
			s.Writes(events.CrewReport{Report: events.ReportProgress, Attempt: 2, Step: 48_300, CheckpointStep: 48_000})
		},
		"the attempt has just begun": func(s *deploymenttest.Story) {
			s.Now = at(40)
			s.Writes(events.CrewReport{Report: events.ReportStarted, Attempt: 3})
		},
	} {
		b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
		b.Tells(tell)
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

// TestALongHistoryCountsFromItsEnd: only the latest losses count, over the time in which they fell. They are read once.
func TestALongHistoryCountsFromItsEnd(t *testing.T) {
	reads := 0
	tap := &ledgertest.Tap{Before: func(_ context.Context, c ledgertest.Call) error {
		if c.Collection == ledger.Archive {
			reads++
		}
		return nil
	}}
	b := deploymenttest.New(t, tap.On(ledgertest.NewStore().Open), deploymenttest.Trains("llama-8b", deploymenttest.SavesEvery(3*time.Hour)))
	b.Loses(100, 2*time.Hour)
	reads = 0
	past := newHistorian(b.Ledger)
	for range 3 {
		h, err := past.of(t.Context(), deployment.ShownAt(b.Workload(), deploymenttest.Noon), deploymenttest.Noon)
		if err != nil || h.Losses != 64 || h.Trained != 64*91*time.Minute {
			t.Errorf("%v: %d losses in %v, want the latest 64 of 100", err, h.Losses, h.Trained)
		}
	}
	if reads != 1 {
		t.Errorf("%d reads of the archive: what is known was read again", reads)
	}
}

func TestStatusWarnsOfSavesThatLoseMuch(t *testing.T) {
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("llama-8b", deploymenttest.SavesEvery(time.Hour)))
	b.Loses(20, 11*time.Hour)
	got, err := b.Call("status", "llama-8b")
	if err != nil || strings.Contains(got, "  saves ") {
		t.Errorf("%v:\n%s", err, got)
	}
	b = deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("llama-8b", deploymenttest.SavesEvery(3*time.Hour)))
	b.Loses(20, 11*time.Hour)
	b.Want([]string{"status", "llama-8b"}, "  saves     it saves every 3 h 0 m; save every 38 m 0 s instead of 3 h 0 m: ", "(20 losses of unsaved steps in")
	if got, err = b.Call("status", "--json"); err != nil {
		t.Fatal(err)
	}
	var st struct {
		Saving saving.Habit `json:"saving"`
	}
	if err := json.Unmarshal([]byte(got), &st); err != nil || st.Saving.EverySeconds != 10_800 || st.Saving.Losses != 20 || st.Saving.GainPoints < 5 {
		t.Errorf("%v: %+v", err, st.Saving)
	}
}

// TestTheConsoleAdvisesWhatCheckDoes, with the same figures.
func TestTheConsoleAdvisesWhatCheckDoes(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew, deploymenttest.SavesEvery(3*time.Hour))
	b.Loses(20, 11*time.Hour)
	told := wantsCheck(t, b, "warn      interval: it saves every 3 h 0 m; 20 losses")
	advice := regexp.MustCompile(`interval: (.*)\n +you: (save every .*)\n`).FindStringSubmatch(told)
	w := httptest.NewRecorder()
	console.Site(b.Deployment, b.Ledger, deployment.Place{Project: "demo"}).Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/time", nil))
	if len(advice) != 3 {
		t.Fatalf("check does not advise:\n%s", told)
	}
	page := html.UnescapeString(w.Body.String())
	for _, says := range advice[1:] {
		if !strings.Contains(page, says) {
			t.Errorf("the page does not say %q:\n%s", says, page)
		}
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
	w := deploymenttest.Trains("llama-8b", deploymenttest.SavesEvery(3*time.Hour))
	b := deploymenttest.New(t, tap.On(ledgertest.NewStore().Open), w)
	if _, err := b.Call("status", "llama-8b"); !errors.Is(err, broken) {
		t.Errorf("status ends with %v", err)
	}
}
