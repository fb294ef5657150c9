package page_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"pitstop.internal/events"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/page"
	"pitstop.internal/shared/saving"
	"pitstop.internal/shared/view"
)

const day = 24 * time.Hour

// stopped is an incident that stood still from a time before noon, for so long. Phases are the hours that it stood still in each.
func stopped(workload, id string, ago, away time.Duration, phases map[view.Phase]float64) view.Past {
	p := view.Past{Workload: workload, ID: id, Cause: events.CausePreemption, Opened: noon.Add(-ago), Down: noon.Add(-ago), Closed: noon.Add(away - ago), Outcome: view.Resumed, Still: map[view.Phase]float64{}}
	p.Cost.AwaySeconds = away.Seconds()
	for phase, hours := range phases {
		p.Still[phase] = hours * 3600
	}
	return p
}

// accountOf are four days of workloads of every kind.
func accountOf() page.Time {
	t := page.Time{Frame: page.Frame{Title: "Where the time went", Path: "/time", At: noon}, From: noon.Add(-4 * day), To: noon, Past: map[string][]view.Past{}}
	add := func(w view.Workload, past ...view.Past) {
		w.ID, w.Project = "demo/"+w.Name, "demo"
		t.Workloads, t.Past[w.ID] = append(t.Workloads, w), past
	}
	again := stopped("demo/old", "again", 50*time.Hour, 2*time.Hour, map[view.Phase]float64{view.PhaseCreating: 1.5, view.Resuming: .5})
	again.Cost.AgainSeconds = 1800
	left := stopped("demo/old", "left", 30*time.Hour, 6*time.Hour, map[view.Phase]float64{view.Looking: 1})
	left.Closed, left.Outcome = left.Down.Add(time.Hour), view.Escalated
	add(view.Workload{Name: "old", Seen: noon.Add(-90 * day)},
		stopped("demo/old", "before", 100*time.Hour, 8*time.Hour, map[view.Phase]float64{view.PhaseDeleting: 2, view.PhaseCreating: 6}), // half of it is in the account
		again, stopped("demo/old", "within", 49*time.Hour, 2*time.Hour, map[view.Phase]float64{view.PhaseCreating: 2}), // half of it was counted already
		left, stopped("demo/old", "untold", 10*time.Hour, time.Hour, nil), view.Past{ID: "ran on", Opened: noon.Add(-day), Closed: noon},
	)
	add(view.Workload{Name: "young", Seen: noon.Add(-day), State: view.Unusable, Since: noon.Add(-3 * time.Hour)})
	add(view.Workload{Name: "done", Seen: noon.Add(-90 * day), Training: view.Training{Finished: true, FinishedAt: noon.Add(-2 * day)}},
		stopped("demo/done", "later", 30*time.Hour, time.Hour, map[view.Phase]float64{view.Looking: 1}))
	add(view.Workload{Name: "gone", Seen: noon.Add(-90 * day), State: view.Left, Since: noon.Add(-5 * day)})
	return t
}

// TestTheTimeAddsUp: what is taken from all time and what is left of it are all of it, and each moment counts once.
func TestTheTimeAddsUp(t *testing.T) {
	t.Parallel()
	sum := accountOf().Account()
	got := map[string]time.Duration{}
	whole := sum.Left
	for _, k := range sum.Taken {
		got[k.Name] = k.Time
		whole += k.Time
	}
	if whole != sum.Whole || sum.Whole != 4*day+day+2*day {
		t.Errorf("the whole is %v, and its parts are %v", sum.Whole, whole)
	}
	if d := cmp.Diff(map[string]time.Duration{
		string(view.PhaseDeleting): time.Hour, string(view.PhaseCreating): 3*time.Hour + 90*time.Minute + time.Hour, string(view.Resuming): 30 * time.Minute, string(view.Looking): time.Hour,
		"left to a person": 5 * time.Hour, "not told": time.Hour, "no incident": 3 * time.Hour, "done again": 30 * time.Minute,
	}, got); d != "" {
		t.Error(d)
	}
}

// TestTheTimeAddsUpWhateverTheIncidentsSay, though seconds are told as fractions.
func TestTheTimeAddsUpWhateverTheIncidentsSay(t *testing.T) {
	t.Parallel()
	c := page.Time{From: noon.Add(-4 * day), To: noon, Workloads: []view.Workload{{ID: "demo/w", Name: "w"}}, Past: map[string][]view.Past{}}
	for i := range 100 {
		third := float64(i) / 3
		p := stopped("demo/w", "x", time.Duration(i*i)*time.Minute+1, time.Duration(float64(time.Hour)*third), map[view.Phase]float64{view.Looking: third / 3, view.PhaseCreating: third / 3, view.Resuming: third / 3})
		p.Cost.AgainSeconds = 7000.0 / 3
		c.Past["demo/w"] = append(c.Past["demo/w"], p)
	}
	sum := c.Account()
	whole := sum.Left
	for _, k := range sum.Taken {
		whole += k.Time
		if k.Time <= 0 || k.Name == "not told" {
			t.Errorf("%s takes %v", k.Name, k.Time)
		}
	}
	if whole != sum.Whole || whole != 4*day || sum.Left < 0 {
		t.Errorf("the whole is %v, its parts are %v, and %v is left", sum.Whole, whole, sum.Left)
	}
}

// TestNothingIsDoneAgainLongerThanThereWasTime after its stop, between the later ones: neither in the sum nor of one interruption.
func TestNothingIsDoneAgainLongerThanThereWasTime(t *testing.T) {
	t.Parallel()
	first, second := stopped("demo/w", "first", 3*time.Hour, time.Hour, nil), stopped("demo/w", "second", time.Hour, 10*time.Minute, nil)
	first.Cost.AgainSeconds, second.Cost.AgainSeconds = 1200, 3*3600
	c := page.Time{From: noon.Add(-4 * day), To: noon, Workloads: []view.Workload{{ID: "demo/w", Name: "w"}}, Past: map[string][]view.Past{"demo/w": {first, second}}}
	var out bytes.Buffer
	if err := page.WriteTime(&out, c); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{`<td data-name="interruptions">2</td><td data-name="time">1 h 10 m</td>`, `<td data-name="done again">20 m 0 s</td>`, `<td data-name="done again">50 m 0 s</td>`} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("it does not say %s:\n%s", says, out.String())
		}
	}
}

// TestThePageOfTheTimeSaysWhatItKnows, and what it does not.
func TestThePageOfTheTimeSaysWhatItKnows(t *testing.T) {
	t.Parallel()
	a := accountOf()
	w := view.Workload{ID: "demo/old", Training: view.Training{SaveMode: events.SaveSignal, SaveSeconds: []int64{30, 30, 30}}}
	habit := saving.Of(w, 3*time.Hour, false, saving.History{Losses: 20, Trained: 230 * time.Hour}, 0)
	a.Saves = []page.Saves{{"demo/old", habit}}
	var out bytes.Buffer
	if err := page.WriteTime(&out, a); err != nil {
		t.Fatal(err)
	}
	do, because := habit.Advice()
	text := html.UnescapeString(out.String())
	for _, says := range []string{
		"3 workloads, 2026-11-17 12:00 to 2026-11-21 12:00 UTC", "What no incident tells of counts as training", "pitstop goodput --project PROJECT",
		`<th scope="row">done again</th><td data-name="what it is">steps that were lost, and had to be done once more</td><td data-name="interruptions">1</td><td data-name="time">30 m 0 s</td>`,
		`<a href="/incident/demo/old/left">left</a>`, `<td data-name="away">6 h 0 m</td>`, "it saves every 3 h 0 m; " + because, do, "you are here", `href="/losses?from=2026-11-17"`,
		`aria-current="page">Time</a>`,
	} {
		if !strings.Contains(text, says) {
			t.Errorf("it does not say %q:\n%s", says, text)
		}
	}
}

// TestWhatIsLeftOutOfThePictureIsSaid: those that lost most are drawn, and the others count.
func TestWhatIsLeftOutOfThePictureIsSaid(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := page.WriteTime(&out, often(45, 450)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "The 20 that lost most. 25 more lost less: they are not drawn, and count above.") {
		t.Error("it does not say what is left out")
	}
	for name, is := range map[string]bool{">w044<": true, ">w025<": true, ">w024<": false} {
		if strings.Contains(out.String(), name) != is {
			t.Errorf("%s is drawn: %v, want %v", name, !is, is)
		}
	}
}

// often are so many workloads with so many incidents in 30 days: the later its name, the longer one stood still.
func often(workloads, incidents int) page.Time {
	c := page.Time{Frame: page.Frame{Title: "Where the time went", Path: "/time", At: noon}, From: noon.Add(-30 * day), To: noon, Past: map[string][]view.Past{}}
	for i := range workloads {
		c.Workloads = append(c.Workloads, view.Workload{ID: fmt.Sprintf("research-project/w%03d", i), Name: fmt.Sprintf("w%03d", i), Project: "research-project"})
	}
	for i := range incidents {
		w := c.Workloads[i%workloads]
		p := stopped(w.ID, fmt.Sprintf("%s-20261121-%d", w.Name, i), time.Duration(i+1)*30*day/time.Duration(incidents+1), time.Duration(10+i%workloads)*time.Minute, map[view.Phase]float64{view.PhaseCreating: .1})
		p.Zones, p.Cost.AgainSeconds = []string{"us-central1-a"}, 60
		c.Past[w.ID] = append(c.Past[w.ID], p)
	}
	return c
}

// TestThePageOfTheTimeIsSmall with 20 workloads that stood still 2,000 times, and four curves.
func TestThePageOfTheTimeIsSmall(t *testing.T) {
	t.Parallel()
	c := often(20, 2000)
	for _, w := range c.Workloads[:4] {
		c.Saves = append(c.Saves, page.Saves{Workload: w.ID, Habit: saving.Of(w, 3*time.Hour, false, saving.HistoryOf(w, c.Past[w.ID], noon), 0)})
	}
	var out bytes.Buffer
	if err := page.WriteTime(&out, c); err != nil || out.Len() > 100_000 {
		t.Errorf("%v: it has %d bytes, and may have 100,000", err, out.Len())
	}
	t.Logf("%d bytes", out.Len())
}

// TestTheTimeIsAskedFor by a workload and by days, and begins where the incidents do that can be read.
func TestTheTimeIsAskedFor(t *testing.T) {
	t.Parallel()
	h, _ := large(t, ledgertest.NewStrictStore().Open, 30, 60)
	for address, says := range map[string][]string{
		"/time":                                      {"30 workloads, 2026-10-22 12:00 to 2026-11-21 12:00 UTC"},
		"/time?workload=w0007":                       {"1 workload,", ">w0007<", "value=\"w0007\""},
		"/time?workload=demo%2Fw0007":                {"1 workload,", ">w0007<"},
		"/time?workload=none":                        {"No workload was known in that time"},
		"/time?from=2026-11-20&until=2026-11-20":     {"30 workloads, 2026-11-20 00:00 to 2026-11-21 00:00 UTC"},
		"/time?from=2027-01-01":                      {"No workload was known in that time"},
		"/time?from=2026-01-01&until=2026-02-01":     {"No workload was known in that time"}, // each was first seen later
		"/time?workload=w0007&from=yesterday&until=": {"1 workload,"},
	} {
		body := get(t, h, address)
		for _, want := range says {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not say %q:\n%s", address, want, body)
			}
		}
	}
}
