package gke

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// ProvisioningRequest is a ProvisioningRequest of autoscaling.x-k8s.io: it asks GKE for all machines of a Job at once, before its Pods run.
// https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest
type ProvisioningRequest struct {
	Meta `json:"metadata"`
	Spec struct {
		PodSets []struct {
			Count int `json:"count"`
			// Template is the PodTemplate of these Pods, in the same namespace.
			Template struct {
				Name string `json:"name"`
			} `json:"podTemplateRef"`
		} `json:"podSets"`
	} `json:"spec"`
	Status struct {
		Conditions conditions `json:"conditions"`
	} `json:"status"`
}

// PodTemplate is a PodTemplate of v1: it says for which Pods a ProvisioningRequest asks.
type PodTemplate struct {
	Meta     `json:"metadata"`
	Template Template `json:"template"`
}

// Workload is a Workload of kueue.x-k8s.io: Kueue's own object for a Job or JobSet that waits in one of its queues, or has left it.
// https://kueue.sigs.k8s.io/docs/concepts/workload/
type Workload struct {
	Meta `json:"metadata"`
	Spec struct {
		Active  *bool    `json:"active"`
		PodSets []PodSet `json:"podSets"`
	} `json:"spec"`
	Status struct {
		Conditions conditions `json:"conditions"`
	} `json:"status"`
}

// PodSet is a number of Pods of a Workload.
type PodSet struct {
	Count    int      `json:"count"`
	Template Template `json:"template"`
}

// The APIs of what a Job waits in, with their versions, the newest first. A cluster may have none of them.
var (
	requestAPIs  = []string{"autoscaling.x-k8s.io/v1", "autoscaling.x-k8s.io/v1beta1"}
	workloadAPIs = []string{"kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"}
)

// consumes are the annotations by which a Pod names the ProvisioningRequest whose machines it takes.
var consumes = []string{"autoscaling.x-k8s.io/consume-provisioning-request", "cluster-autoscaler.kubernetes.io/consume-provisioning-request"}

// addWaits reads in what the Jobs of some namespaces wait. A cluster that has no such objects has none. They only explain, so they come
// last: where they cannot be read, or not in the time that an explanation is worth, everything else is read all the same.
func (c Client) addWaits(ctx context.Context, o *Objects, namespaces ...string) {
	by := time.Now().Add(waitsTimeout)
	if end, bound := ctx.Deadline(); bound {
		if half := time.Now().Add(time.Until(end) / 2); half.Before(by) { // what comes after the listing needs time too
			by = half
		}
	}
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	for _, c.Namespace = range namespaces {
		requests, noRequests := waitsOf[ProvisioningRequest](ctx, c, requestAPIs, "provisioningrequests")
		workloads, noWorkloads := waitsOf[Workload](ctx, c, workloadAPIs, "workloads")
		o.Requests, o.Workloads = append(o.Requests, requests...), append(o.Workloads, workloads...)
		o.Unexplained = errors.Join(o.Unexplained, noRequests, noWorkloads)
	}
}

// waitsTimeout bounds the reading of what Jobs wait in. Kueue converts its objects by a webhook, which may hang.
const waitsTimeout = 3 * time.Second

// waitsOf lists one kind of what Jobs wait in, without the namespaces in which it cannot be read.
func waitsOf[T listed](ctx context.Context, c Client, apis []string, plural string) (all []T, err error) {
	out, err := c.leavingOut(func(c Client) (err error) {
		all, err = listFirst[T](ctx, c, apis, plural)
		return err
	})
	return all, errors.Join(err, reasons(out))
}

// wait reports whether a Job or JobSet for TPUs is suspended in a namespace, or has a Pod without a machine; an empty one is any.
func (o Objects) wait(namespace string) bool {
	in := func(m Meta) bool { return namespace == "" || m.Namespace == namespace }
	return slices.ContainsFunc(o.Jobs, func(j Job) bool { return in(j.Meta) && j.Spec.Suspend && j.Spec.Template.Spec.trains() }) ||
		slices.ContainsFunc(o.JobSets, func(s JobSet) bool { return in(s.Meta) && s.Spec.Suspend }) ||
		slices.ContainsFunc(o.Pods, func(p Pod) bool { return in(p.Meta) && p.Spec.NodeName == "" && !p.ended() && p.Spec.trains() })
}

// path is that of a list in the client's namespace, or in all.
func (c Client) path(api, plural string) string {
	path := "/apis/" + api
	if api == "v1" {
		path = "/api/v1"
	}
	if c.Namespace != "" {
		path += "/namespaces/" + url.PathEscape(c.Namespace)
	}
	return path + "/" + plural
}

// listFirst lists by the first version of an API that the cluster has.
func listFirst[T listed](ctx context.Context, c Client, apis []string, plural string) (all []T, err error) {
	for _, api := range apis {
		all, err = list[T](ctx, c, c.path(api, plural), "", nil)
		var no *provider.Error
		if !errors.As(err, &no) || no.Class != reason.NotFound {
			return all, err
		}
	}
	return nil, nil
}

// asked are Workloads and ProvisioningRequests by what asks for them. The one that was made last counts: Kueue tries again with another.
type asked struct {
	workloads map[string]*Workload            // by the UID of the Job or JobSet
	requests  map[string]*ProvisioningRequest // by the UID of their owner, and by namespace/name
}

func askedIn(o Objects) asked {
	a := asked{map[string]*Workload{}, map[string]*ProvisioningRequest{}}
	for i, w := range o.Workloads {
		for _, of := range w.Owners {
			if last := a.workloads[of.UID]; last == nil || later(w.Meta, last.Meta) {
				a.workloads[of.UID] = &o.Workloads[i]
			}
		}
	}
	for i, r := range o.Requests {
		a.requests[r.Namespace+"/"+r.Name] = &o.Requests[i]
		for _, of := range r.Owners {
			if last := a.requests[of.UID]; last == nil || later(r.Meta, last.Meta) {
				a.requests[of.UID] = &o.Requests[i]
			}
		}
	}
	return a
}

func later(a, b Meta) bool {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name)) > 0
}

// asks finds in what a slot waits.
func (s *slot) asks(a asked) {
	uids, namespace := []string{}, ""
	if s.job != nil {
		uids, namespace = append(uids, s.job.UID), s.job.Namespace
	}
	if s.set != nil {
		uids, namespace = append(uids, s.set.UID), s.set.Namespace
	}
	for _, uid := range uids {
		if w := a.workloads[uid]; w != nil && s.workload == nil {
			s.workload = w
		}
	}
	for _, name := range consumes {
		if r := a.requests[namespace+"/"+s.spec.Template.Meta.Annotations[name]]; r != nil {
			s.request = r
			return
		}
	}
	if s.workload != nil {
		uids = append(uids, s.workload.UID)
	}
	for _, uid := range uids {
		if r := a.requests[uid]; r != nil && (s.request == nil || later(r.Meta, s.request.Meta)) {
			s.request = r
		}
	}
}

// queued says since when a slot waits for what GKE or Kueue has yet to give it, and why. A zero time is no wait of which anybody has to
// hear: its turn in a queue comes.
func (s slot) queued() (since time.Time, why string) {
	if s.workload != nil {
		if since, why = s.workload.waits("its Workload " + s.workload.Name); why != "" {
			return since, why
		}
	}
	if s.request != nil {
		return s.request.waits()
	}
	return time.Time{}, ""
}

func (w Workload) inactive() bool { return w.Spec.Active != nil && !*w.Spec.Active }

// trains reports whether a Workload is for TPUs.
func (w Workload) trains() bool {
	return slices.ContainsFunc(w.Spec.PodSets, func(p PodSet) bool { return p.Template.Spec.trains() })
}

// waits says since when a Workload is not admitted, and why, under a name; the time is zero where its turn comes by itself.
func (w Workload) waits(name string) (since time.Time, why string) {
	c := w.Status.Conditions
	evicted, quota := c.of("Evicted"), c.of("QuotaReserved")
	switch {
	case w.inactive():
		since, name = w.Created.UTC(), name+" is inactive"
		if evicted.Status == "True" {
			since, name = evicted.Since.UTC(), name+evicted.said()
		}
		return since, name + "; Kueue does not admit it until somebody sets spec.active"
	case quota.Status == "True" || c.holds("Admitted") || c.holds("Finished"):
		return since, "" // its ProvisioningRequest says more
	case evicted.Status == "True":
		return evicted.Since.UTC(), name + " is evicted" + evicted.said()
	}
	return since, name + " has no quota" + quota.said()
}

// waits says since when the machines are not there that a ProvisioningRequest asks for, and why. The time is zero where it has done its
// part: it keeps machines for minutes, and says so for ever, while the Pods that came run on.
func (r ProvisioningRequest) waits() (since time.Time, why string) {
	name := "its ProvisioningRequest " + r.Name
	for _, end := range []struct{ typ, text string }{
		{"Failed", " has failed"},
		{"CapacityRevoked", " has lost its machines again"},
	} {
		if c := r.Status.Conditions.of(end.typ); c.Status == "True" {
			return cmp.Or(c.Since, r.Created).UTC(), name + end.text + c.said()
		}
	}
	if c := r.Status.Conditions.of("BookingExpired"); c.Status == "True" {
		return since, name + " no longer keeps its machines" + c.said()
	}
	c := r.Status.Conditions.of("Provisioned")
	if c.Status == "True" {
		return since, ""
	}
	return cmp.Or(c.Since, r.Created).UTC(), name + " is not provisioned" + c.said()
}

// over reports whether a ProvisioningRequest asks for no machines any more and keeps none. GKE gives up keeping them 10 minutes after they
// have come.
func (r ProvisioningRequest) over() bool {
	c := r.Status.Conditions
	return c.holds("Failed") || c.holds("CapacityRevoked") || c.holds("BookingExpired")
}

// idles says in which state a ProvisioningRequest is that nothing names.
func (r ProvisioningRequest) idles() string {
	c, is := r.Status.Conditions.of("Provisioned"), "it is "
	if c.Status != "True" {
		is += "not "
	}
	return is + "provisioned" + c.said() + "; no Pod, Job, JobSet or Workload names it, and GKE keeps machines that nobody uses for 10 minutes only"
}

// said is since when a condition holds, and why, in the words of who wrote it.
func (c Condition) said() (text string) {
	if !c.Since.IsZero() {
		text = " since " + c.Since.UTC().Format(time.RFC3339)
	}
	for _, more := range []string{c.Reason, clipped(c.Message)} {
		if more != "" {
			text += ": " + more
		}
	}
	return text
}
