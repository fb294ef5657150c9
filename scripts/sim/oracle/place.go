package oracle

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// A slice is created in a place that its order or the policy names: a zone, a shape and a capacity. The places have an order: the one that its
// owner ordered, the zones of the policy, and then the others, each after those before it have refused for its time. It begins anew with each
// loss. A zone that preempts comes after the others of its kind.

// rulePlace is the order of the places.
const rulePlace = "places"

// named is a place that a policy names, and for how long all before it must have refused.
type named struct {
	view.Place
	after time.Duration
}

// replaces is the switch for the replacement of a slice: its owner's order decides, wherever the slice stands.
func replaces(f world.SliceConfig) policy.Switch {
	if f.Spot {
		return policy.Recreate
	}
	return policy.RecreateNonSpot
}

// asksIn checks where a call of ours asks for a slice, whether it is granted or not.
func (c *Checks) asksIn(workload, slice string, at view.Place) {
	i := slices.IndexFunc(c.Fleet, func(f world.SliceConfig) bool { return f.Name == slice })
	if i < 0 || at.Zone == "" || at.Accelerator == "" {
		return
	}
	f := c.Fleet[i]
	if own := c.ordered(f); at.Capacity != own.Capacity {
		c.happen["asked for in another capacity"]++
	}
	if sw := replaces(f); !c.lately(workload, func(p policy.Policy) bool { return p.Switches.Level(sw) != policy.No }) {
		c.Violated("owner's word", workload, "%s was asked for in %s, and %s is no", slice, at, sw)
	}
	since := c.record(workload).opened
	if !c.under(workload, since, func(p policy.Policy) bool { return c.names(f, p, at) }) {
		c.Violated("owner's word", workload, "%s was asked for in %s, which neither its order nor the policy names", slice, at)
	}
	why := ""
	if !c.under(workload, since, func(p policy.Policy) bool {
		text := c.tooEarly(f, p, at)
		why = cmp.Or(text, why)
		return text == ""
	}) {
		c.Violated(rulePlace, workload, "%s was asked for in %s, %s", slice, at, why)
	}
}

// ordered is what the owner of a slice ordered last, whatever the zone.
func (c *Checks) ordered(f world.SliceConfig) view.Place {
	at := view.Place{Accelerator: c.shape[f.Name], Capacity: events.OnDemand}
	switch {
	case f.Spot:
		at.Capacity = events.Spot
	case f.Reservation != "":
		at.Capacity = events.Reserved
	case f.RunsFor > 0:
		at.Capacity = events.FlexStart
	}
	return at
}

// homes are the zones in one of which a slice is asked for first: where it was as it was ordered, where it was last, or where its owner wants it.
func (c *Checks) homes(f world.SliceConfig) []string {
	homes, own := []string{c.orderedIn(f)}, c.ordered(f)
	for _, d := range slices.Backward(c.past[f.Name]) {
		if own.Zone = d.zone; d.kind == usable && d.place == own {
			homes = append(homes, d.zone)
			break
		}
	}
	since := earlier(c.record(c.Workload(f.Name)).opened, c.lastOf(f.Name, usable).at)
	for _, d := range c.past[f.Name] { // it may have been seen wherever it was made in vain, by an earlier incident too
		if d.kind == ordered && !d.at.Before(since) && !slices.Contains(homes, d.zone) {
			homes = append(homes, d.zone)
		}
	}
	return append(homes, c.lastOf(f.Name, ordered, usable).zone)
}

// orders are the orders in which the places of a slice may be asked under a policy: from each of its homes on, and whether or not a zone is left that
// preempted it twice, where nobody can be sure that this was read.
func (c *Checks) orders(f world.SliceConfig, p policy.Policy) (all [][]named) {
	for _, home := range c.homes(f) {
		all = append(all, c.placesFrom(home, f, p, true), c.placesFrom(home, f, p, false))
	}
	return all
}

// placesFrom are the places of a slice in their order at the moment: from its home on.
func (c *Checks) placesFrom(home string, f world.SliceConfig, p policy.Policy, sure bool) (all []named) {
	own := c.ordered(f)
	add := func(like view.Place, zones []string, after time.Duration) {
		first := len(all)
		for _, like.Zone = range zones {
			if !slices.ContainsFunc(all, func(n named) bool { return n.Place == like }) {
				all = append(all, named{like, after})
			}
		}
		slices.SortStableFunc(all[first:], func(a, b named) int { return c.leaves(f, p, a.Place, sure) - c.leaves(f, p, b.Place, sure) })
	}
	zones := append([]string{home}, p.Zones...)
	add(own, zones, 0)
	for _, a := range p.Places {
		like := own
		if a.Accelerator != "" {
			like.Accelerator = a.Accelerator
		}
		if a.Capacity != "" {
			like.Capacity = a.Capacity
		}
		if a.Zones != nil {
			add(like, a.Zones, a.After)
		} else {
			add(like, zones, a.After)
		}
	}
	return all
}

// names reports whether the order of a slice, the policy, or the other slices of its workload name a place. Each slice may be wherever it or
// another one has been brought by somebody else, or by the policy at that time.
func (c *Checks) names(f world.SliceConfig, p policy.Policy, at view.Place) bool {
	for _, order := range c.orders(f, p) {
		if slices.ContainsFunc(order, func(n named) bool { return n.Place == at }) {
			return true
		}
	}
	workload := c.Workload(f.Name)
	ownZone, ownShape, ownCapacity := false, at.Accelerator == c.shape[f.Name] || slices.Contains(c.record(workload).shapes, at.Accelerator), at.Capacity == c.ordered(f).Capacity
	for _, o := range c.slicesOf(workload) {
		ownZone = ownZone || o.Zone == at.Zone
		for _, d := range c.past[o.Name] {
			ownZone = ownZone || d.zone == at.Zone && (d.kind == usable || d.kind == ordered)
		}
		if o.Name == f.Name {
			continue
		}
		if zone, lives := c.livesIn(o.Name); lives && zone == at.Zone {
			is := c.lastOf(o.Name, usable, ordered).place
			ownShape, ownCapacity = ownShape || is.Accelerator == at.Accelerator, ownCapacity || is.Capacity == at.Capacity
		}
	}
	return ownShape && ownCapacity && (ownZone || slices.Contains(p.Zones, at.Zone))
}

// tooEarly says why a place may not be asked yet: one before it has not refused for as long as the policy says. It is empty where that may be,
// and of what cannot go wherever the policy says: a slice among others, or one that names something of its own zone or region.
func (c *Checks) tooEarly(f world.SliceConfig, p policy.Policy, at view.Place) (why string) {
	for _, order := range c.orders(f, p) {
		text := c.tooEarlyIn(order, f, p, at)
		if text == "" {
			return ""
		}
		why = cmp.Or(why, text)
	}
	return why
}

func (c *Checks) tooEarlyIn(all []named, f world.SliceConfig, p policy.Policy, at view.Place) string {
	workload := c.Workload(f.Name)
	bound := f.Reservation+f.Disk+f.Subnetwork+c.Buckets[bucketOf(f.Directory)] != "" || len(c.slicesOf(workload)) > 1
	i := slices.IndexFunc(all, func(n named) bool { return n.Place == at })
	since, own := c.record(workload).opened, c.ordered(f)
	if own.Zone = at.Zone; at != own { // only zones are asked in turn for the whole incident
		since = later(since, c.lastOf(f.Name, usable).at)
	}
	if bound || i < 0 || p.Unreadable != "" || !c.askedIn(f, at, since).IsZero() {
		return ""
	}
	began := c.Clock.Now()
	for _, before := range all[:i] {
		first := c.askedIn(f, before.Place, since)
		if first.IsZero() && (before.Accelerator == own.Accelerator || fits(f)) {
			return "and " + before.String() + " comes before it and was not asked"
		}
		if !first.IsZero() && first.Before(began) {
			began = first
		}
	}
	if asked := c.Clock.Now().Sub(began); asked < all[i].after-turnSlack {
		return "and those before it had refused for " + events.Span(asked) + " of " + events.Span(all[i].after)
	}
	return ""
}

// turnSlack is how much earlier than the first refusal in the world that of a call may have been which never arrived.
const turnSlack = 10 * time.Minute

// askedIn is when a place was asked first for a slice since a moment, or refused any slice shortly before; zero for never. A place that gave the
// slice, and lost it before it could be used, has refused it too. One in which an order stood at that moment is asked from then on.
func (c *Checks) askedIn(f world.SliceConfig, at view.Place, since time.Time) (first time.Time) {
	for _, o := range c.Fleet {
		for i, d := range c.past[o.Name] {
			from := since
			if d.kind == turnedOff { // which the next ones are told
				from = since.Add(-ledger.StockoutFor)
			}
			asked := d.kind == turnedOff || d.kind == ordered && o.Name == f.Name
			if d.kind == ordered && d.at.Before(since) && stillWaited(c.past[o.Name][i+1:], since) {
				d.at = since
			}
			if asked && d.by == world.Ours(c.Project) && d.place == at && !d.at.Before(from) && (first.IsZero() || d.at.Before(first)) {
				first = d.at
			}
		}
	}
	return first
}

// stillWaited reports whether an order of a slice waited still at a moment, by what came after it.
func stillWaited(after []deed, until time.Time) bool {
	ends := []deedKind{ordered, removed, turnedOff, usable, broken, gone}
	return !slices.ContainsFunc(after, func(d deed) bool { return d.at.Before(until) && slices.Contains(ends, d.kind) })
}

// fits reports whether the training on a slice could go on in another shape.
func fits(f world.SliceConfig) bool { return f.Batch > 0 && f.Batch%64 == 0 }

// leaves is 1 for a place whose zone has surely preempted the workload twice within an hour lately, or may have done so; else 0. The second life has
// to be made after the first was lost: otherwise it was one blow.
func (c *Checks) leaves(f world.SliceConfig, p policy.Policy, at view.Place, sure bool) int {
	if at.Capacity != events.Spot { // nothing else is preempted
		return 0
	}
	late := twiceSlack
	if sure {
		late = -twiceSlack
	}
	for _, o := range c.slicesOf(c.Workload(f.Name)) {
		var last time.Time
		for _, d := range c.past[o.Name] {
			if d.kind != broken || d.cause != events.CausePreemption || d.zone != at.Zone || sure && !c.readByUs(o.Name, d) {
				continue
			}
			twice := !last.IsZero() && d.life.Created.After(last) && d.at.Sub(last) < time.Hour+late
			if twice && c.Clock.Now().Sub(d.at) < p.LeaveZoneFor+late {
				return 1
			}
			last = d.at
		}
	}
	return 0
}

// twiceSlack is how much later than it happened a preemption is surely read, where somebody deletes what it left.
const twiceSlack = 10 * time.Minute

// readByUs reports whether somebody of ours deleted what a loss left, which takes a reading of it.
func (c *Checks) readByUs(slice string, lost deed) bool {
	return slices.ContainsFunc(c.past[slice], func(d deed) bool {
		return d.kind == removed && d.by == world.Ours(c.Project) && d.zone == lost.zone && d.at.After(lost.at) && d.at.Sub(lost.at) < twiceSlack
	})
}
