package gke

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// State is what a slice is in.
type State = evidence.Condition

// The states that a cluster shows.
const (
	Creating  = evidence.Creating
	Ready     = evidence.Ready
	Unhealthy = evidence.Unhealthy
	Stopped   = evidence.Stopped
	Lost      = evidence.Lost
	Deleting  = evidence.Deleting
	Done      = evidence.Done
)

// Reading is a reading of a slice.
type Reading struct {
	// Scope is LOCATION/CLUSTER/NAMESPACE, and Name that of the Job.
	Scope, Name string
	// Incarnation is the life of the slice: the Job's UID and creation. It is empty while JobSet has yet to make the Job.
	Incarnation events.Incarnation
	// Life is the UID of what is deleted with the slice: of its JobSet, or else of the Job.
	Life string
	// Group is the JobSet, which is created and deleted as a whole. Workload is the name of what trains together.
	Group, Workload string
	// Ordered is the creation of the JobSet.
	Ordered time.Time
	State   State
	// Heals says that Kubernetes brings the slice back by itself.
	Heals bool
	// Capacity is what its machines are taken from, as far as it or they say so.
	Capacity events.Capacity
	// Remains says that the Job or its JobSet is gone, and that something of it is left. Then nothing is known but names, state and reason.
	Remains bool
	// Unended are Pods whose time to end is over, and whose machine does not say that they have: they may still train.
	Unended []string
	// Notice is announced maintenance of one of its machines. Ends is the planned end of the first of them that ends, and EndsAssumed
	// says that this is an assumption: seven days after the creation of a flex-start machine.
	Notice      *events.Notice
	Ends        time.Time
	EndsAssumed bool
	// Machines are the names of those that its Pods are on, in order.
	Machines []string
	// Workers is how many Pods the slice has, and Chips how many chips.
	Workers, Chips        int
	Accelerator, Topology string
	// Policy and Directory are the owner's words on the Job or its JobSet. Incident is Pitstop's own: of the incident that created it.
	Policy, Directory, Incident string
	// Cause is events.CauseCrash where the training ended by itself, and no machine or Slice of it had trouble. It is events.CauseUnknown
	// where a machine may have had trouble before that, and otherwise empty.
	Cause events.Cause
	// Failed is when it failed for good: its JobSet, or else its Job. Zero is never, or not known.
	Failed time.Time
	// Kept is why nobody but its owner may replace it; empty if Pitstop may. A reason of one slice of a JobSet is one of all.
	Kept string
	// Controlled says that another object made it, or its JobSet, and makes it anew.
	Controlled bool
	// Why says in a few words what the state rests on.
	Why string
	// WaitsSince is since when it waits for its machines, for what starts on them, or for the end of its deletion.
	WaitsSince time.Time

	order *order // what it can be created from again; nil where it was not read
}

// LabelAccelerator is on every machine with TPUs.
const LabelAccelerator = "cloud.google.com/gke-tpu-accelerator"

// The labels and selectors that a reading uses.
const (
	labelQueue    = "kueue.x-k8s.io/queue-name"
	labelJobUID   = "batch.kubernetes.io/controller-uid"
	labelJobName  = "batch.kubernetes.io/job-name"
	labelJobSet   = "jobset.sigs.k8s.io/jobset-name"
	labelTopology = "cloud.google.com/gke-tpu-topology"
	labelPool     = "cloud.google.com/gke-nodepool"
)

// slot is a place of a slice: a Job, or where JobSet has yet to make one.
type slot struct {
	job  *Job
	set  *JobSet
	name string
	part string // the replicated Job that it belongs to
	spec JobSpec
	pods []Pod
	// slice is the Slice that says most about it, and shared says that it belongs to the JobSet; nil is none.
	slice  *Slice
	shared bool
	// workload and request are in what it waits; nil is none.
	workload *Workload
	request  *ProvisioningRequest
}

// Readings are the readings of all slices of a cluster that train on TPUs, in the order of namespace and name. Location and cluster
// name the cluster; now is when it was listed.
func Readings(o Objects, location, cluster string, now time.Time) []Reading {
	pods := map[string][]Pod{}
	for _, p := range o.Pods {
		if uid := p.owner("Job"); uid != "" {
			pods[uid] = append(pods[uid], p)
		}
	}
	nodes := map[string]*Node{}
	for i, n := range o.Nodes {
		nodes[n.Name] = &o.Nodes[i]
	}
	var slots []slot
	made := map[string]*Job{}
	for i, j := range o.Jobs {
		made[j.owner("JobSet")+"/"+j.Name] = &o.Jobs[i]
	}
	for i, s := range o.JobSets {
		for _, r := range s.Spec.ReplicatedJobs {
			n := 1
			if r.Replicas != nil {
				n = min(*r.Replicas, mostSlices)
			}
			for k := range n {
				c := slot{set: &o.JobSets[i], name: fmt.Sprintf("%s-%s-%d", s.Name, r.Name, k), part: r.Name, spec: r.Template.Spec}
				if c.job = made[s.UID+"/"+c.name]; c.job != nil {
					c.pods = pods[c.job.UID]
				}
				slots = append(slots, c)
			}
		}
	}
	for i, j := range o.Jobs {
		// A Job of a JobSet that is not listed is no slice: the JobSet was deleted while the cluster was listed, and the Job goes with it.
		if j.owner("JobSet") == "" {
			slots = append(slots, slot{job: &o.Jobs[i], name: j.Name, spec: j.Spec, pods: pods[j.UID]})
		}
	}
	var all []Reading
	owned, queue := worst(o.Slices), askedIn(o)
	for _, s := range slots {
		s.forms(owned)
		s.asks(queue)
		if s.spec.Template.Spec.trains() {
			all = append(all, s.reading(nodes, location+"/"+cluster+"/", now))
		}
	}
	// A JobSet fails and is replaced as a whole, for what is true of one of its slices.
	cause, kept := map[string]events.Cause{}, map[string]string{}
	for _, r := range all {
		set := r.Scope + "/" + r.Group
		if cause[set] == "" || r.Cause == events.CauseCrash {
			cause[set] = r.Cause
		}
		if kept[set] == "" || r.Kept != "" && r.Kept < kept[set] {
			kept[set] = r.Kept
		}
	}
	for i, r := range all {
		if r.Group == "" {
			continue
		}
		set := r.Scope + "/" + r.Group
		if r.State == Lost {
			all[i].Cause = cause[set]
		}
		all[i].Kept = cmp.Or(r.Kept, kept[set])
	}
	left := remains(o, slots, location+"/"+cluster+"/")
	for i, r := range left {
		left[i].Why += byHand(r.namespace(), o.leftOf(r), nodes, now)
	}
	all = append(all, left...)
	slices.SortStableFunc(all, func(a, b Reading) int { return strings.Compare(a.Scope+"/"+a.Name, b.Scope+"/"+b.Name) })
	return all
}

// remains are readings of slices whose Job or JobSet is gone while something of it is left: a Job of a JobSet that was deleted, or a Pod
// that has not ended. It may still train, so the slice is not gone. A Job of the same name that is there counts instead.
func remains(o Objects, slots []slot, prefix string) (all []Reading) {
	there, known := map[string]bool{}, map[string]bool{}
	for _, s := range slots {
		if s.set != nil {
			there[s.set.Namespace+"/"+s.name] = true
		}
		if s.job != nil {
			there[s.job.Namespace+"/"+s.name], known[s.job.UID] = true, true
		}
	}
	left := func(namespace, name, group, why string) {
		if name != "" && !there[namespace+"/"+name] {
			there[namespace+"/"+name] = true
			all = append(all, Reading{
				Scope: prefix + namespace, Name: name, Group: group, Workload: cmp.Or(group, name), State: Deleting, Remains: true, Why: why,
			})
		}
	}
	for _, j := range o.Jobs {
		if !known[j.UID] && j.Spec.Template.Spec.trains() {
			left(j.Namespace, j.Name, j.controller(kindJobSet).Name, "its JobSet no longer has it, and the Job has yet to be deleted")
		}
	}
	for _, p := range slices.SortedFunc(slices.Values(o.Pods), func(a, b Pod) int { return strings.Compare(a.Name, b.Name) }) {
		if uid, name := p.job(); !known[uid] && !p.ended() && p.Spec.trains() {
			left(p.Namespace, name, p.Labels[labelJobSet], "its Pod "+p.Name+" of the former Job has not ended")
		}
	}
	return all
}

// mostSlices bounds a JobSet, whatever it says.
const mostSlices = 1024

// unendedAfter is how long after its time to end a Pod may still be there: its machine says a little later that it has ended.
const unendedAfter = time.Minute

// failsWithin is how long after the end of its last Pod a Job may say that it has failed: a control plane that is upgraded does not run
// for some minutes.
const failsWithin = 5 * time.Minute

// word is a label or annotation of the Job, or else of its JobSet.
func (s slot) word(get func(Meta) string) string {
	if s.job != nil {
		if w := get(s.job.Meta); w != "" {
			return w
		}
	}
	if s.set != nil {
		return get(s.set.Meta)
	}
	return ""
}

func labelled(name string) func(Meta) string { return func(m Meta) string { return m.Labels[name] } }

// capacity is what the labels of a machine, or of the machines that are asked for, say of what they are taken from.
func capacity(labels map[string]string) events.Capacity {
	switch {
	case labels[labelSpot] == "true":
		return events.Spot
	case labels[labelFlex] == "true":
		return events.FlexStart
	case labels[labelReservation] != "":
		return events.Reserved
	}
	return ""
}

func (s slot) reading(nodes map[string]*Node, prefix string, now time.Time) Reading {
	spec := s.spec.Template.Spec
	r := Reading{
		Name: s.name, Workers: s.spec.pods(), Chips: s.spec.pods() * spec.chips(),
		Accelerator: spec.NodeSelector[LabelAccelerator], Topology: spec.NodeSelector[labelTopology],
		Capacity: capacity(spec.NodeSelector), Workload: s.name,
		Policy: s.word(labelled(events.LabelPolicy)), Incident: s.word(labelled(events.LabelIncident)), Directory: s.word(func(m Meta) string { return m.Annotations[events.MetadataCheckpointDir] }),
	}
	if s.set != nil {
		r.Scope, r.Group, r.Workload, r.Ordered, r.order = prefix+s.set.Namespace, s.set.Name, s.set.Name, s.set.Created.UTC(), s.set.order
		r.Life = s.set.UID
	}
	if s.job != nil {
		r.Scope = prefix + s.job.Namespace
		r.Incarnation = events.Incarnation{Zone: r.Scope, ID: s.job.UID, Created: s.job.Created.UTC()}
		if s.set == nil {
			r.Life, r.order = s.job.UID, s.job.order
		}
	}
	r.Controlled = s.whole().maker() != ""
	if w := s.word(labelled(events.LabelWorkload)); w != "" {
		r.Workload = w
	}
	silent := false
	for _, p := range s.pods {
		n := nodes[p.Spec.NodeName]
		if p.Spec.NodeName != "" && !p.ended() {
			r.Machines = append(r.Machines, p.Spec.NodeName)
		}
		if n != nil && !p.ended() {
			r.Notice = sooner(r.Notice, n.notice())
			if r.Capacity != events.Spot { // one machine that is taken back is enough
				r.Capacity = cmp.Or(capacity(n.Labels), r.Capacity)
			}
			if at, assumed := n.ends(); !at.IsZero() && (r.Ends.IsZero() || at.Before(r.Ends)) {
				r.Ends, r.EndsAssumed = at, assumed
			}
		}
		if p.Deleted != nil && !p.ended() && now.Sub(*p.Deleted) > unendedAfter {
			r.Unended = append(r.Unended, p.Name)
			silent = silent || n != nil && !n.answers()
		}
	}
	slices.Sort(r.Unended)
	slices.Sort(r.Machines)
	r.Machines = slices.Compact(r.Machines)
	r.Kept = s.kept()
	r.State, r.Heals, r.Why = s.state(nodes)
	if r.State == Lost {
		r.Failed = s.failed()
	}
	if t := s.sliceTrouble(); t != "" && t != r.Why && (r.State == Unhealthy || r.State == Lost) {
		r.Why += "; " + t
	}
	if t := s.refusal(); t != "" && (r.State == Unhealthy || r.State == Lost) {
		r.Why += "; " + t
	}
	since, held := s.waits(r.State)
	if r.WaitsSince = since; held != "" {
		r.Why += "; " + held
	}
	if crash, certain := s.crash(nodes); crash != "" && r.State == Lost {
		r.Cause, r.Why = events.CauseUnknown, r.Why+"; "+crash
		if certain {
			r.Cause = events.CauseCrash
		}
	}
	if s.job != nil && s.job.over() {
		r.Why += byHand(s.job.Namespace, s.pods, nodes, now)
	}
	// Job and JobSet wait until the machine says that the Pod has ended. One that never answers again never says it.
	r.Heals = r.Heals && !silent
	return r
}

// crash says which Pod ended by itself; empty where none did, or where a machine or a Slice had trouble: then the others followed. It is
// not certain where a Pod is listed no more, which may have gone with its machine before. A Pod that ended long before the Job failed did
// not end it: the Job had retries left.
func (s slot) crash(nodes map[string]*Node) (how string, certain bool) {
	if s.sliceTrouble() != "" {
		return "", false
	}
	for _, p := range s.pods {
		if over := p.over(); p.ended() && s.job != nil && !over.IsZero() && s.job.gaveUp().Sub(over) > failsWithin {
			continue
		}
		n := nodes[p.Spec.NodeName]
		if p.refused() || p.Status.Conditions.holds("DisruptionTarget") || p.Spec.NodeName != "" && (n == nil || n.trouble() != "" || n.maintained()) {
			return "", false
		}
		if end := p.crashed(); end != "" && (how == "" || end < how) {
			how = end
		}
	}
	return how, len(s.pods) >= s.spec.pods() || s.stands(nodes)
}

// refusal says which Pod its machine refused last; empty where a later one was let in.
func (s slot) refusal() string {
	var last Pod
	for _, p := range s.pods {
		if !p.Created.Before(last.Created) {
			last = p
		}
	}
	if !last.refused() {
		return ""
	}
	return fmt.Sprintf("its Pod %s was refused by the machine %s: %s", last.Name, last.Spec.NodeName, last.Status.Reason)
}

// failed is when a slot failed for good; zero is not known.
func (s slot) failed() time.Time {
	if s.set != nil {
		return s.set.Status.Conditions.of("Failed").Since.UTC()
	}
	return s.job.gaveUp().UTC()
}

// stands reports whether all machines of a slice have been well since before its Pods ended, by the machines alone: the Pods that a failed
// Job ended are listed no more, and neither is one that was collected with its machine. A slice of several machines is a node pool.
// https://cloud.google.com/kubernetes-engine/docs/concepts/tpus
func (s slot) stands(nodes map[string]*Node) bool {
	spec := s.spec.Template.Spec
	if s.spec.pods() < 2 || s.spec.pods()*spec.chips() != chipsOf(spec.NodeSelector[labelTopology]) {
		return false
	}
	pools, ended := map[string]bool{}, time.Time{}
	for _, p := range s.pods {
		n := nodes[p.Spec.NodeName]
		if n == nil || p.over().IsZero() {
			return false
		}
		pools[n.Labels[labelPool]] = true
		if ended.IsZero() || p.over().Before(ended) {
			ended = p.over()
		}
	}
	well := 0
	for _, n := range nodes {
		if !pools[n.Labels[labelPool]] {
			continue
		}
		if n.trouble() != "" || n.maintained() || n.Created.After(ended) || n.Status.Conditions.of("Ready").Since.After(ended) {
			return false
		}
		well++
	}
	return len(pools) == 1 && !pools[""] && well == s.spec.pods()
}

// chipsOf is how many chips a topology has, as in 2x4; 0 is not known.
func chipsOf(topology string) int {
	n := 1
	for side := range strings.SplitSeq(topology, "x") {
		k := quantity(side)
		if k == 0 || k > mostSlices {
			return 0
		}
		n *= k
	}
	return n
}

// state is what a slice is in, whether Kubernetes brings it back, and why. The first row that fits counts.
func (s slot) state(nodes map[string]*Node) (state State, heals bool, why string) {
	if set := s.set; set != nil {
		c := set.Status.Conditions
		switch {
		case set.Status.TerminalState == "Completed" || c.holds("Completed"):
			return Done, false, "its JobSet is complete"
		case set.Deleted != nil:
			return Deleting, false, "its JobSet is being deleted"
		case set.Status.TerminalState == "Failed" || c.holds("Failed"):
			return Lost, false, "its JobSet has failed: " + c.of("Failed").Reason
		case set.Spec.Suspend:
			return s.suspended()
		case c.holds("RestartingJobSet"):
			return Unhealthy, true, "its JobSet begins again: " + c.of("RestartingJobSet").Reason
		case s.job == nil:
			return Creating, false, "its JobSet has yet to make the Job"
		}
	}
	c := s.job.Status.Conditions
	again := func(failed Condition) bool { return s.set != nil && s.set.restarts(s.part, failed) != "" }
	switch {
	case s.job.Deleted != nil && (again(failing) || again(s.job.losing())):
		return Unhealthy, true, "its JobSet makes the Job anew"
	case c.holds("Complete"): // though its time to live may be over by now
		return Done, false, "the Job is complete"
	case c.holds("SuccessCriteriaMet"):
		return Done, false, "its work is done: " + c.of("SuccessCriteriaMet").Reason
	case s.job.Deleted != nil:
		return Deleting, false, "the Job is being deleted"
	case c.holds("Failed") && again(c.of("Failed")):
		return Unhealthy, true, "the Job has failed, and " + s.set.restarts(s.part, c.of("Failed"))
	case c.holds("Failed"):
		return Lost, false, "the Job has failed: " + c.of("Failed").Reason
	case c.holds("FailureTarget"):
		return Unhealthy, again(c.of("FailureTarget")), "the Job has failed, and waits for Pods that have not ended"
	case s.job.Spec.Suspend && s.set != nil:
		return Creating, false, "it is suspended, and its JobSet is not"
	case s.job.Spec.Suspend:
		return s.suspended()
	case s.job.Spec.pods() <= 0:
		return Stopped, false, "its parallelism is 0"
	}
	healingLoss := s.job.bears(true) || again(s.job.losing())
	state, heals, why = s.running(nodes, healingLoss, s.job.bears(false) || again(s.job.losing()) || again(failing))
	switch {
	case s.slice == nil || state == Unhealthy:
		return state, heals, why
	case s.sliceTrouble() != "":
		return Unhealthy, healingLoss, s.sliceTrouble()
	}
	return Creating, false, s.sliceIs()
}

// suspended is the state of a suspended slice. One with the label of a queue waits for its turn there.
func (s slot) suspended() (state State, heals bool, why string) {
	if q := s.word(labelled(labelQueue)); q != "" {
		return Creating, false, "it is suspended, and a label names the queue " + q
	}
	return Stopped, false, "it is suspended, and no label names a queue"
}

// running is the state of a slice whose Job goes on, by its Pods. Healing says whether it comes back after a loss, and after an end whose
// reason is not known.
func (s slot) running(nodes map[string]*Node, healingLoss, healing bool) (state State, heals bool, why string) {
	ready, running, active, well, failed := 0, 0, 0, 0, 0
	waits, holds := "", "" // for a machine, and for what runs on it
	for _, p := range s.pods {
		switch p.Status.Phase {
		case "Succeeded":
			well++
		case "Failed":
			failed++
		}
		if p.ended() {
			continue
		}
		active++
		switch {
		case p.Deleted != nil:
			return Unhealthy, healingLoss, "its Pod " + p.Name + " is being deleted"
		case p.Spec.NodeName == "":
			waits = p.waitsFor()
		default:
			running++
			n := nodes[p.Spec.NodeName]
			if n == nil {
				return Unhealthy, healingLoss, "its machine " + p.Spec.NodeName + " is gone"
			}
			if why := n.trouble(); why != "" {
				return Unhealthy, healingLoss, why
			}
			if p.Status.Conditions.holds("Ready") {
				ready++
			} else {
				holds = cmp.Or(holds, p.waitsFor())
			}
		}
	}
	all, well := s.job.Spec.pods(), max(well, s.job.Status.Succeeded)
	want := all
	switch {
	case s.job.Spec.Completions != nil:
		want = min(all, *s.job.Spec.Completions-well)
	case well > 0:
		want = active // one Pod that ends well is enough, and the Job makes no others
	}
	said := fmt.Sprintf("%d of %d Pods are ready", ready, all)
	if well == 1 {
		said += ", and 1 has ended well"
	} else if well > 1 {
		said += fmt.Sprintf(", and %d have ended well", well)
	}
	with := func(text string) string { return strings.TrimSuffix(text+"; "+cmp.Or(waits, holds), "; ") }
	switch {
	case want <= 0:
		return Ready, false, fmt.Sprintf("all %d Pods have ended well", well)
	case ready >= want:
		return Ready, false, said
	case ready > 0:
		return Unhealthy, healing, with(said)
	case waits != "":
		return Creating, false, waits
	case active == 0 && failed > 0:
		return Unhealthy, healing, fmt.Sprintf("%d of its Pods have failed, and the Job has made no others", failed)
	}
	return Creating, false, with(fmt.Sprintf("%d of %d Pods have a machine, and none is ready", running, all))
}
