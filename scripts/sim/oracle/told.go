package oracle

import (
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// Told: a person is informed in time of a slice that cannot be used, of a training that has failed or stands still, and of a wait for machines.
// Nobody is told of a hang or of a wait that is none.

// standstill checks the report about a training at the opening of an incident. A training that does steps does not hang, however slow the
// steps are and even if its lines were lost. If nobody could know what it does, the incident may say so.
func (c *Checks) standstill(w seen) {
	if w.Open.Cause != events.CauseHang || c.unheard(w.ID) {
		return
	}
	if slice := c.steps(w.ID); slice != "" {
		c.Violated("no slow training hangs", w.ID, "%s says of %s that it hangs, and it does steps: %s", w.Open.ID, slice, w.Open.Text)
	}
}

// Mends checks, when a person comes to mend a slice, that they were notified.
func (c *Checks) Mends(workload, slice string, usable bool) {
	if c.takenAway(slice).IsZero() {
		c.unseen(workload, c.Trainings[slice])
	}
	c.untold(workload, slice, usable)
}

// JobMends checks that somebody was notified of a training in Pods that stands still. It is called when its owner comes to mend it.
func (c *Checks) JobMends(g *world.Gang) { c.unseen(g.Workload(), g.Training) }

// unseen checks that somebody was notified of a training that stands still where all can be used. The time allowed is the usual time of its
// steps, the delay of late lines, and an hour for faults on the way.
func (c *Checks) unseen(workload string, t *trainingtest.Training) {
	r, since := c.record(workload), t.Still()
	if since.IsZero() || t.NoCrew || r.heard.IsZero() || r.open != r.done || c.done(workload) {
		return
	}
	said := c.did(workload, since, func(d deed) bool { return d.kind == saidCancel })
	if said || r.left.After(since) || !r.heard.After(r.left) || !c.whole(workload) {
		return // a person has taken it over or was told of it, or nobody has heard of a step since
	}
	since = later(since, later(r.heard, r.closed))
	for _, f := range c.slicesOf(workload) {
		for _, life := range c.livesOf(f.Name) {
			if c.suspected(life.ID, c.Clock.Now()) {
				return
			}
			since = later(since, c.abuse[life.ID].Ended)
		}
		since = later(since, c.lastOf(f.Name, usable).at)
	}
	for _, g := range c.gangs(workload) {
		if g.usable.IsZero() {
			return
		}
		since = later(since, g.usable)
	}
	usual := max(bounds.NoGapFor, 3*r.gap) + bounds.Grace + time.Hour
	if silent := c.Clock.Now().Sub(since); silent-c.releases.Down(since) > usual {
		c.Violated("no hang unseen", workload, "%s has stood still for %s, and nobody was notified", t.Slice, silent.Round(time.Minute))
	}
}

// tellWithin is how long something may be wrong on a slice before a person is notified or an incident handles it: lines come
// late, and an hour is for faults on the way.
const tellWithin = bounds.Grace + time.Hour

// seenWithin is how long a slice has to be usable to be sure that somebody reads it so.
const seenWithin = 20 * time.Minute

// breaks follows usable slices that Google takes or breaks, until they are usable again or belong to somebody else. Each
// must be reported, or handled by an incident, within tellWithin.
func (c *Checks) breaks(e cloudtputest.Event) {
	if e.Kind == cloudtputest.Called && strings.HasPrefix(e.Method, "Delete") && e.Code == 0 && e.Principal != world.Ours(c.Project) {
		for _, f := range c.Fleet {
			if f.Name == e.Node || e.QueuedResource != "" && f.QueuedResource == e.QueuedResource {
				delete(c.record(c.Workload(f.Name)).broken, f.Name)
			}
		}
	}
	if e.Node == "" {
		return
	}
	r := c.record(c.Workload(e.Node))
	if e.Kind == cloudtputest.Ready {
		delete(r.broken, e.Node)
	}
	now := c.Clock.Now()
	taken := e.Kind == cloudtputest.Lost || e.Kind == cloudtputest.Unhealthy || e.Kind == cloudtputest.Gone && e.Cause != ""
	if since := c.lastOf(e.Node, usable).at; taken && !since.Before(e.Incarnation.Created) && now.Sub(since) > seenWithin && r.broken[e.Node].IsZero() && !r.told {
		r.broken[e.Node] = now
		c.Clock.At(now.Add(tellWithin+c.learned()), func() {
			if r.broken[e.Node].Equal(now) {
				c.untold(c.Workload(e.Node), e.Node, false)
			}
		})
	}
}

// untold checks that a person was notified of trouble on a slice, or that an incident handles it: that Google took or broke
// it, or that its training failed.
func (c *Checks) untold(workload, slice string, ready bool) {
	r, t := c.record(workload), c.Trainings[slice]
	if c.lastOf(slice, halted, usable).kind == halted || c.done(workload) || !c.takenAway(slice).IsZero() || r.open != r.done {
		return // a person has stopped it or taken it away, nothing is left to be done there, or it is looked after
	}
	since, what := r.broken[slice], "has not been usable"
	if failures := t.Failures(); ready && len(failures) > 0 && !t.NoCrew {
		last := failures[len(failures)-1]
		said := c.did(workload, last, func(d deed) bool { return d.kind == saidCancel })
		if _, trains := t.Running(); !trains && !r.told && last.After(r.closed) && last.After(c.lastOf(slice, usable).at) && !said {
			since, what = last, "has not trained"
		}
	}
	if since.IsZero() || r.closed.After(since) && r.told {
		return
	}
	if silent := c.Clock.Now().Sub(since); silent-c.releases.Down(since) > tellWithin {
		c.Violated("no trouble untold", workload, "%s %s for %s, and nobody was notified: it is %s", slice, what, silent.Round(time.Minute), c.stateOf(slice))
	}
}

// rightWait checks what people are told of a wait: the slice has lacked a machine for as long, or its deletion has not ended.
func (c *Checks) rightWait(w seen) {
	now := c.Clock.Now()
	waits := slices.ContainsFunc(c.gangs(w.ID), func(g *gang) bool {
		s, job := w.slice(g.Slice), g.Job()
		if s == nil || s.Waits.IsZero() || now.Sub(s.Waits) < bounds.RemindFirst {
			return false
		}
		leaves := job != nil && job.Deleted != nil || g.Set() != nil && g.Set().Deleted != nil
		return g.usable.IsZero() && (leaves || s.Condition == evidence.Creating) || g.used.After(now.Add(-latelyRead)) || g.usable.After(now.Add(-latelyRead))
	})
	if !waits {
		c.Violated("no wait made up", w.ID, "people are told of a wait, and no slice has waited for %s: %+v", events.Span(bounds.RemindFirst), w.Slices)
	}
}

// mustHear checks, when its time is over, that a person has heard of a slice that waits for machines while no incident is open. Another
// slice of its workload may have waited before it: the next word comes with the next reminder.
func (c *Checks) mustHear(g *gang, since time.Time) {
	c.Clock.At(since.Add(bounds.RemindFirst+tellWithin+c.learned()), func() {
		workload, now := g.Workload(), c.Clock.Now()
		if !g.unplaced.Equal(since) || now.Sub(since)-c.releases.Down(since) <= bounds.RemindFirst+tellWithin || c.releases.Documents[workload] {
			return
		}
		doc, err := c.document(workload)
		if err != nil {
			c.Violated("no wait untold", workload, "%s has waited for machines since %s, and no document knows it: %v", g.Slice, since.UTC().Format(time.DateTime), err)
			return
		}
		s := doc.slice(g.Slice)
		if doc.Open != nil || now.Sub(doc.Ended) < seenWithin || s != nil && s.Condition == evidence.Unhealthy {
			return // an incident tells of it, or will
		}
		if s == nil || s.Waits.IsZero() || s.Waits.Sub(since).Abs() > time.Minute || doc.WaitTold.Before(since.Add(-bounds.RemindEvery)) {
			c.Violated("no wait untold", workload, "%s has waited for machines since %s, and people were told last at %s: %+v", g.Slice, since.UTC().Format(time.DateTime), doc.WaitTold.UTC().Format(time.DateTime), s)
		}
	})
}

// mustKnow checks, when its time is over, that somebody knows that a life has failed for good.
func (c *Checks) mustKnow(g *gang, uid string, failed time.Time) {
	used, since := !g.usable.IsZero() || len(g.befell) > 0, g.used
	c.Clock.At(failed.Add(tellWithin+c.learned()), func() {
		workload := g.Workload()
		if c.Clock.Now().Sub(failed)-c.releases.Down(failed) <= tellWithin || c.actedSince(g, failed) || c.releases.Documents[workload] {
			return
		}
		doc, err := c.document(workload)
		s := doc.slice(g.Slice)
		if err != nil || s == nil {
			c.Violated("no trouble untold", workload, "%s has failed for good at %s, and no document knows it: %v", g.Slice, failed.UTC().Format(time.DateTime), err)
			return
		}
		expired := s.Condition == evidence.Gone && !g.absent.IsZero()
		unseen := g.over && g.Job() == nil // nobody can read a Job that went with its JobSet
		if s.Life.ID != uid && !unseen || s.Condition != evidence.Lost && !expired {
			c.Violated("no trouble untold", workload, "%s has failed for good at %s, and the document has it as %s in its life %s", g.Slice, failed.UTC().Format(time.DateTime), s.Condition, s.Life.ID)
			return
		}
		r := c.record(workload)
		told := g.told.After(since) // its owner knows that it has not been usable since then, and has not acted
		if used && !s.Used.IsZero() && doc.Open == nil && !told && r.opened.Before(failed.Add(-bounds.HealFor)) {
			c.Violated("no trouble untold", workload, "%s has failed for good at %s, and no incident tells it: the last one opened at %s", g.Slice, failed.UTC().Format(time.DateTime), r.opened.UTC().Format(time.DateTime))
		}
	})
}
