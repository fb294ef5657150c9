package lab

import (
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/entries/entriestest"
	simulated "pitstop.internal/scripts/sim/cloud"
)

// TestTheGreetingCanBeFollowed: what it prints names the first node, and in an empty cloud the call that creates one.
func TestTheGreetingCanBeFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		fleet string
		says  []string
	}{
		"a fleet": {
			"project: mine\nfleet: [{name: llama-8b, zone: us-west4-a, accelerator: v5litepod-16}, {name: gemma, zone: us-east5-a, accelerator: v5litepod-16}]\n",
			[]string{
				"project mine with 2 nodes", "CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING=http://127.0.0.1:8090/", "CLOUDSDK_CORE_PROJECT=mine",
				"tpu-vm describe gemma --zone=us-east5-a", `{"zone": "us-east5-a", "node": "gemma"}`,
			},
		},
		"a legacy node": {
			"project: mine\nfleet: [{name: old, zone: us-west4-a, accelerator: v2-8, legacy: true}]\n",
			[]string{"gcloud compute tpus describe old --zone=us-west4-a\n", "gcloud compute tpus list --zone=us-west4-a\n"},
		},
		"an empty cloud": {
			"", []string{
				"project demo with 0 nodes", "tpu-vm create llama-8b --zone=europe-west4-b \\\n    --accelerator-type=v5litepod-16 --version=v2-alpha-tpuv5-lite\n",
				`{"zone": "europe-west4-b", "node": "llama-8b"}`,
			},
		},
	} {
		var config simulated.Config
		if c.fleet != "" {
			fleet, err := readFleet([]string{entriestest.Write(t, "fleet.yaml", c.fleet)})
			if err != nil {
				t.Fatal(err)
			}
			config.Fleet = fleet
		}
		served, err := simulated.New(config)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(greeting(served, "http://127.0.0.1:8090", strings.Repeat("t", 26)), "\n")
		for line := range strings.SplitSeq(said, "\n") {
			if len(line) > 100 {
				t.Errorf("%s: it is broken on the screen: %q", name, line)
			}
		}
		for _, says := range c.says {
			if !strings.Contains(said, says) {
				t.Errorf("%s: it says %s, want %q", name, said, says)
			}
		}
	}
}
