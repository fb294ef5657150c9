package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// line gives a line of the crew in a slice.
func (r *tour) line(slice string, rep events.CrewReport) string {
	s := r.w.Slice(slice)
	rep.Schema, rep.Zone, rep.Node, rep.Hostname = 1, s.Zone, s.Name, s.Hosts+"-w-0"
	return r.give(incident.Reported{Origin: incident.Origin{ID: "line", Time: r.now, Rank: events.RankUser}, Slice: slice, Report: rep})
}

// readAs is a reading of the life that is known, changed by one thing.
func (r *tour) readAs(slice string, c incident.Condition, change func(*incident.Read)) string {
	s := r.w.Slice(slice)
	e := incident.Read{
		Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: slice, Zone: s.Zone, Condition: c, State: string(c), Incarnation: s.Incarnation,
	}
	if change != nil {
		change(&e)
	}
	return r.give(e)
}

// until lets minutes pass in which a slice is read as it stands, until something is asked for.
func (r *tour) until(slice string, c incident.Condition, during time.Duration) (asked string) {
	for end := r.now.Add(during); asked == "" && r.now.Before(end); {
		asked = r.readAs(slice, c, nil) + r.tick(time.Minute)
	}
	return asked
}

// TestALossIsNotHiddenByTheNoticeThatGoesWithIt: of what cannot be used a reading without the notice tells of no withdrawal.
func TestALossIsNotHiddenByTheNoticeThatGoesWithIt(t *testing.T) {
	for _, c := range []incident.Condition{incident.Lost, incident.Deleting, incident.Unhealthy} {
		for _, told := range []bool{false, true} {
			r := newTour(t, quiet(true), "spot")
			n := events.Notice{Status: events.NoticePending, WindowStart: start.Add(2 * time.Hour), WindowEnd: start.Add(6 * time.Hour)}
			r.give(incident.Noticed{Origin: incident.Origin{ID: "api", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Incarnation: r.w.Slices[0].Incarnation, Notice: n, InAPI: true, Text: "notice"})
			for r.w.Incident == nil {
				r.readAs("llama-8b", incident.Ready, func(e *incident.Read) { e.Notice = &n })
				r.tick(time.Minute)
			}
			if told {
				r.learn("llama-8b", "preempted")
			}
			asked := r.readAs("llama-8b", c, nil)
			if c == incident.Deleting {
				asked += r.readAs("llama-8b", incident.Lost, nil)
			}
			if c == incident.Unhealthy {
				asked += r.until("llama-8b", c, 5*time.Hour)
			}
			if asked != "delete llama-8b" {
				t.Errorf("%s, told %v: asked for is %q; %s", c, told, asked, stands(r.w, nil))
			}
		}
	}
}

// TestTheEndOfOneTroubleHidesNoOther: what another slice has lost is told of, and brought back, by an incident of its own.
func TestTheEndOfOneTroubleHidesNoOther(t *testing.T) {
	for name, hide := range map[string]func(*tour){
		"maintenance is withdrawn": func(r *tour) {
			r.learn("a", "pending")
			for r.w.Incident == nil {
				r.tick(time.Minute)
			}
			r.learn("b", "read deleting")
			r.learn("a", "notice gone")
		},
		"a leftover": func(r *tour) {
			r.w.Creators = []incident.Creator{{Incident: "x", Opened: start.Add(-time.Hour), Closed: start.Add(-30 * time.Minute)}}
			r.learn("b", "read gone")
			r.now = r.now.Add(5 * time.Minute)
			r.readAs("a", incident.Ready, func(e *incident.Read) {
				e.Zone, e.Incident = far, "x"
				e.Incarnation = events.Incarnation{Zone: far, ID: "666", Created: start.Add(-45 * time.Minute)}
			})
		},
	} {
		r := newTour(t, multi(true), "everything")
		hide(r)
		within := time.Hour
		if name == "a leftover" && either(false, true, "cleaned") { // nobody answers the deletion
			within += incident.ClearFor
		} else if r.w.Incident != nil || r.w.Closed == nil {
			t.Fatalf("%s: %s", name, stands(r.w, nil))
		}
		asked := ""
		for end := r.now.Add(within); !strings.Contains(asked, "create b") && r.now.Before(end); {
			asked += r.until("b", incident.Gone, end.Sub(r.now))
		}
		if !strings.Contains(asked, "create b") {
			t.Errorf("%s: asked for is %q", name, asked)
		}
	}
}

// TestATroubleBesideAnotherIsHealedWithIt: training goes on without a slice that is about to go, and the incident waits for that slice too.
func TestATroubleBesideAnotherIsHealedWithIt(t *testing.T) {
	r := newTour(t, multi(true), "everything")
	r.learn("a", "exit 139", "read ready")
	r.learn("b", "read deleting")
	r.learn("a", "progress")
	if in := r.w.Incident; in == nil || in.Phase != incident.Healing {
		t.Fatalf("it stands at %s", stands(r.w, nil))
	}
	if asked := r.until("b", incident.Gone, time.Hour); !strings.HasPrefix(asked, "create b") {
		t.Errorf("asked for is %q", asked)
	}
}

// TestALiftedPauseIsOver: what it held is asked for with the next minute, and not when it would have ended.
func TestALiftedPauseIsOver(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	until := r.now.Add(48 * time.Hour)
	r.give(incident.Paused{Word: ann, Until: until})
	r.learn("llama-8b", "preempted", "read lost")
	r.give(incident.Held{Request: asked(r.w, r.now), Code: incident.CodePaused, Why: "paused by ann", Until: until})
	r.now = r.now.Add(10 * time.Minute)
	if asked := r.give(incident.Paused{Word: ann, Lift: true}) + r.tick(time.Minute); asked != "delete llama-8b" {
		t.Errorf("asked for is %q, %s", asked, tale(r.w))
	}
}

// TestWhatOnlyTheAPICallsSickIsKeptWhileItTrains: a state that nobody knows is no loss, and steps are the proof.
func TestWhatOnlyTheAPICallsSickIsKeptWhileItTrains(t *testing.T) {
	for _, c := range []incident.Condition{incident.Unclear, incident.Unhealthy} {
		r := newTour(t, quiet(true), "spot")
		r.readAs("llama-8b", c, nil)
		r.tick(6 * time.Minute)
		if r.w.Incident == nil {
			t.Fatalf("%s: no incident is open", c)
		}
		step, asked, ended := int64(48200), "", incident.Outcome("")
		for range 100 {
			r.now, step = r.now.Add(4*time.Minute), step+500
			r.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: step, CheckpointStep: step - 400})
			r.readAs("llama-8b", c, nil)
			asked += r.tick(time.Minute)
			if r.w.Closed != nil {
				ended = r.w.Closed.Outcome
			}
		}
		if asked != "" || r.w.Incident != nil || ended != incident.Resumed {
			t.Errorf("%s: asked for is %q while it trains: %s", c, asked, tale(r.w))
		}
		if asked = r.until("llama-8b", c, 5*time.Hour); asked != "delete llama-8b" {
			t.Errorf("%s: no step comes any more, and asked for is %q", c, asked)
		}
	}
}

// TestWhatIsAcceptedAndFailsAgainAndAgainEnds: an answer that accepts a call is no success.
func TestWhatIsAcceptedAndFailsAgainAndAgainEnds(t *testing.T) {
	for name, c := range map[string]struct {
		action  string
		read    string
		failure incident.Failure
		within  time.Duration
		code    incident.Code
	}{
		"creation": {"create", "read gone", incident.Failure{Class: incident.Transient, Message: "INTERNAL"}, 3 * time.Hour, incident.CodeRetries},
		"deletion": {"delete", "read lost", incident.Failure{Class: incident.NotInState, Message: "FAILED_PRECONDITION"}, 7 * time.Hour, incident.CodeOverdue},
	} {
		r := newTour(t, quiet(true), "everything")
		r.learn("llama-8b", "preempted", "read lost")
		if c.action == "create" {
			r.learn("", "intend delete 0", "accepted delete 0")
			r.learn("llama-8b", "read gone")
		}
		for began := r.now; r.w.Incident != nil && r.now.Sub(began) < 48*time.Hour; {
			if effects := r.w.Effects; len(effects) == 1 && effects[0].Retry.IsZero() && effects[0].Begun.IsZero() {
				r.learn("", "intend "+c.action+" 0", "accepted "+c.action+" 0")
				r.now = r.now.Add(2 * time.Minute)
				f := c.failure
				r.give(incident.Ended{Origin: incident.Origin{Time: r.now, Rank: events.RankReading}, Operation: "operation-" + c.action, Failure: &f})
			}
			r.learn("llama-8b", c.read)
			r.tick(time.Minute)
		}
		if r.w.Incident != nil {
			t.Fatalf("%s: it goes on after two days: %s", name, phaseOf(r.w))
		}
		if in := r.w.Closed; in.Code != c.code || in.Closed.Sub(in.Opened) > c.within {
			t.Errorf("%s: it ended after %v as %s %s: %s", name, in.Closed.Sub(in.Opened), in.Outcome, in.Code, in.Reason)
		}
	}
}

// TestACleanUpKeepsWhatTrains: a crew may put itself into the place of what was lost while the deletion of its slice is held. What
// its owner has deleted goes all the same.
func TestACleanUpKeepsWhatTrains(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		r := newTour(t, quiet(true), "everything")
		r.learn("llama-8b", "preempted", "read lost")
		r.learn("", "intend delete 0", "accepted delete 0")
		r.learn("llama-8b", "read gone")
		r.learn("", "intend create 0", "accepted create 0")
		if deleted {
			r.learn("llama-8b", "owner deletes")
		}
		r.learn("llama-8b", "read ours", "mapped")
		if !deleted {
			r.learn("llama-8b", "cancelled")
		}
		r.give(incident.Held{Request: asked(r.w, r.now), Code: incident.CodeBraked, Why: "30 in this hour", Until: r.now.Add(50 * time.Minute)})
		r.now = r.now.Add(7 * time.Minute)
		r.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: 2, Workers: 4, Step: 48000})
		if kept := r.w.Incident == nil && r.w.Closed.Code == incident.CodeCancelled; kept == deleted {
			t.Errorf("deleted %v: it stands as %s", deleted, tale(r.w))
		}
		want := ""
		if deleted {
			want = "delete llama-8b"
		}
		if got := r.until("llama-8b", incident.Ready, time.Hour); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("deleted %v: asked for is %q: %s", deleted, got, tale(r.w))
		}
	}
}

// TestEachSliceHasItsOwnTime: in which its owner may be named, and in which Google may bring it back.
func TestEachSliceHasItsOwnTime(t *testing.T) {
	t.Run("grace", func(t *testing.T) {
		r := newTour(t, multi(true), "everything")
		r.learn("b", "crew notice", "read gone")
		r.now = r.now.Add(incident.Grace - time.Minute)
		r.learn("a", "read gone")
		if asked := r.tick(2 * time.Minute); !strings.HasPrefix(asked, "create b") || strings.Contains(asked, "create a") {
			t.Errorf("asked for is %q", asked)
		}
	})
	t.Run("recovery", func(t *testing.T) {
		r := newTour(t, multi(false), "everything")
		r.learn("a", "read unhealthy")
		r.tick(6 * time.Minute)
		r.now = r.now.Add(incident.HealFor - time.Minute)
		r.learn("b", "read unhealthy")
		asked := r.tick(5 * time.Minute)
		if asked == "" || strings.Contains(asked, "delete b") {
			t.Errorf("asked for is %q", asked)
		}
	})
	t.Run("maintenance that is heard of late", func(t *testing.T) {
		r := newTour(t, quiet(true), "spot")
		r.learn("llama-8b", "read unhealthy")
		r.tick(6 * time.Minute)
		n := events.Notice{Status: events.NoticeOngoing, WindowStart: start, WindowEnd: start.Add(8 * time.Hour)}
		r.give(incident.Noticed{Origin: incident.Origin{ID: "api", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Incarnation: r.w.Slices[0].Incarnation, Notice: n, InAPI: true, Text: "it is under way"})
		if asked := r.until("llama-8b", incident.Unhealthy, 11*time.Hour); asked != "" {
			t.Errorf("%v after the beginning of the window asked for is %q", r.now.Sub(start), asked)
		}
		if asked := r.until("llama-8b", incident.Unhealthy, 2*time.Hour); asked != "delete llama-8b" {
			t.Errorf("four hours after the window asked for is %q", asked)
		}
	})
}

// TestWhatIsGoneWaitsForNoYes: a question about its maintenance has become void.
func TestWhatIsGoneWaitsForNoYes(t *testing.T) {
	for _, proven := range []bool{false, true} {
		r := newTour(t, quiet(true), "ask")
		r.learn("llama-8b", "pending")
		r.tick(11 * time.Minute)
		if phaseOf(r.w) != string(incident.Approving) {
			t.Fatal(tale(r.w))
		}
		if proven {
			r.learn("llama-8b", "preempted")
		}
		r.learn("llama-8b", "read gone")
		r.until("llama-8b", incident.Gone, time.Hour)
		if q := question(r.w); q != "recreate llama-8b" {
			t.Errorf("proven %v: the question is %q", proven, q)
		}
	}
}

// TestWhatWasUsableMayHaveSomethingToLose: a start-up script begins to train whether anybody admits it or not.
func TestWhatWasUsableMayHaveSomethingToLose(t *testing.T) {
	w := quiet(true)
	w.Progress, w.Crew = incident.Progress{}, incident.Crew{}
	r := newTour(t, w, "everything")
	r.learn("llama-8b", "preempted", "read lost")
	r.learn("", "intend delete 0", "accepted delete 0")
	r.learn("llama-8b", "read gone")
	r.learn("", "intend create 0", "accepted create 0")
	r.learn("llama-8b", "read ours", "read unhealthy")
	if asked := r.until("llama-8b", incident.Unhealthy, 5*time.Hour); asked != "hear" {
		t.Errorf("nothing is known to be saved, and asked for is %q", asked)
	}
	if asked := r.until("llama-8b", incident.Unhealthy, time.Hour); asked != "" || r.w.Incident != nil {
		t.Errorf("nothing is saved, and asked for is %q: %s", asked, tale(r.w))
	}
}

// anotherDirectory reads a new life of the slice, with another checkpoint directory.
func (r *tour) anotherDirectory() {
	r.now = r.now.Add(time.Hour)
	r.readAs("llama-8b", incident.Ready, func(e *incident.Read) {
		e.Incarnation = r.made("us-west4-a", "9001")
		e.Facts = incident.Facts{Workers: 4, Chips: 16, Reclaimable: true, Accelerator: "v5litepod-16", Spec: "s", Label: "night"}
		e.Directory = "gs://east/other"
	})
	r.learn("llama-8b", "mapped")
}

// TestAnotherDirectoryIsAnotherTraining: its attempts and steps begin anew, and nothing of it is saved yet.
func TestAnotherDirectoryIsAnotherTraining(t *testing.T) {
	begin := func() *tour {
		r := newTour(t, quiet(true), "everything")
		r.w.Crew.Attempt, r.w.Crew.Exited, r.w.Progress.Attempt, r.w.Progress.GapSeconds = 5, 4, 5, 300
		r.learn("llama-8b", "owner deletes", "read gone")
		r.anotherDirectory()
		r.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: 1, Workers: 4})
		return r
	}
	r := begin()
	for i := range 60 {
		r.now = r.now.Add(5 * time.Minute)
		r.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: int64(100 + 10*i)})
		if readsOf(r.w, r.now).Has(incident.ReadCrew, "llama-8b") {
			t.Fatal("it is taken to hang")
		}
		r.tick(time.Second)
	}
	if p := r.w.Progress; r.w.Incident != nil || p.Step != 690 || p.High != 690 || p.Verified != 0 {
		t.Errorf("it does its steps, and the document has %+v", p)
	}
	r.line("llama-8b", events.CrewReport{Report: events.ReportExited, Attempt: 1, ExitCode: 139})
	r.line("llama-8b", events.CrewReport{Report: events.ReportGaveUp, Attempt: 1, Reason: "five times"})
	if asked := r.learn("llama-8b", "its verdict"); !strings.HasPrefix(asked, "restart") {
		t.Errorf("its crew gives up, and asked for is %q", asked)
	}

	r = begin()
	r.learn("llama-8b", "read unhealthy")
	if asked := r.until("llama-8b", incident.Unhealthy, 6*time.Hour); asked != "hear" {
		t.Errorf("nothing of it is known to be saved, and asked for is %q", asked)
	}
	if asked := r.until("llama-8b", incident.Unhealthy, time.Hour); asked != "" || r.w.Incident != nil {
		t.Errorf("nothing of it is saved, and asked for is %q", asked)
	}
}

// TestTheNewestSliceSaysWhichTraining: those of a Multislice may have other directories for a while, and nothing is forgotten at each
// reading.
func TestTheNewestSliceSaysWhichTraining(t *testing.T) {
	r := newTour(t, multi(true), "everything")
	of := func(dir string) func(*incident.Read) {
		return func(e *incident.Read) {
			e.Facts = incident.Facts{Workers: 4, Chips: 16, Reclaimable: true, Accelerator: "v5litepod-16", Spec: "s", Label: "night"}
			e.Directory = dir
		}
	}
	r.readAs("b", incident.Ready, func(e *incident.Read) {
		e.Incarnation = r.made("us-west4-a", "9001")
		of("gs://east/other")(e)
	})
	r.learn("b", "mapped")
	r.line("b", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 10})
	r.readAs("a", incident.Ready, of("gs://east/llama"))
	if r.w.Directory != "gs://east/other" || r.w.Progress.Step != 10 {
		t.Errorf("the directory is %s, and the step %d", r.w.Directory, r.w.Progress.Step)
	}
}

// TestATrainingThatWasTakenBackGoesOn: as long as it does steps, nobody asks for another attempt because they are below what was saved.
func TestATrainingThatWasTakenBackGoesOn(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.w.Progress = incident.Progress{Step: 41000, High: 48180, Proven: 48000, At: start.Add(-2 * time.Minute), Attempt: 4, CheckpointStep: 48000, Verified: 48000, VerifiedAt: start.Add(-24 * time.Hour), GapSeconds: 300}
	r.w.Crew.Attempt = 4
	r.learn("llama-8b", "preempted", "read lost")
	r.learn("", "intend delete 0", "accepted delete 0")
	r.learn("llama-8b", "read gone")
	r.learn("", "intend create 0", "accepted create 0")
	r.learn("llama-8b", "read ours")
	r.learn("", "intend admit 0", "accepted admit 0")
	r.learn("llama-8b", "mapped")
	step, asked := int64(40900), ""
	r.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: r.w.Crew.LeaseAttempt, Workers: 4, Step: step})
	for range 5 * 12 {
		if r.w.Incident == nil {
			break
		}
		r.now, step = r.now.Add(4*time.Minute), step+50
		r.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: r.w.Crew.LeaseAttempt, Step: step, CheckpointStep: step - 50})
		asked += r.readAs("llama-8b", incident.Ready, nil) + r.tick(time.Minute)
	}
	if r.w.Incident != nil || asked != "" || r.w.Closed.Outcome != incident.Resumed {
		t.Fatalf("asked for is %q, at step %d: %s", asked, step, tale(r.w))
	}
	if p := r.w.Progress; p.High != step || p.Verified != 0 || p.Proven != step {
		t.Errorf("nothing of what it does now was saved or proven before: %+v", p)
	}
	r.w.Budgets = incident.Budgets{Restarts: 2, Since: r.now}
	s := r.w.Slices[0]
	r.now = r.now.Add(5 * time.Minute)
	r.give(incident.Beat{Slice: s.Name, Incarnation: s.Incarnation, Seen: r.now, Runs: true, Attempt: r.w.Crew.LeaseAttempt, Step: step + 50, StepAt: r.now})
	if r.w.Budgets != (incident.Budgets{}) {
		t.Errorf("a new step of it refills nothing: %+v of %+v", r.w.Budgets, r.w.Progress)
	}
}

// TestAStragglerIsChargedToItsOwnIncident: word of how a life ended that an earlier incident was about explains no crash after it.
func TestAStragglerIsChargedToItsOwnIncident(t *testing.T) {
	for _, open := range []bool{true, false} {
		r := newTour(t, quiet(true), "everything")
		at, first := r.now, r.w.Slices[0].Incarnation
		r.learn("llama-8b", "preempted", "read lost")
		r.learn("", "intend delete 0", "accepted delete 0")
		r.learn("llama-8b", "read gone")
		r.learn("", "intend create 0", "accepted create 0")
		r.learn("llama-8b", "read ours")
		r.learn("", "intend admit 0", "accepted admit 0")
		r.learn("llama-8b", "mapped", "started", "progress", "progress")
		r.now = r.now.Add(5 * time.Minute)
		r.learn("llama-8b", "exit 139", "gave up", "its verdict")
		r.learn("", "intend restart 0")
		if !open {
			r.learn("", "accepted restart 0")
			r.now = r.now.Add(time.Minute)
			r.learn("llama-8b", "started")
			r.w.Progress.High += 1000 // no new ground: the budget stays as it is
			r.learn("llama-8b", "progress", "progress")
		}
		r.now = r.now.Add(time.Minute)
		r.give(incident.Interrupted{Origin: incident.Origin{ID: "late", Time: at.Add(time.Second), Rank: events.RankAudit}, Slice: "llama-8b", Incarnation: first, Cause: events.CausePreemption, Text: "worker 3 was preempted"})
		in := r.w.Incident
		if in == nil {
			in = r.w.Closed
		}
		if (r.w.Incident != nil) != open || in.Cause != events.CauseCrash || in.Charged != 1 || r.w.Budgets.Restarts != 1 {
			t.Errorf("open %v: the crash is attributed to %s, charged %d, %+v", open, in.Cause, in.Charged, r.w.Budgets)
		}
	}
}

// TestAnEntryOfTheIncidentBeforeExplainsNothing: it is delivered again hours later, in the middle of another one on the same life.
func TestAnEntryOfTheIncidentBeforeExplainsNothing(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	entry := evidence(r.w, r.now)["stopped for"]
	r.give(entry)
	r.learn("llama-8b", "read unhealthy")
	r.now = r.now.Add(30 * time.Minute)
	r.learn("llama-8b", "read ready", "started", "progress", "progress")
	if r.w.Incident != nil || r.w.Closed.Cause != events.CauseMaintenance {
		t.Fatalf("it has not ended: %s", tale(r.w))
	}
	r.now = r.now.Add(2 * time.Hour)
	r.learn("llama-8b", "exit 139", "gave up")
	r.give(entry)
	if in := r.w.Incident; in == nil || in.Cause != events.CauseCrash || len(in.Troubles) != 1 {
		t.Errorf("the crash is attributed to something else: %s", tale(r.w))
	}
}

// TestALossRefundsNothingOfWhatCameBeforeIt: a training that crashed by itself has spent its restarts, whatever becomes of its slice.
func TestALossRefundsNothingOfWhatCameBeforeIt(t *testing.T) {
	for _, late := range []bool{false, true} {
		r := newTour(t, quiet(true), "everything")
		began := r.now
		r.learn("llama-8b", "exit 139", "gave up", "its verdict")
		r.learn("", "intend restart 0", "accepted restart 0")
		r.now = r.now.Add(10 * time.Minute)
		at := r.now
		if late { // it had ended the machine when the training crashed
			at = began
		}
		r.give(incident.Interrupted{Origin: incident.Origin{ID: "entry", Time: at, Rank: events.RankAudit}, Slice: "llama-8b", Incarnation: r.w.Slices[0].Incarnation, Cause: events.CausePreemption, Text: "worker 3 was preempted"})
		if refunded := r.w.Budgets.Restarts == 0; refunded != late || r.w.Incident.Cause != events.CausePreemption {
			t.Errorf("late %v: %+v, cause %s", late, r.w.Budgets, r.w.Incident.Cause)
		}
	}
}

// TestADeletionElsewhereIsOfSomethingElse: who deletes a leftover in another zone, as they were told to, does not give up what lives here.
func TestADeletionElsewhereIsOfSomethingElse(t *testing.T) {
	for zone, want := range map[string]string{far: "delete llama-8b", "us-west4-a": ""} {
		r := newTour(t, quiet(true), "everything")
		r.give(incident.Called{Origin: incident.Origin{ID: "entry", Time: r.now, Rank: events.RankAudit}, Slice: "llama-8b", Zone: zone, Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com"})
		r.now = r.now.Add(10 * time.Minute)
		if asked := r.learn("llama-8b", "read ready", "preempted", "read lost"); asked != want {
			t.Errorf("deleted in %s: asked for is %q", zone, asked)
		}
	}
}
