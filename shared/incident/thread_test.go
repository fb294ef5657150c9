package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// TestADeletionThatSomebodyElseBeganIsAskedForAgain once a reading shows that the slice is there all the same.
func TestADeletionThatSomebodyElseBeganIsAskedForAgain(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.reads("llama-8b", evidence.Lost).wants("delete llama-8b")
	n.reads("llama-8b", evidence.Deleting)
	r := n.begins(events.ActionDelete, "llama-8b")
	n.give(evidence.Answered{Origin: n.reading(), Request: r, NoCall: evidence.Uncalled, Text: "it is already being deleted"})
	n.now = n.now.Add(time.Minute)
	n.reads("llama-8b", evidence.Deleting).wants()
	n.now = n.now.Add(time.Minute)
	n.reads("llama-8b", evidence.Lost).wants("delete llama-8b")
}

// TestHearsayOpensNothingForAFinishedTraining: its machines may stop as they like.
func TestHearsayOpensNothingForAFinishedTraining(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.w.Training.Attempt, n.w.Training.Verdict = 1, incident.Verdict{Attempt: 1, Finished: true, At: n.now}
	n.now = n.now.Add(time.Hour)
	from := evidence.Origin{ID: "entry", Time: n.now, Rank: events.RankAudit}
	n.give(evidence.Interrupted{Origin: from, Slice: "llama-8b", Cause: events.CauseMaintenance, Text: "a host stopped"})
	if n.w.Incident != nil || n.w.Closed != nil {
		t.Errorf("an incident was opened:\n%s", n.tale())
	}
}

// TestADocumentSaysWhenItIsDue: an open incident is looked at at each tick; else the least time counts at which time alone changes something.
func TestADocumentSaysWhenItIsDue(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	if due := n.w.Due(); !due.IsZero() {
		t.Errorf("a training that goes on is due at %v", due)
	}
	n.reads("llama-8b", evidence.Unhealthy)
	if due, want := n.w.Due(), n.now.Add(bounds.SickFor); !due.Equal(want) || !n.w.HasDue(n.now) {
		t.Errorf("a slice that is sick is due at %v, want %v", due, want)
	}
	n.reads("llama-8b", evidence.Lost)
	if due := n.w.Due(); n.w.Incident == nil || !due.Equal(n.w.Incident.Opened) {
		t.Errorf("an open incident is due at %v", due)
	}
}

// TestWhatIsShownComesFromFacts: the state in a word, what the incident waits for, its cost, and the question to a person.
func TestWhatIsShownComesFromFacts(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	if v := n.w.Shown(n.now); v.State != view.Trains && v.State != view.Beginning || v.Wait != nil || v.Need != nil {
		t.Errorf("in quiet times it is %s, waits for %v and needs %v", v.State, v.Wait, v.Need)
	}
	n.p.Switches.Recreate = 1 // ask
	n.reads("llama-8b", evidence.Lost)
	n.now = n.now.Add(time.Hour)
	v := n.w.Shown(n.now)
	if v.State != view.Recovers || v.Wait == nil || v.Wait.For != view.Approving || v.Need == nil || v.Incident.Granted {
		t.Fatalf("it is %s, waits for %+v and needs %+v", v.State, v.Wait, v.Need)
	}
	if c := v.Incident.Cost; c.Away() != time.Hour || c.ChipHours <= 0 || c.ChargedTo != "infrastructure" {
		t.Errorf("an hour costs %+v", c)
	}
	n.give(evidence.Approved{Origin: n.reading(), Word: evidence.Word{By: "ann"}, Incident: v.Incident.ID, Action: v.Incident.Asked})
	if v := n.w.Shown(n.now); v.Need != nil || len(v.Requests) != 1 || v.Requests[0].Stage != view.StageWanted {
		t.Errorf("once it is approved it needs %+v, and asks for %+v", v.Need, v.Requests)
	}
}

// TestPeopleHearOfEachStepOnce, and of none that passes in seconds.
func TestPeopleHearOfEachStepOnce(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	before := n.w
	n.reads("llama-8b", evidence.Lost)
	told := view.Updates(before.Shown(n.now), n.w.Shown(n.now))
	if len(told) != 1 || told[0].Phase != string(view.PhaseDeleting) || told[0].Validate() != nil {
		t.Fatalf("people hear %+v", told)
	}
	before = n.w
	n.begins(events.ActionDelete, "llama-8b")
	if again := view.Updates(before.Shown(n.now), n.w.Shown(n.now)); again != nil {
		t.Errorf("people hear again %+v", again)
	}
}

// TestAReadingThatNobodyWaitsForIsNotWritten: it shows what is known, or only calls it by another word.
func TestAReadingThatNobodyWaitsForIsNotWritten(t *testing.T) {
	t.Parallel()
	for c, state := range map[evidence.Condition]string{evidence.Unhealthy: "UNHEALTHY", evidence.Gone: "not found"} {
		n := newStory(t, true, "llama-8b")
		if c == evidence.Gone {
			n.reads("llama-8b", evidence.Lost)
			n.now = n.now.Add(time.Minute)
			n.reads("llama-8b", c)
		} else {
			n.reads("llama-8b", c)
			n.passes(bounds.SickFor + time.Minute)
		}
		if n.w.Incident == nil {
			t.Fatalf("%s opens no incident", c)
		}
		s := n.w.Slices[0]
		again := evidence.Read{Origin: n.reading(), Slice: s.Name, Zone: s.Zone, Condition: c, Incarnation: s.Incarnation, State: state, Facts: s.Facts}
		if _, sent, changed := incident.Advance(n.p, n.w, again, n.now); changed || sent != nil {
			t.Errorf("it is %s still: changed %v, and %v is sent", c, changed, sent)
		}
	}
}
