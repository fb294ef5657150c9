package replay_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/incident/incidenttest"
	"pitstop.internal/shared/policy"
)

// TestRecordedEntriesJoin: what a workload learns of the outside in a recorded incident is the same in the end, in whatever order the
// entries come within the time that they may be late.
func TestRecordedEntriesJoin(t *testing.T) {
	breadth.Again(t)
	var mattered atomic.Int64
	t.Cleanup(func() {
		if mattered.Load() == 0 {
			t.Error("no entry ever told more than the readings")
		}
	})
	for _, r := range some(t, 6) {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			begin, told := map[string]incident.Workload{}, map[string][]incidenttest.Told{}
			var opts world.Options
			opts.Hooks.Decide = func(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
				mu.Lock()
				defer mu.Unlock()
				if _, met := begin[w.ID]; !met {
					begin[w.ID] = w
				}
				switch e.(type) {
				case evidence.Read, evidence.Mapped, evidence.Unsaid, evidence.Ticked:
					told[w.ID] = append(told[w.ID], incidenttest.Told{At: now, Evidence: e, Policy: p})
				default:
					if incidenttest.IsEntry(e) {
						told[w.ID] = append(told[w.ID], incidenttest.Told{At: now, Evidence: e, Policy: p})
					}
				}
				return incident.Advance(p, w, e, now)
			}
			run(t, r, opts)
			for id, all := range told {
				w := begin[id]
				want := incidenttest.KnownOf(incidenttest.Learn(w, incidenttest.Order(w, all)))
				readings := slices.DeleteFunc(slices.Clone(all), func(one incidenttest.Told) bool { return incidenttest.IsEntry(one.Evidence) })
				if cmp.Diff(want, incidenttest.KnownOf(incidenttest.Learn(w, readings))) != "" {
					mattered.Add(1)
				}
				for seed := range uint64(3) {
					dice := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same orders each time
					var late []incidenttest.Told
					for _, one := range all {
						if incidenttest.IsEntry(one.Evidence) {
							one.At = one.At.Add(time.Duration(dice.Int64N(int64(incidenttest.LateMost))))
						}
						late = append(late, one)
					}
					if d := cmp.Diff(want, incidenttest.KnownOf(incidenttest.Learn(w, incidenttest.Order(w, late)))); d != "" {
						t.Errorf("%s, order %d: what is known (-in time +late):\n%s", id, seed, d)
					}
				}
			}
		})
	}
}
