package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

const failing = "exit 139, gave up, its verdict"

// TestWhatIsApprovedIsChargedOnce: the policy asks by the time of the call for what it allowed when it was decided.
func TestWhatIsApprovedIsChargedOnce(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		action events.Action
		before int // a replacement is charged with its deletion
	}{
		failing: {events.ActionRestart, 0}, "preempted, read lost": {events.ActionDelete, 0}, "preempted, read lost, do, read gone": {events.ActionCreate, 1},
	} {
		n := at(t, "everything", true, path).under("ask").goes("forbidden " + string(c.action))
		if spent := len(n.w.Charges); n.stands(nil) != "approving" || spent != c.before {
			t.Errorf("%s: while nobody has approved it stands at %s, charged %d times:\n%s", path, n.stands(nil), spent, n.tale())
		}
		sent := slices.Clone(n.goes("approved").sent)
		if n.goes("intend " + string(c.action)); len(sent) != 1 || len(n.w.Charges) != 1 {
			t.Errorf("%s: approved, asked for is %q, charged %v:\n%s", path, sent, n.w.Charges, n.tale())
		}
	}
}

// TestProgressEndsWhatWaitsForApproval, unless what tells of it is no slice any more, or the maintenance is still to come.
func TestProgressEndsWhatWaitsForApproval(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{failing: "resumed", "preempted, read lost": "approving", "pending, later, tick": "approving"} {
		if n := at(t, "ask", true, path); n.stands(nil) != "approving" || n.goes("progress").stands(nil) != want {
			t.Errorf("%s: it stands at %s, want %s:\n%s", path, n.stands(nil), want, n.tale())
		}
	}
}

// TestOfAnApprovalThatDoesNotComeIsReminded after an hour, and every six hours.
func TestOfAnApprovalThatDoesNotComeIsReminded(t *testing.T) {
	t.Parallel()
	want := []time.Duration{bounds.RemindFirst, bounds.RemindEvery, 2 * bounds.RemindEvery, 3 * bounds.RemindEvery, 4 * bounds.RemindEvery}
	for _, path := range []string{failing, "preempted, read lost"} {
		n := at(t, "ask", true, path)
		since, lines := n.w.Incident.Status.Since, len(n.w.Incident.Lines)
		n.passes(24*time.Hour + time.Minute)
		var after []time.Duration
		for _, l := range n.w.Incident.Lines[lines:] {
			if after = append(after, l.At.Sub(since)); l.Label != view.Approving || !strings.HasPrefix(l.What.String(), "still wait for approval: ") {
				t.Errorf("%s: reminded by %q", path, l.What)
			}
		}
		if !slices.Equal(after, want) {
			t.Errorf("%s: reminded after %v, want %v", path, after, want)
		}
	}
}

// TestAClosedSwitchSaysWhoClosedIt: a policy allows less, as much and more than it did at the opening.
func TestAClosedSwitchSaysWhoClosedIt(t *testing.T) {
	t.Parallel()
	now := policy.Policy{
		Switches: policy.Switches{Recreate: policy.Yes, Restart: policy.Ask}, Limits: policy.Limits{policy.Restart: "policy night", policy.StartStopped: "the deployment"},
	}
	w := incident.Workload{Incident: &incident.Incident{Ceiling: policy.Switches{Restart: policy.Yes}, Limits: policy.Limits{policy.Recreate: "preset reserved"}}}
	for s, want := range map[policy.Switch]string{
		policy.Recreate:        "the switch recreate is no, limited by what held at the opening, preset reserved",
		policy.StartStopped:    "the switch start_stopped is no, limited by the deployment",
		policy.Restart:         "the switch restart is ask, limited by policy night",
		policy.RecreateNonSpot: "the switch recreate_non_spot is no",
	} {
		if got := w.Forbids(s, min(now.Switches.Level(s), w.Incident.Ceiling.Level(s)), now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
