package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// This file is the zone that preempts: one that did so twice within an hour is asked after the others, for as long as the policy says.

// leftUntil is until when a slot's place is asked after the others; zero where it is not. Only Spot is preempted.
func (d *diagnosis) leftUntil(s *slot, at view.Place) time.Time {
	if cmp.Or(at.Capacity, s.ownCapacity()) != events.Spot {
		return time.Time{}
	}
	for _, t := range d.w.Taken {
		if until := inRealTime(t.Twice, d.p.LeaveZoneFor); t.Zone == at.Zone && !t.Twice.IsZero() && !d.over(until) {
			return until
		}
	}
	return time.Time{}
}

// leftLast puts the places that are left after the others of their kind: no other shape and no other capacity comes first because of it.
func (d *diagnosis) leftLast(s *slot, kind []view.Place) []view.Place {
	stays := func(p view.Place) bool { return d.leftUntil(s, p).IsZero() }
	leaves := func(p view.Place) bool { return !stays(p) }
	return slices.Concat(slices.DeleteFunc(slices.Clone(kind), leaves), slices.DeleteFunc(slices.Clone(kind), stays))
}

// whyCreated is why a slot is created now, and which zone is asked after the others.
func (d *diagnosis) whyCreated(s *slot, apart bool) story.Reason {
	if left := d.leftAmong(s, d.placesOf(s, apart)); len(left) > 0 {
		return story.GoneAnd.With(s.Name, left[0].String())
	}
	return story.IsGone.With(s.Name)
}

// leftAmong are the zones of these places of a slot that are asked after the others.
func (d *diagnosis) leftAmong(s *slot, places []view.Place) (left []view.LeftZone) {
	for _, p := range places {
		until := d.leftUntil(s, p)
		known := slices.ContainsFunc(left, func(l view.LeftZone) bool { return l.Zone == p.Zone })
		others := slices.ContainsFunc(places, func(o view.Place) bool { return o.Zone != p.Zone })
		if !until.IsZero() && !known && others {
			left = append(left, view.LeftZone{Zone: p.Zone, Until: until})
		}
	}
	return left
}

// LeftZones are the zones that are asked after the others when a slice of the workload is created.
func (w Workload) LeftZones(p policy.Policy, now time.Time) (left []view.LeftZone) {
	d := diagnose(p, &w, now)
	for i := range d.slots {
		s := &d.slots[i]
		if left = d.leftAmong(s, d.placesOf(s, d.isApart())); len(left) > 0 {
			break
		}
	}
	return left
}
