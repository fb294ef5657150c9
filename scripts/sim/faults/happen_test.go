package faults_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/oracle"
)

func trace(tb testing.TB) faults.Trace {
	tb.Helper()
	data, err := os.ReadFile("testdata/traces/events.csv")
	if err != nil {
		tb.Fatal(err)
	}
	t, err := faults.ParseTrace("events.csv", data)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// TestTracesHappen runs the trace that ships with the project: its events happen at their times, and no other events of
// the same causes.
func TestTracesHappen(t *testing.T) {
	if testing.Short() {
		t.Skip("it is the same code once more")
	}
	t.Parallel()
	world, policy := sim.MixedFleet(3)
	world.Fleet = world.Fleet[:4]
	run := func(t *testing.T, rates string, traces ...faults.Trace) *oracle.Result {
		t.Helper()
		none, err := faults.Named("none")
		if err != nil {
			t.Fatal(err)
		}
		one := sim.Simulation{Seed: 3, Days: 1, World: world, Policy: policy, Faults: none, Traces: traces, Limit: sim.NoLimit}
		for _, tr := range traces {
			if err := tr.Fits(world); err != nil {
				t.Fatal(err)
			}
		}
		if one.Rates, err = faults.ParseRates([]byte(rates)); err != nil {
			t.Fatal(err)
		}
		r, err := sim.Simulate(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range r.Violations {
			t.Errorf("%s: %s %s", v.Rule, v.Workload, v.Text)
		}
		return r
	}
	t.Run("nothing", func(t *testing.T) {
		if r := run(t, "unnamed: none"); r.Faults != 0 || r.Incidents != 0 || r.Goodput < 0.9 {
			t.Errorf("%d troubles, %d incidents, goodput %v", r.Faults, r.Incidents, r.Goodput)
		}
	})
	t.Run("events", func(t *testing.T) {
		r := run(t, "unnamed: none", trace(t))
		for cause, n := range map[string]int{
			"preempted": 2, "stockout": 1, "host error, repaired": 1, "maintenance without notice": 1, "training crash": 1, "maintenance announced": 1,
			"everything paused": 1, "lost for a moment": 1, "vanished": 1,
		} {
			if r.Happened[cause] != n {
				t.Errorf("%s happened %d times, want %d", cause, r.Happened[cause], n)
			}
		}
		if r.Faults != 10 || !strings.Contains(r.Told[0], "Jan 5 01:00:00  preempted: llama-8b") || r.Ended["resumed"] < 5 {
			t.Errorf("%d troubles, ended %v:\n%s", r.Faults, r.Ended, strings.Join(r.Told, "\n"))
		}
	})
	t.Run("instead of drawn events", func(t *testing.T) {
		r := run(t, "unnamed: none\ncauses: {preempted: 9, stockout: 9, vanished: 9, forged_lines: 9}\n", trace(t))
		if r.Happened["preempted"] != 2 || r.Happened["stockout"] != 1 || r.Happened["vanished"] != 1 || r.Happened["forged lines"] == 0 {
			t.Errorf("happened: %v", r.Happened)
		}
	})
	t.Run("cut off by the days", func(t *testing.T) {
		late := trace(t).With(25*time.Hour, "llama-8b", "forged_lines")
		r := run(t, "unnamed: none", late)
		if r.Happened["forged lines"] != 0 || r.Incidents == 0 {
			t.Errorf("happened: %v, %d incidents", r.Happened, r.Incidents)
		}
	})
}
