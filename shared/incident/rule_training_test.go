package incident_test

import (
	"fmt"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// exits has an attempt fail, and gives up for it once its crew has no restarts left.
func (n *story) exits(attempt int, said string) *story {
	n.now = n.now.Add(time.Second)
	return n.line("llama-8b", events.CrewReport{Report: events.ReportExited, Attempt: attempt, ExitCode: 1, Tail: []string{said}})
}

func (n *story) givesUp(attempt int) *story {
	n.now = n.now.Add(time.Second)
	return n.line("llama-8b", events.CrewReport{Report: events.ReportGaveUp, Attempt: attempt, Reason: "all restarts are spent"})
}

// beats is a crew's record on its machine: with a verdict, or with how long ago a step was.
func (n *story) beats(verdict *events.CrewVerdict, stepped time.Duration) *story {
	s := n.w.Slices[0]
	e := evidence.Beat{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Seen: n.now, Runs: verdict == nil, Attempt: n.w.Training.Attempt, Verdict: verdict}
	if verdict == nil {
		e.StepAt = n.now.Add(-stepped)
	}
	return n.give(e)
}

func (n *story) verdict(attempt int, finished bool) *events.CrewVerdict {
	s := n.w.Slices[0]
	return &events.CrewVerdict{
		Schema: 1, Attempt: attempt, Finished: finished, Ended: n.now, Reason: "it says so",
		Life: events.Admission{Slice: s.Name, Incarnation: events.Incarnation{Zone: s.Zone}, Workers: s.Hosts},
	}
}

func (n *story) steps(attempt int, step int64) {
	n.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: attempt, Step: step, CheckpointStep: 48000})
}

// TestALineAloneSpendsNoRestart: the crew's verdict does. The same error twice, without a step in between, is not met a third time.
func TestALineAloneSpendsNoRestart(t *testing.T) {
	t.Parallel()
	for second, want := range map[string]reason.Code{"NaN in loss at step 48251": reason.CodeSameError, "shapes do not match": ""} {
		n := newStory(t, true, "llama-8b")
		n.exits(1, "NaN in loss at step 48250")
		n.givesUp(1).wants("hear")
		r := n.begins(events.ActionHear, "")
		n.give(evidence.VerdictRead{Origin: n.reading(), Request: r, Attempt: 1, Text: "there is none"}).wants()
		n.now = n.now.Add(time.Second)
		n.beats(n.verdict(1, false), 0).wants("restart llama-8b=7711")
		if len(n.w.Charges) != 0 {
			t.Fatalf("charged is %v before it is begun", n.w.Charges)
		}
		n.give(evidence.Answered{Origin: n.reading(), Request: n.begins(events.ActionRestart, "")})
		if len(n.w.Charges) != 1 || n.w.Lease.Sure.Attempt != 2 {
			t.Fatalf("charged is %v, and the lease names attempt %d", n.w.Charges, n.w.Lease.Sure.Attempt)
		}
		n.exits(2, second)
		n.now = n.now.Add(time.Second)
		n.beats(n.verdict(2, false), 0)
		if got := n.ended().Code; got != want || (want == "") != n.isWanted(events.ActionRestart) {
			t.Errorf("%s: it ended by %q, want %q:\n%s", second, got, want, n.tale())
		}
	}
}

// TestRestartsHaveTheirBudgets: three without verified progress, and those of a day whatever progress there was.
func TestRestartsHaveTheirBudgets(t *testing.T) {
	t.Parallel()
	for proves, want := range map[bool]reason.Code{false: reason.CodeBudget, true: reason.CodeRestartsADay} {
		n, restarts := newStory(t, true, "llama-8b"), 0
		for attempt := 1; attempt < 30; attempt++ {
			n.exits(attempt, fmt.Sprint("another error: ", string(rune('a'+attempt))))
			n.now = n.now.Add(time.Second)
			n.beats(n.verdict(attempt, false), 0)
			if n.isWanted(events.ActionHear) {
				n.give(evidence.VerdictRead{Origin: n.reading(), Request: n.begins(events.ActionHear, ""), Verdict: n.verdict(attempt, false), Attempt: attempt})
			}
			if !n.isWanted(events.ActionRestart) {
				break
			}
			restarts++
			n.give(evidence.Answered{Origin: n.reading(), Request: n.begins(events.ActionRestart, "")})
			n.now = n.now.Add(10 * time.Minute)
			n.steps(attempt+1, 48200+100*int64(attempt))
			if s := n.w.Slices[0]; proves {
				n.give(evidence.Beat{
					Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Seen: n.now, Runs: true, Attempt: attempt + 1, Step: 48200 + 100*int64(attempt), StepAt: n.now,
				})
			}
		}
		if most := map[bool]int{false: bounds.MaxRestarts, true: policy.DefaultRestartsPerDay}[proves]; n.ended().Code != want || restarts != most {
			t.Errorf("proven %v: after %d restarts it ended by %q, want %d and %q:\n%s", proves, restarts, n.ended().Code, most, want, n.tale())
		}
	}
}

// TestOnlyProgressProvesThatATrainingGoesOn: a step past the last save, of the attempt that runs. One that was taken back may go on below.
func TestOnlyProgressProvesThatATrainingGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attempt int
		step    int64
		span    time.Duration
		outcome view.Outcome
	}{
		"a step past the save":         {2, 48001, 0, view.Resumed},
		"a step before it":             {2, 47990, 0, ""},
		"a late line of the one ended": {1, 48190, 0, ""},
		"steps before it, for hours":   {2, 47000, 6 * time.Hour, view.Resumed},
	} {
		n := newStory(t, true, "llama-8b")
		n.exits(1, "an error")
		late := n.now.Add(time.Second)
		n.now = n.now.Add(time.Minute)
		n.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: 2})
		for end := n.now.Add(c.span + time.Minute); n.w.Incident != nil && n.now.Before(end); c.step++ {
			n.passes(time.Minute)
			at := n.now
			if n.now = at; c.attempt == 1 {
				n.now = late
			}
			if n.w.Incident != nil {
				n.steps(c.attempt, c.step)
			}
			n.now = at
		}
		if got := n.ended().Outcome; got != c.outcome {
			t.Errorf("%s: it ended %q, want %q:\n%s", name, got, c.outcome, n.tale())
		}
	}
}

// TestAFailureOfALifeBeforeOpensNoIncident: its owner has deleted that life since, and made another one.
func TestAFailureOfALifeBeforeOpensNoIncident(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.give(evidence.Called{Origin: n.reading(), Slice: "llama-8b", Zone: "us-west4-a", Act: events.ActDeleted, Principal: "ann@example.com"})
	n.now = n.now.Add(time.Minute)
	n.exits(1, "NaN in loss").reads("llama-8b", evidence.Gone)
	n.now = n.now.Add(time.Hour)
	n.reads("llama-8b", evidence.Creating, func(e *evidence.Read) {
		e.Incarnation = events.Incarnation{Zone: "us-west4-a", ID: "7799", Created: n.now}
	})
	if n.passes(time.Minute); n.w.Incident != nil || n.w.Closed != nil {
		t.Error(n.tale())
	}
}
