package sim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/sim"
	"pitstop.internal/shared/breadth"
)

// jobsSimulation is one slice of the mixed fleet, and a cluster with Jobs of every sort.
func jobsSimulation(tb testing.TB, seed uint64, degree string, days float64) sim.Simulation {
	tb.Helper()
	one := simulation(tb, seed, degree, days)
	one.World = sim.Few(one.World, seed, 1)
	one.World.Clusters = append(one.World.Clusters, sim.MixedCluster(seed))
	return one
}

// TestJobsBreakNoRule runs a cluster through half a day, in memory and over a socket: the same happens both ways. A short run is
// shorter, and over the socket alone.
func TestJobsBreakNoRule(t *testing.T) {
	t.Parallel()
	var told []string
	days := breadth.Of(0.5/float64(breadth.Every(3)), 0.1)
	for _, wire := range breadth.Of([]bool{false, true}, []bool{true}) {
		one := jobsSimulation(t, 1, "heavy", days)
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
		if float64(r.Incidents) < 10*days || float64(jobs) < 20*days {
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
