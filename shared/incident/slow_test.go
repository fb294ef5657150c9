package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestASlowCreationIsNotDeleted: a creation that was accepted and takes longer than it should is waited for, and training
// is admitted to what it brings; only one that never comes is given up, in the end.
func TestASlowCreationIsNotDeleted(t *testing.T) {
	const accepted = "preempted, read lost, later, tick, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ours made"
	p := policies["everything"]
	for name, c := range map[string]struct {
		comes time.Duration
		want  incident.Phase
	}{
		"in time":     {20 * time.Hour, incident.Admitting},
		"after a day": {30 * time.Hour, incident.Admitting},
		"after two":   {47 * time.Hour, incident.Admitting},
		"never":       {50 * time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := at(t, p, false, accepted, nil)
			if n.w.Incident == nil || n.w.Incident.Phase != incident.PhaseCreating {
				t.Fatalf("it is not being created: %s", tale(n.w))
			}
			var deleted []events.Event
			for end := n.now.Add(c.comes); n.now.Before(end) && n.w.Incident != nil; {
				n.now = n.now.Add(10 * time.Minute)
				var sent []events.Event
				n.w, sent, _ = tick(p, n.w, n.now)
				for _, e := range sent {
					switch r := e.(type) {
					case events.RecreateRequested:
						if r.Action == events.ActionDelete {
							deleted = append(deleted, e)
							continue
						}
						// Its operation runs for longer than one may: it is looked at anew, and is there.
						n.w, _, _ = advance(p, n.w, incident.Intended{Request: r.Request, RequestID: "x"}, n.now)
						n.w, _, _ = advance(p, n.w, incident.Answered{Request: r.Request, Text: "it is there already"}, n.now)
					}
				}
			}
			if c.want == "" {
				if n.w.Incident != nil && n.w.Incident.Phase == incident.PhaseCreating {
					t.Errorf("it is still waited for; %s", tale(n.w))
				}
				return
			}
			s := n.w.Slices[0]
			ready := incident.Read{
				Origin: incident.Origin{Time: n.now, Rank: events.RankReading}, Slice: s.Name, Zone: s.Zone, Condition: incident.Ready,
				Incarnation: s.Incarnation, State: "READY", Incident: n.w.Incident.ID,
				Facts: incident.Facts{Accelerator: s.Accelerator, Workers: s.Workers, Chips: s.Chips, Spec: s.Spec, Label: n.w.Label}, Directory: n.w.Directory,
			}
			n.w, _, _ = advance(p, n.w, ready, n.now)
			if deleted != nil || n.w.Incident == nil || n.w.Incident.Phase != c.want {
				t.Errorf("%d deletions; %s", len(deleted), tale(n.w))
			}
		})
	}
}
