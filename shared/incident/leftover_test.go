package incident_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
)

// leftBehind is a workload whose owner took over while a creation of Pitstop's was under way; and what was ordered, which comes late.
func leftBehind(t *testing.T) (*story, evidence.Read) {
	n := at(t, "everything", true, "preempted, read lost, do, read gone, does create, owner deletes, done create, read gone", inQueue)
	n.opens(false)
	n.now = n.now.Add(10 * time.Minute)
	e := n.read(&n.w.Slices[0], evidence.Creating, events.Incarnation{})
	e.State, e.Incident, e.Ordered = "WAITING_FOR_RESOURCES", n.w.Made[0].Incident, n.w.Made[0].Opened.Add(2*time.Second)
	return n, e
}

// TestNothingOfOursKeepsQuotaBehindAnIncident: what comes when its incident is over is deleted; and nothing that a person has made is.
func TestNothingOfOursKeepsQuotaBehindAnIncident(t *testing.T) {
	t.Parallel()
	const goes = "clearing: delete llama-8b"
	comes := func(c evidence.Condition) func(*evidence.Read, incident.Making) {
		return func(e *evidence.Read, m incident.Making) {
			e.Condition, e.Incarnation = c, events.Incarnation{Zone: e.Zone, ID: "9999", Created: m.Closed.Add(time.Hour)}
		}
	}
	is := func(c evidence.Condition) func(*evidence.Read, incident.Making) {
		return func(e *evidence.Read, _ incident.Making) { e.Condition = c }
	}
	for name, c := range map[string]struct {
		policy string
		but    func(*evidence.Read, incident.Making)
		want   string
	}{
		"a queued resource waits":                 {"everything", is(evidence.Creating), goes},
		"a queued resource has failed":            {"everything", is(evidence.Lost), goes},
		"it was filled after all":                 {"everything", comes(evidence.Ready), goes},
		"it is being filled":                      {"everything", comes(evidence.Creating), goes},
		"nothing may be done":                     {"watch", is(evidence.Creating), "observed"},
		"the policy cannot be read":               {"unreadable", is(evidence.Creating), "released"},
		"a person has ordered it":                 {"everything", func(e *evidence.Read, _ incident.Making) { e.Incident = "" }, "released"},
		"a person has copied the label":           {"everything", func(e *evidence.Read, m incident.Making) { e.Ordered = m.Closed.Add(time.Hour) }, "released"},
		"a person has copied the label of before": {"everything", func(e *evidence.Read, m incident.Making) { e.Ordered = m.Opened.Add(-time.Hour) }, "released"},
		"another incident is named":               {"everything", func(e *evidence.Read, _ incident.Making) { e.Incident += "0" }, "released"},
		"somebody deletes it":                     {"everything", is(evidence.Deleting), "released"},
	} {
		n, e := leftBehind(t)
		before := n.w.Closed.ID
		c.but(&e, n.w.Made[0])
		if got := n.stands(n.under(c.policy).give(e).sent); got != c.want {
			t.Errorf("%s: it stands at %q, want %q:\n%s", name, got, c.want, n.tale())
		}
		told := n.newest()
		n.now = n.now.Add(time.Minute)
		e.Time = n.now
		if n.give(e); told != before && n.newest() != told {
			t.Errorf("%s: it is told twice", name)
		}
	}
}

// comesLate has a reading show what an incident has ordered that is over.
func (n *story) comesLate(slice, zone, id string) *story {
	n.w.Made = []incident.Making{{Incident: "x", Opened: start.Add(-2 * time.Hour), Closed: start.Add(-30 * time.Minute)}}
	return n.reads(slice, evidence.Ready, func(e *evidence.Read) {
		e.Zone, e.Incident, e.Incarnation = zone, "x", events.Incarnation{Zone: zone, ID: id, Created: start.Add(-45 * time.Minute)}
	})
}

// TestWhatCameLateIsCleanedUpToItsEnd, also when it is filled before the deletion is called for.
func TestWhatCameLateIsCleanedUpToItsEnd(t *testing.T) {
	t.Parallel()
	n, e := leftBehind(t)
	n.give(e)
	n.now = n.now.Add(time.Second)
	e.Origin, e.Condition, e.Incarnation = n.reading(), evidence.Ready, events.Incarnation{Zone: e.Zone, ID: "9999", Created: n.now}
	if r, is := n.give(e).out[0].(events.RecreateRequested); !is || !r.Incarnation.Same(e.Incarnation) {
		t.Fatalf("sent %+v, want the deletion of the life that has come", n.out)
	}
	n.history("does delete", "clearing", "read gone", "released")
	if n.ended().Code != reason.CodeLeftBehind || !n.w.Due().IsZero() {
		t.Errorf("it is due at %s:\n%s", n.w.Due(), n.tale())
	}
}

// TestWhatIsCleanedUpIsNotMissed: its slice is as lost as a person was told that it is.
func TestWhatIsCleanedUpIsNotMissed(t *testing.T) {
	t.Parallel()
	n := queued(t, true).goes("a read gone, b read gone, 5m")
	for _, s := range n.w.Slices {
		n.w.Told = append(n.w.Told, incident.Told{Of: incident.ToldEnd, Slice: s.Name, Life: s.Incarnation.ID, At: n.now})
	}
	n.comesLate("a", "us-west4-a", "666").comesLate("b", "us-west4-a", "667")
	n.goes("does delete, a read gone, b read gone").opens(false)
	if code, sent := n.ended().Code, n.passes(3*time.Hour); code != reason.CodeLeftBehind || sent != nil || n.w.Incident != nil {
		t.Errorf("asked for is %q:\n%s", sent, n.tale())
	}
}

// TestWhatTheyCreateBesideOursIsTaken: ours goes, and theirs is the slice, though it is the older life of the two.
func TestWhatTheyCreateBesideOursIsTaken(t *testing.T) {
	t.Parallel()
	for path, zones := range map[string][2]string{ // of ours, and of theirs
		"does create": {"us-west4-a", "us-west4-b"}, "stockout create, 10s, does create": {"us-west4-b", "us-west4-a"}, // which is queued, and waits
	} {
		n := at(t, "everything", true, created+", "+path, inQueue)
		waits := zones[0] == "us-west4-b"
		theirs := events.Incarnation{Zone: zones[1], ID: "9001", Created: n.now.Add(-2 * time.Second)}
		reads := func(condition evidence.Condition, life events.Incarnation, by string) {
			n.later(time.Second).reads("llama-8b", condition, func(e *evidence.Read) {
				if e.Zone, e.Incident, e.Ordered = life.Zone, by, life.Created; by == "" || !waits {
					e.Incarnation = life
				} else {
					e.Incarnation = events.Incarnation{}
				}
			})
		}
		reads(evidence.Creating, events.Incarnation{Zone: zones[0], ID: "9002", Created: n.now}, n.w.Incident.ID)
		if waits {
			theirs.Created = n.now
		}
		if reads(evidence.Ready, theirs, ""); !waits {
			n.play("owner creates")
		}
		if got := n.stands(n.play("10m")); !strings.HasPrefix(got, "clearing") || n.w.Effects[n.effect(events.ActionDelete, "llama-8b")].Zone != zones[0] {
			t.Fatalf("%s: it stands at %q:\n%s", path, got, n.tale())
		}
		n.play("does delete")
		if reads(evidence.Gone, events.Incarnation{Zone: zones[0]}, ""); n.ended().Code != reason.CodeTakenOver {
			t.Errorf("%s: %s", path, n.tale())
		}
		reads(evidence.Ready, theirs, "")
		if sent := append(n.sent, n.passes(time.Minute)...); sent != nil || !n.w.Slices[0].Incarnation.Same(theirs) || n.w.Incident != nil {
			t.Errorf("%s: asked for is %q, it lives as %v:\n%s", path, sent, n.w.Slices[0].Incarnation, n.tale())
		}
	}
}

// TestALifeIsFormerBehindTheNext, unless somebody ordered it elsewhere before Pitstop made its own, which is gone.
func TestALifeIsFormerBehindTheNext(t *testing.T) {
	t.Parallel()
	const near, far = "us-west4-a", "us-west4-b"
	is := func(zone string, minute int) events.Incarnation {
		return events.Incarnation{Zone: zone, ID: fmt.Sprint(minute), Created: start.Add(time.Duration(minute) * time.Minute)}
	}
	for name, c := range map[string]struct {
		admitted, life events.Incarnation
		condition      evidence.Condition // of the last one, which is of the third minute here
		want           bool
	}{
		"an older one is": {is(near, 3), is(far, 2), evidence.Gone, true}, "a younger one is not": {is(near, 3), is(far, 4), evidence.Gone, false},
		"one between the admitted one and ours that went":       {is(near, 1), is(far, 2), evidence.Gone, false},
		"but not where ours was":                                {is(near, 1), is(near, 2), evidence.Gone, true},
		"nor while ours is there":                               {is(near, 1), is(far, 2), evidence.Creating, true},
		"nor the admitted one":                                  {is(far, 1), is(far, 1), evidence.Gone, true},
		"nor one before it":                                     {is(near, 2), is(far, 1), evidence.Gone, true},
		"of one whose age is unknown nobody can say that it is": {is(near, 1), events.Incarnation{Zone: far, ID: "x"}, evidence.Gone, false},
	} {
		n := newStory(t, true, "a")
		s := &n.w.Slices[0]
		s.Incarnation, s.Zone, s.Condition = is(near, 3), near, c.condition
		if n.w.Lease.Sure.Lives = []events.Admission{{Slice: "a", Incarnation: c.admitted}}; !c.admitted.Same(s.Incarnation) {
			s.Maker, s.Former = "x", []incident.Life{{Incarnation: c.admitted, Zone: c.admitted.Zone, Condition: evidence.Gone}}
		}
		if got := n.w.IsFormer("a", c.life); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTrainingThatBeganInWhatIsCleanedUpIsKept: no slice of a Multislice trains alone, so where the crew of one tells of an attempt both train.
func TestTrainingThatBeganInWhatIsCleanedUpIsKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		group, tries string
		keeps        bool
	}{
		"nobody has tried to delete it":             {"qr", "a started", true},
		"a try was refused long ago":                {"qr", "state delete, 20m, intend delete, 6m, a started", true},
		"a try may have been made in the meantime":  {"qr", "state delete, 20m, intend delete, a started", false},
		"a later line shows that it outlived a try": {"qr", "state delete, 20m, intend delete, a started, 6m, a started", true},
		"the next try is only asked for":            {"qr", "state delete, 20m, a started", true},
		"each is a node of its own":                 {"", "a started", true},
	} {
		n := multi(t, true).with(func(w *incident.Workload) { w.Slices[0].Group, w.Slices[1].Group = c.group, c.group })
		n.goes("a preempted, a read lost, b read lost, do, a read gone, b read gone, do, cancelled, a read ours, a mapped, b read ours, b mapped")
		n.goes(strings.ReplaceAll(c.tries, "state", string(reason.NotInState)) + ", a read ready, b read ready")
		if kept := n.w.Incident == nil && n.w.Slice("a").Maker == "" && n.w.Slice("b").Maker == ""; kept != c.keeps {
			t.Errorf("%s: kept is %v:\n%s", name, kept, n.tale())
		}
	}
}

// TestACleanUpKeepsWhatTrains: a crew may put itself into the place of what was lost. What its owner has deleted goes all the same.
func TestACleanUpKeepsWhatTrains(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"cancelled": "released", "owner deletes": "clearing"} {
		n := at(t, "everything", true, "preempted, read lost, do, read gone, do, "+word)
		n.later(time.Second).reads("llama-8b", evidence.Ready, func(e *evidence.Read) { // it was made before that word
			e.Incident, e.Incarnation = n.w.Incident.ID, events.Incarnation{Zone: e.Zone, ID: "8001", Created: n.w.Incident.Opened.Add(time.Second)}
		}).goes("mapped")
		n.give(evidence.Held{Origin: n.reading(), Request: n.request(events.ActionDelete, "llama-8b"), Code: reason.CodeBraked, Why: "30 in this hour", Until: n.now.Add(50 * time.Minute)})
		n.history("7m", "clearing", "started", want)
		if sent := n.passes(time.Hour); slices.Contains(sent, "delete llama-8b") != (want == "clearing") {
			t.Errorf("%s: asked for is %q:\n%s", word, sent, n.tale())
		}
	}
}

// TestAHoldForgetsNoEarlierCall: a delivery that saved its intent may have called before it died, and the next one is held back.
func TestAHoldForgetsNoEarlierCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		again, begun bool
		want         string
	}{
		"behind its own intent, and nobody came before": {false, true, "released"},
		"behind its own intent":                         {true, true, "clearing"},
		"before it":                                     {false, false, "clearing"},
	} {
		n := at(t, "everything", true, "preempted, read gone, intend create")
		if n.now = n.now.Add(bounds.CallFor); c.again {
			n.play("intend create")
		}
		n.give(evidence.Held{Origin: n.reading(), Request: n.request(events.ActionCreate, "llama-8b"), Code: reason.CodePaused, Why: "paused by ann", Begun: c.begun})
		if got := n.stands(n.play("cancelled")); got != c.want {
			t.Errorf("%s: it stands at %q, want %q:\n%s", name, got, c.want, n.tale())
		}
	}
}

// TestALeftoverHidesNoLoss: another slice is gone while what came late of this one is cleaned up.
func TestALeftoverHidesNoLoss(t *testing.T) {
	t.Parallel()
	n := multi(t, true).goes("b read gone, 5m").comesLate("a", "us-west4-b", "666").goes("tick")
	n.opens(true)
	for i := 0; i < 200 && !n.isWanted(events.ActionCreate); i++ {
		n.goes("a minute, tick")
	}
	if !n.isWanted(events.ActionCreate) {
		t.Errorf("b is gone, and nobody makes it again:\n%s", n.tale())
	}
}

// TestASecondLifeGoesUnlessTrainingMayRunThere: without a directory nobody knows where that is, and people are told of it once.
func TestASecondLifeGoesUnlessTrainingMayRunThere(t *testing.T) {
	t.Parallel()
	for _, directory := range []string{"gs://ckpt/llama-8b", ""} {
		n := newStory(t, true, "llama-8b")
		n.w.Directory = directory
		told, deletes := map[string]bool{}, false
		for range 90 {
			n.goes("1m, steps").comesLate("llama-8b", "us-west4-b", "9002")
			deletes = deletes || slices.Contains(n.sent, "delete llama-8b")
			if n.ended().Code == reason.CodeLeftBehind && !n.ended().Advice.IsZero() {
				told[n.newest()] = true
			}
		}
		if deletes != (directory != "") || len(told) == 1 != (directory == "") || n.w.Slices[0].Zone != "us-west4-a" {
			t.Errorf("directory %q: deleted %v, told are %v, and the slice is in %s:\n%s", directory, deletes, told, n.w.Slices[0].Zone, n.tale())
		}
	}
}

// TestASecondLifeIsTheSliceOnceTheFirstIsGone: nothing is made again for it.
func TestASecondLifeIsTheSliceOnceTheFirstIsGone(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "read lost, intend delete, read gone, transient create, 2m")
	id := n.w.Incident.ID
	made := func(c evidence.Condition, zone, life string) {
		n.later(time.Second).reads("llama-8b", c, func(e *evidence.Read) {
			e.Zone, e.Incident, e.Incarnation = zone, id, events.Incarnation{Zone: zone, ID: life, Created: n.now}
		})
	}
	made(evidence.Creating, "us-west4-a", "9001")
	made(evidence.Ready, "us-west4-b", "9002")
	n.goes("1m, read gone")
	if s := n.w.Slice("llama-8b"); s.Incarnation.ID != "9002" || n.isWanted(events.ActionCreate) || !n.isWanted(events.ActionAdmit) {
		t.Errorf("the slice is %v, and wanted are %+v", s.Incarnation, n.w.Effects)
	}
}

// TestASecondLifeThatComesToNothingIsMadeAgain: nobody but the incident has ordered it, so it is not its owner's.
func TestASecondLifeThatComesToNothingIsMadeAgain(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "read lost, intend delete, read gone, transient create, 2m")
	id := n.w.Incident.ID
	for i, zone := range n.p.Zones {
		n.later(time.Second).reads("llama-8b", evidence.Creating, func(e *evidence.Read) {
			e.Zone, e.Incident, e.Incarnation = zone, id, events.Incarnation{Zone: zone, ID: fmt.Sprint(9001 + i), Created: n.now}
		})
	}
	if n.goes("1m, read gone, 1m, read gone"); !n.isWanted(events.ActionCreate) {
		t.Errorf("it is not made again:\n%s", n.tale())
	}
}
