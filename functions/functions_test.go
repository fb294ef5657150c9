// Package functions_test calls every function by its entry point, as the functions framework serves it.
package functions_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	_ "pitstop.internal/functions/checkpoint"
	_ "pitstop.internal/functions/console"
	_ "pitstop.internal/functions/logevent"
	_ "pitstop.internal/functions/maintenance"
	_ "pitstop.internal/functions/notify"
	_ "pitstop.internal/functions/order"
	_ "pitstop.internal/functions/patrol"
	_ "pitstop.internal/functions/recovery"
	_ "pitstop.internal/functions/recreate"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/trigger"
)

// message is what a function is sent.
type message struct {
	data       string
	attributes map[string]string
}

func event(eventType, data string) message {
	return message{data, map[string]string{"ce-type": eventType, "ce-id": "e1", "ce-source": "//test"}}
}

// unknown is none of any function's concern.
var unknown = event("pitstop.weather.changed.v1", `{"schema":1}`)

// functions are the entry points, with what each needs beside the project, and a body that it cannot read.
var functions = []struct {
	entry     string
	needs     []string
	malformed message
}{
	{"HandleMaintenance", requests(), message{data: `{"logName":`}},
	{"HandleMaintenance", requests(), event(events.TypeMaintenanceNotified, `{"schema":1,"node":"llama"}`)},
	{"HandleLogEvent", requests("OUR_PRINCIPALS"), message{data: `{"logName":`}},
	{"HandlePatrol", requests("NOTICE_TOPIC", "OUR_PRINCIPALS"), unknown}, // a tick holds only its time
	{"HandleCheckpoint", requests(), event(events.TypeCheckpointRequested, `{"schema":1,"action":"save"}`)},
	{"HandleRecovery", requests(), event(events.TypeRecoveryRequested, `{"schema":1,"action":"restart"}`)},
	{"HandleRecreate", requests(), event(events.TypeRecreateRequested, `{"schema":1,"action":"delete"}`)},
	{"HandleOrder", requests(), event(events.TypeOperatorOrdered, `{"schema":1,"verb":"pause"}`)},
	{"HandleNotify", nil, event(events.TypeIncidentUpdated, `{"schema":1,"incident":"llama-1"}`)},
}

// requests are the settings of a function that decides, and more.
func requests(more ...string) []string {
	return append([]string{"CHECKPOINT_TOPIC", "RECOVERY_TOPIC", "RECREATE_TOPIC"}, more...)
}

// environment is what a deployment sets.
var environment = map[string]string{
	"PROJECT_ID":       "demo",
	"CHECKPOINT_TOPIC": "projects/demo/topics/checkpoint-requests",
	"RECOVERY_TOPIC":   "projects/demo/topics/recovery-requests",
	"RECREATE_TOPIC":   "projects/demo/topics/recreate-requests",
	"NOTICE_TOPIC":     "projects/demo/topics/maintenance-notices",
	"OUR_PRINCIPALS":   "pitstop@demo.iam.gserviceaccount.com",
}

// needed by every function.
var needed = []string{"PROJECT_ID"}

type answer struct {
	status int
	body   string
}

var (
	address string
	// unconfigured are the answers of each entry point before anything is set: a function reads its environment once.
	unconfigured = map[string]answer{}
)

func TestMain(m *testing.M) {
	if err := setUp(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func setUp() error {
	for name := range environment {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	for name, value := range map[string]string{"LOG_LEVEL": "ERROR+4", "POLICY_URI": "", "ALLOW": "", "FUNCTION_TARGET": "", "CHAT_WEBHOOK_URL": "http://127.0.0.1:9/"} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	var err error
	if address, err = serve(); err != nil {
		return err
	}
	for _, f := range functions {
		if unconfigured[f.entry], err = post(f.entry, unknown); err != nil {
			return err
		}
	}
	if unconfigured["ServeConsole"], err = post("ServeConsole", unknown); err != nil {
		return err
	}
	for name, value := range environment {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// serve starts the functions framework on a free loopback port.
func serve() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // there is no test yet that could end it
	if err != nil {
		return "", err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return "", err
	}
	host, port, _ := strings.Cut(addr, ":")
	failed := make(chan error, 1)
	go func() { failed <- funcframework.StartHostPort(host, port) }()
	for {
		select {
		case err := <-failed:
			return "", err
		default:
		}
		if c, err := net.Dial("tcp", addr); err == nil { //nolint:noctx // likewise
			return addr, c.Close()
		}
		runtime.Gosched() // the framework does not say when it listens
	}
}

// post delivers a message as Pub/Sub pushes it.
func post(entry string, m message) (answer, error) {
	body, err := json.Marshal(map[string]any{
		"message":      map[string]any{"data": []byte(m.data), "attributes": m.attributes, "messageId": "m1"},
		"subscription": "projects/demo/subscriptions/s",
	})
	if err != nil {
		return answer{}, err
	}
	resp, err := http.Post("http://"+address+"/"+entry, "application/json", bytes.NewReader(body)) //nolint:noctx // likewise
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read to its end
	said, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, strings.TrimSpace(string(said))}, err
}

// TestThePageListsEveryVariable that a function reads, with the functions that read it, and none that no function reads.
func TestThePageListsEveryVariable(t *testing.T) {
	read, required := map[string][]string{}, map[string]bool{}
	entries := map[string]bool{}
	for _, f := range functions {
		if entries[f.entry] {
			continue
		}
		entries[f.entry] = true
	}
	entries["ServeConsole"] = true
	var names []string
	for entry := range entries {
		name := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(entry, "Handle"), "Serve"))
		names = append(names, name)
		variables, err := trigger.Variables(entry)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range variables {
			read[v.Name] = append(read[v.Name], name)
			required[v.Name] = v.Required
		}
	}
	want := map[string]string{}
	for name, by := range read {
		slices.Sort(by)
		slices.Sort(names)
		others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(by, n) })
		switch want[name] = strings.Join(by, ", "); {
		case len(others) == 0:
			want[name] = "every function"
		case len(others) <= 3:
			want[name] = "every function but " + strings.Join(others, ", ")
		}
		if required[name] {
			want[name] += ", required"
		}
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### Their environment\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| ((?:`[A-Z_]+`(?:, )?)+) \\| ([^|]+) \\|").FindAllStringSubmatch(section, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			listed[strings.Trim(name, "`")] = row[2]
		}
	}
	if d := cmp.Diff(want, listed); d != "" {
		t.Errorf("the table of variables (-read +listed):\n%s", d)
	}
}

func TestAFunctionWithoutItsConfigurationSaysWhatIsMissing(t *testing.T) {
	for _, f := range functions {
		got := unconfigured[f.entry]
		if got.status != http.StatusInternalServerError || !strings.Contains(got.body, "configuration") || strings.Contains(got.body, "\n") {
			t.Errorf("%s: status %d, %q; want 500 and one line about its configuration", f.entry, got.status, got.body)
		}
		for name := range environment {
			if want := slices.Contains(append(needed[:len(needed):len(needed)], f.needs...), name); strings.Contains(got.body, name) != want {
				t.Errorf("%s: %q; want it to name %s: %t", f.entry, got.body, name, want)
			}
		}
	}
}

// TestAFunctionLeavesWhatANewerReleaseWroteForThat.
func TestAFunctionLeavesWhatANewerReleaseWroteForThat(t *testing.T) {
	for _, f := range functions {
		eventType := f.malformed.attributes["ce-type"]
		if eventType == "" || f.malformed.data == unknown.data {
			continue
		}
		if got, err := post(f.entry, event(eventType, fmt.Sprintf(`{"schema":%d}`, events.Schema+1))); err != nil || got.status != http.StatusServiceUnavailable {
			t.Errorf("%s: %+v, %v, want 503", f.entry, got, err)
		}
	}
}

// TestAFunctionAcknowledgesWhatItCannotActOn needs no client. A message that is unreadable or not for the function is
// acknowledged before a client is made, and this test has no credentials to make one.
func TestAFunctionAcknowledgesWhatItCannotActOn(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")
	for _, f := range functions {
		for name, m := range map[string]message{"of unknown type": unknown, "that is malformed": f.malformed} {
			got, err := post(f.entry, m)
			if err != nil {
				t.Fatal(err)
			}
			if got.status != http.StatusOK {
				t.Errorf("%s answers a message %s with %d %q, want 200", f.entry, name, got.status, got.body)
			}
		}
	}
}

// TestAFunctionLeavesForRedeliveryWhatItCannotStore: there are no credentials with which the ledger could be reached, so no message that is
// a function's concern may be acknowledged.
func TestAFunctionLeavesForRedeliveryWhatItCannotStore(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")
	now := time.Now()
	life := events.Incarnation{Zone: "us-west4-a", ID: "7711", Created: now.Add(-time.Hour)}
	request := func(a events.Action) events.Request {
		return events.Request{
			Schema: events.Schema, Workload: "demo/llama", Incident: "llama-20260301-1", Epoch: 2, Action: a, Slice: "llama", Incarnation: life, Attempt: 1,
			Expires: now.Add(time.Hour), Reason: "test",
		}
	}
	sent := func(e events.Event) message {
		t.Helper()
		env, err := events.Wrap(e, "//test", "cause", "correlation", now)
		if err != nil {
			t.Fatal(err)
		}
		return message{string(env.Data), map[string]string{"ce-type": env.Type, "ce-id": env.ID, "ce-source": env.Source, "ce-specversion": "1.0"}}
	}
	for entry, m := range map[string]message{
		"HandleMaintenance": sent(events.MaintenanceNotified{
			Schema: events.Schema, Project: "demo", Node: "llama", Incarnation: life, Read: now,
			Notice: events.Notice{Status: events.NoticePending, WindowStart: now.Add(time.Hour), WindowEnd: now.Add(5 * time.Hour)},
		}),
		"HandleLogEvent":   {data: string(fleettest.SystemEvent("compute.instances.preempted", "zones/us-west4-a/instances/t1v-n-0a1b2c3d-w-0", now, nil))},
		"HandlePatrol":     {data: "{}"},
		"HandleCheckpoint": sent(events.CheckpointRequested{Request: request(events.ActionSave), SaveID: "s", Mode: events.SaveNatural, By: now.Add(time.Hour), Directory: "gs://ckpt/run"}),
		"HandleRecovery":   sent(events.RecoveryRequested{Request: request(events.ActionStart)}),
		"HandleRecreate":   sent(events.RecreateRequested{Request: request(events.ActionDelete), Zone: "us-west4-a", Spec: "spec"}),
		"HandleOrder":      sent(events.OperatorOrdered{Schema: events.Schema, ID: "1", Workload: "demo/llama", Verb: "pause", By: "ada@example.com", Why: "test", At: now}),
		"HandleNotify":     sent(events.IncidentUpdated{Schema: events.Schema, Workload: "demo/llama", Incident: "llama-20260301-1", Number: 1, At: now, Opened: now, Cause: events.CausePreemption, Phase: "deleting"}),
	} {
		got, err := post(entry, m)
		if err != nil {
			t.Fatal(err)
		}
		if got.status != http.StatusInternalServerError {
			t.Errorf("%s without a ledger answers with %d %q, want 500", entry, got.status, got.body)
		}
	}
}

// TestTheConsoleIsConfiguredAtItsFirstRequest: it names what it lacks, starts once it has that, and then knows nobody.
func TestTheConsoleIsConfiguredAtItsFirstRequest(t *testing.T) {
	if got := unconfigured["ServeConsole"]; got.status != http.StatusInternalServerError || got.body != "configuration: not set: PROJECT_ID, IAP_AUDIENCE" {
		t.Errorf("without its configuration: %+v", got)
	}
	t.Setenv("IAP_AUDIENCE", audience)
	for range 2 {
		if got, err := post("ServeConsole", unknown); err != nil || got.status != http.StatusForbidden || !strings.Contains(got.body, "through Google's sign-in") {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestAnEntryPointThatNobodyRegisteredIsNotServed(t *testing.T) {
	got, err := post("HandleNobody", unknown)
	if err != nil {
		t.Fatal(err)
	}
	if got.status != http.StatusNotFound {
		t.Errorf("status %d, want 404", got.status)
	}
}
