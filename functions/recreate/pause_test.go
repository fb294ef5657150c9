package recreate_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
)

// TestAPauseTakesNoTimeOfAPhase: requests come and are held for six hours, at each of patrol's ticks, and as much of the phase is left as
// before. Then the deletion goes on.
func TestAPauseTakesNoTimeOfAPhase(t *testing.T) {
	b := toDelete(t)
	b.Must(b.Ledger.SetPause(t.Context(), &evidence.Pause{By: "ada"}))
	left := b.Shown(id).Incident.Deadline.Sub(b.Clock.Now())
	tick := func() {
		now := b.Clock.Now()
		b.Clock.Advance(now.Truncate(time.Minute).Add(time.Minute).Sub(now))
		b.Give(b.Workload(id), evidence.Ticked{Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankReading}})
		for _, r := range fleettest.All(t, b.Bench, events.DecodeRecreateRequested) {
			b.request = r
			b.Clock.Advance(3 * time.Second)
			b.deliver()
		}
	}
	b.deliver()
	for range breadth.Of(6*60, 30) { // minutes
		tick()
		w := b.Shown(id)
		if w.Incident == nil {
			t.Fatalf("it ended %s (%s): %s", w.Closed.Outcome, w.Closed.Code, w.Closed.Reason)
		}
		if now := w.Incident.Deadline.Sub(b.Clock.Now()); now < left-time.Minute || now > left+5*time.Minute {
			t.Fatalf("%v is left of the phase, want about %v", now, left)
		}
	}
	b.Must(b.Ledger.SetPause(t.Context(), nil))
	b.Calls()
	tick()
	tick()
	if n := fleettest.Count(b.Calls(), "DeleteNode"); n != 1 {
		t.Errorf("%d deletions once the pause is lifted", n)
	}
}
