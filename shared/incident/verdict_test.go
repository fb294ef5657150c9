package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// finished reports whether the training counts as done.
func (n *story) finished() bool { return n.w.Shown(n.now).Training.Finished }

// TestALineEndsNoCare: a loss is handled until a verdict about this attempt and this life confirms the line; one that cannot be read delays it for HearFor.
func TestALineEndsNoCare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*evidence.VerdictRead)
		ends   bool
	}{
		"the verdict says the same":     {func(*evidence.VerdictRead) {}, true},
		"there is no verdict":           {func(e *evidence.VerdictRead) { e.Verdict, e.Text = nil, "there is none" }, false},
		"it says that the crew gave up": {func(e *evidence.VerdictRead) { e.Verdict.Finished = false }, false},
		"it is of another life":         {func(e *evidence.VerdictRead) { e.Verdict.Life.Workers = "t1v-n-ffffffff" }, false},
		"it is of another slice":        {func(e *evidence.VerdictRead) { e.Verdict.Life.Slice = "another" }, false},
		"the training goes on after it": {func(e *evidence.VerdictRead) { e.Verdict.Restart = true }, false},
		"what is saved cannot be read": {func(e *evidence.VerdictRead) {
			e.Failure = &evidence.Failure{Class: reason.Transient, Message: "503"}
		}, true},
		"it cannot be read": {func(e *evidence.VerdictRead) {
			e.Verdict, e.Failure = nil, &evidence.Failure{Class: reason.Transient, Message: "503"}
		}, false},
	} {
		n := newStory(t, true, "llama-8b").goes("finished")
		n.is("peace")
		n.later(2*time.Hour).reads("llama-8b", evidence.Lost).wants("hear")
		v := n.lastWord()
		v.Finished, v.Ended = true, n.now.Add(-time.Hour)
		e := evidence.VerdictRead{Origin: n.reading(), Request: n.begins(events.ActionHear, ""), Verdict: &v}
		c.change(&e)
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
	for name, c := range map[string]struct {
		give    func(*story)
		refills bool
	}{
		"a line":     {func(n *story) { n.steps(1, 90_000) }, false},
		"its record": {func(n *story) { n.proves(48_300, n.now) }, true},
		"the record of no such life": {func(n *story) {
			e := beat(n, &n.w.Slices[0], n.now)
			e.Incarnation.ID, e.Runs, e.Attempt, e.Step, e.StepAt = "7", true, 1, 48_300, n.now
			n.give(e)
		}, false},
		"an older step":                 {func(n *story) { n.proves(48_300, past.Add(-time.Minute)) }, false},
		"a step that was proven before": {func(n *story) { n.w.Training.Proven = 48_300; n.proves(48_300, n.now) }, false},
		"a verified checkpoint":         {func(n *story) { n.goes("ongoing, do, saved, found verify") }, true},
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
	if n.later(time.Second).beats(n.verdict(1, true)); !n.finished() {
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
	n := at(t, "everything", true, "exit 139, gave up")
	n.reads("llama-8b", evidence.Ready, func(e *evidence.Read) { e.Directory = "gs://ckpt/another" })
	if n.isWanted(events.ActionHear) || n.w.Incident != nil && n.w.Incident.Baseline != 0 {
		t.Errorf("in another directory the verdict of the former is read:\n%s", n.tale())
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
	n, reads := newStory(t, true, "llama-8b").with(bare).goes("finished"), 0
	for range 60 {
		if n.w.Reads(n.now).Has(incident.ReadCrew, "llama-8b") {
			reads++
			n.goes("no crew")
		}
		n.goes("1m")
	}
	if most := int(bounds.ProbeFor/bounds.ListenAgain) + 1; reads == 0 || reads > most || !n.w.Due().IsZero() {
		t.Errorf("%d reads, due %v", reads, n.w.Due())
	}
	n.history("read lost", "deleting: delete llama-8b")
}

// TestWhatIsSavedIsLookedForBeforeALivingSliceIsLeftToAPerson: nobody has ever asked for a save, and the checkpoints are there all the same.
func TestWhatIsSavedIsLookedForBeforeALivingSliceIsLeftToAPerson(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"spent": "deleting", "no lease": "deleting", "no verdict": "escalated"} {
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

// TestDoneIsTheEndOfTheTraining: once the provider says that the work of every slice is complete, no slice is missed, until another life begins.
func TestDoneIsTheEndOfTheTraining(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a", "b")
	finished := func() bool { return n.w.Shown(n.now).Training.Finished }
	if n.reads("a", evidence.Done); finished() {
		t.Error("one slice of two is done, and the training is finished")
	}
	n.later(time.Minute).reads("a", evidence.Gone).reads("b", evidence.Done)
	if !finished() || n.w.Slices[0].Condition != evidence.Done {
		t.Errorf("both slices are done, and the first one is %s", n.w.Slices[0].Condition)
	}
	n.later(time.Minute).reads("b", evidence.Gone)
	if n.passes(time.Hour); n.w.Incident != nil || n.w.Closed != nil || !n.w.Due().IsZero() {
		t.Errorf("it is due at %v:\n%s", n.w.Due(), n.tale())
	}
	n.reads("b", evidence.Ready, func(e *evidence.Read) { e.Incarnation = events.Incarnation{Zone: e.Zone, ID: "next", Created: n.now} })
	if finished() {
		t.Error("another life trains, and the training is finished")
	}
}

// TestAGroupIsDoneAsAWhole: a JobSet that its owner deletes while one of its Jobs is complete, and another still waits, has not done its work.
func TestAGroupIsDoneAsAWhole(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]bool{"set": false, "other": true, "": true} {
		n := newStory(t, false, "a", "b")
		n.w.Slices[0].Group, n.w.Slices[1].Group = "set", group
		n.w.Slices[1].Unused, n.w.Slices[1].Condition = true, evidence.Creating
		n.later(time.Minute).reads("a", evidence.Done)
		n.later(time.Minute).reads("b", evidence.Gone)
		if n.w.Shown(n.now).Training.Finished != want || n.w.Incident != nil {
			t.Errorf("the group %q: finished is %t:\n%s", group, !want, n.tale())
		}
	}
}

// TestDoneEndsAnIncident: what is done needs nobody any more.
func TestDoneEndsAnIncident(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]view.Outcome{"watch": view.Observed, "everything": view.Resumed} {
		if n := at(t, policy, false, "read unhealthy, 6m, read done"); n.ended().Outcome != want || n.ended().By != view.ByHealth {
			t.Errorf("it ended %s by %s, want %s:\n%s", n.ended().Outcome, n.ended().By, want, n.tale())
		}
	}
}

// TestThePlanOfAJobHasItsOwnWords: what would be called is named as the audit log of a cluster names it.
func TestThePlanOfAJobHasItsOwnWords(t *testing.T) {
	t.Parallel()
	n := newJob(t)
	plan := n.w.IfLost(n.p, "llama-8b", n.now)
	var calls []string
	for _, c := range plan.Calls {
		calls = append(calls, c.Method+" "+c.Resource)
	}
	const job = "projects/demo/locations/us-west4/clusters/trainers/k8s/namespaces/default/jobs/llama-8b"
	if got := strings.Join(calls, ", "); !strings.HasPrefix(got, "io.k8s.batch.v1.jobs.delete "+job+", io.k8s.batch.v1.jobs.create "+job) {
		t.Errorf("the calls would be %s", got)
	}
	for _, line := range plan.Decisions {
		if strings.Contains(line.Text, "node llama-8b") {
			t.Errorf("a Job is called a node: %s", line.Text)
		}
	}
}

// TestAnExitZeroInAnnouncedMaintenanceIsASave where a reading showed the notice. A message, and one that was taken back, prove nothing.
func TestAnExitZeroInAnnouncedMaintenanceIsASave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begins time.Duration
		inAPI  bool
		then   string
		save   bool
	}{
		"its window has begun":                          {0, true, "10m", true},
		"its window has begun long ago":                 {-time.Hour, true, "10m", false},
		"only a message says that its window has begun": {0, false, "10m", false},
		"it was taken back":                             {0, true, "shows withdrawn, 10m", false},
		"it is announced for later":                     {time.Hour, true, "10m", false},
	} {
		n := newStory(t, true, "llama-8b").under("watch").notes(c.inAPI, window(events.NoticePending, false, c.begins)).goes(c.then)
		if n.beats(n.verdict(1, true)); n.finished() == c.save {
			t.Errorf("%s: ten minutes later the crew calls the training finished, and that counts: %v", name, n.finished())
		}
	}
}

// TestTheEndOfAnEarlierAttemptIsNotTheEnd: the lease names a later one, or its exit 0 was a save.
func TestTheEndOfAnEarlierAttemptIsNotTheEnd(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int]bool{2: false, 3: true, 4: true} {
		n := newStory(t, true, "llama-8b").with(led) // by a lease of attempt 3
		if n.beats(n.verdict(attempt, true)); n.finished() != want {
			t.Errorf("the verdict of attempt %d ends the training: %v", attempt, n.finished())
		}
		n = newStory(t, true, "llama-8b").with(led).goes("stopped for")
		n.beats(n.verdict(3, true)) // a save
		n.goes("read ready, an hour")
		if n.beats(n.verdict(attempt, true)); n.finished() != (attempt == 4) {
			t.Errorf("attempt 3 ended by a save, and the verdict of attempt %d ends the training: %v", attempt, n.finished())
		}
	}
}

// TestNobodyWaitsForAStepWithoutACrew: what is told then names no step.
func TestNobodyWaitsForAStepWithoutACrew(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "read lost, do, read gone, do, read ours made, read ready", crewless, bare)
	n.is("resuming")
	if tale := n.tale(); strings.Contains(tale, "past step") || !strings.Contains(tale, "wait for a sign that training goes on") {
		t.Errorf("it tells of a step:\n%s", tale)
	}
}
