package incident_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// calls are the recorded calls of the open incident, or the one that closed last, in short.
func (n *story) calls() (all []string) {
	for _, c := range n.about().Calls {
		s := c.Function + " " + c.Method + " " + c.Resource
		switch {
		case c.NotMade:
			s += " not made"
		case c.Answered.IsZero():
			s += " open"
		}
		if s = strings.TrimSpace(s + " " + string(c.Code)); c.Operation != "" {
			s += " as " + c.Operation
		}
		if c.Again > 0 {
			s += fmt.Sprintf(" again %d", c.Again)
		}
		all = append(all, s)
	}
	return all
}

// TestEveryCallIsRecordedWithItsIntent: what a request is about to call stands in the incident before it is called, and what came of it after.
func TestEveryCallIsRecordedWithItsIntent(t *testing.T) {
	t.Parallel()
	const (
		nodeB   = "projects/demo/locations/us-west4-b/nodes/llama-8b"
		beside  = "gs://ckpt/llama-8b/"
		deleted = "recreate DeleteNode " + nodeA + " as operation-delete-llama-8b"
	)
	for _, c := range []struct {
		path   string
		change []func(*incident.Workload)
		want   []string
	}{
		{"preempted, read lost", nil, nil},
		{"preempted, read lost, intend delete", nil, []string{"recreate DeleteNode " + nodeA + " open"}},
		{"preempted, read lost, intend delete", []func(*incident.Workload){inQueue}, []string{"recreate DeleteQueuedResource projects/demo/locations/us-west4-a/queuedResources/qr open"}},
		{"preempted, read lost, does delete", nil, []string{deleted}},
		{
			"preempted, read lost, does delete, read gone, stockout create, does create, late stockout create", nil,
			[]string{deleted, "recreate CreateNode " + nodeA + " stockout", "recreate CreateNode " + nodeB + " stockout as operation-create-llama-8b"},
		},
		{"exit 139, gave up, its verdict, does restart", nil, []string{"recovery storage.objects.create " + beside + events.LeaseObject}},
		{
			"shows movable, tick, does save, saved, found verify, intend maintain",
			[]func(*incident.Workload){func(w *incident.Workload) { w.Slices[0].Capacity = events.OnDemand }},
			[]string{"checkpoint storage.objects.create " + beside + events.RequestObject, "checkpoint UpdateNode " + nodeA, "checkpoint PerformMaintenance " + nodeA + " open"},
		},
	} {
		if d := cmp.Diff(c.want, at(t, "everything", true, c.path, c.change...).calls()); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.path, d)
		}
	}
}

// TestACallThatWasNotMadeSaysSo, with its code. What another delivery may have called stays open.
func TestACallThatWasNotMadeSaysSo(t *testing.T) {
	t.Parallel()
	failure := &evidence.Failure{Class: reason.CannotMove, Message: "the reservation is elsewhere"}
	for name, c := range map[string]struct {
		held     evidence.Held
		answered evidence.Answered
		want     string
		code     reason.Code // of the last line
	}{
		"held behind the intent":    {held: evidence.Held{Code: reason.CodePaused, Why: "paused", Begun: true}, want: " not made paused", code: reason.CodePaused},
		"held before it":            {held: evidence.Held{Code: reason.CodeBraked, Why: "braked"}, want: " open", code: reason.CodeBraked},
		"done already":              {answered: evidence.Answered{NoCall: evidence.Uncalled}, want: " not made already_there"},
		"refused behind the intent": {answered: evidence.Answered{NoCall: evidence.Uncalled, Failure: failure}, want: " not made cannot_move", code: reason.CannotMove.Code()},
		"refused before it":         {answered: evidence.Answered{NoCall: evidence.Unbegun, Failure: failure}, want: " open"},
		"refused by the provider":   {answered: evidence.Answered{Failure: failure}, want: " cannot_move", code: reason.CannotMove.Code()},
	} {
		n := at(t, "everything", true, "preempted, read lost")
		r := n.begins(events.ActionDelete, "llama-8b")
		if c.held.Request, c.answered.Request = r, r; c.held.Code != "" {
			n.give(c.held)
		} else {
			n.give(c.answered)
		}
		lines := n.w.Incident.Lines
		if got := n.calls(); len(got) != 1 || got[0] != "recreate DeleteNode "+nodeA+c.want || lines[len(lines)-1].Code != c.code {
			t.Errorf("%s: %q, want %q:\n%s", name, got, c.want, n.tale())
		}
		if n.give(evidence.Answered{Request: r, Operation: "op"}); strings.HasSuffix(c.want, " open") && !strings.HasSuffix(n.calls()[0], " as op") {
			t.Errorf("%s: an answer that nothing waits for any more is lost: %q", name, n.calls())
		}
	}
}

// TestADeliveryOnceMoreIsOneCall: nobody knows what the first one came to. Why the second made none says nothing of it.
func TestADeliveryOnceMoreIsOneCall(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		action events.Action
		slice  string
		later  time.Duration
	}{
		"preempted, read lost":           {events.ActionDelete, "llama-8b", bounds.CallFor + time.Second},
		"exit 139, gave up, its verdict": {events.ActionRestart, "", time.Second},
	} {
		n := at(t, "everything", true, path)
		r := n.begins(c.action, c.slice)
		before := n.w
		if n.later(c.later).intends(r); len(n.calls()) != 1 || !strings.HasSuffix(n.calls()[0], " open again 1") {
			t.Errorf("%s: begun twice %q", path, n.calls())
		}
		if before.Incident.Calls[0].Again != 0 {
			t.Error("Advance changed what it was given")
		}
		n.give(evidence.Held{Origin: n.reading(), Request: r, Code: reason.CodePaused, Why: "paused", Begun: true})
		if !strings.HasSuffix(n.calls()[0], " open again 1") {
			t.Errorf("%s: what the first delivery may have called is told as not made: %q", path, n.calls())
		}
	}
}

// TestTheRecordOfCallsIsBounded: the newest calls stand for themselves, the oldest are folded, and none is forgotten.
func TestTheRecordOfCallsIsBounded(t *testing.T) {
	t.Parallel()
	n := at(t, "spot", true, "preempted, read lost, does delete, read gone")
	made := 1
	for n.w.Incident.Opened.Add(48 * time.Hour).After(n.now) {
		if n.later(30 * time.Second).tick(); n.w.Effects[0].Stage() == view.StageWanted {
			made++
			n.fails(n.begins(events.ActionCreate, "llama-8b"), reason.Stockout)
		}
	}
	in := n.w.Incident
	told := in.CallsLeftOut
	for _, c := range in.Calls {
		if told += 1 + c.Folded; (c.Folded > 0) != c.Until.After(c.At) {
			t.Errorf("folded %d until %v since %v", c.Folded, c.Until, c.At)
		}
	}
	if len(in.Calls) != incident.MaxCalls || told != made || in.CallsLeftOut != 0 || made < 500 {
		t.Errorf("%d calls are kept; %d were made, %d are told of and %d left out", len(in.Calls), made, told, in.CallsLeftOut)
	}
	if last := in.Calls[len(in.Calls)-1]; last.Folded != 0 || in.Calls[0].Method != "DeleteNode" || slices.ContainsFunc(in.Calls[1:], func(c view.Call) bool { return c.Method == "DeleteNode" }) {
		t.Errorf("the first call is %+v, and the newest %+v", in.Calls[0], last)
	}
	for range bounds.MaxLines {
		in.Lines = append(in.Lines, in.Lines[len(in.Lines)-1])
	}
	if in.Lines = in.Lines[:bounds.MaxLines]; len(marshal(n.w)) > 256<<10 { // a document has a limit of a megabyte, and may hold two incidents
		t.Errorf("it has %d bytes", len(marshal(n.w)))
	}
}
