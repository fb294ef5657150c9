package incident_test

import (
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

// TestOperators plays what people order.
func TestOperators(t *testing.T) {
	t.Parallel()
	never := forbids(policy.Recreate, policy.RecreateNonSpot)
	asksToMake := func(p *policy.Policy) { p.Switches.Recreate = policy.Ask }
	playAll(t, map[string]history{
		"a cancelled loss is a person's":      {spot: true, steps: []string{"a lost", "deleting: delete a", "cancelled", "released", "a lost", "released", "48h", "released"}},
		"what comes back after it is watched": {spot: true, steps: []string{"a lost", "", "cancelled", "released", "a ready", "released", "1h", "released", "a lost", "deleting: delete a"}},
		"a cancelled loss declines no maintenance of another": {p: asksToMake, spot: true, names: []string{"a", "b"}, steps: []string{
			"b log pending", "peace", "a lost", "approving", "cancelled", "released", "1m", "released", "a ready", "released", "steps", "released", "110m", "saving: save",
		}},
		"a cancelled save lets it come":      {steps: []string{"a log ongoing", "saving: save", "cancelled", "released", "a shows ongoing", "released", "48h", "released"}},
		"under watch, a cancel only ends it": {policy: "watch", spot: true, steps: []string{"a lost", "watching", "cancelled", "observed"}},
		"a training that goes on is left be": {steps: []string{"retried", "peace"}},
		"what somebody deletes has time to go, counted from a retry": {
			steps: []string{"a deleting", "peace", "5h", "peace", "retried", "healing", "3h", "healing", "2h", "escalated"},
		},
		"a cancelled healing is a person's": {steps: []string{
			"host error", "looking", "a unhealthy", "healing", "cancelled", "released", "24h", "released", "a unhealthy", "released", "24h", "released",
		}},
		"a slice that is gone is a person's": {steps: []string{
			"stopped for", "looking", "a gone", "grace", "cancelled", "released", "a gone", "released", "48h", "released",
		}},
		"a training that has failed is a person's": {steps: []string{
			"exit 139", "resuming", "gave up", "resuming: hear", "its verdict", "restarting: restart a=7711", "intend restart", "restarting", "cancelled", "released",
			"48h", "released",
		}},
		"what a cancelled incident has ordered is cleaned up": {spot: true, steps: []string{
			"a lost", "deleting: delete a", "do", "deleting", "a gone", "creating: create a", "do", "creating", "cancelled", "clearing", "cancelled", "clearing",
			"a read ours made", "clearing: delete a", "do", "clearing", "a gone", "released",
		}},
		"what may not be done stays so": {p: never, spot: true, steps: []string{"a lost", "escalated", "1h", "escalated", "retried", "escalated"}},
		"a retry asks every place at once": {spot: true, steps: []string{
			"a lost", "deleting: delete a", "intend delete", "deleting", "a gone", "creating: create a", "stockout create", "", "stockout create", "creating",
			"retried", "creating: create a",
		}},
		"what may only be watched stays so": {policy: "watch", spot: true, steps: []string{"a lost", "watching", "policy unreadable", "", "3m", "", "cancelled", "observed"}},
	})
}

// TestWhatWasGivenUpIsTriedAgain with budgets that start anew. What the policy forbids is given up again.
func TestWhatWasGivenUpIsTriedAgain(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		policy            string
		spot              bool
		opens, then, want string
	}{
		"preempted, read lost":                    {"seldom", true, "deleting", "tick", "delete llama-8b"},
		"preempted, read lost, no verdict hear":   {"everything", true, "deleting", "tick", "delete llama-8b"}, // it was replaced too often
		"preempted, read gone":                    {"seldom", true, "grace", "35m, tick", "create llama-8b"},
		"host error, read unhealthy, later, tick": {"seldom", false, "deleting", "tick", "delete llama-8b"},
		"host error, read lost, later, tick":      {"seldom", false, "deleting", "tick", "delete llama-8b"},
		"exit 139, gave up, spent hear":           {"everything", true, "restarting", "tick", "restart llama-8b=7711"},
	} {
		n := at(t, c.policy, c.spot, path, spent(events.ActionDelete, events.ActionRestart))
		n.is("escalated")
		before := n.w.Closed.ID
		n.under("unreadable").history("10m", "escalated", "retried", c.opens)
		if n.w.Incident.ID == before || n.w.Spent(events.ActionDelete)+n.w.Spent(events.ActionRestart) > 0 {
			t.Errorf("%s: after the word charged is %+v:\n%s", path, n.w.Charges, n.tale())
		}
		forbidden := *n
		forbidden.under("seldom").goes(c.then).is("escalated")
		n.under("everything").goes(c.then).wants(c.want)
	}
}

// TestNothingIsRetriedThatGoesOn, and people hear why.
func TestNothingIsRetriedThatGoesOn(t *testing.T) {
	t.Parallel()
	for path, why := range map[string]string{
		"tick":                      "training goes on: step 48,180",
		"pending, later, tick":      "waits for a person",
		"preempted, read lost":      "waits for a person",
		"preempted":                 "is under way (looking)",
		"read unhealthy, 6m":        "is under way (healing)",
		"finished, its verdict":     "the training is finished",
		"abuse":                     "Google suspects abuse",
		"owner deletes, read gone":  "its owner deleted every slice",
		"owner stops, read stopped": "its owner stopped it",
		"a crew that waits":         "no crew has been heard",
	} {
		n := newStory(t, true, "llama-8b").under("ask")
		if path == "a crew that waits" {
			n.with(crewless)
		}
		if got := n.goes(path).w.NothingToRetry(n.now); !strings.Contains(got, why) {
			t.Errorf("%s: %q, want %q\n%s", path, got, why, n.tale())
		}
		if _, _, changed := incident.Advance(n.p, n.w, evidence.Retried{Origin: n.reading(), Word: ann}, n.now); changed {
			t.Errorf("%s: it is retried", path)
		}
	}
	n := newStory(t, true, "llama-8b")
	if why := n.later(bounds.ResumeFor).w.NothingToRetry(n.now); why != "" {
		t.Errorf("a training that is silent: %q", why)
	}
}

// TestQuestionsAreAskedInWords. An answer is for its question alone, and waits for a policy that can be read.
func TestQuestionsAreAskedInWords(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]string{
		"preempted, read lost":           {"recreate llama-8b", "delete llama-8b"},
		"exit 139, gave up, its verdict": {"restart the training", "restart llama-8b=7711"},
		"pending, later, tick":           {"save, and start the maintenance now", "save"},
	} {
		n := at(t, "ask", true, path)
		in := n.w.Incident
		if q := n.w.Question(); q != want[0] {
			t.Errorf("%s: it asks %q, want %q", path, q, want[0])
		}
		if tale := n.tale(); strings.Contains(tale, "is verified") {
			t.Errorf("%s: nothing is saved yet:\n%s", path, tale)
		}
		if otherwise := n.w.Shown(n.now).Need.Otherwise; strings.Contains(otherwise, "the maintenance begins as announced") != (in.Status.Asks == events.ActionMaintain) {
			t.Errorf("%s: else %s", path, otherwise)
		}
		for _, e := range []evidence.Approved{{Word: ann, Incident: in.ID, Action: events.ActionStart}, {Word: ann, Incident: "llama-8b-20261101-1", Action: in.Status.Asks}} {
			if _, _, changed := incident.Advance(n.p, n.w, e, n.now); changed {
				t.Errorf("%s: %+v counts", path, e)
			}
		}
		n.under("unreadable").history("approved", "approving")
		if q := n.w.Question(); q != "" || !strings.Contains(n.tale(), "ann@example.com: approve "+want[0]+" | "+ann.Why) {
			t.Errorf("%s: after the yes it asks %q:\n%s", path, q, n.tale())
		}
		n.under("ask").passes(time.Minute)
		n.wants(want[1])
	}
}

// TestWhatTheTrainingMeetsAfterACancelIsAPersons, until it does a step again.
func TestWhatTheTrainingMeetsAfterACancelIsAPersons(t *testing.T) {
	t.Parallel()
	for path, then := range map[string]string{
		"exit 139": "started", "exit 139, gave up, its verdict": "exit 139, gave up", "exit 139, gave up, its verdict, intend restart": "exit 139, gave up",
	} {
		n := at(t, "everything", true, path+", cancelled")
		epoch := n.w.Epoch
		n.goes("1m, " + then)
		for range 48 {
			n.goes("1h, a crew that waits")
		}
		if n.w.Epoch != epoch {
			t.Fatalf("%s: it is opened again:\n%s", path, n.tale())
		}
		n.later(time.Minute).steps(3, 60_000)
		n.goes("1m, started, exit 139").opens(true)
	}
}

// TestAnIncidentEndsWithTheLastSliceThatItIsAbout: what its owner orders in the middle of it, and in vain, is theirs.
func TestAnIncidentEndsWithTheLastSliceThatItIsAbout(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]view.Outcome{"everything": view.Released, "watch": view.Observed} {
		n := at(t, name, true, "preempted, read gone, cancelled, 8h")
		theirs := n.now
		n.goes("retried").theirs(evidence.Creating, theirs).opens(true)
		n.reads("llama-8b", evidence.Gone, func(e *evidence.Read) { e.Incarnation = events.Incarnation{} })
		if got := n.ended(); got.Outcome != want || got.Code != reason.CodeOwner {
			t.Errorf("%s: it ended %+v, want it %s:\n%s", name, got, want, n.tale())
		}
	}
}

// TestAnEmptyMachineIsNotCreatedUnasked: without a start-up script nothing trains on it. What may not be replaced is not asked about.
func TestAnEmptyMachineIsNotCreatedUnasked(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"spot": "approving", "seldom": "escalated", "watch": "watching"} {
		n := newStory(t, true, "llama-8b").under(name)
		n.w.Slices[0].Bare = true
		if f := n.w.IfLost(n.p, "llama-8b", n.now); string(f.Phase) != want && string(f.Outcome) != want {
			t.Errorf("%s: foreseen is %+v", name, f)
		}
		if n.history("preempted", "", "read lost", want); want == "approving" {
			if !strings.Contains(n.tale(), "llama-8b has no start-up script") {
				t.Error(n.tale())
			}
			n.history("approved", "deleting: delete llama-8b", "intend delete", "deleting")
		}
	}
}

// TestEveryWordIsRecorded, and the oldest are forgotten.
func TestEveryWordIsRecorded(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	n.give(evidence.Paused{Word: ann, Lift: true}) // nothing is paused
	n.give(evidence.Paused{Word: ann, Until: start.Add(time.Hour)})
	if p := n.w.Pause; !p.Holds(start) || p.By != ann.By || p.Why != ann.Why {
		t.Errorf("the pause is %+v", p)
	}
	n.give(evidence.Paused{Word: ann, Lift: true}).give(evidence.Ordered{Word: ann, Verb: evidence.VerbAttach, Text: "to policy spot"}).goes("preempted, cancelled")
	var said []string
	for _, o := range n.w.Orders {
		said = append(said, strings.TrimSpace(string(o.Verb)+" "+o.Text))
	}
	want := []string{"pause until 2026-11-12T03:00:00Z", "resume", "attach to policy spot", "cancel"}
	if last := n.w.Orders[3]; !slices.Equal(said, want) || n.w.Pause != nil || last.By != ann.By || last.Incident != n.w.Closed.ID {
		t.Errorf("recorded is %q, and the pause %+v", said, n.w.Pause)
	}
	for range 2 * bounds.MaxOrders {
		n.give(evidence.Ordered{Word: ann, Verb: evidence.VerbAttach})
	}
	if len(n.w.Orders) != bounds.MaxOrders {
		t.Errorf("%d orders are kept", len(n.w.Orders))
	}
}

// TestItGivesUpAfterTheFirstRefusal: before that, nobody knew that there is no room.
func TestItGivesUpAfterTheFirstRefusal(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	n.p.GiveUpAfter, n.p.Zones = 2*time.Hour, []string{"us-west4-a"}
	first := n.goes("a lost, does delete a, a gone, 7m").now
	for n.w.Incident != nil && n.now.Sub(first) < 6*time.Hour {
		n.goes("stockout create, 5m")
	}
	if waited := n.now.Sub(first); n.ended().Code != reason.CodeGaveUp || waited < n.p.GiveUpAfter || waited > n.p.GiveUpAfter+6*time.Minute {
		t.Errorf("it has waited for %s:\n%s", waited, n.tale())
	}
}

// TestALeftoverThatCannotBeDeletedIsToldOnce: it opens no further incident, and hides no loss.
func TestALeftoverThatCannotBeDeletedIsToldOnce(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a", "b")
	n.w.Made = []incident.Making{{Incident: "x", Opened: start.Add(-time.Hour), Closed: start.Add(-30 * time.Minute)}}
	shows := func() {
		n.reads("a", evidence.Ready, func(e *evidence.Read) {
			e.Zone, e.Incident = "us-west4-b", "x"
			e.Incarnation = events.Incarnation{Zone: e.Zone, ID: "666", Created: start.Add(-45 * time.Minute)}
		})
	}
	shows()
	n.goes("permission delete").is("escalated")
	id := n.w.Closed.ID
	for range 60 {
		n.goes("1m, progress")
		shows()
	}
	if n.w.Incident != nil || n.w.Closed != nil && n.w.Closed.ID != id {
		t.Errorf("it is told again:\n%s", n.tale())
	}
	n.history("b lost", "deleting: delete b")
}

// TestASliceThatNeverCameStandsNowhere: a creation of ours that came to nothing puts no slice apart from the others.
func TestASliceThatNeverCameStandsNowhere(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a", "b")
	b := &n.w.Slices[1]
	b.Former = []incident.Life{b.Life}
	b.Former[0].Condition, b.Former[0].Used = evidence.Gone, b.Since
	b.Life = incident.Life{
		Incarnation: events.Incarnation{Zone: "us-west4-b", ID: "8001", Created: start.Add(-20 * time.Minute)}, Zone: "us-west4-b", Facts: b.Facts,
		Condition: evidence.Gone, State: "gone", Since: start.Add(-10 * time.Minute), EndedBy: "x",
	}
	n.play("retried")
	if x := n.w.Effects; len(x) != 1 || x[0].Action != events.ActionCreate || x[0].Zone != "us-west4-a" {
		t.Errorf("a stands in us-west4-a, and wanted is %+v:\n%s", x, n.tale())
	}
}

// TestASliceThatCameAloneHasTheOthersBesideIt: it was made elsewhere once all were lost, and the incident ended before the other had come. Nothing has
// ever trained in several zones.
func TestASliceThatCameAloneHasTheOthersBesideIt(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a", "b").with(bare, crewless)
	for i := range n.w.Slices {
		s := &n.w.Slices[i]
		s.Condition, s.Used, s.Since, s.Over, s.EndedBy = evidence.Gone, s.Since, start.Add(-30*time.Minute), start.Add(-30*time.Minute), "x"
	}
	a := &n.w.Slices[0]
	a.Former, a.Order.SpecZone = []incident.Life{a.Life}, "us-west4-a"
	a.Life = incident.Life{
		Incarnation: events.Incarnation{Zone: "us-west4-b", ID: "8001", Created: start.Add(-20 * time.Minute)}, Zone: "us-west4-b", Facts: a.Facts,
		Condition: evidence.Ready, State: "READY", Since: start.Add(-10 * time.Minute),
	}
	n.play("retried")
	if x := n.w.Effects; len(x) != 1 || x[0].Action != events.ActionCreate || x[0].Zone != "us-west4-b" {
		t.Errorf("a stands in us-west4-b, and wanted is %+v:\n%s", x, n.tale())
	}
	n.goes("does create b, b read ours, a read lost, does delete a, a read gone")
	if x := n.w.Effects; len(x) != 1 || x[0].Action != events.ActionCreate || x[0].Zone != "us-west4-b" {
		t.Errorf("b stands in us-west4-b, and wanted is %+v:\n%s", x, n.tale())
	}
}

// TestASliceThatWasAloneStandsNowhere: it was made elsewhere while the other was gone, and was lost before the other came back.
func TestASliceThatWasAloneStandsNowhere(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a", "b").with(bare, crewless)
	for i, made := range []time.Duration{-50 * time.Minute, -20 * time.Minute} {
		s := &n.w.Slices[i]
		first := s.Life
		first.Condition, first.Used, first.Over = evidence.Gone, s.Since, start.Add(-time.Hour)
		s.Former = []incident.Life{first}
		s.Incarnation.ID, s.Incarnation.Created, s.Since = "8001", start.Add(made), start.Add(made+5*time.Minute)
	}
	a := &n.w.Slices[0]
	a.Zone, a.Incarnation.Zone, a.Condition, a.Used, a.Over = "us-west4-b", "us-west4-b", evidence.Gone, a.Since, start.Add(-30*time.Minute)
	a.EndedBy = "x"
	n.play("retried")
	if x := n.w.Effects; len(x) != 1 || x[0].Action != events.ActionCreate || x[0].Zone != "us-west4-a" {
		t.Errorf("b stands in us-west4-a, and wanted is %+v:\n%s", x, n.tale())
	}
}

// TestAHoldThatDoesNotEndIsTold: it is left to a person after its cap, whatever holds, and however it is told again.
func TestAHoldThatDoesNotEndIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code  reason.Code
		until func(now time.Time) time.Time
	}{
		"a policy that stays unreadable":   {reason.CodePolicyUnreadable, nil},
		"a pause without an end":           {reason.CodePaused, func(time.Time) time.Time { return time.Time{} }},
		"a brake that holds hour by hour":  {reason.CodeBraked, func(now time.Time) time.Time { return now.Truncate(time.Hour).Add(time.Hour) }},
		"a pause that nobody ever renewed": {reason.CodePaused, func(time.Time) time.Time { return start.Add(30 * 24 * time.Hour) }},
	} {
		n := newStory(t, true, "a").goes("preempted, read lost")
		if c.until == nil {
			n.under("unreadable")
		}
		opened := n.now
		for n.w.Incident != nil && n.now.Sub(opened) < 30*24*time.Hour {
			if n.passes(time.Minute); c.until == nil {
				continue
			}
			if n.later(4 * time.Minute); !n.isWanted(events.ActionDelete) || n.w.Effects[0].Stage() != view.StageWanted {
				continue
			}
			held := evidence.Held{Origin: n.reading(), Request: n.request(events.ActionDelete, "a"), Code: c.code, Why: "it is held", Until: c.until(n.now)}
			if held.Begun = c.code == reason.CodePaused; held.Begun { // it is read behind the intent
				n.intends(held.Request)
			}
			n.give(held).give(held) // delivered again
		}
		end, took := n.ended(), n.now.Sub(opened)
		if end.Outcome != view.Escalated || end.Code != c.code || !strings.Contains(end.Advice.String(), "pitstop retry llama-8b") {
			t.Errorf("%s: it ended %+v:\n%s", name, end, n.tale())
		}
		if took < bounds.HeldForMost || took > bounds.HeldForMost+bounds.RemoveFor+time.Hour {
			t.Errorf("%s: it ended after %v, want about %v", name, took, bounds.HeldForMost)
		}
	}
}

// TestAHoldGivesBackItsTime: what is left of a wait when a hold begins is left when it ends, enough to ask again.
func TestAHoldGivesBackItsTime(t *testing.T) {
	t.Parallel()
	for _, left := range []time.Duration{time.Second, 30 * time.Second, 5 * time.Minute} {
		n := newStory(t, true, "a").goes("preempted, read lost")
		n.now = n.w.Incident.Status.Until.Add(-left - time.Second)
		n.goes("held delete")
		if sent := n.passes(2*time.Minute - 4*time.Second); len(sent) != 1 || sent[0] != "delete a" { // the last moment at which it is due again
			t.Errorf("left %v: asked for is %q:\n%s", left, sent, n.tale())
		}
	}
}

// TestAPauseHoldsByEveryClock: an instance whose clock is ahead of that of whoever paused does not begin before the end.
func TestAPauseHoldsByEveryClock(t *testing.T) {
	t.Parallel()
	end := start.Add(2 * time.Hour)
	for after, want := range map[time.Duration]bool{-time.Hour: true, 0: true, 59 * time.Second: true, time.Minute: false} {
		if got := (&evidence.Pause{By: "ann", At: start, Until: end}).Holds(end.Add(after)); got != want {
			t.Errorf("%v after its end it holds: %v", after, got)
		}
	}
	var none *evidence.Pause
	if none.Holds(start) || !(&evidence.Pause{By: "ann"}).Holds(end.Add(10000*time.Hour)) {
		t.Error("no pause holds, or one without an end does not")
	}
}

// TestWhatAPolicyNamesIsNotJudgedWhileItCannotBeRead: no other zone, no higher bound and no longer lead is known for that minute.
func TestWhatAPolicyNamesIsNotJudgedWhileItCannotBeRead(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct{ meanwhile, want string }{
		"preempted, read lost, do, read gone, cannot_move create": {"1m", "creating: create llama-8b"},
		"exit 139, gave up": {"its verdict, 1m", "restarting: restart llama-8b=7711"},
	} {
		n := newStory(t, true, "llama-8b").under("everything").with(func(w *incident.Workload) {
			w.Charges = slices.Repeat([]incident.Charge{{Action: events.ActionRestart, At: start, Void: true}}, policy.DefaultRestartsPerDay)
		})
		n.p.RestartsPerDay = 2 * policy.DefaultRestartsPerDay
		known := n.p
		n.goes(path)
		n.p = policy.Policy{Name: known.Name, Unreadable: "503"}
		n.goes(c.meanwhile)
		if n.p = known; n.stands(n.passes(time.Minute)) != c.want {
			t.Errorf("%s: it stands at %s, want %s:\n%s", path, n.stands(n.sent), c.want, n.tale())
		}
	}
	n := newStory(t, false, "a")
	n.p = policy.Policy{Name: n.p.Name, Unreadable: "503"}
	if due := n.goes("log pending").w.Slices[0].Notice.Due; due.After(n.now) {
		t.Errorf("nobody looks for the policy's lead before %v", due)
	}
}
