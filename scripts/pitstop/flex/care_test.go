package flex

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
)

// TestPitstopCaresForAPlannedTraining: on a simulated cluster with the planned machines, Pitstop reads of every planned slice its policy,
// its checkpoints, and when its machines end, seven days after they came.
func TestPitstopCaresForAPlannedTraining(t *testing.T) {
	for name, o := range plans() {
		o.Policy, o.Directory, o.Namespace = "night", "gs://ckpt/llama", "teams"
		p := made(t, o)
		clock := cloudtputest.NewManualClock(time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC))
		server := gketest.New(gketest.Config{Clock: clock})
		client := gke.Client{HTTP: &http.Client{Transport: server.Transport()}, URL: "http://cluster.invalid", Token: func(context.Context) (string, error) { return "secret", nil }}
		create := func(path string, object any) {
			t.Helper()
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, client.URL+path, strings.NewReader(string(raw)))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.HTTP.Do(r)
			if err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusCreated {
				t.Fatalf("%s: %s is answered %v, %v", name, path, answer, err)
			}
		}
		create("/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "teams"}})
		for i := range o.Slices * p.Slice.Nodes {
			create("/api/v1/nodes", map[string]any{
				"metadata": map[string]any{"name": fmt.Sprintf("m%d", i), "labels": map[string]string{
					labelFlex: "true", labelAccelerator: p.Slice.Machine.Accelerator, labelTopology: p.Slice.Topology,
				}},
				"status": map[string]any{
					"allocatable": map[string]string{tpuResource: fmt.Sprint(p.Slice.Machine.Chips)},
					"conditions":  []map[string]string{{"type": "Ready", "status": "True"}},
				},
			})
		}
		for _, object := range documents(t, p.Manifest) {
			switch at(t, object, "kind") {
			case "Service":
				create("/api/v1/namespaces/teams/services", object)
			case "Job":
				create("/apis/batch/v1/namespaces/teams/jobs", object)
			case "JobSet":
				create("/apis/jobset.x-k8s.io/v1alpha2/namespaces/teams/jobsets", object)
			}
		}
		ends := clock.Now().Add(mostDays * 24 * time.Hour)
		clock.Advance(time.Minute)
		cluster := gke.Cluster{Project: "demo", Location: "us-east5", Name: "research"}
		reader := gke.New([]gke.Cluster{cluster}, func(context.Context, gke.Cluster) (gke.Client, error) { return client, nil }, clock.Now)
		found, err := reader.List(t.Context(), "demo", "us-east5/research")
		if err != nil || len(found.Slices) != o.Slices {
			t.Fatalf("%s: %d slices, want %d: %v", name, len(found.Slices), o.Slices, err)
		}
		for _, s := range found.Slices {
			if s.Labels[events.LabelPolicy] != "night" || s.Directory != "gs://ckpt/llama" || s.Condition != evidence.Ready || !s.Ends.Equal(ends) || s.Kept != "" {
				t.Errorf("%s: %s has policy %q, checkpoints in %q, is %v, ends %s, and is kept because %q", name, s.Name, s.Labels[events.LabelPolicy], s.Directory, s.Condition, s.Ends, s.Kept)
			}
		}
	}
}
