package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestAPolicyThatIsTightenedWaitsForWhoeverDeletes: the deletion of one slice is being called when the other is found lost under a
// policy that allows nothing any more.
func TestAPolicyThatIsTightenedWaitsForWhoeverDeletes(t *testing.T) {
	n := node{w: multi(true), now: start, path: "peace"}
	for _, what := range []string{"a read lost", "intend delete 0"} {
		n, _ = play(t, policies["everything"], n, what)
	}
	n, _ = play(t, policies["watch"], n, "b read lost")
	if phaseOf(n.w) != "deleting" || len(n.w.Effects) != 1 || len(n.w.Incident.Would) > 0 {
		t.Fatalf("it stands as %s, want it to wait for the deletion that is being called", stands(n.w, nil))
	}
	n.now = n.now.Add(time.Hour)
	n, sent := play(t, policies["watch"], n, "b read lost")
	if phaseOf(n.w) != "watching" || len(n.w.Effects) > either(0, 1, "begun call") || len(sent) > 0 {
		t.Errorf("it stands as %s, want it to watch", stands(n.w, sent))
	}
}

// TestWhatIsWatchedMayGoOn: the policy was tightened when a slice was about to be replaced, and it came back by itself.
func TestWhatIsWatchedMayGoOn(t *testing.T) {
	n := at(t, policies["everything"], false, "host error, read unhealthy, later", nil)
	p := policies["watch"]
	n.w, _, _ = tick(p, n.w, n.now)
	if phaseOf(n.w) != "watching" {
		t.Fatalf("it stands as %s", stands(n.w, nil))
	}
	for _, what := range []string{"read ready", "progress"} {
		n.now = n.now.Add(time.Minute)
		n.w, _, _ = advance(p, n.w, evidence(n.w, n.now)[what], n.now)
	}
	if n.w.Incident != nil || n.w.Closed.ConfirmedBy != incident.ByStep {
		t.Errorf("it stands as %s, want progress to end it", stands(n.w, nil))
	}
}

// TestACleanUpKnowsWhatWasGivenUp: one of two creations failed with its outcome open, and brings its slice all the same.
func TestACleanUpKnowsWhatWasGivenUp(t *testing.T) {
	p := policies["everything"]
	n := node{w: multi(true), now: start, path: "peace"}
	for _, what := range []string{
		"a read lost", "b read lost", "do", "a read gone", "b read gone", "intend create 0", "intend create 1", "b owner deletes", "transient create 0",
	} {
		n, _ = play(t, p, n, what)
	}
	if phaseOf(n.w) != "clearing" {
		t.Fatalf("it stands as %s", stands(n.w, nil))
	}
	n, sent := play(t, p, n, "a read ours")
	if phaseOf(n.w) != "clearing" || len(sent) != 1 || asks(sent[0]) != "delete a" {
		t.Errorf("it stands as %s, want what nobody waits for deleted", stands(n.w, sent))
	}
}

// TestACleanUpSparesWhatSomebodyElseHasMade in the place of what it was to delete.
func TestACleanUpSparesWhatSomebodyElseHasMade(t *testing.T) {
	n := at(t, policies["everything"], true, "preempted, read gone, intend create 0, accepted create 0, read ours made, cancelled, read foreign", nil)
	if n.w.Incident != nil || n.w.Closed.Outcome != incident.Released {
		t.Errorf("it stands as %s, want it released", stands(n.w, nil))
	}
}

// TestWhatItsOwnerDeletesIsNoLeftover: they deleted what we had made, before training was let in.
func TestWhatItsOwnerDeletesIsNoLeftover(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, "preempted, read gone, intend create 0, accepted create 0, read ours", nil)
	if phaseOf(n.w) != "admitting" {
		t.Fatalf("it stands as %s", stands(n.w, nil))
	}
	n.now = n.now.Add(time.Second)
	var sent []events.Event
	n.w, sent, _ = advance(p, n.w, evidence(n.w, n.now)["owner deletes"], n.now)
	if n.w.Incident != nil || n.w.Closed.Outcome != incident.Released {
		t.Errorf("it stands as %s, want it released", stands(n.w, sent))
	}
}

// TestALateDeletionOfAFormerLifeEndsNothing: training ran in the life that was made in its place, which is lost again.
func TestALateDeletionOfAFormerLifeEndsNothing(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, "preempted, read gone, intend create 0, accepted create 0, read ours, intend admit 0, accepted admit 0, started, "+
		"read lost, intend delete 0, accepted delete 0, read gone", nil)
	if phaseOf(n.w) != "creating" {
		t.Fatalf("it stands as %s", stands(n.w, nil))
	}
	n.w, _, _ = advance(p, n.w, incident.Called{
		Origin: incident.Origin{ID: "late", Time: n.w.Slices[0].Incarnation.Created.Add(-time.Millisecond), Rank: events.RankAudit},
		Slice:  "llama-8b", Act: events.ActDeleted, Method: "DeleteNode", Principal: "ada@example.com",
	}, n.now.Add(time.Minute))
	if phaseOf(n.w) != "creating" {
		t.Errorf("it stands as %s, want it to go on", stands(n.w, nil))
	}
}

// TestWhatWasMovedForNothingComesBack: one slice was asked for elsewhere while the other was taken for lost, as a former release did,
// and that one turned out to live. The creation has failed: the next is where the other stands.
func TestWhatWasMovedForNothingComesBack(t *testing.T) {
	p := policies["everything"]
	n := node{w: multi(true), now: start, path: "peace"}
	for _, what := range []string{"a read lost", "do", "a read gone", "intend create 0", "b read lost", "stockout create 0"} {
		n, _ = play(t, p, n, what)
	}
	for i := range n.w.Effects {
		if effect := &n.w.Effects[i]; effect.Action == events.ActionCreate {
			effect.Zone, effect.Retry = "us-west4-b", time.Time{}
		}
	}
	create := func() incident.Effect {
		for _, effect := range n.w.Effects {
			if effect.Action == events.ActionCreate {
				return effect
			}
		}
		t.Fatalf("nothing is to be created: %s", stands(n.w, nil))
		return incident.Effect{}
	}
	for i, effect := range n.w.Effects {
		if effect.Action == events.ActionCreate {
			n, _ = play(t, p, n, "intend create "+string(rune('0'+i)))
			n, _ = play(t, p, n, "accepted create "+string(rune('0'+i)))
		}
	}
	n, _ = play(t, p, n, "b read ready")
	n.w, _, _ = advance(p, n.w, incident.Ended{
		Operation: create().Operation, Failure: &incident.Failure{Class: incident.Transient, Message: "an internal error"},
	}, n.now.Add(time.Minute))
	if at := create().Place().String(); at != "us-west4-a" {
		t.Errorf("it is asked for in %s, and the other stands in us-west4-a", at)
	}
}
