// Package sim runs the whole pipeline for many days of a fleet, with everything that happens to it and to Pitstop drawn from one seed.
// It puts a world, the faults in it, and its judge together.
package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/oracle"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/scripts/trail"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

// Simulation is a fleet over many days, with everything that happens to it and to Pitstop drawn from one seed: the same
// seed makes the same run.
type Simulation struct {
	Seed uint64
	Days float64
	// World is the fleet and the capacity; MixedFleet makes one.
	World  world.Scenario
	Policy []byte
	// Allow is what the deployment allows, above all policies; nil takes nothing away.
	Allow  *policy.Switches
	Faults faults.Faults
	// Rates are how often drawn events happen to the fleet, Traces are events that happen instead of drawn ones.
	Rates  faults.Rates
	Traces []faults.Trace
	// Limit is how many faults and troubles happen at most; the shortest run that still fails is found by it.
	Limit int
	// Passed gets, every few minutes of virtual time, how much of it has passed
	// and how many incidents have opened so far; at the end, while everything settles, Days stay the time that has passed. Both may be
	// nil, and neither changes what happens.
	Passed func(passed time.Duration, incidents int)
	// Lines keeps the story, which takes a while.
	Lines bool
	// Trail records the actions, for a comparison with another build.
	Trail bool
	// Wire takes the calls of the TPU API through its clients, over HTTP and by gRPC. The run is the same.
	Wire bool
	// Hooks are what hangs in the world beside its faults and its judge: where the pipeline is broken on purpose, or watched.
	Hooks world.Hooks
	// UntilBroken ends the run with the first rule that is broken: what follows from that proves nothing.
	UntilBroken bool
}

// NoLimit has everything happen that is drawn.
const NoLimit = math.MaxInt

// passesEvery is how much virtual time is between two calls of Passed: a day can take many seconds, and people wait.
const passesEvery = 10 * time.Minute

// settleFor is how long a simulation goes on when nothing new goes wrong any more: everything has to end by then.
const settleFor = 6 * 24 * time.Hour

// Simulate runs a simulation to its end. When the context ends before, it returns that error and a report of the time until then.
func Simulate(ctx context.Context, sim Simulation) (*oracle.Result, error) {
	w, err := sim.world(ctx)
	if err != nil {
		return nil, err
	}
	return w.simulate(ctx)
}

// draws are what its troubles are drawn from.
func (sim Simulation) draws() faults.Draws {
	return faults.Draws{Seed: sim.Seed, Policy: sim.Policy, Faults: sim.Faults, Rates: sim.Rates, Traces: sim.Traces}
}

// simulated is a simulation under way: a world, the faults in it, and its judge.
type simulated struct {
	*world.World
	sim      Simulation
	chaos    *faults.Chaos
	releases *faults.Releases
	checks   *oracle.Checks
}

// world is that of a simulation, before anything has happened in it.
func (sim Simulation) world(ctx context.Context) (*simulated, error) {
	if sim.World.Start.IsZero() {
		sim.World.Start = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	}
	read := &reader{}
	var log io.Writer
	if len(sim.World.Clusters) > 0 {
		log = read
	}
	w := world.New(fmt.Sprintf("seed %d", sim.Seed), sim.World, world.Options{
		Log: log, Policy: sim.Policy, Allow: sim.Allow, Trail: sim.Trail, Wire: sim.Wire, Hooks: sim.Hooks,
		Mute: !sim.Lines, Unnotified: true, Mingled: sim.Seed%2 == 1,
		Limits: ledger.Limits{Project: 4, Zone: 2}, // so small that they are met
	})
	s := &simulated{World: w, sim: sim, chaos: faults.NewChaos(w.Clock, sim.Faults, sim.Seed, sim.Limit), releases: faults.NewReleases()}
	s.checks = oracle.New(w, s.chaos, s.releases)
	read.Checks = s.checks
	s.chaos.Attach(w, s.releases, s.checks)
	s.checks.Attach()
	return s, w.Found(ctx)
}

// reader has the judge read what functions log. It is there before the judge.
type reader struct{ *oracle.Checks }

func (w *simulated) simulate(ctx context.Context) (_ *oracle.Result, err error) {
	sim := w.sim
	t := faults.NewTroubles(w.World, w.chaos, w.releases, w.checks, sim.draws())
	t.Plan()
	defer w.Clock.Close()
	defer func() { err = errors.Join(err, w.Close()) }()
	people := faults.NewPeople(t)
	people.Plan()
	faults.NewOperators(t).Plan()
	m := faults.NewMarksman(t)
	w.checks.Entered, w.checks.Asked = m.Entered, m.Asked
	w.Tick(w.Start.Truncate(time.Minute).Add(time.Minute))
	end := w.Start.Add(time.Duration(sim.Days * float64(24*time.Hour)))
	var told time.Time
	passing := func() bool {
		if now := w.Clock.Now(); sim.Passed != nil && now.Sub(told) >= passesEvery {
			told = now
			sim.Passed(min(now.Sub(w.Start), end.Sub(w.Start)), w.checks.Incidents)
		}
		return false
	}
	if err := w.until(ctx, end, passing); err != nil {
		return w.interrupted(ctx), err
	}
	// Two builds may need different times to settle, but this moment is the same for both.
	if err := w.ReadDocuments(); err != nil {
		return nil, err
	}
	t.Calm()
	w.checks.Measure(end)
	settled := func() bool { return passing() || w.Settled() && people.Pleased.After(end) }
	if err := w.until(ctx, end.Add(settleFor), settled); err != nil {
		r := w.checks.Result(sim.Seed, sim.Days)
		r.Interrupted = true
		return r, err
	}
	if !people.Pleased.After(end) {
		for _, name := range people.Missed {
			w.checks.Violated("training goes on", w.checks.Workload(name), "%s does not train again in %s, whatever its owner does", name, events.Span(settleFor))
		}
	}
	w.checks.Finally()
	r := w.checks.Result(sim.Seed, sim.Days)
	var broken []trail.Broken
	for _, v := range r.Violations {
		broken = append(broken, trail.Broken{Rule: v.Rule, Workload: v.Workload, At: v.At, Text: v.Text})
	}
	w.KeepTrail(sim.Days, broken)
	return r, nil
}

// interrupted is the report of a simulation that somebody ended early; nil where nothing has happened yet.
func (w *simulated) interrupted(ctx context.Context) *oracle.Result {
	now := w.Clock.Now()
	days := now.Sub(w.Start).Hours() / 24
	if ctx.Err() == nil || days <= 0 {
		return nil
	}
	w.checks.Measure(now)
	r := w.checks.Result(w.sim.Seed, days)
	r.Interrupted = true
	return r
}

// until runs the world to a time, or until it is done.
func (w *simulated) until(ctx context.Context, end time.Time, done func() bool) error {
	var stopped error
	w.Clock.Run(func() time.Time { return end }, func() bool {
		if stopped = ctx.Err(); stopped != nil || done() || w.checks.Endless {
			return false
		}
		return !w.sim.UntilBroken || len(w.checks.Violations) == 0
	})
	return stopped
}

// Shrink finds the shortest beginning of the faults and troubles of a run with which it still violates a rule.
func Shrink(ctx context.Context, sim Simulation, failed *oracle.Result) (*oracle.Result, error) {
	low, high := 0, failed.Violations[0].Faults
	best := failed
	for low < high {
		mid := (low + high) / 2
		try := sim
		try.Limit = mid
		r, err := Simulate(ctx, try)
		if err != nil {
			return nil, err
		}
		if len(r.Violations) > 0 {
			high, best = min(mid, r.Violations[0].Faults), r
		} else {
			low = mid + 1
		}
	}
	sim.Limit, sim.Lines = high, true
	r, err := Simulate(ctx, sim)
	if err != nil || len(r.Violations) == 0 {
		return best, err
	}
	return r, nil
}

// MixedFleet is a small fleet of everything there is, and the policies for it.
func MixedFleet(seed uint64) (world.Scenario, []byte) {
	draw := faults.NewDice(seed).Of("fleet").Rand()
	zones := []string{"us-west4-a", "us-west4-b", "us-central1-a"}
	shapes := []world.SliceConfig{
		{Name: "llama-8b", Accelerator: "v5litepod-16", Spot: true, Policy: "night"},
		{Name: "gemma-27b", Accelerator: "v5p-32", Policy: "planned"},
		{Name: "mixtral", Accelerator: "v5litepod-32", Spot: true, Policy: "night", QueuedResource: "mixtral-qr"},
		{Name: "t5", Accelerator: "v5litepod-8", Policy: "planned"},
		{Name: "gpt-oss", Accelerator: "v6e-16", Spot: true, Policy: "asking"},
		{Name: "bert", Accelerator: "v5litepod-16", Spot: true, Policy: "night", Crew: world.CrewConfig{Absent: true}},
		{Name: "palm", Accelerator: "v5p-16", Policy: "reserved", Crew: world.CrewConfig{Silent: true}},
		{Name: "dlrm", Accelerator: "v5litepod-16", Spot: true, Policy: "spot", Trainer: world.TrainerConfig{Torn: true}},
		{Name: "watched", Accelerator: "v5litepod-16", Spot: true},
		{Name: "bare", Accelerator: "v5litepod-16", Spot: true, Policy: "night"},
		{Name: "pair-0", Accelerator: "v5litepod-16", Spot: true, Policy: "night", Workload: "pair", Crew: world.CrewConfig{Absent: true}},
		{Name: "pair-1", Accelerator: "v5litepod-16", Spot: true, Policy: "night", Workload: "pair", Crew: world.CrewConfig{Absent: true}},
		// A Multislice in one queued resource: the first slice speaks for all.
		{Name: "trio-0", Accelerator: "v5litepod-16", Spot: true, Policy: "bounded", QueuedResource: "trio"},
		{Name: "trio-1", Accelerator: "v5litepod-16", Spot: true, Policy: "bounded", QueuedResource: "trio", Crew: world.CrewConfig{Absent: true}},
		{Name: "trio-2", Accelerator: "v5litepod-16", Spot: true, Policy: "bounded", QueuedResource: "trio", Crew: world.CrewConfig{Absent: true}},
		// What these name is where they are, and nowhere else.
		{Name: "falcon", Accelerator: "v5p-16", Policy: "planned", Reservation: "block"},
		{Name: "llava", Accelerator: "v5litepod-16", Spot: true, Policy: "night", Disk: "images"},
		{Name: "opt", Accelerator: "v5litepod-16", Spot: true, Policy: "night", Zone: "us-west4-a", Directory: "gs://west/opt"},
		{Name: "mamba", Accelerator: "v5litepod-16", Spot: true, Policy: "roaming", Zone: "us-west4-a", Directory: "gs://west/mamba", Subnetwork: "west"},
		// Its steps take longer than a hang of others is believed to.
		{Name: "grok", Accelerator: "v5litepod-16", Spot: true, Policy: "night", Trainer: world.TrainerConfig{StepTakes: world.Duration(11 * time.Minute), CheckpointEvery: 4}},
		// A slice without capacity may come in another shape; the batch of the last fits no other shape.
		{Name: "phi", Accelerator: "v5litepod-16", Spot: true, Policy: "shrinking", Batch: 1024},
		{Name: "duo-0", Accelerator: "v5litepod-16", Spot: true, Policy: "shrinking", Workload: "duo", Batch: 1024, Crew: world.CrewConfig{Absent: true}},
		{Name: "duo-1", Accelerator: "v5litepod-16", Spot: true, Policy: "shrinking", Workload: "duo", Batch: 1024, Crew: world.CrewConfig{Absent: true}},
		{Name: "rwkv", Accelerator: "v5litepod-16", Spot: true, Policy: "shrinking", Batch: 1000},
		// Legacy TPU Nodes have neither a crew nor a place to name a directory.
		{Name: "resnet", Accelerator: "v3-8", Spot: true, Policy: "night", Legacy: true, Crew: world.CrewConfig{Absent: true}},
		{Name: "mnist", Accelerator: "v2-32", Policy: "planned", Legacy: true, Crew: world.CrewConfig{Absent: true}},
		// Nothing is done to these without a person's yes.
		{Name: "whisper", Accelerator: "v5litepod-8", Policy: "careful"},
		{Name: "twin-0", Accelerator: "v5litepod-16", Policy: "careful", Workload: "twin", Directory: "gs://checkpoints/twin"},
		{Name: "twin-1", Accelerator: "v5litepod-16", Policy: "careful", Workload: "twin", Crew: world.CrewConfig{Absent: true}},
		// Spot slices that stand on demand for a while, in a reservation, or in another shape; and one that is not Spot, and may become it.
		{Name: "qwen", Accelerator: "v5litepod-16", Spot: true, Policy: "standing"},
		{Name: "yi", Accelerator: "v5litepod-16", Spot: true, Policy: "standing", QueuedResource: "yi-qr"},
		{Name: "olmo", Accelerator: "v5litepod-16", Spot: true, Policy: "anything", Batch: 1024},
		{Name: "pythia-0", Accelerator: "v5litepod-16", Spot: true, Policy: "standing", Workload: "pythia", Directory: "gs://checkpoints/pythia"},
		{Name: "pythia-1", Accelerator: "v5litepod-16", Spot: true, Policy: "standing", Workload: "pythia", Crew: world.CrewConfig{Absent: true}},
		{Name: "nemo", Accelerator: "v5litepod-16", Policy: "cheaper"},
	}
	s := world.Scenario{Title: "a mixed fleet", Project: "demo", Capacity: map[string]int{}, Buckets: map[string]string{"west": "us-west4"}}
	for _, z := range zones {
		s.Capacity[z] = -1
	}
	for i, c := range shapes {
		zone := zones[draw.IntN(len(zones))]
		if before := len(s.Fleet) - 1; before >= 0 && c.QueuedResource != "" && s.Fleet[before].QueuedResource == c.QueuedResource {
			zone = s.Fleet[before].Zone
		}
		if c.Zone == "" {
			c.Zone = zone
		}
		c.ID = int64(7000 + i)
		c.Workers = fmt.Sprintf("t1v-n-%08x", draw.Uint32())
		if c.Name != "bare" && !c.Legacy && c.Workload == "" && c.Directory == "" && (c.QueuedResource != "trio" || !c.Crew.Absent) {
			c.Directory = "gs://checkpoints/" + c.Name
		}
		c.Trainer.Step = int64(1000 + draw.IntN(50_000))
		if every := int64(90 + draw.IntN(180)); c.Trainer.CheckpointEvery == 0 {
			c.Trainer.CheckpointEvery = every
		}
		c.Crew.ReportEvery = world.Duration(5 * time.Minute)
		s.Fleet = append(s.Fleet, c)
	}
	return s, []byte(mixedPolicies)
}

const mixedPolicies = `policies:
  night:
    preset: spot
    zones: [us-west4-a, us-west4-b, us-central1-a]
    hang: restart
    chip_hour_price: 1.20
  planned:
    preset: reserved
    switches: {recreate: "yes", recreate_non_spot: "yes"}
    zones: [us-west4-a, us-west4-b]
    lead: 30m
  bounded:
    preset: spot
    zones: [us-west4-a, us-west4-b, us-central1-a]
    give_up_after: 4h
  roaming:
    preset: spot
    zones: [us-central1-a]
    subnetworks: {us-central1: central}
    other_regions: yes
    egress_price: 0.02
  shrinking:
    preset: spot
    zones: [us-west4-a]
    places:
      - {accelerator: v5litepod-8, zones: [us-west4-b]}
      - {accelerator: v6e-8, runtime_version: v2-alpha-tpuv6e, zones: [us-west4-a, us-central1-a]}
  standing:
    preset: spot
    zones: [us-west4-a, us-west4-b]
    leave_zone_for: 90m
    back_to_first: save
    chip_hour_price: 1.20
    places:
      - {capacity: on_demand, after: 1h, chip_hour_price: 3.22}
  anything:
    preset: spot
    zones: [us-central1-a]
    leave_zone_for: 2h
    places:
      - {capacity: reserved, reservation: spare, after: 20m}
      - {capacity: on_demand, zones: [us-west4-b], after: 40m}
      - {accelerator: v5litepod-8, capacity: on_demand, after: 90m}
  cheaper:
    preset: reserved
    switches: {recreate_non_spot: "yes"}
    zones: [us-west4-a, us-west4-b]
    places:
      - {capacity: spot, after: 20m}
  asking:
    preset: spot
    switches: {recreate: ask, restart: ask, early_maintenance: ask}
    give_up_after: 24h
  careful:
    preset: reserved
    switches: {request_checkpoint: ask, early_maintenance: ask, restart: ask, recreate: ask, recreate_non_spot: ask, start_stopped: ask}
    zones: [us-west4-a, us-west4-b]
    lead: 30m
  returning:
    preset: spot
    switches: {recreate_non_spot: "yes", early_maintenance: "yes"}
    hang: restart
`

// Few keeps a part of a fleet, drawn from the seed. The slices of a workload stay together.
func Few(s world.Scenario, seed uint64, n int) world.Scenario {
	draw := faults.NewDice(seed).Of("few").Rand()
	fleet := slices.Clone(s.Fleet)
	draw.Shuffle(len(fleet), func(i, j int) { fleet[i], fleet[j] = fleet[j], fleet[i] })
	fleet = fleet[:min(n, len(fleet))]
	for _, c := range s.Fleet {
		together := func(o world.SliceConfig) bool { return o.WorkloadName() == c.WorkloadName() }
		if slices.ContainsFunc(fleet, together) && !slices.ContainsFunc(fleet, func(o world.SliceConfig) bool { return o.Name == c.Name }) {
			fleet = append(fleet, c)
		}
	}
	s.Fleet = fleet
	slices.SortFunc(s.Fleet, func(a, b world.SliceConfig) int { return cmp.Compare(a.Name, b.Name) })
	return s
}
