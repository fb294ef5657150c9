package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/incident"
)

// deletionCalled is an idle deletion that was begun, and unanswered one that failed in passing: it may have taken effect.
const (
	deletionCalled = idle + ", " + waits + ", found verify 0, tick, intend delete 0"
	unanswered     = deletionCalled + ", transient delete 0"
)

func tourAt(t *testing.T, path string) *tour {
	t.Helper()
	n := at(t, policies["everything"], true, path, nil)
	return &tour{T: t, w: n.w, now: n.now, policy: "everything"}
}

// TestWhatWasNotDeletedIsMissedLikeAnyOther: a slice that is READY well behind the call was not deleted by it. Its training goes on, and
// when it is preempted that is told and made good, whatever opened and ended in between.
func TestWhatWasNotDeletedIsMissedLikeAnyOther(t *testing.T) {
	for name, between := range map[string][]string{
		"in quiet times": {"read ready", "progress"},
		"with crashes":   {"read ready", "exit 139", "started", "progress", "progress", "progress", "progress"},
	} {
		r := tourAt(t, unanswered)
		r.learn("llama-8b", "started")
		for range 5 {
			r.now = r.now.Add(time.Minute)
			r.learn("llama-8b", between...)
		}
		if r.w.Incident != nil {
			t.Fatalf("%s: it stands as %s", name, tale(r.w))
		}
		r.now = r.now.Add(time.Minute)
		if r.learn("llama-8b", "read gone", "preempted"); r.w.Incident == nil {
			r.tick(2 * incident.Grace)
		}
		if r.w.Incident == nil {
			t.Errorf("%s: it was lost at step %d, and nobody is told", name, r.w.Progress.Step)
		}
	}
}

// TestAnOwnersDeletionIsWaitedForWhereOursCameToNothing: a person has had it tried again, and their entry is on its way.
func TestAnOwnersDeletionIsWaitedForWhereOursCameToNothing(t *testing.T) {
	r := tourAt(t, unanswered)
	r.learn("llama-8b", "cancelled")
	r.now = r.now.Add(time.Minute)
	r.learn("llama-8b", "read ready", "retried")
	r.tick(time.Second)
	r.learn("", "intend restart 0", "accepted restart 0")
	r.learn("llama-8b", "started")
	for range 15 {
		r.now = r.now.Add(time.Minute)
		r.learn("llama-8b", "read ready")
	}
	if asked := r.learn("llama-8b", "read gone"); asked != "" || phaseOf(r.w) != string(incident.PhaseGrace) {
		t.Errorf("it stands as %s, and asked for is %q", stands(r.w, nil), asked)
	}
}

// TestHowAnIdleDeletionOfUnknownOutcomeIsTold: by what was read last.
func TestHowAnIdleDeletionOfUnknownOutcomeIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		path, want string
		wait       time.Duration
		then       [][2]string
	}{
		"kept at once":          {unanswered, "llama-8b may have been deleted", 0, [][2]string{{"llama-8b", "owner starts"}}},
		"usable well behind it": {unanswered, "llama-8b is kept", incident.CallFor + time.Minute, [][2]string{{"llama-8b", "read ready"}, {"llama-8b", "owner starts"}}},
		"stuck on its way out":  {unanswered, "the deletion of llama-8b did not end within", 0, [][2]string{{"llama-8b", "read deleting"}, {"llama-8b", "owner starts"}}},
		"forbidden by then":     {deletionCalled, "the switch is no", incident.CallFor, [][2]string{{"llama-8b", "read deleting"}, {"", "forbidden delete 0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := tourAt(t, c.path)
			r.now = r.now.Add(c.wait)
			for _, s := range c.then {
				r.learn(s[0], s[1])
			}
			for range 90 {
				if r.w.Incident == nil {
					break
				}
				r.tick(time.Minute)
			}
			if r.w.Incident != nil || !strings.Contains(r.w.Closed.Reason, c.want) {
				t.Fatalf("%s; want %q", tale(r.w), c.want)
			}
			if name == "forbidden by then" { // what went by our call comes back at a word, and nobody is asked who deleted it
				r.learn("llama-8b", "read gone")
				r.now = r.now.Add(time.Minute)
				if asked := r.learn("llama-8b", "retried", "read gone"); !strings.Contains(asked, "create") {
					t.Errorf("a retry asks for %q", asked)
				}
			}
		})
	}
	r := tourAt(t, deletionCalled)
	r.now = r.now.Add(incident.CallFor)
	r.learn("llama-8b", "read deleting")
	if r.learn("", "intend delete 0", "held delete 0"); r.w.Incident == nil {
		t.Errorf("it is paused on its way out, and told is %q", r.w.Closed.Reason)
	}
}

// TestAWordGivesACleanUpItsTimeAnew: it was held up for a suspicion nearly until its end.
func TestAWordGivesACleanUpItsTimeAnew(t *testing.T) {
	r := newTour(t, multi(true), "everything")
	r.learn("a", "preempted", "read lost")
	r.learn("", "intend delete 0", "accepted delete 0")
	r.learn("a", "read gone")
	r.learn("", "intend create 0", "accepted create 0")
	r.learn("a", "owner deletes", "read ours made")
	r.learn("b", "abuse and lost")
	for r.now.Before(r.w.Incident.Deadline.Add(-90 * time.Second)) {
		r.tick(time.Minute)
	}
	asked := r.learn("b", "retried") + r.tick(30*time.Second)
	if r.tick(time.Minute); r.w.Incident == nil || asked != "delete a" {
		t.Errorf("asked for was %q, and %s", asked, tale(r.w))
	}
}

// TestACleanUpThatIsGivenUpTellsWhatItLeavesToBeDeleted: the deletion of what stands idle follows that end too.
func TestACleanUpThatIsGivenUpTellsWhatItLeavesToBeDeleted(t *testing.T) {
	r := newTour(t, multi(true), "everything")
	for i := range r.w.Slices {
		r.w.Slices[i].Spec = "spec1"
	}
	r.learn("a", "preempted", "read lost")
	r.learn("", "intend delete 0", "accepted delete 0")
	r.learn("a", "read gone")
	r.learn("", "intend create 0", "accepted create 0")
	r.learn("a", "owner deletes", "read ours made")
	for r.w.Incident != nil {
		if effect := r.w.Effects[0]; effect.Begun.IsZero() && effect.Retry.IsZero() {
			r.learn("", "intend delete 0", "permission delete 0")
			continue
		}
		r.tick(time.Minute)
	}
	if c := r.w.Closed; r.w.Idle == nil || c.Outcome != incident.Escalated || !strings.Contains(c.Advice, "deleted in 1 h") {
		t.Errorf("left to be deleted is %+v, and told is %q", r.w.Idle, c.Advice)
	}
}

// TestAFlickerMakesNoRunningTrainingUnadmitted: no lease is known to name it, its steps show that one does, and it is unhealthy for a
// minute.
func TestAFlickerMakesNoRunningTrainingUnadmitted(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "owner deletes", "read gone")
	r.read("llama-8b", incident.Ready, r.made(far, "9001"))
	r.tick(time.Minute)
	r.learn("", "intend admit 0")
	for r.w.Incident != nil {
		r.tick(time.Minute)
	}
	r.w.Crew.Attempt = r.w.Crew.LeaseAttempt - 1
	r.learn("llama-8b", "started", "progress")
	for _, what := range []string{"", "read unhealthy", "read ready"} {
		if r.now = r.now.Add(time.Minute); what != "" {
			r.learn("llama-8b", what)
		}
	}
	if r.learn("llama-8b", "retried"); !r.keeps() {
		t.Errorf("a word ends it: %s", tale(r.w))
	}
}
