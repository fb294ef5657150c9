package sim

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/provider"
)

// TestOneReadMoreShiftsNothing plays whole simulations in which each tick reads one node more: the same troubles strike, and all other
// calls and messages meet the same faults, at the same times. Nothing hangs or crashes at that read, which would be another run.
func TestOneReadMoreShiftsNothing(t *testing.T) {
	breadth.Again(t)
	t.Parallel()
	faults := named(t, "heavy")
	faults.Crash, faults.Timeout, faults.Slow = 0, 0, 0
	// run returns what went wrong, but for the read more.
	run := func(t *testing.T, seed uint64, node string) []string {
		fleet, policy := MixedFleet(seed)
		sim := Simulation{Seed: seed, Days: 0.5, World: Few(fleet, seed, 4), Policy: policy, Faults: faults, Limit: NoLimit}
		var cloud provider.Provider
		sim.Hooks.Provider = func(_ string, next provider.Provider) provider.Provider {
			cloud = next
			return next
		}
		sim.Hooks.Handler = func(function string, next http.Handler) http.Handler {
			if function != "patrol" || node == "" {
				return next
			}
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				_, _ = cloud.Read(r.Context(), provider.Ref{Project: "demo", Zone: "us-west4-a", Name: node}) //nolint:errcheck // it is read for nothing
				next.ServeHTTP(rw, r)
			})
		}
		w, err := sim.world(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Every tick is sent: else a fault more could make for one more.
		for minute := range 12 * 60 {
			w.Clock.At(w.Start.Add(time.Duration(minute)*time.Minute), w.Changes)
		}
		r, err := w.simulate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, line := range r.Told {
			if !strings.Contains(line, "nobody") {
				told = append(told, line[4:])
			}
		}
		if node != "" && len(told) == len(r.Told) {
			t.Error("the read more met no fault, and proves nothing")
		}
		return told
	}
	for seed := uint64(1); seed <= 2; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			with, without := run(t, seed, "nobody"), run(t, seed, "")
			if d := cmp.Diff(without, with); d != "" || len(without) < 200 {
				t.Errorf("of %d faults and troubles others are left (-without +with):\n%.3000s", len(without), d)
			}
		})
	}
}
