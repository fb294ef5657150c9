package oracle

import (
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/provider/gke"
)

// jobs is what the judge knows of the Jobs of clusters, as their API servers have them.
type jobs struct {
	// of are the slices of each workload, by its ID.
	of map[string][]*gang
	// secrets are the values of environment variables, which nobody may show.
	secrets []string
	// lists counts the lists of a cluster that a handling begins, by its number and the cluster.
	lists map[listing]int
}

type listing struct {
	handling int
	path     string
}

// gang is what the judge knows of a slice.
type gang struct {
	*world.Gang
	// failed and complete are since when each life, by the UID of its Job, is so for good. Done is since when the Job alone is complete:
	// its JobSet may make it anew for another one that fails.
	failed, complete, done map[string]time.Time
	// over says that its JobSet has failed for good, and wasOver is when it had last. Its Job may be gone by then, or never have been made.
	// Jobs are the UIDs of the Jobs that the JobSet with the UID set has made, the last one last.
	over    bool
	wasOver time.Time
	// Former is the last Job of the JobSet before that one, and madeAnew is when the first Job of this one was seen.
	set      string
	jobs     []string
	former   string
	madeAnew time.Time
	// absent is since when no Job of its name is there; zero while one is. wasAbsent is when none was there last.
	absent, wasAbsent time.Time
	// usable is since when the present life can train, zero where it cannot; used is when one could last. Downs are all the times at which
	// one ceased to be usable.
	usable, used time.Time
	downs        []time.Time
	// unplaced is since when its Pods wait for machines, all of them; zero while they do not.
	unplaced time.Time
	// opened is when the attempt was begun that ran as the last incident opened, or had run last.
	opened time.Time
	// told is when an incident ended last in which the document had it as unusable.
	told time.Time
	// crashed are the Pods, by UID, that ended with an error of their own, and when; marked is when a machine of it announced maintenance
	// last, and ends when one of its pool ended as planned. Planned are the ends that its machines announced, each with when one did last.
	crashed map[string]time.Time
	marked  time.Time
	planned map[time.Time]time.Time
	ends    time.Time
	// acts are what its owner did with it.
	acts []act
	// befell is what happened to it.
	befell []happened
	// causes are why Google took its machines.
	causes []cause
	// on are the machines with Pods of it, and left is when it was on each of the others last.
	on   []string
	left map[string]time.Time
}

// act is what somebody did with a Job or JobSet.
type act struct {
	at       time.Time
	what, by string
}

// watchJobs has the judge follow the clusters of its world.
func (c *Checks) watchJobs() {
	c.jobs = jobs{of: map[string][]*gang{}, lists: map[listing]int{}}
	for _, g := range c.Gangs() {
		one := &gang{
			Gang: g, failed: map[string]time.Time{}, complete: map[string]time.Time{}, done: map[string]time.Time{},
			crashed: map[string]time.Time{}, planned: map[time.Time]time.Time{}, left: map[string]time.Time{},
		}
		c.jobs.of[g.Workload()] = append(c.jobs.of[g.Workload()], one)
		if g.Secret != "" && !slices.Contains(c.jobs.secrets, g.Secret) {
			c.jobs.secrets = append(c.jobs.secrets, g.Secret)
		}
	}
}

// gangs are the slices of a workload, if it trains in a cluster.
func (c *Checks) gangs(workload string) []*gang { return c.jobs.of[workload] }

// gangOf is what the judge knows of a slice of the world.
func (c *Checks) gangOf(g *world.Gang) *gang {
	for _, one := range c.jobs.of[g.Workload()] {
		if one.Gang == g {
			return one
		}
	}
	return nil
}

// Befell takes note of a trouble of a Job.
func (c *Checks) Befell(what string, g *world.Gang) {
	c.happen[what]++
	one := c.gangOf(g)
	one.befell = append(one.befell, happened{c.Clock.Now(), what})
	r := c.record(g.Workload())
	r.happened = append(r.happened, happened{c.Clock.Now(), what})
}

// machineTaken takes note of why Google took a machine away, for all slices that have Pods there, or had some until shortly before.
func (c *Checks) machineTaken(cl *world.Cluster, machine string, why events.Cause) {
	for _, g := range cl.Gangs() {
		one := c.gangOf(g)
		if why == events.CauseEnd && strings.Contains(machine, "-"+g.JobConfig.Pool+"-") {
			one.ends = c.Clock.Now()
		}
		there := slices.Contains(cl.Machines(g), machine)
		if there || one.mayHaveEnded(machine, why, c.Clock.Now()) {
			one.causes = append(one.causes, cause{at: c.Clock.Now(), cause: why})
		}
		if there && why == events.CauseEnd {
			c.Befell("machine ended as planned", g)
		}
	}
}

// follows takes note of the machines that it is on now.
func (g *gang) follows(on []string, now time.Time) {
	for _, m := range g.on {
		g.left[m] = now
	}
	g.on = on
}

// mayHaveEnded reports whether the loss of a machine may have ended a Pod of it: the Pod is there, or it ended shortly before Google took a
// Spot machine back. Google says that up to 120 s before, and the kubelet ends the Pods then.
// https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms
func (g *gang) mayHaveEnded(machine string, why events.Cause, now time.Time) bool {
	at, was := g.left[machine]
	return slices.Contains(g.on, machine) || was && why == events.CausePreemption && now.Sub(at) <= longestNotice
}

// longestNotice is how long before Google takes a Spot machine back it says so at most.
const longestNotice = 2 * time.Minute

// acted takes note of what somebody does with a Job or JobSet.
func (c *Checks) acted(cl *world.Cluster, j world.JobConfig, what, by string) {
	for _, g := range cl.Gangs() {
		if g.Name != j.Name || g.In() != j.In() {
			continue
		}
		one := c.gangOf(g)
		one.acts = append(one.acts, act{c.Clock.Now(), what, by})
	}
}

// suspendedSince reports whether a person had the Job or JobSet suspended at that time, or has suspended it since. A JobSet that is
// suspended makes its Jobs suspended.
func (g *gang) suspendedSince(from time.Time) bool {
	for _, a := range slices.Backward(g.acts) {
		switch {
		case a.what == world.Suspended && a.by != world.Kueue:
			return true
		case a.at.Before(from) && (a.what == world.Resumed || a.what == world.Applied):
			return false
		}
	}
	return false
}

// changedIn follows what has changed in a cluster.
func (c *Checks) changedIn(cl *world.Cluster) {
	for _, g := range cl.Gangs() {
		c.changedOf(cl, c.gangOf(g))
	}
}

// changedOf follows a slice in a cluster.
func (c *Checks) changedOf(cl *world.Cluster, g *gang) {
	job, now := g.Job(), c.Clock.Now()
	g.follows(cl.Machines(g.Gang), now)
	if waits := cl.Unplaced(g.Gang); !waits {
		g.unplaced = time.Time{}
	} else if g.unplaced.IsZero() {
		g.unplaced = now
		c.mustHear(g, now)
	}
	c.setEnded(g, now)
	if job == nil {
		if !g.usable.IsZero() {
			g.isDown(now)
		}
		if g.wasAbsent = now; g.absent.IsZero() {
			g.absent = now
		}
		return
	}
	c.jobChanged(cl, g, job, now)
}

// jobChanged follows the Job of a slice.
func (c *Checks) jobChanged(cl *world.Cluster, g *gang, job *gke.Job, now time.Time) {
	if !g.absent.IsZero() {
		g.wasAbsent, g.absent = now, time.Time{}
	}
	if g.Up() && g.usable.IsZero() {
		g.usable = now
	} else if !g.Up() && !g.usable.IsZero() {
		g.isDown(now)
	}
	for _, uid := range cl.Crashed(g.Gang) {
		if g.crashed[uid].IsZero() {
			g.crashed[uid] = now
		}
	}
	if cl.Marked(g.Gang) {
		g.marked = now
	}
	if at := cl.Ends(g.Gang); !at.IsZero() {
		g.planned[at] = now
	}
	if _, known := g.complete[job.UID]; !known && jobEnded(g.Gang, job, "Complete", "Completed") {
		g.complete[job.UID] = now
	}
	if _, known := g.done[job.UID]; !known && has(job.Status.Conditions, "Complete") {
		g.done[job.UID] = now
	}
	if _, known := g.failed[job.UID]; !known && jobEnded(g.Gang, job, "Failed", "Failed") {
		g.failed[job.UID] = now
		c.mustKnow(g, job.UID, now)
	}
}

// setEnded follows whether the JobSet of a slice has failed for good. Its controller then deletes the Jobs that have not ended.
func (c *Checks) setEnded(g *gang, now time.Time) {
	set := g.Set()
	over := set != nil && has(set.Status.Conditions, "Failed")
	if over && !g.over {
		last := g.goesWith(set.UID, now)
		if job := g.Job(); job == nil {
			c.mustKnow(g, last, now)
		} else {
			delete(g.failed, job.UID) // it is still to be read, and has to be known
		}
	}
	if over || g.over {
		g.wasOver = now
	}
	if g.over = over; set != nil && g.Job() != nil {
		g.makes(set.UID, g.Job().UID, now)
	}
}

// makes notes a Job that a JobSet has made.
func (g *gang) makes(set, job string, now time.Time) {
	if g.set != set {
		g.former, g.madeAnew = g.lastJob(), now
		g.set, g.jobs = set, nil
	}
	if !slices.Contains(g.jobs, job) {
		g.jobs = append(g.jobs, job)
	}
}

// goesWith takes every life that a JobSet made for failed with it: the last one, which nobody may have seen since, and each before, which may
// be the last that anybody has read. Soon after the JobSet was made that may still be a life of the JobSet before. It returns the last one.
func (g *gang) goesWith(set string, now time.Time) (last string) {
	if g.set == set {
		for _, job := range g.jobs {
			g.failed[job] = now
		}
		if g.former != "" && now.Sub(g.madeAnew) <= latelyRead {
			g.failed[g.former] = now
		}
	}
	return g.lastJob()
}

// lastJob is the last Job that its JobSet has made; empty where none was seen.
func (g *gang) lastJob() string {
	if n := len(g.jobs); n > 0 {
		return g.jobs[n-1]
	}
	return ""
}

// isLost reports whether a life has failed for good: that of its Job, or with no ID what was to come of its JobSet.
func (g *gang) isLost(life string, now time.Time) bool {
	if life == "" {
		return g.over || !g.wasOver.IsZero() && now.Sub(g.wasOver) <= latelyRead
	}
	return !g.failed[life].IsZero()
}

// isDown takes note that a slice that was usable is so no more.
func (g *gang) isDown(now time.Time) {
	g.usable, g.used, g.downs = time.Time{}, now, append(g.downs, now)
}

// jobEnded reports whether a Job has ended so for good: by itself, or as a part of its JobSet.
func jobEnded(g *world.Gang, job *gke.Job, how, ofSet string) bool {
	if g.Slices == 0 {
		return has(job.Status.Conditions, how)
	}
	set := g.Set()
	return set != nil && has(set.Status.Conditions, ofSet)
}

// has reports whether a condition holds.
func has(all []gke.Condition, what string) bool {
	return slices.ContainsFunc(all, func(x gke.Condition) bool { return x.Type == what && x.Status == "True" })
}

// actedSince reports whether the owner of a Job, or one of our calls, has done anything with it since.
func (c *Checks) actedSince(g *gang, since time.Time) bool {
	return slices.ContainsFunc(g.acts, func(a act) bool { return !a.at.Before(since) && a.by != world.Kueue })
}

// stepSince is the last step in a life of the attempt that was begun at a moment, and of those after it.
func (g *gang) stepSince(life string, began time.Time) int64 {
	return g.ReachedIn(life, began.Add(-time.Nanosecond))
}

// endsNear reports whether its machines have announced an end since a moment that is to come soon, or came since then.
func (g *gang) endsNear(from, now time.Time) bool {
	for end, said := range g.planned {
		if !said.Before(from) && end.After(from) && end.Before(now.Add(longestLead)) {
			return true
		}
	}
	return false
}

// longestLead is how long before a planned end its incident opens at most: what is saved then may have to be waited for.
const longestLead = 2 * time.Hour

// lately is how long after a change in a cluster a document may still be written that rests on a reading from before.
const latelyRead = 15 * time.Minute

// lastAct is the last that somebody did with a Job's existence.
func (g *gang) lastAct() (last act) {
	for _, a := range g.acts {
		if a.what == world.Deleted || a.what == world.Applied {
			last = a
		}
	}
	return last
}
