package oracle

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
)

// A training that stands otherwise than its owner ordered is moved back where the policy says so: the one deletion of a slice that trains. It takes a
// checkpoint that has become complete since its incident opened, in the world itself.

// standsOtherwise reports whether a slice was made in another shape or capacity than its owner ordered.
func (c *Checks) standsOtherwise(f world.SliceConfig) bool {
	own, is := c.ordered(f), c.lastOf(f.Name, usable, ordered).place
	own.Zone = is.Zone
	return is.Zone != "" && is != own
}

// mayMoveBack reports whether the policy may move a workload back.
func (c *Checks) mayMoveBack(workload string) bool {
	return slices.ContainsFunc(c.slicesOf(workload), c.standsOtherwise) &&
		c.lately(workload, func(p policy.Policy) bool { return p.BackToFirst == policy.BackAfterSave })
}

// movesBack reports whether a deletion moves a saved training back.
func (c *Checks) movesBack(k call) bool {
	i := slices.IndexFunc(c.Fleet, func(f world.SliceConfig) bool { return f.Name == k.slice })
	return i >= 0 && k.doc.Open != nil && k.doc.Open.Cause == events.CauseMove && c.standsOtherwise(c.Fleet[i]) && c.mayMoveBack(k.doc.ID) &&
		c.savedSince(c.Fleet[i].Directory, c.record(k.doc.ID).opened)
}

// movedBack reports whether a slice stood otherwise than its owner ordered at some time before a moment.
func (c *Checks) movedBack(slice string, to time.Time) bool {
	i := slices.IndexFunc(c.Fleet, func(f world.SliceConfig) bool { return f.Name == slice })
	return i >= 0 && slices.ContainsFunc(c.past[slice], func(d deed) bool {
		own := c.ordered(c.Fleet[i])
		own.Zone = d.place.Zone
		return d.kind == usable && d.place.Zone != "" && d.place != own && !d.at.After(to)
	})
}
