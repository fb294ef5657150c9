package incident_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
)

// declared is a JobSet of two Jobs that Pitstop has deleted after a loss. Both were read as gone.
func declared(t *testing.T) *story {
	n := newStory(t, true, "s-0", "s-1")
	n.w.Provider, n.w.Directory = "gke", ""
	for i := range n.w.Slices {
		n.w.Slices[i].Group = "llama-8b"
	}
	n.goes("s-0 lost, s-1 lost, do, s-0 gone, s-1 gone").wants("create s-0 with s-1")
	return n.later(time.Minute)
}

// remade is the next life of a Job, which a tool has had made a moment ago.
func remade(n *story, life string) func(*evidence.Read) {
	made := n.now.Add(-time.Second)
	return func(e *evidence.Read) {
		e.Ordered, e.Incarnation = made, events.Incarnation{}
		if life != "" {
			e.Incarnation = events.Incarnation{Zone: e.Zone, ID: life, Created: made}
		}
	}
}

// TestWhatAToolMakesAgainComesAsAWhole: its Jobs are read one after the other. Nothing is created beside it, and nobody has taken over.
func TestWhatAToolMakesAgainComesAsAWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, second evidence.Condition
		lives         [2]string
	}{
		"both Jobs wait for machines":          {evidence.Creating, evidence.Creating, [2]string{"theirs-0", "theirs-1"}},
		"both Jobs are usable at once":         {evidence.Ready, evidence.Ready, [2]string{"theirs-0", "theirs-1"}},
		"the second Job is made after a while": {evidence.Ready, evidence.Creating, [2]string{"theirs-0", ""}},
		"neither Job is made yet":              {evidence.Creating, evidence.Creating, [2]string{}},
	} {
		n := declared(t)
		n.reads("s-0", c.first, remade(n, c.lives[0])).wants()
		n.reads("s-1", c.second, remade(n, c.lives[1])).wants()
		if n.passes(10 * time.Minute); n.w.Incident == nil || n.isWanted(events.ActionCreate) || n.isWanted(events.ActionDelete) {
			t.Fatalf("%s: it waits for both:\n%s", name, n.tale())
		}
		n.reads("s-0", evidence.Ready, remade(n, "theirs-0")).reads("s-1", evidence.Ready, remade(n, "theirs-1")).later(time.Minute)
		n.line("s-0", events.CrewReport{Report: events.ReportProgress, Life: "theirs-0", Attempt: 1, Step: 48300})
		if n.ended().Outcome != "resumed" {
			t.Errorf("%s: training goes on:\n%s", name, n.tale())
		}
	}
}

// TestHalfOfWhatAToolMakesAgainIsAPersons: the other Job is not read in time.
func TestHalfOfWhatAToolMakesAgainIsAPersons(t *testing.T) {
	t.Parallel()
	n := declared(t)
	n.reads("s-0", evidence.Ready, remade(n, "theirs-0"))
	if n.passes(bounds.SickFor + time.Minute); n.ended().Outcome != "escalated" {
		t.Errorf("it is waited for:\n%s", n.tale())
	}
}

// TestASliceThatLivesAfterAllIsNotDeletedUnsaved: it is being repaired when the function is about to delete it. A deletion that was called goes on.
func TestASliceThatLivesAfterAllIsNotDeletedUnsaved(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"preempted, read lost":                "healing",
		"preempted, read lost, intend delete": "healing",
		"preempted, read lost, do":            "deleting",
	} {
		n := at(t, "spot", true, path, unsavedYet)
		if n.later(bounds.CallFor).play("read unhealthy"); n.stands(nil) != want || n.isWanted(events.ActionDelete) != (want == "deleting") {
			t.Errorf("%s: it stands at %q, want %q:\n%s", path, n.stands(nil), want, n.tale())
		}
	}
}

// TestProgressHasToPassTheCheckpointFromBeforeTheLoss: the incident may have opened long before it, for maintenance.
func TestProgressHasToPassTheCheckpointFromBeforeTheLoss(t *testing.T) {
	t.Parallel()
	for policy, path := range map[string]string{"spot": "pending, later, tick, intend save, later, tick", "watch": "pending, later, tick"} {
		n := at(t, policy, true, path)
		before := n.w.Baseline()
		n.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: n.w.Training.Step + 600, CheckpointStep: before + 500})
		if n.play("read lost"); n.w.Incident == nil || n.w.Baseline() != before+500 {
			t.Errorf("%s: the step to pass is not %d:\n%s", policy, before+500, n.tale())
		}
	}
}

// TestWhatWeCreatedAndCannotBeUsedIsReplacedAgain, for it never trained. One that comes to life before the call is admitted.
func TestWhatWeCreatedAndCannotBeUsedIsReplacedAgain(t *testing.T) {
	t.Parallel()
	for _, path := range []string{", do, read ours made, read unhealthy", ", do, read ours sick"} {
		n := at(t, "everything", true, created+path, unsavedYet)
		if until := n.w.Slices[0].Since.Add(bounds.HealFor); !n.w.Incident.Status.Until.Equal(until) {
			t.Errorf("%s: it is to heal until %v, want %v", path, n.w.Incident.Status.Until, until)
		}
		n.history("later", "creating", "tick", "deleting: delete llama-8b", "read ready", "admitting: admit llama-8b=7712")
	}
}

// TestWhatACrewRunsInIsNoLeftover: it has taken the lease over by itself in what we made, and is not deleted unsaved.
func TestWhatACrewRunsInIsNoLeftover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		report  events.Report
		host    string
		deleted bool
	}{
		"it has started":             {events.ReportStarted, "t1v-n-00000002-w-0", false},
		"it does steps":              {events.ReportProgress, "t1v-n-00000002-w-0", false},
		"it only sees maintenance":   {events.ReportNotice, "t1v-n-00000002-w-0", true},
		"it is one of a former life": {events.ReportStarted, "t1v-n-deadbeef-w-0", true},
		"nobody knows whose it is":   {events.ReportStarted, "vm-w-0", true},
	} {
		n := at(t, "everything", true, created+", do, read ours made, mapped", unsavedYet).later(time.Minute)
		n.wrote(n.now, "llama-8b", events.CrewReport{Report: c.report, Hostname: c.host, Attempt: 9, Workers: 4, Step: 48000})
		if sent := n.goes("read unhealthy").passes(8 * time.Hour); slices.Contains(sent, "delete llama-8b") != c.deleted {
			t.Errorf("%s: asked for is %q:\n%s", name, sent, n.tale())
		}
	}
}
