package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestProvisioningIsNotGivenUpAfterEightTries: a queued resource cannot be deleted in PROVISIONING, where it stays for an
// hour or two. How long it is waited for is told by the clock.
func TestProvisioningIsNotGivenUpAfterEightTries(t *testing.T) {
	const refusal = "DeleteQueuedResource is not supported when state is PROVISIONING"
	for name, path := range map[string]string{
		"in the way of a replacement": "preempted, read lost",
		"nobody waits for it": "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, " +
			"read ordered, owner creates",
	} {
		for _, c := range []struct {
			name  string
			stays time.Duration
			ends  bool
		}{
			{"for two hours", 2 * time.Hour, false},
			{"for ever", 100 * time.Hour, true},
		} {
			t.Run(name+" "+c.name, func(t *testing.T) {
				n := at(t, policies["spot"], true, path, inQueue)
				began, tries := n.now, 0
				for n.w.Incident != nil && n.now.Sub(began) < c.stays {
					for _, effect := range n.w.Effects {
						if effect.Action != events.ActionDelete || !effect.Retry.IsZero() || effect.Epoch != n.w.Epoch {
							continue
						}
						tries++
						r := events.Request{Schema: 1, Workload: n.w.ID, Incident: n.w.Incident.ID, Epoch: effect.Epoch, Action: effect.Action, Slice: effect.Slice, Attempt: effect.Attempt}
						n.w, _, _ = advance(policies["spot"], n.w, incident.Intended{Request: r, RequestID: "uuid"}, n.now)
						n.w, _, _ = advance(policies["spot"], n.w, incident.Answered{
							Request: r, Text: "delete failed", Failure: &incident.Failure{Class: incident.NotInState, Message: refusal},
						}, n.now)
					}
					n.now = n.now.Add(time.Minute)
					n.w, _, _ = tick(policies["spot"], n.w, n.now)
				}
				if took := n.now.Sub(began); c.ends && (n.w.Incident != nil || took < incident.BarredFor || took > incident.BarredFor+time.Hour) {
					t.Fatalf("it ended after %s; %s", took, tale(n.w))
				}
				if c.ends && !strings.Contains(n.w.Closed.Reason, refusal) {
					t.Errorf("the reason %q does not say why", n.w.Closed.Reason)
				}
				if !c.ends && (n.w.Incident == nil || tries < 10) {
					t.Errorf("after %d tries it stands at %s; %s", tries, phaseOf(n.w), tale(n.w))
				}
				if !strings.Contains(tale(n.w), "wait up to 6 h 0 m for queued resource qr to leave its state | it cannot be deleted in it: "+refusal) {
					t.Errorf("nobody is told of it; %s", tale(n.w))
				}
			})
		}
	}
}
