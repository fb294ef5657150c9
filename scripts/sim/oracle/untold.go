package oracle

import (
	"strings"
	"time"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// tellWithin is how long something may be wrong on a slice before a person is notified or an incident handles it: lines come
// late, and an hour is for faults on the way.
const tellWithin = incident.Grace + time.Hour

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
	if since := r.usable[e.Node]; taken && !since.Before(e.Incarnation.Created) && now.Sub(since) > seenWithin && r.broken[e.Node].IsZero() && !r.told {
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
	if r.stopped[slice] != "" || c.done(workload) || !c.takenAway(slice).IsZero() || r.open != r.done {
		return // a person has stopped it or taken it away, nothing is left to be done there, or it is looked after
	}
	since, what := r.broken[slice], "has not been usable"
	if failures := t.Failures(); ready && len(failures) > 0 && !t.NoCrew {
		last := failures[len(failures)-1]
		said := c.did(workload, last, func(d deed) bool { return d.kind == saidCancel })
		if _, trains := t.Running(); !trains && !r.told && last.After(r.closed) && last.After(r.usable[slice]) && !said {
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
