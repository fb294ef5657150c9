package cloudtpu_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// TestADescriptionMeansWhatAReadingMeans in each state of a TPU VM and of a legacy node.
func TestADescriptionMeansWhatAReadingMeans(t *testing.T) {
	for name, happens := range map[string]func(*cloudtputest.API, string) error{
		"ready": func(*cloudtputest.API, string) error { return nil },
		"announced": func(a *cloudtputest.API, n string) error {
			return a.Announce(home, n, events.Notice{Status: events.NoticePending, WindowStart: start.Add(time.Hour)})
		},
		"under maintenance": func(a *cloudtputest.API, n string) error { return a.BeginMaintenance(home, n, time.Hour) },
		"preempted":         func(a *cloudtputest.API, n string) error { return a.Preempt(home, n) },
		"stopped":           func(a *cloudtputest.API, n string) error { return a.SetState(home, n, "STOPPED") },
		"suspected":         func(a *cloudtputest.API, n string) error { return a.AddSymptom(home, n, "PROJECT_ABUSE", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, way{both: true})
			_, err := w.api.AddNode(order("vm"))
			must(t, err)
			_, err = w.api.AddNode(legacyOrder("old"))
			must(t, err)
			for _, n := range []string{"vm", "old"} {
				must(t, happens(w.api, n))
			}
			raw, err := json.Marshal(w.api.Node(home, "vm"))
			must(t, err)
			isDescribed(t, raw, read(t, w, ref("vm")))

			_, former := w.api.Direct(nil)
			n, err := former.Node(t.Context(), "projects/"+project+"/locations/"+home+"/nodes/old")
			must(t, err)
			raw, err = protojson.Marshal(n)
			must(t, err)
			isDescribed(t, raw, read(t, w, ref("old")))
		})
	}
}

// isDescribed fails the test unless a description means that slice.
func isDescribed(t *testing.T, raw []byte, want provider.Slice) {
	t.Helper()
	got, is, err := cloudtpu.Described(raw)
	if err != nil || !is {
		t.Fatalf("it describes a TPU: %v, %v", is, err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("slice (-read +described):\n%s", d)
	}
}

func TestWhatDescribesNoNode(t *testing.T) {
	const name = `"name":"projects/demo/locations/us-west4-a/nodes/n"`
	for raw, fault := range map[string]string{
		``: "", `{`: "", `[]`: "", `7`: "", `{}`: "", `{"name":7}`: "", `{"name":"n","state":"READY"}`: "",
		`{` + name + `,"logName":"projects/demo/logs/x"}`:                                                                                                 "",
		`{"name":"projects/demo/locations/us-west4-a/acceleratorTypes/v3-8"}`:                                                                             "",
		`{"name":"projects/demo/locations/us-west4-a/queuedResources/q"}`:                                                                                 "it describes queued resource q; describe its node: gcloud compute tpus tpu-vm describe NODE --zone us-west4-a",
		`{"name":"projects/demo/locations/us-west4-a/queuedResources/q","tpu":{"nodeSpec":[{"nodeId":"a"},{"nodeId":"b"}]}}`:                              "describe each of its 2 nodes: gcloud compute tpus tpu-vm describe a --zone us-west4-a",
		`{"name":"projects/demo/locations/us-west4-a/queuedResources/q","tpu":{"nodeSpec":[{"multiNodeParams":{"nodeCount":2,"nodeIdPrefix":"llama"}}]}}`: "describe each of its 2 nodes: gcloud compute tpus tpu-vm describe llama-0 --zone us-west4-a",
		`{"name":"projects/demo/locations/us-west4-a/queuedResources/q","tpu":{"nodeSpec":[{"nodeId":"a b"}]}}`:                                           "describe its node: gcloud compute tpus tpu-vm describe NODE --zone us-west4-a",
		`{"name":"projects/demo/locations/us-west4-a/queuedResources/q","tpu":[7]}`:                                                                       "describe its node: gcloud compute tpus tpu-vm describe NODE --zone us-west4-a",
		`{"name":"projects/demo/locations/us-west4-a/nodes/a:stop","state":"READY"}`:                                                                      "is not a name of a node",
		`{` + name + `}`: "it describes node n without its state",
		`{` + name + `,"tensorflowVersion":"2.12.0"}`:               "it describes node n without its state",
		`{` + name + `,"tensorflowVersion":"2.12.0","state":""}`:    "it describes node n without its state",
		`{` + name + `,"tensorflowVersion":"2.12.0","state":null}`:  "it describes node n without its state",
		`{` + name + `,"state":7}`:                                  "it describes node n, but not as the API does",
		`{` + name + `,"state":"READY","labels":["a"]}`:             "it describes node n, but not as the API does",
		`{` + name + `,"tensorflowVersion":"2.12.0","state":["a"]}`: "it describes node n, but not as the API does",
	} {
		s, is, err := cloudtpu.Described([]byte(raw))
		if is != (fault != "") || (err != nil) != is || is && (!strings.Contains(err.Error(), fault) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, %v; want %q", raw, is, err, fault)
		}
		if !is && s.Name != "" {
			t.Errorf("%s: %+v", raw, s)
		}
	}
	// What only a newer API knows is no fault.
	for raw, state := range map[string]string{
		`{` + name + `,"state":"DREAMING","novel":1}`:                                                    "DREAMING",
		`{` + name + `,"tensorflowVersion":"2.12.0","state":"DREAMING","health":"UNHEALTHY_TENSORFLOW"}`: "DREAMING, UNHEALTHY_TENSORFLOW",
		`{` + name + `,"tensorflowVersion":"2.12.0","state":"READY","health":"DREAMING","novel":1}`:      "READY",
	} {
		s, _, err := cloudtpu.Described([]byte(raw))
		if err != nil || s.State != state || (s.Condition == evidence.Unclear) != strings.HasPrefix(state, "DREAMING") {
			t.Errorf("%s: %+v, %v", raw, s, err)
		}
	}
}
