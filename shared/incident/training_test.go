package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestAnExitThatComesAfterTheCrewGaveUpOpensNothing: two lines of one second may overtake each other on their way.
func TestAnExitThatComesAfterTheCrewGaveUpOpensNothing(t *testing.T) {
	w := quiet(true)
	w.Crew.Attempt, w.Crew.Exited, w.Crew.GaveUp = 24, 23, 24
	exited := incident.Reported{
		Origin: incident.Origin{ID: "line", Time: start, Rank: events.RankUser}, Slice: w.Slices[0].Name,
		Report: events.CrewReport{Report: events.ReportExited, ExitCode: 1, Attempt: 24, Step: 48_250},
	}
	after, sent, _ := advance(policies["everything"], w, exited, start)
	if after.Incident != nil || len(sent) > 0 {
		t.Errorf("it opened %+v and sent %v", after.Incident, sent)
	}
	exited.Report.Attempt = 25
	if after, _, _ = advance(policies["everything"], after, exited, start); after.Incident == nil {
		t.Error("the exit of a later attempt opened nothing")
	}
}

// TestAFailureThatWasLeftToAPersonIsNotToldAgain: its lines may come when the incident is over, hours late if a function stood
// still.
func TestAFailureThatWasLeftToAPersonIsNotToldAgain(t *testing.T) {
	w := at(t, policies["everything"], true, "preempted, read gone", nil).w
	w, _, _ = tick(policies["everything"], w, start.Add(100*time.Hour))
	for w.Incident != nil {
		w, _, _ = tick(policies["everything"], w, w.Incident.Deadline)
	}
	if w.Closed == nil || w.Closed.Outcome != incident.Escalated {
		t.Fatalf("closed %+v, want it left to a person", w.Closed)
	}
	left := w.Closed.Closed
	w = quiet(true)
	w.Crew.Left, w.Ended = left, left
	for kind, report := range map[string]events.CrewReport{
		"exit": {Report: events.ReportExited, ExitCode: 1, Attempt: 30}, "gave up": {Report: events.ReportGaveUp, Attempt: 30},
	} {
		for at, opens := range map[time.Duration]bool{-time.Minute: false, 0: false, time.Minute: true} {
			now := left.Add(2 * time.Hour)
			after, _, _ := advance(policies["everything"], w, incident.Reported{
				Origin: incident.Origin{ID: "line", Time: left.Add(at), Rank: events.RankUser}, Slice: w.Slices[0].Name, Report: report,
			}, now)
			if got := after.Incident != nil; got != opens {
				t.Errorf("%s %s after it was left: opened %v, want %v", kind, at, got, opens)
			}
		}
	}
}

// TestANoticeOfALifeThatIsLeftAloneIsNotDue: else patrol would be called for it every minute, and never do anything.
func TestANoticeOfALifeThatIsLeftAloneIsNotDue(t *testing.T) {
	noticed := func() incident.Workload {
		w := quiet(true)
		w.Slices[0].Notice = incident.Notice{
			Due: start, Notice: events.Notice{Status: events.NoticePending, WindowStart: start.Add(20 * time.Minute)},
		}
		return w
	}
	if due := noticed().Due(); !due.Equal(start) {
		t.Errorf("due at %v, want when the save is due", due)
	}
	for name, change := range map[string]func(w *incident.Workload){
		"its end has been told": func(w *incident.Workload) { w.Slices[0].End.Reported = true },
		"its owner has it":      func(w *incident.Workload) { w.Slices[0].End.Released = start },
		"the training is done":  func(w *incident.Workload) { w.Crew.Finished = true },
		"it was withdrawn":      func(w *incident.Workload) { w.Slices[0].Notice.Status = events.NoticeGone },
		"it is a former life's": func(w *incident.Workload) {
			w.Slices[0].Former = []incident.Life{w.Slices[0].Life}
			w.Slices[0].Notice = incident.Notice{}
		},
	} {
		w := noticed()
		change(&w)
		if due := due(w); !due.IsZero() {
			t.Errorf("%s: due at %v, want never", name, due)
		}
	}
}

// TestAnInterruptedTrainingIsTheMachines: nobody mends the training for what it did not do.
func TestAnInterruptedTrainingIsTheMachines(t *testing.T) {
	for interrupted, want := range map[bool]events.Cause{false: events.CauseCrash, true: events.CauseUnknown} {
		w := quiet(true)
		after, _, _ := advance(policies["everything"], w, incident.Reported{
			Origin: incident.Origin{ID: "line", Time: start, Rank: events.RankUser}, Slice: w.Slices[0].Name,
			Report: events.CrewReport{Report: events.ReportExited, Signal: "SIGKILL", Interrupted: interrupted, Attempt: w.Crew.Attempt + 1},
		}, start)
		if in := after.Incident; in == nil || in.Cause != want || in.Cause.Infrastructure() != interrupted {
			t.Errorf("interrupted %v: %+v", interrupted, in)
		}
	}
}

// TestARestartNamesAnotherAttemptThanTheLeaseDoes: a crew that hangs in the attempt that the lease names, and has never told
// of it, does nothing for a lease that names the same one again.
func TestARestartNamesAnotherAttemptThanTheLeaseDoes(t *testing.T) {
	p := policies["everything"]
	n := at(t, p, true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ours made", nil)
	now, last, asked := n.now, 0, 0
	for w := n.w; asked < 4 && now.Before(start.Add(24*time.Hour)); now = now.Add(time.Minute) {
		s := w.Slices[0]
		evidence := []incident.Evidence{
			incident.Read{
				Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: s.Name, Zone: s.Zone, Condition: incident.Ready,
				Incarnation: s.Incarnation, State: "READY", Incident: w.Incident.ID,
			},
			incident.Ticked{Origin: incident.Origin{Rank: events.RankReading}},
		}
		for len(evidence) > 0 && w.Incident != nil {
			var sent []events.Event
			w, sent, _ = advance(p, w, evidence[0], now)
			evidence = evidence[1:]
			for _, e := range sent {
				if r, ok := e.(events.RecoveryRequested); ok {
					if r.TrainingAttempt <= last {
						t.Errorf("%s names attempt %d, and the lease names %d", r.Action, r.TrainingAttempt, last)
					}
					last = r.TrainingAttempt
					asked++
					evidence = append(evidence,
						incident.Intended{Origin: incident.Origin{Time: now}, Request: r.Request, RequestID: "r"},
						incident.Answered{Origin: incident.Origin{Time: now}, Request: r.Request, Text: "the lease was written"})
				}
			}
		}
		if w.Incident == nil {
			break
		}
	}
	if asked < 2 {
		t.Errorf("the lease was asked for %d times, want an admission and restarts", asked)
	}
}

// TestALineFromBeforeTheTroubleConfirmsNothing: none of the crew's lines, or not those of its last attempt, had come before the
// trouble did.
func TestALineFromBeforeTheTroubleConfirmsNothing(t *testing.T) {
	for _, c := range []struct {
		name    string
		heard   int
		at      time.Duration
		resumed bool
	}{
		{"from before it", 0, -13 * time.Second, false},
		{"from so soon after it that a clock may be wrong", 0, incident.SickFor - 1, false},
		{"from after it", 0, incident.SickFor, true},
		{"of an attempt from before it", 1, -13 * time.Second, false},
		{"of an attempt from after it", 1, incident.SickFor, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := quiet(true)
			w.Crew, w.Progress = incident.Crew{Attempt: c.heard}, incident.Progress{}
			w, _, _ = advance(policies["spot"], w, incident.Interrupted{
				Origin: incident.Origin{ID: "p", Time: start, Rank: events.RankAudit}, Slice: "llama-8b", Incarnation: w.Slices[0].Incarnation,
				Cause: events.CausePreemption, Text: "preempted",
			}, start.Add(time.Second))
			w, _, _ = advance(policies["spot"], w, incident.Reported{
				Origin: incident.Origin{ID: "c", Time: start.Add(c.at), Rank: events.RankUser}, Slice: "llama-8b",
				Report: events.CrewReport{Report: events.ReportProgress, Attempt: c.heard + 1, Step: 19_754, Hostname: "t1v-n-3f2a9c01-w-0"},
			}, start.Add(max(c.at, 20*time.Second)))
			if resumed := w.Incident == nil; resumed != c.resumed {
				t.Errorf("it ended: %v, want %v", resumed, c.resumed)
			}
		})
	}
}

// TestALateLineOfAnAttemptConfirmsNothingOnceAnotherRuns: that attempt has ended, whatever steps it did since the trouble.
func TestALateLineOfAnAttemptConfirmsNothingOnceAnotherRuns(t *testing.T) {
	w := quiet(true)
	w.Progress.At = start.Add(-2 * time.Hour)
	retried, begun := start, start.Add(3*time.Minute)
	w, _, _ = advance(policies["everything"], w, incident.Retried{Word: ann}, retried)
	if w.Incident == nil {
		t.Fatal("a person's word opened nothing")
	}
	step := w.Progress.Step + 60
	tell := func(r events.CrewReport, at time.Time) {
		w, _, _ = advance(policies["everything"], w, incident.Reported{
			Origin: incident.Origin{ID: string(r.Report), Time: at, Rank: events.RankUser}, Slice: "llama-8b", Report: r,
		}, begun.Add(time.Minute))
	}
	tell(events.CrewReport{Report: events.ReportStarted, Attempt: 2, Workers: 4, Step: 48_000}, begun)
	if tell(events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: step}, retried.Add(time.Minute)); w.Incident == nil {
		t.Fatalf("a line of attempt 1 ended it: %s", w.Closed.Reason)
	}
	if tell(events.CrewReport{Report: events.ReportProgress, Attempt: 2, Step: step}, begun.Add(time.Second)); w.Incident != nil {
		t.Errorf("attempt 2 went past its saved step, and it stands at %s", w.Incident.Phase)
	}
}

// TestTheSameErrorIsNotMetAgainAndAgain: the crew has given up, was asked for another attempt, and gave up on the same error
// without one new step. Whoever asks again only burns chips.
func TestTheSameErrorIsNotMetAgainAndAgain(t *testing.T) {
	const step = "RuntimeError: NaN in loss at step 48,250 (0x7f3a), worker 12"
	exit := func(code int, said string) events.CrewReport {
		return events.CrewReport{Report: events.ReportExited, ExitCode: code, Tail: []string{"Traceback", said, " "}, Step: 48_190}
	}
	for _, c := range []struct {
		name     string
		first    events.CrewReport
		second   events.CrewReport
		progress int64
		ends     bool
		late     bool // the line of the first end comes behind that of the giving up
	}{
		{"the same", exit(1, step), exit(1, step), 0, true, false},
		{"the same, and lines that overtake each other", exit(1, step), exit(1, step), 0, true, true},
		{"the same but for its numbers", exit(1, step), exit(1, "RuntimeError: NaN in loss at step 48,251 (0xdeadbeef), worker 3"), 0, true, false},
		{"another code", exit(1, step), exit(2, step), 0, false, false},
		{"another last line", exit(1, step), exit(1, "ValueError: shapes do not match"), 0, false, false},
		{"a new step in between", exit(1, step), exit(1, step), 49_000, false, false},
		{"ended by somebody else", exit(1, step), events.CrewReport{Report: events.ReportExited, Signal: "SIGKILL", Interrupted: true}, 0, false, false},
		{"the line of its end is lost", exit(1, step), events.CrewReport{}, 0, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, w, now := policies["everything"], quiet(true), start
			tell := func(r events.CrewReport) {
				now = now.Add(time.Second)
				if r.Report == "" {
					return
				}
				w, _, _ = advance(p, w, incident.Reported{
					Origin: incident.Origin{ID: "line", Time: now, Rank: events.RankUser}, Slice: "llama-8b", Report: r,
				}, now)
			}
			fail := func(r events.CrewReport, attempt int, late bool) {
				if r.Report != "" {
					r.Attempt = attempt
				}
				lines := []events.CrewReport{r, {Report: events.ReportGaveUp, Attempt: attempt, Reason: "all restarts are spent"}}
				if late {
					slices.Reverse(lines)
				}
				tell(lines[0])
				tell(lines[1])
				w, _, _ = advance(p, w, verdictOf(w, attempt, false, now), now)
			}
			fail(c.first, 1, c.late)
			if w.Incident == nil || w.Incident.Phase != incident.Restarting {
				t.Fatalf("the first time: %+v", w.Incident)
			}
			effect := w.Effects[0]
			r := events.Request{Workload: w.ID, Incident: w.Incident.ID, Epoch: effect.Epoch, Action: effect.Action, Attempt: effect.Attempt}
			w, _, _ = advance(p, w, incident.Intended{Request: r, RequestID: "r"}, now)
			w, _, _ = advance(p, w, incident.Answered{Request: r, Text: "written"}, now)
			if c.progress > 0 {
				tell(events.CrewReport{Report: events.ReportProgress, Attempt: 2, Step: c.progress})
			}
			fail(c.second, 2, false)
			ended := w.Incident == nil && w.Closed.Outcome == incident.Escalated && strings.HasPrefix(w.Closed.Reason, "the same error twice")
			if ended != c.ends {
				t.Errorf("it ended: %v, want %v: %+v, closed %+v", ended, c.ends, w.Incident, w.Closed)
			}
			if !ended && (w.Incident == nil || w.Incident.Phase != incident.Restarting) {
				t.Errorf("no restart follows: %+v", w.Incident)
			}
		})
	}
}

// verdictOf is the guest attribute of a crew that has ended an attempt for good.
func verdictOf(w incident.Workload, attempt int, finished bool, now time.Time) incident.Beat {
	s := w.Slices[0]
	return incident.Beat{Origin: incident.Origin{Time: now, Rank: events.RankUser}, Slice: s.Name, Incarnation: s.Incarnation, Seen: now, Attempt: attempt, Verdict: &events.CrewVerdict{
		Schema: events.Schema, Attempt: max(attempt, w.Crew.LeaseAttempt), Finished: finished, Ended: now, Reason: "all restarts are spent",
		Life: events.Admission{Slice: s.Name, Incarnation: events.Incarnation{Zone: s.Zone}, Workers: s.Hosts},
	}}
}

// TestAGiveUpThatComesLateEndsNothing: the attempt that was asked for since then runs already. When that one fails as well, it
// counts.
func TestAGiveUpThatComesLateEndsNothing(t *testing.T) {
	p, w, now := policies["everything"], quiet(true), start
	var sent []events.Event
	tell := func(r events.CrewReport) {
		now = now.Add(time.Second)
		w, sent, _ = advance(p, w, incident.Reported{
			Origin: incident.Origin{ID: "line", Time: now, Rank: events.RankUser}, Slice: "llama-8b", Report: r,
		}, now)
	}
	exits := func(attempt int) {
		tell(events.CrewReport{Report: events.ReportExited, ExitCode: 1, Attempt: attempt, Step: 48_190})
	}
	givesUp := func(attempt int) {
		tell(events.CrewReport{Report: events.ReportGaveUp, Attempt: attempt, Reason: "all restarts are spent"})
	}
	confirmed := func(attempt int) {
		givesUp(attempt)
		w, sent, _ = advance(p, w, verdictOf(w, attempt, false, now), now)
	}
	exits(1)
	confirmed(1)
	effect := w.Effects[0]
	r := events.Request{Workload: w.ID, Incident: w.Incident.ID, Epoch: effect.Epoch, Action: effect.Action, Attempt: effect.Attempt}
	w, _, _ = advance(p, w, incident.Intended{Request: r, RequestID: "r"}, now)
	w, _, _ = advance(p, w, incident.Answered{Request: r, Text: "written"}, now)
	exits(2)
	tell(events.CrewReport{Report: events.ReportStarted, Attempt: 3, Workers: 4, Step: 48_000})
	phase := w.Incident.Phase
	now = now.Add(-5 * time.Second)
	if givesUp(2); w.Incident == nil || w.Incident.Phase != phase || len(sent) > 0 {
		t.Fatalf("late, it sent %v and stands at %+v, closed %+v", sent, w.Incident, w.Closed)
	}
	now = now.Add(time.Minute)
	exits(3)
	if confirmed(3); w.Incident != nil || w.Closed.Code != incident.CodeSameError {
		t.Errorf("the third time it stands at %+v, closed %+v", w.Incident, w.Closed)
	}
}

// TestAMachinesErrorIsNotTheTrainings: what the training failed of while its machine was broken says nothing of the next time.
func TestAMachinesErrorIsNotTheTrainings(t *testing.T) {
	p := policies["everything"]
	for struck, same := range map[string]bool{"": true, "host error, read unhealthy, read ready": false} {
		n := at(t, p, true, "exit 139, gave up, its verdict, intend restart 0, accepted restart 0, started", nil)
		if struck != "" {
			for _, what := range strings.Split(struck, ", ") {
				n = at1(t, p, n, what)
			}
		}
		for _, what := range []string{"exit 139", "gave up", "its verdict"} {
			n = at1(t, p, n, what)
		}
		if is := n.w.Incident == nil && n.w.Closed.Code == incident.CodeSameError; is != same {
			t.Errorf("after %q it is the same error: %v; %s", struck, is, tale(n.w))
		}
	}
}

// TestALineAdmitsNoSlice: whatever attempt it tells of, the request stands, and the lease that is read before the write decides.
func TestALineAdmitsNoSlice(t *testing.T) {
	n := at(t, policies["everything"], true,
		"preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ours", nil)
	n.w.Slices[0].Hosts = "t1v-n-00000002"
	names := n.w.Effects[0].LeaseAttempt
	for name, report := range map[string]events.CrewReport{
		"it runs":                 {Report: events.ReportStarted, Attempt: names},
		"it has failed":           {Report: events.ReportExited, ExitCode: 1, Attempt: names + 1},
		"an earlier attempt":      {Report: events.ReportStarted, Attempt: names - 1},
		"no attempt":              {Report: events.ReportNotice, Attempt: names, Notice: &events.Notice{}},
		"nobody knows which life": {Report: events.ReportStarted, Attempt: names, Hostname: "laptop"},
		"a former life":           {Report: events.ReportStarted, Attempt: names, Hostname: "t1v-n-3f2a9c01-w-0"},
	} {
		if report.Hostname == "" {
			report.Hostname = "t1v-n-00000002-w-0"
		}
		w, _, _ := advance(policies["everything"], n.w, incident.Reported{
			Origin: incident.Origin{ID: "line", Time: n.now, Rank: events.RankUser}, Slice: n.w.Slices[0].Name, Report: report,
		}, n.now)
		if w.Incident.Phase != incident.Admitting || w.Slices[0].Admitted().Same(w.Slices[0].Incarnation) || w.Effects[0].Epoch != n.w.Effects[0].Epoch {
			t.Errorf("%s: phase %s, admitted %v", name, w.Incident.Phase, w.Slices[0].Admitted())
		}
	}
}

// TestAnIncidentKeepsHowItsLastAttemptEnded: of two lines the one of the later attempt counts, whatever the order of their arrival.
func TestAnIncidentKeepsHowItsLastAttemptEnded(t *testing.T) {
	for name, order := range map[string][]int{"in order": {5, 6}, "out of order": {6, 5}, "twice": {5, 5, 6, 6}} {
		w := quiet(true)
		w.Crew.Attempt = 5
		for i, attempt := range order {
			w, _, _ = advance(policies["everything"], w, incident.Reported{
				Origin: incident.Origin{ID: "line", Time: start, Rank: events.RankUser}, Slice: w.Slices[0].Name,
				Report: events.CrewReport{
					Report: events.ReportExited, Node: w.Slices[0].Name, Worker: 2, ExitCode: 128 + attempt, Attempt: attempt,
					OutOfMemory: true, Retries: events.JobRetries{Worker: attempt},
				},
			}, start.Add(time.Duration(i)*time.Second))
		}
		want := events.Exit{Slice: w.Slices[0].Name, Worker: 2, Code: 134, OutOfMemory: true, Retries: events.JobRetries{Worker: 6}}
		if w.Incident == nil {
			t.Fatalf("%s: no incident", name)
		}
		if got := w.Incident.Error; got.Attempt != 6 || got.Exit != want {
			t.Errorf("%s: attempt %d, %+v; want 6, %+v", name, got.Attempt, got.Exit, want)
		}
	}
}

// TestALineThatComesAgainTellsNothingOfALaterIncident: how an attempt ended stays with the incident in which it ended.
func TestALineThatComesAgainTellsNothingOfALaterIncident(t *testing.T) {
	w := quiet(true)
	w.Crew.Attempt = 5
	line := incident.Reported{
		Origin: incident.Origin{ID: "line", Time: start, Rank: events.RankUser}, Slice: w.Slices[0].Name,
		Report: events.CrewReport{Report: events.ReportExited, Node: w.Slices[0].Name, ExitCode: 1, Attempt: 5},
	}
	w, _, _ = advance(policies["everything"], w, line, start)
	if w.Incident == nil || w.Incident.Error.Attempt != 5 {
		t.Fatalf("the crash: %+v", w.Incident)
	}
	first := w.Incident.ID
	w, _, _ = advance(policies["everything"], w, incident.Reported{
		Origin: incident.Origin{ID: "step", Time: start.Add(time.Minute), Rank: events.RankUser}, Slice: w.Slices[0].Name,
		Report: events.CrewReport{Report: events.ReportProgress, Node: w.Slices[0].Name, Attempt: 6, Step: w.Incident.Baseline + 1000},
	}, start.Add(time.Minute))
	if w.Incident != nil {
		t.Fatalf("it does not end: %s", w.Incident.Phase)
	}
	at := start.Add(time.Hour)
	w, _, _ = advance(policies["everything"], w, incident.Interrupted{
		Origin: incident.Origin{ID: "preempted", Time: at, Rank: events.RankReading}, Slice: w.Slices[0].Name,
		Incarnation: w.Slices[0].Incarnation, Cause: events.CausePreemption, Text: "preempted",
	}, at)
	if w.Incident == nil || w.Incident.ID == first {
		t.Fatalf("the preemption opens none: %+v", w.Incident)
	}
	w, _, _ = advance(policies["everything"], w, line, at.Add(time.Second))
	if got := w.Incident.Error; got != (incident.Error{}) {
		t.Errorf("the second incident shows attempt %d: %+v", got.Attempt, got)
	}
}
