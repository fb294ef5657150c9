package oracle

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
)

// Rule 8, no request costs progress: what still lives is deleted, maintained or begun again only when its training is saved and does no steps.

// sparesProgress checks that a deletion of what still lives finds a complete checkpoint, and that somebody has looked for it.
func (c *Checks) sparesProgress(k call) {
	switch k.Method {
	case "PerformMaintenance", "PerformMaintenanceQueuedResource":
		c.savedFirst(k.doc.ID, k.slice+" was maintained")
	case "DeleteNode", "DeleteQueuedResource":
		if !slices.Contains([]string{"READY", "STOPPED", "REPAIRING", "RESTARTING"}, k.read.State) || !c.trainedIn(k) {
			return
		}
		if state, _ := c.API.State(k.Zone, k.slice); state == "" {
			return // it went with the others of its queued resource since it was read
		}
		saves := slices.ContainsFunc(c.slicesOf(k.doc.ID), func(f world.SliceConfig) bool { return f.Directory != "" })
		if saves && (c.unlooked(k.doc.ID, time.Time{}) || !c.complete(k.doc.Verified)) {
			c.Violated("8 progress", k.doc.ID, "%s was deleted alive (%s), and nobody had seen a complete checkpoint", k.slice, k.read.State)
		}
	}
}

// savedFirst checks that something is done only after a save that is complete, asked for in this incident.
func (c *Checks) savedFirst(workload, what string) {
	opened, last := c.record(workload).opened, time.Time{}
	for _, directory := range c.directories(workload) {
		last = later(last, c.committed[directory])
	}
	if last.Before(opened) {
		c.Violated("8 progress", workload, "%s, and the last complete checkpoint is of %s", what, last.UTC().Format(time.DateTime))
	}
}

// directories are those in which a workload saves.
func (c *Checks) directories(workload string) (all []string) {
	for _, f := range c.slicesOf(workload) {
		all = append(all, f.Directory)
	}
	for _, g := range c.gangs(workload) {
		all = append(all, g.Directory)
	}
	return all
}

// restarted checks a request for another attempt of a training that hangs: its owner wants it, and it does no step. What follows when nobody
// hears of a step of that attempt is no different from what follows after a crash.
func (c *Checks) restarted(before, after seen) {
	in := after.Open
	restarts := func(r seenRequest) bool { return r.Action == events.ActionRestart }
	if in == nil || in.Cause != events.CauseHang || before.asks(restarts) || !after.asks(restarts) || before.Open != nil && !before.Open.Watches {
		return
	}
	if len(c.gangs(after.ID)) > 0 {
		c.actions["attempt asked for, unheard"]++
	}
	if c.runs(after.ID) && !c.lately(after.ID, mayBeginAgain) {
		c.Violated("owner's word", after.ID, "%s asks for another attempt, and its owner wants to be told of a hang and no more", in.ID)
	}
	if slice := c.steps(after.ID); slice != "" {
		c.Violated("8 progress", after.ID, "%s asks for another attempt, and %s does steps", in.ID, slice)
	}
}

// mayBeginAgain is that a policy has a training that hangs begun again.
func mayBeginAgain(p policy.Policy) bool {
	return p.Hang == policy.HangRestart && p.Switches.Restart != policy.No
}

// unlooked reports whether no function has looked since a moment at what a workload has saved.
func (c *Checks) unlooked(workload string, since time.Time) bool {
	return !slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool { return c.lookedAt[f.Directory].After(since) })
}
