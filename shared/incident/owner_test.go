package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestACreationFromBeforeTheTroubleTakesNothingOver: the entry of one that made the very life that was lost may come half
// an hour late, in the middle of the incident.
func TestACreationFromBeforeTheTroubleTakesNothingOver(t *testing.T) {
	for _, c := range []struct {
		name  string
		at    time.Time
		takes bool
	}{
		{"before the trouble", start.Add(-20 * time.Minute), false},
		{"after it", start.Add(20 * time.Second), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := at(t, policies["ask"], true, "preempted, read lost", nil)
			if n.w.Incident == nil || n.w.Incident.Phase != incident.Approving {
				t.Fatalf("the incident is %+v, want one that waits for approval", n.w.Incident)
			}
			called := incident.Called{
				Origin: incident.Origin{ID: "late", Time: c.at, Rank: events.RankAudit}, Slice: n.w.Slices[0].Name, Method: "CreateNode",
				Principal: "babysitter@example.com",
			}
			after, _, _ := incident.Advance(policies["ask"], n.w, called, start.Add(time.Minute))
			if took := after.Incident == nil; took != c.takes {
				t.Errorf("it took the incident over: %v, want %v", took, c.takes)
			}
		})
	}
}
