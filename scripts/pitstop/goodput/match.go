package goodput

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/topology"
)

// takenDown is a machine that was taken down a moment ago: most likely the node of these workers, or the workers of this node.
func (a *Account) takenDown(m *machine, worker int, c events.Cause) *machine {
	if !vague(c) && c != events.CauseGuest {
		return nil // that comes of no order
	}
	for _, o := range a.taken {
		if o.unnamed != m.unnamed && o.zone == m.zone && o.project == m.project && o.group+m.group == "" &&
			o.explains(c, a.now) && holds(o, worker) {
			return o
		}
	}
	return nil
}

// lostNode is a node that was lost a moment ago, without any entry of its workers: most likely it is the same loss. Later it must
// be the only such node, with a cause that fits theirs.
func (a *Account) lostNode(m *machine, worker int, c events.Cause) *machine {
	var only []*machine
	for _, o := range a.recent {
		g := o.gap
		if o.zone != m.zone || o.project != m.project || o.group != "" || g == nil || len(g.lost) > 0 || !holds(o, worker) || slices.Contains(only, o) {
			continue
		}
		if a.now.Sub(g.from) <= together {
			return o
		}
		if a.now.Sub(g.from) <= noticedWithin && agree(g.loss.Cause, c) {
			only = append(only, o)
		}
	}
	return one(only)
}

// lostWorkers is the oldest loss of workers alone, near enough, that may be this node's. Farther off it has to be the only
// one, of a cause that goes with the node's.
func (a *Account) lostWorkers(m *machine, c events.Cause, near, far time.Duration) *machine {
	if m.group != "" {
		return nil // it has others
	}
	var only []*machine
	for _, o := range a.open {
		g := o.gap
		if o.project != m.project || o.zone != m.zone || g.from.Before(m.created) || !holds(m, g.highest) {
			continue
		}
		if a.now.Sub(g.from) <= near {
			return o
		}
		if a.now.Sub(g.from) <= far && agree(g.loss.Cause, c) {
			only = append(only, o)
		}
	}
	return one(only)
}

// one is the machine of a list that holds no other.
func one(list []*machine) *machine {
	if len(list) == 1 {
		return list[0]
	}
	return nil
}

// agree reports whether two entries of these causes may be of one loss.
func agree(a, b events.Cause) bool { return a == b || vague(a) || vague(b) }

// holds reports whether a slice can have that worker.
func holds(m *machine, worker int) bool {
	shape, err := topology.Parse(m.accelerator)
	return err != nil || worker < shape.Workers
}

// belong notes whose workers these most likely are.
func (a *Account) belong(workers, node *machine) {
	a.matched++
	a.forget(node)
	a.joins(workers, node)
}

// joins makes workers those of a node. It takes over what is known of them, and reports whether that includes its loss.
func (a *Account) joins(workers, node *machine) (lost bool) {
	delete(a.machines, workers.key)
	a.report.Unnamed--
	node.group = workers.name
	a.groups[workers.key] = node
	if node.notice == nil {
		node.notice = workers.notice
	}
	g := workers.gap
	if g == nil {
		return false
	}
	workers.gap = nil
	a.open = slices.DeleteFunc(a.open, func(o *machine) bool { return o == workers })
	if node.gap != nil {
		return false
	}
	g.accelerator, g.loss.Slice = node.accelerator, node.name
	node.gap, node.alive = g, false
	a.gone(node, g.from)
	a.holding(node, g.from)
	return true
}

// merge gives the loss of workers to the node that they most likely are of.
func (a *Account) merge(workers, node *machine) {
	if first := cmp.Or(workers.gap, node.gap); a.now.Sub(first.from) > together {
		a.apart++
	}
	own := workers.gap == nil // the node's own loss came first
	a.belong(workers, node)
	node.gap.loss.MatchedByTime = true
	if own && node.gap.notice == nil {
		node.gap.notice = node.notice.known()
	}
}

// crew takes a line of the training side: it names the workers, and shows that training runs.
func (a *Account) crew(e events.Entry) bool {
	m := a.node(key{e.Subject.Project, e.Subject.Zone, e.Subject.Node})
	r := e.Crew
	group, _, ok := events.WorkerGroup(r.Hostname)
	k := key{m.project, m.zone, group}
	fresh := ok && m.group != group
	switch {
	case !fresh:
	case m.gap != nil && a.groups[k] == nil && a.machines[k] != nil && a.machines[k].gap != nil && len(m.gap.lost) == 0:
		a.merge(a.machines[k], m) // the words of a slice that is dying
		m.gap.loss.MatchedByTime = false
		fresh = false
	default:
		fresh = !a.named(k, m)
	}
	switch r.Report {
	case events.ReportExited:
		a.report.TrainingExits++
	case events.ReportStarted, events.ReportProgress:
		g := m.gap
		if g == nil {
			m.alive = fresh || !m.down(a.now)
			break
		}
		if fresh || a.now.Sub(g.from) > dying {
			a.recreated(m, Back)
		}
	default:
	}
	if m.gap == nil && (m.alive || r.Report == events.ReportFinished) {
		a.trains(m, r)
	}
	return true
}

// named notes whose workers these are. The node takes over their record. named reports whether that is a loss.
func (a *Account) named(k key, m *machine) (lost bool) {
	if m.group != "" {
		m.notice = nil // other workers are another incarnation
	}
	a.forget(m)
	if o := a.machines[k]; o != nil && o.unnamed {
		return a.joins(o, m)
	}
	m.group = k.name
	a.groups[k] = m
	return false
}
