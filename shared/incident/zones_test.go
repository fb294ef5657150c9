package incident_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
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

// TestAZoneThatJustFailedIsNotAskedForTheNextLoss: what has just refused one slice refuses another.
func TestAZoneThatJustFailedIsNotAskedForTheNextLoss(t *testing.T) {
	t.Parallel()
	n := at(t, "spot", true, created+", intend create, stockout create, do, read ours made, 20s, read lost, do, read gone")
	if got := n.places(); got != "llama-8b in us-west4-b" {
		t.Errorf("asked for is %q:\n%s", got, n.tale())
	}
}

// TestAWaitForCapacityIsOneLine that grows: a night in which no zone has room is as long as one with a single refusal. People are reminded of it after
// an hour and every six hours, and read where capacity was found.
func TestAWaitForCapacityIsOneLine(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").under("spot")
	n.p.Zones = []string{"us-west4-a", "us-west4-b", "us-west4-c", "us-west4-d", "us-central1-a"}
	n.goes(created)
	began, before, tries, reminded := n.now, len(n.w.Incident.Lines), 0, []time.Duration{}
	for n.now.Sub(began) < 14*time.Hour {
		if n.w.Effects[0].Stage() == view.StageWanted { // each call is accepted, shows a slice for a moment, and fails
			n.goes("accepted create, read ours made, read gone, late stockout create")
			tries++
		}
		n.play("1m")
		if at := n.w.Shown(n.now).Wait.Reminded.Sub(began).Round(10 * time.Minute); at > 0 && !slices.Contains(reminded, at) {
			reminded = append(reminded, at)
		}
	}
	if want := []time.Duration{time.Hour, 6 * time.Hour, 12 * time.Hour}; !slices.Equal(reminded, want) {
		t.Errorf("people were reminded after %v, want %v", reminded, want)
	}
	told := func() (lines []string) {
		for _, l := range n.w.Shown(n.now).Incident.Timeline[before:] {
			lines = append(lines, string(l.Kind)+" "+l.Text+" | "+l.Reason)
		}
		return lines
	}
	lines, wait := told(), n.w.Shown(n.now).Wait
	last := lines[len(lines)-1]
	if len(lines) != 4 || last != "decided wait for capacity | "+wait.Text || wait.Tries != tries || len(wait.Places) != 5 || !wait.Since.Equal(began.Add(4*time.Second)) {
		t.Errorf("after %d tries the story says %q, and the wait is %+v", tries, lines, wait)
	}
	want := fmt.Sprintf("%d tries since Nov 12 02:00: us-west4-a no capacity at 15:5", tries)
	for _, says := range []string{want, "us-central1-a no capacity at 1", " is asked next, at 1", "; Spot waits without end; you need not do anything"} {
		if !strings.Contains(last, says) {
			t.Errorf("the line does not say %q: %s", says, last)
		}
	}
	for n.w.Effects[0].Stage() != view.StageWanted {
		n.play("1m")
	}
	n.goes("do, read ours")
	if got := told(); len(got) < 5 || !strings.HasPrefix(got[4], "seen capacity found in ") || !strings.Contains(got[4], " after 13 h 5") || !strings.Contains(got[4], fmt.Sprintf(" and %d tries", tries)) || strings.Contains(got[3], "asked next") {
		t.Errorf("after the wait the story says %q", got)
	}
}

// TestAWaitForCapacityNamesWhatComesLater: a place whose turn comes once those before it have refused for its time.
func TestAWaitForCapacityNamesWhatComesLater(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b").under("spot")
	n.p.Zones, n.p.Places = nil, []policy.Alternative{{Capacity: events.OnDemand, After: 2 * time.Hour}}
	n.goes(created + ", stockout create")
	if w := n.w.Shown(n.now).Wait; w.Later != "us-west4-a on demand may be asked from 2026-11-12 04:00 UTC" || !strings.Contains(w.Text, "; "+w.Later+"; ") {
		t.Errorf("the wait is %+v", w)
	}
}

// TestAWaitForCapacityEnds where the policy says so, and says what would help.
func TestAWaitForCapacityEnds(t *testing.T) {
	t.Parallel()
	for class, helps := range map[string]string{"stockout": "more zones or places in the policy would help", "quota": "more quota would help"} {
		n := newStory(t, true, "llama-8b").under("spot")
		n.p.Zones, n.p.GiveUpAfter = nil, 90*time.Minute
		n.goes(created + ", " + class + " create")
		if text := n.w.Shown(n.now).Wait.Text; !strings.HasSuffix(text, "; the wait lasts until 03:30; "+helps) {
			t.Errorf("%s: the wait is %q", class, text)
		}
		for range 100 {
			if n.w.Incident != nil && n.w.Effects[0].Stage() == view.StageWanted {
				n.play(class + " create")
			}
			n.play("1m")
		}
		if got := n.ended(); got.Code != reason.CodeGaveUp || n.w.Closed.Closed.Sub(n.w.Closed.Opened).Round(10*time.Minute) != 90*time.Minute {
			t.Errorf("%s: it ended %s:\n%s", class, got.Code, n.tale())
		}
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
