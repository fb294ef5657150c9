package gke

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/shared/provider"
)

// leftAfter is the age from which something that no training uses is left over: machines come within an hour or two.
const leftAfter = 2 * time.Hour

// mostIdle is how many machines without a training are asked for their Pods at most. Each is a call for each namespace.
const mostIdle = 20

// What keeps a Pod from holding its machine, in the rules of the autoscaler.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
const (
	annotationEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	annotationMirror = "kubernetes.io/config.mirror"
	kindDaemonSet    = "DaemonSet"
)

// Leftovers implements provider.Janitor: ProvisioningRequests that no training names, inactive Workloads of Kueue, and node pools of TPUs
// that one Pod without TPUs holds up. It lists the cluster, and changes nothing in it. What cannot be read is not left over.
func (c *Clusters) Leftovers(ctx context.Context, project, zone string) ([]provider.Leftover, error) {
	w := c.named(project, zone)
	if w == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	client, err := c.clientOf(ctx, w)
	if err != nil {
		return nil, err
	}
	now := c.now()
	o, unread, err := client.listAll(ctx, w.Namespaces)
	if err = cmp.Or(err, unread); err != nil {
		return nil, err
	}
	namespaces := w.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	if !o.wait() { // otherwise they are listed already
		for _, client.Namespace = range namespaces {
			in := Objects{}
			client.listWaits(ctx, &in)
			o.Requests, o.Workloads = append(o.Requests, in.Requests...), append(o.Workloads, in.Workloads...)
		}
	}
	l := leftovers{Objects: o, cluster: zone, now: now}
	all := slices.Concat(l.requests(), l.inactive())
	for _, pool := range l.idle(w.Location, w.Name) {
		pods, err := client.on(ctx, namespaces, pool.machines)
		if err != nil {
			return nil, err
		}
		if held := l.held(pool, pods); held != nil {
			all = append(all, *held)
		}
	}
	slices.SortFunc(all, func(a, b provider.Leftover) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Zone, b.Zone), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// on lists the Pods on some machines, as far as the namespaces show them.
func (c Client) on(ctx context.Context, namespaces, machines []string) (all []Pod, err error) {
	for _, machine := range machines {
		for _, namespace := range namespaces {
			path := "/api/v1/pods"
			if namespace != "" {
				path = "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods"
			}
			pods, err := listWhere[Pod](ctx, c, path, url.Values{"fieldSelector": {"spec.nodeName=" + machine}}, nil)
			if err != nil {
				return nil, err
			}
			all = append(all, pods...)
		}
	}
	return all, nil
}

// leftovers are the objects of a cluster among which something may be left over.
type leftovers struct {
	Objects

	cluster string // LOCATION/CLUSTER
	now     time.Time
}

func (l leftovers) old(since time.Time) bool { return !since.IsZero() && l.now.Sub(since) >= leftAfter }

// requests are the ProvisioningRequests that nobody owns and that no Job, JobSet or Pod of a Job names, while they hold machines or ask
// for some.
func (l leftovers) requests() (all []provider.Leftover) {
	named := map[string]bool{}
	name := func(namespace string, annotations map[string]string) {
		for _, key := range consumes {
			named[namespace+"/"+annotations[key]] = true
		}
	}
	for _, j := range l.Jobs {
		name(j.Namespace, j.Spec.Template.Meta.Annotations)
	}
	for _, s := range l.JobSets {
		for _, r := range s.Spec.ReplicatedJobs {
			name(s.Namespace, r.Template.Spec.Template.Meta.Annotations)
		}
	}
	for _, p := range l.Pods {
		name(p.Namespace, p.Annotations)
	}
	for _, r := range l.Requests {
		c := r.Status.Conditions
		ended := c.holds("Failed") || c.holds("BookingExpired") || c.holds("CapacityRevoked")
		if len(r.Owners) > 0 || ended || named[r.Namespace+"/"+r.Name] || !l.old(r.Created) {
			continue
		}
		why := "it has no owner, and no Job or JobSet names it; it asks for machines"
		if c.holds("Provisioned") {
			why = "it has no owner, and no Job or JobSet names it; its machines were provided"
		}
		all = append(all, provider.Leftover{Kind: "ProvisioningRequest", Zone: l.cluster + "/" + r.Namespace, Name: r.Name, Since: r.Created.UTC(), Why: why})
	}
	return all
}

// inactive are the Workloads of Kueue that ask for TPUs and that Kueue does not admit, until somebody activates them.
func (l leftovers) inactive() (all []provider.Leftover) {
	for _, w := range l.Workloads {
		trains := slices.ContainsFunc(w.Spec.PodSets, func(p PodSet) bool { return p.Template.Spec.trains() })
		since, why := w.waits("it")
		if !w.inactive() || !trains || w.Status.Conditions.holds("Finished") || !l.old(since) {
			continue
		}
		chips := 0
		for _, p := range w.Spec.PodSets {
			chips += p.Count * p.Template.Spec.chips()
		}
		all = append(all, provider.Leftover{Kind: "Workload", Zone: l.cluster + "/" + w.Namespace, Name: w.Name, Since: since, Chips: chips, Why: why})
	}
	return all
}

// pool is a node pool of TPUs on which no Pod of a Job is.
type pool struct {
	name     string
	machines []string
	chips    int
}

// idle are the node pools of TPUs that no training uses, by their machines, and that none may be about to use: no Job for such TPUs waits
// or comes back. They have to be old enough, and no more than mostIdle machines are asked.
func (l leftovers) idle(location, cluster string) (all []pool) {
	busy := map[string]bool{} // machines
	for _, p := range l.Pods {
		busy[p.Spec.NodeName] = busy[p.Spec.NodeName] || p.Spec.trains() && !p.ended()
	}
	wanted := map[string]bool{} // accelerators
	for _, r := range Readings(l.Objects, location, cluster, l.now) {
		if r.State != Ready && r.State != Done && r.State != Stopped {
			wanted[r.Accelerator] = true
		}
	}
	pools, used := map[string]*pool{}, map[string]bool{}
	for _, n := range l.Nodes {
		name := n.Labels[labelPool]
		if name == "" {
			continue
		}
		if pools[name] == nil {
			pools[name] = &pool{name: name}
		}
		p := pools[name]
		p.machines, p.chips = append(p.machines, n.Name), p.chips+quantity(n.Status.Capacity[tpuResource])
		used[name] = used[name] || busy[n.Name] || wanted[n.Labels[LabelAccelerator]] || wanted[""] || !l.old(n.Created)
	}
	left := mostIdle
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		if p := pools[name]; !used[name] && len(p.machines) <= left {
			left -= len(p.machines)
			all = append(all, *p)
		}
	}
	return all
}

// held says that one Pod holds up a node pool, which the autoscaler would remove without it; nil where none does, or where more than one
// Pod is there for something.
func (l leftovers) held(of pool, pods []Pod) *provider.Leftover {
	var stray []Pod
	for _, p := range pods {
		switch {
		case p.ended() || p.Deleted != nil || p.controller(kindDaemonSet).UID != "" || p.Annotations[annotationMirror] != "":
		case p.Spec.chips() > 0:
			return nil // it uses the TPUs
		case p.Annotations[annotationEvict] == "true" || len(p.Owners) > 0 && p.Annotations[annotationEvict] != "false":
		default:
			stray = append(stray, p)
		}
	}
	if len(stray) != 1 || !l.old(stray[0].Created) {
		return nil
	}
	p := stray[0]
	return &provider.Leftover{
		Kind: "node pool", Zone: l.cluster, Name: of.name, Since: p.Created.UTC(), Chips: of.chips,
		Why: "no training uses its " + strconv.Itoa(len(of.machines)) + " machines, and the Pod " + p.Namespace + "/" + p.Name + " on " + p.Spec.NodeName + " keeps the autoscaler from removing them",
	}
}
