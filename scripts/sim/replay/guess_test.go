package replay_test

import (
	"fmt"
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
