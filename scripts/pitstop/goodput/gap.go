package goodput

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/topology"
)

// gap is a loss that has not ended, since its At.
type gap struct {
	Loss
	lost map[int]bool // the workers that were lost, and whether they still are
	// terminated holds when each worker was last terminated; -1 is the node.
	terminated map[int]time.Time
	deleted    time.Time
	released   bool      // it was its owner who deleted it
	asked      time.Time // when somebody first asked for the slice again
	ordered    time.Time // when a creation began that has not ended
	by         Agent     // who brings it back
	notice     *notice
	unseen     bool // no entry shows when it was lost
}

// highest is the highest worker that was lost. No slice has more than mostWorkers: such a name says nothing of the size.
func (g *gap) highest() (most int) {
	for w := range g.lost {
		if w < mostWorkers {
			most = max(most, w)
		}
	}
	return most
}

// wasThere notes what a loss shows of the time before: the slice was there.
func (a *Account) wasThere(m *machine, worker int, c events.Cause) {
	if m.created.After(m.deleted) {
		a.replaces(m)
	}
	if g := m.gap; g != nil {
		if ordered := !g.ordered.IsZero(); ordered && a.now.Sub(g.ordered) > createTakes || !ordered && g.provesReturn(worker, c, a.now) {
			a.recreated(m, BackUnseen, a.now)
		}
	}
}

// loss notes that a machine, or one of its workers, is lost.
func (a *Account) loss(m *machine, worker int, c events.Cause) {
	a.wasThere(m, worker, c)
	switch {
	case m.gap != nil:
	case m.explains(c, a.now):
		return // the end of what somebody took down
	default:
		o := a.twin(m, worker, c, together, noticedWithin)
		switch {
		case o == nil:
			a.openGap(m, a.now, c)
		case o.gap != nil && m.unnamed:
			a.merge(m, o)
			m = o
		case o.gap != nil:
			a.merge(o, m)
		case m.unnamed:
			a.belong(m, o)
			return
		default:
			a.belong(o, m)
			a.takeDown(m, o.planned)
			a.quotaIdleSince(m, a.now)
			return
		}
	}
	g := m.gap
	if !g.ordered.IsZero() {
		g.Again++
		g.ordered = time.Time{}
		a.turn(m, a.now, standing(g.Cause))
	}
	if vague(g.Cause) && !vague(c) {
		if g.Cause = c; g.deleted.IsZero() {
			a.turn(m, g.At, standing(c))
		}
	}
	if terminal(c) {
		g.terminated[worker] = a.now
	}
	if worker >= 0 {
		g.lost[worker] = true
	}
	if c == events.CauseMaintenance && m.notice != nil && m.notice.workers[worker] == pending {
		m.notice.workers[worker] = ongoing
	}
}

// vague reports whether another entry may say more about the cause.
func vague(c events.Cause) bool {
	return c == events.CauseUnknown || c == events.CauseTerminated || c == ""
}

// agree reports whether two entries of these causes may be of one loss.
func agree(a, b events.Cause) bool { return a == b || vague(a) || vague(b) }

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

// ended is when a machine was lost or taken down.
func (m *machine) ended() time.Time {
	if m.gap != nil {
		return m.gap.At
	}
	return m.deleted
}

// down reports whether somebody took a machine down a moment ago, so that its end is no loss.
func (m *machine) down(now time.Time) bool {
	return !m.alive && !m.deleted.IsZero() && now.Sub(m.deleted) < noticedWithin
}

// explains reports whether somebody took the machine down a moment ago, so that an end with this cause is no loss. A schedule
// only shuts a machine down: a loss with a cause of its own still counts.
func (m *machine) explains(c events.Cause, now time.Time) bool {
	return m.down(now) && (!m.planned || c == events.CauseGuest || c == events.CauseTerminated)
}

// canHave reports whether a slice can have that worker.
func (m *machine) canHave(worker int) bool {
	shape, err := topology.Parse(m.accelerator)
	return err != nil || worker < shape.Workers
}

// twin is most likely the other side of the end of a machine: a node of workers, or workers of a node. Both end in one zone, at most near
// one another; the oldest such loss counts. Farther off it has to be the only one, of a cause that goes with this one. The last guess is
// what was taken down a moment ago.
func (a *Account) twin(m *machine, worker int, c events.Cause, near, far time.Duration) *machine {
	var only, taken *machine
	several := false
	all := a.recent[!m.unnamed]
	for _, r := range all[firstAt(all, a.now.Add(-far)):] {
		o := r.machine
		if !r.stays() || !m.fits(o, worker) {
			continue
		}
		switch g, ago := o.gap, a.now.Sub(r.at); {
		case g != nil && ago <= near:
			return o
		case g != nil && agree(g.Cause, c):
			several = several || only != nil && only != o
			only = o
		case g == nil && taken == nil && ago <= together && o.explains(c, a.now) && (vague(c) || c == events.CauseGuest): // no other end comes of an order
			taken = o
		}
	}
	if only != nil && !several {
		return only
	}
	return taken
}

// fits reports whether of two machines one may be a node, and the other its workers.
func (m *machine) fits(o *machine, worker int) bool {
	node, workers := m, o
	if m.unnamed {
		node, workers = o, m
	}
	if o.project != m.project || o.zone != m.zone || node.group != "" {
		return false // a node with a group has other workers
	}
	if g := o.gap; g != nil && (o.unnamed && g.At.Before(m.created) || !o.unnamed && len(g.lost) > 0) {
		return false
	}
	if workers.gap != nil {
		worker = workers.gap.highest()
	}
	return node.canHave(worker)
}

// belong makes workers those of a node, as they most likely are.
func (a *Account) belong(workers, node *machine) {
	a.unsure[matched]++
	a.forget(node)
	a.joins(workers, node)
}

// merge gives the loss of workers to the node that they most likely are of.
func (a *Account) merge(workers, node *machine) {
	first := cmp.Or(workers.gap, node.gap)
	if a.now.Sub(first.At) > together {
		a.unsure[apart]++
	}
	a.belong(workers, node)
	if node.gap.MatchedByTime = true; node.gap == first && node.gap.notice == nil {
		node.gap.notice = node.notice.known()
	}
}

// joins makes workers those of a node. It takes over what is known of them, and reports whether that includes its loss.
func (a *Account) joins(workers, node *machine) (lost bool) {
	a.report.Unnamed--
	node.group = workers.name
	a.machines[workers.key] = node
	node.notice = cmp.Or(node.notice, workers.notice)
	g := workers.gap
	if g == nil {
		return false
	}
	workers.gap = nil
	if node.gap != nil {
		return false
	}
	g.Accelerator, g.Slice = node.accelerator, node.name
	a.stops(node, g)
	return true
}

// remember notes when a machine was lost or taken down, for what tells of its other side.
func (a *Account) remember(m *machine) {
	all, at := a.recent[m.unnamed], m.ended()
	a.recent[m.unnamed] = slices.Insert(all, firstAt(all, at.Add(1)), moment{m, at})
}

// firstAt is the place of the first moment that is not before a time.
func firstAt(all []moment, at time.Time) int {
	i, _ := slices.BinarySearchFunc(all, at, func(m moment, at time.Time) int { return m.at.Compare(at) })
	return i
}

// stays reports whether the end that a machine had then is still its last.
func (m moment) stays() bool { return m.ended().Equal(m.at) }

// forget drops the workers of a machine: the next one of that name has others.
func (a *Account) forget(m *machine) {
	if m.group != "" {
		delete(a.machines, key{m.project, m.zone, m.group})
		m.group = ""
	}
}

// openGap notes that a loss begins.
func (a *Account) openGap(m *machine, at time.Time, c events.Cause) {
	a.stops(m, &gap{
		lost: map[int]bool{}, terminated: map[int]time.Time{}, notice: m.notice.known(),
		Loss: Loss{At: at, Cause: c, Project: m.project, Zone: m.zone, Slice: m.name, Accelerator: m.accelerator},
	})
}

// stops notes that a machine does not stand any more, since a gap began.
func (a *Account) stops(m *machine, g *gap) {
	m.gap, m.alive = g, false
	a.lost[key{m.project, "", m.name}] = m
	a.remember(m)
	if m.stand.use == Boarding {
		m.stand.use = Unknown // its crew never spoke
	}
	a.turn(m, g.At, standing(g.Cause))
	a.quotaIdleSince(m, g.At)
}

// standing is how a slice stands that was lost for a cause: Google itself brings some back.
func standing(c events.Cause) stand {
	if c == events.CauseMaintenance || c == events.CauseHostError {
		return stand{Maintenance, c}
	}
	return stand{Capacity, c}
}

// over reports whether what a slice was there for has ended, so that it is no loss to take it down.
func (m *machine) over() bool {
	return m.stand.use == Stopped || m.stand.use == trains && m.in != nil && m.in.phase == finished
}

// limit notes that an instance schedule stops a machine, as its owner planned.
func (a *Account) limit(m *machine) {
	if m.gap == nil && !m.down(a.now) {
		a.report.RunTimeLimits++
		a.takeDown(m, true)
		a.quotaIdleSince(m, a.now)
	}
}

// takeDown notes that a machine is taken down without being lost, as a schedule planned or by an order.
func (a *Account) takeDown(m *machine, planned bool) {
	m.alive, m.deleted, m.planned, m.notice = false, a.now, planned, nil
	a.turn(m, a.now, stand{use: Stopped})
	a.remember(m)
}

// restarted notes that Google restarted a machine, or one of its workers. The slice is back with the last of them.
func (a *Account) restarted(m *machine, worker int) {
	g := m.gap
	if g == nil || !g.deleted.IsZero() {
		return
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
	g.by = Agent{By: ByGoogle}
	a.close(m, Back, a.now)
}

// recreated closes the gap of a slice that was back at a time, and names the caller who ordered it.
func (a *Account) recreated(m *machine, o Outcome, at time.Time) {
	g := m.gap
	if g.by.By == "" {
		g.by.By = ByNobody
		if g.deleted.IsZero() && (g.Cause == events.CauseMaintenance || g.Cause == events.CauseHostError) {
			g.by.By = ByGoogle // nobody took it down, and nobody created it
		}
	}
	a.close(m, o, at)
}

// close ends a gap at a time: now it is a loss.
func (a *Account) close(m *machine, o Outcome, at time.Time) {
	g := m.gap
	if o == Back && g.unseen {
		o = BackUnseen
	}
	l := a.ended(m, g, o, at)
	if m.alive = o == Back || o == BackUnseen; m.alive {
		if o == BackUnseen {
			m.stand.use = Unknown
		}
		a.turn(m, at, stand{use: Boarding})
		if m.in != nil && m.in.phase == silent {
			a.mended(m.in, at)
		}
		a.quotaIdleSince(m, time.Time{})
		l.RecreatedBy, l.Principal = g.by.By, g.by.Principal
		sum(a.byAgent, g.by).add(l)
		m.notice.isOver(l.Announced && m.notice.sameWindow(g.notice), at)
	}
	m.gap, m.back = nil, at
	a.report.Total.add(l)
	sum(a.byClass, Class{Cause: l.Cause, Zone: l.Zone, Generation: l.Generation}).add(l)
	a.report.Losses = append(a.report.Losses, l)
}

// ended is the loss of a gap that ends so: what was lost, for how long, and who brought it back.
func (a *Account) ended(m *machine, g *gap, o Outcome, at time.Time) Loss {
	l := g.Loss
	l.Outcome, l.Workers, l.Accelerator = o, len(g.lost), cmp.Or(l.Accelerator, m.accelerator)
	if m.zone != l.Zone {
		l.BackZone = m.zone
	}
	if shape, err := topology.Parse(l.Accelerator); err == nil {
		l.Generation, l.Chips = shape.Generation, shape.Chips
	} else if l.ChipsAtLeast = 1; g.highest() > 0 {
		l.ChipsAtLeast = 4 * (g.highest() + 1) // every slice of several workers has four chips in each
	}
	if l.Asked = g.asked; !g.asked.IsZero() {
		unasked := g.asked
		if g.released {
			unasked = earlier(unasked, g.deleted)
		}
		l.Unasked = unasked.Sub(g.At).Seconds()
	}
	if m.in != nil {
		l.Workload = m.in.Name
	}
	until := at
	switch o {
	case Back:
		l.BackAt = at
	case GivenUp:
		until = g.deleted
	case BackUnseen, NotTold:
		until = g.At
	case NotBack:
	}
	l.Gap = until.Sub(g.At).Seconds()
	l.ChipHours = float64(l.Chips) * l.Gap / 3600
	l.ChipHoursAtLeast = float64(l.ChipsAtLeast) * l.Gap / 3600
	a.announces(&l, g.notice)
	return l
}

// crew takes a line of the training side: it names the workers, and shows that training runs.
func (a *Account) crew(e events.Entry) bool {
	m := a.node(key{e.Subject.Project, e.Subject.Zone, e.Subject.Node})
	r := e.Crew
	group, _, ok := events.WorkerGroup(r.Hostname)
	fresh := ok && m.group != group
	if fresh {
		o := a.machines[key{m.project, m.zone, group}]
		if o != nil && o.unnamed && o.gap != nil && m.gap != nil && len(m.gap.lost) == 0 {
			a.merge(o, m) // the words of a slice that is dying
			m.gap.MatchedByTime, fresh = false, false
		} else {
			fresh = !a.named(group, o, m)
		}
	}
	switch r.Report {
	case events.ReportExited:
		a.report.TrainingExits++
	case events.ReportStarted, events.ReportProgress:
		a.replaces(m)
		if g := m.gap; g == nil {
			m.alive = fresh || !m.down(a.now)
		} else if fresh || a.now.Sub(g.At) > dying {
			a.recreated(m, Back, later(later(g.At, g.deleted), later(g.ordered, cmp.Or(a.readyAt(r), a.now))))
		}
	default:
	}
	if m.gap == nil && (m.alive || r.Report == events.ReportFinished) {
		a.trains(m, r)
	}
	return true
}

// named notes whose workers a group is, which may be known alone so far. The node takes over their record. named reports whether that is a
// loss.
func (a *Account) named(group string, workers, m *machine) (lost bool) {
	if m.group != "" {
		m.notice = nil // other workers are another incarnation
	}
	a.forget(m)
	if workers != nil && workers.unnamed {
		return a.joins(workers, m)
	}
	m.group = group
	a.machines[key{m.project, m.zone, group}] = m
	return false
}
