package scenario

import (
	"strings"
	"time"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/tpu/tputest"
)

// tellWithin is how long something may be wrong on a slice before a person is told, or an incident looks after it: lines come late,
// and an hour is for what goes wrong on the way.
const tellWithin = incident.Grace + time.Hour

// breaks follows what Google takes or breaks of what was usable, until it is usable again, or somebody else's.
func (c *checks) breaks(e tputest.Event) {
	if e.Kind == tputest.Called && strings.HasPrefix(e.Method, "Delete") && e.Code == 0 && e.Principal != ours(c.Project) {
		for _, f := range c.Fleet {
			if f.Name == e.Node || e.QueuedResource != "" && f.QueuedResource == e.QueuedResource {
				delete(c.record(c.workload(f.Name)).broken, f.Name)
			}
		}
	}
	if e.Node == "" {
		return
	}
	r := c.record(c.workload(e.Node))
	if e.Kind == tputest.Ready {
		delete(r.broken, e.Node)
	}
	wasUsable := r.usable[e.Node].After(e.Incarnation.Created)
	if broke := e.Kind == tputest.Lost || e.Kind == tputest.Unhealthy; broke && wasUsable && r.broken[e.Node].IsZero() && !r.told {
		r.broken[e.Node] = c.clock.Now()
	}
}

// untold checks, when its owner comes to mend it, that somebody was told of what is wrong on a slice: that Google took or broke it, or
// that its training failed.
func (c *checks) untold(doc incident.Workload, slice string, usable bool) {
	r, t := c.record(doc.ID), c.trainings[slice]
	if doc.ID == "" || r.stopped[slice] != "" || doc.Crew.Finished {
		return // it was lost before it was ever seen, a person has stopped it, or nothing is left to be done there
	}
	if s := doc.Slice(slice); s != nil && s.Unused {
		return // what was lost within minutes of its order, and never read as usable, is its owner's
	}
	since, what := r.broken[slice], "has not been usable"
	if failures := t.Failures(); usable && len(failures) > 0 && !t.NoCrew {
		last := failures[len(failures)-1]
		if _, trains := t.Running(); !trains && !r.told && last.After(r.closed) && last.After(r.usable[slice]) && !doc.Crew.Theirs {
			since, what = last, "has not trained"
		}
	}
	if since.IsZero() {
		return
	}
	if silent := c.clock.Now().Sub(since); silent-c.releases.down(since) > tellWithin {
		c.violated("no trouble untold", doc.ID, "%s %s for %s, and nobody was told: it is %s", slice, what, silent.Round(time.Minute), c.stateOf(slice))
	}
}
