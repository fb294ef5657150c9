package incident_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// asksAll has the policy ask about everything.
func asksAll(p *policy.Policy) {
	p.Switches = policy.Switches{
		RequestCheckpoint: policy.Ask, EarlyMaintenance: policy.Ask, Recreate: policy.Ask, RecreateNonSpot: policy.Ask, Restart: policy.Ask, StartStopped: policy.Ask,
	}
}

// asked fails unless the story waits for a person.
func (n *story) asked(about events.Action) {
	n.Helper()
	if in := n.w.Incident; in == nil || in.Status.Label != view.Approving || in.Status.Asks != about || n.isWanted(about) {
		n.Fatalf("nobody is asked about %s:\n%s", about, n.tale())
	}
}

// TestAYesToARestartIsToOne: the next one in the same incident is asked about anew.
func TestAYesToARestartIsToOne(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	asksAll(&n.p)
	n.gaveUp(1, "NaN in loss").asked(events.ActionRestart)
	n.play("approved")
	n.give(evidence.Answered{Origin: n.reading(), Request: n.begins(events.ActionRestart, "")})
	n.gaveUp(2, "shapes do not match").asked(events.ActionRestart)
	if n.w.Spent(events.ActionRestart) != 1 {
		t.Errorf("charged is %v", n.w.Charges)
	}
}

// TestAQuestionStandsUntilItsAnswer: a line says that the training is done, and nothing confirms it. Nobody reads that again and again while a person
// is asked, and they are asked once. Their yes has it read, since the training may be done by then.
func TestAQuestionStandsUntilItsAnswer(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	n.p.Switches.Restart = policy.Ask
	for _, step := range []string{"a host error", "a unhealthy", "a ready", "a finished"} {
		n.play(step)
	}
	for range 60 {
		n.play("1m")
		for n.isWanted(events.ActionHear) {
			n.play("no verdict hear")
		}
	}
	n.asked(events.ActionRestart)
	since := n.w.Incident.Status.Since
	for range 55 {
		if sent := n.play("1m"); len(sent) > 0 {
			t.Fatalf("%v is asked for while a person is asked:\n%s", sent, n.tale())
		}
	}
	if st := n.w.Incident.Status; !st.Since.Equal(since) {
		t.Errorf("a person is asked again:\n%s", n.tale())
	}
	if sent := n.play("approved"); !slices.Equal(sent, []string{"hear"}) {
		t.Errorf("after the yes, %v is asked for:\n%s", sent, n.tale())
	}
	if n.play("no verdict hear"); !n.isWanted(events.ActionRestart) {
		t.Errorf("the training is not begun again:\n%s", n.tale())
	}
}

// gaveUp has the crew give up after an attempt, with its verdict.
func (n *story) gaveUp(attempt int, said string) *story {
	n.now = n.now.Add(time.Second)
	n.line("a", events.CrewReport{Report: events.ReportExited, Attempt: attempt, ExitCode: 1, Tail: []string{said}})
	n.now = n.now.Add(time.Second)
	return n.beats(n.verdict(attempt, false), 0)
}

// TestAYesToAReplacementIsToOne: it covers the creation until that has come, wherever it is tried, and not the replacement of what came.
func TestAYesToAReplacementIsToOne(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	asksAll(&n.p)
	n.play("a lost")
	n.asked(events.ActionDelete)
	n.play("approved")
	n.play("does delete a")
	n.play("a gone")
	made := func(id string) func(*evidence.Read) {
		return func(e *evidence.Read) {
			e.Incident, e.Incarnation = n.w.Incident.ID, events.Incarnation{Zone: e.Zone, ID: id, Created: n.now}
		}
	}
	n.begins(events.ActionCreate, "a")
	n.now = n.now.Add(time.Minute)
	n.reads("a", evidence.Creating, made("8001"))
	if n.w.Incident.Status.Label != view.PhaseCreating {
		t.Fatalf("it is asked about again in the middle of it:\n%s", n.tale())
	}
	n.reads("a", evidence.Ready, made("8001"))
	n.now = n.now.Add(time.Minute)
	n.reads("a", evidence.Lost).asked(events.ActionDelete)
}

// TestAYesToAStartIsToOne: what is stopped again is asked about again.
func TestAYesToAStartIsToOne(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	asksAll(&n.p)
	n.w.Slices[0].Workers = 1
	stops := func() {
		n.play("a stopped")
		n.play("36m")
		n.give(evidence.Unsaid{Origin: n.reading(), Slice: "a", Incarnation: n.w.Slices[0].Incarnation})
		n.play("1m")
		n.asked(events.ActionStart)
	}
	stops()
	n.play("approved")
	n.play("does start a")
	n.play("a ready")
	stops()
}

// TestAYesToTheMaintenanceIsOneToTheSaveBeforeIt and nothing is allowed of which nobody was asked.
func TestAYesToTheMaintenanceIsOneToTheSaveBeforeIt(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	asksAll(&n.p)
	n.play("a shows movable")
	for range 60 {
		if n.w.Incident == nil {
			n.play("1m")
		}
	}
	n.asked(events.ActionMaintain)
	if len(n.w.Effects) > 0 {
		t.Errorf("before anybody said yes, %v are wanted", n.w.Effects)
	}
	n.play("approved")
	for _, step := range []string{"does save", "saved", "found verify"} {
		n.play(step)
	}
	if !n.isWanted(events.ActionMaintain) || n.isWanted(events.ActionRestart) {
		t.Errorf("it is one to another call: %v", n.w.Effects)
	}
}

// TestAPolicyThatIsTightenedWaitsForWhoeverDeletes: the deletion of one slice is being called when the other is found lost under a policy that allows
// nothing any more.
func TestAPolicyThatIsTightenedWaitsForWhoeverDeletes(t *testing.T) {
	t.Parallel()
	n := multi(t, true).plays([][2]string{{"a read lost", "deleting: delete a"}, {"intend delete", "deleting"}})
	n.under("watch").plays([][2]string{{"b read lost", "deleting"}})
	if !n.isWanted(events.ActionDelete) || n.planned() != "" {
		t.Fatalf("it waits for no deletion, and would have %q", n.planned())
	}
	n.plays([][2]string{{"an hour", ""}, {"b read lost", "watching"}})
}

// TestWhatIsWatchedMayGoOn: the policy was tightened when a slice was about to be replaced, and it came back by itself.
func TestWhatIsWatchedMayGoOn(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", false, "host error, read unhealthy, later")
	n.under("watch").plays([][2]string{{"tick", "watching"}, {"1m", "watching"}, {"read ready", "watching"}, {"progress", "observed"}})
	if by := n.ended().By; by != view.ByStep {
		t.Errorf("it ended by %q", by)
	}
}
