package cloudlog_test

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/cloudlog/cloudlogtest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

const (
	project = "demo"
	zone    = "us-west4-a"
	group   = "t1v-n-0a1b2c3d"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func open(t *testing.T) (*cloudlog.Log, *cloudlogtest.Log) {
	t.Helper()
	now := start
	served := cloudlogtest.New(project, func() time.Time { now = now.Add(time.Second); return now })
	return cloudlog.New(option.WithHTTPClient(&http.Client{Transport: served.Transport()}), option.WithoutAuthentication()), served
}

// world is what happens in a project, as its audit logs tell it.
func world() [][]byte {
	var entries [][]byte
	seq, at := uint64(0), start
	add := func(e cloudtputest.Event) {
		seq++
		at = at.Add(time.Second)
		e.Seq, e.Project, e.Zone, e.Time = seq, project, zone, at
		if raw := cloudtputest.AuditEntry(e); raw != nil {
			entries = append(entries, raw)
		}
		entries = append(entries, cloudtputest.SystemEntries(e)...)
	}
	for _, node := range []string{"llama", "gemma"} {
		g := group
		if node == "gemma" {
			g = "t1v-n-ffffffff"
		}
		add(cloudtputest.Event{Kind: cloudtputest.Started, Method: "CreateNode", Node: node, Operation: "create", Principal: "ann@example.com"})
		add(cloudtputest.Event{Kind: cloudtputest.Lost, Cause: events.CausePreemption, Node: node, Group: g, Workers: 4})
		add(cloudtputest.Event{Kind: cloudtputest.Unhealthy, Cause: events.CauseHostError, Node: node, Group: g, Workers: 4})
		add(cloudtputest.Event{Kind: cloudtputest.Started, Method: "DeleteNode", Node: node, Operation: "delete", Principal: "ann@example.com"})
		add(cloudtputest.Event{Kind: cloudtputest.Ended, Method: "DeleteNode", Node: node, Operation: "delete", Principal: "ann@example.com"})
		add(cloudtputest.Event{Kind: cloudtputest.Started, Method: "DeleteQueuedResource", QueuedResource: node + "-qr", Operation: "q", Principal: "ann@example.com"})
	}
	add(cloudtputest.Event{Kind: cloudtputest.Started, Method: "StopNode", Node: "t5", Operation: "stop", Principal: "ann@example.com"})
	return entries
}

// told names what entries say, in order.
func told(t *testing.T, entries [][]byte) []string {
	t.Helper()
	var out []string
	for _, raw := range entries {
		e, err := events.Read(raw)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Describe())
	}
	return out
}

func TestTheLogTellsWhoEndedASlice(t *testing.T) {
	for name, c := range map[string]struct {
		query cloudlog.Query
		want  []string
	}{
		"a node": {cloudlog.Query{Subjects: []cloudlog.Subject{{Node: "llama"}}}, []string{
			"node llama was terminated (PREEMPTED)", "DeleteNode of node llama by ann@example.com", "DeleteNode of node llama by ann@example.com is done",
		}},
		"a node in a queued resource": {cloudlog.Query{Subjects: []cloudlog.Subject{{Node: "llama", QueuedResource: "llama-qr"}}}, []string{
			"node llama was terminated (PREEMPTED)", "DeleteNode of node llama by ann@example.com", "DeleteNode of node llama by ann@example.com is done",
			"DeleteQueuedResource of queued resource llama-qr by ann@example.com",
		}},
		"a node whose workers are known": {cloudlog.Query{Subjects: []cloudlog.Subject{{Node: "gemma", Group: "t1v-n-ffffffff"}}}, []string{
			"worker 0 was preempted", "node gemma was terminated (PREEMPTED)", "worker 1 lost its host: host error",
			"DeleteNode of node gemma by ann@example.com", "DeleteNode of node gemma by ann@example.com is done",
		}},
		"from a time on": {cloudlog.Query{Since: start.Add(5 * time.Second), Subjects: []cloudlog.Subject{{Node: "llama"}}}, []string{
			"DeleteNode of node llama by ann@example.com is done",
		}},
		"a node that its owner stopped": {cloudlog.Query{Subjects: []cloudlog.Subject{{Node: "t5"}}}, []string{"StopNode of node t5 by ann@example.com"}},
		"in another zone":               {cloudlog.Query{Zone: "us-west4-b", Subjects: []cloudlog.Subject{{Node: "llama", Group: group}}}, nil},
		"nobody":                        {cloudlog.Query{Subjects: []cloudlog.Subject{{Node: "nobody"}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			log, served := open(t)
			for _, raw := range world() {
				served.Write(raw)
			}
			q := c.query
			q.Project = project
			if q.Zone == "" {
				q.Zone = zone
			}
			entries, whole, err := log.Entries(t.Context(), q)
			if err != nil || !whole {
				t.Fatalf("whole: %v, %v", whole, err)
			}
			if d := cmp.Diff(c.want, told(t, entries)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if n := len(served.Filters()); n != 1 {
				t.Errorf("%d calls, want 1", n)
			}
		})
	}
}

// TestTheLogTellsWhoDeletedAJob: of this cluster, this namespace and this name alone.
func TestTheLogTellsWhoDeletedAJob(t *testing.T) {
	log, served := open(t)
	entry := func(cluster, method, resource string) []byte {
		return []byte(`{"logName":"projects/demo/logs/cloudaudit.googleapis.com%2Factivity","insertId":"` + cluster + resource + method + `","timestamp":"2026-03-01T12:00:01Z",
			"resource":{"type":"k8s_cluster","labels":{"project_id":"demo","location":"us-east5","cluster_name":"` + cluster + `"}},
			"protoPayload":{"serviceName":"k8s.io","methodName":"` + method + `","resourceName":"` + resource + `"}}`)
	}
	const job, set = "batch/v1/namespaces/teams/jobs/llama", "jobset.x-k8s.io/v1alpha2/namespaces/teams/jobsets/big"
	for _, raw := range [][]byte{
		entry("research", "io.k8s.batch.v1.jobs.delete", job), entry("research", "io.x-k8s.jobset.v1alpha2.jobsets.delete", set),
		entry("other", "io.k8s.batch.v1.jobs.delete", job), entry("research", "io.k8s.batch.v1.jobs.get", job),
		entry("research", "io.k8s.batch.v1.jobs.delete", "batch/v1/namespaces/other/jobs/llama"),
	} {
		served.Write(raw)
	}
	entries, whole, err := log.Entries(t.Context(), cloudlog.Query{
		Project: project, Zone: "us-east5/research", Since: start, Subjects: []cloudlog.Subject{{Node: "llama", QueuedResource: "big", Namespace: "teams"}},
	})
	if err != nil || !whole || len(entries) != 2 || !strings.Contains(string(entries[0])+string(entries[1]), set) {
		t.Errorf("%d entries, whole %t, %v", len(entries), whole, err)
	}
}

// TestWhatIsTooMuchIsTheNewest: one call is all that is made.
func TestWhatIsTooMuchIsTheNewest(t *testing.T) {
	log, served := open(t)
	raw := world()[1]
	for i := range 1200 {
		at := start.Add(time.Duration(i) * time.Second).Format(time.RFC3339Nano)
		served.Write(bytes.Replace(raw, []byte(start.Add(2*time.Second).Format(time.RFC3339Nano)), []byte(at), 1))
	}
	entries, whole, err := log.Entries(t.Context(), cloudlog.Query{Project: project, Zone: zone, Subjects: []cloudlog.Subject{{Node: "llama", Group: group}}})
	if err != nil || whole || len(entries) != 1000 || len(served.Filters()) != 1 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i, want := range map[int]int{0: 200, 999: 1199} {
		e, err := events.Read(entries[i])
		if err != nil || !e.Time.Equal(start.Add(time.Duration(want)*time.Second)) {
			t.Errorf("entry %d is of %s, %v; want that of second %d", i, e.Time, err, want)
		}
	}
}

// TestAPageThatEndsEarlyIsNotTheWhole: the log answers in its time, with the entries found by then.
func TestAPageThatEndsEarlyIsNotTheWhole(t *testing.T) {
	log, served := open(t)
	for _, raw := range world() {
		served.Write(raw)
	}
	served.Fail(cloudlogtest.Fault{After: 1})
	q := cloudlog.Query{Project: project, Zone: zone, Subjects: []cloudlog.Subject{{Node: "llama"}}}
	entries, whole, err := log.Entries(t.Context(), q)
	if err != nil || whole {
		t.Errorf("whole: %v, %v", whole, err)
	}
	if d := cmp.Diff([]string{"DeleteNode of node llama by ann@example.com is done"}, told(t, entries)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if entries, whole, err = log.Entries(t.Context(), q); err != nil || !whole || len(entries) != 3 {
		t.Errorf("then %d entries, whole: %v, %v", len(entries), whole, err)
	}
}

func TestALogThatCannotBeAskedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		fault cloudlogtest.Fault
		query cloudlog.Query
		want  string
	}{
		"not permitted": {
			cloudlogtest.Fault{Code: 403, Status: "PERMISSION_DENIED", Message: "Permission 'logging.logEntries.list'\ndenied"},
			cloudlog.Query{Project: project},
			"read audit log of demo: HTTP status 403: Permission 'logging.logEntries.list' denied",
		},
		"not searched to its end": {cloudlogtest.Fault{}, cloudlog.Query{Project: project}, "read audit log of demo: it was not searched to its end"},
		"of another project":      {cloudlogtest.Fault{Times: -1}, cloudlog.Query{Project: "other"}, "read audit log of other: HTTP status 403: The caller does not have permission"},
	} {
		t.Run(name, func(t *testing.T) {
			log, served := open(t)
			if c.fault.Times == 0 {
				served.Fail(c.fault)
			}
			c.query.Subjects = []cloudlog.Subject{{Node: "llama"}}
			entries, whole, err := log.Entries(t.Context(), c.query)
			if err == nil || err.Error() != c.want || entries != nil || whole {
				t.Errorf("%d entries, %v; want %s", len(entries), err, c.want)
			}
		})
	}
}

func TestAFilterIsNoLongerThanTheLogTakes(t *testing.T) {
	long := strings.Repeat("n", 63)
	q := cloudlog.Query{Project: project, Zone: "northamerica-northeast1-a", Since: start}
	for i := range cloudlog.MaxSubjects {
		q.Subjects = append(q.Subjects, cloudlog.Subject{Node: long + strconv.Itoa(i), QueuedResource: long, Group: group})
	}
	log, _ := open(t)
	if _, _, err := log.Entries(t.Context(), q); err != nil || len(q.Filter()) > events.MaxFilter {
		t.Errorf("%d characters: %v", len(q.Filter()), err)
	}
}
