package replay_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/shared/topology"
)

// TestGuessedAcceleratorHasTheWorker guesses a slice from its highest worker: it has that worker, and a size that exists.
func TestGuessedAcceleratorHasTheWorker(t *testing.T) {
	for worker, want := range map[int]string{
		0: "v5litepod-8", 1: "v5litepod-16", 2: "v5litepod-16", 3: "v5litepod-16", 4: "v5litepod-32", 63: "v5litepod-256", 1535: "v5p-12288",
	} {
		raw := fmt.Appendf(nil, `{"logName":"projects/p/logs/cloudaudit.googleapis.com%%2Fsystem_event","protoPayload":{"methodName":"compute.instances.preempted",
"resourceName":"projects/p/zones/z/instances/t1v-n-3f2a9c01-w-%d"}}`, worker)
		s, err := replay.Guess(t.Context(), []replay.Record{{Raw: raw}}, replay.Given{})
		if err != nil || len(s.Fleet) != 1 {
			t.Fatalf("worker %d: %d slices, %v", worker, len(s.Fleet), err)
		}
		got := s.Fleet[0].Accelerator
		if shape, err := topology.Parse(got); err != nil || got != want || shape.Workers <= worker {
			t.Errorf("worker %d: %s with %d workers (%v), want %s", worker, got, shape.Workers, err, want)
		}
	}
}

// TestNoTPUIsGuessedFromAJob: entries about Jobs of GKE make no TPU, and the scenario says that they are not played.
func TestNoTPUIsGuessedFromAJob(t *testing.T) {
	raw, err := os.ReadFile("../../../events/testdata/sources/gke-jobs.json")
	if err != nil {
		t.Fatal(err)
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		t.Fatal(err)
	}
	var records []replay.Record
	for _, e := range entries {
		records = append(records, replay.Record{Raw: e})
	}
	s, err := replay.Guess(t.Context(), records, replay.Given{})
	if err != nil || len(s.Fleet) != 0 || s.Project != "demo" || len(s.Assumed) != 1 || !strings.HasPrefix(s.Assumed[0], "no Job of GKE is played") {
		t.Errorf("%+v, %v", s, err)
	}
}
