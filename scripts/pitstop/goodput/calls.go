package goodput

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/reason"
)

// call takes a call of the TPU API. A long-running one has two entries, of which either may be missing; one that was
// refused has one.
func (a *Account) call(s events.Subject, c events.Call) bool {
	who := Agent{a.who.is(c), c.Principal}
	machines := a.called(s, c)
	if failure := cloudtpu.Audited(c); failure != nil {
		if strings.HasPrefix(c.Method, "Create") {
			a.refused(machines, failure.Class)
		}
		return true
	}
	switch c.Method {
	case "CreateQueuedResource":
		a.enqueue(s, c.Order, machines, who)
	case "DeleteQueuedResource":
		a.dequeue(s)
	}
	for _, m := range machines {
		switch c.Method {
		case "CreateNode":
			a.create(m, c, who)
		case "DeleteNode":
			a.remove(m, who)
		case "DeleteQueuedResource":
			a.remove(m, who)
			m.queued = ""
		case "StartNode":
			if a.ordered(m, who); ends(c) {
				a.up(m)
			}
		case "ResetQueuedResource":
			a.ordered(m, who)
		case "StopNode":
			if m.gap == nil {
				a.takeDown(m, false)
			}
		}
	}
	return true
}

// ends reports whether an entry of a call is the last one, or the only one.
func ends(c events.Call) bool { return c.Last || !c.First }

// called are the slices that a call is about. Where no entry names the nodes of a queued resource, the report assumes one slice
// with the same name, which is usual.
func (a *Account) called(s events.Subject, c events.Call) []*machine {
	if s.Node != "" {
		return []*machine{a.node(key{s.Project, s.Zone, s.Node})}
	}
	names, k := c.Order.Nodes, key{s.Project, s.Zone, s.QueuedResource}
	if q := a.queues[k]; q != nil && len(names) == 0 {
		names = q.Nodes
	}
	switch {
	case len(names) > 0:
	case a.machines[k] == nil && !strings.HasPrefix(c.Method, "Create"):
		return nil
	default:
		names = []string{s.QueuedResource}
	}
	var machines []*machine
	for _, n := range names {
		machines = append(machines, a.node(key{s.Project, s.Zone, n}))
	}
	return machines
}

// queuedAs finds the queued resource of a node by the names that they usually have: the same name, or one with a number at its
// end.
func (a *Account) queuedAs(k key) string {
	name := k.name
	if i := strings.LastIndexByte(name, '-'); i > 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		if q := a.queues[key{k.project, k.zone, name[:i]}]; q != nil && len(q.Nodes) == 0 {
			return name[:i]
		}
	}
	if q := a.queues[k]; q != nil && len(q.Nodes) == 0 {
		return name
	}
	return ""
}

// refused counts a creation that failed. So it was no provisioning.
func (a *Account) refused(machines []*machine, class reason.FailureClass) {
	for _, m := range machines {
		if o := a.lostInAnotherZone(m); o != nil {
			m = o
		}
		next := stand{Capacity, m.stand.cause}
		switch g := m.gap; {
		case g != nil:
			g.asked = cmp.Or(g.asked, a.now)
			g.counts(class)
			g.ordered, g.by = time.Time{}, Agent{}
			next.cause = g.Cause
		case m.alive, m.in == nil && a.workloads[key{m.project, "", m.name}] != nil:
			continue // another one of its name stands
		}
		if m.stand.use == Provisioning {
			m.stand.use = Capacity
		}
		a.turn(m, a.now, next)
		m.refused = a.now
		a.refusals = append(a.refusals, moment{m, a.now})
	}
}

// counts counts a creation that failed.
func (g *gap) counts(class reason.FailureClass) {
	if g.FailedCreates++; g.FailedBy == nil {
		g.FailedBy = map[reason.FailureClass]int{}
	}
	g.FailedBy[class]++
}

// create notes one end of a creation, or the whole of it.
func (a *Account) create(m *machine, c events.Call, who Agent) {
	switch {
	case c.Begins() && who.By == ByGoogle:
		a.startCreation(m, m.queued, c.Order, who)
	case c.Begins():
		a.startCreation(m, "", c.Order, who) // it stands alone; what it was in may still be there
	case a.now.Sub(m.created) > createTakes:
		m.notice = nil // it is made anew, and no entry says when that began
	}
	m.orderedAs(c.Order)
	if !ends(c) {
		return
	}
	if g := cmp.Or(a.lostInAnotherZone(m), m).gap; g != nil && g.ordered.IsZero() {
		a.ordered(m, who)
	}
	a.up(m)
}

// startCreation notes that the creation of a slice begins, in a queued resource or alone. If one stood, it was lost before.
func (a *Account) startCreation(m *machine, queued string, o events.Order, who Agent) {
	if m.gap == nil && m.alive {
		a.vanished(m)
	}
	m.queued = queued
	m.orderedAs(o)
	a.ordered(m, who)
	m.created, m.deleted, m.notice = a.now, time.Time{}, nil
	a.forget(m)
}

// orderedAs notes what a creation ordered.
func (m *machine) orderedAs(o events.Order) {
	if o.Accelerator != "" {
		m.accelerator, m.spot = o.Accelerator, o.Spot
	}
}

// vanished notes that a running node is created again: it was lost before, and no entry of its own says so.
func (a *Account) vanished(m *machine) {
	if o := a.twin(m, -1, "", unnamedFor, unnamedFor); o != nil && o.gap != nil {
		a.merge(o, m)
		return
	}
	a.openGap(m, a.now, events.CauseUnknown)
	m.gap.unseen = true
}

// lostInAnotherZone is the lost slice in whose place one of its name is to come, which has no time of its own so far; nil for none. A Job
// comes back in its namespace alone.
func (a *Account) lostInAnotherZone(m *machine) *machine {
	if o := a.lost[key{m.project, "", m.name}]; o != nil && o.gap != nil && m.gap == nil && m.in == nil && !m.isJob() {
		return o
	}
	return nil
}

// replaces notes that a slice is there, in the place of one that is lost in another zone. Somebody may ask in several zones: the first
// slice that is there has the workload.
func (a *Account) replaces(m *machine) {
	if o := a.lostInAnotherZone(m); o != nil {
		m.in, m.stand = a.workloadOf(o), o.stand
		m.in.slices[m.name] = m
		m.gap, o.gap, o.in = o.gap, nil, nil
		a.lost[key{m.project, "", m.name}] = m
	}
}

// ordered notes that somebody asks for a slice. Until it is there, what is lost is the slice whose place it is to take.
func (a *Account) ordered(m *machine, who Agent) {
	queued := m.queued != ""
	if o := a.lostInAnotherZone(m); o != nil {
		m = o
	}
	next := stand{use: Provisioning}
	if queued && who.By != ByGoogle { // Google makes the nodes of what it has granted
		next.use = Capacity
	}
	if g := m.gap; g != nil {
		g.ordered, g.asked, g.by = a.now, cmp.Or(g.asked, a.now), who
		next.cause = g.Cause
	}
	m.alive, m.refused = false, time.Time{}
	a.turn(m, a.now, next)
}

// up notes that a slice is there.
func (a *Account) up(m *machine) {
	a.replaces(m)
	if m.gap != nil {
		a.close(m, Back, a.now)
	} else {
		a.turn(m, a.now, stand{use: Boarding})
		a.quotaIdleSince(m, time.Time{})
	}
	m.alive, m.deleted = true, time.Time{}
}

// remove notes that somebody takes a slice down. What an owner takes down in quiet times is released; what a script or
// Pitstop takes down was lost, whether an entry says so or not.
func (a *Account) remove(m *machine, who Agent) {
	if m.gap == nil {
		if !m.deleted.IsZero() && m.created.Before(m.deleted) {
			return // the other entry of the same call
		}
		if m.in == nil && !m.created.IsZero() {
			m.deleted = a.now
			return // it was to take the place of another, or another has taken its place
		}
		far := noticedWithin
		if who.By != ByOwner {
			far = unnamedFor // it was lost, the question is only since when
		}
		if o := a.twin(m, -1, "", noticedWithin, far); o != nil && o.gap != nil {
			a.merge(o, m)
		}
	}
	m.alive, m.deleted, m.planned = false, a.now, false
	switch g := m.gap; {
	case g != nil && !g.deleted.IsZero():
	case g != nil:
		g.deleted, g.released, g.DeletedBy = a.now, who.By == ByOwner, who.Principal
		next := stand{Capacity, g.Cause}
		if g.released {
			next = stand{use: Stopped}
		}
		a.turn(m, a.now, next)
	case who.By == ByOwner || m.over():
		if !m.over() {
			a.report.Released++
		}
		a.takeDown(m, false)
		a.quotaIdleSince(m, a.now)
	default:
		if g := m.lostBeside(); g != nil {
			a.remember(m)
			a.turn(m, a.now, stand{Capacity, g.Cause})
			break
		}
		a.openGap(m, a.now, events.CauseUnknown)
		m.gap.deleted, m.gap.DeletedBy = a.now, who.Principal
	}
	m.notice = nil // it is void with its incarnation
}

// lostBeside is the loss of another slice of its workload, with which it is taken down; nil for none.
func (m *machine) lostBeside() *gap {
	if m.in == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.in.slices)) {
		if g := m.in.slices[name].gap; g != nil && !g.At.Equal(g.deleted) {
			return g
		}
	}
	return nil
}

// enqueue notes a queued resource. That its operation ended does not mean that its slice is there: no entry says when.
func (a *Account) enqueue(s events.Subject, o events.Order, machines []*machine, who Agent) {
	k := key{s.Project, s.Zone, s.QueuedResource}
	if q := a.queues[k]; q != nil {
		if a.now.Sub(q.created) < createTakes && q.lost.IsZero() {
			return // the other entry of the same call
		}
		a.dequeue(s) // its name was free again, so it was deleted
	}
	a.queues[k] = &queue{Order: o, created: a.now}
	for _, m := range machines {
		a.startCreation(m, s.QueuedResource, o, who)
	}
}

// dequeue notes that a queued resource is deleted.
func (a *Account) dequeue(s events.Subject) {
	k := key{s.Project, s.Zone, s.QueuedResource}
	q := a.queues[k]
	if q == nil {
		return
	}
	delete(a.queues, k)
	if held := a.now.Sub(q.lost); !q.lost.IsZero() && held > lateAfter {
		a.report.Leaks.Late++
		a.report.Leaks.LateHours += held.Hours()
	}
}

// quotaIdleSince notes since when the queued resource of a slice holds quota for nothing; zero says that it holds a slice again.
func (a *Account) quotaIdleSince(m *machine, nothing time.Time) {
	if q := a.queues[key{m.project, m.zone, m.queued}]; q != nil && (q.lost.IsZero() || nothing.IsZero()) {
		q.lost = nothing
	}
}

// queue is a queued resource.
type queue struct {
	events.Order
	created time.Time
	lost    time.Time // since when its slice is gone
}
