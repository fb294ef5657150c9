package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// queued is a Multislice of which both slices are in one queued resource.
func queued(spot bool) incident.Workload {
	w := multi(spot)
	for i := range w.Slices {
		w.Slices[i].Group = "qr"
	}
	return w
}

func TestWhoDeletesAQueuedResourceDeletesEverythingInIt(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		change func(w *incident.Workload)
		want   [2]bool
	}{
		"both slices":                            {"DeleteQueuedResource", func(*incident.Workload) {}, [2]bool{true, true}},
		"of a node only that":                    {"DeleteNode", func(*incident.Workload) {}, [2]bool{false, true}},
		"not what another one holds":             {"DeleteQueuedResource", func(w *incident.Workload) { w.Slices[0].Group = "x" }, [2]bool{false, true}},
		"not its namesake in another zone":       {"DeleteQueuedResource", func(w *incident.Workload) { w.Slices[0].Zone = "us-west4-b" }, [2]bool{false, true}},
		"not what was created since":             {"DeleteQueuedResource", func(w *incident.Workload) { w.Slices[0].Incarnation.Created = start.Add(time.Second) }, [2]bool{false, true}},
		"not what no queued resource ever held":  {"DeleteQueuedResource", func(w *incident.Workload) { w.Slices[0].Group, w.Slices[1].Group = "", "" }, [2]bool{false, true}},
		"the rest, where one was deleted before": {"DeleteQueuedResource", func(w *incident.Workload) { w.Slices[1].End.Released = start.Add(-time.Hour) }, [2]bool{true, true}},
	} {
		w := queued(true)
		c.change(&w)
		act, whole := events.Call{Method: c.method}.Act()
		w, _, _ = advance(policies["everything"], w, incident.Called{
			Origin: incident.Origin{Time: start, Rank: events.RankAudit}, Slice: "b", Act: act, Whole: whole, Method: c.method, Principal: "ann@example.com",
		}, start)
		if got := [2]bool{w.Slices[0].IsReleased(), w.Slices[1].IsReleased()}; got != c.want {
			t.Errorf("%s: released %v, want %v", name, got, c.want)
		}
	}
}

// TestAnOlderReadingUndoesNothing holds readings against what was read before them.
func TestAnOlderReadingUndoesNothing(t *testing.T) {
	read := func(at time.Time, c incident.Condition, life events.Incarnation) incident.Read {
		return incident.Read{
			Origin: incident.Origin{Time: at, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: c, Incarnation: life,
		}
	}
	now := start.Add(time.Minute)
	first, _, _ := advance(policies["everything"], quiet(true), read(start, incident.Unhealthy, life(1)), now)
	if since := first.Slices[0].Since; !since.Equal(start) {
		t.Errorf("unhealthy since %v, want when it was read", since)
	}
	for name, c := range map[string]struct {
		reading incident.Read
		changes bool
	}{
		"it was asked for before":              {read(start.Add(-time.Second), incident.Ready, life(1)), false},
		"it was asked for before, of a life":   {read(start.Add(-time.Second), incident.Ready, life(2)), false},
		"it was asked for since":               {read(start.Add(time.Second), incident.Ready, life(1)), true},
		"it is of a new life":                  {read(start.Add(time.Second), incident.Ready, life(2)), true},
		"it is of a life from before this one": {read(start.Add(time.Second), incident.Ready, life(0)), false},
		"it does not say":                      {read(time.Time{}, incident.Ready, life(1)), true},
	} {
		if _, _, changed := advance(policies["everything"], first, c.reading, now); changed != c.changes {
			t.Errorf("%s: it changed something: %v, want %v", name, changed, c.changes)
		}
	}
}

// TestAReadingFromBeforeANoticeDoesNotWithdrawIt: a listing may be carried to the ledger after the notice was.
func TestAReadingFromBeforeANoticeDoesNotWithdrawIt(t *testing.T) {
	p, now := policies["everything"], start
	w, _, _ := advance(p, quiet(true), incident.Noticed{
		Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: "llama-8b", Incarnation: life(1), InAPI: true,
		Notice: events.Notice{Status: events.NoticePending, WindowStart: now.Add(2 * time.Hour)},
	}, now)
	for _, c := range []struct {
		at   time.Time
		held bool
	}{{now.Add(-time.Second), true}, {now.Add(time.Second), false}} {
		w, _, _ = advance(p, w, incident.Read{
			Origin: incident.Origin{Time: c.at, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: incident.Ready, State: "READY", Incarnation: life(1),
		}, now.Add(time.Minute))
		if held := w.Notice("llama-8b") != nil; held != c.held {
			t.Errorf("read at %v, the notice is held: %v", c.at, held)
		}
	}
}

// TestALossThatProgressHidesIsDue: a line of the crew may be as young as the reading, and then only the next one counts.
func TestALossThatProgressHidesIsDue(t *testing.T) {
	w := quiet(true)
	w.Progress.At = start.Add(time.Second)
	lost := learned(w, w.Slices[0], start)["read lost"]
	w, _, _ = advance(policies["everything"], w, lost, start.Add(2*time.Second))
	if w.Incident != nil || !due(w).Equal(start) {
		t.Fatalf("incident %v, due %v: want none, and a reading that is due", w.Incident, due(w))
	}
	lost = learned(w, w.Slices[0], start.Add(time.Minute))["read lost"]
	w, _, _ = advance(policies["everything"], w, lost, start.Add(time.Minute))
	if either(false, true, "tick") {
		w, _, _ = advance(policies["everything"], w, incident.Ticked{}, start.Add(time.Minute))
	}
	if w.Incident == nil {
		t.Error("the next reading opened nothing")
	}
}

// TestANameIsHeldWhereItsSliceIsOrIsToBe: nobody else may create a slice of that name there.
func TestANameIsHeldWhereItsSliceIsOrIsToBe(t *testing.T) {
	gone := "preempted, read lost, intend delete 0, accepted delete 0, read gone"
	for name, c := range map[string]struct {
		path        string
		but         func(w *incident.Workload)
		here, there bool
	}{
		"it lives":                             {"progress", nil, true, false},
		"it is lost":                           {"read lost", nil, true, false},
		"it is gone, and nobody knows why":     {"read gone", nil, true, false},
		"it is being created again":            {gone, nil, true, false},
		"it is being created elsewhere":        {gone + ", intend create 0, stockout create 0", nil, true, true},
		"it is being deleted by its owner":     {"owner deletes", nil, true, false},
		"its owner deleted it":                 {"owner deletes, read gone", nil, false, false},
		"it is gone when its training is done": {"finished, its verdict, a while, read gone", nil, false, false},
		"it never was":                         {"progress", func(w *incident.Workload) { w.Slices[0].Name = "x" }, false, false},
	} {
		n := at(t, policies["everything"], true, c.path, c.but)
		here, there := n.w.Holds("llama-8b", "us-west4-a"), n.w.Holds("llama-8b", "us-west4-b")
		if here != c.here || there != c.there {
			t.Errorf("%s: held here %v, there %v; want %v, %v", name, here, there, c.here, c.there)
		}
	}
}

// TestWordFromBeforeTheSliceWasFoundUsableOpensNothing: what was dead-lettered is redriven days later, and a training without
// a crew tells of no progress that it could be held against.
func TestWordFromBeforeTheSliceWasFoundUsableOpensNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		at    time.Duration
		opens bool
	}{
		{"from before it was found usable", 5 * time.Minute, false},
		{"from after that", time.Hour, either(true, false, "late")},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := quiet(true)
			crewless(&w)
			now := start
			for _, shown := range []incident.Condition{incident.Unhealthy, incident.Ready} {
				now = now.Add(10 * time.Minute)
				w, _, _ = advance(policies["spot"], w, incident.Read{
					Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: shown,
					Incarnation: w.Slices[0].Incarnation, State: string(shown),
				}, now)
			}
			late := start.Add(48 * time.Hour)
			w, _, _ = advance(policies["spot"], w, incident.Interrupted{
				Origin: incident.Origin{ID: "late", Time: start.Add(c.at), Rank: events.RankAudit}, Slice: "llama-8b", Cause: events.CauseHostError,
				Incarnation: w.Slices[0].Incarnation, Text: "worker 2 lost its host",
			}, late)
			if opened := w.Incident != nil; opened != c.opens {
				t.Errorf("an incident was opened: %v, want %v", opened, c.opens)
			}
			if !c.opens {
				return
			}
			// What tells of the same, later still, belongs to an incident that is over.
			for end := late.Add(24 * time.Hour); late.Before(end); late = late.Add(time.Minute) {
				w, _, _ = advance(policies["spot"], w, incident.Read{
					Origin: incident.Origin{Time: late, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: incident.Ready,
					Incarnation: w.Slices[0].Incarnation, State: "READY",
				}, late)
				w, _, _ = tick(policies["spot"], w, late)
			}
			if w.Incident != nil {
				t.Fatalf("it is open for a day: %s", w.Incident.Phase)
			}
			w, _, _ = advance(policies["spot"], w, incident.Interrupted{
				Origin: incident.Origin{ID: "later", Time: start.Add(c.at), Rank: events.RankAudit}, Slice: "llama-8b", Cause: events.CauseHostError,
				Incarnation: w.Slices[0].Incarnation, Text: "worker 3 lost its host",
			}, late)
			if w.Incident != nil {
				t.Error("the same trouble opened a second incident")
			}
		})
	}
}

// TestAQueuedResourceElsewhereIsNotTheSlice: one that died behind a clean-up which a person was left with has the slice's name and
// label, and tells nothing of the slice that lives where its owner has ordered it.
func TestAQueuedResourceElsewhereIsNotTheSlice(t *testing.T) {
	for _, c := range []incident.Condition{incident.Lost, incident.Creating} {
		w := quiet(true)
		inQueue(&w)
		read := incident.Read{
			Origin: incident.Origin{ID: "read", Time: start, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-b",
			Condition: c, State: "FAILED", Incident: "llama-8b-20261111-9", Ordered: start.Add(-time.Hour),
			Facts: incident.Facts{Group: "qr", Label: w.Label},
		}
		after, sent, changed := advance(policies["everything"], w, read, start.Add(time.Second))
		if changed || len(sent) > 0 {
			t.Errorf("%s elsewhere: %s, %d events, %+v", c, phaseOf(after), len(sent), after.Slices)
		}
		read.Zone = w.Slices[0].Zone
		if after, _, _ := advance(policies["everything"], w, read, start.Add(time.Second)); after.Slices[0].Condition != c {
			t.Errorf("%s where it is: %+v", c, after.Slices[0])
		}
	}
}

// TestSlicesOfSeveralPoliciesAreWatched, whichever of them is read last; a slice that names none is the others'.
func TestSlicesOfSeveralPoliciesAreWatched(t *testing.T) {
	w := multi(true)
	read := func(slice int, label string) string {
		s := w.Slices[slice]
		w, _, _ = advance(policies["everything"], w, incident.Read{
			Origin: incident.Origin{ID: "read", Time: start, Rank: events.RankReading}, Slice: s.Name, Zone: s.Zone, Condition: incident.Ready,
			Incarnation: s.Incarnation, State: "READY", Facts: incident.Facts{Reclaimable: true, Label: label},
		}, start)
		return w.Label
	}
	for i, step := range []struct {
		slice int
		label string
		want  string
	}{{0, "night", "night"}, {1, "", "night"}, {1, "watch", "night,watch"}, {0, "night", "night,watch"}, {0, "watch", "watch"}, {0, "", "watch"}, {1, "", ""}} {
		if got := read(step.slice, step.label); got != step.want {
			t.Errorf("step %d: the label is %q, want %q", i, got, step.want)
		}
	}
}

// TestAnIncidentDoesNotEndOverTheHeadOfADeletion that another delivery is just about to call.
func TestAnIncidentDoesNotEndOverTheHeadOfADeletion(t *testing.T) {
	for _, refusal := range []string{"permission delete 0", "forbidden delete 0"} {
		p := policies["everything"]
		n := node{w: multi(true), now: start, path: "peace"}
		for _, what := range []string{"a read lost", "b read lost", "intend delete 0", "intend delete 1", refusal} {
			n, _ = play(t, p, n, what)
		}
		if n.w.Incident == nil {
			t.Errorf("%s: it ended %s: %s", refusal, n.w.Closed.Outcome, n.w.Closed.Reason)
			continue
		}
		effect := n.w.Effects[0]
		if tried := !effect.Retry.IsZero() && effect.Begun.IsZero(); tried != (refusal == "forbidden delete 0" || either(true, false, "none")) {
			t.Errorf("%s: %+v is not tried again", refusal, effect)
		}
	}
}

// TestALateEntryOfATroubleThatWasLeftToAPersonOpensNothing, when the slice was found usable since; a later one does.
func TestALateEntryOfATroubleThatWasLeftToAPersonOpensNothing(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, "preempted, read lost, intend delete 0, permission delete 0", nil)
	if n.w.Incident != nil || n.w.Closed.Outcome != incident.Escalated {
		t.Fatalf("open is %+v", n.w.Incident)
	}
	closed := n.now
	n.now = n.now.Add(2 * time.Minute)
	n.w, _, _ = advance(p, n.w, learned(n.w, n.w.Slices[0], n.now)["read ready"], n.now)
	for after, opens := range map[time.Duration]bool{time.Second: either(false, true, "later"), 3 * time.Minute: true} {
		w, _, _ := advance(p, n.w, incident.Interrupted{
			Origin: incident.Origin{ID: "late", Time: closed.Add(after), Rank: events.RankAudit}, Slice: "llama-8b", Incarnation: n.w.Slices[0].Incarnation,
			Cause: events.CausePreemption, Text: "worker 1 was preempted",
		}, n.now.Add(7*time.Minute))
		if (w.Incident != nil) != opens {
			t.Errorf("%v behind the end: open is %+v", after, w.Incident)
		}
	}
}
