package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// TestAFastClockHidesNoLaterLoss: evidence may carry a time that is still to come. It counts as of now, and what happens after it is
// newer.
func TestAFastClockHidesNoLaterLoss(t *testing.T) {
	const fast = 3 * time.Hour
	for name, give := range map[string]func(r *tour){
		"progress": func(r *tour) {
			s := r.w.Slices[0]
			r.give(incident.Reported{Origin: incident.Origin{ID: "line", Time: r.now.Add(fast), Rank: events.RankUser}, Slice: s.Name, Report: events.CrewReport{
				Schema: 1, Report: events.ReportProgress, Zone: s.Zone, Node: s.Name, Hostname: s.Hosts + "-w-0", Attempt: 1, Step: 48_300,
			}})
		},
		"a reading": func(r *tour) {
			r.readAs("llama-8b", incident.Unhealthy, nil)
			r.readAs("llama-8b", incident.Ready, func(e *incident.Read) { e.Time = r.now.Add(fast) })
		},
	} {
		r := newTour(t, quiet(true), "everything")
		give(r)
		if at := r.w.Progress.At; at.After(r.now) {
			t.Errorf("%s: the last progress is from %v in the future", name, at.Sub(r.now))
		}
		r.now = r.now.Add(5 * time.Minute)
		if asked := r.learn("llama-8b", "preempted", "read lost"); asked != "delete llama-8b" {
			t.Errorf("%s: lost five minutes later, and asked for is %q", name, asked)
		}
	}
}

// TestNothingIsKeptFromTheFuture: what a crew writes carries the time of its machine.
func TestNothingIsKeptFromTheFuture(t *testing.T) {
	const fast = 3 * time.Hour
	r := newTour(t, quiet(true), "everything")
	r.w.Progress.GapSeconds = 60
	r.now = r.now.Add(time.Hour)
	if !readsOf(r.w, r.now).Has(incident.ReadCrew, "llama-8b") {
		t.Fatal("nobody listens to a crew that has been silent for an hour")
	}
	r.give(beat(r.now, -fast, -fast))
	if h := r.w.Slices[0].Heard; h.Seen.IsZero() || h.Seen.After(r.now) || r.w.Progress.Stepped.IsZero() || r.w.Progress.Stepped.After(r.now) {
		t.Errorf("at %v its crew counts as heard at %v, with a step at %v", r.now, h.Seen, r.w.Progress.Stepped)
	}

	r = newTour(t, quiet(true), "everything")
	r.give(verdictOf(r.w, 3, true, r.now.Add(fast)))
	if !r.w.Crew.Finished {
		t.Fatalf("the verdict does not count: %+v", r.w.Crew)
	}
	r.now = r.now.Add(2 * time.Minute)
	if r.learn("llama-8b", "stopped for"); r.w.Crew.Finished {
		t.Errorf("at %v it counts as finished at %v, though its host was stopped at about the time of its exit", r.now, r.w.Crew.FinishedAt)
	}
}

// TestAnExitZeroIsASaveOnBothSidesOfWhatStrikes: maintenance or a loss may come before the exit or after it, and may be learned before
// the verdict or after it. Within StruckWithin of the exit it makes the exit a save.
func TestAnExitZeroIsASaveOnBothSidesOfWhatStrikes(t *testing.T) {
	for _, cause := range []events.Cause{events.CauseMaintenance, events.CausePreemption} {
		for _, apart := range []time.Duration{-20 * time.Minute, -14 * time.Minute, -10 * time.Minute, -time.Minute, time.Minute, 10 * time.Minute, 14 * time.Minute, 20 * time.Minute} {
			for _, strikeFirst := range []bool{false, true} {
				r := newTour(t, quiet(true), "everything")
				exit := r.now.Add(30 * time.Minute)
				r.now = exit.Add(25 * time.Minute)
				verdict := verdictOf(r.w, 3, true, r.now)
				verdict.Verdict.Ended = exit
				s := r.w.Slices[0]
				strike := incident.Interrupted{
					Origin: incident.Origin{ID: "entry", Time: exit.Add(apart), Rank: events.RankReading}, Slice: s.Name, Incarnation: s.Incarnation, Cause: cause, Text: string(cause),
				}
				if strikeFirst {
					r.give(strike)
					r.give(verdict)
				} else {
					r.give(verdict)
					r.give(strike)
				}
				if save := !r.w.Crew.Finished; save != (apart.Abs() <= incident.StruckWithin) {
					t.Errorf("%s %v from the exit, learned first %v: the exit is a save: %v", cause, apart, strikeFirst, save)
				}
			}
		}
	}
}

// TestAnExitZeroInAnnouncedMaintenanceIsASave: a notice that a reading showed is enough, before anything has been seen of the maintenance.
// A message, and a notice that was taken back, prove nothing.
func TestAnExitZeroInAnnouncedMaintenanceIsASave(t *testing.T) {
	const after = 10 * time.Minute
	for name, c := range map[string]struct {
		notice func(r *tour) incident.Noticed
		then   []string
		save   bool
	}{
		"its window has begun":                           {noticed(events.NoticePending, 0, true), nil, true},
		"its window has begun long ago":                  {noticed(events.NoticePending, -time.Hour, true), nil, false},
		"only a message says that its window has begun":  {noticed(events.NoticePending, 0, false), nil, false},
		"it was taken back":                              {noticed(events.NoticePending, 0, true), []string{"notice gone"}, false},
		"it is under way, and a person has cancelled":    {noticed(events.NoticeOngoing, -time.Hour, true), []string{"cancelled"}, true},
		"it is announced for later, and a person has so": {noticed(events.NoticePending, time.Hour, true), nil, false},
	} {
		r := newTour(t, quiet(true), "watch")
		r.give(c.notice(r))
		r.learn("llama-8b", c.then...)
		r.now = r.now.Add(after)
		if r.give(verdictOf(r.w, 3, true, r.now)); r.w.Crew.Finished == c.save {
			t.Errorf("%s: ten minutes later the crew calls the training finished, and that counts: %v", name, r.w.Crew.Finished)
		}
	}
}

// noticed is maintenance whose window begins some time from now.
func noticed(status events.NoticeStatus, begins time.Duration, inAPI bool) func(r *tour) incident.Noticed {
	return func(r *tour) incident.Noticed {
		s := r.w.Slices[0]
		return incident.Noticed{
			Origin: incident.Origin{ID: "notice", Time: r.now, Rank: events.RankReading}, Slice: s.Name, Incarnation: s.Incarnation, InAPI: inAPI, Text: "notice",
			Notice: events.Notice{Status: status, WindowStart: r.now.Add(begins), WindowEnd: r.now.Add(begins + 4*time.Hour)},
		}
	}
}

// TestALineOfUnknownWorkersChangesNothing: it is kept until somebody knows whose they are, and forgotten where nobody does.
func TestALineOfUnknownWorkersChangesNothing(t *testing.T) {
	n := events.Notice{Status: events.NoticePending, WindowStart: start.Add(time.Hour), WindowEnd: start.Add(5 * time.Hour)}
	for _, rep := range []events.CrewReport{
		{Report: events.ReportStarted, Attempt: 9, Workers: 4, Step: 50_000},
		{Report: events.ReportProgress, Attempt: 9, Step: 50_000, CheckpointStep: 49_900},
		{Report: events.ReportExited, Attempt: 9, ExitCode: 139},
		{Report: events.ReportGaveUp, Attempt: 9, Reason: "five times"},
		{Report: events.ReportFinished, Attempt: 9, Step: 50_000},
		{Report: events.ReportNotice, Notice: &n},
		{Report: events.ReportNotice, Preempted: true},
	} {
		for group, counts := range map[string]bool{"t1v-n-3f2a9c01": true, "t1v-n-ffffffff": false} {
			w := quiet(true)
			rep.Schema, rep.Zone, rep.Node, rep.Hostname = 1, "us-west4-a", "llama-8b", group+"-w-0"
			e := incident.Reported{Origin: incident.Origin{ID: "line", Time: start, Rank: events.RankUser}, Slice: "llama-8b", Report: rep}
			next, sent, changed := advance(policies["everything"], w, e, start)
			if counts {
				if !changed || len(next.Unbound) > 0 {
					t.Errorf("%s of %s is not taken", rep.Report, group)
				}
				continue
			}
			if len(sent) > 0 || len(next.Unbound) != 1 || cmp.Diff(quiet(true), next, cmpopts.IgnoreFields(incident.Workload{}, "Unbound", "Schema")) != "" {
				t.Errorf("%s of %s counts:\n%s", rep.Report, group, cmp.Diff(quiet(true), next))
			}
			if next, _, _ = tick(policies["everything"], next, start.Add(incident.Linger+time.Second)); len(next.Unbound) > 0 {
				t.Errorf("%s of %s is kept for ever", rep.Report, group)
			}
		}
	}
}

// TestTheEndOfAnEarlierAttemptIsNotTheEnd: neither the verdict of an attempt before the one that the lease names, nor what is told
// again of an attempt whose exit 0 was a save.
func TestTheEndOfAnEarlierAttemptIsNotTheEnd(t *testing.T) {
	for attempt, want := range map[int]bool{2: false, 3: true, 4: true} {
		r := newTour(t, quiet(true), "everything") // its lease names attempt 3
		v := verdictOf(r.w, attempt, true, r.now)
		v.Verdict.Attempt = attempt
		if r.give(v); r.w.Crew.Finished != want {
			t.Errorf("the verdict of attempt %d ends the training: %v", attempt, r.w.Crew.Finished)
		}
	}
	r := newTour(t, quiet(true), "everything") // where the lease itself still names attempt 2, its verdict counts
	r.learn("llama-8b", "finished")
	r.now = r.now.Add(time.Hour)
	r.learn("llama-8b", "read lost")
	v := verdictOf(r.w, 2, true, r.now.Add(-time.Hour)).Verdict
	v.Attempt = 2
	if r.give(incident.VerdictRead{Request: asked(r.w, r.now), Verdict: v}); !r.w.Crew.Finished {
		t.Errorf("a verdict that the lease confirms does not count: %s", tale(r.w))
	}
	for attempt, want := range map[int]bool{3: false, 4: true} {
		r := newTour(t, quiet(true), "everything")
		r.learn("llama-8b", "stopped for")
		r.give(verdictOf(r.w, 3, true, r.now)) // a save
		r.learn("llama-8b", "read ready")
		r.now = r.now.Add(time.Hour)
		r.line("llama-8b", events.CrewReport{Report: events.ReportFinished, Attempt: attempt, Step: 50_000})
		if claimed := r.w.Crew.Claim.Finished; claimed != want {
			t.Errorf("the line of attempt %d is looked into: %v", attempt, claimed)
		}
		v := verdictOf(r.w, attempt, true, r.now)
		v.Verdict.Attempt = attempt
		if r.give(v); r.w.Crew.Finished != want {
			t.Errorf("attempt 3 ended by a save, and the verdict of attempt %d ends the training: %v", attempt, r.w.Crew.Finished)
		}
	}
}

// TestProgressPassesTheLastCheckpointNobodyVerified: what the crew told of as saved had been reached before the trouble.
func TestProgressPassesTheLastCheckpointNobodyVerified(t *testing.T) {
	for name, path := range map[string][]string{"a crash": {"exit 139"}, "a loss that heals": {"host error", "read unhealthy", "read ready"}} {
		for step, resumed := range map[int64]bool{48_050: false, 48_150: false, 48_151: true} {
			w := quiet(false)
			w.Progress.CheckpointStep = 48_150 // and 48,000 was verified
			r := newTour(t, w, "everything")
			r.learn("llama-8b", path...)
			r.now = r.now.Add(10 * time.Minute)
			r.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 4, Step: step, CheckpointStep: 48_000})
			if ended := r.w.Incident == nil; ended != resumed {
				t.Errorf("%s: step %d past checkpoint 48150 ends it: %v", name, step, ended)
			}
		}
	}
}

// TestANewLifeIsNamedByNoFormerLease: the other slices' steps, with an attempt whose lease named the life before, admit nobody.
func TestANewLifeIsNamedByNoFormerLease(t *testing.T) {
	r := newTour(t, multi(true), "everything")
	r.w.Slices[0].Leased = 3
	r.w.Slices[1].Leased = 3
	next := r.made(far, "9001")
	r.read("a", incident.Ready, next)
	r.now = r.now.Add(time.Minute)
	r.line("b", events.CrewReport{Report: events.ReportProgress, Attempt: 3, Step: 48_300, CheckpointStep: 48_000})
	if s := r.w.Slice("a"); s.Leased != 0 || s.Admitted().Same(next) {
		t.Errorf("a in %s counts as named since attempt %d, and admitted is %v", s.Zone, s.Leased, s.Admitted())
	}
}

// TestANoticeEndsWithItsLife, whoever made the next one: what is announced for that has to be told anew, and nothing is saved for the
// former window.
func TestANoticeEndsWithItsLife(t *testing.T) {
	for name, again := range map[string]func(r *tour){
		"theirs": func(r *tour) { r.learn("llama-8b", "owner deletes", "read gone", "read foreign") },
		"ours": func(r *tour) {
			r.learn("llama-8b", "preempted", "read lost")
			r.learn("", "intend delete 0", "accepted delete 0")
			r.learn("llama-8b", "read gone")
			r.learn("", "intend create 0", "accepted create 0")
			r.learn("llama-8b", "read ours")
		},
	} {
		r := newTour(t, quiet(true), "everything")
		r.give(noticed(events.NoticePending, 12*time.Hour, true)(r))
		if r.w.Notice("llama-8b") == nil {
			t.Fatalf("%s: the notice is not kept", name)
		}
		if again(r); r.w.Notice("llama-8b") != nil {
			t.Errorf("%s: the next life has the notice %+v", name, *r.w.Notice("llama-8b"))
		}
	}
}

// TestAYesIsToOneQuestion: at the last look before a call, under a policy that asks, only what was approved is allowed. A yes to early
// maintenance is one to the save before it, and one to a deletion is one to the creation after it.
func TestAYesIsToOneQuestion(t *testing.T) {
	actions := []events.Action{events.ActionSave, events.ActionMaintain, events.ActionRestart, events.ActionStart, events.ActionDelete, events.ActionCreate}
	also := map[events.Action]events.Action{events.ActionMaintain: events.ActionSave, events.ActionDelete: events.ActionCreate}
	for _, approved := range append(actions[:5:5], "") {
		for _, spot := range []bool{true, false} {
			w := quiet(spot)
			w.Slices[0].ToReplace = true
			w.Incident = &incident.Incident{ID: "x", Phase: incident.Approving, Switches: policy.Everything(), Approved: approved}
			for _, a := range actions {
				want := policy.Ask
				if a == approved || also[approved] == a {
					want = policy.Yes
				}
				if got, sw := w.Allowed(a, policies["ask"]); got != want {
					t.Errorf("approved is %q, and %s (switch %s) stands at %v, want %v", approved, a, sw, got, want)
				}
			}
		}
	}
}

// TestARestartIsRefundedOnce: however many better causes are learned, and whatever has been paid in the meantime.
func TestARestartIsRefundedOnce(t *testing.T) {
	crash := func(spent int) *tour {
		r := newTour(t, quiet(true), "everything")
		r.w.Budgets = incident.Budgets{Restarts: spent, Since: start.Add(-time.Hour)}
		r.learn("llama-8b", "exit 139", "gave up", "its verdict")
		r.learn("", "intend restart 0")
		if got := r.w.Budgets.Restarts; got != spent+1 || r.w.Incident.Charged != 1 {
			t.Fatalf("the restart is charged as %d, %d", got, r.w.Incident.Charged)
		}
		return r
	}
	learn := func(r *tour, at time.Time) {
		for _, c := range []events.Cause{events.CauseUnknown, events.CauseGuest, events.CauseTerminated, events.CausePreemption, events.CauseHostError} {
			s := r.w.Slices[0]
			r.give(incident.Interrupted{Origin: incident.Origin{ID: string(c), Time: at, Rank: events.RankAudit}, Slice: s.Name, Incarnation: s.Incarnation, Cause: c, Text: string(c)})
		}
	}
	t.Run("while it is open", func(t *testing.T) {
		r := crash(1)
		learn(r, start)
		if got := r.w.Budgets.Restarts; got != 1 || r.w.Incident.Charged != 0 {
			t.Errorf("two were spent and one is refunded: left are %d, and %d to be refunded", got, r.w.Incident.Charged)
		}
	})
	t.Run("when it is over", func(t *testing.T) {
		r := crash(1)
		r.do()
		r.now = r.now.Add(time.Minute)
		r.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 4, Step: 48_300, CheckpointStep: 48_000})
		if r.w.Incident != nil {
			t.Fatalf("it is open: %s", tale(r.w))
		}
		learn(r, start)
		if got := r.w.Budgets.Restarts; got != 1 || r.w.Closed.Charged != 0 {
			t.Errorf("two were spent and one is refunded: left are %d, and %d to be refunded", got, r.w.Closed.Charged)
		}
	})
	t.Run("a verified step has paid it", func(t *testing.T) {
		r := crash(0)
		s := r.w.Slices[0]
		r.give(incident.Beat{Slice: s.Name, Incarnation: s.Incarnation, Seen: r.now, Runs: true, Attempt: 4, Step: 48_300, StepAt: r.now})
		if r.w.Budgets != (incident.Budgets{}) || r.w.Incident.Charged != either(0, 1, "cost") {
			t.Errorf("to be refunded is %d of %+v", r.w.Incident.Charged, r.w.Budgets)
		}
	})
	t.Run("a person has paid it", func(t *testing.T) {
		r := crash(0)
		r.learn("llama-8b", "cancelled")
		r.now = r.now.Add(time.Minute)
		if r.learn("llama-8b", "retried"); r.w.Budgets.Restarts != 0 || r.w.Closed.Charged != 0 {
			t.Errorf("to be refunded is %d of %+v", r.w.Closed.Charged, r.w.Budgets)
		}
	})
}

// TestTheBudgetCountsFromItsFirstRestart: a step done between two of them was not done after both were spent in vain, and refills all the
// same. A document of the former release does not say when the first was spent: it is taken to be now, and what comes after refills.
func TestTheBudgetCountsFromItsFirstRestart(t *testing.T) {
	proof := func(r *tour, step int64, at time.Time) {
		s := r.w.Slices[0]
		r.give(incident.Beat{Slice: s.Name, Incarnation: s.Incarnation, Seen: r.now, Runs: true, Attempt: 4, Step: step, StepAt: at})
	}
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "exit 139", "gave up", "its verdict")
	r.learn("", "intend restart 0")
	first := r.w.Budgets.Since
	if first.IsZero() {
		t.Fatalf("the first restart is noted at %v", first)
	}
	r.do()
	r.now = r.now.Add(10 * time.Minute)
	between := r.now
	r.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: 4, Workers: 4})
	r.line("llama-8b", events.CrewReport{Report: events.ReportExited, Attempt: 4, ExitCode: 1, Tail: []string{"another"}})
	r.line("llama-8b", events.CrewReport{Report: events.ReportGaveUp, Attempt: 4, Reason: "five times"})
	r.give(verdictOf(r.w, 4, false, r.now))
	r.learn("", "intend restart 0")
	if b := r.w.Budgets; b.Restarts != 2 || !b.Since.Equal(first) {
		t.Fatalf("spent are %+v: %s", b, tale(r.w))
	}
	if proof(r, 48_300, between); r.w.Budgets.Restarts != either(0, 1, "newer") {
		t.Errorf("a step between the two refills nothing: %+v", r.w.Budgets)
	}
	if *third { // it remembers each charge, and reads no document of a former release
		return
	}

	old := newTour(t, quiet(true), "everything")
	old.w.Budgets = incident.Budgets{Restarts: 2, Recreates: 1}
	old.now = old.now.Add(time.Hour)
	proof(old, 48_300, old.now.Add(-30*time.Minute))
	if b := old.w.Budgets; b.Restarts != 2 || b.Recreates != 1 || !b.Since.Equal(old.now) {
		t.Errorf("the former release: the first proof leaves %+v", b)
	}
	if proof(old, 48_400, old.now.Add(-time.Minute)); old.w.Budgets.Restarts != 2 {
		t.Errorf("the former release: a step from before is taken for a new one: %+v", old.w.Budgets)
	}
	old.now = old.now.Add(5 * time.Minute)
	if proof(old, 48_500, old.now); old.w.Budgets != (incident.Budgets{}) {
		t.Errorf("the former release: a new step leaves %+v", old.w.Budgets)
	}
}

// TestTheStorySaysWhyNoVerdictWasRead: who has to mend the bucket finds the reason in the incident's timeline, whatever waited for the
// verdict.
func TestTheStorySaysWhyNoVerdictWasRead(t *testing.T) {
	const why = "gs://ckpt/llama-8b: 403, storage.objects.get is denied"
	for name, begin := range map[string]func() *tour{
		"a lost Spot slice":      func() *tour { r := newTour(t, quiet(true), "everything"); r.learn("llama-8b", "finished"); return r },
		"a lost slice on demand": func() *tour { r := newTour(t, quiet(false), "everything"); r.learn("llama-8b", "finished"); return r },
		"no replacements left": func() *tour {
			r := newTour(t, quiet(true), "everything")
			r.w.Budgets = incident.Budgets{Recreates: incident.MaxRecreates, Since: start.Add(-time.Hour)}
			return r
		},
	} {
		r := begin()
		r.now = r.now.Add(2 * time.Hour)
		r.learn("llama-8b", "read lost")
		id := r.w.Incident.ID
		heals := time.Duration(0)
		if name == "a lost slice on demand" {
			heals = either(0, incident.HealFor, "needed")
		}
		for end := r.now.Add(heals + incident.HearFor + 5*time.Minute); r.w.Incident != nil && r.now.Before(end); {
			if all := r.w.Effects; len(all) > 0 && all[0].Action == events.ActionHear && all[0].Retry.IsZero() {
				r.give(incident.VerdictRead{Request: asked(r.w, r.now), Failure: &incident.Failure{Class: incident.Transient, Message: why}})
			}
			r.readAs("llama-8b", incident.Lost, nil)
			r.tick(time.Minute)
		}
		in := r.w.Incident
		if in == nil {
			in = r.w.Closed
		}
		text, times := "the crew's verdict could not be read in "+events.Span(incident.HearFor), 0
		for _, l := range in.Timeline {
			if l.Text == either(text, "", "tries") && l.Reason == why {
				times++
			}
		}
		if times != 1 && !(*third && times > 0) || in.ID != id {
			t.Errorf("%s: the story says %d times %q with its reason: %s", name, times, text, tale(r.w))
		}
	}
}

// TestARetryWaitsForTheAuditLogAnew: a person has let patrol read it, and its answer gets as much time as it had before.
func TestARetryWaitsForTheAuditLogAnew(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	blind := func(during time.Duration) (asked string) {
		for end := r.now.Add(during); r.now.Before(end); {
			r.now = r.now.Add(time.Minute)
			for _, e := range []incident.Evidence{evidence(r.w, r.now)["read gone"], incident.Ticked{}} {
				var sent []events.Event
				r.w, sent, _ = advance(policies["everything"], r.w, e, r.now)
				for _, e := range sent {
					asked += asks(e)
				}
			}
		}
		return asked
	}
	r.learn("llama-8b", "read gone")
	blind(incident.Grace + incident.AuditFor + 5*time.Minute)
	if c := r.w.Closed; r.w.Incident != nil || c == nil || c.Code != incident.CodeAuditUnread {
		t.Fatalf("nobody is told: %s", tale(r.w))
	}
	blind(24 * time.Hour)
	r.learn("llama-8b", "retried")
	asked := blind(incident.AuditFor - 5*time.Minute)
	if strings.Contains(asked, "create") || r.w.Incident == nil {
		t.Fatalf("asked for is %q while the log is waited for: %s", asked, tale(r.w))
	}
	if in := r.w.Incident; !in.Deadline.Equal(in.Opened.Add(incident.AuditFor)) {
		t.Errorf("opened at %v, it is waited until %v", in.Opened, in.Deadline)
	}
	told := *r
	blind(15 * time.Minute)
	if c := r.w.Closed; r.w.Incident != nil || c.Code != incident.CodeAuditUnread || !strings.HasPrefix(c.ID, "llama-8b-20261113") {
		t.Errorf("the log is not read, and nobody is told again: %s", tale(r.w))
	}
	*r = told
	if asked := r.tick(time.Minute); asked != "create llama-8b" {
		t.Errorf("the log names nobody, and asked for is %q: %s", asked, tale(r.w))
	}
}
