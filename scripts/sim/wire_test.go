package sim_test

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/sim/oracle"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/scripts/trail"
	"pitstop.internal/shared/breadth"
)

// TestTheWireChangesNothing plays seeds over HTTP and by gRPC, and without: the reports, calls, documents and ends are the same. scripts/check plays more seeds.
func TestTheWireChangesNothing(t *testing.T) {
	breadth.Again(t)
	t.Parallel()
	for faults, seed := range map[string]uint64{"light": 11, "heavy": 12, "hostile": 13} {
		t.Run(faults, func(t *testing.T) {
			t.Parallel()
			one := simulation(t, seed, faults, 1)
			one.Trail = true
			direct := simulate(t, one)
			one.Wire = true
			wire := simulate(t, one)
			if direct.Incidents < 3 {
				t.Fatalf("%d incidents show nothing", direct.Incidents)
			}
			if d := cmp.Diff(written(t, direct), written(t, wire)); d != "" {
				t.Errorf("the report differs (-direct +wire):\n%s", d)
			}
			if d := cmp.Diff(lines(t, direct.Story), lines(t, wire.Story)); d != "" {
				t.Errorf("the trail differs (-direct +wire):\n%s", d)
			}
		})
	}
}

// written is a report as a program reads it.
func written(t *testing.T, r *oracle.Result) string {
	t.Helper()
	raw, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// lines is the trail of a story as another build reads it.
func lines(t *testing.T, s *world.Story) string {
	t.Helper()
	var b bytes.Buffer
	if err := trail.Write(&b, *s.Trail); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
