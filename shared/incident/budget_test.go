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
)

// vanishes has a slice vanish, and nobody say who deleted it.
func (n *story) vanishes(slice string) *story {
	n.later(time.Minute).reads(slice, evidence.Gone).later(bounds.Grace + time.Minute)
	n.give(evidence.Unsaid{Origin: n.reading(), Slice: slice, Incarnation: n.w.Slice(slice).Incarnation})
	return n.give(evidence.Ticked{Origin: n.reading()})
}

// TestWhatNobodyHadToDeleteIsChargedToo: a slice that vanishes again and again is made again as often as the budget allows.
func TestWhatNobodyHadToDeleteIsChargedToo(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, "read lost, do, read gone, do, read ours")
	for i := range bounds.MaxRecreates {
		if spent := n.w.Spent(events.ActionDelete); spent != i+1 {
			t.Fatalf("%d replacements are charged, want %d", spent, i+1)
		}
		if n.vanishes("llama-8b"); i+1 < bounds.MaxRecreates {
			n.goes("do, read ours")
		}
	}
	if n.passes(time.Hour); n.ended().Code != reason.CodeBudget || n.isWanted(events.ActionCreate) {
		t.Errorf("it ends with %q:\n%s", n.ended().Code, n.tale())
	}
}

// TestTheBudgetIsAskedWhileAnotherSliceWaits: one slice waits for capacity without end, and the other is not replaced for ever meanwhile.
func TestTheBudgetIsAskedWhileAnotherSliceWaits(t *testing.T) {
	t.Parallel()
	n, replaced := multi(t, true).vanishes("a"), 0
	for n.w.Incident != nil && replaced < 2*bounds.MaxRecreates {
		if n.goes("1m, b read lost"); !n.isWanted(events.ActionDelete) {
			break
		}
		n.goes("does delete, b read gone, does create b, b read ours")
		replaced++
	}
	if replaced != bounds.MaxRecreates {
		t.Errorf("b was replaced %d times:\n%s", replaced, n.tale())
	}
}

// TestTheRestartsOfADayHoldForReplacements that begin the training again.
func TestTheRestartsOfADayHoldForReplacements(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").later(time.Minute)
	n.p.RestartsPerDay = 1
	n.w.Charges = []incident.Charge{{Action: events.ActionRestart, Incident: "before", At: start.Add(-time.Hour), Void: true}}
	n.reads("llama-8b", evidence.Lost, func(e *evidence.Read) { e.Facts.Cause = events.CauseCrash }).passes(30 * time.Minute)
	if end := n.ended(); end.Code != reason.CodeRestartsADay || n.isWanted(events.ActionDelete) {
		t.Errorf("it ends with %q:\n%s", end.Code, n.tale())
	}
}

// struck is late word of what happened to the machines of a life.
func (n *story) struck(life events.Incarnation, cause events.Cause, at time.Time) {
	n.give(evidence.Interrupted{
		Origin: evidence.Origin{ID: string(cause), Time: at, Rank: events.RankAudit}, Slice: "llama-8b", Incarnation: life, Cause: cause, Text: string(cause),
	})
}

// TestWordOfAnotherLifePaysNothingBack: what ended an earlier life explains no crash after it, and a loss refunds nothing that was spent before.
func TestWordOfAnotherLifePaysNothingBack(t *testing.T) {
	t.Parallel()
	const replaced = "preempted, read lost, do, read gone, do, read ours, do, mapped, started, progress, 5m"
	for name, c := range map[string]struct {
		path   string
		former bool
		at     time.Duration // of that word, after the start
		spent  int
		cause  events.Cause
	}{
		"of the life before, while the restart is open":  {replaced + ", " + failing + ", intend restart", true, 2 * time.Second, 1, events.CauseCrash},
		"of the life before, once the training goes on":  {replaced + ", " + failing + ", do, started, 1m, progress", true, 2 * time.Second, 1, events.CauseCrash},
		"of this life, after the training has failed":    {failing + ", do, 10m", false, 10 * time.Minute, 1, events.CausePreemption},
		"of this life, before the training has failed":   {failing + ", do, 10m", false, time.Second, 0, events.CausePreemption},
		"of this life, told again after it was repaired": {"stopped for, read unhealthy, 30m, read ready, started, progress, 2h, " + failing + ", do", false, time.Second, 1, events.CauseCrash},
	} {
		n := newStory(t, true, "llama-8b")
		life := n.w.Slices[0].Incarnation
		if n.goes(c.path); !c.former {
			life = n.w.Slices[0].Incarnation
		}
		n.struck(life, events.CausePreemption, start.Add(c.at))
		if in := n.about(); in.Cause() != c.cause || n.w.Spent(events.ActionRestart) != c.spent {
			t.Errorf("%s: %d restarts are spent, and the cause is %s:\n%s", name, n.w.Spent(events.ActionRestart), in.Cause(), n.tale())
		}
	}
}

// TestARestartIsRefundedOnce: however many better causes are learned, whatever has been paid in the meantime, and when the incident is forgotten.
func TestARestartIsRefundedOnce(t *testing.T) {
	t.Parallel()
	for path, left := range map[string]int{
		"its causes": 1, "do, 1m, resumes, its causes": 1, "do, 1m, resumes, its causes, 40m": 1, "do, 1m, resumes, 40m, its causes": 2,
		"its causes, its causes": 1, "its causes, cancelled, 1m, retried": 0, "a record proves a step, its causes": 0,
	} {
		n := at(t, "everything", true, "tick", func(w *incident.Workload) {
			w.Charges = []incident.Charge{{Action: events.ActionRestart, Incident: "before", At: start.Add(-time.Hour)}}
		})
		opened := n.now
		if spent := n.goes(failing + ", intend restart").w.Spent(events.ActionRestart); spent != 2 {
			t.Fatalf("charged is %d:\n%s", spent, n.tale())
		}
		for step := range strings.SplitSeq(path, ", ") {
			switch step {
			case "its causes":
				for _, c := range []events.Cause{events.CauseUnknown, events.CauseGuest, events.CauseTerminated, events.CausePreemption, events.CauseHostError} {
					n.struck(n.w.Slices[0].Incarnation, c, opened)
				}
			case "resumes":
				n.steps(2, 48_300)
				n.opens(false)
			case "a record proves a step":
				n.proves(48_300, n.now)
			default:
				n.play(step)
			}
		}
		if got := n.w.Spent(events.ActionRestart); got != left {
			t.Errorf("%s: two were spent, and left are %d of them, want %d: %+v", path, got, left, n.w.Charges)
		}
	}
}

// proves has a crew's record on its machine show a step that was done at a time.
func (n *story) proves(step int64, at time.Time) {
	s := n.w.Slices[0]
	n.give(evidence.Beat{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Seen: n.now, Runs: true, Attempt: 2, Step: step, StepAt: at})
}

// TestAStepPaysWhatWasSpentBeforeIt: one that was done between two restarts pays the first of them back, and not the second.
func TestAStepPaysWhatWasSpentBeforeIt(t *testing.T) {
	t.Parallel()
	n := at(t, "everything", true, failing+", do, 10m")
	between := n.now
	if spent := n.goes("started, exit 1, gave up, its verdict, intend restart").w.Spent(events.ActionRestart); spent != 2 {
		t.Fatalf("charged is %d:\n%s", spent, n.tale())
	}
	if n.proves(48_300, between); n.w.Spent(events.ActionRestart) != 1 {
		t.Errorf("charged is %+v", n.w.Charges)
	}
}

// TestTheStorySaysWhyNoVerdictWasRead: who has to mend the bucket finds the reason there, whatever waited for the verdict.
func TestTheStorySaysWhyNoVerdictWasRead(t *testing.T) {
	t.Parallel()
	const why = "gs://ckpt/llama-8b: 403, storage.objects.get is denied"
	for name, n := range map[string]*story{
		"a lost Spot slice": at(t, "everything", true, "finished"), "a lost slice on demand": at(t, "everything", false, "finished"),
		"no replacements left": at(t, "everything", true, "tick", spent(events.ActionDelete)),
	} {
		told := n.goes("2h, read lost").tale()
		for end := n.now.Add(bounds.HealFor + bounds.HearFor + 5*time.Minute); n.w.Incident != nil && n.now.Before(end); n.goes("1m, read lost") {
			if i := n.effect(events.ActionHear, ""); i >= 0 && n.w.Effects[i].Retry.IsZero() {
				n.give(evidence.VerdictRead{Origin: n.reading(), Request: n.begins(events.ActionHear, ""), Failure: &evidence.Failure{Class: "transient", Message: why}})
			}
			told += n.tale()
		}
		if !strings.Contains(told+n.tale(), why) {
			t.Errorf("%s: the story does not say why:\n%s", name, n.tale())
		}
	}
}
