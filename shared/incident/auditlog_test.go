package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
)

// TestAnEntryOfATopicProvesNoLoss: anybody may publish there. Patrol has to find the loss in the audit log itself.
func TestAnEntryOfATopicProvesNoLoss(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.play("preempted, it says")
	if n.history("read gone", "grace"); !n.w.Reads(n.now).Has(incident.ReadDeleter, "llama-8b") {
		t.Error("patrol is not to ask the audit log")
	}
	n.history("preempted", "creating: create llama-8b")
}

// blind lets time pass in which nobody can read the audit log. It fails if the slice is created meanwhile.
func (n *story) blind(d time.Duration) {
	n.Helper()
	for end := n.now.Add(d); n.now.Before(end); {
		n.reads("llama-8b", evidence.Gone).wants()
		if n.passes(time.Minute); len(n.sent) > 0 {
			n.Fatalf("asked for is %q:\n%s", n.sent, n.tale())
		}
	}
}

// TestSilenceOfTheOwnerIsAskedFor: only an answer that names nobody proves it. Where the log cannot be read, a person is told, and nothing is created.
func TestSilenceOfTheOwnerIsAskedFor(t *testing.T) {
	t.Parallel()
	const told, created = "escalated " + reason.CodeAuditUnread, "creating: create llama-8b"
	end := func(n *story) reason.Code { return reason.Code(n.stands(nil)) + " " + n.ended().Code }
	for _, first := range []string{"tick", "preempted, it says"} {
		n := newStory(t, true, "llama-8b")
		n.play(first)
		n.play("read gone")
		n.blind(bounds.Grace + bounds.AuditFor - 5*time.Minute)
		asked := *n
		asked.history("tick", created)
		if n.blind(10 * time.Minute); end(n) != told {
			t.Errorf("%s: no person was told:\n%s", first, n.tale())
		}
		n.blind(24 * time.Hour)
		n.play("retried")
		if in := n.w.Incident; in == nil || !in.Status.Until.Equal(in.Opened.Add(bounds.AuditFor)) {
			t.Fatalf("%s: its word does nothing:\n%s", first, n.tale())
		}
		n.blind(bounds.AuditFor - 5*time.Minute)
		asked = *n
		asked.history("tick", created)
		if n.blind(15 * time.Minute); end(n) != told || !strings.HasPrefix(n.w.Closed.ID, "llama-8b-20261113") {
			t.Errorf("%s: nobody is told again:\n%s", first, n.tale())
		}
	}
}

// TestUnseenLifeThatIsGoneIsToldOnce: a queued resource vanished before any reading showed its node. A person hears of its end once, as of any other.
func TestUnseenLifeThatIsGoneIsToldOnce(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"everything", "watch"} {
		n := at(t, policy, true, "tick")
		s, ended := &n.w.Slices[0].Life, map[string]bool{}
		s.Incarnation, s.Condition, s.State = events.Incarnation{}, evidence.Stopped, "SUSPENDING"
		for range 24 * 60 {
			n.reads("llama-8b", evidence.Gone)
			if n.passes(time.Minute); n.w.Closed != nil {
				ended[n.w.Closed.ID] = true
			}
		}
		if len(ended) != 1 {
			t.Errorf("policy %s: %d incidents tell of it:\n%s", policy, len(ended), n.tale())
		}
	}
}
