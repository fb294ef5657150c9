package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// abused fails unless people were told, by an incident that is over, that abuse is suspected. It returns that incident's ID.
func (n *story) abused() string {
	n.Helper()
	if got := n.ended(); got.Code != reason.CodeAbuse || got.Outcome != view.Escalated && got.Outcome != view.Observed {
		n.Fatalf("it ended %+v:\n%s", got, n.tale())
	}
	return n.w.Closed.ID
}

// TestAbuseStopsAllAutomation: the symptom may stand on a slice of which nothing else is wrong, and outlives it. People are told once.
func TestAbuseStopsAllAutomation(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"everything", "ask", "spot", "watch"} {
		for _, path := range []string{
			"preempted", "read lost", "host error, read unhealthy", "ongoing", "exit 139, gave up, its verdict", "pending, later, tick", "read gone, later, tick",
			"crew notice",
		} {
			n := at(t, name, path != "pending, later, tick", "abuse")
			if n.w.Incident != nil || !n.w.Slices[0].Suspected {
				t.Fatalf("abuse alone opens one:\n%s", n.tale())
			}
			told := n.goes(path).abused()
			for _, step := range []string{"read lost", "terminated", "ongoing", "exit 1", "gave up", "crew notice", "tick"} {
				if n.play(step); n.w.Incident != nil || n.w.Closed.ID != told {
					t.Fatalf("%s, %s, %s: people are told again:\n%s", name, path, step, n.tale())
				}
			}
			if due := n.w.Due(); !due.IsZero() {
				t.Errorf("%s, %s: something is due at %v", name, path, due)
			}
		}
	}
}

// TestASuspicionIsTakenBackByAReading of a slice that is usable, which is not older than the one that showed it.
func TestASuspicionIsTakenBackByAReading(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "abuse and lost") // one reading shows both, and nothing leaves with it
	n.wants()
	n.abused()
	older := func(c evidence.Condition) func(*evidence.Read) {
		return func(e *evidence.Read) { e.Time, e.Abuse = n.now.Add(-time.Second), c == evidence.Lost }
	}
	if n.reads("llama-8b", evidence.Ready, older(evidence.Ready)); !n.w.Slices[0].Suspected {
		t.Error("an older reading takes the suspicion back")
	}
	if n.goes("read ready"); n.w.Slices[0].Suspected {
		t.Error("the symptom is gone, and nothing is done")
	}
	n.goes("1m, preempted")
	if n.reads("llama-8b", evidence.Ready, func(e *evidence.Read) { e.Time, e.Abuse = n.now.Add(-2*time.Minute), true }); n.w.Slices[0].Suspected || n.w.Incident == nil {
		t.Errorf("an older reading brings the suspicion back:\n%s", n.tale())
	}
	n.history("read lost", "deleting: delete llama-8b")
}

// TestASuspicionOfWhatIsNotUsableEndsAtAPersonsWord: no reading of it takes the symptom off again. One that shows it stops everything again.
func TestASuspicionOfWhatIsNotUsableEndsAtAPersonsWord(t *testing.T) {
	t.Parallel()
	for path, opens := range map[string]string{
		"read lost":                           "deleting: delete llama-8b",
		"read gone, later, tick":              "creating: create llama-8b",
		"read unhealthy, a while, tick":       "deleting: delete llama-8b",
		"read unclear, a while, tick":         "deleting: delete llama-8b",
		"read stopped, a while, unsaid, tick": "starting: start llama-8b",
	} {
		n := newStory(t, true, "llama-8b").with(single).goes("abuse, " + path)
		told := n.abused()
		if !strings.Contains(n.ended().Advice.String(), "pitstop retry llama-8b") {
			t.Errorf("%s: it advises %s", path, n.ended().Advice)
		}
		reading := strings.Split(path, ",")[0]
		n.toldOnce(t, path, "half a day, "+reading+", tick")
		n.later(6*24*time.Hour).goes(reading+", tick").history("retried", opens, "abuse and lost", "escalated")
		if n.abused() == told {
			t.Errorf("%s: the symptom is there again, and nobody is told", path)
		}
	}
	n := at(t, "everything", true, "abuse, exit 139, gave up, its verdict, retried")
	if n.w.Incident != nil || !n.w.Slices[0].Suspected || !strings.Contains(n.w.NothingToRetry(n.now), "PROJECT_ABUSE") {
		t.Errorf("what shows the symptom is tried again:\n%s", n.tale())
	}
	multi(t, true).history("a abuse and lost", "escalated", "b read lost", "escalated", "tick", "escalated", "a retried", "deleting: delete a, delete b")
}

// TestAbuseStopsACleanUp: a deletion that nobody has begun is not made. One that is under way is waited for, and what is left is told once.
func TestAbuseStopsACleanUp(t *testing.T) {
	t.Parallel()
	for name, then := range map[string][]string{
		"the symptom is gone":              {"b abuse", "clearing", "a abuse", "clearing", "tick", "clearing", "a read ready", "clearing: delete a"}, // b is its owner's
		"no reading can take it back":      {"b abuse", "clearing", "a abuse", "clearing", "a read lost", "clearing", "tick", "clearing", "a retried", "clearing: delete a"},
		"a call that is under way goes on": {"intend delete", "clearing", "a abuse", "clearing", "accepted delete", "clearing", "a read gone", "released"},
		"nobody settles it":                {"b abuse", "clearing", "a abuse", "clearing", "later", "", "tick", "escalated"},
	} {
		n := multi(t, true).goes("a read lost, do, a read gone, do, b read unhealthy, a read ours, b owner deletes")
		n.wants("delete a")
		if n.history(then...); name != "nobody settles it" {
			continue
		}
		if told := n.abused(); !strings.Contains(n.ended().Advice.String(), "pitstop-incident="+told) {
			t.Errorf("it advises %s", n.ended().Advice)
		}
		n.toldOnce(t, name, "a abuse, a abuse and lost, tick, an hour")
	}
}
