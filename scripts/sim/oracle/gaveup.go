package oracle

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// never is what a zone says that cannot give a slice whatever room it has.
var never = regexp.MustCompile(`was not found in zone|Limit: 0 in|is not in (zone|region) |^Reservation not found: `)

// noRoom is what a zone says that has none.
var noRoom = regexp.MustCompile(`no more capacity|insufficient reserved capacity|Quota '`)

// reasons say, by the code of an incident that was left to a person, why it need not have been: an allowed way was open that the world
// would have granted, or the reason is not so. What a code says of calls and documents alone is left to the record of calls.
var reasons = map[incident.Code]func(c *Checks, e end) string{
	incident.CodeNoZone:             (*Checks).wayOpen,
	incident.CodeGaveUp:             (*Checks).wayOpen,
	incident.Stockout.Code():        (*Checks).roomIsWaitedFor,
	incident.Quota.Code():           (*Checks).roomIsWaitedFor,
	incident.ReservationFull.Code(): (*Checks).roomIsWaitedFor,
	incident.CodeBudget:             (*Checks).budgetLeft,
	incident.CodeRestartsADay:       (*Checks).budgetLeft,
	incident.CodeSameError:          (*Checks).budgetLeft,
	incident.CodeAbuse:              (*Checks).notSuspected,
	incident.CodePolicyNo:           (*Checks).allAllowed,
	incident.CodePolicyAsk:          (*Checks).allAllowed,
	incident.CodeWatchOnly:          (*Checks).allAllowed,
	incident.CodeHangReport:         (*Checks).goesOn,
	incident.CodeNoCheckpoint:       (*Checks).goesOn,
	incident.CodeUnverified:         (*Checks).isSaved,
	incident.Permission.Code():      (*Checks).nothingRefused,
	incident.Invalid.Code():         (*Checks).nothingRefused,
	incident.CodeAuditUnread:        within(incident.Grace),
	incident.CodeOverdue:            within(incident.RestartFor),
	incident.CodeUnanswered:         within((incident.MaxFailures - 1) * incident.RequestFor),
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
		if f.Spot {
			needed = append(needed, policy.Recreate)
		} else {
			needed = append(needed, policy.RecreateNonSpot)
		}
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

// isSaved says that a workload has had a complete checkpoint for as long as the incident looked for one.
func (c *Checks) isSaved(e end) string {
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

// wayOpen says which zone would have given a slice that an incident gave up for want of one: it had room all the time, or gives up
// before its policy does.
func (c *Checks) wayOpen(e end) string {
	opened := e.in.Opened
	first := time.Time{}
	for _, f := range c.slicesOf(e.w.ID) {
		for _, d := range c.past[f.Name] {
			waits := d.kind == ordered && f.QueuedResource != ""
			if (d.kind == turnedOff || waits) && d.by == world.Ours(c.Project) && !d.at.Before(opened) && (first.IsZero() || d.at.Before(first)) {
				first = d.at
			}
		}
	}
	if first.IsZero() {
		return "no creation of ours was refused"
	}
	if e.in.Code == incident.CodeGaveUp && !c.under(e.w.ID, opened, func(p policy.Policy) bool {
		return p.GiveUpAfter > 0 && c.Clock.Now().Sub(first) >= p.GiveUpAfter-time.Minute
	}) {
		return "its policy waits for longer than the " + events.Span(c.Clock.Now().Sub(first)) + " since a zone refused first"
	}
	open := ""
	for _, f := range c.slicesOf(e.w.ID) {
		if _, lives := c.livesIn(f.Name); lives && !c.cameSince(f, opened) || !c.takenAway(f.Name).IsZero() {
			continue
		}
		why := c.zoneOpen(e, f)
		if why == "" {
			return "" // one that cannot be had is enough
		}
		open = why
	}
	return open
}

// cameSince reports whether a person has ordered a slice after a zone refused it to us in this incident: the incident was decided on that
// refusal, and ends a moment later.
func (c *Checks) cameSince(f world.SliceConfig, opened time.Time) bool {
	d := c.lastOf(f.Name, ordered, turnedOff)
	return d.kind == ordered && c.person(d) && slices.ContainsFunc(c.past[f.Name], func(o deed) bool {
		return o.kind == turnedOff && o.by == world.Ours(c.Project) && !o.at.Before(opened) && d.at.Sub(o.at) < askedLately && !d.at.Before(o.at)
	})
}

// zoneOpen says which zone would have given a slice; empty where none would.
func (c *Checks) zoneOpen(e end, f world.SliceConfig) string {
	if c.inLine(e, f) {
		return ""
	}
	for _, z := range c.mayAsk(e, f) {
		asked := func(d deed) bool {
			return d.by == world.Ours(c.Project) && d.zone == z && (d.kind == ordered || d.kind == turnedOff)
		}
		if since, room := c.room[z]; room && !since.After(e.in.Opened) && !c.did(e.w.ID, e.in.Opened, asked) {
			return fmt.Sprintf("%s had room for %s all the time, and was never asked", z, f.Name)
		}
		last := c.lastRefusal(f.Name, z)
		if e.in.Code == incident.CodeNoZone && !last.at.Before(e.in.Opened) && noRoom.MatchString(last.text) && !never.MatchString(last.text) {
			return fmt.Sprintf("%s lacked only room for %s", z, f.Name)
		}
	}
	return ""
}

// inLine reports whether a queued resource of ours waited for a slice until it was given up: no zone had refused it. An order of
// somebody else that is refused, because ours exists, takes nothing out of the line.
func (c *Checks) inLine(e end, f world.SliceConfig) bool {
	for _, d := range slices.Backward(c.past[f.Name]) {
		if d.kind == ordered || d.kind == turnedOff && !c.person(d) {
			return f.QueuedResource != "" && d.kind == ordered && d.by == world.Ours(c.Project) && !d.at.Before(e.in.Opened)
		}
	}
	return false
}

// lastRefusal is how a zone refused a creation of ours last.
func (c *Checks) lastRefusal(slice, zone string) deed {
	for _, d := range slices.Backward(c.past[slice]) {
		if d.kind == turnedOff && d.zone == zone && d.by == world.Ours(c.Project) {
			return d
		}
	}
	return deed{}
}

// askedLately is how long the answer to a creation may take to be known.
const askedLately = 10 * time.Minute

// mayAsk are the zones in which a slice may be created: where the others of its workload live, else where it was, and where every
// policy in question lets it go. What names something of its own zone goes nowhere else.
func (c *Checks) mayAsk(e end, f world.SliceConfig) []string {
	zones := []string{f.Zone}
	if d := c.lastOf(f.Name, usable); d.zone != "" {
		zones = []string{d.zone}
	}
	if c.apart(e.w.ID) {
		return zones
	}
	for _, o := range c.slicesOf(e.w.ID) {
		if o.Name == f.Name {
			continue
		}
		if z, stands := c.standsIn(o.Name); stands {
			return []string{z} // and comes back there, if it is sick
		}
		if d := c.lastOf(o.Name, ordered); d.by == world.Ours(c.Project) && c.Clock.Now().Sub(d.at) < askedLately {
			return []string{d.zone} // whatever has become of it, nobody may know yet
		}
	}
	if f.Reservation+f.Disk+f.Subnetwork != "" || c.Buckets[bucketOf(f.Directory)] != "" {
		return zones
	}
	for _, z := range c.Zones() {
		if !slices.Contains(zones, z) && !c.under(e.w.ID, e.in.Opened, func(p policy.Policy) bool { return !slices.Contains(p.Zones, z) }) {
			zones = append(zones, z)
		}
	}
	return zones
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
	if replaced < incident.MaxRecreates && restarted < incident.MaxRestarts-1 && c.failures(e.w.ID) < 2 && !c.standsStill(e.w.ID) {
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

// standsStill reports whether a training of a workload does nothing, and nobody says so.
func (c *Checks) standsStill(workload string) bool {
	return slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool { return !c.Trainings[f.Name].Still().IsZero() })
}
