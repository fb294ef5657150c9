package cloudtpu_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/cloudtpu/internal/discovery"
	"pitstop.internal/shared/provider/providertest"
	"pitstop.internal/shared/reason"
)

const (
	project = "demo"
	home    = "us-west4-a"
	away    = "us-west4-b"
	barren  = "us-central1-a"
	foreign = "asia-east1-a"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// requestID is the n-th of some UUIDs.
func requestID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// world is a provider and its simulated API.
type world struct {
	provider.Provider
	t     *testing.T
	api   *cloudtputest.API
	clock *cloudtputest.ManualClock
	calls *calls
	// legacy has the suite's nodes be legacy TPU Nodes.
	legacy bool
}

// way is the setting of a world: reached over a socket or without HTTP, with legacy nodes in two zones, with the versions of the
// API showing each other's nodes.
type way struct {
	name                          string
	socket, direct, both, mingled bool
}

func (w world) ref(name string) provider.Ref { return w.at(home, name) }

func (w world) at(zone, name string) provider.Ref {
	return provider.Ref{Project: project, Zone: zone, Name: name, Legacy: w.legacy}
}

// order is what the suite's nodes are made of.
func (w world) order(name string) cloudtputest.NodeConfig {
	if w.legacy {
		return legacyOrder(name)
	}
	return order(name)
}

// calls counts the calls of the API by method, without those of v1.
type calls struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *calls) add(e cloudtputest.Event) {
	if e.Kind != cloudtputest.Called || e.Legacy {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[e.Method]++
}

// since returns the calls since it was last asked.
func (c *calls) since() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n = map[string]int{}
	return n
}

// newWorld makes a world reached by a transport, which checks every call and answer of the present version against the API's
// description. The former version's messages are what its client is generated from.
func newWorld(t *testing.T, how way) world {
	t.Helper()
	d, err := discovery.Load()
	must(t, err)
	clock := cloudtputest.NewManualClock(start)
	a := cloudtputest.New(cloudtputest.Config{
		Project: project, Clock: clock, Seed: 7, PageSize: 2, Mingled: how.mingled,
		Zones: map[string]int{home: 2, away: cloudtputest.Unlimited, barren: 0},
	})
	c := &calls{n: map[string]int{}}
	a.Observe(c.add)
	var cfg cloudtpu.Config
	next := a.Transport()
	if how.socket {
		s := serve(t, a)
		next, cfg.Endpoint = s.Client().Transport, s.URL
	}
	// A page that is no answer of the API is injected on purpose here and there.
	fault := func(err error) {
		if !strings.Contains(err.Error(), "<!DOCTYPE html>") {
			t.Error(err)
		}
	}
	if how.both {
		cfg.LegacyZones = []string{home, away, barren, foreign}
	}
	if how.direct {
		return world{Provider: cfg.Over(a.Direct(nil)), t: t, api: a, clock: clock, calls: c}
	}
	opts := clients(t, a, d.Transport(next, fault, nil))
	if how.socket {
		opts.Former = nil // they follow from the endpoint
	}
	p, err := cfg.OpenWith(t.Context(), opts)
	must(t, err)
	return world{Provider: p, t: t, api: a, clock: clock, calls: c}
}

// clients are options for calls of a simulated API without a socket.
func clients(t *testing.T, a *cloudtputest.API, through http.RoundTripper) cloudtpu.Clients {
	t.Helper()
	conn, err := a.Connect(t.Context(), nil)
	must(t, err)
	return cloudtpu.Clients{
		Present: []option.ClientOption{option.WithHTTPClient(&http.Client{Transport: through})}, Former: []option.ClientOption{option.WithGRPCConn(conn)},
	}
}

// serve serves on a socket: HTTP/1.1, and HTTP/2 without TLS for gRPC.
func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func ref(name string) provider.Ref { return provider.Ref{Project: project, Zone: home, Name: name} }

func queuedRef(name, queue string) provider.Ref {
	return provider.Ref{Project: project, Zone: home, Name: name, QueuedResource: queue}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// class fails the test unless the error is one of this package's of that class.
func class(t *testing.T, err error, want reason.FailureClass) {
	t.Helper()
	var e *provider.Error
	if !errors.As(err, &e) || e.Class != want {
		t.Fatalf("error %v, want one of class %s", err, want)
	}
	if strings.Contains(e.Message, "EID") || e.Call == "" {
		t.Errorf("error %+v", e)
	}
}

func read(t *testing.T, w world, r provider.Ref) provider.Slice {
	t.Helper()
	s, err := w.Read(t.Context(), r)
	must(t, err)
	return s
}

// condition fails the test unless a slice is in that condition, and returns it.
func condition(t *testing.T, w world, r provider.Ref, want evidence.Condition) provider.Slice {
	t.Helper()
	s := read(t, w, r)
	if s.Condition != want {
		t.Fatalf("%s is %s (%s), want %s", r.Name, s.Condition, s.State, want)
	}
	return s
}

func list(t *testing.T, w world) provider.Listing {
	t.Helper()
	l, err := w.List(t.Context(), project, home)
	must(t, err)
	return l
}

// states tells a listing by name and state.
func states(l provider.Listing) map[string]string {
	all := map[string]string{}
	for _, s := range l.Slices {
		all[s.Name] = string(s.Condition) + ", " + s.State
	}
	return all
}

// ended returns how an operation ended.
func ended(t *testing.T, w world, zone, name string) *evidence.Failure {
	t.Helper()
	ops, err := w.Operations(t.Context(), project, zone)
	must(t, err)
	for _, o := range ops {
		if o.Name == name {
			if !o.Done {
				t.Fatalf("%s is not done", name)
			}
			return o.Failure
		}
	}
	t.Fatalf("%s is not among %v", name, ops)
	return nil
}

// order is what the nodes of these tests are made of.
func order(name string) cloudtputest.NodeConfig {
	return cloudtputest.NodeConfig{
		Zone: home, Name: name, Accelerator: "v5litepod-16", Spot: true,
		Labels: map[string]string{events.LabelPolicy: "spot", events.LabelIncident: "i-1"},
		Metadata: map[string]string{
			"startup-script": "token=s3cret", events.MetadataCheckpointDir: "gs://b/x", events.MetadataDataDir: "gs://d/a, gs://e", events.MetadataRequest: "{}",
			"ssh-keys": "me",
		},
		Order: &api.Node{
			AutocheckpointEnabled: true, Tags: []string{"t"}, Description: "trains", RuntimeVersion: "v2-alpha-tpuv5-lite",
			NetworkConfig:  &api.NetworkConfig{Network: "default", Subnetwork: "projects/demo/regions/us-west4/subnetworks/default", EnableExternalIps: true},
			ServiceAccount: &api.ServiceAccount{Email: "train@demo.iam.gserviceaccount.com", Scope: []string{"https://www.googleapis.com/auth/cloud-platform"}},
			BootDiskConfig: &api.BootDiskConfig{DiskSizeGb: 200}, ShieldedInstanceConfig: &api.ShieldedInstanceConfig{EnableSecureBoot: true},
			DataDisks: []*api.AttachedDisk{{SourceDisk: "projects/demo/zones/us-west4-a/disks/d", Mode: "READ_ONLY"}},
		},
	}
}

// TestProvider is what a provider promises, held on the client over a handler and over a socket, and on the one that has
// legacy nodes too.
func TestProvider(t *testing.T) {
	for _, way := range []way{
		{name: "in process"},
		{name: "over a socket", socket: true},
		{name: "where there may be legacy nodes", both: true},
		{name: "where each version shows all nodes", both: true, mingled: true},
		{name: "without HTTP", direct: true},
		{name: "without HTTP, with legacy nodes", direct: true, both: true, mingled: true},
	} {
		t.Run(way.name, func(t *testing.T) {
			providertest.Run(t, func(t *testing.T) providertest.World { return newWorld(t, way).every() })
			for _, c := range vms {
				t.Run(c.name, func(t *testing.T) { c.run(newWorld(t, way)) })
			}
		})
	}
}

// every is the world as the promises of every provider see it.
func (w world) every() providertest.World {
	t := w.t
	ready := func(name string, startable bool) {
		c := w.order(name)
		if startable {
			c.Accelerator = "v5litepod-4"
		}
		_, err := w.api.AddNode(c)
		must(t, err)
	}
	all := providertest.World{
		Provider: w.Provider, T: t, Project: project, Home: home, Away: away, Barren: barren, Ref: w.at, Bad: w.ref("n:stop"),
		Absent:  []provider.Ref{w.ref("n"), queuedRef("n", "q"), {Project: project, Zone: foreign, Name: "n"}, w.ref("a/b"), {}},
		Foreign: []provider.Ref{w.at(foreign, "n")},
		Ready:   ready, Spec: func() []byte { return readySpec(t, w) },
		Stop:    func(name string) { must(t, w.api.SetState(home, name, "STOPPED")) },
		Reclaim: func(name string) { must(t, w.api.Preempt(home, name)) },
		LoseCreate: func() {
			w.api.Inject(cloudtputest.Fault{Method: "CreateNode", LoseAnswer: true})
			w.api.Inject(cloudtputest.Fault{Method: "CreateNode", LoseRequest: true})
		},
		FailCreate: func() string {
			w.api.Inject(cloudtputest.Fault{Method: "CreateNode", LateCode: 5, LateMessage: "Reservation not found [EID: 0x2]"})
			return "Reservation not found"
		},
		FailDelete: func(late time.Duration) string {
			const message = "TPU operation failed: an internal error"
			w.api.Inject(cloudtputest.Fault{Method: "DeleteNode", LateCode: 13, LateMessage: message + " [EID: 0xabc]", Slow: late})
			return message
		},
		RefuseStart: func() {
			w.api.Inject(cloudtputest.Fault{Method: "StartNode", Code: 8, Message: "There is no more capacity in the zone"})
		},
		NoCapacity: `There is no more capacity in the zone "us-central1-a"; you can try in another zone where Cloud TPU Nodes are offered ` +
			"(see https://cloud.google.com/tpu/docs/regions)",
		Advance: w.clock.Advance, Calls: func() int { return len(w.calls.since()) },
		NoRequestIDs: w.legacy, NoGuests: w.legacy, Never: []string{"EID", "requestId"},
	}
	if !w.legacy {
		all.Foreign = append(all.Foreign, provider.Ref{Project: project, Zone: foreign, Name: "n", QueuedResource: "q"})
	}
	return all
}

type promise struct {
	name string
	run  func(world)
}

// vms holds the promises about TPU VMs, beside those of every provider.
var vms = []promise{
	{"classifies failures", testFailures},
	{"reads a node", testRead},
	{"reads a node of a queued resource", testReadQueued},
	{"lists all pages and both sorts", testList},
	{"says when a listing is not whole", testPartial},
	{"lists a node of a queued resource that is not listed", testListMissingQueue},
	{"a Spot slice stays Spot", testStaysSpot},
	{"creates what it has read", testCreate},
	{"the same request ID creates and deletes once", testRequestID},
	{"takes nothing of another zone", testElsewhere},
	{"the life of a queued resource", testQueueLife},
	{"a Multislice in a queued resource", testMultislice},
	{"a queued resource that fails", testQueueFails},
	{"starts announced maintenance", testMaintain},
	{"starts announced maintenance in a queued resource", testMaintainQueued},
	{"sets metadata and loses none", testMetadata},
	{"sets metadata against another writer", testMetadataRace},
	{"reads host names", testHosts},
}

// whole is the specification of a reading with the values of its metadata in it.
func whole(t *testing.T, s provider.Slice) []byte {
	t.Helper()
	spec, err := cloudtpu.Whole(s.Spec, s.Values)
	must(t, err)
	return spec
}

func testRead(w world) {
	t := w.t
	life, err := w.api.AddNode(order("n"))
	must(t, err)
	got := read(t, w, ref("n"))
	spec := string(got.Spec)
	if hash, life, _ := strings.Cut(got.SpecHash, "@"); hash != events.ID("spec", spec) || life == "" {
		t.Errorf("name %q of %s", got.SpecHash, spec)
	}
	for _, word := range []string{
		events.LabelIncident, events.MetadataRequest, "ssh-keys", `"id"`, `"state"`, `"networkEndpoints"`, "queued_resource",
	} {
		if strings.Contains(spec, word) {
			t.Errorf("the specification holds %s: %s", word, spec)
		}
	}
	got.Spec, got.SpecHash, got.Values, got.ValuesSum = nil, "", nil, ""
	want := provider.Slice{
		Ref: ref("n"), Condition: evidence.Ready, State: "READY", Incarnation: life,
		Labels:    map[string]string{events.LabelPolicy: "spot", events.LabelIncident: "i-1"},
		Directory: "gs://b/x", Account: "train@demo.iam.gserviceaccount.com", Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Capacity: events.Spot,
		Autocheckpoint: true, Data: []string{"gs://d/a", "gs://e"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("slice (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"GetNode": 1}, w.calls.since()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}

	notice := events.Notice{
		Status: events.NoticePending, CanReschedule: true, WindowStart: start.Add(time.Hour), WindowEnd: start.Add(2 * time.Hour),
	}
	must(t, w.api.Announce(home, "n", notice))
	if s := condition(t, w, ref("n"), evidence.Ready); s.Notice == nil || !s.Notice.Equal(notice) {
		t.Errorf("notice %+v, want %+v", s.Notice, notice)
	}
	must(t, w.api.BeginMaintenance(home, "n", time.Hour))
	if s := condition(t, w, ref("n"), evidence.Unhealthy); s.State != "READY, UNHEALTHY_MAINTENANCE" || s.Notice.Status != events.NoticeOngoing {
		t.Errorf("%s, %+v", s.State, s.Notice)
	}
	w.clock.Advance(time.Hour)
	if s := condition(t, w, ref("n"), evidence.Ready); s.Notice != nil || !s.Incarnation.Same(life) || !s.Maintained.Equal(start) {
		t.Errorf("after maintenance it is %+v", s)
	}
	must(t, w.api.HostError(home, "n", time.Minute))
	condition(t, w, ref("n"), evidence.Unhealthy)
	w.clock.Advance(time.Minute)
	condition(t, w, ref("n"), evidence.Ready)
	must(t, w.api.AddSymptom(home, "n", "PROJECT_ABUSE", 1))
	if s := read(t, w, ref("n")); !s.Abuse {
		t.Errorf("no abuse: %s", s.State)
	}
	must(t, w.api.Preempt(home, "n"))
	if s := condition(t, w, ref("n"), evidence.Lost); s.Workers != 4 || !s.Incarnation.Same(life) || string(s.Spec) != spec {
		t.Errorf("after its loss it is %+v", s)
	}
}

func testReadQueued(w world) {
	t := w.t
	c := order("n")
	c.Spot = false
	must(t, w.api.AddQueuedResource(cloudtputest.QueuedConfig{
		Zone: home, Name: "q", Nodes: []cloudtputest.NodeConfig{c},
		Order: &api.QueuedResource{
			Spot: &api.Spot{}, RunDuration: &api.RunDuration{MaxRunDuration: "3600s"},
			QueueingPolicy: &api.QueueingPolicy{ValidUntilTime: "2026-04-01T00:00:00Z"},
		},
	}))
	w.calls.since()
	s := condition(t, w, ref("n"), evidence.Ready)
	if s.QueuedResource != "q" || s.Capacity != events.Spot || !s.Incarnation.Known() {
		t.Errorf("%+v", s)
	}
	if want := `"queued_resource":{"runDuration":{"maxRunDuration":"3600s"},"spot":{}}`; !strings.Contains(string(s.Spec), want) {
		t.Errorf("specification %s, want %s in it", s.Spec, want)
	}
	if diff := cmp.Diff(map[string]int{"GetNode": 1, "GetQueuedResource": 1}, w.calls.since()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	// The name of the queued resource is taken by that of something else.
	if s := condition(t, w, queuedRef("other", "q"), evidence.Gone); s.QueuedResource != "q" {
		t.Errorf("%+v", s)
	}
	// A reading that cannot tell whether it is Spot is none.
	w.api.Inject(cloudtputest.Fault{Method: "GetQueuedResource", Code: 14, Message: "later"})
	_, err := w.Read(t.Context(), ref("n"))
	class(t, err, reason.Transient)
}

func testList(w world) {
	t := w.t
	if l := list(t, w); l.Partial || len(l.Slices) != 0 {
		t.Errorf("an empty zone is %+v", l)
	}
	want := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		_, err := w.api.AddNode(order(name))
		must(t, err)
		want[name] = "ready, READY"
	}
	w.api.SetCapacity(home, 6)
	quiet := order("q1")
	quiet.Spot = false
	must(t, w.api.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "qa", Spot: true, Nodes: []cloudtputest.NodeConfig{quiet}}))
	want["q1"] = "ready, READY"
	for name, state := range map[string]string{"q2": "WAITING_FOR_RESOURCES", "q3": "SUSPENDED", "q4": "FAILED"} {
		must(t, w.api.AddQueuedResource(cloudtputest.QueuedConfig{
			Zone: home, Name: "queue-" + name, State: state, Nodes: []cloudtputest.NodeConfig{order(name)},
		}))
	}
	want["q2"] = "creating, WAITING_FOR_RESOURCES (queued resource)"
	want["q3"] = "lost, SUSPENDED (queued resource)"
	want["q4"] = "lost, FAILED (queued resource)"
	w.calls.since()
	l := list(t, w)
	if diff := cmp.Diff(want, states(l)); diff != "" || l.Partial || len(l.Slices) != len(want) {
		t.Errorf("listing (-want +got), partial %v:\n%s", l.Partial, diff)
	}
	if diff := cmp.Diff(map[string]int{"ListNodes": 3, "ListQueuedResources": 2}, w.calls.since()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	for _, s := range l.Slices {
		one := read(t, w, s.Ref)
		if diff := cmp.Diff(one, s); diff != "" {
			t.Errorf("%s read and listed (-read +listed):\n%s", s.Name, diff)
		}
		if s.Capacity != events.Spot || len(s.Spec) == 0 || s.Directory != "gs://b/x" || s.Workers != 4 {
			t.Errorf("%+v", s)
		}
	}
}

func testPartial(w world) {
	t := w.t
	_, err := w.api.AddNode(order("n"))
	must(t, err)
	must(t, w.api.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q", State: "SUSPENDED", Nodes: []cloudtputest.NodeConfig{order("m")}}))
	w.api.Inject(cloudtputest.Fault{Method: "ListNodes", Unreachable: true})
	// The nodes could not be seen, so a missing one proves nothing.
	if l := list(t, w); !l.Partial || len(l.Slices) != 0 {
		t.Errorf("%+v", l)
	}
	w.api.Inject(cloudtputest.Fault{Method: "ListQueuedResources", Unreachable: true})
	if l := list(t, w); !l.Partial || len(l.Slices) != 1 {
		t.Errorf("%+v", l)
	}
	if l := list(t, w); l.Partial || len(l.Slices) != 2 {
		t.Errorf("%+v", l)
	}
	w.api.Inject(cloudtputest.Fault{Method: "ListNodes", Code: 14, Message: "later"})
	_, err = w.List(t.Context(), project, home)
	class(t, err, reason.Transient)
}

func testListMissingQueue(w world) {
	t := w.t
	plain := order("n")
	plain.Spot = false
	must(t, w.api.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q", Spot: true, Nodes: []cloudtputest.NodeConfig{plain}}))
	want := list(t, w)
	// A queued resource that the listing does not reach is asked for; what cannot be told is left out.
	w.api.Inject(cloudtputest.Fault{Method: "ListQueuedResources", Unreachable: true})
	got := list(t, w)
	if diff := cmp.Diff(want.Slices, got.Slices); diff != "" || !got.Partial {
		t.Errorf("listing (-whole +partial):\n%s", diff)
	}
	w.api.Inject(cloudtputest.Fault{Method: "ListQueuedResources", Unreachable: true})
	w.api.Inject(cloudtputest.Fault{Method: "GetQueuedResource", Code: 14, Message: "later"})
	if l := list(t, w); !l.Partial || len(l.Slices) != 0 {
		t.Errorf("%+v", l)
	}

	// One that comes between the two listings is asked for too, and if that fails the listing is not whole.
	second := func(name string) func() {
		return func() {
			must(t, w.api.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q" + name, Spot: true, Nodes: []cloudtputest.NodeConfig{{Name: name}}}))
		}
	}
	w.api.Inject(cloudtputest.Fault{Method: "ListNodes", Before: second("b")})
	if l := list(t, w); l.Partial || len(l.Slices) != 2 || l.Slices[0].Capacity != events.Spot {
		t.Errorf("%+v", l)
	}
	w.api.Inject(cloudtputest.Fault{Method: "ListNodes", Before: second("c")})
	w.api.Inject(cloudtputest.Fault{Method: "GetQueuedResource", Code: 14, Message: "later"})
	if l := list(t, w); !l.Partial || len(l.Slices) != 2 {
		t.Errorf("%+v", l)
	}
}

func testStaysSpot(w world) {
	t := w.t
	w.api.SetCapacity(home, cloudtputest.Unlimited)
	for i, spec := range []string{
		`{"node":{"acceleratorType":"v6e-8","runtimeVersion":"r","schedulingConfig":{"spot":true}}}`,
		`{"node":{"acceleratorType":"v6e-8","runtimeVersion":"r"},"queued_resource":{"spot":{}}}`,
	} {
		for j, r := range []provider.Ref{ref(fmt.Sprintf("n%d", i)), queuedRef(fmt.Sprintf("m%d", i), fmt.Sprintf("q%d", i))} {
			_, err := w.Create(t.Context(), r, []byte(spec), nil, requestID(10*i+j))
			must(t, err)
			w.clock.Advance(10 * time.Minute)
			if s := condition(t, w, r, evidence.Ready); s.Capacity != events.Spot {
				t.Errorf("%s of %s is not Spot", r.Name, spec)
			}
			if q := w.api.QueuedResource(home, r.QueuedResource); q != nil && q.Spot == nil {
				t.Errorf("%s of %s is no Spot request", r.QueuedResource, spec)
			}
		}
	}
}

func testCreate(w world) {
	t := w.t
	movable := order("n")
	movable.Order.DataDisks = nil
	_, err := w.api.AddNode(movable)
	must(t, err)
	old := read(t, w, ref("n"))

	r := provider.Ref{Project: project, Zone: away, Name: "n"}
	op, err := w.Create(t.Context(), r, whole(t, old), map[string]string{events.LabelIncident: "i-2", events.LabelWorkload: "n"}, requestID(1))
	must(t, err)
	if s := condition(t, w, r, evidence.Creating); !s.Incarnation.Known() || s.Incarnation.Same(old.Incarnation) || s.Workers != 4 {
		t.Errorf("%+v", s)
	}
	w.clock.Advance(5 * time.Minute)
	if f := ended(t, w, away, op); f != nil {
		t.Errorf("the operation failed: %+v", f)
	}
	s := condition(t, w, r, evidence.Ready)
	labels := map[string]string{events.LabelPolicy: "spot", events.LabelIncident: "i-2", events.LabelWorkload: "n"}
	if diff := cmp.Diff(labels, s.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	n := w.api.Node(away, "n")
	if !n.AutocheckpointEnabled || n.Metadata["startup-script"] != "token=s3cret" || n.Metadata["ssh-keys"] != "" {
		t.Errorf("%+v", n)
	}

	// Without the label that Pitstop adds, what came out is what went in.
	bare := provider.Ref{Project: project, Zone: away, Name: "m"}
	_, err = w.Create(t.Context(), bare, whole(t, old), nil, requestID(2))
	must(t, err)
	w.clock.Advance(5 * time.Minute)
	if s := condition(t, w, bare, evidence.Ready); string(whole(t, s)) != string(whole(t, old)) || s.SpecHash == old.SpecHash {
		t.Errorf("specification (-want +got):\n%s", cmp.Diff(string(old.Spec), string(s.Spec)))
	}

	// In another region the subnetwork is that region's, and for the API to choose.
	w.api.SetCapacity(barren, 1)
	far := provider.Ref{Project: project, Zone: barren, Name: "far"}
	_, err = w.Create(t.Context(), far, whole(t, old), nil, requestID(5))
	class(t, err, reason.Invalid)
	spec, err := cloudtpu.Fit(whole(t, old), cloudtpu.Move{From: home, To: barren})
	must(t, err)
	_, err = w.Create(t.Context(), far, spec, nil, requestID(6))
	must(t, err)
	if n := w.api.Node(barren, "far"); n.NetworkConfig.Subnetwork != "" {
		t.Errorf("subnetwork %s", n.NetworkConfig.Subnetwork)
	}

	_, err = w.Create(t.Context(), ref("x"), []byte("{}"), nil, requestID(3))
	class(t, err, reason.Invalid)
	_, err = w.Create(t.Context(), ref("x"), []byte(`{"node":{"acceleratorType":"v6e-8"}}`), nil, requestID(4))
	class(t, err, reason.Invalid)
}

// testElsewhere: no zone takes what names something of another one.
func testElsewhere(w world) {
	t := w.t
	w.api.SetCapacity(away, 3)
	for i, c := range []struct{ node, queued string }{
		{node: `"dataDisks":[{"sourceDisk":"projects/demo/zones/us-west4-a/disks/d"}]`},
		{node: `"schedulingConfig":{"reservationName":"projects/demo/locations/us-west4-a/reservations/r"}`},
		{node: `"networkConfig":{"subnetwork":"projects/demo/regions/us-east5/subnetworks/s"}`},
		{node: `"description":"x"`, queued: `,"queued_resource":{"guaranteed":{"reserved":true},"reservationName":"projects/demo/locations/us-west4-a/reservations/r"}`},
	} {
		r := provider.Ref{Project: project, Zone: away, Name: "n"}
		if c.queued != "" {
			r.QueuedResource = "q"
		}
		spec := `{"node":{"acceleratorType":"v5litepod-16","runtimeVersion":"r",` + c.node + `}` + c.queued + `}`
		_, err := w.Create(t.Context(), r, []byte(spec), nil, requestID(i))
		if f := provider.Failure(err); f == nil || f.Class != reason.Invalid && f.Class != reason.NotFound {
			t.Errorf("%s: %v, want it refused", spec, err)
		}
	}
}

func testRequestID(w world) {
	t := w.t
	_, err := w.api.AddNode(order("n"))
	must(t, err)
	s := read(t, w, ref("n"))
	for range 2 {
		first, err := w.Delete(t.Context(), ref("n"), requestID(1))
		must(t, err)
		second, err := w.Delete(t.Context(), ref("n"), requestID(1))
		must(t, err)
		if first != second {
			t.Errorf("one deletion is two operations: %s, %s", first, second)
		}
		w.clock.Advance(2 * time.Minute) // the second time round the node is gone, and the operation is remembered
	}
	_, err = w.Delete(t.Context(), ref("n"), requestID(2))
	class(t, err, reason.NotFound)

	first, err := w.Create(t.Context(), ref("n"), whole(t, s), nil, requestID(3))
	must(t, err)
	second, err := w.Create(t.Context(), ref("n"), whole(t, s), nil, requestID(3))
	must(t, err)
	if first != second {
		t.Errorf("one creation is two operations: %s, %s", first, second)
	}
	_, err = w.Create(t.Context(), ref("n"), whole(t, s), nil, requestID(4))
	class(t, err, reason.Exists)
}

// readySpec is the specification of a node that is there.
func readySpec(t *testing.T, w world) []byte {
	t.Helper()
	c := w.order("there")
	if !w.legacy {
		c.Order.DataDisks, c.Order.NetworkConfig = nil, nil // every zone takes it
	}
	_, err := w.api.AddNode(c)
	must(t, err)
	return whole(t, read(t, w, w.ref("there")))
}

func testQueueLife(w world) {
	t := w.t
	must(t, w.api.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q", Spot: true, Nodes: []cloudtputest.NodeConfig{order("n")}}))
	r := queuedRef("n", "q")
	old := condition(t, w, ref("n"), evidence.Ready)

	// A loss suspends it; the nodes go and the name stays.
	must(t, w.api.Preempt(home, "n"))
	if s := condition(t, w, r, evidence.Lost); s.State != "PREEMPTED" || !s.Incarnation.Same(old.Incarnation) {
		t.Errorf("%+v", s)
	}
	w.clock.Advance(2 * time.Minute)
	if s := condition(t, w, r, evidence.Lost); s.State != "SUSPENDED (queued resource)" || s.Incarnation.Known() {
		t.Errorf("%+v", s)
	}
	condition(t, w, ref("n"), evidence.Gone)
	_, err := w.Create(t.Context(), r, whole(t, old), nil, requestID(1))
	class(t, err, reason.Exists)

	// It is deleted and, for a while, still there.
	op, err := w.Delete(t.Context(), r, requestID(2))
	must(t, err)
	condition(t, w, r, evidence.Deleting)
	w.clock.Advance(5 * time.Second)
	if f := ended(t, w, home, op); f != nil {
		t.Errorf("failure %+v", f)
	}
	condition(t, w, r, evidence.Deleting)
	w.clock.Advance(20 * time.Second)
	condition(t, w, r, evidence.Gone)

	// It waits for capacity, is provisioned, and cannot be deleted then.
	w.api.SetCapacity(home, 0)
	op, err = w.Create(t.Context(), r, whole(t, old), map[string]string{events.LabelIncident: "i-9"}, requestID(3))
	must(t, err)
	w.clock.Advance(time.Hour)
	if f := ended(t, w, home, op); f != nil {
		t.Errorf("failure %+v", f)
	}
	if s := condition(t, w, r, evidence.Creating); s.State != "WAITING_FOR_RESOURCES (queued resource)" || s.Labels[events.LabelIncident] != "i-9" || s.Capacity != events.Spot {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff(map[string]string{"n": "creating, WAITING_FOR_RESOURCES (queued resource)"}, states(list(t, w))); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
	w.api.SetCapacity(home, 1)
	if s := condition(t, w, r, evidence.Creating); s.State != "CREATING" || !s.Incarnation.Known() {
		t.Errorf("%+v", s)
	}
	_, err = w.Delete(t.Context(), r, requestID(4))
	class(t, err, reason.NotInState)
	if !strings.Contains(err.Error(), "DeleteQueuedResource is not supported when state is PROVISIONING") {
		t.Error(err)
	}
	w.clock.Advance(5 * time.Minute)
	s := condition(t, w, r, evidence.Ready)
	if string(s.Spec) != string(old.Spec) {
		t.Errorf("specification (-want +got):\n%s", cmp.Diff(string(old.Spec), string(s.Spec)))
	}

	// Its owner deletes the node: that is no loss.
	must(t, w.api.OwnerDelete(home, "n", "ada@example.com"))
	w.clock.Advance(2 * time.Minute)
	if s := condition(t, w, r, evidence.Stopped); s.State != "SUSPENDED (queued resource, by its user)" {
		t.Errorf("%+v", s)
	}

	// While it is active it goes with its nodes.
	_, err = w.Delete(t.Context(), r, requestID(5))
	must(t, err)
	w.clock.Advance(time.Minute)
	_, err = w.Create(t.Context(), r, whole(t, old), nil, requestID(6))
	must(t, err)
	w.clock.Advance(10 * time.Minute)
	condition(t, w, r, evidence.Ready)
	_, err = w.Delete(t.Context(), r, requestID(7))
	must(t, err)
	condition(t, w, r, evidence.Deleting)
	w.clock.Advance(110 * time.Second)
	if s := condition(t, w, r, evidence.Deleting); s.Incarnation.Known() {
		t.Errorf("%+v", s)
	}
	w.clock.Advance(20 * time.Second)
	condition(t, w, r, evidence.Gone)
}

func testQueueFails(w world) {
	t := w.t
	must(t, w.api.AddQueuedResource(cloudtputest.QueuedConfig{
		Zone: home, Name: "q", State: "WAITING_FOR_RESOURCES", Nodes: []cloudtputest.NodeConfig{order("n")},
		Order: &api.QueuedResource{QueueingPolicy: &api.QueueingPolicy{ValidUntilDuration: "10s"}},
	}))
	r := queuedRef("n", "q")
	condition(t, w, r, evidence.Creating)
	w.clock.Advance(time.Minute)
	if s := condition(t, w, r, evidence.Lost); s.State != "FAILED (queued resource: The request expired: it could not be fulfilled within 10s.)" {
		t.Errorf("%+v", s)
	}
	must(t, w.api.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "p", State: "PROVISIONING", Nodes: []cloudtputest.NodeConfig{order("m")}}))
	r = queuedRef("m", "p")
	if s := condition(t, w, r, evidence.Creating); s.State != "CREATING" {
		t.Errorf("%+v", s)
	}
	must(t, w.api.FailQueuedResource(home, "p", 13, "GCE_STOCKOUT [EID: 0x1]"))
	if s := condition(t, w, r, evidence.Lost); s.State != "FAILED (queued resource: GCE_STOCKOUT)" {
		t.Errorf("%+v", s)
	}
}

func testMaintain(w world) {
	t := w.t
	_, err := w.api.AddNode(order("n"))
	must(t, err)
	_, err = w.Maintain(t.Context(), []provider.Ref{ref("n")})
	class(t, err, reason.NotInState)
	notice := events.Notice{Status: events.NoticePending, WindowStart: start.Add(time.Hour), WindowEnd: start.Add(2 * time.Hour)}
	must(t, w.api.Announce(home, "n", notice))
	_, err = w.Maintain(t.Context(), []provider.Ref{ref("n")})
	class(t, err, reason.NotInState)
	notice.CanReschedule = true
	must(t, w.api.Announce(home, "n", notice))
	small := order("small")
	small.Accelerator, small.Notice = "v6e-4", &notice
	_, err = w.api.AddNode(small)
	must(t, err)
	_, err = w.Maintain(t.Context(), []provider.Ref{ref("small")})
	class(t, err, reason.NotInState)
	op, err := w.Maintain(t.Context(), []provider.Ref{ref("n")})
	must(t, err)
	if s := condition(t, w, ref("n"), evidence.Unhealthy); s.Notice == nil || s.Notice.Status != events.NoticeOngoing {
		t.Errorf("%+v", s)
	}
	w.clock.Advance(20 * time.Minute)
	if f := ended(t, w, home, op); f != nil {
		t.Errorf("failure %+v", f)
	}
	if s := condition(t, w, ref("n"), evidence.Ready); s.Notice != nil {
		t.Errorf("%+v", s)
	}
}

func testMaintainQueued(w world) {
	t := w.t
	notice := events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: start.Add(time.Hour), WindowEnd: start.Add(2 * time.Hour)}
	one, two := order("n"), order("m")
	one.Notice, two.Notice = &notice, &notice
	must(t, w.api.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q", Nodes: []cloudtputest.NodeConfig{one, two}}))
	_, err := w.Maintain(t.Context(), []provider.Ref{queuedRef("n", "q"), queuedRef("x", "q")})
	class(t, err, reason.NotFound)
	for _, held := range [][]provider.Ref{nil, {queuedRef("n", "q"), ref("m")}, {ref("n"), ref("m")}, {queuedRef("n", "q"), queuedRef("m", "p")}} {
		_, err = w.Maintain(t.Context(), held)
		class(t, err, reason.Invalid)
	}
	condition(t, w, ref("n"), evidence.Ready)
	w.calls.since()
	_, err = w.Maintain(t.Context(), []provider.Ref{queuedRef("n", "q"), queuedRef("m", "q")})
	must(t, err)
	if diff := cmp.Diff(map[string]int{"PerformMaintenanceQueuedResource": 1}, w.calls.since()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	condition(t, w, ref("n"), evidence.Unhealthy)
	condition(t, w, ref("m"), evidence.Unhealthy)
	_, err = w.Maintain(t.Context(), []provider.Ref{queuedRef("n", "q")})
	class(t, err, reason.NotInState)
}

func testMetadata(w world) {
	t := w.t
	_, err := w.api.AddNode(order("n"))
	must(t, err)
	want := maps.Clone(order("n").Metadata)
	for i, value := range []string{"one", "two", "two"} {
		w.calls.since()
		must(t, w.SetMetadata(t.Context(), ref("n"), events.MetadataRequest, value))
		want[events.MetadataRequest] = value
		if diff := cmp.Diff(want, w.api.Metadata(home, "n")); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}
		if n := w.api.Node(home, "n"); n.Labels[events.LabelPolicy] != "spot" || n.Description != "trains" || len(n.Tags) != 1 {
			t.Errorf("more than the metadata has changed: %+v", n)
		}
		calls := map[string]int{"GetNode": 1, "UpdateNode": 1}
		if i == 2 {
			calls = map[string]int{"GetNode": 1}
		}
		if diff := cmp.Diff(calls, w.calls.since()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	}
	bare := cloudtputest.NodeConfig{Zone: away, Name: "m"}
	_, err = w.api.AddNode(bare)
	must(t, err)
	must(t, w.SetMetadata(t.Context(), provider.Ref{Project: project, Zone: away, Name: "m"}, "k", "v"))
	if diff := cmp.Diff(map[string]string{"k": "v"}, w.api.Metadata(away, "m")); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	class(t, w.SetMetadata(t.Context(), ref("x"), "k", "v"), reason.NotFound)
	must(t, w.api.Preempt(home, "n"))
	class(t, w.SetMetadata(t.Context(), ref("n"), "k", "v"), reason.NotInState)
}

func TestALabelIsSetAndLosesNobodyElses(t *testing.T) {
	w := newWorld(t, way{})
	cloud, ok := w.Provider.(*cloudtpu.Client)
	if !ok {
		t.Fatalf("the provider is a %T", w.Provider)
	}
	_, err := w.api.AddNode(order("n"))
	must(t, err)
	want := maps.Clone(order("n").Labels)
	for _, value := range []string{"night", "night", ""} {
		must(t, cloud.SetLabel(t.Context(), ref("n"), events.LabelPolicy, value))
		if want[events.LabelPolicy] = value; value == "" {
			delete(want, events.LabelPolicy)
		}
		if diff := cmp.Diff(want, w.api.Node(home, "n").Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(map[string]int{"GetNode": 3, "UpdateNode": 2}, w.calls.since()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	must(t, w.api.Preempt(home, "n"))
	class(t, cloud.SetLabel(t.Context(), ref("n"), events.LabelPolicy, "spot"), reason.NotInState)
}

func TestAMaintenanceEventIsSimulated(t *testing.T) {
	w := newWorld(t, way{})
	cloud, ok := w.Provider.(*cloudtpu.Client)
	if !ok {
		t.Fatalf("the provider is a %T", w.Provider)
	}
	_, err := w.api.AddNode(order("n"))
	must(t, err)
	op, err := cloud.Simulate(t.Context(), ref("n"))
	if must(t, err); op == "" {
		t.Error("no operation is named")
	}
	condition(t, w, ref("n"), evidence.Unhealthy)
	_, err = cloud.Simulate(t.Context(), ref("x"))
	class(t, err, reason.NotFound)
}

func testMetadataRace(w world) {
	t := w.t
	_, err := w.api.AddNode(order("n"))
	must(t, err)
	// Somebody logs in meanwhile: their change goes first and ours is refused.
	w.api.Inject(cloudtputest.Fault{
		Method: "UpdateNode", Code: 10, Message: "unable to queue the operation",
		Before: func() { must(t, w.api.SetMetadata(home, "n", "ssh-keys", "you", "ada@example.com")) },
	})
	w.calls.since()
	must(t, w.SetMetadata(t.Context(), ref("n"), events.MetadataRequest, "save"))
	want := maps.Clone(order("n").Metadata)
	want["ssh-keys"], want[events.MetadataRequest] = "you", "save"
	if diff := cmp.Diff(want, w.api.Metadata(home, "n")); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"GetNode": 2, "UpdateNode": 3}, w.calls.since()); diff != "" {
		t.Errorf("calls, one of them theirs (-want +got):\n%s", diff)
	}

	defer w.api.Inject(cloudtputest.Fault{Method: "UpdateNode", Times: -1, Code: 10, Message: "unable to queue the operation"})()
	class(t, w.SetMetadata(t.Context(), ref("n"), events.MetadataRequest, "again"), reason.Busy)
	if diff := cmp.Diff(map[string]int{"GetNode": 5, "UpdateNode": 5}, w.calls.since()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, w.api.Metadata(home, "n")); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func testHosts(w world) {
	t := w.t
	c := order("n")
	c.Group = "t1v-n-9472280f"
	_, err := w.api.AddNode(c)
	must(t, err)
	must(t, w.api.SetGuestAttribute(home, "n", 0, "pitstop", "detail", "x"))
	got, err := w.Hosts(t.Context(), ref("n"))
	must(t, err)
	want := []string{"t1v-n-9472280f-w-0", "t1v-n-9472280f-w-1", "t1v-n-9472280f-w-2", "t1v-n-9472280f-w-3"}
	if diff := cmp.Diff(want, got); diff != "" || !slices.Equal(got, w.api.Hosts(home, "n")) {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	w.api.BlockGuestAttributes(true)
	_, err = w.Hosts(t.Context(), ref("n"))
	class(t, err, reason.Permission)
	if got, err := w.Hosts(t.Context(), ref("x")); err != nil || got != nil {
		t.Errorf("x: %v, %v", got, err)
	}
	w.api.BlockGuestAttributes(false)
	must(t, w.api.Preempt(home, "n"))
	if got, err := w.Hosts(t.Context(), ref("n")); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	w.api.Inject(cloudtputest.Fault{Method: "GetGuestAttributes", Code: 14, Message: "later"})
	_, err = w.Hosts(t.Context(), ref("n"))
	class(t, err, reason.Transient)
}

func testFailures(w world) {
	t := w.t
	_, err := w.api.AddNode(w.order("n"))
	must(t, err)
	for name, c := range map[string]struct {
		fault cloudtputest.Fault
		want  reason.FailureClass
	}{
		"too many calls":      {cloudtputest.Fault{Code: 8, Message: "Too many requests."}, reason.Transient},
		"a proxy's page":      {cloudtputest.Fault{HTTP: 404}, reason.Transient},
		"a bad gateway":       {cloudtputest.Fault{HTTP: 502}, reason.Transient},
		"no connection":       {cloudtputest.Fault{LoseRequest: true}, reason.Transient},
		"an internal error":   {cloudtputest.Fault{Code: 13, Message: "oops"}, reason.Transient},
		"a permission":        {cloudtputest.Fault{Code: 7, Message: "no"}, reason.Permission},
		"two at a time":       {cloudtputest.Fault{Code: 10, Message: "unable to queue the operation"}, reason.Busy},
		"an unknown code":     {cloudtputest.Fault{Code: 77, Message: "what"}, reason.Transient},
		"another HTTP status": {cloudtputest.Fault{Code: 9, Message: "not now", HTTP: 412}, reason.NotInState},
	} {
		t.Run(name, func(t *testing.T) {
			c.fault.Times = -1 // a client may try a lost reading again on another connection
			defer w.api.Inject(c.fault)()
			_, err := w.Delete(t.Context(), w.ref("n"), requestID(1))
			class(t, err, c.want)
			if c.fault.HTTP == 404 || c.want == reason.Transient {
				_, err := w.Read(t.Context(), w.ref("n"))
				class(t, err, reason.Transient)
			}
		})
	}
	condition(t, w, w.ref("n"), evidence.Ready)
}

func TestEvidence(t *testing.T) {
	w := newWorld(t, way{})
	_, err := w.api.AddNode(order("n"))
	must(t, err)
	must(t, w.api.AddSymptom(home, "n", "PROJECT_ABUSE", 0))
	must(t, w.api.Announce(home, "n", events.Notice{Status: events.NoticePending}))
	s := read(t, w, ref("n"))
	s.At = start
	want := evidence.Read{
		Origin: evidence.Origin{ID: "message", Time: start, Rank: events.RankReading}, Slice: "n", Zone: home,
		Condition: evidence.Ready, Incarnation: s.Incarnation, State: "READY, PROJECT_ABUSE", Notice: s.Notice, Incident: "i-1",
		Abuse: true, Directory: "gs://b/x", Facts: evidence.Facts{
			Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Capacity: events.Spot, Spec: s.SpecHash, Label: "spot", Account: "train@demo.iam.gserviceaccount.com",
		},
	}
	if diff := cmp.Diff(want, s.Evidence("message")); diff != "" || s.Notice == nil {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
}

func TestNewRefusesWhatItCannotUse(t *testing.T) {
	if _, err := cloudtpu.New(t.Context(), option.WithAPIKey("k"), option.WithoutAuthentication()); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
}

// testMultislice: several nodes come by one order, alike where they were asked for alike, each by its name otherwise.
func testMultislice(w world) {
	t := w.t
	w.api.SetCapacity(home, 4)
	alike := `{"node":{"acceleratorType":"v6e-8","runtimeVersion":"r"},"queued_resource":{"spot":{}},"multi_node_params":{"nodeCount":2,"nodeIdPrefix":"m"}}`
	single := `{"node":{"acceleratorType":"v6e-8","runtimeVersion":"r"},"queued_resource":{"spot":{}}}`
	for i, c := range []struct {
		names, specs []string
		want         []api.NodeSpec
	}{
		{[]string{"m-0", "m-1"}, []string{alike, alike}, []api.NodeSpec{{MultiNodeParams: &api.MultiNodeParams{NodeCount: 2, NodeIdPrefix: "m"}}}},
		{[]string{"m-1"}, []string{alike}, []api.NodeSpec{{NodeId: "m-1"}}},
		{[]string{"a", "b"}, []string{single, single}, []api.NodeSpec{{NodeId: "a"}, {NodeId: "b"}}},
		{[]string{"a", "m-0", "m-1"}, []string{single, alike, alike}, []api.NodeSpec{{NodeId: "a"}, {MultiNodeParams: &api.MultiNodeParams{NodeCount: 2, NodeIdPrefix: "m"}}}},
	} {
		var specs [][]byte
		for _, s := range c.specs {
			specs = append(specs, []byte(s))
		}
		spec, err := cloudtpu.Together(c.names, specs)
		must(t, err)
		r := queuedRef(c.names[0], "q")
		_, err = w.Create(t.Context(), r, spec, map[string]string{events.LabelIncident: "i-1"}, requestID(10*i))
		must(t, err)
		var got []api.NodeSpec
		for _, s := range w.api.QueuedResource(home, "q").Tpu.NodeSpec {
			got = append(got, api.NodeSpec{NodeId: s.NodeId, MultiNodeParams: s.MultiNodeParams})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v asked for (-want +got):\n%s", c.names, diff)
		}
		w.clock.Advance(10 * time.Minute)
		for n, name := range c.names {
			s := condition(t, w, queuedRef(name, "q"), evidence.Ready)
			if len(s.With) != len(c.names)-1 || s.Ordered.IsZero() || s.Labels[events.LabelIncident] != "i-1" {
				t.Errorf("%s comes with %v, ordered at %s, labels %v", name, s.With, s.Ordered, s.Labels)
			}
			if again := string(s.Spec); len(c.names) > 1 && strings.Contains(c.specs[n], "multi_node") != strings.Contains(again, "multi_node") {
				t.Errorf("%s is kept as %s", name, again)
			}
		}
		_, err = w.Delete(t.Context(), r, requestID(10*i+1))
		must(t, err)
		w.clock.Advance(10 * time.Minute)
		condition(t, w, r, evidence.Gone)
	}
	spec, err := cloudtpu.Together([]string{"a", "b"}, [][]byte{[]byte(single), []byte(single)})
	must(t, err)
	_, err = w.Create(t.Context(), ref("a"), spec, nil, requestID(99))
	class(t, err, reason.Invalid)
}
