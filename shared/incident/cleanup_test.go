package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/shared/incident"
)

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
