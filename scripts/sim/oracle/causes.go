package oracle

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// rightCauses checks that no wrong cause stands in the archive of a workload's incidents, as far as the evidence for the right one has
// come. What struck a slice at about the same time is as good a cause as any.
func (c *Checks) rightCauses(workload string) {
	r := c.record(workload)
	var before time.Time // when the incident before ended
	left := map[events.Cause]bool{}
	for _, over := range r.past {
		id := over.id
		in, err := c.Ledger.Closed(context.Background(), workload, id)
		if err != nil {
			continue // the entry that shows it could not be stored
		}
		from := in.Opened.Add(-2*incident.Grace - c.releases.Down(in.Opened.Add(-6*time.Hour)))
		struck := c.struckBy(workload, from, in.Closed)
		for _, known := range r.causes { // a more exact entry may have been lost on its way
			about := !known.at.Before(from) && !known.at.After(in.Closed)
			while := !known.handled.Before(in.Opened) && known.handled.Before(in.Closed.Add(incident.Linger))
			struck[known.cause] = struck[known.cause] || about || while
		}
		switch {
		case struck[in.Cause], left[in.Cause], in.Cause == events.CauseHang && over.stood:
		case in.Cause == events.CauseMaintenance && r.forged(from.Add(-2*incident.HealFor), in.Closed):
			// The same, and another incident may have been open in between.
		case in.Cause == events.CauseCrash && r.forged(from, in.Closed):
			// Only a line of somebody who may write to a log says so, and the workload has no other cause.
		case c.did(workload, in.Opened.Add(-time.Second), func(d deed) bool { return d.kind == saidRetry && !d.at.After(in.Opened) }):
			// A person opened it, for what an earlier one had told.
		case in.Cause == events.CauseUnknown || in.Cause == events.CauseGuest:
			if told := r.toldCause(later(before, in.Opened.Add(-incident.Grace)), in.Closed); told != "" {
				c.Violated("right cause", workload, "%s is archived as %s, and an entry that was handled says %s", id, in.Cause, told)
			}
		default:
			c.Violated("right cause", workload, "%s is archived as %s, and what struck was %q", id, in.Cause, strings.Join(causeNames(struck), ", "))
		}
		left = map[events.Cause]bool{in.Cause: in.Outcome == incident.Escalated} // slices that it has left idle are deleted for the same cause
		before = in.Closed
	}
}

// forged reports whether somebody wrote a false line between two moments.
func (r *record) forged(from, to time.Time) bool {
	return slices.ContainsFunc(r.happened, func(h happened) bool { return h.what == "forged lines" && !h.at.Before(from) && !h.at.After(to) })
}

// toldCause is the cause that entries name of what happened between two moments, as far as they were handled in time.
func (r *record) toldCause(from, to time.Time) events.Cause {
	for _, known := range r.causes {
		if !known.untimely && known.cause != events.CauseUnknown && !known.at.Before(from) && known.at.Before(to) && known.handled.Before(to.Add(incident.Linger)) {
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
