package oracle

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// steppingFor is how long a training must have done steps again before it is wrong to report a hang: the crew's state is
// read every five minutes, and a write there may have been lost.
const steppingFor = 20 * time.Minute

// standstill checks the report about a training at the opening of an incident. A training that does steps does not hang,
// however slow the steps are and even if its lines were lost. If its crew's state could not be read, the truth is unknown,
// and the incident must say so.
func (c *Checks) standstill(w incident.Workload) {
	if w.Incident.Cause != events.CauseHang || c.unlistened(c.record(w.ID)) {
		return
	}
	if slice := c.steps(w.ID); slice != "" {
		c.Violated("no slow training hangs", w.ID, "%s says of %s that it hangs, and it does steps: %s", w.Incident.ID, slice, w.Incident.Troubles[0].Text)
	}
}

// steps names a slice of a workload on which steps have been done for a while, if there is one.
func (c *Checks) steps(workload string) string {
	for _, f := range c.slicesOf(workload) {
		t := c.Trainings[f.Name]
		if t.NoCrew {
			continue
		}
		if since := t.Stepping(); !since.IsZero() && c.Clock.Now().Sub(since) > steppingFor {
			return f.Name
		}
	}
	return ""
}

// mute reports whether the crew of a slice has written nothing on its machine.
func (c *Checks) mute(workload string) bool {
	return slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		t := c.Trainings[f.Name]
		if t == nil {
			return true
		}
		_, wrote := t.State()
		return !wrote
	})
}

// unlistened reports whether nobody has read for a while what the crews of a workload write on their machines.
func (c *Checks) unlistened(r *record) bool { return c.Clock.Now().Sub(r.listened) > incident.HearFor }

// runs reports whether a process of a training is there: without one nothing hangs any more.
func (c *Checks) runs(workload string) bool {
	return slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		_, runs := c.Trainings[f.Name].Running()
		return runs
	})
}

// restarted checks a request for another attempt of a training that hangs: its owner wants it, and it does hang. What follows when
// nobody hears of a step of that attempt is no different from what follows after a crash.
func (c *Checks) restarted(before, after incident.Workload) {
	in := after.Incident
	if in == nil || in.Cause != events.CauseHang || after.Budgets.Restarts <= before.Budgets.Restarts {
		return
	}
	if c.runs(after.ID) && !c.lately(after.ID, func(p policy.Policy) bool { return p.Hang == policy.HangRestart }) {
		c.Violated("owner's word", after.ID, "%s asks for another attempt, and its owner wants to be told of a hang and no more", in.ID)
	}
	if slice := c.steps(after.ID); slice != "" && (before.Incident == nil || before.Incident.OnlyWatched) {
		c.Violated("8 progress", after.ID, "%s asks for another attempt, and %s does steps", in.ID, slice)
	}
}

// unseen checks that somebody was notified of a training that stands still on usable slices. It is called when the owner
// comes to mend it. The time allowed is the usual time of its steps, the delay of late lines, and an hour for faults on the
// way.
func (c *Checks) unseen(workload, slice string) {
	t, r := c.Trainings[slice], c.record(workload)
	since := t.Still()
	if since.IsZero() || t.NoCrew || r.heard.IsZero() || r.open != r.done || c.done(workload) || !c.takenAway(slice).IsZero() {
		return
	}
	if !r.heard.After(r.left) {
		return // it was left to a person, and nobody has heard of a step since
	}
	since = later(since, r.heard)
	for _, f := range c.slicesOf(workload) {
		ready := c.lastOf(f.Name, usable)
		for _, life := range c.livesOf(f.Name) {
			if c.suspected(life.ID, c.Clock.Now()) {
				return
			}
			since = later(since, c.abuse[life.ID].Ended)
		}
		since = later(since, ready.at)
	}
	said := c.did(workload, since, func(d deed) bool { return d.kind == saidCancel })
	if !c.whole(workload) || said || r.left.After(since) {
		return // it was left to a person, or a person has taken it over
	}
	usual := max(incident.NoGapFor, 3*r.gap) + incident.Grace + time.Hour
	if silent := c.Clock.Now().Sub(since); silent-c.releases.Down(since) > usual {
		c.Violated("no hang unseen", workload, "%s has stood still for %s, and nobody was notified", slice, silent.Round(time.Minute))
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
