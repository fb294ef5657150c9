package gke

import (
	"slices"
	"strings"
	"time"
)

// byHand is the command that ends what keeps a life that is over from its end: every Pod of it that has not ended is past its time, on a
// machine that has stopped to answer. It is empty where a Pod may still end by itself: where a machine is gone, the cluster itself ends its
// Pods, and where it answers, in whatever state, the machine does.
func byHand(namespace string, pods []Pod, nodes map[string]*Node, now time.Time) string {
	var names []string
	for _, p := range pods {
		if p.ended() {
			continue
		}
		n := nodes[p.Spec.NodeName]
		if p.Deleted == nil || now.Sub(*p.Deleted) <= unendedAfter || n == nil || !n.silent() {
			return ""
		}
		names = append(names, p.Name)
	}
	if names == nil {
		return ""
	}
	slices.Sort(names)
	return "; once you know that its machine is off: kubectl delete pod --force --namespace " + namespace + " " + strings.Join(names, " ")
}

// over reports whether a Job makes no Pod any more: it is being deleted, or has failed and waits for the ends of its Pods.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#termination-of-job-pods
func (j Job) over() bool { return j.Deleted != nil || j.Status.Conditions.holds("FailureTarget") }

// silent reports whether the control plane has heard nothing from a machine for its time: a machine that is not ready and says so still
// ends its Pods.
func (n Node) silent() bool { return n.Status.Conditions.of("Ready").Status == "Unknown" }

// leftOf are the Pods of a slice of which only something is left, or none where a Job is left that may make others.
func (o Objects) leftOf(r Reading) (all []Pod) {
	in := func(m Meta) bool { return r.namespace() == m.Namespace }
	if slices.ContainsFunc(o.Jobs, func(j Job) bool { return in(j.Meta) && j.Name == r.Name && !j.over() }) {
		return nil
	}
	for _, p := range o.Pods {
		if _, name := p.job(); in(p.Meta) && name == r.Name && p.Spec.trains() {
			all = append(all, p)
		}
	}
	return all
}

// namespace is that of a slice.
func (r Reading) namespace() string { return r.Scope[strings.LastIndex(r.Scope, "/")+1:] }
