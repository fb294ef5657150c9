package incident_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// TestAFailedJobIsBroughtBack: what its training did is charged to the training, and what its machines did is not.
func TestAFailedJobIsBroughtBack(t *testing.T) {
	t.Parallel()
	for cause, c := range map[events.Cause]struct {
		times        int
		spent, spare events.Action
	}{
		events.CauseCrash:      {bounds.MaxRestarts, events.ActionRestart, events.ActionDelete},
		events.CauseTerminated: {bounds.MaxRecreates, events.ActionDelete, events.ActionRestart},
	} {
		n := newJob(t)
		for i := range c.times {
			n.breaks(cause).wants("delete llama-8b")
			n.replaces(fmt.Sprint("uid-", i))
			if n.w.Spent(c.spent) != i+1 || n.w.Spent(c.spare) != 0 {
				t.Fatalf("%s: brought back %d times, and %+v is charged", cause, i+1, n.w.Charges)
			}
		}
		n.breaks(cause)
		n.passes(40 * time.Minute)
		if e := n.ended(); e.Outcome != view.Escalated || e.Code != reason.CodeBudget {
			t.Errorf("%s: its budget is spent:\n%s", cause, n.tale())
		}
	}
}

// TestPitstopResumesNoJobAndMovesNone, whatever the policy allows.
func TestPitstopResumesNoJobAndMovesNone(t *testing.T) {
	t.Parallel()
	p := newStory(t, false).p
	p.Places = []policy.Alternative{{Accelerator: "v5litepod-8"}}
	got := newJob(t).w.Limited(p)
	if s := got.Switches; s.StartStopped != policy.No || s.EarlyMaintenance != policy.Yes || s.RecreateNonSpot != policy.Yes || len(got.Zones)+len(got.Places) > 0 {
		t.Errorf("its policy is %+v", got)
	}
}

// TestAMachineThatAJobHadLeftExplainsNothing: it was taken after the Job had failed. What ran on it may end a while before it is taken.
func TestAMachineThatAJobHadLeftExplainsNothing(t *testing.T) {
	t.Parallel()
	const soon, late = bounds.NoticedFor, bounds.NoticedFor + time.Second
	for name, c := range map[string]struct {
		taken             time.Duration // after the Job failed
		readFirst         bool
		shown, told, want events.Cause
	}{
		"word first":                      {late, false, events.CauseCrash, events.CauseHostError, events.CauseCrash},
		"word first, and no certainty":    {late, false, events.CauseUnknown, events.CauseHostError, events.CauseUnknown},
		"the reading first":               {late, true, events.CauseCrash, events.CauseHostError, events.CauseCrash},
		"word first, within the notice":   {soon, false, events.CauseCrash, events.CauseHostError, events.CauseHostError},
		"the reading first, within it":    {soon, true, events.CauseCrash, events.CauseHostError, events.CauseHostError},
		"word first, of a loss before it": {-time.Minute, false, events.CauseCrash, events.CauseHostError, events.CauseHostError},
		"word first, of maintenance":      {time.Hour, false, events.CauseCrash, events.CauseMaintenance, events.CauseMaintenance},
	} {
		n := newJob(t)
		reads := func() {
			n.later(time.Minute).reads("llama-8b", evidence.Lost, func(e *evidence.Read) { e.Facts.Cause, e.Facts.Failed = c.shown, start })
		}
		if n.later(max(5*time.Minute, c.taken)); c.readFirst {
			reads()
		}
		if n.give(interrupted(c.told, "log", events.RankAudit, n.now.Sub(start)-c.taken)(n, &n.w.Slices[0])); !c.readFirst {
			reads()
		}
		if got := n.w.Incident.Cause(); got != c.want {
			t.Errorf("%s: the cause is %s, want %s", name, got, c.want)
		}
		if n.does(events.ActionDelete, "llama-8b"); (n.w.Spent(events.ActionRestart) > 0) != (c.want == events.CauseCrash) {
			t.Errorf("%s: charged is %+v", name, n.w.Charges)
		}
	}
}

// TestWhatStruckTheMachinesPays: the error of a training whose machine was lost, or whose maintenance had begun, is a consequence.
func TestWhatStruckTheMachinesPays(t *testing.T) {
	t.Parallel()
	const ours = "shows movable, 1m, do, saved, found verify, does maintain"
	for before, pays := range map[string]events.Action{
		"tick":              events.ActionRestart,
		"host error":        events.ActionDelete,
		"shows movable, 1m": events.ActionRestart, // it is only announced
		"shows movable, a minute, shows begins, 1m": events.ActionDelete,
		ours: events.ActionDelete,
		ours + ", shows begins, a minute, shows withdrawn, 1m": events.ActionDelete, // it is over
	} {
		n := newJob(t).goes(before)
		if n.breaks(events.CauseCrash).does(events.ActionDelete, "llama-8b"); n.w.Spent(pays) != 1 || len(n.w.Charges) != 1 {
			t.Errorf("%s: charged is %+v:\n%s", before, n.w.Charges, n.tale())
		}
	}
}

// TestALineMovesNoCharge: who may write a log does not say who pays, and so not what the policy allows. Only proof gives a charge back.
func TestALineMovesNoCharge(t *testing.T) {
	t.Parallel()
	lost := func(n *story, rank events.Rank) {
		n.give(evidence.Interrupted{
			Origin: evidence.Origin{ID: "entry", Time: n.now, Rank: rank}, Slice: n.w.Slices[0].Name, Incarnation: n.w.Slices[0].Incarnation,
			Cause: events.CausePreemption, Text: "preempted",
		})
	}
	for _, says := range []func(*story){func(n *story) { n.play("crew notice"); n.is("peace") }, func(n *story) { lost(n, events.RankUser) }} {
		n := newJob(t)
		n.p.Switches.Restart = policy.No
		says(n)
		if n.breaks(events.CauseCrash); n.ended().Code != reason.CodePolicyNo {
			t.Errorf("a line moves the charge: %q is asked for:\n%s", n.sent, n.tale())
		}
	}
	for rank, spent := range map[events.Rank]int{events.RankUser: 1, events.RankAudit: 0} {
		n := newStory(t, true, "a").gaveUp(1, "NaN in loss").does(events.ActionRestart, "")
		if lost(n, rank); n.w.Spent(events.ActionRestart) != spent || n.w.Incident.Cause().Infrastructure() != (spent == 0) {
			t.Errorf("by rank %v: %d restarts are spent, for %s", rank, n.w.Spent(events.ActionRestart), n.w.Incident.Cause())
		}
	}
}

// TestAnOwnersDeletionComesBeforeOurs: a Job is gone before anybody has begun to delete it, so the log says first who did.
func TestAnOwnersDeletionComesBeforeOurs(t *testing.T) {
	t.Parallel()
	for name, loses := range map[string]func(*story){
		"its machines were lost":    func(n *story) { n.breaks(events.CauseTerminated) },
		"its training failed":       func(n *story) { n.breaks(events.CauseCrash) },
		"while its verdict is read": func(n *story) { n.goes("finished").breaks(events.CauseTerminated) },
		"after a person's yes": func(n *story) {
			n.p.Switches = presets["ask"]
			n.breaks(events.CauseTerminated).play("approved")
		},
		"ours was begun, and found nothing": func(n *story) {
			n.breaks(events.CauseTerminated)
			n.give(evidence.Answered{Origin: n.reading(), Request: n.begins(events.ActionDelete, "llama-8b"), NoCall: evidence.Uncalled, Text: "it is gone"})
		},
		"both Jobs of a JobSet": func(n *story) {
			n.w.Slices[0].Group = "set"
			n.w.Slices = append(n.w.Slices, n.w.Slices[0])
			n.w.Slices[1].Name, n.w.Slices[1].Incarnation.ID = "other", "7712"
			n.goes("other read lost").breaks(events.CauseTerminated)
		},
	} {
		for _, owner := range []bool{true, false} {
			n := newJob(t)
			loses(n)
			charged := len(n.w.Charges)
			gone := func(then func(slice string)) (sent []string) {
				for range 3 {
					for _, s := range n.w.Slices {
						sent = append(sent, n.later(time.Minute).reads(s.Name, evidence.Gone).sent...)
						then(s.Name)
						sent = append(append(sent, n.sent...), n.passes(time.Minute)...)
					}
				}
				return sent
			}
			if sent := gone(func(string) {}); len(sent) > 0 || len(n.w.Charges) != charged || !n.w.Reads(n.now).Has(incident.ReadDeleter, "llama-8b") {
				t.Fatalf("%s: nobody has said who deleted it, and %q is asked for:\n%s", name, sent, n.tale())
			}
			if owner {
				n.later(10 * time.Minute).give(n.acted(ann.By, events.ActDeleted, len(n.w.Slices) > 1)).wants()
				n.is("released")
				continue
			}
			n.later(bounds.Grace)
			sent := gone(func(slice string) { n.play(slice + " unsaid") })
			if sent = append(sent, n.passes(bounds.HearFor)...); !strings.Contains(strings.Join(sent, ", "), "create llama-8b") {
				t.Errorf("%s: the log names nobody, and %q is asked for:\n%s", name, sent, n.tale())
			}
		}
	}
}

// TestWhatNobodySawFailIsNotCreatedAgain: a complete Job that its time to live removes between two ticks looks like a lost one.
func TestWhatNobodySawFailIsNotCreatedAgain(t *testing.T) {
	t.Parallel()
	n := newJob(t)
	n.vanishes("llama-8b")
	if sent := n.passes(5 * time.Minute); len(sent) > 0 || n.ended().Code != reason.CodeKept {
		t.Errorf("%q is asked for:\n%s", sent, n.tale())
	}
}

// TestAPodThatNeverEndsIsToldAndWaitedFor: nothing is created beside it, and once it has ended a person's word goes on.
func TestAPodThatNeverEndsIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	n := newJob(t)
	n.breaks(events.CauseTerminated).does(events.ActionDelete, "llama-8b")
	n.later(time.Minute).reads("llama-8b", evidence.Deleting, func(e *evidence.Read) { e.State = "deleting: its Pod llama-8b-0 of the former Job has not ended" })
	if sent := n.passes(50 * time.Minute); slices.Contains(sent, "create llama-8b") {
		t.Errorf("it is created beside its Pod:\n%s", n.tale())
	}
	if e := n.ended(); e.Outcome != view.Escalated || !strings.Contains(e.Reason.String(), "llama-8b-0 of the former Job") || !strings.Contains(e.Advice.String(), "pitstop retry") {
		t.Errorf("nobody is told of the Pod:\n%s", n.tale())
	}
	n.reads("llama-8b", evidence.Gone).play("retried")
	n.is("grace") // whether its owner deleted it comes first
}

// TestWhatMayComeBackIsNotDeleted, however long it takes: its cluster has restarts left.
func TestWhatMayComeBackIsNotDeleted(t *testing.T) {
	t.Parallel()
	for _, c := range []evidence.Condition{evidence.Unhealthy, evidence.Creating} {
		n := newJob(t)
		n.w.Slices[0].Healing = evidence.HealsAlways
		n.reads("llama-8b", c)
		if sent := n.passes(10 * time.Hour); slices.Contains(sent, "delete llama-8b") {
			t.Errorf("%s:\n%s", c, n.tale())
		}
	}
}

// TestWhatNobodyCanReadIsNotHealthy: a slice that was usable when somebody read it last may have been lost since.
func TestWhatNobodyCanReadIsNotHealthy(t *testing.T) {
	t.Parallel()
	n := newJob(t).with(crewless, bare).breaks(events.CauseTerminated).replaces("uid-1")
	for range 60 {
		n.later(time.Minute).give(evidence.Ticked{Unread: true})
	}
	n.is("resuming")
	if n.goes("10m").is("resumed"); n.ended().By != view.ByHealth {
		t.Errorf("it is read again:\n%s", n.tale())
	}
}

// TestAJobThatCameIsItsOwners: it trains as soon as its Pods run, so nobody takes it away when its incident ends early.
func TestAJobThatCameIsItsOwners(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"tick", "read ordered", "read ours made"} {
		n := newJob(t)
		n.w.Slices[0].Group = "set"
		n.breaks(events.CauseTerminated).goes("do, read gone, do")
		id, ordered, ours := n.w.Incident.ID, words["read ordered"](n, &n.w.Slices[0]), words["read ours"](n, &n.w.Slices[0]).(evidence.Read) //nolint:forcetypeassert // it is one
		n.goes(before + ", cancelled").is("released")
		n.later(time.Minute).give(ordered)
		sent := n.passes(time.Minute)
		if n.w.Incident != nil || n.w.Closed.ID != id {
			t.Errorf("%s came before the end, and another incident is about it:\n%s", before, n.tale())
		}
		ours.Time = n.now
		sent = append(append(sent, n.give(ours).sent...), n.passes(30*time.Minute)...)
		if s := n.w.Slices[0]; slices.Contains(sent, "delete llama-8b") || !s.Incarnation.Same(ours.Incarnation) || s.IsReleased() {
			t.Errorf("%s came before the end: %q is asked for:\n%s", before, sent, n.tale())
		}
	}
}

// ofSecond has a line of the second attempt tell of a step.
func ofSecond(step int64) func(*events.CrewReport) {
	return func(r *events.CrewReport) { r.Attempt, r.Step = 2, step }
}

// TestAPodsLineWithdrawsNoMaintenance and announces none: no Pod is told of it.
func TestAPodsLineWithdrawsNoMaintenance(t *testing.T) {
	t.Parallel()
	n := newJob(t)
	line := func(notice string) *story {
		w := notices[notice]
		return n.says("7711", events.ReportNotice, func(r *events.CrewReport) { r.Notice = &w })
	}
	if line("pending"); n.w.Notice("llama-8b") != nil {
		t.Error("a line announces maintenance")
	}
	n.goes("shows pending, 113m").is("saving")
	if line("withdrawn").is("saving"); n.w.Notice("llama-8b").Status != events.NoticePending {
		t.Errorf("a line withdraws it:\n%s", n.tale())
	}
}

// TestALineOfAFormerLifeMakesNoCrew: the next Job's image may hold none. A new checkpoint shows that it trains, and a restart is asked for where there is none.
func TestALineOfAFormerLifeMakesNoCrew(t *testing.T) {
	t.Parallel()
	for _, saves := range []bool{true, false} {
		n := newJob(t)
		n.says("7711", events.ReportStarted).breaks(events.CauseTerminated).replaces("uid-1")
		for range 60 {
			if n.passes(time.Minute); n.w.Incident == nil || n.isWanted(events.ActionRestart) {
				break
			}
			if i := n.effect(events.ActionVerify, ""); i >= 0 && n.w.Effects[i].Stage() == view.StageWanted {
				n.give(evidence.Checked{Origin: n.reading(), Request: n.begins(events.ActionVerify, ""), Found: saves, Step: 70_000, At: n.now, Text: "there is none"})
			}
		}
		if saves != (n.ended().By == view.ByCheckpoint) || saves == n.isWanted(events.ActionRestart) {
			t.Errorf("it saves %t:\n%s", saves, n.tale())
		}
	}
}

// TestTheFirstLineOfACrewGivesATrainingItsTime: nobody expected a step of it before, so its silence until then shows nothing.
func TestTheFirstLineOfACrewGivesATrainingItsTime(t *testing.T) {
	t.Parallel()
	for _, looked := range []bool{false, true} {
		n := newJob(t).with(crewless)
		n.w.Slices[0].Healing, n.w.Slices[0].Spoke = evidence.HealsAlways, time.Time{}
		n.reads("llama-8b", evidence.Unhealthy).passes(bounds.SickFor)
		n.reads("llama-8b", evidence.Ready).is("resuming")
		if n.passes(bounds.ResumeFor - 2*time.Minute); looked {
			n.passes(2 * time.Minute)
		}
		if n.isWanted(events.ActionVerify) != looked {
			t.Fatalf("a checkpoint is looked for %t:\n%s", !looked, n.tale())
		}
		n.says("7711", events.ReportStarted)
		if sent := n.passes(bounds.ResumeFor - 2*time.Minute); len(sent) > 0 || n.stands(nil) != "resuming" {
			t.Errorf("looked %t: %q is asked for:\n%s", looked, sent, n.tale())
		}
	}
}

// TestALineOfAMadeUpLifePushesOutNoOther: whoever may write logs can write as many as they like, of a life that will never be read.
func TestALineOfAMadeUpLifePushesOutNoOther(t *testing.T) {
	t.Parallel()
	n := newJob(t)
	n.says("the next Job", events.ReportSaved)
	for range 20 {
		n.says("made up", events.ReportProgress)
	}
	lives := map[string]int{}
	for _, u := range n.w.Unbound {
		lives[u.Report().Life]++
	}
	if lives["the next Job"] != 1 || lives["made up"] != 15 {
		t.Errorf("kept are %v", lives)
	}
}

// TestEverySliceHasRoomForALine: the slices of a JobSet begin anew at once, before any life of them is read.
func TestEverySliceHasRoomForALine(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, strings.Fields(strings.Repeat("llama ", 31))...)
	for i := range n.w.Slices {
		n.w.Slices[i].Name += "-" + events.Number(int64(i))
	}
	for range 2 {
		for _, s := range n.w.Slices {
			n.later(time.Second).wrote(n.now, s.Name, events.CrewReport{Report: events.ReportStarted, Life: "next of " + s.Name, Attempt: 1})
		}
	}
	kept := map[string]incident.Unbound{}
	for _, u := range n.w.Unbound {
		kept[u.Slice] = u
	}
	if len(kept) != 31 {
		t.Errorf("lines of %d slices are kept, want 31", len(kept))
	}
}
