package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident"
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
		between func(*story)
		late    bool // the line of the first end comes behind the verdict
		ends    bool
	}{
		"the same":                       {second: nan, ends: true},
		"lines that overtake each other": {second: nan, late: true, ends: true},
		"the same but for its numbers":   {second: numbers, ends: true},
		"another code":                   {second: code},
		"a new step in between":          {second: nan, between: func(n *story) { n.steps(2, 49_000) }},
		"a broken machine in between":    {second: nan, between: func(n *story) { n.goes("host error, read unhealthy, read ready") }},
		"ended by somebody else":         {second: events.CrewReport{Report: events.ReportExited, Signal: "SIGKILL", Interrupted: true}},
		"the line of its end is lost":    {},
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
		if n.later(time.Second).beats(n.verdict(1, false), 0); c.late {
			ends(nan, 1)
		}
		if n.does(events.ActionRestart, ""); c.between != nil {
			c.between(n)
		}
		ends(c.second, 2)
		n.later(time.Second).beats(n.verdict(2, false), 0)
		if got := n.ended().Code == reason.CodeSameError; got != c.ends || got == n.isWanted(events.ActionRestart) {
			t.Errorf("%s: it ends %t:\n%s", name, got, n.tale())
		}
	}
}

// TestAGiveUpThatComesLateEndsNothing: the attempt that was asked for since then runs already. When that one fails as well, it counts.
func TestAGiveUpThatComesLateEndsNothing(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.exits(1, "NaN").later(time.Second).beats(n.verdict(1, false), 0).does(events.ActionRestart, "")
	n.exits(2, "NaN").later(time.Second).line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: 3})
	at := n.stands(nil)
	n.later(time.Second).wrote(n.now.Add(-5*time.Second), "llama-8b", events.CrewReport{Report: events.ReportGaveUp, Attempt: 2}).wants()
	n.is(at)
	n.exits(3, "NaN").later(time.Second).beats(n.verdict(3, false), 0)
	if n.ended().Code != reason.CodeSameError {
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
