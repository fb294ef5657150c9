package saving_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/saving"
	"pitstop.internal/shared/view"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// past are incidents as the archive has them.
func past(all ...view.Incident) (rows []view.Past) {
	for _, in := range all {
		rows = append(rows, in.Past("demo/llama-8b", nil))
	}
	return rows
}

// TestWhatCountsAsALoss: a stop with unsaved steps, once.
func TestWhatCountsAsALoss(t *testing.T) {
	t.Parallel()
	stopped := view.Incident{Opened: noon.Add(-5 * time.Hour), Down: noon.Add(-5 * time.Hour), Closed: noon.Add(-4 * time.Hour), Outcome: view.Resumed}
	stopped.Cost.AwaySeconds = 3600
	saved, withdrawn, retried, open := stopped, stopped, stopped, stopped
	saved.Save.Verified, withdrawn.Down, retried.Retried, open.Closed, open.Outcome, open.Cost.AwaySeconds = true, time.Time{}, true, time.Time{}, "", 5*3600
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
		w := view.Workload{Seen: noon.Add(-10 * time.Hour)}
		if h := saving.HistoryOf(w, past(c.in), noon); h.Losses != c.losses || h.Trained != c.trained {
			t.Errorf("%s: %d losses in %v, want %d in %v", name, h.Losses, h.Trained, c.losses, c.trained)
		}
		w.Incident = &c.in
		if h := saving.HistoryOf(w, past(c.in), noon); h.Losses != c.losses || h.Trained != c.trained {
			t.Errorf("%s, which is shown too: %d losses in %v, want %d in %v", name, h.Losses, h.Trained, c.losses, c.trained)
		}
	}
	if h := saving.HistoryOf(view.Workload{}, nil, noon); h.Trained != 0 {
		t.Errorf("what was never seen has trained for %v", h.Trained)
	}
}

// TestBurstsOfLossesGetASchedule: losses that come in bursts of five, hours apart.
func TestBurstsOfLossesGetASchedule(t *testing.T) {
	t.Parallel()
	at := noon.Add(-30 * 24 * time.Hour)
	w := view.Workload{Seen: at, Training: view.Training{GapSeconds: []int64{10_800, 10_800, 10_800, 10_800, 10_800}}}
	var all []view.Incident
	for i := range 40 {
		at = at.Add(20 * time.Minute)
		if i%5 == 0 {
			at = at.Add(40 * time.Hour)
		}
		all = append(all, view.Incident{Opened: at, Down: at, Closed: at.Add(5 * time.Minute), Outcome: view.Resumed, Cost: view.Cost{Cost: events.Cost{AwaySeconds: 300}}})
	}
	every, atLeast := saving.Every(w, 0)
	h := saving.HistoryOf(w, past(all...), noon)
	s := saving.Of(w, every, atLeast, h, 0)
	if every != 3*time.Hour || h.Losses != 40 || h.Back != 5*time.Minute || len(s.AfterStart) != 5 || s.AfterStart[0] >= s.BestSeconds {
		t.Fatalf("%d losses, back after %v: saves after %v, else every %v", h.Losses, h.Back, s.AfterStart, s.BestSeconds)
	}
	for i := range 4 {
		if next, last := s.AfterStart[i+1]-s.AfterStart[i], s.AfterStart[i]; i > 0 && next < last-s.AfterStart[i-1] {
			t.Errorf("the schedule does not stretch: %v", s.AfterStart)
		}
	}
	if do, _ := s.Advice(); !strings.HasPrefix(do, "save every "+events.Span(time.Duration(s.BestSeconds)*time.Second)+" instead of 3 h 0 m: ") {
		t.Errorf("it says %s", do)
	}
	w.Training.StepSeconds = 8 // 1,350 of them are three hours
	if do, _ := saving.Of(w, every, atLeast, h, 0).Advice(); !strings.Contains(do, " instead of 1,400 steps (3 h 0 m): ") {
		t.Errorf("it says %s", do)
	}
	if _, because := s.Advice(); !strings.Contains(because, "losses come in bursts: it loses still less with saves at ") {
		t.Errorf("it says %s", because)
	}
}
