package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// inQueue is a workload of one slice that a queued resource holds.
func inQueue(w *incident.Workload) { w.Slices[0].Group = "qr" }

// TestWhatWasOrderedIsNotLeftBehind: whatever our own request brings is deleted when its incident ends without it, whenever
// it was read, before training is let in.
func TestWhatWasOrderedIsNotLeftBehind(t *testing.T) {
	const created = "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, "
	for name, c := range map[string]struct {
		path string
		but  func(*incident.Workload)
		// last is the evidence that ends the incident, and want what stands behind it.
		last, want string
		// reason is what the timeline says of it.
		reason string
	}{
		"it was seen CREATING before the owner took over": {created + "read ours made", nil, "owner creates", "clearing: delete llama-8b", "nobody waits for it any more"},
		"it is seen CREATING after that":                  {created + "owner creates", nil, "read ours made", "clearing: delete llama-8b", "nobody waits for it any more"},
		"it is usable after that":                         {created + "owner creates", nil, "read ours", "clearing: delete llama-8b", "nobody waits for it any more"},
		"its queued resource waits":                       {created + "read ordered", inQueue, "owner creates", "clearing: delete llama-8b", "cancel queued resource qr"},
		"its queued resource is seen waiting after that":  {created + "owner creates", inQueue, "read ordered", "clearing: delete llama-8b", "cancel queued resource qr"},
		"it is not admitted yet":                          {created + "read ours", nil, "owner creates", "clearing: delete llama-8b", "nobody waits for it any more"},
		"training may run in it by now":                   {created + "read ours, intend admit 0", nil, "owner creates", "released", ""},
		"the owner stops it":                              {created + "read ours", nil, "owner stops", "released", ""},
		"somebody else has ordered it":                    {"preempted, read lost, intend delete 0, accepted delete 0", inQueue, "read ordered by others", "released", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := at(t, policies["everything"], true, c.path, c.but)
			n.now = n.now.Add(time.Second)
			before := n
			e, ok := evidence(n.w, n.now)[c.last]
			if !ok {
				t.Fatalf("there is no %q in this state", c.last)
			}
			var sent []events.Event
			n.w, sent, _ = advance(policies["everything"], n.w, e, n.now)
			checkDocument(t, n, n.w)
			checkSent(t, policies["everything"], before, n, n.w, e, sent)
			if d := cmp.Diff(c.want, stands(n.w, sent)); d != "" {
				t.Fatalf("(-want +got):\n%s", d)
			}
			if !strings.Contains(tale(n.w), c.reason) {
				t.Errorf("%q is not in the story:\n%s", c.reason, tale(n.w))
			}
		})
	}
}

// TestAQueuedResourceIsNotLeftWaiting: the policy gives up after an hour, and so does what was ordered.
func TestAQueuedResourceIsNotLeftWaiting(t *testing.T) {
	p := policies["spot"]
	p.GiveUpAfter = time.Hour
	n := at(t, p, true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, done create 0, read ordered", inQueue)
	ordered := n.w.Slices[0].Ordered
	n.now = n.now.Add(time.Hour)
	var sent []events.Event
	n.w, sent, _ = tick(p, n.w, n.now)
	if d := cmp.Diff("clearing: delete llama-8b", stands(n.w, sent)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	r, ok := sent[0].(events.RecreateRequested)
	if !ok || ordered.IsZero() || !r.Ordered.Equal(ordered) || r.Incarnation.Known() || r.QueuedResource != "qr" {
		t.Errorf("sent %+v, want the deletion of the queued resource that was created at %s", sent[0], ordered)
	}
	for _, what := range []string{"intend delete 0", "accepted delete 0", "read gone"} {
		n.now = n.now.Add(time.Second)
		n.w, _, _ = advance(p, n.w, evidence(n.w, n.now)[what], n.now)
	}
	if n.w.Incident != nil || n.w.Closed.Outcome != incident.Escalated || !strings.HasPrefix(n.w.Closed.Reason, "no capacity for 1 h") {
		t.Errorf("it stands at %s; %s", phaseOf(n.w), tale(n.w))
	}
	if due := due(n.w); !due.IsZero() {
		t.Errorf("something is still due at %s", due)
	}
}

// TestAQueuedResourceThatFailedElsewhereIsDeletedThere, and not where the slice was before.
func TestAQueuedResourceThatFailedElsewhereIsDeletedThere(t *testing.T) {
	n := at(t, policies["spot"], true,
		"preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, stockout create 0, intend create 0, accepted create 0", inQueue)
	zone := n.w.Effects[0].Zone
	now := n.now.Add(time.Hour)
	failed := incident.Read{
		Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: "llama-8b", Zone: zone, Condition: incident.Lost, State: "FAILED (queued resource)",
		Incident: n.w.Incident.ID, Ordered: n.now, Facts: incident.Facts{Group: "qr", Reclaimable: true, Spec: "spec1"},
	}
	_, sent, _ := advance(policies["spot"], n.w, failed, now)
	if len(sent) != 1 {
		t.Fatalf("sent %v, want one deletion", sent)
	}
	r, ok := sent[0].(events.RecreateRequested)
	if !ok || r.Action != events.ActionDelete || r.Zone != zone || zone == "us-west4-a" || !r.Ordered.Equal(n.now) {
		t.Errorf("sent %+v, want the deletion in %s of what was ordered at %s", sent[0], zone, n.now)
	}
}
