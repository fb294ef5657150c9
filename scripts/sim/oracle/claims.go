package oracle

import (
	"fmt"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// atOnceWith reports whether a person ordered a slice while our own order was under way: the two did not see each other.
func (c *Checks) atOnceWith(ours deed, slice string) bool {
	return slices.ContainsFunc(c.past[slice], func(d deed) bool {
		return d.kind == ordered && c.person(d) && ours.at.Sub(d.at).Abs() < unseen
	})
}

// ruleTruth is that a document says nothing of its owner, of Google or of the training that is not so.
const ruleTruth = "what is said is so"

// claims holds what one step of a document says for the first time against what the world knows: nothing is released, finished,
// stopped or left to its owner that its owner has not released, finished, stopped or ordered.
func (c *Checks) claims(before, after incident.Workload) {
	for _, s := range after.Slices {
		was := incident.Slot{}
		if old := before.Slice(s.Name); old != nil {
			was = *old
		}
		if s.IsReleased() && !was.IsReleased() && !c.givenUp(after, s) {
			c.Violated(ruleTruth, after.ID, "%s is called its owner's, and nobody has deleted it or taken it over: it is %s", s.Name, c.stateOf(s.Name))
		}
		if s.Stop.By != "" && s.Stop.By != was.Stop.By && !slices.ContainsFunc(c.past[s.Name], func(d deed) bool { return d.kind == halted && d.by == s.Stop.By }) {
			c.Violated(ruleTruth, after.ID, "%s is recorded as having stopped %s, but did not", s.Stop.By, s.Name)
		}
		if last := c.lastOf(s.Name, ordered); s.NeverUsable && !was.NeverUsable && last.by == world.Ours(c.Project) && !c.record(after.ID).byHand && !c.atOnceWith(last, s.Name) {
			c.Violated(ruleTruth, after.ID, "the result of %s is recorded as its owner's, but the last order is ours", s.Name)
		}
	}
	if after.Crew.Finished && !before.Crew.Finished && !c.done(after.ID) {
		c.Violated(ruleTruth, after.ID, "the training is called finished, and it is not")
	}
	if v := after.Progress; v.VerifiedURI != "" && v.VerifiedURI != before.Progress.VerifiedURI && !c.complete(v.VerifiedURI) {
		c.Violated("8 progress", after.ID, "%s is called verified, and it is not complete", v.VerifiedURI)
	}
	if high := c.highest(after.ID); after.Progress.Proven > before.Progress.Proven && after.Progress.Proven > high {
		c.Violated("8 progress", after.ID, "step %d is called proven, and the training is at %d", after.Progress.Proven, high)
	}
}

// givenUp reports whether the owner of a slice has given up the life that a document knows, or somebody else has taken it
// over: they deleted it or ordered another one, or their own order failed.
func (c *Checks) givenUp(w incident.Workload, s incident.Slot) bool {
	since := s.Incarnation.Created
	if in := w.Incident; in != nil && in.Opened.Before(since) {
		since = in.Opened
	}
	for _, d := range c.past[s.Name] {
		if c.person(d) && (d.kind == removed || d.kind == ordered) && !d.at.Before(since) {
			return true
		}
	}
	return c.maker(s.Name, s.Incarnation) != world.Ours(c.Project) && c.lastOf(s.Name, ordered).at.After(c.lastOf(s.Name, usable).at) ||
		c.blurred(w.ID)
}

// blurred reports whether a recent entry about a workload had the time of a wrong clock, so that the order of events is
// unknown.
func (c *Checks) blurred(workload string) bool {
	return c.Clock.Now().Sub(c.record(workload).skewed) < incident.Grace
}

// done reports whether the work of one of the trainings of a workload is done, as far as anybody can know: a new training
// becomes known with its first step.
func (c *Checks) done(workload string) bool {
	return slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		t := c.Trainings[f.Name]
		return t.Finished() || !t.FinishedAt().IsZero() && !c.record(workload).heard.After(t.FinishedAt())
	})
}

// highest is the last step that was done on a workload, or saved by a zombie.
func (c *Checks) highest(workload string) (step int64) {
	for _, f := range c.slicesOf(workload) {
		step = max(step, c.Trainings[f.Name].LastStep(), c.savedTo[f.Directory])
	}
	return step
}

// unusable reports whether a slice is READY in no zone.
func (c *Checks) unusable(f world.SliceConfig) bool {
	return !slices.ContainsFunc(c.Zones(), func(zone string) bool {
		state, _ := c.API.State(zone, f.Name)
		return state == "READY"
	})
}

// crewed are the slices of a workload whose crews tell of steps. What trains without a crew counts steps of its own.
func (c *Checks) crewed(workload string) []world.SliceConfig {
	return slices.DeleteFunc(slices.Clone(c.slicesOf(workload)), func(f world.SliceConfig) bool { return c.Trainings[f.Name].NoCrew })
}

// step is the last step of the attempts on a workload that run, or ran last, as far as a crew tells of them.
func (c *Checks) step(workload string) (step int64) {
	for _, f := range c.crewed(workload) {
		t := c.Trainings[f.Name]
		step = max(step, t.Reached(t.Began().Add(-time.Nanosecond)))
	}
	return step
}

// end is how an incident ended, to be held against what really happened.
type end struct {
	*record
	w  incident.Workload
	in *incident.Incident
}

// ends says, for each outcome, why it is wrong; empty where it is right.
var ends = map[incident.Outcome]func(c *Checks, e end) string{
	incident.Resumed:   (*Checks).wronglyResumed,
	incident.Withdrawn: (*Checks).wronglyWithdrawn,
	incident.Released:  (*Checks).wronglyReleased,
	incident.Escalated: (*Checks).wronglyEscalated,
	incident.Observed:  (*Checks).wronglyObserved,
}

// judged holds the end of an incident against what really happened, and reports whether it is right.
func (c *Checks) judged(r *record, w incident.Workload) bool {
	in := w.Closed
	trouble := r.trouble()
	if c.ends[trouble] == nil {
		c.ends[trouble] = map[string]int{}
	}
	how := string(in.Outcome)
	if in.Outcome != incident.Resumed {
		how += " (" + string(in.Code) + ")"
	}
	c.ends[trouble][how]++
	why := ends[in.Outcome](c, end{r, w, in})
	if why != "" {
		c.Violated("ends", w.ID, "%s (%s, since %s) ended %s: %s, after %s", in.ID, in.Cause, in.Opened.UTC().Format(time.DateTime), how, why, trouble)
	}
	return why == ""
}

// trouble is what happened last to a workload before its last incident opened.
func (r *record) trouble() string {
	for _, h := range slices.Backward(r.happened) {
		if !h.at.After(r.opened) {
			return h.what
		}
	}
	return "nothing that happened"
}

// struckBefore is how long before the opening of an incident its trouble may have happened: entries are late, functions are
// broken, and the first source asked answers late.
func (c *Checks) struckBefore(e end) time.Time {
	return e.in.Opened.Add(-2*incident.Grace - incident.AuditFor - c.releases.Down(e.in.Opened.Add(-6*time.Hour)))
}

func (c *Checks) wronglyResumed(e end) string {
	switch e.in.ConfirmedBy {
	case incident.ByStep:
		if !slices.ContainsFunc(c.crewed(e.w.ID), func(f world.SliceConfig) bool { return c.goesPast(f, e) }) && !c.done(e.w.ID) && !c.blurred(e.w.ID) {
			return fmt.Sprintf("no step has been done past %d, which its crew had told was saved", e.baseline)
		}
	case incident.ByCheckpoint:
		since, _ := c.struck(e)
		if !slices.ContainsFunc(c.slicesOf(e.w.ID), func(f world.SliceConfig) bool { return c.committed[f.Directory].After(since) }) {
			return "no checkpoint has been completed since the trouble"
		}
	case incident.ByHealth:
		known := c.Clock.Now().Add(-c.learned())
		for _, f := range c.slicesOf(e.w.ID) {
			lost := c.lastOf(f.Name, broken, stopped, gone, usable)
			seen := lost.at.Sub(c.lastOf(f.Name, usable).at) > seenWithin // before that nobody may have known of it
			if c.unusable(f) && seen && lost.at.Before(known) && c.takenAway(f.Name).IsZero() {
				return fmt.Sprintf("%s could not be used since %s", f.Name, lost.at.UTC().Format(time.DateTime))
			}
		}
	}
	return ""
}

// goesPast reports whether the training on a slice has gone on past the saved step, or does steps at the end of the time in
// which it should. If a forged line opened the incident and the training was never struck, it goes on with its next line.
func (c *Checks) goesPast(f world.SliceConfig, e end) bool {
	t := c.Trainings[f.Name]
	since, struck := c.struck(e)
	if t.Reached(since) > e.baseline || c.step(e.w.ID) > e.at {
		return true
	}
	owed := c.Clock.Now().Sub(e.in.Opened) >= incident.HealFor
	return !t.Stepping().IsZero() && (owed || !struck && c.step(e.w.ID) > e.baseline)
}

// struck is when the first trouble came over a workload after the incident before was over: the opening of this one where none had come
// by then. It reports too whether any has come by now.
func (c *Checks) struck(e end) (first time.Time, came bool) {
	first = e.in.Opened
	note := func(at time.Time) {
		came = came || at.After(e.closed)
		if at.After(e.closed) && at.Before(first) {
			first = at
		}
	}
	for _, f := range c.slicesOf(e.w.ID) {
		for _, d := range c.past[f.Name] {
			if c.strikes(d) {
				note(d.at)
			}
		}
		for _, failed := range c.Trainings[f.Name].Failures() {
			note(failed)
		}
	}
	return first, came
}

func (c *Checks) wronglyWithdrawn(e end) string {
	took := func(d deed) bool { return d.kind == withdrawn || d.kind == gone || d.kind == broken }
	if !c.did(e.w.ID, e.in.Opened.Add(-time.Hour), took) {
		return "the maintenance stands"
	}
	return ""
}

func (c *Checks) wronglyReleased(e end) string {
	since := c.struckBefore(e)
	switch e.in.Code {
	case incident.CodeFinished:
		if !c.done(e.w.ID) {
			return "the training is not finished"
		}
	case incident.CodeCancelled:
		if !c.did(e.w.ID, e.in.Opened, func(d deed) bool { return d.kind == saidCancel }) {
			return "nobody has cancelled it"
		}
	case incident.CodeLeftBehind:
		if !c.did(e.w.ID, time.Time{}, c.oursOrdered) {
			return "nothing of ours was left"
		}
	default:
		if !c.did(e.w.ID, since, func(d deed) bool {
			return c.person(d) && (d.kind == removed || d.kind == ordered || d.kind == halted)
		}) && !slices.ContainsFunc(c.slicesOf(e.w.ID), func(f world.SliceConfig) bool { return !c.takenAway(f.Name).IsZero() }) {
			return "nobody has deleted, stopped or created anything"
		}
	}
	return ""
}

// oursOrdered reports whether a deed is a creation of ours.
func (c *Checks) oursOrdered(d deed) bool { return d.kind == ordered && d.by == world.Ours(c.Project) }

func (c *Checks) wronglyObserved(e end) string {
	if e.in.Code == incident.CodeLeftBehind && c.did(e.w.ID, time.Time{}, c.oursOrdered) {
		return ""
	}
	if c.did(e.w.ID, e.in.Opened, func(d deed) bool { return d.kind == saidCancel }) {
		return ""
	}
	hangs := e.openedFor == events.CauseHang
	if leaseless := !slices.ContainsFunc(c.slicesOf(e.w.ID), func(f world.SliceConfig) bool { return f.Directory != "" }); hangs && leaseless {
		return "" // no crew could be asked for another attempt
	}
	if hangs && c.record(e.w.ID).deaf {
		return "" // nobody knew that it stood still
	}
	if !c.under(e.w.ID, e.in.Opened, func(p policy.Policy) bool {
		return p.Switches.WatchOnly() || hangs && p.Hang != policy.HangRestart || hangs && p.Switches.Restart != policy.Yes
	}) {
		return "its policy allows more than to watch"
	}
	return ""
}
