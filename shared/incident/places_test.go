package incident_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

var smaller = policy.Alternative{Accelerator: "v5litepod-8", Zones: []string{"us-central1-a"}}

// demand is capacity on demand in the zones of the slice.
var demand = policy.Alternative{Capacity: events.OnDemand}

// shaped may replace Spot with slices of these shapes.
func (n *story) shaped(shapes ...policy.Alternative) *story {
	n.under("spot").p.Places = shapes
	return n
}

// reshaped has slices be in another shape than their owner ordered.
func reshaped(w *incident.Workload) {
	for i := range w.Slices {
		s := &w.Slices[i]
		s.Order = incident.Order{Accelerator: s.Accelerator, Spec: s.Spec, SpecZone: s.Zone}
		s.Zone, s.Accelerator, s.Chips, s.Spec = "us-central1-a", "v5litepod-8", 8, "spec8"
		s.Incarnation.Zone = s.Zone
	}
}

// standsAt has a slice stand where its owner has put it.
func standsAt(s *incident.Slot, zone string) { s.Zone, s.Incarnation.Zone = zone, zone }

// placesFor are the places where a slice would be created, in their order.
func (n *story) placesFor(slice string) string {
	var all []string
	for _, at := range n.w.PlacesFor(n.p, slice, n.now) {
		all = append(all, at.String())
	}
	return strings.Join(all, ", ")
}

// TestOtherPlacesAreAskedForBehindEveryZone: in the policy's order, in their own zones or in those of the slice. The slices of a Multislice stay
// alike in zone and shape: what is lost alone goes where the others are, and what is lost together moves together.
func TestOtherPlacesAreAskedForBehindEveryZone(t *testing.T) {
	t.Parallel()
	const own, both = "us-west4-a, us-west4-b", "a read lost, b read lost, do, a read gone, b read gone"
	east, plain := policy.Alternative{Accelerator: "v6e-8", Zones: []string{"us-east5-b"}}, policy.Alternative{Accelerator: "v6e-8"}
	for name, c := range map[string]struct {
		names  []string
		change func(w *incident.Workload)
		shapes []policy.Alternative
		path   string
		want   string
	}{
		"none is named":                        {nil, nil, nil, "tick", own},
		"with zones of its own":                {nil, nil, []policy.Alternative{smaller}, "tick", own + ", us-central1-a as v5litepod-8"},
		"without":                              {nil, nil, []policy.Alternative{plain}, "tick", own + ", us-west4-a as v6e-8, us-west4-b as v6e-8"},
		"in the order in which they are named": {nil, nil, []policy.Alternative{east, smaller}, "tick", own + ", us-east5-b as v6e-8, us-central1-a as v5litepod-8"},
		"its own in another zone":              {nil, nil, []policy.Alternative{{Accelerator: "v5litepod-16", Zones: []string{"us-east5-b"}}}, "tick", own + ", us-east5-b"},
		"its own where it is asked for anyway": {nil, nil, []policy.Alternative{{Capacity: events.Spot}}, "tick", own},
		"from other capacity":                  {nil, nil, []policy.Alternative{demand}, "tick", own + ", us-west4-a on demand, us-west4-b on demand"},
		"from other capacity in another shape": {
			nil, nil,
			[]policy.Alternative{{Capacity: events.Reserved, Accelerator: "v6e-8", Zones: []string{"us-east5-b"}}, demand},
			"tick",
			own + ", us-east5-b reserved as v6e-8, us-west4-a on demand, us-west4-b on demand",
		},
		"one of two is lost: from other capacity beside the other": {
			[]string{"a", "b"}, nil, []policy.Alternative{smaller, demand}, "a read lost, do, a read gone", "us-west4-a, us-west4-a on demand",
		},
		"one of two that are in another shape, from other capacity": {
			[]string{"a", "b"},
			reshaped,
			[]policy.Alternative{demand, {Accelerator: "v5litepod-8", Capacity: events.OnDemand}},
			"a read lost, do, a read gone",
			"us-central1-a as v5litepod-8, us-central1-a on demand as v5litepod-8",
		},
		"put apart by their owner, from other capacity": {
			[]string{"a", "b"},
			func(w *incident.Workload) { standsAt(&w.Slices[1], "us-west4-b") },
			[]policy.Alternative{demand},
			"a read lost, do, a read gone",
			"us-west4-a, us-west4-a on demand",
		},
		"never alike, from other capacity": {
			[]string{"a", "b"},
			func(w *incident.Workload) { w.Slices[1].Accelerator = "v5litepod-32" },
			[]policy.Alternative{smaller, demand},
			both,
			own + ", us-west4-a on demand, us-west4-b on demand",
		},
		"what its owner ordered comes first again": {nil, reshaped, []policy.Alternative{smaller}, "tick", own + ", us-central1-a as v5litepod-8"},
		"a shape that is named no more":            {nil, reshaped, nil, "tick", own},
		"one of two is lost":                       {[]string{"a", "b"}, nil, []policy.Alternative{smaller}, "a read lost, do, a read gone", "us-west4-a"},
		"one of two is lost that are in another shape": {
			[]string{"a", "b"}, reshaped, nil, "a read lost, do, a read gone", "us-central1-a as v5litepod-8",
		},
		"both are lost": {[]string{"b", "a"}, nil, []policy.Alternative{smaller}, both, own + ", us-central1-a as v5litepod-8"},
		"both are lost, and the other is coming in another shape": {
			[]string{"a", "b"}, nil, []policy.Alternative{smaller}, both + ", stockout create b, stockout create b, intend create b", "us-central1-a as v5litepod-8",
		},
		"both are lost, and were never alike": {
			[]string{"a", "b"}, func(w *incident.Workload) { w.Slices[1].Accelerator = "v5litepod-32" }, []policy.Alternative{smaller}, both, own,
		},
		"put apart by their owner": {
			[]string{"a", "b"}, func(w *incident.Workload) { standsAt(&w.Slices[1], "us-west4-b") }, []policy.Alternative{smaller}, "a read lost, do, a read gone", "us-west4-a",
		},
		"one of two is lost, and the owner of the other ordered it as it is": {
			[]string{"a", "b"},
			func(w *incident.Workload) { reshaped(w); w.Slices[1].Order = incident.Order{} }, nil, "a read lost, do, a read gone",
			"us-central1-a as v5litepod-8",
		},
		"and the other stands elsewhere as it was ordered first": {
			[]string{"a", "b"}, func(w *incident.Workload) {
				b := w.Slices[1]
				reshaped(w)
				w.Slices[1] = b
			}, nil, "a read lost, do, a read gone", "us-west4-a",
		},
		"one of two is lost that were never alike": {
			[]string{"a", "b"}, func(w *incident.Workload) { w.Slices[1].Accelerator = "v5litepod-32" }, []policy.Alternative{smaller}, "a read lost, do, a read gone", "us-west4-a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names := c.names
			if names == nil {
				names = []string{"llama-8b"}
			}
			n := newStory(t, true, names...).shaped(c.shapes...)
			if c.change != nil {
				c.change(&n.w)
			}
			if got := n.goes(c.path).placesFor(names[0]); got != c.want {
				t.Errorf("it is asked for in %s, want %s:\n%s", got, c.want, n.tale())
			}
		})
	}
}

// inShape is a reading of the life with that ID in us-central1-a, which is 8 chips there.
func (n *story) inShape(c evidence.Condition, id, by, accelerator string) evidence.Read {
	e := n.read(&n.w.Slices[0], c, events.Incarnation{Zone: "us-central1-a", ID: id, Created: start.Add(time.Hour)})
	e.Incident, e.Facts = by, evidence.Facts{Accelerator: accelerator, Workers: 1, Chips: 8, Capacity: events.Spot, Spec: "spec8"}
	return e
}

// TestASliceComesBackInAnotherShape when no zone gives its own, is counted by the chips that it was without, and is asked for as its owner ordered it
// when it is lost again.
func TestASliceComesBackInAnotherShape(t *testing.T) {
	t.Parallel()
	comes := func() *story {
		n := newStory(t, true, "llama-8b").shaped(smaller).goes(created + ", stockout create")
		if got := n.places(); got != "llama-8b in us-west4-b" {
			t.Fatalf("asked for next is %q", got)
		}
		if n.play("stockout create"); n.places() != "llama-8b in us-central1-a as v5litepod-8" {
			t.Fatalf("asked for at last is %q", n.places())
		}
		return n
	}
	t.Run("it comes", func(t *testing.T) {
		n := comes().goes("do")
		n.give(n.inShape(evidence.Ready, "8000", n.w.Incident.ID, "v5litepod-8"))
		s := n.w.Slices[0]
		if want := (incident.Order{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Spec: "spec1", SpecZone: "us-west4-a", Capacity: events.Spot}); s.Order != want || s.Chips != 8 || s.AsOrdered() {
			t.Fatalf("the slice is %+v", s)
		}
		n.goes("do, started, 1m, steps, 1h, read lost, do, read gone")
		if got := n.places(); got != "llama-8b in us-west4-a" {
			t.Errorf("lost again it is asked for in %q:\n%s", got, n.tale())
		}
	})
	t.Run("it is lost again in the same incident", func(t *testing.T) {
		n := comes().goes("do")
		by := n.w.Incident.ID
		n.now = n.now.Add(2 * time.Hour)
		n.give(n.inShape(evidence.Ready, "8000", by, "v5litepod-8"))
		n.now = n.now.Add(time.Minute)
		n.give(n.inShape(evidence.Lost, "8000", by, "v5litepod-8"))
		n.now = n.now.Add(time.Minute)
		n.give(n.inShape(evidence.Gone, "8000", by, "v5litepod-8"))
		if got := n.places(); got != "llama-8b in us-west4-a" {
			t.Errorf("it is asked for in %q:\n%s", got, n.tale())
		}
	})
	t.Run("what somebody else made is what they order now", func(t *testing.T) {
		n := comes().goes("do")
		if n.give(n.inShape(evidence.Ready, "8000", "", "v5litepod-8")); n.w.Slices[0].Order != (incident.Order{}) {
			t.Errorf("the slice is %+v", n.w.Slices[0])
		}
	})
	t.Run("it comes as its owner ordered it", func(t *testing.T) {
		n := comes().goes("do")
		n.give(n.inShape(evidence.Ready, "8000", n.w.Incident.ID, "v5litepod-16"))
		if n.play("do"); !n.w.Slices[0].AsOrdered() || n.w.Slices[0].Order != (incident.Order{}) {
			t.Errorf("the slice is %+v", n.w.Slices[0])
		}
	})
	t.Run("a late reading of the creation before it", func(t *testing.T) {
		n := comes().goes("intend create")
		stale := n.inShape(evidence.Creating, "7999", n.w.Incident.ID, "v5litepod-16") // the one that has just failed
		stale.Zone, stale.Incarnation.Zone = "us-west4-b", "us-west4-b"
		n.give(stale)
		n.now = n.now.Add(time.Minute)
		n.give(n.inShape(evidence.Ready, "8000", n.w.Incident.ID, "v5litepod-8"))
		n.now = n.now.Add(time.Minute)
		stale.Condition, stale.Incarnation, stale.Incident, stale.Time = evidence.Gone, events.Incarnation{}, "", n.now
		if n.give(stale); n.w.Slices[0].Order.Accelerator != "v5litepod-16" || n.w.Slices[0].Accelerator != "v5litepod-8" {
			t.Errorf("the slice is %+v", n.w.Slices[0])
		}
	})
}

// TestAMultisliceIsWhatItsOwnerOrderedLast: who creates one slice anew in the shape that all of them are in has ordered that shape, and they are asked
// for alike whichever is lost next.
func TestAMultisliceIsWhatItsOwnerOrderedLast(t *testing.T) {
	t.Parallel()
	for made, want := range map[string]string{
		"v5litepod-8": "a in us-central1-a, b in us-central1-a", "v5litepod-16": "a in us-west4-a, b in us-west4-a",
	} {
		n := multi(t, true).with(reshaped).shaped(smaller)
		n.now = n.now.Add(time.Hour)
		e := n.read(&n.w.Slices[1], evidence.Ready, events.Incarnation{Zone: "us-central1-a", ID: "9000", Created: start.Add(30 * time.Minute)})
		e.Facts.Accelerator, e.Facts.Spec = made, "spec9"
		if n.give(e); n.w.Slices[1].Order != (incident.Order{}) {
			t.Fatalf("it is %+v, as what its owner created", n.w.Slices[1])
		}
		n.goes("2h, a read lost, b read lost, do, a read gone, b read gone")
		if got := n.places(); got != want {
			t.Errorf("created as %s they are asked for in %s, want %s:\n%s", made, got, want, n.tale())
		}
	}
}

// TestAdviceIsForWhatWasAskedFor, which need not be what the slice is.
func TestAdviceIsForWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class  string
		change func(w *incident.Workload)
		shapes []policy.Alternative
		want   string
	}{
		"no quota for another shape":          {"no_quota", nil, []policy.Alternative{smaller}, "ask Google for quota for v5litepod-8,"},
		"no quota for what its owner ordered": {"no_quota", reshaped, nil, "ask Google for quota for v5litepod-16,"},
		"no other shape fits":                 {"cannot_move", nil, []policy.Alternative{smaller}, "zones to the policy that offer v5litepod-16"},
		"what its owner ordered goes nowhere": {"wrong_zone", reshaped, nil, "zones to the policy that offer v5litepod-16"},
	} {
		n := newStory(t, true, "llama-8b").shaped(c.shapes...)
		if c.change != nil {
			c.change(&n.w)
		}
		for n.goes(created); n.w.Incident != nil && len(n.path) < 20; {
			n.play(c.class + " create")
		}
		if got := n.ended().Advice.String(); !strings.Contains(got, c.want) {
			t.Errorf("%s: the advice is %q, want %q:\n%s", name, got, c.want, n.tale())
		}
	}
}

// takes has an order be taken somewhere: the next life in the place that is asked for.
func (n *story) takes(id string) *story {
	n.Helper()
	x := n.w.Effects[n.effect(events.ActionCreate, n.w.Slices[0].Name)]
	n.play("do")
	e := n.read(&n.w.Slices[0], evidence.Ready, events.Incarnation{Zone: x.Zone, ID: id, Created: n.now})
	e.Zone, e.Incident, e.Facts = x.Zone, n.w.Incident.ID, n.w.Slices[0].In(x.Place).Facts
	e.Facts.Spec = "spec-" + id
	n.give(e)
	return n
}

// refusesUntil refuses whatever is asked for until something else than these zones as ordered is, and says for how long.
func (n *story) refusesUntil(place string) (refused time.Duration) {
	n.Helper()
	first := n.now
	for n.now.Sub(first) < 48*time.Hour {
		switch got := n.places(); got {
		case "":
			n.later(30 * time.Second).play("tick")
		case n.w.Slices[0].Name + " in " + place:
			return n.now.Sub(first)
		default:
			n.play("intend create")
			n.play("stockout create")
		}
	}
	n.Fatalf("%s is never asked for:\n%s", place, n.tale())
	return 0
}

// TestSpotThatStandsOnDemandIsReplacedLikeSpot: what its owner ordered decides, wherever it stands, and its next loss begins at the first place.
func TestSpotThatStandsOnDemandIsReplacedLikeSpot(t *testing.T) {
	t.Parallel()
	other := demand
	other.After = 2 * time.Hour
	n := newStory(t, true, "llama-8b").shaped(other).goes(created)
	if took := n.refusesUntil("us-west4-a on demand"); took < 2*time.Hour || took > 2*time.Hour+3*time.Minute {
		t.Errorf("it is asked for on demand after %s:\n%s", took, n.tale())
	}
	if tale := n.tale(); strings.Count(tale, "create llama-8b in us-west4-a on demand | its turn has come: 2 places have refused for 2 h ") != 1 {
		t.Errorf("the story does not tell that it is asked for on demand:\n%s", tale)
	}
	n.takes("8000").goes("do, started, 1m, steps, 10h")
	s := n.w.Slices[0]
	if want := (incident.Order{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Spec: "spec1", SpecZone: "us-west4-a", Capacity: events.Spot}); s.Order != want || s.AsOrdered() || n.w.Incident != nil {
		t.Fatalf("the slice is %+v:\n%s", s, n.tale())
	}
	n.goes("read lost, later, do, read gone")
	if got := n.places(); got != "llama-8b in us-west4-a" {
		t.Fatalf("lost again it is asked for in %q:\n%s", got, n.tale())
	}
	if took := n.refusesUntil("us-west4-a on demand"); took < 2*time.Hour {
		t.Errorf("the next time it is asked for on demand after %s:\n%s", took, n.tale())
	}

	n = newStory(t, false, "llama-8b").shaped(policy.Alternative{Capacity: events.Spot})
	n.p.Switches.RecreateNonSpot = policy.Yes
	n.goes("read lost, later, do, read gone")
	n.refusesUntil("us-west4-a Spot")
	n.takes("8000").goes("do, started, 1m, steps, 10h").p.Switches.RecreateNonSpot = policy.No
	if n.goes("read lost, later, do"); n.ended().Outcome != view.Escalated {
		t.Errorf("an order on demand that stands on Spot:\n%s", n.tale())
	}
}

// TestTimeInWhichCallsAreHeldIsNoRefusal: a place has to wait longer by as much.
func TestTimeInWhichCallsAreHeldIsNoRefusal(t *testing.T) {
	t.Parallel()
	other := demand
	other.After = 2 * time.Hour
	n := newStory(t, true, "llama-8b").shaped(other).goes(created + ", intend create, stockout create")
	n.w.Holds = append(n.w.Holds, incident.Hold{From: n.now.Add(10 * time.Minute), Until: n.now.Add(70 * time.Minute)})
	if took := n.refusesUntil("us-west4-a on demand"); took < 3*time.Hour || took > 3*time.Hour+3*time.Minute {
		t.Errorf("it is asked for on demand after %s:\n%s", took, n.tale())
	}
}

// TestNoPlaceIsAskedBeforeItsTurn: whatever the policy names, and whatever refuses, each place comes after those before it, and once they have
// refused for its time.
func TestNoPlaceIsAskedBeforeItsTurn(t *testing.T) {
	t.Parallel()
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // the same draws in every run
		n := newStory(t, true, "llama-8b")
		n.under("spot").p.Zones = []string{"us-west4-b", "us-west4-c"}[:r.IntN(3)]
		for range r.IntN(4) {
			a := policy.Alternative{After: time.Duration(r.IntN(5)) * time.Hour, Capacity: []events.Capacity{"", events.OnDemand, events.Reserved, events.Spot}[r.IntN(4)]}
			if a.Capacity == "" || r.IntN(3) == 0 {
				a.Accelerator = []string{"v5litepod-8", "v6e-8"}[r.IntN(2)]
			}
			if r.IntN(2) == 0 {
				a.Zones = []string{"us-central1-a", "us-west4-b"}[:1+r.IntN(2)]
			}
			n.p.Places = append(n.p.Places, a)
		}
		n.goes(created)
		places, asked, first := n.w.PlacesFor(n.p, "llama-8b", n.now), map[view.Place]bool{}, time.Time{}
		for end := n.now.Add(8 * time.Hour); n.now.Before(end) && n.w.Incident != nil; {
			if n.places() == "" {
				n.later(time.Duration(1+r.IntN(90)) * time.Second).play("tick")
				continue
			}
			at := n.w.Effects[n.effect(events.ActionCreate, "llama-8b")].Place
			i := slices.Index(places, at)
			if before := slices.IndexFunc(places[:i], func(p view.Place) bool { return !asked[p] }); before >= 0 {
				t.Fatalf("seed %d: %s is asked before %s", seed, at, places[before])
			}
			if waited, after := n.now.Sub(first), n.w.Slices[0].After(n.p, at); after > 0 && waited < after {
				t.Fatalf("seed %d: %s is asked after %s, and has to wait for %s", seed, at, waited, after)
			}
			asked[at] = true
			n.play("intend create")
			if first.IsZero() {
				first = n.now
			}
			n.play([]string{"stockout", "stockout", "stockout", "quota", "reservation_full", "cannot_move"}[r.IntN(6)] + " create")
		}
	}
}

// standsOnDemand has Spot slices stand on demand, in the place of their zone, for so long.
func standsOnDemand(w *incident.Workload) {
	for i := range w.Slices {
		s := &w.Slices[i]
		s.Order = incident.Order{Accelerator: s.Accelerator, Workers: s.Workers, Chips: s.Chips, Capacity: events.Spot, Spec: s.Spec, SpecZone: s.Zone}
		s.Capacity, s.Spec = events.OnDemand, "spec-on-demand"
	}
}

// TestATrainingIsMovedBackOnlyOnceItIsSaved: after a time, where the policy says so, and not without a verified save.
func TestATrainingIsMovedBackOnlyOnceItIsSaved(t *testing.T) {
	t.Parallel()
	back := func(change ...func(*incident.Workload)) *story {
		n := newStory(t, true, "llama-8b").with(append(change, standsOnDemand)...).shaped(demand)
		n.p.BackToFirst, n.p.LeaveZoneFor, n.w.Ended = policy.BackAfterSave, 6*time.Hour, n.now.Add(-time.Hour)
		return n
	}
	// opens lets the training go on until it is moved, for ten hours at most, and says for how long it was left alone.
	opens := func(n *story) time.Duration {
		first := n.now
		for n.w.Incident == nil && n.now.Sub(first) < 10*time.Hour {
			n.later(10 * time.Minute).goes("steps") // the crew's line is enough: nothing is due that would bring a tick
		}
		return n.now.Sub(first)
	}
	n := back()
	if took := opens(n); took < 4*time.Hour+50*time.Minute || took > 5*time.Hour+10*time.Minute || n.w.Incident == nil || n.w.Incident.Cause() != events.CauseMove { // it is usable for an hour
		t.Fatalf("it opens after %s:\n%s", took, n.tale())
	}
	n.history("does save, saved", "saving: verify", "found verify", "deleting: delete llama-8b", "do, read gone", "creating: create llama-8b")
	if got := n.places(); got != "llama-8b in us-west4-a" {
		t.Errorf("it is created: %s:\n%s", got, n.tale())
	}
	n.takes("8000").goes("do, started, 1m, steps")
	if got := n.ended(); got.Outcome != view.Resumed || len(n.w.Charges) > 0 || !n.w.Slices[0].AsOrdered() {
		t.Errorf("it ended %s, with the charges %v:\n%s", got.Outcome, n.w.Charges, n.tale())
	}
	for path, code := range map[string]reason.Code{
		"does save, later, tick":                      reason.CodeNotMoved, // no crew answers
		"does save, refused":                          reason.CodeNotMoved,
		"does save, saved, torn verify, later, tick":  reason.CodeNotMoved,
		"does save, saved, found verify, 11m":         reason.CodeNotMoved, // nobody began the deletion
		"does save, saved, found verify, does delete": "",
	} {
		n := back()
		opens(n)
		if n.goes(path); code == "" {
			continue
		}
		if got := n.ended(); got.Outcome != view.Withdrawn || got.Code != code || slices.ContainsFunc(n.w.Closed.Calls, func(c view.Call) bool { return c.Action == events.ActionDelete }) {
			t.Errorf("%s: it ended %s (%s):\n%s", path, got.Outcome, got.Code, n.tale())
		}
		if took := opens(n); took < 6*time.Hour-10*time.Minute {
			t.Errorf("%s: it is tried again after %s:\n%s", path, took, n.tale())
		}
	}
	for name, change := range map[string]func(*story){
		"the policy leaves it": func(n *story) { n.p.BackToFirst = policy.BackNo },
		"a person is asked":    func(n *story) { n.p.Switches.Recreate = policy.Ask },
		"nobody saves":         func(n *story) { n.p.Switches.RequestCheckpoint = policy.No },
		"as its owner ordered": func(n *story) { n.w.Slices[0].Order = incident.Order{} },
	} {
		n := back()
		change(n)
		if opens(n); n.w.Incident != nil {
			t.Errorf("%s: it is moved back:\n%s", name, n.tale())
		}
	}
}
