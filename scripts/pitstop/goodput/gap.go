package goodput

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/topology"
)

// gap is a loss that has not ended.
type gap struct {
	loss Loss
	from time.Time
	lost map[int]bool // the workers that were lost, and whether they still are
	// terminated holds when each worker was last terminated; -1 is the node.
	terminated map[int]time.Time
	highest    int
	deleted    time.Time
	released   bool      // it was its owner who deleted it
	ordered    time.Time // when a creation began that has not ended
	by         By
	byWhom     string
	notice     *notice
	// accelerator is that of the slice that was lost; unseen says that no entry shows when it was lost.
	accelerator string
	unseen      bool
}

// queue is a queued resource.
type queue struct {
	nodes       []string
	accelerator string
	created     time.Time
	lost        time.Time // since when its slice is gone
}

// loss notes that a machine, or one of its workers, is lost.
func (a *Account) loss(m *machine, worker int, c events.Cause) {
	if g := m.gap; g != nil {
		if ordered := !g.ordered.IsZero(); ordered && a.now.Sub(g.ordered) > createTakes || !ordered && g.provesReturn(worker, c, a.now) {
			a.recreated(m, BackUnseen)
		}
	}
	switch {
	case m.gap != nil:
	case m.explains(c, a.now):
		return // the end of what somebody took down
	case m.unnamed:
		if n := a.lostNode(m, worker, c); n != nil {
			a.merge(m, n)
			m = n
		} else if n := a.takenDown(m, worker, c); n != nil {
			a.belong(m, n)
			return
		}
	default:
		if o := a.lostWorkers(m, c, together, noticedWithin); o != nil {
			a.merge(o, m)
		} else if o := a.takenDown(m, -1, c); o != nil {
			a.belong(o, m)
			planned := o.planned()
			a.takeDown(m)
			if planned {
				m.scheduled = m.deleted
			}
			return
		}
	}
	if m.gap == nil {
		a.begin(m, c)
	} else if !m.gap.ordered.IsZero() {
		m.gap.loss.Again++
		m.gap.ordered = time.Time{}
		a.turn(m, a.now, standing(m.gap.loss.Cause))
	}
	a.note(m, worker, c)
}

// note adds to the gap of a machine what one more entry about its loss says.
func (a *Account) note(m *machine, worker int, c events.Cause) {
	g := m.gap
	if vague(g.loss.Cause) && !vague(c) {
		g.loss.Cause = c
		if g.ordered.IsZero() && g.deleted.IsZero() {
			a.turn(m, g.from, standing(c))
		}
	}
	if terminal(c) {
		g.terminated[worker] = a.now
	}
	if c == events.CauseMaintenance && m.notice != nil {
		if _, ok := m.notice.workers[worker]; ok {
			m.notice.workers[worker] = ongoing
		}
	}
	if worker >= 0 {
		g.lost[worker] = true
		if worker < mostWorkers { // no slice has others: such a name says nothing of the size
			g.highest = max(g.highest, worker)
		}
	}
}

// terminal reports whether a machine that was lost in this way is not running until somebody creates it again.
func terminal(c events.Cause) bool { return c == events.CausePreemption || c == events.CauseTerminated }

// provesReturn reports whether a loss now shows that the slice was back after it was terminated: Google terminates only a slice that
// is there. Entries about one termination come close together: those of the same subject more than those of a node and its workers.
func (g *gap) provesReturn(worker int, c events.Cause, now time.Time) bool {
	if !terminal(c) || len(g.terminated) == 0 {
		return false
	}
	if before, ok := g.terminated[worker]; ok && now.Sub(before) > together {
		return true
	}
	for _, before := range g.terminated {
		if now.Sub(before) <= noticedWithin {
			return false
		}
	}
	return true
}

// down reports whether somebody took a machine down a moment ago, so that its end is no loss.
func (m *machine) down(now time.Time) bool {
	return !m.alive && !m.deleted.IsZero() && now.Sub(m.deleted) < noticedWithin
}

// planned reports whether it was a schedule that took the machine down.
func (m *machine) planned() bool { return !m.scheduled.IsZero() && m.scheduled.Equal(m.deleted) }

// explains reports whether somebody took the machine down a moment ago, so that an end with this cause is no loss. A schedule
// only shuts a machine down: a loss with a cause of its own still counts.
func (m *machine) explains(c events.Cause, now time.Time) bool {
	return m.down(now) && (!m.planned() || c == events.CauseGuest || c == events.CauseTerminated)
}

// limit notes that an instance schedule stops a machine, as its owner planned.
func (a *Account) limit(m *machine) {
	if m.gap == nil && !m.down(a.now) {
		a.report.RunTimeLimits++
		a.takeDown(m)
		m.scheduled = m.deleted
	}
}

// takeDown notes that a machine is taken down without being lost. Its queued resource stays, and holds quota.
func (a *Account) takeDown(m *machine) {
	m.alive, m.deleted, m.notice = false, a.now, nil
	a.turn(m, a.now, stand{use: Stopped})
	a.taken = append(a.taken, m)
	if q := a.queues[key{m.project, m.zone, m.queued}]; q != nil && q.lost.IsZero() {
		q.lost = a.now
	}
}

// vague reports whether another entry may say more about the cause.
func vague(c events.Cause) bool {
	return c == events.CauseUnknown || c == events.CauseTerminated || c == ""
}

func (a *Account) begin(m *machine, c events.Cause) {
	m.gap = &gap{
		from: a.now, lost: map[int]bool{}, terminated: map[int]time.Time{}, highest: -1, notice: m.notice.known(), accelerator: m.accelerator,
		loss: Loss{At: a.now, Cause: c, Project: m.project, Zone: m.zone, Slice: m.name},
	}
	m.alive = false
	if m.unnamed {
		a.open = append(a.open, m)
		return
	}
	a.recent = append(a.recent, m)
	a.gone(m, a.now)
	a.holding(m, a.now)
}

// standing is how a slice stands that was lost for a cause: Google itself brings some back.
func standing(c events.Cause) stand {
	if c == events.CauseMaintenance || c == events.CauseHostError {
		return stand{Maintenance, c}
	}
	return stand{Capacity, c}
}

// gone notes since when a slice does not stand any more.
func (a *Account) gone(m *machine, since time.Time) {
	if m.stand.use == Boarding {
		m.stand.use = Unknown // its crew never spoke
	}
	a.turn(m, since, standing(m.gap.loss.Cause))
}

// holding notes that a node has a gap, and that the queued resource which it was in holds quota for nothing.
func (a *Account) holding(m *machine, since time.Time) {
	if m.isJob() {
		return // a Job comes back in its namespace alone, and its JobSet holds no quota
	}
	a.gaps[key{m.project, "", m.name}] = m
	if q := a.queues[key{m.project, m.zone, m.queued}]; q != nil && q.lost.IsZero() {
		q.lost = since
	}
}

// restarted notes that Google restarted a machine, or one of its workers. The slice is back with the last of them.
func (a *Account) restarted(m *machine, worker int) {
	g := m.gap
	if g == nil || !g.deleted.IsZero() {
		return
	}
	if m.notice != nil && worker >= 0 {
		m.notice.mend(worker, a.now)
	}
	if worker >= 0 {
		if _, ok := g.lost[worker]; !ok && len(g.lost) > 0 {
			return
		}
		g.lost[worker] = false
		for _, lost := range g.lost {
			if lost {
				return
			}
		}
	}
	g.by, g.byWhom = ByGoogle, ""
	a.close(m, Back)
	m.alive = true
}

// recreated closes the gap of a slice that is seen again, and names the caller who ordered it.
func (a *Account) recreated(m *machine, o Outcome) {
	g := m.gap
	if g.by == "" {
		g.by = ByNobody
		if g.deleted.IsZero() && (g.loss.Cause == events.CauseMaintenance || g.loss.Cause == events.CauseHostError) {
			g.by = ByGoogle // nobody took it down, and nobody created it
		}
	}
	a.close(m, o)
	m.alive = true
}

// close ends a gap and hands on the loss.
func (a *Account) close(m *machine, o Outcome) {
	g := m.gap
	if o == Back && g.unseen {
		o = BackUnseen
	}
	if o == BackUnseen {
		m.stand.use = Unknown
	}
	if o == Back || o == BackUnseen {
		a.turn(m, a.now, stand{use: Boarding})
		if m.in != nil && m.in.phase == silent {
			a.mended(m.in, a.now)
		}
	}
	m.gap, m.back = nil, a.now
	if m.unnamed {
		a.open = slices.DeleteFunc(a.open, func(p *machine) bool { return p == m })
	} else if k := (key{m.project, "", m.name}); a.gaps[k] == m {
		delete(a.gaps, k)
	}
	if q := a.queues[key{m.project, m.zone, m.queued}]; q != nil && (o == Back || o == BackUnseen) {
		q.lost = time.Time{} // it holds a slice again
	}
	l := a.ended(m, g, o)
	a.attribute(&l, g)
	if n := m.notice; n != nil && (o == Back || o == BackUnseen) {
		n.mend(-1, a.now)
		n.met = n.met || l.Announced && n.first.Equal(g.notice.first)
	}
	a.report.Total.add(l)
	sum(a.byClass, Class{Cause: l.Cause, Zone: l.Zone, Generation: l.Generation}).add(l)
	if o == Back || o == BackUnseen {
		sum(a.byAgent, Agent{By: l.RecreatedBy, Principal: l.Principal}).add(l)
	}
	a.lost(l)
}

// ended is the loss of a gap that ends so: what was lost, for how long, and who brought it back.
func (a *Account) ended(m *machine, g *gap, o Outcome) Loss {
	l := g.loss
	l.Outcome, l.Workers, l.Accelerator = o, len(g.lost), cmp.Or(g.accelerator, m.accelerator)
	if m.zone != l.Zone {
		l.BackZone = m.zone
	}
	if shape, err := topology.Parse(l.Accelerator); err == nil {
		l.Generation, l.Chips = shape.Generation, shape.Chips
	} else if l.ChipsAtLeast = 1; g.highest > 0 {
		l.ChipsAtLeast = 4 * (g.highest + 1) // every slice of several workers has four chips in each
	}
	switch o {
	case Back, BackUnseen:
		l.RecreatedBy, l.Principal = g.by, g.byWhom
		if o == Back {
			l.BackAt, l.Gap = a.now, a.now.Sub(g.from).Seconds()
		}
	case GivenUp:
		l.Gap = g.deleted.Sub(g.from).Seconds()
	case NotBack:
		l.Gap = a.now.Sub(g.from).Seconds()
	case NotTold:
	}
	l.ChipHours = float64(l.Chips) * l.Gap / 3600
	l.ChipHoursAtLeast = float64(l.ChipsAtLeast) * l.Gap / 3600
	return l
}
