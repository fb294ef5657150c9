package oracle

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
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
	now := c.Clock.Now()
	for _, g := range cl.Gangs() {
		one, job := c.gangOf(g), g.Job()
		one.follows(cl.Machines(g), now)
		if waits := cl.Unplaced(g); !waits {
			one.unplaced = time.Time{}
		} else if one.unplaced.IsZero() {
			one.unplaced = now
			c.mustHear(one, now)
		}
		c.setEnded(one, now)
		if job == nil {
			if !one.usable.IsZero() {
				one.isDown(now)
			}
			if one.wasAbsent = now; one.absent.IsZero() {
				one.absent = now
			}
			continue
		}
		if !one.absent.IsZero() {
			one.wasAbsent, one.absent = now, time.Time{}
		}
		if g.Up() && one.usable.IsZero() {
			one.usable = now
		} else if !g.Up() && !one.usable.IsZero() {
			one.isDown(now)
		}
		for _, uid := range cl.Crashed(g) {
			if one.crashed[uid].IsZero() {
				one.crashed[uid] = now
			}
		}
		if cl.Marked(g) {
			one.marked = now
		}
		if at := cl.Ends(g); !at.IsZero() {
			one.planned[at] = now
		}
		if _, known := one.complete[job.UID]; !known && jobEnded(g, job, "Complete", "Completed") {
			one.complete[job.UID] = now
		}
		if _, known := one.done[job.UID]; !known && has(job.Status.Conditions, "Complete") {
			one.done[job.UID] = now
		}
		if _, known := one.failed[job.UID]; !known && jobEnded(g, job, "Failed", "Failed") {
			one.failed[job.UID] = now
			c.mustKnow(one, job.UID, now)
		}
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

// rightWait checks what people are told of a wait: the slice has lacked a machine for as long, or its deletion has not ended.
func (c *Checks) rightWait(w incident.Workload) {
	now := c.Clock.Now()
	waits := slices.ContainsFunc(c.gangs(w.ID), func(g *gang) bool {
		s, job := w.Slice(g.Slice), g.Job()
		if s == nil || s.WaitingSince().IsZero() || now.Sub(s.WaitingSince()) < incident.RemindFirst {
			return false
		}
		leaves := job != nil && job.Deleted != nil || g.Set() != nil && g.Set().Deleted != nil
		return g.usable.IsZero() && (leaves || s.Condition == incident.Creating) || g.used.After(now.Add(-latelyRead)) || g.usable.After(now.Add(-latelyRead))
	})
	if !waits {
		c.Violated("no wait made up", w.ID, "people are told of a wait, and no slice has waited for %s: %+v", events.Span(incident.RemindFirst), w.Slices)
	}
}

// mustHear checks, when its time is over, that a person has heard of a slice that waits for machines while no incident is open. Another
// slice of its workload may have waited before it: the next word comes with the next reminder.
func (c *Checks) mustHear(g *gang, since time.Time) {
	c.Clock.At(since.Add(incident.RemindFirst+tellWithin+c.learned()), func() {
		workload, now := g.Workload(), c.Clock.Now()
		if !g.unplaced.Equal(since) || now.Sub(since)-c.releases.Down(since) <= incident.RemindFirst+tellWithin || c.releases.Documents[workload] {
			return
		}
		doc, _, err := c.Ledger.Workload(context.Background(), workload)
		if err != nil {
			c.Violated("no wait untold", workload, "%s has waited for machines since %s, and no document knows it: %v", g.Slice, since.UTC().Format(time.DateTime), err)
			return
		}
		s := doc.Slice(g.Slice)
		if doc.Incident != nil || now.Sub(doc.Ended) < seenWithin || s != nil && s.Condition == incident.Unhealthy {
			return // an incident tells of it, or will
		}
		if s == nil || s.WaitingSince().IsZero() || s.WaitingSince().Sub(since).Abs() > time.Minute || doc.WaitTold.Before(since.Add(-incident.RemindEvery)) {
			c.Violated("no wait untold", workload, "%s has waited for machines since %s, and people were told last at %s: %+v", g.Slice, since.UTC().Format(time.DateTime), doc.WaitTold.UTC().Format(time.DateTime), s)
		}
	})
}

// mustKnow checks, when its time is over, that somebody knows that a life has failed for good.
func (c *Checks) mustKnow(g *gang, uid string, failed time.Time) {
	used, since := !g.usable.IsZero() || len(g.befell) > 0, g.used
	c.Clock.At(failed.Add(tellWithin+c.learned()), func() {
		workload := g.Workload()
		if c.Clock.Now().Sub(failed)-c.releases.Down(failed) <= tellWithin || c.actedSince(g, failed) || c.releases.Documents[workload] {
			return
		}
		doc, _, err := c.Ledger.Workload(context.Background(), workload)
		s := doc.Slice(g.Slice)
		if err != nil || s == nil {
			c.Violated("no trouble untold", workload, "%s has failed for good at %s, and no document knows it: %v", g.Slice, failed.UTC().Format(time.DateTime), err)
			return
		}
		expired := s.Condition == incident.Gone && !g.absent.IsZero()
		unseen := g.over && g.Job() == nil // nobody can read a Job that went with its JobSet
		if s.Incarnation.ID != uid && !unseen || s.Condition != incident.Lost && !expired {
			c.Violated("no trouble untold", workload, "%s has failed for good at %s, and the document has it as %s in its life %s", g.Slice, failed.UTC().Format(time.DateTime), s.Condition, s.Incarnation.ID)
			return
		}
		r := c.record(workload)
		told := g.told.After(since) // its owner knows that it has not been usable since then, and has not acted
		if used && !s.Used.IsZero() && doc.Incident == nil && !told && r.opened.Before(failed.Add(-incident.HealFor)) {
			c.Violated("no trouble untold", workload, "%s has failed for good at %s, and no incident tells it: the last one opened at %s", g.Slice, failed.UTC().Format(time.DateTime), r.opened.UTC().Format(time.DateTime))
		}
	})
}

// actedSince reports whether the owner of a Job, or one of our calls, has done anything with it since.
func (c *Checks) actedSince(g *gang, since time.Time) bool {
	return slices.ContainsFunc(g.acts, func(a act) bool { return !a.at.Before(since) && a.by != world.Kueue })
}

// jobMoved checks one step of a workload that trains in a cluster.
func (c *Checks) jobMoved(r *record, before, after incident.Workload) {
	for _, s := range after.Slices {
		was := incident.Slot{}
		if old := before.Slice(s.Name); old != nil {
			was = *old
		}
		if s.Condition != was.Condition || s.Incarnation.ID != was.Incarnation.ID || s.IsReleased() != was.IsReleased() {
			c.rightJob(after, s, was)
		}
		c.rightCrew(after, s, was)
	}
	if !after.WaitTold.Equal(before.WaitTold) {
		c.rightWait(after)
	}
	if v := after.Progress; v.VerifiedURI != "" && v.VerifiedURI != before.Progress.VerifiedURI && !c.complete(v.VerifiedURI) {
		c.Violated("8 progress", after.ID, "%s is called verified, and it is not complete", v.VerifiedURI)
	}
	if after.Crew.Finished && !before.Crew.Finished && !c.jobDone(after.ID) {
		c.Violated(ruleTruth, after.ID, "the training is called finished, and it is not")
	}
	if in := after.Closed; in != nil && in.ID != r.done {
		r.done = in.ID
		if in.ID != r.open {
			c.jobOpened(r, after, in)
		}
		c.jobClosed(r, after, in)
		r.closed = c.Clock.Now()
		if in.Outcome == incident.Resumed {
			r.saved = min(r.saved, c.jobStep(after.ID)) // where it goes on from further back, no more than that is saved of it
		}
	}
	if in := after.Incident; in != nil {
		if in.Deadline.IsZero() && in.Phase != incident.Approving && in.Phase != incident.PhaseCreating {
			c.Violated("10 nothing lost", after.ID, "phase %s has no deadline", in.Phase)
		}
		if in.ID != r.open {
			c.jobOpened(r, after, in)
		}
	}
	c.jobRestarted(before, after)
}

// lately is how long after a change in a cluster a document may still be written that rests on a reading from before.
const latelyRead = 15 * time.Minute

// rightJob holds what a document says of a slice for the first time against its cluster.
func (c *Checks) rightJob(w incident.Workload, s, was incident.Slot) {
	i := slices.IndexFunc(c.gangs(w.ID), func(g *gang) bool { return g.Slice == s.Name && g.Scope == s.Zone })
	if i < 0 {
		c.Violated(ruleTruth, w.ID, "%s in %s is no Job of it", s.Name, s.Zone)
		return
	}
	g, now := c.gangs(w.ID)[i], c.Clock.Now()
	fresh := s.Condition != was.Condition || s.Incarnation.ID != was.Incarnation.ID
	switch id := s.Incarnation.ID; {
	case !fresh:
	case s.Condition == incident.Lost && !g.isLost(id, now):
		c.Violated(ruleTruth, w.ID, "%s is called lost in its life %s, and its Job has not failed for good", s.Name, id)
	case s.Condition == incident.Stopped && !g.suspendedSince(s.Incarnation.Created):
		c.Violated(ruleTruth, w.ID, "%s is called stopped, and no owner has suspended it", s.Name)
	case s.Condition == incident.Done && g.complete[id].IsZero() && g.done[id].IsZero():
		c.Violated(ruleTruth, w.ID, "%s is called done, and its Job is not complete", s.Name)
	case s.Condition == incident.Gone && g.absent.IsZero() && now.Sub(g.wasAbsent) > latelyRead && g.IsThere():
		c.Violated(ruleTruth, w.ID, "%s is called gone, and its Job is there", s.Name)
	}
	if s.IsReleased() && !was.IsReleased() && !g.isOwners(s.Incarnation) && !c.blurred(w.ID) {
		c.Violated(ruleTruth, w.ID, "%s is called its owner's, and nobody has deleted it or made it anew", s.Name)
	}
}

// isOwners reports whether a life of a Job belongs to its owner: they have deleted it or made the Job anew since it began, or they had deleted
// the life that Pitstop replaced. Word of that may come late.
func (g *gang) isOwners(life events.Incarnation) bool {
	theirs := false // the owner has deleted the last life
	for _, a := range g.acts {
		if a.what != world.Deleted && a.what != world.Applied {
			continue
		}
		made := a.what == world.Applied && a.at.Truncate(time.Second).Equal(life.Created) // the API gives seconds
		switch owner := a.by == faults.Owner; {
		case owner && a.at.After(life.Created), made && theirs:
			return true
		case a.what == world.Applied:
			theirs = false
		case owner:
			theirs = true
		}
	}
	return false
}

// rightCrew checks that a life whose crew is said to have written a line had one: nothing else shows that a line of a former life was taken
// for one of the newest.
func (c *Checks) rightCrew(w incident.Workload, s, was incident.Slot) {
	fresh := !s.Spoke.IsZero() && (was.Spoke.IsZero() || !s.Incarnation.Same(was.Incarnation))
	i := slices.IndexFunc(c.gangs(w.ID), func(g *gang) bool { return g.Slice == s.Name && g.Scope == s.Zone })
	if fresh && i >= 0 && !c.gangs(w.ID)[i].RanIn(s.Incarnation.ID) {
		c.Violated(ruleTruth, w.ID, "a crew is said to have written in %s in its life %s, and no training was begun there", s.Name, s.Incarnation.ID)
	}
}

func (c *Checks) jobOpened(r *record, w incident.Workload, in *incident.Incident) {
	c.Incidents++
	r.open, r.opened, r.openedFor, r.stood = in.ID, c.Clock.Now(), in.Cause, c.jobStandsOrUnheard(r, w.ID)
	c.jobStands(r, w.ID)
	w.Incident = in
	c.decided(w, r.opened)
}

// jobClosed checks the end of an incident of a workload that trains in a cluster: what it says is so, and its cause is one of what really
// happened.
func (c *Checks) jobClosed(r *record, w incident.Workload, in *incident.Incident) {
	c.ended[string(in.Outcome)]++
	c.causes[string(in.Cause)]++
	for _, g := range c.gangs(w.ID) {
		if s := w.Slice(g.Slice); s != nil && s.Condition != incident.Ready {
			g.told = c.Clock.Now()
		}
	}
	trouble := r.trouble()
	if c.ends[trouble] == nil {
		c.ends[trouble] = map[string]int{}
	}
	how := string(in.Outcome)
	if in.Outcome != incident.Resumed {
		how += " (" + string(in.Code) + ")"
	}
	c.ends[trouble][how]++
	if does := policy.StartStopped; in.Switches.Level(does) != policy.No && in.Limits[does] == "" {
		c.Violated("owner's word", w.ID, "%s opened with %s allowed, and there is no call for that", in.ID, does)
	}
	for _, g := range c.gangs(w.ID) {
		job := g.Job()
		if in.Outcome != incident.Resumed || job == nil {
			continue
		}
		if failed := g.failed[job.UID]; !failed.IsZero() && c.Clock.Now().Sub(failed) > latelyRead {
			c.Violated("ends", w.ID, "%s ended resumed, and %s has failed for good at %s", in.ID, g.Slice, failed.UTC().Format(time.DateTime))
		}
	}
	if in.Outcome == incident.Resumed && in.ConfirmedBy == incident.ByStep && !c.jobGoesPast(end{r, w, in}) && !c.jobDone(w.ID) && !c.blurred(w.ID) {
		c.Violated("ends", w.ID, "%s ended resumed by a step, and none has been done past %d, which its crew had told was saved", in.ID, r.baseline)
	}
	if down := c.jobDown(w.ID, in.Opened); in.Outcome == incident.Resumed && in.ConfirmedBy == incident.ByCheckpoint && !c.savedSince(w.Directory, down) {
		c.Violated("ends", w.ID, "%s ended resumed by a checkpoint, and none is complete since %s", in.ID, down.UTC().Format(time.DateTime))
	}
	if in.Outcome == incident.Released && !c.releasedBy(w, in) {
		c.Violated("ends", w.ID, "%s ended released, and its owner has done nothing since %s", in.ID, in.Opened.UTC().Format(time.DateTime))
	}
	// A person's retry opens an incident for what an earlier one had told.
	retried := c.did(w.ID, in.Opened.Add(-time.Second), func(d deed) bool { return d.kind == saidRetry && !d.at.After(in.Opened) })
	hung := in.Cause == events.CauseHang && r.stood
	if !retried && !hung && !c.strucks(w, in)[in.Cause] {
		c.Violated("right cause", w.ID, "%s ended %s for %s, and that has not happened: %v", in.ID, how, in.Cause, c.strucks(w, in))
	}
}

// jobDone reports whether the training of one of the slices of a workload has ended well, or its Job is complete.
func (c *Checks) jobDone(workload string) bool {
	return slices.ContainsFunc(c.gangs(workload), func(g *gang) bool { return len(g.complete) > 0 || !g.FinishedAt().IsZero() })
}

// jobGoesPast reports whether a training with a crew has gone on past the saved step since its trouble. At the end of the time in which it
// should, any step is enough. The life counts that the document knows as the newest: what a former one did confirms nothing.
func (c *Checks) jobGoesPast(e end) bool {
	since := c.jobStruck(e)
	return slices.ContainsFunc(c.gangs(e.w.ID), func(g *gang) bool {
		s := e.w.Slice(g.Slice)
		if g.NoCrew || s == nil {
			return false
		}
		life := s.Incarnation.ID
		owed := c.Clock.Now().Sub(e.in.Opened) >= incident.HealFor && g.Ran().ID == life && !g.Stepping().IsZero()
		return g.ReachedIn(life, since) > e.baseline || g.stepSince(life, g.opened) > e.at || owed
	})
}

// jobStruck is when the training of a workload first ended after the incident before: the opening of this one where it has not by then.
func (c *Checks) jobStruck(e end) (first time.Time) {
	first = e.in.Opened
	for _, g := range c.gangs(e.w.ID) {
		for _, at := range slices.Concat(g.downs, g.Failures()) {
			if at.After(e.closed) && at.Before(first) {
				first = at
			}
		}
	}
	return first
}

// jobStands takes note of how far a training is as its incident opens: the step that its crew has told was saved, the attempts, and their
// last step.
func (c *Checks) jobStands(r *record, workload string) {
	r.baseline, r.at = r.saved, c.jobStep(workload)
	for _, g := range c.gangs(workload) {
		g.opened = g.Began()
	}
}

// jobDown is when a slice of a workload ceased to be usable last by a moment, or its training failed. It is that moment where none ever did.
func (c *Checks) jobDown(workload string, by time.Time) (last time.Time) {
	for _, g := range c.gangs(workload) {
		for _, at := range slices.Concat(g.downs, g.Failures()) {
			if !at.After(by) && at.After(last) {
				last = at
			}
		}
	}
	if last.IsZero() {
		return by
	}
	return last
}

// stepSince is the last step in a life of the attempt that was begun at a moment, and of those after it.
func (g *gang) stepSince(life string, began time.Time) int64 {
	return g.ReachedIn(life, began.Add(-time.Nanosecond))
}

// jobStep is the last step of the attempts on a workload that run, or ran last, as far as a crew tells of them.
func (c *Checks) jobStep(workload string) (step int64) {
	for _, g := range c.gangs(workload) {
		if !g.NoCrew {
			step = max(step, g.stepSince(g.Ran().ID, g.Began()))
		}
	}
	return step
}

// jobStandsOrUnheard reports whether no slice of a workload has done steps for a while, or no line of a step has come that is as young:
// nothing but lines tells what a training in Pods does.
func (c *Checks) jobStandsOrUnheard(r *record, workload string) bool {
	now := c.Clock.Now()
	stepping := slices.ContainsFunc(c.gangs(workload), func(g *gang) bool {
		since := g.Stepping()
		return !g.NoCrew && !since.IsZero() && now.Sub(since) > steppingFor
	})
	return !stepping || now.Sub(r.heard) >= incident.HangFor
}

// JobMends checks that somebody was notified of a training in Pods that stands still. It is called when its owner comes to mend it.
func (c *Checks) JobMends(g *world.Gang) {
	id := g.Workload()
	r, since := c.record(id), g.Still()
	said := c.did(id, since, func(d deed) bool { return d.kind == saidCancel })
	if since.IsZero() || r.heard.IsZero() || r.open != r.done || r.closed.After(since) || said || c.jobDone(id) {
		return
	}
	since = later(since, r.heard)
	for _, one := range c.gangs(id) {
		if one.usable.IsZero() {
			return
		}
		since = later(since, one.usable)
	}
	usual := max(incident.NoGapFor, 3*r.gap) + incident.Grace + time.Hour
	if silent := c.Clock.Now().Sub(since); silent-c.releases.Down(since) > usual {
		c.Violated("no hang unseen", id, "%s has stood still for %s, and nobody was notified", g.Slice, silent.Round(time.Minute))
	}
}

// jobRestarted checks that a training in Pods which hangs is asked for another attempt only where its owner wants it, and where it does no
// step: what it saves shows that, whatever its lines say. What follows when nobody hears of a step of that attempt is as after a crash.
func (c *Checks) jobRestarted(before, after incident.Workload) {
	if !asksUnheard(before, after) {
		return
	}
	in := after.Incident
	c.actions["attempt asked for, unheard"]++
	for _, g := range c.gangs(after.ID) {
		if !c.jobMay(g, func(p policy.Policy) bool { return p.Hang == policy.HangRestart && p.Switches.Restart != policy.No }) {
			c.Violated("owner's word", after.ID, "%s asks for another attempt, and its owner wants to be told of a hang and no more", in.ID)
		}
		if since := g.Stepping(); !since.IsZero() && c.Clock.Now().Sub(since) > steppingFor {
			c.Violated("8 progress", after.ID, "%s asks for another attempt, and %s does steps", in.ID, g.Slice)
		}
	}
}

// asksUnheard reports whether the watch over a hang ends with the request for another attempt.
func asksUnheard(before, after incident.Workload) bool {
	in, was := after.Incident, before.Incident
	restarts := func(effect incident.Effect) bool { return effect.Action == events.ActionRestart }
	return in != nil && in.Cause == events.CauseHang && was != nil && was.OnlyWatched && slices.ContainsFunc(after.Effects, restarts)
}

// releasedBy reports whether the owner of a workload has deleted or suspended it, made it anew, or seen it finish.
func (c *Checks) releasedBy(w incident.Workload, in *incident.Incident) bool {
	from := in.Opened.Add(-c.learned() - incident.Grace)
	return slices.ContainsFunc(c.gangs(w.ID), func(g *gang) bool {
		for _, at := range g.complete {
			if at.After(from) {
				return true
			}
		}
		return slices.ContainsFunc(g.acts, func(a act) bool {
			return a.at.After(from) && (a.by == faults.Owner || in.Code == incident.CodeCancelled && a.what == string(saidCancel))
		})
	})
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

// strucks are the causes of what really happened to a workload around an incident, as far as its cluster can show it: of a machine that
// is gone the cluster does not say why.
func (c *Checks) strucks(w incident.Workload, in *incident.Incident) map[events.Cause]bool {
	from := in.Opened
	for _, g := range c.gangs(w.ID) {
		if !g.used.IsZero() && g.used.Before(from) {
			from = g.used // a person may try again what has been lost for long
		}
	}
	from = from.Add(-2*incident.Grace - c.learned())
	all := map[events.Cause]bool{}
	for _, g := range c.gangs(w.ID) {
		lost := slices.ContainsFunc(g.acts, func(a act) bool { return a.at.After(from) && (a.by == faults.Owner || a.by == world.Kueue) })
		for _, h := range g.befell {
			until := h.at
			if strings.HasPrefix(h.what, "machine silent") {
				until = until.Add(longestSilence)
			}
			failed := h.what == podFails // its Job may be gone by the end of the moment, and the Pod with it
			lost = lost || until.After(from) && !failed && h.what != "training in a Job crashes"
			all[events.CauseCrash] = all[events.CauseCrash] || failed && h.at.After(from)
			if h.at.After(from) && strings.HasPrefix(h.what, "machine broken") {
				all[events.CauseHostError] = true
			}
		}
		for _, x := range g.causes {
			if x.at.After(from) {
				lost, all[x.cause] = true, true
			}
		}
		for _, crashed := range g.crashed {
			if crashed.After(from) {
				all[events.CauseCrash] = true
			}
		}
		for _, failed := range g.Failures() {
			if failed.After(from) {
				all[events.CauseCrash] = true
			}
		}
		if g.marked.After(from) {
			all[events.CauseMaintenance] = true
		}
		if g.ends.After(from) || g.endsNear(from, c.Clock.Now()) {
			all[events.CauseEnd] = true
		}
		if lost {
			all[events.CauseUnknown] = true
			all[map[bool]events.Cause{true: events.CausePreemption, false: events.CauseTerminated}[g.Pool().Spot]] = true
		}
		all[events.CauseUnknown] = all[events.CauseUnknown] || all[events.CauseCrash]
	}
	return all
}

// podFails is that a Pod ends with an error.
const podFails = "Pod fails"

// longestSilence is how long a machine is silent at most.
const longestSilence = 3 * time.Hour

// Asks follows the calls of a cluster: patrol lists what there is once, and changes nothing.
func (c *Checks) Asks(path string, r *http.Request) {
	inst := world.InstanceOf(r.Context())
	labels := r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/api/v1/nodes/") && inst.Function == checkpoints
	switch {
	case labels:
		return
	case r.Method != http.MethodGet && inst.Function != recreates:
		c.Violated("owner's word", "", "%s: %s %s in cluster %s", inst.Function, r.Method, r.URL.Path, path)
		return
	case inst.Function != patrols || inst.Crashed || r.URL.Query().Has("continue"):
		return
	}
	listed := []string{"jobs", "jobsets", "pods", "nodes", "slices", "provisioningrequests", "workloads", "podtemplates"} // the last three where a Job waits, or in a sweep
	if plural := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; !slices.Contains(listed, plural) {
		c.Violated("four lists", "", "%s reads %s of cluster %s alone", inst.Function, r.URL.Path, path)
	}
	of := listing{inst.Number, path + r.URL.Path}
	if c.jobs.lists[of]++; c.jobs.lists[of] > mostLists {
		c.Violated("four lists", "", "%s lists %s of cluster %s %d times", inst.Function, r.URL.Path, path, c.jobs.lists[of])
	}
}

// mostLists is how often a handling begins each list of a cluster at most: once more where the rest has expired, and Jobs once more where
// a Pod runs whose Job is not listed. A sweep lists the cluster again, for what is left over in it.
const mostLists = 2 * 3

// shows checks that nothing shows the value of an environment variable.
func (c *Checks) shows(where, text string) {
	for _, s := range c.jobs.secrets {
		if strings.Contains(text, s) {
			c.Violated("no secret shown", "", "%s shows the value of an environment variable: %.200s", where, text)
		}
	}
}

// Write implements io.Writer: it reads what the functions log.
func (c *Checks) Write(line []byte) (int, error) {
	c.shows("a log line", string(line))
	return len(line), nil
}

// jobsAtPeace checks, at the end, that what a document says of each Job is so.
func (c *Checks) jobsAtPeace() {
	for id, all := range c.jobs.of {
		doc, _, err := c.Ledger.Workload(context.Background(), id)
		if errors.Is(err, ledger.ErrNotFound) {
			c.Violated("no trouble untold", id, "no document knows it")
			continue
		}
		if err != nil {
			continue // the other checks tell it
		}
		for _, g := range all {
			s, job := doc.Slice(g.Slice), g.Job()
			if s == nil || job == nil || !g.Up() || c.Clock.Now().Sub(g.usable) < seenWithin {
				continue
			}
			if s.Condition != incident.Ready || s.Incarnation.ID != job.UID {
				c.Violated(ruleTruth, id, "%s trains in its life %s, and the document has it as %s in %s", g.Slice, job.UID, s.Condition, s.Incarnation.ID)
			}
		}
	}
}
