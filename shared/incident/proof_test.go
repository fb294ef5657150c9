package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestAnEntryOfATopicProvesNoLoss gives a loss as a topic delivers it. The slice is gone, and perhaps its owner deleted it: it is
// created again only when patrol has found the loss in the audit log itself.
func TestAnEntryOfATopicProvesNoLoss(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "preempted, it says")
	if asked := r.learn("llama-8b", "read gone"); asked != "" {
		t.Fatalf("asked for is %q", asked)
	}
	if got := phaseOf(r.w); got != string(incident.PhaseGrace) {
		t.Fatalf("it stands at %s", tale(r.w))
	}
	if !readsOf(r.w, r.now).Has(incident.ReadDeleter, "llama-8b") {
		t.Fatal("patrol is not to ask the audit log")
	}
	asked := r.learn("llama-8b", "preempted") // which patrol found there
	if either(false, asked == "create llama-8b", "at once") {
		return
	}
	if !readsOf(r.w, r.now).Has(incident.ReadSlices, "") {
		t.Fatal("nobody is to look")
	}
	if asked := r.learn("llama-8b", "read gone"); asked != "create llama-8b" {
		t.Errorf("asked for is %q: %s", asked, tale(r.w))
	}
}

// TestSilenceOfTheOwnerIsAskedFor lets the grace pass. Only an answer of the audit log that names nobody, given after it, proves that
// no owner deleted the slice. Where the log cannot be read, a person is told, and nothing is created.
func TestSilenceOfTheOwnerIsAskedFor(t *testing.T) {
	for _, opened := range []bool{false, true} {
		r := newTour(t, quiet(true), "everything")
		if opened {
			r.learn("llama-8b", "preempted, it says")
		}
		r.learn("llama-8b", "read gone")
		blind := func() (asked string) {
			r.now = r.now.Add(time.Minute)
			var sent []events.Event
			r.w, sent, _ = advance(policies["everything"], r.w, incident.Ticked{}, r.now)
			for _, e := range sent {
				asked += asks(e)
			}
			return asked
		}
		for end := r.now.Add(incident.Grace + incident.AuditFor - 5*time.Minute); r.now.Before(end); {
			if asked := blind(); strings.Contains(asked, "create") {
				t.Fatalf("opened %v: after %v nobody has asked the log, and asked for is %q", opened, r.now.Sub(start), asked)
			}
		}
		told, silent := *r, *r
		r = &silent
		for range 10 {
			blind()
		}
		if c := r.w.Closed; c == nil || c.Outcome != incident.Escalated || c.Code != incident.CodeAuditUnread {
			t.Errorf("opened %v: no person was told: %s", opened, tale(r.w))
		}
		r = &told
		if asked := r.tick(time.Minute); asked != "create llama-8b" {
			t.Errorf("opened %v: the log names nobody, and asked for is %q: %s", opened, asked, tale(r.w))
		}
	}
}

// TestUnseenLifeThatIsGoneIsToldOnce is about a slice of a queued resource that vanished before any reading showed its node. A person
// hears of its end once, as of any other.
func TestUnseenLifeThatIsGoneIsToldOnce(t *testing.T) {
	for _, policy := range []string{"everything", "watch"} {
		w := quiet(true)
		s := &w.Slices[0].Life
		s.Incarnation, s.Admission, s.Condition, s.State = events.Incarnation{}, "", incident.Stopped, "SUSPENDING"
		r := newTour(t, w, policy)
		told := 0
		for end := r.now.Add(24 * time.Hour); r.now.Before(end); {
			r.now = r.now.Add(time.Minute)
			gone := incident.Read{
				Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading},
				Slice:  "llama-8b", Zone: "us-west4-a", Condition: incident.Gone,
			}
			for _, e := range []incident.Evidence{gone, incident.Ticked{}} {
				var sent []events.Event
				r.w, sent, _ = advance(policies[r.policy], r.w, e, r.now)
				for _, e := range sent {
					if _, closed := e.(events.IncidentClosed); closed {
						told++
					}
				}
			}
		}
		if told != 1 {
			t.Errorf("policy %s: %d incidents tell of it: %s", policy, told, tale(r.w))
		}
	}
}
