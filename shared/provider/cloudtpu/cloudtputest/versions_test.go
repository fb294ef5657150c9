package cloudtputest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"
	legacy "google.golang.org/api/tpu/v1"
	legacyalpha "google.golang.org/api/tpu/v1alpha1"
	stable "google.golang.org/api/tpu/v2"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/cloudtpu/internal/discovery"
)

// described holds each call and answer against the description of a version, and when the test ends, that each method was called.
func described(t *testing.T, b bench, version string) option.ClientOption {
	t.Helper()
	d, err := discovery.Version(version)
	must(t, err)
	called := map[string]bool{}
	t.Cleanup(func() {
		for _, id := range d.Methods() {
			if !called[id] {
				t.Errorf("%s was never called", id)
			}
		}
	})
	return option.WithHTTPClient(&http.Client{
		Transport: d.Transport(b.Transport(), func(err error) { t.Error(err) }, func(id string) { called[id] = true }),
	})
}

// TestTheStableVersionFitsItsDescription calls every method of v2.
func TestTheStableVersionFitsItsDescription(t *testing.T) {
	b := newBench(t, cloudtputest.Config{PageSize: 1})
	s, err := stable.NewService(t.Context(), described(t, b, "v2"))
	must(t, err)
	l := s.Projects.Locations
	do := func(_ any, err error) {
		t.Helper()
		must(t, err)
	}
	lists := func() {
		t.Helper()
		must(t, l.Nodes.List(parent).Pages(t.Context(), func(*stable.ListNodesResponse) error { return nil }))
		must(t, l.QueuedResources.List(parent).Pages(t.Context(), func(*stable.ListQueuedResourcesResponse) error { return nil }))
		must(t, l.Operations.List(parent).Pages(t.Context(), func(*stable.ListOperationsResponse) error { return nil }))
	}
	do(l.List("projects/demo").Do())
	do(l.Get(parent).Do())
	do(l.GenerateServiceIdentity(parent, &stable.GenerateServiceIdentityRequest{}).Do())
	do(l.AcceleratorTypes.List(parent).Do())
	do(l.AcceleratorTypes.Get(parent + "/acceleratorTypes/v4-8").Do())
	do(l.RuntimeVersions.List(parent).Do())
	do(l.RuntimeVersions.Get(parent + "/runtimeVersions/tpu-ubuntu2204-base").Do())
	op, err := l.Nodes.Create(parent, &stable.Node{
		AcceleratorType: "v5litepod-8", RuntimeVersion: "r", SchedulingConfig: &stable.SchedulingConfig{Spot: true},
	}).NodeId("n").Do()
	must(t, err)
	b.clock.Advance(time.Hour)
	do(l.Operations.Get(op.Name).Do())
	node := parent + "/nodes/n"
	must(t, b.Announce(home, "n", events.Notice{Status: events.NoticePending, WindowStart: start}))
	n, err := l.Nodes.Get(node).Do()
	must(t, err)
	if n.ApiVersion != "V2" || n.UpcomingMaintenance == nil || n.State != "READY" {
		t.Errorf("%+v", n)
	}
	do(l.Nodes.GetGuestAttributes(node, &stable.GetGuestAttributesRequest{}).Do())
	do(l.Nodes.Patch(node, &stable.Node{Tags: []string{"t"}}).UpdateMask("tags").Do())
	do(l.Nodes.Stop(node, &stable.StopNodeRequest{}).Do())
	b.clock.Advance(time.Hour)
	do(l.Nodes.Start(node, &stable.StartNodeRequest{}).Do())
	b.clock.Advance(time.Hour)
	lists()
	order := &stable.QueuedResource{Tpu: &stable.Tpu{NodeSpec: []*stable.NodeSpec{{
		Parent: parent, Node: &stable.Node{AcceleratorType: "v5litepod-16", RuntimeVersion: "r"},
		MultisliceParams: &stable.MultisliceParams{NodeCount: 2, NodeIdPrefix: "slice"},
	}}}}
	queue := parent + "/queuedResources/q"
	op, err = l.QueuedResources.Create(parent, order).QueuedResourceId("q").RequestId(uuid(1)).Do()
	must(t, err)
	b.clock.Advance(time.Hour)
	done, err := l.Operations.Get(op.Name).Do()
	must(t, err)
	if text := string(done.Response); !strings.Contains(text, "google.cloud.tpu.v2.QueuedResource") || !strings.Contains(text, "multisliceParams") || strings.Contains(text, "multiNodeParams") {
		t.Errorf("the operation left %s", text)
	}
	q, err := l.QueuedResources.Get(queue).Do()
	must(t, err)
	if d := cmp.Diff(order.Tpu.NodeSpec[0].MultisliceParams, q.Tpu.NodeSpec[0].MultisliceParams); d != "" {
		t.Errorf("the order (-sent +shown):\n%s", d)
	}
	if shown, err := b.l.QueuedResources.Get(queue).Do(); err != nil || shown.Tpu.NodeSpec[0].MultiNodeParams.NodeCount != 2 {
		t.Errorf("v2alpha1 shows %+v, %v", shown, err)
	}
	if n, err := l.Nodes.Get(parent + "/nodes/slice-0").Do(); err != nil || n.ApiVersion != "V2" || !n.MultisliceNode {
		t.Errorf("%+v, %v", n, err)
	}
	lists()
	do(l.QueuedResources.Reset(queue, &stable.ResetQueuedResourceRequest{}).Do())
	b.clock.Advance(time.Hour)
	do(l.QueuedResources.Delete(queue).Force(true).RequestId(uuid(2)).Do())
	b.clock.Advance(time.Hour)
	op, err = l.Nodes.Delete(node).Do()
	must(t, err)
	b.clock.Advance(2 * time.Minute)
	if _, err := l.Operations.Cancel(op.Name).Do(); err == nil {
		t.Error("an operation was cancelled")
	}
	do(l.Operations.Delete(op.Name).Do())
	if len(b.Nodes("-")) != 0 {
		t.Error("a node is left")
	}
	for _, e := range *b.told {
		entry := string(cloudtputest.AuditEntry(e))
		if e.Kind == cloudtputest.Started && !strings.Contains(entry, `"google.cloud.tpu.v2.Tpu.`+e.Method+`"`) {
			t.Errorf("the audit log has %s", entry)
		}
	}
}

// TestBothPresentVersionsShowTheSameNodes: only the fields differ.
func TestBothPresentVersionsShowTheSameNodes(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	order := small()
	order.AutocheckpointEnabled = true
	order.SchedulingConfig = &api.SchedulingConfig{Spot: true, ProvisioningModel: "SPOT"}
	op, err := b.l.Nodes.Create(parent, order).NodeId("n").Do()
	must(t, err)
	b.clock.Advance(time.Hour)
	s, err := stable.NewService(t.Context(), option.WithHTTPClient(&http.Client{Transport: b.Transport()}))
	must(t, err)
	if o, err := s.Projects.Locations.Operations.Get(op.Name).Do(); err != nil || !o.Done {
		t.Errorf("v2 shows the operation of v2alpha1 as %+v, %v", o, err)
	}
	for version, fields := range map[string][]string{
		"v2": {"spot"}, "v2alpha1": {"spot", "autocheckpointEnabled", "provisioningModel"},
	} {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+version+"/"+parent+"/nodes", http.NoBody))
		for _, f := range []string{"spot", "autocheckpointEnabled", "provisioningModel"} {
			if got := strings.Contains(w.Body.String(), `"`+f+`"`); got != slices.Contains(fields, f) {
				t.Errorf("%s: %s is shown: %v", version, f, got)
			}
		}
	}
}

// TestWhatOnlyOneVersionHas is refused by the other.
func TestWhatOnlyOneVersionHas(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "n"})
	must(t, err)
	ok := `"acceleratorType":"v5litepod-16","runtimeVersion":"r"`
	queue := func(spec string) string {
		return `{"tpu":{"nodeSpec":[{"parent":"` + parent + `",` + spec + `,"node":{` + ok + `}}]}}`
	}
	for name, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"v2 performs no maintenance":        {"POST", "/v2/" + parent + "/nodes/n:performMaintenance", "{}", 404},
		"v2 simulates no maintenance":       {"POST", "/v2/" + parent + "/nodes/n:simulateMaintenanceEvent", "{}", 404},
		"v2 has no reservations":            {"GET", "/v2/" + parent + "/reservations", "", 404},
		"v2 has no maintenance info":        {"GET", "/v2/" + parent + "/queuedResources/q:getMaintenanceInfo", "", 404},
		"v2 has no request ID of a node":    {"POST", "/v2/" + parent + "/nodes?nodeId=m&requestId=" + uuid(1), "{" + ok + "}", 400},
		"v2 has no autocheckpoint":          {"POST", "/v2/" + parent + "/nodes?nodeId=m", "{" + ok + `,"autocheckpointEnabled":true}`, 400},
		"v2 has no multiNodeParams":         {"POST", "/v2/" + parent + "/queuedResources?queuedResourceId=q", queue(`"multiNodeParams":{"nodeCount":2}`), 400},
		"v2alpha1 has no multisliceParams":  {"POST", "/v2alpha1/" + parent + "/queuedResources?queuedResourceId=q", queue(`"multisliceParams":{"nodeCount":2}`), 400},
		"v1 has no queued resources":        {"GET", "/v1/" + parent + "/queuedResources", "", 404},
		"v1 has no request ID":              {"POST", "/v1/" + parent + "/nodes?nodeId=m&requestId=" + uuid(1), `{"acceleratorType":"v2-8","tensorflowVersion":"2.12.0"}`, 400},
		"v1 has no runtime version":         {"POST", "/v1/" + parent + "/nodes?nodeId=m", "{" + ok + "}", 400},
		"v1 shows no TPU VM":                {"GET", "/v1/" + parent + "/nodes/n", "", 404},
		"there is no third present version": {"GET", "/v3/" + parent + "/nodes/n", "", 404},
	} {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.status {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.status)
		}
	}
}

// TestTheFormerVersionsFitTheirDescriptions calls every method of v1 and v1alpha1 over HTTP.
func TestTheFormerVersionsFitTheirDescriptions(t *testing.T) {
	t.Run("v1", func(t *testing.T) {
		b := newBench(t, cloudtputest.Config{PageSize: 1})
		s, err := legacy.NewService(t.Context(), described(t, b, "v1"))
		must(t, err)
		l := s.Projects.Locations
		do := func(_ any, err error) {
			t.Helper()
			must(t, err)
		}
		do(l.List("projects/demo").Do())
		do(l.Get(parent).Do())
		do(l.AcceleratorTypes.List(parent).Do())
		do(l.AcceleratorTypes.Get(parent + "/acceleratorTypes/v2-8").Do())
		do(l.TensorflowVersions.List(parent).Do())
		do(l.TensorflowVersions.Get(parent + "/tensorflowVersions/2.12.0").Do())
		do(l.Nodes.Create(parent, &legacy.Node{AcceleratorType: "v2-8", TensorflowVersion: "2.12.0", SchedulingConfig: &legacy.SchedulingConfig{Preemptible: true}}).NodeId("n").Do())
		b.clock.Advance(time.Hour)
		node := parent + "/nodes/n"
		do(l.Nodes.Reimage(node, &legacy.ReimageNodeRequest{TensorflowVersion: "2.11.0"}).Do())
		b.clock.Advance(time.Hour)
		do(l.Nodes.Stop(node, &legacy.StopNodeRequest{}).Do())
		b.clock.Advance(time.Hour)
		do(l.Nodes.Start(node, &legacy.StartNodeRequest{}).Do())
		b.clock.Advance(time.Hour)
		n, err := l.Nodes.Get(node).Do()
		must(t, err)
		if n.ApiVersion != "V1" || n.State != "READY" || !n.SchedulingConfig.Preemptible {
			t.Errorf("%+v", n)
		}
		must(t, l.Nodes.List(parent).Pages(t.Context(), func(*legacy.ListNodesResponse) error { return nil }))
		op, err := l.Nodes.Delete(node).Do()
		must(t, err)
		b.clock.Advance(2 * time.Minute)
		must(t, l.Operations.List(parent).Pages(t.Context(), func(*legacy.ListOperationsResponse) error { return nil }))
		do(l.Operations.Get(op.Name).Do())
		if _, err := l.Operations.Cancel(op.Name).Do(); err == nil {
			t.Error("an operation was cancelled")
		}
		do(l.Operations.Delete(op.Name).Do())
	})
	t.Run("v1alpha1", func(t *testing.T) {
		b := newBench(t, cloudtputest.Config{PageSize: 1})
		s, err := legacyalpha.NewService(t.Context(), described(t, b, "v1alpha1"))
		must(t, err)
		l := s.Projects.Locations
		do := func(_ any, err error) {
			t.Helper()
			must(t, err)
		}
		do(l.List("projects/demo").Do())
		do(l.Get(parent).Do())
		do(l.AcceleratorTypes.List(parent).Do())
		do(l.AcceleratorTypes.Get(parent + "/acceleratorTypes/v2-8").Do())
		do(l.TensorflowVersions.List(parent).Do())
		do(l.TensorflowVersions.Get(parent + "/tensorflowVersions/2.12.0").Do())
		do(l.Nodes.Create(parent, &legacyalpha.Node{AcceleratorType: "v2-8", TensorflowVersion: "2.12.0"}).NodeId("n").RequestId(uuid(1)).Do())
		b.clock.Advance(time.Hour)
		node := parent + "/nodes/n"
		do(l.Nodes.Reimage(node, &legacyalpha.ReimageNodeRequest{TensorflowVersion: "2.11.0"}).Do())
		b.clock.Advance(time.Hour)
		do(l.Nodes.Stop(node, &legacyalpha.StopNodeRequest{}).Do())
		b.clock.Advance(time.Hour)
		do(l.Nodes.Start(node, &legacyalpha.StartNodeRequest{}).Do())
		b.clock.Advance(time.Hour)
		if n, err := l.Nodes.Get(node).Do(); err != nil || n.ApiVersion != "V1_ALPHA1" || n.State != "READY" {
			t.Errorf("%+v, %v", n, err)
		}
		must(t, l.Nodes.List(parent).Pages(t.Context(), func(*legacyalpha.ListNodesResponse) error { return nil }))
		op, err := l.Nodes.Delete(node).RequestId(uuid(2)).Do()
		must(t, err)
		b.clock.Advance(2 * time.Minute)
		must(t, l.Operations.List(parent).Pages(t.Context(), func(*legacyalpha.ListOperationsResponse) error { return nil }))
		do(l.Operations.Get(op.Name).Do())
		if _, err := l.Operations.Cancel(op.Name).Do(); err == nil {
			t.Error("an operation was cancelled")
		}
		do(l.Operations.Delete(op.Name).Do())
		if entry := string(cloudtputest.AuditEntry((*b.told)[slices.IndexFunc(*b.told, func(e cloudtputest.Event) bool { return e.Kind == cloudtputest.Started })])); !strings.Contains(entry, "google.cloud.tpu.v1alpha1.Tpu.CreateNode") {
			t.Errorf("the audit log has %s", entry)
		}
	})
}

// TestForceIsTrueInAnyCase, as gcloud writes it, and is nothing but true or false.
func TestForceIsTrueInAnyCase(t *testing.T) {
	for force, status := range map[string]int{"True": 200, "true": 200, "False": 400, "": 400, "yes": 400} {
		b := newBench(t, cloudtputest.Config{})
		must(t, b.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "q", Nodes: []cloudtputest.NodeConfig{{Name: "n"}}}))
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "/v2alpha1/"+parent+"/queuedResources/q?force="+force, http.NoBody)
		if b.ServeHTTP(w, r); w.Code != status {
			t.Errorf("force=%s: %d %s, want %d", force, w.Code, w.Body, status)
		}
	}
}

// TestDisksAreAttachedAndDetached by an update of the whole list.
func TestDisksAreAttachedAndDetached(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "n"})
	must(t, err)
	node := parent + "/nodes/n"
	for _, mask := range []string{"data_disks", "dataDisks"} {
		disk := &api.AttachedDisk{SourceDisk: "projects/demo/zones/" + home + "/disks/data", Mode: "READ_ONLY", WorkerIds: []string{"0"}}
		_, err = b.l.Nodes.Patch(node, &api.Node{DataDisks: []*api.AttachedDisk{disk}}).UpdateMask(mask).Do()
		must(t, err)
		n, err := b.l.Nodes.Get(node).Do()
		must(t, err)
		if d := cmp.Diff([]*api.AttachedDisk{disk}, n.DataDisks); d != "" {
			t.Errorf("disks (-attached +shown):\n%s", d)
		}
		_, err = b.l.Nodes.Patch(node, &api.Node{}).UpdateMask(mask).Do()
		must(t, err)
		if n, err := b.l.Nodes.Get(node).Do(); err != nil || len(n.DataDisks) != 0 {
			t.Errorf("the disk is still there: %+v, %v", n, err)
		}
	}
	_, err = b.l.Nodes.Patch(node, &api.Node{DataDisks: []*api.AttachedDisk{{SourceDisk: "projects/demo/zones/us-east5-a/disks/data"}}}).UpdateMask("data_disks").Do()
	refused(t, err, 400, "is not in zone "+home)
}

// TestAnUnknownZoneIsRefused by every listing of every version.
func TestAnUnknownZoneIsRefused(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	for _, version := range []string{"v1", "v1alpha1", "v2", "v2alpha1"} {
		for _, collection := range []string{"nodes", "operations", "acceleratorTypes"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+version+"/projects/demo/locations/us-wset4-a/"+collection, http.NoBody)
			b.ServeHTTP(w, r)
			var e struct{ Error struct{ Message string } }
			must(t, json.Unmarshal(w.Body.Bytes(), &e))
			if w.Code != http.StatusForbidden || e.Error.Message != "Permission denied on 'locations/us-wset4-a' (or it may not exist)." {
				t.Errorf("%s %s: %d %s", version, collection, w.Code, w.Body)
			}
		}
	}
	if _, err := b.l.Nodes.List("projects/demo/locations/-").Do(); err != nil {
		t.Errorf("all zones: %v", err)
	}
}

// TestANoticeWithoutAStatusIsPending for the reader and for who performs the maintenance.
func TestANoticeWithoutAStatusIsPending(t *testing.T) {
	b := newBench(t, cloudtputest.Config{})
	_, err := b.AddNode(cloudtputest.NodeConfig{Zone: home, Name: "n"})
	must(t, err)
	must(t, b.Announce(home, "n", events.Notice{CanReschedule: true, WindowStart: start}))
	n, err := b.l.Nodes.Get(parent + "/nodes/n").Do()
	must(t, err)
	if n.UpcomingMaintenance.MaintenanceStatus != "PENDING" {
		t.Errorf("it is shown as %+v", n.UpcomingMaintenance)
	}
	if _, err := b.l.Nodes.PerformMaintenance(parent+"/nodes/n", &api.PerformMaintenanceRequest{}).Do(); err != nil {
		t.Errorf("it was not performed: %v", err)
	}
}

// TestFasterIsProportional, but for how long things are remembered.
func TestFasterIsProportional(t *testing.T) {
	d := cloudtputest.DefaultTiming
	f := d.Faster(60)
	if f.Create != 5*time.Second || f.Retain != d.Retain || f.Remember != d.Remember || f.Patch != d.Patch {
		t.Errorf("%+v", f)
	}
	if f := d.Faster(1e12); f.Create <= 0 {
		t.Errorf("a creation takes %v, which stands for the default", f.Create)
	}
}
