package incident_test

import (
	"fmt"
	"slices"
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

// TestADeletionThatNobodyMadeIsVoid: it was begun and never answered, and a reading from after its time shows the slice usable. A reading
// from before that proves nothing.
func TestADeletionThatNobodyMadeIsVoid(t *testing.T) {
	t.Parallel()
	for after, void := range map[time.Duration]bool{time.Minute: false, bounds.CallFor - time.Second: false, bounds.CallFor: true} {
		n := newStory(t, true, "llama-8b")
		n.reads("llama-8b", evidence.Lost).wants("delete llama-8b")
		n.begins(events.ActionDelete, "llama-8b")
		n.now = n.now.Add(after)
		n.reads("llama-8b", evidence.Ready)
		if got := !n.isWanted(events.ActionDelete); got != void {
			t.Errorf("a reading %v after it was begun shows the slice usable, and the deletion is void: %v", after, got)
		}
	}
}

// TestAWantThatComesBackBeginsNoNewTime, unless the slice was usable in between.
func TestAWantThatComesBackBeginsNoNewTime(t *testing.T) {
	t.Parallel()
	for between, anew := range map[evidence.Condition]bool{evidence.Unhealthy: false, evidence.Ready: true} {
		n := newStory(t, true, "llama-8b")
		n.reads("llama-8b", evidence.Lost).wants("delete llama-8b")
		first := n.w.Effects[0].First
		n.now = n.now.Add(5 * time.Minute)
		n.reads("llama-8b", between)
		n.now = n.now.Add(time.Hour)
		if between == evidence.Unhealthy {
			n.now = n.now.Add(-50 * time.Minute)
		}
		n.reads("llama-8b", evidence.Lost)
		if n.w.Incident == nil {
			t.Fatalf("after %s: %s", between, n.tale())
		}
		if got := n.w.Effects[0].First.After(first); got != anew {
			t.Errorf("lost, %s, and lost again: its time begins anew %v, want %v", between, got, anew)
		}
	}
}

// TestTheMaintenanceOfOneSliceIsThatOfAll: once one call may have been made, the others follow, whatever is read meanwhile.
func TestTheMaintenanceOfOneSliceIsThatOfAll(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		n := newStory(t, false, "a", "b")
		notice := events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: start.Add(5 * time.Hour), WindowEnd: start.Add(9 * time.Hour)}
		for _, s := range n.w.Slices {
			n.give(evidence.Noticed{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Notice: notice, InAPI: true})
		}
		n.passes(time.Minute)
		r := n.begins(events.ActionSave, "")
		n.give(evidence.Answered{Origin: n.reading(), Request: r})
		n.line("a", events.CrewReport{Report: events.ReportSaved, SaveID: n.w.Incident.SaveID(), CheckpointStep: 48180})
		n.give(evidence.Checked{Origin: n.reading(), Request: n.begins(events.ActionVerify, ""), Found: true, Step: 48180, At: n.now, URI: "gs://x"})
		n.wants("maintain a", "maintain b")
		if begun {
			n.begins(events.ActionMaintain, "a")
		}
		n.reads("a", evidence.Unhealthy)
		x := n.w.Effects[slices.IndexFunc(n.w.Effects, func(x incident.Effect) bool { return x.Action == events.ActionMaintain && x.Slice == "b" })]
		if x.Dropped() == begun {
			t.Errorf("begun %v: the maintenance of b is dropped %v", begun, x.Dropped())
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
		n := newStory(t, true, "llama-8b")
		n.p.Zones = nil
		n.reads("llama-8b", evidence.Lost)
		r := n.begins(events.ActionDelete, "llama-8b")
		n.give(evidence.Answered{Origin: n.reading(), Request: r, Operation: "op"})
		n.reads("llama-8b", evidence.Gone).wants("create llama-8b")
		tries := 0
		for n.w.Incident != nil && tries < 20 {
			if n.w.Effects[0].Stage() == view.StageWanted {
				tries++
				if class == "" {
					n.passes(bounds.RequestFor)
					continue
				}
				n.fails(n.begins(events.ActionCreate, "llama-8b"), class)
				continue
			}
			n.passes(time.Minute)
		}
		if got := n.ended(); got.Outcome != view.Escalated || got.Code != c.code || tries != c.tries {
			t.Errorf("%s: after %d tries, want %d, it ended %s by %q, want %q:\n%s", class, tries, c.tries, got.Outcome, got.Code, c.code, n.tale())
		}
	}
}

// TestADeletionThatAStateForbidsHasItsTime: a queued resource stays in PROVISIONING for an hour or two. A clock ends that, and no number of
// tries; people are told at once why nothing comes of it. So it is where nobody waits for what is to be deleted.
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

// TestNoEndForAPersonCutsACallOff: who has begun it cannot see that decision.
func TestNoEndForAPersonCutsACallOff(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a", "b")
	n.reads("a", evidence.Lost)
	n.reads("b", evidence.Lost).wants("delete a", "delete b")
	n.begins(events.ActionDelete, "a")
	began := n.now
	n.fails(n.request(events.ActionDelete, "b"), reason.Permission)
	for n.w.Incident != nil && n.now.Sub(began) < time.Hour {
		n.passes(time.Second)
	}
	if took := n.now.Sub(began); took != bounds.CallFor || n.ended().Outcome != view.Escalated {
		t.Errorf("it ended %v after the other call was begun: %s", took, n.tale())
	}
}

// TestAHoldIsNoFailure: it moves what it holds back by its own time.
func TestAHoldIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{time.Minute, 55 * time.Minute, 3 * time.Hour} {
		n := newStory(t, true, "llama-8b")
		n.reads("llama-8b", evidence.Lost)
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
	n := newStory(t, false, "llama-8b")
	n.reads("llama-8b", evidence.Unhealthy)
	n.passes(bounds.SickFor)
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

// TestAnOperationThatDoesNotEndIsAskedForAgain, and one that ended in a failure counts as one.
func TestAnOperationThatDoesNotEndIsAskedForAgain(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "llama-8b")
	n.reads("llama-8b", evidence.Stopped)
	n.passes(bounds.Grace)
	n.w.Slices[0].Workers = 1
	n.give(evidence.Unsaid{Origin: n.reading(), Slice: "llama-8b", Incarnation: n.w.Slices[0].Incarnation})
	n.give(evidence.Ticked{Origin: n.reading()}).wants("start llama-8b")
	n.give(evidence.Answered{Origin: n.reading(), Request: n.begins(events.ActionStart, "llama-8b"), Operation: "op"})
	n.give(evidence.Ended{Origin: n.reading(), Operation: "op", Failure: &evidence.Failure{Class: reason.Transient, Message: "it was cancelled"}})
	if x := n.w.Effects[0]; x.Stage() != view.StageRefused || !x.Begun.IsZero() || x.Failures != 1 || n.w.Incident.Calls[0].Code != reason.Transient.Code() {
		t.Errorf("its operation has failed: %+v", x)
	}
}

// TestACallIsChargedWhenItIsBegun, once for all slices that go together, and for all its tries.
func TestACallIsChargedWhenItIsBegun(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a", "b")
	n.reads("a", evidence.Lost)
	n.reads("b", evidence.Lost)
	if len(n.w.Charges) != 0 {
		t.Errorf("before anything is begun, charged is %v", n.w.Charges)
	}
	n.fails(n.begins(events.ActionDelete, "a"), reason.Busy)
	n.begins(events.ActionDelete, "b")
	n.passes(2 * time.Minute)
	n.begins(events.ActionDelete, "a")
	if len(n.w.Charges) != 1 {
		t.Errorf("charged is %v", n.w.Charges)
	}
}

// TestAPlaceThatRefusesIsLeftForAnother, for good where it can never give the slice, and quota is asked for less often than capacity.
func TestAPlaceThatRefusesIsLeftForAnother(t *testing.T) {
	t.Parallel()
	for class, c := range map[reason.FailureClass]struct {
		never bool
		most  time.Duration
	}{
		reason.Stockout: {false, 2 * bounds.CapacityEvery}, reason.Quota: {false, bounds.QuotaEvery}, reason.ReservationFull: {false, 2 * bounds.CapacityEvery},
		reason.WrongZone: {true, 0}, reason.NoQuota: {true, 0}, reason.CannotMove: {true, 0},
	} {
		n := newStory(t, true, "llama-8b")
		n.reads("llama-8b", evidence.Lost)
		n.give(evidence.Answered{Origin: n.reading(), Request: n.begins(events.ActionDelete, "llama-8b")})
		n.reads("llama-8b", evidence.Gone)
		n.fails(n.begins(events.ActionCreate, "llama-8b"), class).wants("create llama-8b")
		r := n.w.Incident.Refusals[0]
		if x := n.w.Effects[0]; x.Zone != "us-west4-b" || x.Failures != 0 || r.Never != c.never || !c.never && r.Until.Sub(n.now) > c.most {
			t.Errorf("%s: the next is %+v after %+v", class, x.Place, r)
		}
		// An order that was valid in its own zone lacks something in this one.
		n.fails(n.begins(events.ActionCreate, "llama-8b"), reason.Invalid)
		in := n.w.Incident
		if in == nil { // no place is left
			in = n.w.Closed
		}
		if r := in.Refusals; len(r) != 2 || !r[1].Never || r[1].Code != reason.CannotMove.Code() {
			t.Errorf("%s: the order does not fit the other zone: %+v", class, r)
		}
	}
}

// TestACallIsBegunUnderTheSwitchThatItWasWantedUnder: a policy that was tightened after the request counts for the same reasons as before it.
func TestACallIsBegunUnderTheSwitchThatItWasWantedUnder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		is   func(*incident.Workload)
		want string
	}{
		"a lost slice is replaced":        {func(*incident.Workload) {}, "deleting"},
		"an empty machine is asked about": {func(w *incident.Workload) { w.Slices[0].Bare = true }, "approving"},
		"a crash's replacement is a restart": {func(w *incident.Workload) {
			w.Slices[0].Cause, w.Incident.Troubles[0].Cause = events.CauseCrash, events.CauseCrash
		}, "escalated"},
	} {
		n := newStory(t, true, "a")
		n.play("a lost")
		c.is(&n.w)
		n.p.Switches.Restart = policy.No
		n.begins(events.ActionDelete, "a")
		if got := n.stands(nil); got != c.want || n.isWanted(events.ActionDelete) != (c.want == "deleting") {
			t.Errorf("%s: it stands at %q, want %q:\n%s", name, got, c.want, n.tale())
		}
	}
}

// TestANewSliceThatComesSickHasTheTimeToHeal, and no more.
func TestANewSliceThatComesSickHasTheTimeToHeal(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	for _, step := range []string{"a lost", "does delete a", "a gone", "does create a"} {
		n.play(step)
	}
	n.reads("a", evidence.Unhealthy, func(e *evidence.Read) {
		e.Incident, e.Incarnation = n.w.Incident.ID, events.Incarnation{Zone: e.Zone, ID: "new", Created: n.now}
	})
	if got := n.stands(n.passes(bounds.HealFor - time.Minute)); got != "creating" {
		t.Errorf("it stands at %q before its time is up:\n%s", got, n.tale())
	}
	if got := n.stands(n.passes(2 * time.Minute)); got != "clearing: delete a" {
		t.Errorf("it stands at %q after its time is up:\n%s", got, n.tale())
	}
}

// TestACrewThatTakesTheLeaseOverTellsOfAllSlices: what a call of ours made is nobody else's, though its own crew has not spoken yet.
func TestACrewThatTakesTheLeaseOverTellsOfAllSlices(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a", "b")
	n.reads("a", evidence.Lost)
	n.reads("b", evidence.Lost)
	for _, name := range []string{"a", "b"} {
		n.begins(events.ActionDelete, name)
		n.reads(name, evidence.Gone)
	}
	n.begins(events.ActionCreate, "a")
	n.begins(events.ActionCreate, "b")
	n.now = n.now.Add(time.Minute)
	for i, name := range []string{"a", "b"} {
		n.reads(name, evidence.Ready, func(e *evidence.Read) {
			e.Incident, e.Incarnation = n.w.Incident.ID, events.Incarnation{Zone: e.Zone, ID: fmt.Sprint(8001 + i), Created: n.now}
		})
	}
	n.now = n.now.Add(time.Minute)
	for i := range n.w.Slices {
		n.w.Slices[i].Hosts = "t1v-n-5f2a9c0" + fmt.Sprint(i)
	}
	n.line("a", events.CrewReport{Report: events.ReportStarted, Attempt: 2})
	if n.w.Incident == nil {
		t.Errorf("it is left to somebody:\n%s", n.tale())
	}
}
