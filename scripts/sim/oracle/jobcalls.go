package oracle

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/gke"
)

// calledJob checks a call of ours about a Job or JobSet that has just taken effect. Sent is its body, and objects are what was there
// right before.
func (c *Checks) calledJob(ctx context.Context, cl *world.Cluster, j world.JobConfig, what string, sent []byte, objects gke.Objects) {
	inst := world.InstanceOf(ctx)
	if inst == nil || inst.Function != recreates {
		c.Violated("1 fence", "", "somebody else than recreate has %s %s", what, j.Name)
		return
	}
	var gangs []*gang
	for _, g := range cl.Gangs() {
		if g.Name == j.Name && g.In() == j.In() {
			gangs = append(gangs, c.gangOf(g))
		}
	}
	workload := gangs[0].Workload()
	doc, _, err := c.Ledger.Workload(ctx, workload)
	if err != nil {
		c.Violated("1 fence", workload, "%s was %s for a workload that cannot be read: %v", j.Name, what, err)
		return
	}
	c.jobAllowed(inst, doc, gangs, what, func(p policy.Policy) bool {
		return p.Switches.Recreate != policy.No && gangs[0].Pool().Spot || p.Switches.RecreateNonSpot != policy.No
	})
	now := c.Clock.Now()
	if doc.Incident == nil && !c.takenBackFrom(inst, gangs) {
		c.Violated("1 fence", workload, "%s was %s, and no incident is open on it", j.Name, what)
	}
	c.actions["Job "+what]++
	if what == world.Deleted {
		c.jobDeleted(c.asSeen(inst, doc), gangs, objects)
		return
	}
	for _, g := range gangs {
		for _, p := range objects.Pods {
			if p.Namespace == g.In() && p.Labels["batch.kubernetes.io/job-name"] == g.Slice && p.Status.Phase == "Running" && !cl.Dead(p.Spec.NodeName) {
				c.Violated("3 admitted", workload, "%s was created while the Pod %s of its former life runs", g.Slice, p.Name)
			}
		}
		if owner := g.lastAct(); owner.what == world.Deleted && owner.by == faults.Owner && now.Sub(owner.at) > unseen && inst.Seen.Sub(owner.at) > c.learned() {
			c.Violated("2 owner", workload, "%s was created, and its owner has deleted it at %s", g.Slice, owner.at.UTC().Format(time.DateTime))
		}
	}
	c.jobOrdered(workload, cl, j, sent)
}

// jobDeleted checks a deletion: its Jobs have failed for good.
func (c *Checks) jobDeleted(doc incident.Workload, gangs []*gang, objects gke.Objects) {
	for _, g := range gangs {
		i := slices.IndexFunc(objects.Jobs, func(j gke.Job) bool { return j.Namespace == g.In() && j.Name == g.Slice })
		if i < 0 {
			continue // its JobSet has not made it
		}
		job := &objects.Jobs[i]
		s := doc.Slice(g.Slice)
		if s == nil || !slices.ContainsFunc(doc.Effects, func(t incident.Effect) bool {
			return t.Action == events.ActionDelete && t.Concerns(g.Slice) && c.taken[t.RequestID]
		}) {
			c.Violated("9 brake", doc.ID, "%s was deleted without a slot of the brake", g.Slice)
			return
		}
		_, trains := g.Running()
		switch {
		case jobEnded(g.Gang, job, "Complete", "Completed"):
			c.Violated("3 admitted", doc.ID, "%s was deleted, and it is complete", g.Slice)
		case jobEnded(g.Gang, job, "Failed", "Failed"):
		case job.Spec.Suspend && g.suspendedSince(job.Created):
			c.Violated("2 owner", doc.ID, "%s was deleted, and its owner has suspended it", g.Slice)
		case g.Up() && trains:
			c.Violated("3 admitted", doc.ID, "%s was deleted while training ran in it, at step %d", g.Slice, g.LastStep())
		default:
			c.Violated("8 progress", doc.ID, "%s was deleted, and it had not failed: %s", g.Slice, s.State)
		}
	}
}

// marked checks a call of ours about a machine that has just taken effect. It sets the one label, once. The maintenance of the machine can
// be moved, and one training alone is on it. Its save is complete, and the owner allows the call. Sent is its body, and objects are what
// was there right before.
func (c *Checks) marked(ctx context.Context, cl *world.Cluster, machine string, sent map[string]any, objects gke.Objects) {
	i := slices.IndexFunc(objects.Nodes, func(n gke.Node) bool { return n.Name == machine })
	if i < 0 {
		c.Violated("1 fence", "", "%s was labelled, and it is no machine with TPUs", machine)
		return
	}
	node := objects.Nodes[i]
	var on []*gang
	for _, g := range cl.Gangs() {
		if slices.ContainsFunc(objects.Pods, func(p gke.Pod) bool {
			return p.Namespace == g.In() && p.Labels["batch.kubernetes.io/job-name"] == g.Slice && p.Spec.NodeName == machine && (p.Status.Phase == "Pending" || p.Status.Phase == "Running")
		}) {
			on = append(on, c.gangOf(g))
		}
	}
	if len(on) == 0 {
		c.Violated("8 progress", "", "%s was labelled, and nothing trains there", machine)
		return
	}
	workload := on[0].Workload()
	for _, g := range on {
		if g.Workload() != workload {
			c.Violated("owner's word", workload, "%s was labelled, and %s trains there too", machine, g.Workload())
		}
	}
	label := map[string]any{"metadata": map[string]any{"uid": node.UID, "labels": map[string]any{gke.LabelMaintain: "true"}}}
	if !reflect.DeepEqual(sent, label) {
		c.Violated("owner's word", workload, "%s was changed by %v", machine, sent)
	}
	if node.Labels[gke.LabelMaintain] != "" {
		c.Violated("8 progress", workload, "%s was labelled twice", machine)
	}
	said := node.Annotations[gke.AnnotationMaintenance]
	if node.Labels["cloud.google.com/active-node-maintenance"] != "" || !strings.Contains(said, `"PENDING"`) ||
		!strings.Contains(said, `"canReschedule":true`) && !strings.Contains(said, `"can_reschedule":true`) {
		c.Violated("8 progress", workload, "%s was labelled, and its maintenance cannot be moved: %q", machine, said)
	}
	c.actions["machine labelled"]++
	inst := world.InstanceOf(ctx)
	if inst == nil || inst.Function != checkpoints {
		c.Violated("1 fence", workload, "somebody else than checkpoint has labelled %s", machine)
		return
	}
	doc, _, err := c.Ledger.Workload(ctx, workload)
	if err != nil {
		c.Violated("1 fence", workload, "%s was labelled for a workload that cannot be read: %v", machine, err)
		return
	}
	c.jobAllowed(inst, doc, on, "maintained by a label of "+machine, func(p policy.Policy) bool { return p.Switches.EarlyMaintenance != policy.No })
	if doc.Incident == nil && !c.takenBackFrom(inst, on) {
		c.Violated("1 fence", workload, "%s was labelled, and no incident is open on it", machine)
	}
	if !slices.ContainsFunc(c.asSeen(inst, doc).Effects, func(t incident.Effect) bool {
		return t.Action == events.ActionMaintain && c.taken[t.RequestID]
	}) {
		c.Violated("9 brake", workload, "%s was labelled without a slot of the brake", machine)
	}
	opened, last := c.record(workload).opened, time.Time{}
	for _, g := range c.gangs(workload) {
		last = later(last, c.committed[g.Directory])
	}
	if last.Before(opened) {
		c.Violated("8 progress", workload, "%s was labelled, and the last complete checkpoint is of %s", machine, last.UTC().Format(time.DateTime))
	}
}

// jobAllowed checks that the owner allows a call, and that nothing is paused.
func (c *Checks) jobAllowed(inst *world.Instance, doc incident.Workload, gangs []*gang, what string, allows func(policy.Policy) bool) {
	switch {
	case inst.PauseRead.IsZero():
		c.Violated("owner's word", doc.ID, "%s was %s without a look at the pause", gangs[0].Name, what)
	case inst.Pause.Holds(c.Clock.Now()):
		c.Violated("owner's word", doc.ID, "%s was %s though everything is paused", gangs[0].Name, what)
	}
	if !c.jobMay(gangs[0], allows) {
		c.Violated("owner's word", doc.ID, "%s was %s, and no policy allows it", gangs[0].Name, what)
	}
}

// jobMay reports whether one of the policies holds by which a Job may be handled at present.
func (c *Checks) jobMay(g *gang, holds func(policy.Policy) bool) bool {
	within := c.Clock.Now().Add(-10*time.Minute - c.learned())
	for i := len(c.policies) - 1; i >= 0; i-- {
		p := c.policies[i]
		if p.fault == nil && holds(p.file.For(g.Policy, c.Opts.Ceiling())) {
			return true
		}
		if p.from.Before(within) {
			break
		}
	}
	return false
}

// takenBackFrom reports whether an incident may have ended since the handler of a call looked.
func (c *Checks) takenBackFrom(inst *world.Instance, gangs []*gang) bool {
	return c.Clock.Now().Sub(inst.Seen) <= unseen || c.takenBack(inst, gangs[0].Workload())
}

// jobOrdered checks the specification of a new Job or JobSet against its owner's.
func (c *Checks) jobOrdered(workload string, cl *world.Cluster, j world.JobConfig, sent []byte) {
	var made map[string]any
	if err := json.Unmarshal(sent, &made); err != nil {
		c.Violated(ruleOrdered, workload, "%s was created from what is no object: %v", j.Name, err)
		return
	}
	want, err := cl.Ordered(j)
	if err != nil || !holdsAll(want["spec"], made["spec"]) {
		c.Violated(ruleOrdered, workload, "%s was created with another specification than its owner's: %v", j.Name, err)
	}
}

// holdsAll reports whether everything in one value is in another one too. The API server adds defaults to what an owner orders.
func holdsAll(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		other, ok := b.(map[string]any)
		for key, value := range a {
			ok = ok && holdsAll(value, other[key])
		}
		return ok
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, holdsAll)
	}
	return reflect.DeepEqual(a, b)
}

// lastAct is the last that somebody did with a Job's existence.
func (g *gang) lastAct() (last act) {
	for _, a := range g.acts {
		if a.what == world.Deleted || a.what == world.Applied {
			last = a
		}
	}
	return last
}

// The entry points that call clusters and that the judge tells apart.
const (
	patrols     = "HandlePatrol"
	recreates   = "HandleRecreate"
	checkpoints = "HandleCheckpoint"
)
