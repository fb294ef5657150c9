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

const kindRequest = "ProvisioningRequest"

// Leftovers implements provider.Janitor: inactive Workloads of Kueue, and ProvisioningRequests that nothing names, in the namespaces that are
// read. Where all are read, it finds node pools of TPUs, too, that one Pod without TPUs may hold up. It changes nothing. Each namespace is two
// lists, or all together four, however many machines there are. Up to four more follow where a ProvisioningRequest without an owner is open.
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
		return client.leftoversOfAll(ctx, zone)
	}
	var faults []error
	for _, client.Namespace = range w.Namespaces {
		client.tally = &tally{}
		found, part, err := client.leftoversIn(ctx, zone)
		if all = append(all, found...); err != nil {
			unread, faults = append(unread, part), append(faults, err)
		}
	}
	return all, unread, errors.Join(faults...)
}

func (c Client) workloads(ctx context.Context) ([]Workload, error) {
	return listFirst[Workload](ctx, c, workloadAPIs, "workloads")
}

// leftoversOfAll are those of a whole cluster. Where a namespace cannot be read, it is not known which node pools are in use.
func (c Client) leftoversOfAll(ctx context.Context, cluster string) (all []provider.Leftover, unread []string, err error) {
	out, err := c.leavingOut(func(c Client) (err error) {
		all, unread, err = c.leftovers(ctx, cluster)
		return err
	})
	if len(out) > 0 && (err == nil || len(unread) > 0) {
		all = slices.DeleteFunc(all, func(l provider.Leftover) bool { return l.Kind == provider.NodePool })
		unread = slices.Concat(unread, scopesOf(out, cluster), []string{provider.Part(cluster, provider.NodePool)})
	}
	return all, unread, errors.Join(err, reasons(out))
}

// leftovers are those of a whole cluster. Unread are the ProvisioningRequests of the namespaces in which some may be left over.
func (c Client) leftovers(ctx context.Context, cluster string) (all []provider.Leftover, unread []string, err error) {
	workloads, err := c.workloads(ctx)
	if err != nil {
		return nil, nil, err
	}
	requests, err := c.ownerless(ctx)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := list[Node](ctx, c, nodesPath, LabelAccelerator, nil)
	if err != nil {
		return nil, nil, err
	}
	var pods []Pod
	if len(nodes)+len(requests) > 0 {
		if pods, err = list[Pod](ctx, c, c.path("v1", "pods"), "", nil); err != nil {
			return nil, nil, err
		}
	}
	unused, err := c.unused(ctx, requests, workloads, pods, cluster)
	if err != nil {
		for _, r := range requests {
			unread = append(unread, provider.Part(cluster+"/"+r.Namespace, kindRequest))
		}
	}
	return slices.Concat(inactive(workloads, cluster), unused, held(nodes, pods, wanted(workloads, pods), cluster)), slices.Compact(unread), err
}

// leftoversIn are those of a namespace. With an error, part is what of it could not be read.
func (c Client) leftoversIn(ctx context.Context, cluster string) (all []provider.Leftover, part string, err error) {
	scope := cluster + "/" + c.Namespace
	workloads, err := c.workloads(ctx)
	if err != nil {
		return nil, scope, err
	}
	all, part = inactive(workloads, cluster), provider.Part(scope, kindRequest)
	requests, err := c.ownerless(ctx)
	if err != nil || len(requests) == 0 {
		return all, part, err
	}
	pods, err := list[Pod](ctx, c, c.path("v1", "pods"), "", nil)
	if err != nil {
		return all, part, err
	}
	unused, err := c.unused(ctx, requests, workloads, pods, cluster)
	return append(all, unused...), part, err
}

// ownerless are the open ProvisioningRequests that belong to nothing. Kubernetes deletes one that has owners together with the last of them.
func (c Client) ownerless(ctx context.Context) ([]ProvisioningRequest, error) {
	requests, err := listFirst[ProvisioningRequest](ctx, c, requestAPIs, "provisioningrequests")
	return slices.DeleteFunc(requests, func(r ProvisioningRequest) bool { return len(r.Owners) > 0 || r.Deleted != nil || r.over() }), err
}

// unused are those of these ProvisioningRequests that ask for TPUs and that nothing names. The PodTemplates, which alone tell what they ask
// for, are listed last.
func (c Client) unused(ctx context.Context, requests []ProvisioningRequest, workloads []Workload, pods []Pod, cluster string) (all []provider.Leftover, err error) {
	if requests = unnamed(requests, Objects{Workloads: workloads, Pods: pods}); len(requests) == 0 {
		return nil, nil
	}
	var o Objects
	if o.Jobs, err = list[Job](ctx, c, c.path("batch/v1", "jobs"), "", nil); err != nil {
		return nil, err
	}
	if o.JobSets, err = listFirst[JobSet](ctx, c, []string{jobSetAPI}, "jobsets"); err != nil {
		return nil, err
	}
	if requests = unnamed(requests, o); len(requests) == 0 {
		return nil, nil
	}
	templates, err := list[PodTemplate](ctx, c, c.path("v1", "podtemplates"), "", nil)
	if err != nil {
		return nil, err
	}
	specs := map[string]PodSpec{} // by namespace/name
	for _, t := range templates {
		specs[t.Namespace+"/"+t.Name] = t.Template.Spec
	}
	for _, r := range requests {
		chips, trains := 0, false
		for _, p := range r.Spec.PodSets {
			spec := specs[r.Namespace+"/"+p.Template.Name]
			chips, trains = chips+p.Count*spec.chips(), trains || spec.trains()
		}
		if trains {
			all = append(all, provider.Leftover{Kind: kindRequest, Zone: cluster + "/" + r.Namespace, Name: r.Name, Chips: chips, Why: r.idles(), Made: r.Created})
		}
	}
	return all, nil
}

// unnamed are those of these ProvisioningRequests whose machines none of the objects takes, or will take.
func unnamed(requests []ProvisioningRequest, o Objects) []ProvisioningRequest {
	named := map[string]bool{} // by namespace/name
	name := func(namespace string, annotations map[string]string) {
		for _, by := range consumes {
			named[namespace+"/"+annotations[by]] = true
		}
	}
	for _, p := range o.Pods {
		name(p.Namespace, p.Annotations)
	}
	for _, w := range o.Workloads {
		for _, p := range w.Spec.PodSets {
			name(w.Namespace, p.Template.Meta.Annotations)
		}
	}
	for _, j := range o.Jobs {
		name(j.Namespace, j.Spec.Template.Meta.Annotations)
	}
	for _, s := range o.JobSets {
		for _, j := range s.Spec.ReplicatedJobs {
			name(s.Namespace, j.Template.Spec.Template.Meta.Annotations)
		}
	}
	return slices.DeleteFunc(requests, func(r ProvisioningRequest) bool { return named[r.Namespace+"/"+r.Name] })
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
		all = append(all, provider.Leftover{Kind: "Workload", Zone: cluster + "/" + w.Namespace, Name: w.Name, Chips: chips, Why: why, Made: w.Created})
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
