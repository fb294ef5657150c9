package world

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/loopback"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// Cluster is a simulated cluster of GKE: its API server, its machines, and the trainings in its Pods.
type Cluster struct {
	ClusterConfig
	Server *gketest.Server
	world  *World
	// gangs are the slices, in the order of the configuration.
	gangs []*Gang
	// dead are the machines on which nothing runs any more though the API server still has them, by name.
	dead map[string]bool
	// made is how many machines were made, and entries how many log entries were written.
	made, entries int
	// seen are the objects as they were last.
	seen gke.Objects
	// looks says that somebody looks at the present moment.
	looks bool
	// failed are the Jobs, by UID, whose failure was written to the log.
	failed map[string]bool
	// silent says that no log entry is written at the moment.
	silent bool
	// asked are the Jobs and JobSets, by path, that a person deletes: nobody else does.
	asked map[string]bool
}

// Gang is a slice: a Job, and the training in its Pods.
type Gang struct {
	JobConfig
	// Scope is LOCATION/CLUSTER/NAMESPACE, and Slice the name of the Job.
	Scope, Slice string
	Cluster      *Cluster
	*trainingtest.Training
	// uid is the life in which the gang was last there as a whole, and up says that it is. begun says that it was once.
	uid       string
	up, begun bool
	// host is the name of its first Pod.
	host string
	// parted is since when a Pod of the gang is made anew while others run on.
	parted time.Time
}

// Scope is LOCATION/CLUSTER/NAMESPACE.
func (c *Cluster) Scope(namespace string) string { return c.Path() + "/" + namespace }

// Objects are what the cluster has at present.
func (c *Cluster) Objects() gke.Objects {
	o, err := gke.Client{HTTP: &http.Client{Transport: c.Server.Transport()}, URL: "http://" + c.Name}.List(context.Background())
	c.world.Must(err)
	c.Server.Calls() // nobody asks for them
	return o
}

// Dead reports whether nothing runs on a machine any more.
func (c *Cluster) Dead(machine string) bool { return c.dead[machine] }

// Ordered is a Job or JobSet as its owner orders it: its manifest, in the form of JSON.
func (c *Cluster) Ordered(j JobConfig) (map[string]any, error) {
	o, err := c.manifest(j)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var plain map[string]any
	return plain, json.Unmarshal(text, &plain)
}

// Gangs are the slices of a cluster.
func (c *Cluster) Gangs() []*Gang { return c.gangs }

// Gangs are the slices of all clusters.
func (w *World) Gangs() (all []*Gang) {
	for _, c := range w.GKE {
		all = append(all, c.gangs...)
	}
	return all
}

// Up reports whether all Pods of the gang run, and were made together.
func (g *Gang) Up() bool { return g.up }

// Parted is since when its Pods all run and were not made together, so that they wait for each other; zero where they do not.
func (g *Gang) Parted() time.Time { return g.parted }

// Pool is the node pool whose machines it takes.
func (g *Gang) Pool() PoolConfig {
	p, _, err := g.Cluster.pool(g.JobConfig.Pool)
	g.Cluster.world.Must(err)
	return p
}

// Chips is how many chips it has.
func (g *Gang) Chips() int {
	_, slice, err := g.Cluster.pool(g.JobConfig.Pool)
	g.Cluster.world.Must(err)
	return slice.Chips
}

// Job is the Job as it was seen last; nil where it is not there.
func (g *Gang) Job() *gke.Job { return g.Cluster.job(g) }

// IsThere reports whether the cluster has its Job at this very moment, which Job may not have seen yet.
func (g *Gang) IsThere() bool {
	return slices.ContainsFunc(g.Cluster.Objects().Jobs, func(j gke.Job) bool { return j.Namespace == g.In() && j.Name == g.Slice })
}

// Set is the JobSet that it belongs to, as it was seen last; nil where it belongs to none or that is not there.
func (g *Gang) Set() *gke.JobSet {
	for i, s := range g.Cluster.seen.JobSets {
		if g.Slices > 0 && s.Namespace == g.In() && s.Name == g.Name {
			return &g.Cluster.seen.JobSets[i]
		}
	}
	return nil
}

// Workload is the workload of the slice.
func (g *Gang) Workload() string { return g.Cluster.world.Project + "/" + g.WorkloadName() }

// newCluster is a cluster in which nothing is yet.
func (w *World) newCluster(config ClusterConfig, seed uint64) *Cluster {
	c := &Cluster{
		ClusterConfig: config, world: w, dead: map[string]bool{}, failed: map[string]bool{}, asked: map[string]bool{},
		Server: gketest.New(gketest.Config{Clock: w.Clock, Seed: seed}),
	}
	for _, j := range config.Jobs {
		for _, name := range j.Names() {
			c.gangs = append(c.gangs, &Gang{JobConfig: j, Scope: c.Scope(j.In()), Slice: name, Cluster: c, up: true})
		}
	}
	return c
}

// settle puts the machines and the Jobs there.
func (c *Cluster) settle() error {
	for _, p := range c.ClusterConfig.Pools {
		for range p.Machines {
			c.addMachine(p)
		}
	}
	for _, j := range c.Jobs {
		if j.In() != "default" {
			c.call(http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": j.In()}}) // it may be there
		}
		if err := c.apply(j); err != nil {
			return err
		}
	}
	for _, g := range c.gangs {
		if err := c.trains(g); err != nil {
			return err
		}
	}
	c.Server.OnChange(c.changed)
	c.changed()
	return nil
}

// trains begins the training of a slice.
func (c *Cluster) trains(g *Gang) error {
	_, slice, err := c.pool(g.JobConfig.Pool)
	if err != nil {
		return err
	}
	life := events.Incarnation{Zone: g.Scope}
	for _, o := range c.Objects().Jobs {
		if o.Namespace == g.In() && o.Name == g.Slice {
			life.ID, life.Created, g.uid = o.UID, o.Created, o.UID
		}
	}
	names := g.Names()
	directory, leads := "", names[0] == g.Slice // the first slice of a Multislice speaks for all
	if leads {
		directory = g.Directory
	}
	t, crew := g.Trainer, g.Crew
	g.Training = trainingtest.New(trainingtest.Config{
		Project: c.world.Project, Slice: g.Slice, Workload: g.Workload(), Clock: c.world.Clock, Bucket: c.world.Bucket, Directory: directory,
		With: slices.DeleteFunc(names, func(other string) bool { return other == g.Slice }),
		Emit: c.world.Logged, Entry: g.entry, Attempt: t.Attempt, NoCrew: crew.Absent || !leads, Restarts: crew.Restarts, Backoff: time.Duration(crew.Backoff),
		ReportEvery: time.Duration(crew.ReportEvery), Refuses: crew.Refuses, Silent: crew.Silent,
		Step: t.Step, StepTakes: time.Duration(t.StepTakes), CheckpointEvery: t.CheckpointEvery, SaveTakes: time.Duration(t.SaveTakes),
		StartTakes: time.Duration(t.StartTakes), OnSignal: t.Sigterm, Torn: t.Torn, Fails: t.Fails, FailsAfter: time.Duration(t.FailsAfter), FailsAnew: t.FailsAnew,
		GaveUp: func() { c.exits(g) },
	}, life, "", slice.Nodes)
	return nil
}

// entry is the log entry of a line of its crew: the line names the Pod that wrote it.
func (g *Gang) entry(r events.CrewReport, at time.Time, n int) []byte {
	r.Hostname = g.host
	return trainingtest.PodEntry(r, at, n)
}

// call makes a call of the API server, as those inside of the cluster do.
func (c *Cluster) call(method, path string, body any) (code int, answer object) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			c.world.Must(err)
		}
	}
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+c.Name+path, bytes.NewReader(raw))
	c.world.Must(err)
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := c.Server.Transport().RoundTrip(r)
	if err != nil {
		c.world.Must(err)
		return 0, nil
	}
	text, err := io.ReadAll(res.Body)
	c.world.Must(err)
	c.world.Must(res.Body.Close())
	c.world.Must(json.Unmarshal(text, &answer))
	return res.StatusCode, answer
}

// do makes a call that has to succeed, unless what it is about is gone.
func (c *Cluster) do(method, path string, body any) {
	if code, answer := c.call(method, path, body); code >= 300 && code != http.StatusNotFound {
		c.world.Must(fmt.Errorf("cluster %s: %s %s: answer %d: %v", c.Name, method, path, code, answer["message"]))
	}
}

// addMachine makes a machine of a pool.
func (c *Cluster) addMachine(p PoolConfig) {
	_, slice, err := c.pool(p.Name)
	c.world.Must(err)
	c.made++
	labels := object{
		"cloud.google.com/gke-nodepool": p.Name, "cloud.google.com/gke-tpu-accelerator": slice.Machine.Accelerator, "cloud.google.com/gke-tpu-topology": slice.Topology,
		"topology.kubernetes.io/zone": c.zone(),
	}
	annotations := object{}
	life := time.Duration(0)
	if p.Spot {
		labels["cloud.google.com/gke-spot"] = "true"
	}
	if p.FlexStart {
		labels["cloud.google.com/gke-flex-start"] = "true"
		life = time.Duration(LongestRun)
	}
	if p.RunsFor > 0 {
		life = time.Duration(p.RunsFor)
	}
	name := fmt.Sprintf("gke-%s-%s-%08x-%04x", c.Name, p.Name, 0x2f41c6aa, c.made)
	if life > 0 {
		end := c.world.Clock.Now().Add(life)
		if p.SaysEnd || p.RunsFor > 0 {
			annotations["node.gke.io/machine-termination-datetime"] = end.UTC().Format(time.RFC3339)
		}
		c.world.Clock.At(end, func() { c.Lose(name, events.CauseEnd, 3*time.Minute) })
	}
	size := object{"google.com/tpu": fmt.Sprint(slice.Machine.Chips)}
	c.do(http.MethodPost, machines, object{
		"metadata": object{"name": name, "labels": labels, "annotations": annotations},
		"spec":     object{"taints": []any{object{"key": "google.com/tpu", "effect": "NoSchedule"}}},
		"status":   object{"capacity": size, "allocatable": size, "conditions": []any{object{"type": "Ready", "status": "True", "reason": "KubeletReady"}}},
	})
}

// Machines are the names of the machines on which Pods of a slice are.
func (c *Cluster) Machines(g *Gang) (names []string) {
	job := c.job(g)
	for _, p := range c.seen.Pods {
		if job != nil && controller(p.Meta, job.UID) && p.Spec.NodeName != "" && !ended(p) && c.node(p.Spec.NodeName) != nil {
			names = append(names, p.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Names are the names of all machines.
func (c *Cluster) Names() (all []string) {
	for _, n := range c.seen.Nodes {
		all = append(all, n.Name)
	}
	return all
}

// Pods are the names of the Pods of a slice that run.
func (c *Cluster) Pods(g *Gang) (names []string) {
	job := c.job(g)
	for _, p := range c.seen.Pods {
		if job != nil && controller(p.Meta, job.UID) && p.Status.Phase == "Running" {
			names = append(names, p.Name)
		}
	}
	return names
}

// Crashed are the UIDs of the Pods of a slice that have ended with an error, and not because of their machine.
func (c *Cluster) Crashed(g *Gang) (uids []string) {
	job := c.job(g)
	for _, p := range c.seen.Pods {
		disrupted := slices.ContainsFunc(p.Status.Conditions, func(x gke.Condition) bool { return x.Type == "DisruptionTarget" && x.Status == "True" })
		if job != nil && controller(p.Meta, job.UID) && p.Status.Phase == "Failed" && !disrupted {
			uids = append(uids, p.UID)
		}
	}
	return uids
}

// Unplaced reports whether a slice has Pods, and none of them has a machine.
func (c *Cluster) Unplaced(g *Gang) bool {
	job, waits := c.job(g), false
	for _, p := range c.seen.Pods {
		if job == nil || !controller(p.Meta, job.UID) || p.Deleted != nil || p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded" {
			continue
		}
		if p.Spec.NodeName != "" {
			return false
		}
		waits = true
	}
	return waits && job.Deleted == nil
}

// Marked reports whether a machine of a slice announces maintenance, by a label or by an annotation.
func (c *Cluster) Marked(g *Gang) bool {
	return slices.ContainsFunc(c.Machines(g), func(name string) bool {
		n := c.node(name)
		marks := []string{
			n.Labels[labelScheduled], n.Labels[labelActive], n.Annotations[gke.AnnotationMaintenance],
		}
		return strings.Join(marks, "") != ""
	})
}

// Ends is the planned end of the machine of a slice that says the earliest one; zero where none says one.
func (c *Cluster) Ends(g *Gang) (first time.Time) {
	for _, name := range c.Machines(g) {
		at, err := time.Parse(time.RFC3339, c.node(name).Annotations["node.gke.io/machine-termination-datetime"])
		if err == nil && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

func controller(m gke.Meta, uid string) bool {
	return slices.ContainsFunc(m.Owners, func(o gke.Owner) bool { return o.Controller && o.UID == uid })
}

func ended(p gke.Pod) bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

// job is the Job of a slice as it was seen last; nil where it is not there.
func (c *Cluster) job(g *Gang) *gke.Job {
	for i, j := range c.seen.Jobs {
		if j.Namespace == g.In() && j.Name == g.Slice {
			return &c.seen.Jobs[i]
		}
	}
	return nil
}

func (c *Cluster) node(name string) *gke.Node {
	for i, n := range c.seen.Nodes {
		if n.Name == name {
			return &c.seen.Nodes[i]
		}
	}
	return nil
}

// changed has somebody look at what has changed, when the present moment is over.
func (c *Cluster) changed() {
	if c.looks {
		return
	}
	c.looks = true
	c.world.Clock.At(c.world.Clock.Now(), c.look)
}

// look has the trainings follow their Pods, and writes what the cluster itself tells of its Jobs.
func (c *Cluster) look() {
	c.looks = false
	before := c.seen
	c.seen = c.Objects()
	c.world.Changes()
	for _, g := range c.gangs {
		c.follow(g)
	}
	for _, j := range c.seen.Jobs {
		c.tellFailed("Job", j.Meta, j.Status.Conditions)
	}
	for _, s := range c.seen.JobSets {
		c.tellFailed("JobSet", s.Meta, s.Status.Conditions)
	}
	c.tellDeleted(before)
	if c.world.Hooks.Cluster != nil {
		c.world.Hooks.Cluster(c)
	}
}

// follow tells the training of a slice what has become of its Pods.
func (c *Cluster) follow(g *Gang) {
	_, slice, err := c.pool(g.JobConfig.Pool)
	c.world.Must(err)
	job := c.job(g)
	running, host := 0, ""
	var first, last time.Time
	for _, p := range c.seen.Pods {
		if job == nil || !controller(p.Meta, job.UID) || p.Status.Phase != "Running" || c.dead[p.Spec.NodeName] {
			continue
		}
		running++
		if host == "" || p.Name < host {
			host = p.Name
		}
		if s := p.Status.Started; s != nil && (first.IsZero() || s.Before(first)) {
			first = *s
		}
		if p.Created.After(last) {
			last = p.Created
		}
	}
	whole := running == slice.Nodes
	parted := whole && !g.Joins && last.Sub(first) > gangWithin
	if !parted {
		g.parted = time.Time{}
	} else if g.parted.IsZero() {
		g.parted = c.world.Clock.Now()
		if at := g.parted; !g.Waits {
			c.world.Clock.At(at.Add(survivesFor), func() {
				if g.parted.Equal(at) {
					c.exits(g)
				}
			})
		}
	}
	up := whole && !parted
	if !up && !g.begun && job != nil && job.UID == g.uid {
		return // its first Pods start, and the training counts as begun
	}
	g.begun = g.begun || up
	if g.up && (!up || job.UID != g.uid) {
		g.up = false
		c.observe(g, cloudtputest.Event{Kind: cloudtputest.Lost, Incarnation: events.Incarnation{Zone: g.Scope, ID: g.uid, Created: g.Life().Created}})
	}
	if up && !g.up {
		g.up, g.uid, g.host = true, job.UID, host
		c.observe(g, cloudtputest.Event{
			Kind: cloudtputest.Ready, Incarnation: events.Incarnation{Zone: g.Scope, ID: job.UID, Created: job.Created}, Workers: slice.Nodes,
		})
	}
	if up {
		g.host = host
	}
}

const (
	// gangWithin is how far the starts of the Pods of a gang lie apart at most that were made together.
	gangWithin = time.Minute
	// survivesFor is how long a Pod waits for one of its gang that is gone, until its training ends with an error.
	survivesFor = 10 * time.Minute
)

// observe tells the trainings of a JobSet what happens to one of its slices.
func (c *Cluster) observe(g *Gang, e cloudtputest.Event) {
	e.Time, e.Zone, e.Node = c.world.Clock.Now(), g.Scope, g.Slice
	for _, o := range c.gangs {
		if o.Name == g.Name && o.In() == g.In() {
			o.Observe(e)
		}
	}
}

// exits ends all Pods of a gang with an error, as its training does.
func (c *Cluster) exits(g *Gang) {
	for _, name := range c.Pods(g) {
		c.Server.Exit(g.In(), name, 1)
	}
}

// Exit ends one Pod of a slice with an exit code.
func (c *Cluster) Exit(g *Gang, pod string, code int) { c.Server.Exit(g.In(), pod, code) }

// Lose has Google take a machine away for a reason. Another one comes in its place some time later, unless that is below zero.
func (c *Cluster) Lose(machine string, why events.Cause, comes time.Duration) {
	c.seen = c.Objects()
	n := c.node(machine)
	if n == nil {
		return
	}
	switch why {
	case events.CausePreemption:
		c.machineEntry("compute.instances.preempted", machine)
		c.event("k8s_node", "PreemptionEvent", "the machine is taken back", "Node", machine, "")
	case events.CauseHostError:
		c.machineEntry("compute.instances.hostError", machine)
		c.event("k8s_node", "TerminationEvent", "host error", "Node", machine, "")
	case events.CauseMaintenance:
		c.machineEntry("compute.instances.terminateOnHostMaintenance", machine)
		c.event("k8s_node", "MaintenanceEvent", "host maintenance", "Node", machine, "")
	case events.CauseEnd:
		c.mark(machine, object{"spec": object{"taints": []any{
			object{"key": "google.com/tpu", "effect": "NoSchedule"}, object{"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"},
		}}})
		c.event("k8s_node", "TerminationEvent", "the run duration is over", "Node", machine, "")
	default:
	}
	delete(c.dead, machine)
	if c.world.Hooks.Taken != nil {
		c.world.Hooks.Taken(c, machine, why)
	}
	c.do(http.MethodDelete, machines+"/"+machine, nil)
	if comes < 0 {
		return
	}
	c.world.Clock.At(c.world.Clock.Now().Add(comes), func() {
		for _, p := range c.ClusterConfig.Pools {
			if p.Name == n.Labels["cloud.google.com/gke-nodepool"] {
				c.addMachine(p)
			}
		}
	})
}

// Calm has the machines that come from now on live as long as any may.
func (c *Cluster) Calm() {
	c.ClusterConfig.Pools = slices.Clone(c.ClusterConfig.Pools)
	for i := range c.ClusterConfig.Pools {
		if p := &c.ClusterConfig.Pools[i]; p.RunsFor > 0 {
			p.RunsFor = LongestRun
		}
	}
}

// Silence stops the heartbeat of a machine. Where it has died, nothing runs there any more, and else its Pods go on.
func (c *Cluster) Silence(machine string, died bool) {
	if c.node(machine) == nil {
		return
	}
	if died {
		c.dead[machine] = true
		c.machineEntry("compute.instances.hostError", machine)
	}
	c.event("k8s_node", "NodeNotReady", "Node "+machine+" status is now: NodeNotReady", "Node", machine, "")
	c.Server.Silence(machine)
	c.changed()
}

// Hear has a silent machine speak again. Where it had died, it has begun anew, and nothing runs on it.
func (c *Cluster) Hear(machine string) {
	died := c.dead[machine]
	c.Server.Hear(machine)
	for _, p := range c.Objects().Pods {
		if died && p.Spec.NodeName == machine && !ended(p) {
			c.Server.Exit(p.Namespace, p.Name, 137)
		}
	}
	delete(c.dead, machine)
}

// Announce writes labels or annotations of maintenance on a machine; those that are nil are taken away.
func (c *Cluster) Announce(machine string, labels, annotations map[string]any) {
	c.mark(machine, object{"metadata": object{"labels": labels, "annotations": annotations}})
}

// mark changes a machine, as GKE does.
func (c *Cluster) mark(machine string, patch object) {
	c.do(http.MethodPatch, machines+"/"+machine, patch)
	c.audit(gkeAgent, "k8s.core.v1.nodes.patch", "core/v1/nodes/"+machine, patch)
}

// The labels of announced maintenance of a machine, and of maintenance that has begun.
const (
	labelScheduled = "cloud.google.com/scheduled-maintenance-time"
	labelActive    = "cloud.google.com/active-node-maintenance"
)

// machines is the path of all machines.
const machines = "/api/v1/nodes"

// gkeAgent is GKE's own account, and the others are controllers of the cluster.
const (
	gkeAgent         = "service-123456789012@container-engine-robot.iam.gserviceaccount.com"
	ttlController    = "system:serviceaccount:kube-system:ttl-after-finished-controller"
	jobSetController = "system:serviceaccount:jobset-system:jobset-controller-manager"
)

// Kueue is the controller that suspends Jobs and resumes them as there is room.
const Kueue = "system:serviceaccount:kueue-system:kueue-controller-manager"

// Evict ends a Pod, as a drain does.
func (c *Cluster) Evict(g *Gang, pod string) {
	path := "/api/v1/namespaces/" + g.In() + "/pods/" + pod
	code, o := c.call(http.MethodGet, path, nil)
	status, ok := o["status"].(object)
	if code != http.StatusOK || !ok {
		return
	}
	conditions, _ := status["conditions"].([]any)
	status["conditions"] = append(conditions, object{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"})
	c.do(http.MethodPut, path+"/status", o)
	c.do(http.MethodDelete, path, nil)
}

// paths of what its owner applies: where it is made, and where it is.
func (j JobConfig) paths() (api, kind, path string) {
	if j.Slices > 0 {
		return "x-k8s.jobset.v1alpha2", "jobsets", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/" + j.In() + "/jobsets"
	}
	return "k8s.batch.v1", "jobs", "/apis/batch/v1/namespaces/" + j.In() + "/jobs"
}

// resourceName is the name of an object in the audit log.
func (j JobConfig) resourceName() string {
	if j.Slices > 0 {
		return "jobset.x-k8s.io/v1alpha2/namespaces/" + j.In() + "/jobsets/" + j.Name
	}
	return "batch/v1/namespaces/" + j.In() + "/jobs/" + j.Name
}

// inCluster is the path of a Job or JobSet in its cluster.
func (j JobConfig) inCluster() string {
	_, kind, _ := j.paths()
	return "namespaces/" + j.In() + "/" + kind + "/" + j.Name
}

// apply makes a Job or JobSet, as kubectl apply does: with the manifest in an annotation.
func (c *Cluster) apply(j JobConfig) error {
	o, err := c.manifest(j)
	if err != nil {
		return err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if meta, ok := o["metadata"].(object); ok {
		if a, ok := meta["annotations"].(object); ok {
			a["kubectl.kubernetes.io/last-applied-configuration"] = string(text) + "\n"
		}
	}
	_, _, path := j.paths()
	if code, answer := c.call(http.MethodPost, path, o); code != http.StatusCreated {
		return fmt.Errorf("cluster %s: %s: answer %d: %v", c.Name, j.Name, code, answer["message"])
	}
	return nil
}

// Apply has somebody make a Job or JobSet.
func (c *Cluster) Apply(j JobConfig, by string) error {
	if err := c.apply(j); err != nil {
		return err
	}
	api, kind, _ := j.paths()
	c.audit(by, api+"."+kind+".create", j.resourceName(), nil)
	c.acted(j, Applied, by)
	return nil
}

// Delete has somebody delete a Job or JobSet, and reports whether it was there.
func (c *Cluster) Delete(j JobConfig, by string) bool {
	api, kind, path := j.paths()
	c.asked[path+"/"+j.Name] = true
	if code, _ := c.call(http.MethodDelete, path+"/"+j.Name, object{"propagationPolicy": "Background"}); code != http.StatusOK {
		return false
	}
	c.audit(by, api+"."+kind+".delete", j.resourceName(), nil)
	c.acted(j, Deleted, by)
	return true
}

// What somebody does with a Job or JobSet.
const (
	Applied   = "applied"
	Deleted   = "deleted"
	Suspended = "suspended"
	Resumed   = "resumed"
)

func (c *Cluster) acted(j JobConfig, what, by string) {
	if c.world.Hooks.Acted != nil {
		c.world.Hooks.Acted(c, j, what, by)
	}
}

// Suspend has somebody suspend a Job or JobSet, or resume it.
func (c *Cluster) Suspend(j JobConfig, suspend bool, by string) {
	api, kind, path := j.paths()
	patch := object{"spec": object{"suspend": suspend}}
	if code, _ := c.call(http.MethodPatch, path+"/"+j.Name, patch); code == http.StatusOK {
		c.audit(by, api+"."+kind+".patch", j.resourceName(), patch)
		c.acted(j, map[bool]string{true: Suspended, false: Resumed}[suspend], by)
	}
}

// Queued has Kueue suspend a Job or JobSet, or resume it.
func (c *Cluster) Queued(j JobConfig, suspend bool) { c.Suspend(j, suspend, Kueue) }

// tellFailed writes, once, that a Job or JobSet has failed.
func (c *Cluster) tellFailed(kind string, m gke.Meta, conditions []gke.Condition) {
	for _, x := range conditions {
		if x.Type == "Failed" && x.Status == "True" && !c.failed[m.UID] {
			c.failed[m.UID] = true
			c.event("k8s_cluster", x.Reason, x.Message, kind, m.Name, m.Namespace)
		}
	}
}

// tellDeleted writes which controllers have deleted Jobs since then.
func (c *Cluster) tellDeleted(before gke.Objects) {
	there := map[string]bool{}
	for _, j := range c.seen.Jobs {
		there[j.UID] = true
	}
	for _, j := range before.Jobs {
		if there[j.UID] {
			continue
		}
		by := ttlController
		for _, o := range j.Owners {
			if o.Kind == "JobSet" {
				by = jobSetController
			}
		}
		if path := "/apis/batch/v1/namespaces/" + j.Namespace + "/jobs/" + j.Name; c.asked[path] {
			delete(c.asked, path)
			continue
		}
		c.audit(by, "k8s.batch.v1.jobs.delete", "batch/v1/namespaces/"+j.Namespace+"/jobs/"+j.Name, nil)
	}
}

// audit writes an entry of the cluster's audit log.
func (c *Cluster) audit(by, method, name string, request object) {
	payload := object{
		"@type": "type.googleapis.com/google.cloud.audit.AuditLog", "status": object{}, "authenticationInfo": object{"principalEmail": by},
		"serviceName": "k8s.io", "methodName": "io." + method, "resourceName": name,
	}
	if request != nil {
		payload["request"] = request
	}
	c.write(true, c.logEntry("cloudaudit.googleapis.com%2Factivity", "k8s_cluster", nil, object{"protoPayload": payload, "operation": object{"producer": "k8s.io", "first": true, "last": true}}))
}

// write writes a log entry, unless the record has it.
func (c *Cluster) write(audit bool, raw []byte) {
	if c.silent {
		return
	}
	if audit {
		c.world.Audited.Write(raw)
	}
	c.world.Logged(raw)
}

// audited writes into the audit log what the pipeline has done in the cluster.
func (c *Cluster) audited(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet || r.URL.Query().Has("dryRun") { // a dry run changes nothing
			return next.RoundTrip(r)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("the body of %s %s: %w", r.Method, r.URL.Path, err)
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		if machine, is := strings.CutPrefix(r.URL.Path, machines+"/"); is && r.Method == http.MethodPatch {
			return c.changes(r, next, machine, body)
		}
		for _, j := range c.Jobs {
			api, kind, path := j.paths()
			var sent gke.Job // or a JobSet
			switch {
			case r.Method == http.MethodDelete && r.URL.Path == path+"/"+j.Name:
				return c.does(r, next, j, Deleted, api+"."+kind+".delete", body)
			case r.Method == http.MethodPost && r.URL.Path == path && json.Unmarshal(body, &sent) == nil && sent.Name == j.Name:
				return c.does(r, next, j, Applied, api+"."+kind+".create", body)
			}
		}
		return nil, fmt.Errorf("%s %s is no call about a Job of the scenario", r.Method, r.URL.Path)
	})
}

// does makes a call of the pipeline about a Job or JobSet, and tells of it where the cluster has done it.
func (c *Cluster) does(r *http.Request, next http.RoundTripper, j JobConfig, what, method string, sent []byte) (*http.Response, error) {
	us, id := Ours(c.world.Project), c.world.Project+"/"+j.WorkloadName()
	before := c.Objects()
	res, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if t := c.world.tracker; t != nil {
		t.calledKubernetes(c, id, "io."+method, j.inCluster(), j.inCluster(), res.StatusCode)
	}
	said := fmt.Sprintf(": refused with %d", res.StatusCode)
	if res.StatusCode < http.StatusMultipleChoices {
		said = ": accepted"
		c.world.mu.Lock()
		c.world.Story.Calls["io."+method]++
		c.world.mu.Unlock()
	}
	c.world.Tell(Line{
		Time: c.world.Clock.Now(), Kind: Called, Function: "recreate", Subject: j.resourceName(), Workload: id, Incident: c.world.IncidentOf(id), Simulated: true,
		Text: "io." + method + " " + j.Name + " in " + c.Scope(j.In()) + said,
	})
	if res.StatusCode < http.StatusMultipleChoices {
		if what == Deleted {
			c.asked[r.URL.Path] = true
		}
		c.audit(us, method, j.resourceName(), nil)
		if c.world.Hooks.Ours != nil {
			c.world.Hooks.Ours(r.Context(), c, j, what, sent, before)
		}
		c.acted(j, what, us)
	}
	return res, nil
}

// changes makes a call of the pipeline that changes a machine, and tells of it where the cluster has done it.
func (c *Cluster) changes(r *http.Request, next http.RoundTripper, machine string, sent []byte) (*http.Response, error) {
	const method = "k8s.core.v1.nodes.patch"
	before := c.Objects()
	res, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	id, of, said := "", "", fmt.Sprintf(": refused with %d", res.StatusCode)
	for _, g := range c.gangs {
		if slices.Contains(c.Machines(g), machine) {
			id, of = g.Workload(), g.inCluster()
		}
	}
	if t := c.world.tracker; t != nil {
		t.calledKubernetes(c, id, "io."+method, "nodes/"+machine, of, res.StatusCode)
	}
	if res.StatusCode < http.StatusMultipleChoices {
		said = ": accepted"
		c.world.mu.Lock()
		c.world.Story.Calls["io."+method]++
		c.world.mu.Unlock()
	}
	c.world.Tell(Line{
		Time: c.world.Clock.Now(), Kind: Called, Function: "checkpoint", Subject: "core/v1/nodes/" + machine, Workload: id, Incident: c.world.IncidentOf(id), Simulated: true,
		Text: "io." + method + " " + machine + " in " + c.Path() + said,
	})
	if res.StatusCode >= http.StatusMultipleChoices {
		return res, nil
	}
	var patch object
	c.world.Must(json.Unmarshal(sent, &patch))
	c.audit(Ours(c.world.Project), method, "core/v1/nodes/"+machine, patch)
	if c.world.Hooks.Marked != nil {
		c.world.Hooks.Marked(r.Context(), c, machine, patch, before)
	}
	for _, n := range c.Objects().Nodes {
		if n.Name == machine && n.Labels[gke.LabelMaintain] == "true" {
			c.maintain(machine)
		}
	}
	return res, nil
}

// maintain begins the announced maintenance of a machine, as GKE does where it has the label: a little later its Pods end, and another
// machine comes in its place. A machine that announces nothing it leaves alone.
func (c *Cluster) maintain(machine string) {
	after := func(d time.Duration, f func()) {
		c.world.Clock.At(c.world.Clock.Now().Add(d), func() {
			if c.node(machine) != nil {
				f()
			}
		})
	}
	if n := c.node(machine); n == nil || n.Annotations[gke.AnnotationMaintenance] == "" && n.Labels[labelScheduled] == "" {
		return
	}
	after(20*time.Second, func() {
		c.Announce(machine, map[string]any{labelActive: "ONGOING"}, nil)
		after(2*time.Minute, func() { c.Lose(machine, events.CauseMaintenance, 10*time.Minute) })
	})
}

// machineEntry writes an entry of Compute Engine about a machine.
func (c *Cluster) machineEntry(method, machine string) {
	w := c.world
	c.write(true, c.logEntry("cloudaudit.googleapis.com%2Fsystem_event", "gce_instance", object{"zone": c.zone(), "instance_id": strconv.Itoa(4096 + c.entries)}, object{"protoPayload": object{
		"@type": "type.googleapis.com/google.cloud.audit.AuditLog", "status": object{}, "authenticationInfo": object{"principalEmail": "system@google.com"},
		"serviceName": "compute.googleapis.com", "methodName": method, "resourceName": "projects/" + w.Project + "/zones/" + c.zone() + "/instances/" + machine,
		"request": object{"@type": "type.googleapis.com/" + method},
	}, "operation": object{"id": "systemevent-" + machine, "producer": method, "first": true, "last": true}}))
}

// event writes an event of Kubernetes.
func (c *Cluster) event(resource, reason, message, kind, name, namespace string) {
	labels := object(nil)
	if resource == "k8s_node" {
		labels = object{"node_name": name}
	}
	about := object{"kind": kind, "name": name}
	if namespace != "" {
		about["namespace"] = namespace
	}
	c.write(false, c.logEntry("events", resource, labels, object{"jsonPayload": object{
		"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason, "message": message, "involvedObject": about,
		"metadata": object{"name": name + "." + strconv.FormatInt(int64(c.entries), 16), "namespace": cmp.Or(namespace, "default")},
	}}))
}

// logEntry is an entry of a log of the project.
func (c *Cluster) logEntry(log, resource string, labels, entry object) []byte {
	c.entries++
	now := c.world.Clock.Now()
	all := object{"project_id": c.world.Project}
	if strings.HasPrefix(resource, "k8s_") {
		all["location"], all["cluster_name"] = c.Location, c.Name
	}
	maps.Copy(all, labels)
	maps.Copy(entry, object{
		"insertId":  events.ID("gke", c.Path(), strconv.Itoa(c.entries))[:16],
		"logName":   "projects/" + c.world.Project + "/logs/" + log,
		"timestamp": now.UTC().Format(time.RFC3339Nano), "receiveTimestamp": now.Add(cloudtputest.Received).UTC().Format(time.RFC3339Nano),
		"severity": "NOTICE", "resource": object{"type": resource, "labels": all},
	})
	raw, err := json.Marshal(entry) // the keys of a map are sorted
	c.world.Must(err)
	return raw
}

// clusters is the provider of the Jobs in the clusters; nil where there are none.
func (w *World) clusters() (provider.Provider, error) {
	if len(w.GKE) == 0 {
		return nil, nil
	}
	var all []gke.Cluster
	clients := map[string]gke.Client{}
	for _, c := range w.GKE {
		url, reached, err := c.reached(w.Opts.Wire)
		if err != nil {
			return nil, err
		}
		hooked := throughOf(w.Hooks.Kubernetes, c.Path(), c.audited(reached))
		one := gke.Cluster{Project: w.Project, Location: c.Location, Name: c.Name}
		all, clients[one.String()] = append(all, one), gke.Client{HTTP: &http.Client{Transport: w.overKubernetes(hooked)}, URL: url}
	}
	open := func(_ context.Context, c gke.Cluster) (gke.Client, error) { return clients[c.String()], nil }
	return gke.New(all, open, w.Clock.Now), nil
}

// reached is how the functions reach a cluster: in memory, or over a socket. Lists have few objects a page, so that they have more
// than one.
func (c *Cluster) reached(wire bool) (url string, through http.RoundTripper, err error) {
	small := func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			q := r.URL.Query()
			if q.Has("limit") {
				q.Set("limit", strconv.Itoa(page))
			}
			r.URL.RawQuery = q.Encode()
			return next.RoundTrip(r)
		})
	}
	if !wire {
		return "https://" + c.Name + ".invalid", small(c.Server.Transport()), nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: loopback.Only(c.Server), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }() //nolint:errcheck // it ends when it is closed
	transport := &http.Transport{}
	c.world.stores = append(c.world.stores, closer(transport.CloseIdleConnections), s)
	return "http://" + l.Addr().String(), small(transport), nil
}

// page is how many objects an answer to a list has.
const page = 8
