package oracle

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// Ends: an incident ends as what really happened has it. Nothing is called resumed, released or withdrawn that is not, and nothing is left to a
// person while an allowed way is open that the world would have granted.

// end is how an incident ended, to be held against what really happened.
type end struct {
	*record
	w  seen
	in *seenIncident
}

// ends says, for each outcome, why it is wrong; empty where it is right. jobEnds does so in clusters.
var (
	ends = map[view.Outcome]func(c *Checks, e end) string{
		view.Resumed:   (*Checks).wronglyResumed,
		view.Withdrawn: (*Checks).wronglyWithdrawn,
		view.Released:  (*Checks).wronglyReleased,
		view.Escalated: (*Checks).wronglyEscalated,
		view.Observed:  (*Checks).wronglyObserved,
	}
	jobEnds = map[view.Outcome]func(c *Checks, e end) string{
		view.Resumed:  (*Checks).jobWronglyResumed,
		view.Released: (*Checks).jobWronglyReleased,
	}
)

// judged holds the end of an incident against what really happened, and reports whether it is right.
func (c *Checks) judged(r *record, w seen) bool {
	in, trouble := w.Over, r.trouble()
	if c.ends[trouble] == nil {
		c.ends[trouble] = map[string]int{}
	}
	how := string(in.Outcome)
	if in.Outcome != view.Resumed {
		how += " (" + string(in.Code) + ")"
	}
	c.ends[trouble][how]++
	wrong := ends[in.Outcome]
	if len(c.gangs(w.ID)) > 0 {
		wrong = jobEnds[in.Outcome]
	}
	if wrong == nil {
		return true
	}
	why := wrong(c, end{r, w, in})
	if why != "" {
		c.Violated("ends", w.ID, "%s (%s, since %s) ended %s: %s, after %s", in.ID, in.Cause, in.Opened.UTC().Format(time.DateTime), how, why, trouble)
	}
	return why == ""
}

func (c *Checks) jobWronglyResumed(e end) string {
	for _, g := range c.gangs(e.w.ID) {
		job := g.Job()
		if job == nil {
			continue
		}
		if failed := g.failed[job.UID]; !failed.IsZero() && c.Clock.Now().Sub(failed) > latelyRead {
			return fmt.Sprintf("%s has failed for good at %s", g.Slice, failed.UTC().Format(time.DateTime))
		}
	}
	if e.in.ConfirmedBy == view.ByStep && !c.jobGoesPast(e) && !c.done(e.w.ID) && !c.blurred(e.w.ID) {
		return fmt.Sprintf("no step has been done past %d, which its crew had told was saved", e.baseline)
	}
	if down := c.jobDown(e.w.ID, e.in.Opened); e.in.ConfirmedBy == view.ByCheckpoint && !c.savedSince(e.w.Directory, down) {
		return fmt.Sprintf("no checkpoint is complete since %s", down.UTC().Format(time.DateTime))
	}
	return ""
}

// jobWronglyReleased says that the owner of a Job has not deleted or suspended it, made it anew, cancelled its incident, or seen it finish.
func (c *Checks) jobWronglyReleased(e end) string {
	from := e.in.Opened.Add(-c.learned() - bounds.Grace)
	for _, g := range c.gangs(e.w.ID) {
		for _, at := range g.complete {
			if at.After(from) {
				return ""
			}
		}
		if slices.ContainsFunc(g.acts, func(a act) bool {
			return a.at.After(from) && (a.by == faults.Owner || e.in.Code == reason.CodeCancelled && a.what == string(saidCancel))
		}) {
			return ""
		}
	}
	return "its owner has done nothing since " + from.UTC().Format(time.DateTime)
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
	return e.in.Opened.Add(-2*bounds.Grace - bounds.AuditFor - c.releases.Down(e.in.Opened.Add(-6*time.Hour)))
}

func (c *Checks) wronglyResumed(e end) string {
	switch e.in.ConfirmedBy {
	case view.ByStep:
		if !slices.ContainsFunc(c.crewed(e.w.ID), func(f world.SliceConfig) bool { return c.goesPast(f, e) }) && !c.done(e.w.ID) && !c.blurred(e.w.ID) {
			return fmt.Sprintf("no step has been done past %d, which its crew had told was saved", e.baseline)
		}
	case view.ByCheckpoint:
		since, _ := c.struck(e)
		if !slices.ContainsFunc(c.slicesOf(e.w.ID), func(f world.SliceConfig) bool { return c.committed[f.Directory].After(since) }) {
			return "no checkpoint has been completed since the trouble"
		}
	case view.ByHealth:
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
	owed := c.Clock.Now().Sub(e.in.Opened) >= bounds.HealFor
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
	if e.in.Code == reason.CodeNotMoved { // it prepared for nothing of its provider's
		return ""
	}
	took := func(d deed) bool { return d.kind == withdrawn || d.kind == gone || d.kind == broken }
	if !c.did(e.w.ID, e.in.Opened.Add(-time.Hour), took) {
		return "the maintenance stands"
	}
	return ""
}

func (c *Checks) wronglyReleased(e end) string {
	since := c.struckBefore(e)
	switch e.in.Code {
	case reason.CodeFinished:
		if !c.done(e.w.ID) {
			return "the training is not finished"
		}
	case reason.CodeCancelled:
		if !c.did(e.w.ID, e.in.Opened, func(d deed) bool { return d.kind == saidCancel }) {
			return "nobody has cancelled it"
		}
	case reason.CodeLeftBehind:
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
	if e.in.Code == reason.CodeLeftBehind && c.did(e.w.ID, time.Time{}, c.oursOrdered) {
		return ""
	}
	if c.did(e.w.ID, e.in.Opened, func(d deed) bool { return d.kind == saidCancel }) {
		return ""
	}
	hangs := e.openedFor == events.CauseHang
	leased := slices.ContainsFunc(c.slicesOf(e.w.ID), func(f world.SliceConfig) bool { return f.Directory != "" })
	if hangs && (e.deaf || !leased) {
		return "" // nobody knew that it stood still, or no crew could be asked for another attempt
	}
	if !c.under(e.w.ID, e.in.Opened, func(p policy.Policy) bool {
		return p.Switches.WatchOnly() || hangs && (p.Hang != policy.HangRestart || p.Switches.Restart != policy.Yes)
	}) {
		return "its policy allows more than to watch"
	}
	return ""
}

// jobGoesPast reports whether a training with a crew has gone on past the saved step since its trouble. At the end of the time in which it
// should, any step is enough. The life counts that the document knows as the newest: what a former one did confirms nothing.
func (c *Checks) jobGoesPast(e end) bool {
	since := c.jobStruck(e)
	return slices.ContainsFunc(c.gangs(e.w.ID), func(g *gang) bool {
		s := e.w.slice(g.Slice)
		if g.NoCrew || s == nil {
			return false
		}
		life := s.Life.ID
		owed := c.Clock.Now().Sub(e.in.Opened) >= bounds.HealFor && g.Ran().ID == life && !g.Stepping().IsZero()
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

// never is what a zone says that cannot give a slice whatever room it has.
var never = regexp.MustCompile(`was not found in zone|Limit: 0 in|is not in (zone|region) |^Reservation not found: `)

// noRoom is what a zone says that has none.
var noRoom = regexp.MustCompile(`no more capacity|insufficient reserved capacity|Quota '`)

// reasons say, by the code of an incident that was left to a person, why it need not have been: an allowed way was open that the world
// would have granted, or the reason is not so. What a code says of calls and documents alone is left to the record of calls.
var reasons = map[reason.Code]func(c *Checks, e end) string{
	reason.CodeNoZone:             (*Checks).wayOpen,
	reason.CodeGaveUp:             (*Checks).wayOpen,
	reason.Stockout.Code():        (*Checks).roomIsWaitedFor,
	reason.Quota.Code():           (*Checks).roomIsWaitedFor,
	reason.ReservationFull.Code(): (*Checks).roomIsWaitedFor,
	reason.CodeBudget:             (*Checks).budgetLeft,
	reason.CodeRestartsADay:       (*Checks).budgetLeft,
	reason.CodeSameError:          (*Checks).budgetLeft,
	reason.CodeAbuse:              (*Checks).notSuspected,
	reason.CodePolicyNo:           (*Checks).allAllowed,
	reason.CodePolicyAsk:          (*Checks).allAllowed,
	reason.CodeWatchOnly:          (*Checks).allAllowed,
	reason.CodeHangReport:         (*Checks).goesOn,
	reason.CodeNoCheckpoint:       (*Checks).goesOn,
	reason.CodeUnverified:         (*Checks).isSaved,
	reason.Permission.Code():      (*Checks).nothingRefused,
	reason.Invalid.Code():         (*Checks).nothingRefused,
	reason.CodeAuditUnread:        within(bounds.Grace),
	reason.CodeOverdue:            within(bounds.RestartFor),
	reason.CodeUnanswered:         within(bounds.RequestFor),
}

// wronglyEscalated says why an incident need not have been left to a person; empty where it had to be.
func (c *Checks) wronglyEscalated(e end) string {
	if why := reasons[e.in.Code]; why != nil {
		return why(c, e)
	}
	return ""
}

// within says that an incident was open for less time than its wait takes.
func within(d time.Duration) func(c *Checks, e end) string {
	return func(c *Checks, e end) string {
		if open := c.Clock.Now().Sub(e.in.Opened); open < d {
			return "it was open for " + events.Span(open) + " alone"
		}
		return ""
	}
}

func (c *Checks) roomIsWaitedFor(end) string { return "room is waited for" }

func (c *Checks) notSuspected(e end) string {
	if c.suspectedAny(e.w.ID) {
		return ""
	}
	return "Google suspects no abuse"
}

// allAllowed says that the policy allows what the workload needs.
func (c *Checks) allAllowed(e end) string {
	needed := c.needs(e)
	if c.under(e.w.ID, e.in.Opened, func(p policy.Policy) bool {
		return slices.ContainsFunc(needed, func(s policy.Switch) bool { return p.Switches.Level(s) != policy.Yes })
	}) {
		return ""
	}
	return fmt.Sprintf("its policy allows %v", needed)
}

// needs are the switches of what may help a workload: another attempt where all its slices can be used, else that those that cannot are
// started or replaced, with what their queued resource holds.
func (c *Checks) needs(e end) []policy.Switch {
	if c.whole(e.w.ID) {
		return []policy.Switch{policy.Restart}
	}
	var needed []policy.Switch
	for _, f := range c.slicesOf(e.w.ID) {
		if !c.unusable(f) && f.QueuedResource == "" {
			continue
		}
		needed = append(needed, replaces(f))
		if c.lastOf(f.Name, stopped, usable).kind == stopped {
			needed = append(needed, policy.StartStopped)
		}
	}
	return needed
}

func (c *Checks) goesOn(e end) string {
	if e.in.Cause == events.CauseHang && c.steps(e.w.ID) != "" {
		return "its training does steps"
	}
	return ""
}

// isSaved says that a workload has had a complete checkpoint for as long as the incident looked for one, if anybody did: the request to look may be
// late.
func (c *Checks) isSaved(e end) string {
	if c.unlooked(e.w.ID, c.Clock.Now().Add(-bounds.HearFor)) {
		return ""
	}
	for _, f := range c.slicesOf(e.w.ID) {
		if at, ok := c.committed[f.Directory]; ok && at.Before(e.in.Opened) && c.Clock.Now().Sub(e.in.Opened) > time.Hour && !c.downLately() {
			return "it had a complete checkpoint of " + at.UTC().Format(time.DateTime)
		}
	}
	return ""
}

// downLately reports whether a function did not run at a time within the last hour: then nobody could look.
func (c *Checks) downLately() bool { return c.releases.Down(c.Clock.Now().Add(-time.Hour)) > 0 }

func (c *Checks) nothingRefused(e end) string {
	if c.refusedCalls(e.w.ID, e.in.Opened.Add(-time.Minute)) > 0 {
		return ""
	}
	return "no call of ours was refused"
}

// refusedCalls is how many calls of ours about a workload were refused since a moment.
func (c *Checks) refusedCalls(workload string, since time.Time) (n int) {
	for _, at := range c.record(workload).refused {
		if !at.Before(since) {
			n++
		}
	}
	return n
}

// wayOpen says which zone would have given a slice that an incident gave up for want of one: it had room all the time, or gives up
// before its policy does.
func (c *Checks) wayOpen(e end) string {
	opened, first := e.in.Opened, time.Time{}
	for _, f := range c.slicesOf(e.w.ID) {
		if since := c.waitsSince(f, opened); !since.IsZero() && (first.IsZero() || since.Before(first)) {
			first = since
		}
	}
	if first.IsZero() {
		return "no creation of ours was refused"
	}
	if e.in.Code == reason.CodeGaveUp && !c.under(e.w.ID, opened, func(p policy.Policy) bool {
		return p.GiveUpAfter > 0 && c.Clock.Now().Sub(first) >= p.GiveUpAfter-time.Minute
	}) {
		return "its policy waits for longer than the " + events.Span(c.Clock.Now().Sub(first)) + " since a zone refused first"
	}
	return c.zoneOpen(e)
}

// waitsSince is when a creation of ours was first refused since an incident opened, or ordered in a queue; its opening where an order of before
// still waited there. It is zero for never.
func (c *Checks) waitsSince(f world.SliceConfig, opened time.Time) (since time.Time) {
	for _, d := range c.past[f.Name] {
		over := d.kind == usable || d.kind == removed || d.kind == turnedOff
		waits := d.kind == turnedOff || d.kind == ordered && f.QueuedResource != ""
		switch {
		case over && d.at.Before(opened):
			since = time.Time{}
		case waits && d.by == world.Ours(c.Project) && since.IsZero():
			since = later(d.at, opened)
		}
	}
	return since
}

// zoneOpen says which zone would have given a slice that may go anywhere its policy says: it had room all the time and was never asked, or lacked
// nothing but room. What a queued resource holds, what names something of its own zone, and what others are beside goes nowhere else.
func (c *Checks) zoneOpen(e end) string {
	f := c.slicesOf(e.w.ID)[0]
	bound := f.QueuedResource+f.Reservation+f.Disk+f.Subnetwork+c.Buckets[bucketOf(f.Directory)] != "" || len(c.slicesOf(e.w.ID)) > 1
	if _, lives := c.livesIn(f.Name); bound || lives || !c.takenAway(f.Name).IsZero() {
		return ""
	}
	for _, z := range c.Zones() {
		if c.under(e.w.ID, e.in.Opened, func(p policy.Policy) bool { return !slices.Contains(p.Zones, z) }) {
			continue
		}
		var last deed
		for _, d := range c.past[f.Name] {
			if d.by == world.Ours(c.Project) && d.zone == z && (d.kind == ordered || d.kind == turnedOff) && !d.at.Before(e.in.Opened) {
				last = d
			}
		}
		if since, room := c.room[z]; room && !since.After(e.in.Opened) && last.kind == "" {
			return fmt.Sprintf("%s had room for %s all the time, and was never asked", z, f.Name)
		}
		if e.in.Code == reason.CodeNoZone && noRoom.MatchString(last.text) && !never.MatchString(last.text) {
			return fmt.Sprintf("%s lacked only room for %s", z, f.Name)
		}
	}
	return ""
}

// budgetLeft says that the requests for replacements and restarts since training last went on stay below the budgets. It
// also says that the training has not failed again and again by itself. One restart may have found its attempt already named
// in the lease.
func (c *Checks) budgetLeft(e end) string {
	replaced, restarted := 0, 0
	c.did(e.w.ID, e.refilled, func(d deed) bool {
		if d.by == world.Ours(c.Project) && (d.kind == removed || d.kind == ordered || d.kind == turnedOff) {
			replaced++
		}
		return false
	})
	for _, call := range e.calls {
		if !call.at.Before(e.refilled) && path.Base(call.resource) == checkpoint.LeaseName {
			restarted++
		}
	}
	if replaced < bounds.MaxRecreates && restarted < bounds.MaxRestarts-1 && c.failures(e.w.ID) < 2 && !c.standsStill(e.w.ID) {
		return fmt.Sprintf("%d replacements and %d restarts were asked for since the training went on last, and it has not failed twice", replaced, restarted)
	}
	return ""
}

// failures is how often the trainings of a workload have ended by themselves.
func (c *Checks) failures(workload string) (n int) {
	for _, f := range c.slicesOf(workload) {
		n += len(c.Trainings[f.Name].Failures())
	}
	return n
}
