package oracle_test

import (
	"encoding/json"
	"testing"

	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/oracle"
)

// TestPercentilesOfSeveralSeeds are those of all samples together: that of one seed alone may be anything.
func TestPercentilesOfSeveralSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("it is the same code once more")
	}
	t.Parallel()
	world, policy := sim.MixedFleet(1)
	var reports []*oracle.Result
	n := 0
	for seed := uint64(1); seed <= 3; seed++ {
		r, err := sim.Simulate(t.Context(), sim.Simulation{
			Seed: seed, Days: 0.5, World: sim.Few(world, seed, 3), Policy: policy, Faults: faults.Faults{Troubles: 4}, Limit: sim.NoLimit,
		})
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
		n += len(r.Samples("evidence_to_decision"))
	}
	before, err := json.Marshal(reports)
	if err != nil {
		t.Fatal(err)
	}
	sum := oracle.Sum(reports)
	after, err := json.Marshal(reports)
	if err != nil || string(before) != string(after) {
		t.Errorf("the sum changes its parts: %v", err)
	}
	all := sum.Samples("evidence_to_decision")
	got := sum.Reaction["evidence_to_decision"]
	if got != oracle.PercentilesOf(all) || got.Count != n || len(all) != n || n == 0 {
		t.Errorf("percentiles %+v of %d samples, and there are %d", got, len(all), n)
	}
	if sum.Seeds != 3 || sum.Seed != 1 || len(sum.Reached)+len(sum.ReachedMissing) < len(reports[0].Reached) {
		t.Errorf("seeds %d from %d", sum.Seeds, sum.Seed)
	}
	for name := range reports[2].Reached {
		for _, missing := range sum.ReachedMissing {
			if name == missing {
				t.Errorf("%s was reached by one seed, and is missing", name)
			}
		}
	}
	for class := range sum.ErrorClasses {
		for _, missing := range sum.ErrorClassesMissing {
			if class == missing {
				t.Errorf("%s is met and not met", class)
			}
		}
	}
}
