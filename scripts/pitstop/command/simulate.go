package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/scenario"
	"pitstop.internal/shared/policy"
)

type simulateOptions struct {
	seed   uint64
	seeds  uint64
	days   float64
	slices int
	faults string
	fleet  string
	policy string
	asJSON bool
}

func simulateCommand() *cobra.Command {
	var o simulateOptions
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Run a fleet against failures in virtual time, and hold Pitstop to its rules",
		Long: "Run a fleet for many days of virtual time against everything that happens to TPUs, to the cloud and to Pitstop itself, all\n" +
			"drawn from one seed, and report what was interrupted, how it ended, how fast, at what cost, and which rule was broken.\n\n" +
			"The same seed makes the same run. A violation is told with the shortest beginning of its faults that still brings it\n" +
			"about, and with the timeline of what it happened to. Exit code 1 when a rule was broken.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return simulate(c.Context(), o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.Uint64Var(&o.seed, "seed", 1, "the seed, or the first of several")
	f.Uint64Var(&o.seeds, "seeds", 1, "how many seeds to run; more than one is reported as a whole")
	f.Float64Var(&o.days, "days", 60, "how many days pass")
	f.IntVar(&o.slices, "slices", 0, "how many slices of the fleet each seed takes; 0 takes all")
	f.StringVar(&o.faults, "faults", "light", "what goes wrong with the machinery beside the fleet's own troubles: none, light, heavy")
	f.StringVar(&o.fleet, "fleet", "", "a YAML file with fleet and capacity, as in the scenarios of events/testdata; without it a mixed fleet")
	f.StringVar(&o.policy, "policy", "", "the policy file; without it the mixed fleet's")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object per seed")
	return c
}

func simulate(ctx context.Context, o simulateOptions, out, errOut io.Writer) error {
	sims, err := o.simulations()
	if err != nil {
		return err
	}
	// A simulation makes much garbage and needs little memory.
	debug.SetGCPercent(400)
	began := time.Now()
	reports, err := simulateAll(ctx, sims, errOut)
	if err != nil {
		return err
	}
	var failed *scenario.Report
	for _, r := range reports {
		if len(r.Violations) > 0 && failed == nil {
			failed = r
		}
		if o.asJSON {
			raw, err := json.Marshal(r, json.Deterministic(true))
			if err != nil {
				return err
			}
			tell(out, string(raw))
		}
	}
	if !o.asJSON {
		p := simulationPrinter{newPrinter(out, false)}
		p.report(scenario.Sum(reports), len(sims[0].World.Fleet), o, time.Since(began))
		if failed != nil {
			if err := p.violation(ctx, sims[failed.Seed-o.seed], failed); err != nil {
				return err
			}
		}
	}
	if failed != nil {
		return errFailed
	}
	return nil
}

// simulations are what the options ask for, one for each seed.
func (o simulateOptions) simulations() ([]scenario.Simulation, error) {
	faults, err := scenario.FaultsNamed(o.faults)
	if err != nil {
		return nil, usage("--faults: %w", err)
	}
	if o.days <= 0 || o.days > 3650 {
		return nil, usage("--days %v: it has to be more than 0 and at most 3650", o.days)
	}
	if o.seeds == 0 {
		return nil, usage("--seeds 0: at least one is needed")
	}
	var own *scenario.Scenario
	if o.fleet != "" {
		s, err := ownFleet(o.fleet)
		if err != nil {
			return nil, err
		}
		own = &s
	}
	var file []byte
	if o.policy != "" {
		if file, err = os.ReadFile(o.policy); err != nil {
			return nil, usage("--policy: %w", err)
		}
		if _, err := policy.Parse(file); err != nil {
			return nil, usage("--policy %s: %w", o.policy, err)
		}
	}
	var sims []scenario.Simulation
	for seed := o.seed; seed < o.seed+o.seeds; seed++ {
		world, policies := scenario.MixedFleet(seed)
		if own != nil {
			world = *own
		}
		if file != nil {
			policies = file
		}
		if o.slices > 0 {
			world = scenario.Few(world, seed, o.slices)
		}
		sims = append(sims, scenario.Simulation{Seed: seed, Days: o.days, World: world, Policy: policies, Faults: faults, Limit: scenario.NoLimit})
	}
	return sims, nil
}

func ownFleet(name string) (scenario.Scenario, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return scenario.Scenario{}, usage("--fleet: %w", err)
	}
	s, err := scenario.Parse(data)
	if err == nil && len(s.Fleet) == 0 {
		err = errors.New("it names no slice")
	}
	if err != nil {
		return scenario.Scenario{}, usage("--fleet %s: %w", name, err)
	}
	return s, nil
}

// simulateAll runs simulations, as many at a time as there are processors, and returns their reports in order.
func simulateAll(ctx context.Context, sims []scenario.Simulation, errOut io.Writer) ([]*scenario.Report, error) {
	reports := make([]*scenario.Report, len(sims))
	errs := make([]error, len(sims))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(sims)) {
		wg.Go(func() {
			for i := range next {
				reports[i], errs[i] = scenario.Simulate(ctx, sims[i])
			}
		})
	}
	told := time.Now()
	for i := range sims {
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			tell(errOut, fmt.Sprintf("pitstop: %d of %d seeds", i, len(sims)))
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return reports, errors.Join(errs...)
}

// simulationPrinter tells people what simulations came to.
type simulationPrinter struct{ *printer }

func (p simulationPrinter) report(r *scenario.Report, fleet int, o simulateOptions, took time.Duration) {
	what := fmt.Sprintf("seed %d", o.seed)
	if o.seeds > 1 {
		what = fmt.Sprintf("seeds %d to %d", o.seed, o.seed+o.seeds-1)
	}
	tell(p.out, p.paint(bold, fmt.Sprintf("%s · %g days of %d slices · faults %s", what, o.days, fleet, o.faults)))
	tell(p.out, fmt.Sprintf("%s faults and troubles, %s messages handled, in %.1f s\n", events.Number(int64(r.Faults)), events.Number(int64(r.Handled)), took.Seconds()))

	p.table("what happened to the fleet", r.Happened)
	p.table("incidents by cause", r.Causes)
	p.table("how they ended", r.Ended)
	p.table("what confirmed the resumed", r.Confirmed)
	p.stages(r.Reaction)
	p.table("calls that changed something", r.Actions)
	p.table("errors of the TPU API met", r.ErrorClasses)
	p.lost(r)
	tell(p.out, fmt.Sprintf("the brake held %s calls; %d different transitions of the state machine were taken", events.Number(int64(r.Braked)), len(r.Transitions)))
	if n := len(r.Violations); n > 0 {
		tell(p.out, p.paint(red, fmt.Sprintf("violations: %d", n)))
	} else {
		tell(p.out, p.paint(green, "violations: none"))
	}
}

func (p simulationPrinter) table(title string, counts map[string]int) {
	if len(counts) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	tell(p.out, p.paint(bold, title))
	t := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, k := range keys {
		_, _ = fmt.Fprintf(t, "  %s\t  %s\n", events.Number(int64(counts[k])), strings.ReplaceAll(k, "_", " ")) //nolint:errcheck // Flush tells
	}
	if err := t.Flush(); err == nil {
		tell(p.out, "")
	}
}

// The stages of a reaction, in their order.
var stages = []struct{ name, text string }{
	{"evidence_to_decision", "evidence -> decision"},
	{"decision_to_call", "decision -> call of the TPU API"},
	{"call_to_ready", "call -> TPU ready"},
	{"ready_to_progress", "ready -> progress confirmed"},
}

func (p simulationPrinter) stages(reaction map[string]scenario.Percentiles) {
	tell(p.out, p.paint(bold, "reaction"))
	t := tabwriter.NewWriter(p.out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(t, "  stage\tp50\tp95\tp99\tcount") //nolint:errcheck // Flush tells
	for _, s := range stages {
		if q, ok := reaction[s.name]; ok {
			_, _ = fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", s.text, seconds(q.P50), seconds(q.P95), seconds(q.P99), events.Number(int64(q.Count))) //nolint:errcheck // Flush tells
		}
	}
	if err := t.Flush(); err == nil {
		tell(p.out, "")
	}
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}

func (p simulationPrinter) lost(r *scenario.Report) {
	tell(p.out, p.paint(bold, "training"))
	tell(p.out, fmt.Sprintf("  goodput %.1f %%; %.0f of %.0f chip-hours lost", 100*r.Goodput, r.ChipHours.Lost, r.ChipHours.Total))
	for _, cause := range slices.Sorted(maps.Keys(r.LostHours)) {
		tell(p.out, fmt.Sprintf("  %6.1f h without training: %s", r.LostHours[cause], strings.ReplaceAll(cause, "_", " ")))
	}
	tell(p.out, "")
}

// violation tells of a broken rule: the shortest run that still breaks one, its faults, and the timeline.
func (p simulationPrinter) violation(ctx context.Context, sim scenario.Simulation, failed *scenario.Report) error {
	short, err := scenario.Shrink(ctx, sim, failed)
	if err != nil {
		return err
	}
	v := short.Violations[0]
	tell(p.out, "")
	tell(p.out, p.paint(red, fmt.Sprintf("seed %d breaks a rule, with the first %d of %d faults and troubles alone:", short.Seed, v.Faults, failed.Faults)))
	tell(p.out, fmt.Sprintf("  %s  %s  %s: %s\n", v.At.Format("Jan 2 15:04:05"), v.Rule, v.Workload, v.Text))
	tell(p.out, p.paint(bold, "the last faults and troubles"))
	for _, f := range short.Told[max(0, len(short.Told)-30):] {
		tell(p.out, "  "+f)
	}
	tell(p.out, "")
	tell(p.out, p.paint(bold, "the timeline of "+v.Workload))
	var lines []scenario.Line
	for _, l := range short.Story.Lines {
		if l.Workload == v.Workload && !l.Time.After(v.At) && !l.Routine {
			lines = append(lines, l)
		}
	}
	p.lines(lines[max(0, len(lines)-80):])
	return nil
}
