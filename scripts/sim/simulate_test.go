package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/oracle"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

func simulation(tb testing.TB, seed uint64, degree string, days float64) sim.Simulation {
	tb.Helper()
	f, err := faults.Named(degree)
	if err != nil {
		tb.Fatal(err)
	}
	world, policy := sim.MixedFleet(seed)
	return sim.Simulation{Seed: seed, Days: days, World: sim.Few(world, seed, 4), Policy: policy, Faults: f, Limit: sim.NoLimit}
}

func simulate(tb testing.TB, one sim.Simulation) *oracle.Result {
	tb.Helper()
	r, err := sim.Simulate(tb.Context(), one)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestNoSeedBreaksARule runs a few seeds under each degree of faults; scripts/check runs hundreds.
func TestNoSeedBreaksARule(t *testing.T) {
	seeds := uint64(1)
	if breadth.Full() {
		seeds = 2
	}
	for faults, days := range map[string]float64{"none": 2, "light": 1, "heavy": 0.5, "hostile": 0.5} {
		for seed := uint64(1); seed <= seeds; seed++ {
			t.Run(fmt.Sprintf("%s/%d", faults, seed), func(t *testing.T) {
				if faults != "hostile" {
					breadth.Again(t)
				}
				t.Parallel()
				r := simulate(t, simulation(t, seed, faults, days))
				for _, v := range r.Violations {
					t.Errorf("%s: %s %s (%s, %d faults)", v.Rule, v.Workload, v.Text, v.At.Format(time.DateTime), v.Faults)
				}
				if r.Incidents == 0 || r.Handled < 100 || r.Goodput <= 0 || r.Goodput > 1 {
					t.Errorf("%d incidents, %d messages, goodput %v: that is no run", r.Incidents, r.Handled, r.Goodput)
				}
			})
		}
	}
}

// TestAWatchedIncidentAnswersForNothingOfTheOneBefore plays a night in which a policy allows nothing any more while an order waits. The next incident
// is only watched from its opening, and made nothing.
func TestAWatchedIncidentAnswersForNothingOfTheOneBefore(t *testing.T) {
	t.Parallel()
	for _, v := range simulate(t, simulation(t, 131, "heavy", 1)).Violations {
		t.Errorf("%s: %s %s (%s)", v.Rule, v.Workload, v.Text, v.At.Format(time.DateTime))
	}
}

// TestTheSameSeedMakesTheSameRun compares whole reports, with everything that went wrong and the story, byte by byte.
func TestTheSameSeedMakesTheSameRun(t *testing.T) {
	run := func() string {
		one := simulation(t, 5, "hostile", breadth.Of(0.5, 0.1))
		one.Lines = true
		r := simulate(t, one)
		out, err := json.Marshal(struct {
			*oracle.Result
			Lines []world.Line
		}{r, r.Story.Lines})
		if err != nil {
			t.Fatal(err)
		}
		return string(out) + strings.Join(r.Told, "\n")
	}
	first := run()
	if d := cmp.Diff(first, run()); d != "" {
		t.Fatalf("another run of the same seed differs (-first +later):\n%.3000s", d)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if d := cmp.Diff(first, run()); d != "" {
		t.Fatalf("on one processor the same seed differs (-first +later):\n%.3000s", d)
	}
}

// TestFewerFaultsAreTheBeginningOfMore: leaving out everything from a fault on does not change the run before it, so the
// shortest failing run can be found.
func TestFewerFaultsAreTheBeginningOfMore(t *testing.T) {
	breadth.Again(t)
	t.Parallel()
	one := simulation(t, 6, "hostile", 0.5)
	all := simulate(t, one)
	if all.Faults < 50 || all.Faults != len(all.Told) {
		t.Fatalf("%d faults, %d told: too few to leave some out", all.Faults, len(all.Told))
	}
	one.Limit = all.Faults / 2
	half := simulate(t, one)
	if half.Faults != one.Limit {
		t.Errorf("%d faults happened, and %d were allowed", half.Faults, one.Limit)
	}
	if d := cmp.Diff(all.Told[:len(half.Told)], half.Told); d != "" {
		t.Errorf("the first half differs (-all +half):\n%s", d)
	}
	one.Limit = 0
	if none := simulate(t, one); none.Faults != 0 || none.Incidents != 0 || none.Goodput < 0.9 {
		t.Errorf("without anything that goes wrong: %d faults, %d incidents, goodput %v", none.Faults, none.Incidents, none.Goodput)
	}
}

// TestHostileFaultsStrikeInTheMiddle of an incident's handling, and the others do not.
func TestHostileFaultsStrikeInTheMiddle(t *testing.T) {
	breadth.Again(t)
	t.Parallel()
	for faults, want := range map[string]bool{"heavy": false, "hostile": true} {
		r := simulate(t, simulation(t, 3, faults, 0.5))
		aimed := slices.ContainsFunc(r.Told, func(told string) bool { return strings.Contains(told, "in the middle of") })
		if aimed != want {
			t.Errorf("%s: aimed %v, want %v, in %d faults", faults, aimed, want, len(r.Told))
		}
	}
}

// BenchmarkSimulate is a night of two days under heavy faults.
func BenchmarkSimulate(b *testing.B) {
	var handled, incidents int
	seed := uint64(0)
	for b.Loop() {
		seed++
		r := simulate(b, simulation(b, seed, "heavy", 2))
		handled, incidents = handled+r.Handled, incidents+r.Incidents
	}
	b.ReportMetric(float64(handled)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(incidents)/b.Elapsed().Seconds(), "incidents/s")
}

// TestADecisionThatIsMadeOtherwiseTheSecondTimeIsFound.
func TestADecisionThatIsMadeOtherwiseTheSecondTimeIsFound(t *testing.T) {
	t.Parallel()
	made := map[string]bool{}
	one := simulation(t, 5, "light", 0.2)
	one.UntilBroken = true
	one.Hooks.Decide = func(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
		next, send, changed := incident.Advance(p, w, e, now)
		key := fmt.Sprintf("%s %d %T %+v %s", w.ID, w.Epoch, e, e, now)
		if made[key] && next.Incident != nil {
			next.Epoch++
		}
		made[key] = true
		return next, send, changed
	}
	if r := simulate(t, one); len(r.Violations) == 0 || r.Violations[0].Rule != "history" {
		t.Errorf("the violations are %+v", r.Violations)
	}
}

// TestAnInterruptedSimulationReports has one end after three days, and a short run after half a day.
func TestAnInterruptedSimulationReports(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	fleet, policies := sim.MixedFleet(4)
	none, err := faults.Named("none")
	if err != nil {
		t.Fatal(err)
	}
	days, opened := breadth.Of(3, 0.5), 0
	r, err := sim.Simulate(ctx, sim.Simulation{
		Seed: 4, Days: 60, World: sim.Few(fleet, 4, 2), Policy: policies, Faults: none, Limit: sim.NoLimit,
		Passed: func(passed time.Duration, incidents int) {
			if opened = incidents; passed.Hours() >= 24*days {
				stop()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || r == nil || !r.Interrupted || r.Days < days || r.Days > days+0.5 || r.Incidents < opened {
		t.Errorf("%v, %+v, %d opened", err, r, opened)
	}
}
