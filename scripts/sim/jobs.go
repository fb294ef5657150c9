package sim

import (
	"fmt"
	"time"

	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
)

// MixedCluster is a cluster of GKE with a Job of each sort, in a location of its own.
func MixedCluster(seed uint64) world.ClusterConfig {
	draw := faults.NewDice(seed).Of("cluster").Rand()
	hours := func(low, high int) world.Duration {
		return world.Duration(time.Duration(low+draw.IntN(high-low)) * time.Hour)
	}
	day := hours(1, 24)
	c := world.ClusterConfig{
		Name: "research", Location: "us-east5",
		Pools: []world.PoolConfig{
			{Name: "flex-large", Machine: "ct6e-standard-4t", Topology: "2x4", FlexStart: true, RunsFor: hours(10, 60), Machines: 2},
			{Name: "flex-small", Machine: "ct6e-standard-4t", FlexStart: true, RunsFor: hours(10, 60), Machines: 2},
			{Name: "spot-large", Machine: "ct5lp-hightpu-4t", Topology: "2x4", Spot: true, Machines: 8},
			{Name: "spot-small", Machine: "ct5lp-hightpu-4t", Spot: true, Machines: 4},
			{Name: "kept", Machine: "ct5p-hightpu-4t", Topology: "2x2x2", Machines: 4},
		},
		Jobs: []world.JobConfig{
			// As Google's guide to flex-start has it.
			{Name: "guide", Pool: "flex-large", Policy: "returning"},
			{Name: "expiring", Pool: "flex-small", Expires: &day, Policy: "returning", Trainer: world.TrainerConfig{Torn: true}},
			{Name: "alone", Namespace: "teams", Pool: "flex-small", Policy: "reserved", Workload: "renamed", Crew: world.CrewConfig{Absent: true}},
			// A JobSet begins again as long as restarts are left.
			{Name: "set", Namespace: "teams", Pool: "spot-small", Slices: 2, Restarts: draw.IntN(5), Policy: "spot"},
			{Name: "once", Pool: "spot-small", Slices: 2},
			// What bears a loss makes only the lost Pod anew.
			{Name: "waiting", Pool: "spot-large", BearsLoss: true, Waits: true, Policy: "watch"},
			{Name: "bearing", Pool: "spot-large", BearsLoss: true, Retries: draw.IntN(4), Policy: "spot"},
			{Name: "queued", Namespace: "teams", Pool: "kept", Queue: "teams", Retries: draw.IntN(3), Policy: "reserved"},
			{Name: "patient", Pool: "kept", Retries: 6, Policy: "reserved"},
		},
	}
	for i := range c.Jobs {
		j := &c.Jobs[i]
		j.Secret = fmt.Sprintf("hf_%016x", draw.Uint64())
		if !j.Crew.Absent {
			j.Directory = "gs://checkpoints/jobs/" + j.Name
		}
		j.Trainer.Step, j.Trainer.CheckpointEvery = int64(1000+draw.IntN(50_000)), int64(90+draw.IntN(180))
		j.Crew.ReportEvery = world.Duration(5 * time.Minute)
	}
	return c
}
