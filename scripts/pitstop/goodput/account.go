package goodput

import (
	"cmp"
	"strings"
	"time"

	"pitstop.internal/events"
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
	// grantTakes is how long the machines of a queued resource take at most from its grant to the crew's first word.
	grantTakes = 10 * time.Minute
	// dying is how long a crew may still speak on a slice that is being lost.
	dying = 10 * time.Minute
	// aside is how far outside of its window announced maintenance counts as announced.
	aside = 10 * time.Minute
	// askedFor is how long a slice waits for capacity after the last request for it was refused: scripts ask again within minutes. Then
	// nobody wants it, as far as is known.
	askedFor = time.Hour
	// lateAfter is how long a queued resource may outlive its slice before it counts as late.
	lateAfter = time.Hour
	// forgetAfter is how long a node that is deleted, and a machine of which only a notice is known, are remembered.
	forgetAfter = 100 * 24 * time.Hour
	// mostWorkers is how many the largest slice has, v5p-12288.
	mostWorkers = 1536
)

// key names a node, a queued resource, or what workers have in common.
type key struct{ project, zone, name string }

func (k key) compare(o key) int {
	return cmp.Or(strings.Compare(k.project, o.project), strings.Compare(k.zone, o.zone), strings.Compare(k.name, o.name))
}

// machine is a slice, as far as the entries show it.
type machine struct {
	key
	// unnamed says that only workers are known; name is then the common part of their names.
	unnamed     bool
	accelerator string
	spot        bool
	queued      string    // the queued resource that it is in
	group       string    // of its present workers
	alive       bool      // it was created, and nothing has happened to it since
	created     time.Time // when its creation began
	deleted     time.Time // when somebody or a schedule took it down
	planned     bool      // it was a schedule that took it down
	back        time.Time // when a loss of it ended
	refused     time.Time // when a request for it was refused, of which none came after it
	seen        time.Time
	notice      *notice
	gap         *gap
	// in is its workload, and stand how it stands; both are empty before an entry says so.
	in    *workload
	stand stand
}

// moment is when something happened to a machine.
type moment struct {
	*machine
	at time.Time
}

// Account takes entries in the order of their times.
type Account struct {
	who   Who
	begun events.Callers
	lead  time.Duration

	report   Report
	machines map[key]*machine  // a node also by what its workers have in common
	lost     map[key]*machine  // the node that was lost last, by project and name
	refusals []moment          // oldest first
	recent   map[bool][]moment // what was lost, or taken down, and may have another side, by whether it is unnamed; oldest first
	queues   map[key]*queue
	byClass  map[Class]*Sum
	byAgent  map[Agent]*Sum
	now      time.Time
	ids      map[string]bool // of the entries at this very time
	swept    time.Time
	unsure   [doubts]int
	clusters clusters
	// workloads are by project and name, and by zone where two have one name.
	workloads map[key]*workload
	sizes     map[string]int // in chips, by accelerator type
}

// New makes an account. A notice is in time when it came so much before the loss.
func New(who Who, lead time.Duration) *Account {
	return &Account{
		who: who, begun: events.Callers{}, lead: lead, report: Report{Losses: []Loss{}}, machines: map[key]*machine{}, lost: map[key]*machine{}, recent: map[bool][]moment{}, queues: map[key]*queue{},
		byClass: map[Class]*Sum{}, byAgent: map[Agent]*Sum{}, ids: map[string]bool{},
		clusters:  clusters{sets: map[key][]string{}, setOf: map[key]string{}, marked: map[key]*notice{}},
		workloads: map[key]*workload{}, sizes: map[string]int{},
	}
}

// Add takes the next entry. It ignores one with the same time and ID as another.
func (a *Account) Add(e events.Entry) {
	a.report.Entries++
	at := e.Time
	if !e.Received.IsZero() {
		at = earlier(at, e.Received) // otherwise a clock that is ahead would move all clocks
	}
	a.clock(at)
	id := e.ID + " " + e.Subject.Project + " " + e.Subject.Worker + " " + e.Call.Method
	switch {
	case e.ID != "" && a.ids[id]:
	case e.Kind.Known() && (e.Ignored == "" || e.Kind == events.KindLimit || ofCluster(e)):
		a.ids[id] = true
		if a.take(e) {
			a.report.Used++
		}
	case e.Kind == events.KindLoss:
		a.report.Elsewhere++
		a.unsure[leftOut(e.Subject)]++
	}
}

func (a *Account) clock(at time.Time) {
	if at.IsZero() || !at.After(a.now) {
		return
	}
	clear(a.ids)
	a.now = at
	if a.report.From.IsZero() {
		a.report.From, a.swept = a.now, a.now
	}
	for _, unnamed := range []bool{true, false} {
		all := a.recent[unnamed]
		for len(all) > 0 && a.now.Sub(all[0].at) > unnamedFor {
			m := all[0]
			if all = all[1:]; unnamed && m.gap != nil && m.stays() {
				a.close(m.machine, NotTold, a.now)
			}
		}
		a.recent[unnamed] = all
	}
	for len(a.refusals) > 0 && a.now.Sub(a.refusals[0].at) > askedFor {
		m := a.refusals[0]
		if a.refusals = a.refusals[1:]; m.refused.Equal(m.at) && m.in != nil && m.stand.use == Capacity {
			a.turn(m.machine, m.at.Add(askedFor), stand{Unknown, m.stand.cause})
		}
	}
	for len(a.clusters.lost) > 0 && a.now.Sub(a.clusters.lost[0].at) > failsWithin {
		a.clusters.lost = a.clusters.lost[1:]
	}
	if a.now.Sub(a.swept) > 24*time.Hour {
		a.sweep()
	}
}

// sweep forgets machines without an open loss and without an entry for long.
func (a *Account) sweep() {
	a.swept = a.now
	for k, m := range a.machines {
		if m.gap == nil && (m.unnamed || !m.alive) && a.now.Sub(m.seen) > forgetAfter {
			delete(a.machines, k)
		}
	}
	for k, n := range a.clusters.marked {
		if a.now.Sub(n.first) > forgetAfter {
			delete(a.clusters.marked, k)
		}
	}
}

// take reports whether the entry says something about a TPU.
func (a *Account) take(e events.Entry) bool {
	switch {
	case ofCluster(e):
		return a.cluster(e)
	case e.Kind == events.KindCall:
		a.begun.Attribute(&e.Call)
		return a.call(e.Subject, e.Call)
	case e.Kind == events.KindCrew:
		return a.crew(e)
	}
	m, worker := a.of(e.Subject)
	if m == nil {
		return false
	}
	switch e.Kind {
	case events.KindLoss:
		a.loss(m, worker, e.Cause)
	case events.KindBack:
		if m.gap == nil && (m.back.IsZero() || a.now.Sub(m.back) > noticedWithin) {
			m.back = a.now
			a.unsure[restarts]++
		}
		a.restarted(m, worker)
	case events.KindLimit:
		a.limit(m)
	case events.KindNotice:
		a.announced(m, worker, e.Notice)
	default:
		return false
	}
	return true
}

// node finds a node, or notes that there is one.
func (a *Account) node(k key) *machine {
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
func (a *Account) of(s events.Subject) (m *machine, worker int) {
	if s.Node != "" {
		return a.node(key{s.Project, s.Zone, s.Node}), -1
	}
	group, worker, ok := s.Group()
	if !ok {
		return nil, -1
	}
	k := key{s.Project, s.Zone, group}
	if m = a.machines[k]; m == nil {
		m = &machine{key: k, unnamed: true}
		a.machines[k] = m
		a.report.Unnamed++
	}
	m.seen = a.now
	return m, worker
}
