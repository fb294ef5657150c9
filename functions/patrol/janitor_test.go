package patrol_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
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
			if c.told != (len(left) == 1) || c.told && (left[0].Kind != "queued resource" || left[0].Name != "old-qr" || left[0].Chips != 32) {
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

// TestWhatIsLeftOverInAClusterIsTold in each sweep, kept for status until it is gone, and never touched.
func TestWhatIsLeftOverInAClusterIsTold(t *testing.T) {
	b := newClusterBench(t)
	var out bytes.Buffer
	b.Fleet.Log = slog.New(slog.NewTextHandler(&out, nil))
	b.call(http.MethodPost, "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests", `{"metadata":{"name":"old"}}`)
	b.Clock.Advance(3 * time.Hour)
	kept := func() []provider.Leftover {
		t.Helper()
		all, err := b.Ledger.Leftovers(t.Context())
		b.Must(err)
		return all
	}
	b.Want(b.tick(), fleettest.Handled)
	b.minutes(3)
	if n := strings.Count(out.String(), `msg="left over" kind=ProvisioningRequest zone=us-east5/trainers/default name=old hours=3`); n != 1 || len(kept()) != 1 {
		t.Errorf("told %d times, kept %+v:\n%s", n, kept(), out.String())
	}
	b.cluster.Inject(gketest.Fault{Verb: "list", Resource: "jobs", Code: http.StatusServiceUnavailable})
	b.Clock.Advance(15 * time.Minute)
	b.Want(b.tick(), fleettest.Rejected)
	if len(kept()) != 1 {
		t.Errorf("a cluster that cannot be read has nothing left over: %+v", kept())
	}
	b.minutes(30)
	for _, call := range b.cluster.Calls() {
		if call.Method == http.MethodDelete {
			t.Errorf("it called %+v", call)
		}
	}
	b.call(http.MethodDelete, "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests/old", "")
	b.minutes(16)
	if len(kept()) != 0 {
		t.Errorf("it is gone: %+v", kept())
	}
}
