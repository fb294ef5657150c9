package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/breadth"
)

// call runs the command as a user would, and returns what it printed and its exit code.
func call(t *testing.T, stdin string, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &o, &e)
	return o.String(), progressLine.ReplaceAllString(e.String(), ""), code
}

// progressLine says how far a run is. Whether a run is slow enough for one depends on the machine.
var progressLine = regexp.MustCompile(`(?m)^pitstop: (scenario )?[\d,.]+ (of [\d,.]+|entries read)\b.*(\n  .*)?\n`)

func TestExplainTellsEveryEntryAsJSON(t *testing.T) {
	text := entriestest.Preempted("2") + "\n" + `{"logName":"projects/mine/logs/syslog","timestamp":"` + entriestest.At + `"}` + "\n{\"logName\": 3}\n"
	out, errOut, code := call(t, text, "explain", "--json", "--policy", "spot", "-")
	if code != cli.ExitFailed || errOut != "" {
		t.Errorf("exit code %d, stderr %q; want 1 for the faulty entry and nothing on stderr", code, errOut)
	}
	var got []map[string]any
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		var x map[string]any
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, x)
	}
	calls, _ := got[0]["calls"].([]any)
	if first, _ := calls[0].(map[string]any); len(calls) != 3 || first["method"] != "DeleteNode" || first["switch"] != "recreate" || first["level"] != "yes" || first["limited_by"] != "" {
		t.Errorf("the calls are %v", calls)
	}
	delete(got[0], "calls")
	want := []map[string]any{
		{
			"index": 1.0, "kind": "loss", "subject": "projects/mine/zones/us-west4-a/instances/t1v-n-3f2a9c01-w-2", "rank": "audit_log",
			"leads_to": "an incident: look at the API; if the slice is lost and Spot, delete it and create it again; if it is not Spot, wait for " +
				"Google's own recovery, then nothing is done (the switch recreate_non_spot is no, limited by preset spot); otherwise Pitstop would delete it and create it again",
			"ignored": false, "reason": "worker 2 was preempted", "code": "", "error": "",
		},
		{"index": 2.0, "kind": "", "subject": "", "rank": "", "leads_to": "", "ignored": true, "reason": "the log syslog is not read", "code": "nothing_follows", "error": ""},
		{
			"index": 3.0, "kind": "", "subject": "", "rank": "", "leads_to": "", "ignored": false, "reason": "", "code": "",
			"error": "standard input:3: log entry: logName is a number, which does not fit there",
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestExplainSaysItInPlainWords(t *testing.T) {
	out, errOut, code := call(t, entriestest.Preempted("2"), "explain")
	if code != cli.ExitDone || errOut != "" {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
	for _, want := range []string{"worker 2 was preempted", "loss (audit_log)", "nothing is done (the switch recreate is no, limited by preset watch)"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said in\n%s", want, out)
		}
	}
}

// TestExplainTellsWhatFollows has one entry of each sort from which something follows, or nothing, under a policy.
func TestExplainTellsWhatFollows(t *testing.T) {
	sources := filepath.Join("..", "..", "..", "events", "testdata", "sources")
	for _, c := range []struct {
		source, id string
		leadsTo    string
		reason     string
	}{
		{"compute-events", "kmsKeyError", "an incident: look at the API", "worker 2 was interrupted (kmsKeyError)"},
		{"compute-events", "automaticRestart", "a look at the slice", "worker 2 was restarted by Google"},
		{"compute-events", "on-gke", "an incident of the watched Job that is on this machine", "instance gke-tpu-2f41c6aa-bq7x was preempted (PreemptionEvent)"},
		{"compute-events", "stopped-by-a-schedule-on-gke", "", "is not a failure"},
		{"tpu-events", "terminated", "an incident: look at the API", "node llama-8b was terminated (PREEMPTED)"},
		{"maintenance", "weeks-ahead", "Pitstop keeps the notice; at 2027-02-10 03:45 UTC, 15 m 0 s before the window, if the training saves every 10 m 0 s, as replay assumes: ask the training to save", "maintenance of worker 2 announced for Feb 10"},
		{"maintenance", "withdrawn", "an incident that waits for this maintenance", "no longer has announced maintenance"},
		{"maintenance-topic", "of-patrol", "Pitstop keeps the notice; at 2026-11-19 03:45 UTC, 15 m 0 s before the window", "maintenance of node llama-8b announced"},
		{"tpu-audit", "delete-done", "the owner's decision", "DeleteNode of node llama-8b by ann@example.com is done"},
		{"tpu-audit", "deleted-by-google", "Google itself made the call", "is done"},
		{"tpu-audit", "create-without-capacity", "the call changed nothing", "offered (see https://cloud.google.com/tpu/docs/regions) (stockout)"},
		{"tpu-audit", "create-over-quota", "the call changed nothing", "(quota)"},
		{"tpu-audit", "our-patch", "", "the call UpdateNode changes no slice"},
		{"crew", "of-a-newer-crew", "", "crew: a report of a newer release; "},
		{"training-lines", "maxtext-stopped", "a look at the slice", "the training stopped on a signal"},
		{"training-lines", "stack-dump", "", "a periodic dump is not a crash"},
		{"training-jobs", "aborted", "", "exit code 134, possibly transient (Error); only noted"},
		{"gke", "maintenance-scheduled", "", "maintenance scheduled for Nov 19 04:00; only noted"},
		{"gke", "upgrade", "", "node pool tpu of cluster train is upgraded (1.33.2-gke.200); only noted"},
	} {
		raw, err := os.ReadFile(filepath.Join(sources, c.source+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var entries []json.RawMessage
		if err := json.Unmarshal(raw, &entries); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(entries, func(e json.RawMessage) bool {
			return bytes.Contains(e, []byte(`"insertId": "`+c.id+`"`)) || bytes.Contains(e, []byte(`"messageId": "`+c.id+`"`))
		})
		if i < 0 {
			t.Fatalf("%s has no %s", c.source, c.id)
		}
		out, errOut, code := call(t, string(entries[i]), "explain", "--json", "--policy", "spot")
		var x struct {
			LeadsTo string `json:"leads_to"`
			Ignored bool   `json:"ignored"`
			Reason  string `json:"reason"`
			Error   string `json:"error"`
		}
		if err := json.Unmarshal([]byte(out), &x); err != nil || code != cli.ExitDone || errOut != "" || x.Error != "" {
			t.Errorf("%s/%s: exit code %d, %v, stderr %q, error %q", c.source, c.id, code, err, errOut, x.Error)
		}
		if !strings.Contains(x.LeadsTo, c.leadsTo) || !strings.Contains(x.Reason, c.reason) || x.Ignored != (c.leadsTo == "") || x.Ignored != (x.LeadsTo == "") {
			t.Errorf("%s/%s leads to %q because %q, ignored %v; want %q because %q", c.source, c.id, x.LeadsTo, x.Reason, x.Ignored, c.leadsTo, c.reason)
		}
	}
}

// TestExplainSaysWhyInOneWord: the code is that of the refusal that meets what would come first.
func TestExplainSaysWhyInOneWord(t *testing.T) {
	for policy, want := range map[string]string{"watch": "watch_only", "spot": "", "reserved": "policy_no"} {
		out, _, code := call(t, entriestest.Preempted("2"), "explain", "--json", "--policy", policy)
		var x struct {
			Code string `json:"code"`
		}
		if err := json.Unmarshal([]byte(out), &x); err != nil || code != cli.ExitDone || x.Code != want {
			t.Errorf("policy %s: code %q, %v; want %q", policy, x.Code, err, want)
		}
	}
	out, _, _ := call(t, entriestest.Preempted("2"), "explain", "--policy", "reserved")
	if !strings.Contains(out, "[policy_no]") {
		t.Errorf("the code is not beside the words:\n%s", out)
	}
}

// TestExplainNamesTheCalls: exactly those that would be made, with the zones of the policy in their order; what the entry does not
// name is marked.
func TestExplainNamesTheCalls(t *testing.T) {
	policy := entriestest.Write(t, "policy.yaml", "policies: {night: {preset: watch, zones: [us-west4-b, us-east5-a]}}\n")
	t.Setenv("COLUMNS", "1000")
	const slice, blocked = "projects/mine/locations/us-west4-a/nodes/<its-slice>", " (blocked: recreate is no, limited by policy night (preset watch))\n"
	holds := func(out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in\n%s", want, out)
			}
		}
	}
	out, errOut, code := call(t, entriestest.Preempted("2"), "explain", "--policy", policy+":night")
	if code != cli.ExitDone || errOut != "" || strings.Contains(out, "  calls ") {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
	holds(out, "\n  would call  DeleteNode "+slice+blocked,
		"\n              CreateNode "+slice+", zone after zone: us-west4-a, us-west4-b (if the order fits), us-east5-a (if the checkpoints' bucket is there too)"+blocked,
		"\n              storage.objects.create gs://<pitstop-checkpoint-dir>/pitstop-lease.json"+blocked)
	out, _, _ = call(t, entriestest.Preempted("2"), "explain", "--policy", "spot", "--allow", "restart")
	holds(out, "DeleteNode "+slice+" (blocked: recreate is no, limited by the deployment)\n")
	out, _, _ = call(t, entriestest.Preempted("2"), "explain", "--policy", "spot")
	holds(out, "DeleteNode "+slice+" (allowed by recreate)\n", "pitstop-lease.json (allowed by recreate)\n")
	asks := entriestest.Write(t, "asks.yaml", "policies: {night: {preset: spot, switches: {recreate: ask}}}\n")
	out, _, _ = call(t, entriestest.Preempted("2"), "explain", "--policy", asks)
	holds(out, "DeleteNode "+slice+" (after a person approves: recreate is ask, limited by policy night)\n")
	for _, columns := range []string{"80", "100", "160"} {
		t.Setenv("COLUMNS", columns)
		out, _, _ = call(t, entriestest.Preempted("2"), "explain", "--policy", policy+":night")
		_, calls, _ := strings.Cut(out, "\n  would call")
		for line := range strings.SplitSeq(strings.TrimRight(calls, "\n"), "\n") {
			if n := terminal.Indentation(line); n != 2 && n != 14 { // that of the first is what is left of its name
				t.Errorf("COLUMNS=%s: a call begins at %d: %q", columns, n, line)
			}
		}
		most, _ := strconv.Atoi(columns) //nolint:errcheck // they are numbers
		for line := range strings.SplitSeq(out, "\n") {
			if len(line) > most && strings.Contains(strings.TrimSpace(line), " ") && !strings.Contains(line, "projects/") {
				t.Errorf("%s columns: %d in %q", columns, len(line), line)
			}
		}
	}
}

// noticed is an entry that announces maintenance of a worker, so long before its window.
func noticed(before time.Duration) string {
	window := time.Date(2026, 11, 14, 4, 0, 0, 0, time.UTC)
	return fmt.Sprintf(`{"logName":"projects/mine/logs/cloudaudit.googleapis.com%%2Fsystem_event","timestamp":"%s","insertId":"n","protoPayload":{"serviceName":"compute.googleapis.com",`+
		`"methodName":"compute.instances.upcomingMaintenance","resourceName":"projects/mine/zones/us-east5-a/instances/t1v-n-81c0de77-w-0","metadata":{"maintenanceStatus":"PENDING",`+
		`"windowStartTime":"%s","windowEndTime":"%s"}}}`, window.Add(-before).Format(time.RFC3339), window.Format(time.RFC3339), window.Add(4*time.Hour).Format(time.RFC3339))
}

// TestExplainAndReplayAskForASaveAtTheSameTime: of notices long before and shortly before the window.
func TestExplainAndReplayAskForASaveAtTheSameTime(t *testing.T) {
	lead := entriestest.Write(t, "lead.yaml", "policies: {night: {preset: spot, lead: 35m}}\n")
	signal := entriestest.Write(t, "signal.yaml", "policies: {night: {preset: spot, save: signal}}\n")
	for _, c := range []struct {
		before       time.Duration
		policy, want string
	}{
		{48 * time.Hour, "spot", "03:45"},
		{50 * time.Minute, "spot", "03:40"},
		{10 * time.Minute, "spot", "03:50"},
		{48 * time.Hour, lead, "03:25"},
		{48 * time.Hour, signal, "03:40"},
	} {
		explained, _, _ := call(t, noticed(c.before), "explain", "--json", "--policy", c.policy)
		at := "T" + c.want + ":00"
		says := "2026-11-14 " + c.want + " UTC, "
		if c.want == "03:50" {
			at, says = "T03:51:00", "an incident: ask the training to save at once, 20 m 0 s before the window, " // patrol looks every minute
		}
		if !strings.Contains(explained, says) {
			t.Errorf("%v before the window, policy %s: explain does not say %q:\n%s", c.before, c.policy, says, explained)
		}
		replayed, _, _ := call(t, noticed(c.before), "replay", "--json", "--policy", c.policy, "-")
		asked := ""
		for _, l := range lines(t, replayed) {
			if text, _ := l["text"].(string); l["kind"] == "decision" && text == "ask the training to save" {
				asked, _ = l["time"].(string)
			}
		}
		if !strings.Contains(asked, at) {
			t.Errorf("%v before the window, policy %s: replay asks at %q, and explain says %q", c.before, c.policy, asked, says)
		}
	}
}

// TestExplainAsksForFiles: on a terminal, nobody knows that it would wait for entries to be typed in.
func TestExplainAsksForFiles(t *testing.T) {
	in, err := os.Open(os.DevNull) // a character device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() //nolint:errcheck // it is only read
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"explain"}, in, &out, &errOut)
	if want := "pitstop: explain: name the files with your log entries; - is standard input\n"; code != cli.ExitUsage || out.Len() > 0 || errOut.String() != want {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, &out, &errOut)
	}
}

// TestExplainCounts has unknown kinds counted, and none of them an error.
func TestExplainCounts(t *testing.T) {
	text := entriestest.Preempted("2") + "\n" + entriestest.Preempted("1") + strings.ReplaceAll(entriestest.Preempted("0"), "t1v-n-3f2a9c01-w-0", "gke-tpu-2f41c6aa-bq7x") +
		`{"logName":"projects/mine/logs/syslog"}{"logName":"projects/mine/logs/events","jsonPayload":{"reason":"Pulled"}}{"data":"x","attributes":{}}`
	out, errOut, code := call(t, text, "explain")
	want := "6 entries: 3 lead to something, 0 noted only, 3 of unknown kinds (loss 3)\n"
	if code != cli.ExitDone || errOut != "" || !strings.HasSuffix(out, want) {
		t.Errorf("exit code %d, stderr %q; want the end %q of\n%s", code, errOut, want, out)
	}
	out, _, code = call(t, text+`{"logName":3}`, "explain")
	if code != cli.ExitFailed || !strings.Contains(out, "3 of unknown kinds, 1 refused (loss 3)") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func TestExplainObeysNoEntry(t *testing.T) {
	text := strings.ReplaceAll(entriestest.Preempted("2"), "us-west4-a", `us\u001b[2J`)
	out, _, _ := call(t, text, "explain")
	if !strings.Contains(out, "us\ufffd[2J") || strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
}

// TestFilterPrintsWhatAShellTakes runs the printed line with a gcloud that repeats its arguments.
func TestFilterPrintsWhatAShellTakes(t *testing.T) {
	out, errOut, code := call(t, "", "filter", "--project", "my-project")
	if code != cli.ExitDone || errOut != "" {
		t.Fatalf("exit code %d, stderr %q", code, errOut)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), sh, "-c", "gcloud() { printf '%s\\0' \"$@\"; }\n"+out) //nolint:gosec // it is what a user would do
	c.Dir = dir
	if raw, err := c.CombinedOutput(); err != nil || len(raw) > 0 {
		t.Fatalf("%v: %s", err, raw)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "entries.json"))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
	want := []string{"logging", "read", events.Whole(events.Sinks(events.Accounts{})), "--project=my-project", "--format=json", "--freshness=400d", "--order=asc"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, s := range events.Sinks(events.Accounts{}) {
		if !strings.Contains(out, "# "+s.Name+": ") {
			t.Errorf("%s is not told", s.Name)
		}
	}
}

func TestFilterOfOneSink(t *testing.T) {
	for _, s := range events.Sinks(events.Accounts{}) {
		if out, _, code := call(t, "", "filter", "--sink", s.Name); code != cli.ExitDone || out != s.Filter+"\n" {
			t.Errorf("%s: exit code %d\n%s", s.Name, code, out)
		}
	}
	out, _, code := call(t, "", "filter", "--json")
	if got := lines(t, out); code != cli.ExitDone || len(got) != len(events.Sinks(events.Accounts{})) || got[2]["topic"] != "maintenance-notices" || got[2]["filter"] != events.Sinks(events.Accounts{})[2].Filter {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if _, errOut, code := call(t, "", "filter", "--sink", "nowhere"); code != cli.ExitUsage || !strings.Contains(errOut, `no sink "nowhere"; there are tpu-events, `) {
		t.Errorf("exit code %d, %q", code, errOut)
	}
	if out, errOut, code := call(t, "", "filter", "extra"); code != cli.ExitUsage || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, `filter takes no "extra"`) {
		t.Errorf("exit code %d, %q, %q", code, out, errOut)
	}
}

// TestBadInputIsOneClearLine holds the table of bad input for every command that reads entries: one line with file and place. The
// good entries around a bad one are still used, and the exit code is 1. A file without any entry cannot be used, which is 2.
func TestBadInputIsOneClearLine(t *testing.T) {
	good := entriestest.Preempted("2")
	for name, c := range map[string]struct {
		content string
		says    string
		used    bool
	}{
		"of YAML":                      {"insertId: x\nlogName: y\nlabels: {}\n", ":1: \"insertId: x\" is YAML: read the log again with gcloud logging read --format=json", false},
		"of other text":                {"hello\nhello\n", ":1: \"hello\" is no JSON log entry, nor is the line after it", false},
		"empty":                        {"", "there is no log entry in it", false},
		"not JSON":                     {"hello\n" + good + "\n", ":1: \"hello\" is no JSON log entry", true},
		"truncated":                    {good + "\n" + good[:200], ":2: log entry: it is truncated", true},
		"of wrong types":               {good + "\n{\"logName\":7}\n", ":2: log entry: logName is a number", true},
		"of an unknown kind":           {good + "\n{\"foo\":1}\n", ":2: not a log entry: it has no logName", true},
		"larger than memory should be": {good + "\n{\"a\":\"" + strings.Repeat("x", 11<<20) + "\"}\n", ":2: log entry: it is larger than", true},
	} {
		for _, command := range []string{"explain", "replay", "report"} {
			t.Run(command+" "+name, func(t *testing.T) {
				file := entriestest.Write(t, "entries.json", c.content)
				t.Setenv("COLUMNS", "1000")
				out, errOut, code := call(t, "", command, file)
				want := cli.ExitFailed
				if !c.used {
					want = cli.ExitUsage
				}
				if code != want {
					t.Errorf("exit code %d, want %d", code, want)
				}
				if n := strings.Count(errOut, "\n"); n != 1 || !strings.Contains(errOut, c.says) || !strings.Contains(errOut, "entries.json") {
					t.Errorf("stderr is %d lines, want one that names the file and says %q:\n%s", n, c.says, errOut)
				}
				if used := strings.Contains(out, "preempt"); used != c.used {
					t.Errorf("the good entry used: %v, want %v\n%s", used, c.used, out)
				}
			})
		}
	}
	// One good file does not make up for another that is missing: only explain still explains the good one.
	missing, good := filepath.Join(t.TempDir(), "nowhere.json"), entriestest.Write(t, "entries.json", good)
	for _, args := range [][]string{
		{"explain", missing},
		{"replay", missing},
		{"report", missing},
		{"report", t.TempDir()},
		{"explain", missing, good},
		{"replay", good, missing},
		{"report", good, missing},
		{"report", "--losses", good, missing},
		{"report", "--json", good, missing},
	} {
		out, errOut, code := call(t, "", args...)
		if code != cli.ExitUsage || strings.Count(errOut, "pitstop: ") != 1 || !strings.Contains(errOut, filepath.Base(args[1])) && !strings.Contains(errOut, "nowhere.json") {
			t.Errorf("%v: exit code %d, stderr %q", args, code, errOut)
		}
		if explained := args[0] == "explain" && len(args) > 2; (out != "") != explained {
			t.Errorf("%v prints %q", args, out)
		}
	}
	out, errOut, code := call(t, "", "explain", "--json", missing)
	if code != cli.ExitUsage || errOut != "" || !strings.Contains(out, "nowhere.json") || len(lines(t, out)) != 1 {
		t.Errorf("as JSON: exit code %d, stderr %q, stdout %q", code, errOut, out)
	}
}

// TestAnAnswerOfTheAPIIsRead: what entries.list answers, in any layout, is read as what gcloud prints.
func TestAnAnswerOfTheAPIIsRead(t *testing.T) {
	entries := entriestest.Preempted("2") + ",\n" + entriestest.Preempted("0")
	for _, verb := range []string{"explain", "report", "replay"} {
		want, _, _ := call(t, "["+entries+"]", verb, "--json", "-")
		for _, answer := range []string{
			`{"entries":[` + entries + `],"nextPageToken":"E]}"}`,
			"{\n  \"entries\": [\n" + entries + "\n  ]\n}\n",
			`{"nextPageToken": "x", "entries": [` + entries + `]}`,
			`{"entries":[` + entriestest.Preempted("2") + `],"nextPageToken":"x"}` + "\n" + `{"entries":[` + entriestest.Preempted("0") + `]}`,
		} {
			got, errOut, code := call(t, answer, verb, "--json", "-")
			if code != cli.ExitDone || errOut != "" || got != want {
				t.Errorf("%s of %.30q: exit code %d, stderr %q; the same as of the entries: %v", verb, answer, code, errOut, got == want)
			}
		}
		if out, errOut, code := call(t, `{"entries":[]}`, verb, "-"); code != cli.ExitDone || out != "" || !strings.Contains(errOut, "0 entries") {
			t.Errorf("%s of an answer without an entry: exit code %d, stdout %q, stderr %q", verb, code, out, errOut)
		}
	}
}

// TestAnAnswerWithoutEntriesIsNoFault: gcloud logging read answers [] when no entry fits.
func TestAnAnswerWithoutEntriesIsNoFault(t *testing.T) {
	for _, args := range [][]string{{"explain"}, {"explain", "--json"}, {"replay", "-"}, {"replay", "--json", "-"}} {
		for _, text := range []string{"[]", "\n[ ]\n"} {
			out, errOut, code := call(t, text, args...)
			if code != cli.ExitDone || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, "0 entries") {
				t.Errorf("%v of %q: exit code %d, stdout %q, stderr %q; want 0 and one line on stderr", args, text, code, out, errOut)
			}
		}
	}
}

// TestARefusedEntryIsToldOnce: people read it on standard error, with file and line; programs have a row of it too.
func TestARefusedEntryIsToldOnce(t *testing.T) {
	const bad = `{"logName":7}`
	for _, c := range []struct{ text, total string }{
		{bad + "\n", "0 incidents, 1 fault  ("},
		{bad + "\n" + bad + "\n", "0 incidents, 2 faults  ("},
		{entriestest.Preempted("2") + "\n" + bad + "\n", "1 incident: 1 observed, 1 fault  ("},
	} {
		out, errOut, code := call(t, c.text, "replay", "-")
		if code != cli.ExitFailed || !strings.Contains(out, c.total) || strings.Contains(out, "logName") {
			t.Errorf("exit code %d, want 1, %q and no row of what stderr tells:\n%s", code, c.total, out)
		}
		if n := strings.Count(errOut, "logName is a number"); n != strings.Count(c.text, bad) {
			t.Errorf("stderr tells %d faults:\n%s", n, errOut)
		}
		out, _, _ = call(t, c.text, "replay", "--json", "-")
		if n := strings.Count(out, `"kind":"refused"`); n != strings.Count(c.text, bad) {
			t.Errorf("%d rows of refused entries:\n%s", n, out)
		}
	}
}

func TestWhatIsGuessedIsTold(t *testing.T) {
	node := strings.NewReplacer("compute.instances.preempted", "tpu.nodes.terminate", "zones/us-west4-a/instances/t1v-n-3f2a9c01-w-2", "locations/us-west4-a/nodes/llama-8b").
		Replace(entriestest.Preempted("2"))
	for name, c := range map[string]struct{ text, says string }{
		"a name": {entriestest.Preempted("2"), "tpu-3f2a9c01 in us-west4-a has this name, because only its workers t1v-n-3f2a9c01-w-* are named; "},
		"whose workers they are": {
			entriestest.Preempted("2") + node, "llama-8b in us-west4-a has the workers t1v-n-3f2a9c01-w-*, because it alone in its zone has none yet; ",
		},
		"durations": {entriestest.Preempted("2"), "maintenance that no entry ends takes 20 m 0 s, a broken host 18 m 0 s"},
	} {
		out, _, _ := call(t, c.text, "replay", "--json", "-")
		var assumed []string
		for _, l := range lines(t, out) {
			if text, _ := l["text"].(string); l["kind"] == "assumed" {
				assumed = append(assumed, text)
			}
		}
		if !slices.ContainsFunc(assumed, func(s string) bool { return strings.HasPrefix(s, c.says) }) {
			t.Errorf("%s: %q is not told among\n%s", name, c.says, strings.Join(assumed, "\n"))
		}
		if len(assumed) != 3 {
			t.Errorf("%s: %d assumptions, want those of one TPU:\n%s", name, len(assumed), strings.Join(assumed, "\n"))
		}
	}
}

func TestAnEntryWithoutATimeIsPlayed(t *testing.T) {
	text := strings.ReplaceAll(strings.ReplaceAll(entriestest.Preempted("2"), `,"receiveTimestamp":"`+entriestest.At+`"`, ""), `,"timestamp":"`+entriestest.At+`"`, "")
	out, errOut, code := call(t, text+`{"data":"x","attributes":{}}`, "replay", "--policy", "spot", "-")
	if code != cli.ExitDone || !strings.Contains(out, "RESUMED") || !strings.Contains(out, "1 incident: 1 resumed") {
		t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
	}
}

func TestReplayInStepTellsEachLineOnce(t *testing.T) {
	out, errOut, code := call(t, entriestest.Preempted("2"), "replay", "--speed", "1e9", "-")
	for _, once := range []string{"RECORDED   worker 2 was preempted", "decided    only watch", "OBSERVED", "has this name", "would have: DeleteNode", "would have: CreateNode", "1 incident: 1 observed"} {
		if n := strings.Count(out, once); n != 1 {
			t.Errorf("%q is told %d times", once, n)
		}
	}
	if code != cli.ExitDone || errOut != "" {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
}

func TestAMessageNamesItsReceiver(t *testing.T) {
	out, _, _ := call(t, entriestest.Preempted("2"), "replay", "--json", "--policy", "spot", "-")
	got := map[string]bool{}
	for _, l := range lines(t, out) {
		to, _ := l["to"].(string)
		if (to != "") != (l["kind"] == "message") {
			t.Errorf("a row of kind %v goes to %q", l["kind"], to)
		}
		got[to] = true
	}
	if !got["recreate"] || !got["recovery"] {
		t.Errorf("receivers %v, want recreate and recovery among them", got)
	}
}

func TestWrongUsageIsTwo(t *testing.T) {
	two := entriestest.Write(t, "two.yaml", "policies: {a: {preset: spot}, b: {preset: watch}}")
	bad := entriestest.Write(t, "bad.yaml", "policies:\n  a: {preset: spott}\n")
	entries := entriestest.Write(t, "entries.json", entriestest.Preempted("2"))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"an unknown command":        {[]string{"frobnicate"}, "frobnicate"},
		"an unknown flag":           {[]string{"replay", "--nope"}, "--nope"},
		"a negative speed":          {[]string{"replay", "--speed", "-1"}, "--speed"},
		"a policy for the recorded": {[]string{"replay", "--policy", "spot"}, "--policy, --fleet, --babysitter and --assume go with files"},
		"a policy that is nowhere":  {[]string{"replay", "--policy", "nowhere", entries}, "nowhere"},
		"a policy file of two":      {[]string{"replay", "--policy", two, entries}, "it holds 2 policies (a, b)"},
		"a policy that is not in":   {[]string{"explain", "--policy", two + ":c", entries}, `no policy "c"`},
		"a policy file with faults": {[]string{"explain", "--policy", bad, entries}, `preset "spott"`},
		"a fleet that is nowhere":   {[]string{"replay", "--fleet", "nowhere.json", entries}, "nowhere.json"},
		"a fleet that is none":      {[]string{"replay", "--fleet", entries, entries}, "neither a JSON list that gcloud writes nor YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errOut, code := call(t, "", c.args...)
			if code != cli.ExitUsage || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, c.says) {
				t.Errorf("exit code %d, stderr %q; want 2 and one line that says %q", code, errOut, c.says)
			}
		})
	}
}

// lines reads what replay --json printed.
func lines(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, l)
	}
	return all
}

func TestReplayOfOnesOwnEntries(t *testing.T) {
	text := "[" + entriestest.Preempted("2") + "," + entriestest.Preempted("0") + "]"
	for policy, want := range map[string]string{"": "observed", "watch": "observed", "spot": "resumed"} {
		args := []string{"replay", "--json", "-"}
		if policy != "" {
			args = append(args, "--policy", policy)
		}
		out, errOut, code := call(t, text, args...)
		if code != cli.ExitDone || errOut != "" {
			t.Errorf("policy %q: exit code %d, stderr %q", policy, code, errOut)
		}
		var outcomes []string
		for _, l := range lines(t, out) {
			for _, field := range []string{
				"time", "incident", "workload", "function", "to", "kind", "event_type", "subject", "message_id", "decision", "reason", "phase", "outcome", "simulated", "code",
			} {
				if _, ok := l[field]; !ok {
					t.Fatalf("a line has no field %s: %v", field, l)
				}
			}
			if o, _ := l["outcome"].(string); o != "" {
				outcomes = append(outcomes, o)
			}
		}
		if !slices.Equal(outcomes, []string{want}) {
			t.Errorf("policy %q: outcomes %v, want %s", policy, outcomes, want)
		}
	}
}

// TestReplayCountsNoTimeThatAnEntryDoesNotGive: what is only noted may have none.
func TestReplayCountsNoTimeThatAnEntryDoesNotGive(t *testing.T) {
	timeless := `{"data":"the pool is upgrading","attributes":{"cluster_name":"c","cluster_location":"us-west4-a","project_id":"mine",
"type_url":"type.googleapis.com/google.container.v1beta1.UpgradeEvent","payload":"{\"resourceType\":\"NODE_POOL\"}"}}`
	timed := `{"logName":"projects/mine/logs/syslog","timestamp":"` + entriestest.At + `"}`
	for _, text := range []string{timeless, timed, timeless + timed, timed + timeless} {
		out, errOut, code := call(t, text, "replay", "-")
		if code != cli.ExitDone || !strings.Contains(out, "ignored") || !strings.Contains(out, "(0 s of virtual time") {
			t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
		}
	}
}

func TestReplayTakesTheFleetFromAListing(t *testing.T) {
	fleet := entriestest.Write(t, "fleet.json", `[{"name":"projects/mine/locations/us-west4-a/nodes/llama-8b","acceleratorType":"v5litepod-32","id":"7711",
"createTime":"2026-11-01T00:00:00Z","state":"READY","schedulingConfig":{"spot":true},"metadata":{"pitstop-checkpoint-dir":"gs://mine/llama"}},
{"name":"projects/mine/locations/us-west4-a/queuedResources/q1","state":{"state":"ACTIVE"}}]`)
	out, errOut, code := call(t, entriestest.Preempted("2"), "replay", "--policy", "spot", "--fleet", fleet, "-")
	if code != cli.ExitDone || !strings.Contains(out, "workload mine/llama-8b · v5litepod-32 spot in us-west4-a") || !strings.Contains(out, "RESUMED") {
		t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
	}
}

func TestReplayOfTheRecordedIncidents(t *testing.T) {
	breadth.Again(t)
	out, errOut, code := call(t, "", "replay")
	if code != cli.ExitDone || errOut != "" {
		t.Fatalf("exit code %d, stderr %q", code, errOut)
	}
	for _, want := range []string{
		"RECORDED   workers 3, 1 were preempted", "SIMULATED  DeleteNode llama-8b in us-west4-a: accepted", "There is no more capacity in the zone",
		"RESUMED    step", "CreateNode llama-8b in us-west4-a, called at 02:15:58: failed", "v5litepod-16 spot in us-west4-a · policy night",
		"WITHDRAWN", "RELEASED", "ESCALATED", "OBSERVED", "would have: DeleteNode projects/demo/locations/us-west4-a/nodes/llama-8b (recreate)", "what to do:", "chip-hours every hour",
		"wait for capacity", "[watch_only]", "[owner]", "[withdrawn]", "[cannot_move]", "[same_error]",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the story", want)
		}
	}
	if strings.Contains(out, "spot in us-west4-b ·") {
		t.Error("a title says where a slice came to be and not where it was")
	}
	if strings.Contains(out, "NOT ENDED") {
		t.Error("an incident did not end")
	}
}

// TestReplayOfOneNameInTwoZones replays what a move to the next zone leaves in a log: crews of one node name speak in two
// zones. Each is a run of its own, and what one of them says happens to it alone.
func TestReplayOfOneNameInTwoZones(t *testing.T) {
	said := func(zone, clock, report string, attempt, step int) string {
		at := "2026-11-12T" + clock + ":00Z"
		return fmt.Sprintf(`{"logName":"projects/mine/logs/pitstop-crew","insertId":"%[1]s-%[2]s","timestamp":"%[2]s","receiveTimestamp":"%[2]s",`+
			`"resource":{"type":"gce_instance","labels":{"project_id":"mine","zone":"%[1]s"}},"jsonPayload":{"schema":1,"report":"%[3]s","zone":"%[1]s",`+
			`"node":"llama","worker":0,"workers":4,"attempt":%[4]d,"step":%[5]d,"exit_code":1,"restarts_left":4}}`+"\n", zone, at, report, attempt, step)
	}
	const a, b = "us-west4-a", "us-west4-b"
	for name, c := range map[string]struct {
		log  string
		want []string
	}{
		"to the later zone":   {said(a, "02:00", "progress", 1, 100) + said(b, "03:00", "exited", 2, 140), []string{"workload mine/llama-us-west4-b · v5litepod-16 in us-west4-b"}},
		"to the earlier zone": {said(b, "02:00", "exited", 1, 100) + said(a, "03:00", "progress", 2, 140), []string{"workload mine/llama · v5litepod-16 in us-west4-b"}},
		"at the same time": {
			said(a, "02:00", "progress", 1, 100) + said(b, "02:01", "progress", 2, 110) + said(a, "02:02", "exited", 1, 120) + said(b, "02:03", "exited", 2, 130),
			[]string{"workload mine/llama · v5litepod-16 in us-west4-a", "workload mine/llama-us-west4-b · v5litepod-16 in us-west4-b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, code := call(t, c.log, "replay", "--policy", "spot", "--assume", "crew=recovers", "-")
			if code != cli.ExitDone || errOut != "" {
				t.Fatalf("exit code %d, stderr %q", code, errOut)
			}
			if n := strings.Count(out, "RESUMED"); n != len(c.want) {
				t.Errorf("%d incidents resumed, want %d", n, len(c.want))
			}
			for _, want := range append(c.want, "because another zone has a llama too") {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not said", want)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// TestReplayOfADirectoryThatServesNoLease takes a listing in which two TPUs share one checkpoint directory, and a third names
// none that a bucket can have: no crew of the latter two trains, and nothing ends the command.
func TestReplayOfADirectoryThatServesNoLease(t *testing.T) {
	tpu := func(name, directory string) string {
		return fmt.Sprintf(`{"name":"projects/mine/locations/us-west4-a/nodes/%s","acceleratorType":"v5litepod-16","metadata":{"pitstop-checkpoint-dir":%q}}`, name, directory)
	}
	fleet := entriestest.Write(t, "fleet.json", "["+tpu("one", "gs://b/run")+","+tpu("two", "gs://b/run")+","+tpu("three", "gs://b/ru\n")+"]")
	_, errOut, code := call(t, entriestest.Preempted("0"), "replay", "--fleet", fleet, "-")
	if code != cli.ExitDone || errOut != "" {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
}
