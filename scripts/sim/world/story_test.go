package world_test

import (
	"testing"

	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/faults"
)

// TestWhatOpensAndEndsInOneStepIsAnIncident: what a person has tried again may be left to them again at once.
func TestWhatOpensAndEndsInOneStepIsAnIncident(t *testing.T) {
	t.Parallel()
	fleet, policy := sim.MixedFleet(49)
	f, err := faults.Named("heavy")
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Simulate(t.Context(), sim.Simulation{
		Seed: 49, Days: 1, World: sim.Few(fleet, 49, 4), Policy: policy, Faults: f, Limit: sim.NoLimit,
	})
	if err != nil {
		t.Fatal(err)
	}
	atOnce, ended := 0, 0
	for _, in := range r.Story.Ended {
		if !r.Story.WasOpen(in) { // no step left it open
			atOnce++
		}
	}
	for _, n := range r.Ended {
		ended += n
	}
	if atOnce == 0 {
		t.Error("nothing opened and ended in one step: look for another seed")
	}
	if r.Incidents != ended {
		t.Errorf("%d incidents, and %d ended", r.Incidents, ended)
	}
}
