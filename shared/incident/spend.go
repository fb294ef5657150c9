package incident

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

// This file is the budget of money: what the chips of the workload cost at the policy's prices. It stops nothing that runs. A replacement that
// would pass the budget waits for a person.

// passesBudget is why a replacement needs a yes that its switch does not ask for: with an hour of what is not being created yet, the workload costs
// more than its policy allows.
func (d *diagnosis) passesBudget(all []*slot) *doubt {
	budget := d.p.SpendAtMost
	if budget.Per == 0 {
		return nil
	}
	hour, apart := 0.0, d.isApart()
	var some []string
	for _, s := range all {
		if !s.is(coming) && !s.isCreated() {
			at, _ := d.place(s, apart)
			hour += d.hourly(s, at)
			some = append(some, s.Name)
		}
	}
	spent := d.spent(d.now)
	if some == nil || spent+hour <= budget.Dollars {
		return nil
	}
	return &doubt{story.OverSpent.With(dollars(spent), budget.String(), strings.Join(some, ", "), dollars(hour)), reason.CodeSpendAtMost}
}

// spent is what the workload has cost by a time, within the budget's span before it. What stands now stands until then.
func (d *diagnosis) spent(by time.Time) (sum float64) {
	from := before(by, d.p.SpendAtMost.Per)
	add := func(s *slot, r Ran) {
		at := s.PlaceOf(&Life{Zone: r.Zone, Facts: evidence.Facts{Accelerator: r.Accelerator, Capacity: r.Capacity}})
		sum += r.within(from, by) / time.Hour.Seconds() * s.PriceIn(d.p, at)
	}
	for i := range d.slots {
		s := &d.slots[i]
		s.find(func(l *Life) bool {
			add(s, l.ran(by))
			return false
		})
	}
	for _, r := range d.w.Ran {
		add(&d.slots[0], r)
	}
	return sum
}

// hourly is what an hour of a slot costs in a place.
func (d *diagnosis) hourly(s *slot, at view.Place) float64 {
	chips := cmp.Or(s.Order.Chips, s.Chips)
	if of, err := topology.Parse(at.Accelerator); err == nil {
		chips = of.Chips
	}
	return float64(chips) * s.PriceIn(d.p, at)
}

// dollars is an amount in words.
func dollars(n float64) string { return fmt.Sprintf("%.2f USD", n) }

// Spending is what the workload has cost of its policy's budget; nil where that names none.
func (w Workload) Spending(p policy.Policy, now time.Time) *view.Spending {
	d := diagnose(p, &w, now)
	budget := p.SpendAtMost
	if budget.Per == 0 {
		return nil
	}
	v := &view.Spending{Limit: budget.String(), Dollars: budget.Dollars, Spent: d.spent(now)}
	for i := range d.slots {
		if s := &d.slots[i]; !s.Standing.IsZero() {
			v.Hourly += float64(s.Chips) * s.PriceIn(p, s.stands())
		}
	}
	for at := now; v.Hourly > 0 && at.Sub(now) <= budget.Per; at = inRealTime(at, time.Hour) {
		if d.spent(at) > budget.Dollars {
			v.PassedAt = at
			break
		}
	}
	return v
}
