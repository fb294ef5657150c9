package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// TestWhatWasOrderedIsNotLeftBehind: whatever our own request brings is deleted when its incident ends before training is let in.
func TestWhatWasOrderedIsNotLeftBehind(t *testing.T) {
	t.Parallel()
	const made, theirs = created + ", do", "nobody waits for it any more"
	for name, c := range map[string]struct {
		path   string
		change func(*incident.Workload)
		want   string
		reason string
	}{
		"it was seen CREATING before the owner took over": {made + ", read ours made, owner creates", nil, "clearing: delete llama-8b", theirs},
		"it is seen CREATING after that":                  {made + ", owner creates, read ours made", nil, "clearing: delete llama-8b", theirs},
		"it is usable after that":                         {made + ", owner creates, read ours", nil, "clearing: delete llama-8b", theirs},
		"its queued resource waits":                       {made + ", read ordered, owner creates", inQueue, "clearing: delete llama-8b", "cancel queued resource qr"},
		"its queued resource is seen waiting after that":  {made + ", owner creates, read ordered", inQueue, "clearing: delete llama-8b", "cancel queued resource qr"},
		"it is not admitted yet":                          {made + ", read ours, owner creates", nil, "clearing: delete llama-8b", theirs},
		"training may run in it by now":                   {made + ", read ours, intend admit, owner creates", nil, "released", ""},
		"the owner stops it":                              {made + ", read ours, owner stops", nil, "released", ""},
		"somebody else has ordered it":                    {"preempted, read lost, do, read ordered by others", inQueue, "released", ""},
		"the owner makes it after somebody cancelled":     {made + ", read ours made, cancelled, read foreign", nil, "released", ""},
		"the owner deletes it":                            {made + ", read ours, owner deletes", nil, "released", ""},
	} {
		n := newStory(t, true, "llama-8b")
		if c.change != nil {
			c.change(&n.w)
		}
		if got := n.stands(n.goes(c.path).sent); got != c.want || !strings.Contains(n.tale(), c.reason) {
			t.Errorf("%s: it stands at %q, want %q, because %q:\n%s", name, got, c.want, c.reason, n.tale())
		}
	}
	// What failed with its outcome open may come all the same.
	multi(t, true).goes("a read lost, b read lost, do, a read gone, b read gone, intend create a, intend create b").
		history("b owner deletes", "clearing", "transient create a", "clearing", "a read ours", "clearing: delete a")
}

// givenUp is a workload that cleans up what it has ordered, because capacity did not come within an hour.
func givenUp(t *testing.T) *story {
	t.Helper()
	n := newStory(t, true, "llama-8b").with(inQueue)
	n.p.GiveUpAfter = time.Hour
	n.goes(created + ", do, done create, read ordered, an hour, tick")
	if got := n.stands(n.sent); got != "clearing: delete llama-8b" {
		t.Fatalf("it stands at %q:\n%s", got, n.tale())
	}
	return n
}

// TestAQueuedResourceIsNotLeftWaiting: the policy gives up after an hour, and so does what was ordered.
func TestAQueuedResourceIsNotLeftWaiting(t *testing.T) {
	t.Parallel()
	n := givenUp(t)
	r, is := n.out[0].(events.RecreateRequested)
	if ordered := n.w.Slices[0].Ordered; !is || ordered.IsZero() || !r.Ordered.Equal(ordered) || r.Incarnation.Known() || r.QueuedResource != "qr" {
		t.Errorf("asked for is %+v, want the deletion of the queued resource", n.out[0])
	}
	n.goes("do, read gone")
	if end := n.ended(); end.Outcome != view.Escalated || !strings.HasPrefix(end.Reason.String(), "no capacity for 1 h") || !n.w.Due().IsZero() {
		t.Errorf("something is due at %v:\n%s", n.w.Due(), n.tale())
	}
}

// TestARetryWaitsForCapacityAnew in the queue in which an order of before still waits: its deletion has failed.
func TestARetryWaitsForCapacityAnew(t *testing.T) {
	t.Parallel()
	n := givenUp(t)
	waits := n.read(&n.w.Slices[0], evidence.Creating, events.Incarnation{})
	waits.Incident, waits.Ordered = n.w.Incident.ID, n.w.Slices[0].Ordered
	for range bounds.MaxFailures {
		n.goes("transient delete, 10m")
	}
	n.history("retried", "creating: create llama-8b")
	waits.Time = n.now
	if n.give(waits).goes("55m"); n.stands(n.sent) != "creating" {
		t.Errorf("it stands at %q:\n%s", n.stands(n.sent), n.tale())
	}
	n.history("6m", "clearing: delete llama-8b")
}

// TestCapacityThatComesAfterAllIsGivenBack, whether it comes before the deletion or while that is answered.
func TestCapacityThatComesAfterAllIsGivenBack(t *testing.T) {
	t.Parallel()
	for path, answered := range map[string]bool{
		"read ours, a minute, read ready, a minute, read ready":                                           false,
		"intend delete, read ours, accepted delete, a minute, read ready, a minute, read ready, 2m, tick": true,
	} {
		n := givenUp(t).goes(path)
		if i := n.effect(events.ActionDelete, "llama-8b"); n.stands(nil) != "clearing" || i < 0 || n.w.Effects[i].Answered.IsZero() == answered {
			t.Errorf("%s: it stands at %q, and wants %+v:\n%s", path, n.stands(nil), n.w.Effects, n.tale())
		}
	}
}

// TestAQueuedResourceThatFailedElsewhereIsDeletedThere, and not where the slice was before.
func TestAQueuedResourceThatFailedElsewhereIsDeletedThere(t *testing.T) {
	t.Parallel()
	n := at(t, "spot", true, created+", intend create, stockout create, do, an hour", inQueue)
	zone := n.w.Effects[0].Zone
	ordered := n.now.Add(-time.Hour)
	e := suspended(n, "llama-8b", ordered)
	e.Zone, e.Incident = zone, n.w.Incident.ID
	n.give(e).wants("delete llama-8b")
	if r, is := n.out[0].(events.RecreateRequested); !is || r.Zone != zone || zone == "us-west4-a" || !r.Ordered.Equal(ordered) {
		t.Errorf("asked for is %+v, want the deletion in %s of what was ordered at %s", r, zone, ordered)
	}
}

// TestAReadingFromBeforeItsFailureShowsOurOwnCreation: a reading may be under way while a creation fails. What it shows is ours, and not somebody else's.
func TestAReadingFromBeforeItsFailureShowsOurOwnCreation(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.p.Zones = nil
	n.goes(created + ", do")
	made := words["read ours made"](n, &n.w.Slices[0])
	n.play("late stockout create")
	if n.give(made); n.stands(nil) != "creating" || n.w.Slices[0].Maker != n.w.Incident.ID || n.w.Slices[0].Unused {
		t.Errorf("it stands at %q, and what was read is made by %q:\n%s", n.stands(nil), n.w.Slices[0].Maker, n.tale())
	}
}

// TestAWordGivesACleanUpItsTimeAnew: it was held up for a suspicion nearly until its end.
func TestAWordGivesACleanUpItsTimeAnew(t *testing.T) {
	t.Parallel()
	n := multi(t, true).goes("a preempted, a read lost, do, a read gone, do, a owner deletes, a read ours made, b abuse and lost")
	for n.now.Before(n.w.Incident.Status.Until.Add(-90 * time.Second)) {
		n.play("1m")
	}
	if got := n.stands(n.play("retried")); got != "clearing: delete a" || n.goes("90s").w.Incident == nil {
		t.Errorf("it stands at %q:\n%s", got, n.tale())
	}
}

// TestLateWordExplainsAnIncidentThatItsOwnerEnded, where it is of that time: the archive names the cause all the same.
func TestLateWordExplainsAnIncidentThatItsOwnerEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		cause events.Cause
		told  bool
	}{
		"of the loss":           {0, events.CauseHostError, true},
		"of two hours before":   {-2 * time.Hour, events.CauseUnknown, false},
		"of what came after it": {4 * time.Minute, events.CauseUnknown, false},
	} {
		n := newStory(t, true, "a").goes("read unhealthy, a while, tick, a minute, owner deletes")
		if n.w.Closed == nil || n.ended().Outcome != view.Released || n.w.Closed.Cause() != events.CauseUnknown {
			t.Fatalf("it stands at %q:\n%s", n.stands(nil), n.tale())
		}
		e := interrupted(events.CauseHostError, "late", events.RankAudit, 0)(n, &n.w.Slices[0]).(evidence.Interrupted) //nolint:forcetypeassert // it is one
		e.Time, n.now = n.w.Closed.Opened.Add(c.after), n.now.Add(10*time.Minute)
		if n.give(e); n.w.Incident != nil || n.w.Closed.Cause() != c.cause || (n.w.Closed.Revision > 1) != c.told {
			t.Errorf("%s: its cause is %s, want %s; revision %d", name, n.w.Closed.Cause(), c.cause, n.w.Closed.Revision)
		}
	}
}
