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
			n.exits(attempt, fmt.Sprint("another error: ", string(rune('a'+attempt)))).later(time.Second).beats(n.verdict(attempt, false), 0)
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
				e := beat(n, &n.w.Slices[0], n.now)
				e.Runs, e.Attempt, e.Step, e.StepAt = true, attempt+1, step, n.now
				n.give(e)
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
