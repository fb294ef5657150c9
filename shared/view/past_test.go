package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/view"
)

// TestARowSaysInWhichPhasesTheTrainingStoodStill: it ran on while it saved, and stood still while the incident was over already.
func TestARowSaysInWhichPhasesTheTrainingStoodStill(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(minutes time.Duration) time.Time { return noon.Add(minutes * time.Minute) }
	in := view.Incident{
		Opened: noon, Down: at(10), Closed: at(30), Outcome: view.Escalated, Cost: view.Cost{Cost: events.Cost{AwaySeconds: 3600}},
		Timeline: []view.Line{{At: noon, Phase: view.Saving}, {At: at(15), Phase: view.PhaseCreating}, {At: at(30), Phase: view.Closed}},
	}
	closed := in.Past("demo/llama-8b", nil)
	if d := cmp.Diff(map[view.Phase]float64{view.Saving: 900, view.PhaseCreating: 900}, closed.Took); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[view.Phase]float64{view.Saving: 300, view.PhaseCreating: 900}, closed.Still); d != "" || !closed.Back().Equal(at(70)) {
		t.Errorf("back %v, %s", closed.Back(), d)
	}
	in.Outcome, in.Closed, in.Cost.AwaySeconds, in.Timeline = "", time.Time{}, 600, in.Timeline[:2]
	if d := cmp.Diff(map[view.Phase]float64{view.Saving: 300, view.PhaseCreating: 300}, in.Past("demo/llama-8b", nil).Still); d != "" {
		t.Error("open: " + d)
	}
}
