package gke

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// LabelMaintain lets the announced maintenance of a machine begin, where its value is true. GKE takes it away when the maintenance is over.
// https://cloud.google.com/kubernetes-engine/docs/how-to/perform-host-maintenance-accelerators
const LabelMaintain = "cloud.google.com/perform-maintenance"

// Maintain implements provider.Maintainer: it labels, once, each machine of the slices that has announced maintenance. It looks at all
// machines before it labels one, and labels none where the maintenance of one cannot be moved, or where another training may run on one.
// The references need the life that was read. Where a machine has the label, and that of another is refused, the error is a PartError.
func (c *Clusters) Maintain(ctx context.Context, of []provider.Ref) (operation string, err error) {
	t, err := c.target("start the maintenance of", slices.Concat(of, []provider.Ref{{}})[0])
	if err != nil {
		return "", err
	}
	what := t.call("start the maintenance of")
	refuse := func(class reason.FailureClass, code reason.Code, why string) (string, error) {
		return "", &provider.Error{Call: what, Class: class, Code: code, Message: why}
	}
	if slices.ContainsFunc(of, func(r provider.Ref) bool { return r.Zone != t.zone || r.Project != t.cluster.Project || r.Life == "" }) {
		return refuse(reason.Invalid, "", "no reading says which life of each slice is meant, in one namespace")
	}
	o, err := c.inNamespace(ctx, t)
	if err != nil {
		return "", err
	}
	readings := Readings(o, t.cluster.Location, t.cluster.Name, c.now())
	var asked []Reading
	for _, r := range of {
		i := slices.IndexFunc(readings, func(x Reading) bool { return x.Name == r.Name && x.Group == r.QueuedResource })
		switch {
		case i < 0 || readings[i].Life != r.Life:
			return refuse(reason.NotFound, reason.CodeOtherLife, r.Name+" has another life than the one that was read")
		case readings[i].State != Ready:
			return refuse(reason.NotInState, reason.CodeNotReady, r.Name+" is "+string(readings[i].State)+": "+readings[i].Why)
		}
		asked = append(asked, readings[i])
	}
	machines, announced, why := maintainable(o, asked)
	switch {
	case why != "":
		return refuse(reason.NotInState, reason.CodeNotEarly, why)
	case announced == 0:
		return refuse(reason.NotInState, reason.CodeNotEarly, "none of its machines announces maintenance")
	}
	var faults []error
	for _, n := range machines { // the slice ends with the first one, so a refusal of one is no reason to spare the others
		faults = append(faults, c.label(ctx, t, n))
	}
	faults = slices.DeleteFunc(faults, func(err error) bool { return err == nil })
	again := slices.IndexFunc(faults, func(err error) bool {
		class := provider.Failure(err).Class
		return class == reason.Transient || class == reason.Busy
	})
	switch {
	case len(faults) == 0:
		return "", nil
	case again >= 0:
		return "", faults[again]
	case len(faults) == announced:
		return "", faults[0]
	}
	return "", &provider.PartError{Left: faults[0]}
}

// inNamespace lists the namespace of a call and the machines, without manifests and without the Slices.
func (c *Clusters) inNamespace(ctx context.Context, t target) (o Objects, err error) {
	client, err := c.clientOf(ctx, t.cluster)
	if err != nil {
		return o, err
	}
	in := *client
	in.Namespace, in.orders = t.namespace, nil
	if o, err = in.listIn(ctx); err == nil {
		o.Nodes, err = list[Node](ctx, in, nodesPath, LabelAccelerator, nil)
	}
	if err != nil {
		t.cluster.forget(client)
	}
	return o, err
}

// maintainable are the machines of slices that have yet to be labelled, and how many of their machines announce maintenance. Why says why
// none may be labelled.
//
// A machine with chips that the Pods of the slices do not have is never labelled. It may run the training of somebody who has allowed nothing,
// in a namespace that nobody here can read. A slice of several machines is a node pool, and its maintenance concerns it as a whole:
// none of them is labelled unless the Pods have all the chips of the pool.
// https://cloud.google.com/kubernetes-engine/docs/concepts/tpus
func maintainable(o Objects, of []Reading) (machines []Node, announced int, why string) {
	has, on := map[string]int{}, map[string]bool{}
	for _, r := range of {
		for _, p := range o.Pods {
			if p.owner(kindJob) == r.Incarnation.ID && !p.ended() {
				has[p.Spec.NodeName] += p.Spec.chips()
			}
		}
		for _, name := range r.Machines {
			on[name] = true
		}
	}
	beside := func(n Node) string { // a machine of its node pool whose chips the Pods do not all have
		for _, m := range o.Nodes {
			if m.Labels[labelPool] == n.Labels[labelPool] && has[m.Name] < max(1, quantity(m.Status.Capacity[tpuResource])) {
				return m.Name
			}
		}
		return ""
	}
	for _, n := range o.Nodes {
		notice := n.notice()
		if !on[n.Name] || notice == nil {
			continue
		}
		announced++
		chips := quantity(n.Status.Capacity[tpuResource])
		switch {
		case notice.Status != events.NoticePending || !notice.CanReschedule:
			return nil, announced, "the maintenance of its machine " + n.Name + " cannot be moved"
		case chips == 0 || has[n.Name] < chips:
			return nil, announced, fmt.Sprintf("another training may run on its machine %s: it has %d of the %d chips there", n.Name, has[n.Name], chips)
		case chipsOf(n.Labels[labelTopology]) != chips && beside(n) != "":
			return nil, announced, "another training may run on the slice of its machine " + n.Name + ": the Pods do not have all chips of " + beside(n)
		case n.Labels[LabelMaintain] != "true":
			machines = append(machines, n)
		}
	}
	return machines, announced, ""
}

// label sets the label on a machine. A machine that was made anew has its name too, so the call names its UID.
func (c *Clusters) label(ctx context.Context, t target, n Node) error {
	what := "label the machine " + n.Name + " in " + provider.Listed(t.zone)
	type meta struct {
		UID    string            `json:"uid"`
		Labels map[string]string `json:"labels"`
	}
	body, err := json.Marshal(map[string]meta{"metadata": {n.UID, map[string]string{LabelMaintain: "true"}}})
	if err != nil {
		return &provider.Error{Call: what, Class: reason.Invalid, Message: err.Error(), Cause: err}
	}
	_, err = c.change(ctx, t, what, http.MethodPatch, "/api/v1/nodes/"+url.PathEscape(n.Name), nil, body, provider.Hidden{})
	var no *provider.Error
	if errors.As(err, &no) && no.Class == reason.Permission {
		no.Message += "; pitstop gke rbac --allow=early_maintenance prints the right"
	}
	return err
}
