package losses

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/topology"
)

const (
	// together is how far apart the entries of a node and of its workers about one loss may be.
	together = 5 * time.Minute
	// noticedWithin is how long after a loss a deletion in the same zone still belongs to it. So does an entry of a node or of
	// workers, if nothing else in the zone fits.
	noticedWithin = 35 * time.Minute
	// unnamedFor is how long a loss of workers alone waits for an entry that says how it ended.
	unnamedFor = 24 * time.Hour
	// createTakes is the longest that a creation is under way: a slice that is lost later was there.
	createTakes = time.Hour
	// dying is how long a crew may still speak on a slice that is being lost.
	dying = 10 * time.Minute
	// aside is how far outside of its window announced maintenance counts as announced.
	aside = 10 * time.Minute
	// lateAfter is how long a queued resource may outlive its slice before it counts as late.
	lateAfter = time.Hour
	// forgetAfter is how long a node that is deleted, and a machine of which only a notice is known, are remembered.
	forgetAfter = 100 * 24 * time.Hour
	// mostWorkers is how many the largest slice has, v5p-12288.
	mostWorkers = 1536
)

// key names a node, a queued resource, or what workers have in common.
type key struct{ project, zone, name string }

// machine is a slice, as far as the entries show it.
type machine struct {
	key
	// unnamed says that only workers are known; name is then the common part of their names.
	unnamed     bool
	accelerator string
	queued      string    // the queued resource that it is in
	group       string    // of its present workers
	alive       bool      // it was created, and nothing has happened to it since
	created     time.Time // when its creation began
	deleted     time.Time // when somebody or a schedule took it down
	scheduled   time.Time // when a schedule took it down
	back        time.Time // when a loss of it ended
	seen        time.Time
	notice      *notice
	gap         *gap
}

// notice is announced maintenance of one incarnation, until it is gone for each of its workers.
type notice struct {
	first      time.Time // when this window was first announced
	start, end time.Time
	workers    map[int]stage // those that it was announced for, and is not gone for; -1 is the node
	began      bool          // an entry says so
	met        bool          // a loss came of it
	over       time.Time     // when the last of them was back
}

// stage is how far the maintenance of one worker is.
type stage int

const (
	pending stage = iota
	ongoing
	mended // it was restarted, and its maintenance is not called gone yet
)

// another reports whether a notice now is of other maintenance, and not of the same maintenance at a later time.
func (n *notice) another(window, now time.Time) bool {
	return !n.end.IsZero() && window.After(n.end) && (n.began || n.met || now.After(n.end.Add(aside)))
}

// mend notes that a worker whose maintenance is under way is back; -1 is all of them.
func (n *notice) mend(worker int, now time.Time) {
	left := false
	for w, s := range n.workers {
		if s == ongoing && (worker < 0 || w == worker) {
			n.workers[w] = mended
		}
		left = left || n.workers[w] != mended
	}
	if !left && n.over.IsZero() {
		n.over = now
	}
}

// known is a copy of the notice as it stands now. A loss is measured against it, even if the notice changes later.
func (n *notice) known() *notice {
	if n == nil {
		return nil
	}
	k := *n
	return &k
}

// gone notes that no maintenance is announced for a worker any more, and reports whether that was the last of them.
func (n *notice) gone(worker int) bool {
	delete(n.workers, worker)
	_, node := n.workers[-1]
	return worker < 0 || len(n.workers) == 0 || node && len(n.workers) == 1
}

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

// Accumulator takes entries in the order of their times.
type Accumulator struct {
	who   Who
	begun events.Callers
	lead  time.Duration
	// Lost is called with each loss as soon as it is known how it ended.
	lost func(Loss)

	report   Report
	machines map[key]*machine
	groups   map[key]*machine // by what the workers of a named node have in common
	open     []*machine       // unnamed ones that were lost, oldest first
	recent   []*machine       // nodes that were lost a moment ago, oldest first
	taken    []*machine       // what was taken down a moment ago and is no loss, oldest first
	gaps     map[key]*machine // nodes with a gap, by project and name alone: they may come back in another zone
	queues   map[key]*queue
	byClass  map[Class]*Sum
	byAgent  map[Agent]*Sum
	now      time.Time
	ids      map[string]bool // of the entries at this very time
	swept    time.Time
	// matched counts the pairs of workers and node that times alone join, apart those of them with entries minutes apart.
	// restarts counts restarts by Google without a loss in the record.
	matched, apart, restarts int
	// others counts the losses of machines that are no workers of the Cloud TPU API.
	others   map[other]int
	clusters clusters
}

// other is a kind of machine that the report leaves out.
type other int

const (
	plainVM other = iota // an instance of Compute Engine that is no TPU
	ofGKE
	ofGroup
	unnamed // the entry names no machine
)

func otherOf(s events.Subject) other {
	switch s.Platform() {
	case events.PlatformGKE:
		return ofGKE
	case events.PlatformGroup:
		return ofGroup
	case events.PlatformTPU:
	}
	if s.Worker == "" {
		return unnamed
	}
	return plainVM
}

// New makes an accumulator. A notice is in time when it came so much before the loss. Lost may be nil.
func New(who Who, lead time.Duration, lost func(Loss)) *Accumulator {
	if lost == nil {
		lost = func(Loss) {}
	}
	return &Accumulator{
		who: who, begun: events.Callers{}, lead: lead, lost: lost, machines: map[key]*machine{}, groups: map[key]*machine{}, queues: map[key]*queue{},
		byClass: map[Class]*Sum{}, byAgent: map[Agent]*Sum{}, ids: map[string]bool{}, gaps: map[key]*machine{}, others: map[other]int{},
		clusters: clusters{sets: map[key][]string{}, marked: map[key]*notice{}},
	}
}

// Skip counts an entry that says nothing about a TPU, and notes its time.
func (a *Accumulator) Skip(e events.Entry) {
	a.report.Entries++
	a.clock(e)
	if e.Kind == events.KindLoss && e.Ignored != "" {
		a.report.Elsewhere++
		a.others[otherOf(e.Subject)]++
	}
}

// Add takes the next entry. It ignores one with the same time and ID as another.
func (a *Accumulator) Add(e events.Entry) {
	if e.Ignored != "" && e.Kind != events.KindLimit && !ofCluster(e) || e.Kind == "" || e.Kind == events.KindForeign {
		a.Skip(e)
		return
	}
	a.report.Entries++
	a.clock(e)
	if e.ID != "" {
		id := e.ID + " " + e.Subject.Project + " " + e.Subject.Worker + " " + e.Call.Method
		if a.ids[id] {
			return
		}
		a.ids[id] = true
	}
	if a.take(e) {
		a.report.Used++
	}
}

func (a *Accumulator) clock(e events.Entry) {
	if e.Time.IsZero() || !e.Time.After(a.now) {
		return
	}
	clear(a.ids)
	a.now = e.Time
	if a.report.From.IsZero() {
		a.report.From, a.swept = a.now, a.now
	}
	for len(a.open) > 0 && a.open[0].gap != nil && a.now.Sub(a.open[0].gap.from) > unnamedFor {
		a.close(a.open[0], NotTold)
	}
	for len(a.recent) > 0 && (a.recent[0].gap == nil || a.now.Sub(a.recent[0].gap.from) > noticedWithin) {
		a.recent = a.recent[1:]
	}
	for len(a.clusters.lost) > 0 && a.now.Sub(a.clusters.lost[0].at) > failsWithin {
		a.clusters.lost = a.clusters.lost[1:]
	}
	for len(a.taken) > 0 && a.now.Sub(a.taken[0].deleted) > together {
		a.taken = a.taken[1:]
	}
	if a.now.Sub(a.swept) > 24*time.Hour {
		a.sweep()
	}
}

// sweep forgets machines without an open loss and without an entry for long.
func (a *Accumulator) sweep() {
	a.swept = a.now
	for k, m := range a.machines {
		if m.gap == nil && (m.unnamed || !m.alive) && a.now.Sub(m.seen) > forgetAfter {
			delete(a.machines, k)
			a.forget(m)
		}
	}
	for k, n := range a.clusters.marked {
		if a.now.Sub(n.first) > forgetAfter {
			delete(a.clusters.marked, k)
		}
	}
}

// forget drops the workers of a machine: the next one of that name has others.
func (a *Accumulator) forget(m *machine) {
	if m.group != "" {
		delete(a.groups, key{m.project, m.zone, m.group})
		m.group = ""
	}
}

// take reports whether the entry says something about a TPU.
func (a *Accumulator) take(e events.Entry) bool {
	switch {
	case ofCluster(e):
		return a.cluster(e)
	case e.Kind == events.KindCall:
		a.begun.Attribute(&e.Call)
		return a.call(e)
	case e.Kind == events.KindCrew:
		return a.crew(e)
	}
	m, worker := a.of(e.Subject)
	if m == nil {
		return false
	}
	switch {
	case e.Kind == events.KindLoss:
		a.loss(m, worker, e.Cause)
	case e.Kind == events.KindBack:
		if m.gap == nil && (m.back.IsZero() || a.now.Sub(m.back) > noticedWithin) {
			m.back = a.now
			a.restarts++
		}
		a.restarted(m, worker)
	case e.Kind == events.KindLimit:
		a.limit(m)
	case e.Kind == events.KindNotice:
		a.announced(m, worker, e.Notice)
	default:
		return false
	}
	return true
}

// node finds a node, or notes that there is one.
func (a *Accumulator) node(k key) *machine {
	m := a.machines[k]
	if m == nil {
		m = &machine{key: k, queued: a.queuedAs(k)}
		a.machines[k] = m
		a.report.Slices++
	}
	m.seen = a.now
	return m
}

// of finds the machine that an entry speaks of, and which of its workers; -1 is all of them.
func (a *Accumulator) of(s events.Subject) (m *machine, worker int) {
	if s.Node != "" {
		return a.node(key{s.Project, s.Zone, s.Node}), -1
	}
	group, worker, ok := s.Group()
	if !ok {
		return nil, -1
	}
	k := key{s.Project, s.Zone, group}
	if m = a.groups[k]; m == nil {
		m = a.machines[k]
	}
	if m == nil {
		m = &machine{key: k, unnamed: true}
		a.machines[k] = m
		a.report.Unnamed++
	}
	m.seen = a.now
	return m, worker
}

// loss notes that a machine, or one of its workers, is lost.
func (a *Accumulator) loss(m *machine, worker int, c events.Cause) {
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
	}
	a.note(m, worker, c)
}

// note adds to the gap of a machine what one more entry about its loss says.
func (a *Accumulator) note(m *machine, worker int, c events.Cause) {
	g := m.gap
	if vague(g.loss.Cause) && !vague(c) {
		g.loss.Cause = c
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
func (a *Accumulator) limit(m *machine) {
	if m.gap == nil && !m.down(a.now) {
		a.report.RunTimeLimits++
		a.takeDown(m)
		m.scheduled = m.deleted
	}
}

// takeDown notes that a machine is taken down without being lost. Its queued resource stays, and holds quota.
func (a *Accumulator) takeDown(m *machine) {
	m.alive, m.deleted, m.notice = false, a.now, nil
	a.taken = append(a.taken, m)
	if q := a.queues[key{m.project, m.zone, m.queued}]; q != nil && q.lost.IsZero() {
		q.lost = a.now
	}
}

// takenDown is a machine that was taken down a moment ago: most likely the node of these workers, or the workers of this node.
func (a *Accumulator) takenDown(m *machine, worker int, c events.Cause) *machine {
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

// vague reports whether another entry may say more about the cause.
func vague(c events.Cause) bool {
	return c == events.CauseUnknown || c == events.CauseTerminated || c == ""
}

func (a *Accumulator) begin(m *machine, c events.Cause) {
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
	a.holding(m, a.now)
}

// holding notes that a node has a gap, and that the queued resource which it was in holds quota for nothing.
func (a *Accumulator) holding(m *machine, since time.Time) {
	if m.isJob() {
		return // a Job comes back in its namespace alone, and its JobSet holds no quota
	}
	a.gaps[key{m.project, "", m.name}] = m
	if q := a.queues[key{m.project, m.zone, m.queued}]; q != nil && q.lost.IsZero() {
		q.lost = since
	}
}

// lostNode is a node that was lost a moment ago, without any entry of its workers: most likely it is the same loss. Later it must
// be the only such node, with a cause that fits theirs.
func (a *Accumulator) lostNode(m *machine, worker int, c events.Cause) *machine {
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
func (a *Accumulator) lostWorkers(m *machine, c events.Cause, near, far time.Duration) *machine {
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
func (a *Accumulator) belong(workers, node *machine) {
	a.matched++
	delete(a.machines, workers.key)
	a.report.Unnamed--
	a.forget(node)
	node.group = workers.name
	a.groups[workers.key] = node
	if node.notice == nil {
		node.notice = workers.notice
	}
}

// merge gives the loss of workers to the node that they most likely are of.
func (a *Accumulator) merge(workers, node *machine) {
	a.belong(workers, node)
	g := workers.gap
	workers.gap = nil
	if first := cmp.Or(g, node.gap); a.now.Sub(first.from) > together {
		a.apart++
	}
	if g == nil { // the node's own loss came first
		node.gap.loss.MatchedByTime = true
		if node.gap.notice == nil {
			node.gap.notice = node.notice.known()
		}
		return
	}
	a.open = slices.DeleteFunc(a.open, func(o *machine) bool { return o == workers })
	if node.gap == nil {
		g.accelerator = node.accelerator
		node.gap, node.alive = g, false
		node.gap.loss.Slice = node.name
		a.holding(node, g.from)
	}
	node.gap.loss.MatchedByTime = true
}

// restarted notes that Google restarted a machine, or one of its workers. The slice is back with the last of them.
func (a *Accumulator) restarted(m *machine, worker int) {
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

func (a *Accumulator) announced(m *machine, worker int, n events.Notice) {
	if n.Status == events.NoticeGone {
		a.gone(m, worker)
		return
	}
	if m.notice == nil || m.notice.another(n.WindowStart, a.now) {
		m.notice = &notice{first: a.now, start: n.WindowStart, end: n.WindowEnd, workers: map[int]stage{}}
		a.report.Notices.Announced++
	}
	k := m.notice
	if !n.WindowStart.IsZero() {
		if n.Status == events.NoticePending && n.WindowStart.Before(k.start) {
			k.first = a.now
		}
		k.start, k.end = n.WindowStart, n.WindowEnd
	}
	switch n.Status {
	case events.NoticePending:
		k.workers[worker], k.over = pending, time.Time{}
	case events.NoticeOngoing:
		if !k.began {
			k.began = true
			a.report.Notices.Began++
		}
		if k.workers[worker] == mended {
			return // it is told again, as when the window moves; another loss has an entry of its own
		}
		k.workers[worker], k.over = ongoing, time.Time{}
		a.loss(m, worker, events.CauseMaintenance)
	default:
	}
}

// gone notes that no maintenance is announced any more: it is done, or withdrawn.
func (a *Accumulator) gone(m *machine, worker int) {
	if n := m.notice; n != nil && n.gone(worker) {
		if !n.began && !n.met && m.gap == nil {
			a.report.Notices.Withdrawn++
		}
		m.notice = nil
	}
	if m.gap != nil && m.gap.loss.Cause == events.CauseMaintenance {
		a.restarted(m, worker)
	}
}

// crew takes a line of the training side: it names the workers, and shows that training runs.
func (a *Accumulator) crew(e events.Entry) bool {
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
	return true
}

// named notes whose workers these are. The node takes over their record. named reports whether that is a loss.
func (a *Accumulator) named(k key, m *machine) (lost bool) {
	if m.group != "" {
		m.notice = nil // other workers are another incarnation
	}
	a.forget(m)
	if o := a.machines[k]; o != nil && o.unnamed {
		delete(a.machines, k)
		a.report.Unnamed--
		if m.notice == nil {
			m.notice = o.notice
		}
		if o.gap != nil {
			a.open = slices.DeleteFunc(a.open, func(p *machine) bool { return p == o })
			if m.gap == nil {
				o.gap.accelerator = m.accelerator
				m.gap, m.alive = o.gap, false
				m.gap.loss.Slice = m.name
				a.holding(m, m.gap.from)
				lost = true
			}
		}
	}
	m.group = k.name
	a.groups[k] = m
	return lost
}

// recreated closes the gap of a slice that is seen again, and names the caller who ordered it.
func (a *Accumulator) recreated(m *machine, o Outcome) {
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
func (a *Accumulator) close(m *machine, o Outcome) {
	g := m.gap
	m.gap, m.back = nil, a.now
	if m.unnamed {
		a.open = slices.DeleteFunc(a.open, func(p *machine) bool { return p == m })
	} else if k := (key{m.project, "", m.name}); a.gaps[k] == m {
		delete(a.gaps, k)
	}
	if g.unseen && o == Back {
		o = BackUnseen
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
func (a *Accumulator) ended(m *machine, g *gap, o Outcome) Loss {
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

// attribute says whether a notice announced a loss. Maintenance may be started by hand, so it counts at any time between its
// notice and the end of its window. A loss without a better cause counts only in the window, until the maintenance is over.
func (a *Accumulator) attribute(l *Loss, g *gap) {
	n := g.notice
	if n == nil || !n.first.Before(g.from) {
		return
	}
	planned, end := l.Cause == events.CauseMaintenance, n.end
	if !n.over.IsZero() && (!planned || end.IsZero()) {
		end = n.over
	}
	early := !planned && !n.start.IsZero() && g.from.Before(n.start.Add(-aside))
	if !planned && !vague(l.Cause) || early || !end.IsZero() && g.from.After(end.Add(aside)) {
		return
	}
	l.Announced, l.Lead = true, g.from.Sub(n.first).Seconds()
	l.InTime = g.from.Sub(n.first) >= a.lead
}

func sum[K comparable](m map[K]*Sum, k K) *Sum {
	if m[k] == nil {
		m[k] = &Sum{}
	}
	return m[k]
}

func (s *Sum) add(l Loss) {
	s.Losses++
	if l.Announced {
		s.Announced++
	}
	if l.InTime {
		s.InTime++
	}
	if l.Chips == 0 {
		s.SizeUnknown++
	}
	switch l.Outcome {
	case Back:
		s.Back++
		s.GapSum += l.Gap
		s.GapMost = max(s.GapMost, l.Gap)
		s.gaps.add(l.Gap)
	case BackUnseen:
		s.BackUnseen++
	case GivenUp:
		s.GivenUp++
	case NotTold:
		s.NotTold++
	case NotBack:
		s.NotBack++
		s.NotBackChipHours += l.ChipHours + l.ChipHoursAtLeast
		return
	}
	s.ChipHours += l.ChipHours
	s.ChipHoursAtLeast += l.ChipHoursAtLeast
}

func (s *Sum) finish() {
	s.GapP50, s.GapP95 = min(s.gaps.percentile(50), s.GapMost), min(s.gaps.percentile(95), s.GapMost)
}

// Report ends the record and closes every open loss.
func (a *Accumulator) Report() Report {
	a.report.To = a.now
	var left []*machine
	for _, m := range a.machines {
		if m.gap != nil {
			left = append(left, m)
		}
	}
	slices.SortFunc(left, func(m, o *machine) int {
		return cmp.Or(m.gap.from.Compare(o.gap.from), strings.Compare(m.project, o.project), strings.Compare(m.zone, o.zone), strings.Compare(m.name, o.name))
	})
	for _, m := range left {
		switch {
		case m.unnamed:
			a.close(m, NotTold)
		case m.gap.released && m.gap.ordered.IsZero():
			a.close(m, GivenUp)
		default:
			a.close(m, NotBack)
		}
	}
	r := a.report
	r.LeadNeeded = a.lead.Seconds()
	r.Leaks.Left = a.leaks()
	r.Total.finish()
	r.Groups, r.Recreated = []Group{}, []Recreated{}
	for c, s := range a.byClass {
		s.finish()
		r.Groups = append(r.Groups, Group{c, *s})
	}
	slices.SortFunc(r.Groups, func(g, o Group) int {
		return cmp.Or(cmp.Compare(o.Losses, g.Losses), cmp.Compare(g.Cause, o.Cause), cmp.Compare(g.Zone, o.Zone), cmp.Compare(g.Generation, o.Generation))
	})
	for w, s := range a.byAgent {
		s.finish()
		r.Recreated = append(r.Recreated, Recreated{w, *s})
	}
	slices.SortFunc(r.Recreated, func(w, o Recreated) int {
		return cmp.Or(cmp.Compare(o.Losses, w.Losses), cmp.Compare(w.By, o.By), cmp.Compare(w.Principal, o.Principal))
	})
	r.Unsure = a.unsure(r)
	return r
}

func (a *Accumulator) leaks() []Leak {
	left := []Leak{}
	for k, q := range a.queues {
		if q.lost.IsZero() {
			continue
		}
		l := Leak{Project: k.project, Zone: k.zone, QueuedResource: k.name, Since: q.lost, Held: a.now.Sub(q.lost).Hours()}
		if shape, err := topology.Parse(q.accelerator); err == nil {
			l.Chips = shape.Chips * max(1, len(q.nodes))
		}
		left = append(left, l)
	}
	slices.SortFunc(left, func(l, o Leak) int {
		return cmp.Or(l.Since.Compare(o.Since), strings.Compare(l.Project, o.Project), strings.Compare(l.Zone, o.Zone), strings.Compare(l.QueuedResource, o.QueuedResource))
	})
	return left
}

// unsure lists the facts that the logs do not hold.
func (a *Accumulator) unsure(r Report) []string {
	out := []string{}
	say := func(n int, one, many string) {
		switch {
		case n == 1:
			out = append(out, "1 "+one)
		case n > 1:
			out = append(out, events.Number(int64(n))+" "+many)
		}
	}
	t := r.Total
	say(t.SizeUnknown, "loss is of a TPU whose type no entry names: its generation is unknown, and its chip-hours are a lower bound from its named workers",
		"losses are of TPUs whose type no entry names: their generation is unknown, and their chip-hours are a lower bound from their named workers")
	say(t.NotTold, "loss names only workers, and Google restarted none of them; a recreated TPU has new workers, so no entry says when it was back",
		"losses name only workers, and Google restarted none of them; a recreated TPU has new workers, so no entry says when it was back")
	say(t.BackUnseen, "TPU was back at a time that no entry names: later it was lost or created again, so it was there in between",
		"times a TPU was back at a time that no entry names: later it was lost or created again, so it was there in between")
	say(t.NotBack, "TPU was not back under its name when the record ended: another may have replaced it",
		"TPUs were not back under their names when the record ended: others may have replaced them")
	say(a.matched, "time the report matched workers to a node, because both were lost or taken down at the same time in the same zone",
		"times the report matched workers to a node, because both were lost or taken down at the same time in the same zone")
	say(a.apart, "of these matches is of entries more than five minutes apart: nothing else in the zone fits",
		"of these matches are of entries more than five minutes apart: nothing else in the zone fits")
	say(a.restarts, "restart by Google follows no loss in the record: the entry of the loss is missing, or it is older",
		"restarts by Google follow no loss in the record: the entries of the losses are missing, or they are older")
	say(a.others[plainVM], "loss is of a plain VM, an instance of Compute Engine that is no TPU: not in this report",
		"losses are of plain VMs, instances of Compute Engine that are no TPUs: not in this report")
	say(a.others[ofGKE], "loss is of a machine of GKE, and no Job is known that failed with it: not in this report",
		"losses are of machines of GKE, and no Job is known that failed with them: not in this report")
	say(a.clusters.explained, "Job failed within 10 minutes after a machine of its cluster was lost: its cause and notice are that machine's, for no entry says where a Job ran",
		"Jobs failed within 10 minutes after a machine of their cluster was lost: their causes and notices are those of the machines, for no entry says where a Job ran")
	say(a.clusters.made, "Job counts as back from its creation on: no entry says when its Pods ran again", "Jobs count as back from their creation on: no entry says when their Pods ran again")
	say(a.clusters.alone, "Job failed and no machine of its cluster was lost shortly before: its training may have ended by itself",
		"Jobs failed and no machine of their clusters was lost shortly before: their trainings may have ended by themselves")
	say(a.clusters.untold, "failure is of a JobSet, or of a Job whose creation is not in the record, so that it may have no TPU: not in this report",
		"failures are of JobSets, or of Jobs whose creation is not in the record, so that they may have no TPU: not in this report")
	say(a.others[ofGroup], "loss is of a machine that is named like one of a managed instance group: not in this report",
		"losses are of machines that are named like those of managed instance groups: not in this report")
	say(a.others[unnamed], "loss names no machine: not in this report", "losses name no machine: not in this report")
	unknown := 0
	for c, s := range a.byClass {
		if c.Cause == events.CauseUnknown {
			unknown += s.Losses
		}
	}
	unknown -= a.clusters.alone
	say(unknown, "loss has no entry of its own: somebody deleted or recreated the TPU", "losses have no entry of their own: somebody deleted or recreated the TPU")
	return out
}
