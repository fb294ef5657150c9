package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
)

// finished reports whether the training counts as done.
func (n *story) finished() bool { return n.w.Shown(n.now).Training.Finished }

// TestALineEndsNoCare: a loss is handled until a verdict about this attempt and this life confirms the line; one that cannot be read delays it for HearFor.
func TestALineEndsNoCare(t *testing.T) {
	t.Parallel()
	verdict := func(change func(*events.CrewVerdict)) func(*story) evidence.VerdictRead {
		return func(n *story) evidence.VerdictRead {
			v := n.lastWord()
			v.Finished, v.Ended = true, n.now.Add(-time.Hour)
			change(&v)
			return evidence.VerdictRead{Verdict: &v}
		}
	}
	for name, c := range map[string]struct {
		answer func(*story) evidence.VerdictRead
		ends   bool
	}{
		"the verdict says the same":     {verdict(func(*events.CrewVerdict) {}), true},
		"there is no verdict":           {func(*story) evidence.VerdictRead { return evidence.VerdictRead{Text: "there is none"} }, false},
		"it says that the crew gave up": {verdict(func(v *events.CrewVerdict) { v.Finished = false }), false},
		"it is of another life":         {verdict(func(v *events.CrewVerdict) { v.Life.Workers = "t1v-n-ffffffff" }), false},
		"it is of another slice":        {verdict(func(v *events.CrewVerdict) { v.Life.Slice = "another" }), false},
		"the training goes on after it": {verdict(func(v *events.CrewVerdict) { v.Restart = true }), false},
		"it cannot be read": {func(*story) evidence.VerdictRead {
			return evidence.VerdictRead{Failure: &evidence.Failure{Class: reason.Transient, Message: "503"}}
		}, false},
	} {
		n := newStory(t, true, "llama-8b").goes("finished")
		n.is("peace")
		n.later(2*time.Hour).reads("llama-8b", evidence.Lost).wants("hear")
		e := c.answer(n)
		e.Origin, e.Request = n.reading(), n.begins(events.ActionHear, "")
		n.give(e).passes(bounds.HearFor + 2*time.Minute)
		if c.ends != (n.ended().Code == reason.CodeFinished) || c.ends == n.isWanted(events.ActionDelete) {
			t.Errorf("%s: care ends %t:\n%s", name, !c.ends, n.tale())
		}
	}
}

// TestLinesRefillNoBudget: only a checkpoint, or the crew's record on its machine, proves progress made since the budget was first spent.
func TestLinesRefillNoBudget(t *testing.T) {
	t.Parallel()
	past := start.Add(-time.Hour)
	beats := func(change func(*evidence.Beat)) func(*story) {
		return func(n *story) {
			e := beat(n, &n.w.Slices[0], n.now)
			e.Runs, e.Attempt, e.Step, e.StepAt = true, 1, 48_300, n.now
			change(&e)
			n.give(e)
		}
	}
	for name, c := range map[string]struct {
		give    func(*story)
		refills bool
	}{
		"a line":                     {func(n *story) { n.steps(1, 90_000) }, false},
		"its record":                 {beats(func(*evidence.Beat) {}), true},
		"the record of no such life": {beats(func(e *evidence.Beat) { e.Incarnation.ID = "7" }), false},
		"an older step":              {beats(func(e *evidence.Beat) { e.StepAt = past.Add(-time.Minute) }), false},
		"a step that was proven before": {func(n *story) {
			n.w.Training.Proven = 48_300
			beats(func(*evidence.Beat) {})(n)
		}, false},
		"a verified checkpoint": {func(n *story) { n.goes("ongoing, do, saved, found verify") }, true},
	} {
		n := newStory(t, true, "llama-8b")
		n.w.Charges = []incident.Charge{{Action: events.ActionRestart, Incident: "x", At: past}, {Action: events.ActionDelete, Incident: "x", At: past}}
		c.give(n)
		if left := n.w.Spent(events.ActionRestart) + n.w.Spent(events.ActionDelete); (left == 0) != c.refills {
			t.Errorf("%s: %d are spent:\n%s", name, left, n.tale())
		}
	}
}

// TestExitZeroNearMaintenanceIsASave: Google's SIGTERM makes a training save and exit with 0. What Pitstop itself reads to strike the slice takes the end back.
func TestExitZeroNearMaintenanceIsASave(t *testing.T) {
	t.Parallel()
	for what, strikes := range map[string]bool{
		"stopped for": true, "preempted": true, "host error": true, "read lost": true, "read gone": true, "read unhealthy": true,
		"preempted, it says": false, "crew notice": false, "log ongoing": false, "back": false, "guest down": false,
	} {
		for _, after := range []time.Duration{2 * time.Minute, 14 * time.Minute, 20 * time.Minute} {
			n := newStory(t, true, "llama-8b").goes("finished, its verdict")
			if !n.finished() {
				t.Fatalf("the verdict is not believed: %+v", n.w.Training)
			}
			n.later(after).play(what)
			if n.finished() != (!strikes || after > bounds.StruckWithin) || n.finished() && n.w.Incident != nil {
				t.Errorf("%s %v after the exit, finished is %t:\n%s", what, after, n.finished(), n.tale())
			}
		}
	}
	n := newStory(t, true, "llama-8b").goes("stopped for")
	if n.later(3 * time.Minute).goes("finished, its verdict"); n.finished() || n.w.Incident == nil {
		t.Errorf("maintenance came before the exit:\n%s", n.tale())
	}
}

// TestLinesSayNothingAgainstAVerdict: anyone may write a line about a later attempt.
func TestLinesSayNothingAgainstAVerdict(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: 1000}).line("llama-8b", events.CrewReport{Report: events.ReportFinished, Attempt: 1})
	if n.later(time.Second).beats(n.verdict(1, true), 0); !n.finished() {
		t.Errorf("the verdict loses against a line: %+v", n.w.Training)
	}
}

// TestANewLifeCountsItsAttemptsAnew: without a directory attempts begin at 1 in every life, so the life before says nothing of this one.
func TestANewLifeCountsItsAttemptsAnew(t *testing.T) {
	t.Parallel()
	for _, struck := range []string{"tick", "stopped for, read ready"} {
		n := newStory(t, true, "llama-8b").with(bare).goes("finished, its verdict, " + struck)
		n.later(24*time.Hour).reads("llama-8b", evidence.Ready, func(e *evidence.Read) {
			e.Incarnation = events.Incarnation{Zone: e.Zone, ID: "9001", Created: n.now}
		})
		if n.goes("started"); n.finished() || n.w.Training.Attempt != 1 {
			t.Fatalf("%s: the new life's training is done, or in attempt %d", struck, n.w.Training.Attempt)
		}
		if n.later(time.Hour).goes("finished, its verdict"); !n.finished() {
			t.Errorf("%s: the new life's end does not count: %+v", struck, n.w.Training)
		}
	}
}

// TestAFreshVerdictDecides where the budgets are spent: what is saved refills them. Else a person is told.
func TestAFreshVerdictDecides(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]map[string]string{
		"spent":      {"read lost, later, tick": "deleting: delete llama-8b", "exit 139, gave up": "restarting: restart llama-8b=7711"},
		"no verdict": {"read lost, later, tick": "escalated"},
	} {
		for path, at := range want {
			n := newStory(t, path == "exit 139, gave up", "llama-8b").with(spent(events.ActionDelete, events.ActionRestart)) // one that is not Spot has the time to heal first
			for i := range n.w.Charges {
				n.w.Charges[i].At = start.Add(-time.Hour)
			}
			if n.goes(path + ", " + answer + " hear"); n.stands(n.sent) != at {
				t.Errorf("%s, %s: it stands at %s, want %s:\n%s", path, answer, n.stands(n.sent), at, n.tale())
			}
		}
	}
}

// TestAClaimKeepsHangsUnseenForAWhileOnly: a forged line stops nobody from seeing for long that a training stands still.
func TestAClaimKeepsHangsUnseenForAWhileOnly(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").goes("finished")
	n.w.Training.GapSeconds = 60
	if after := n.silent(n.now, 4*time.Hour, written(0, time.Time{})); after < bounds.ProbeFor || n.w.Incident.Cause() != events.CauseHang || !n.isWanted(events.ActionHear) {
		t.Errorf("after %v it is seen that it hangs:\n%s", after, n.tale())
	}
}

// TestWithoutADirectoryPatrolReadsForAWhile: a claim that the crew's record does not confirm is dropped.
func TestWithoutADirectoryPatrolReadsForAWhile(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").with(bare).goes("finished")
	reads := 0
	for range 60 {
		if n.w.Reads(n.now).Has(incident.ReadCrew, "llama-8b") {
			reads++
			n.goes("no crew")
		}
		n.passes(time.Minute)
	}
	if most := int(bounds.ProbeFor/bounds.ListenAgain) + 1; reads == 0 || reads > most || !n.w.Due().IsZero() {
		t.Errorf("%d reads, due %v", reads, n.w.Due())
	}
	n.reads("llama-8b", evidence.Lost).wants("delete llama-8b")
}

// TestWhatIsSavedIsLookedForBeforeALivingSliceIsLeftToAPerson: nobody has ever asked for a save, and the checkpoints are there all the same.
func TestWhatIsSavedIsLookedForBeforeALivingSliceIsLeftToAPerson(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"spent": "deleting", "no verdict": "escalated"} {
		n := newStory(t, true, "llama-8b")
		n.w.Training.Saved = incident.Checkpoint{}
		n.reads("llama-8b", evidence.Unhealthy).passes(bounds.SickFor + bounds.HealFor)
		if n.goes(answer + " hear").is(want); want == "escalated" && n.ended().Code != reason.CodeUnverified {
			t.Errorf("it ended by %s:\n%s", n.ended().Code, n.tale())
		}
	}
	n := queued(t, true) // what has time to heal goes with what is lost
	n.w.Training.Saved = incident.Checkpoint{}
	n.history("b read unhealthy", "peace", "a read lost", "looking", "5m", "looking: hear", "no verdict hear", "escalated")
}
