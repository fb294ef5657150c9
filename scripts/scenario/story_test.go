package scenario

import "testing"

// TestWhatOpensAndEndsInOneStepIsAnIncident: what a person has tried again may be left to them again at once.
func TestWhatOpensAndEndsInOneStepIsAnIncident(t *testing.T) {
	t.Parallel()
	fleet, policy := MixedFleet(49)
	r, err := Simulate(t.Context(), Simulation{
		Seed: 49, Days: 1, World: Few(fleet, 49, 4), Policy: policy, Faults: faultsNamed["heavy"], Limit: NoLimit,
	})
	if err != nil {
		t.Fatal(err)
	}
	atOnce, ended := 0, 0
	for _, in := range r.Story.Ended {
		if _, seen := r.Story.opened[in.Workload+" "+in.ID]; !seen { // no step left it open
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
