package incident_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
)

// TestAStartBesideALoss: what is on its way up, or only stopped, is no part of what is lost, and what is lost is not forgotten over it.
func TestAStartBesideALoss(t *testing.T) {
	t.Parallel()
	type steps = []string
	asked := steps{"a read stopped", "peace", "later", "peace", "a unsaid", "peace"}
	started := slices.Concat(asked, steps{"tick", "starting: start a", "do", "starting"})
	ended := steps{"later", "starting", "tick", "healing", "later", "healing", "tick", "deleting: delete b"} // four hours since b was lost
	replaced := steps{"a read lost", "deleting: delete a", "do", "deleting", "a read gone", "creating: create a", "do", "creating"}
	unsaid := func(slice, want string) steps {
		return steps{slice + " read stopped", "healing", "a while", "healing", slice + " unsaid", want}
	}
	all := map[string]history{
		"another slice is lost while one is started": {steps: slices.Concat(started, steps{
			"b read lost", "starting", "a read unhealthy", "starting", "a read ready", "healing", "later", "healing", "tick", "deleting: delete b",
		})},
		"what is started is lost itself":                        {steps: slices.Concat(started, steps{"a read lost", "healing", "later", "healing", "tick", "deleting: delete a"})},
		"another slice is lost, and the start comes to nothing": {steps: slices.Concat(started, steps{"b read lost", "starting"}, ended)},
		"another slice is gone, and the start comes to nothing": {steps: slices.Concat(started, steps{
			"b read gone", "starting", "later", "starting", "tick", "creating: create b", // for longer than anybody's word about it takes
		})},
		"another slice is lost while the start waits for a person": {policy: "ask", steps: slices.Concat(asked, steps{
			"tick", "approving", "b read lost", "approving", "tick", "approving", "b read gone", "approving", "tick", "approving",
		})},
		"the start of one does not begin the time of the other anew": {steps: slices.Concat(steps{"b read lost", "healing"}, unsaid("a", "starting: start a"), steps{
			"do", "starting", "a read ready", "healing", "later", "healing", "tick", "deleting: delete b",
		})},
		"one is stopped by nobody knows whom, and the other is lost": {steps: steps{
			"b read lost", "healing", "a read stopped", "healing", "later", "healing", "tick", "deleting: delete b",
		}},
		"its owner's own order is still being made when the start is done": {w: func(w *incident.Workload) {
			single(w)
			b := &w.Slices[1]
			b.Condition, b.State, b.Since, b.Unused = evidence.Creating, "CREATING", start.Add(-5*time.Hour), true
		}, steps: slices.Concat(started, steps{"a read ready", "healing", "tick", "healing"})},
		"the other was found stopped, and the start comes to nothing": {w: func(w *incident.Workload) {
			single(w)
			b := &w.Slices[1]
			b.Condition, b.State = evidence.Stopped, "STOPPED"
		}, steps: slices.Concat(started, steps{"later", "starting", "tick", "escalated"})},
		"a third is gone while one is lost and another is started": {w: func(w *incident.Workload) {
			single(w)
			c := w.Slices[1]
			c.Name, c.Hosts, c.Incarnation.ID = "c", "t1v-n-3f2a9c03", "7800"
			w.Slices = append(w.Slices, c)
		}, steps: slices.Concat(steps{"b read lost", "healing"}, unsaid("a", "starting: start a"), steps{
			"do", "starting", "c read gone", "starting", "a while", "starting", "c unsaid", "creating: create c", "a read ready", "creating", // b may still come back
		})},
		"its owner suspends a queued resource that was lost": {w: func(w *incident.Workload) {
			single(w)
			inQueue(w)
			w.Slices = w.Slices[:1]
		}, steps: steps{"a read lost", "healing", "a read stopped", "healing", "later", "healing", "tick", "escalated"}},
		"it was started by hand while a person was asked": {policy: "ask", steps: slices.Concat(asked, steps{
			"tick", "approving", "b read unhealthy", "approving", "a read ready", "healing",
		})},
		"the crew of a new one spoke before it was stopped": {spot: true, steps: slices.Concat(replaced, steps{
			"a read ours made", "creating", "a mapped", "creating", "a started", "creating", "a read stopped", "healing",
		})},
		"it is only stopped when it is to be deleted": {steps: steps{
			"b read lost", "healing", "later", "healing", "tick", "deleting: delete b", "b read stopped", "healing",
		}},
		"the other is gone, and its owner may have deleted it, when the time of the stopped one is over": {steps: steps{
			"b read lost", "healing",
			"b read stopped", "healing",
			"later", "healing",
			"a read gone", "grace",
			"tick", "grace",
			"a while", "grace",
			"a unsaid", "creating: create a",
		}},
		"it was lost, and is shown as stopped then": {steps: slices.Concat(steps{"b read lost", "healing"}, unsaid("b", "starting: start b"))},
		"it is stopped once it is being deleted": {steps: steps{
			"b read lost", "healing", "later", "healing", "tick", "deleting: delete b", "do", "deleting", "b read stopped", "deleting",
		}},
		"one is only stopped while the other is created": {spot: true, steps: slices.Concat(replaced, steps{
			"b read lost", "deleting: delete b", "b read stopped", "creating", "a read ours", "healing",
		}, unsaid("b", "starting: start b"), steps{"do", "starting", "b read ready", "admitting: admit a=7712 b=7760"})},
	}
	for name, c := range all {
		if c.names = both; c.w == nil {
			c.w = single
		}
		all[name] = c
	}
	playAll(t, all)
}
