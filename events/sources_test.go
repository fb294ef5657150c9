package events_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
)

// want is the expected reading of an entry. Sink is checked where filters can be evaluated.
type want struct {
	Sink    string   `json:"sink"`
	Kind    string   `json:"kind"`
	Rank    string   `json:"rank"`
	Subject string   `json:"subject"`
	Says    string   `json:"says"`
	Ignored string   `json:"ignored"`
	Missing []string `json:"missing"`
}

// sourceEntry is one entry of testdata/sources.
type sourceEntry struct {
	source, name string
	raw          []byte
	want         want
}

// sourceEntries reads the entries of every source, each with its expected reading.
func sourceEntries(t testing.TB) []sourceEntry {
	t.Helper()
	var wants map[string]map[string]want
	read(t, "testdata/sources/want.json", &wants)
	var all []sourceEntry
	for source, byName := range wants {
		var entries []json.RawMessage
		read(t, filepath.Join("testdata/sources", source+".json"), &entries)
		for _, raw := range entries {
			var id struct {
				InsertID  string `json:"insertId"`
				MessageID string `json:"messageId"`
				Message   struct {
					MessageID string `json:"messageId"`
				} `json:"message"`
			}
			must(t, json.Unmarshal(raw, &id))
			name := id.InsertID + id.MessageID + id.Message.MessageID
			w, ok := byName[name]
			if !ok {
				t.Fatalf("%s: no expected reading of %q", source, name)
			}
			delete(byName, name)
			all = append(all, sourceEntry{source, name, raw, w})
		}
		for name := range byName {
			t.Errorf("%s: there is no %q", source, name)
		}
	}
	return all
}

func read(t testing.TB, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	must(t, err)
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestSources(t *testing.T) {
	for _, f := range sourceEntries(t) {
		t.Run(f.source+"/"+f.name, func(t *testing.T) {
			e, err := events.Read(f.raw)
			must(t, err)
			got := want{
				Sink: f.want.Sink, Kind: string(e.Kind), Rank: e.Rank.String(), Subject: e.Subject.String(), Says: e.Describe(),
				Ignored: e.Ignored, Missing: e.Missing,
			}
			if d := cmp.Diff(f.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			sound(t, f.raw)
		})
	}
}

// TestJobs holds the training service's rules for every wording of an exit.
func TestJobs(t *testing.T) {
	exited := func(replica string, code int, signal string, class events.JobClass) events.Job {
		return events.Job{Event: events.JobExited, Class: class, Replica: replica, ExitCode: code, Signal: signal}
	}
	oom := func(replica string, code int, signal string) events.Job {
		return events.Job{Event: events.JobOutOfMemory, Class: events.JobPermanent, Replica: replica, ExitCode: code, Signal: signal}
	}
	for message, want := range map[string]events.Job{
		"The replica workerpool0-0 exited with a non-zero status of 1 . Termination reason: Error .": exited("workerpool0-0", 1, "", events.JobPermanent),
		"The replica master 0 exited with a non-zero status of 6(SIGABRT)":                           exited("master 0", 6, "SIGABRT", events.JobPossiblyTransient),
		"The replica master 0 exited with a non-zero status of 134.":                                 exited("master 0", 134, "", events.JobPossiblyTransient),
		"The replica master 0 exited with a non-zero status of 11 (SIGSEGV).":                        exited("master 0", 11, "SIGSEGV", events.JobPossiblyTransient),
		"The replica master 0 exited with a non-zero status of 139":                                  exited("master 0", 139, "", events.JobPossiblyTransient),
		"The replica master 0 exited with a non-zero status of 9(SIGKILL)":                           exited("master 0", 9, "SIGKILL", events.JobPermanent),
		"The replica master 0 exited with a non-zero status of":                                      {Event: events.JobTold, Replica: "service"},
		"The replica master 0 exited with a non-zero status of x":                                    exited("master 0", 0, "", events.JobPermanent),
		"The replica worker 3 ran out of memory and exited with a non-zero status of 137 .":          oom("worker 3", 137, ""),
		"The replica worker 3 ran out-of-memory and exited with a non-zero status of 9(SIGKILL)":     oom("worker 3", 9, "SIGKILL"),
		"The replica worker 3 ran out of memory":                                                     oom("worker 3", 0, ""),
		"Resources are insufficient in region: us-central1 .":                                        {Event: events.JobNoResources, Class: events.JobStockout, Replica: "service"},
		"Internal error occurred for the current attempt":                                            {Event: events.JobInternal, Class: events.JobInternalError, Replica: "service"},
		"The replica master 0 exited with a non-zero status of -6":                                   exited("master 0", -6, "", events.JobPossiblyTransient),
		"The replica master 0 exited with a non-zero status of -9":                                   exited("master 0", -9, "", events.JobPermanent),
		"Replica workerpool0-0 exited with a non-zero status of 139":                                 exited("workerpool0-0", 139, "", events.JobPossiblyTransient),
		"the job is JOB_STATE_PARTIALLY_SUCCEEDED":                                                   {Event: events.JobEnded, State: "JOB_STATE_PARTIALLY_SUCCEEDED", Replica: "service"},
		"Job failed.": {Event: events.JobTold, Replica: "service"}, // the first of several attempts may say that
	} {
		raw, err := json.Marshal(map[string]any{
			"logName": "projects/demo/logs/ml.googleapis.com%2F7", "textPayload": message,
			"resource": map[string]any{"type": "ml_job", "labels": map[string]any{"job_id": "7", "task_name": "service"}},
		})
		must(t, err)
		e, err := events.Read(raw)
		if err != nil || e.Kind != events.KindJob || e.Ignored == "" {
			t.Fatalf("%q: %+v, %v", message, e, err)
		}
		if d := cmp.Diff(want, *e.Job); d != "" {
			t.Errorf("%q (-want +got):\n%s", message, d)
		}
	}
}

// TestReasonsOfJobs: where to read more is no reason.
func TestReasonsOfJobs(t *testing.T) {
	const exited = "The replica workerpool0-0 exited with a non-zero status of 137. "
	for message, want := range map[string]string{
		exited + "Termination reason: OOMKilled. To find out more about why your job exited please check the logs: x": "OOMKilled",
		exited + "Termination reason: Error . \nTo find out more":                                                     "Error",
		exited + "Termination reason: Error":                                                                          "Error",
	} {
		raw, err := json.Marshal(map[string]any{"logName": "projects/demo/logs/ml.googleapis.com%2F7", "textPayload": message})
		must(t, err)
		if e, err := events.Read(raw); err != nil || e.Text != want {
			t.Errorf("%q is described as %q (%v), want %q", message, e.Text, err, want)
		}
	}
}

// TestMessagesAsOthersWriteThem: what a message holds counts, not how it was written out.
func TestMessagesAsOthersWriteThem(t *testing.T) {
	entry := system("compute.instances.preempted", "")
	message := `{"messageId":"7","data":"` + base64.StdEncoding.EncodeToString([]byte(entry)) + `"}`
	const upgrade = `"type_url":"type.googleapis.com/google.container.v1beta1.UpgradeEvent","cluster_location":"us-east5","cluster_name":"train"`
	for name, c := range map[string]struct{ raw, says, subject string }{
		"a push":                           {`{"message":` + message + `,"subscription":"s"}`, "worker 2 was preempted", worker2.String()},
		"an event in structured mode":      {`{"specversion":"1.0","id":"7","type":"google.cloud.pubsub.topic.v1.messagePublished","data":{"message":` + message + `,"subscription":"s"}}`, "worker 2 was preempted", worker2.String()},
		"the answer to a pull":             {`{"receivedMessages":[{"ackId":"a","message":` + message + `}]}`, "worker 2 was preempted", worker2.String()},
		"a project that is a number":       {`{"data":"","attributes":{` + upgrade + `,"project_id":123456789012,"payload":"{\"targetVersion\":\"1.33\"}"}}`, "cluster train is upgraded (1.33)", "projects/123456789012/locations/us-east5/clusters/train"},
		"a payload that is read already":   {`{"data":"","attributes":{` + upgrade + `,"project_id":"demo","payload":{"targetVersion":"1.33"}}}`, "cluster train is upgraded (1.33)", "projects/demo/locations/us-east5/clusters/train"},
		"an attribute that nobody expects": {`{"data":"","attributes":{` + upgrade + `,"project_id":"demo","ce-type":[1]}}`, "cluster train is upgraded", "projects/demo/locations/us-east5/clusters/train"},
	} {
		e, err := events.Read([]byte(c.raw))
		if err != nil || e.Describe() != c.says || e.Subject.String() != c.subject {
			t.Errorf("%s: %q of %s (%v), want %q of %s", name, e.Describe(), e.Subject, err, c.says, c.subject)
		}
	}
	e, err := events.Read([]byte(`{"receivedMessages":[{"message":` + message + `},{"message":` + message + `}]}`))
	if err != nil || e.Kind != events.KindForeign || !strings.Contains(e.Ignored, "several Pub/Sub messages") {
		t.Errorf("several messages: %+v, %v", e, err)
	}
	for _, empty := range []string{`{"receivedMessages":[]}`, `{"receivedMessages":[{}]}`, `{"receivedMessages":[3]}`, `{"specversion":"1.0","data":{"message":"x"}}`, `{"data":{}}`} {
		if e, err := events.Read([]byte(empty)); err != nil || e.Ignored == "" {
			t.Errorf("%s: %+v, %v", empty, e, err)
		}
	}
}

// TestAMessageOfALogSinkSaysWhatItLacks: who sent it is known by its attribute, whatever became of its data.
func TestAMessageOfALogSinkSaysWhatItLacks(t *testing.T) {
	const attributes = `"messageId":"7","attributes":{"logging.googleapis.com/timestamp":"2026-11-12T02:14:07Z"}`
	for _, c := range []struct{ data, ignored string }{
		{"", "a Pub/Sub message of a log sink without data"},
		{`,"data":""`, "a Pub/Sub message of a log sink without data"},
		{`,"data":null`, "a Pub/Sub message of a log sink without data"},
		{`,"data":"e30="`, "a Pub/Sub message of a log sink whose data has no logName"},
		{`,"data":"PGh0bWw+"`, "a Pub/Sub message of a log sink whose data has no logName"},
	} {
		message := "{" + attributes + c.data + "}"
		push := `{"message":` + message + `,"subscription":"s"}`
		for form, raw := range map[string]string{
			"a message":    message,
			"a push":       push,
			"a CloudEvent": `{"specversion":"1.0","id":"7","data":` + push + `}`,
			"a pull":       `{"receivedMessages":[{"ackId":"a","message":` + message + `}]}`,
		} {
			if e, err := events.Read([]byte(raw)); err != nil || e.PubSub || e.Kind != events.KindForeign || e.Ignored != c.ignored {
				t.Errorf("%s %s: ignored because %q (%v), want %q", form, raw, e.Ignored, err, c.ignored)
			}
		}
	}
}

// TestOnlyTheServiceEndsAJob: a replica may write any text.
func TestOnlyTheServiceEndsAJob(t *testing.T) {
	for name, c := range map[string]struct{ log, task, payload, state string }{
		"a replica waits for a state":             {"workerpool0-0", "workerpool0-0", `"textPayload":"waiting until state is JOB_STATE_FAILED or JOB_STATE_SUCCEEDED"`, ""},
		"a replica names one state":               {"workerpool0-0", "workerpool0-0", `"textPayload":"JOB_STATE_FAILED"`, ""},
		"a replica says a word of the older API":  {"workerpool0-0", "workerpool0-0", `"textPayload":"SUCCEEDED"`, ""},
		"a replica is done":                       {"workerpool0-0", "workerpool0-0", `"textPayload":"Job completed successfully."`, ""},
		"a replica has a field of that name":      {"workerpool0-0", "workerpool0-0", `"jsonPayload":{"message":"x","jobState":"JOB_STATE_FAILED"}`, ""},
		"a replica, by its log alone":             {"workerpool0-0", "", `"textPayload":"JOB_STATE_FAILED"`, ""},
		"the service has a state of another sort": {"ml.googleapis.com%2F7", "service", `"jsonPayload":{"message":"x","state":"FAILED"}`, ""},
		"the service speaks of several":           {"ml.googleapis.com%2F7", "service", `"textPayload":"not JOB_STATE_FAILED yet, still JOB_STATE_RUNNING"`, ""},
		"the service says a word":                 {"ml.googleapis.com%2F7", "service", `"textPayload":"SUCCEEDED"`, ""},
		"the service says that it is done":        {"ml.googleapis.com%2F7", "service", `"textPayload":"Job completed successfully."`, "JOB_STATE_SUCCEEDED"},
		"the service names the state":             {"ml.googleapis.com%2F7", "service", `"jsonPayload":{"message":"Job state changed","jobState":"JOB_STATE_FAILED"}`, "JOB_STATE_FAILED"},
		"the service names it as it used to":      {"ml.googleapis.com%2F7", "service", `"jsonPayload":{"message":"Job state changed","jobState":"CANCELLED"}`, "JOB_STATE_CANCELLED"},
		"the service, without a task":             {"ml.googleapis.com%2F7", "", `"textPayload":"CustomJob ended in JOB_STATE_EXPIRED"`, "JOB_STATE_EXPIRED"},
	} {
		e, err := events.Read([]byte(`{"logName":"projects/demo/logs/` + c.log + `","resource":{"type":"ml_job","labels":{"job_id":"7","task_name":"` + c.task + `"}},` + c.payload + `}`))
		if err != nil || e.Job == nil {
			t.Fatalf("%s: %+v, %v", name, e, err)
		}
		if ended := e.Job.Event == events.JobEnded; e.Job.State != c.state || ended != (c.state != "") {
			t.Errorf("%s: %s as %q, want %q", name, e.Job.Event, e.Job.State, c.state)
		}
	}
}

func TestPlatform(t *testing.T) {
	for worker, want := range map[string]events.Platform{
		"t1v-n-3f2a9c01-w-2": events.PlatformTPU, "gke-tpu-2f41c6aa-bq7x": events.PlatformGKE, "gk3-train-pool-1-2f41c6aa-bq7x": events.PlatformGKE,
		"tpu7x-slice-k3wq": events.PlatformGroup, "t1v-n-3f2a9c01-x-2abc": events.PlatformGroup, "database-1": "", "-abcd": "", "abcd": "", "web-ABCD": "", "": "",
	} {
		if got := (events.Subject{Worker: worker}).Platform(); got != want {
			t.Errorf("Platform(%q) = %q, want %q", worker, got, want)
		}
	}
}

// TestEntriesOfOtherServicesAreNoErrors: they look as their services like it.
func TestEntriesOfOtherServicesAreNoErrors(t *testing.T) {
	for _, entry := range []string{
		`{"logName":"projects/p/logs/x","protoPayload":{"@type":"type.googleapis.com/google.appengine.logging.v1.RequestLog","status":200}}`,
		`{"logName":"projects/p/logs/x","protoPayload":{"status":"fine"}}`,
		`{"logName":"projects/p/logs/x","jsonPayload":[1,2],"labels":{"instance_name":3}}`,
		`{"logName":"projects/p/logs/events","jsonPayload":{"reason":7}}`,
		`{"logName":"projects/p/logs/events","jsonPayload":"text"}`,
		`{"logName":"projects/p/logs/container.googleapis.com%2Fnotifications","jsonPayload":{"@type":[]}}`,
		`{"logName":"projects/p/logs/container.googleapis.com%2Fcluster-autoscaler-visibility","jsonPayload":{"decision":{"scaleDown":{"nodesToBeRemoved":{}}}}}`,
		`{"logName":"projects/p/logs/cloudaudit.googleapis.com%2Factivity","protoPayload":{"serviceName":"bigquery.googleapis.com","status":{"code":"5"}}}`,
		`{"logName":"projects/p/logs/cloudaudit.googleapis.com%2Factivity","protoPayload":{"serviceName":"bigquery.googleapis.com","metadata":"x","methodName":"a"}}`,
		`{"logName":"projects/p/logs/cloudaudit.googleapis.com%2Factivity","protoPayload":{"serviceName":"k8s.io","methodName":"io.k8s.core.v1.nodes.patch","request":[{"op":"add"}]}}`,
		`{"logName":"projects/p/logs/ml.googleapis.com%2F7","jsonPayload":{"message":{"deep":1},"state":4}}`,
	} {
		e, err := events.Read([]byte(entry))
		if err != nil || e.Ignored == "" {
			t.Errorf("%s: %v, ignored %q", entry, err, e.Ignored)
		}
	}
}

// TestTextsFromOutsideAreOneLine: a terminal obeys no text in an entry.
func TestTextsFromOutsideAreOneLine(t *testing.T) {
	for _, entry := range []string{
		call("google.cloud.tpu.v2.Tpu.CreateNode", `,"status":{"code":13,"message":"first\nsecond \u001b[2Jthird"}`),
		crew(`{"schema":1,"report":"refused","save_id":"s","zone":"z","node":"n","reason":"first\nsecond \u001b[2Jthird"}`),
		system("compute.instances.hostError", `,"metadata":{"terminateReason":"first\nsecond \u001b[2Jthird"}`),
		`{"logName":"projects/p/logs/ml.googleapis.com%2F7","textPayload":"first\nsecond \u001b[2Jthird"}`,
	} {
		e, err := events.Read([]byte(entry))
		must(t, err)
		if s := e.Describe(); !strings.Contains(s, "first second [2Jthird") {
			t.Errorf("%q", s)
		}
	}
}

// TestReadingTakesLittleMemory: whatever the input, the allocations stay under 64 MiB. They grow in proportion to the input,
// so a quarter of the largest entry shows it.
func TestReadingTakesLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector takes memory of its own")
	}
	const room, most = events.MaxBytes / 4, 64 << 20 / 4
	data := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(`{"logName":"x"},`), room/24))
	for name, entry := range map[string]string{
		"a long text":           `{"logName":"projects/p/logs/ml.googleapis.com%2F7","textPayload":"` + strings.Repeat("replica \\n", room/10) + `"}`,
		"a long payload":        `{"logName":"projects/p/logs/ml.googleapis.com%2F7","jsonPayload":{"message":"` + strings.Repeat("x", room) + `"}}`,
		"many labels":           `{"logName":"projects/p/logs/x","labels":{` + strings.Repeat(`"a":"b",`, room/8) + `"c":"d"}}`,
		"many removed nodes":    `{"logName":"projects/p/logs/container.googleapis.com%2Fcluster-autoscaler-visibility","jsonPayload":{"decision":{"scaleDown":{"nodesToBeRemoved":[` + strings.Repeat("{},", room/3-64) + `{}]}}}}`,
		"many labels of a node": `{"logName":"projects/p/logs/cloudaudit.googleapis.com%2Factivity","protoPayload":{"methodName":"io.k8s.core.v1.nodes.patch","request":{"metadata":{"labels":{` + strings.Repeat(`"a":"b",`, room/8-64) + `"c":"d"}}}}}`,
		"many taints":           `{"logName":"projects/p/logs/cloudaudit.googleapis.com%2Factivity","protoPayload":{"methodName":"io.k8s.core.v1.nodes.patch","request":{"spec":{"taints":[` + strings.Repeat("{},", room/3-64) + `{}]}}}}`,
		"much in a message":     `{"attributes":{},"data":"` + data[:len(data)/4*4] + `"}`,
		"a message deep down":   strings.Repeat(`{"message":`, room/11) + `1` + strings.Repeat("}", room/11),
		"a deep nest":           `{"jsonPayload":` + strings.Repeat("[", room/2) + strings.Repeat("]", room/2) + `}`,
	} {
		raw := []byte(entry)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := events.Read(raw)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("%s: %d MiB are allocated for %d (%v)", name, got>>20, len(raw)>>20, err)
		}
	}
}

// FuzzReadTexts reads lines of every source whose meaning is in words.
func FuzzReadTexts(f *testing.F) {
	sources := []string{
		`{"logName":"projects/p/logs/ml.googleapis.com%2F7","resource":{"type":"ml_job","labels":{"job_id":"7"}},"textPayload":`,
		`{"logName":"projects/p/logs/x","resource":{"type":"tpu_worker","labels":{"node_id":"n","zone":"z"}},"textPayload":`,
		`{"logName":"projects/p/logs/events","resource":{"type":"k8s_node"},"jsonPayload":{"reason":"r","involvedObject":{"kind":"Node"}},"message":`,
		`{"logName":"projects/p/logs/cloudaudit.googleapis.com%2Fsystem_event","protoPayload":{"methodName":"tpu.nodes.terminate","resourceName":"projects/p/locations/z/nodes/n"},"protoPayload":{"metadata":{}},"insertId":`,
		`{"attributes":{"type_url":"type.googleapis.com/google.container.v1.UpgradeEvent"},"data":`,
	}
	for i := range sources {
		f.Add(uint8(i), "The replica a ran out of memory and exited with a non-zero status of 9(SIGKILL). Termination reason: x")
		f.Add(uint8(i), "SIGTERM caught at 1")
	}
	f.Fuzz(func(t *testing.T, source uint8, text string) {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Skip()
		}
		sound(t, []byte(sources[int(source)%len(sources)]+string(quoted)+"}"))
	})
}

// TestAGroupSaysWhyItMadeAMachineAgain: such an entry carries its reason as a status without a code, which is no failure.
func TestAGroupSaysWhyItMadeAMachineAgain(t *testing.T) {
	raw := system("compute.instances.repair.recreateInstance", `,"status":{"message":"Instance Group Manager 'projects/7/zones/us-west4-a/instanceGroupManagers/g' `+
		`initiated recreateInstance on instance 'projects/7/zones/us-west4-a/instances/t1v-n-3f2a9c01-w-2'. Reason: its health status is TIMEOUT."}`)
	e, err := events.Read([]byte(raw))
	if err != nil || e.Kind != events.KindLoss || e.Cause != events.CauseUnknown || e.Subject != worker2 || e.Describe() != "worker 2 was interrupted (repair.recreateInstance)" {
		t.Errorf("%+v (%s), %v", e, e.Describe(), err)
	}
}

// TestTimesOfMaintenanceWithAnOffset: some notices give milliseconds and the offset of a zone, and mean the same moment.
func TestTimesOfMaintenanceWithAnOffset(t *testing.T) {
	raw := system("compute.instances.upcomingMaintenance", `,"metadata":{"maintenanceStatus":"PENDING","windowStartTime":"2026-11-18T22:00:00.000-08:00",`+
		`"windowEndTime":"2026-11-19T11:30:00.500+05:30","latestWindowStartTime":"2026-11-19T06:00:00.000Z"}`)
	e, err := events.Read([]byte(raw))
	want := events.Notice{
		Status: events.NoticePending, WindowStart: time.Date(2026, 11, 19, 6, 0, 0, 0, time.UTC),
		WindowEnd: time.Date(2026, 11, 19, 6, 0, 0, 500_000_000, time.UTC), LatestWindowStart: time.Date(2026, 11, 19, 6, 0, 0, 0, time.UTC),
	}
	if err != nil || !e.Notice.Equal(want) || !strings.Contains(e.Describe(), "announced for Nov 19 06:00-06:00") {
		t.Errorf("%+v (%s), %v, want %+v", e.Notice, e.Describe(), err, want)
	}
}

// TestTimesWithSmallLetters: RFC 3339 allows them, and some exporters write them.
func TestTimesWithSmallLetters(t *testing.T) {
	e, err := events.Read([]byte(`{"logName":"projects/demo/logs/cloudaudit.googleapis.com%2Fsystem_event","timestamp":"2026-11-12t02:14:06.5z","receiveTimestamp":"2026-11-12t03:14:07+01:00",` +
		`"protoPayload":{"methodName":"compute.instances.upcomingMaintenance","resourceName":"projects/demo/zones/us-west4-a/instances/t1v-n-3f2a9c01-w-2",` +
		`"metadata":{"maintenanceStatus":"PENDING","windowStartTime":"2026-11-13t00:00:00z","windowEndTime":"2026-11-13t04:00:00z"}}}`))
	day := time.Date(2026, 11, 12, 0, 0, 0, 0, time.UTC)
	if err != nil || !e.Time.Equal(day.Add(2*time.Hour+14*time.Minute+6500*time.Millisecond)) || !e.Received.Equal(day.Add(2*time.Hour+14*time.Minute+7*time.Second)) ||
		!e.Notice.WindowStart.Equal(day.AddDate(0, 0, 1)) {
		t.Errorf("%v: %+v", err, e)
	}
	if _, err := events.Read([]byte(`{"logName":"projects/demo/logs/syslog","timestamp":"2026-11-12 02:14:06z"}`)); err == nil {
		t.Error("a time with a blank in it is taken")
	}
}
