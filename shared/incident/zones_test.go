package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// created is the path to the creation of a slice that was lost.
const created = "preempted, read lost, do, read gone"

// TestAMultisliceIsNotTornOverZones: one that is lost alone waits for capacity where the others stand; when all are lost they move together.
func TestAMultisliceIsNotTornOverZones(t *testing.T) {
	t.Parallel()
	const a, b, lost = "us-west4-a", "us-west4-b", "a read lost, do, b read lost, do, a read gone, b read gone"
	const stay, move = "a in " + a + ", b in " + a, "a in " + b + ", b in " + b
	apart := func(w *incident.Workload) { w.Slices[1].Zone, w.Slices[1].Incarnation.Zone = b, b }
	for name, c := range map[string]struct {
		change func(w *incident.Workload)
		steps  []string
	}{
		"one waits for capacity where the other stands": {spot, []string{
			"a read lost, do, a read gone", "a in " + a, "intend create 0, stockout create 0", "", "three minutes", "a in " + a, "intend create 0, stockout create 0, three minutes", "a in " + a,
		}},
		"both move together": {spot, []string{
			lost, stay, "intend create 0, stockout create 0", move, "a minute, intend create 1, stockout create 1", "", "three minutes", stay, // every zone refused
		}},
		"the second waits for capacity where the first is being made": {spot, []string{
			lost, stay, "intend create 0, intend create 1, stockout create 1, accepted create 0", "", "three minutes", "b in " + a,
			"a read ours, intend create 0, stockout create 0", "", "three minutes", "b in " + a,
		}},
		"when the first is not made after all they move together": {spot, []string{
			lost + ", intend create 0, accepted create 0, intend create 1, stockout create 1", "", "late stockout create 0", move,
		}},
		"when neither is made after all they move together": {spot, []string{
			lost + ", do, a read ours made, b read ours made, late stockout create 0", "", "late stockout create 1", move, // the second is being made
		}},
		"what is on its way out stands until it is gone": {spot, []string{
			"a read lost, do, a read gone, do, b read lost, late stockout create 0", "", "b read ready, three minutes", "a in " + a, // it may heal before it is deleted
		}},
		"and goes with the others then": {spot, []string{"a read lost, do, a read gone, do, b read lost, late stockout create 0, do", "", "b read gone", move}},
		"whose owner has put them apart each stays where it was": {apart, []string{
			lost, "a in " + a + ", b in " + b, "intend create 1, stockout create 1", "", "three minutes", "a in " + a + ", b in " + b, // nobody has begun the first
		}},
	} {
		n := multi(t, true).under("spot").with(c.change)
		for i := 0; i < len(c.steps); i += 2 {
			if n.goes(c.steps[i]); n.places() != c.steps[i+1] {
				t.Fatalf("%s: after %q asked for is %q, want %q:\n%s", name, n.path, n.places(), c.steps[i+1], n.tale())
			}
		}
	}
}

// TestQuotaIsNotAskedForBlindly: it is looked at first, and asked for every ten minutes; where it is nothing it is never asked for again.
func TestQuotaIsNotAskedForBlindly(t *testing.T) {
	t.Parallel()
	for class, within := range map[string][2]time.Duration{
		"quota": {bounds.QuotaEvery / 2, bounds.QuotaEvery}, "stockout": {bounds.CapacityEvery, 2*bounds.CapacityEvery + time.Minute}, "no_quota": {},
	} {
		n := newStory(t, true, "llama-8b").under("spot")
		n.p.Zones = nil
		if n.goes(created + ", " + class + " create"); within[1] == 0 {
			if got := n.ended(); got.Outcome != view.Escalated || !strings.Contains(got.Advice.String(), "ask Google for quota for v5litepod-16") {
				t.Errorf("%s: it ended %s, and the advice is %q", class, got.Outcome, got.Advice)
			}
			continue
		}
		if look := n.w.Reads(n.now).Has(incident.ReadSlices, ""); look != (class == "quota") || len(n.sent) > 0 {
			t.Errorf("%s: it is looked at: %v; asked for is %q", class, look, n.sent)
		}
		began := n.now
		for n.places() == "" && n.now.Sub(began) < time.Hour {
			n.play("tick")
		}
		if took := n.now.Sub(began); took > within[1] || took < within[0] {
			t.Errorf("%s: it is asked for again after %s:\n%s", class, took, n.tale())
		}
	}
}

// TestAZoneThatJustFailedIsNotAskedForTheNextLoss: what has just refused one slice refuses another; and the story says when capacity was found.
func TestAZoneThatJustFailedIsNotAskedForTheNextLoss(t *testing.T) {
	t.Parallel()
	n := at(t, "spot", true, created+", intend create, stockout create, do, read ours made, 20s, read lost, do, read gone")
	if got := n.places(); got != "llama-8b in us-west4-b" {
		t.Errorf("asked for is %q:\n%s", got, n.tale())
	}
	if said := n.goes("do, read ours").tale(); !strings.Contains(said, "capacity was found in us-west4-b") {
		t.Errorf("nothing says that capacity was found:\n%s", said)
	}
}

// TestAWaitForCapacityIsToldOf after an hour, every six hours, and when it is over.
func TestAWaitForCapacityIsToldOf(t *testing.T) {
	t.Parallel()
	n, told := at(t, "spot", true, created), ""
	began := n.now
	for n.now.Sub(began) < 14*time.Hour || n.w.Effects[0].Stage() != view.StageWanted {
		if n.w.Effects[0].Stage() == view.StageWanted {
			n.play("stockout create")
		}
		n.play("1m")
	}
	for _, l := range n.goes("do, read ours").w.Incident.Lines {
		if what := l.What.String(); strings.HasPrefix(what, "still create") || strings.HasPrefix(what, "capacity") {
			told += l.At.Sub(began).Round(10*time.Minute).String() + " " + strings.Join(strings.Fields(what)[:2], " ") + ", "
		}
	}
	if told != "1h0m0s still create, 6h0m0s still create, 12h0m0s still create, 14h0m0s capacity was, " {
		t.Errorf("told is %q:\n%s", told, n.tale())
	}
}

// TestEveryPlaceHasItsTurn: answers take their time, and the first may be asked again before the last was asked at all.
func TestEveryPlaceHasItsTurn(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").under("spot")
	n.p.Zones, n.p.Places = []string{"us-west4-b", "us-west4-c", "us-west4-d"}, []policy.Alternative{smaller}
	n.goes(created)
	asked := []string{n.places()}
	for range 9 {
		n.later(45 * time.Second).play("stockout create")
		for i := 0; n.places() == "" && i < 60; i++ {
			n.later(4 * time.Second).play("tick")
		}
		asked = append(asked, n.places())
	}
	round := []string{"us-west4-a", "us-west4-b", "us-west4-c", "us-west4-d", "us-central1-a as v5litepod-8"}
	for i, got := range asked {
		if want := "llama-8b in " + round[i%5]; got != want {
			t.Fatalf("asked in turn is %q, want %q at %d", asked, want, i)
		}
	}
}

// TestElsewhereIsWhereASliceMayStillCome: not where it is asked for, and no zone that can never give it.
func TestElsewhereIsWhereASliceMayStillCome(t *testing.T) {
	t.Parallel()
	const a, b, c = "us-west4-a", "us-west4-b", "us-west4-c"
	for _, tt := range []struct {
		zones []string
		never string
		asked string
		want  bool
	}{
		{nil, "", a, false},
		{[]string{a}, "", a, false},
		{[]string{b}, "", a, true},
		{[]string{b}, "", b, true},
		{[]string{b}, b, a, false},
		{[]string{b, c}, b, a, true},
	} {
		n := newStory(t, true, "llama-8b").under("spot")
		n.p.Zones, n.w.Incident = tt.zones, &incident.Incident{Refusals: []view.Refusal{{Place: view.Place{Zone: b}}}}
		if tt.never != "" {
			n.w.Incident.Refusals[0].Never = true
		}
		if got := n.w.OtherPlaceMayHaveIt(n.p, "llama-8b", view.Place{Zone: tt.asked}); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	if n := multi(t, true); n.w.OtherPlaceMayHaveIt(n.p, "a", view.Place{Zone: a}) {
		t.Error("one of two goes where the other is not")
	}
}

// TestAZoneThatDoesNotTakeTheOrderEndsNothing: the next zone is asked. Where the slice was itself, what is wrong is wrong everywhere.
func TestAZoneThatDoesNotTakeTheOrderEndsNothing(t *testing.T) {
	t.Parallel()
	const second, next = ", stockout create, intend create, ", "creating: create llama-8b"
	for path, want := range map[string]string{
		second + "cannot_move create": next, second + "invalid create": next, second + "not_found create": next, second + "wrong_zone create": next,
		second + "other_region create": next, second + "accepted create, late invalid create": next,
		second + "permission create": "escalated", second + "accepted create, late permission create": "escalated",
		", invalid create": "escalated", ", wrong_zone create": next, ", no_quota create": next, ", cannot_move create": next, ", reservation_full create": next,
	} {
		n := newStory(t, true, "llama-8b").under("spot")
		n.p.Zones = []string{"us-west4-b", "us-central1-a"}
		got := n.stands(n.goes(created + path).sent)
		if got == next && want == next {
			r := n.w.Incident.Refusals
			zone, never := n.p.Zones[len(r)-1], path != ", reservation_full create"
			if n.places() != "llama-8b in "+zone || r[len(r)-1].Never != never || n.w.Effects[0].Failures != 0 {
				t.Errorf("%s: it asks for %q, after %+v", path, n.places(), r)
			}
		} else if got != want {
			t.Errorf("%s: it stands at %q:\n%s", path, got, n.tale())
		}
	}
}
