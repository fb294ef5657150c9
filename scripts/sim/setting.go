package sim

import (
	"slices"

	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
)

// Setting is what simulations have in common that differ in their seeds alone.
type Setting struct {
	Days float64
	// Fleet and Policy are those of every seed; without them each draws a mixed fleet, with the policies for it.
	Fleet  *world.Scenario
	Policy []byte
	// Slices is how many slices of the fleet each seed draws, 0 all.
	Slices int
	// Jobs puts a cluster of GKE with Jobs beside the mixed fleet.
	Jobs   bool
	Allow  *policy.Switches
	Faults faults.Faults
	Rates  faults.Rates
	Traces []faults.Trace
}

// Simulation is that of one seed.
func (s Setting) Simulation(seed uint64) (Simulation, error) {
	world, policies := MixedFleet(seed)
	if s.Fleet != nil {
		world = *s.Fleet
	}
	if s.Jobs {
		world.Clusters = append(slices.Clip(world.Clusters), MixedCluster(seed))
	}
	if s.Policy != nil {
		policies = s.Policy
	}
	for _, t := range s.Traces {
		if err := t.Fits(world); err != nil {
			return Simulation{}, err
		}
	}
	if s.Slices > 0 {
		world = Few(world, seed, s.Slices)
	}
	return Simulation{
		Seed: seed, Days: s.Days, World: world, Policy: policies, Allow: s.Allow, Faults: s.Faults, Rates: s.Rates, Traces: s.Traces, Limit: NoLimit,
	}, nil
}
