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
	n := at(t, "everything", true, "read lost, read deleting")
	n.give(evidence.Answered{Origin: n.reading(), Request: n.begins(events.ActionDelete, "llama-8b"), NoCall: evidence.Uncalled, Text: "it is already being deleted"})
	n.history("a minute", "deleting", "read deleting", "deleting", "a minute", "deleting", "read lost", "deleting: delete llama-8b")
}

// TestADocumentSaysWhenItIsDue: an open incident is looked at at each tick; else the least time counts at which time alone changes something.
func TestADocumentSaysWhenItIsDue(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]time.Duration{"tick": -1, "read unhealthy": bounds.SickFor, "read lost": 0} {
		n := at(t, "everything", true, path)
		if due := n.w.Due(); due.IsZero() != (want < 0) || want >= 0 && (!due.Equal(n.now.Add(want)) || !n.w.HasDue(n.now)) {
			t.Errorf("%s: it is due at %v, want %v from %v", path, due, want, n.now)
		}
	}
}

// TestAReadingThatNobodyWaitsForIsNotWritten: it shows what is known, or only calls it by another word.
func TestAReadingThatNobodyWaitsForIsNotWritten(t *testing.T) {
	t.Parallel()
	for path, state := range map[string]string{"read unhealthy, 6m": "UNHEALTHY", "read lost, a minute, read gone": "not found"} {
		n := at(t, "everything", true, path)
		n.opens(true)
		s := n.w.Slices[0]
		again := n.read(&s, s.Condition, s.Incarnation)
		again.State = state
		if _, sent, changed := incident.Advance(n.p, n.w, again, n.now); changed || sent != nil {
			t.Errorf("it is %s still: changed %v, and %v is sent", s.Condition, changed, sent)
		}
	}
}

// TestAQuestionIsShownWithItsCost, and with the call that is wanted once it is approved.
func TestAQuestionIsShownWithItsCost(t *testing.T) {
	t.Parallel()
	n := at(t, "ask", true, "read lost").later(time.Hour)
	if v := n.w.Shown(n.now); v.Wait.For != view.Approving || v.Incident.Granted || v.Incident.Cost.Away() != time.Hour || v.Incident.Cost.ChipHours <= 0 || v.Incident.Cost.ChargedTo != "infrastructure" {
		t.Errorf("it waits for %+v, and an hour costs %+v", v.Wait, v.Incident.Cost)
	}
	if v := n.goes("approved").w.Shown(n.now); v.Need != nil || len(v.Requests) != 1 || v.Requests[0].Stage != view.StageWanted {
		t.Errorf("once it is approved it needs %+v, and asks for %+v", v.Need, v.Requests)
	}
}
