package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident"
)

// TestAWordEndsTheWaitForOne: a slice is gone, and somebody says why before the wait for that is over.
func TestAWordEndsTheWaitForOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, want string
		cause      events.Cause
	}{
		"preempted, in the grace":          {"stopped for, read gone, preempted, read gone", "creating", events.CauseMaintenance},
		"preempted, in quiet times":        {"read gone, preempted, read gone", "creating", events.CausePreemption},
		"deleted, in the grace":            {"stopped for, read gone, owner deletes", "released", ""},
		"deleted, in quiet times":          {"read gone, owner deletes", "peace", ""},
		"lost and deleted, in this order":  {"read gone, preempted, owner deletes", "released", ""},
		"deleted and lost, in this order":  {"read gone, owner deletes, preempted", "peace", ""},
		"not a word":                       {"read gone", "peace", ""},
		"a line of a user is no such word": {"read gone, crew notice, read gone", "grace", events.CausePreemption},
		"repaired, broken and gone":        {"host error, read unhealthy, read ready, host error, read gone", "creating", events.CauseHostError},
		"repaired, and then gone":          {"host error, read unhealthy, read ready, read gone", "grace", events.CauseHostError},
	} {
		n := at(t, "everything", true, c.path)
		if got := n.stands(nil); got != c.want {
			t.Errorf("%s: %s leads to %s, want %s:\n%s", name, c.path, got, c.want, n.tale())
		} else if n.w.Incident != nil && n.w.Incident.Cause() != c.cause {
			t.Errorf("%s: the cause is %s, want %s", name, n.w.Incident.Cause(), c.cause)
		}
	}
}

// TestWhoDeletedItIsAsked of the audit log where nothing explains that a slice is gone, and once it is left to a person for a while only.
func TestWhoDeletedItIsAsked(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"stopped for, read gone":                            true,
		"stopped for, read gone, preempted":                 false,
		"crew notice, read gone":                            true,
		"preempted, read gone":                              false,
		"host error, read unhealthy, read ready, read gone": true,
		"preempted, read lost, do, read gone":               false,
	} {
		n := at(t, "everything", true, path)
		if got := n.w.Reads(n.now).Has(incident.ReadDeleter, "llama-8b"); got != want {
			t.Errorf("%s: it is asked %v, want %v", path, got, want)
		}
	}
	n := at(t, "everything", true, "read gone").leftToAPerson(0)
	for after, want := range map[time.Duration]bool{0: true, 2*bounds.Grace - time.Minute: true, 2 * bounds.Grace: false} {
		if got := n.w.Reads(n.w.Slices[0].Since.Add(after)).Has(incident.ReadDeleter, "llama-8b"); got != want {
			t.Errorf("left to a person, and gone for %s: it is asked %v, want %v", after, got, want)
		}
	}
}

// TestALateDeletionOfAFormerLifeEndsNothing where training ran in the next one. It counts where nothing has come of a creation yet.
func TestALateDeletionOfAFormerLifeEndsNothing(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"preempted, read gone, do, read ours, do, started, read lost, do, read gone, a minute": "creating",
		"preempted, read gone, do, read ours made, a minute, late transient create, read gone": "released",
	} {
		n := at(t, "everything", true, path)
		if n.owner(events.ActDeleted, "llama-8b", n.now.Sub(n.w.Slices[0].Incarnation.Created)+time.Millisecond); n.stands(nil) != want {
			t.Errorf("%s: it stands at %s, want %s:\n%s", path, n.stands(nil), want, n.tale())
		}
	}
}
