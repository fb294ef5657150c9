package events_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
)

// system makes a system event of Compute Engine on a worker.
func system(method, rest string) string {
	return fmt.Sprintf(`{"protoPayload":{"@type":"type.googleapis.com/google.cloud.audit.AuditLog","serviceName":"compute.googleapis.com",
"methodName":%q,"resourceName":"projects/demo/zones/us-west4-a/instances/t1v-n-3f2a9c01-w-2"%s},"insertId":"i1",
"resource":{"type":"gce_instance","labels":{"instance_id":"77","zone":"us-west4-a","project_id":"demo"}},
"timestamp":"2026-11-12T02:14:06.5Z","receiveTimestamp":"2026-11-12T02:14:07Z","severity":"INFO",
"logName":"projects/demo/logs/cloudaudit.googleapis.com%%2Fsystem_event","operation":{"id":"systemevent-1","first":true,"last":true}}`, method, rest)
}

func call(method, rest string) string {
	return fmt.Sprintf(`{"protoPayload":{"serviceName":"tpu.googleapis.com","methodName":%q,
"resourceName":"projects/demo/locations/us-west4-a/nodes/llama-8b"%s},"insertId":"i2","resource":{"type":"audited_resource","labels":{"project_id":"demo"}},
"timestamp":"2026-11-12T02:14:06.5Z","logName":"projects/demo/logs/cloudaudit.googleapis.com%%2Factivity","operation":{"id":"operation-9","last":true}}`, method, rest)
}

func crew(payload string) string {
	return `{"insertId":"i3","logName":"projects/demo/logs/pitstop-crew","timestamp":"2026-11-12T02:14:06.5Z","jsonPayload":` + payload + `}`
}

var (
	at      = time.Date(2026, 11, 12, 2, 14, 6, 500_000_000, time.UTC)
	worker2 = events.Subject{Project: "demo", Zone: "us-west4-a", Worker: "t1v-n-3f2a9c01-w-2", InstanceID: "77"}
	node    = events.Subject{Project: "demo", Zone: "us-west4-a", Node: "llama-8b"}
)

func TestRead(t *testing.T) {
	loss := func(c events.Cause) events.Entry {
		return events.Entry{
			Kind: events.KindLoss, ID: "i1", Time: at, Received: at.Add(500 * time.Millisecond), Rank: events.RankAudit, Subject: worker2, Cause: c,
		}
	}
	notice := func(n events.Notice) events.Entry {
		e := loss(events.CauseMaintenance)
		e.Kind, e.Notice = events.KindNotice, n
		return e
	}
	start, end := time.Date(2026, 11, 19, 4, 0, 0, 0, time.UTC), time.Date(2026, 11, 19, 8, 0, 0, 0, time.UTC)
	window := `"windowStartTime":"2026-11-19T04:00:00Z","windowEndTime":"2026-11-19T08:00:00Z","latestWindowStartTime":"2026-11-19T04:00:01Z"`
	for name, c := range map[string]struct {
		entry string
		want  events.Entry
		says  string
	}{
		"preempted":  {system("compute.instances.preempted", ""), loss(events.CausePreemption), "worker 2 was preempted"},
		"host error": {system("compute.instances.hostError", ""), loss(events.CauseHostError), "worker 2 lost its host: host error"},
		"stopped for maintenance": {
			system("compute.instances.terminateOnHostMaintenance", ""), loss(events.CauseMaintenance), "worker 2 was stopped for host maintenance",
		},
		"shut down from inside": {system("compute.instances.guestTerminate", ""), loss(events.CauseGuest), "worker 2 was shut down from inside"},
		"restarted by Google": {
			system("compute.instances.automaticRestart", ""),
			func() events.Entry { e := loss(events.CauseUnknown); e.Kind = events.KindBack; return e }(), "worker 2 was restarted by Google",
		},
		"node terminated, with a reason in Google's words": {
			strings.Replace(strings.Replace(system("tpu.nodes.terminate", `,"metadata":{"terminateReason":"SPOT_RECLAIM"}`),
				"zones/us-west4-a/instances/t1v-n-3f2a9c01-w-2", "locations/us-west4-a/nodes/llama-8b", 1),
				`"type":"gce_instance","labels":{"instance_id":"77","zone":"us-west4-a",`, `"type":"audited_resource","labels":{`, 1),
			func() events.Entry {
				e := loss(events.CauseTerminated)
				e.Subject, e.Text = node, "SPOT_RECLAIM"
				return e
			}(), "node llama-8b was terminated (SPOT_RECLAIM)",
		},
		"node terminated, with a reason that is no word": {
			strings.Replace(system("tpu.nodes.terminate", `,"metadata":{"type":3,"terminateReason":{ "code": 3, "words": ["A"]}}`),
				"zones/us-west4-a/instances/t1v-n-3f2a9c01-w-2", "locations/us-west4-a/nodes/llama-8b", 1),
			func() events.Entry {
				e := loss(events.CauseTerminated)
				e.Subject, e.Text = node, `{"code":3,"words":["A"]}`
				e.Subject.InstanceID = "77"
				return e
			}(), `node llama-8b was terminated ({"code":3,"words":["A"]})`,
		},
		"preempted, with metadata of another shape": {
			system("compute.instances.preempted", `,"metadata":["SPOT"]`), loss(events.CausePreemption), "worker 2 was preempted",
		},
		"preempted, with fields of another type": {
			system("compute.instances.preempted", `,"metadata":{"type":3,"terminateReason":null}`), loss(events.CausePreemption), "worker 2 was preempted",
		},
		"host error, with a window that is none": {
			system("compute.instances.hostError", `,"metadata":{"windowStartTime":5}`), loss(events.CauseHostError), "worker 2 lost its host: host error",
		},
		"preempted, by the address of its API": {
			strings.Replace(system("compute.instances.preempted", ""), `"projects/demo/zones`, `"https://www.googleapis.com/compute/v1/projects/demo/zones`, 1),
			loss(events.CausePreemption), "worker 2 was preempted",
		},
		"maintenance pending, in small letters": {
			system("compute.instances.upcomingMaintenance", `,"metadata":{"type":"unscheduled","canReschedule":"YES","maintenanceStatus":"pending",`+window+`}`),
			notice(events.Notice{Status: events.NoticePending, Unscheduled: true, WindowStart: start, WindowEnd: end, LatestWindowStart: start.Add(time.Second)}),
			"unscheduled maintenance of worker 2 announced for Nov 19 04:00-08:00",
		},
		"maintenance pending, said by a text alone": {
			system("compute.instances.upcomingMaintenance", `,"status":{"message":"Maintenance is scheduled for this instance."}`),
			func() events.Entry {
				e := notice(events.Notice{Status: events.NoticePending})
				e.Missing = []string{"windowStartTime", "windowEndTime"}
				return e
			}(), "maintenance of worker 2 announced, without a time",
		},
		"maintenance pending": {
			system("compute.instances.upcomingMaintenance", `,"metadata":{"type":"SCHEDULED","canReschedule":true,"maintenanceStatus":"PENDING",`+window+`}`),
			notice(events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: start, WindowEnd: end, LatestWindowStart: start.Add(time.Second)}),
			"maintenance of worker 2 announced for Nov 19 04:00-08:00",
		},
		"maintenance pending, as the documentation spells it": {
			system("compute.instances.upcomingInfraMaintenance", `,"metadata":{"maintenanceType":"UNSCHEDULED","canReschedule":"FALSE","maintenanceStatus":"PENDING",`+window+`}`),
			notice(events.Notice{Status: events.NoticePending, Unscheduled: true, WindowStart: start, WindowEnd: end, LatestWindowStart: start.Add(time.Second)}),
			"unscheduled maintenance of worker 2 announced for Nov 19 04:00-08:00",
		},
		"maintenance under way": {
			system("compute.instances.upcomingMaintenance", `,"metadata":{"type":"SCHEDULED","maintenanceStatus":"ONGOING",`+window+`}`),
			notice(events.Notice{Status: events.NoticeOngoing, WindowStart: start, WindowEnd: end, LatestWindowStart: start.Add(time.Second)}),
			"maintenance of worker 2 is under way",
		},
		"maintenance over, said by a text alone": {
			system("compute.instances.upcomingMaintenance", `,"status":{"message":"Maintenance window has completed for this instance. All maintenance notifications on the instance have been removed."}`),
			notice(events.Notice{Status: events.NoticeGone}), "worker 2 no longer has announced maintenance",
		},
		"maintenance pending without its times": {
			system("compute.instances.upcomingMaintenance", `,"metadata":{"maintenanceStatus":"PENDING"}`),
			func() events.Entry {
				e := notice(events.Notice{Status: events.NoticePending})
				e.Missing = []string{"windowStartTime", "windowEndTime"}
				return e
			}(), "maintenance of worker 2 announced, without a time",
		},
		"a deletion by a person": {
			call("google.cloud.tpu.v2.Tpu.DeleteNode", `,"authenticationInfo":{"principalEmail":"ann@example.com"}`),
			events.Entry{
				Kind: events.KindCall, ID: "i2", Time: at, Rank: events.RankAudit, Subject: node,
				Call: events.Call{Method: "DeleteNode", Version: "v2", Principal: "ann@example.com", Last: true, Operation: "operation-9"},
			},
			"DeleteNode of node llama-8b by ann@example.com is done",
		},
		"a create that failed": {
			call("google.cloud.tpu.v2alpha1.Tpu.CreateNode", `,"authenticationInfo":{"principalEmail":"ann@example.com"},"status":{"code":8,"message":"There is no more capacity in the zone"}`),
			events.Entry{
				Kind: events.KindCall, ID: "i2", Time: at, Rank: events.RankAudit, Subject: node,
				Call: events.Call{
					Method: "CreateNode", Version: "v2alpha1", Principal: "ann@example.com", Last: true, Operation: "operation-9", Code: 8,
					Message: "There is no more capacity in the zone",
				},
			},
			"CreateNode of node llama-8b by ann@example.com failed: There is no more capacity in the zone",
		},
		"a deletion that names its object in the request alone": {
			strings.Replace(call("google.cloud.tpu.v2.Tpu.DeleteNode", `,"authenticationInfo":{"principalEmail":"ann@example.com"},"request":{"name":"projects/demo/locations/us-west4-a/nodes/llama-8b"}`),
				`"resourceName":"projects/demo/locations/us-west4-a/nodes/llama-8b"`, `"resourceName":""`, 1),
			events.Entry{
				Kind: events.KindCall, ID: "i2", Time: at, Rank: events.RankAudit, Subject: node,
				Call: events.Call{Method: "DeleteNode", Version: "v2", Principal: "ann@example.com", Last: true, Operation: "operation-9"},
			},
			"DeleteNode of node llama-8b by ann@example.com is done",
		},
		"a creation that names its object in the request alone": {
			strings.Replace(call("google.cloud.tpu.v2.Tpu.CreateNode", `,"authenticationInfo":{"principalEmail":"ann@example.com"},"request":{"parent":"projects/demo/locations/us-west4-a","nodeId":"llama-8b"}`),
				`"resourceName":"projects/demo/locations/us-west4-a/nodes/llama-8b"`, `"resourceName":""`, 1),
			events.Entry{
				Kind: events.KindCall, ID: "i2", Time: at, Rank: events.RankAudit, Subject: node,
				Call: events.Call{Method: "CreateNode", Version: "v2", Principal: "ann@example.com", Last: true, Operation: "operation-9"},
			},
			"CreateNode of node llama-8b by ann@example.com is done",
		},
		"a deletion of nobody knows what": {
			strings.Replace(call("google.cloud.tpu.v2.Tpu.DeleteNode", `,"authenticationInfo":{"principalEmail":"ann@example.com"}`),
				`"resourceName":"projects/demo/locations/us-west4-a/nodes/llama-8b"`, `"resourceName":""`, 1),
			events.Entry{
				Kind: events.KindCall, ID: "i2", Time: at, Rank: events.RankAudit, Subject: events.Subject{Project: "demo"},
				Call:    events.Call{Method: "DeleteNode", Version: "v2", Principal: "ann@example.com", Last: true, Operation: "operation-9"},
				Missing: []string{"resourceName"}, Ignored: "the call DeleteNode does not name its resource",
			},
			"DeleteNode of an unnamed machine by ann@example.com is done",
		},
		"a full resource name": {
			strings.Replace(call("google.cloud.tpu.v1.Tpu.StopNode", ""), `"projects/demo/locations`, `"//tpu.googleapis.com/projects/demo/locations`, 1),
			events.Entry{
				Kind: events.KindCall, ID: "i2", Time: at, Rank: events.RankAudit, Subject: node,
				Call: events.Call{Method: "StopNode", Version: "v1", Last: true, Operation: "operation-9"},
			},
			"StopNode of node llama-8b by nobody named is done",
		},
		"a crew's exit": {
			crew(`{"schema":1,"report":"exited","zone":"us-west4-a","node":"llama-8b","hostname":"t1v-n-3f2a9c01-w-0","worker":0,"attempt":1,"exit_code":139,"step":48190,"restarts_left":5}`),
			events.Entry{
				Kind: events.KindCrew, ID: "i3", Time: at, Rank: events.RankUser, Subject: node,
				Crew: &events.CrewReport{
					Schema: 1, Report: events.ReportExited, Project: "demo", Zone: "us-west4-a", Node: "llama-8b", Hostname: "t1v-n-3f2a9c01-w-0",
					Attempt: 1, ExitCode: 139, Step: 48190, RestartsLeft: 5,
				},
			},
			"crew: training ended on worker 0 with exit code 139 at step 48,190",
		},
		"a crew in a Pod": {
			crew(`{"schema":1,"report":"finished","project":"other","zone":"us-east5/research/teams","node":"llama-8b","life":"5d1f","worker":0,"attempt":1,"step":48190}`),
			events.Entry{
				Kind: events.KindCrew, ID: "i3", Time: at, Rank: events.RankUser,
				Subject: events.Subject{Project: "demo", Zone: "us-east5/research/teams", Node: "llama-8b"},
				Crew: &events.CrewReport{
					Schema: 1, Report: events.ReportFinished, Project: "demo", Zone: "us-east5/research/teams", Node: "llama-8b", Life: "5d1f", Attempt: 1, Step: 48190,
				},
			},
			"crew: training is finished at step 48,190",
		},
		"a crew in no place": {
			crew(`{"schema":1,"report":"finished","zone":"us-east5/research","node":"llama-8b","life":"5d1f","attempt":1}`),
			events.Entry{
				Kind: events.KindCrew, ID: "i3", Time: at, Rank: events.RankUser, Subject: events.Subject{Project: "demo", Zone: "us-east5/research", Node: "llama-8b"},
				Crew:    &events.CrewReport{Schema: 1, Report: events.ReportFinished, Project: "demo", Zone: "us-east5/research", Node: "llama-8b", Life: "5d1f", Attempt: 1},
				Ignored: `only noted: the place "us-east5/research" is neither a zone nor LOCATION/CLUSTER/NAMESPACE`,
			},
			"crew: training is finished at step 0",
		},
		"a crew of the previous release in a Pod": {
			crew(`{"schema":1,"report":"finished","zone":"us-east5/research/teams","node":"llama-8b","worker":0,"attempt":1,"step":48190}`),
			events.Entry{
				Kind: events.KindCrew, ID: "i3", Time: at, Rank: events.RankUser,
				Subject: events.Subject{Project: "demo", Zone: "us-east5/research/teams", Node: "llama-8b"},
				Crew:    &events.CrewReport{Schema: 1, Report: events.ReportFinished, Project: "demo", Zone: "us-east5/research/teams", Node: "llama-8b", Attempt: 1, Step: 48190},
				Ignored: "only noted: the crew runs in a Pod of GKE, and the line does not say in which life of the Job; it does with this release's pitcrew in the image",
			},
			"crew: training is finished at step 48,190",
		},
		"a crew whose numbers are doubles": {
			crew(`{"schema":1.0,"report":"exited","zone":"us-west4-a","node":"llama-8b","worker":0.0,"workers":4e0,"attempt":1.0,"exit_code":139.0,"step":4.819e4,"checkpoint_step":48000.0,"restarts_left":5.0}`),
			events.Entry{
				Kind: events.KindCrew, ID: "i3", Time: at, Rank: events.RankUser, Subject: node,
				Crew: &events.CrewReport{
					Schema: 1, Report: events.ReportExited, Project: "demo", Zone: "us-west4-a", Node: "llama-8b", Workers: 4,
					Attempt: 1, ExitCode: 139, Step: 48190, CheckpointStep: 48000, RestartsLeft: 5,
				},
			},
			"crew: training ended on worker 0 with exit code 139 at step 48,190",
		},
		"a crew that claims another project": {
			crew(`{"schema":1,"report":"finished","project":"other","zone":"us-west4-a","node":"llama-8b","attempt":1}`),
			events.Entry{
				Kind: events.KindCrew, ID: "i3", Time: at, Rank: events.RankUser, Subject: node,
				Crew: &events.CrewReport{Schema: 1, Report: events.ReportFinished, Project: "demo", Zone: "us-west4-a", Node: "llama-8b", Attempt: 1},
			},
			"crew: training is finished at step 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := events.Read([]byte(c.entry))
			must(t, err)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if says := got.Describe(); says != c.says {
				t.Errorf("Describe() = %q, want %q", says, c.says)
			}
		})
	}
}

func TestReadIgnoresWithAReason(t *testing.T) {
	for name, c := range map[string]struct{ entry, reason string }{
		"a system event that is not read": {system("compute.instances.insert", ""), "compute.instances.insert"},
		"an instance that is no TPU worker": {
			strings.Replace(system("compute.instances.hostError", ""), "t1v-n-3f2a9c01-w-2", "database-1", 1), "database-1 is not a worker",
		},
		"a read of the API":             {call("google.cloud.tpu.v2.Tpu.GetNode", ""), "changes no slice"},
		"a call of another API":         {call("v1.compute.instances.delete", ""), "does not belong to the TPU API"},
		"a call without its object":     {strings.Replace(call("google.cloud.tpu.v2.Tpu.DeleteNode", ""), "projects/demo/locations/us-west4-a/nodes/llama-8b", "", 1), "does not name its resource"},
		"another log":                   {`{"logName":"projects/demo/logs/dns.googleapis.com%2Fqueries","timestamp":"2026-11-12T02:14:06Z"}`, "dns.googleapis.com/queries"},
		"no log entry":                  {`{"foo":1}`, "not a log entry"},
		"a bare Pub/Sub message":        {`{"data":"x","attributes":{"type_url":"y"}}`, "Pub/Sub message"},
		"a report of a newer crew":      {crew(`{"schema":1,"report":"levitating","zone":"z","node":"n"}`), "newer than this release"},
		"a crew line of a newer schema": {crew(`{"schema":2,"report":"exited"}`), "newer than this release"},
		"a notice without a status":     {system("compute.instances.upcomingMaintenance", `,"metadata":{"type":"SCHEDULED"}`), "pending, under way or over"},
		"a notice without its machine": {
			`{"protoPayload":{"methodName":"compute.instances.upcomingMaintenance","metadata":{"maintenanceStatus":"PENDING"}},"resource":{"labels":{"zone":"z"}},"logName":"projects/p/logs/cloudaudit.googleapis.com%2Fsystem_event"}`,
			"does not name the machine",
		},
		"a machine by its number alone": {
			strings.Replace(system("compute.instances.preempted", ""), "t1v-n-3f2a9c01-w-2", "77", 1), "it gives only the number of the machine, not its name",
		},
		"a notice of another shape":  {system("compute.instances.upcomingMaintenance", `,"metadata":["PENDING"]`), "pending, under way or over"},
		"a status that is not known": {system("compute.instances.upcomingMaintenance", `,"metadata":{"maintenanceStatus":"PAUSED"}`), "PAUSED"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := events.Read([]byte(c.entry))
			if err != nil || !strings.Contains(got.Ignored, c.reason) {
				t.Errorf("ignored because %q, error %v; want a reason with %q", got.Ignored, err, c.reason)
			}
		})
	}
}

func TestReadRefusesWithEveryFault(t *testing.T) {
	for name, c := range map[string]struct {
		entry  string
		faults []string
	}{
		"not JSON":         {"<html>", []string{"not JSON at byte 0"}},
		"no data":          {"", []string{"it has no data"}},
		"blank data":       {" \n", []string{"it has no data"}},
		"truncated":        {system("compute.instances.preempted", "")[:300], []string{"not JSON at byte"}},
		"an array":         {"[1]", []string{"an array, which does not fit there"}},
		"a number as name": {`{"logName":3}`, []string{"logName is a number"}},
		"two bad times": {
			system("compute.instances.upcomingMaintenance", `,"metadata":{"maintenanceStatus":"PENDING","windowStartTime":"soon","windowEndTime":"later"}`),
			[]string{`windowStartTime "soon"`, `windowEndTime "later"`},
		},
		"a window that ends first": {
			system("compute.instances.upcomingMaintenance", `,"metadata":{"maintenanceStatus":"PENDING","windowStartTime":"2026-11-19T04:00:00Z","windowEndTime":"2026-11-19T03:00:00Z"}`),
			[]string{"ends before it starts"},
		},
		"a crew line without anything":   {crew(`{"schema":1,"report":"exited"}`), []string{"zone is missing", "node is missing", "attempt 0"}},
		"a crew line of the wrong type":  {crew(`{"schema":1,"report":"exited","attempt":"x"}`), []string{"jsonPayload: attempt is a string"}},
		"a crew line of too long a life": {crew(`{"schema":1,"report":"finished","zone":"z","node":"n","attempt":1,"life":"` + strings.Repeat("5d1f", 40) + `"}`), []string{"life has 160 bytes: at most 128"}},
		"a crew line of half a step":     {crew(`{"schema":1,"report":"progress","zone":"z","node":"n","attempt":1,"step":10.5}`), []string{"jsonPayload: step is a number"}},
		"a crew line of a step too far":  {crew(`{"schema":1,"report":"progress","zone":"z","node":"n","attempt":1,"step":1e20}`), []string{"jsonPayload: step is a number"}},
		"a crew line without a payload":  {`{"logName":"projects/demo/logs/pitstop-crew"}`, []string{"without jsonPayload"}},
		"larger than the limit":          {`{"logName":"` + strings.Repeat("x", events.MaxBytes) + `"}`, []string{"are more than"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := events.Read([]byte(c.entry))
			if err == nil {
				t.Fatal("no error")
			}
			for _, f := range c.faults {
				if !strings.Contains(err.Error(), f) {
					t.Errorf("error %q does not tell %q", err, f)
				}
			}
		})
	}
}

func TestWorkerGroup(t *testing.T) {
	for host, want := range map[string]string{
		"t1v-n-9472280f-w-0":                            "t1v-n-9472280f 0",
		"t1v-n-9472280f-w-1535":                         "t1v-n-9472280f 1535",
		"t1v-n-9472280f-w-3.us-west4-a.c.demo.internal": "t1v-n-9472280f 3",
		"t1v-n-9472280f-w-":                             "", "t1v-n-9472280-w-0": "", "t1v-n-9472280G-w-0": "", "t1v-n-9472280f-x-0": "", "gke-t1v-n-9472280f-w-0": "",
		"t1v-n-9472280f-w-99999999": "", "": "",
	} {
		group, n, ok := events.WorkerGroup(host)
		got := ""
		if ok {
			got = fmt.Sprint(group, " ", n)
		}
		if got != want {
			t.Errorf("WorkerGroup(%q) = %q, want %q", host, got, want)
		}
	}
}

// TestRealEntries reads the real entries that may stand beside the project.
func TestRealEntries(t *testing.T) {
	files, err := filepath.Glob("../../shared/samples/*.json")
	if err != nil || len(files) == 0 {
		t.Skip("no real entries stand beside the project")
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		must(t, err)
		e, err := events.Read(raw)
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(f), err)
			continue
		}
		if !e.Kind.Known() || e.Describe() == "" || e.Rank == 0 || e.Subject.Project == "" {
			t.Errorf("%s: %+v", filepath.Base(f), e)
		}
	}
}

// sound checks the rules for every readable entry.
func sound(t *testing.T, raw []byte) {
	t.Helper()
	e, err := events.Read(raw)
	switch {
	case err != nil:
		if strings.Contains(err.Error(), "\x00") {
			t.Errorf("an error with control characters: %q", err)
		}
		return
	case e.Ignored != "":
		if e.Noted() == "" || e.Kind.Known() && e.Describe() == "" {
			t.Errorf("nothing to say about %+v", e)
		}
		return
	case e.Kind == "" || e.Rank == 0:
		t.Errorf("neither ignored nor classified: %+v", e)
	case e.Describe() == "":
		t.Errorf("nothing to say about %+v", e)
	}
	switch e.Kind {
	case events.KindCrew:
		if e.Crew == nil {
			t.Error("a crew report without the report")
		} else if _, _, _, inPod := e.Subject.Scope(); strings.Contains(e.Crew.Zone, "/") && !(inPod && e.Crew.Life != "") {
			t.Errorf("something follows from the line of a Pod in a life that is not known: %+v", e.Crew)
		}
	case events.KindCanary:
		if e.Subject != (events.Subject{Project: e.Subject.Project}) {
			t.Errorf("a canary of %+v", e.Subject)
		}
	case events.KindJob, events.KindCluster, events.KindLimit:
		t.Errorf("something follows from %+v", e)
	case events.KindLoss, events.KindBack, events.KindNotice, events.KindCall, events.KindLine:
		if _, _, namespace, ok := e.Subject.Scope(); ok && e.Kind == events.KindCall {
			if act, _ := e.Call.Act(); act == "" || namespace == "" || (e.Subject.Node == "") == (e.Subject.QueuedResource == "") {
				t.Errorf("something follows from a call that names no Job or does nothing to it: %+v", e)
			}
			return
		}
		if p := e.Subject.Platform(); p != events.PlatformTPU && (p != events.PlatformGKE || e.Kind != events.KindLoss || e.Subject.Worker == "") {
			t.Errorf("something follows for %s from %+v", p, e)
		}
	default:
		t.Errorf("an unknown kind from which something follows: %+v", e)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(system("compute.instances.preempted", "")))
	f.Add([]byte(system("compute.instances.upcomingMaintenance", `,"metadata":{"maintenanceStatus":"PENDING","windowStartTime":"2026-11-19T04:00:00Z","canReschedule":"TRUE"}`)))
	f.Add([]byte(call("google.cloud.tpu.v2.Tpu.DeleteNode", "")))
	f.Add([]byte(crew(`{"schema":1,"report":"notice","zone":"z","node":"n","notice":{"status":"pending"}}`)))
	f.Add([]byte(crew(`{"schema":1,"report":"saved","zone":"us-east5/research/teams","node":"n","life":"5d1f","save_id":"s"}`)))
	f.Add([]byte(crew(`{"schema":1,"report":"saved","zone":"us-east5//teams","node":"n","life":"5d1f","save_id":"s"}`)))
	for _, s := range sourceEntries(f) {
		f.Add(s.raw)
	}
	f.Fuzz(sound)
}

// TestTheGreatestAttempt holds a crew's reports and its verdict against the bound of attempts.
func TestTheGreatestAttempt(t *testing.T) {
	for attempt, want := range map[int]bool{0: false, 1: true, events.MaxAttempt: true, events.MaxAttempt + 1: false, math.MaxInt64: false} {
		for _, report := range []events.Report{events.ReportStarted, events.ReportProgress, events.ReportExited, events.ReportGaveUp, events.ReportFinished} {
			err := events.CrewReport{Schema: events.Schema, Report: report, Zone: "us-west4-a", Node: "llama-8b", Attempt: attempt}.Validate()
			if (err == nil) != want {
				t.Errorf("%s of attempt %d: %v", report, attempt, err)
			}
		}
		err := events.CrewVerdict{Schema: events.Schema, Attempt: attempt, Life: events.Admission{Slice: "llama-8b"}}.Validate()
		if (err == nil) != want {
			t.Errorf("verdict on attempt %d: %v", attempt, err)
		}
	}
}
