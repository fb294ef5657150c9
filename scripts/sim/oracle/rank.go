package oracle

import (
	"errors"
	"slices"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
)

// Rule 7, rank: what the API shows decides, and a line is a hint. So a document says nothing of its owner, of Google or of the training that
// is not so in the simulated world.

// ruleTruth is that rule, as far as the world can tell.
const ruleTruth = "what is said is so"

// claims holds what one step of a document says for the first time against what the world knows: nothing is released, finished or stopped
// that its owner has not released, finished or stopped.
func (c *Checks) claims(before, after seen) {
	for _, s := range after.Slices {
		was := seenSlice{}
		if old := before.slice(s.Name); old != nil {
			was = *old
		}
		if len(c.gangs(after.ID)) > 0 {
			c.rightJob(after, s, was)
			continue
		}
		if s.Released && !was.Released && !c.givenUp(after, s) {
			c.Violated(ruleTruth, after.ID, "%s is called its owner's, and nobody has deleted it or taken it over: it is %s", s.Name, c.stateOf(s.Name))
		}
		if s.StoppedBy != "" && s.StoppedBy != was.StoppedBy && !slices.ContainsFunc(c.past[s.Name], func(d deed) bool { return d.kind == halted && d.by == s.StoppedBy }) {
			c.Violated(ruleTruth, after.ID, "%s is recorded as having stopped %s, but did not", s.StoppedBy, s.Name)
		}
	}
	if after.Finished && !before.Finished && !c.done(after.ID) {
		c.Violated(ruleTruth, after.ID, "the training is called finished, and it is not")
	}
}

// rightJob holds what a document says of a slice in a cluster for the first time against that cluster.
func (c *Checks) rightJob(w seen, s, was seenSlice) {
	i := slices.IndexFunc(c.gangs(w.ID), func(g *gang) bool { return g.Slice == s.Name && g.Scope == s.Zone })
	if i < 0 {
		if s.Condition != was.Condition {
			c.Violated(ruleTruth, w.ID, "%s in %s is no Job of it", s.Name, s.Zone)
		}
		return
	}
	g, id := c.gangs(w.ID)[i], s.Life.ID
	if s.Condition != was.Condition || id != was.Life.ID {
		c.rightCondition(w, g, s)
	}
	if s.Released && !was.Released && !g.isOwners(s.Life) && !c.blurred(w.ID) {
		c.Violated(ruleTruth, w.ID, "%s is called its owner's, and nobody has deleted it or made it anew", s.Name)
	}
	// Nothing else shows that a line of a former life was taken for one of the newest.
	if !s.Spoke.IsZero() && (was.Spoke.IsZero() || !s.Life.Same(was.Life)) && !c.speaksIn(w.ID, g, s.Life) {
		c.Violated(ruleTruth, w.ID, "a crew is said to have written in %s in its life %s, and no training was begun there", s.Name, id)
	}
}

// speaksIn reports whether a crew can have written in a life of a Job: an attempt was begun there, or since then in the first slice of its
// Multislice, whose crew speaks for all.
func (c *Checks) speaksIn(workload string, g *gang, life events.Incarnation) bool {
	first := func(o *gang) bool { return !o.NoCrew && o.Began().After(life.Created) }
	return g.RanIn(life.ID) || g.NoCrew && slices.ContainsFunc(c.gangs(workload), first)
}

// rightCondition holds the condition of a slice against its cluster, which a document may know from a while ago.
func (c *Checks) rightCondition(w seen, g *gang, s seenSlice) {
	now, id := c.Clock.Now(), s.Life.ID
	switch {
	case s.Condition == evidence.Lost && !g.isLost(id, now):
		c.Violated(ruleTruth, w.ID, "%s is called lost in its life %s, and its Job has not failed for good", s.Name, id)
	case s.Condition == evidence.Stopped && !g.suspendedSince(s.Life.Created):
		c.Violated(ruleTruth, w.ID, "%s is called stopped, and no owner has suspended it", s.Name)
	case s.Condition == evidence.Done && g.complete[id].IsZero() && g.done[id].IsZero():
		c.Violated(ruleTruth, w.ID, "%s is called done, and its Job is not complete", s.Name)
	case s.Condition == evidence.Gone && g.absent.IsZero() && now.Sub(g.wasAbsent) > latelyRead && g.IsThere():
		c.Violated(ruleTruth, w.ID, "%s is called gone, and its Job is there", s.Name)
	}
}

// jobsAtPeace checks, at the end, that what a document says of each Job is so.
func (c *Checks) jobsAtPeace() {
	for id, all := range c.jobs.of {
		doc, err := c.document(id)
		if errors.Is(err, ledger.ErrNotFound) {
			c.Violated("no trouble untold", id, "no document knows it")
			continue
		}
		if err != nil {
			continue // the other checks tell it
		}
		for _, g := range all {
			s, job := doc.slice(g.Slice), g.Job()
			if s == nil || job == nil || !g.Up() || c.Clock.Now().Sub(g.usable) < seenWithin {
				continue
			}
			if s.Condition != evidence.Ready || s.Life.ID != job.UID {
				c.Violated(ruleTruth, id, "%s trains in its life %s, and the document has it as %s in %s", g.Slice, job.UID, s.Condition, s.Life.ID)
			}
		}
	}
}
