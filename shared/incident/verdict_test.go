package incident_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// do begins every request that waits, and answers that it was accepted.
func (r *tour) do() {
	n := do(r.T, policies[r.policy], node{w: r.w, now: r.now})
	r.w, r.now = n.w, n.now
}

// TestALineEndsNoCare gives the line that calls the training done, and then a loss. The loss is handled until a verdict confirms the
// line; only a verdict about this attempt and this life ends care.
func TestALineEndsNoCare(t *testing.T) {
	verdict := func(r *tour, change func(*events.CrewVerdict)) incident.VerdictRead {
		v := verdictOf(r.w, r.w.Crew.Attempt, true, r.now.Add(-time.Hour)).Verdict
		change(v)
		return incident.VerdictRead{Verdict: v}
	}
	for name, c := range map[string]struct {
		answer func(r *tour) incident.VerdictRead
		ends   bool
	}{
		"the verdict says the same": {func(r *tour) incident.VerdictRead { return verdict(r, func(*events.CrewVerdict) {}) }, true},
		"there is no verdict":       {func(*tour) incident.VerdictRead { return incident.VerdictRead{Text: "there is none"} }, false},
		"it says that the crew gave up": {func(r *tour) incident.VerdictRead {
			return verdict(r, func(v *events.CrewVerdict) { v.Finished = false })
		}, false},
		"it is of another life": {func(r *tour) incident.VerdictRead {
			return verdict(r, func(v *events.CrewVerdict) { v.Life.Workers = "t1v-n-ffffffff" })
		}, false},
		"it is of another slice": {func(r *tour) incident.VerdictRead {
			return verdict(r, func(v *events.CrewVerdict) { v.Life.Slice = "another" })
		}, false},
		"the training goes on after it": {func(r *tour) incident.VerdictRead {
			return verdict(r, func(v *events.CrewVerdict) { v.Restart, v.Finished = true, false })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(true)
			w.Crew.Attempt, w.Progress.Attempt = 3, 3
			r := newTour(t, w, "everything")
			r.learn("llama-8b", "finished")
			if r.w.Crew.Finished || r.w.Incident != nil {
				t.Fatalf("the line alone: %+v", r.w.Crew)
			}
			r.now = r.now.Add(2 * time.Hour)
			if asked := r.learn("llama-8b", "read lost"); asked != "hear" {
				t.Fatalf("lost, asked for is %q: %s", asked, tale(r.w))
			}
			e := c.answer(r)
			effect := r.w.Effects[0]
			e.Request = events.Request{Workload: r.w.ID, Incident: r.w.Incident.ID, Epoch: effect.Epoch, Action: effect.Action, Attempt: effect.Attempt}
			asked := r.give(e)
			for end := r.now.Add(20 * time.Minute); asked == "" && r.w.Incident != nil && r.now.Before(end); {
				asked = r.readAs("llama-8b", incident.Lost, nil) + r.tick(time.Minute)
			}
			switch ended := r.w.Incident == nil; {
			case ended != c.ends:
				t.Errorf("care ended: %v; %s", ended, tale(r.w))
			case c.ends && (r.w.Closed.Code != incident.CodeFinished || asked != ""):
				t.Errorf("it ended as %s, and asked for is %q", r.w.Closed.Code, asked)
			case !c.ends && asked != "delete llama-8b":
				t.Errorf("asked for is %q: %s", asked, tale(r.w))
			}
		})
	}
}

// TestAVerdictThatCannotBeReadEndsNothing: a bucket that is away keeps a lost slice from nothing for longer than HearFor.
func TestAVerdictThatCannotBeReadEndsNothing(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "finished")
	r.now = r.now.Add(2 * time.Hour)
	r.learn("llama-8b", "read lost")
	asked := ""
	began := r.now
	for r.now.Sub(began) < time.Hour && asked != "delete llama-8b" {
		if effect := r.w.Effects; len(effect) > 0 && effect[0].Action == events.ActionHear && effect[0].Retry.IsZero() {
			r.learn("", "unread hear 0")
		}
		asked = r.readAs("llama-8b", incident.Lost, nil) + r.tick(time.Minute)
	}
	if took := r.now.Sub(began); asked != "delete llama-8b" || took > incident.HearFor+2*time.Minute {
		t.Errorf("after %v asked for is %q: %s", took, asked, tale(r.w))
	}
}

// TestALineSpendsNoRestart gives the line that says that the crew gave up, as often as somebody may write it. A training that does steps
// is never restarted for it.
func TestALineSpendsNoRestart(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	for i := range 96 { // a day of one every fifteen minutes
		if asked := r.line("llama-8b", events.CrewReport{Report: events.ReportGaveUp, Attempt: r.w.Crew.Attempt + i%2, Reason: "forged"}); asked != "" && asked != "hear" {
			t.Fatalf("asked for is %q", asked)
		}
		for range 15 {
			r.tick(time.Minute)
			if all := r.w.Effects; len(all) > 0 && all[0].Retry.IsZero() {
				r.learn("", "no verdict hear 0")
			}
		}
		r.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: r.w.Crew.Attempt, Step: r.w.Progress.Step + 10, CheckpointStep: 48000})
	}
	if r.w.Budgets.Restarts != 0 || len(r.w.Crew.Restarted) != 0 {
		t.Errorf("restarts were spent: %+v, %v", r.w.Budgets, r.w.Crew.Restarted)
	}
}

// TestLinesRefillNoBudget: only a checkpoint, or the crew's guest attribute, proves progress made since the budget was first spent.
func TestLinesRefillNoBudget(t *testing.T) {
	since := start.Add(-time.Hour)
	for name, c := range map[string]struct {
		give    func(r *tour)
		refills bool
	}{
		"a line": {func(r *tour) {
			r.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 90_000, CheckpointStep: 90_000})
		}, false},
		"the guest attribute": {func(r *tour) {
			s := r.w.Slices[0]
			r.give(incident.Beat{Slice: s.Name, Incarnation: s.Incarnation, Seen: r.now, Runs: true, Attempt: 1, Step: 48_300, StepAt: r.now})
		}, true},
		"the guest attribute of another life": {func(r *tour) {
			r.give(incident.Beat{Slice: "llama-8b", Incarnation: life(7), Seen: r.now, Runs: true, Attempt: 1, Step: 48_300, StepAt: r.now})
		}, false},
		"an older step": {func(r *tour) {
			s := r.w.Slices[0]
			r.give(incident.Beat{Slice: s.Name, Incarnation: s.Incarnation, Seen: r.now, Runs: true, Attempt: 1, Step: 48_300, StepAt: since.Add(-time.Minute)})
		}, false},
		"a verified checkpoint": {func(r *tour) {
			r.learn("llama-8b", "ongoing")
			r.do()
			r.learn("", "saved")
			r.learn("", "found verify 0")
		}, true},
	} {
		w := quiet(true)
		w.Budgets = incident.Budgets{Restarts: 2, Recreates: 1, Since: since}
		r := newTour(t, w, "everything")
		c.give(r)
		if refilled := r.w.Budgets == (incident.Budgets{}); refilled != c.refills {
			t.Errorf("%s refills: %v; %+v", name, refilled, r.w.Budgets)
		}
	}
}

// TestRestartsADayAreBounded: progress refills the budget, and the policy bounds the day all the same. Then a person is told.
func TestRestartsADayAreBounded(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.w.Crew.LeaseAttempt = 1
	for i := range 40 {
		attempt := r.w.Crew.Attempt
		r.line("llama-8b", events.CrewReport{Report: events.ReportExited, Attempt: attempt, ExitCode: 1, Tail: []string{fmt.Sprint("error ", i)}})
		r.line("llama-8b", events.CrewReport{Report: events.ReportGaveUp, Attempt: attempt, Reason: "exit code 1"})
		r.give(verdictOf(r.w, attempt, false, r.now))
		if r.w.Incident == nil {
			break
		}
		r.do()
		s := r.w.Slices[0]
		r.now = r.now.Add(30 * time.Minute)
		step := r.w.Progress.Step + 100
		r.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: attempt + 1, Workers: 4, Step: step})
		r.give(incident.Beat{Slice: s.Name, Incarnation: s.Incarnation, Seen: r.now, Runs: true, Attempt: attempt + 1, Step: step, StepAt: r.now})
		r.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: attempt + 1, Step: step, CheckpointStep: step})
	}
	if c := r.w.Closed; len(r.w.Crew.Restarted) != 12 || c == nil || c.Outcome != incident.Escalated || c.Code != incident.CodeRestartsADay {
		t.Errorf("%d restarts: %s", len(r.w.Crew.Restarted), tale(r.w))
	}
}

// TestExitZeroNearMaintenanceIsASave: Google's own SIGTERM makes a training save itself and exit with 0, and its crew, which saw no
// notice, calls it finished. What strikes the slice within fifteen minutes takes that back, in either order; what comes later does not.
func TestExitZeroNearMaintenanceIsASave(t *testing.T) {
	for _, what := range []string{"stopped for", "preempted", "host error", "read lost", "read gone", "read unhealthy"} {
		for _, after := range []time.Duration{2 * time.Minute, 14 * time.Minute, 20 * time.Minute} {
			r := newTour(t, quiet(true), "everything")
			r.learn("llama-8b", "finished", "its verdict")
			if !r.w.Crew.Finished {
				t.Fatalf("the verdict is not believed: %+v", r.w.Crew)
			}
			r.now = r.now.Add(after)
			r.learn("llama-8b", what)
			if back := !r.w.Crew.Finished; back != (after <= incident.StruckWithin) {
				t.Errorf("%s %v after the exit takes it back: %v", what, after, back)
			}
		}
	}
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "stopped for")
	r.now = r.now.Add(3 * time.Minute)
	r.learn("llama-8b", "finished", "its verdict")
	if r.w.Crew.Finished || r.w.Incident == nil {
		t.Errorf("maintenance came before the exit: finished %v; %s", r.w.Crew.Finished, tale(r.w))
	}
	certain := newTour(t, quiet(true), "everything")
	certain.learn("llama-8b", "finished")
	e := verdictOf(certain.w, 1, true, certain.now)
	e.Verdict.Certain = true
	certain.give(e)
	certain.learn("llama-8b", "stopped for", "read lost")
	if !certain.w.Crew.Finished || certain.w.Incident != nil {
		t.Errorf("the end was certain: %s", tale(certain.w))
	}
}

// TestANewAttemptTakesBackThatTheTrainingIsDone: its owner has started it again. A late line of the attempt that is done does not.
func TestANewAttemptTakesBackThatTheTrainingIsDone(t *testing.T) {
	for _, report := range []events.Report{events.ReportStarted, events.ReportProgress} {
		for attempt, back := range map[int]bool{1: false, 2: true} {
			r := newTour(t, quiet(true), "everything")
			r.w.Crew.LeaseAttempt = 1
			r.learn("llama-8b", "finished", "its verdict")
			r.now = r.now.Add(time.Hour)
			r.line("llama-8b", events.CrewReport{Report: report, Attempt: attempt, Workers: 4, Step: 60_000})
			if r.w.Crew.Finished == back {
				t.Errorf("%s of attempt %d: finished %v", report, attempt, r.w.Crew.Finished)
			}
			want := map[bool]string{true: "hear", false: ""}[back] // the line may be forged
			if asked := r.learn("llama-8b", "read lost"); asked != want {
				t.Errorf("%s of attempt %d, then lost: asked for is %q", report, attempt, asked)
			}
		}
	}
}

// TestANewLifeCountsItsAttemptsAnew: without a directory attempts begin at 1 in every life, so what was done in the life before, or was
// a save there, says nothing of this one.
func TestANewLifeCountsItsAttemptsAnew(t *testing.T) {
	w := quiet(true)
	w.Directory = ""
	for _, struck := range []bool{false, true} {
		r := newTour(t, w, "everything")
		r.learn("llama-8b", "finished", "its verdict")
		if struck {
			r.learn("llama-8b", "stopped for", "read ready")
		}
		r.now = r.now.Add(24 * time.Hour)
		r.readAs("llama-8b", incident.Ready, func(e *incident.Read) { e.Incarnation = r.made("us-west4-a", "9001") })
		r.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: 1, Workers: 4})
		if r.w.Crew.Finished {
			t.Fatalf("struck %v: the new life's training counts as done", struck)
		}
		r.now = r.now.Add(time.Hour)
		r.learn("llama-8b", "finished", "its verdict")
		if !r.w.Crew.Finished {
			t.Errorf("struck %v: the new life's end does not count: %+v", struck, r.w.Crew)
		}
	}
}

// TestLinesSayNothingAgainstAVerdict: anyone may write a line about a later attempt.
func TestLinesSayNothingAgainstAVerdict(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.w.Crew.LeaseAttempt = 1
	r.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: 1000, Workers: 4})
	r.line("llama-8b", events.CrewReport{Report: events.ReportFinished, Attempt: 1, Step: 50_000})
	if r.give(verdictOf(r.w, 1, true, r.now)); !r.w.Crew.Finished {
		t.Errorf("the verdict loses against a line: %+v", r.w.Crew)
	}
	if !r.w.Progress.At.Before(start) || r.w.Progress.Step == 0 {
		t.Errorf("progress is %+v", r.w.Progress)
	}
}

// TestMessagesTakeBackNoEnd: only what Pitstop itself reads makes an exit 0 a save. Power off after the training is an end.
func TestMessagesTakeBackNoEnd(t *testing.T) {
	for _, what := range []string{"preempted, it says", "crew notice", "ongoing", "back"} {
		r := newTour(t, quiet(true), "everything")
		r.learn("llama-8b", "finished", "its verdict")
		r.now = r.now.Add(2 * time.Minute)
		if r.learn("llama-8b", what); !r.w.Crew.Finished {
			t.Errorf("%s takes it back", what)
		}
	}
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "finished", "its verdict")
	s := r.w.Slices[0]
	r.give(incident.Interrupted{
		Origin: incident.Origin{Time: r.now, Rank: events.RankReading}, Slice: s.Name, Incarnation: s.Incarnation, Cause: events.CauseGuest, Text: "shut down from inside",
	})
	if !r.w.Crew.Finished {
		t.Error("power off takes it back")
	}
}

// TestALossAfterHealingIsDecidedOnce: Google's recovery has had its time, the replacements are spent, and the verdict is read once more.
// Then a person is told, or the slice is replaced, at once.
func TestALossAfterHealingIsDecidedOnce(t *testing.T) {
	for saved, want := range map[int64]string{0: "", 49_000: "delete llama-8b"} {
		w := quiet(false)
		w.Budgets = incident.Budgets{Recreates: incident.MaxRecreates, Since: start.Add(-time.Hour)}
		r := newTour(t, w, "everything")
		r.learn("llama-8b", "read lost")
		asked, hears := "", 0
		for end := r.now.Add(6 * time.Hour); r.w.Incident != nil && asked != "delete llama-8b" && r.now.Before(end); {
			asked = r.readAs("llama-8b", incident.Lost, nil) + r.tick(time.Minute)
			if asked != "hear" {
				continue
			}
			hears++
			effect := r.w.Effects[0]
			e := incident.VerdictRead{Text: "there is none", Request: events.Request{
				Workload: r.w.ID, Incident: r.w.Incident.ID, Epoch: effect.Epoch, Action: effect.Action, Attempt: effect.Attempt,
			}}
			if saved > 0 {
				e.Saved, e.SavedAt = saved, r.now
			}
			asked = r.give(e)
		}
		if ended := r.w.Incident == nil; hears != 1 || asked != want || ended != (want == "") {
			t.Errorf("saved %d: %d times read, asked for is %q: %s", saved, hears, asked, tale(r.w))
		}
	}
}

// TestAVerdictThatDecidesIsNotDecidedOnTwice: the restarts are spent, and the answer refills them and says that the crew gave up. One
// restart follows, and it has its time.
func TestAVerdictThatDecidesIsNotDecidedOnTwice(t *testing.T) {
	w := quiet(true)
	w.Budgets = incident.Budgets{Restarts: incident.MaxRestarts, Since: start.Add(-time.Hour)}
	r := newTour(t, w, "everything")
	r.w.Crew.LeaseAttempt = 1
	r.learn("llama-8b", "exit 139")
	for !r.w.Incident.Hearing {
		r.tick(time.Minute) // the crew is silent, until that counts
	}
	r.learn("", "spent hear 0")
	r.tick(time.Minute)
	if in := r.w.Incident; in == nil || in.Phase != incident.Restarting || r.w.Budgets.Restarts != either(1, 0, "begun") || in.Deadline.Sub(r.now) < incident.RestartFor/2 {
		t.Errorf("it stands at %s", tale(r.w))
	}
}

// TestAVerdictIsReadAnewForADecision: an answer that was asked for and never came, and a reading that is tried again much later, keep no
// loss from being decided on a fresh verdict.
func TestAVerdictIsReadAnewForADecision(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "exit 139", "finished") // an incident is open, so the verdict is asked for
	for range 3 {
		if len(r.w.Effects) > 0 { // the third edition reads once for a line
			r.learn("", "no verdict hear 0")
		}
		r.now = r.now.Add(4 * time.Minute)
		r.tick(time.Second)
	}
	if asked := r.learn("llama-8b", "read lost"); asked != "hear" {
		t.Fatalf("lost, asked for is %q: %s", asked, tale(r.w))
	}
	r.learn("llama-8b", "read unhealthy")
	r.learn("llama-8b", "read lost")
	if asked := r.learn("", "no verdict hear 0"); asked != "delete llama-8b" {
		t.Errorf("lost again before the answer came, asked for is %q: %s", asked, tale(r.w))
	}
}

// TestAClaimKeepsHangsUnseenForAWhileOnly: a forged line stops nobody from seeing for long that a training stands still.
func TestAClaimKeepsHangsUnseenForAWhileOnly(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "finished")
	asked := ""
	for end := r.now.Add(4 * time.Hour); asked != "hear" && r.now.Before(end); {
		if readsOf(r.w, r.now).Has(incident.ReadCrew, "llama-8b") {
			r.learn("llama-8b", "a crew that runs")
		}
		asked = r.tick(time.Minute)
	}
	if asked != "hear" || r.w.Incident == nil || r.w.Incident.Cause != events.CauseHang {
		t.Errorf("nobody sees that it hangs: asked for is %q, %s", asked, tale(r.w))
	}
	r.learn("", "no verdict hear 0")
	if phaseOf(r.w) != either("restarting", "peace", "no save") {
		t.Errorf("no verdict, and it stands at %s", tale(r.w))
	}
}

// TestWithoutADirectoryPatrolReadsForAWhile: a claim that the crew's guest attribute does not confirm is dropped.
func TestWithoutADirectoryPatrolReadsForAWhile(t *testing.T) {
	w := quiet(true)
	w.Directory = ""
	r := newTour(t, w, "everything")
	r.learn("llama-8b", "finished")
	reads := 0
	for range 60 {
		if readsOf(r.w, r.now).Has(incident.ReadCrew, "llama-8b") {
			reads++
			r.learn("llama-8b", "no crew")
		}
		r.tick(time.Minute)
	}
	if most := int(incident.ProbeFor/incident.ListenAgain) + 1; reads == 0 || reads > most || r.w.Crew.Claim.Unconfirmed != either(true, false, "form") || !due(r.w).IsZero() {
		t.Errorf("%d reads, claim %+v, due %v", reads, r.w.Crew.Claim, due(r.w))
	}
	if asked := r.learn("llama-8b", "read lost"); asked != "delete llama-8b" {
		t.Errorf("lost, asked for is %q", asked)
	}
}

// TestWhatIsSavedIsLookedForBeforeALivingSliceIsLeftToAPerson: nobody has ever asked for a save, and the checkpoints are there all the same.
func TestWhatIsSavedIsLookedForBeforeALivingSliceIsLeftToAPerson(t *testing.T) {
	unsaved := func(w *incident.Workload) {
		w.Progress.Verified, w.Progress.VerifiedAt, w.Progress.VerifiedURI = 0, time.Time{}, ""
	}
	for name, c := range map[string]struct {
		saved time.Time
		want  string
	}{
		"a checkpoint is complete": {start.Add(-time.Hour), "deleting"},
		"there is none":            {time.Time{}, "unverified"},
	} {
		t.Run(name, func(t *testing.T) {
			n := at(t, policies["everything"], true, "host error, read unhealthy, later", unsaved)
			n.w, _, _ = tick(policies["everything"], n.w, n.now)
			if n.w.Incident == nil {
				t.Fatalf("it ended %s: %s", n.w.Closed.Outcome, n.w.Closed.Reason)
			}
			i := slices.IndexFunc(n.w.Effects, func(effect incident.Effect) bool { return effect.Action == events.ActionHear })
			if i < 0 {
				t.Fatalf("it stands at %s, and nobody is asked what is saved", phaseOf(n.w))
			}
			effect := n.w.Effects[i]
			e := incident.VerdictRead{
				Origin: incident.Origin{Time: n.now, Rank: events.RankReading}, Text: "attempt 1 has none",
				Request: events.Request{Workload: n.w.ID, Incident: n.w.Incident.ID, Epoch: effect.Epoch, Action: effect.Action, Attempt: effect.Attempt},
				Saved:   47_000, SavedAt: c.saved, SavedURI: "gs://checkpoints/llama/47000", SavedBytes: 12,
			}
			for range incident.MaxFailures + 1 {
				n.now = n.now.Add(time.Minute)
				n.w, _, _ = advance(policies["everything"], n.w, e, n.now)
			}
			n.now = n.now.Add(incident.HearFor)
			n.w, _, _ = tick(policies["everything"], n.w, n.now)
			got := phaseOf(n.w)
			if n.w.Incident == nil {
				got = string(n.w.Closed.Code)
			}
			if got != c.want {
				t.Errorf("it stands at %s, want %s", got, c.want)
			}
			if p := n.w.Progress; !c.saved.IsZero() && (p.Verified != 47_000 || !p.VerifiedAt.Equal(c.saved) || p.VerifiedURI == "") {
				t.Errorf("what is verified is %+v", p)
			}
		})
	}
}

// TestASliceThatIsReplacedComesBeforeATrainingThatHangsOnIt: the incident was opened for a hang, the slice has been sick since, and the
// look at what is saved has found a checkpoint.
func TestASliceThatIsReplacedComesBeforeATrainingThatHangsOnIt(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, "host error, read unhealthy, later", func(w *incident.Workload) {
		w.Progress.Verified, w.Progress.VerifiedAt, w.Progress.VerifiedURI = 0, time.Time{}, ""
	})
	n.w, _, _ = tick(p, n.w, n.now)
	n.w.Incident.Cause = events.CauseHang // as it is where the training had hung before
	i := slices.IndexFunc(n.w.Effects, func(effect incident.Effect) bool { return effect.Action == events.ActionHear })
	if i < 0 {
		t.Fatalf("it stands at %s, and nobody is asked what is saved", phaseOf(n.w))
	}
	effect := n.w.Effects[i]
	n.w, _, _ = advance(p, n.w, incident.VerdictRead{
		Origin: incident.Origin{Time: n.now, Rank: events.RankReading}, Text: "attempt 1 has none",
		Request: events.Request{Workload: n.w.ID, Incident: n.w.Incident.ID, Epoch: effect.Epoch, Action: effect.Action, Attempt: effect.Attempt},
		Verdict: &events.CrewVerdict{Attempt: 1, Reason: "exit code 1"},
		Saved:   47_000, SavedAt: start.Add(-time.Hour), SavedURI: "gs://checkpoints/llama/47000",
	}, n.now)
	if got := phaseOf(n.w); got != "deleting" {
		t.Errorf("it stands at %s, want deleting", got)
	}
}

// TestAHoldTakesNoTimeOfTheWaitForAVerdict: while the policy cannot be read nothing is asked for, so the verdict is asked for again once it
// can be.
func TestAHoldTakesNoTimeOfTheWaitForAVerdict(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "exit 139", "finished")
	r.learn("llama-8b", "read lost")
	r.policy = "unreadable"
	for range 60 {
		r.tick(time.Minute)
	}
	r.policy = "everything"
	if asked := r.learn("llama-8b", "read lost") + r.tick(time.Minute); asked != either("hear", "", "reads on") {
		t.Fatalf("asked for is %q: %s", asked, tale(r.w))
	}
	if asked := r.learn("", "no verdict hear 0"); asked != "delete llama-8b" {
		t.Errorf("asked for is %q: %s", asked, tale(r.w))
	}
}
