package scenario

import (
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// steppingFor is how long a training has to have done steps again before it is wrong to say that it hangs: what its crew wrote
// is read each five minutes, and what is written there may have been lost.
const steppingFor = 20 * time.Minute

// standstill checks what is said of a training, at the opening of an incident: that one does steps is no hang, however slow
// they are and whatever became of its lines.
func (c *checks) standstill(w incident.Workload) {
	if w.Incident.Cause != events.CauseHang {
		return
	}
	if strings.Contains(w.Incident.Troubles[0].Text, "cannot be read") {
		return // it is told as what it is
	}
	if slice := c.steps(w); slice != "" {
		c.violated("no slow training hangs", w.ID, "%s says of %s that it hangs, and it does steps: %s", w.Incident.ID, slice, w.Incident.Troubles[0].Text)
	}
}

// steps names a slice of a workload on which steps have been done for a while, if there is one.
func (c *checks) steps(w incident.Workload) string {
	for _, s := range w.Slices {
		t := c.trainings[s.Name]
		if t == nil || t.NoCrew {
			continue
		}
		if since := t.Stepping(); !since.IsZero() && c.clock.Now().Sub(since) > steppingFor {
			return s.Name
		}
	}
	return ""
}

// unheard reports whether what a crew writes on its machine could not be read either: then nobody knows, and that is told.
func unheard(w incident.Workload) bool {
	return slices.ContainsFunc(w.Slices, func(s incident.Slice) bool { return s.Heard.Seen.IsZero() })
}

// restarted checks a request for another attempt of a training that hangs: its owner wants it, and it does hang. What follows when
// nobody hears of a step of that attempt is no different from what follows after a crash.
func (c *checks) restarted(before, after incident.Workload) {
	in := after.Incident
	if in == nil || in.Cause != events.CauseHang || after.Budgets.Restarts <= before.Budgets.Restarts {
		return
	}
	if !c.lately(after.Label, func(p policy.Policy) bool { return p.Hang == policy.HangRestart }) {
		c.violated("owner's word", after.ID, "%s asks for another attempt, and its owner wants to be told of a hang and no more", in.ID)
	}
	if slice := c.steps(after); slice != "" && before.Incident == nil {
		c.violated("8 progress", after.ID, "%s asks for another attempt, and %s does steps", in.ID, slice)
	}
}

// unseen checks, when its owner comes to mend it, that a training which stands still on usable slices was told of, within the
// time that is usual for its steps, that of late lines, and an hour for what goes wrong on the way.
func (c *checks) unseen(doc incident.Workload, slice string) {
	t, r := c.trainings[slice], c.record(doc.ID)
	since := t.Still()
	if since.IsZero() || t.NoCrew || doc.Crew.Seen.IsZero() || doc.Progress.At.IsZero() || doc.Crew.Finished || doc.Incident != nil {
		return
	}
	heard := later(later(doc.Progress.At, doc.Progress.Stepped), doc.Crew.Started)
	if !heard.After(r.left) {
		return // it was left to a person, and nobody has heard of a step since
	}
	for _, s := range doc.Slices {
		if s.Condition != incident.Ready || s.IsReleased() || s.Unused || c.suspected(s.Incarnation.ID, c.clock.Now()) {
			return
		}
		heard = later(later(heard, s.Since), c.abuse[s.Incarnation.ID].Ended)
	}
	if since = later(since, heard); doc.Crew.Theirs || r.left.After(since) {
		return // it was left to a person, or a person has taken it over
	}
	usual := max(incident.NoGapFor, 3*time.Duration(doc.Progress.GapSeconds)*time.Second) + incident.Grace + time.Hour
	if silent := c.clock.Now().Sub(since); silent-c.releases.down(since) > usual {
		c.violated("no hang unseen", doc.ID, "%s has stood still for %s, and nobody was told", slice, silent.Round(time.Minute))
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
