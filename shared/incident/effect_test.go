package incident_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// asked is the request of the first effect of the open incident.
func asked(w incident.Workload, now time.Time) events.Request {
	t := w.Effects[0]
	return events.Request{
		Schema: events.Schema, Workload: w.ID, Incident: w.Incident.ID, Epoch: t.Epoch, Action: t.Action, Slice: t.Slice,
		Incarnation: t.Incarnation, Attempt: t.Attempt, Expires: now.Add(time.Hour),
	}
}

// TestNothingIsCreatedForAnIncidentThatOnlyCleansUp: what was begun may come, and nobody begins it anew.
func TestNothingIsCreatedForAnIncidentThatOnlyCleansUp(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0", nil)
	r := asked(n.w, n.now)
	n = at(t, p, true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, owner creates", nil)
	if n.w.Incident == nil || n.w.Incident.Phase != incident.Clearing || len(n.w.Effects) == 0 {
		t.Fatalf("the incident is %+v, want one that waits for what it has begun", n.w.Incident)
	}
	later := n.now.Add(incident.CallFor)
	if _, _, err := fence(n.w, r.Pointer(), later); err == nil {
		t.Error("the fence lets a creation through")
	}
	w, _, _ := advance(p, n.w, incident.Intended{Request: r, RequestID: "again"}, later)
	if got := w.Effects[0]; got.RequestID == "again" || !got.Begun.Equal(n.w.Effects[0].Begun) {
		t.Errorf("it was begun anew: %+v", got)
	}
	w, _, _ = advance(p, n.w, incident.Answered{Request: r, Failure: &incident.Failure{Class: incident.Stockout, Message: "none"}}, n.now)
	if w.Incident != nil {
		t.Errorf("the answer to what was begun ends nothing: %+v", w.Incident)
	}
}

// TestARequestIsMadeWholeFromWhatIsKnown: its effect says neither how a save is asked for nor which lives go together.
func TestARequestIsMadeWholeFromWhatIsKnown(t *testing.T) {
	life := events.Incarnation{Zone: "us-west4-a", ID: "7712"}
	w := incident.Workload{
		ID: "demo/m", Slices: []incident.Slot{{Name: "m-0"}, {Name: "m-1", Life: incident.Life{Incarnation: life}}},
		Incident: &incident.Incident{ID: "m-1"},
	}
	save := incident.Effect{Action: events.ActionSave}
	if r, ok := w.Request(save).(events.CheckpointRequested); !ok || r.Mode != events.SaveNatural {
		t.Errorf("a save is asked for by mode %q, want the one that kills no process", r.Mode)
	}
	effect := incident.Effect{Action: events.ActionDelete, Slice: "m-0", With: []string{"m-1"}}
	if r, ok := w.Request(effect).(events.RecreateRequested); !ok || len(r.With) != 1 || r.With[0].Incarnation != life {
		t.Errorf("what goes with it is %+v", r.With)
	}
}

// TestADeletionNamesTheLivesThatItWasDecidedOn, also of the slices that go with it.
func TestADeletionNamesTheLivesThatItWasDecidedOn(t *testing.T) {
	old, next := events.Incarnation{Zone: "us-west4-a", ID: "7712"}, events.Incarnation{Zone: "us-west4-a", ID: "7713"}
	w := incident.Workload{
		ID: "demo/m", Slices: []incident.Slot{{Name: "m-0"}, {Name: "m-1", Life: incident.Life{Incarnation: next}}},
		Incident: &incident.Incident{ID: "m-1"},
	}
	effect := incident.Effect{Action: events.ActionDelete, Slice: "m-0", With: []string{"m-1"}}
	effect.Lives = []events.Incarnation{old}
	if r, ok := w.Request(effect).(events.RecreateRequested); !ok || r.With[0].Incarnation != old {
		t.Errorf("what goes with it is %+v, want the life of %v", r.With, old)
	}
}

// TestAFenceRefusesATaskWhoseSlicesAreNotThere, and a pointer to a slice that only goes with another.
func TestAFenceRefusesATaskWhoseSlicesAreNotThere(t *testing.T) {
	w := incident.Workload{ID: "demo/m", Epoch: 3, Slices: []incident.Slot{{Name: "m-0"}, {Name: "m-1"}}}
	effect := incident.Effect{Action: events.ActionDelete, Maker: "m-1", Slice: "m-0", With: []string{"m-1"}, Epoch: 3, Sent: start}
	w.Incident, w.Effects = &incident.Incident{ID: "m-1"}, []incident.Effect{effect}
	p := events.Pointer{Workload: w.ID, Incident: "m-1", Epoch: 3, Action: events.ActionDelete, Slice: "m-0"}
	code := func(w incident.Workload, p events.Pointer) incident.Code {
		var refused *incident.RefusedError
		if _, _, err := fence(w, p, start); errors.As(err, &refused) {
			return refused.Code
		}
		return ""
	}
	with := p
	with.Slice = "m-1"
	for name, c := range map[string]struct{ got, want incident.Code }{
		"its own":                        {code(w, p), ""},
		"of the slice that goes with it": {code(w, with), incident.CodeNotWanted},
	} {
		if c.got != c.want {
			t.Errorf("a pointer to the effect %s is refused by %q, want %q", name, c.got, c.want)
		}
	}
	w.Slices = w.Slices[:1]
	if got := code(w, p); got != incident.CodeNoSlice {
		t.Errorf("without one of its slices it is refused by %q", got)
	}
}

// TestAHoldWithAnEndIsNoFailure: a deletion may wait for longer than one may take, for the brake or a pause.
func TestAHoldWithAnEndIsNoFailure(t *testing.T) {
	p := policies["everything"]
	for _, wait := range []time.Duration{time.Minute, 55 * time.Minute, 3 * time.Hour} {
		n := at(t, p, true, "preempted, read lost", nil)
		end := n.now.Add(wait)
		w, _, _ := advance(p, n.w, incident.Held{Request: asked(n.w, n.now), Why: "the brake holds", Until: end}, n.now)
		var sent []events.Event
		for now := n.now; w.Incident != nil && len(sent) == 0 && !now.After(end); {
			now = now.Add(time.Minute)
			w, sent, _ = tick(p, w, now)
		}
		if w.Incident == nil {
			t.Errorf("held for %v, it ended %s: %s", wait, w.Closed.Outcome, w.Closed.Reason)
			continue
		}
		if len(sent) != 1 || w.Incident.Deadline.Before(end.Add(incident.RemoveFor-time.Minute)) {
			t.Errorf("held for %v, %d requests are sent and the deadline is %v", wait, len(sent), w.Incident.Deadline)
		}
	}
}

// TestWhatIsApprovedIsChargedOnce has a policy ask by the time of the call for what it allowed when it was decided.
func TestWhatIsApprovedIsChargedOnce(t *testing.T) {
	for path, budget := range map[string]func(w incident.Workload) int{
		"exit 139, gave up, its verdict": func(w incident.Workload) int { return w.Budgets.Restarts },
		"preempted, read lost":           func(w incident.Workload) int { return w.Budgets.Recreates },
		"preempted, read lost, intend delete 0, accepted delete 0, read gone": func(w incident.Workload) int { return w.Budgets.Recreates },
	} {
		n := at(t, policies["everything"], true, path, nil)
		deleted := 0 // what was deleted stays charged, where a charge is of a call and not of a decision
		if strings.Contains(path, "intend") {
			deleted = 1
		}
		if got := budget(n.w); got != either(1, deleted, "begun") {
			t.Fatalf("%s: charged %d times", path, got)
		}
		w, _, _ := advance(policies["ask"], n.w, incident.Forbidden{Request: asked(n.w, n.now), Why: "the switch is ask"}, n.now)
		if got := budget(w); w.Incident.Phase != incident.Approving || got != either(0, deleted, "begun") || w.Incident.Charged != 0 {
			t.Errorf("%s: while nobody has approved, phase %s, charged %d times", path, w.Incident.Phase, got)
		}
		w, sent, _ := advance(policies["ask"], w, incident.Approved{Word: ann, Incident: w.Incident.ID, Action: w.Incident.Asked}, n.now)
		w, _, _ = advance(policies["ask"], w, incident.Intended{Request: asked(w, n.now), RequestID: "1"}, n.now)
		if got := budget(w); len(sent) != 1 || got != 1 {
			t.Errorf("%s: approved, %d requests are sent, charged %d times", path, len(sent), got)
		}
		if today := len(w.Crew.Restarted); today != w.Budgets.Restarts {
			t.Errorf("%s: approved, and %d restarts count today", path, today)
		}
	}
}

func TestProgressEndsWhatWaitsForApproval(t *testing.T) {
	for path, outcome := range map[string]incident.Outcome{
		"exit 139, gave up, its verdict": incident.Resumed,
		"preempted, read lost":           "", // what tells of progress is no slice any more
		"pending, later, tick":           "", // the maintenance is still to come
	} {
		n := at(t, policies["ask"], true, path, nil)
		if n.w.Incident.Phase != incident.Approving {
			t.Fatalf("%s leads to %s", path, n.w.Incident.Phase)
		}
		n, _ = play(t, policies["ask"], n, n.w.Slices[0].Name+" progress")
		var got incident.Outcome
		if n.w.Incident == nil {
			got = n.w.Closed.Outcome
		}
		if got != outcome {
			t.Errorf("%s: outcome %q, want %q", path, got, outcome)
		}
	}
}

func TestOfAnApprovalThatDoesNotComeIsReminded(t *testing.T) {
	for path, settled := range map[string]time.Duration{
		"exit 139, gave up, its verdict": 0, "preempted, read lost": 0,
		"pending, later, tick": 2 * time.Hour, // first for the maintenance at once, then for the save before its window
	} {
		if settled > 0 && either(false, true, "window") {
			continue
		}
		n := at(t, policies["ask"], true, path, nil)
		for n.now.Before(start.Add(settled)) {
			n.now = n.now.Add(time.Minute)
			n.w, _, _ = tick(policies["ask"], n.w, n.now)
		}
		lines := len(n.w.Incident.Timeline)
		var after []time.Duration
		for now := n.now; now.Before(n.now.Add(24 * time.Hour)); {
			now = now.Add(time.Minute)
			var changed bool
			n.w, _, changed = tick(policies["ask"], n.w, now)
			if changed {
				after = append(after, now.Sub(n.w.Incident.Since))
			}
		}
		want := []time.Duration{incident.RemindFirst, incident.RemindEvery, 2 * incident.RemindEvery, 3 * incident.RemindEvery, 4 * incident.RemindEvery}
		if d := cmp.Diff(want, after); d != "" {
			t.Errorf("%s: reminded after (-want +got):\n%s", path, d)
		}
		for _, l := range n.w.Incident.Timeline[lines:] {
			if !strings.HasPrefix(l.Text, "still wait for approval: ") {
				t.Errorf("%s: %s", path, l.Text)
			}
		}
	}
}

// TestNoDeadlineEndsACallThatMayStillBeMade: whoever has begun it would delete what no incident asks for any more.
func TestNoDeadlineEndsACallThatMayStillBeMade(t *testing.T) {
	n := at(t, policies["everything"], true, "preempted, read lost", nil)
	deadline := n.w.Incident.Deadline
	for _, c := range []struct {
		begun time.Duration // before the deadline
		ends  bool
	}{{time.Second, false}, {incident.CallFor, true}} {
		now := deadline.Add(-c.begun)
		w, _, _ := advance(policies["everything"], n.w, answers(n.w, n.w.Slices[0], now)["intend delete 0"], now)
		w, _, _ = tick(policies["everything"], w, deadline)
		if ended := w.Incident == nil; ended != c.ends {
			t.Fatalf("begun %v before the deadline: ended %v, want %v", c.begun, ended, c.ends)
		}
		if c.ends {
			continue
		}
		if until := now.Add(incident.CallFor); !w.Incident.Deadline.Equal(until) {
			t.Errorf("the deadline is %v, want %v", w.Incident.Deadline, until)
		}
		if w, _, _ = tick(policies["everything"], w, now.Add(incident.CallFor)); w.Incident != nil {
			t.Error("it has not ended when the time for the call was over")
		}
	}
}

// TestAClosedSwitchSaysWhoClosedIt has a policy that allows less, as much and more than it did at the opening.
func TestAClosedSwitchSaysWhoClosedIt(t *testing.T) {
	var w incident.Workload
	now := policy.Policy{
		Switches: policy.Switches{Recreate: policy.Yes, Restart: policy.Ask}, Limits: policy.Limits{policy.Restart: "policy night", policy.StartStopped: "the deployment"},
	}
	if got, want := w.Forbids(policy.StartStopped, policy.No, now), "the switch start_stopped is no, limited by the deployment"; got != want {
		t.Errorf("without an incident: %q, want %q", got, want)
	}
	w.Incident = &incident.Incident{
		Switches: policy.Switches{Restart: policy.Yes}, Limits: policy.Limits{policy.Recreate: "preset reserved"},
	}
	for s, want := range map[policy.Switch]string{
		policy.Recreate:     "the switch recreate is no, limited by what held at the opening, preset reserved",
		policy.StartStopped: "the switch start_stopped is no, limited by the deployment",
		policy.Restart:      "the switch restart is ask, limited by policy night",
	} {
		level := min(now.Switches.Level(s), w.Incident.Switches.Level(s))
		if got := w.Forbids(s, level, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got, want := w.Forbids(policy.RecreateNonSpot, policy.No, policy.Policy{}), "the switch recreate_non_spot is no"; got != want {
		t.Errorf("where nobody knows: %q, want %q", got, want)
	}
}
