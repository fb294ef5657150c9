package incident_test

import (
	"cmp"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
)

// comes has the creation of a slice succeed, and its training let in.
func (n *story) comes(slice string) {
	n.Helper()
	r := n.begins(events.ActionCreate, slice)
	n.give(evidence.Answered{Origin: n.reading(), Request: r})
	n.now = n.now.Add(time.Minute)
	n.reads(slice, evidence.Ready, func(e *evidence.Read) {
		e.Incarnation = events.Incarnation{Zone: e.Zone, ID: n.now.String(), Created: n.now.Add(-time.Second)}
		e.Incident = n.w.Incident.ID
	})
}

// vanishes has a slice vanish, and nobody say who deleted it.
func (n *story) vanishes(slice string) {
	n.now = n.now.Add(time.Minute)
	n.reads(slice, evidence.Gone)
	n.now = n.now.Add(bounds.Grace + time.Minute)
	s := n.w.Slice(slice)
	n.give(evidence.Unsaid{Origin: n.reading(), Slice: slice, Incarnation: s.Incarnation})
	n.give(evidence.Ticked{Origin: n.reading()})
}

// TestWhatNobodyHadToDeleteIsChargedToo: a slice that vanishes again and again is made again only as often as the budget allows.
func TestWhatNobodyHadToDeleteIsChargedToo(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	for i := range bounds.MaxRecreates {
		n.vanishes("llama-8b")
		if !n.isWanted(events.ActionCreate) {
			t.Fatalf("nothing is created the %d. time:\n%s", i+1, n.tale())
		}
		n.comes("llama-8b")
		if spent := n.w.Spent(events.ActionDelete); spent != i+1 {
			t.Fatalf("%d replacements are charged, want %d", spent, i+1)
		}
	}
	n.vanishes("llama-8b")
	n.passes(time.Hour)
	if end := n.ended(); end.Code != reason.CodeBudget || n.isWanted(events.ActionCreate) {
		t.Errorf("it ends with %q:\n%s", end.Code, n.tale())
	}
}

// TestAReplacementIsChargedOnce: a creation goes with the deletion before it.
func TestAReplacementIsChargedOnce(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.now = n.now.Add(time.Minute)
	n.reads("llama-8b", evidence.Lost)
	n.give(evidence.Answered{Origin: n.reading(), Request: n.begins(events.ActionDelete, "llama-8b")})
	n.now = n.now.Add(time.Minute)
	n.reads("llama-8b", evidence.Gone)
	n.comes("llama-8b")
	if spent := n.w.Spent(events.ActionDelete); spent != 1 {
		t.Errorf("%d replacements are charged, want 1", spent)
	}
}

// TestTheBudgetIsAskedWhileAnotherSliceWaits: one slice waits for capacity without end, and the other is not replaced for ever meanwhile.
func TestTheBudgetIsAskedWhileAnotherSliceWaits(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "pair-0", "pair-1")
	n.w.Training.Saved = incident.Checkpoint{Step: 48000, At: start.Add(-10 * time.Minute)}
	n.vanishes("pair-0")
	replaced := 0
	for range 2 * bounds.MaxRecreates {
		if n.w.Incident == nil {
			break
		}
		n.now = n.now.Add(time.Minute)
		n.reads("pair-1", evidence.Lost)
		if !n.isWanted(events.ActionDelete) {
			break
		}
		n.give(evidence.Answered{Origin: n.reading(), Request: n.begins(events.ActionDelete, "pair-1")})
		n.now = n.now.Add(time.Minute)
		n.reads("pair-1", evidence.Gone)
		n.comes("pair-1")
		replaced++
	}
	if replaced != bounds.MaxRecreates {
		t.Errorf("pair-1 was replaced %d times:\n%s", replaced, n.tale())
	}
}

// TestTheRestartsOfADayHoldForReplacements that begin the training again.
func TestTheRestartsOfADayHoldForReplacements(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.p.RestartsPerDay = 1
	n.w.Charges = []incident.Charge{{Action: events.ActionRestart, Incident: "before", At: start.Add(-time.Hour), Void: true}}
	n.now = n.now.Add(time.Minute)
	n.reads("llama-8b", evidence.Lost, func(e *evidence.Read) { e.Facts.Cause = events.CauseCrash })
	n.passes(30 * time.Minute)
	if end := n.ended(); end.Code != reason.CodeRestartsADay || n.isWanted(events.ActionDelete) {
		t.Errorf("it ends with %q:\n%s", end.Code, n.tale())
	}
}

// TestWordOfAnotherLifePaysNothingBack: what ended a life that an earlier incident was about explains no crash after it, nor does a loss refund what
// the training had spent before. A loss that came first does.
func TestWordOfAnotherLifePaysNothingBack(t *testing.T) {
	t.Parallel()
	const replaced, crashed = "preempted, read lost, do, read gone, do, read ours, do, mapped, started, progress, 5m", "exit 139, gave up, its verdict"
	struck := func(n *story, life events.Incarnation, at time.Time) {
		n.give(evidence.Interrupted{
			Origin: evidence.Origin{ID: "late", Time: at, Rank: events.RankAudit}, Slice: "llama-8b", Incarnation: life, Cause: events.CausePreemption, Text: "it was preempted",
		})
	}
	for name, c := range map[string]struct {
		path   string
		former bool
		at     time.Duration // of that word, after the start
		spent  int
		cause  events.Cause
	}{
		"of the life before, while the restart is open":  {replaced + ", " + crashed + ", intend restart", true, 2 * time.Second, 1, events.CauseCrash},
		"of the life before, once the training goes on":  {replaced + ", " + crashed + ", do, started, 1m, progress", true, 2 * time.Second, 1, events.CauseCrash},
		"of this life, after the training has failed":    {crashed + ", do, 10m", false, 10 * time.Minute, 1, events.CausePreemption},
		"of this life, before the training has failed":   {crashed + ", do, 10m", false, time.Second, 0, events.CausePreemption},
		"of this life, told again after it was repaired": {"stopped for, read unhealthy, 30m, read ready, started, progress, 2h, " + crashed + ", do", false, time.Second, 1, events.CauseCrash},
	} {
		n := newStory(t, true, "llama-8b")
		first := n.w.Slices[0].Incarnation
		if n.goes(c.path); !c.former {
			first = n.w.Slices[0].Incarnation
		}
		struck(n, first, start.Add(c.at))
		if in := cmp.Or(n.w.Incident, n.w.Closed); in.Cause() != c.cause || n.w.Spent(events.ActionRestart) != c.spent {
			t.Errorf("%s: %d restarts are spent, and the cause is %s:\n%s", name, n.w.Spent(events.ActionRestart), in.Cause(), n.tale())
		}
	}
}
