package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// TestWhoDeletesAQueuedResourceDeletesEverythingInIt, and nothing else.
func TestWhoDeletesAQueuedResourceDeletesEverythingInIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node   bool
		change func(w *incident.Workload)
		want   [2]bool
	}{
		"both slices":                            {false, spot, [2]bool{true, true}},
		"of a node only that":                    {true, spot, [2]bool{false, true}},
		"not what another one holds":             {false, func(w *incident.Workload) { w.Slices[0].Group = "x" }, [2]bool{false, true}},
		"not its namesake in another zone":       {false, func(w *incident.Workload) { w.Slices[0].Zone = "us-west4-b" }, [2]bool{false, true}},
		"not what was created since":             {false, func(w *incident.Workload) { w.Slices[0].Incarnation.Created = start.Add(time.Second) }, [2]bool{false, true}},
		"not what no queued resource ever held":  {false, func(w *incident.Workload) { w.Slices[0].Group, w.Slices[1].Group = "", "" }, [2]bool{false, true}},
		"the rest, where one was deleted before": {false, func(w *incident.Workload) { w.Slices[1].Released = start.Add(-time.Hour) }, [2]bool{true, true}},
	} {
		n := queued(t, true).with(c.change)
		n.give(evidence.Called{Origin: n.log(), Slice: "b", Act: events.ActDeleted, Whole: !c.node, Method: "m", Principal: ann.By})
		if got := [2]bool{n.w.Slices[0].IsReleased(), n.w.Slices[1].IsReleased()}; got != c.want {
			t.Errorf("%s: released %v, want %v", name, got, c.want)
		}
	}
}

// TestAnOlderReadingUndoesNothing: not a condition, not a life, and not a notice that was read after it was asked for.
func TestAnOlderReadingUndoesNothing(t *testing.T) {
	t.Parallel()
	life := func(id string, after time.Duration) events.Incarnation {
		return events.Incarnation{Zone: "us-west4-a", ID: id, Created: start.Add(after)}
	}
	for name, c := range map[string]struct {
		at      time.Time
		life    events.Incarnation
		changes bool
	}{
		"it was asked for before":              {start.Add(-time.Second), life("7711", -200*time.Hour), false},
		"it was asked for before, of a life":   {start.Add(-time.Second), life("7712", -199*time.Hour), false},
		"it was asked for since":               {start.Add(time.Second), life("7711", -200*time.Hour), true},
		"it is of a new life":                  {start.Add(time.Second), life("7712", -199*time.Hour), true},
		"it is of a life from before this one": {start.Add(time.Second), life("7710", -201*time.Hour), false},
		"it does not say":                      {time.Time{}, life("7711", -200*time.Hour), true},
	} {
		n := newStory(t, true, "a")
		n.give(noticed(notices["moved"], events.RankReading, true)(n, &n.w.Slices[0]))
		n.reads("a", evidence.Unhealthy, func(e *evidence.Read) {
			e.Notice = &events.Notice{Status: events.NoticePending, WindowStart: start.Add(26 * time.Hour)}
		})
		if since := n.w.Slices[0].Since; !since.Equal(start) {
			t.Errorf("unhealthy since %v, want when it was read", since)
		}
		e := n.read(&n.w.Slices[0], evidence.Ready, c.life)
		e.Time, n.now = c.at, n.now.Add(time.Minute)
		before := marshal(n.w)
		n.give(e)
		if got := marshal(n.w) != before; got != c.changes || (n.w.Notice("a") == nil) != c.changes {
			t.Errorf("%s: it changed something: %v, want %v; the notice is %+v", name, got, c.changes, n.w.Notice("a"))
		}
	}
}

// TestALossThatProgressHidesIsDue: a line of the crew may be as young as the reading, and then only the next one counts.
func TestALossThatProgressHidesIsDue(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	n.w.Training.StepAt = start.Add(time.Second)
	if n.reads("a", evidence.Lost).opens(false); !n.w.Due().Equal(start) {
		t.Fatalf("something is due at %v, want a reading", n.w.Due())
	}
	n.later(time.Minute).goes("a read lost, tick").opens(true)
}

// TestANameIsHeldWhereItsSliceIsOrIsToBe: nobody else may create a slice of that name there.
func TestANameIsHeldWhereItsSliceIsOrIsToBe(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]bool{
		"progress":                    {true, false},
		"read lost":                   {true, false},
		"read gone":                   {true, false}, // nobody knows why
		created:                       {true, false},
		created + ", stockout create": {true, true}, // it is to be created elsewhere
		"owner deletes":               {true, false},
		"owner deletes, read gone":    {false, false},
		"finished, its verdict, a while, read gone": {false, false},
	} {
		n := at(t, "everything", true, path)
		if got := [2]bool{n.w.Owns("llama-8b", "us-west4-a"), n.w.Owns("llama-8b", "us-west4-b")}; got != want || n.w.Owns("x", "us-west4-a") {
			t.Errorf("%s: held here and there %v, want %v", path, got, want)
		}
	}
}

// TestLateWordOpensNothing: of what was before the slice was found usable, and of what came before the end of an incident.
func TestLateWordOpensNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path  string
		ago   time.Duration
		opens bool
	}{
		"from before it was found usable": {"read unhealthy, 3m, read ready, 48h", 48*time.Hour + 2*time.Minute, false},
		"from after that, days ago":       {"read unhealthy, 3m, read ready, 48h", 47 * time.Hour, false},
		"from after that, just now":       {"read unhealthy, 3m, read ready, 48h", time.Minute, true},
		"left to a person":                {"preempted, read lost, permission delete, 2m, read ready, 7m", 9*time.Minute + 3*time.Second, false},
		"of what came after that":         {"preempted, read lost, permission delete, 2m, read ready, 7m", 6 * time.Minute, true},
	} {
		n := at(t, "everything", true, c.path, crewless)
		n.opens(false)
		if n.give(interrupted(events.CauseHostError, "late", events.RankAudit, c.ago)(n, &n.w.Slices[0])); (n.w.Incident != nil) != c.opens {
			t.Errorf("%s: it opens %v, want %v:\n%s", name, n.w.Incident != nil, c.opens, n.tale())
		}
	}
}

// TestLateWordExplainsTheIncidentThatIsOver, though another one is open by now.
func TestLateWordExplainsTheIncidentThatIsOver(t *testing.T) {
	t.Parallel()
	for next, opens := range map[string]bool{"1m": false, "read unhealthy, 6m": true} {
		n := at(t, "everything", true, "read unhealthy, 6m, read ready, started, 1m, steps, 14m").goes(next)
		over := n.w.Closed
		n.opens(opens)
		n.play("host error late")
		if got := n.w.Closed; over.Cause() != events.CauseUnknown || got.Cause() != events.CauseHostError || got.Revision != over.Revision+1 {
			t.Errorf("after %s the cause of what is over was %s and is %s, in revision %d:\n%s", next, over.Cause(), got.Cause(), got.Revision, n.tale())
		}
	}
}

// TestAQueuedResourceElsewhereIsNotTheSlice, though it has its name and label, and died behind a clean-up.
func TestAQueuedResourceElsewhereIsNotTheSlice(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"us-west4-a", "us-west4-b"} {
		for _, c := range []evidence.Condition{evidence.Lost, evidence.Creating} {
			n := newStory(t, true, "a").with(inQueue)
			before := marshal(n.w)
			n.give(evidence.Read{
				Origin: n.reading(), Slice: "a", Zone: zone, Condition: c, State: "FAILED", Incident: "llama-8b-20261111-9", Ordered: start.Add(-time.Hour),
				Facts: evidence.Facts{Group: "qr"},
			})
			if changed := marshal(n.w) != before; changed != (zone == "us-west4-a") || len(n.sent) > 0 && changed == false {
				t.Errorf("%s in %s: changed %v, asked for is %q", c, zone, changed, n.sent)
			}
		}
	}
}

// TestSlicesOfSeveralPoliciesAreWatched, whichever is read last; a slice that names none is the others'. A label is read whatever the policy.
func TestSlicesOfSeveralPoliciesAreWatched(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"everything", "unreadable"} {
		n := multi(t, true).under(p)
		for i, step := range []struct{ slice, label, want string }{
			{"a", "night", "night"}, {"b", "", "night"}, {"b", "watch", "night,watch"}, {"a", "night", "night,watch"}, {"a", "watch", "watch"}, {"a", "", "watch"}, {"b", "", ""},
		} {
			if n.later(time.Second).reads(step.slice, evidence.Ready, func(e *evidence.Read) { e.Facts.Label = step.label }); n.w.Label != step.want {
				t.Errorf("step %d: the label is %q, want %q", i, n.w.Label, step.want)
			}
		}
	}
}

// TestAnOrderSaysNothingNewerThanTheNodeThatCameOfIt: a suspended queued resource still shows the policy from before. Another order is news.
func TestAnOrderSaysNothingNewerThanTheNodeThatCameOfIt(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{-time.Minute: "watch watched", time.Minute: "night spec1"} {
		n := newStory(t, true, "a").with(inQueue).under("watch")
		n.reads("a", evidence.Ready, func(e *evidence.Read) { e.Facts.Label, e.Facts.Spec = "watch", "watched" })
		n.now = n.now.Add(time.Hour)
		e := suspended(n, "a", n.w.Slices[0].Incarnation.Created.Add(after))
		e.Facts.Label = "night"
		if n.give(e); n.w.Label+" "+n.w.Slices[0].Spec != want {
			t.Errorf("an order %v after the node: label and order are %q %q, want %q", after, n.w.Label, n.w.Slices[0].Spec, want)
		}
	}
}

// TestASliceThatIsLostBeforeItsOrderIsReadIsLookedAt: as long as the API shows it, a function that keeps orders may still read it.
func TestASliceThatIsLostBeforeItsOrderIsReadIsLookedAt(t *testing.T) {
	t.Parallel()
	const looks = "preempted, read lost, 1m"
	n := newStory(t, true, "llama-8b").with(unspecified).history(looks, "looking")
	n.reads("llama-8b", evidence.Lost, func(e *evidence.Read) { e.Facts.Spec = "spec1" }).wants("delete llama-8b")
	for _, path := range []string{looks + ", read gone, later, tick, later, tick", looks + ", later, tick"} { // it is gone first, or nobody reads it
		if n := at(t, "everything", true, path, unspecified); n.ended().Outcome != view.Escalated || n.ended().Code != "no_spec" {
			t.Errorf("%s: it ended by %q:\n%s", path, n.ended().Code, n.tale())
		}
	}
}
