package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/incident"
)

// TestASliceThatIsLostBeforeItsOrderIsReadIsLookedAt: not every function may keep the order. As long as the API shows the slice, one
// that does may still read it; then it is replaced as any other.
func TestASliceThatIsLostBeforeItsOrderIsReadIsLookedAt(t *testing.T) {
	lost := func(t *testing.T) *tour {
		t.Helper()
		w := quiet(true)
		w.Slices[0].Spec = ""
		r := newTour(t, w, "everything")
		r.learn("llama-8b", "preempted")
		if asked := r.readAs("llama-8b", incident.Lost, nil) + r.tick(time.Minute); asked != "" || phaseOf(r.w) != string(incident.Looking) {
			t.Fatalf("asked for is %q at %s: %s", asked, phaseOf(r.w), tale(r.w))
		}
		return r
	}
	t.Run("it is read", func(t *testing.T) {
		r := lost(t)
		facts := func(e *incident.Read) {
			e.Facts = incident.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Reclaimable: true, Spec: "spec1", Label: "night"}
			e.Directory = r.w.Directory
		}
		if asked := r.readAs("llama-8b", incident.Lost, facts) + r.tick(time.Minute); asked != "delete llama-8b" {
			t.Errorf("asked for is %q: %s", asked, tale(r.w))
		}
	})
	ends := func(t *testing.T, r *tour) {
		t.Helper()
		if r.w.Closed == nil || r.w.Closed.Code != incident.CodeNoSpec || !strings.Contains(r.w.Closed.Advice, "by hand") {
			t.Errorf("it stands as %s", tale(r.w))
		}
	}
	t.Run("it is gone first", func(t *testing.T) {
		r := lost(t)
		r.readAs("llama-8b", incident.Gone, nil)
		for end := r.now.Add(incident.Grace + 2*time.Minute); r.w.Incident != nil && r.now.Before(end); {
			r.tick(time.Minute)
		}
		ends(t, r)
	})
	t.Run("nobody reads it", func(t *testing.T) {
		r := lost(t)
		for end := r.now.Add(incident.LookFor + 2*time.Minute); r.w.Incident != nil && r.now.Before(end); {
			r.readAs("llama-8b", incident.Lost, nil)
			r.tick(time.Minute)
		}
		ends(t, r)
	})
}
