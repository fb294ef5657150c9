package incident_test

import (
	"testing"

	"pitstop.internal/shared/incident"
)

// TestEachPhaseIsReached: which path leads to it.
func TestEachPhaseIsReached(t *testing.T) {
	t.Parallel()
	const created = "preempted, read lost, do, read gone, do"
	for _, c := range []struct {
		phase, policy string
		spot          bool
		path          string
		change        func(*incident.Workload)
	}{
		{"saving", "everything", true, "pending, later, tick", nil},
		{"maintaining", "everything", false, "pending, later, tick, do, saved, found verify", nil},
		{"window", "everything", false, "pending, later, tick, do, saved, found verify, does maintain", nil},
		{"window", "spot", true, "ongoing, do, later, tick", nil},
		{"looking", "everything", true, "preempted", nil},
		{"grace", "everything", true, "stopped for, read gone", nil},
		{"healing", "everything", false, "host error, read lost", nil},
		{"healing", "spot", true, "host error, read unhealthy", nil},
		{"healing", "everything", false, "host error, read stopped", single},
		{"approving", "ask", true, "preempted, read lost", nil},
		{"approving", "ask", true, "pending, later, tick", nil},
		{"approving", "ask", false, "read stopped, later, unsaid, tick", single},
		{"approving", "ask", true, "exit 139, gave up, its verdict", nil},
		{"deleting", "everything", true, "preempted, read lost, do", nil},
		{"creating", "everything", true, created, nil},
		{"creating", "spot", true, created + ", read ordered", inQueue},
		{"admitting", "everything", true, created + ", read ours", nil},
		{"resuming", "everything", true, created + ", read ours, do", nil},
		{"resuming", "everything", true, created + ", read ours", bare},
		{"resuming", "everything", false, "host error, read unhealthy, read ready", crewless},
		{"resuming", "spot", false, "exit 139", nil},
		{"restarting", "everything", true, "exit 139, gave up, its verdict", nil},
		{"restarting", "everything", true, "half a day, a crew that runs, tick", nil},
		{"resuming", "everything", true, "exit 139, gave up, its verdict, do, started", nil},
		{"starting", "everything", false, "read stopped, later, unsaid, tick, do", single},
		{"watching", "watch", true, "preempted", nil},
		{"watching", "watch", false, "pending, later, tick", nil},
		{"watching", "everything", true, "half a day, no crew, tick", nil},
		{"clearing", "everything", true, created + ", owner deletes", nil},
		{"clearing", "everything", true, created + ", read ordered, owner creates", inQueue},
	} {
		n := at(t, c.policy, c.spot, c.path, func(w *incident.Workload) {
			if c.change != nil {
				c.change(w)
			}
		})
		if got := n.stands(nil); got != c.phase {
			t.Errorf("%s: %s leads to %s, not to %s:\n%s", c.policy, c.path, got, c.phase, n.tale())
		}
	}
}
