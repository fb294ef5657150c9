package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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
	if err != nil || code != exitDone || errOut != "" || len(all) != len(dirs) {
		t.Fatalf("exit code %d, stderr %q, %d lines for %d scenarios, %v", code, errOut, len(all), len(dirs), err)
	}
	if !strings.HasPrefix(all[0], "preemption ") || !strings.HasPrefix(all[1], "autocheckpoint-exit-0 ") {
		t.Errorf("the list begins with\n%s\n%s", all[0], all[1])
	}
	out, _, code = call(t, "", "replay", "--summary", "crash", "preemption")
	if code != exitDone || strings.Index(out, "\npreemption") > strings.Index(out, "\ncrash") || !strings.Contains(out, "2 incidents: 2 resumed") || strings.Contains(out, "RECORDED") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for arg, says := range map[string]string{
		"preemtion": `"preemtion" is neither a file nor a recorded incident; did you mean preemption? replay --list names them`,
		"xyzzyxyzy": `"xyzzyxyzy" is neither a file nor a recorded incident; replay --list names them`,
	} {
		if out, errOut, code := call(t, "", "replay", arg); code != exitUsage || out != "" || errOut != "pitstop: "+says+"\n" {
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
		"only lists that gcloud writes can be given": {"--fleet", write(t, "a.json", "[]"), "--fleet", write(t, "b.yaml", ownFleetFile), crashes},
	} {
		out, errOut, code := call(t, "", append([]string{"replay"}, args...)...)
		if code != exitUsage || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, says) {
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
			if code != exitDone || errOut != "" {
				t.Fatalf("exit code %d, stderr %q", code, errOut)
			}
			for line := range strings.Lines(out) {
				if n := columns(strings.TrimSuffix(line, "\n")); fmt.Sprint(n) > wide && n >= 100 || n > 160 || wide == "80" && n > 80 {
					t.Errorf("%s columns: %q has %d", wide, line, n)
				}
			}
			rows := [][]string{{"preemption", "preemption", "resumed", "15 m 25 s", "4.1"}, {"maintenance-early-impossible", "maintenance", "resumed"}, {"total"}}
			if args[0] == "--policy" {
				rows = [][]string{{"when", "workload", "cause", "end", "away", "chip-hours"}, {"Nov 12 02:14", "llama-8b", "training crash", "escalated", "1 h 1 m", "16.5"}, {"total", "1 h 1 m", "16.5"}}
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

// TestALongNameIsCutInItsMiddle: the row stays one line, and the figures stay whole.
func TestALongNameIsCutInItsMiddle(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	var out bytes.Buffer
	s := summary{rows: []summaryRow{
		{workload: "mine/a-name-that-is-far-too-long-for-a-row-of-a-table", cause: "training crash", end: "escalated", outcome: "escalated", still: true, away: 59*time.Minute + 59*time.Second, chips: 12345.6, opened: time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC)},
		{workload: "mine/b", cause: "preemption", end: "not ended", opened: time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)},
	}}
	newStoryPrinter(&out, false).table(&s)
	got := strings.Split(out.String(), "\n")
	for _, line := range got {
		if columns(line) > 80 {
			t.Errorf("%d columns: %q", columns(line), line)
		}
	}
	if !strings.HasPrefix(got[1], "2025-12-31 23:00  a-na…able  training") || !strings.HasSuffix(got[1], "escalated  >= 59 m 59 s   >= 12,345") || !strings.HasSuffix(got[2], "not ended             -           -") {
		t.Errorf("the rows are\n%s", out.String())
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

// ticking is a clock that goes on by so much each time that somebody reads it, and calls then.
func ticking(by time.Duration, read func(times int)) func() time.Time {
	now, n := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
	return func() time.Time {
		n++
		read(n)
		now = now.Add(by)
		return now
	}
}

// TestReplaySaysHowFarItIs: a line now and then, with what is left, where there is no terminal.
func TestReplaySaysHowFarItIs(t *testing.T) {
	var out, errOut bytes.Buffer
	o := replayOptions{policy: "spot", now: ticking(time.Second, func(int) {})}
	if err := replayRecords(t.Context(), []string{write(t, "entries.json", preempted("2"))}, o, nil, &out, &errOut); err != nil {
		t.Fatal(err)
	}
	said := strings.Split(strings.TrimSpace(errOut.String()), "\n")
	if len(said) < 5 {
		t.Fatalf("it said\n%s", errOut.String())
	}
	i := slices.IndexFunc(said, func(line string) bool { return strings.HasSuffix(line, " left") })
	if i < 0 {
		t.Fatalf("no line says how much is left:\n%s", errOut.String())
	}
	for _, want := range []string{"pitstop: 0 of 1 entries · ", " hours · ", "0 incidents"} {
		if !strings.Contains(said[i], want) {
			t.Errorf("%q is not in %q", want, said[i])
		}
	}
}

// TestAnInterruptedReplayPrintsWhatItKnows, and says where it was.
func TestAnInterruptedReplayPrintsWhatItKnows(t *testing.T) {
	later := strings.NewReplacer(at, "2026-11-13T02:14:06Z", `"insertId":"i`, `"insertId":"j`).Replace(preempted("2"))
	entries := write(t, "entries.json", preempted("2")+"\n"+later+"\n")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errOut bytes.Buffer
	o := replayOptions{policy: "spot", now: ticking(time.Second, func(int) {
		if strings.Contains(out.String(), "RESUMED") {
			stop() // the first incident has been printed, though the replay goes on
		}
	})}
	err := replayRecords(ctx, []string{entries}, o, nil, &out, &errOut)
	if !errors.Is(err, errInterrupted) || !strings.Contains(errOut.String(), "pitstop: interrupted at 2026-11-12 02:") || !strings.Contains(errOut.String(), "after 1 of 2 entries") {
		t.Errorf("%v, stderr %q", err, errOut.String())
	}
	if !strings.Contains(out.String(), "1 incident: 1 resumed") {
		t.Errorf("the table is not there:\n%s", out.String())
	}
	stop()
	for _, what := range []string{"looked through for TPUs", "put in order"} {
		ctx, stop := context.WithCancel(t.Context())
		var out, errOut bytes.Buffer
		o := replayOptions{policy: "spot", now: ticking(time.Minute, func(int) {
			if strings.Contains(errOut.String(), what) {
				stop()
			}
		})}
		err := replayRecords(ctx, []string{write(t, "entries.json", strings.Repeat(preempted("2")+"\n", 5))}, o, nil, &out, &errOut)
		told := strings.Split(strings.TrimSpace(errOut.String()), "\n")
		if last := told[len(told)-1]; !errors.Is(err, errInterrupted) || last != "pitstop: interrupted after 5 entries were read; none was played" || out.String() != "" {
			t.Errorf("while entries are %s: %v, stdout %q, stderr %q", what, err, out.String(), errOut.String())
		}
		if n := strings.Count(errOut.String(), what); n > 2 {
			t.Errorf("of 5 entries %d were %s after the interruption", n, what)
		}
		stop()
	}
}

// TestAnInterruptedVerbOfTheLabEndsWith130 as a shell expects it.
func TestAnInterruptedVerbOfTheLabEndsWith130(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	entries := write(t, "entries.json", preempted("2")+"\n")
	for _, args := range [][]string{{"replay", entries}, {"replay", "preemption"}, {"simulate", "--days", "3", "--slices", "1"}} {
		var out, errOut bytes.Buffer
		if code := run(ctx, args, nil, &out, &errOut); code != exitInterrupted || !strings.Contains(errOut.String(), "pitstop: interrupted") {
			t.Errorf("%v: exit code %d, stderr %q", args, code, errOut.String())
		}
	}
}

// TestAnInterruptedSimulationPrintsWhatItKnows, and ends with 130.
func TestAnInterruptedSimulationPrintsWhatItKnows(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o := simulateOptions{seed: 4, seeds: 2, days: 40, slices: 2, faults: "none", now: ticking(20*time.Millisecond, func(n int) {
		if n == 600 {
			stop()
		}
	})}
	var out, errOut bytes.Buffer
	err := simulate(ctx, o, &out, &errOut)
	if !errors.Is(err, errInterrupted) || !strings.Contains(errOut.String(), "pitstop: interrupted: of ") || !strings.Contains(out.String(), "incidents by cause") {
		t.Errorf("%v, stderr %q\n%s", err, errOut.String(), out.String())
	}
	if line, _, _ := strings.Cut(errOut.String(), "\n"); !strings.Contains(line, " of 80 simulated days · ") || !strings.Contains(line, " days/s · ") || !strings.Contains(line, " left") {
		t.Errorf("it said %q", line)
	}
}

// TestAComparedReplaySaysHowFarItIs, in the same words.
func TestAComparedReplaySaysHowFarItIs(t *testing.T) {
	var out, errOut bytes.Buffer
	o := replayOptions{policy: "spot", comparing: comparing{trail: true}, now: ticking(time.Second, func(int) {})}
	if err := replayRecords(t.Context(), []string{write(t, "entries.json", preempted("2"))}, o, nil, &out, &errOut); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^pitstop: 0 of 1 entries · .* hours · .* left$`).MatchString(errOut.String()) {
		t.Errorf("it said\n%s", errOut.String())
	}
}

// TestAnInterruptedLongerRunLeavesTheCompleteOne before it: the report is of that, and says so.
func TestAnInterruptedLongerRunLeavesTheCompleteOne(t *testing.T) {
	if testing.Short() {
		t.Skip("it simulates days")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errOut bytes.Buffer
	o := simulateOptions{seed: 4, seeds: 1, days: 0.2, slices: 2, least: 1000, faults: "none", asJSON: true}
	o.now = ticking(time.Second, func(int) {
		if strings.Contains(errOut.String(), " of 0.6 simulated days") {
			stop()
		}
	})
	err := simulate(ctx, o, &out, &errOut)
	const says = "pitstop: interrupted in a longer run, which --incidents asks for; the report covers the last complete one, of 0.2 days\n"
	if !errors.Is(err, errInterrupted) || !strings.Contains(out.String(), `"days":0.2,`) || !strings.HasSuffix(errOut.String(), says) {
		t.Errorf("%v, stderr %q\n%s", err, errOut.String(), out.String())
	}
}

// TestAFileThatIsNotThereIsNamed, outside of the repository too.
func TestAFileThatIsNotThereIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	_, errOut, code := call(t, "", "replay", "nofile")
	if code != exitUsage || !strings.HasPrefix(errOut, `pitstop: "nofile": no such file, and the recorded incidents are in Pitstop's repository: `) {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
}

// TestASimulationSaysHowFarItIs: within a day, and in the longer runs that --incidents asks for, whose days come on top.
func TestASimulationSaysHowFarItIs(t *testing.T) {
	o := simulateOptions{seed: 4, seeds: 1, days: 0.2, slices: 2, least: 2, faults: "none", asJSON: true}
	o.now = ticking(time.Second, func(int) {})
	var out, errOut bytes.Buffer
	if err := simulate(t.Context(), o, &out, &errOut); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pitstop: 0.0", " of 0.2 simulated days · ", " of 0.6 simulated days · ", " left"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("%q is not said in\n%s", want, errOut.String())
		}
	}
}

// TestAMeterOnATerminalIsABar: with the same words, no wider than the line, and gone when other text is printed.
func TestAMeterOnATerminalIsABar(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &meter{out: &out, now: func() time.Time { now = now.Add(time.Second); return now }, width: 80, bar: newBar(&out)}
	m.began = m.now()
	m.told = m.began
	m.at(0.25, []string{"1,234,567 of 9,876,543 entries", "100.0 of 400.0 days", "12 incidents"}, 1000, "entries")
	m.at(0.5, []string{"2 of 4 entries", "1.0 of 2.0 days", "3 incidents"}, 2, "entries")
	m.clear()
	shown := out.String()
	for _, want := range []string{"25%", "1,234,567 of 9,876,543 entries · 100.0 of 400.0 days · 3 s left", "50%", "2 of 4 entries · 1.0 of 2.0 days · 3 incidents · 2 s left"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in %q", want, shown)
		}
	}
	if !strings.HasSuffix(shown, "\x1b[2K\r") {
		t.Errorf("the bar is still there: %q", shown)
	}
}

// TestReplayTakesAFleetInYAML, as simulate does; and simulate takes gcloud's list.
func TestBothFormsOfAFleet(t *testing.T) {
	out, errOut, code := call(t, "", "replay", "--summary", "--policy", filepath.Join(filepath.Dir(crashes), "policy.yaml"), "--fleet", filepath.Join(filepath.Dir(crashes), "scenario.yaml"), crashes)
	if code != exitDone || errOut != "" || !strings.Contains(out, "escalated  >= 54 m 34 s     >= 14.6") {
		t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
	}
	fleet := write(t, "fleet.json", `[{"name":"projects/mine/locations/us-west4-a/nodes/llama","acceleratorType":"v5litepod-16","schedulingConfig":{"spot":true},
"labels":{"pitstop-policy":"own"},"metadata":{"pitstop-checkpoint-dir":"gs://bucket/llama"}}]`)
	out, errOut, code = call(t, "", "simulate", "--json", "--days", "0.5", "--faults", "none", "--fleet", fleet, "--policy", write(t, "policy.yaml", ownPolicyFile),
		"--rates", write(t, "rates.yaml", "unnamed: none\n"), "--trace", write(t, "events.csv", ownTrace))
	if code != exitDone || !strings.Contains(errOut, "assumed: the list names no capacity") {
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
	without := strings.ReplaceAll(strings.ReplaceAll(preempted("2"), `,"receiveTimestamp":"`+at+`"`, ""), `,"timestamp":"`+at+`"`, "")
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
			"an entry that is only noted": timeless, "an entry without a time": without, "one with": preempted("2"), "no entry": `{"logName":7}` + "\n",
			"all": preempted("2") + "\n" + timeless + without,
		} {
			out, _, _ := call(t, text, append(args, "-")...)
			held(strings.Join(args, " ")+" of "+name, out)
		}
	}
	for _, args := range [][]string{
		{"simulate", "--json", "--days", "0.3", "--slices", "2"},
		{"simulate", "--trail", "--days", "0.3", "--slices", "2"},
		{"filter", "--json"},
		{"policy", "check", "--json", write(t, "policy.yaml", ownPolicyFile)},
		{"replay", "--json", "maintenance", "watched"},
	} {
		out, _, _ := call(t, "", args...)
		held(strings.Join(args, " "), out)
	}
	for _, args := range [][]string{{"status"}, {"incident", "llama-8b-20261112-3"}, {"check", "llama-8b"}, {"canary"}, {"drill", "llama-8b", "--yes", "--why", "first"}, {"watch"}} {
		got, err := scene(t, args[0]).call(append(args, "--json")...)
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
		held(args[0], got)
	}
	if walked < 1000 {
		t.Errorf("only %d texts were looked at", walked)
	}
}

// TestRecordedIncidentsStandInTheOrderOfTheirPaths: a comparison plays them side by side with another build, which has that order.
func TestRecordedIncidentsStandInTheOrderOfTheirPaths(t *testing.T) {
	names, err := recordedNames(filepath.Join("..", "..", ".."))
	byPath := func(a, b string) int { return strings.Compare(a+"/", b+"/") }
	if err != nil || len(names) < 40 || !slices.IsSortedFunc(names, byPath) {
		t.Errorf("%v, %v", names, err)
	}
}
