package gke

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"pitstop.internal/shared/provider"
)

// What keeps a Pod from holding its machine, in the rules of the autoscaler.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
const (
	annotationEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	annotationMirror = "kubernetes.io/config.mirror"
	kindDaemonSet    = "DaemonSet"
)

// Leftovers implements provider.Janitor: inactive Workloads of Kueue in the namespaces that are read and, where all are, node pools of TPUs
// that one Pod without TPUs may hold up. It changes nothing. Each namespace is one list, or all together three, however many machines
// there are. A ProvisioningRequest is none: only the PodTemplates that it names tell whether it asks for TPUs, and Pitstop reads none.
func (c *Clusters) Leftovers(ctx context.Context, project, zone string) (all []provider.Leftover, unread []string, err error) {
	w := c.named(project, zone)
	if w == nil {
		return nil, nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	shared, err := c.clientOf(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	client := *shared // other calls use it at the same time
	if len(w.Namespaces) == 0 {
		client.Namespace = ""
		all, err = client.leftovers(ctx, zone)
		return all, nil, err
	}
	var faults []error
	for _, client.Namespace = range w.Namespaces {
		workloads, err := client.workloads(ctx)
		if err != nil {
			unread, faults = append(unread, zone+"/"+client.Namespace), append(faults, err)
			continue
		}
		all = append(all, inactive(workloads, zone)...)
	}
	return all, unread, errors.Join(faults...)
}

func (c Client) workloads(ctx context.Context) ([]Workload, error) {
	return listFirst[Workload](ctx, c, workloadAPIs, "workloads")
}

// leftovers are those of a whole cluster.
func (c Client) leftovers(ctx context.Context, cluster string) ([]provider.Leftover, error) {
	workloads, err := c.workloads(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := list[Node](ctx, c, "/api/v1/nodes", LabelAccelerator, nil)
	if err != nil {
		return nil, err
	}
	var pods []Pod
	if len(nodes) > 0 {
		if pods, err = list[Pod](ctx, c, "/api/v1/pods", "", nil); err != nil {
			return nil, err
		}
	}
	return slices.Concat(inactive(workloads, cluster), held(nodes, pods, wanted(workloads, pods), cluster)), nil
}

// inactive are the Workloads of Kueue that ask for TPUs and that Kueue does not admit, until somebody activates them.
func inactive(workloads []Workload, cluster string) (all []provider.Leftover) {
	for _, w := range workloads {
		if !w.inactive() || !w.trains() || w.Status.Conditions.holds("Finished") {
			continue
		}
		chips := 0
		for _, p := range w.Spec.PodSets {
			chips += p.Count * p.Template.Spec.chips()
		}
		_, why := w.waits("it")
		all = append(all, provider.Leftover{Kind: "Workload", Zone: cluster + "/" + w.Namespace, Name: w.Name, Chips: chips, Why: why})
	}
	return all
}

// wanted are the accelerators for which something waits; the empty one is any.
func wanted(workloads []Workload, pods []Pod) map[string]bool {
	all := map[string]bool{}
	want := func(s PodSpec) {
		if s.trains() {
			all[s.NodeSelector[LabelAccelerator]] = true
		}
	}
	for _, w := range workloads {
		if c := w.Status.Conditions; w.inactive() || c.holds("Admitted") || c.holds("Finished") {
			continue
		}
		for _, p := range w.Spec.PodSets {
			want(p.Template.Spec)
		}
	}
	for _, p := range pods {
		if p.Spec.NodeName == "" && !p.ended() {
			want(p.Spec)
		}
	}
	return all
}

// pool is a node pool of TPUs.
type pool struct {
	machines, chips int
	used            bool
	strays          []Pod // those that the autoscaler may not move
}

// held are the node pools that nobody uses or waits for, and that one Pod may hold up. Where two do, there may be a reason.
func held(nodes []Node, pods []Pod, wanted map[string]bool, cluster string) (all []provider.Leftover) {
	pools, of := map[string]*pool{}, map[string]*pool{} // by name, and by machine
	for _, n := range nodes {
		name := n.Labels[labelPool]
		if name == "" {
			continue
		}
		if pools[name] == nil {
			pools[name] = &pool{}
		}
		p := pools[name]
		of[n.Name] = p
		p.machines, p.chips = p.machines+1, p.chips+quantity(n.Status.Capacity[tpuResource])
		p.used = p.used || wanted[n.Labels[LabelAccelerator]] || wanted[""]
	}
	for _, p := range pods {
		if on := of[p.Spec.NodeName]; on != nil && !p.ended() {
			on.used = on.used || p.uses()
			if p.stays() {
				on.strays = append(on.strays, p)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		p := pools[name]
		if p.used || len(p.strays) != 1 {
			continue
		}
		s, machines := p.strays[0], "machine"
		if p.machines > 1 {
			machines = strconv.Itoa(p.machines) + " machines"
		}
		all = append(all, provider.Leftover{
			Kind: provider.NodePool, Zone: cluster, Name: name, Chips: p.chips,
			Why: "nobody uses its TPUs, and the Pod " + s.Namespace + "/" + s.Name + " on " + s.Spec.NodeName + " may keep the autoscaler from removing the pool's " + machines,
		})
	}
	return all
}

// uses reports whether a Pod uses TPUs, or belongs to a Job, which may. One that is being deleted does so until its end.
func (p Pod) uses() bool {
	_, job := p.job()
	return p.Spec.chips() > 0 || job != ""
}

// stays reports whether the autoscaler may have to leave a Pod where it is.
func (p Pod) stays() bool {
	if p.Deleted != nil || p.controller(kindDaemonSet).UID != "" || p.Annotations[annotationMirror] != "" {
		return false
	}
	evict := p.Annotations[annotationEvict]
	return evict != "true" && (len(p.Owners) == 0 || evict == "false")
}
