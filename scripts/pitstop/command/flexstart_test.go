package main

import (
	"os"
	"path/filepath"
	"testing"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/breadth"
)

// TestSimulateEndsFlexStartTPUs runs TPUs that live for some hours, alone and together in a queued resource, against all that goes wrong.
func TestSimulateEndsFlexStartTPUs(t *testing.T) {
	breadth.Again(t)
	dir := t.TempDir()
	fleet, policies := filepath.Join(dir, "fleet.yaml"), filepath.Join(dir, "policy.yaml")
	for name, text := range map[string]string{
		fleet: `project: demo
fleet:
  - {name: alone, zone: us-west4-a, accelerator: v5litepod-16, runs_for: 5h, queued_resource: alone-qr, policy: all, directory: gs://demo-checkpoints/alone}
  - {name: spared, zone: us-west4-b, accelerator: v5litepod-16, runs_for: 7h, queued_resource: spared-qr, policy: spot, directory: gs://demo-checkpoints/spared}
  - {name: two-0, zone: us-west4-a, accelerator: v5litepod-16, runs_for: 6h, queued_resource: two, policy: all, directory: gs://demo-checkpoints/two}
  - {name: two-1, zone: us-west4-a, accelerator: v5litepod-16, runs_for: 6h, queued_resource: two, policy: all, directory: gs://demo-checkpoints/two}
  - {name: watched, zone: us-west4-a, accelerator: v6e-8, runs_for: 9h, queued_resource: watched-qr, policy: watch, directory: gs://demo-checkpoints/watched}
`,
		policies: `policies:
  all:
    preset: spot
    switches: {early_maintenance: yes, recreate_non_spot: yes, start_stopped: yes}
    zones: [us-west4-a, us-west4-b]
`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, faults := range []string{"none", "heavy"} {
		out, errOut, code := call(t, "", "simulate", "--fleet", fleet, "--policy", policies, "--seeds", "2", "--days", "1", "--faults", faults)
		if code != cli.ExitDone {
			t.Errorf("faults %s: exit code %d: %s\n%s", faults, code, errOut, out)
		}
		deploymenttest.WantText(t, out, "planned end", "violations: none")
	}
}
