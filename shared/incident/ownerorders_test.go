package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
)

// TestWhatItsOwnerOrderedInTheMiddle of an incident: what was lost of it is replaced like any other, and what is theirs is not waited for.
func TestWhatItsOwnerOrderedInTheMiddle(t *testing.T) {
	t.Parallel()
	ordered := []string{"b owner deletes", "peace", "b read gone", "peace", "b read foreign made", "peace"}
	healed := []string{"a host error", "looking", "a read unhealthy", "healing"}
	playAll(t, map[string]history{
		"it is lost on demand before it was usable, and gone": {names: both, w: single, steps: slices.Concat(ordered, []string{
			"a ongoing", "saving: save", "b read lost", "healing", "b read gone", "creating: create b",
		})},
		"it is lost before it was usable, and deleted": {names: both, w: single, spot: true, steps: slices.Concat(ordered, []string{
			"a ongoing", "saving: save", "b read lost", "deleting: delete b", "do", "deleting", "b read gone", "creating: create b",
		})},
		"it is lost before it was usable, and gone before a person has said yes": {names: both, w: single, spot: true, policy: "ask", steps: slices.Concat(ordered, []string{
			"a host error", "looking", "b read lost", "approving", "b read gone", "approving", "approved", "creating: create b",
		})},
		"it comes to nothing":  {names: both, w: single, steps: slices.Concat(ordered, healed, []string{"b read gone", "healing", "a read ready", "resuming"})},
		"it is made for hours": {names: both, w: single, steps: slices.Concat(ordered, healed, []string{"a read ready", "healing", "later", "healing", "tick", "escalated"})},
		"they are deleting it, and it is sick": {names: both, w: single, steps: slices.Concat([]string{"b owner deletes", "peace"}, healed, []string{
			"a read ready", "resuming", "b read unhealthy", "resuming", "b read lost", "resuming",
		})},
	})
}

// TestAnIncidentAboutOneSliceForgetsNothingOfAnother, which is just coming, in vain: if it was left to a person, it stays so.
func TestAnIncidentAboutOneSliceForgetsNothingOfAnother(t *testing.T) {
	t.Parallel()
	for _, left := range []bool{true, false} {
		n := multi(t, true)
		n.w.Slices[0].Condition, n.w.Slices[0].State = evidence.Creating, "CREATING"
		if left {
			n.leftToAPerson(0)
		}
		n.history("b preempted", "", "b owner deletes", "released", "a read gone", "released", "a while", "", "tick", "")
		if opened := n.w.Incident != nil; opened == left {
			t.Errorf("left to a person %v, and an incident opens: %v\n%s", left, opened, n.tale())
		}
	}
}

// leftToAPerson says that people were told of the end of a slice.
func (n *story) leftToAPerson(i int) *story {
	s := n.w.Slices[i]
	n.w.Told = append(n.w.Told, incident.Told{Of: incident.ToldEnd, Slice: s.Name, Life: s.Incarnation.ID, At: s.Since})
	return n
}

// TestWhatItsOwnerOrdersDuringTheCleanUpStaysTheirs: what we had asked for is awaited, and there is no capacity for what they ordered.
func TestWhatItsOwnerOrdersDuringTheCleanUpStaysTheirs(t *testing.T) {
	t.Parallel()
	n := multi(t, true).leftToAPerson(1)
	n.w.Slices[1].Condition, n.w.Slices[1].State = evidence.Gone, "gone"
	n.history(
		"a preempted", "", "a read gone", "creating: create a", "intend create", "creating", "b owner creates", "clearing", "16m", "", "b read foreign made", "",
		"a read gone", "released", "b read gone", "released", "2h", "", "tick", "",
	)
	if n.w.Incident != nil {
		t.Errorf("it opens an incident:\n%s", n.tale())
	}
}

// TestAMultisliceThatItsOwnerMovesIsAdmittedOnce, whatever slices are read again behind it.
func TestAMultisliceThatItsOwnerMovesIsAdmittedOnce(t *testing.T) {
	t.Parallel()
	n := multi(t, true).with(led).goes("a owner deletes, b owner deletes, a read gone, b read gone, an hour").history("a read elsewhere", "peace", "b read elsewhere", "peace")
	if due := n.w.Due(); due.IsZero() || due.After(n.now) {
		t.Errorf("due at %v, want now", due)
	}
	n.history("tick", "admitting: admit a=7712 b=7761", "do", "resuming", "a read ready", "resuming", "b read ready", "resuming", "tick", "resuming")
}

// TestWhatItsOwnerOrdersInAnotherZoneIsWaitedForThere. The zone that it has left says each minute that it is gone, which is no loss.
func TestWhatItsOwnerOrdersInAnotherZoneIsWaitedForThere(t *testing.T) {
	t.Parallel()
	for _, begins := range []string{"read gone", "stopped for, read gone"} {
		n := at(t, "everything", true, begins, inQueue, led)
		ordered, home := n.now.Add(-time.Second), n.w.Slices[0].Zone
		there := func(c evidence.Condition, life string) {
			n.reads("llama-8b", c, func(e *evidence.Read) {
				e.Zone, e.Ordered, e.Incarnation = "us-west4-b", ordered, events.Incarnation{Zone: "us-west4-b", ID: life}
				if life != "" {
					e.Incarnation.Created = n.now
				}
			})
		}
		for range 4 * int(bounds.Grace/time.Minute) {
			there(evidence.Creating, "")
			asked := slices.Clone(n.sent)
			n.reads("llama-8b", evidence.Gone, func(e *evidence.Read) { e.Zone, e.Incarnation, e.Facts = home, events.Incarnation{}, evidence.Facts{} })
			asked = append(asked, n.sent...)
			if asked = append(asked, n.passes(time.Minute)...); len(asked) > 0 || n.w.Incident != nil {
				t.Fatalf("%s: asked for is %q:\n%s", begins, asked, n.tale())
			}
		}
		there(evidence.Ready, "9001")
		asked := slices.Clone(n.sent)
		if asked = append(asked, n.passes(time.Minute)...); strings.Join(asked, ", ") != "admit llama-8b=9001" {
			t.Errorf("%s: asked for is %q:\n%s", begins, asked, n.tale())
		}
	}
}
