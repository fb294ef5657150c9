package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// shaped is the policy that may replace Spot, with other shapes.
func shaped(shapes ...policy.Shape) policy.Policy {
	p := policies["spot"]
	p.Shapes = shapes
	return p
}

var smaller = policy.Shape{Accelerator: "v5litepod-8", Zones: []string{"us-central1-a"}}

// reshaped has a slice be in another shape than its owner ordered.
func reshaped(s *incident.Slot) {
	s.Order = incident.Order{Zone: s.Zone, Accelerator: s.Accelerator, Spec: s.Spec}
	s.Zone, s.Accelerator, s.Chips, s.Spec = "us-central1-a", "v5litepod-8", 8, "spec8"
	s.Incarnation.Zone = s.Zone
}

func bothReshaped(w *incident.Workload) { reshaped(&w.Slices[0]); reshaped(&w.Slices[1]) }

// TestOtherShapesAreAskedForBehindEveryZone: in the policy's order, in their own zones or in those of the slice. The slices of a
// Multislice stay alike.
func TestOtherShapesAreAskedForBehindEveryZone(t *testing.T) {
	const own = "us-west4-a, us-west4-b"
	lost := func(s *incident.Slot) { s.Condition, s.ToReplace = incident.Gone, true }
	for name, c := range map[string]struct {
		w     incident.Workload
		but   func(w *incident.Workload)
		p     policy.Policy
		slice string
		want  string
	}{
		"none is named":         {quiet(true), nil, shaped(), "llama-8b", own},
		"with zones of its own": {quiet(true), nil, shaped(smaller), "llama-8b", own + ", us-central1-a as v5litepod-8"},
		"without":               {quiet(true), nil, shaped(policy.Shape{Accelerator: "v6e-8"}), "llama-8b", own + ", us-west4-a as v6e-8, us-west4-b as v6e-8"},
		"in the order in which they are named": {
			quiet(true), nil, shaped(policy.Shape{Accelerator: "v6e-8", Zones: []string{"us-east5-b"}}, smaller), "llama-8b",
			own + ", us-east5-b as v6e-8, us-central1-a as v5litepod-8",
		},
		"its own is none": {quiet(true), nil, shaped(policy.Shape{Accelerator: "v5litepod-16", Zones: []string{"us-east5-b"}}), "llama-8b", own},
		"what its owner ordered comes first again": {
			quiet(true), func(w *incident.Workload) { reshaped(&w.Slices[0]) }, shaped(smaller), "llama-8b", own + ", us-central1-a as v5litepod-8",
		},
		"a shape that is named no more": {quiet(true), func(w *incident.Workload) { reshaped(&w.Slices[0]) }, shaped(), "llama-8b", own},
		"one of two is lost":            {multi(true), func(w *incident.Workload) { lost(&w.Slices[0]) }, shaped(smaller), "a", "us-west4-a"},
		"one of two is lost that are in another shape": {
			multi(true), func(w *incident.Workload) { bothReshaped(w); lost(&w.Slices[0]) }, shaped(), "a",
			"us-central1-a as v5litepod-8",
		},
		"both are lost": {
			multi(true), func(w *incident.Workload) { lost(&w.Slices[0]); lost(&w.Slices[1]) }, shaped(smaller), "b", own + ", us-central1-a as v5litepod-8",
		},
		"both are lost, and the other is coming in another shape": {
			multi(true), func(w *incident.Workload) {
				lost(&w.Slices[0])
				lost(&w.Slices[1])
				w.Effects = []incident.Effect{{
					Action: events.ActionCreate, Slice: "a", Zone: "us-central1-a", Accelerator: "v5litepod-8", Begun: start,
				}}
			}, shaped(smaller), "b", "us-central1-a as v5litepod-8",
		},
		"both are lost, and were never alike": {
			multi(true), func(w *incident.Workload) {
				lost(&w.Slices[0])
				lost(&w.Slices[1])
				w.Slices[1].Accelerator = "v5litepod-32"
			},
			shaped(smaller), "b", own,
		},
		"put apart by their owner": {
			multi(true), func(w *incident.Workload) {
				w.Slices[1].Zone = "us-west4-b"
				admittedIn(&w.Slices[1], "us-west4-b")
				lost(&w.Slices[0])
			},
			shaped(smaller), "a", "us-west4-a",
		},
		"one of two is lost, and the owner of the other ordered it as it is": {
			multi(true), func(w *incident.Workload) { bothReshaped(w); w.Slices[1].Order = incident.Order{}; lost(&w.Slices[0]) }, shaped(), "a",
			"us-central1-a as v5litepod-8",
		},
		"and put it elsewhere": {
			multi(true), func(w *incident.Workload) {
				bothReshaped(w)
				w.Slices[1].Order, w.Slices[1].Zone = incident.Order{}, "us-east5-b"
				admittedIn(&w.Slices[1], "us-east5-b")
				lost(&w.Slices[0])
			}, shaped(), "a", "us-central1-a as v5litepod-8",
		},
		"and the other is put elsewhere as it was ordered first": {
			multi(true), func(w *incident.Workload) {
				bothReshaped(w)
				w.Slices[1] = multi(true).Slices[1]
				lost(&w.Slices[0])
			}, shaped(), "a", "us-west4-a",
		},
		"one of two is lost, and the other comes back as it was ordered first": {
			multi(true), func(w *incident.Workload) {
				bothReshaped(w)
				w.Slices[0].Order = incident.Order{}
				lost(&w.Slices[0])
				lost(&w.Slices[1])
				w.Effects = []incident.Effect{{Action: events.ActionCreate, Slice: "b", Zone: "us-west4-a", Begun: start}}
			}, shaped(), "a", "us-west4-a as v5litepod-16",
		},
		"one of two is lost that were never alike": {
			multi(true), func(w *incident.Workload) { w.Slices[1].Accelerator = "v5litepod-32"; lost(&w.Slices[0]) }, shaped(smaller), "a", "us-west4-a",
		},
	} {
		c.w.Incident = &incident.Incident{}
		if c.but != nil {
			c.but(&c.w)
		}
		var got []string
		for _, at := range c.w.PlacesFor(c.p, c.slice) {
			got = append(got, at.String())
		}
		if d := cmp.Diff(c.want, strings.Join(got, ", ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// refuse has the zone refuse the creation that was asked for last.
func refuse(t *testing.T, p policy.Policy, n *node) (sent []events.Event) {
	t.Helper()
	for _, name := range []string{"intend create 0", "stockout create 0"} {
		e, ok := evidence(n.w, n.now)[name]
		if !ok {
			t.Fatalf("nothing can be refused; %s", tale(n.w))
		}
		n.w, sent, _ = advance(p, n.w, e, n.now)
	}
	return sent
}

// created is what was asked to be created, and where.
func created(sent []events.Event) (all []string) {
	for _, e := range sent {
		if r, ok := e.(events.RecreateRequested); ok && r.Action == events.ActionCreate {
			all = append(all, incident.Place{Zone: r.Zone, Accelerator: r.Accelerator}.String())
		}
	}
	return all
}

// TestASliceComesBackInAnotherShape when no zone gives its own, is counted by the chips that it was without, and is asked for as its
// owner ordered it when it is lost again.
func TestASliceComesBackInAnotherShape(t *testing.T) {
	p := shaped(smaller)
	n := at(t, p, true, "preempted, read lost, intend delete 0, accepted delete 0, read gone", nil)
	for _, want := range []string{"us-west4-b", "us-central1-a as v5litepod-8"} {
		if d := cmp.Diff([]string{want}, created(refuse(t, p, &n))); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	}
	other := n
	if sent := refuse(t, p, &other); len(sent) > 0 || other.w.Effects[0].Accelerator != "" || other.w.Effects[0].Zone != "us-west4-a" {
		t.Errorf("when all have refused it is not its own shape that is asked for again: %+v", other.w.Effects[0])
	}

	step := func(e incident.Evidence) {
		n.now = n.now.Add(time.Minute)
		n.w, _, _ = advance(p, n.w, e, n.now)
	}
	if either(true, false, "form") {
		n.w.Slices[0].Zone, n.w.Slices[0].SpecZone = "us-west4-b", "us-west4-b" // it was seen there for a moment
	}
	step(evidence(n.w, n.now)["intend create 0"])
	read := func(c incident.Condition, id, by, accelerator, spec string) incident.Read {
		return incident.Read{
			Origin: incident.Origin{ID: "read", Time: n.now.Add(time.Minute), Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-central1-a",
			Condition: c, State: strings.ToUpper(string(c)), Incident: by,
			Incarnation: events.Incarnation{Zone: "us-central1-a", ID: id, Created: start.Add(time.Hour)},
			Facts:       incident.Facts{Accelerator: accelerator, Workers: 1, Chips: 8, Reclaimable: true, Spec: spec, Label: n.w.Label}, Directory: n.w.Directory,
		}
	}
	ours := n.w.Incident.ID
	before := n
	step(read(incident.Ready, "8000", ours, "v5litepod-8", "spec8"))
	s := n.w.Slices[0]
	if want := (incident.Order{Zone: "us-west4-a", Accelerator: "v5litepod-16", Spec: "spec1", SpecZone: either("us-west4-b", "us-west4-a", "form")}); s.Order != want || s.Accelerator != "v5litepod-8" || s.Chips != 8 || !s.Reshaped() {
		t.Fatalf("the slice is %+v", s)
	}
	if lost := n.w.Incident.Lost(s); lost.Chips != 16 || lost.Accelerator != "v5litepod-16" {
		t.Errorf("it is counted as %+v", lost)
	}
	var told bool
	for _, l := range n.w.Incident.Timeline {
		told = told || l.Text == "create llama-8b in us-central1-a as v5litepod-8" && l.Reason == either("no capacity in us-west4-b", "llama-8b is gone, and its creation can begin", "words")
	}
	if !told {
		t.Errorf("it is not told:\n%s", tale(n.w))
	}
	w := n.w
	w.Incident, w.Closed = nil, nil
	w.Slices = []incident.Slot{s}
	w.Slices[0].Admission, w.Slices[0].Former, w.Slices[0].Maker = incident.Admitted, nil, ""
	again, _, _ := advance(p, w, read(incident.Lost, "8000", ours, "v5litepod-8", "spec8"), n.now.Add(time.Hour))
	gone := read(incident.Gone, "8000", "", "", "")
	gone.Incarnation, gone.Facts, gone.Time = events.Incarnation{}, incident.Facts{}, n.now.Add(2*time.Hour)
	_, sent, _ := advance(p, again, gone, n.now.Add(2*time.Hour))
	if d := cmp.Diff([]string{"us-west4-a"}, created(sent)); d != "" {
		t.Errorf("lost again (-want +got):\n%s", d)
	}

	n = before
	step(read(incident.Ready, "8000", "", "v5litepod-8", "spec8"))
	if s := n.w.Slices[0]; s.Order != (incident.Order{}) || s.Reshaped() {
		t.Errorf("what somebody else created is what they order now: %+v", s)
	}
	n = before
	step(read(incident.Ready, "8000", ours, "v5litepod-16", "spec16"))
	if s := n.w.Slices[0]; s.Reshaped() || len(s.Order.Accelerator) == either(0, -1, "form") {
		t.Errorf("it is as its owner ordered it, and the other may come still: %+v", s)
	}
	step(evidence(n.w, n.now)["intend admit 0"])
	step(evidence(n.w, n.now)["accepted admit 0"])
	if s := n.w.Slices[0]; s.Order != (incident.Order{}) {
		t.Errorf("training runs in it: %+v", s)
	}

	n = before
	stale := read(incident.Creating, "7999", ours, "v5litepod-16", "spec16") // the one that has just failed
	stale.Zone, stale.Incarnation.Zone = "us-west4-b", "us-west4-b"
	step(stale)
	step(read(incident.Ready, "8000", ours, "v5litepod-8", "spec8"))
	stale.Condition, stale.Incarnation, stale.Incident, stale.Time = incident.Gone, events.Incarnation{}, "", n.now.Add(time.Minute)
	step(stale)
	if want := (incident.Order{Zone: "us-west4-a", Accelerator: "v5litepod-16", Spec: either("spec1", "spec16", "spec"), SpecZone: either("us-west4-b", "us-west4-a", "form")}); n.w.Slices[0].Order != want || !n.w.Slices[0].Reshaped() {
		t.Errorf("after a late reading of the former creation the slice is %+v", n.w.Slices[0])
	}
}

// TestAMultisliceIsWhatItsOwnerOrderedLast: who creates one slice anew in the shape that all of them are in has ordered that shape,
// and they are asked for alike whichever is lost next.
func TestAMultisliceIsWhatItsOwnerOrderedLast(t *testing.T) {
	for created, want := range map[string]string{
		"v5litepod-8":  "us-central1-a, us-west4-a, us-west4-b",
		"v5litepod-16": "us-west4-a, us-west4-b, us-central1-a as v5litepod-8",
	} {
		w := multi(true)
		bothReshaped(&w)
		b := w.Slices[1]
		w, _, _ = advance(shaped(smaller), w, incident.Read{
			Origin: incident.Origin{ID: "read", Time: start.Add(time.Hour), Rank: events.RankReading}, Slice: "b", Zone: b.Zone,
			Condition: incident.Ready, State: "READY",
			Incarnation: events.Incarnation{Zone: b.Zone, ID: "9000", Created: start.Add(30 * time.Minute)},
			Facts:       incident.Facts{Accelerator: created, Workers: 2, Chips: 8, Reclaimable: true, Spec: "spec9", Label: w.Label}, Directory: w.Directory,
		}, start.Add(time.Hour))
		if s := w.Slices[1]; s.Accelerator != created || s.Order != (incident.Order{}) {
			t.Fatalf("it is %+v, as what its owner created", s)
		}
		for i := range w.Slices {
			w.Slices[i].Condition, w.Slices[i].ToReplace = incident.Gone, true
		}
		for _, s := range w.Slices {
			var got []string
			for _, at := range w.PlacesFor(shaped(smaller), s.Name) {
				got = append(got, at.String())
			}
			if d := cmp.Diff(want, strings.Join(got, ", ")); d != "" {
				t.Errorf("%s, created as %s (-want +got):\n%s", s.Name, created, d)
			}
		}
	}
}

// TestAdviceIsForWhatWasAskedFor, which need not be what the slice is.
func TestAdviceIsForWhatWasAskedFor(t *testing.T) {
	const created = "preempted, read lost, intend delete 0, accepted delete 0, read gone"
	small := func(w *incident.Workload) { reshaped(&w.Slices[0]) }
	for name, c := range map[string]struct {
		class  incident.FailureClass
		but    func(w *incident.Workload)
		shapes []policy.Shape
		want   string
	}{
		"no quota for another shape":          {incident.NoQuota, nil, []policy.Shape{smaller}, "ask Google for quota for v5litepod-8,"},
		"no quota for what its owner ordered": {incident.NoQuota, small, nil, "ask Google for quota for v5litepod-16,"},
		"no other shape fits":                 {incident.CannotMove, nil, []policy.Shape{smaller}, "zones to the policy that offer v5litepod-16"},
		"what its owner ordered goes nowhere": {incident.WrongZone, small, nil, "zones to the policy that offer v5litepod-16"},
	} {
		p := shaped(c.shapes...)
		n := at(t, p, true, created, c.but)
		for range 9 {
			if n.w.Incident == nil {
				break
			}
			n.now = n.now.Add(time.Second)
			n.w, _, _ = advance(p, n.w, evidence(n.w, n.now)["intend create 0"], n.now)
			n.w, _, _ = advance(p, n.w, incident.Answered{Request: asked(n.w, n.now), Failure: &incident.Failure{Class: c.class, Message: "no"}}, n.now)
		}
		if n.w.Incident != nil || !strings.Contains(n.w.Closed.Advice, c.want) {
			t.Errorf("%s: the advice is not %q; %s", name, c.want, tale(n.w))
		}
	}
}

// TestEveryPlaceHasItsTurn: answers take their time, and the first may be asked again before the last was asked at all.
func TestEveryPlaceHasItsTurn(t *testing.T) {
	p := shaped(smaller)
	p.Zones = []string{"us-west4-b", "us-west4-c", "us-west4-d"}
	n := at(t, p, true, "preempted, read lost, intend delete 0, accepted delete 0, read gone", nil)
	asked := []string{"us-west4-a"}
	for range 9 {
		n.now = n.now.Add(45 * time.Second)
		sent := refuse(t, p, &n)
		for range 60 {
			if len(created(sent)) > 0 {
				break
			}
			n.now = n.now.Add(5 * time.Second)
			n.w, sent, _ = tick(p, n.w, n.now)
		}
		asked = append(asked, created(sent)...)
	}
	round := []string{"us-west4-a", "us-west4-b", "us-west4-c", "us-west4-d", "us-central1-a as v5litepod-8"}
	if d := cmp.Diff(append(round, round...), asked); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
