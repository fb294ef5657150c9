package oracle

import (
	"testing"
	"time"

	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
)

// TestAHoldLastsUntilTheRequestIsThereAgain: the brake held a request until three, its next delivery was lost, and the one after that
// is held until four. The tick after four asks again. The deadline moves by all of that time, and by no more.
func TestAHoldLastsUntilTheRequestIsThereAgain(t *testing.T) {
	at := time.Date(2026, 1, 15, 3, 10, 0, 663_934_575, time.UTC)
	for moves, wrong := range map[time.Duration]bool{time.Hour: false, 63 * time.Minute: true} {
		c := &Checks{World: &world.World{Clock: clock.NewClock(at)}, chaos: &faults.Chaos{}}
		was := incident.Incident{Phase: incident.PhaseDeleting, Since: at.Add(-50 * time.Minute), Deadline: at.Add(37 * time.Minute)}
		is := was
		is.Deadline = was.Deadline.Add(moves)
		c.postponed(ledger.Step{
			At: at, Before: incident.Workload{Incident: &was}, After: incident.Workload{Incident: &is},
			Evidence: []incident.Evidence{incident.Held{}},
		})
		if got := len(c.Violations) > 0; got != wrong {
			t.Errorf("a hold that moves the deadline by %v: wrong is %v", moves, got)
		}
	}
}
