package incident_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// TestNothingHidesATrouble: no notice, no end of another trouble, no void question, and no step of others. Each slice has its own time.
func TestNothingHidesATrouble(t *testing.T) {
	t.Parallel()
	const save = "saving: save"
	for name, c := range map[string]struct {
		policy string
		two    bool
		change func(*incident.Workload)
		steps  []string
	}{
		"a loss, whose notice goes with it":  {"spot", false, spot, []string{"shows pending, later, tick", save, "read lost", "deleting: delete llama-8b"}},
		"one that goes slowly":               {"spot", false, spot, []string{"shows pending, later, tick", save, "read deleting", "window", "read lost", "deleting: delete llama-8b"}},
		"a sick slice, whose notice goes":    {"spot", false, spot, []string{"shows pending, later, tick", save, "read unhealthy", "window", "later, tick", "deleting: delete llama-8b"}},
		"another's maintenance is withdrawn": {"everything", true, spot, []string{"a pending, later, tick", save, "b read deleting, a notice gone", "window", "b read gone", "grace", "later, tick", "creating: create b"}},
		"the training goes on without it":    {"everything", true, spot, []string{"a exit 139", "resuming", "b read deleting, a progress", "healing", "b read gone", "grace", "later, tick", "creating: create b"}},
		"what is gone waits for no yes to its maintenance": {"ask", false, spot, []string{
			"pending, later, tick", "approving", "read gone", "grace", "later, tick", "approving", "approved", "creating: create llama-8b",
		}},
		"what is proven to be lost neither": {"ask", false, spot, []string{
			"pending, later, tick", "approving", "preempted", "looking", "read gone", "approving", "approved", "creating: create llama-8b",
		}},
		"each is gone for its own time": {"everything", true, spot, []string{
			"b crew notice", "looking", "b read gone, 34m, a read gone, tick", "grace", "a minute, tick", "creating: create b",
		}},
		"each heals for its own time": {"everything", true, onDemand, []string{
			"a read unhealthy", "peace", "6m", "healing", "3h58m", "healing", "b read unhealthy", "healing", "5m", "deleting: delete a",
		}},
		"maintenance is heard of late": {"spot", false, spot, []string{
			"read unhealthy", "peace", "6m, shows ongoing", "healing", "9h50m", "healing", "later, tick", "deleting: delete llama-8b",
		}},
		"what was usable may have something to lose": {"everything", false, crewless, []string{
			"preempted, read lost, do, read gone, do, read ours", "admitting: admit llama-8b=7712", "read unhealthy", "creating", "later, tick", "looking: hear",
			"no verdict hear", "escalated",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newStory(t, true, "llama-8b")
			if c.two {
				n = multi(t, true)
			}
			n.under(c.policy).with(c.change).history(c.steps...)
		})
	}
}

// TestALiftedPauseIsOver: what it held is asked for with the next minute, and not when it would have ended.
func TestALiftedPauseIsOver(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "preempted, read lost")
	n.give(evidence.Held{
		Origin: n.reading(), Request: n.request(events.ActionDelete, "llama-8b"), Code: reason.CodePaused, Why: "paused by ann", Until: n.now.Add(48 * time.Hour),
	})
	n.give(evidence.Paused{Origin: n.reading(), Word: ann, Lift: true})
	if sent := n.passes(time.Minute); !slices.Equal(sent, []string{"delete llama-8b"}) {
		t.Errorf("asked for is %q:\n%s", sent, n.tale())
	}
}

// TestWhatOnlyTheAPICallsSickIsKeptWhileItTrains: a state that nobody knows is no loss, and steps are the proof.
func TestWhatOnlyTheAPICallsSickIsKeptWhileItTrains(t *testing.T) {
	t.Parallel()
	for _, c := range []evidence.Condition{evidence.Unclear, evidence.Unhealthy} {
		n := newStory(t, true, "llama-8b").under("spot")
		n.reads("llama-8b", c).passes(6 * time.Minute)
		n.opens(true)
		var sent []string
		for i := range int64(100) {
			n.later(4*time.Minute).steps(1, 48700+500*i)
			sent = append(sent, n.reads("llama-8b", c).passes(time.Minute)...)
		}
		if n.opens(false); sent != nil || n.w.Closed != nil && n.ended().Outcome != view.Resumed {
			t.Errorf("%s: asked for is %q while it trains:\n%s", c, sent, n.tale())
		}
		if sent = n.passes(5 * time.Hour); !slices.Contains(sent, "delete llama-8b") {
			t.Errorf("%s: no step comes any more, and asked for is %q", c, sent)
		}
	}
	n := newStory(t, true, "llama-8b").under("spot").goes("read unhealthy, 6m") // its lines are lost, and its crew is listened for
	for range 100 {
		if n.w.Reads(n.now).Has(incident.ReadCrew, "llama-8b") {
			n.play("a crew at work")
		}
		if sent := n.passes(5 * time.Minute); sent != nil {
			t.Fatalf("asked for is %q while its crew works:\n%s", sent, n.tale())
		}
	}
	if sent := n.passes(9 * time.Hour); !slices.Contains(sent, "delete llama-8b") {
		t.Errorf("its crew does nothing any more, and asked for is %q", sent)
	}
}

// TestWhatIsAcceptedAndFailsAgainAndAgainEnds: an answer that accepts a call is no success.
func TestWhatIsAcceptedAndFailsAgainAndAgainEnds(t *testing.T) {
	t.Parallel()
	for action, c := range map[events.Action]struct {
		path, read string
		class      reason.FailureClass
		within     time.Duration
		code       reason.Code
	}{
		events.ActionCreate: {"preempted, read lost, do, read gone", "read gone", reason.Transient, 3 * time.Hour, reason.CodeRetries},
		events.ActionDelete: {"preempted, read lost", "read lost", reason.NotInState, 7 * time.Hour, reason.CodeOverdue},
	} {
		n := at(t, "everything", true, c.path)
		for i := 0; i < 48*60 && n.w.Incident != nil; i++ {
			if x := n.effect(action, "llama-8b"); x >= 0 && n.w.Effects[x].Stage() == view.StageWanted {
				n.play("does " + string(action))
				n.later(2 * time.Minute).play("late " + string(c.class) + " " + string(action))
			}
			n.play(c.read)
			n.passes(time.Minute)
		}
		if n.opens(false); n.ended().Code != c.code || n.w.Closed.Closed.Sub(n.w.Closed.Opened) > c.within {
			t.Errorf("%s: it ended after %v:\n%s", action, n.w.Closed.Closed.Sub(n.w.Closed.Opened), n.tale())
		}
	}
}

// TestADeletionElsewhereIsOfSomethingElse: who deletes a leftover in another zone, as they were told to, does not give up what lives here.
func TestADeletionElsewhereIsOfSomethingElse(t *testing.T) {
	t.Parallel()
	for zone, want := range map[string]string{"us-west4-b": "deleting: delete llama-8b", "us-west4-a": "peace"} {
		n := newStory(t, true, "llama-8b")
		n.give(evidence.Called{Origin: n.log(), Slice: "llama-8b", Zone: zone, Act: events.ActDeleted, Principal: ann.By})
		n.history("10m, read ready", "peace", "preempted, read lost", want)
	}
}

// elsewhere is a reading of a slice that its owner has made anew, for another training.
func elsewhere(life string, made time.Time) func(*evidence.Read) {
	return func(e *evidence.Read) {
		e.Incarnation, e.Directory = events.Incarnation{Zone: e.Zone, ID: life, Created: made}, "gs://east/other"
	}
}

// TestAnotherTrainingHasNothingOfTheOneBefore: no step, no checkpoint, no lease and no charge. The newest slice says which training it is.
func TestAnotherTrainingHasNothingOfTheOneBefore(t *testing.T) {
	t.Parallel()
	begin := func() *story {
		n := newStory(t, true, "llama-8b").with(led).goes("owner deletes, read gone, an hour")
		n.w.Training.GapSeconds, n.w.Charges = 300, []incident.Charge{{Action: events.ActionRestart, At: n.now}}
		n.reads("llama-8b", evidence.Ready, elsewhere("9001", n.now)).goes("mapped")
		return n.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: 1})
	}
	n := begin()
	for i := range int64(60) {
		if n.later(4*time.Minute).steps(1, 100+10*i); n.passes(time.Minute) != nil || n.w.Reads(n.now).Has(incident.ReadCrew, "") {
			t.Fatalf("it is taken to hang, or let in:\n%s", n.tale())
		}
	}
	if tr := n.w.Training; tr.Step != 690 || tr.High != 690 || tr.Saved.Step != 0 || n.w.Lease.Attempt != 0 || len(n.w.Charges) != 0 {
		t.Errorf("it does its steps, and the document has %+v", tr)
	}
	n.history("exit 139", "resuming", "gave up, its verdict", "restarting: restart llama-8b=9001")
	begin().history("read unhealthy, 6m", "healing", "later, tick", "looking: hear", "no verdict hear", "escalated")

	m := multi(t, true)
	m.reads("b", evidence.Ready, elsewhere("9001", m.now)).goes("b mapped")
	m.line("b", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 10})
	m.reads("a", evidence.Ready, func(e *evidence.Read) { e.Directory = "gs://ckpt/llama-8b" })
	if m.w.Directory != "gs://east/other" || m.w.Training.Step != 10 {
		t.Errorf("the directory is %s, and the step %d", m.w.Directory, m.w.Training.Step)
	}
}

// TestATrainingThatWasTakenBackGoesOn as long as it does steps, though they are below what was saved. New ground counts from there.
func TestATrainingThatWasTakenBackGoesOn(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").with(led)
	n.w.Training.GapSeconds, n.w.Training.Proven = 300, 48000
	n.goes("preempted, read lost, do, read gone, do, read ours, do, mapped")
	step, sent := int64(40_900), []string(nil)
	n.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: 4, Step: step})
	for i := 0; i < 60 && n.w.Incident != nil; i++ {
		n.now, step = n.now.Add(4*time.Minute), step+50
		n.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 4, Step: step, CheckpointStep: step - 50})
		sent = append(sent, n.reads("llama-8b", evidence.Ready).passes(time.Minute)...)
	}
	if tr := n.w.Training; n.w.Incident != nil || sent != nil || n.ended().Outcome != view.Resumed || tr.High != step || tr.Saved.Step != 0 {
		t.Fatalf("asked for is %q, known is %+v:\n%s", sent, tr, n.tale())
	}
	n.now = n.now.Add(5 * time.Minute)
	s := n.w.Slices[0]
	n.w.Charges = []incident.Charge{{Action: events.ActionRestart, At: n.now.Add(-time.Minute)}}
	n.give(evidence.Beat{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Seen: n.now, Runs: true, Attempt: 4, Step: step + 50, StepAt: n.now})
	if spent := n.w.Spent(events.ActionRestart); spent != 0 {
		t.Errorf("a new step of it refills nothing: %+v", n.w.Training)
	}
}
