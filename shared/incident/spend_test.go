package incident_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
)

const week = 7 * 24 * time.Hour

// budgeted is a story of slices of 16 chips that have stood for 200 hours, at a dollar a chip-hour, with a budget of so much a week.
func budgeted(t *testing.T, dollars float64, names ...string) *story {
	n := newStory(t, true, names...).under("spot")
	n.p.ChipHourPrice, n.p.SpendAtMost = 1, policy.Budget{Dollars: dollars, Per: week}
	return n
}

// TestAReplacementThatPassesTheBudgetIsAskedAbout, with the amounts. A yes lets it go on, and the next loss is asked about anew.
func TestAReplacementThatPassesTheBudgetIsAskedAbout(t *testing.T) {
	t.Parallel()
	for dollars, want := range map[float64]string{168*16 + 17: "deleting: delete llama-8b", 168*16 + 15: "approving"} {
		n := budgeted(t, dollars, "llama-8b")
		if f := n.w.IfLost(n.p, "llama-8b", n.now); string(f.Phase) == "approving" != (want == "approving") {
			t.Errorf("%v: foreseen is %+v", dollars, f)
		}
		if n.history("preempted, read lost", want); want != "approving" {
			continue
		}
		const says = "2688.00 USD of 2703 USD a week are spent, and an hour of llama-8b costs 16.00 USD"
		if last := n.w.Incident.Lines[len(n.w.Incident.Lines)-1]; last.Why.String() != says || last.Code != reason.CodeSpendAtMost {
			t.Errorf("asked is %q (%s)", last.Why, last.Code)
		}
		n.history("approved", "deleting: delete llama-8b", "do, read gone", "creating: create llama-8b", "stockout create", "creating: create llama-8b",
			"do, read ours, do, started, steps", "resumed", "10m, preempted, read lost", "approving")
	}
}

// TestABudgetStopsNothingThatRuns: while its creation is under way nothing is asked, and none is deleted for it.
func TestABudgetStopsNothingThatRuns(t *testing.T) {
	t.Parallel()
	n := budgeted(t, 1e6, "llama-8b").goes(created + ", does create")
	n.p.SpendAtMost.Dollars = 1
	n.history("10m", "creating", "read ours, do, started, steps", "resumed", "10h", "resumed")
}

// TestWhatIsBeingCreatedIsKept while another slice is asked about.
func TestWhatIsBeingCreatedIsKept(t *testing.T) {
	t.Parallel()
	n := budgeted(t, 1e6, "a", "b").goes("a read lost, do, a read gone, does create a")
	n.p.SpendAtMost.Dollars = 1
	n.history("b read lost", "approving", "a read ours", "approving", "10m", "approving", "approved", "deleting: delete b")
	if s := n.w.Slice("a"); s.Condition != evidence.Ready || n.effect(events.ActionDelete, "a") >= 0 {
		t.Errorf("a is %s, and its deletion is wanted:\n%s", s.Condition, n.tale())
	}
}

// TestAReplacementGoesOnOnceTheBudgetHasRoom: what was spent a week ago counts no more.
func TestAReplacementGoesOnOnceTheBudgetHasRoom(t *testing.T) {
	t.Parallel()
	n := budgeted(t, 168*16-160, "llama-8b").goes("preempted, read lost").history("10h", "approving")
	if sent := n.passes(time.Hour + time.Minute); len(sent) != 1 || sent[0] != "delete llama-8b" {
		t.Errorf("after eleven hours asked for is %q:\n%s", sent, n.tale())
	}
}

// TestASpendingIsShown with what is left and when the budget is passed.
func TestASpendingIsShown(t *testing.T) {
	t.Parallel()
	n := budgeted(t, 500, "a")
	n.w.Slices[0].Standing = start.Add(-10 * time.Hour)
	v := incident.View(n.p, n.w, n.now).Spending
	const says = "160.00 of 500 USD a week are spent, 340.00 are left; at 16.00 an hour the budget is passed by 2026-11-13 00:00 UTC"
	if v == nil || v.String() != says || v.RunsLow() {
		t.Errorf("shown is %s, want %s", v, says)
	}
	if n.p.SpendAtMost.Dollars = 168 * 16; !incident.View(n.p, n.w, n.now).Spending.PassedAt.IsZero() {
		t.Error("what has room for the whole week is said to pass it")
	}
	n.p.SpendAtMost.Dollars = 100
	if v = incident.View(n.p, n.w, n.now).Spending; v.String() != "160.00 of 100 USD a week are spent: Pitstop asks before it replaces a slice" || !v.RunsLow() {
		t.Errorf("shown is %s", v)
	}
}

// TestWhatIsSpentIsWhatStood: over random weeks, the chip-seconds of the document are those of all lives of the world, in any time up to a week.
func TestWhatIsSpentIsWhatStood(t *testing.T) {
	t.Parallel()
	for seed := range 60 {
		r := rand.New(rand.NewPCG(uint64(seed), 5)) //nolint:gosec // it has to be repeated
		n := newStory(t, true, []string{"a", "b"}[:1+seed%2]...)
		n.p = policy.Policy{ChipHourPrice: 3600, Hash: "h"} // a dollar for a chip-second
		type life struct{ from, until time.Time }
		var lives []*life
		stands := map[string]*life{}
		for _, s := range n.w.Slices {
			stands[s.Name] = &life{from: s.Incarnation.Created}
			lives = append(lives, stands[s.Name])
		}
		for i := range 60 {
			n.later(time.Duration(r.IntN(5*3600)) * time.Second)
			s := &n.w.Slices[r.IntN(len(n.w.Slices))]
			if l := stands[s.Name]; l != nil {
				l.until = n.now
				delete(stands, s.Name)
				if n.reads(s.Name, evidence.Lost); r.IntN(2) == 0 {
					n.later(time.Hour).reads(s.Name, evidence.Gone)
				}
				continue
			}
			born := &life{from: n.now.Add(-time.Duration(r.IntN(60)) * time.Second)}
			stands[s.Name] = born
			lives = append(lives, born)
			zone := []string{"us-west4-a", "us-west4-b"}[r.IntN(2)]
			n.reads(s.Name, evidence.Ready, func(e *evidence.Read) {
				e.Zone, e.Incarnation = zone, events.Incarnation{Zone: zone, ID: fmt.Sprint(9000 + i), Created: born.from}
			})
			for _, per := range []time.Duration{24 * time.Hour, week} {
				want := 0.0
				for _, l := range lives {
					until := l.until
					if until.IsZero() {
						until = n.now
					}
					if since := n.now.Add(-per); l.from.After(since) {
						want += until.Sub(l.from).Seconds() * 16
					} else if until.After(since) {
						want += until.Sub(since).Seconds() * 16
					}
				}
				n.p.SpendAtMost = policy.Budget{Dollars: 1, Per: per}
				if got := n.w.Spending(n.p, n.now).Spent; math.Abs(got-want) > 1 {
					t.Fatalf("seed %d, step %d: within %s %.0f chip-seconds are spent, want %.0f: %+v", seed, i, per, got, want, n.w.Ran)
				}
			}
		}
	}
}

// TestEachPlaceHasItsPrice: what stood on demand cost more, and so would an hour of the next place that may be asked.
func TestEachPlaceHasItsPrice(t *testing.T) {
	t.Parallel()
	n := budgeted(t, 1000, "llama-8b")
	n.p.Zones, n.p.Places = nil, []policy.Alternative{{Capacity: events.OnDemand, ChipHourPrice: 3}}
	n.w.Slices[0].Standing = start.Add(-10 * time.Hour)
	n.w.Ran = []incident.Ran{{From: start.Add(-90 * time.Hour), Until: start.Add(-80 * time.Hour), ChipSeconds: 160 * 3600, Zone: "us-west4-a", Accelerator: "v5litepod-16", Capacity: events.OnDemand}}
	if got := n.w.Spending(n.p, n.now).Spent; got != 160+480 {
		t.Errorf("spent is %v, want 640", got)
	}
	n.p.SpendAtMost.Dollars = 640 + 20
	if n.history(created, "creating: create llama-8b", "no_quota create", "approving"); !strings.Contains(n.tale(), "an hour of llama-8b costs 48.00 USD") {
		t.Errorf("asked is not for the price on demand:\n%s", n.tale())
	}
}

// TestAJobThatWaitsForMachinesCostsNothing: only what stands does, sick or well.
func TestAJobThatWaitsForMachinesCostsNothing(t *testing.T) {
	t.Parallel()
	n := newJob(t)
	n.p.ChipHourPrice, n.p.SpendAtMost = 1, policy.Budget{Dollars: 1e6, Per: week}
	n.w.Slices[0].Standing = n.now
	n.later(time.Hour).reads(n.w.Slices[0].Name, evidence.Creating).later(5*time.Hour).reads(n.w.Slices[0].Name, evidence.Ready)
	n.later(time.Hour).reads(n.w.Slices[0].Name, evidence.Unhealthy).later(time.Hour)
	if got, want := n.w.Spending(n.p, n.now).Spent, 3*float64(n.w.Slices[0].Chips); got != want || want == 0 {
		t.Errorf("spent is %v, want %v", got, want)
	}
}

// TestThePastOfABusyWeekIsBounded: of too many lives that are forgotten, the oldest count as one, and nothing is lost.
func TestThePastOfABusyWeekIsBounded(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "a")
	n.p = policy.Policy{ChipHourPrice: 3600, SpendAtMost: policy.Budget{Dollars: 1, Per: week}}
	n.w.Slices[0].Standing = start
	for i := range 300 {
		n.later(10*time.Minute).reads("a", evidence.Lost)
		n.reads("a", evidence.Ready, func(e *evidence.Read) { e.Incarnation.ID, e.Incarnation.Created = fmt.Sprint(i), n.now })
	}
	if got, want := n.w.Spending(n.p, n.now).Spent, n.now.Sub(start).Seconds()*16; math.Abs(got-want) > 1 || len(n.w.Ran) > 64 {
		t.Errorf("%d times are kept, and %.0f chip-seconds of %.0f:\n%s", len(n.w.Ran), got, want, strings.TrimSpace(n.tale()))
	}
}

// TestIdleChipsCostWhatTheirPlaceCosts: a Spot slice that stood on demand was without capacity on demand.
func TestIdleChipsCostWhatTheirPlaceCosts(t *testing.T) {
	t.Parallel()
	dear := demand
	dear.ChipHourPrice = 3.22
	for want, change := range map[float64]func(*incident.Workload){1.20: nil, 3.22: standsOnDemand} {
		n := newStory(t, true, "llama-8b").with(change).shaped(dear)
		n.p.ChipHourPrice = 1.20
		if n.goes("read lost, 10m"); n.w.Incident == nil || n.w.ShownIncident(*n.w.Incident, n.now).Cost.ChipHourPrice != want {
			t.Errorf("the price is not %.2f:\n%s", want, n.tale())
		}
	}
}
