package incident_test

import (
	"fmt"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
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

// TestACrashedJobNeedsTheSwitchRestartToo: to begin its training again is a restart, in whatever way.
func TestACrashedJobNeedsTheSwitchRestartToo(t *testing.T) {
	t.Parallel()
	for cause, want := range map[events.Cause]reason.Code{events.CauseCrash: reason.CodePolicyNo, events.CauseTerminated: ""} {
		n := newJob(t)
		n.p.Switches.Restart = policy.No
		if n.breaks(cause); n.ended().Code != want || n.isWanted(events.ActionDelete) != (want == "") {
			t.Errorf("%s: asked for is %q:\n%s", cause, n.sent, n.tale())
		}
	}
}
