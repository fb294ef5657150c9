package oracle

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/gke"
)

// calledJob brings the rules a call of ours about a Job or JobSet that has just taken effect. Sent is its body, and objects are what was there
// right before.
func (c *Checks) calledJob(ctx context.Context, cl *world.Cluster, j world.JobConfig, what string, sent []byte, objects gke.Objects) {
	var gangs []*gang
	for _, g := range cl.Gangs() {
		if g.Name == j.Name && g.In() == j.In() {
			gangs = append(gangs, c.gangOf(g))
		}
	}
	workload, spot := gangs[0].Workload(), gangs[0].Pool().Spot
	doc, ok := c.calledIn(ctx, recreates, workload, j.Name+" was "+what, func(p policy.Policy) bool {
		return p.Switches.Recreate != policy.No && spot || p.Switches.RecreateNonSpot != policy.No
	})
	if !ok {
		return
	}
	c.actions["Job "+what]++
	for _, g := range gangs {
		if what == world.Deleted {
			c.jobDeleted(doc, g, objects)
			continue
		}
		c.spends(workload, g.Slice+" was replaced")
		c.aloneIn(cl, g, objects)
		inst := world.InstanceOf(ctx)
		if owner := g.lastAct(); owner.what == world.Deleted && owner.by == faults.Owner && c.Clock.Now().Sub(owner.at) > unseen && inst.Seen.Sub(owner.at) > c.learned() {
			c.Violated("2 owner", workload, "%s was created, and its owner has deleted it at %s", g.Slice, owner.at.UTC().Format(time.DateTime))
		}
	}
	if what != world.Deleted {
		c.jobOrdered(workload, cl, j, sent)
	}
}

// calledIn checks what holds for each call of ours in a cluster: one function alone makes it, the owner allows it, and an incident is open. It
// returns the document as the handler of the call saw it.
func (c *Checks) calledIn(ctx context.Context, function, workload, what string, allows func(policy.Policy) bool) (doc seen, ok bool) {
	inst := world.InstanceOf(ctx)
	doc, err := c.document(workload)
	if inst == nil || inst.Function != function || err != nil {
		c.Violated("1 fence", workload, "%s by another function than %s, or for a workload that cannot be read: %v", what, function, err)
		return doc, false
	}
	c.allowed(inst, workload, what, allows)
	if doc.Open == nil && !c.takenBack(inst) {
		c.Violated("1 fence", workload, "%s, and no incident is open on it", what)
	}
	return c.asSeen(inst, doc), true
}

// jobDeleted checks a deletion: the Job has failed for good, or its training stands still.
func (c *Checks) jobDeleted(doc seen, g *gang, objects gke.Objects) {
	i := slices.IndexFunc(objects.Jobs, func(j gke.Job) bool { return j.Namespace == g.In() && j.Name == g.Slice })
	if i < 0 {
		return // its JobSet has not made it
	}
	job := &objects.Jobs[i]
	c.brakedRequest(doc, events.ActionDelete, g.Slice, g.Slice+" was deleted")
	switch _, trains := g.Running(); {
	case jobEnded(g.Gang, job, "Complete", "Completed"):
		c.Violated("3 admitted", doc.ID, "%s was deleted, and it is complete", g.Slice)
	case jobEnded(g.Gang, job, "Failed", "Failed"):
	case job.Spec.Suspend && g.suspendedSince(job.Created):
		c.Violated("2 owner", doc.ID, "%s was deleted, and its owner has suspended it", g.Slice)
	case g.Up() && trains:
		c.Violated("3 admitted", doc.ID, "%s was deleted while training ran in it, at step %d", g.Slice, g.LastStep())
	case c.waitsForItself(g):
		c.actions["Job deleted that stood still"]++
		c.stoodStill(doc.ID, g)
	default:
		c.Violated("8 progress", doc.ID, "%s was deleted, and it had not failed", g.Slice)
	}
}

// aloneIn checks that a Job is created when no Pod of its former life runs.
func (c *Checks) aloneIn(cl *world.Cluster, g *gang, objects gke.Objects) {
	for _, p := range objects.Pods {
		if g.owns(p) && p.Status.Phase == "Running" && !cl.Dead(p.Spec.NodeName) {
			c.Violated("3 admitted", g.Workload(), "%s was created while the Pod %s of its former life runs", g.Slice, p.Name)
		}
	}
}

// owns reports whether a Pod is one of its Job.
func (g *gang) owns(p gke.Pod) bool {
	return p.Namespace == g.In() && p.Labels["batch.kubernetes.io/job-name"] == g.Slice
}

// marked brings the rules a call of ours about a machine that has just taken effect: one training alone is on it, and its save is complete. Sent
// is its body, and objects are what was there right before.
func (c *Checks) marked(ctx context.Context, cl *world.Cluster, machine string, sent map[string]any, objects gke.Objects) {
	i := slices.IndexFunc(objects.Nodes, func(n gke.Node) bool { return n.Name == machine })
	var on []*gang
	for _, g := range cl.Gangs() {
		one := c.gangOf(g)
		if slices.ContainsFunc(objects.Pods, func(p gke.Pod) bool {
			return one.owns(p) && p.Spec.NodeName == machine && (p.Status.Phase == "Pending" || p.Status.Phase == "Running")
		}) {
			on = append(on, one)
		}
	}
	if i < 0 || len(on) == 0 {
		c.Violated("8 progress", "", "%s was labelled, and nothing trains there", machine)
		return
	}
	workload, what := on[0].Workload(), machine+" was labelled"
	for _, g := range on {
		if g.Workload() != workload {
			c.Violated("owner's word", workload, "%s, and %s trains there too", what, g.Workload())
		}
	}
	c.mayBeLabelled(workload, objects.Nodes[i], sent)
	c.actions["machine labelled"]++
	doc, ok := c.calledIn(ctx, checkpoints, workload, what, func(p policy.Policy) bool { return p.Switches.EarlyMaintenance != policy.No })
	if !ok {
		return
	}
	c.brakedRequest(doc, events.ActionMaintain, "", what)
	c.savedFirst(workload, what)
}

// mayBeLabelled checks that a call about a machine sets the one label, once, and that the maintenance of the machine can be moved.
func (c *Checks) mayBeLabelled(workload string, node gke.Node, sent map[string]any) {
	label := map[string]any{"metadata": map[string]any{"uid": node.UID, "labels": map[string]any{gke.LabelMaintain: "true"}}}
	if !reflect.DeepEqual(sent, label) {
		c.Violated("owner's word", workload, "%s was changed by %v", node.Name, sent)
	}
	said := node.Annotations[gke.AnnotationMaintenance]
	if node.Labels[gke.LabelMaintain] != "" || node.Labels["cloud.google.com/active-node-maintenance"] != "" || !strings.Contains(said, `"PENDING"`) ||
		!strings.Contains(said, `"canReschedule":true`) && !strings.Contains(said, `"can_reschedule":true`) {
		c.Violated("8 progress", workload, "%s was labelled, and its maintenance cannot be moved or was moved before: %q", node.Name, said)
	}
}

// stoodStill checks the deletion of a Job that stands still: its owner lets Pitstop begin such a training again, and it can go on from a
// checkpoint.
func (c *Checks) stoodStill(workload string, g *gang) {
	if !c.lately(workload, mayBeginAgain) {
		c.Violated("owner's word", workload, "%s was deleted for standing still, and no policy allows that", g.Slice)
	}
	if c.committed[g.Directory].IsZero() {
		c.Violated("8 progress", workload, "%s was deleted for standing still, and nothing is saved from which it could go on", g.Slice)
	}
}
