package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
)

// TestAMultisliceIsNotReplacedByHalves: a queued resource goes by one deletion and comes by one creation, whatever is lost
// of it. What the API shows of one slice proves nothing of the other, so that is read first; and it is one incident.
func TestAMultisliceIsNotReplacedByHalves(t *testing.T) {
	t.Parallel()
	const gone = "creating: create a with b"
	whole := []string{"do", "deleting", "a read gone", "deleting", "b read gone", gone}
	for name, c := range map[string]struct {
		onDemand bool
		but      func(w *incident.Workload)
		steps    []string
		reason   string
	}{
		"both are preempted": {false, nil, chain([]string{
			"a preempted", "looking", "a read lost", "looking", "b read lost", "deleting: delete a with b", "a read lost", "deleting",
			"b preempted", "deleting", "tick", "deleting",
		}, whole), ""},
		"one is preempted, and the other lives": {false, nil, chain([]string{
			"a read lost", "looking", "a read lost", "looking", "b read ready", "deleting: delete a with b", "b read ready", "deleting", // it goes all the same
		}, whole), ""},
		"one is preempted, and the other lives, and nothing is saved": {false, func(w *incident.Workload) { w.Training.Saved = incident.Checkpoint{} }, []string{
			"a read lost", "looking", "b read ready", "looking: hear", // a look at what is saved comes first
			"later", "looking", "tick", "escalated",
		}, "b still exists (READY) and no checkpoint of its training has been verified"},
		"one is preempted, and the other goes with it, and nothing is saved": {false, func(w *incident.Workload) { w.Training.Saved = incident.Checkpoint{} }, []string{
			"a read lost", "looking", "b read deleting", "deleting: delete a with b",
		}, ""},
		"one is preempted, and the other is not read": {false, nil, []string{
			"a read lost", "looking", "later", "looking", "tick", "deleting: delete a with b", // it is read before the call
		}, ""},
		"the other is gone": {false, nil, []string{"b read gone", "peace", "a read lost", "deleting: delete a with b"}, ""},
		"both vanish":       {false, nil, []string{"a read gone", "peace", "b read gone", "peace", "later", "peace", "tick", gone}, ""},
		"both come back before anybody has called for it": {false, nil, []string{
			"a read lost", "looking", "b read lost", "deleting: delete a with b", "a read ready", "deleting", "b read ready", "resuming",
		}, ""},
		"Google's own recovery does not come": {true, nil, []string{"a read lost", "healing", "later", "healing", "tick", "deleting: delete a with b"}, ""},
		"the new one comes node by node": {false, nil, []string{
			"a read lost", "looking", "b read lost", "deleting: delete a with b", "do", "deleting", "a read gone", "deleting", "b read gone", gone,
			"do", "creating", "a read ordered", "creating", "b read ordered", "creating", "a read ours made", "creating", "a read ready", "creating",
			"b read ours", "admitting: admit a=7712 b=7761", "do", "resuming",
		}, ""},
		"one is lost again before the other has come": {false, nil, []string{
			"a read lost", "looking", "b read lost", "deleting: delete a with b", "do", "deleting", "a read gone", "deleting", "b read gone", gone,
			"do", "creating", "a read ours", "creating", "a read lost", "deleting: delete a with b", "do", "deleting",
			"a read gone", "creating: create a with b", // of the other nothing was ever there
		}, ""},
		"the owner takes over while it waits": {false, nil, []string{
			"a read lost", "looking", "b read lost", "deleting: delete a with b", "do", "deleting", "a read gone", "deleting", "b read gone", gone,
			"do", "creating", "a read ordered", "creating", "b owner deletes", "clearing: delete a with b", "do", "clearing",
			"a read gone", "clearing", "b read gone", "released",
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := queued(t, !c.onDemand)
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
		Facts: evidence.Facts{Group: "qr", Reclaimable: true, Spec: "spec1"},
	}
}

// TestWhatItsOwnerHasOrderedAgainGoesWithTheRest: of a Multislice that its owner has deleted and ordered again one slice was never seen alive. What
// its owner deleted keeps nothing back: what is left of it is a single slice.
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

// TestWhatWasNeverSeenAliveIsNotDeleted: of a queued resource that is suspended when it is first seen there is no life that a request could name.
// It opens nothing, and in an incident of another slice it is a person's.
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

// TestAQueuedResourceOfOursThatIsSuspendedIsOrderedAnew: what it brought came and was lost while nobody looked, or it has FAILED. It is not what a
// queued resource is that still waits.
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
