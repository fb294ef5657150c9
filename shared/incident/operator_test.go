package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// TestOperators plays what people order.
func TestOperators(t *testing.T) {
	t.Parallel()
	asked := func(p *policy.Policy) {
		p.Switches = policy.Switches{Recreate: policy.Ask, RecreateNonSpot: policy.Ask, Restart: policy.Ask}
	}
	never := forbids(policy.Recreate, policy.RecreateNonSpot)
	spot := func(w *incident.Workload) { w.Slices[0].Reclaimable = true }
	for name, c := range map[string]history{
		"a yes goes on at once":               {p: asked, w: spot, steps: []string{"a lost", "approving", "approved", "deleting: delete a"}},
		"nobody says yes, and it waits":       {p: asked, w: spot, steps: []string{"a lost", "approving", "240h", "approving"}},
		"a cancelled loss is a person's":      {w: spot, steps: []string{"a lost", "deleting: delete a", "cancelled", "released", "a lost", "released", "48h", "released"}},
		"what comes back after it is watched": {w: spot, steps: []string{"a lost", "", "cancelled", "released", "a ready", "released", "1h", "released", "a lost", "deleting: delete a"}},
		"a cancelled save lets it come":       {steps: []string{"a log ongoing", "saving: save", "cancelled", "released", "a shows ongoing", "released", "48h", "released"}},
		"under watch, a cancel only ends it":  {p: func(p *policy.Policy) { p.Switches = policy.Switches{} }, w: spot, steps: []string{"a lost", "watching", "cancelled", "observed"}},
		"a training that goes on is left be":  {steps: []string{"retried", "peace"}},
		"what somebody deletes has time to go, counted from a retry": {
			steps: []string{"a deleting", "peace", "5h", "peace", "retried", "healing", "3h", "healing", "2h", "escalated"},
		},
		"what may not be done stays so": {p: never, w: spot, steps: []string{"a lost", "escalated", "1h", "escalated", "retried", "escalated"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.plays(t)
		})
	}
}

// TestWhatWasGivenUpIsTriedAgain with a budget that starts anew, once the obstacle is removed.
func TestWhatWasGivenUpIsTriedAgain(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	all := n.p
	forbids(policy.Recreate, policy.RecreateNonSpot)(&n.p)
	n.w.Charges = []incident.Charge{{Action: events.ActionDelete, Incident: "before", At: start}}
	n.play("a lost")
	if n.ended().Outcome != "escalated" {
		t.Fatal(n.tale())
	}
	n.p = all
	n.play("10m")
	if got := n.stands(n.play("retried")); got != "deleting: delete a" || !n.w.Charges[0].Void {
		t.Errorf("it stands at %s, charged is %+v:\n%s", got, n.w.Charges, n.tale())
	}
}

// TestARetryAsksEveryPlaceAtOnce in the middle of an incident.
func TestARetryAsksEveryPlaceAtOnce(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	n.play("a lost")
	n.begins(events.ActionDelete, "a")
	n.play("a gone")
	n.fails(n.begins(events.ActionCreate, "a"), reason.Stockout)
	n.fails(n.begins(events.ActionCreate, "a"), reason.Stockout)
	if len(n.w.Incident.Refusals) != 2 || n.w.NothingToRetry(n.now) != "" {
		t.Fatalf("it does not wait: %s\n%s", n.w.NothingToRetry(n.now), n.tale())
	}
	if got := n.stands(n.play("retried")); got != "creating: create a" || len(n.w.Incident.Refusals) > 0 {
		t.Errorf("it stands at %s, refused have %+v", got, n.w.Incident.Refusals)
	}
}

// TestNothingIsRetriedThatGoesOn, and people hear why.
func TestNothingIsRetriedThatGoesOn(t *testing.T) {
	t.Parallel()
	for steps, why := range map[string]string{
		"":                       "training goes on: step 48,180",
		"a log movable, 1m":      "waits for a person",
		"a lost":                 "waits for a person",
		"a unhealthy, 6m":        "is under way (healing)",
		"a owner deletes":        "its owner deleted every slice",
		"a stopped by its owner": "its owner stopped it",
	} {
		n := newStory(t, false, "a")
		asks(&n.p)
		n.p.Switches.RecreateNonSpot = policy.Ask
		if steps == "a lost" {
			n.w.Slices[0].Reclaimable, n.p.Switches.Recreate = true, policy.Ask
		}
		for step := range strings.SplitSeq(steps, ", ") {
			switch step {
			case "":
			case "a owner deletes":
				n.give(evidence.Called{Origin: n.reading(), Slice: "a", Act: events.ActDeleted, Principal: "ann@example.com"})
			case "a stopped by its owner":
				n.give(evidence.Called{Origin: n.reading(), Slice: "a", Act: events.ActStopped, Principal: "ann@example.com"})
				n.play("a stopped")
			default:
				n.play(step)
			}
		}
		if got := n.w.NothingToRetry(n.now); !strings.Contains(got, why) {
			t.Errorf("%s: %q, want %q\n%s", steps, got, why, n.tale())
		}
		if _, _, changed := incident.Advance(n.p, n.w, evidence.Retried{Origin: n.reading(), Word: evidence.Word{By: "ann"}}, n.now); changed {
			t.Errorf("%s: it is retried", steps)
		}
	}
}

// TestQuestionsAreAskedInWords, and once a person has said yes no more.
func TestQuestionsAreAskedInWords(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	asks(&n.p)
	n.p.Switches.Recreate = policy.Ask
	n.play("a lost")
	if q := n.w.Question(); q != "recreate a" {
		t.Errorf("a loss asks %q", q)
	}
	read := n.p
	n.p = policy.Policy{Unreadable: "503"}
	n.play("approved") // the command cannot read the policy
	if q := n.w.Question(); q != "" || n.w.Incident.Status.Label != "approving" {
		t.Errorf("after the yes it asks %q, and stands at %s", q, n.w.Incident.Status.Label)
	}
	n.p = read
	if got := n.stands(n.passes(time.Minute)); got != "deleting: delete a" {
		t.Errorf("under a policy that can be read it stands at %s", got)
	}
	m := newStory(t, false, "a")
	asks(&m.p)
	m.play("a log movable")
	m.play("1m")
	if q := m.w.Question(); q != "save, and start the maintenance now" {
		t.Errorf("early maintenance asks %q", q)
	}
}

// TestWhatTheTrainingMeetsAfterACancelIsAPersons, until it does a step again.
func TestWhatTheTrainingMeetsAfterACancelIsAPersons(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	exit := func(attempt int) {
		n.now = n.now.Add(time.Minute)
		n.line("a", events.CrewReport{Report: events.ReportExited, Attempt: attempt, ExitCode: 139})
	}
	exit(1)
	if n.w.Incident == nil {
		t.Fatal("a crash opens nothing")
	}
	n.play("cancelled")
	exit(2)
	if n.play("3h"); n.w.Incident != nil {
		t.Fatalf("it is opened again:\n%s", n.tale())
	}
	n.now = n.now.Add(time.Minute)
	n.line("a", events.CrewReport{Report: events.ReportProgress, Attempt: 3, Step: 60_000})
	if exit(4); n.w.Incident == nil {
		t.Error("a crash behind a new step opens nothing")
	}
}

// TestWhatMayOnlyBeWatchedStaysSo: a policy that cannot be read allows no more than the one at the opening.
func TestWhatMayOnlyBeWatchedStaysSo(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	n.p.Switches = policy.Switches{}
	n.play("a lost")
	n.p.Unreadable = "line 1 is wrong"
	n.play("3m")
	if n.play("cancelled"); n.ended().Outcome != "observed" {
		t.Errorf("it ended %s:\n%s", n.ended().Outcome, n.tale())
	}
}

// TestItGivesUpAfterTheFirstRefusal: before that, nobody knew that there is no room.
func TestItGivesUpAfterTheFirstRefusal(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	n.p.GiveUpAfter, n.p.Zones = 2*time.Hour, []string{"us-west4-a"}
	for _, step := range []string{"a lost", "does delete a", "a gone", "7m"} {
		n.play(step)
	}
	first := n.now
	for n.w.Incident != nil && n.now.Sub(first) < 6*time.Hour {
		n.fails(n.begins(events.ActionCreate, "a"), reason.Stockout)
		n.play("5m")
	}
	if waited := n.now.Sub(first); n.ended().Code != reason.CodeGaveUp || waited < n.p.GiveUpAfter || waited > n.p.GiveUpAfter+5*time.Minute {
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
	n.fails(n.begins(events.ActionDelete, "a"), reason.Permission)
	if n.ended().Outcome != view.Escalated {
		t.Fatal(n.tale())
	}
	id := n.w.Closed.ID
	for range 60 {
		n.now = n.now.Add(time.Minute)
		n.line("a", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: n.w.Training.Step + 1})
		shows()
		n.play("1s")
	}
	if n.w.Incident != nil || n.w.Closed != nil && n.w.Closed.ID != id {
		t.Errorf("it is told again:\n%s", n.tale())
	}
	if got := n.stands(n.play("b lost")); got != "deleting: delete b" {
		t.Errorf("b is lost, and it stands at %s", got)
	}
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
