package sim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/scripts/trail"
	"pitstop.internal/shared/breadth"
)

// TestATrailHasEverythingThatWasDone holds the trail of a night against the report, which is counted elsewhere: every end and
// every call is there, of the workload that it concerns. Calls of a cluster are among them.
func TestATrailHasEverythingThatWasDone(t *testing.T) {
	breadth.Again(t)
	t.Parallel()
	one := jobsSimulation(t, 3, "heavy", 0.5)
	one.Trail = true
	r := simulate(t, one)
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
				switch _, verb, ofJob := strings.Cut(s.Method, "jobs"); { // of a Job or a JobSet
				case s.Code != "":
				case strings.HasSuffix(s.Method, "nodes.patch"):
					called["machine labelled"]++
				case ofJob && strings.HasSuffix(verb, ".delete"):
					called["Job "+world.Deleted]++
				case ofJob:
					called["Job "+world.Applied]++
				default:
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
	if d := cmp.Diff(r.Actions, called); d != "" || called["DeleteNode"] == 0 || called["Job deleted"] == 0 || called["Job applied"] == 0 {
		t.Errorf("calls (-report +trail):\n%s", d)
	}
	one.Trail = false
	if without := simulate(t, one); without.Handled != r.Handled || without.Faults != r.Faults || without.Story.Trail != nil {
		t.Error("keeping the trail changes the run")
	}
}
