package ledger_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// TestWhatIsOnlyWatchedIsHeldAgainstItsZones: in the same write, as evidence that makes the same document again, and before the
// archive takes its record. What cannot be read keeps nothing from being decided.
func TestWhatIsOnlyWatchedIsHeldAgainstItsZones(t *testing.T) {
	for name, err := range map[string]error{"": nil, "without an answer": errors.New("the ledger cannot be read")} {
		l := newLoop(t, memory)
		l.policies.Policy = policy.Policy{Name: "watch", Zones: []string{"us-west4-b"}}
		asked := 0
		l.Fits = func(_ context.Context, w incident.Workload, slice string, places []view.Place, p policy.Policy) ([]view.ZoneFit, error) {
			asked++
			if w.ID != workload || slice != "llama-8b" || !slices.Equal(places, []view.Place{{Zone: p.Zones[0]}}) {
				t.Errorf("asked about %s of %s in %v", slice, w.ID, places)
			}
			return []view.ZoneFit{{Place: view.Place{Zone: "us-west4-b"}, Checked: true, Code: reason.CannotMove.Code(), Text: "its disk stays"}}, err
		}
		var steps []ledger.Step
		l.Saved = func(_ context.Context, s ledger.Step) { steps = append(steps, s) }
		w, failed := l.Advance(t.Context(), workload, l.preempted(), l.lost())
		if failed != nil || w.Incident == nil || w.Shown(l.now).Incident.Phase != view.Watching || asked != 1 || len(steps) != 1 {
			t.Fatalf("%s: %v, asked %d times, %d steps, %+v", name, failed, asked, len(steps), w.Incident)
		}
		zone := w.Shown(l.now).Incident.PlannedCalls[1].Zones[1]
		if zone.Checked != (err == nil) || (zone.Code == "cannot_move") != (err == nil) {
			t.Errorf("%s: the zone is %+v", name, zone)
		}
		again := steps[0].Before
		for _, e := range steps[0].Evidence {
			again, _, _ = incident.Advance(steps[0].Policy, again, e, steps[0].At)
		}
		if got := again.Shown(l.now).Incident.PlannedCalls[1].Zones[1]; got != zone {
			t.Errorf("%s: the same evidence makes %+v", name, got)
		}
	}
}

// TestEverySliceOfWhatIsWatchedIsHeldAgainstItsZones, with what made the plan, and each of them once: one whose order cannot be
// read keeps no other from it.
func TestEverySliceOfWhatIsWatchedIsHeldAgainstItsZones(t *testing.T) {
	for name, c := range map[string]struct{ unread, unanswered string }{
		"": {}, "the first is not readable": {unread: "llama-8b"}, "the first has no answer": {unanswered: "llama-8b"},
		"the last is not readable": {unread: "second"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, memory)
			l.policies.Policy = policy.Policy{Name: "watch", Zones: []string{"us-west4-b"}}
			w, rev, err := l.suite.Ledger.Workload(t.Context(), workload)
			must(t, err)
			second := w.Slices[0]
			second.Name, second.Hosts, second.Incarnation.ID = "second", "", second.Incarnation.ID+"2"
			w.Slices = append(slices.Clone(w.Slices), second)
			l.mustSave(t, w, rev)
			var asked []string
			l.Fits = func(_ context.Context, _ incident.Workload, slice string, places []view.Place, _ policy.Policy) ([]view.ZoneFit, error) {
				asked = append(asked, slice)
				switch slice {
				case c.unread:
					return nil, errors.New("the ledger cannot be read")
				case c.unanswered:
					return nil, nil
				}
				return []view.ZoneFit{{Place: places[0], Checked: true}}, nil
			}
			var steps []ledger.Step
			l.Saved = func(_ context.Context, s ledger.Step) { steps = append(steps, s) }
			first, other := l.lost().(evidence.Read), l.lost().(evidence.Read) //nolint:forcetypeassert // both are
			other.Slice, other.Incarnation = second.Name, second.Incarnation
			w, err = l.Advance(t.Context(), workload, first, other)
			if err != nil || w.Incident == nil || len(steps) != 1 || !slices.Equal(asked, []string{"llama-8b", "second"}) {
				t.Fatalf("%v, asked about %v, %d steps", err, asked, len(steps))
			}
			seen := 0
			for _, p := range w.Shown(l.now).Incident.PlannedCalls {
				for _, z := range p.Zones {
					if z.Zone != "us-west4-b" {
						continue
					}
					if seen++; z.Checked != (p.Slice != c.unread && p.Slice != c.unanswered) {
						t.Errorf("%s: the zone is %+v", p.Slice, z)
					}
				}
			}
			if seen != 2 {
				t.Errorf("%d slices would be created there, want 2: %v", seen, w.Shown(l.now).Incident.WouldHave())
			}
			again := steps[0].Before
			for _, e := range steps[0].Evidence {
				again, _, _ = incident.Advance(steps[0].Policy, again, e, steps[0].At)
			}
			if d := cmp.Diff(w.Shown(l.now).Incident.PlannedCalls, again.Shown(l.now).Incident.PlannedCalls); d != "" {
				t.Errorf("the same evidence makes another plan (-got +again):\n%s", d)
			}
		})
	}
}
