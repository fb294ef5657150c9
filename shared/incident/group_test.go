package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
)

// TestAMultisliceIsNotReplacedByHalves: a queued resource goes by one deletion and comes by one creation. Every slice of it is read first.
func TestAMultisliceIsNotReplacedByHalves(t *testing.T) {
	t.Parallel()
	const deletes, gone, created = "deleting: delete a with b", "creating: create a with b", "a read lost, b read lost, do, a read gone, b read gone, do"
	for name, c := range map[string]struct {
		but    func(w *incident.Workload)
		steps  []string
		reason string
	}{
		"both are preempted": {nil, []string{
			"a preempted, a read lost", "looking", "b read lost", deletes, "a read lost, b preempted, tick, do, a read gone", "deleting", "b read gone", gone,
		}, ""},
		"one is preempted, and the other lives": {nil, []string{
			"a read lost, a read lost", "looking", "b read ready", deletes, "b read ready, do, a read gone", "deleting", "b read gone", gone, // it goes all the same
		}, ""},
		"one is preempted, and the other lives, and nothing is saved": {unsavedYet, []string{
			"a read lost", "looking", "b read ready", "looking: hear", // a look at what is saved comes first
			"later", "looking", "tick", "escalated",
		}, "b still exists (READY) and no checkpoint of its training has been verified"},
		"one is preempted, and the other goes with it, and nothing is saved": {unsavedYet, []string{"a read lost", "looking", "b read deleting", deletes}, ""},
		"one is preempted, and the other is not read":                        {nil, []string{"a read lost, later", "looking", "tick", deletes}, ""}, // it is read before the call
		"the other is gone": {nil, []string{"b read gone", "peace", "a read lost", deletes}, ""},
		"both vanish":       {nil, []string{"a read gone, b read gone, later", "peace", "tick", gone}, ""},
		"both come back before anybody has called for it": {nil, []string{"a read lost, b read lost, a read ready", "deleting", "b read ready", "resuming"}, ""},
		"Google's own recovery does not come":             {onDemand, []string{"a read lost, later", "healing", "tick", deletes}, ""},
		"the new one comes node by node": {nil, []string{
			created + ", a read ordered, b read ordered, a read ours made, a read ready", "creating", "b read ours", "admitting: admit a=7712 b=7761", "do", "resuming",
		}, ""},
		"one is lost again before the other has come": {nil, []string{
			created + ", a read ours", "creating", "a read lost", deletes, "do", "deleting", "a read gone", gone, // of the other nothing was ever there
		}, ""},
		"the owner takes over while it waits": {nil, []string{
			created + ", a read ordered", "creating", "b owner deletes", "clearing: delete a with b", "do, a read gone", "clearing", "b read gone", "released",
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := queued(t, true)
			if c.but != nil {
				c.but(&n.w)
			}
			n.history(c.steps...)
			if got := n.ended().Reason.String(); !strings.Contains(got, c.reason) {
				t.Errorf("reason %q, want %q in it", got, c.reason)
			}
		})
	}
}

// suspended is the queued resource of a slice after its machines have gone, or before any came.
func suspended(n *story, slice string, when time.Time) evidence.Read {
	return evidence.Read{
		Origin: n.reading(), Slice: slice, Zone: "us-west4-a", Condition: evidence.Lost, State: "SUSPENDED (queued resource)", Ordered: when,
		Facts: evidence.Facts{Group: "qr", Capacity: events.Spot, Spec: "spec1"},
	}
}

// TestWhatItsOwnerHasOrderedAgainGoesWithTheRest, though it was never seen alive. What its owner deleted keeps nothing back.
func TestWhatItsOwnerHasOrderedAgainGoesWithTheRest(t *testing.T) {
	t.Parallel()
	for again, want := range map[bool]string{false: "deleting: delete a", true: "deleting: delete a with b"} {
		n := queued(t, true)
		n.w.Slices[1].Condition, n.w.Slices[1].Released = evidence.Gone, start.Add(-time.Hour)
		if again {
			n.give(suspended(n, "b", start.Add(-time.Minute)))
		}
		if got := n.stands(n.play("a read lost")); got != want {
			t.Errorf("ordered again %v: it stands at %q, want %q", again, got, want)
		}
	}
}

// TestWhatWasNeverSeenAliveIsNotDeleted: there is no life that a request could name. In an incident of another slice it is a person's.
func TestWhatWasNeverSeenAliveIsNotDeleted(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	if n.give(suspended(n, "b", time.Time{})); n.w.Incident != nil || len(n.sent) > 0 || !n.w.Due().IsZero() {
		t.Errorf("it asks for %q, and something is due at %v:\n%s", n.sent, n.w.Due(), n.tale())
	}
	if n.play("llama-8b read lost"); !strings.Contains(n.ended().Reason.String(), "b was never seen alive") || len(n.sent) > 0 {
		t.Errorf("it asks for %q:\n%s", n.sent, n.tale())
	}
}

// TestAQueuedResourceOfOursThatIsSuspendedIsOrderedAnew: what it brought was lost while nobody looked. One that waits is none.
func TestAQueuedResourceOfOursThatIsSuspendedIsOrderedAnew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path string
		read evidence.Condition
		want string
	}{
		{", do", evidence.Lost, "deleting: delete llama-8b"}, {", do", evidence.Creating, "creating"}, {", do, read ours", evidence.Lost, "deleting: delete llama-8b"},
	} {
		n := at(t, "spot", true, created+c.path, inQueue)
		ordered := n.w.Incident.Opened.Add(time.Second)
		n.now = n.now.Add(time.Hour)
		e := suspended(n, "llama-8b", time.Time{})
		if e.Condition = c.read; c.path != ", do" { // that order brings no next life
			e.Incident, e.Ordered = n.w.Incident.ID, ordered
		}
		if got := n.stands(n.give(e).sent); got != c.want || !n.w.Slices[0].Ordered.IsZero() {
			t.Errorf("%s, read as %s it stands at %q, want %q:\n%s", c.path, c.read, got, c.want, n.tale())
		}
	}
}
