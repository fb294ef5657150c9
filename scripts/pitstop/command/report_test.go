package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/cloudlog/cloudlogtest"
	"pitstop.internal/shared/ledger"
)

const watchdog = "watchdog@mine.iam.gserviceaccount.com"

// happened is an entry of the record that these tests report on, so many minutes after its start.
func happened(minute float64, payload, log, more string) string {
	at := time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC).Add(time.Duration(minute * float64(time.Minute)))
	return fmt.Sprintf(`{"protoPayload":{%s},"insertId":"i%g","logName":"projects/mine/logs/cloudaudit.googleapis.com%%2F%s",%s"timestamp":"%s","receiveTimestamp":"%s"}`,
		payload, minute, log, more, at.Format(time.RFC3339Nano), at.Add(700*time.Millisecond).Format(time.RFC3339Nano))
}

func lost(minute float64, method, worker string) string {
	return happened(minute, `"methodName":"compute.instances.`+method+`","resourceName":"projects/mine/zones/us-west4-a/instances/t1v-n-3f2a9c01-w-`+worker+`"`, "system_event", "")
}

// called is one end of a call: first, last, or refused.
func called(minute float64, method, name, by, end string) string {
	kind := "nodes"
	if strings.HasSuffix(method, "QueuedResource") {
		kind = "queuedResources"
	}
	payload := `"serviceName":"tpu.googleapis.com","methodName":"google.cloud.tpu.v2.Tpu.` + method + `","authenticationInfo":{"principalEmail":"` + by +
		`"},"resourceName":"projects/mine/locations/us-west4-a/` + kind + `/` + name + `"`
	if strings.HasPrefix(method, "Create") {
		payload += `,"request":{"node":{"acceleratorType":"v5litepod-16"},"queuedResource":{"tpu":{"nodeSpec":[{"nodeId":"n","node":{"acceleratorType":"v5litepod-16"}}]}}}`
	}
	if end == "refused" {
		return happened(minute, payload+`,"status":{"code":8,"message":"There is no more capacity in the zone"}`, "activity", "")
	}
	return happened(minute, payload, "activity", `"operation":{"id":"o`+name+method+`","`+end+`":true},`)
}

// night is a record: a script brings back a preempted TPU, Google restarts one after a host error, and a queued resource is left
// over.
func night() []string {
	return []string{
		called(0, "CreateQueuedResource", "q", "ann@example.com", "first"), called(0.1, "CreateQueuedResource", "q", "ann@example.com", "last"),
		called(1, "CreateNode", "llama", "ann@example.com", "first"), called(4, "CreateNode", "llama", "ann@example.com", "last"),
		lost(60, "preempted", "1"), lost(60.01, "preempted", "0"),
		called(63, "DeleteNode", "llama", watchdog, "first"), called(65, "DeleteNode", "llama", watchdog, "last"),
		called(66, "CreateNode", "llama", watchdog, "refused"), called(67, "CreateNode", "llama", watchdog, "first"), called(75, "CreateNode", "llama", watchdog, "last"),
		happened(90, `"methodName":"tpu.nodes.terminate","resourceName":"projects/mine/locations/us-west4-a/nodes/n"`, "system_event", ""),
		lost(200, "hostError", "2"), lost(215, "automaticRestart", "2"),
		called(240, "DeleteNode", "llama", "ann@example.com", "first"),
	}
}

func TestReportTellsWhatHappened(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	out, errOut, code := call(t, "["+strings.Join(night(), ",\n")+"]\n", "report", "--babysitter", watchdog, "-")
	if code != cli.ExitDone || errOut != "" {
		t.Fatalf("exit code %d, stderr %q", code, errOut)
	}
	for _, want := range []string{
		"Nov 12 2026 02:00 to Nov 12 2026 06:00 UTC · 15 entries, 15 of them about 3 TPUs",
		"3 losses: 2 back, 1 not back",
		"gap until back: half within 15 m 0 s, 95 % within 15 m 0 s, the longest 15 m 0 s",
		"chip-hours lost: >= 7.0\n",
		"Nov 12 2026 03:00:00  llama           v5litepod-16  us-west4-a  preemption  back after 15 m 0 s by the script " + watchdog + ", 1 creation refused (1 stockout)  4.0\n",
		"back after 15 m 0 s by Google itself",
		"1 deletion by an owner of a running TPU: no loss",
		"1 queued resource left over when the record ends\n",
		"q                us-west4-a  Nov 12 2026 03:30:00  2 h 30 m         16\n",
		"0 of 3 losses announced, 0 in time (20 m 0 s before or earlier)",
		"TPUs that were not back under their names when the record ended: 1. Others may have",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said in\n%s", want, out)
		}
	}
}

// TestReportTellsWhatWasAnnounced in a column of its own, which a record without notices does not have.
func TestReportTellsWhatWasAnnounced(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	notice := happened(0, `"methodName":"compute.instances.upcomingMaintenance","resourceName":"projects/mine/zones/us-west4-a/instances/t1v-n-3f2a9c01-w-1",`+
		`"metadata":{"maintenanceStatus":"PENDING","windowStartTime":"2026-11-12T03:00:00Z","windowEndTime":"2026-11-12T05:00:00Z"}`, "system_event", "")
	record := []string{notice, lost(70, "terminateOnHostMaintenance", "1"), lost(80, "automaticRestart", "1")}
	for from, want := range map[int][]string{
		0: {"  chip-hours  announced\n", "  1 h 10 m before\n", "  announced  in time\n", "  1          1\n", "1 of 1 loss announced, 1 in time", "1 notice of maintenance: "},
		1: {"  chip-hours\n", "0 of 1 loss announced, 0 in time"},
	} {
		out, errOut, code := call(t, strings.Join(record[from:], "\n"), "report", "-")
		for _, w := range want {
			if code != cli.ExitDone || errOut != "" || !strings.Contains(out, w) {
				t.Errorf("exit code %d, stderr %q, %q is not said in\n%s", code, errOut, w, out)
			}
		}
	}
}

// TestReportIsKeptAsAPage with the same lines and tables, and a picture.
func TestReportIsKeptAsAPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	out, errOut, code := call(t, "["+strings.Join(night(), ",\n")+"]\n", "report", "--html", file, "-")
	if code != cli.ExitDone || errOut != "" || out != "written to "+file+"; any browser shows it\n" {
		t.Fatalf("exit code %d, stdout %q, stderr %q", code, out, errOut)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<p>3 losses: 2 back, 1 not back</p>", "<td data-name=\"zone\">us-west4-a</td>", "2026-11, us-west4-a: 3 losses", "1 queued resource left over when the record ends"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q is not said in\n%s", want, raw)
		}
	}
}

// TestReportCallsAPlainVMWhatItIs: losses of machines that are no TPUs are left out, each by its own name.
func TestReportCallsAPlainVMWhatItIs(t *testing.T) {
	of := func(minute float64, name string) string {
		return happened(minute, `"methodName":"compute.instances.preempted","resourceName":"projects/mine/zones/us-west4-a/instances/`+name+`"`, "system_event", "")
	}
	t.Setenv("COLUMNS", "300")
	out, _, _ := call(t, of(1, "web-server")+of(2, "gke-tpu-2f41c6aa-bq7x")+of(3, "workers-x7k2")+of(4, "workers-x7k3"), "report", "-")
	for _, want := range []string{
		"no TPU was lost\n", "- losses of plain VMs, instances of Compute Engine that are no TPUs: 1. They are not in this report\n",
		"- losses of machines of GKE with which no Job is known to have failed: 1. They are not in this report\n",
		"- losses of machines that are named like those of managed instance groups: 2. They are not in this report\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// TestReportFitsTheScreen: where a table is wider than the screen, each row has its last columns under it.
func TestReportFitsTheScreen(t *testing.T) {
	for _, columns := range []int{80, 100} {
		t.Setenv("COLUMNS", fmt.Sprint(columns))
		for _, flag := range []string{"--losses", "--lead=20m"} {
			out, _, _ := call(t, strings.Join(night(), "\n"), "report", "--babysitter", watchdog, flag, "-")
			if want := "    end: back after 15 m 0 s by Google itself · chip-hours: >= 3.0\n"; !strings.Contains(out, want) {
				t.Errorf("%d columns, %s: %q is not in\n%s", columns, flag, want, out)
			}
			for line := range strings.SplitSeq(out, "\n") {
				if n := len([]rune(line)); n > columns {
					t.Errorf("%d columns, %s: %d in %q", columns, flag, n, line)
				}
			}
		}
	}
}

// TestReportAsJSON holds the fields that the README promises.
func TestReportAsJSON(t *testing.T) {
	out, errOut, code := call(t, strings.Join(night(), "\n"), "report", "--json", "--babysitter", watchdog, "-")
	if code != cli.ExitDone || errOut != "" || strings.Count(out, "\n") != 1 {
		t.Fatalf("exit code %d, stderr %q, stdout %q", code, errOut, out)
	}
	got := lines(t, out)[0]
	names := func(v any) []string {
		var all []string
		m, _ := v.(map[string]any)
		for k := range m {
			all = append(all, k)
		}
		slices.Sort(all)
		return all
	}
	want := strings.Fields("elsewhere entries faults from groups lead_needed_seconds leaked_queued_resources losses notices recreated released run_time_limits slices to total training_exits unnamed unsure used")
	if d := cmp.Diff(want, names(got)); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
	losses, _ := got["losses"].([]any)
	if len(losses) != 3 {
		t.Fatalf("%d losses", len(losses))
	}
	first, _ := losses[0].(map[string]any)
	if d := cmp.Diff(map[string]any{
		"at": "2026-11-12T03:00:00Z", "cause": "preemption", "project": "mine", "zone": "us-west4-a", "slice": "llama", "generation": "v5litepod",
		"accelerator": "v5litepod-16", "chips": 16.0, "chips_at_least": 0.0, "workers": 2.0, "matched_by_time": true, "outcome": "back",
		"back_at": "2026-11-12T03:15:00Z", "gap_seconds": 900.0, "unasked_seconds": 360.0, "recreated_by": "babysitter", "principal": watchdog, "deleted_by": watchdog,
		"failed_creates": 1.0, "failed_creates_by_class": map[string]any{"stockout": 1.0}, "again": 0.0, "chip_hours": 4.0, "chip_hours_at_least": 0.0, "announced": false, "lead_seconds": 0.0, "in_time": false,
	}, first); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	groups, _ := got["groups"].([]any)
	wantGroup := strings.Fields("announced back back_unseen cause chip_hours chip_hours_at_least gap_most_seconds gap_p50_seconds gap_p95_seconds gap_seconds generation given_up in_time losses not_back not_back_chip_hours not_told size_unknown zone")
	if d := cmp.Diff(wantGroup, names(groups[0])); len(groups) != 3 || d != "" {
		t.Errorf("%d groups, fields (-want +got):\n%s", len(groups), d)
	}
}

// scheduled is what an instance schedule does with a worker: stop or start.
func scheduled(minute float64, direction, worker string) string {
	const zone = "https://www.googleapis.com/compute/v1/projects/mine/zones/us-west4-a"
	return happened(minute, `"methodName":"ScheduledVMs","response":{"operationType":"`+direction+
		`","targetLink":"`+zone+`/instances/t1v-n-3f2a9c01-w-`+worker+`"}`, "system_event", "")
}

// TestReportOfAScheduledStop: its owner planned the stop, so neither it nor the shutdown that follows is a loss.
func TestReportOfAScheduledStop(t *testing.T) {
	record := strings.Join([]string{
		scheduled(0, "stop", "0"),
		lost(0.2, "guestTerminate", "0"),
		happened(0.5, `"methodName":"tpu.nodes.terminate","resourceName":"projects/mine/locations/us-west4-a/nodes/n"`, "system_event", ""),
	}, "\n")
	for _, text := range []string{record, called(2, "DeleteQueuedResource", "none", "ann@example.com", "last") + "\n" + backward(record)} {
		out, errOut, code := call(t, text, "report", "-")
		const want = "no TPU was lost\n1 TPU stopped by an instance schedule: no loss\n"
		if code != cli.ExitDone || errOut != "" || !strings.Contains(out, want) {
			t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
		}
	}
}

// TestScheduleHidesNoLoss: a loss with a cause of its own counts, even if a schedule acts at the same time.
func TestScheduleHidesNoLoss(t *testing.T) {
	for direction, methods := range map[string][]string{
		"start": {"guestTerminate", "preempted", "hostError", "kmsKeyError"},
		"stop":  {"preempted", "hostError", "terminateOnHostMaintenance", "kmsKeyError"},
	} {
		for _, method := range methods {
			out, errOut, code := call(t, scheduled(0, direction, "0")+"\n"+lost(1, method, "0"), "report", "--json", "-")
			var got struct{ Losses []struct{ At string } }
			if err := json.Unmarshal([]byte(out), &got); err != nil || code != cli.ExitDone || errOut != "" {
				t.Fatalf("exit code %d, stderr %q, %v\n%s", code, errOut, err, out)
			}
			if len(got.Losses) != 1 || got.Losses[0].At != "2026-11-12T02:01:00Z" {
				t.Errorf("%s after a scheduled %s: losses %v, want one", method, direction, got.Losses)
			}
		}
	}
}

func backward(record string) string {
	all := strings.Split(record, "\n")
	slices.Reverse(all)
	return strings.Join(all, "\n")
}

func TestReportOfQuietTimes(t *testing.T) {
	out, errOut, code := call(t, called(0, "CreateNode", "n", "ann@example.com", "last"), "report", "-")
	if code != cli.ExitDone || errOut != "" || !strings.Contains(out, "1 entry, 1 of them about 1 TPU\nno TPU was lost\n") {
		t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
	}
	out, _, _ = call(t, called(0, "CreateNode", "n", "ann@example.com", "last"), "report", "--json", "-")
	if !strings.HasPrefix(out, `{"losses":[],`) || !json.Valid([]byte(out)) {
		t.Errorf("%q", out)
	}
	out, errOut, code = call(t, "[]", "report", "-")
	if code != cli.ExitDone || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, "0 entries") {
		t.Errorf("[]: exit code %d, stdout %q, stderr %q", code, out, errOut)
	}
	out, errOut, code = call(t, "[]", "report", "--json", "-")
	if code != cli.ExitDone || strings.Count(out, "\n") != 1 || !json.Valid([]byte(out)) || strings.Contains(out, "0001-") || !strings.Contains(errOut, "0 entries") {
		t.Errorf("[] as JSON: exit code %d, stdout %q, stderr %q", code, out, errOut)
	}
}

// TestReportTakesAnyOrderThatIsOne holds that a record tells the same up and down, in one file and in several, and however
// many runs of entries it takes.
func TestReportTakesAnyOrderThatIsOne(t *testing.T) {
	breadth.Again(t)
	var entries []string
	for i := range 1500 {
		at := float64(1000 * i)
		entries = append(entries, lost(at, "preempted", "1"), lost(at+0.001, "preempted", "0"), called(at+3, "CreateNode", "llama", watchdog, "first"),
			called(at+float64(4+i%50), "CreateNode", "llama", watchdog, "last"))
	}
	down := slices.Clone(entries)
	slices.Reverse(down)
	var odd, even []string
	for i, e := range entries {
		if i%2 == 0 {
			even = append(even, e)
		} else {
			odd = append(odd, e)
		}
	}
	slices.Reverse(odd)
	file := func(all []string) string { return entriestest.Write(t, "entries.json", strings.Join(all, "\n")) }
	want, errOut, code := call(t, "", "report", "--json", file(entries))
	if code != cli.ExitDone || errOut != "" || strings.Count(want, `"at":`) != 1500 {
		t.Fatalf("exit code %d, stderr %q, %d losses", code, errOut, strings.Count(want, `"at":`))
	}
	for name, files := range map[string][]string{
		"down":                         {file(down)},
		"two files, one up, one down":  {file(odd), file(even)},
		"the same file twice":          {file(entries), file(entries)},
		"one after the other":          {file(entries[3000:]), file(entries[:3000])},
		"parts of which one is a word": {file(entries[:1]), file(entries[1:])},
	} {
		got, errOut, code := call(t, "", append([]string{"report", "--json"}, files...)...)
		if name == "the same file twice" {
			got = strings.Replace(got, `"entries":12000`, `"entries":6000`, 1)
		}
		if code != cli.ExitDone || errOut != "" || got != want {
			t.Errorf("%s: exit code %d, stderr %q; another report: %v", name, code, errOut, got != want)
		}
	}
	out, _, _ := call(t, "", "report", "--losses", file(down))
	// No entry says of which slice the first workers are. That they are lost again proves that they were back.
	if n := strings.Count(out, "back after"); n != 1499 || !strings.Contains(out, "1,500 losses: 1,499 back, 1 back at an unknown time\n") {
		t.Errorf("--losses lists %d", n)
	}
	if out, _, _ = call(t, "", "report", file(down)); strings.Count(out, "back after") != 10 || !strings.Contains(out, "--losses lists all 1,500") {
		t.Errorf("the longest gaps are not told:\n%s", out)
	}
}

func TestReportOfMixedOrderIsTwo(t *testing.T) {
	n := night()
	for place, entries := range map[string][]string{
		"up.json:3: ": {n[2], n[4], n[3]}, "down.json:2: ": {n[4], n[2], n[3]}, "old.json:16: ": append(slices.Clone(n), n[0]),
	} {
		for _, flag := range []string{"--json", "--losses"} {
			name, _, _ := strings.Cut(place, ":")
			file := entriestest.Write(t, name, strings.Join(entries, "\n"))
			out, errOut, code := call(t, "", "report", flag, file)
			if code != cli.ExitUsage || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, place) || !strings.Contains(errOut, "--order=asc") {
				t.Errorf("%s: exit code %d, stdout %q, stderr %q", place, code, out, errOut)
			}
		}
	}
	// What happened within two seconds may be told in any order.
	jumbled := []string{n[4], n[5], n[4], n[6]}
	if _, errOut, code := call(t, strings.Join(jumbled, "\n"), "report", "-"); code != cli.ExitDone {
		t.Errorf("within two seconds: exit code %d, stderr %q", code, errOut)
	}
}

// TestAMixedFileIsFaultedByEachVerb in words that fit both, and both directions.
func TestAMixedFileIsFaultedByEachVerb(t *testing.T) {
	n := night()
	for _, verb := range []string{"report", "goodput"} {
		for _, entries := range [][]string{{n[2], n[4], n[3]}, {n[4], n[2], n[3]}} {
			const want = "its time is out of order: the entries of a file have to go up or down in time, as gcloud logging read --order=asc or --order=desc writes them"
			if _, errOut, _ := call(t, strings.Join(entries, "\n"), verb, "-"); !strings.Contains(errOut, want) || strings.Contains(errOut, "report ") {
				t.Errorf("%s says %q", verb, errOut)
			}
		}
	}
}

func TestReportTellsFaultsAndGoesOn(t *testing.T) {
	bad := "{\"logName\":7}\n{\"foo\":1}\n"
	file := entriestest.Write(t, "entries.json", bad+strings.Join(night(), "\n")+"\n{\"a\":")
	out, errOut, code := call(t, "", "report", file)
	if code != cli.ExitFailed || strings.Count(errOut, "\n") != 3 || strings.Count(errOut, "entries.json:") != 3 || !strings.Contains(out, "3 losses: 2 back") {
		t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
	}
	for _, args := range [][]string{{"report"}, {"report", "--lead", "-1s", file}, {"report", "--babysitter", "", file}, {"report", "--json", "--html", "report.html", file}, {"replay", "--babysitter", "", file}} {
		if _, errOut, code := call(t, "", args...); code != cli.ExitUsage || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: exit code %d, stderr %q", args, code, errOut)
		}
	}
}

// TestExplainKeepsTheOrderOfLargeFiles explains more than several goroutines have under way at once.
func TestExplainKeepsTheOrderOfLargeFiles(t *testing.T) {
	var b strings.Builder
	n := breadth.Of(9000, 2000)
	for i := range n {
		b.WriteString(strings.Replace(entriestest.Preempted(fmt.Sprint(i%1000)), `"insertId"`, `"pad":"`+strings.Repeat("x", i%400)+`","insertId"`, 1) + "\n")
	}
	file := entriestest.Write(t, "entries.json", b.String())
	out, errOut, code := call(t, "", "explain", "--json", file, file)
	if code != cli.ExitDone || errOut != "" {
		t.Fatalf("exit code %d, stderr %q", code, errOut)
	}
	for i, l := range strings.Split(strings.TrimSpace(out), "\n") {
		if want := fmt.Sprintf(`{"index":%d,`, i+1); !strings.HasPrefix(l, want) || !strings.Contains(l, fmt.Sprintf("-w-%d\"", i%n%1000)) {
			t.Fatalf("row %d is %s", i+1, l)
		}
	}
	if rows := strings.Count(out, "\n"); rows != 2*n {
		t.Errorf("%d rows, want %d", rows, 2*n)
	}
}

func TestReplayInThePlaceOfAScript(t *testing.T) {
	record := strings.Join(night()[:11], "\n")
	for _, c := range []struct {
		name, record string
		args         []string
		says         []string
		not          string
	}{
		{"its word is an owner's", record, nil, []string{"RELEASED"}, "did this; Pitstop takes its place"},
		{"it is named", record, []string{"--babysitter", strings.ToUpper(watchdog)}, []string{"RESUMED", "the script " + watchdog + " did this; Pitstop takes its place here"}, "RELEASED"},
		{
			"no entry says what it found", strings.Join(night()[6:11], "\n"),
			[]string{"--babysitter", watchdog},
			[]string{"llama in us-west4-a was lost, for the script deleted it, and no entry says so", "RESUMED"},
			"RELEASED",
		},
	} {
		out, errOut, code := call(t, c.record, append([]string{"replay", "--policy", "spot", "-"}, c.args...)...)
		if code != cli.ExitDone || errOut != "" || strings.Contains(out, c.not) {
			t.Errorf("%s: exit code %d, stderr %q\n%s", c.name, code, errOut, out)
		}
		unwrapped := strings.Join(strings.Fields(out), " ")
		for _, s := range c.says {
			if !strings.Contains(unwrapped, s) {
				t.Errorf("%s: %q is not said in\n%s", c.name, s, out)
			}
		}
	}
}

func TestReplayTakesBothKindsOfListings(t *testing.T) {
	queued := entriestest.Write(t, "queued.json", `[{"name":"projects/mine/locations/us-west4-a/queuedResources/q1","state":{"state":"ACTIVE"},"spot":{},
"tpu":{"nodeSpec":[{"parent":"projects/mine/locations/us-west4-a","nodeId":"llama-8b","node":{"acceleratorType":"v5litepod-16"}}]}},
{"name":"projects/mine/locations/us-west4-a/queuedResources/q2","state":{"state":"WAITING_FOR_RESOURCES"},"tpu":{"nodeSpec":[{"nodeId":"later","node":{"acceleratorType":"v4-8"}}]}}]`)
	nodes := entriestest.Write(t, "nodes.json", `[{"name":"projects/mine/locations/us-west4-a/nodes/llama-8b","acceleratorType":"v5litepod-32","id":"7711",
"createTime":"2026-11-01T00:00:00Z","metadata":{"pitstop-checkpoint-dir":"gs://mine/llama"}}]`)
	for name, c := range map[string]struct{ files, says []string }{
		"the queued resources alone": {[]string{"--fleet", queued}, []string{"workload mine/q1 · v5litepod-16 spot in us-west4-a"}},
		"both":                       {[]string{"--fleet", queued, "--fleet", nodes}, []string{"workload mine/q1 · v5litepod-32 spot in us-west4-a"}},
		"both, the nodes first":      {[]string{"--fleet", nodes, "--fleet", queued}, []string{"workload mine/q1 · v5litepod-32 spot in us-west4-a"}},
	} {
		out, errOut, code := call(t, entriestest.Preempted("2"), append([]string{"replay", "--policy", "spot", "-"}, c.files...)...)
		if code != cli.ExitDone || errOut != "" || !strings.Contains(out, "RESUMED") {
			t.Errorf("%s: exit code %d, stderr %q\n%s", name, code, errOut, out)
		}
		for _, s := range c.says {
			if !strings.Contains(out, s) {
				t.Errorf("%s: %q is not said in\n%s", name, s, out)
			}
		}
	}
}

// TestRealEntries reads the real entries that lie beside the repository on the machines of its authors.
func TestRealEntries(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "shared", "samples", "*.json"))
	if err != nil || len(files) == 0 {
		t.Skip("there are no real entries beside the repository")
	}
	for _, f := range files {
		for _, command := range []string{"explain", "report"} {
			if out, errOut, code := call(t, "", command, f); code != cli.ExitDone || errOut != "" || out == "" {
				t.Errorf("%s %s: exit code %d, stdout %q, stderr %q", command, f, code, out, errOut)
			}
		}
	}
	var all strings.Builder
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	if out, errOut, code := call(t, all.String(), "explain", "--json"); code != cli.ExitDone || strings.Count(out, "\n") != len(files) {
		t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
	}
}

// TestReportOfEntriesWithoutATime: a notification of a cluster has its payload in attributes, and no time.
func TestReportOfEntriesWithoutATime(t *testing.T) {
	notification := `{"data":"","attributes":{"project_id":"1","cluster_location":"us-central1-c","cluster_name":"c","type_url":"type.googleapis.com/google.container.v1beta1.UpgradeEvent","payload":"{}"}}`
	out, _, code := call(t, notification, "report", "-")
	if code != cli.ExitDone || !strings.HasPrefix(out, "entries without a time · 1 entry, 0 of them about 0 TPUs\n") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestLessThanAChipHourIsNotToldAsZero has a TPU that is lost six seconds before the record ends, and one that is lost for an hour.
func TestLessThanAChipHourIsNotToldAsZero(t *testing.T) {
	for end, want := range map[float64]bool{60.1: false, 120: true} {
		entries := []string{
			called(1, "CreateNode", "llama", "ann@example.com", "first"), called(4, "CreateNode", "llama", "ann@example.com", "last"),
			happened(60, `"methodName":"tpu.nodes.terminate","resourceName":"projects/mine/locations/us-west4-a/nodes/llama"`, "system_event", ""),
			called(end, "CreateNode", "other", "ann@example.com", "first"),
		}
		out, errOut, code := call(t, strings.Join(entries, "\n"), "report", "-")
		if code != cli.ExitDone || !strings.Contains(out, "1 not back") || strings.Contains(out, "not counted: ") != want {
			t.Errorf("until %g: exit code %d, %q and\n%s", end, code, errOut, out)
		}
	}
}

// selected is an entry as the sinks select it.
func selected(entry string) string {
	kind := "audited_resource"
	if strings.Contains(entry, `"compute.instances.`) {
		kind = "gce_instance"
	}
	return strings.Replace(entry, `"insertId"`, `"resource":{"type":"`+kind+`"},"insertId"`, 1)
}

// TestTheLogOfAProjectIsReportedAsAFile: page by page, whatever the log holds besides, and through a quota that is used up meanwhile.
func TestTheLogOfAProjectIsReportedAsAFile(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	b, _, clock, log := deploymenttest.LoggedCloud(t)
	var waited time.Duration
	b.Sleep = func(_ context.Context, d time.Duration) error {
		if waited == 0 { // once the first page is read
			log.Fail(cloudlogtest.Fault{Code: 429, Status: "RESOURCE_EXHAUSTED", Message: "Quota exceeded for quota metric 'Read requests'"})
		}
		waited += d
		clock.Advance(d)
		return nil
	}
	var record []string
	for _, e := range night() {
		record = append(record, selected(e))
	}
	for i := range 2400 {
		record = append(record, selected(called(300+float64(i)/100, "StopNode", "t5", "ann@example.com", "last")))
	}
	for _, e := range record {
		log.Write([]byte(e))
	}
	log.Write([]byte(selected(called(10, "ListNodes", "llama", "ann@example.com", "last")))) // no sink selects it
	clock.Advance(time.Minute)
	want, _, code := call(t, strings.Join(record, "\n"), "report", "-")
	got, err := b.Call("report", "--since", "30d")
	if err != nil || code != cli.ExitDone || !strings.Contains(got, "3 losses: ") {
		t.Fatalf("exit code %d, %v:\n%s", code, err, got)
	}
	if !strings.HasSuffix(got, "\n"+want) {
		t.Errorf("of the log it reports\n%s\nof a file\n%s", got, want)
	}
	if n := len(log.Filters()); n != 4 || waited < 32*time.Second-time.Millisecond || waited > 33*time.Second {
		t.Errorf("%d calls, %s waited; want 4 calls a second apart, and one wait of 30 s", n, waited)
	}
	if got, err = b.Call("report", "--since", "1d12h"); err != nil || !strings.Contains(got, "0 entries in the log of project demo since 2026-11-20T00:0") {
		t.Errorf("of the last day: %v, %s", err, got)
	}
}

// TestALogThatCannotBeReadIsNoReport: not even of what was read before.
func TestALogThatCannotBeReadIsNoReport(t *testing.T) {
	b, _, clock, log := deploymenttest.LoggedCloud(t)
	for i := range 1100 {
		log.Write([]byte(selected(called(float64(i)/100, "StopNode", "t5", "ann@example.com", "last"))))
	}
	clock.Advance(time.Minute)
	b.Sleep = func(context.Context, time.Duration) error {
		log.Fail(cloudlogtest.Fault{Code: 403, Status: "PERMISSION_DENIED", Message: "Permission 'logging.logEntries.list' denied"})
		return nil
	}
	if got, err := b.Call("report"); err == nil || strings.Contains(got, "no TPU was lost") || !strings.Contains(err.Error(), "read log of demo: HTTP status 403: Permission 'logging.logEntries.list' denied") {
		t.Errorf("%v: %s", err, got)
	}
}

func TestReportReadsEitherFilesOrALog(t *testing.T) {
	for why, args := range map[string][]string{
		"name the project whose log is read (--project), or the files": {},
		"leave out entries.json, or --project":                         {"--project", "mine", "entries.json"},
		"--since bounds the log of --project":                          {"--since", "7d", "entries.json"},
		`"-1h" is no span of time such as 30d, 12h or 1d12h`:           {"--since", "-1h", "--project", "mine"},
		`"a week" is no span of time such as 30d, 12h or 1d12h`:        {"--since", "a week", "--project", "mine"},
		`--project "MINE" is no ID of a project`:                       {"--project", "MINE"},
	} {
		if _, errOut, code := call(t, "", append([]string{"report"}, args...)...); code != cli.ExitUsage || !strings.Contains(errOut, why) {
			t.Errorf("%v: exit code %d, %s; want %s", args, code, errOut, why)
		}
	}
}

// told is a line of the crew of llama.
func told(minute float64, report string, attempt, step, first int, firstAt float64) string {
	at := func(minute float64) string {
		return time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC).Add(time.Duration(minute * float64(time.Minute))).Format(time.RFC3339Nano)
	}
	payload := fmt.Sprintf(`"schema":1,"report":"%s","zone":"us-west4-a","node":"llama","hostname":"t1v-n-%d-w-0","attempt":%d,"step":%d`, report, attempt, attempt, step)
	if first > 0 {
		payload += fmt.Sprintf(`,"step_at":"%s","first_step":%d,"first_step_at":"%s"`, at(minute), first, at(firstAt))
	}
	return fmt.Sprintf(`{"jsonPayload":{%s},"insertId":"c%g%s","logName":"projects/mine/logs/pitstop-crew","timestamp":"%s"}`, payload, minute, report, at(minute))
}

// interrupted is a record: llama makes a step each 30 s, saves after 200, is preempted after 220, comes back, and goes on from there.
func interrupted() []string {
	return []string{
		called(0, "CreateNode", "llama", "ann@example.com", "first"), called(4, "CreateNode", "llama", "ann@example.com", "last"),
		told(5, "started", 1, 0, 0, 0), told(10.5, "progress", 1, 1, 1, 10.5),
		told(110, "progress", 1, 200, 1, 10.5), told(120, "progress", 1, 220, 1, 10.5),
		happened(120, `"methodName":"tpu.nodes.terminate","resourceName":"projects/mine/locations/us-west4-a/nodes/llama"`, "system_event", ""),
		called(121, "CreateNode", "llama", watchdog, "refused"), called(130, "CreateNode", "llama", watchdog, "first"), called(134, "CreateNode", "llama", watchdog, "last"),
		told(136, "started", 2, 200, 0, 0), told(140.5, "progress", 2, 201, 201, 140.5), told(240, "progress", 2, 400, 201, 140.5),
	}
}

func TestGoodputTellsWhereTheTimeWent(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	file := entriestest.Write(t, "entries.json", strings.Join(interrupted(), "\n"))
	prices := entriestest.Write(t, "prices.yaml", "v5litepod: {spot: 0.5, other: 1.0}\n")
	out, errOut, code := call(t, "", "goodput", "--prices", prices, file)
	if code != cli.ExitDone || errOut != "" {
		t.Fatalf("exit code %d, stderr %q", code, errOut)
	}
	for _, want := range []string{
		"goodput 83.3 ± 0.4 % · 1 workload, 4 h 0 m in all",
		"waiting for capacity  10 m 0 s  4.2         2.7         2.67",
		"provisioning          8 m 0 s   3.3         2.1         2.13",
		"machine to crew       3 m 0 s   1.2         0.8         0.80",
		"start to first step   9 m 0 s   3.8         2.4         2.40",
		"productive            3 h 20 m  83.3 ± 0.4  53.3        53.33",
		"done again            10 m 0 s  4.2 ± 0.4   2.7         2.67",
		"terminated          30 m 0 s  75.0 ± 0.6  8.0         8.00",
		"Nov 12 2026 04:00:00  llama     us-west4-a  terminated  20 m 0 s  10 m 0 s    8.0\n",
		"llama     83.3 ± 0.4 %  done again    10 m 0 s  400\n",
		"- 1 workload without a word on how long saves block: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said in\n%s", want, out)
		}
	}
	out, _, code = call(t, "", "goodput", "--json", file)
	var got struct {
		Seconds        float64
		GoodputPercent float64 `json:"goodput_percent"`
		Uses           []struct {
			Of      string
			Seconds float64
		}
		Interruptions []struct {
			Away float64 `json:"away_seconds"`
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != cli.ExitDone {
		t.Fatalf("exit code %d, %v\n%s", code, err, out)
	}
	all := 0.0
	for _, u := range got.Uses {
		all += u.Seconds
	}
	if all != got.Seconds || all != 4*3600 || len(got.Interruptions) != 1 || got.Interruptions[0].Away != 1200 {
		t.Errorf("%v seconds in all, and these: %+v", all, got)
	}
	if out, _, _ = call(t, "", "goodput", file); !strings.Contains(out, "chip-hours\n") || strings.Contains(out, "dollars") || strings.Contains(out, "incident") {
		t.Errorf("a column in which nothing stands is printed:\n%s", out)
	}
	if out, _, code = call(t, "[]", "goodput", "-"); code != cli.ExitDone || out != "" {
		t.Errorf("of nothing: exit code %d, %q", code, out)
	}
}

// TestGoodputCountsExamples of the steps that stayed, where the crew tells how many a step has: after the loss the batch is half of what it was.
func TestGoodputCountsExamples(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	batch := func(entry, size string) string {
		return strings.Replace(entry, `"schema":1`, `"schema":1,"examples_per_second":17,"measured":{"accelerator":"v5litepod-16","slices":1,"global_batch":`+size+`,"steps":9,"seconds":270}`, 1)
	}
	record := interrupted()
	for i, entry := range record {
		size := "512"
		if i > 6 {
			size = "256"
		}
		if strings.Contains(entry, `"progress"`) {
			record[i] = batch(entry, size)
		}
	}
	out, errOut, code := call(t, strings.Join(record, "\n"), "goodput", "-")
	if want := "  step  examples\n"; code != cli.ExitDone || errOut != "" || !strings.Contains(out, want) || !strings.Contains(out, "  400   153,600\n") {
		t.Errorf("exit code %d, stderr %q\n%s", code, errOut, out)
	}
	var got struct{ Workloads []struct{ Examples float64 } }
	out, _, _ = call(t, strings.Join(record, "\n"), "goodput", "--json", "-")
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Workloads) != 1 || got.Workloads[0].Examples != 200*512+200*256 {
		t.Errorf("%v: %+v", err, got)
	}
}

// TestGoodputIsKeptAsAPage with the same figures, and pictures of them. It stays small, however much was lost.
func TestGoodputIsKeptAsAPage(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	long := []string{}
	for i := range 2000 { // in 400 days
		begins, node := float64(288*i), fmt.Sprintf("n%d", i%25)
		long = append(long, called(begins, "CreateNode", node, watchdog, "first"), called(begins+4, "CreateNode", node, watchdog, "last"),
			happened(begins+200, fmt.Sprintf(`"methodName":"tpu.nodes.terminate","resourceName":"projects/mine/locations/us-west4-%c/nodes/%s"`, 'a'+i%3, node), "system_event", ""))
	}
	cell := regexp.MustCompile(`\S+( \S+)*`)
	for name, record := range map[string][]string{"one loss": interrupted(), "many saves": losing(30, 15, 5), "many losses": long} {
		file := filepath.Join(t.TempDir(), "goodput.html")
		entries := strings.Join(record, "\n")
		if out, errOut, code := call(t, entries, "goodput", "--html", file, "-"); code != cli.ExitDone || out != "written to "+file+"; any browser shows it\n" {
			t.Fatalf("%s: exit code %d, stdout %q, stderr %q", name, code, out, errOut)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page := html.UnescapeString(string(raw))
		text, _, _ := call(t, entries, "goodput", "-")
		for line := range strings.Lines(text) {
			for _, figure := range cell.FindAllString(line, -1) {
				if !strings.Contains(page, figure) && !strings.Contains(line, "more rows") {
					t.Errorf("%s: the page does not say %q of %q", name, figure, line)
				}
			}
		}
		pictures := []string{`id="cascade-title"`, `id="strips-title"`, `id="months-title"`}
		if name == "many saves" {
			pictures = append(pictures, `id="curve0-title"`, "you are here")
		}
		if name == "many losses" {
			pictures = append(pictures, "The time lines are those of the workloads that lost most. Left out: ")
		}
		for _, want := range pictures {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page has no %s", name, want)
			}
		}
		if len(raw) > 300<<10 {
			t.Errorf("%s: the page has %d bytes", name, len(raw))
		}
		t.Logf("%s: %d bytes", name, len(raw))
	}
}

// TestGoodputNamesIncidents: of a project's log, the interruptions have the IDs under which the ledger knows them, open or over. Of several
// incidents the nearest counts. One that opened more than half an hour away does not.
func TestGoodputNamesIncidents(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	b, _, clock, log := deploymenttest.LoggedCloud(t)
	w := deploymenttest.Preempted("llama-8b").Workload
	if _, err := b.Ledger.Save(t.Context(), w, ledger.Revision{}); err != nil {
		t.Fatal(err)
	}
	broke := deploymenttest.Noon.Add(-90 * time.Second)
	for id, opened := range map[string]time.Time{
		"near": broke.Add(-11*time.Hour - 10*time.Minute), "nearer": broke.Add(-11*time.Hour + 5*time.Minute), "far": broke.Add(-7*time.Hour + 31*time.Minute),
	} {
		past := *w.Incident
		past.ID, past.Opened, past.Closed = id, opened, opened.Add(time.Hour)
		if err := b.Ledger.SaveClosed(t.Context(), w, past); err != nil {
			t.Fatal(err)
		}
	}
	minute := broke.Sub(time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)).Minutes()
	for _, ago := range []float64{11 * 60, 7 * 60, 0} {
		for _, e := range []string{
			called(minute-ago-30, "CreateNode", "llama-8b", "ann@example.com", "first"), called(minute-ago-26, "CreateNode", "llama-8b", "ann@example.com", "last"),
			happened(minute-ago, `"methodName":"tpu.nodes.terminate","resourceName":"projects/mine/locations/us-west4-a/nodes/llama-8b"`, "system_event", ""),
		} {
			log.Write([]byte(strings.ReplaceAll(selected(e), "projects/mine/", "projects/demo/")))
		}
	}
	for _, e := range []string{
		called(minute-20, "CreateNode", "stranger", "ann@example.com", "last"),
		happened(minute-0.5, `"methodName":"tpu.nodes.terminate","resourceName":"projects/mine/locations/us-west4-a/nodes/stranger"`, "system_event", ""),
	} {
		log.Write([]byte(strings.ReplaceAll(selected(e), "projects/mine/", "projects/demo/")))
	}
	clock.Advance(time.Minute)
	out, err := b.Call("goodput")
	named := map[string]int{}
	for _, row := range regexp.MustCompile(`(?m)  terminated  .*  (\S+)$`).FindAllStringSubmatch(out, -1) {
		named[row[1]]++
	}
	if d := cmp.Diff(map[string]int{w.Incident.ID: 1, "nearer": 1, "-": 2}, named); err != nil || d != "" {
		t.Errorf("%v; (-want +got):\n%s\n%s", err, d, out)
	}
	b.OpenLedger = func(string, string) *ledger.Ledger {
		return ledger.New(func(context.Context, string) (ledger.Collection, error) {
			return nil, errors.New("nobody may read it")
		})
	}
	if out, err = b.Call("goodput"); err != nil || !strings.Contains(out, "- the IDs of incidents: ") || !strings.Contains(out, "nobody may read it") {
		t.Errorf("%v: without a ledger it says\n%s", err, out)
	}
}

// TestGoodputNamesTheZoneWhereSlicesComeBackSoonest: creations take a quarter of an hour longer in one zone than in another.
func TestGoodputNamesTheZoneWhereSlicesComeBackSoonest(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	const wants = `ask for capacity in us-east5-b first +at most 1\.\d +-\n`
	for losses, said := range map[int]bool{30: true, 6: false} {
		slow := strings.Join(losing(losses, 1, 20), "\n")
		quick := strings.NewReplacer("us-west4-a", "us-east5-b", "llama", "gemma", `"insertId":"`, `"insertId":"b`).Replace(strings.Join(losing(losses, 1, 5), "\n"))
		out, errOut, code := call(t, "", "goodput", entriestest.Write(t, "slow.json", slow), entriestest.Write(t, "quick.json", quick))
		if code != cli.ExitDone || errOut != "" || regexp.MustCompile(wants).MatchString(out) != said {
			t.Errorf("of %d losses: exit code %d, stderr %q, the zone is to be named: %v\n%s", losses, code, errOut, said, out)
		}
	}
}

// TestAGapOfNothingIsToldAsSuch: a slice whose crew was ready before the entry of its loss, and a lead of nothing.
func TestAGapOfNothingIsToldAsSuch(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	record := interrupted()[:9]
	record[8] = strings.Replace(told(135, "started", 2, 200, 0, 0), `"schema":1`, `"schema":1,"ready_at":"2026-11-12T03:50:00Z"`, 1)
	out, _, code := call(t, strings.Join(slices.Delete(record, 7, 8), "\n"), "report", "--lead", "0s", "-")
	for _, want := range []string{"half within 0 s, 95 % within 0 s, the longest 0 s\n", "(0 s before or earlier)", "back after 0 s by", "  1       1     0 s          0 s          0 s\n"} {
		if code != cli.ExitDone || !strings.Contains(out, want) {
			t.Errorf("exit code %d: %q is not said in\n%s", code, want, out)
		}
	}
}

// TestGoodputOfNothingIsNotUnknown: two steps in months.
func TestGoodputOfNothingIsNotUnknown(t *testing.T) {
	record := append(interrupted()[:4], told(11, "progress", 1, 2, 1, 10.5), interrupted()[6], called(200_000, "CreateNode", "llama", watchdog, "refused"))
	out, _, code := call(t, strings.Join(record, "\n"), "goodput", "-")
	if code != cli.ExitDone || !strings.Contains(out, "goodput 0.0 % · ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if out, _, _ = call(t, strings.Join(record[:3], "\n"), "goodput", "-"); !strings.Contains(out, "goodput unknown: no crew has told a step · ") {
		t.Errorf("without a step it says\n%s", out)
	}
}

// TestWhatNoInterruptionCausedIsItsOwners: the first start, a stop that loses steps, and the start after it.
func TestWhatNoInterruptionCausedIsItsOwners(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	record := append(interrupted()[:6], called(120, "StopNode", "llama", "ann@example.com", "last"), called(600, "StartNode", "llama", "ann@example.com", "first"), called(604, "StartNode", "llama", "ann@example.com", "last"),
		told(606, "started", 2, 190, 0, 0), told(610.5, "progress", 2, 191, 191, 610.5), told(710, "progress", 2, 390, 191, 610.5))
	out, _, code := call(t, strings.Join(record, "\n"), "goodput", "-")
	for _, want := range []string{"start by its owner  20 m 0 s ", "stop by its owner "} {
		if code != cli.ExitDone || !strings.Contains(out, want) || strings.Contains(out, "first start") {
			t.Errorf("exit code %d: %q is not said in\n%s", code, want, out)
		}
	}
}

// TestWhatItsOwnerDeletedWaitsForNobody: an owner deletes a lost slice after three minutes, and wants another one after three days.
func TestWhatItsOwnerDeletedWaitsForNobody(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	record := append(interrupted()[:7], called(123, "DeleteNode", "llama", "ann@example.com", "last"), called(4443, "CreateNode", "llama", "ann@example.com", "first"), called(4447, "CreateNode", "llama", "ann@example.com", "last"),
		told(4450, "started", 2, 200, 0, 0))
	out, _, code := call(t, strings.Join(record, "\n"), "goodput", "-")
	if want := "notice a loss and ask for new machines within 1 m 0 s  at most 1.5\n"; code != cli.ExitDone || !strings.Contains(out, want) {
		t.Errorf("exit code %d: %q is not said in\n%s", code, want, out)
	}
}

// TestWithoutASpotPriceNoDifferenceIsTold: the file has one price of the two.
func TestWithoutASpotPriceNoDifferenceIsTold(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	for text, says := range map[string]string{"{other: 1.0}": "- no Spot price of v5litepod-16 is in the prices: dollars are without it\n", "{spot: 0.5}": ""} {
		prices := entriestest.Write(t, "prices.yaml", "v5litepod: "+text+"\n")
		out, errOut, code := call(t, strings.Join(losing(30, 15, 5), "\n"), "goodput", "--prices", prices, "-")
		if code != cli.ExitDone || errOut != "" || !strings.Contains(out, "run on demand") || strings.Contains(out, "dollars more") || !strings.Contains(out, says) {
			t.Errorf("of %s: exit code %d, stderr %q\n%s", text, code, errOut, out)
		}
	}
}

// losing is a record of n preemptions of a Spot slice, about six hours apart. It makes two steps a minute and saves after 240 of them, for
// a minute. Its script asks for a new slice so many minutes after each loss, which takes so many.
func losing(n int, waits, takes float64) []string {
	spot := func(entry string) string {
		return strings.Replace(entry, `"acceleratorType":"v5litepod-16"`, `"acceleratorType":"v5litepod-16","schedulingConfig":{"spot":true}`, 1)
	}
	all := []string{spot(called(0, "CreateNode", "llama", watchdog, "first")), spot(called(4, "CreateNode", "llama", watchdog, "last"))}
	saved := 0
	for i := range n {
		begins := float64(400 * i)
		all = append(all, told(begins+10, "started", i+1, saved, 0, 0))
		first, step, at, told5, saves := saved+1, saved, begins+12, 0.0, 0
		for at < begins+370+float64(i%7) {
			step++
			if at += 0.5; step == first || at >= told5+5 {
				line := told(at, "progress", i+1, step, first, begins+12.5)
				more := fmt.Sprintf(`"schema":1,"steps_seconds":%d,"saves_seconds":%d,"checkpoint_step":%d,"checkpoint_uri":"gs://c/%[3]d"`, 30*(step-first), 60*saves, saved)
				all = append(all, strings.Replace(line, `"schema":1`, more, 1))
				told5 = at
			}
			if step%240 == 0 {
				saved, saves, at = step, saves+1, at+1
			}
		}
		all = append(all,
			happened(begins+380, `"methodName":"tpu.nodes.terminate","resourceName":"projects/mine/locations/us-west4-a/nodes/llama"`, "system_event", ""),
			spot(called(begins+380+waits, "CreateNode", "llama", watchdog, "first")), spot(called(begins+380+waits+takes, "CreateNode", "llama", watchdog, "last")))
	}
	return all
}

// TestGoodputNamesWhatToChange: it saves seldom, is on Spot, and comes back late.
func TestGoodputNamesWhatToChange(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	prices := entriestest.Write(t, "prices.yaml", "v5litepod: {spot: 0.5, other: 1.0}\n")
	out, errOut, code := call(t, strings.Join(losing(30, 15, 5), "\n"), "goodput", "--prices", prices, "-")
	if code != cli.ExitDone || errOut != "" {
		t.Fatalf("exit code %d, stderr %q", code, errOut)
	}
	for _, want := range []string{
		`save every 5\d steps \(2\d m 0 s\) instead of 240 steps \(2 h 0 m\) +\d+\.\d to \d+\.\d +llama +-\n`,
		`notice a loss and ask for new machines within 1 m 0 s +at most 3\.\d +- +-\n`,
		`run on demand in the place of Spot +at most \d+\.\d +- +16\d\d\.\d\d\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s is not said in\n%s", want, out)
		}
	}
}
