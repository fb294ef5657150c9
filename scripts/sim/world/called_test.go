package world

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"

	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider"
)

func TestCallsAreNamedAsTheAPIsNameThem(t *testing.T) {
	const parent = "/v2alpha1/projects/demo/locations/us-west4-a"
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/v2alpha1/projects/demo/locations", "locations.list"},
		{"GET", parent + "/nodes", "nodes.list"},
		{"GET", parent + "/nodes/llama", "nodes.get"},
		{"POST", parent + "/nodes", "nodes.create"},
		{"PATCH", parent + "/nodes/llama", "nodes.patch"},
		{"DELETE", parent + "/nodes/llama", "nodes.delete"},
		{"POST", parent + "/nodes/llama:performMaintenance", "nodes.performMaintenance"},
		{"POST", parent + "/queuedResources", "queuedResources.create"},
		{"DELETE", parent + "/queuedResources/q", "queuedResources.delete"},
		{"GET", parent + "/operations", "operations.list"},
		{"POST", "/v2/entries:list", "entries.list"},
		{"GET", "/storage/v1/b/ckpt", "buckets.get"},
		{"GET", "/storage/v1/b/ckpt/o", "objects.list"},
		{"GET", "/storage/v1/b/ckpt/o/run/100/commit", "objects.get"},
		{"POST", "/upload/storage/v1/b/ckpt/o", "objects.insert"},
		{"DELETE", "/storage/v1/b/ckpt/o/run/lease", "objects.delete"},
	} {
		if got := restMethod(c.method, c.path); got != c.want {
			t.Errorf("%s %s is %s, want %s", c.method, c.path, got, c.want)
		}
	}
}

// TestTheCallsOfLegacyNodesAreTold by their names over HTTP, whether they go by gRPC or over no wire.
func TestTheCallsOfLegacyNodesAreTold(t *testing.T) {
	for _, wire := range []bool{false, true} {
		var told []string
		w := New("legacy", Scenario{
			Project: "demo", Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
			Fleet: []SliceConfig{{Name: "resnet", Zone: "us-central1-a", Accelerator: "v3-8", Legacy: true, Crew: CrewConfig{Absent: true}}},
		}, Options{Wire: wire, Hooks: Hooks{Called: func(c Call) { told = append(told, c.Function+": "+c.Service+" "+c.Method) }}})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(w.Found(t.Context()))
		cloud, err := w.tpuAPI(t.Context())
		must(err)
		r := provider.Ref{Project: "demo", Zone: "us-central1-a", Name: "resnet", Legacy: true}
		_, err = cloud.Read(t.Context(), r) // by nobody: it is not told
		must(err)
		ctx := calling(t.Context(), "HandleRecreate")
		s, err := cloud.Read(ctx, r)
		must(err)
		_, err = cloud.Delete(ctx, r, "")
		must(err)
		r.Name = "other"
		_, err = cloud.Create(ctx, r, s.Spec, nil, "")
		must(err)
		want := []string{"recreate: tpu nodes.get", "recreate: tpu nodes.delete", "recreate: tpu nodes.create"}
		if d := cmp.Diff(want, told); d != "" {
			t.Errorf("wire %v: calls (-want +got):\n%s", wire, d)
		}
		must(w.Close())
	}
}

// TestAWriteIsToldByItsPlace: the object in a bucket, the database, and whether the document is new. A grant may name each of them.
func TestAWriteIsToldByItsPlace(t *testing.T) {
	var told []string
	w := New("places", Scenario{Project: "demo", Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, Options{Hooks: Hooks{Called: func(c Call) {
		told = append(told, c.Service+" "+c.Method+" "+c.Object)
	}}})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := calling(t.Context(), "HandleNotify")
	j := ledger.NewJournal(w.overStore("told", ledgertest.NewStore().Open))
	record, none, err := j.Told(ctx, "chat", "demo/llama", "llama-1")
	must(err)
	rev, err := j.Save(ctx, "chat", "demo/llama", "llama-1", record, none, w.Clock.Now())
	must(err)
	_, err = j.Save(ctx, "chat", "demo/llama", "llama-1", record, rev, w.Clock.Now())
	must(err)
	must(j.Close())

	server := buckettest.New(w.Clock.Now, "ckpt")
	client := option.WithHTTPClient(&http.Client{Transport: w.overHTTP("storage", server.Transport())})
	store := named{checkpoint.Mux{"gs": checkpoint.NewBucket(client, option.WithoutAuthentication())}}
	generation, err := store.Put(ctx, "gs://ckpt/run/pitstop-lease.json", []byte("{}"), 0)
	must(err)
	_, err = store.Get(ctx, "gs://ckpt/run/pitstop-lease.json")
	must(err)
	must(store.Delete(ctx, "gs://ckpt/run/pitstop-lease.json", generation))
	want := []string{
		"firestore told documents.batchGet ", "firestore told documents.commit create ", "firestore told documents.commit update ",
		"storage objects.insert gs://ckpt/run/pitstop-lease.json", "storage objects.get ", "storage objects.delete gs://ckpt/run/pitstop-lease.json",
	}
	if d := cmp.Diff(want, told); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	must(w.Close())
}
