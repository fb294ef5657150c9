package oracle

import (
	"maps"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/view"
)

// Right cause: what an incident is said to have come from is what really happened.

// jobClosed checks the cause of an incident of a workload that trains in a cluster, and takes note of whom it has told of.
func (c *Checks) jobClosed(r *record, w seen, in *seenIncident) {
	for _, g := range c.gangs(w.ID) {
		if s := w.slice(g.Slice); s != nil && s.Condition != evidence.Ready {
			g.told = r.closed
		}
	}
	// A person's retry opens an incident for what an earlier one had told.
	retried := c.did(w.ID, in.Opened.Add(-time.Second), func(d deed) bool { return d.kind == saidRetry && !d.at.After(in.Opened) })
	hung := in.Cause == events.CauseHang && r.stood
	if struck := c.strucks(w.ID, in.Opened); !retried && !hung && !struck[in.Cause] {
		c.Violated("right cause", w.ID, "%s ended %s for %s, and that has not happened: %v", in.ID, in.Outcome, in.Cause, struck)
	}
}

// rightCauses checks that no wrong cause stands in the archive of a workload's incidents, as far as the evidence for the right one has
// come. What struck a slice at about the same time is as good a cause as any.
func (c *Checks) rightCauses(workload string) {
	r := c.record(workload)
	var before time.Time // when the incident before ended
	left := map[events.Cause]bool{}
	for _, over := range r.past {
		id := over.id
		in, err := c.archived(workload, id)
		if err != nil {
			continue // the entry that shows it could not be stored
		}
		from := in.Opened.Add(-2*bounds.Grace - c.releases.Down(in.Opened.Add(-6*time.Hour)))
		struck := c.struckBy(workload, from, in.Closed)
		for _, known := range r.causes { // a more exact entry may have been lost on its way
			about := !known.at.Before(from) && !known.at.After(in.Closed)
			while := !known.handled.Before(in.Opened) && known.handled.Before(in.Closed.Add(bounds.Linger))
			struck[known.cause] = struck[known.cause] || about || while
		}
		switch {
		case struck[in.Cause], left[in.Cause], in.Cause == events.CauseHang && over.stood:
		case in.Cause == events.CauseMaintenance && r.forged(from.Add(-2*bounds.HealFor), in.Closed):
			// The same, and another incident may have been open in between.
		case in.Cause == events.CauseCrash && r.forged(from, in.Closed):
			// Only a line of somebody who may write to a log says so, and the workload has no other cause.
		case c.did(workload, in.Opened.Add(-time.Second), func(d deed) bool { return d.kind == saidRetry && !d.at.After(in.Opened) }):
			// A person opened it, for what an earlier one had told.
		case in.Cause == events.CauseUnknown || in.Cause == events.CauseGuest:
			if told := r.toldCause(later(before, in.Opened.Add(-bounds.Grace)), in.Closed); told != "" {
				c.Violated("right cause", workload, "%s is archived as %s, and an entry that was handled says %s", id, in.Cause, told)
			}
		default:
			c.Violated("right cause", workload, "%s is archived as %s, and what struck was %q", id, in.Cause, strings.Join(causeNames(struck), ", "))
		}
		left = map[events.Cause]bool{in.Cause: in.Outcome == view.Escalated} // slices that it has left idle are deleted for the same cause
		before = in.Closed
	}
}

// struckBy returns the causes that really struck a workload between two moments, or had struck before and still kept it from training.
func (c *Checks) struckBy(workload string, from, to time.Time) map[events.Cause]bool {
	all := map[events.Cause]bool{}
	for _, f := range c.slicesOf(workload) {
		standing, planned := map[events.Cause]bool{}, false
		for _, d := range c.past[f.Name] {
			switch {
			case d.at.After(to):
			case d.kind == usable && d.at.Before(from):
				clear(standing)
			case d.kind == withdrawn && d.at.Before(from):
				planned = false
			case d.kind == announced:
				planned = true
			case d.kind == broken:
				standing[d.cause] = true
			case d.kind == gone && f.QueuedResource != "":
				standing[events.CausePreemption] = true // its queued resource is suspended, as for a preemption
			}
		}
		maps.Copy(all, standing)
		if end := c.API.PlannedEnd(f.Zone, f.Name); !end.IsZero() && end.After(from) && end.Before(to.Add(2*time.Hour)) {
			all[events.CauseEnd] = true // the save before it
		}
		all[events.CauseMaintenance] = all[events.CauseMaintenance] || planned
		all[events.CauseMove] = all[events.CauseMove] || c.movedBack(f.Name, to)
		t := c.Trainings[f.Name]
		failed := slices.ContainsFunc(t.Failures(), func(at time.Time) bool { return !at.Before(from) && !at.After(to) })
		all[events.CauseCrash] = all[events.CauseCrash] || failed || t.FailedAt(from)
	}
	return all
}

// strucks are the causes of what really happened to a workload around the opening of an incident, as far as its cluster can show it: of a machine
// that is gone the cluster does not say why.
func (c *Checks) strucks(workload string, opened time.Time) map[events.Cause]bool {
	from := opened
	for _, g := range c.gangs(workload) {
		if !g.used.IsZero() && g.used.Before(from) {
			from = g.used // a person may try again what has been lost for long
		}
	}
	from = from.Add(-2*bounds.Grace - c.learned())
	all := map[events.Cause]bool{}
	for _, g := range c.gangs(workload) {
		c.strikesJob(g, from, all)
	}
	return all
}

// strikesJob puts the causes there of what has happened to a slice since a moment.
func (c *Checks) strikesJob(g *gang, from time.Time, all map[events.Cause]bool) {
	since := func(at time.Time) bool { return at.After(from) }
	note := func(cause events.Cause, struck bool) { all[cause] = all[cause] || struck }
	lost := slices.ContainsFunc(g.acts, func(a act) bool { return since(a.at) && (a.by == faults.Owner || a.by == world.Kueue) })
	note(events.CauseCrash, slices.ContainsFunc(g.Failures(), since) || slices.ContainsFunc(slices.Collect(maps.Values(g.crashed)), since))
	for _, h := range g.befell {
		until := h.at
		if strings.HasPrefix(h.what, "machine silent") {
			until = until.Add(longestSilence)
		}
		failed := h.what == podFails // its Job may be gone by the end of the moment, and the Pod with it
		lost = lost || since(until) && !failed && h.what != "training in a Job crashes"
		note(events.CauseCrash, failed && since(h.at))
		note(events.CauseHostError, since(h.at) && strings.HasPrefix(h.what, "machine broken"))
	}
	for _, x := range g.causes {
		lost = lost || since(x.at)
		note(x.cause, since(x.at))
	}
	note(events.CauseMaintenance, since(g.marked))
	note(events.CauseEnd, since(g.ends) || g.endsNear(from, c.Clock.Now()))
	note(events.CauseUnknown, lost || all[events.CauseCrash])
	note(events.CausePreemption, lost && g.Pool().Spot)
	note(events.CauseTerminated, lost && !g.Pool().Spot)
}

// podFails is that a Pod ends with an error.
const podFails = "Pod fails"

// longestSilence is how long a machine is silent at most.
const longestSilence = 3 * time.Hour

// forged reports whether somebody wrote a false line between two moments.
func (r *record) forged(from, to time.Time) bool {
	return slices.ContainsFunc(r.happened, func(h happened) bool { return h.what == "forged lines" && !h.at.Before(from) && !h.at.After(to) })
}

// toldCause is the cause that entries name of what happened between two moments, as far as they were handled in time.
func (r *record) toldCause(from, to time.Time) events.Cause {
	for _, known := range r.causes {
		next := known.handled.After(to) && known.at.After(to.Add(-bounds.SickFor)) // what strikes while an incident ends is the next one's
		timely := !known.untimely && !next && !known.at.Before(from) && known.at.Before(to) && known.handled.Before(to.Add(bounds.Linger))
		if timely && known.cause != events.CauseUnknown {
			return known.cause
		}
	}
	return ""
}

func causeNames(of map[events.Cause]bool) (names []string) {
	for _, cause := range slices.Sorted(maps.Keys(of)) {
		if of[cause] {
			names = append(names, string(cause))
		}
	}
	return names
}
