package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// TestDoneIsTheEndOfTheTraining: once the provider says that the work of every slice is complete, no slice is missed, until another life begins.
func TestDoneIsTheEndOfTheTraining(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a", "b")
	finished := func() bool { return n.w.Shown(n.now).Training.Finished }
	if n.reads("a", evidence.Done); finished() {
		t.Error("one slice of two is done, and the training is finished")
	}
	n.later(time.Minute).reads("a", evidence.Gone).reads("b", evidence.Done)
	if !finished() || n.w.Slices[0].Condition != evidence.Done {
		t.Errorf("both slices are done, and the first one is %s", n.w.Slices[0].Condition)
	}
	n.later(time.Minute).reads("b", evidence.Gone)
	if n.passes(time.Hour); n.w.Incident != nil || n.w.Closed != nil || !n.w.Due().IsZero() {
		t.Errorf("it is due at %v:\n%s", n.w.Due(), n.tale())
	}
	n.reads("b", evidence.Ready, func(e *evidence.Read) { e.Incarnation = events.Incarnation{Zone: e.Zone, ID: "next", Created: n.now} })
	if finished() {
		t.Error("another life trains, and the training is finished")
	}
}

// TestAGroupIsDoneAsAWhole: a JobSet that its owner deletes while one of its Jobs is complete, and another still waits, has not done its work.
func TestAGroupIsDoneAsAWhole(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]bool{"set": false, "other": true, "": true} {
		n := newStory(t, false, "a", "b")
		n.w.Slices[0].Group, n.w.Slices[1].Group = "set", group
		n.w.Slices[1].Unused, n.w.Slices[1].Condition = true, evidence.Creating
		n.later(time.Minute).reads("a", evidence.Done)
		n.later(time.Minute).reads("b", evidence.Gone)
		if n.w.Shown(n.now).Training.Finished != want || n.w.Incident != nil {
			t.Errorf("the group %q: finished is %t:\n%s", group, !want, n.tale())
		}
	}
}

// TestDoneEndsAnIncident: what is done needs nobody any more.
func TestDoneEndsAnIncident(t *testing.T) {
	t.Parallel()
	for want, switches := range map[view.Outcome]policy.Switches{view.Observed: {}, view.Resumed: policy.Everything()} {
		n := newStory(t, false, "a")
		n.p.Switches = switches
		n.reads("a", evidence.Unhealthy).passes(bounds.SickFor)
		if n.reads("a", evidence.Done); n.ended().Outcome != want || n.ended().By != view.ByHealth {
			t.Errorf("it ended %s by %s, want %s:\n%s", n.ended().Outcome, n.ended().By, want, n.tale())
		}
	}
}

// TestThePlanOfAJobHasItsOwnWords: what would be called is named as the audit log of a cluster names it.
func TestThePlanOfAJobHasItsOwnWords(t *testing.T) {
	t.Parallel()
	n := newJob(t)
	plan := n.w.IfLost(n.p, "llama-8b", n.now)
	var calls []string
	for _, c := range plan.Calls {
		calls = append(calls, c.Method+" "+c.Resource)
	}
	const job = "projects/demo/locations/us-west4/clusters/trainers/k8s/namespaces/default/jobs/llama-8b"
	if got := strings.Join(calls, ", "); !strings.HasPrefix(got, "io.k8s.batch.v1.jobs.delete "+job+", io.k8s.batch.v1.jobs.create "+job) {
		t.Errorf("the calls would be %s", got)
	}
	for _, line := range plan.Decisions {
		if strings.Contains(line.Text, "node llama-8b") {
			t.Errorf("a Job is called a node: %s", line.Text)
		}
	}
}
