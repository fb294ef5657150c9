package cloudtputest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/cloudtpu/internal/discovery"
)

const (
	home   = "us-west4-a"
	parent = "projects/demo/locations/" + home
	ada    = "ada@example.com"
)

// bench is an API, its clock, its events and a client.
type bench struct {
	*cloudtputest.API
	clock *cloudtputest.ManualClock
	told  *[]cloudtputest.Event
	l     *api.ProjectsLocationsService
}

func newBench(t *testing.T, c cloudtputest.Config) bench {
	t.Helper()
	b := bench{clock: cloudtputest.NewManualClock(start), told: new([]cloudtputest.Event)}
	c.Clock = b.clock
	if c.Zones == nil {
		c.Zones = map[string]int{home: cloudtputest.Unlimited}
	}
	b.API = cloudtputest.New(c)
	b.Observe(func(e cloudtputest.Event) { *b.told = append(*b.told, e) })
	b.l = client(t, b.Transport())
	return b
}

func client(t *testing.T, rt http.RoundTripper) *api.ProjectsLocationsService {
	t.Helper()
	s, err := api.NewService(t.Context(), option.WithHTTPClient(&http.Client{Transport: rt}))
	must(t, err)
	return s.Projects.Locations
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused fails the test unless a call was refused with that HTTP status and a message that holds text.
func refused(t *testing.T, err error, status int, text string) {
	t.Helper()
	var e *googleapi.Error
	if !errors.As(err, &e) || e.Code != status || !strings.Contains(e.Message, text) {
		t.Errorf("error %v, want %d with %q", err, status, text)
	}
}

// story tells what happened, one line each, without the calls.
func (b bench) story() []string {
	var lines []string
	for _, e := range *b.told {
		if e.Kind == cloudtputest.Called {
			continue
		}
		line := fmt.Sprintf("%s %s %s%s", e.Time.Sub(start), e.Kind, e.QueuedResource, strings.TrimSuffix("/"+e.Node, "/"))
		for _, word := range []string{e.State, e.Health, string(e.Cause), e.Method, e.Principal, e.Key, e.Error} {
			if word != "" {
				line += " " + word
			}
		}
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	*b.told = nil
	return lines
}

func (b bench) tells(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, b.story()); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
}

func uuid(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

func v5e() *api.Node { return &api.Node{AcceleratorType: "v5litepod-16", RuntimeVersion: "r"} }

func small() *api.Node { return &api.Node{AcceleratorType: "v5litepod-8", RuntimeVersion: "r"} }

// TestEveryAnswerFitsTheDescription calls every method and holds every call and answer against the API's own document.
func TestEveryAnswerFitsTheDescription(t *testing.T) {
	d, err := discovery.Load()
	must(t, err)
	b := newBench(t, cloudtputest.Config{PageSize: 1})
	var mu sync.Mutex
	called := map[string]bool{}
	l := client(t, d.Transport(b.Transport(), func(err error) { t.Error(err) }, func(id string) {
		mu.Lock()
		defer mu.Unlock()
		called[id] = true
	}))
	do := func(_ any, err error) {
		t.Helper()
		must(t, err)
	}
	fails := func(_ any, err error) {
		t.Helper()
		if err == nil {
			t.Error("it was not refused")
		}
	}
	lists := func() {
		t.Helper()
		for _, zone := range []string{parent, "projects/demo/locations/-"} {
			must(t, l.Nodes.List(zone).Pages(t.Context(), func(*api.ListNodesResponse) error { return nil }))
			must(t, l.QueuedResources.List(zone).Pages(t.Context(), func(*api.ListQueuedResourcesResponse) error { return nil }))
			must(t, l.Operations.List(zone).Pages(t.Context(), func(*api.ListOperationsResponse) error { return nil }))
		}
	}
	do(l.List("projects/demo").Do())
	do(l.Get(parent).Do())
	do(l.GenerateServiceIdentity(parent, &api.GenerateServiceIdentityRequest{}).Do())
	must(t, l.AcceleratorTypes.List(parent).Pages(t.Context(), func(*api.ListAcceleratorTypesResponse) error { return nil }))
	do(l.AcceleratorTypes.Get(parent + "/acceleratorTypes/v4-8").Do())
	must(t, l.RuntimeVersions.List(parent).Pages(t.Context(), func(*api.ListRuntimeVersionsResponse) error { return nil }))
	do(l.RuntimeVersions.Get(parent + "/runtimeVersions/tpu-ubuntu2204-base").Do())
	do(l.Reservations.List(parent).Do())
	lists()

	rich := small()
	rich.NetworkConfig = &api.NetworkConfig{EnableExternalIps: true, QueueCount: 3}
	rich.Labels, rich.Metadata = map[string]string{"a": "b"}, map[string]string{"k": "v"}
	rich.BootDiskConfig = &api.BootDiskConfig{DiskSizeGb: 7}
	rich.SchedulingConfig = &api.SchedulingConfig{Spot: true, ProvisioningModel: "SPOT"}
	op, err := l.Nodes.Create(parent, rich).NodeId("n").RequestId(uuid(1)).Do()
	must(t, err)
	lists()
	b.clock.Advance(time.Hour)
	do(l.Operations.Get(op.Name).Do())
	node := parent + "/nodes/n"
	must(t, b.AddSymptom(home, "n", "OUT_OF_MEMORY", 0))
	must(t, b.Announce(home, "n", events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: start, WindowEnd: start}))
	do(l.Nodes.Get(node).Do())
	do(l.Nodes.GetGuestAttributes(node, &api.GetGuestAttributesRequest{QueryPath: "hostkeys/", WorkerIds: []string{"0"}}).Do())
	do(l.Nodes.PerformMaintenance(node, &api.PerformMaintenanceRequest{}).Do())
	do(l.Nodes.Get(node).Do())
	b.clock.Advance(time.Hour)
	do(l.Nodes.SimulateMaintenanceEvent(node, &api.SimulateMaintenanceEventRequest{WorkerIds: []string{"0"}}).Do())
	b.clock.Advance(time.Hour)
	do(l.Nodes.Patch(node, &api.Node{
		Description: "d", Tags: []string{"t"}, Labels: map[string]string{"c": "d"}, Metadata: map[string]string{"k": "w"},
		NetworkConfig: &api.NetworkConfig{EnableExternalIps: false},
	}).UpdateMask("description,tags,labels,metadata,network_config.enable_external_ips").Do())
	do(l.Nodes.Stop(node, &api.StopNodeRequest{}).Do())
	b.clock.Advance(time.Hour)
	do(l.Nodes.Start(node, &api.StartNodeRequest{}).Do())
	b.clock.Advance(time.Hour)
	must(t, b.HostError(home, "n", -1))
	lists()
	must(t, b.Preempt(home, "n"))
	lists()

	queued := func() *api.QueuedResource {
		return &api.QueuedResource{
			Spot: &api.Spot{}, QueueingPolicy: &api.QueueingPolicy{ValidUntilDuration: "3600s"},
			Tpu: &api.Tpu{NodeSpec: []*api.NodeSpec{{Parent: parent, Node: v5e(), MultiNodeParams: &api.MultiNodeParams{NodeCount: 2}}}},
		}
	}
	queue := parent + "/queuedResources/q"
	do(l.QueuedResources.Create(parent, queued()).QueuedResourceId("q").RequestId(uuid(2)).Do())
	for range 8 {
		b.clock.Advance(45 * time.Second)
		do(l.QueuedResources.Get(queue).Do())
		lists()
	}
	must(t, b.Announce(home, "q-0", events.Notice{Status: events.NoticePending, CanReschedule: true, Unscheduled: true, WindowStart: start}))
	do(l.QueuedResources.GetMaintenanceInfo(queue).Do())
	do(l.QueuedResources.PerformMaintenanceQueuedResource(queue, &api.PerformMaintenanceQueuedResourceRequest{NodeNames: []string{"q-0"}}).Do())
	do(l.QueuedResources.GetMaintenanceInfo(queue).Do())
	do(l.QueuedResources.Reset(queue, &api.ResetQueuedResourceRequest{}).Do())
	b.clock.Advance(time.Hour)
	must(t, b.Preempt(home, "q-1"))
	do(l.QueuedResources.Get(queue).Do())
	b.clock.Advance(time.Hour)
	do(l.QueuedResources.Get(queue).Do())
	do(l.QueuedResources.Delete(queue).Force(true).RequestId(uuid(3)).Do())
	do(l.QueuedResources.Get(queue).Do())
	must(t, b.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "f", State: "FAILED", Code: 8, Message: "GCE_STOCKOUT", Nodes: []cloudtputest.NodeConfig{{Name: "x"}}}))
	lists()
	b.clock.Advance(time.Hour)

	b.Inject(cloudtputest.Fault{Method: "DeleteNode", LateCode: 13, LateMessage: "oops"})
	op, err = l.Nodes.Delete(node).RequestId(uuid(4)).Do()
	must(t, err)
	b.clock.Advance(2 * time.Minute)
	lists()
	fails(l.Operations.Cancel(op.Name).Do())
	do(l.Operations.Delete(op.Name).Do())
	do(l.Nodes.Delete(node).RequestId(uuid(5)).Do())
	b.clock.Advance(2 * time.Minute)
	fails(l.Nodes.Get(node).Do())
	for _, method := range []string{"ListNodes", "ListQueuedResources", "ListOperations"} {
		b.Inject(cloudtputest.Fault{Method: method, Unreachable: true})
	}
	do(l.Nodes.List(parent).Do())
	do(l.QueuedResources.List(parent).Do())
	do(l.Operations.List(parent).Do())

	for _, id := range d.Methods() {
		if !called[id] {
			t.Errorf("%s was never called", id)
		}
	}
}

func TestLifeOfANode(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	_, err := b.l.Nodes.Create(parent, v5e()).NodeId("n").Do()
	must(t, err)
	b.clock.Advance(time.Hour)
	const me = "pitstop@demo.iam.gserviceaccount.com"
	b.tells(t,
		"0s node_created /n CREATING",
		"0s operation_started /n CreateNode "+me,
		"5m0s node_ready /n READY HEALTHY",
		"5m0s operation_ended /n CreateNode "+me,
	)
	must(t, b.Announce(home, "n", events.Notice{Status: events.NoticePending}))
	must(t, b.Announce(home, "n", events.Notice{Status: events.NoticePending}))
	must(t, b.Withdraw(home, "n"))
	must(t, b.BeginMaintenance(home, "n", time.Minute))
	b.clock.Advance(time.Hour)
	must(t, b.HostError(home, "n", time.Minute))
	b.clock.Advance(time.Hour)
	b.tells(t,
		"1h0m0s notice_changed /n READY HEALTHY",
		"1h0m0s notice_changed /n READY HEALTHY",
		"1h0m0s notice_changed /n READY HEALTHY",
		"1h0m0s node_unhealthy /n READY UNHEALTHY_MAINTENANCE maintenance",
		"1h1m0s notice_changed /n READY UNHEALTHY_MAINTENANCE",
		"1h1m0s node_ready /n READY HEALTHY",
		"2h0m0s node_unhealthy /n REPAIRING TIMEOUT host_error",
		"2h1m0s node_ready /n READY HEALTHY",
	)
	if n := b.Node(home, "n"); !strings.HasPrefix(n.HealthDescription, "The TPU had a maintenance event at 2026-03-01T13:00:00Z") {
		t.Errorf("a healthy node has lost the word of its maintenance: %q", n.HealthDescription)
	}
	must(t, b.SetMetadata(home, "n", "a", "1", ada))
	must(t, b.SetMetadata(home, "n", "a", "2", ada))
	_, err = b.l.Nodes.Patch(parent+"/nodes/n", &api.Node{Metadata: map[string]string{"b": "3"}}).UpdateMask("metadata").Do()
	must(t, err)
	for _, e := range *b.told {
		if e.Kind == cloudtputest.Metadata && e.Removed != (e.Key == "a" && e.Value == "") {
			t.Errorf("%+v", e)
		}
	}
	b.tells(t,
		"3h0m0s operation_started /n UpdateNode "+ada,
		"3h0m0s metadata_changed /n READY HEALTHY a",
		"3h0m0s operation_ended /n UpdateNode "+ada,
		"3h0m0s operation_started /n UpdateNode "+ada,
		"3h0m0s metadata_changed /n READY HEALTHY a",
		"3h0m0s operation_ended /n UpdateNode "+ada,
		"3h0m0s operation_started /n UpdateNode "+me,
		"3h0m0s metadata_changed /n READY HEALTHY a",
		"3h0m0s metadata_changed /n READY HEALTHY b",
		"3h0m0s operation_ended /n UpdateNode "+me,
	)
	must(t, b.Preempt(home, "n"))
	must(t, b.OwnerDelete(home, "n", ada))
	b.clock.Advance(time.Hour)
	b.tells(t,
		"3h0m0s node_lost /n PREEMPTED preemption",
		"3h0m0s node_deleting /n DELETING",
		"3h0m0s operation_started /n DeleteNode "+ada,
		"3h1m50s node_gone /n DELETING",
		"3h1m50s operation_ended /n DeleteNode "+ada,
	)
	if b.Node(home, "n") != nil || b.Incarnation(home, "n").Known() || b.Hosts(home, "n") != nil || b.Running() != 0 {
		t.Error("something of it is left")
	}
}

// TestLaterWordVoidsEarlier checks that a planned change does not happen if something else happens first.
func TestLaterWordVoidsEarlier(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	for _, name := range []string{"maintained", "broken", "created", "vanished"} {
		_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: name})
		must(t, err)
	}
	must(t, b.BeginMaintenance(home, "maintained", time.Hour))
	must(t, b.HostError(home, "broken", time.Hour))
	b.clock.Advance(time.Minute)
	must(t, b.Preempt(home, "maintained"))
	must(t, b.Terminate(home, "broken"))
	must(t, b.Vanish(home, "vanished"))
	must(t, b.OwnerDelete(home, "created", ada))
	must(t, b.OwnerCreate(cloudtputest.NodeConfig{Zone: home, Name: "vanished"}, ada))
	b.clock.Advance(time.Minute)
	must(t, b.OwnerDelete(home, "vanished", ada))
	b.clock.Advance(2 * time.Hour)
	got := map[string]string{}
	for _, n := range b.Nodes("-") {
		got[n.Name[strings.LastIndexByte(n.Name, '/')+1:]] = n.State
	}
	if diff := cmp.Diff(map[string]string{"maintained": "PREEMPTED", "broken": "TERMINATED"}, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	var failed []string
	for _, e := range *b.told {
		if e.Kind == cloudtputest.Ended && e.Code != 0 {
			failed = append(failed, e.Method+" "+e.Node+" "+e.Error)
		}
	}
	if diff := cmp.Diff([]string{"CreateNode vanished The operation was cancelled: node vanished was deleted."}, failed); diff != "" {
		t.Errorf("failed operations (-want +got):\n%s", diff)
	}
	if err := b.Preempt(home, "nobody"); err == nil {
		t.Error("a missing node was preempted")
	}
}

func TestStopAndStart(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "big"})
	must(t, err)
	_, err = b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "one", Accelerator: "v6e-8"})
	must(t, err)
	if err := b.Stop(home, "big", ada); err == nil || !strings.Contains(err.Error(), "single TPU nodes") {
		t.Error(err)
	}
	if err := b.Start(home, "one", ada); err == nil {
		t.Error("what runs was started")
	}
	b.story()
	must(t, b.Stop(home, "one", ada))
	if err := b.SetMetadata(home, "one", "a", "b", ada); err == nil || !strings.Contains(err.Error(), "unable to queue the operation") {
		t.Error(err)
	}
	b.clock.Advance(time.Hour)
	must(t, b.Start(home, "one", ada))
	b.clock.Advance(time.Hour)
	b.tells(t,
		"0s node_stopped /one STOPPING HEALTHY",
		"0s operation_started /one StopNode "+ada,
		"1m0s node_stopped /one STOPPED",
		"1m0s operation_ended /one StopNode "+ada,
		"1h0m0s node_unhealthy /one STARTING",
		"1h0m0s operation_started /one StartNode "+ada,
		"1h3m0s node_ready /one READY HEALTHY",
		"1h3m0s operation_ended /one StartNode "+ada,
	)
	must(t, b.SetState(home, "one", "HIDDEN"))
	must(t, b.SetState(home, "one", "READY"))
	must(t, b.SetHealth(home, "one", "UNHEALTHY_TENSORFLOW"))
	b.tells(t,
		"2h0m0s node_unhealthy /one HIDDEN HEALTHY", "2h0m0s node_ready /one READY HEALTHY",
		"2h0m0s node_unhealthy /one READY UNHEALTHY_TENSORFLOW",
	)
}

// TestQueue holds that those who wait are served in turn, and that a loss ends the whole of a queued resource.
func TestQueue(t *testing.T) {
	b := newBench(t, cloudtputest.Config{Zones: map[string]int{home: 1}})
	order := func(n int64) *api.QueuedResource {
		spec := &api.NodeSpec{Parent: parent, Node: v5e(), MultiNodeParams: &api.MultiNodeParams{NodeCount: n, NodeIdPrefix: fmt.Sprintf("n%d", n)}}
		if n == 1 {
			spec.MultiNodeParams, spec.NodeId = nil, "n1"
		}
		return &api.QueuedResource{Tpu: &api.Tpu{NodeSpec: []*api.NodeSpec{spec}}}
	}
	for i, n := range []int64{2, 1} {
		_, err := b.l.QueuedResources.Create(parent, order(n)).QueuedResourceId(fmt.Sprintf("q%d", n)).RequestId(uuid(i)).Do()
		must(t, err)
	}
	b.clock.Advance(time.Hour)
	state := func(name string) string {
		t.Helper()
		if q := b.QueuedResource(home, name); q != nil {
			return q.State.State + " " + q.State.StateInitiator
		}
		return "gone"
	}
	if got := state("q2") + ", " + state("q1"); got != "WAITING_FOR_RESOURCES SERVICE, WAITING_FOR_RESOURCES SERVICE" {
		t.Errorf("one slice of capacity: %s", got)
	}
	b.SetCapacity(home, 2)
	b.clock.Advance(time.Hour)
	if got := state("q2") + ", " + state("q1"); got != "ACTIVE SERVICE, WAITING_FOR_RESOURCES SERVICE" {
		t.Errorf("two slices of capacity: %s", got)
	}
	if n := b.Node(home, "n2-1"); n == nil || !n.MultisliceNode || !strings.HasSuffix(n.QueuedResource, "/queuedResources/q2") {
		t.Errorf("%+v", n)
	}
	b.story()
	must(t, b.Preempt(home, "n2-1"))
	b.clock.Advance(2 * time.Minute)
	b.tells(t,
		"2h0m0s node_lost q2/n2-1 PREEMPTED preemption",
		"2h0m0s queued_resource_changed q2 SUSPENDING",
		"2h0m0s node_deleting q2/n2-0 DELETING HEALTHY",
		"2h0m0s queued_resource_changed q1 PROVISIONING", // a lost node holds no capacity
		"2h0m0s node_created q1/n1 CREATING",
		"2h2m0s queued_resource_changed q2 SUSPENDED",
		"2h2m0s node_gone q2/n2-0 DELETING HEALTHY",
		"2h2m0s node_gone q2/n2-1 PREEMPTED",
	)
	refuse := func(name string, force bool, want string) {
		t.Helper()
		_, err := b.l.QueuedResources.Delete(parent + "/queuedResources/" + name).Force(force).Do()
		refused(t, err, 400, "DeleteQueuedResource is not supported when state is "+want)
	}
	refuse("q1", true, "PROVISIONING")
	b.clock.Advance(time.Hour)
	refuse("q1", false, "ACTIVE")
	_, err := b.l.QueuedResources.Create(parent, order(3)).QueuedResourceId("q2").Do()
	refused(t, err, 409, "already exists")
	must(t, b.OwnerDeleteQueuedResource(home, "q1", ada))
	refuse("q1", true, "DELETING")
	must(t, b.OwnerDeleteQueuedResource(home, "q2", ada))
	b.clock.Advance(time.Hour)
	if got := state("q2") + ", " + state("q1"); got != "gone, gone" || len(b.Nodes(home)) != 0 {
		t.Errorf("in the end: %s, %v", got, b.Nodes(home))
	}
}

// TestQuotaIsHeldUntilTheDeletion: by a lost node, and by a queued resource that is suspended or has failed.
func TestQuotaIsHeldUntilTheDeletion(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	must(t, b.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q", Nodes: []cloudtputest.NodeConfig{{Name: "in-q"}}}))
	create := func(name string) error {
		_, err := b.l.Nodes.Create(parent, v5e()).NodeId(name).Do()
		b.clock.Advance(time.Hour)
		return err
	}
	const exhausted = "Quota 'TPUV5sPreemptibleLitepodPerProjectPerZoneForTPUAPI' exhausted. Limit 32 in zone " + home
	b.SetQuota(home, 32)
	must(t, create("one"))
	refused(t, create("two"), http.StatusTooManyRequests, exhausted)
	must(t, b.Preempt(home, "one"))
	refused(t, create("two"), http.StatusTooManyRequests, exhausted)
	must(t, b.OwnerDelete(home, "one", ada))
	b.clock.Advance(time.Hour)
	must(t, create("two"))
	must(t, b.Preempt(home, "in-q"))
	b.clock.Advance(time.Hour)
	if q := b.QueuedResource(home, "q"); q.State.State != "SUSPENDED" || b.Node(home, "in-q") != nil {
		t.Fatalf("it is %+v", q)
	}
	refused(t, create("three"), http.StatusTooManyRequests, exhausted)

	must(t, b.OwnerCreateQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "p", Nodes: []cloudtputest.NodeConfig{{Name: "in-p"}}}, ada))
	b.clock.Advance(time.Hour)
	if q := b.QueuedResource(home, "p"); q.State.State != "FAILED" || q.State.FailedData.Error.Message != exhausted {
		t.Errorf("it is %+v", q.State)
	}
	b.SetQuota(home, 64)
	must(t, create("three"))
	refused(t, create("four"), http.StatusTooManyRequests, "Limit 64")
}

func TestFaultsOfQueuedResources(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	must(t, b.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q", Nodes: []cloudtputest.NodeConfig{{Name: "n"}}}))
	b.Inject(cloudtputest.Fault{Method: "DeleteQueuedResource", Name: "q", LateCode: 13, LateMessage: "oops"})
	must2 := func(_ *api.Operation, err error) { t.Helper(); must(t, err) }
	must2(b.l.QueuedResources.Delete(parent + "/queuedResources/q").Force(true).Do())
	b.clock.Advance(time.Hour)
	if q := b.QueuedResource(home, "q"); q == nil || q.State.State != "ACTIVE" || b.Node(home, "n").State != "READY" {
		t.Errorf("after a deletion that failed it is %+v", q)
	}
	b.Inject(cloudtputest.Fault{Method: "CreateQueuedResource", LateCode: 8, LateMessage: "GCE_STOCKOUT"})
	must2(b.l.QueuedResources.Create(parent, &api.QueuedResource{Tpu: &api.Tpu{NodeSpec: []*api.NodeSpec{{Parent: parent, NodeId: "m", Node: v5e()}}}}).QueuedResourceId("p").Do())
	b.clock.Advance(time.Hour)
	if q := b.QueuedResource(home, "p"); q != nil {
		t.Errorf("after a creation that failed it is %+v", q)
	}
	if err := b.FailQueuedResource(home, "nothing", 8, "x"); err == nil {
		t.Error("a missing node failed")
	}
}

func TestWireIsStrict(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "n"})
	must(t, err)
	node := "/v2alpha1/" + parent + "/nodes/n"
	create := "/v2alpha1/" + parent + "/nodes?nodeId=m"
	ok := `{"acceleratorType":"v5litepod-16","runtimeVersion":"r"}`
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		text               string
	}{
		"another version":                   {"GET", "/v3/" + parent + "/nodes/n", "", 404, "requested URL"},
		"no such collection":                {"GET", "/v2alpha1/" + parent + "/pods", "", 404, "requested URL"},
		"no such verb":                      {"POST", node + ":explode", "", 404, "requested URL"},
		"an empty name":                     {"GET", "/v2alpha1/" + parent + "/nodes/", "", 404, "requested URL"},
		"another project":                   {"GET", "/v2alpha1/projects/other/locations/z/nodes/n", "", 403, "Permission denied"},
		"a parameter":                       {"GET", node + "?force=true", "", 400, "Cannot bind query parameter"},
		"a body for a get":                  {"GET", node, "{}", 400, "takes no body"},
		"a request ID":                      {"DELETE", node + "?requestId=1", "", 400, "is not a UUID"},
		"a field":                           {"POST", create, `{"acceleratorTypo":"x"}`, 400, "Invalid JSON payload"},
		"a type":                            {"POST", create, `{"tags":"x"}`, 400, "Invalid JSON payload"},
		"two bodies":                        {"POST", create, ok + ok, 400, "Unexpected token"},
		"no node ID":                        {"POST", "/v2alpha1/" + parent + "/nodes", ok, 400, "node_id"},
		"no runtime":                        {"POST", create, `{"acceleratorType":"v5litepod-16"}`, 400, "runtime_version"},
		"no accelerator":                    {"POST", create, `{"runtimeVersion":"r"}`, 400, "accelerator type"},
		"both accelerators":                 {"POST", create, `{"runtimeVersion":"r","acceleratorType":"v4-8","acceleratorConfig":{"type":"V4","topology":"2x2x1"}}`, 400, "mutually exclusive"},
		"both networks":                     {"POST", create, `{"runtimeVersion":"r","acceleratorType":"v4-8","networkConfig":{},"networkConfigs":[{}]}`, 400, "mutually exclusive"},
		"a label":                           {"POST", create, `{"runtimeVersion":"r","acceleratorType":"v4-8","labels":{"a":"B"}}`, 400, "label"},
		"a description":                     {"POST", create, `{"runtimeVersion":"r","acceleratorType":"v4-8","description":"` + strings.Repeat("x", 513) + `"}`, 400, "512"},
		"no update mask":                    {"PATCH", node, `{}`, 400, "update_mask"},
		"another update mask":               {"PATCH", node + "?updateMask=state", `{}`, 400, "update_mask"},
		"labels of an update":               {"PATCH", node + "?updateMask=labels", `{"labels":{"A":"b"}}`, 400, "label"},
		"a page size":                       {"GET", "/v2alpha1/" + parent + "/nodes?pageSize=x", "", 400, "page_size"},
		"a page token":                      {"GET", "/v2alpha1/" + parent + "/nodes?pageToken=x", "", 400, "page_token"},
		"a tier":                            {"POST", "/v2alpha1/" + parent + "/queuedResources?queuedResourceId=q", `{"spot":{},"bestEffort":{},"tpu":{"nodeSpec":[]}}`, 400, "only one of"},
		"no nodes":                          {"POST", "/v2alpha1/" + parent + "/queuedResources?queuedResourceId=q", `{"spot":{}}`, 400, "node_spec is required"},
		"another parent":                    {"POST", "/v2alpha1/" + parent + "/queuedResources?queuedResourceId=q", `{"tpu":{"nodeSpec":[{"parent":"x","nodeId":"m","node":` + ok + `}]}}`, 400, "parent must be"},
		"no name for a node":                {"POST", "/v2alpha1/" + parent + "/queuedResources?queuedResourceId=q", `{"tpu":{"nodeSpec":[{"parent":"` + parent + `","node":` + ok + `}]}}`, 400, "exactly one of"},
		"a multislice of one":               {"POST", "/v2alpha1/" + parent + "/queuedResources?queuedResourceId=q", `{"tpu":{"nodeSpec":[{"parent":"` + parent + `","multiNodeParams":{"nodeCount":1},"node":` + ok + `}]}}`, 400, "greater than 1"},
		"a node spec that is null":          {"POST", "/v2alpha1/" + parent + "/queuedResources?queuedResourceId=q", `{"tpu":{"nodeSpec":[null]}}`, 400, "null"},
		"a null among the node specs of v2": {"POST", "/v2/" + parent + "/queuedResources?queuedResourceId=q", `{"tpu":{"nodeSpec":[null]}}`, 400, "null"},
		"a multislice without end":          {"POST", "/v2alpha1/" + parent + "/queuedResources?queuedResourceId=q", `{"tpu":{"nodeSpec":[{"parent":"` + parent + `","multiNodeParams":{"nodeCount":9223372036854775807},"node":` + ok + `}]}}`, 400, "at most 1000 nodes"},
		"two large multislices":             {"POST", "/v2alpha1/" + parent + "/queuedResources?queuedResourceId=q", `{"tpu":{"nodeSpec":[{"parent":"` + parent + `","multiNodeParams":{"nodeCount":1000},"node":` + ok + `},{"parent":"` + parent + `","nodeId":"m","node":` + ok + `}]}}`, 400, "at most 1000 nodes"},
		"a null among networks":             {"POST", create, `{"runtimeVersion":"r","acceleratorType":"v4-8","networkConfigs":[null]}`, 400, "null"},
		"a null among disks":                {"POST", create, `{"runtimeVersion":"r","acceleratorType":"v4-8","dataDisks":[null]}`, 400, "null"},
		"a body that is null":               {"POST", create, "null", 400, "runtime_version"},
		"a node that is there": {
			"POST", "/v2alpha1/" + parent + "/queuedResources?queuedResourceId=q", `{"tpu":{"nodeSpec":[{"parent":"` + parent + `","nodeId":"n","node":` + ok + `}]}}`, 409, "already exists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body)))
			var e struct {
				Error struct {
					Code            int
					Message, Status string
				}
			}
			must(t, json.Unmarshal(w.Body.Bytes(), &e))
			if w.Code != c.status || e.Error.Code != c.status || !strings.Contains(e.Error.Message, c.text) || e.Error.Status == "" {
				t.Errorf("%d %s, want %d with %q", w.Code, w.Body, c.status, c.text)
			}
		})
	}
	if len(b.Nodes("-")) != 1 || b.QueuedResource(home, "q") != nil {
		t.Error("something refused took effect")
	}
}

func TestUpdatesInFlight(t *testing.T) {
	b := newBench(t, cloudtputest.Config{Timing: cloudtputest.Timing{Patch: time.Minute}})
	_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "n"})
	must(t, err)
	patch := func() error {
		_, err := b.l.Nodes.Patch(parent+"/nodes/n", &api.Node{Description: "d"}).UpdateMask("description").Do()
		return err
	}
	must(t, patch())
	refused(t, patch(), 409, "unable to queue the operation")
	_, err = b.l.Nodes.Delete(parent + "/nodes/n").Do()
	refused(t, err, 409, "unable to queue the operation")
	b.clock.Advance(time.Minute)
	must(t, patch())
	must(t, b.Preempt(home, "n"))
	b.clock.Advance(time.Minute)
	last := (*b.told)[len(*b.told)-1]
	if last.Kind != cloudtputest.Ended || last.Code != 3 || !strings.Contains(last.Error, "update is not supported while in state PREEMPTED [EID: 0x") {
		t.Errorf("an update that was overtaken by a preemption: %+v", last)
	}
	refused(t, patch(), 400, "update is not supported while in state PREEMPTED")
}

func TestRequestIDsAreRememberedForAWhile(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	create := func() (*api.Operation, error) {
		return b.l.Nodes.Create(parent, v5e()).NodeId("n").RequestId(uuid(1)).Do()
	}
	first, err := create()
	must(t, err)
	b.clock.Advance(2 * time.Hour)
	if l, err := b.l.Operations.List(parent).Do(); err != nil || len(l.Operations) != 0 {
		t.Errorf("operations %v, %v", l, err)
	}
	second, err := create()
	if err != nil || second.Name != first.Name || !second.Done {
		t.Errorf("%+v, %v", second, err)
	}
	b.clock.Advance(24 * time.Hour)
	_, err = create()
	refused(t, err, 409, "already exists")
}

func TestAuditEntries(t *testing.T) {
	b := newBench(t, cloudtputest.Config{Zones: map[string]int{home: 1}})
	must(t, b.OwnerCreate(cloudtputest.NodeConfig{Zone: home, Name: "n"}, ada))
	b.clock.Advance(time.Hour)
	must(t, b.OwnerCreate(cloudtputest.NodeConfig{Zone: home, Name: "m"}, ada))
	b.clock.Advance(time.Hour)
	if err := b.OwnerCreate(cloudtputest.NodeConfig{Zone: home, Name: "n"}, ada); err == nil {
		t.Error("a name was given twice")
	}
	_, err := b.l.Nodes.Delete(parent + "/nodes/n").Do()
	must(t, err)
	b.clock.Advance(time.Hour)
	must(t, b.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q", State: "SUSPENDED", Nodes: []cloudtputest.NodeConfig{{Name: "x"}}}))
	must(t, b.OwnerDeleteQueuedResource(home, "q", ada))
	b.clock.Advance(time.Hour)
	_, err = b.l.Nodes.List(parent).Do()
	must(t, err)

	type line struct {
		ID, What    string
		First, Last bool
		At          time.Duration
		Code        int
	}
	var got []line
	seen := map[string]bool{}
	for _, e := range *b.told {
		raw := cloudtputest.AuditEntry(e)
		if raw == nil {
			continue
		}
		if again := cloudtputest.AuditEntry(e); !bytes.Equal(raw, again) {
			t.Errorf("two entries of one event:\n%s\n%s", raw, again)
		}
		entry, err := events.Read(raw)
		must(t, err)
		if entry.Kind != events.KindCall || entry.Ignored != "" || len(entry.Missing) > 0 || seen[entry.ID] || entry.Rank != events.RankAudit {
			t.Errorf("entry %+v", entry)
		}
		seen[entry.ID] = true
		if d := entry.Received.Sub(entry.Time); d < 300*time.Millisecond || d > 1100*time.Millisecond {
			t.Errorf("it was received after %s", d)
		}
		if c := entry.Call; (c.Operation == "") == (c.First || c.Last) || c.Operation != "" && c.Operation != e.Operation {
			t.Errorf("operation %q of %q", c.Operation, e.Operation)
		}
		got = append(got, line{
			What: entry.Call.Method + " " + entry.Subject.String() + " " + entry.Call.Principal, First: entry.Call.First,
			Last: entry.Call.Last, At: entry.Time.Sub(start), Code: entry.Call.Code,
		})
	}
	const me = "pitstop@demo.iam.gserviceaccount.com"
	want := []line{
		{What: "CreateNode " + parent + "/nodes/n " + ada, First: true},
		{What: "CreateNode " + parent + "/nodes/n " + ada, Last: true, At: 5 * time.Minute},
		{What: "CreateNode " + parent + "/nodes/m " + ada, First: true, At: time.Hour},
		{What: "CreateNode " + parent + "/nodes/m " + ada, Last: true, At: time.Hour + 20*time.Second, Code: 8},
		{What: "CreateNode " + parent + "/nodes/n " + ada, At: 2 * time.Hour, Code: 6},
		{What: "DeleteNode " + parent + "/nodes/n " + me, First: true, At: 2 * time.Hour},
		{What: "DeleteNode " + parent + "/nodes/n " + me, Last: true, At: 2*time.Hour + 110*time.Second},
		{What: "DeleteQueuedResource " + parent + "/queuedResources/q " + ada, First: true, At: 3 * time.Hour},
		{What: "DeleteQueuedResource " + parent + "/queuedResources/q " + ada, Last: true, At: 3*time.Hour + 5*time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestShapeOfAnAuditEntry(t *testing.T) {
	got := cloudtputest.AuditEntry(cloudtputest.Event{
		Time: start, Kind: cloudtputest.Ended, Seq: 3, Project: "demo", Zone: home, Node: "n", Method: "CreateNode", Principal: ada,
		Operation: parent + "/operations/operation-1", Code: 8, Error: "no\xff",
	})
	want := `{"insertId":"d0","logName":"projects/demo/logs/cloudaudit.googleapis.com%2Factivity",` +
		`"operation":{"id":"projects/demo/locations/us-west4-a/operations/operation-1","last":true,"producer":"tpu.googleapis.com"},` +
		`"protoPayload":{"@type":"type.googleapis.com/google.cloud.audit.AuditLog",` +
		`"authenticationInfo":{"principalEmail":"ada@example.com"},"methodName":"google.cloud.tpu.v2alpha1.Tpu.CreateNode",` +
		`"resourceLocation":{"currentLocations":["us-west4-a"]},"resourceName":"projects/demo/locations/us-west4-a/nodes/n",` +
		`"serviceName":"tpu.googleapis.com","status":{"code":8,"message":"no` + "\ufffd" + `"}},"receiveTimestamp":"2026-03-01T12:00:00.6Z",` +
		`"resource":{"labels":{"method":"google.cloud.tpu.v2alpha1.Tpu.CreateNode","project_id":"demo","service":"tpu.googleapis.com"},` +
		`"type":"audited_resource"},"severity":"ERROR","timestamp":"2026-03-01T12:00:00Z"}`
	var fields map[string]any
	must(t, json.Unmarshal(got, &fields))
	id, _ := fields["insertId"].(string)
	if len(id) != 16 {
		t.Errorf("insert ID %q", id)
	}
	if diff := cmp.Diff(strings.Replace(want, `"d0"`, `"`+id+`"`, 1), string(got)); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
	for _, e := range []cloudtputest.Event{
		{Kind: cloudtputest.Called, Method: "DeleteNode"},
		{Kind: cloudtputest.Called, Method: "GetNode", Code: 5},
		{Kind: cloudtputest.Lost},
		{Kind: cloudtputest.Started, Method: "Unheard"},
	} {
		if got := cloudtputest.AuditEntry(e); got != nil {
			t.Errorf("%+v left %s", e, got)
		}
	}
}

func TestPrincipals(t *testing.T) {
	b := newBench(t, cloudtputest.Config{Principal: "default@example.com"})
	_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "n"})
	must(t, err)
	s := httptest.NewServer(b)
	t.Cleanup(s.Close)
	get := func(token string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v2alpha1/"+parent+"/nodes/n", nil)
		must(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := s.Client().Do(r)
		must(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		must(t, errors.Join(err, res.Body.Close()))
	}
	get("")
	get(ada)
	for _, rt := range []http.RoundTripper{b.Transport(), b.TransportAs("patrol@example.com")} {
		_, err := client(t, rt).Nodes.Get(parent + "/nodes/n").Do()
		must(t, err)
	}
	var got []string
	for _, e := range *b.told {
		if e.Kind == cloudtputest.Called {
			got = append(got, e.Method+" by "+e.Principal+" of "+e.Node+" in "+e.Incarnation.Zone)
		}
	}
	var want []string
	for _, who := range []string{"default@example.com", ada, "default@example.com", "patrol@example.com"} {
		want = append(want, "GetNode by "+who+" of n in "+home)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestFaultsFitWhatTheyName(t *testing.T) {
	b := newBench(t, cloudtputest.Config{Zones: map[string]int{home: cloudtputest.Unlimited, "z": cloudtputest.Unlimited}})
	for _, name := range []string{"n", "m"} {
		_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: name})
		must(t, err)
	}
	get := func(name string) error { _, err := b.l.Nodes.Get(parent + "/nodes/" + name).Do(); return err }
	withdraw := b.Inject(cloudtputest.Fault{Method: "GetNode", Zone: home, Name: "n", Times: 2, Code: 14, Message: "later"})
	b.Inject(cloudtputest.Fault{Method: "GetNode", Zone: "z", Code: 14, Message: "elsewhere"})
	b.Inject(cloudtputest.Fault{Method: "DeleteNode", Code: 14, Message: "another"})
	must(t, get("m"))
	refused(t, get("n"), 503, "later")
	withdraw()
	must(t, get("n"))
	_, err := b.l.Nodes.Create(parent, v5e()).NodeId("x").Do()
	must(t, err)
	// Who lives in the world meets no fault.
	must(t, b.OwnerDelete(home, "n", ada))
	_, err = b.l.Nodes.Delete(parent + "/nodes/m").Do()
	refused(t, err, 503, "another")
	b.Inject(cloudtputest.Fault{Times: -1, HTTP: 429})
	for range 3 {
		var e *googleapi.Error
		if err := get("m"); !errors.As(err, &e) || e.Code != 429 || e.Message != "" {
			t.Error(err)
		}
	}
}

// TestSameSeedSameStory holds that a run can be repeated to the letter.
func TestSameSeedSameStory(t *testing.T) {
	run := func(seed uint64) []cloudtputest.Event {
		b := newBench(t, cloudtputest.Config{Seed: seed, Zones: map[string]int{home: 2}})
		for i := range 4 {
			must(t, b.OwnerCreate(cloudtputest.NodeConfig{Zone: home, Name: fmt.Sprintf("n%d", i)}, ada))
			b.clock.Advance(time.Minute)
		}
		must(t, b.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q", Spot: true, State: "WAITING_FOR_RESOURCES", Nodes: []cloudtputest.NodeConfig{{Name: "x"}}}))
		must(t, b.Preempt(home, "n1"))
		b.clock.Advance(time.Hour)
		return *b.told
	}
	one, two := run(1), run(1)
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("two runs (-first +second):\n%s", diff)
	}
	if cmp.Equal(one, run(2)) {
		t.Error("the seed makes no difference")
	}
	groups := map[string]bool{}
	for _, e := range one {
		if e.Kind != cloudtputest.Created {
			continue
		}
		if _, _, ok := events.WorkerGroup(e.Group + "-w-0"); !ok || groups[e.Group] || !e.Incarnation.Known() {
			t.Errorf("%+v", e)
		}
		groups[e.Group] = true
	}
}

// TestObserverMayCallBack holds that the observer is called without a lock, in order, and never within itself.
func TestObserverMayCallBack(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	var got []string
	inside := false
	b.Observe(func(e cloudtputest.Event) {
		if inside {
			t.Error("the observer is called within itself")
		}
		inside = true
		defer func() { inside = false }()
		got = append(got, string(e.Kind))
		if e.Kind == cloudtputest.Ready {
			must(t, b.SetMetadata(home, e.Node, "seen", "yes", ada))
			must(t, b.Preempt(home, e.Node))
		}
	})
	_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "n"})
	must(t, err)
	want := []string{"node_ready", "operation_started", "metadata_changed", "operation_ended", "called", "node_lost"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestConcurrentUse(t *testing.T) {
	b := newBench(t, cloudtputest.Config{Zones: map[string]int{home: 20}})
	type about struct{ resource, call string }
	seqs := map[about]uint64{}
	b.Observe(func(e cloudtputest.Event) {
		a := about{resource: e.Resource()}
		if e.Kind == cloudtputest.Called {
			a.call = e.Method
		}
		if seqs[a]++; e.Seq != seqs[a] {
			t.Errorf("event %d about %v has the number %d", seqs[a], a, e.Seq)
		}
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := fmt.Sprintf("n%d", i)
			if _, err := b.l.Nodes.Create(parent, v5e()).NodeId(name).Do(); err != nil {
				t.Error(err)
			}
			b.Inject(cloudtputest.Fault{Name: name, LoseAnswer: true})
			for range 20 {
				_, _ = b.l.Nodes.List(parent).Do()                   //nolint:errcheck // others are in the way
				_, _ = b.l.Nodes.Get(parent + "/nodes/" + name).Do() //nolint:errcheck // likewise
				_ = b.Nodes("-")
				_ = b.Hosts(home, name)
				_ = b.HostError(home, name, time.Second) //nolint:errcheck // likewise
			}
			_ = b.Preempt(home, name)          //nolint:errcheck // likewise
			_ = b.OwnerDelete(home, name, ada) //nolint:errcheck // likewise
		})
	}
	wg.Go(func() {
		for range 50 {
			b.clock.Advance(time.Second)
		}
	})
	wg.Wait()
	b.clock.Advance(time.Hour)
	if n := b.Nodes("-"); len(n) != 0 || b.Running() != 0 {
		t.Errorf("left are %v and %d operations", n, b.Running())
	}
}

func TestAddedNodesAreWhatTheyAreSaidToBe(t *testing.T) {
	b := newBench(t, cloudtputest.Config{Zones: map[string]int{}})
	created := start.Add(-48 * time.Hour)
	life, err := b.AddNode(cloudtputest.NodeConfig{
		Zone: home, Name: "n", Order: &api.Node{RuntimeVersion: "x", AcceleratorConfig: &api.AcceleratorConfig{Type: "V4", Topology: "2x2x4"}},
		State: "REPAIRING", Created: created, ID: 5, Group: "t1v-n-00000000", Notice: &events.Notice{Status: events.NoticeOngoing, Unscheduled: true},
	})
	must(t, err)
	if want := (events.Incarnation{Zone: home, ID: "5", Created: created}); !life.Same(want) || !b.Incarnation(home, "n").Same(want) {
		t.Errorf("life %+v", life)
	}
	n := b.Node(home, "n")
	if n.AcceleratorType != "v4-32" || n.State != "REPAIRING" || n.UpcomingMaintenance.MaintenanceStatus != "ONGOING" || n.UpcomingMaintenance.Type != "UNSCHEDULED" {
		t.Errorf("%+v", n)
	}
	if diff := cmp.Diff([]string{"t1v-n-00000000-w-0", "t1v-n-00000000-w-1", "t1v-n-00000000-w-2", "t1v-n-00000000-w-3"}, b.Hosts(home, "n")); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	b.tells(t, "0s node_unhealthy /n REPAIRING")
	// A reading can be ordered again, although it holds the accelerator twice.
	_, err = b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "m", Order: n})
	must(t, err)
	for _, c := range []cloudtputest.NodeConfig{{Zone: home, Name: "n"}, {Zone: home, Name: "o", Accelerator: "v99-1"}} {
		if _, err := b.AddNode(c); err == nil {
			t.Errorf("%+v was added", c)
		}
	}
	for accelerator, want := range map[string]string{"v5litepod-16": "4x4", "v6e-8": "2x4", "v4-8": "2x2x1", "v5p-128": "4x4x4", "v5litepod-1": "1x1", "v3-32": "4x4", "v5p-12288": "16x16x24"} {
		_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: accelerator, Accelerator: accelerator})
		must(t, err)
		if got := b.Node(home, accelerator).AcceleratorConfig.Topology; got != want {
			t.Errorf("%s is %s, want %s", accelerator, got, want)
		}
	}
}

// TestAPlaceHasRoomOfItsOwn: a zone may have none for Spot, on demand, reservations or one shape, and give what it has of the others.
func TestAPlaceHasRoomOfItsOwn(t *testing.T) {
	spot, reserved := v5e(), v5e()
	spot.SchedulingConfig, reserved.SchedulingConfig = &api.SchedulingConfig{Spot: true}, &api.SchedulingConfig{Reserved: true}
	for full, want := range map[string]string{
		"us-west4-a":                       "",
		"us-west4-b spot":                  "spot, reserved, on demand, small, in a queue",
		"us-west4-a spot":                  "reserved, on demand, small",
		"us-west4-a on_demand":             "spot, reserved, in a queue",
		"us-west4-a reserved":              "spot, on demand, small, in a queue",
		"us-west4-a v5litepod-16":          "small",
		"us-west4-a v5litepod-8 on_demand": "spot, reserved, on demand, in a queue",
	} {
		b := newBench(t, cloudtputest.Config{Zones: map[string]int{home: cloudtputest.Unlimited, "us-west4-b": cloudtputest.Unlimited, full: 0}})
		var got []string
		for _, c := range []struct {
			name  string
			order *api.Node
		}{{"spot", spot}, {"reserved", reserved}, {"on demand", v5e()}, {"small", small()}} {
			op, err := b.l.Nodes.Create(parent, c.order).NodeId("n").RequestId(uuid(1)).Do()
			must(t, err)
			b.clock.Advance(10 * time.Minute)
			op, err = b.l.Operations.Get(op.Name).Do()
			must(t, err)
			switch {
			case op.Error == nil:
				got = append(got, c.name)
				must(t, b.Vanish(home, "n"))
			case c.name == "reserved" && !strings.Contains(op.Error.Message, "insufficient reserved capacity"),
				c.name != "reserved" && !strings.Contains(op.Error.Message, "no more capacity"):
				t.Errorf("%s, %s: %s", full, c.name, op.Error.Message)
			}
			b.clock.Advance(25 * time.Hour) // the request ID is forgotten
		}
		must(t, b.OwnerCreateQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q", Spot: true, Nodes: []cloudtputest.NodeConfig{{Name: "n"}}}, ada))
		b.clock.Advance(time.Hour)
		if b.QueuedResource(home, "q").State.State == "ACTIVE" {
			got = append(got, "in a queue")
			if !b.Reclaimable(home, "n") {
				t.Errorf("%s: what a queue gives as Spot is not reclaimable", full)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s is full: %q, want %q", full, strings.Join(got, ", "), want)
		}
	}
	for _, text := range []string{"us-west4-a spot spot", "us-west4-a soon", "us-west4-a v5litepod-16 v5litepod-8"} {
		if at, err := cloudtputest.ParsePlace(text); err == nil {
			t.Errorf("%q is %+v", text, at)
		}
	}
}
