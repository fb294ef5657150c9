package incident_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
)

// TestAFailureThatPeopleKnowOfOpensNothing: its lines may come hours after the end of the incident, and overtake each other.
func TestAFailureThatPeopleKnowOfOpensNothing(t *testing.T) {
	t.Parallel()
	for at, opens := range map[time.Duration]bool{-time.Minute: false, 0: false, time.Minute: true} {
		for _, r := range []events.CrewReport{{Report: events.ReportExited, ExitCode: 1, Attempt: 30}, {Report: events.ReportGaveUp, Attempt: 30}} {
			n := newStory(t, true, "llama-8b")
			n.w.Ended = start
			n.later(2*time.Hour).wrote(start.Add(at), "llama-8b", r).opens(opens)
		}
	}
	for attempt, opens := range map[int]bool{24: false, 25: true} {
		n := newStory(t, true, "llama-8b")
		n.w.Ended, n.w.Training.Verdict = start, incident.Verdict{Attempt: 24, GaveUp: true, At: start}
		n.later(time.Second).line("llama-8b", events.CrewReport{Report: events.ReportExited, ExitCode: 1, Attempt: attempt}).opens(opens)
	}
}

// TestAnInterruptedTrainingIsTheMachines: nobody mends the training for what it did not do.
func TestAnInterruptedTrainingIsTheMachines(t *testing.T) {
	t.Parallel()
	for interrupted, want := range map[bool]events.Cause{false: events.CauseCrash, true: events.CauseUnknown} {
		n := newStory(t, true, "llama-8b")
		n.line("llama-8b", events.CrewReport{Report: events.ReportExited, Signal: "SIGKILL", Interrupted: interrupted, Attempt: 2})
		if n.w.Incident == nil || n.w.Incident.Cause() != want || want.Infrastructure() != interrupted {
			t.Errorf("interrupted %t:\n%s", interrupted, n.tale())
		}
	}
}

// TestALineFromBeforeTheTroubleConfirmsNothing, whether lines of the last attempt had come before. A clock may be wrong.
func TestALineFromBeforeTheTroubleConfirmsNothing(t *testing.T) {
	t.Parallel()
	for _, heard := range []int{0, 1} {
		for at, resumed := range map[time.Duration]bool{-13 * time.Second: false, bounds.SickFor - 1: false, bounds.SickFor: true} {
			n := newStory(t, true, "llama-8b").under("spot")
			n.w.Training = incident.Training{Attempt: heard}
			n.give(words["preempted, it says"](n, &n.w.Slices[0])).later(max(at, 20*time.Second)).wrote(start.Add(at), "llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: heard + 1, Step: 19_754})
			if (n.w.Incident == nil) != resumed {
				t.Errorf("attempt %d, a step %v after it: it ends %t:\n%s", heard+1, at, !resumed, n.tale())
			}
		}
	}
}

// TestTheSameErrorIsNotMetAgainAndAgain: whoever asks again where no new step came between two equal errors only burns chips.
func TestTheSameErrorIsNotMetAgainAndAgain(t *testing.T) {
	t.Parallel()
	nan := events.CrewReport{Report: events.ReportExited, ExitCode: 1, Tail: []string{"Traceback", "RuntimeError: NaN in loss at step 48,250 (0x7f3a), worker 12", " "}}
	numbers, code := nan, nan
	numbers.Tail, code.ExitCode = []string{"RuntimeError: NaN in loss at step 48,251 (0xdeadbeef), worker 3"}, 2
	for name, c := range map[string]struct {
		second  events.CrewReport
		between string
		late    bool // the line of the first end comes behind the verdict
		ends    bool
	}{
		"the same":                       {second: nan, between: "tick", ends: true},
		"lines that overtake each other": {second: nan, between: "tick", late: true, ends: true},
		"the same but for its numbers":   {second: numbers, between: "tick", ends: true},
		"another code":                   {second: code, between: "tick"},
		"a new step in between":          {second: nan, between: "started, steps"},
		"a broken machine in between":    {second: nan, between: "host error, read unhealthy, read ready"},
		"ended by somebody else":         {second: events.CrewReport{Report: events.ReportExited, Signal: "SIGKILL", Interrupted: true}, between: "tick"},
		"the line of its end is lost":    {between: "tick"},
	} {
		n := newStory(t, true, "llama-8b")
		ends := func(r events.CrewReport, attempt int) {
			if r.Attempt = attempt; r.Report != "" {
				n.later(time.Second).line("llama-8b", r)
			}
		}
		if !c.late {
			ends(nan, 1)
		}
		if n.later(time.Second).beats(n.verdict(1, false)); c.late {
			ends(nan, 1)
		}
		n.goes("does restart, " + c.between)
		ends(c.second, 2)
		n.later(time.Second).beats(n.verdict(2, false))
		if got := n.ended().Code == reason.CodeSameError; got != c.ends || got == n.isWanted(events.ActionRestart) {
			t.Errorf("%s: it ends %t:\n%s", name, got, n.tale())
		}
	}
}

// TestAGiveUpThatComesLateEndsNothing: the attempt that was asked for since then runs already. When that one fails as well, it counts.
func TestAGiveUpThatComesLateEndsNothing(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").gaveUp(1, "NaN").goes("does restart").exits(2, "NaN").later(time.Second)
	at := n.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: 3}).stands(nil)
	n.later(time.Second).wrote(n.now.Add(-5*time.Second), "llama-8b", events.CrewReport{Report: events.ReportGaveUp, Attempt: 2}).wants()
	n.is(at)
	if n.gaveUp(3, "NaN").ended().Code != reason.CodeSameError {
		t.Errorf("it fails a third time:\n%s", n.tale())
	}
}

// TestALineAdmitsNoSlice: whatever attempt it tells of, the request stands, and the lease that is read before the write decides.
func TestALineAdmitsNoSlice(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "preempted, read lost, do, read gone, do, read ours, mapped")
	n.is("admitting")
	effect := n.w.Effects[n.effect(events.ActionAdmit, "")]
	names := effect.Lease.Attempt
	for name, r := range map[string]events.CrewReport{
		"it runs":                 {Report: events.ReportStarted, Attempt: names},
		"it has failed":           {Report: events.ReportExited, ExitCode: 1, Attempt: names + 1},
		"an earlier attempt":      {Report: events.ReportStarted, Attempt: names - 1},
		"no attempt":              {Report: events.ReportNotice, Attempt: names, Notice: &events.Notice{}},
		"nobody knows which life": {Report: events.ReportStarted, Attempt: names, Hostname: "laptop"},
		"a former life":           {Report: events.ReportStarted, Attempt: names, Hostname: "t1v-n-3f2a9c00-w-0"},
	} {
		o := *n
		o.wrote(o.now, "llama-8b", r)
		if o.is("admitting"); o.request(events.ActionAdmit, "").Epoch != effect.Epoch {
			t.Errorf("%s: it is asked for anew:\n%s", name, o.tale())
		}
	}
}

// TestAnIncidentShowsHowItsLastAttemptEnded, in whatever order the lines come. One that comes again tells nothing of a later incident.
func TestAnIncidentShowsHowItsLastAttemptEnded(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]int{"in order": {5, 6}, "out of order": {6, 5}, "twice": {5, 5, 6, 6}} {
		n := newStory(t, true, "llama-8b")
		for _, attempt := range order {
			n.wrote(start, "llama-8b", events.CrewReport{
				Report: events.ReportExited, Worker: 2, ExitCode: 128 + attempt, Attempt: attempt, OutOfMemory: true, Retries: events.JobRetries{Worker: attempt},
			}).later(time.Second)
		}
		want := events.Exit{Slice: "llama-8b", Worker: 2, Code: 134, OutOfMemory: true, Retries: events.JobRetries{Worker: 6}}
		if got := n.w.Shown(n.now).Incident.Error; got.Attempt != 6 || got.Exit != want {
			t.Errorf("%s: attempt %d, %+v; want 6, %+v", name, got.Attempt, got.Exit, want)
		}
		n.later(time.Minute).steps(7, 60_000)
		n.is("resumed")
		n.later(time.Hour).goes("preempted").wrote(start, "llama-8b", events.CrewReport{Report: events.ReportExited, ExitCode: 1, Attempt: 6})
		if got := n.w.Shown(n.now).Incident.Error; got.Attempt != 0 {
			t.Errorf("%s: the second incident shows attempt %d: %+v", name, got.Attempt, got)
		}
	}
}

// exits has an attempt fail, and gives up for it once its crew has no restarts left.
func (n *story) exits(attempt int, said string) *story {
	return n.later(time.Second).line(n.w.Slices[0].Name, events.CrewReport{Report: events.ReportExited, Attempt: attempt, ExitCode: 1, Tail: []string{said}})
}

func (n *story) givesUp(attempt int) *story {
	return n.later(time.Second).line(n.w.Slices[0].Name, events.CrewReport{Report: events.ReportGaveUp, Attempt: attempt, Reason: "all restarts are spent"})
}

// beats is a crew's record on its machine, with its verdict.
func (n *story) beats(verdict *events.CrewVerdict) *story {
	e := beat(n, &n.w.Slices[0], n.now)
	e.Attempt, e.Verdict = n.w.Training.Attempt, verdict
	return n.give(e)
}

func (n *story) verdict(attempt int, finished bool) *events.CrewVerdict {
	v := n.lastWord()
	v.Attempt, v.Finished, v.Reason = attempt, finished, "it says so"
	return &v
}

func (n *story) steps(attempt int, step int64) {
	n.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: attempt, Step: step, CheckpointStep: 48000})
}

// TestALineAloneSpendsNoRestart: the crew's verdict does.
func TestALineAloneSpendsNoRestart(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "exit 1, gave up, no verdict hear")
	n.wants()
	if n.goes("its verdict").wants("restart llama-8b=7711"); len(n.w.Charges) != 0 {
		t.Fatalf("charged is %v before it is begun", n.w.Charges)
	}
	if n.goes("does restart"); len(n.w.Charges) != 1 || n.w.Lease.Sure.Attempt != 2 {
		t.Fatalf("charged is %v, and the lease names attempt %d", n.w.Charges, n.w.Lease.Sure.Attempt)
	}
}

// TestRestartsHaveTheirBudgets: three without verified progress, and those of a day whatever progress there was.
func TestRestartsHaveTheirBudgets(t *testing.T) {
	t.Parallel()
	for proves, want := range map[bool]reason.Code{false: reason.CodeBudget, true: reason.CodeRestartsADay} {
		n, restarts := newStory(t, true, "llama-8b"), 0
		for attempt := 1; attempt < 30; attempt++ {
			n.exits(attempt, fmt.Sprint("another error: ", string(rune('a'+attempt)))).later(time.Second).beats(n.verdict(attempt, false))
			if n.isWanted(events.ActionHear) {
				n.give(evidence.VerdictRead{Origin: n.reading(), Request: n.begins(events.ActionHear, ""), Verdict: n.verdict(attempt, false), Attempt: attempt})
			}
			if !n.isWanted(events.ActionRestart) {
				break
			}
			restarts++
			step := 48200 + 100*int64(attempt)
			n.goes("does restart").later(10*time.Minute).steps(attempt+1, step)
			if proves {
				n.proves(step, n.now)
			}
		}
		if most := map[bool]int{false: bounds.MaxRestarts, true: policy.DefaultRestartsPerDay}[proves]; n.ended().Code != want || restarts != most {
			t.Errorf("proven %v: after %d restarts it ended by %q, want %d and %q:\n%s", proves, restarts, n.ended().Code, most, want, n.tale())
		}
	}
}

// TestAFailureOfALifeBeforeOpensNoIncident: its owner has deleted that life since, and made another one.
func TestAFailureOfALifeBeforeOpensNoIncident(t *testing.T) {
	t.Parallel()
	if n := at(t, "everything", true, "owner deletes, a minute, exit 1, read gone, an hour, read foreign made, 1m"); n.about() != nil {
		t.Error(n.tale())
	}
}

// TestNothingIsKeptFromTheFuture: a machine's clock may be fast. What it writes counts as of now, and what happens after it is newer.
func TestNothingIsKeptFromTheFuture(t *testing.T) {
	t.Parallel()
	const fast = 3 * time.Hour
	for name, give := range map[string]func(n *story){
		"a line": func(n *story) {
			n.wrote(n.now.Add(fast), "llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 48300})
		},
		"a reading": func(n *story) {
			n.play("read unhealthy")
			n.reads("llama-8b", evidence.Ready, func(e *evidence.Read) { e.Time = n.now.Add(fast) })
		},
		"a record": func(n *story) {
			s := n.w.Slices[0]
			n.give(evidence.Beat{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Seen: n.now.Add(fast), Runs: true, Attempt: 1, Step: 48300, StepAt: n.now.Add(fast)})
		},
	} {
		n := newStory(t, true, "llama-8b")
		give(n)
		for _, at := range []time.Time{n.w.Training.StepAt, n.w.Training.Stepped, n.w.Training.ProvenAt, n.w.Slices[0].Since, n.w.Slices[0].Heard.Seen} {
			if at.After(n.now) {
				t.Errorf("%s is kept from %v in the future", name, at.Sub(n.now))
			}
		}
		if n.goes("5m, preempted, read lost"); n.stands(n.sent) != "deleting: delete llama-8b" {
			t.Errorf("%s: lost five minutes later, it stands at %s:\n%s", name, n.stands(n.sent), n.tale())
		}
	}
	n := newStory(t, true, "llama-8b")
	v := n.verdict(1, true)
	v.Ended = n.now.Add(fast)
	if n.beats(v); !n.finished() {
		t.Error("the verdict does not count")
	}
	if n.goes("2m, stopped for"); n.finished() {
		t.Error("its host was stopped at about the time of its exit, and it counts as finished")
	}
}

// TestALineOfUnknownWorkersChangesNothing: it is kept until somebody knows whose they are, and forgotten where nobody does.
func TestALineOfUnknownWorkersChangesNothing(t *testing.T) {
	t.Parallel()
	for _, r := range []events.CrewReport{
		{Report: events.ReportStarted, Attempt: 2, Workers: 4, Step: 50_000},
		{Report: events.ReportProgress, Attempt: 2, Step: 50_000, CheckpointStep: 49_900},
		{Report: events.ReportExited, Attempt: 2, ExitCode: 139},
		{Report: events.ReportGaveUp, Attempt: 2, Reason: "five times"},
		{Report: events.ReportFinished, Attempt: 2, Step: 50_000},
		preempted,
	} {
		n := newStory(t, true, "llama-8b")
		before := n.w
		r.Hostname = "t1v-n-ffffffff-w-0"
		n.wrote(n.now, "llama-8b", r)
		if d := cmp.Diff(before, n.w, cmpopts.IgnoreFields(incident.Workload{}, "Unbound")); d != "" || len(n.sent) > 0 || len(n.w.Unbound) != 1 {
			t.Errorf("%s of unknown workers counts:\n%s", r.Report, d)
		}
		n.passes(bounds.Linger + time.Minute)
		r.Hostname = ""
		if n.wrote(n.now, "llama-8b", r); cmp.Diff(before, n.w) == "" || len(n.w.Unbound) > 0 {
			t.Errorf("%s of its own workers is not taken, or that of others is kept for ever", r.Report)
		}
	}
}

// TestProgressPassesTheLastCheckpointNobodyVerified: what the crew told of as saved had been reached before the trouble.
func TestProgressPassesTheLastCheckpointNobodyVerified(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"exit 139", "host error, read unhealthy, read ready"} {
		for step, resumed := range map[int64]bool{48_050: false, 48_150: false, 48_151: true} {
			n := at(t, "everything", false, path, func(w *incident.Workload) { w.Training.Reported.Step = 48_150 }) // and 48,000 was verified
			n.now = n.now.Add(10 * time.Minute)
			if n.steps(2, step); (n.w.Incident == nil) != resumed {
				t.Errorf("%s: step %d past checkpoint 48150 ends it: %v\n%s", path, step, !resumed, n.tale())
			}
		}
	}
}
