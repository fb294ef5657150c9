package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestACreationFromBeforeTheTroubleTakesNothingOver: the entry of one that made the very life that was lost may come half
// an hour late, in the middle of the incident.
func TestACreationFromBeforeTheTroubleTakesNothingOver(t *testing.T) {
	for _, c := range []struct {
		name  string
		at    time.Time
		takes bool
	}{
		{"before the trouble", start.Add(-20 * time.Minute), false},
		{"after it", start.Add(20 * time.Second), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := at(t, policies["ask"], true, "preempted, read lost", nil)
			if n.w.Incident == nil || n.w.Incident.Phase != incident.Approving {
				t.Fatalf("the incident is %+v, want one that waits for approval", n.w.Incident)
			}
			called := incident.Called{
				Origin: incident.Origin{ID: "late", Time: c.at, Rank: events.RankAudit}, Slice: n.w.Slices[0].Name, Act: events.ActCreated, Method: "CreateNode",
				Principal: "babysitter@example.com",
			}
			after, _, _ := advance(policies["ask"], n.w, called, start.Add(time.Minute))
			if took := after.Incident == nil; took != c.takes {
				t.Errorf("it took the incident over: %v, want %v", took, c.takes)
			}
		})
	}
}

// TestAnOrderOfTheOwnersThatCameToNothingStaysTheirs: a TPU that its owner deleted and ordered again, and for which there was
// no capacity, was never there. Pitstop does not create it in their place.
func TestAnOrderOfTheOwnersThatCameToNothingStaysTheirs(t *testing.T) {
	p := policies["everything"]
	life := events.Incarnation{Zone: "us-west4-a", ID: "9001", Created: start.Add(2 * time.Hour)}
	read := func(at time.Duration, c incident.Condition, life events.Incarnation) incident.Read {
		e := incident.Read{
			Origin: incident.Origin{Time: start.Add(at), Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: c, Incarnation: life,
			State: string(c),
		}
		if life.Known() {
			e.Facts = incident.Facts{Reclaimable: true, Spec: "spec2", Label: "spot"}
		}
		return e
	}
	deleted := incident.Called{
		Origin: incident.Origin{ID: "d", Time: start.Add(time.Hour), Rank: events.RankAudit}, Slice: "llama-8b", Act: events.ActDeleted, Method: "DeleteNode",
		Principal: "ada@example.com",
	}
	for _, c := range []struct {
		name   string
		before incident.Workload
		shown  []incident.Condition
		opens  bool
	}{
		{"a slice that was released", quiet(true), []incident.Condition{incident.Creating, incident.Gone}, false},
		{"one that failed and stays there", quiet(true), []incident.Condition{incident.Creating, incident.Lost}, false},
		{"one never seen before", incident.New("demo", "llama-8b", "tpu"), []incident.Condition{incident.Creating, incident.Gone}, false},
		{"one that was usable", quiet(true), []incident.Condition{incident.Creating, incident.Ready, incident.Gone}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.before
			w.Label = "spot"
			if len(w.Slices) > 0 {
				w, _, _ = advance(p, w, deleted, start.Add(time.Hour))
				w, _, _ = advance(p, w, read(61*time.Minute, incident.Gone, events.Incarnation{}), start.Add(61*time.Minute))
				if !w.Slices[0].IsReleased() {
					t.Fatal("what its owner deleted is not released")
				}
			}
			for i, shown := range c.shown {
				at := 2*time.Hour + time.Duration(i+1)*time.Minute
				life := life
				if shown == incident.Gone {
					life = events.Incarnation{}
				}
				w, _, _ = advance(p, w, read(at, shown, life), start.Add(at))
			}
			later := start.Add(4 * time.Hour)
			w, _, _ = tick(p, w, later)
			if opened := w.Incident != nil; opened != c.opens {
				t.Errorf("an incident was opened: %v, want %v", opened, c.opens)
			}
			if due := due(w); !c.opens && !due.IsZero() {
				t.Errorf("something is still due at %s", due)
			}
		})
	}
}

// TestALifeFromBeforeTheTroubleTakesNothingOver: what an owner created again before another slice was lost may be read for the
// first time in the look at that loss.
func TestALifeFromBeforeTheTroubleTakesNothingOver(t *testing.T) {
	for _, c := range []struct {
		name     string
		created  time.Duration
		released bool
	}{
		{"created before the trouble", -10 * time.Minute, false},
		{"created in the middle of it", 30 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := multi(true)
			w.Slices[1].Condition, w.Slices[1].State, w.Slices[1].End.Released = incident.Gone, "gone", start.Add(-time.Hour)
			w, _, _ = advance(policies["spot"], w, incident.Interrupted{
				Origin: incident.Origin{ID: "p", Time: start, Rank: events.RankAudit}, Slice: w.Slices[0].Name, Incarnation: w.Slices[0].Incarnation,
				Cause: events.CausePreemption, Text: "preempted",
			}, start)
			again := events.Incarnation{Zone: "us-west4-a", ID: "9100", Created: start.Add(c.created)}
			w, _, _ = advance(policies["spot"], w, incident.Read{
				Origin: incident.Origin{Time: start.Add(time.Minute), Rank: events.RankReading}, Slice: w.Slices[1].Name, Zone: "us-west4-a",
				Condition: incident.Ready, Incarnation: again, State: "READY",
			}, start.Add(time.Minute))
			if released := w.Incident == nil; released != c.released {
				t.Errorf("the incident was released: %v, want %v", released, c.released)
			}
			if c.released {
				return
			}
			if s := w.Slices[1]; !s.Admitted().Same(again) || s.IsReleased() {
				t.Errorf("the slice is %+v, want one that is looked after again", s)
			}
		})
	}
}

// TestTrainingFollowsWhatItsOwnerCreatesInAnotherZone: the lease names the life of another zone, and no crew may put itself
// into its place, so somebody has to admit training there.
func TestTrainingFollowsWhatItsOwnerCreatesInAnotherZone(t *testing.T) {
	for name, c := range map[string]struct {
		policy, zone string
		change       func(w *incident.Workload)
		want         incident.Phase
	}{
		"another zone":     {"everything", "us-west4-b", nil, incident.Admitting},
		"the same zone":    {"everything", "us-west4-a", nil, ""}, // its crew puts itself into the place of the last
		"no lease of ours": {"everything", "us-west4-b", func(w *incident.Workload) { w.Crew.LeaseAttempt = 0 }, ""},
		"only watched":     {"watch", "us-west4-b", nil, ""},
		"the last training is done, and they begin another": {"everything", "us-west4-b", func(w *incident.Workload) {
			w.Crew.Finished, w.Crew.FinishedAt = true, start.Add(-2*time.Hour)
		}, incident.Admitting},
		"an order of theirs in that zone came to nothing before": {"everything", "us-west4-b", func(w *incident.Workload) {
			w.Slices[0].Zone, w.Slices[0].Incarnation = "us-west4-b", events.Incarnation{Zone: "us-west4-b", ID: "9000", Created: start.Add(-time.Minute)}
			admitted(&w.Slices[0], life(1))
		}, incident.Admitting},
		"ordered as a queued resource": {"everything", "us-west4-b", func(w *incident.Workload) {
			w.Slices[0].Condition, w.Slices[0].End.Released = either(incident.Creating, incident.Gone, "form"), time.Time{}
		}, incident.Admitting},
		"the former lives on": {"everything", "us-west4-b", func(w *incident.Workload) {
			w.Slices[0].Condition, w.Slices[0].End.Released = incident.Ready, time.Time{}
		}, ""},
		"the former is being deleted": {"everything", "us-west4-b", func(w *incident.Workload) { w.Slices[0].Condition = incident.Deleting }, incident.Admitting},
		"the former is lost":          {"everything", "us-west4-b", func(w *incident.Workload) { w.Slices[0].Condition = incident.Lost }, incident.Admitting},
		"another life of theirs was there, unadmitted, and nobody saw its end": {"everything", "us-west4-b", func(w *incident.Workload) {
			s := &w.Slices[0]
			s.Zone, s.Condition, s.End.Released = "us-west4-b", incident.Ready, time.Time{}
			s.Incarnation = events.Incarnation{Zone: "us-west4-b", ID: "9000", Created: start.Add(-time.Minute)}
			admitted(s, life(1))
			s.Admission = incident.AwaitsAdmission
		}, incident.Admitting},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(true)
			w.Crew.LeaseAttempt, w.Slices[0].Condition, w.Slices[0].End.Released = 3, incident.Gone, start.Add(-time.Hour)
			if c.change != nil {
				c.change(&w)
			}
			next := events.Incarnation{Zone: c.zone, ID: "9001", Created: start}
			var sent []events.Event
			for i, condition := range []incident.Condition{incident.Creating, incident.Ready, incident.Ready, incident.Ready} {
				now := start.Add(time.Duration(i*i+1) * time.Minute)
				var out []events.Event
				w, out, _ = advance(policies[c.policy], w, incident.Read{
					Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: "llama-8b", Zone: c.zone, Condition: condition, Incarnation: next,
					State: string(condition),
				}, now)
				sent = append(sent, out...)
				w, out, _ = advance(policies[c.policy], w, incident.Ticked{Origin: incident.Origin{Time: now, Rank: events.RankReading}}, now)
				sent = append(sent, out...)
			}
			if c.want == "" {
				if w.Incident != nil || len(sent) > 0 {
					t.Fatalf("it opened %+v and sent %v", w.Incident, sent)
				}
				return
			}
			if w.Incident == nil || w.Incident.Phase != c.want || len(sent) != 1 || asks(sent[0]) != "admit llama-8b=9001" {
				t.Errorf("the incident is %+v, sent %v; want %s and one request to admit the new life", w.Incident, sent, c.want)
			}
		})
	}
}

// TestALossThatItsOwnerTookInHandIsNotOpenedAgain: no reading had shown it yet when the owner took over. The next one shows what
// has been told.
func TestALossThatItsOwnerTookInHandIsNotOpenedAgain(t *testing.T) {
	n := at(t, policies["everything"], true, "preempted, owner creates", nil)
	if n.w.Incident != nil || n.w.Closed.Outcome != incident.Released {
		t.Fatalf("open is %+v, closed %+v; want it released", n.w.Incident, n.w.Closed)
	}
	give := func(what string) []events.Event {
		n.now = n.now.Add(time.Minute)
		w, sent, _ := advance(policies["everything"], n.w, learned(n.w, n.w.Slices[0], n.now)[what], n.now)
		n.w = w
		return sent
	}
	if sent := give("read lost"); n.w.Incident != nil || len(sent) > 0 {
		t.Errorf("it opened %+v and sent %v", n.w.Incident, sent)
	}
	give("read ready") // it was no loss, or it is over: the next one is another
	if give("preempted"); n.w.Incident == nil {
		t.Error("the next loss opened nothing")
	}
}

// TestALossAfterARepairedOneIsOpened: the incident that ended with its owner told of a loss that a reading had shown repaired. The
// next loss of the same life is another one.
func TestALossAfterARepairedOneIsOpened(t *testing.T) {
	r := newTour(t, multi(true), "spot")
	r.learn("a", "preempted", "read lost", "read ready")
	r.learn("b", "owner creates")
	if c := r.w.Closed; r.w.Incident != nil || c == nil || c.Outcome != incident.Released {
		t.Fatalf("it stands at %s", tale(r.w))
	}
	r.now = r.now.Add(10 * time.Minute)
	if r.learn("a", "read lost"); r.w.Incident == nil {
		t.Errorf("the next loss opened nothing: %s", tale(r.w))
	}
}

// TestTheNextLifeOfATrainingInHandIsLookedAfter: a person had cancelled the incident of a failing training, so its lines open nothing.
// Then its owner ordered the slice anew, and the training gives up there too.
func TestTheNextLifeOfATrainingInHandIsLookedAfter(t *testing.T) {
	for _, anew := range []bool{false, true} {
		r := newTour(t, quiet(true), "spot")
		r.learn("llama-8b", "gave up", "cancelled")
		if anew {
			r.learn("llama-8b", "owner deletes", "read gone", "owner creates", "read foreign")
		}
		r.now = r.now.Add(10 * time.Minute)
		if r.learn("llama-8b", "gave up anew"); (r.w.Incident != nil) != anew {
			t.Errorf("ordered anew %v: it stands at %s", anew, tale(r.w))
		}
	}
}

// TestAMultisliceThatItsOwnerMovesIsAdmittedOnce, whatever slices are read again behind it.
func TestAMultisliceThatItsOwnerMovesIsAdmittedOnce(t *testing.T) {
	w := multi(true)
	w.Crew.LeaseAttempt = 3
	read := func(slice int, at time.Duration) []events.Event {
		s, now := &w.Slices[slice], start.Add(at)
		next := events.Incarnation{Zone: "us-west4-b", ID: "900" + s.Name, Created: start}
		w2, sent, _ := advance(policies["everything"], w, incident.Read{
			Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: s.Name, Zone: next.Zone, Condition: incident.Ready, Incarnation: next, State: "READY",
		}, now)
		w = w2
		return sent
	}
	tick := func(at time.Duration) []events.Event {
		w2, sent, _ := tick(policies["everything"], w, start.Add(at))
		w = w2
		return sent
	}
	for i := range w.Slices {
		w.Slices[i].Condition, w.Slices[i].End.Released = incident.Gone, start.Add(-time.Hour)
	}
	for i := range w.Slices { // one after the other, though they are there together
		if sent := read(i, time.Minute); w.Incident != nil || len(sent) > 0 {
			t.Fatalf("before all of it is read, it opened %+v and sent %v", w.Incident, sent)
		}
	}
	if due := due(w); due.IsZero() || due.After(start.Add(time.Minute)) {
		t.Errorf("due at %v, want now", due)
	}
	if sent := tick(time.Minute); len(sent) != 1 || asks(sent[0]) != "admit a=900a b=900b" {
		t.Fatalf("sent %v, want one admission", sent)
	}
	for i := range w.Slices {
		if w.Slices[i].Admission == incident.AwaitsAdmission {
			t.Errorf("%s is to be admitted once more", w.Slices[i].Name)
		}
	}
}

// TestWhatItsOwnerHasTakenAwayNamesNoPolicy: the label of a slice that they deleted is not held against that of the others.
func TestWhatItsOwnerHasTakenAwayNamesNoPolicy(t *testing.T) {
	w := multi(true)
	w.Slices[0].Label, w.Slices[1].Label, w.Label = "night", "night", "night"
	relabel := func() string {
		r := learned(w, w.Slices[1], start)["read ready"].(incident.Read) //nolint:forcetypeassert // it is one
		r.Facts.Label = "day"
		w, _, _ = advance(policies["everything"], w, r, start)
		return w.Label
	}
	if got := relabel(); got != "day,night" {
		t.Errorf("two slices that say something else are labelled %q, want both, which is no policy", got)
	}
	w.Slices[0].End.Released, w.Slices[0].Condition = start.Add(-time.Hour), incident.Gone
	if got := relabel(); got != "day" {
		t.Errorf("labelled %q, want what is left says", got)
	}
	w.Slices[1].End.Released = start
	if got := relabel(); got != "day,night" {
		t.Errorf("where all is its owner's it is labelled %q, want what was said last", got)
	}
}

// TestNobodyWaitsForWhatItsOwnerHasDeleted: of a Multislice one slice is its owner's, and that it is still gone is no news at any
// moment of an incident about the other.
func TestNobodyWaitsForWhatItsOwnerHasDeleted(t *testing.T) {
	p := policies["everything"]
	w := multi(true)
	w.Slices[1].Condition, w.Slices[1].State, w.Slices[1].End.Released = incident.Gone, "gone", start.Add(-time.Hour)
	n := node{w: w, now: start, path: "peace"}
	met := map[incident.Phase]bool{}
	for _, what := range []string{
		"a preempted", "a read lost", "do", "a read gone", "do", "a read ours made", "a read ours", "do", "later", "tick", "later", "tick", "do", "a progress",
	} {
		n, _ = play(t, p, n, what)
		if either(false, what == "later", "at once") {
			n, _ = play(t, p, n, "tick") // what time has made due is no consequence of the reading
		}
		if n.w.Incident == nil {
			continue
		}
		met[n.w.Incident.Phase] = true
		after, sent := play(t, p, n, "b read gone")
		if after.w.Incident == nil || after.w.Incident.Phase != n.w.Incident.Phase || after.w.Epoch != n.w.Epoch || len(sent) > 0 {
			t.Errorf("%s: sent %v, and stands as %s", after.path, sent, stands(after.w, sent))
		}
	}
	for _, phase := range []incident.Phase{incident.Looking, incident.PhaseDeleting, incident.PhaseCreating, incident.Admitting, incident.Resuming, incident.Restarting} {
		if !met[phase] {
			t.Errorf("the incident was never in phase %s: %v", phase, met)
		}
	}
	if n.w.Incident != nil || n.w.Closed == nil || n.w.Closed.Outcome != incident.Resumed {
		t.Errorf("it stands as %s", stands(n.w, nil))
	}
}

// TestWhatAnotherIncidentHasAdmittedIsNotAdmittedAgain: its owner has created a slice in another zone, and had it tried again before
// that was followed.
func TestWhatAnotherIncidentHasAdmittedIsNotAdmittedAgain(t *testing.T) {
	n := at(t, policies["everything"], true, "exit 139, gave up, its verdict, intend restart 0", func(w *incident.Workload) {
		unadmitted(w)
		w.Slices[0].Admission, w.Crew.LeaseAttempt = incident.AwaitsAdmission, 1
	})
	for _, what := range []string{"accepted restart 0", "started", "progress"} {
		n.now = n.now.Add(time.Second)
		e, ok := evidence(n.w, n.now)[what]
		if !ok {
			t.Fatalf("there is no %q in %s", what, phaseOf(n.w))
		}
		n.w, _, _ = advance(policies["everything"], n.w, e, n.now)
	}
	if n.w.Incident != nil || n.w.Closed.Outcome != incident.Resumed {
		t.Fatalf("open is %+v, closed %+v; want it resumed", n.w.Incident, n.w.Closed)
	}
	n.now = n.now.Add(time.Minute)
	if n.w, _, _ = tick(policies["everything"], n.w, n.now); n.w.Incident != nil {
		t.Errorf("a tick opens %+v", n.w.Incident.Troubles)
	}
}

// TestWhatWaitsForThePolicyIsTold: a slice that its owner moved is not admitted under a policy that cannot be read. After a while
// an incident says so, and it is the one that admits the slice when the policy is mended.
func TestWhatWaitsForThePolicyIsTold(t *testing.T) {
	w := quiet(true)
	w.Crew.LeaseAttempt, w.Slices[0].Condition, w.Slices[0].End.Released = 3, incident.Gone, start.Add(-time.Hour)
	p, now := policies["unreadable"], start
	var sent []events.Event
	read := func() {
		now = now.Add(time.Minute)
		origin := incident.Origin{Time: now, Rank: events.RankReading}
		for _, e := range []incident.Evidence{
			incident.Read{
				Origin: origin, Slice: "llama-8b", Zone: "us-west4-b", Condition: incident.Ready, State: "READY",
				Incarnation: events.Incarnation{Zone: "us-west4-b", ID: "9001", Created: start},
			},
			incident.Ticked{Origin: origin},
		} {
			var out []events.Event
			w, out, _ = advance(p, w, e, now)
			for _, o := range out {
				if asked := asks(o); asked != "" {
					sent = append(sent, o)
				}
			}
		}
	}
	read()
	if w.Incident != nil {
		t.Fatalf("it opened %+v at once, and the policy may be mended in a moment", w.Incident)
	}
	now = now.Add(incident.Grace)
	read()
	if phaseOf(w) != "admitting" || len(sent) != 1 || asks(sent[0]) != "admit llama-8b=9001" {
		t.Fatalf("it stands at %s and sent %v, want the admission that is held back", phaseOf(w), sent)
	}
	opened := w.Incident.ID
	for end := now.Add(10 * time.Hour); now.Before(end); {
		if held := answers(w, w.Slices[0], now)["held admit 0"]; held != nil {
			w, _, _ = advance(p, w, held, now)
			sent = nil
		}
		read()
	}
	p = policies["everything"]
	for range 2 {
		read()
	}
	if phaseOf(w) != "admitting" || w.Incident.ID != opened || len(sent) != 1 || asks(sent[0]) != "admit llama-8b=9001" {
		t.Errorf("it stands as %s, want %s to admit the slice when the policy can be read", stands(w, sent), opened)
	}
}

// TestTheDeletionOfWhatWasLostIsHeardBetweenTwoCreations: the first creation in its place has failed, and the next is not begun
// yet, when the owner's word about the lost one comes.
func TestTheDeletionOfWhatWasLostIsHeardBetweenTwoCreations(t *testing.T) {
	n := at(t, policies["everything"], true, "preempted, read gone, intend create 0, accepted create 0, read ours made", nil)
	word := incident.Called{
		Origin: incident.Origin{ID: "late", Time: n.w.Slices[0].Incarnation.Created.Add(-time.Millisecond), Rank: events.RankAudit},
		Slice:  "llama-8b", Act: events.ActDeleted, Method: "DeleteNode", Principal: "ada@example.com",
	}
	n.now = n.now.Add(5 * time.Minute)
	n.w, _, _ = advance(policies["everything"], n.w, incident.Ended{
		Origin: word.Origin, Operation: "operation-create", Failure: &incident.Failure{Class: incident.Transient, Message: "unavailable"},
	}, n.now)
	n.w, _, _ = advance(policies["everything"], n.w, evidence(n.w, n.now)["read gone"], n.now)
	if phaseOf(n.w) != "creating" {
		t.Fatalf("it stands at %s", phaseOf(n.w))
	}
	n.w, _, _ = advance(policies["everything"], n.w, word, n.now)
	if n.w.Incident != nil || n.w.Closed == nil || n.w.Closed.Outcome != incident.Released {
		t.Errorf("it stands as %s, want it released", stands(n.w, nil))
	}
}

// TestWhatItsOwnerOrdersDuringTheCleanUpStaysTheirs: they took a Multislice over by ordering the slice of it that
// had been left to them, what we had asked for is awaited, and there is no capacity for what they ordered.
func TestWhatItsOwnerOrdersDuringTheCleanUpStaysTheirs(t *testing.T) {
	p := policies["everything"]
	w := multi(true)
	w.Slices[1].Condition, w.Slices[1].State, w.Slices[1].End.Reported = incident.Gone, "gone", true
	n := node{w: w, now: start, path: "peace"}
	for _, what := range []string{"a preempted", "a read gone", "intend create 0", "b owner creates"} {
		n, _ = play(t, p, n, what)
	}
	if phaseOf(n.w) != "clearing" {
		t.Fatalf("it stands at %s", phaseOf(n.w))
	}
	n.now = n.now.Add(incident.AnswerFor + time.Minute)
	for _, what := range []string{"b read foreign made", "a read gone"} {
		n, _ = play(t, p, n, what)
	}
	if n.w.Incident != nil || n.w.Closed.Outcome != incident.Released {
		t.Fatalf("it stands as %s, want it released", stands(n.w, nil))
	}
	n, _ = play(t, p, n, "b read gone")
	n.now = n.now.Add(2 * incident.Grace)
	if n, sent := play(t, p, n, "tick"); n.w.Incident != nil || len(sent) > 0 {
		t.Errorf("it stands as %s, want peace", stands(n.w, sent))
	}
}

// TestAnIncidentAboutOneSliceForgetsNothingOfAnother: of a Multislice that was left to a person one slice is just coming, in vain,
// when an incident about the other ends.
func TestAnIncidentAboutOneSliceForgetsNothingOfAnother(t *testing.T) {
	for _, left := range []bool{true, false} {
		w := multi(true)
		w.Slices[0].Condition, w.Slices[0].State = incident.Creating, "CREATING"
		if left {
			w.Slices[0].End.Reported = true
		}
		n := node{w: w, now: start, path: "peace"}
		for _, what := range []string{"b preempted", "b owner deletes", "a read gone"} {
			n, _ = play(t, policies["everything"], n, what)
		}
		if n.w.Incident != nil {
			t.Fatalf("it stands as %s", stands(n.w, nil))
		}
		n.w, _, _ = tick(policies["everything"], n.w, n.now.Add(incident.Grace))
		if opened := n.w.Incident != nil; opened == left {
			t.Errorf("left to a person: %v; it stands as %s", left, stands(n.w, nil))
		}
	}
}

// TestWhatItsOwnerOrderedInTheMiddle of an incident about another slice, or before it: what was lost is replaced like any other, and
// what is theirs is not waited for.
func TestWhatItsOwnerOrderedInTheMiddle(t *testing.T) {
	ordered := [][2]string{
		{"b owner deletes", "peace"},
		{"b read gone", "peace"},
		{"b read foreign made", "peace"},
	}
	for name, c := range map[string]struct {
		of       func(bool) incident.Workload
		policy   string
		steps    [][2]string
		released bool
	}{
		"it is lost on demand before it was usable, and gone": {multi, "everything", append(ordered[:3:3], [][2]string{
			{"a ongoing", "saving: save"},
			{"b read lost", "healing"},
			{"b read gone", "creating: create b"},
		}...), false},
		"it is lost before it was usable, and deleted": {spotSingles, "everything", append(ordered[:3:3], [][2]string{
			{"a ongoing", "saving: save"},
			{"b read lost", "deleting: delete b"},
			{"do", "deleting"},
			{"b read gone", "creating: create b"},
		}...), false},
		"it is lost before it was usable, and gone before a person has said yes": {spotSingles, "ask", append(ordered[:3:3], [][2]string{
			{"a host error", "looking"},
			{"b read lost", "approving"},
			{"b read gone", "approving"},
			{"b approved", "creating: create b"},
		}...), false},
		"it comes to nothing": {multi, "everything", append(ordered[:3:3], [][2]string{
			{"a host error", "looking"},
			{"a read unhealthy", "healing"},
			{"b read gone", "healing"},
			{"a read ready", "resuming"},
		}...), true},
		"it is made for hours": {multi, "everything", append(ordered[:3:3], [][2]string{
			{"a host error", "looking"},
			{"a read unhealthy", "healing"},
			{"a read ready", "healing"},
			{"later", "healing"},
			{"tick", "escalated"},
		}...), false},
		"they are deleting it, and it is sick": {multi, "everything", [][2]string{
			{"b owner deletes", "peace"},
			{"a host error", "looking"},
			{"a read unhealthy", "healing"},
			{"a read ready", "resuming"},
			{"b read unhealthy", "resuming"},
			{"b read lost", "resuming"},
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := node{w: c.of(false), now: start, path: name}
			n = plays(t, policies[c.policy], n, c.steps)
			if got := n.w.Slices[1].IsReleased(); got != c.released {
				t.Errorf("released %v, want %v", got, c.released)
			}
		})
	}
}

// TestWhatItsOwnerTakesBackBeforeItIsThereIsNotMissed: they create a node and delete it at once, and it is first read while it goes.
func TestWhatItsOwnerTakesBackBeforeItIsThereIsNotMissed(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, "read gone, owner deletes", nil)
	going := incident.Read{
		Origin: incident.Origin{Time: n.now.Add(10 * time.Second), Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a",
		Condition: incident.Deleting, State: "DELETING", Incarnation: events.Incarnation{Zone: "us-west4-a", ID: "7799", Created: n.now.Add(-time.Second)},
	}
	n.now = going.Time
	n.w, _, _ = advance(p, n.w, going, n.now)
	n = plays(t, p, n, [][2]string{{"llama-8b read gone", "peace"}, {"a while", "peace"}, {"tick", "peace"}})
	if s := n.w.Slices[0]; !s.IsReleased() || n.w.Incident != nil {
		t.Errorf("it is missed: %s", tale(n.w))
	}
	// What they create and keep is looked after again.
	going.Condition, going.State, going.Time = incident.Ready, "READY", n.now.Add(time.Minute)
	going.Incarnation.ID, going.Incarnation.Created = "7800", n.now
	if n.w, _, _ = advance(p, n.w, going, going.Time); n.w.Slices[0].IsReleased() {
		t.Error("what its owner has created again is not looked after")
	}
}

// TestWhatItsOwnerDeletesTwiceStaysDeleted: they delete it, create it, and delete that before anybody has read it. The second word is as
// good as the first.
func TestWhatItsOwnerDeletesTwiceStaysDeleted(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, "owner deletes, read gone", nil)
	n.now = n.now.Add(time.Hour)
	created := n.now
	n = at1(t, p, n, "owner creates")
	n = at1(t, p, n, "owner deletes")
	n.now = n.now.Add(time.Minute)
	n.w, _, _ = advance(p, n.w, incident.Read{
		Origin: incident.Origin{Time: n.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: incident.Deleting, State: "DELETING",
		Incarnation: events.Incarnation{Zone: "us-west4-a", ID: "7799", Created: created},
	}, n.now)
	n = at1(t, p, n, "read gone")
	n.now = n.now.Add(2 * incident.Grace)
	if n = at1(t, p, n, "tick"); n.w.Incident != nil {
		t.Errorf("it is created against its owner's word: %s", tale(n.w))
	}
}

// TestWhatItsOwnerOrdersInAnotherZoneIsWaitedForThere: their queued resource waits for capacity. The zone that the slice has left says
// each minute that it is gone; whoever took that for a loss would make a second one.
func TestWhatItsOwnerOrdersInAnotherZoneIsWaitedForThere(t *testing.T) {
	for name, begins := range map[string][]string{"in quiet times": {"read gone"}, "in the middle of an incident": {"stopped for", "read gone"}} {
		t.Run(name, func(t *testing.T) {
			w := quiet(true)
			w.Slices[0].Group = "q"
			r := newTour(t, w, "everything")
			ordered := r.now
			r.learn("llama-8b", begins...)
			read := func(c incident.Condition, life events.Incarnation) string {
				return r.give(incident.Read{
					Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: life.Zone, Condition: c, State: string(c),
					Incarnation: life, Ordered: ordered,
					Facts: incident.Facts{Group: "q", Workers: 4, Reclaimable: true, Spec: "s", Label: "night"}, Directory: r.w.Directory,
				})
			}
			for range 4 * int(incident.Grace/time.Minute) {
				asked := read(incident.Creating, events.Incarnation{Zone: far})
				asked += r.give(incident.Read{Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: incident.Gone})
				if asked += r.tick(time.Minute); asked != "" || r.w.Incident != nil {
					t.Fatalf("asked for is %q, and it stands as %s", asked, stands(r.w, nil))
				}
			}
			if asked := read(incident.Ready, r.made(far, "9001")) + r.tick(time.Minute); asked != "admit llama-8b=9001" {
				t.Errorf("asked for is %q, and it stands as %s", asked, stands(r.w, nil))
			}
		})
	}
}

// TestALateDeletionCountsWhereOursCameToNothing: what was to replace the slice was cancelled and is gone, when the entry comes that its
// owner had deleted it. A person's word brings it back no more.
func TestALateDeletionCountsWhereOursCameToNothing(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "preempted", "read lost")
	r.learn("", "intend delete 0", "accepted delete 0")
	deleted := r.now
	r.learn("llama-8b", "read gone")
	r.learn("", "intend create 0", "accepted create 0")
	r.give(incident.Read{
		Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: incident.Creating,
		Incarnation: r.made("us-west4-a", "9001"), Incident: r.w.Incident.ID,
	})
	r.learn("llama-8b", "cancelled", "read gone")
	for i := 0; i < 60 && r.w.Incident != nil; i++ {
		r.tick(time.Minute)
		r.learn("llama-8b", "read gone")
	}
	if r.w.Incident != nil {
		t.Fatalf("it stands as %s", tale(r.w))
	}
	r.give(incident.Called{Origin: incident.Origin{ID: "late", Time: deleted, Rank: events.RankAudit}, Slice: "llama-8b", Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com"})
	if why := r.w.NothingToRetry(r.now); either(!r.w.Slices[0].IsReleased() || why == "", r.w.Incident != nil, "retry") {
		t.Errorf("its owner deleted it, and it may be made again: %+v", r.w.Slices[0])
	}
}
