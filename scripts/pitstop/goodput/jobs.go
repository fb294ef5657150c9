package goodput

import (
	"strings"
	"time"

	"pitstop.internal/events"
)

// What happens to Jobs of GKE. A Job is a slice where the entry of its creation asks for TPUs. Of a Job that fails no entry says on which
// machines it ran, so its cause is that of a machine of the same cluster that was lost shortly before.

// failsWithin is how long after the loss of a machine its Jobs fail: a node is silent for a minute, its Pods stay for five, and the
// garbage collector of Pods and the controller of Jobs take another two.
const failsWithin = 10 * time.Minute

// fallen is a machine of GKE that was lost.
type fallen struct {
	at    time.Time
	cause events.Cause
	// location is its zone, or the location of its cluster; cluster is empty where only the name of the machine tells.
	project, location, cluster, name string
	// counted says that it stands among the losses that are left out.
	counted bool
	// took says that a Job is known to have failed with it.
	took   bool
	notice *notice
}

// of reports whether the machine may be one of a cluster.
func (f fallen) of(project, location, cluster string) bool {
	if f.project != project || f.location != location && !strings.HasPrefix(f.location, location+"-") {
		return false
	}
	return f.cluster == cluster || f.cluster == "" && strings.HasPrefix(f.name, "gke-"+cluster+"-")
}

// clusters is what is known of clusters.
type clusters struct {
	// sets are the Jobs of each JobSet, and marked the announced maintenance of machines, by project and name.
	sets   map[key][]string
	setOf  map[key]string // of each of these Jobs
	marked map[key]*notice
	// lost are machines that were lost a moment ago, oldest first.
	lost []fallen
}

// isJob reports whether a machine is a Job.
func (m *machine) isJob() bool { return strings.Contains(m.zone, "/") }

// ofCluster reports whether an entry speaks of a Job, or of a machine of GKE.
func ofCluster(e events.Entry) bool {
	_, _, _, job := e.Subject.Scope()
	switch e.Kind {
	case events.KindCluster:
		return true
	case events.KindCall:
		return job
	case events.KindLoss:
		return e.Subject.Platform() == events.PlatformGKE
	default:
		return false
	}
}

// cluster takes an entry about a cluster, and reports whether it says something about a Job.
func (a *Account) cluster(e events.Entry) bool {
	switch e.Kind {
	case events.KindCall:
		return e.Ignored == "" && e.Call.Code == 0 && a.jobCall(e)
	case events.KindLoss:
		a.report.Elsewhere++
		a.unsure[ofGKE]++
		if e.Ignored == "" { // otherwise it went on, on another host
			a.fell(e.Subject, e.Cause, true)
		}
		return false
	default:
	}
	if e.Cluster == nil {
		return false
	}
	s := e.Subject
	switch e.Cluster.Event {
	case events.ClusterPreemption:
		a.fell(s, events.CausePreemption, false)
	case events.ClusterMaintenance:
		a.fell(s, events.CauseMaintenance, false)
	case events.ClusterTermination:
		a.fell(s, events.CauseTerminated, false)
	case events.ClusterScheduled:
		k := key{s.Project, "", s.Worker}
		if n := a.clusters.marked[k]; s.Worker != "" && (n == nil || !n.start.Equal(e.Cluster.At)) {
			a.clusters.marked[k] = &notice{first: a.now, start: e.Cluster.At}
		}
	case events.ClusterFailed:
		return a.failed(s)
	case events.ClusterCompleted:
		if m := a.machines[key{s.Project, s.Zone, s.Node}]; m != nil && s.Node != "" {
			m.alive, m.seen = false, a.now
			a.turn(m, a.now, stand{use: Stopped})
			return true
		}
	default:
	}
	return false
}

// fell notes that a machine is lost. Several entries speak of one loss; the first that names a cause counts.
func (a *Account) fell(s events.Subject, c events.Cause, counted bool) {
	if s.Worker == "" {
		return
	}
	k := key{s.Project, "", s.Worker}
	for i := range a.clusters.lost {
		f := &a.clusters.lost[i]
		if f.project != s.Project || f.name != s.Worker {
			continue
		}
		if vague(f.cause) {
			f.cause = c
		}
		f.counted = f.counted || counted
		return
	}
	a.clusters.lost = append(a.clusters.lost, fallen{
		at: a.now, cause: c, project: s.Project, location: s.Zone, cluster: s.Cluster, name: s.Worker, counted: counted, notice: a.clusters.marked[k],
	})
	delete(a.clusters.marked, k)
}

// failed notes that a Job has failed. It is lost since its machine was lost, where one was.
func (a *Account) failed(s events.Subject) bool {
	m := a.machines[key{s.Project, s.Zone, s.Node}]
	if s.Node == "" || m == nil {
		a.unsure[failedUntold]++ // of a JobSet each Job has an entry of its own
		return false
	}
	m.seen = a.now
	if m.gap != nil || m.down(a.now) {
		return true
	}
	location, cluster, _, _ := s.Scope()
	var f *fallen // the last that took no other Job, or else the last
	for i := range a.clusters.lost {
		if o := &a.clusters.lost[i]; o.of(s.Project, location, cluster) && (f == nil || f.took || !o.took) {
			f = o
		}
	}
	if f != nil {
		f.took = true
		a.openGap(m, f.at, f.cause)
		m.gap.notice, m.gap.MatchedByTime = f.notice, true
		a.unsure[failedWith]++
		if f.counted {
			f.counted = false
			a.report.Elsewhere--
			a.unsure[ofGKE]--
			a.report.Used++
		}
		return true
	}
	a.openGap(m, a.now, events.CauseUnknown)
	a.unsure[failedAlone]++
	return true
}

// jobCall takes a call that changes Jobs.
func (a *Account) jobCall(e events.Entry) bool {
	c, s := e.Call, e.Subject
	act, whole := c.Act()
	who := Agent{a.who.is(c), c.Principal}
	names := []string{s.Node}
	if whole {
		set := key{s.Project, s.Zone, s.QueuedResource}
		if act == events.ActCreated {
			a.clusters.sets[set] = c.Order.Nodes
			for _, name := range c.Order.Nodes {
				a.clusters.setOf[key{s.Project, s.Zone, name}] = set.name
			}
		}
		names = a.clusters.sets[set]
		if act == events.ActDeleted {
			delete(a.clusters.sets, set)
		}
	}
	used := false
	for _, name := range names {
		k := key{s.Project, s.Zone, name}
		m := a.machines[k]
		if m == nil && (act != events.ActCreated || c.Order.Accelerator == "") {
			continue // it has no TPU, as far as entries show
		}
		if m == nil {
			m = a.node(k)
		}
		m.seen, used = a.now, true
		a.changed(m, c, act, whole, who)
	}
	return used
}

// changed takes what was done to a Job, alone or with its JobSet.
func (a *Account) changed(m *machine, c events.Call, act events.Act, whole bool, who Agent) {
	switch act {
	case events.ActCreated:
		m.alive = false // no two Jobs have one name at a time, so the one before was gone
		if whole {
			m.orderedAs(c.Order)
			a.ordered(m, who)
			return
		}
		g := m.gap
		if who.By == ByCluster && g != nil && !g.ordered.IsZero() {
			who = g.by // the controller carries out what somebody ordered
		}
		if g != nil {
			a.unsure[madeAgain]++
		}
		a.create(m, c, who)
	case events.ActDeleted:
		switch {
		case who.By != ByCluster:
			a.remove(m, who)
		case m.gap == nil:
			a.takeDown(m, false)
		}
	case events.ActStopped:
		if m.gap == nil {
			a.takeDown(m, false)
		}
	case events.ActStarted:
		if m.gap == nil {
			a.up(m)
		}
	}
}
