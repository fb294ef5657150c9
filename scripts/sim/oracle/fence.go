package oracle

import (
	"context"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// Rule 1, the fence: a call is that of a request which is current, and rests on a fresh reading of the very life that it changes.

// call is one of ours that took effect on a slice in the simulated cloud.
type call struct {
	cloudtputest.Event
	// by is the handling that made it, doc the document as it is, and known the slice in it.
	by    *world.Instance
	slice string
	doc   seen
	known *seenSlice
	// read is what the handling has read of the slice in the zone of the call, if it has looked.
	read   world.SliceRead
	looked bool
}

// unseen is how long a call may be under way to the API since its handler looked at the ledger: nobody can take it back then.
const unseen = bounds.CallWithin + faults.Slowest

// current checks that a call is that of a request which was current when it was begun: its ID says which.
func (c *Checks) current(k call) {
	if nameless := k.Method == "StartNode" || k.Method == "UpdateNode" || strings.HasPrefix(k.Method, "PerformMaintenance"); nameless && k.RequestID == "" {
		return
	}
	doc, err := c.handed(k.by)
	if err != nil || doc.Open == nil {
		c.Violated("1 fence", k.doc.ID, "%s of %s, and its handler has seen no incident: %v", k.Method, k.Resource(), err)
		return
	}
	if !doc.asks(func(r seenRequest) bool {
		id := ledger.RequestID(events.Request{Workload: doc.ID, Incident: doc.Open.ID, Epoch: r.Epoch, Action: r.Action, Slice: r.Slice, Attempt: r.Attempt}, r.Zone)
		return r.Begun && k.RequestID == id
	}) {
		c.Violated("1 fence", k.doc.ID, "%s of %s is no call of a current request", k.Method, k.Resource())
	}
}

// legacyID is the ID of the request that a call to the former version of the API is of, which carries none.
func (c *Checks) legacyID(k call) string {
	doc, err := c.handed(k.by)
	does := map[string]events.Action{"DeleteNode": events.ActionDelete, "CreateNode": events.ActionCreate}[k.Method]
	i := slices.IndexFunc(doc.Requests, func(r seenRequest) bool {
		return r.Begun && r.Action == does && r.concerns(k.Node) && r.Zone == k.Zone
	})
	if err != nil || i < 0 {
		return ""
	}
	return doc.Requests[i].ID
}

// overtaken checks that no creation or deletion rests on a reading from before another one of ours.
func (c *Checks) overtaken(k call) {
	i := slices.IndexFunc(c.past[k.slice], func(d deed) bool {
		return (d.kind == ordered || d.kind == removed) && d.by == world.Ours(c.Project) && d.zone == k.Zone && d.handling != k.by.Number && d.at.After(k.read.At)
	})
	if !k.looked || i < 0 {
		return
	}
	last := c.past[k.slice][i]
	c.Violated("1 fence", k.doc.ID, "%s of %s rests on a reading of %s, and %s was %s by us at %s", k.Method, k.slice,
		k.read.At.UTC().Format(time.DateTime), k.slice, last.kind, last.at.UTC().Format(time.DateTime))
}

// aimed checks that a call hits what its handling has read: the life that the document knows. What nobody has trained on yet may have been
// ordered by another one of ours.
func (c *Checks) aimed(k call) {
	switch {
	case k.known == nil || k.doc.Open == nil && (k.Method == "StartNode" || c.Clock.Now().Sub(k.by.Seen) > unseen):
		c.Violated("1 fence", k.doc.ID, "%s of %s, and no incident is open on it", k.Method, k.slice)
	case strings.HasPrefix(k.Method, "Create"), k.doc.Open == nil, k.read.State == "gone":
	case strings.HasPrefix(k.Method, "Delete") && !k.looked && !c.takenAway(k.slice).IsZero() && c.isGone(k.Zone, k.slice):
		// The slice from its queued resource belonged to its owner, who has deleted it.
	case !k.looked:
		c.Violated("1 fence", k.doc.ID, "%s of %s without a reading", k.Method, k.slice)
	case k.known.Life.ID == k.read.Life:
	case !c.trainedIn(k) && c.makerOf(k.slice, k.Zone, k.read.Life) == world.Ours(c.Project):
	default:
		c.Violated("1 fence", k.doc.ID, "%s of %s, known as %s and read as %s", k.Method, k.slice, k.known.Life.ID, k.read.Life)
	}
}

// trainedIn reports whether a deletion hits a life in which training has run, and not one that was made for this incident and never let in.
func (c *Checks) trainedIn(k call) bool {
	t := c.Trainings[k.slice]
	if !k.looked || k.read.State == "gone" || k.doc.Open == nil || t.Ran().ID != k.read.Life || t.Stepped() == 0 {
		return false
	}
	life := t.Ran()
	forThis := c.maker(k.slice, life) == world.Ours(c.Project) && (k.doc.Open.Clears || life.Created.After(c.record(k.doc.ID).opened))
	return !forThis || c.letIn(k.slice, life)
}

// takenBack reports whether an incident may have ended since the handler of a call looked.
func (c *Checks) takenBack(inst *world.Instance) bool { return c.Clock.Now().Sub(inst.Seen) <= unseen }

// asSeen is a workload as the handler of a call saw it last: what came to it since then, the call cannot know.
func (c *Checks) asSeen(inst *world.Instance, doc seen) seen {
	known, err := c.handed(inst)
	if err != nil || known.ID != doc.ID || !c.takenBack(inst) {
		return doc
	}
	return known
}

func (c *Checks) isGone(zone, slice string) bool {
	state, _ := c.API.State(zone, slice)
	return state == ""
}

// makerOf is who ordered the life of a slice that has an ID.
func (c *Checks) makerOf(slice, zone, id string) string {
	for _, d := range slices.Backward(c.past[slice]) {
		if d.life.ID == id && d.kind != removed {
			return c.maker(slice, d.life)
		}
	}
	if _, life := c.API.State(zone, slice); life.ID == id {
		return c.maker(slice, life)
	}
	return faults.Owner
}

// letIn reports whether a lease of ours names a life of a slice.
func (c *Checks) letIn(slice string, life events.Incarnation) bool {
	return slices.ContainsFunc(c.slicesOf(c.Workload(slice)), func(f world.SliceConfig) bool {
		l, _, err := checkpoint.ReadLease(context.Background(), c.Store, f.Directory)
		return f.Directory != "" && err == nil && l.By != "crew" && slices.ContainsFunc(l.Admitted, func(a events.Admission) bool {
			return a.Slice == slice && a.Incarnation.Same(life)
		})
	})
}
