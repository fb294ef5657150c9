package scenario_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/scenario"
	"pitstop.internal/shared/publish/publishtest"
)

// TestRecordedIncidentsOnEmulator plays every recorded incident over Google's Pub/Sub emulator: real pushes through the
// functions framework, in an order and at times of its own. The ends are the same.
func TestRecordedIncidentsOnEmulator(t *testing.T) {
	emulator := publishtest.Emulator(t, publishtest.PubSub)
	framework, err := scenario.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recorded(t) {
		t.Run(r.Name, func(t *testing.T) {
			s := run(t, r, scenario.Options{Framework: framework, Emulator: emulator})
			if d := cmp.Diff(r.Want.Incidents, ends(s)); d != "" {
				t.Errorf("ends (-want +got):\n%s%s", d, tail(s))
			}
		})
	}
}
