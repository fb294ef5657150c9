package scenario_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/scripts/trail"
)

// TestATrailHasEverythingThatWasDone holds the trail of a night against the report, which is counted elsewhere: every end and
// every call is there, of the workload that it concerns.
func TestATrailHasEverythingThatWasDone(t *testing.T) {
	t.Parallel()
	sim := simulation(t, 3, "heavy", 0.5)
	sim.Trail = true
	r := simulate(t, sim)
	ended, called := map[string]int{}, map[string]int{}
	for _, w := range r.Story.Trail.Workloads {
		if w.ID == "" || len(w.Document) == 0 {
			t.Errorf("workload %q has a document of %d bytes", w.ID, len(w.Document))
		}
		for _, s := range w.Steps {
			switch {
			case s.Kind == trail.End && s.Revision == 1:
				ended[s.Outcome]++
			case s.Kind == trail.Call && s.Method != "storage.objects.create":
				if s.Code == "" {
					called[s.Method]++
				}
				if s.Action == "" || s.Epoch == 0 {
					t.Errorf("%s of %s at %s is of no request", s.Method, s.Resource, s.At)
				}
			}
		}
	}
	if d := cmp.Diff(r.Ended, ended); d != "" || len(ended) < 2 {
		t.Errorf("ends (-report +trail):\n%s", d)
	}
	if d := cmp.Diff(r.Actions, called); d != "" || len(called) < 2 {
		t.Errorf("calls (-report +trail):\n%s", d)
	}
	sim.Trail = false
	if without := simulate(t, sim); without.Handled != r.Handled || without.Faults != r.Faults || without.Story.Trail != nil {
		t.Error("keeping the trail changes the run")
	}
}

// TestARecordedIncidentLeavesTheSameTrailTwice compares every recorded incident with itself, through the form that another build
// would write.
func TestARecordedIncidentLeavesTheSameTrailTwice(t *testing.T) {
	t.Parallel()
	steps := 0
	for _, r := range some(t, 3) {
		var other bytes.Buffer
		this := run(t, r, world.Options{Trail: true}).Trail
		if err := trail.Write(&other, *run(t, r, world.Options{Trail: true}).Trail); err != nil {
			t.Fatal(err)
		}
		c := trail.NewComparison(trail.NewReader(&other), func(d trail.Divergence) { t.Errorf("%s: %+v", r.Name, d) })
		if err := c.Add(*this); err != nil {
			t.Fatal(err)
		}
		if s, err := c.End(); err != nil || len(s.Kinds) > 0 {
			t.Errorf("%s: %v, %+v", r.Name, err, s)
		}
		for _, w := range this.Workloads {
			steps += len(w.Steps)
		}
	}
	if steps < 100 {
		t.Errorf("%d steps in all recorded incidents: that is no trail", steps)
	}
}
