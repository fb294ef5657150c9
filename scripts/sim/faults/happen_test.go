package faults_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/oracle"
)

func trace(tb testing.TB, name, zone string) faults.Trace {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/traces", name))
	if err != nil {
		tb.Fatal(err)
	}
	t, err := faults.ParseTrace(name, zone, data)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// TestTracesHappen runs the traces that ship with the project: their events happen at their times, and no other events of
// the same causes.
func TestTracesHappen(t *testing.T) {
	if testing.Short() {
		t.Skip("it is the same code once more")
	}
	t.Parallel()
	world, policy := sim.MixedFleet(3)
	world.Fleet = world.Fleet[:4]
	run := func(t *testing.T, rates string, traces ...faults.Trace) *oracle.Report {
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
		r := run(t, "unnamed: none", trace(t, "events.csv", ""))
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
		r := run(t, "unnamed: none\ncauses: {preempted: 9, stockout: 9, vanished: 9, forged_lines: 9}\n", trace(t, "events.csv", ""))
		if r.Happened["preempted"] != 2 || r.Happened["stockout"] != 1 || r.Happened["vanished"] != 1 || r.Happened["forged lines"] == 0 {
			t.Errorf("happened: %v", r.Happened)
		}
	})
	t.Run("availability", func(t *testing.T) {
		zone := world.Fleet[0].Zone
		series := trace(t, "us-west4-a_example.json", zone)
		r := run(t, "unnamed: none\ncauses: {preempted: 9, stockout: 9, vanished: 9}\n", series)
		if r.Happened["stockout"] != series.Moments() || series.Moments() < 3 || r.Happened["preempted"] == 0 || r.Faults != series.Moments() || r.Happened["vanished"] != 0 {
			t.Errorf("%d times without capacity, happened: %v", series.Moments(), r.Happened)
		}
		if r.Causes["preemption"] == 0 || r.Actions["CreateNode"] == 0 {
			t.Errorf("causes %v, actions %v", r.Causes, r.Actions)
		}
		if told := strings.Join(r.Told, "\n"); !strings.Contains(told, "no capacity in "+zone+", as a trace tells") {
			t.Errorf("told:\n%s", told)
		}
	})
	t.Run("nodes", func(t *testing.T) {
		nodes := trace(t, "nodes.csv", "")
		r := run(t, "unnamed: none", nodes)
		if n := r.Happened["preempted"]; n == 0 || n > nodes.Moments() || r.Faults != n {
			t.Errorf("%d of %d removed nodes, %d troubles", n, nodes.Moments(), r.Faults)
		}
	})
	t.Run("all at once, cut off by the days", func(t *testing.T) {
		late := trace(t, "events.csv", "").With(25*time.Hour, "llama-8b", "forged_lines")
		r := run(t, "unnamed: none", late, trace(t, "us-west4-a_example.json", world.Fleet[0].Zone), trace(t, "nodes.csv", ""))
		if r.Happened["forged lines"] != 0 || r.Incidents == 0 {
			t.Errorf("happened: %v, %d incidents", r.Happened, r.Incidents)
		}
	})
}

// TestRealTraces reads measured traces, where they lie beside the project: they are not part of it.
func TestRealTraces(t *testing.T) {
	const beside = "../../../../shared/traces"
	if _, err := os.Stat(beside); err != nil {
		t.Skipf("no real traces beside the project: %v", err)
	}
	world, _ := sim.MixedFleet(1)
	var series, lists int
	files := os.DirFS(beside)
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		node := strings.HasSuffix(path, "-trace.csv")
		if err != nil || d.IsDir() || !node && (!strings.Contains(path, "spot-traces") || filepath.Ext(path) != ".json") {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		zone := "us-west4-a"
		if node {
			zone = ""
		}
		tr, err := faults.ParseTrace(path, zone, data)
		if err != nil {
			return err
		}
		if tr.Lasts < time.Hour || tr.Lasts > 90*24*time.Hour {
			t.Errorf("%s lasts %v", path, tr.Lasts)
		}
		if err := tr.Fits(world); err != nil {
			t.Error(err)
		}
		if node {
			lists++
			return nil
		}
		series++
		if named, err := faults.ParseTrace(path, "", data); err != nil || !strings.HasPrefix(named.Zone, "us-") || strings.ContainsAny(named.Zone, "_.") {
			t.Errorf("%s has the zone %q, %v", path, named.Zone, err)
		}
		return nil
	})
	if err != nil || series < 30 || lists == 0 {
		t.Errorf("%d series, %d lists of nodes: %v", series, lists, err)
	}
	t.Logf("%d series and %d lists of nodes", series, lists)
}
