package incident_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
)

// declared is a JobSet of two Jobs that Pitstop has deleted after a loss. Both were read as gone.
func declared(t *testing.T) *story {
	n := newStory(t, true, "s-0", "s-1")
	n.w.Provider, n.w.Directory = "gke", ""
	for i := range n.w.Slices {
		n.w.Slices[i].Group = "llama-8b"
	}
	n.reads("s-0", evidence.Lost)
	n.now = n.now.Add(time.Minute)
	n.reads("s-1", evidence.Lost).wants("delete s-0 with s-1")
	n.give(evidence.Answered{Origin: n.reading(), Request: n.begins(events.ActionDelete, "s-0")})
	n.now = n.now.Add(time.Minute)
	n.reads("s-0", evidence.Gone)
	n.reads("s-1", evidence.Gone).wants("create s-0 with s-1")
	n.now = n.now.Add(time.Minute)
	return n
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

// TestWhatAToolMakesAgainComesAsAWhole: it made the JobSet again that Pitstop has deleted, and its Jobs are read one after the other. Nothing is
// created beside it, and nobody has taken over.
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := declared(t)
			made := [2]func(*evidence.Read){remade(n, c.lives[0]), remade(n, c.lives[1])}
			n.reads("s-0", c.first, made[0]).wants()
			n.reads("s-1", c.second, made[1]).wants()
			if n.passes(10 * time.Minute); n.w.Incident == nil || n.isWanted(events.ActionCreate) || n.isWanted(events.ActionDelete) {
				t.Fatalf("it waits for both:\n%s", n.tale())
			}
			n.reads("s-0", evidence.Ready, remade(n, "theirs-0"))
			n.reads("s-1", evidence.Ready, remade(n, "theirs-1"))
			n.now = n.now.Add(time.Minute)
			n.line("s-0", events.CrewReport{Report: events.ReportProgress, Life: "theirs-0", Attempt: 1, Step: 48300})
			if n.w.Incident != nil || n.ended().Outcome != "resumed" {
				t.Errorf("training goes on:\n%s", n.tale())
			}
		})
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

// TestASliceThatLivesAfterAllIsNotDeletedUnsaved: it was PREEMPTED when it was decided on, and is being repaired when the function is about to delete
// it. A deletion that was called goes on.
func TestASliceThatLivesAfterAllIsNotDeletedUnsaved(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"preempted, read lost":                "healing",
		"preempted, read lost, intend delete": "healing",
		"preempted, read lost, do":            "deleting",
	} {
		n := at(t, "spot", true, path, func(w *incident.Workload) { w.Training.Saved = incident.Checkpoint{} })
		n.now = n.now.Add(bounds.CallFor)
		if n.play("read unhealthy"); n.stands(nil) != want || n.isWanted(events.ActionDelete) != (want == "deleting") {
			t.Errorf("%s: it stands at %q, want %q:\n%s", path, n.stands(nil), want, n.tale())
		}
	}
}

// TestWhatJoinsAReplacementIsNotChargedAgain: several slices are replaced at the price of one, once the first call has begun.
func TestWhatJoinsAReplacementIsNotChargedAgain(t *testing.T) {
	t.Parallel()
	n := multi(t, true)
	for i, step := range []string{"a read lost", "b read lost", "intend delete a", "intend delete b"} {
		n.play(step)
		if got, want := n.w.Spent(events.ActionDelete), i/2; got != min(want, 1) {
			t.Errorf("after %q %d replacements are charged, want %d", n.path, got, want)
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

// TestWhatWeCreatedAndCannotBeUsedIsReplacedAgain: its host broke for good before it was ever READY, and the wait for capacity, which has no end for
// Spot, is over. Nothing is saved, and nothing is lost: it never trained. One that comes to life before the call is admitted.
func TestWhatWeCreatedAndCannotBeUsedIsReplacedAgain(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, created+", do, read ours made, read unhealthy", func(w *incident.Workload) { w.Training.Saved = incident.Checkpoint{} })
	if until := n.w.Slices[0].Since.Add(bounds.HealFor); !n.w.Incident.Status.Until.Equal(until) {
		t.Errorf("it is to heal until %v, want %v", n.w.Incident.Status.Until, until)
	}
	n.history("later", "creating", "tick", "deleting: delete llama-8b", "read ready", "admitting: admit llama-8b=7712")
}

// TestWhatACrewRunsInIsNoLeftover: a crew has taken the lease over by itself in what we made, and nobody admitted it. It lives, and is not deleted
// unsaved.
func TestWhatACrewRunsInIsNoLeftover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		report  events.Report
		host    string
		deleted bool
	}{
		"it has started":             {events.ReportStarted, "t1v-n-0badcafe-w-0", false},
		"it does steps":              {events.ReportProgress, "t1v-n-0badcafe-w-0", false},
		"it only sees maintenance":   {events.ReportNotice, "t1v-n-0badcafe-w-0", true},
		"it is one of a former life": {events.ReportStarted, "t1v-n-deadbeef-w-0", true},
		"nobody knows whose it is":   {events.ReportStarted, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := at(t, "everything", true, created+", do, read ours made", func(w *incident.Workload) { w.Training.Saved = incident.Checkpoint{} })
			n.w.Slices[0].Hosts = "t1v-n-0badcafe"
			n.now = n.now.Add(time.Minute)
			origin := n.reading()
			origin.Rank = events.RankUser
			n.give(evidence.Reported{Origin: origin, Slice: "llama-8b", Report: events.CrewReport{Report: c.report, Hostname: c.host, Attempt: 9, Workers: 4, Step: 48000}})
			n.play("read unhealthy")
			if sent := n.passes(8 * time.Hour); slices.Contains(sent, "delete llama-8b") != c.deleted {
				t.Errorf("asked for is %q:\n%s", sent, n.tale())
			}
		})
	}
}
