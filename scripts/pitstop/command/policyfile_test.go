package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
)

const soundPolicy = "policies:\n  night:\n    preset: spot\n    switches: {restart: ask}\n"

func TestPolicyCheckSaysWhatIsAllowedAndWhatLimitsIt(t *testing.T) {
	file := entriestest.Write(t, "policy.yaml", soundPolicy)
	out, errOut, code := call(t, "", "policy", "check", "--allow", "restart,recreate", file)
	if code != cli.ExitDone || errOut != "" {
		t.Fatalf("exit code %d, stderr %q", code, errOut)
	}
	want := `policy night
  request_checkpoint  no   limited by the deployment
  early_maintenance   no   limited by policy night (preset spot) and the deployment
  restart             ask  limited by policy night
  recreate            yes
  recreate_non_spot   no   limited by policy night (preset spot) and the deployment
  start_stopped       no   limited by policy night (preset spot) and the deployment
` + file + ": no fault; 1 policy\n"
	if out != want {
		t.Errorf("it prints\n%s\nwant\n%s", out, want)
	}
}

// TestPolicyCheckListsThePlacesInOrder with their times and prices.
func TestPolicyCheckListsThePlacesInOrder(t *testing.T) {
	out, errOut, code := call(t, "policies:\n  night:\n    preset: spot\n    zones: [us-west4-b]\n    chip_hour_price: 1.20\n    places:\n"+
		"      - {capacity: on_demand, after: 2h, chip_hour_price: 3.22}\n      - {accelerator: v5litepod-8, zones: [us-central1-a]}\n", "policy", "check", "-")
	want := `  place 1             as ordered, in its own zone, then in us-west4-b, at $1.20 a chip-hour
  place 2             on demand, once all places before it have refused for 2 h 0 m, at $3.22 a chip-hour
  place 3             as v5litepod-8 in us-central1-a, at $1.20 a chip-hour
`
	if code != cli.ExitDone || errOut != "" || !strings.Contains(out, want) {
		t.Errorf("exit code %d, stderr %q, stdout\n%s\nwant\n%s", code, errOut, out, want)
	}
}

func TestPolicyCheckPointsAtEveryFault(t *testing.T) {
	file := entriestest.Write(t, "policy.yaml", "policies:\n  night:\n    preset: spott\n    giveup_after: 48h\n")
	out, errOut, code := call(t, "", "policy", "check", file)
	want := file + `:3:13: policy "night": preset "spott" is none of watch, spot, reserved` + "\n" +
		file + `:4:5: policy "night" has no "giveup_after"; did you mean give_up_after?` + "\n"
	if code != cli.ExitFailed || out != "" || errOut != want {
		t.Errorf("exit code %d, stdout %q, stderr\n%s\nwant\n%s", code, out, errOut, want)
	}
	out, errOut, code = call(t, "policies: {a: {sav: x}}", "policy", "check", "--json", "-")
	want = `{"file":"-","faults":[{"line":1,"column":16,"text":"policy \"a\" has no \"sav\"; did you mean save?"}],"policies":[]}` + "\n"
	if code != cli.ExitFailed || out != want || errOut != "" {
		t.Errorf("exit code %d, stderr %q, stdout\n%s\nwant\n%s", code, errOut, out, want)
	}
}

func TestPolicyCheckAsJSON(t *testing.T) {
	out, errOut, code := call(t, soundPolicy, "policy", "check", "--json", "-")
	for _, want := range []string{
		`"faults":[]`, `{"switch":"restart","level":"ask","limited_by":"policy night"}`, `{"switch":"recreate","level":"yes","limited_by":""}`,
	} {
		if code != cli.ExitDone || errOut != "" || !strings.Contains(out, want) {
			t.Errorf("exit code %d, stderr %q, and %s is not in\n%s", code, errOut, want, out)
		}
	}
}

func TestPolicySchemaPrintsThePublishedOne(t *testing.T) {
	published, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "policy", "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	out, errOut, code := call(t, "", "policy", "schema")
	if code != cli.ExitDone || errOut != "" || !bytes.Equal([]byte(out), published) {
		t.Errorf("exit code %d, stderr %q, %d bytes of %d", code, errOut, len(out), len(published))
	}
}

// TestPolicyExampleIsSound: policy check accepts what policy example prints, as it stands on a screen of any width.
func TestPolicyExampleIsSound(t *testing.T) {
	for _, columns := range []string{"80", "160"} {
		t.Setenv("COLUMNS", columns)
		example, errOut, code := call(t, "", "policy", "example")
		if code != cli.ExitDone || errOut != "" {
			t.Fatalf("exit code %d, stderr %q", code, errOut)
		}
		if out, errOut, code := call(t, example, "policy", "check", "-"); code != cli.ExitDone || errOut != "" || !strings.HasPrefix(out, "policy llama\n") {
			t.Errorf("%s columns: exit code %d, stderr %q, stdout %q", columns, code, errOut, out)
		}
	}
}

func TestPolicyRefusesAWrongCall(t *testing.T) {
	for _, args := range [][]string{
		{"policy", "fly"},
		{"policy", "check"},
		{"policy", "check", "a", "b"},
		{"policy", "check", filepath.Join(t.TempDir(), "none.yaml")},
		{"policy", "check", "--allow", "fly", entriestest.Write(t, "policy.yaml", soundPolicy)},
		{"policy", "schema", "x"},
	} {
		out, errOut, code := call(t, "", args...)
		if code != cli.ExitUsage || out != "" || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, out, errOut)
		}
	}
}

func TestReplayAndSimulateShowWhatLimits(t *testing.T) {
	out, _, _ := call(t, entriestest.Preempted("2"), "replay", "-")
	if want := "allowed: nothing · no, limited by preset watch:"; !strings.Contains(out, want) {
		t.Errorf("%q is not said in\n%s", want, out)
	}
	out, _, _ = call(t, "", "simulate", "--days", "0.1", "--slices", "2", "--faults", "none")
	if !strings.Contains(out, "limited by ") {
		t.Errorf("no limit is said in\n%s", out)
	}
}
