package incident_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/incident"
)

// calls are the recorded calls of an open incident in short.
func calls(w incident.Workload) []string {
	var all []string
	for _, c := range w.Incident.Calls {
		s := c.Function + " " + c.Method + " " + c.Resource
		switch {
		case c.NotMade:
			s += " not made"
		case c.Answered.IsZero():
			s += " open"
		}
		if c.Code != "" {
			s += " " + string(c.Code)
		}
		if c.Operation != "" {
			s += " as " + c.Operation
		}
		if c.Again > 0 {
			s += fmt.Sprintf(" again %d", c.Again)
		}
		if c.Folded > 0 {
			s += fmt.Sprintf(" folded %d", c.Folded)
		}
		all = append(all, s)
	}
	return all
}

const (
	nodeA  = "projects/demo/locations/us-west4-a/nodes/llama-8b"
	nodeB  = "projects/demo/locations/us-west4-b/nodes/llama-8b"
	lease  = "gs://ckpt/llama-8b/" + events.LeaseObject
	saving = "gs://ckpt/llama-8b/" + events.RequestObject
)

// TestEveryCallIsRecordedWithItsIntent: what a request is about to call stands in the incident before it is called, and what came
// of it after.
func TestEveryCallIsRecordedWithItsIntent(t *testing.T) {
	for _, c := range []struct {
		path string
		spot bool
		want []string
	}{
		{"preempted, read lost", true, nil},
		{"preempted, read lost, intend delete 0", true, []string{"recreate DeleteNode " + nodeA + " open"}},
		{"preempted, read lost, intend delete 0, accepted delete 0", true, []string{"recreate DeleteNode " + nodeA + " as operation-delete"}},
		{
			"preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, stockout create 0, intend create 0, accepted create 0, late stockout create 0", true,
			[]string{
				"recreate DeleteNode " + nodeA + " as operation-delete", "recreate CreateNode " + nodeA + " stockout",
				"recreate CreateNode " + nodeB + " stockout as operation-create",
			},
		},
		{"exit 139, gave up, its verdict, intend restart 0, accepted restart 0", true, []string{"recovery storage.objects.create " + lease}},
		{
			"pending, later, tick, intend save 0, accepted save 0, saved, found verify 0, intend maintain 0", false,
			[]string{
				"checkpoint storage.objects.create " + saving, "checkpoint UpdateNode " + nodeA,
				"checkpoint PerformMaintenance " + nodeA + " open",
			},
		},
	} {
		if d := cmp.Diff(c.want, calls(at(t, policies["everything"], c.spot, c.path, nil).w)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.path, d)
		}
	}
	n := at(t, policies["everything"], true, "preempted, read lost, intend delete 0", inQueue)
	if d := cmp.Diff([]string{"recreate DeleteQueuedResource projects/demo/locations/us-west4-a/queuedResources/qr open"}, calls(n.w)); d != "" {
		t.Errorf("in a queued resource (-want +got):\n%s", d)
	}
}

// TestACallThatWasNotMadeSaysSo: what was begun and held, or found done, was not called; what another delivery may have called
// stays open.
func TestACallThatWasNotMadeSaysSo(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, "preempted, read lost, intend delete 0", nil)
	r := asked(n.w, n.now)
	failure := &incident.Failure{Class: incident.CannotMove, Message: "the reservation is elsewhere"}
	for name, c := range map[string]struct {
		e    incident.Evidence
		want string
	}{
		"held behind the intent":    {incident.Held{Request: r, Code: incident.CodePaused, Why: "paused", Begun: true}, " not made paused"},
		"held before it":            {incident.Held{Request: r, Code: incident.CodeBraked, Why: "braked"}, " open"},
		"done already":              {incident.Answered{Request: r, NoCall: incident.Uncalled}, " not made already_there"},
		"refused behind the intent": {incident.Answered{Request: r, NoCall: incident.Uncalled, Failure: failure}, " not made cannot_move"},
		"refused before it":         {incident.Answered{Request: r, NoCall: incident.Unbegun, Failure: failure}, " open"},
		"refused by the provider":   {incident.Answered{Request: r, Failure: failure}, " cannot_move"},
	} {
		w, _, _ := advance(p, n.w, c.e, n.now)
		if w.Incident == nil {
			w.Incident = w.Closed
		}
		if got := calls(w); len(got) != 1 || !strings.HasSuffix(got[0], nodeA+c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// The answer may come when nothing waits for it any more.
	over, _, _ := advance(p, n.w, incident.Held{Request: r, Code: incident.CodeBraked, Why: "braked"}, n.now)
	over, _, _ = advance(p, over, incident.Answered{Request: r, Operation: "op"}, n.now)
	if got := calls(over); !strings.HasSuffix(got[0], " as op") {
		t.Errorf("a late answer is lost: %q", got)
	}
}

// TestADeliveryOnceMoreIsOneCall: the same request carries the same ID, and nobody knows what the first delivery came to.
func TestADeliveryOnceMoreIsOneCall(t *testing.T) {
	p := policies["everything"]
	for _, c := range []struct {
		path  string
		later time.Duration
	}{
		{"preempted, read lost", incident.CallFor + time.Second},
		{"exit 139, gave up, its verdict", time.Second},
	} {
		n := at(t, p, true, c.path, nil)
		e := incident.Intended{Request: asked(n.w, n.now), RequestID: "id"}
		w, _, _ := advance(p, n.w, e, n.now)
		again, _, changed := advance(p, w, e, n.now.Add(c.later))
		if got := calls(again); !changed || len(got) != 1 || !strings.HasSuffix(got[0], " open again 1") {
			t.Errorf("%s: begun twice %q", c.path, got)
		}
		if w.Incident.Calls[0].Again != 0 {
			t.Error("Advance changed what it was given")
		}
		held, _, _ := advance(p, again, incident.Held{Request: asked(again, n.now), Code: incident.CodePaused, Why: "paused", Begun: true}, n.now.Add(c.later))
		if got := calls(held); !strings.HasSuffix(got[0], " open again 1") {
			t.Errorf("%s: what the first delivery may have called is told as not made: %q", c.path, got)
		}
	}
}

// TestARefusalAfterASecondDeliveryUnnamesNobody: two deliveries began to write a lease. Why the second wrote none says nothing of the
// first, so the lease may name the slice all the same.
func TestARefusalAfterASecondDeliveryUnnamesNobody(t *testing.T) {
	for deliveries, named := range map[int]bool{1: false, 2: true} {
		r := newTour(t, quiet(true), "everything")
		r.learn("llama-8b", "preempted", "read lost")
		r.learn("", "intend delete 0", "accepted delete 0")
		r.learn("llama-8b", "read gone")
		r.learn("", "intend create 0", "accepted create 0")
		r.learn("llama-8b", "read ours")
		for range deliveries {
			r.learn("", "intend admit 0")
		}
		if got := r.w.Slices[0].Leased; got != r.w.Crew.LeaseAttempt || got == 0 {
			t.Fatalf("begun %d times, the lease names it since attempt %d of %d", deliveries, got, r.w.Crew.LeaseAttempt)
		}
		r.give(incident.Answered{Request: asked(r.w, r.now), NoCall: incident.Uncalled, Failure: &incident.Failure{Class: incident.NotInState, Code: incident.CodeOvertaken, Message: "overtaken"}})
		if got := r.w.Slices[0].Leased > 0; got != named {
			t.Errorf("begun %d times and refused: the lease may name the slice: %v", deliveries, got)
		}
	}
}

// TestTheRecordOfCallsIsBounded has capacity asked for during two days: the newest calls stand for themselves, the oldest are
// folded, and none is forgotten.
func TestTheRecordOfCallsIsBounded(t *testing.T) {
	breadth.Again(t)
	p := policies["spot"]
	n := at(t, p, true, "preempted, read lost, intend delete 0, accepted delete 0, read gone", nil)
	made := 1
	for n.w.Incident.Opened.Add(48 * time.Hour).After(n.now) {
		n.now = n.now.Add(30 * time.Second)
		n.w, _, _ = tick(p, n.w, n.now)
		r := asked(n.w, n.now)
		if effect := n.w.Effects[0]; !effect.Retry.IsZero() {
			continue
		}
		made++
		n.w, _, _ = advance(p, n.w, incident.Intended{Request: r, RequestID: fmt.Sprint(made)}, n.now)
		n.w, _, _ = advance(p, n.w, incident.Answered{Request: r, Text: "refused", Failure: &incident.Failure{Class: incident.Stockout, Message: "no capacity"}}, n.now)
	}
	in := n.w.Incident
	if len(in.Calls) != incident.MaxCalls {
		t.Fatalf("%d calls are kept of %d, want %d", len(in.Calls), made, incident.MaxCalls)
	}
	told := in.CallsLeftOut
	for _, c := range in.Calls {
		told += 1 + c.Folded
		if (c.Folded > 0) != c.Until.After(c.At) {
			t.Errorf("folded %d until %v since %v", c.Folded, c.Until, c.At)
		}
	}
	if told != made || in.CallsLeftOut != 0 || made < 500 {
		t.Errorf("%d calls were made, %d are told of and %d left out", made, told, in.CallsLeftOut)
	}
	if last := in.Calls[len(in.Calls)-1]; last.RequestID != fmt.Sprint(made) || last.Folded != 0 {
		t.Errorf("the newest call is %+v", last)
	}
	if i := slices.IndexFunc(in.Calls, func(c incident.Call) bool { return c.Method == "DeleteNode" }); i != 0 {
		t.Error("the deletion is not the first call any more")
	}
}

// TestTheDocumentStaysSmall holds a document that is full of everything under half of what Firestore takes.
func TestTheDocumentStaysSmall(t *testing.T) {
	long := strings.Repeat("x", 63)
	in := incident.Incident{ID: long}
	for i := range incident.MaxCalls {
		in.Calls = append(in.Calls, incident.Call{
			At: start, Function: "checkpoint", Method: "PerformMaintenanceQueuedResource",
			Resource:  "projects/" + long[:30] + "/locations/us-central1-a/queuedResources/" + long,
			RequestID: "00000000-0000-5000-8000-000000000000", Epoch: int64(i), Action: events.ActionMaintain, Slice: long, Again: 1,
			Answered: start, Operation: "projects/" + long[:30] + "/locations/us-central1-a/operations/operation-" + long, Code: incident.CodePolicyUnreadable,
			Folded: 1000, Until: start,
		})
	}
	for range incident.MaxLines {
		in.Timeline = append(in.Timeline, incident.Line{At: start, Kind: incident.LineDecided, Text: strings.Repeat("t", 120), Reason: strings.Repeat("r", 300), Source: long, Phase: incident.PhaseCreating, Code: incident.CodePolicyUnreadable})
	}
	w := quiet(true)
	w.Incident, w.Closed = &in, &in
	raw, err := json.Marshal(w)
	if err != nil || len(raw) > 512<<10 {
		t.Errorf("a full document has %d bytes: %v", len(raw), err)
	}
}
