package incident_test

import (
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
