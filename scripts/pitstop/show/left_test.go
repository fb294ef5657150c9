package show

import (
	"testing"
	"time"

	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/incident"
)

// TestCheckAndStatusNameTheZoneThatPreempts, and the plan asks it last.
func TestCheckAndStatusNameTheZoneThatPreempts(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	twice := deploymenttest.Noon.Add(-time.Hour)
	b.Change(func(w *incident.Workload) { w.Taken = []incident.Taken{{Zone: "us-west4-a", At: twice, Twice: twice}} })
	const says = "asked after the others until 2026-11-21 17:00 UTC: it preempted twice within an hour"
	got, err := b.Call("check", "llama-8b")
	if err != nil {
		t.Fatalf("%v:\n%s", err, got)
	}
	deploymenttest.WantText(t, got, "zone us-west4-a: "+says, "you: wait, or set leave_zone_for in the policy",
		"then create llama-8b in us-west4-b", "create node llama-8b in us-west4-a, if the one before refuses")
	b.Want([]string{"status", "llama-8b"}, "us-west4-a is "+says)
}
