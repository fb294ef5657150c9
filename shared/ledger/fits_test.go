package ledger_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

// TestWhatIsOnlyWatchedIsHeldAgainstItsZones: in the same write, as evidence that makes the same document again, and before the
// archive takes its record. What cannot be read keeps nothing from being decided.
func TestWhatIsOnlyWatchedIsHeldAgainstItsZones(t *testing.T) {
	for name, err := range map[string]error{"": nil, "without an answer": errors.New("the ledger cannot be read")} {
		l := newLoop(t, memory)
		l.policies.Policy = policy.Policy{Name: "watch", Zones: []string{"us-west4-b"}}
		asked := 0
		l.Fits = func(_ context.Context, w incident.Workload, slice string, zones []string, p policy.Policy) ([]incident.ZoneFit, error) {
			asked++
			if w.ID != workload || slice != "llama-8b" || !slices.Equal(zones, p.Zones) {
				t.Errorf("asked about %s of %s in %v", slice, w.ID, zones)
			}
			return []incident.ZoneFit{{Zone: "us-west4-b", Checked: true, Code: incident.CannotMove.Code(), Text: "its disk stays"}}, err
		}
		var steps []ledger.Step
		l.Saved = func(_ context.Context, s ledger.Step) { steps = append(steps, s) }
		w, failed := l.Advance(t.Context(), workload, l.preempted(), l.lost())
		if failed != nil || w.Incident == nil || w.Incident.Phase != incident.Watching || asked != 1 || len(steps) != 1 {
			t.Fatalf("%s: %v, asked %d times, %d steps, %+v", name, failed, asked, len(steps), w.Incident)
		}
		zone := w.Incident.Plan[1].Zones[1]
		if zone.Checked != (err == nil) || (zone.Code == "cannot_move") != (err == nil) {
			t.Errorf("%s: the zone is %+v", name, zone)
		}
		again := steps[0].Before
		for _, e := range steps[0].Evidence {
			again, _, _ = incident.Advance(steps[0].Policy, again, e, steps[0].At)
		}
		if got := again.Incident.Plan[1].Zones[1]; got != zone {
			t.Errorf("%s: the same evidence makes %+v", name, got)
		}
	}
}
