package incident_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// released is a workload whose owner took over while a creation of ours was under way, of which nothing was to be seen.
const released = "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, owner deletes, done create 0, read gone"

// TestNothingOfOursKeepsQuotaBehindAnIncident: what was ordered in an incident and comes when it is over, filled, waiting or
// dead, is deleted; and nothing that a person has made is.
func TestNothingOfOursKeepsQuotaBehindAnIncident(t *testing.T) {
	type found struct {
		incident.Read
		closed incident.Incident
	}
	lives := func(c incident.Condition) func(f *found) {
		return func(f *found) {
			f.Condition, f.State = c, strings.ToUpper(string(c))
			f.Incarnation = events.Incarnation{Zone: f.Zone, ID: "9999", Created: f.closed.Closed.Add(time.Hour)}
		}
	}
	for name, c := range map[string]struct {
		policy string
		but    func(f *found)
		before func(w *incident.Workload)
		want   string
	}{
		"a queued resource waits":                 {"everything", func(*found) {}, nil, "clearing: delete llama-8b"},
		"a queued resource has failed":            {"everything", func(f *found) { f.Condition = incident.Lost }, nil, "clearing: delete llama-8b"},
		"it was filled after all":                 {"everything", lives(incident.Ready), nil, "clearing: delete llama-8b"},
		"it is being filled":                      {"everything", lives(incident.Creating), nil, "clearing: delete llama-8b"},
		"nothing may be done":                     {"watch", func(*found) {}, nil, "observed"},
		"the policy cannot be read":               {"unreadable", func(*found) {}, nil, "released"},
		"a person has ordered it":                 {"everything", func(f *found) { f.Incident = "" }, nil, "released"},
		"a person has copied the label":           {"everything", func(f *found) { f.Ordered = f.closed.Closed.Add(time.Hour) }, nil, "released"},
		"a person has copied the label of before": {"everything", func(f *found) { f.Ordered = f.closed.Opened.Add(-time.Hour) }, nil, "released"},
		"another incident is named":               {"everything", func(f *found) { f.Incident += "0" }, nil, "released"},
		"the slice lives":                         {"everything", func(*found) {}, func(w *incident.Workload) { w.Slices[0].Condition = incident.Ready }, "released"},
		"somebody deletes it":                     {"everything", func(f *found) { f.Condition = incident.Deleting }, nil, "released"},
	} {
		t.Run(name, func(t *testing.T) {
			n := at(t, policies["everything"], true, released, inQueue)
			if n.w.Incident != nil || n.w.Closed == nil {
				t.Fatalf("it stands at %s", phaseOf(n.w))
			}
			n.now = n.now.Add(10 * time.Minute)
			f := found{evidence(n.w, n.now)["read late"].(incident.Read), *n.w.Closed} //nolint:forcetypeassert // it is one
			c.but(&f)
			if c.before != nil {
				c.before(&n.w)
			}
			before := n
			var sent []events.Event
			n.w, sent, _ = advance(policies[c.policy], n.w, f.Read, n.now)
			if d := cmp.Diff(c.want, stands(n.w, sent)); d != "" {
				t.Fatalf("(-want +got):\n%s%s", d, tale(n.w))
			}
			checkDocument(t, n, n.w)
			checkSent(t, policies[c.policy], before, n, n.w, f.Read, sent)
			if n.w.Closed != nil && n.w.Closed.ID != f.closed.ID {
				again, _, _ := advance(policies[c.policy], n.w, f.Read, n.now.Add(time.Minute))
				if again.Incident != nil || again.Closed.ID != n.w.Closed.ID {
					t.Error("it is told twice")
				}
			}
		})
	}
}

// TestWhatCameLateIsCleanedUpToItsEnd, also when it is filled before the deletion is called for.
func TestWhatCameLateIsCleanedUpToItsEnd(t *testing.T) {
	n := at(t, policies["everything"], true, released+", read late", inQueue)
	f := evidence(n.w, n.now)["read late"].(incident.Read) //nolint:forcetypeassert // it is one
	f.Condition, f.Incarnation = incident.Ready, events.Incarnation{Zone: f.Zone, ID: "9999", Created: n.now}
	n.now = n.now.Add(time.Second)
	f.Time = n.now
	var sent []events.Event
	n.w, sent, _ = advance(policies["everything"], n.w, f, n.now)
	r, ok := sent[0].(events.RecreateRequested)
	if !ok || !r.Incarnation.Same(f.Incarnation) {
		t.Fatalf("sent %+v, want the deletion of the life that has come", sent)
	}
	for _, what := range []string{"intend delete 0", "accepted delete 0", "read gone"} {
		n.now = n.now.Add(time.Second)
		n.w, _, _ = advance(policies["everything"], n.w, evidence(n.w, n.now)[what], n.now)
	}
	if n.w.Incident != nil || n.w.Closed.Outcome != incident.Released || !strings.Contains(n.w.Closed.Reason, "which had ordered it, is over") {
		t.Errorf("it stands at %s; %s", phaseOf(n.w), tale(n.w))
	}
	if !due(n.w).IsZero() {
		t.Errorf("something is still due at %s", due(n.w))
	}
}

// TestWhatIsCleanedUpIsNotMissed: what an incident that was given up has ordered comes late, and goes again. Its slice is as lost as a
// person was told that it is.
func TestWhatIsCleanedUpIsNotMissed(t *testing.T) {
	r := newTour(t, multi(true), "everything")
	for _, name := range []string{"a", "b"} {
		r.learn(name, "read gone")
		s := &r.w.Slices[slices.IndexFunc(r.w.Slices, func(s incident.Slot) bool { return s.Name == name })]
		s.End.Reported, s.Group = true, "q"
	}
	r.w.Creators = []incident.Creator{{Incident: "x", Opened: start.Add(-time.Hour), Closed: start.Add(-30 * time.Minute)}}
	r.now = r.now.Add(5 * time.Minute)
	for i, name := range []string{"a", "b"} {
		r.readAs(name, incident.Ready, func(e *incident.Read) {
			e.Incident = "x"
			e.Incarnation = events.Incarnation{Zone: e.Zone, ID: fmt.Sprint(666 + i), Created: start.Add(-45 * time.Minute)}
		})
	}
	r.learn("", "intend delete 0", "accepted delete 0")
	r.learn("a", "read gone")
	r.learn("b", "read gone")
	if c := r.w.Closed; r.w.Incident != nil || c == nil || c.Code != incident.CodeLeftBehind {
		t.Fatal(stands(r.w, nil))
	}
	for _, name := range []string{"a", "b"} {
		if asked := r.until(name, incident.Gone, time.Hour); asked != "" || r.w.Incident != nil {
			t.Errorf("asked for is %q; %s", asked, tale(r.w))
		}
	}
}

// TestASecondLifeOfOursIsTold: a creation of unknown outcome was refused at its second try, another zone was asked, and the first call
// brought something after all. It is not mistaken for the slice, whichever is read first, and a person is told to delete it.
func TestASecondLifeOfOursIsTold(t *testing.T) {
	for name, first := range map[string]string{"it is read first": "surplus", "it is read last": "", "it is usable first": "usable"} {
		t.Run(name, func(t *testing.T) {
			r := newTour(t, quiet(true), "everything")
			r.learn("llama-8b", "preempted", "read lost")
			r.learn("", "intend delete 0", "accepted delete 0")
			r.learn("llama-8b", "read gone")
			r.learn("", "intend create 0", "transient create 0")
			id := r.w.Incident.ID
			r.tick(2 * time.Minute)
			r.learn("", "intend create 0", "stockout create 0", "intend create 0")
			read := func(c incident.Condition, life events.Incarnation) string {
				return r.give(incident.Read{
					Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: life.Zone, Condition: c, State: string(c),
					Incarnation: life, Incident: id,
				})
			}
			lives, other := r.made("us-west4-a", "9001"), r.made(far, "9002")
			other.Created = other.Created.Add(time.Second)
			switch first {
			case "usable":
				read(incident.Ready, lives)
				read(incident.Creating, other)
			case "surplus":
				lives, other = other, lives
				read(incident.Creating, other)
				read(incident.Ready, lives)
			default:
				lives, other = other, lives
				read(incident.Ready, lives)
			}
			r.now = r.now.Add(time.Second)
			if either(false, true, "second life") {
				r.keepsOne(id, lives, other)
				return
			}
			r.learn("llama-8b", "mapped")
			r.learn("", "intend admit 0", "accepted admit 0")
			r.w.Crew.Attempt = r.w.Crew.LeaseAttempt
			r.learn("llama-8b", "progress")
			if c := r.w.Closed; r.w.Incident != nil || c.Outcome != incident.Resumed {
				t.Fatalf("it stands as %s", tale(r.w))
			}
			told, asked := 0, ""
			for range 30 {
				r.now = r.now.Add(time.Minute)
				ended := r.w.Ended
				asked += read(incident.Ready, lives) + read(incident.Ready, other) + r.tick(0)
				if r.learn("llama-8b", "progress"); r.w.Ended.After(ended) {
					told++
				}
			}
			c := r.w.Closed
			if told != 1 || c.Code != incident.CodeLeftBehind || !strings.HasSuffix(c.Advice, "delete llama-8b --zone "+other.Zone) {
				t.Errorf("told %d times: %s", told, tale(r.w))
			}
			if s := r.w.Slices[0]; asked != "" || !s.Incarnation.Same(lives) {
				t.Errorf("it lives as %v, want %v, and asked for is %q", s.Incarnation, lives, asked)
			}
			if read(incident.Lost, lives); r.w.Incident == nil {
				t.Error("it is lost, and nobody is told")
			}
		})
	}
}

// makes makes the call of an action.
func (r *tour) makes(a events.Action) {
	r.Helper()
	for _, what := range []string{"intend", "accepted"} {
		i := slices.IndexFunc(r.w.Effects, func(x incident.Effect) bool { return x.Action == a })
		r.learn("", fmt.Sprintf("%s %s %d", what, a, i))
	}
}

// keepsOne plays what is asked for while two lives stand that an incident has made: training is let into one, and the other is deleted and told of.
func (r *tour) keepsOne(id string, lives ...events.Incarnation) {
	var deleted []events.Incarnation
	told := map[string]bool{}
	for range 30 {
		r.now = r.now.Add(time.Minute)
		for _, life := range lives {
			r.give(incident.Read{
				Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: life.Zone, Condition: incident.Ready, State: "READY",
				Incarnation: life, Incident: id,
			})
		}
		r.tick(0)
		for range len(r.w.Effects) {
			x := r.w.Effects[0]
			r.makes(x.Action)
			if x.Action == events.ActionDelete {
				deleted = append(deleted, x.Incarnation)
				lives = slices.DeleteFunc(lives, x.Incarnation.Same)
				r.read("llama-8b", incident.Gone, events.Incarnation{Zone: x.Zone})
			}
		}
		if r.w.Incident == nil && r.w.Closed != nil && r.w.Closed.Code == incident.CodeLeftBehind {
			told[r.w.Closed.ID] = true
		}
		r.w.Crew.Attempt = r.w.Crew.LeaseAttempt
		r.learn("llama-8b", "progress")
	}
	if s := r.w.Slices[0]; len(deleted) != 1 || len(lives) != 1 || !s.Incarnation.Same(lives[0]) || s.Admission != incident.Admitted || r.w.Incident != nil {
		r.Errorf("deleted are %v, it lives as %v; %s", deleted, s.Incarnation, tale(r.w))
	}
	if len(told) > 1 {
		r.Errorf("people are told %d times", len(told))
	}
}

// TestWhatTheyCreatedJustBeforeOursIsTaken: its owner creates the slice again in another zone, a moment before our own creation is
// accepted. Theirs is the older life of the two and the one that stays: where only a younger one counted, nobody would ever look after
// it, and it would be created a second time.
func TestWhatTheyCreatedJustBeforeOursIsTaken(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "preempted", "read lost")
	r.learn("", "intend delete 0", "accepted delete 0")
	r.learn("llama-8b", "read gone")
	read := func(c incident.Condition, life events.Incarnation, id string) string {
		return r.give(incident.Read{
			Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: life.Zone, Condition: c, State: string(c),
			Incarnation: life, Incident: id,
			Facts: incident.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Reclaimable: true, Spec: "spec1", Label: "night"}, Directory: r.w.Directory,
		})
	}
	id, zone := r.w.Incident.ID, r.w.Slices[0].Zone
	theirs := events.Incarnation{Zone: far, ID: "9001", Created: r.now.Add(time.Second)}
	r.tick(2 * time.Second)
	ours := events.Incarnation{Zone: zone, ID: "9002", Created: r.now}
	r.learn("", "intend create 0", "accepted create 0")
	if read(incident.Creating, ours, id); r.w.Slices[0].Maker != id {
		t.Fatalf("ours is not there: %s", tale(r.w))
	}
	if read(incident.Creating, theirs, ""); !r.w.Slices[0].Incarnation.Same(ours) {
		t.Fatalf("what is ours was forgotten: %s", tale(r.w))
	}
	r.learn("llama-8b", "owner creates")
	r.tick(time.Minute)
	r.makes(events.ActionDelete)
	r.give(incident.Read{Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: zone, Condition: incident.Gone})
	if r.w.Incident != nil || r.w.Closed.Outcome != incident.Released || r.w.Closed.Code != incident.CodeTakenOver {
		t.Fatalf("it stands as %s", tale(r.w))
	}
	r.now = r.now.Add(time.Minute)
	if asked := read(incident.Ready, theirs, ""); asked != "" || !r.w.Slices[0].Incarnation.Same(theirs) || r.w.Incident != nil {
		t.Errorf("asked for is %q, it lives as %v; %s", asked, r.w.Slices[0].Incarnation, stands(r.w, nil))
	}
}

func TestALifeIsFormerBehindTheNext(t *testing.T) {
	at := func(zone string, minute int) events.Incarnation {
		return events.Incarnation{Zone: zone, ID: fmt.Sprint(minute), Created: time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC)}
	}
	const near = "us-west4-a"
	for name, row := range map[string]struct {
		admitted, last events.Incarnation
		condition      incident.Condition
		life           events.Incarnation
		want           bool
	}{
		"a younger one is not": {at(near, 1), at(near, 1), incident.Gone, at(far, 2), false},
		"an older one is":      {at(near, 3), at(near, 3), incident.Gone, at(far, 2), true},
		"one between the admitted one and ours that went":       {at(near, 1), at(near, 3), incident.Gone, at(far, 2), false},
		"but not where ours was":                                {at(near, 1), at(near, 3), incident.Gone, at(near, 2), true},
		"nor while ours is there":                               {at(near, 1), at(near, 3), incident.Creating, at(far, 2), true},
		"nor the admitted one":                                  {at(far, 1), at(near, 3), incident.Gone, at(far, 1), true},
		"nor one before it":                                     {at(near, 2), at(near, 3), incident.Gone, at(far, 1), true},
		"of one whose age is unknown nobody can say that it is": {at(near, 1), at(near, 3), incident.Gone, events.Incarnation{Zone: far, ID: "x"}, false},
	} {
		s := incident.Slot{Life: incident.Life{Zone: near, Incarnation: row.last, Condition: row.condition}}
		admitted(&s, row.admitted)
		if got := s.IsFormer(row.life); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWhatIsOursGoesBeforeTheirsIsTaken: a queued resource of ours waits in another zone when its owner creates the slice again. Where
// theirs took its place in the document, nobody would cancel it.
func TestWhatIsOursGoesBeforeTheirsIsTaken(t *testing.T) {
	w := quiet(true)
	w.Slices[0].Group = "q"
	r := newTour(t, w, "everything")
	r.learn("llama-8b", "preempted", "read lost")
	r.learn("", "intend delete 0", "accepted delete 0")
	r.learn("llama-8b", "read gone")
	r.learn("", "intend create 0", "stockout create 0")
	r.tick(10 * time.Second)
	r.learn("", "intend create 0", "accepted create 0")
	read := func(c incident.Condition, life events.Incarnation, ordered time.Time, id string) string {
		return r.give(incident.Read{
			Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: life.Zone, Condition: c, State: string(c),
			Incarnation: life, Ordered: ordered, Incident: id,
			Facts: incident.Facts{Group: "q", Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Reclaimable: true, Spec: "spec1", Label: "night"}, Directory: r.w.Directory,
		})
	}
	id, ours := r.w.Incident.ID, r.now
	read(incident.Creating, events.Incarnation{Zone: far}, ours, id)
	if s := r.w.Slices[0]; s.Zone != far || s.Ordered.IsZero() {
		t.Fatalf("it is not ordered: %+v", s)
	}
	theirs := r.made("us-west4-a", "9001")
	asked := read(incident.Ready, theirs, r.now, "")
	for range 3 {
		asked += read(incident.Ready, theirs, theirs.Created, "")
	}
	if asked != "delete llama-8b" || r.w.Incident == nil || r.w.Incident.Phase != incident.Clearing || r.w.Effects[0].Zone != far {
		t.Fatalf("asked for is %q; it stands as %s", asked, tale(r.w))
	}
	r.makes(events.ActionDelete)
	r.give(incident.Read{Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: far, Condition: incident.Gone})
	if r.w.Incident != nil || r.w.Closed.Outcome != incident.Released || r.w.Closed.Code != incident.CodeTakenOver {
		t.Fatalf("it stands as %s", tale(r.w))
	}
	r.now = r.now.Add(time.Minute)
	if asked := read(incident.Ready, theirs, theirs.Created, ""); asked != "" || !r.w.Slices[0].Incarnation.Same(theirs) || r.w.Incident != nil {
		t.Errorf("asked for is %q, it lives as %v; %s", asked, r.w.Slices[0].Incarnation, stands(r.w, nil))
	}
}

// TestTrainingThatBeganInWhatIsCleanedUpIsKept: a queued resource could not be deleted while it was filled. Its slices came, and the crew of
// one tells of an attempt: no slice of a Multislice trains alone, so the other one trains too.
func TestTrainingThatBeganInWhatIsCleanedUpIsKept(t *testing.T) {
	refused := []string{"intend delete 0", "not_in_state delete 0"}
	none, once, twice := [2][]string{}, [2][]string{refused}, [2][]string{refused, {"intend delete 0"}}
	for name, c := range map[string]struct {
		queue string
		// tries are what was learned of deletions; the second one is asked for 20 minutes after the first.
		tries [2][]string
		// after are how long after the last try to delete it each line was written.
		after []time.Duration
		keeps bool
	}{
		"nobody has tried to delete it":             {"qr", none, []time.Duration{time.Second}, true},
		"a try was refused long ago":                {"qr", twice, []time.Duration{2 * incident.CallFor}, true},
		"a try may have been made in the meantime":  {"qr", twice, []time.Duration{time.Second}, false},
		"a later line shows that it outlived a try": {"qr", twice, []time.Duration{time.Second, 2 * incident.CallFor}, true},
		"the next try is only asked for":            {"qr", once, []time.Duration{time.Second}, true},
		"each is a node of its own":                 {"", none, []time.Duration{time.Second}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := multi(true)
			w.Slices[0].Group, w.Slices[1].Group = c.queue, c.queue
			r := newTour(t, w, "everything")
			r.learn("a", "preempted", "read lost")
			r.learn("b", "read lost")
			deleted := []string{"intend delete 0", "accepted delete 0", "intend delete 1", "accepted delete 1"}
			created := []string{"intend create 0", "accepted create 0", "intend create 1", "accepted create 1"}
			if c.queue != "" {
				deleted, created = deleted[:2], created[:2] // one call is for both
			}
			r.learn("", deleted...)
			r.learn("a", "read gone")
			r.learn("b", "read gone")
			r.learn("", created...)
			r.learn("a", "cancelled")
			for _, slice := range []string{"a", "b"} {
				r.learn(slice, "read ours", "mapped")
			}
			if c.tries[0] != nil {
				r.learn("", c.tries[0]...)
				r.tick(20 * time.Minute)
				r.learn("", c.tries[1]...)
			}
			for _, after := range c.after {
				r.now = r.now.Add(after)
				r.learn("a", "started")
			}
			r.learn("a", "read ready")
			r.learn("b", "read ready")
			kept := r.w.Incident == nil && r.w.Slice("a").Maker == "" && r.w.Slice("b").Maker == ""
			if kept != c.keeps {
				t.Errorf("kept is %v:%s", kept, tale(r.w))
			}
			if left := r.w.Slice("b"); kept && left.ToReplace {
				t.Errorf("b is still to be replaced: %+v", left)
			}
		})
	}
}
