package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
	"pitstop.internal/scripts/pitstop/lab"
	"pitstop.internal/scripts/trail"
	"pitstop.internal/shared/breadth"
)

// isCommand has the test binary be the command, for a comparison of a build with itself.
const isCommand = "PITSTOP_TEST_IS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(isCommand) != "" {
		main()
	}
	// Lines without end: the tests of texts look for sentences, and width_test.go holds where those break.
	if err := os.Setenv("COLUMNS", "10000"); err != nil {
		panic(err)
	}
	deploymenttest.Verbs = verbs
	os.Exit(m.Run())
}

// script writes an executable file that stands for another build.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return path
}

// doctored is this build, but for further arguments and what is done to its trail.
func doctored(t *testing.T, rest string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return script(t, isCommand+`=1 "`+self+`" "$@" `+rest)
}

// ownNight is a night in which one slice is preempted, once.
func ownNight(t *testing.T) []string {
	t.Helper()
	return []string{
		"simulate", "--days", "0.5", "--faults", "none", "--fleet", entriestest.Write(t, "fleet.yaml", ownFleetFile), "--policy", entriestest.Write(t, "policy.yaml", ownPolicyFile),
		"--rates", entriestest.Write(t, "rates.yaml", "unnamed: none\n"), "--trace", entriestest.Write(t, "events.csv", ownTrace),
	}
}

func TestABuildIsTheSameAsItself(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(isCommand, "1")
	out, errOut, code := call(t, "", "simulate", "--seed", "4", "--seeds", "2", "--days", "0.2", "--slices", "2", "--faults", "heavy", "--incidents", "2", "--against", self)
	if code != cli.ExitDone || !regexp.MustCompile(`^2 seeds, \d+ workloads: the same\n$`).MatchString(out) {
		t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
	}
	entries := filepath.Join("..", "..", "..", "events", "testdata", "preemption", "entries.json")
	out, errOut, code = call(t, "", "replay", "--policy", "spot", "--allow", "recreate,restart", "--against", self, entries)
	if code != cli.ExitDone || out != "1 record, 1 workload: the same\n" || errOut != "" {
		t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
	}
}

// TestAnotherPolicyMakesADifference: the other build only watches, and so sends nothing.
func TestAnotherPolicyMakesADifference(t *testing.T) {
	watch := entriestest.Write(t, "watch.yaml", strings.Replace(ownPolicyFile, "spot", "watch", 1))
	other := doctored(t, `--policy "`+watch+`"`)
	out, _, code := call(t, "", append(ownNight(t), "--against", other)...)
	for _, want := range []string{
		"seed 1, 0.5 days · mine/llama · Mon Jan 5 01:00:00, 2026 · request\n",
		"recreate.requested to delete llama epoch 2: node llama is PREEMPTED\n",
		"  other build  nothing then; next: Jan 5 ",
		"observed preemption llama-20260105-1",
		"request: another one, or none   1           1\n",
		"call: one build alone makes it         3       1           1       1\n",
		"The first call: seed 1 · mine/llama\n  this build   Jan 5 01:00:00.261  DeleteNode of ",
		"  other build  nothing of the kind\n",
		"This compares 3 accepted calls and 1 ended incident with those of the other build, within 2 minutes",
		" in 1 seed differ\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said", want)
		}
	}
	if code != cli.ExitFailed || t.Failed() {
		t.Errorf("exit code %d\n%s", code, out)
	}
	out, _, code = call(t, "", append(ownNight(t), "--json", "--against", other)...)
	told := strings.Split(strings.TrimSpace(out), "\n")
	var d trail.Divergence
	var s trail.Summary
	var effect trail.Difference
	isEffect := func(line string) bool { return strings.HasPrefix(line, `{"effect"`) }
	if len(told) < 3 || json.Unmarshal([]byte(told[0]), &d) != nil || json.Unmarshal([]byte(told[max(1, slices.IndexFunc(told, isEffect))]), &effect) != nil || json.Unmarshal([]byte(told[len(told)-1]), &s) != nil {
		t.Fatalf("%s\nis no divergence, differences in effect and a summary", out)
	}
	if effect.Kind != trail.Call || effect.This.Method != "DeleteNode" || effect.Other != nil || s.Effects.Kinds[trail.Call].First != 1 {
		t.Errorf("in effect\n%s", out)
	}
	if code != cli.ExitFailed || d.Kind != trail.Request || d.Workload != "mine/llama" || d.This.Action != "delete" || d.Other.Outcome != "observed" || s.DifferingWorkloads == 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestADoctoredTrail: what one build alone did is told, with what both did before.
func TestADoctoredTrail(t *testing.T) {
	breadth.Again(t)
	for name, c := range map[string]struct {
		sed  string
		code int
		says []string
	}{
		"end": {`s/"outcome":"resumed"/"outcome":"escalated"/`, cli.ExitFailed, []string{
			"· end\n  both ", "recovery.requested to admit", "  resumed by step preemption", "  escalated by step preemption",
		}},
		"request": {`s/"epoch":2/"epoch":7/`, cli.ExitFailed, []string{
			"In effect both do the same: 3 accepted calls and 1 ended incident, within 2 minutes.\n",
		}},
		"document": {`s/"name":"gemma","provider":"[a-z-]*"/"name":"gemma","provider":"gke"/`, cli.ExitFailed, []string{
			"seed 1, 0.5 days · mine/gemma · Mon Jan 5 12:00:00, 2026 · document\n  document     provider: this build ", `, other build "gke"`,
		}},
		"violation": {`s/"broken":\[\]/"broken":[{"rule":"9 brake","workload":"mine\/llama","at":"2026-01-05T02:00:00Z","text":"31 slots"}]/`, cli.ExitFailed, []string{
			"mine/llama · Mon Jan 5 02:00:00, 2026 · violation\n  this build   does not break the rule\n  other build  breaks 9 brake: 31 slots\n",
		}},
		"wording": {`s/is PREEMPTED/was preempted/g`, cli.ExitDone, []string{
			"wording: other words, not counted as different   1           1\n\n1 seed, 2 workloads: the same\n",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, code := call(t, "", append(ownNight(t), "--against", doctored(t, "| sed '"+c.sed+"'"))...)
			for _, want := range c.says {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not said", want)
				}
			}
			if code != c.code || t.Failed() {
				t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
			}
		})
	}
}

// TestAgainstUsage: what cannot be compared is told in the last line, and is no difference.
func TestAgainstUsage(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no argument":       {[]string{"simulate", "--against"}, cli.ExitUsage, "flag needs an argument: --against"},
		"an empty one":      {[]string{"simulate", "--against", ""}, cli.ExitUsage, "--against names another build"},
		"not there":         {[]string{"simulate", "--against", filepath.Join(t.TempDir(), "none")}, cli.ExitUsage, "no such file"},
		"not executable":    {[]string{"simulate", "--against", entriestest.Write(t, "other", "")}, cli.ExitUsage, "it is not executable"},
		"no checkout":       {[]string{"simulate", "--against", t.TempDir()}, cli.ExitUsage, "it is no checkout of Pitstop"},
		"a fixture":         {[]string{"simulate", "--against", "x", "--fixture", "y"}, cli.ExitUsage, "leave out --fixture"},
		"a fixture to save": {[]string{"simulate", "--against", "x", "--save-fixture", "y"}, cli.ExitUsage, "leave out --save-fixture"},
		"a trail":           {[]string{"replay", "--against", "x", "--trail"}, cli.ExitUsage, "leave out --trail"},
		"a trail and JSON":  {[]string{"replay", "--json", "--trail"}, cli.ExitUsage, "leave out --json"},
		"speed":             {[]string{"replay", "--against", "x", "--speed", "60"}, cli.ExitUsage, "leave out --speed"},
		"standard input":    {[]string{"replay", "--against", "x", "-"}, cli.ExitUsage, "name a file instead of -"},
		"a release without trails": {
			append(ownNight(t), "--against", script(t, `echo "pitstop: unknown flag: --trail" >&2; exit 2`)), cli.ExitUsage, "cannot be compared; it says: unknown flag: --trail",
		},
		"another version":    {append(ownNight(t), "--against", script(t, `echo '{"trail":2}'`)), cli.ExitUsage, "it has version 2, and this build reads version 1"},
		"another program":    {append(ownNight(t), "--against", script(t, `echo hello`)), cli.ExitUsage, "it is no JSON"},
		"it breaks off":      {append(ownNight(t), "--against", script(t, `echo "panic: no" >&2; exit 3`)), cli.ExitFailed, "exit status 3; it says: panic: no"},
		"it does too little": {append(ownNight(t), "--against", script(t, `exit 0`)), cli.ExitFailed, "ends too early: before seed 1"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, code := call(t, "", c.args...)
			told := strings.Split(strings.TrimSpace(errOut), "\n")
			if code != c.code || out != "" || !strings.Contains(told[len(told)-1], c.says) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d and %q", code, out, errOut, c.code, c.says)
			}
		})
	}
}

// TestACheckoutIsBuilt builds a checkout whose command only says which version its trail has.
func TestACheckoutIsBuilt(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, lab.CommandPath), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module pitstop.internal\n\ngo 1.26\n", lab.CommandPath + "/main.go": "package main\n\nfunc main() { println(`hello`); print(`x`) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append(ownNight(t), "--against", dir)
	_, errOut, code := call(t, "", args...)
	if code != cli.ExitFailed || !strings.Contains(errOut, "pitstop: building "+dir+"\n") || !strings.Contains(errOut, "pitstop: the other build: hello\n") {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
	if err := os.WriteFile(filepath.Join(dir, lab.CommandPath, "main.go"), []byte("package main\n\nfunc main() { none() }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errOut, code = call(t, "", args...)
	if code != cli.ExitFailed || !strings.Contains(errOut, "undefined: none") || !strings.Contains(errOut, dir+" cannot be built: exit status 1\n") {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
}
