package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// TestASlowCreationIsNotDeleted: training is admitted to what it brings; only one that never comes is given up, in the end.
func TestASlowCreationIsNotDeleted(t *testing.T) {
	t.Parallel()
	for comes, lasts := range map[time.Duration]bool{20 * time.Hour: true, 47 * time.Hour: true, 50 * time.Hour: false} {
		n, deleted := at(t, "everything", false, "preempted, read lost, later, tick, do, read gone, do, read ours made"), false
		for end := n.now.Add(comes); n.now.Before(end) && n.w.Incident != nil; {
			if n.later(10 * time.Minute).play("tick"); n.places() != "" { // its operation runs for longer than one may: it is looked at anew, and is there
				n.play("do")
			}
			deleted = deleted || n.isWanted("delete")
		}
		if !lasts && n.stands(nil) == "creating" || lasts && (deleted || n.stands(n.play("read ready")) != "admitting: admit llama-8b=7712") {
			t.Errorf("after %v it stands at %q, deleted %v:\n%s", comes, n.stands(nil), deleted, n.tale())
		}
	}
}

// within plays each minute what a reading shows, and returns what is asked for first, and after how long.
func (n *story) within(limit time.Duration, path ...string) (asked string, took time.Duration) {
	for from := n.now; n.w.Incident != nil && n.now.Sub(from) < limit; {
		for _, step := range path {
			if n.play(step); len(n.sent) > 0 {
				return n.sent[0], n.now.Sub(from)
			}
		}
		if n.later(time.Minute).play("tick"); len(n.sent) > 0 {
			return n.sent[0], n.now.Sub(from)
		}
	}
	return "", limit
}

// TestASliceThatComesSickBesideAnotherTroubleHasItsTimeToHeal, though it is first seen in the middle of an incident about another one.
func TestASliceThatComesSickBesideAnotherTroubleHasItsTimeToHeal(t *testing.T) {
	t.Parallel()
	n := multi(t, false).goes("a exit 139")
	e := n.read(&n.w.Slices[0], evidence.Unhealthy, n.w.Slices[0].Incarnation)
	e.Slice, e.Incarnation.ID = "c", "9999"
	n.give(e)
	if asked, took := n.within(5*time.Hour, "c read unhealthy"); asked != "delete c" || took < bounds.HealFor-time.Minute {
		t.Errorf("asked for is %q after %v:\n%s", asked, took, n.tale())
	}
}

// TestWhatIsDoneIsNotWaitedFor: the other slice's training is asked for.
func TestWhatIsDoneIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	n := multi(t, false).goes("b read done, a exit 139")
	if asked, _ := n.within(time.Hour, "b read done", "a read ready"); asked != "restart a=7711 b=7760" {
		t.Errorf("asked for is %q:\n%s", asked, n.tale())
	}
}

// TestTheTimeToHealGoesOn while another slice vanishes for a moment, again and again.
func TestTheTimeToHealGoesOn(t *testing.T) {
	t.Parallel()
	n := multi(t, false).goes("b host error, b read unhealthy")
	from, asked := n.now, ""
	for i := 0; asked == "" && i < 6; i++ {
		if asked, _ = n.within(50*time.Minute, "b read unhealthy"); asked == "" {
			n.goes("a read gone, a minute, b read unhealthy, a read ready")
			asked, _ = n.within(9*time.Minute, "b read unhealthy")
		}
	}
	if took := n.now.Sub(from); asked != "delete b" || took < bounds.HealFor-time.Minute || took > bounds.HealFor+5*time.Minute {
		t.Errorf("asked for is %q after %v:\n%s", asked, took, n.tale())
	}
}

// TestStepsBeforeARetryProveNothing: a step after it does, and nothing is replaced while the training may do one.
func TestStepsBeforeARetryProveNothing(t *testing.T) {
	t.Parallel()
	for _, steps := range []bool{false, true} {
		n := newStory(t, false, "a").with(func(w *incident.Workload) {
			l := &w.Slices[0].Life
			l.Condition, l.State, l.Since = evidence.Unhealthy, "REPAIRING", start.Add(-2*bounds.HealFor)
			w.Training.StepAt, w.Training.GapSeconds = start.Add(-time.Minute), 3600
		})
		if n.goes("retried, read unhealthy, a minute, tick"); len(n.sent) > 0 || n.w.Incident == nil {
			t.Fatalf("at once asked for is %q:\n%s", n.sent, n.tale())
		}
		if steps {
			n.play("progress")
		}
		asked, _ := n.within(12*time.Hour, "read unhealthy")
		if resumed := n.ended().Outcome == view.Resumed; resumed != steps || (asked == "delete a") == steps {
			t.Errorf("steps %v: asked for is %q:\n%s", steps, asked, n.tale())
		}
	}
}

// TestAWaitIsToldOnce: readings that say the same again add nothing to the story.
func TestAWaitIsToldOnce(t *testing.T) {
	t.Parallel()
	for most, n := range map[int]*story{10: multi(t, true).goes("a stopped for"), 20: multi(t, true).with(spent(events.ActionDelete)).goes("a host error")} {
		again := []string{"a read lost"}
		if most == 10 {
			again = []string{"b read lost", "a read gone"}
		}
		if n.within(6*time.Hour, again...); len(n.about().Lines) > most {
			t.Errorf("it has %d lines:\n%s", len(n.about().Lines), n.tale())
		}
	}
}

// TestAVerdictHasItsTimeInAGroupToo: another slice of the group is read meanwhile.
func TestAVerdictHasItsTimeInAGroupToo(t *testing.T) {
	t.Parallel()
	queued(t, true).with(spent(events.ActionDelete)).history("a preempted, a read lost, b read ready", "looking: hear", "a read lost, 9m", "looking", "2m", "escalated")
}
