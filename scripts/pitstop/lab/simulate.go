package lab

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/oracle"
	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/scripts/trail"
	"pitstop.internal/shared/policy"
)

// SimulateOptions are the flags of simulate.
type SimulateOptions struct {
	Seed    uint64
	Seeds   uint64
	Days    float64
	Slices  int
	jobs    bool
	least   int
	Faults  string
	fleet   []string
	policy  string
	allow   cli.AllowFlag
	rates   string
	traces  []string
	fixture string
	save    string
	asJSON  bool
	sum     bool
	wire    bool
	// now is the clock by which progress is shown.
	now func() time.Time
	comparing
}

// wireHelp is the help of --wire.
const wireHelp = "call the simulated Cloud TPU API through Google's clients, over HTTP and by gRPC, as a deployment calls the real one; the run is the\n" +
	"same, and takes longer"

// longest is how many days a simulation has at most.
const longest = 3650

func simulateCommand() *cobra.Command {
	o := SimulateOptions{now: time.Now}
	slices, all := faults.Causes()
	jobs := faults.JobCauses()
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Run a fleet against failures in virtual time, and hold Pitstop to its rules",
		Long: "Run a fleet for many days of virtual time against everything that happens to TPUs, to the cloud and to Pitstop itself, all\n" +
			"drawn from one seed. Report the interruptions, how each ended, how fast and at what cost, and which rule was broken.\n\n" +
			"The same seed makes the same run. For a violation it prints the shortest run that still shows it, and the timeline of its\n" +
			"workload. Exit code 1 means that a rule was broken. Ctrl-C ends a run early: it prints the report so far and exits with 130.\n\n" +
			"A file of rates (YAML) says how often things happen:\n\n" +
			"  unnamed: none              # causes that are not named do not happen; without this line they do, as built in\n" +
			"  causes:\n" +
			"    preempted: 1.2           # times per slice and day\n" +
			"    host_error_repaired: {spot: 0.1, other: 0.2}\n" +
			"    stockout: 2              # of what concerns no single slice, times per day\n\n" +
			"A trace lists when each cause happens; a cause that it lists is not drawn as well. It is CSV with the header\n" +
			"seconds,slice,cause or seconds,slice,cause,minutes. The slice is a name, or * for one that is drawn; of a stockout it is a\n" +
			"zone or *, with a capacity or an accelerator type after it where it is of these alone. Minutes is how long it lasts, where it has a\n" +
			"length.\n\n" +
			"Causes: " + strings.Join(slices, ", ") + ";\nof Jobs in clusters: " + strings.Join(jobs, ", ") + ";\nof no single slice: " + strings.Join(all, ", ") + ".",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.fixture != "" {
				for _, other := range []string{"seed", "seeds", "days", "slices", "jobs", "incidents", "faults", "fleet", "policy", "allow", "rates", "trace", "save-fixture"} {
					if c.Flags().Changed(other) {
						return cli.Usage("--fixture says everything about a run; leave out --%s", other)
					}
				}
			}
			if err := o.excludes(c, "fixture", "save-fixture", "sum"); err != nil {
				return err
			}
			return simulate(c.Context(), o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.Uint64Var(&o.Seed, "seed", 1, "the seed, or the first of several")
	f.Uint64Var(&o.Seeds, "seeds", 1, "how many seeds to run; more than one is reported as a whole")
	f.Float64Var(&o.Days, "days", 60, "how many days pass")
	f.IntVar(&o.Slices, "slices", 0, "how many slices of the fleet each seed draws; the others of their workloads come too; 0 takes all")
	f.BoolVar(&o.jobs, "jobs", false, "put a cluster of GKE with Jobs of every sort beside the fleet")
	f.IntVar(&o.least, "incidents", 0,
		"how many incidents a seed has at least: one that opens fewer is run again for twice as long, 3650 days at most")
	f.StringVar(&o.Faults, "faults", "light", "what goes wrong with the machinery beside the fleet's own troubles: none, light, heavy, or hostile, which strikes in the middle of incidents too")
	f.StringArrayVar(&o.fleet, "fleet", nil, "your TPUs: one YAML file with project, fleet and capacity, as in the scenarios of events/testdata, or\n"+
		"JSON from gcloud compute tpus tpu-vm list, tpus list or queued-resources list, once for each file; without it a mixed fleet")
	f.StringVar(&o.policy, "policy", "", "the policy file; without it the mixed fleet's")
	o.allow.AddTo(c)
	f.StringVar(&o.rates, "rates", "", "a YAML file that says how often things happen, as above; without it the built-in rates")
	f.StringArrayVar(&o.traces, "trace", nil, "a file that tells what happens when, as above; may be given several times")
	f.StringVar(&o.save, "save-fixture", "", "when a rule is broken, write the shortest run that breaks it to this folder")
	f.StringVar(&o.fixture, "fixture", "", "run again what --save-fixture wrote to this folder; exit code 0 when the rule holds now")
	f.BoolVar(&o.wire, "wire", false, wireHelp)
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object per seed")
	f.BoolVar(&o.sum, "sum", false, "with --json, print one object for all seeds")
	o.flags(c)
	return c
}

func simulate(ctx context.Context, o SimulateOptions, out, errOut io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	fixture, sims, err := o.load(errOut)
	if err != nil {
		return err
	}
	// A simulation makes much garbage and needs little memory.
	debug.SetGCPercent(800)
	if o.trail || o.against != "" {
		return o.compared(ctx, sims, out, errOut)
	}
	began := o.now()
	var reports []*oracle.Result
	m := terminal.NewMeter(errOut, o.now)
	err = simulateAll(ctx, sims, o.least, runtime.GOMAXPROCS(0), m, func(runs []*oracle.Result) error {
		reports = append(reports, runs[len(runs)-1])
		return nil
	})
	m.Clear()
	interrupted := err != nil && ctx.Err() != nil
	switch {
	case interrupted && len(reports) == 0:
		terminal.Print(errOut, "pitstop: interrupted before the first day had passed; there is nothing to report")
		return cli.ErrInterrupted
	case err != nil && !interrupted:
		return err
	}
	p := simulationPrinter{newStoryPrinter(out, false)}
	switch {
	case o.asJSON:
		if err := o.printJSON(reports, out); err != nil {
			return err
		}
	case fixture != nil:
		p.result(oracle.Sum(reports), sims[0], "fixture "+o.fixture, o.now().Sub(began))
	default:
		p.result(oracle.Sum(reports), sims[0], "faults "+o.Faults, o.now().Sub(began))
	}
	if interrupted {
		terminal.Print(errOut, "pitstop: "+interruption(reports, len(sims)))
		return cli.ErrInterrupted
	}
	i := slices.IndexFunc(reports, func(r *oracle.Result) bool { return len(r.Violations) > 0 })
	switch {
	case i >= 0:
		return o.shrink(ctx, sims[i], reports[i], fixture, p, errOut)
	case o.save != "":
		terminal.Print(errOut, "pitstop: no rule was broken; --save-fixture has written nothing")
	case fixture != nil && fixture.Rule != "" && !o.asJSON:
		terminal.Print(out, "the rule that was broken holds now: "+fixture.Rule+", "+fixture.Text)
	}
	return nil
}

// load is the simulation of a fixture, or those of the flags.
func (o SimulateOptions) load(errOut io.Writer) (fixture *sim.Fixture, sims []sim.Simulation, err error) {
	if o.fixture != "" {
		f, err := sim.LoadFixture(o.fixture)
		if err != nil {
			return nil, nil, cli.WrongUsage(err)
		}
		fixture, sims = &f, []sim.Simulation{f.Simulation}
	} else if sims, err = o.Simulations(errOut); err != nil {
		return nil, nil, err
	}
	for i := range sims {
		sims[i].Wire = o.wire
	}
	for _, t := range sims[0].Traces {
		if lasts := t.Lasts.Hours() / 24; lasts < sims[0].Days {
			terminal.Print(errOut, fmt.Sprintf("pitstop: %s ends after %.1f of %g days; its causes do not happen from then on", t.Name, lasts, sims[0].Days))
		}
	}
	return fixture, sims, nil
}

// printJSON prints one object per report, or one for all.
func (o SimulateOptions) printJSON(reports []*oracle.Result, out io.Writer) error {
	if o.sum {
		reports = []*oracle.Result{oracle.Sum(reports)}
	}
	for _, r := range reports {
		if err := terminal.PrintJSON(out, r); err != nil {
			return err
		}
	}
	return nil
}

// shrink looks for the shortest run that breaks a rule, prints it and saves it as the flags say. It always fails.
func (o SimulateOptions) shrink(
	ctx context.Context, one sim.Simulation, broken *oracle.Result, fixture *sim.Fixture, p simulationPrinter, errOut io.Writer,
) error {
	if fixture != nil && !fixture.Breaks(broken) {
		terminal.Print(errOut, fmt.Sprintf("pitstop: the fixture breaks %q, not %q as it did", broken.Violations[0].Rule, fixture.Rule))
	}
	if o.asJSON && o.save == "" {
		return cli.ErrFailed
	}
	terminal.Print(errOut, "pitstop: a rule was broken; looking for the shortest run that breaks it")
	shortest, err := sim.Shrink(ctx, one, broken)
	if err != nil {
		return err
	}
	if !o.asJSON {
		p.violation(shortest, broken.Faults, 30)
	}
	if o.save != "" {
		if err := SaveFixture(o.save, one, shortest, broken.Faults); err != nil {
			return err
		}
		terminal.Print(errOut, fmt.Sprintf("pitstop: written to %s; run it again with simulate --fixture %s", o.save, o.save))
	}
	return cli.ErrFailed
}

// interruption says what the reports of an interrupted run hold.
func interruption(reports []*oracle.Result, seeds int) string {
	whole := 0
	last := reports[len(reports)-1]
	for _, r := range reports {
		if !r.Interrupted {
			whole++
		}
	}
	if seeds == 1 && whole == 1 {
		const text = "interrupted in a longer run, which --incidents asks for; the report covers the last complete one, of %s"
		return fmt.Sprintf(text, dayText(last.Days))
	}
	if seeds == 1 {
		const text = "interrupted after %s; the report covers these, and counts no end of an incident that was still open"
		return fmt.Sprintf(text, dayText(last.Days))
	}
	const text = "interrupted: of %s, %d ran to their end and %d as far as they came; the report covers both"
	return fmt.Sprintf(text, terminal.Count(seeds, "seed"), whole, len(reports)-whole)
}

// dayText is a number of days.
func dayText(n float64) string {
	n = math.Round(100*n) / 100
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%g days", n)
}

// SaveFixture writes the shortest run that still breaks a rule.
func SaveFixture(dir string, one sim.Simulation, short *oracle.Result, faults int) error {
	v := short.Violations[0]
	one.Limit = v.Faults
	var story bytes.Buffer
	simulationPrinter{newStoryPrinter(&story, false)}.violation(short, faults, len(short.Told))
	return sim.Fixture{Simulation: one, Rule: v.Rule, Workload: v.Workload, Text: v.Text}.Save(dir, story.Bytes())
}

// check refuses what cannot be run.
func (o SimulateOptions) check() error {
	switch {
	case o.Days <= 0 || o.Days > longest || o.Days != o.Days:
		return cli.Usage("--days %v: it has to be more than 0 and at most %d", o.Days, longest)
	case o.Seeds == 0:
		return cli.Usage("--seeds 0: at least one is needed")
	case o.Seed+o.Seeds < o.Seed:
		return cli.Usage("--seed %d --seeds %d: there are not that many seeds", o.Seed, o.Seeds)
	case o.Slices < 0:
		return cli.Usage("--slices %d: it has to be 0, for all, or more", o.Slices)
	case o.least < 0 || o.least > 1000:
		return cli.Usage("--incidents %d: it has to be from 0 to 1000", o.least)
	case o.sum && !o.asJSON:
		return cli.Usage("--sum goes with --json; people get the sum anyway")
	}
	if o.save != "" {
		switch files, err := os.ReadDir(o.save); {
		case err == nil && len(files) > 0:
			return cli.Usage("--save-fixture %s: there is something in it; name a folder that is empty or not there", o.save)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return cli.Usage("--save-fixture: %w", err)
		}
	}
	return nil
}

// Simulations are what the options ask for, one for each seed.
func (o SimulateOptions) Simulations(errOut io.Writer) ([]sim.Simulation, error) {
	faults, err := faults.Named(o.Faults)
	if err != nil {
		return nil, cli.Usage("--faults: %w", err)
	}
	setting := sim.Setting{Days: o.Days, Slices: o.Slices, Jobs: o.jobs, Faults: faults}
	if len(o.fleet) > 0 {
		fleet, err := readFleet(o.fleet)
		if err != nil {
			return nil, err
		}
		if len(fleet.Fleet)+len(fleet.Clusters) == 0 {
			return nil, cli.Usage("--fleet %s: it names no slice", o.fleet[0])
		}
		fleet, assumed := fleet.Provided()
		for _, text := range assumed {
			terminal.Print(errOut, "pitstop: assumed: "+text)
		}
		setting.Fleet = &fleet
	}
	if o.policy != "" {
		if setting.Policy, err = os.ReadFile(o.policy); err != nil {
			return nil, cli.Usage("--policy: %w", err)
		}
		if _, err := policy.Parse(setting.Policy); err != nil {
			return nil, cli.Usage("--policy %s: %w", o.policy, err)
		}
	}
	if setting.Allow, err = o.allow.Switches(); err != nil {
		return nil, err
	}
	if setting.Rates, err = o.ownRates(); err != nil {
		return nil, err
	}
	if setting.Traces, err = o.ownTraces(); err != nil {
		return nil, err
	}
	var sims []sim.Simulation
	for seed := o.Seed; seed < o.Seed+o.Seeds; seed++ {
		one, err := setting.Simulation(seed)
		if err != nil {
			return nil, cli.Usage("--trace %w", err)
		}
		sims = append(sims, one)
	}
	return sims, nil
}

func (o SimulateOptions) ownRates() (faults.Rates, error) {
	if o.rates == "" {
		return faults.Rates{}, nil
	}
	data, err := os.ReadFile(o.rates)
	if err != nil {
		return faults.Rates{}, cli.Usage("--rates: %w", err)
	}
	rates, err := faults.ParseRates(data)
	if err != nil {
		return faults.Rates{}, cli.Usage("--rates %s: %w", o.rates, err)
	}
	return rates, nil
}

func (o SimulateOptions) ownTraces() (traces []faults.Trace, err error) {
	for _, name := range o.traces {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, cli.Usage("--trace: %w", err)
		}
		t, err := faults.ParseTrace(name, data)
		if err != nil {
			return nil, cli.Usage("--trace %w", err)
		}
		traces = append(traces, t)
	}
	return traces, nil
}

// readFleet reads the files of a fleet.
func readFleet(names []string) (world.Scenario, error) {
	var files []replay.File
	for _, name := range names {
		f, err := entries.OpenFile(name)
		if err != nil {
			return world.Scenario{}, cli.Usage("--fleet: %w", err)
		}
		data, err := io.ReadAll(entries.InUTF8(f))
		_ = f.Close() //nolint:errcheck // it was only read
		if err != nil {
			return world.Scenario{}, cli.Usage("--fleet %s: %w", name, err)
		}
		files = append(files, replay.File{Name: name, Data: data})
	}
	s, err := replay.FleetFiles(files)
	if err != nil {
		return s, cli.Usage("--fleet %w", err)
	}
	return s, nil
}

// compared prints the trails of simulations, or compares them with those of another build.
func (o SimulateOptions) compared(ctx context.Context, sims []sim.Simulation, out, errOut io.Writer) error {
	for i := range sims {
		sims[i].Trail = true
	}
	errOut = &oneAtATime{w: errOut}
	run := func(ctx context.Context, workers int, add func(*trail.Trail) error) error {
		m := terminal.NewMeter(errOut, o.now)
		defer m.Clear()
		return simulateAll(ctx, sims, o.least, workers, m, func(runs []*oracle.Result) error {
			for _, r := range runs {
				if err := add(r.Story.Trail); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if o.trail {
		return run(ctx, runtime.GOMAXPROCS(0), func(t *trail.Trail) error { return trail.Write(out, *t) })
	}
	p := &againstPrinter{terminal.NewPrinter(out, o.asJSON), "seed"}
	return o.compare(ctx, o.args(), p, errOut, func(ctx context.Context, add func(*trail.Trail) error) error {
		return run(ctx, besides(), add)
	})
}

// args are the arguments with which another build runs the same simulations.
func (o SimulateOptions) args() []string {
	args := []string{
		"simulate", fmt.Sprintf("--seed=%d", o.Seed), fmt.Sprintf("--seeds=%d", o.Seeds), fmt.Sprintf("--days=%v", o.Days),
		fmt.Sprintf("--slices=%d", o.Slices), fmt.Sprintf("--incidents=%d", o.least), "--faults=" + o.Faults,
	}
	if o.jobs { // a build that knows no Jobs can still be compared without them
		args = append(args, "--jobs")
	}
	for _, file := range []struct{ flag, name string }{{"policy", o.policy}, {"rates", o.rates}} {
		if file.name != "" {
			args = append(args, "--"+file.flag+"="+file.name)
		}
	}
	for _, name := range o.fleet {
		args = append(args, "--fleet="+name)
	}
	for _, name := range o.traces {
		args = append(args, "--trace="+name)
	}
	return append(args, o.allow.Args()...)
}

// simulateAll runs simulations, so many at a time, and gives the reports of each to done, in their order. Those with fewer incidents
// than wanted are run again for longer, and have a report for each time; sims then says for how long. When the context ends, done gets
// what there is of each simulation that has begun, and simulateAll returns an error. Of one that was run again that are its complete
// runs: the last, partial one may be shorter than they are.
func simulateAll(
	ctx context.Context, sims []sim.Simulation, least, workers int, m *terminal.Meter, done func(runs []*oracle.Result) error,
) error {
	interrupted := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	passed := newPassed(sims, m)
	var mu sync.Mutex
	var failed error
	waiting, turn := map[int][]*oracle.Result{}, 0
	ended := func(i int, runs []*oracle.Result, err error) {
		mu.Lock()
		defer mu.Unlock()
		if runs[len(runs)-1] != nil {
			waiting[i] = runs
		}
		for ; err == nil && failed == nil && waiting[turn] != nil; turn++ {
			err = done(waiting[turn])
			delete(waiting, turn)
		}
		if err != nil && failed == nil {
			failed = err
			stop()
		}
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, len(sims)) {
		wg.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					continue
				}
				one := sims[i]
				days := one.Days // of the last complete run
				meter := passed.run(one.Days)
				one.Passed = meter.at
				r, err := sim.Simulate(ctx, one)
				runs := []*oracle.Result{r}
				for err == nil && r.Incidents < least && len(r.Violations) == 0 && one.Days < longest {
					days = one.Days
					one.Days = min(2*one.Days, longest)
					sims[i].Days = one.Days
					meter.again(one.Days)
					if r, err = sim.Simulate(ctx, one); err == nil {
						runs = append(runs, r)
					}
				}
				if err != nil {
					sims[i].Days = days
				}
				ended(i, runs, err)
			}
		})
	}
	for i := range sims {
		next <- i
	}
	close(next)
	wg.Wait()
	if interrupted.Err() == nil {
		return failed
	}
	for _, i := range slices.Sorted(maps.Keys(waiting)) {
		if err := done(waiting[i]); err != nil {
			return err
		}
	}
	return interrupted.Err()
}

// passed counts the days of all simulations for a meter.
type passed struct {
	m *terminal.Meter

	mu sync.Mutex
	// days are those of all runs, as far as they are known: of runs that have to be repeated, the next ones come on top.
	days, done float64
	incidents  int
}

func newPassed(sims []sim.Simulation, m *terminal.Meter) *passed {
	return &passed{m: m, days: float64(len(sims)) * sims[0].Days}
}

// run counts those of one simulation.
func (p *passed) run(days float64) *passedRun { return &passedRun{of: p, days: days} }

// passedRun is what has passed of one run of a simulation.
type passedRun struct {
	of         *passed
	days, done float64
	incidents  int
}

// again notes that the run has ended, and that another one of so many days takes its place. Its incidents count anew.
func (r *passedRun) again(days float64) {
	p := r.of
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += r.days - r.done
	p.days += days
	p.incidents -= r.incidents
	r.days, r.done, r.incidents = days, 0, 0
}

// at notes how much time has passed in a run, and how many incidents have opened in it.
func (r *passedRun) at(passed time.Duration, incidents int) {
	p, done := r.of, passed.Hours()/24
	p.mu.Lock()
	p.done += done - r.done
	p.incidents += incidents - r.incidents
	r.done, r.incidents = done, incidents
	done, of, opened := p.done, p.days, p.incidents
	p.mu.Unlock()
	share := math.Round(done/of*1e6) / 1e6 // exactly 1 at the end, where nobody knows how long settling takes
	p.m.Show(share, []string{daysOf(done, of) + " simulated days", countOf(opened, "incident")}, done, "days")
}

// daysOf is how many days of how many have passed. Parts of them count where they are few.
func daysOf(done, of float64) string {
	if of < 10 {
		return fmt.Sprintf("%.2f of %g", done, math.Round(100*of)/100)
	}
	return events.Number(int64(done)) + " of " + events.Number(int64(math.Ceil(of)))
}

// countOf is a count that may be large.
func countOf(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return events.Number(int64(n)) + " " + word + "s"
}

// simulationPrinter tells people what simulations came to.
type simulationPrinter struct{ *storyPrinter }

func (p simulationPrinter) result(r *oracle.Result, one sim.Simulation, faults string, took time.Duration) {
	what := fmt.Sprintf("seed %d", r.Seed)
	if r.Seeds > 1 {
		what = fmt.Sprintf("seeds %d to %d", r.Seed, r.Seed+uint64(r.Seeds)-1)
	}
	days := dayText(r.Days)
	terminal.Print(p.Out, p.Paint(terminal.Bold, fmt.Sprintf("%s · %s of %s · %s", what, days, fleetText(one.World), faults)))
	terminal.Print(p.Out, fmt.Sprintf("%s faults and troubles, %s messages handled, in %.1f s\n", events.Number(int64(r.Faults)), events.Number(int64(r.Handled)), took.Seconds()))

	p.policies(one)
	p.table("what happened to the fleet", r.Happened)
	p.table("incidents by cause", r.Causes)
	p.table("how they ended", r.Ended)
	p.table("what confirmed the resumed", r.Confirmed)
	p.ends(r.Ends)
	p.stages(r.Reaction)
	p.table("calls that changed something", r.Actions)
	p.coverage("classes of errors of the TPU API", r.ErrorClasses, r.ErrorClassesMissing)
	p.coverage("phases and ends of incidents", r.Reached, r.ReachedMissing)
	p.lost(r)
	terminal.Print(p.Out, fmt.Sprintf("the brake held %s calls", events.Number(int64(r.Braked))))
	if n := len(r.Violations); n > 0 {
		terminal.Print(p.Out, p.Paint(terminal.Red, fmt.Sprintf("violations: %d", n)))
	} else {
		terminal.Print(p.Out, p.Paint(terminal.Green, "violations: none"))
	}
}

// fleetText counts what is in a fleet.
func fleetText(s world.Scenario) string {
	jobs := 0
	for _, c := range s.Clusters {
		jobs += len(c.Jobs)
	}
	slices := terminal.Count(len(s.Fleet), "slice")
	if jobs == 0 {
		return slices
	}
	return slices + " and " + terminal.Count(jobs, "Job")
}

// policies tells what the owners of the fleet allow, and what limits it.
func (p simulationPrinter) policies(one sim.Simulation) {
	f, err := policy.Parse(one.Policy)
	if err != nil {
		return // what runs under it says so
	}
	used := map[string]int{}
	for _, s := range one.World.Fleet {
		used[s.Policy]++
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, "what is allowed at the start"))
	for _, label := range slices.Sorted(maps.Keys(used)) {
		chosen := f.For(label, cli.Ceiling(one.Allow))
		name := label
		if label == "" {
			name = "no label"
		}
		for i, line := range terminal.Wrap(cli.LimitsText(chosen.Switches, chosen.Limits), p.Width()-4) {
			if i == 0 {
				terminal.Print(p.Out, fmt.Sprintf("  %s (%s)", name, terminal.Count(used[label], "slice")))
			}
			terminal.Print(p.Out, "    "+line)
		}
	}
	terminal.Print(p.Out, "")
}

// coverage tells what of all that there is was met, and what was not.
func (p simulationPrinter) coverage(of string, counts map[string]int, missing []string) {
	var met []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		met = append(met, fmt.Sprintf("%s (%s)", name, events.Number(int64(counts[name]))))
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, fmt.Sprintf("%s: %d of %d met", of, len(met), len(met)+len(missing))))
	for _, line := range []struct{ title, text string }{{"met", strings.Join(met, ", ")}, {"NOT met", strings.Join(missing, ", ")}} {
		if line.text != "" {
			terminal.Print(p.Out, fmt.Sprintf("  %s: %s", line.title, strings.ReplaceAll(line.text, "_", " ")))
		}
	}
	terminal.Print(p.Out, "")
}

func (p simulationPrinter) table(title string, counts map[string]int) {
	if len(counts) == 0 {
		return
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, title))
	t := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, k := range byCount(counts) {
		_, _ = fmt.Fprintf(t, "  %s\t  %s\n", events.Number(int64(counts[k])), strings.ReplaceAll(k, "_", " ")) //nolint:errcheck // Flush tells
	}
	if err := t.Flush(); err == nil {
		terminal.Print(p.Out, "")
	}
}

// ends prints how incidents ended, by the cause that came last.
func (p simulationPrinter) ends(ends map[string]map[string]int) {
	if len(ends) == 0 {
		return
	}
	sum := map[string]int{}
	for trouble, how := range ends {
		for _, n := range how {
			sum[trouble] += n
		}
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, "the last cause before an incident, and how it ended"))
	for _, trouble := range byCount(sum) {
		var parts []string
		for _, how := range byCount(ends[trouble]) {
			parts = append(parts, strings.ReplaceAll(how, "_", " ")+" "+events.Number(int64(ends[trouble][how])))
		}
		terminal.Print(p.Out, "  "+trouble)
		for _, line := range terminal.Wrap(strings.Join(parts, ", "), p.Width()-6) {
			terminal.Print(p.Out, "      "+line)
		}
	}
	terminal.Print(p.Out, "")
}

// byCount are the keys of counts, the greatest first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}

// The stages of a reaction, in their order.
var stages = []struct{ name, text string }{
	{"evidence_to_decision", "evidence -> decision"},
	{"decision_to_call", "decision -> call of the TPU API"},
	{"call_to_ready", "call -> TPU ready"},
	{"ready_to_progress", "ready -> progress confirmed"},
}

func (p simulationPrinter) stages(reaction map[string]oracle.Percentiles) {
	terminal.Print(p.Out, p.Paint(terminal.Bold, "reaction"))
	t := tabwriter.NewWriter(p.Out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(t, "  stage\tp50\tp95\tp99\tcount") //nolint:errcheck // Flush tells
	for _, s := range stages {
		if q, ok := reaction[s.name]; ok {
			_, _ = fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", s.text, seconds(q.P50), seconds(q.P95), seconds(q.P99), events.Number(int64(q.Count))) //nolint:errcheck // Flush tells
		}
	}
	if err := t.Flush(); err == nil {
		terminal.Print(p.Out, "")
	}
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}

func (p simulationPrinter) lost(r *oracle.Result) {
	terminal.Print(p.Out, p.Paint(terminal.Bold, "training"))
	terminal.Print(p.Out, fmt.Sprintf("  goodput %.1f %%; %.0f of %.0f chip-hours lost", 100*r.Goodput, r.ChipHours.Lost, r.ChipHours.Total))
	for _, capacity := range slices.Sorted(maps.Keys(r.ChipHours.Used)) {
		terminal.Print(p.Out, fmt.Sprintf("  %8.0f chip-hours in which TPUs could be used: %s", r.ChipHours.Used[capacity], strings.ReplaceAll(capacity, "_", " ")))
	}
	for _, cause := range slices.Sorted(maps.Keys(r.LostHours)) {
		terminal.Print(p.Out, fmt.Sprintf("  %6.1f h without training: %s", r.LostHours[cause], strings.ReplaceAll(cause, "_", " ")))
	}
	terminal.Print(p.Out, "")
	p.away(r.Away)
}

// away holds the time without training that incidents tell against that of the simulated world.
func (p simulationPrinter) away(a oracle.Away) {
	if a.Incidents == 0 {
		return
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, "time without training, as incidents tell it and as it was"))
	terminal.Print(p.Out, fmt.Sprintf("  told %.1f h and %.0f chip-hours; in the world %.1f h and %.0f chip-hours, with the steps done again",
		a.ToldHours, a.ToldChipHours, a.WorldHours, a.WorldChipHours))
	share := func(n int) float64 { return 100 * float64(n) / float64(a.Incidents) }
	terminal.Print(p.Out, fmt.Sprintf("  %.1f %% tell the time to a minute and 1 %%, %.1f %% the chip-hours; %.1f %% tell no more than a bound",
		share(a.Right), share(a.RightCost), share(a.AtLeast)))
	for _, off := range []struct {
		what string
		by   oracle.Percentiles
	}{{"long", a.TooLong}, {"short", a.TooShort}} {
		if off.by.Count > 0 {
			terminal.Print(p.Out, fmt.Sprintf("  %s told too %s, by %s (p50), %s (p95), %s (p99)", terminal.Count(off.by.Count, "incident"), off.what,
				seconds(off.by.P50), seconds(off.by.P95), seconds(off.by.P99)))
		}
	}
	terminal.Print(p.Out, fmt.Sprintf("  the worst: %s, %s, told %s, in the world %s", a.Worst.Incident, strings.ReplaceAll(string(a.Worst.Cause), "_", " "),
		seconds(a.Worst.ToldSeconds), seconds(a.Worst.WorldSeconds)))
	terminal.Print(p.Out, "")
}

// violation tells of a broken rule: the shortest run that still breaks one, the last of its faults, and the timeline.
func (p simulationPrinter) violation(short *oracle.Result, faults, most int) {
	v := short.Violations[0]
	terminal.Print(p.Out, "")
	terminal.Print(p.Out, p.Paint(terminal.Red, fmt.Sprintf("seed %d breaks a rule, with the first %d of %d faults and troubles alone:", short.Seed, v.Faults, faults)))
	terminal.Print(p.Out, fmt.Sprintf("  %s  %s  %s: %s\n", v.At.Format("Jan 2 15:04:05"), v.Rule, v.Workload, v.Text))
	terminal.Print(p.Out, p.Paint(terminal.Bold, "the last faults and troubles"))
	for _, f := range short.Told[max(0, len(short.Told)-most):] {
		terminal.Print(p.Out, "  "+f)
	}
	terminal.Print(p.Out, "")
	terminal.Print(p.Out, p.Paint(terminal.Bold, "the timeline of "+v.Workload))
	var lines []world.Line
	for _, l := range short.Story.Lines {
		if l.Workload == v.Workload && !l.Time.After(v.At) && !l.Routine {
			lines = append(lines, l)
		}
	}
	p.lines(lines[max(0, len(lines)-80):])
}
