package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
	"pitstop.internal/scripts/pitstop/lab"
	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/oracle"
)

const (
	ownFleetFile = `project: mine
capacity: {us-west4-a: -1, us-west4-b: -1}
fleet:
  - {name: llama, zone: us-west4-a, accelerator: v5litepod-16, spot: true, policy: own, directory: gs://bucket/llama, crew: {report_every: 10m}}
  - {name: gemma, zone: us-west4-b, accelerator: v5p-32, policy: own, directory: gs://bucket/gemma, trainer: {checkpoint_every: 100}}
`
	ownPolicyFile = "policies:\n  own:\n    preset: spot\n    zones: [us-west4-a, us-west4-b]\n"
	ownTrace      = "seconds,slice,cause\n3600,llama,preempted\n"
)

// TestSimulateUsage: wrong usage is one line that names the option and the way out, and exit code 2.
func TestSimulateUsage(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--days", "0"}, "--days 0: it has to be more than 0"},
		{[]string{"--days", "NaN"}, "--days NaN: it has to be more than 0"},
		{[]string{"--days", "x"}, "--days"},
		{[]string{"--seeds", "0"}, "--seeds 0: at least one is needed"},
		{[]string{"--seed", "18446744073709551615", "--seeds", "2"}, "there are not that many seeds"},
		{[]string{"--slices", "-1"}, "--slices -1"},
		{[]string{"--incidents", "-1"}, "--incidents -1"},
		{[]string{"--faults", "some"}, `"some" is no degree of faults; there are none, light, heavy and hostile`},
		{[]string{"--sum"}, "--sum goes with --json"},
		{[]string{"--fleet", filepath.Join(full, "none.yaml")}, "none.yaml"},
		{[]string{"--fleet", entriestest.Write(t, "fleet.yaml", "project: mine\n")}, "it names no slice"},
		{[]string{"--fleet", entriestest.Write(t, "fleet.yaml", "projects: mine\n")}, "field projects not found"},
		{[]string{"--fleet", entriestest.Write(t, "fleet.json", "[]")}, "fleet.json: it names no slice"},
		{[]string{"--policy", entriestest.Write(t, "policy.yaml", "policies: {a: {preset: spott}}\n")}, "policy.yaml: policy file: line 1"},
		{[]string{"--rates", entriestest.Write(t, "rates.yaml", "causes: {preemptd: 1}\n")}, `rates.yaml: rates: line 1: causes has no "preemptd"; did you mean preempted?`},
		{[]string{"--trace", filepath.Join(full, "none.csv")}, "none.csv"},
		{[]string{"--trace", entriestest.Write(t, "events.csv", ownTrace)}, `events.csv: line 2: "llama" is no slice of the fleet`},
		{[]string{"--save-fixture", full}, "there is something in it"},
		{[]string{"--fixture", full}, "simulation.yaml"},
		{[]string{"--fixture", full, "--days", "3"}, "leave out --days"},
		{[]string{"--fixture", full, "--save-fixture", "x"}, "leave out --save-fixture"},
		{[]string{"now"}, `simulate takes no "now", only flags`},
	} {
		out, errOut, code := call(t, "", append([]string{"simulate"}, c.args...)...)
		if code != cli.ExitUsage || out != "" {
			t.Errorf("%v: exit code %d, stdout %q", c.args, code, out)
		}
		if strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, c.says) {
			t.Errorf("%v: stderr %q; want one line that says %q", c.args, errOut, c.says)
		}
	}
}

// TestSimulateAnOwnFleet runs a fleet, a policy, rates and a trace of one's own, and holds the JSON to what the README says
// of it.
func TestSimulateAnOwnFleet(t *testing.T) {
	args := []string{
		"simulate", "--json", "--days", "0.5", "--faults", "none", "--fleet", entriestest.Write(t, "fleet.yaml", ownFleetFile), "--policy", entriestest.Write(t, "policy.yaml", ownPolicyFile),
		"--rates", entriestest.Write(t, "rates.yaml", "unnamed: none\n"), "--trace", entriestest.Write(t, "events.csv", ownTrace),
	}
	out, errOut, code := call(t, "", args...)
	if code != cli.ExitDone || errOut != "pitstop: events.csv ends after 0.0 of 0.5 days; its causes do not happen from then on\n" {
		t.Fatalf("exit code %d, stderr %q\n%s", code, errOut, out)
	}
	got := lines(t, out)
	if len(got) != 1 || got[0]["incidents"] != 1.0 || got[0]["faults"] != 1.0 {
		t.Fatalf("%d objects: %v", len(got), got)
	}
	if ended, ok := got[0]["ended"].(map[string]any); !ok || ended["resumed"] != 1.0 {
		t.Errorf("ended: %v", got[0]["ended"])
	}
	documented := jsonFields(t)
	for field := range got[0] {
		if !slices.Contains(documented, field) {
			t.Errorf("the README says nothing of %s", field)
		}
	}
	for _, field := range documented {
		if _, ok := got[0][field]; !ok {
			t.Errorf("the README promises %s, which is not there", field)
		}
	}
}

// jsonFields are the fields of simulate --json that the command's README documents.
func jsonFields(t *testing.T) (fields []string) {
	t.Helper()
	raw, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(raw), "`simulate --json` prints")
	_, section, _ = strings.Cut(section, "\n\n")
	section, _, _ = strings.Cut(section, "\n\n")
	if !ok {
		t.Fatal("the README says nothing of simulate --json")
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(section, -1) {
		for _, f := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			fields = append(fields, f[1])
		}
	}
	return fields
}

func TestSimulateSeveralSeeds(t *testing.T) {
	args := []string{"simulate", "--json", "--days", "0.2", "--slices", "2", "--seed", "4", "--seeds", "2"}
	out, errOut, code := call(t, "", args...)
	if code != cli.ExitDone || errOut != "" {
		t.Fatalf("exit code %d, stderr %q", code, errOut)
	}
	each := lines(t, out)
	if len(each) != 2 || each[0]["seed"] != 4.0 || each[1]["seed"] != 5.0 {
		t.Fatalf("%d objects:\n%s", len(each), out)
	}
	out, _, _ = call(t, "", append(args, "--sum")...)
	sum := lines(t, out)
	if len(sum) != 1 || sum[0]["seed"] != 4.0 || sum[0]["seeds"] != 2.0 {
		t.Fatalf("%d objects:\n%s", len(sum), out)
	}
	for _, field := range []string{"incidents", "faults", "handled"} {
		a, _ := each[0][field].(float64)
		b, _ := each[1][field].(float64)
		if sum[0][field] != a+b {
			t.Errorf("%s: %v and %v make %v", field, a, b, sum[0][field])
		}
	}
}

// TestSimulateUntilEnoughHappened: a seed with too few incidents is run again for twice as long, and says for how long.
func TestSimulateUntilEnoughHappened(t *testing.T) {
	args := []string{"simulate", "--json", "--days", "0.1", "--slices", "2", "--faults", "none", "--seed", "4", "--seeds", "3"}
	out, _, _ := call(t, "", args...)
	short := lines(t, out)
	out, errOut, code := call(t, "", append(args, "--incidents", "2")...)
	if code != cli.ExitDone || errOut != "" {
		t.Fatalf("exit code %d, stderr %q", code, errOut)
	}
	again := 0
	for i, r := range lines(t, out) {
		if n, _ := r["incidents"].(float64); n < 2 {
			t.Errorf("seed %v has %v incidents", r["seed"], n)
		}
		if n, _ := short[i]["incidents"].(float64); (n < 2) != (r["days"] != 0.1) {
			t.Errorf("seed %v has %v incidents in 0.1 days, and was run for %v", r["seed"], n, r["days"])
		} else if n < 2 {
			again++
		}
	}
	if again == 0 {
		t.Error("none was run again")
	}
}

func TestSimulateTellsPeople(t *testing.T) {
	if testing.Short() {
		t.Skip("it simulates, as other tests do")
	}
	dir := filepath.Join(t.TempDir(), "night")
	out, errOut, code := call(t, "", "simulate", "--days", "0.2", "--slices", "2", "--faults", "heavy", "--save-fixture", dir)
	if code != cli.ExitDone || errOut != "pitstop: no rule was broken; --save-fixture has written nothing\n" {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is there", dir)
	}
	for _, want := range []string{
		"seed 1 · 0.2 days of ", " slices · faults heavy", "incidents by cause", "how they ended", "reaction", "classes of errors of the TPU API: ", "  NOT met: ",
		"phases and ends of incidents: ", "goodput", "violations: none",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said in\n%s", want, out)
		}
	}
}

// TestAFixtureOfAViolation writes what a broken rule leaves behind, and runs it again with the rule mended.
func TestAFixtureOfAViolation(t *testing.T) {
	if testing.Short() {
		t.Skip("it simulates, as other tests do")
	}
	o := lab.SimulateOptions{Seed: 3, Seeds: 1, Days: 0.2, Slices: 2, Faults: "heavy"}
	sims, err := o.Simulations(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	sims[0].Limit, sims[0].Lines = 40, true
	short, err := sim.Simulate(t.Context(), sims[0])
	if err != nil {
		t.Fatal(err)
	}
	short.Violations = []oracle.Violation{{Rule: "6 progress", At: time.Now(), Workload: "demo/t5", Text: "ended too early", Faults: 40}}
	dir := filepath.Join(t.TempDir(), "night")
	sims[0].Limit, sims[0].Lines = sim.NoLimit, false
	if err := lab.SaveFixture(dir, sims[0], short, 1234); err != nil {
		t.Fatal(err)
	}
	story, err := os.ReadFile(filepath.Join(dir, "story.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"with the first 40 of 1234 faults and troubles alone", "6 progress  demo/t5: ended too early", short.Told[0], short.Told[39], "the timeline of demo/t5"} {
		if !strings.Contains(string(story), want) {
			t.Errorf("%q is not told in\n%s", want, story)
		}
	}
	out, errOut, code := call(t, "", "simulate", "--json", "--fixture", dir)
	if code != cli.ExitDone || errOut != "" {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
	var again, want map[string]any
	short.Violations = []oracle.Violation{}
	raw, err := json.Marshal(short)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &again); err != nil || again["handled"] != want["handled"] || again["faults"] != 40.0 {
		t.Errorf("%v: %v messages and %v faults, want %v and 40", err, again["handled"], again["faults"], want["handled"])
	}
	out, _, code = call(t, "", "simulate", "--fixture", dir)
	if code != cli.ExitDone || !strings.Contains(out, "fixture "+dir) || !strings.Contains(out, "the rule that was broken holds now: 6 progress, ended too early") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
