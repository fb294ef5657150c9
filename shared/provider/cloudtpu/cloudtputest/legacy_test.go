package cloudtputest_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/api/option"
	v1 "google.golang.org/api/tpu/v1"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/cloudtpu/internal/discovery"
)

func legacyClient(t *testing.T, rt http.RoundTripper) *v1.ProjectsLocationsService {
	t.Helper()
	s, err := v1.NewService(t.Context(), option.WithHTTPClient(&http.Client{Transport: rt}))
	must(t, err)
	return s.Projects.Locations
}

// TestEveryAnswerOfTheFormerVersionFitsTheDescription calls every method of v1 and holds every call and answer against its own
// document.
func TestEveryAnswerOfTheFormerVersionFitsTheDescription(t *testing.T) {
	d, err := discovery.LoadLegacy()
	must(t, err)
	b := newBench(t, cloudtputest.Config{PageSize: 1, Mingled: true})
	called := map[string]bool{}
	l := legacyClient(t, d.Transport(b.Transport(), func(err error) { t.Error(err) }, func(id string) { called[id] = true }))
	do := func(_ any, err error) {
		t.Helper()
		must(t, err)
	}
	_, err = b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "vm", Spot: true, Labels: map[string]string{"a": "b"}})
	must(t, err)
	lists := func() {
		t.Helper()
		for _, zone := range []string{parent, "projects/demo/locations/-"} {
			must(t, l.Nodes.List(zone).Pages(t.Context(), func(*v1.ListNodesResponse) error { return nil }))
			must(t, l.Operations.List(zone).Pages(t.Context(), func(*v1.ListOperationsResponse) error { return nil }))
		}
	}
	do(l.List("projects/demo").Do())
	do(l.Get(parent).Do())
	must(t, l.AcceleratorTypes.List(parent).Pages(t.Context(), func(*v1.ListAcceleratorTypesResponse) error { return nil }))
	do(l.AcceleratorTypes.Get(parent + "/acceleratorTypes/v3-8").Do())
	must(t, l.TensorflowVersions.List(parent).Pages(t.Context(), func(*v1.ListTensorFlowVersionsResponse) error { return nil }))
	do(l.TensorflowVersions.Get(parent + "/tensorflowVersions/2.12.0").Do())
	lists()

	node := parent + "/nodes/n"
	op, err := l.Nodes.Create(parent, &v1.Node{
		AcceleratorType: "v3-8", TensorflowVersion: "2.12.0", UseServiceNetworking: true, Labels: map[string]string{"a": "b"},
		SchedulingConfig: &v1.SchedulingConfig{Preemptible: true}, Description: "d", Network: "tpus",
	}).NodeId("n").Do()
	must(t, err)
	lists()
	b.clock.Advance(time.Hour)
	do(l.Operations.Get(op.Name).Do())
	must(t, b.AddSymptom(home, "n", "OUT_OF_MEMORY", 0))
	do(l.Nodes.Get(node).Do())
	do(l.Nodes.Reimage(node, &v1.ReimageNodeRequest{TensorflowVersion: "2.11.0"}).Do())
	b.clock.Advance(time.Hour)
	do(l.Nodes.Stop(node, &v1.StopNodeRequest{}).Do())
	b.clock.Advance(time.Hour)
	do(l.Nodes.Start(node, &v1.StartNodeRequest{}).Do())
	b.clock.Advance(time.Hour)
	must(t, b.HostError(home, "n", -1))
	lists()
	must(t, b.Preempt(home, "n"))
	lists()
	if _, err := l.Nodes.Delete(parent + "/nodes/vm").Do(); err == nil {
		t.Error("a TPU VM was deleted through v1")
	}
	if _, err := b.l.Nodes.Delete(node).Do(); err == nil {
		t.Error("a legacy node was deleted through v2alpha1")
	}
	op, err = l.Nodes.Delete(node).Do()
	must(t, err)
	b.clock.Advance(time.Hour)
	lists()
	if _, err := l.Operations.Cancel(op.Name).Do(); err == nil {
		t.Error("an operation was cancelled")
	}
	do(l.Operations.Delete(op.Name).Do())
	for _, method := range []string{"ListNodes", "ListOperations"} {
		b.Inject(cloudtputest.Fault{Method: method, Legacy: true, Unreachable: true})
	}
	do(l.Nodes.List(parent).Do())
	do(l.Operations.List(parent).Do())
	for _, id := range d.Methods() {
		if !called[id] {
			t.Errorf("%s was never called", id)
		}
	}

	for _, bad := range []*v1.Node{
		{AcceleratorType: "v3-8"},
		{TensorflowVersion: "2.12.0"},
		{AcceleratorType: "v3-8", TensorflowVersion: "2.12.0", CidrBlock: "10.0.0.0/28"},
		{AcceleratorType: "v3-8", TensorflowVersion: "2.12.0", CidrBlock: "10.0.0.0/29", UseServiceNetworking: true},
	} {
		_, err := l.Nodes.Create(parent, bad).NodeId("bad").Do()
		refused(t, err, http.StatusBadRequest, "bad request")
	}
}

// TestEachVersionShowsItsOwnNodes unless it is set to show all.
func TestEachVersionShowsItsOwnNodes(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	l := legacyClient(t, b.Transport())
	_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "vm"})
	must(t, err)
	must(t, b.OwnerCreate(cloudtputest.NodeConfig{Zone: home, Name: "n", Accelerator: "v3-8", Legacy: &v1.Node{}}, ada))
	former, err := l.Nodes.List(parent).Do()
	must(t, err)
	present, err := b.l.Nodes.List(parent).Do()
	must(t, err)
	if len(former.Nodes) != 1 || former.Nodes[0].Name != parent+"/nodes/n" || len(present.Nodes) != 1 || present.Nodes[0].Name != parent+"/nodes/vm" {
		t.Errorf("%+v and %+v", former.Nodes, present.Nodes)
	}
	_, err = b.l.Nodes.Get(parent + "/nodes/n").Do()
	refused(t, err, http.StatusNotFound, "nodes/n")
	ops, err := b.l.Operations.List(parent).Do()
	must(t, err)
	if len(ops.Operations) != 0 {
		t.Errorf("%+v", ops.Operations)
	}
}

// TestTheLogOfALegacyNode: its calls are those of v1, and nobody's log has its machines.
func TestTheLogOfALegacyNode(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	must(t, b.OwnerCreate(cloudtputest.NodeConfig{Zone: home, Name: "n", Accelerator: "v3-8", Spot: true, Legacy: &v1.Node{}}, ada))
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
