package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/oracle"
	"pitstop.internal/shared/breadth"
)

// TestNights runs every night that once broke a rule, or is kept because it is hard: none does any more.
func TestNights(t *testing.T) {
	breadth.Again(t)
	t.Parallel()
	dirs, err := filepath.Glob("testdata/nights/*/" + nightFile)
	if err != nil || len(dirs) == 0 {
		t.Fatalf("there are no nights: %v", err)
	}
	for _, name := range dirs {
		dir := filepath.Dir(name)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			f, err := LoadFixture(dir)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Simulate(t.Context(), f.Simulation)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range r.Violations {
				t.Errorf("%s  %s  %s: %s (%d faults)", v.At.Format("Jan 2 15:04:05"), v.Rule, v.Workload, v.Text, v.Faults)
			}
			if r.Faults == 0 || r.Incidents == 0 {
				t.Errorf("%d faults and troubles, %d incidents: that is no bad night", r.Faults, r.Incidents)
			}
		})
	}
}

// TestAFixtureIsTheSameRun: a fixture written to a folder and read again makes the same report and the same faults.
func TestAFixtureIsTheSameRun(t *testing.T) {
	breadth.Again(t)
	t.Parallel()
	world, policy := MixedFleet(8)
	rates, err := faults.ParseRates([]byte("causes:\n  preempted: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, sim := range map[string]Simulation{
		"as built in": {Seed: 8, Days: 0.5, World: Few(world, 8, 4), Policy: policy, Faults: named(t, "heavy"), Limit: 400},
		"rates and traces": {
			Seed: 8, Days: 0.5, World: world, Policy: policy, Faults: named(t, "light"), Limit: NoLimit, Rates: rates,
			Traces: []faults.Trace{trace(t)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "night")
			saved := Fixture{Simulation: sim, Rule: "6 progress", Workload: "demo/t5", Text: "a text: with a colon"}
			if err := saved.Save(dir, []byte("a story\n")); err != nil {
				t.Fatal(err)
			}
			read, err := LoadFixture(dir)
			if err != nil {
				t.Fatal(err)
			}
			if read.Rule != saved.Rule || read.Workload != saved.Workload || read.Text != saved.Text {
				t.Errorf("read %q %q %q", read.Rule, read.Workload, read.Text)
			}
			run := func(sim Simulation) string {
				r, err := Simulate(t.Context(), sim)
				if err != nil {
					t.Fatal(err)
				}
				out, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				return string(out) + "\n" + strings.Join(r.Told, "\n")
			}
			if d := cmp.Diff(strings.Split(run(sim), "\n"), strings.Split(run(read.Simulation), "\n")); d != "" {
				t.Errorf("another run (-saved +read):\n%.3000s", d)
			}
			if story, err := os.ReadFile(filepath.Join(dir, storyFile)); err != nil || string(story) != "a story\n" {
				t.Errorf("story %q, %v", story, err)
			}
			for _, v := range []struct {
				rule string
				want bool
			}{{"6 progress", true}, {"9 brake", false}} {
				if got := read.Breaks(&oracle.Result{Violations: []oracle.Violation{{Rule: v.rule}}}); got != v.want {
					t.Errorf("%s breaks the rule of the fixture: %v", v.rule, got)
				}
			}
		})
	}
}

func TestFaultyFixtures(t *testing.T) {
	world, policy := MixedFleet(1)
	for name, c := range map[string]struct{ file, content, says string }{
		"not there":       {nightFile, "", "simulation.yaml"},
		"a mistyped key":  {nightFile, "seeed: 1\n", "field seeed not found"},
		"no days":         {nightFile, "seed: 1\nslices: 10\n", "the days have to be more than 0"},
		"another fleet":   {nightFile, "seed: 1\ndays: 1\nslices: 9\n", fmt.Sprintf("fleet.yaml has %d slices", len(world.Fleet))},
		"faulty rates":    {ratesName, "causes: {preemptd: 1}\n", "did you mean preempted"},
		"a missing trace": {nightFile, "seed: 1\ndays: 1\nslices: 10\ntraces: [{file: 1-none.csv}]\n", "1-none.csv"},
	} {
		dir := t.TempDir()
		if err := (Fixture{Simulation: Simulation{Seed: 1, Days: 1, World: world, Policy: policy, Limit: NoLimit}}).Save(dir, nil); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, c.file)
		err := os.Remove(path)
		if c.content != "" {
			err = os.WriteFile(path, []byte(c.content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := LoadFixture(dir); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want one line that says %q", name, err, c.says)
		}
	}
}

// named is a degree of faults.
func named(t *testing.T, name string) faults.Faults {
	t.Helper()
	f, err := faults.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func trace(tb testing.TB) faults.Trace {
	tb.Helper()
	data, err := os.ReadFile("faults/testdata/traces/events.csv")
	if err != nil {
		tb.Fatal(err)
	}
	t, err := faults.ParseTrace("events.csv", data)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}
