package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/breadth"
)

// crashes are the entries of a training that crashes for good.
var crashes = filepath.Join("..", "..", "..", "events", "testdata", "crash-loop", "entries.json")

// TestReplayNamesItsScenarios: the headline is first, each has one line, and a name that is none names the nearest.
func TestReplayNamesItsScenarios(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	out, errOut, code := call(t, "", "replay", "--list")
	all := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(line string) bool { return strings.HasPrefix(line, " ") }) // the rest of a title
	dirs, err := filepath.Glob(filepath.Join("..", "..", "..", "events", "testdata", "*", "scenario.yaml"))
	if err != nil || code != cli.ExitDone || errOut != "" || len(all) != len(dirs) {
		t.Fatalf("exit code %d, stderr %q, %d lines for %d scenarios, %v", code, errOut, len(all), len(dirs), err)
	}
	if !strings.HasPrefix(all[0], "preemption ") || !strings.HasPrefix(all[1], "autocheckpoint-exit-0 ") {
		t.Errorf("the list begins with\n%s\n%s", all[0], all[1])
	}
	out, _, code = call(t, "", "replay", "--summary", "crash", "preemption")
	if code != cli.ExitDone || strings.Index(out, "\npreemption") > strings.Index(out, "\ncrash") || !strings.Contains(out, "2 incidents: 2 resumed") || strings.Contains(out, "RECORDED") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for arg, says := range map[string]string{
		"preemtion": `"preemtion" is neither a file nor a recorded incident; did you mean preemption? replay --list names them`,
		"xyzzyxyzy": `"xyzzyxyzy" is neither a file nor a recorded incident; replay --list names them`,
	} {
		if out, errOut, code := call(t, "", "replay", arg); code != cli.ExitUsage || out != "" || errOut != "pitstop: "+says+"\n" {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errOut)
		}
	}
}

func TestReplayUsage(t *testing.T) {
	for says, args := range map[string][]string{
		"--list goes alone":                          {"--list", "preemption"},
		"name either recorded incidents or files":    {"preemption", crashes},
		"it takes crew=none, crew=fails, crew=":      {"--assume", "crew=sleeps", crashes},
		"--assume \"staff=none\": it takes":          {"--assume", "staff=none", crashes},
		"contradict each other":                      {"--assume", "crew=none", "--assume", "crew=fails", crashes},
		"--assume go with files of your own":         {"--assume", "crew=none", "preemption"},
		"--summary is for people":                    {"--summary", "--json"},
		"--summary prints no lines, and --speed":     {"--summary", "--speed", "60"},
		"only lists that gcloud writes can be given": {"--fleet", entriestest.Write(t, "a.json", "[]"), "--fleet", entriestest.Write(t, "b.yaml", ownFleetFile), crashes},
	} {
		out, errOut, code := call(t, "", append([]string{"replay"}, args...)...)
		if code != cli.ExitUsage || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, says) {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q; want %q", args, code, out, errOut, says)
		}
	}
}

// TestReplayEndsWithATable: a row for each incident, the sums, and what was assumed, all within the line.
func TestReplayEndsWithATable(t *testing.T) {
	for _, wide := range breadth.Of([]string{"80", "100", "160"}, []string{"80"}) {
		t.Setenv("COLUMNS", wide)
		for _, args := range [][]string{{"--summary", "preemption", "maintenance-early-impossible", "quota"}, {"--policy", "spot", crashes}} {
			out, errOut, code := call(t, "", append([]string{"replay"}, args...)...)
			if code != cli.ExitDone || errOut != "" {
				t.Fatalf("exit code %d, stderr %q", code, errOut)
			}
			for line := range strings.Lines(out) {
				if n := terminal.Columns(strings.TrimSuffix(line, "\n")); fmt.Sprint(n) > wide && n >= 100 || n > 160 || wide == "80" && n > 80 {
					t.Errorf("%s columns: %q has %d", wide, line, n)
				}
			}
			rows := [][]string{{"preemption", "preemption", "resumed", "10 m 26 s", "3.2"}, {"maintenance-early-impossible", "maintenance", "resumed"}, {"total"}}
			if args[0] == "--policy" {
				rows = [][]string{{"when", "workload", "cause", "end", "away", "chip-hours"}, {"Nov 12 02:14", "llama-8b", "training crash", "escalated", ">= 43 m 34 s", "16.5"}, {"total", "43 m 34 s", "16.5"}}
				if !strings.Contains(out, "assumed (not in your logs; Pitstop's assumptions)") {
					t.Error("the summary does not say what is assumed")
				}
			}
			for _, row := range rows {
				if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
					return strings.HasPrefix(line, row[0]) && !slices.ContainsFunc(row, func(cell string) bool { return !strings.Contains(line, cell) })
				}) {
					t.Errorf("%s columns: no row has %q:\n%s", wide, row, out)
				}
			}
		}
	}
}

// TestATrainingThatIsNotBackIsAwayForLonger: in the row and in the sum, by the entries alone and by their scenario.
func TestATrainingThatIsNotBackIsAwayForLonger(t *testing.T) {
	const says = ">= counts until the incident ended, when the training was not back yet"
	for _, c := range []struct {
		what  string
		still bool
	}{{crashes, true}, {"crash-loop", true}, {"watched", true}, {"preemption", false}, {"owner-deletes", false}, {"maintenance-withdrawn", false}} {
		out, _, _ := call(t, "", "replay", "--summary", c.what)
		want := 0
		if c.still {
			want = 5 // two in the row, two in the sum, and what it means
		}
		if n := strings.Count(out, ">="); n != want || strings.Contains(out, says) != c.still {
			t.Errorf("%s has %d figures that are too small, want %d:\n%s", c.what, n, want, out)
		}
	}
}

// TestAnInterruptedVerbOfTheLabEndsWith130 as a shell expects it.
func TestAnInterruptedVerbOfTheLabEndsWith130(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	entries := entriestest.Write(t, "entries.json", entriestest.Preempted("2")+"\n")
	for _, args := range [][]string{{"replay", entries}, {"replay", "preemption"}, {"simulate", "--days", "3", "--slices", "1"}} {
		var out, errOut bytes.Buffer
		if code := run(ctx, args, nil, &out, &errOut); code != cli.ExitInterrupted || !strings.Contains(errOut.String(), "pitstop: interrupted") {
			t.Errorf("%v: exit code %d, stderr %q", args, code, errOut.String())
		}
	}
}

// TestAFileThatIsNotThereIsNamed, outside of the repository too.
func TestAFileThatIsNotThereIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	_, errOut, code := call(t, "", "replay", "nofile")
	if code != cli.ExitUsage || !strings.HasPrefix(errOut, `pitstop: "nofile": no such file, and the recorded incidents are in Pitstop's repository: `) {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
}

// TestReplayTakesAFleetInYAML, as simulate does; and simulate takes gcloud's list.
func TestBothFormsOfAFleet(t *testing.T) {
	out, errOut, code := call(t, "", "replay", "--summary", "--policy", filepath.Join(filepath.Dir(crashes), "policy.yaml"), "--fleet", filepath.Join(filepath.Dir(crashes), "scenario.yaml"), crashes)
	if code != cli.ExitDone || errOut != "" || !strings.Contains(out, "escalated  >= 43 m 34 s     >= 14.7") {
		t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
	}
	fleet := entriestest.Write(t, "fleet.json", `[{"name":"projects/mine/locations/us-west4-a/nodes/llama","acceleratorType":"v5litepod-16","schedulingConfig":{"spot":true},
"labels":{"pitstop-policy":"own"},"metadata":{"pitstop-checkpoint-dir":"gs://bucket/llama"}}]`)
	out, errOut, code = call(t, "", "simulate", "--json", "--days", "0.5", "--faults", "none", "--fleet", fleet, "--policy", entriestest.Write(t, "policy.yaml", ownPolicyFile),
		"--rates", entriestest.Write(t, "rates.yaml", "unnamed: none\n"), "--trace", entriestest.Write(t, "events.csv", ownTrace))
	if code != cli.ExitDone || !strings.Contains(errOut, "assumed: the list names no capacity") {
		t.Fatalf("exit code %d, stderr %q", code, errOut)
	}
	if r := lines(t, out)[0]; r["incidents"] != 1.0 {
		t.Errorf("%v", r)
	}
}

// TestNoJSONHasATimeBeforeTime walks all that the command prints as JSON: where a time is not known, the field is absent.
func TestNoJSONHasATimeBeforeTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays each verb")
	}
	timeless := `{"data":"the pool is upgrading","attributes":{"cluster_name":"c","cluster_location":"us-west4-a","project_id":"mine",` +
		`"type_url":"type.googleapis.com/google.container.v1beta1.UpgradeEvent","payload":"{\"resourceType\":\"NODE_POOL\"}"}}` + "\n"
	without := strings.ReplaceAll(strings.ReplaceAll(entriestest.Preempted("2"), `,"receiveTimestamp":"`+entriestest.At+`"`, ""), `,"timestamp":"`+entriestest.At+`"`, "")
	walked := 0
	var walk func(where string, v any)
	walk = func(where string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, of := range v {
				walk(where+"."+k, of)
			}
		case []any:
			for _, of := range v {
				walk(where, of)
			}
		case string:
			walked++
			if strings.HasPrefix(v, "0001-") {
				t.Errorf("%s is %s", where, v)
			}
		}
	}
	held := func(name, out string) {
		t.Helper()
		if strings.TrimSpace(out) == "" {
			if !strings.HasSuffix(name, " of no entry") {
				t.Errorf("%s printed nothing", name)
			}
			return
		}
		for i, l := range lines(t, out) {
			walk(fmt.Sprintf("%s:%d", name, i+1), l)
		}
	}
	for _, args := range [][]string{
		{"replay", "--json"}, {"replay", "--trail"}, {"explain", "--json"}, {"report", "--json"}, {"replay", "--json", "--policy", "spot"},
	} {
		for name, text := range map[string]string{
			"an entry that is only noted": timeless, "an entry without a time": without, "one with": entriestest.Preempted("2"), "no entry": `{"logName":7}` + "\n",
			"all": entriestest.Preempted("2") + "\n" + timeless + without,
		} {
			out, _, _ := call(t, text, append(args, "-")...)
			held(strings.Join(args, " ")+" of "+name, out)
		}
	}
	for _, args := range [][]string{
		{"simulate", "--json", "--days", "0.3", "--slices", "2"},
		{"simulate", "--trail", "--days", "0.3", "--slices", "2"},
		{"filter", "--json"},
		{"policy", "check", "--json", entriestest.Write(t, "policy.yaml", ownPolicyFile)},
		{"replay", "--json", "maintenance", "watched"},
	} {
		out, _, _ := call(t, "", args...)
		held(strings.Join(args, " "), out)
	}
	for _, args := range [][]string{{"status"}, {"incident", "llama-8b-20261112-3"}, {"check", "llama-8b"}, {"canary"}, {"drill", "llama-8b", "--yes", "--why", "first"}, {"watch"}} {
		got, err := scene(t, args[0]).Call(append(args, "--json")...)
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
		held(args[0], got)
	}
	if walked < 1000 {
		t.Errorf("only %d texts were looked at", walked)
	}
}
