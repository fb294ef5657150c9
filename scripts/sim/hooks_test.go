package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// TestABrokenPipelineIsJudged: the pipeline and the judge both follow a decision made at a hook, and the run ends with the
// rule that it breaks.
func TestABrokenPipelineIsJudged(t *testing.T) {
	t.Parallel()
	one := simulation(t, 1, "none", 5)
	one.UntilBroken = true
	one.Hooks.Decide = func(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
		next, send, changed := incident.Advance(p, w, e, now)
		if w.Incident == nil && next.Incident != nil {
			return w, nil, false // nobody looks after anything
		}
		return next, send, changed
	}
	r := simulate(t, one)
	if len(r.Violations) == 0 || r.Incidents > 0 {
		t.Fatalf("%d incidents were opened, and the judge noticed nothing of that", r.Incidents)
	}
	if rule := r.Violations[0].Rule; rule == "history" {
		t.Errorf("the judge decides otherwise than the pipeline: %s", r.Violations[0].Text)
	}
}

// TestForgedRequestsChangeNothing: what a body says beside its pointer is obeyed by nobody.
func TestForgedRequestsChangeNothing(t *testing.T) {
	breadth.Again(t)
	t.Parallel()
	one := simulation(t, 1, "none", 1)
	one.Faults = faults.Faults{Forged: 1, Troubles: 5}
	r := simulate(t, one)
	for _, v := range r.Violations {
		t.Errorf("%s: %s %s", v.Rule, v.Workload, v.Text)
	}
	forged := func(told string) bool { return strings.Contains(told, "a forged pitstop.recreate.requested.v1") }
	if !slices.ContainsFunc(r.Told, forged) {
		t.Error("nobody has forged a request")
	}
}
