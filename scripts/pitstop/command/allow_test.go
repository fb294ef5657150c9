package main

import (
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/entries/entriestest"
)

// TestWhatTheDeploymentAllowsIsACeiling: each command that decides says that it is the deployment which keeps a switch where
// it is, and goes by it.
func TestWhatTheDeploymentAllowsIsACeiling(t *testing.T) {
	fleet := entriestest.Write(t, "fleet.yaml", ownFleetFile)
	policies := entriestest.Write(t, "policy.yaml", ownPolicyFile)
	simulate := []string{"simulate", "--days", "0.2", "--faults", "none", "--fleet", fleet, "--policy", policies}
	for name, c := range map[string]struct {
		in   string
		args []string
		says string
		// otherwise is what is said without it.
		otherwise string
	}{
		"replay":   {entriestest.Preempted("2"), []string{"replay", "--policy", "spot", "-"}, "the switch recreate is no, limited by the deployment", "RESUMED"},
		"explain":  {entriestest.Preempted("2"), []string{"explain", "--policy", "spot"}, "the switch recreate is no, limited by the deployment", ""},
		"simulate": {"", simulate, "limited by the deployment: recreate", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, _ := call(t, c.in, append(c.args, "--allow", "restart, request_checkpoint")...)
			if !strings.Contains(out, c.says) || c.otherwise != "" && strings.Contains(out, c.otherwise) {
				t.Errorf("%s%s", out, errOut)
			}
			if out, errOut, _ := call(t, c.in, c.args...); strings.Contains(out, "the deployment") || !strings.Contains(out, c.otherwise) {
				t.Errorf("without --allow: %s%s", out, errOut)
			}
			if _, errOut, code := call(t, c.in, append(c.args, "--allow", "recrate")...); code != 2 || !strings.Contains(errOut, `"recrate"`) {
				t.Errorf("code %d: %s", code, errOut)
			}
		})
	}
}
