package cloudtputest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	tpu "cloud.google.com/go/tpu/apiv1"
	"cloud.google.com/go/tpu/apiv1/tpupb"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

// legacyClient is a client of v1 without a socket.
func legacyClient(t *testing.T, b bench) *tpu.Client {
	t.Helper()
	conn, err := b.Connect(t.Context(), nil)
	must(t, err)
	c, err := tpu.NewClient(t.Context(), option.WithGRPCConn(conn))
	must(t, err)
	return c
}

// legacySocket is a client of v1 over a socket.
func legacySocket(t *testing.T, b bench) *tpu.Client {
	t.Helper()
	s := httptest.NewUnstartedServer(b)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	c, err := tpu.NewClient(t.Context(), option.WithEndpoint(strings.TrimPrefix(s.URL, "http://")), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// all reads a listing to its end.
func all[T any](t *testing.T, next func() (T, error)) (items []T) {
	t.Helper()
	for {
		item, err := next()
		if errors.Is(err, iterator.Done) {
			return items
		}
		must(t, err)
		items = append(items, item)
	}
}

// denied fails the test unless a call of v1 was refused with that code.
func denied(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestEveryMethodOfTheFormerVersionAnswers calls every one of LegacyMethods over a socket, and one that is none.
func TestEveryMethodOfTheFormerVersionAnswers(t *testing.T) {
	b := newBench(t, cloudtputest.Config{PageSize: 1, Mingled: true})
	l := legacySocket(t, b)
	ctx := t.Context()
	_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "vm", Spot: true, Labels: map[string]string{"a": "b"}})
	must(t, err)
	const everywhere = "projects/demo/locations/-"
	nodes := func() (found []*tpupb.Node) {
		t.Helper()
		for _, zone := range []string{everywhere, parent} {
			found = all(t, l.ListNodes(ctx, &tpupb.ListNodesRequest{Parent: zone}).Next)
		}
		return found
	}
	operations := func() (found []*longrunningpb.Operation) {
		t.Helper()
		for _, zone := range []string{everywhere, parent} {
			found = all(t, l.ListOperations(ctx, &longrunningpb.ListOperationsRequest{Name: zone}).Next)
		}
		return found
	}
	const node = parent + "/nodes/n"
	order := func(edit func(*tpupb.Node)) *tpupb.CreateNodeRequest {
		n := &tpupb.Node{
			AcceleratorType: "v3-8", TensorflowVersion: "2.12.0", UseServiceNetworking: true, Labels: map[string]string{"a": "b"},
			SchedulingConfig: &tpupb.SchedulingConfig{Preemptible: true}, Description: "d", Network: "tpus",
		}
		edit(n)
		return &tpupb.CreateNodeRequest{Parent: parent, NodeId: "n", Node: n}
	}
	created, err := l.CreateNode(ctx, order(func(*tpupb.Node) {}))
	must(t, err)
	if len(nodes()) != 2 || created.Done() {
		t.Errorf("%v, done %v", nodes(), created.Done())
	}
	b.clock.Advance(time.Hour)
	m, err := created.Metadata()
	must(t, err)
	if m.Verb != "create" || m.Target != node {
		t.Errorf("it is made with %v", m)
	}
	must(t, b.AddSymptom(home, "n", "OUT_OF_MEMORY", 0))
	n, err := l.GetNode(ctx, &tpupb.GetNodeRequest{Name: node})
	must(t, err)
	if n.State != tpupb.Node_READY || n.Health != tpupb.Node_HEALTHY || n.ApiVersion != tpupb.Node_V1 || n.CidrBlock == "" || !n.SchedulingConfig.Preemptible || len(n.NetworkEndpoints) != 1 ||
		len(n.Symptoms) != 1 || n.Symptoms[0].SymptomType != tpupb.Symptom_OUT_OF_MEMORY || !n.CreateTime.AsTime().Equal(start) {
		t.Errorf("%v", n)
	}
	must(t, b.Stop(home, "n", ada))
	b.clock.Advance(time.Hour)
	_, err = l.StartNode(ctx, &tpupb.StartNodeRequest{Name: node})
	must(t, err)
	b.clock.Advance(time.Hour)
	must(t, b.HostError(home, "n", -1))
	must(t, b.Preempt(home, "n"))
	if _, err := l.DeleteNode(ctx, &tpupb.DeleteNodeRequest{Name: parent + "/nodes/vm"}); err == nil {
		t.Error("a TPU VM was deleted through v1")
	}
	if _, err := b.l.Nodes.Delete(node).Do(); err == nil {
		t.Error("a legacy node was deleted through v2alpha1")
	}
	// Both versions show the operations of each other here, and the metadata says of which one an operation is.
	_, err = b.l.Nodes.Delete(parent + "/nodes/vm").Do()
	must(t, err)
	_, err = l.DeleteNode(ctx, &tpupb.DeleteNodeRequest{Name: node})
	must(t, err)
	b.clock.Advance(time.Hour)
	verbs := map[string]string{}
	for _, o := range operations() {
		var m tpupb.OperationMetadata
		_, kind, _ := strings.Cut(o.Metadata.TypeUrl, "google.cloud.tpu.")
		must(t, proto.Unmarshal(o.Metadata.Value, &m))
		verbs[kind] = m.Verb
		if !o.Done || o.GetResponse() == nil || !m.EndTime.AsTime().After(m.CreateTime.AsTime()) {
			t.Errorf("operation %v", o)
		}
	}
	if len(verbs) != 2 || verbs["v1.OperationMetadata"] != "delete" || verbs["v2alpha1.OperationMetadata"] != "delete" {
		t.Errorf("operations %v", verbs)
	}
	b.Inject(cloudtputest.Fault{Method: "ListNodes", Legacy: true, Unreachable: true})
	it := l.ListNodes(ctx, &tpupb.ListNodesRequest{Parent: parent})
	if _, err := it.Next(); !errors.Is(err, iterator.Done) {
		t.Errorf("error %v", err)
	}
	if list, ok := it.Response.(*tpupb.ListNodesResponse); !ok || !slices.Equal(list.Unreachable, []string{parent}) {
		t.Errorf("%v", it.Response)
	}
	for _, bad := range []func(*tpupb.Node){
		func(n *tpupb.Node) { n.TensorflowVersion = "" },
		func(n *tpupb.Node) { n.AcceleratorType = "" },
		func(n *tpupb.Node) { n.UseServiceNetworking, n.CidrBlock = false, "10.0.0.0/28" },
		func(n *tpupb.Node) { n.CidrBlock = "10.0.0.0/29" },
	} {
		_, err := l.CreateNode(ctx, order(bad))
		denied(t, err, codes.InvalidArgument)
	}
	_, err = l.StopNode(ctx, &tpupb.StopNodeRequest{Name: node})
	denied(t, err, codes.Unimplemented)
}

// TestFaultsOfTheFormerVersion checks that a call by gRPC meets the same faults as one over HTTP.
func TestFaultsOfTheFormerVersion(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	l := legacyClient(t, b)
	const node = parent + "/nodes/n"
	must(t, b.OwnerCreate(cloudtputest.NodeConfig{Zone: home, Name: "n", Accelerator: "v3-8", Legacy: &tpupb.Node{}}, ada))
	b.clock.Advance(time.Hour)
	read := func() error {
		_, err := l.GetNode(t.Context(), &tpupb.GetNodeRequest{Name: node})
		return err
	}
	for _, c := range []struct {
		fault cloudtputest.Fault
		want  codes.Code
	}{
		{cloudtputest.Fault{Code: 7, Message: "no"}, codes.PermissionDenied},
		{cloudtputest.Fault{HTTP: http.StatusNotFound}, codes.Unimplemented},
		{cloudtputest.Fault{LoseRequest: true}, codes.Unavailable},
		{cloudtputest.Fault{LoseAnswer: true}, codes.Unavailable},
		{cloudtputest.Fault{Legacy: true, Method: "ListNodes", Code: 7}, codes.OK},
	} {
		withdraw := b.Inject(c.fault)
		denied(t, read(), c.want)
		withdraw()
		must(t, read())
	}
	for _, c := range []struct {
		fault cloudtputest.Fault
		there bool
	}{{cloudtputest.Fault{LoseRequest: true}, true}, {cloudtputest.Fault{LoseAnswer: true}, false}} {
		b.Inject(c.fault)
		_, err := l.DeleteNode(t.Context(), &tpupb.DeleteNodeRequest{Name: node})
		denied(t, err, codes.Unavailable)
		b.clock.Advance(time.Hour)
		if (read() == nil) != c.there {
			t.Errorf("%+v: it is there: %v", c.fault, !c.there)
		}
	}
}

// TestACallerMayStandAroundEachCallOfTheFormerVersion: it sees the call over HTTP that stands for the one by gRPC, and may refuse it.
func TestACallerMayStandAroundEachCallOfTheFormerVersion(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	var seen []cloudtputest.Request
	busy := status.Error(codes.Aborted, "busy")
	conn, err := b.Connect(t.Context(), func(_ context.Context, r cloudtputest.Request, next func() error) error {
		if r.Method == http.MethodPost && r.Place() != (view.Place{Zone: home, Accelerator: "v3-8", Capacity: events.OnDemand}) {
			t.Errorf("it asks for %+v", r.Place())
		}
		r.Body = nil
		if seen = append(seen, r); r.Method == http.MethodDelete {
			return busy
		}
		return next()
	})
	must(t, err)
	l, err := tpu.NewClient(t.Context(), option.WithGRPCConn(conn))
	must(t, err)
	_, err = l.CreateNode(t.Context(), &tpupb.CreateNodeRequest{Parent: parent, NodeId: "n", Node: &tpupb.Node{AcceleratorType: "v3-8", TensorflowVersion: "2.12.0"}})
	must(t, err)
	_, err = l.DeleteNode(t.Context(), &tpupb.DeleteNodeRequest{Name: parent + "/nodes/n"})
	if !errors.Is(err, busy) {
		t.Errorf("error %v", err)
	}
	if len(all(t, l.ListNodes(t.Context(), &tpupb.ListNodesRequest{Parent: parent}).Next)) != 1 {
		t.Error("the refused call took effect")
	}
	want := []cloudtputest.Request{
		{Method: http.MethodPost, Path: "/v1/" + parent + "/nodes", Query: "alt=json&nodeId=n&prettyPrint=false"},
		{Method: http.MethodDelete, Path: "/v1/" + parent + "/nodes/n", Query: "alt=json&prettyPrint=false"},
		{Method: http.MethodGet, Path: "/v1/" + parent + "/nodes", Query: "alt=json&pageToken=&prettyPrint=false"},
	}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("calls %q, want %q", seen, want)
	}
}

// TestTheFormerVersionKnowsItsCaller by the token of the call.
func TestTheFormerVersionKnowsItsCaller(t *testing.T) {
	b := newBench(t, cloudtputest.Config{Principal: "default@example.com"})
	l := legacyClient(t, b)
	for _, ctx := range []context.Context{t.Context(), metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+ada)} {
		_, err := l.GetNode(ctx, &tpupb.GetNodeRequest{Name: parent + "/nodes/n"})
		denied(t, err, codes.NotFound)
	}
	var who []string
	for _, e := range *b.told {
		who = append(who, e.Method+" by "+e.Principal)
	}
	if !slices.Equal(who, []string{"GetNode by default@example.com", "GetNode by " + ada}) {
		t.Errorf("calls %q", who)
	}
}

// TestEachVersionShowsItsOwnNodes unless it is set to show all.
func TestEachVersionShowsItsOwnNodes(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	l := legacyClient(t, b)
	_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "vm"})
	must(t, err)
	must(t, b.OwnerCreate(cloudtputest.NodeConfig{Zone: home, Name: "n", Accelerator: "v3-8", Legacy: &tpupb.Node{}}, ada))
	former := all(t, l.ListNodes(t.Context(), &tpupb.ListNodesRequest{Parent: parent}).Next)
	present, err := b.l.Nodes.List(parent).Do()
	must(t, err)
	if len(former) != 1 || former[0].Name != parent+"/nodes/n" || len(present.Nodes) != 1 || present.Nodes[0].Name != parent+"/nodes/vm" {
		t.Errorf("%+v and %+v", former, present.Nodes)
	}
	_, err = b.l.Nodes.Get(parent + "/nodes/n").Do()
	refused(t, err, http.StatusNotFound, "nodes/n")
	_, err = l.GetNode(t.Context(), &tpupb.GetNodeRequest{Name: parent + "/nodes/vm"})
	denied(t, err, codes.NotFound)
	ops, err := b.l.Operations.List(parent).Do()
	must(t, err)
	if len(ops.Operations) != 0 {
		t.Errorf("%+v", ops.Operations)
	}
}

// TestTheLogOfALegacyNode: its calls are those of v1, and nobody's log has its machines.
func TestTheLogOfALegacyNode(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	must(t, b.OwnerCreate(cloudtputest.NodeConfig{Zone: home, Name: "n", Accelerator: "v3-8", Spot: true, Legacy: &tpupb.Node{}}, ada))
	b.clock.Advance(time.Hour)
	must(t, b.HostError(home, "n", time.Minute))
	b.clock.Advance(time.Hour)
	must(t, b.Announce(home, "n", events.Notice{Status: events.NoticePending, WindowStart: start}))
	must(t, b.BeginMaintenance(home, "n", time.Minute))
	b.clock.Advance(time.Hour)
	must(t, b.Preempt(home, "n"))
	must(t, b.OwnerDelete(home, "n", ada))
	var told []string
	for _, e := range *b.told {
		for _, raw := range append(cloudtputest.SystemEntries(e), cloudtputest.AuditEntry(e)) {
			if raw == nil {
				continue
			}
			read, err := events.Read(raw)
			must(t, err)
			told = append(told, string(read.Kind)+" "+read.Subject.Node+" "+read.Call.Version+" "+read.Call.Method+string(read.Cause))
		}
	}
	want := []string{
		"api_call n v1 CreateNode", "api_call n v1 CreateNode", "loss n  terminated", "api_call n v1 DeleteNode",
	}
	if !slices.Equal(told, want) {
		t.Errorf("the log says %q, want %q", told, want)
	}
}
