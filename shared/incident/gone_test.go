package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
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
		"tick":                              false,
		"read lost":                         false,
		"read gone":                         true,
		"read gone, owner deletes":          false,
		"stopped for, read gone":            true,
		"stopped for, read gone, preempted": false,
		"crew notice, read gone":            true,
		"preempted, read gone":              false,
		"host error, read unhealthy, read ready, read gone": true,
		"preempted, read lost, do, read gone":               false,
	} {
		n := at(t, "everything", true, path)
		if got := n.w.Reads(n.now).Has(incident.ReadDeleter, "llama-8b"); got != want {
			t.Errorf("%s: it is asked %v, want %v", path, got, want)
		}
	}
	n := at(t, "everything", true, "read gone")
	n.w.Told = []incident.Told{{Of: incident.ToldEnd, Slice: "llama-8b", Life: n.w.Slices[0].Incarnation.ID, At: n.now}}
	for after, want := range map[time.Duration]bool{0: true, 2*bounds.Grace - time.Minute: true, 2 * bounds.Grace: false} {
		if got := n.w.Reads(n.w.Slices[0].Since.Add(after)).Has(incident.ReadDeleter, "llama-8b"); got != want {
			t.Errorf("left to a person, and gone for %s: it is asked %v, want %v", after, got, want)
		}
	}
}

// TestALateDeletionOfAFormerLifeEndsNothing: training ran in the life that was made in its place, which is lost again.
func TestALateDeletionOfAFormerLifeEndsNothing(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "preempted, read gone, do, read ours, do, started, read lost, do, read gone")
	if got := n.stands(nil); got != "creating" {
		t.Fatalf("it stands at %s:\n%s", got, n.tale())
	}
	n.now = n.now.Add(time.Minute)
	n.give(evidence.Called{
		Origin: evidence.Origin{ID: "late", Time: n.w.Slices[0].Incarnation.Created.Add(-time.Millisecond), Rank: events.RankAudit},
		Slice:  "llama-8b", Act: events.ActDeleted, Method: "DeleteNode", Principal: "ada@example.com",
	})
	if got := n.stands(nil); got != "creating" {
		t.Errorf("it stands at %s, want it to go on:\n%s", got, n.tale())
	}
}
