package sim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/sim"
)

// jobsSimulation is one slice of the mixed fleet, and a cluster with Jobs of every sort.
func jobsSimulation(tb testing.TB, seed uint64, degree string, days float64) sim.Simulation {
	tb.Helper()
	one := simulation(tb, seed, degree, days)
	one.World = sim.Few(one.World, seed, 1)
	one.World.Clusters = append(one.World.Clusters, sim.MixedCluster(seed))
	return one
}

// TestJobsBreakNoRule runs a cluster through half a day, in memory and over a socket: the same happens both ways.
func TestJobsBreakNoRule(t *testing.T) {
	t.Parallel()
	var told []string
	for _, wire := range []bool{false, true} {
		one := jobsSimulation(t, 1, "heavy", 0.5)
		one.Wire = wire
		r := simulate(t, one)
		for _, v := range r.Violations {
			t.Errorf("%s: %s %s", v.Rule, v.Workload, v.Text)
		}
		jobs := 0
		for _, line := range r.Told {
			if strings.Contains(line, " in us-east5/research/") {
				jobs++
			}
		}
		if r.Incidents < 5 || jobs < 10 {
			t.Errorf("%d incidents, %d troubles of Jobs: that is no run", r.Incidents, jobs)
		}
		if told != nil {
			if d := cmp.Diff(told, r.Told); d != "" {
				t.Errorf("over a socket the run differs (-in memory +over a socket):\n%.3000s", d)
			}
		}
		told = r.Told
	}
}
