package patrol_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke/gketest"
)

// TestNothingOfOthersIsCleanedUp: a queued resource that holds quota and brings no slice is reported once in each sweep, and
// never touched.
func TestNothingOfOthersIsCleanedUp(t *testing.T) {
	for name, c := range map[string]struct {
		state string
		age   time.Duration
		told  bool
	}{
		"it is SUSPENDED":           {"SUSPENDED", 3 * time.Hour, true},
		"it has FAILED":             {"FAILED", 3 * time.Hour, true},
		"it was suspended just now": {"SUSPENDED", time.Hour, false},
		"it waits":                  {"WAITING_FOR_RESOURCES", 3 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			q := cloudtputest.QueuedConfig{Zone: zone, Name: "old-qr", State: c.state}
			for _, node := range []string{"old-0", "old-1"} {
				q.Nodes = append(q.Nodes, cloudtputest.NodeConfig{
					Zone: zone, Name: node, Accelerator: "v5litepod-16", Created: b.Clock.Now().Add(-c.age), Labels: map[string]string{events.LabelPolicy: "spot"},
				})
			}
			b.API.SetCapacity(zone, 0)
			b.Must(b.API.AddQueuedResource(q))
			var out bytes.Buffer
			b.Fleet.Log = slog.New(slog.NewTextHandler(&out, nil))
			b.Want(b.tick(), fleettest.Handled)
			b.minutes(3)
			const line = `msg="queued resource forgotten" workload=demo/old-qr zone=us-west4-a queued_resource=old-qr`
			if n := strings.Count(out.String(), line); (n == 1) != c.told || n > 1 {
				t.Errorf("told %d times, want %v:\n%s", n, c.told, out.String())
			}
			if c.told && !strings.Contains(out.String(), "hours=3 chips=32") {
				t.Errorf("the quota that it holds is not reported:\n%s", out.String())
			}
			left, err := b.Ledger.Leftovers(t.Context())
			b.Must(err)
			if c.told != (len(left) == 1) || c.told && (left[0].Kind != "queued resource" || left[0].Name != "old-qr" || left[0].Chips != 32 || !left[0].Since.Equal(left[0].Seen)) {
				t.Errorf("kept for status: %+v", left)
			}
			for _, call := range b.Calls() {
				if strings.HasPrefix(call, "Delete") {
					t.Errorf("it called %s", call)
				}
			}
			if sent := fleettest.Types(b.Sender.Sent()); len(sent) > 0 {
				t.Errorf("it sent %v", sent)
			}
		})
	}
}

// TestWhatIsLeftOverInAClusterIsTold once sweeps have found it for 2 hours, kept for status until it is gone, and never touched. Where it
// cannot be read, patrol says so once, and how to mend that.
func TestWhatIsLeftOverInAClusterIsTold(t *testing.T) {
	const workloads = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
	b := newClusterBench(t)
	var out bytes.Buffer
	b.Fleet.Log = slog.New(slog.NewTextHandler(&out, nil))
	b.call(http.MethodPost, workloads, `{"metadata":{"name":"old"},"spec":{"active":false,"podSets":[{"name":"main","count":2,"template":`+
		`{"spec":{"containers":[{"name":"a","resources":{"requests":{"google.com/tpu":"4"}}}]}}}]}}`)
	b.Clock.Advance(3 * time.Hour)
	kept := func() []provider.Leftover {
		t.Helper()
		all, err := b.Ledger.Leftovers(t.Context())
		b.Must(err)
		return all
	}
	told := func() int {
		return strings.Count(out.String(), `msg="left over" kind=Workload zone=us-east5/trainers/default name=old hours=2 chips=8`)
	}
	b.Want(b.tick(), fleettest.Handled)
	b.minutes(118)
	if told() != 0 || len(kept()) != 1 {
		t.Errorf("told %d times before 2 hours, kept %+v:\n%s", told(), kept(), out.String())
	}
	b.minutes(15)
	if told() != 1 {
		t.Errorf("told %d times:\n%s", told(), out.String())
	}
	b.cluster.Inject(gketest.Fault{Verb: "list", Resource: "workloads", Times: 2, Code: http.StatusForbidden})
	before := kept()[0]
	b.minutes(30)
	if now := kept(); len(now) != 1 || now[0] != before || told() != 1 {
		t.Errorf("it could not be read: kept %+v, before %+v", now, before)
	}
	const warned = `msg="it cannot be read what is left over; what was found there before counts on" cluster=us-east5/trainers`
	if n := strings.Count(out.String(), warned); n != 1 || strings.Count(out.String(), `way_out="apply again what pitstop gke rbac prints"`) != 1 {
		t.Errorf("told %d times that it cannot be read:\n%s", n, out.String())
	}
	b.minutes(15)
	if now := kept(); len(now) != 1 || !now[0].Since.Equal(before.Since) || !now[0].Seen.After(before.Seen) || told() != 2 {
		t.Errorf("it can be read again: kept %+v, before %+v", now, before)
	}
	for _, call := range b.cluster.Calls() {
		if call.Method == http.MethodDelete {
			t.Errorf("it called %+v", call)
		}
	}
	b.call(http.MethodDelete, workloads+"/old", "")
	b.minutes(16)
	if len(kept()) != 0 {
		t.Errorf("it is gone: %+v", kept())
	}
}

// TestARequestThatNothingUsesIsTold once sweeps have found it for 2 hours. Where its PodTemplate cannot be read, what else is left over in
// its namespace is found all the same.
func TestARequestThatNothingUsesIsTold(t *testing.T) {
	const (
		template = `{"spec":{"containers":[{"name":"a","resources":{"requests":{"google.com/tpu":"4"}}}]}}`
		in       = "/namespaces/default/"
	)
	b := newClusterBench(t)
	var out bytes.Buffer
	b.Fleet.Log = slog.New(slog.NewTextHandler(&out, nil))
	b.call(http.MethodPost, "/apis/kueue.x-k8s.io/v1beta2"+in+"workloads", `{"metadata":{"name":"old"},"spec":{"active":false,"podSets":[{"count":2,"template":`+template+`}]}}`)
	b.call(http.MethodPost, "/api/v1"+in+"podtemplates", `{"metadata":{"name":"mine"},"template":`+template+`}`)
	b.call(http.MethodPost, "/apis/autoscaling.x-k8s.io/v1"+in+"provisioningrequests", `{"metadata":{"name":"mine"},"spec":{"podSets":[{"count":2,"podTemplateRef":{"name":"mine"}}]}}`)
	left := func(step string, want ...string) {
		t.Helper()
		all, err := b.Ledger.Leftovers(t.Context())
		b.Must(err)
		var got []string
		for _, l := range all {
			got = append(got, l.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	withdraw := b.cluster.Inject(gketest.Fault{Verb: "list", Resource: "podtemplates", Times: -1, Code: http.StatusForbidden})
	b.Want(b.tick(), fleettest.Handled)
	b.minutes(16)
	left("it cannot be told", "old")
	withdraw()
	b.minutes(15)
	left("it can be told", "old", "mine")
	b.cluster.Inject(gketest.Fault{Verb: "list", Resource: "podtemplates", Times: 1, Code: http.StatusForbidden})
	b.minutes(15)
	left("once more it cannot", "old", "mine")
	b.minutes(120)
	left("it can", "old", "mine")
	for line, want := range map[string]int{
		`msg="left over" kind=ProvisioningRequest zone=us-east5/trainers/default name=mine hours=2 chips=8`:          2,
		`msg="it cannot be read what is left over; what was found there before counts on" cluster=us-east5/trainers`: 2,
		`way_out="apply again what pitstop gke rbac prints"`:                                                         2,
	} {
		if n := strings.Count(out.String(), line); n != want {
			t.Errorf("%d times, want %d: %s\n%s", n, want, line, out.String())
		}
	}
}

// TestAPartialListingHidesNothingLeftOver that a whole one found before.
func TestAPartialListingHidesNothingLeftOver(t *testing.T) {
	b := newBench(t)
	b.API.SetCapacity(zone, 0)
	b.Must(b.API.AddQueuedResource(cloudtputest.QueuedConfig{Zone: zone, Name: "old-qr", State: "SUSPENDED", Nodes: []cloudtputest.NodeConfig{{
		Zone: zone, Name: "old-0", Accelerator: "v5litepod-16", Created: b.Clock.Now().Add(-3 * time.Hour), Labels: map[string]string{events.LabelPolicy: "spot"},
	}}}))
	b.Want(b.tick(), fleettest.Handled)
	all, err := b.Ledger.Leftovers(t.Context())
	b.Must(err)
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	b.API.Inject(cloudtputest.Fault{Method: "ListNodes", Unreachable: true, Times: -1})
	b.minutes(16)
	now, err := b.Ledger.Leftovers(t.Context())
	b.Must(err)
	if len(now) != 1 || now[0] != all[0] {
		t.Errorf("kept %+v, before %+v", now, all)
	}
}

// TestWhatIsDueWaitsForNothingLeftOver: patrol lists that last.
func TestWhatIsDueWaitsForNothingLeftOver(t *testing.T) {
	b := newClusterBench(t)
	b.job("")
	b.minutes(15)
	if b.workload().Slices[0].Condition != evidence.Ready {
		t.Fatalf("%+v", b.workload().Slices)
	}
	asked, known := 0, 0
	calls := b.http.Transport
	b.http.Transport = seen{calls, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/workloads") {
			asked++
			if b.workload().Slices[0].Condition != evidence.Ready {
				known++
			}
		}
	}}
	b.call(http.MethodDelete, jobs+"/llama", "")
	b.minutes(1) // it sweeps
	if asked != 1 || known != 1 {
		t.Errorf("asked %d times, and %d times the ledger knew by then that the Job is gone", asked, known)
	}
}

// seen shows each call before it is made.
type seen struct {
	http.RoundTripper
	see func(*http.Request)
}

func (s seen) RoundTrip(r *http.Request) (*http.Response, error) {
	s.see(r)
	return s.RoundTripper.RoundTrip(r)
}
