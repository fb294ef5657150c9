package incident_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// TestADeletionThatNobodyMadeIsVoid: it was begun and never answered, and a reading from after its time shows the slice usable.
func TestADeletionThatNobodyMadeIsVoid(t *testing.T) {
	t.Parallel()
	for after, void := range map[time.Duration]bool{time.Minute: false, bounds.CallFor - time.Second: false, bounds.CallFor: true} {
		n := newStory(t, true, "llama-8b").goes("read lost, intend delete").later(after)
		if got := !n.reads("llama-8b", evidence.Ready).isWanted(events.ActionDelete); got != void {
			t.Errorf("a reading %v after it was begun shows the slice usable, and the deletion is void: %v", after, got)
		}
	}
}

// TestAWantThatComesBackBeginsNoNewTime, unless the slice was usable in between.
func TestAWantThatComesBackBeginsNoNewTime(t *testing.T) {
	t.Parallel()
	for between, anew := range map[string]bool{"read unhealthy, three minutes": false, "read ready, an hour": true} {
		n := newStory(t, true, "llama-8b").goes("read lost")
		first := n.w.Effects[0].First
		if got := n.goes("5m, " + between + ", read lost").w.Effects[0].First.After(first); got != anew {
			t.Errorf("lost, %s, and lost again: its time begins anew %v, want %v", between, got, anew)
		}
	}
}

// TestTheMaintenanceOfOneSliceIsThatOfAll: once one call may have been made, the others follow, whatever is read meanwhile.
func TestTheMaintenanceOfOneSliceIsThatOfAll(t *testing.T) {
	t.Parallel()
	for path, wanted := range map[string]bool{"a read unhealthy": false, "intend maintain a, a read unhealthy": true} {
		n := multi(t, false).goes("a pending, b pending, later, tick, do, saved, found verify, " + path)
		if got := n.effect(events.ActionMaintain, "b") >= 0; got != wanted {
			t.Errorf("%s: the maintenance of b is wanted %v:\n%s", path, got, n.tale())
		}
	}
}

// TestWhatCannotBeDoneIsLeftToAPerson: by the table, and by the class of its failure.
func TestWhatCannotBeDoneIsLeftToAPerson(t *testing.T) {
	t.Parallel()
	for class, c := range map[reason.FailureClass]struct {
		tries int
		code  reason.Code
	}{
		reason.Permission: {1, reason.Permission.Code()}, reason.Invalid: {1, reason.Invalid.Code()},
		reason.Busy: {bounds.MaxFailures, reason.CodeRetries}, reason.NotFound: {bounds.MaxFailures, reason.CodeRetries},
		"": {bounds.MaxFailures, reason.CodeUnanswered},
	} {
		n, tries := newStory(t, true, "llama-8b"), 0
		n.p.Zones = nil
		for n.goes("read lost, do, read gone"); n.w.Incident != nil && tries < 20; {
			switch wanted := n.w.Effects[0].Stage() == view.StageWanted; {
			case !wanted:
				n.passes(time.Minute)
			case class == "":
				tries++
				n.passes(bounds.RequestFor)
			default:
				tries++
				n.fails(n.begins(events.ActionCreate, "llama-8b"), class)
			}
		}
		if got := n.ended(); got.Outcome != view.Escalated || got.Code != c.code || tries != c.tries {
			t.Errorf("%s: after %d tries, want %d, it ended %s by %q, want %q:\n%s", class, tries, c.tries, got.Outcome, got.Code, c.code, n.tale())
		}
	}
}

// TestADeletionThatAStateForbidsHasItsTime: a clock ends that, and no number of tries; people are told at once why nothing comes of it.
func TestADeletionThatAStateForbidsHasItsTime(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"read lost", "read lost, do, read gone, do, read ordered, owner creates"} {
		n := at(t, "everything", true, path, inQueue)
		began, tries := n.now, 0
		for n.w.Incident != nil && n.now.Sub(began) < 100*time.Hour {
			if i := n.effect(events.ActionDelete, "llama-8b"); n.w.Effects[i].Stage() == view.StageWanted {
				tries++
				n.fails(n.begins(events.ActionDelete, "llama-8b"), reason.NotInState)
			}
			if n.passes(time.Minute); n.now.Sub(began) == time.Hour && !strings.Contains(n.tale(), "wait up to 6 h 0 m for queued resource qr to leave its state | it cannot be deleted in it: not_in_state") {
				t.Errorf("%s: nobody is told of it:\n%s", path, n.tale())
			}
		}
		if took := n.now.Sub(began); took < bounds.BarredFor || took > bounds.BarredFor+time.Hour || tries < 60 || !strings.Contains(n.ended().Reason.String(), "not_in_state") {
			t.Errorf("%s: after %v and %d tries it ended: %s\n%s", path, took, tries, n.ended().Reason, n.tale())
		}
	}
}

// TestNoEndForAPersonCutsACallOff: who has begun it cannot see that decision. The call that failed stays wanted until then, and why is known.
func TestNoEndForAPersonCutsACallOff(t *testing.T) {
	t.Parallel()
	for action, path := range map[events.Action]string{
		events.ActionDelete: "a read lost, b read lost, intend delete a",
		events.ActionCreate: "a read lost, b read lost, do, a read gone, b read gone, intend create a",
	} {
		n := multi(t, true).goes(path)
		began := n.now
		for n.fails(n.request(action, "b"), reason.Permission); n.ending() == nil && n.now.Sub(began) < time.Hour; n.passes(time.Second) {
			if n.effect(action, "b") < 0 {
				t.Fatalf("%s of b is given up %v after the other call was begun:\n%s", action, n.now.Sub(began), n.tale())
			}
		}
		if took, got := n.now.Sub(began), n.ending(); took != bounds.CallFor || got == nil || got.Code != reason.Permission.Code() {
			t.Errorf("%s: it ends by %+v %v after the other call was begun:\n%s", action, got, took, n.tale())
		}
	}
}

// ending is how the incident ends, or has ended; nil for not yet.
func (n *story) ending() *incident.End {
	if n.w.Incident != nil {
		return n.w.Incident.Ending
	}
	return n.w.Closed.Ending
}

// TestAHoldIsNoFailure: it moves what it holds back by its own time.
func TestAHoldIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{time.Minute, 55 * time.Minute, 3 * time.Hour} {
		n := newStory(t, true, "llama-8b").goes("read lost")
		end := n.now.Add(wait)
		n.give(evidence.Held{Origin: n.reading(), Request: n.request(events.ActionDelete, "llama-8b"), Code: reason.CodeBraked, Why: "the brake holds", Until: end})
		if sent := n.passes(wait); len(sent) != 1 || n.w.Incident.Status.Until.Before(end.Add(bounds.RemoveFor-time.Minute)) {
			t.Errorf("held for %v, asked for is %q, and it lasts until %v:\n%s", wait, sent, n.w.Incident.Status.Until, n.tale())
		}
	}
}

// TestAFlickeringPolicyKeepsNoIncidentOpen: a deadline moves by the time for which the policy could not be read, and by no more.
func TestAFlickeringPolicyKeepsNoIncidentOpen(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "llama-8b").goes("read unhealthy, 5m")
	readable, opened := n.p, n.now
	for minute := 0; n.w.Incident != nil && n.w.Incident.Status.Label == view.Healing && n.now.Sub(opened) < 6*24*time.Hour; minute++ {
		if n.p = readable; minute%5 < 2 {
			n.p = policy.Policy{Unreadable: "503"}
		}
		n.passes(time.Minute)
	}
	if took, want := n.now.Sub(opened), bounds.HealFor*5/3; took < want-10*time.Minute || took > want+10*time.Minute || len(n.w.Holds) > 20 {
		t.Errorf("it ended after %v, want about %v, with %d holds:\n%s", took, want, len(n.w.Holds), n.tale())
	}
}

// TestAnOperationThatEndsInAFailureCountsAsOne.
func TestAnOperationThatEndsInAFailureCountsAsOne(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", false, "read stopped, later, unsaid, tick, accepted start, late transient start", single)
	if x := n.w.Effects[0]; x.Stage() != view.StageRefused || !x.Begun.IsZero() || x.Failures != 1 || n.w.Incident.Calls[0].Code != reason.Transient.Code() {
		t.Errorf("its operation has failed: %+v", x)
	}
}

// TestACallIsChargedWhenItIsBegun, once for all slices that are replaced together, and for all its tries.
func TestACallIsChargedWhenItIsBegun(t *testing.T) {
	t.Parallel()
	n := multi(t, true)
	for i, step := range []string{"a read lost", "b read lost", "busy delete a", "intend delete b", "2m", "intend delete a"} {
		n.play(step)
		if spent := n.w.Spent(events.ActionDelete); spent != min(i/2, 1) {
			t.Errorf("after %q %d replacements are charged", n.path, spent)
		}
	}
}

// TestACallIsBegunUnderTheSwitchThatItWasWantedUnder: a policy that was tightened after the request counts for the same reasons as before it.
func TestACallIsBegunUnderTheSwitchThatItWasWantedUnder(t *testing.T) {
	t.Parallel()
	for want, is := range map[string]func(*incident.Workload){
		"deleting":  func(*incident.Workload) {},                            // a lost slice is replaced
		"approving": func(w *incident.Workload) { w.Slices[0].Bare = true }, // an empty machine is asked about
		"escalated": func(w *incident.Workload) { // a crash's replacement is a restart
			w.Slices[0].Cause, w.Incident.Troubles[0].Cause = events.CauseCrash, events.CauseCrash
		},
	} {
		n := newStory(t, true, "a").goes("a lost").with(is)
		n.p.Switches.Restart = policy.No
		if got := n.stands(n.play("intend delete")); got != want || n.isWanted(events.ActionDelete) != (want == "deleting") {
			t.Errorf("it stands at %q, want %q:\n%s", got, want, n.tale())
		}
	}
}

// TestACrewThatTakesTheLeaseOverTellsOfAllSlices: what a call of ours made is nobody else's, though its own crew has not spoken yet.
func TestACrewThatTakesTheLeaseOverTellsOfAllSlices(t *testing.T) {
	t.Parallel()
	n := multi(t, true).goes("a read lost, b read lost, do, a read gone, b read gone, intend create a, intend create b, a read ours, b read ours, a mapped, b mapped, a started")
	if n.w.Incident == nil {
		t.Errorf("it is left to somebody:\n%s", n.tale())
	}
}

// TestAnAnswerCountsForItsAttemptAlone: an answer to another attempt, under another epoch or for another incident changes no call and asks for nothing.
func TestAnAnswerCountsForItsAttemptAlone(t *testing.T) {
	t.Parallel()
	for path, action := range map[string]events.Action{
		"preempted, read lost": events.ActionDelete, "preempted, read lost, intend delete": events.ActionDelete, created + ", intend create": events.ActionCreate,
		created + ", do, read ours, intend admit": events.ActionAdmit, "exit 139, gave up": events.ActionHear, failing + ", intend restart": events.ActionRestart,
		"pending, later, tick, intend save": events.ActionSave, "pending, later, tick, do, saved": events.ActionVerify,
	} {
		n := at(t, "everything", true, path)
		for what, change := range map[string]func(*events.Request){
			"a later attempt": func(r *events.Request) { r.Attempt++ }, "an earlier one": func(r *events.Request) { r.Attempt-- },
			"another epoch": func(r *events.Request) { r.Epoch-- }, "another incident": func(r *events.Request) { r.Incident += "x" },
		} {
			o, r := n.reading(), n.request(action, n.w.Effects[0].Slice)
			change(&r)
			for _, answer := range []evidence.Evidence{
				evidence.Intended{Origin: o, Request: r, RequestID: "1"},
				evidence.Answered{Origin: o, Request: r, Operation: "op"},
				evidence.Answered{Origin: o, Request: r, Failure: &evidence.Failure{Class: reason.Permission, Message: "no"}},
				evidence.Held{Origin: o, Request: r, Code: reason.CodePaused},
				evidence.Checked{Origin: o, Request: r, Found: true, Step: 48200},
				evidence.VerdictRead{Origin: o, Request: r, Attempt: 1},
			} {
				if after, sent, _ := incident.Advance(n.p, n.w, answer, n.now); !reflect.DeepEqual(after.Effects, n.w.Effects) || len(sent) > 0 || after.Incident == nil {
					t.Errorf("%s, %T of %s: asked for is %v, and the calls are %+v, want %+v", path, answer, what, sent, after.Effects, n.w.Effects)
				}
			}
		}
	}
}

// TestACallIsShownSinceItsLastStage: since it was asked for, begun or answered.
func TestACallIsShownSinceItsLastStage(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "read lost")
	since := n.now
	for _, step := range []string{"a minute", "intend delete", "a minute", "accepted delete", "a minute"} {
		if n.play(step); step != "a minute" {
			since = n.now
		}
		if r := n.w.Shown(n.now).Requests; len(r) != 1 || !r[0].At.Equal(since) {
			t.Errorf("after %q shown is %+v, want %v", n.path, r, since)
		}
	}
}
