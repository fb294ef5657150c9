package faults_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/faults"
)

// TestTroublesComeWhateverThePolicyIs: a trouble comes when the seed says, whether Pitstop recovers a slice or only watches it. One
// that finds its slice not READY strikes nothing and shifts no other.
func TestTroublesComeWhateverThePolicyIs(t *testing.T) {
	if testing.Short() {
		t.Skip("it is the same code once more")
	}
	t.Parallel()
	fleet, policy := sim.MixedFleet(2)
	one := sim.Simulation{Seed: 2, Days: 1, World: sim.Few(fleet, 2, 4), Policy: policy, Faults: faults.Faults{Troubles: 5}, Limit: sim.NoLimit}
	one.World.Start = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	come, always := faults.Come(one.World, faults.Draws{Seed: one.Seed, Faults: one.Faults})
	struck := map[string]int{}
	for name, policy := range map[string][]byte{"recovers": policy, "watches": []byte("policies: {}\n")} {
		one.Policy = policy
		r, err := sim.Simulate(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, line := range r.Told {
			told := strings.TrimSpace(line[4:])
			told, _, _ = strings.Cut(told, " in us-") // where its slice was
			all[told] = true
			if !come[told] && !always[told] {
				t.Errorf("%s: it did not have to come: %s", name, line)
			}
			struck[told]++
		}
		for what := range always {
			if !all[what] {
				t.Errorf("%s: it did not come: %s", name, what)
			}
		}
	}
	both, alone := 0, 0
	for _, n := range struck {
		if n == 2 {
			both++
		} else {
			alone++
		}
	}
	if both < 20 || alone == 0 {
		t.Errorf("%d troubles struck under both policies, %d under one: that proves nothing", both, alone)
	}
}
