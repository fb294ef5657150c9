package oracle

import (
	"context"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/reason"
)

// Rule 4, one trouble, one incident: an incident opens only where something has happened since the last one, and a suspicion of abuse is told
// once.

// explained reports whether something has happened in the world of which an incident may tell that opens now.
func (c *Checks) explained(r *record, w seen) bool {
	now, in := c.Clock.Now(), w.Open
	switch {
	case c.blurred(w.ID), in.Cause == events.CauseCrash && c.crashed(r, w):
		return true
	case in.Cause == events.CauseHang:
		return c.standsOrUnheard(w.ID) // a training that stands still for a new reason is reported too
	case in.Cause == events.CauseMaintenance && c.did(w.ID, now.Add(-4*24*time.Hour), func(d deed) bool { return d.kind == announced }), in.Cause == events.CauseEnd && c.endsNear(w):
		return true
	case in.Cause == events.CauseMove:
		return c.mayMoveBack(w.ID)
	case c.unled(w.ID), c.leftBehind(w.ID): // somebody created a slice, or what an incident had ordered came when that was over
		return true
	case r.told && !c.whole(w.ID): // what ended without being mended may be told again while it lasts
		return true
	}
	return c.did(w.ID, r.opened, c.strikes) || r.forged(r.opened, now) || c.suspectedAny(w.ID)
}

// endsNear reports whether a life of a workload in the simulated cloud is about to end by its order, or has just ended so.
func (c *Checks) endsNear(w seen) bool {
	const longestLead = 2*time.Hour + bounds.HealFor
	return slices.ContainsFunc(c.slicesOf(w.ID), func(f world.SliceConfig) bool {
		end := c.API.PlannedEnd(f.Zone, f.Name)
		return !end.IsZero() && end.Sub(c.Clock.Now()).Abs() <= longestLead
	}) || c.did(w.ID, c.Clock.Now().Add(-bounds.HealFor), func(d deed) bool { return d.cause == events.CauseEnd })
}

// strikes reports whether a deed may be the trouble of an incident, or has a part in it.
func (c *Checks) strikes(d deed) bool {
	switch d.kind {
	case broken, stopped, gone, saidRetry:
		return true
	case removed, halted, ordered:
		return c.person(d)
	case labelled, usable, announced, withdrawn, turnedOff, saidCancel:
	}
	return false
}

// crashed reports whether a training has failed as an incident says, and no incident has told of that failure.
func (c *Checks) crashed(r *record, w seen) bool {
	for _, f := range c.slicesOf(w.ID) {
		for _, failed := range c.Trainings[f.Name].Failures() {
			fresh := failed.After(r.opened) && failed.After(r.heard)
			if !slices.Contains(r.crashes, failed) && (fresh || failed.Equal(w.Open.Down)) {
				r.crashes = append(r.crashes, failed)
				return true
			}
		}
	}
	return false
}

// leftBehind reports whether something of ours is there, or is ordered, in which no training ever ran.
func (c *Checks) leftBehind(workload string) bool {
	return slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		for _, life := range c.livesOf(f.Name) {
			if c.maker(f.Name, life) == world.Ours(c.Project) && !c.Trainings[f.Name].Ran().Same(life) {
				return true
			}
		}
		last := c.lastOf(f.Name, ordered, turnedOff) // an order is read for a while after it came to nothing
		return last.by == world.Ours(c.Project) && (f.QueuedResource != "" || c.Clock.Now().Sub(last.at) < unseen)
	})
}

// suspicions checks that a person is notified once of each suspicion of abuse while it lasts, unless they have since said
// that it is settled.
func (c *Checks) suspicions(r *record, w seen, closes bool) {
	lasts := map[string]bool{}
	for _, s := range w.Slices {
		if c.suspected(s.Life.ID, c.Clock.Now()) && c.takenAway(s.Name).IsZero() {
			lasts[s.Life.ID] = true
		}
	}
	for life, told := range r.suspected {
		settled := c.did(w.ID, told, func(d deed) bool { return d.kind == saidRetry })
		if !lasts[life] || settled {
			delete(r.suspected, life)
		}
	}
	if !closes || w.Over.Code != reason.CodeAbuse {
		return
	}
	if len(r.suspected) > 0 {
		c.Violated("4 one trouble", w.ID, "%s told again that Google suspects abuse: %s", w.Over.ID, w.Over.Reason)
	}
	for _, s := range w.Slices {
		if life := s.Life.ID; s.Suspected && lasts[life] { // what the end tells of
			r.suspected[life] = c.Clock.Now()
		}
	}
}

// cleared checks that a suspicion no longer holds anything up once Google lifts it from a usable slice.
func (c *Checks) cleared(doc seen) {
	for _, s := range doc.Slices {
		state, life := c.API.State(s.Zone, s.Name)
		a, ok := c.abuse[life.ID]
		if s.Suspected && state == "READY" && life.Same(s.Life) && ok && !a.Ended.IsZero() && c.Clock.Now().Sub(a.Ended) > time.Hour {
			c.Violated("4 one trouble", doc.ID, "Google has suspected nothing on %s since %s, and all is held up for it", s.Name, a.Ended.UTC().Format(time.DateTime))
		}
	}
}

// suspectedAny reports whether Google suspects abuse on a life of a workload's slices, or did a while ago.
func (c *Checks) suspectedAny(workload string) bool {
	for _, f := range c.slicesOf(workload) {
		for _, d := range c.past[f.Name] {
			if a, ok := c.abuse[d.life.ID]; ok && (a.Ended.IsZero() || c.Clock.Now().Sub(a.Ended) < c.learned()) {
				return true
			}
		}
		for _, life := range c.livesOf(f.Name) {
			if a, ok := c.abuse[life.ID]; ok && (a.Ended.IsZero() || c.Clock.Now().Sub(a.Ended) < c.learned()) {
				return true
			}
		}
	}
	return false
}

// suspected reports whether Google suspects abuse on a life now, and has for so long.
func (c *Checks) suspected(life string, since time.Time) bool {
	s, ok := c.abuse[life]
	return ok && s.Ended.IsZero() && s.Since.Before(since)
}

// unled reports whether the lease names no life, or another one, of a slice that is there.
func (c *Checks) unled(workload string) bool {
	return slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		l, _, err := checkpoint.ReadLease(context.Background(), c.Store, f.Directory)
		if f.Directory == "" || err != nil {
			return f.Directory != ""
		}
		for _, s := range c.slicesOf(workload) {
			for _, life := range c.livesOf(s.Name) {
				if !slices.ContainsFunc(l.Admitted, func(a events.Admission) bool { return a.Slice == s.Name && a.Incarnation.Same(life) }) {
					return true
				}
			}
		}
		return false
	})
}
