package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

// maintenance prepares for maintenance, or for a planned end: it saves, starts maintenance early where that is allowed, and waits for it to
// pass.
func (d *diagnosis) maintenance() *Step {
	switch rest := d.startCalls(); {
	case !d.waitsForIt():
		return nil
	case d.isWithdrawn():
		return ends(End{Outcome: view.Withdrawn, Code: reason.CodeWithdrawn, Reason: story.Withdrawn.With()})
	case d.isStarting() && len(d.notStarted(rest)) > 0:
		return d.startEarly(rest)
	case d.isStruck():
		return d.window(story.MaintenanceBegun.With())
	}
	early, why := d.early()
	start := d.startEarly(early)
	if start != nil && start.Asks != "" && !d.isSoon(d.first()) {
		return start // there is time to ask, and the save comes right before the start
	}
	if s := d.save(early, why); s != nil {
		return s
	}
	if start == nil {
		return d.window(why)
	}
	return start
}

// waitsForIt reports whether what is announced is still to come, or under way, and comes before the training.
func (d *diagnosis) waitsForIt() bool { return d.prepares() && !d.isOver() && !d.needsRestart() }

// watchMaintenance follows maintenance about which Pitstop may do nothing.
func (d *diagnosis) watchMaintenance() *Step {
	over := len(d.awaited()) == 0
	e := End{Outcome: view.Observed, Code: reason.CodeWatchOnly}
	switch {
	case d.isWithdrawn():
		e.Code, e.Reason = reason.CodeWithdrawn, story.WithdrawnWatched.With()
	case (over || d.isStruck()) && d.whole() && d.stepsOn():
		e.By, e.Reason = view.ByStep, d.goesOn()
	case over && d.whole() && d.w.Training.Seen.IsZero():
		e.Reason = story.MaintenanceOver.With()
	case d.over(d.windowEnds()):
		e.Reason = story.WatchedLong.With()
	default:
		return wait(view.Watching, story.AllowsNothing.With(), d.windowEnds())
	}
	return ends(e)
}

// isWithdrawn reports whether what was announced is not announced any more, and has not begun.
func (d *diagnosis) isWithdrawn() bool { return d.begunAt().IsZero() && len(d.awaited()) == 0 }

// prepares reports whether the incident is about maintenance or a planned end, or leaves time to prepare for one: a training that may hang
// is only watched.
func (d *diagnosis) prepares() bool {
	if d.in.isPrepared() {
		return true
	}
	near := func(s *slot) bool { return d.isAwaited(s) && d.begins(d.notice(s)) }
	return d.in.cause() == events.CauseHang && len(d.those(near)) > 0
}

// onlyMaintenance reports whether nothing but announced maintenance, or a planned end, is known to have happened to the machines.
func (d *diagnosis) onlyMaintenance() bool {
	announced := false
	for _, t := range d.in.Troubles {
		if t.Cause.Infrastructure() && t.Cause != events.CauseMaintenance && t.Cause != events.CauseEnd {
			return false
		}
		s := d.slot(t.Slice)
		announced = announced || s != nil && (s.Notice.Status != "" || t.Cause == events.CauseEnd)
	}
	return announced && d.in.isPrepared()
}

// window waits for the maintenance to pass.
func (d *diagnosis) window(why story.Reason) *Step {
	return wait(view.Window, why, d.windowEnds())
}

// windowEnds is when maintenance that has not passed needs a person: the end of the last window, or of the time in which a slice may heal.
// Maintenance that began before its window counts from then.
func (d *diagnosis) windowEnds() time.Time {
	begun := d.begunAt()
	end := later(begun, d.in.Opened)
	for _, s := range d.awaited() {
		if n := d.notice(s); begun.IsZero() || !n.WindowStart.After(d.now) {
			end = later(end, n.windowEnd())
		}
	}
	end = d.by(end, passFor)
	for _, s := range d.inAny(sick, lost, stopped, moving) {
		end = later(end, s.healsBy)
	}
	return end
}

// begunAt is when what the incident waits for began, as far as is known; zero for not yet.
func (d *diagnosis) begunAt() (at time.Time) {
	for _, t := range d.in.Troubles {
		if !t.Announced && (t.Cause == events.CauseMaintenance || t.Cause == events.CauseEnd) {
			at = later(at, t.Heard)
		}
	}
	for i := range d.slots {
		at = later(at, d.struckAt(&d.slots[i]))
	}
	return at
}

// struckAt is when a slot was struck while the incident was open, or its maintenance was started; zero for not.
func (d *diagnosis) struckAt(s *slot) time.Time {
	switch at := s.usable(); {
	case s.is(foreign, finished):
		return time.Time{}
	case s.Notice.Started.After(d.in.Opened):
		return s.Notice.Started
	case !s.is(serving) && s.Since.After(d.in.Opened):
		return s.Since
	case at.After(d.in.Opened):
		return at
	}
	return time.Time{}
}

// isStruck reports whether no save comes in time any more.
func (d *diagnosis) isStruck() bool {
	return len(d.those(func(s *slot) bool { return !d.struckAt(s).IsZero() })) > 0
}

// isOver reports whether the maintenance is over, or has not come for too long: then the training has to go on.
func (d *diagnosis) isOver() bool {
	if !d.whole() {
		return false
	}
	goesOn := d.isStruck() && d.w.Training.StepAttempt > d.in.BaseAttempt && d.stepsOn()
	if goesOn || d.over(d.windowEnds()) {
		return true
	}
	begun, awaited := !d.begunAt().IsZero(), d.awaited()
	for _, s := range awaited {
		if waits := !begun || d.begins(d.notice(s)); waits && !d.hasPassed(s) {
			return false
		}
	}
	return begun || len(awaited) > 0
}

// hasPassed reports whether a slot shows that its maintenance is over, though its notice stands. What the API shows stands until it does not
// show it any more, and a life may last a little longer than planned.
func (d *diagnosis) hasPassed(s *slot) bool {
	n := d.notice(s)
	went := s.usable().After(later(n.Started, d.in.Opened))
	return !n.End && !n.InAPI && (went || d.now.After(n.windowEnd()) && !n.windowEnd().IsZero())
}

// needsRestart reports whether the training has failed by itself while the maintenance is still to come, and its crew does not go on.
func (d *diagnosis) needsRestart() bool {
	t := &d.w.Training
	if !d.begunAt().IsZero() || !d.whole() || d.over(d.first().WindowStart) {
		return false
	}
	asked := d.w.leasedAt().After(d.in.Opened) && !t.StepAt.After(d.w.leasedAt())
	return asked || d.hasGivenUp() || d.claimsGivenUp() && t.HeardAt.Before(t.Claim.At) || d.w.has(events.ActionRestart)
}

// early are the calls that start the announced maintenance now, or why it cannot be started. The slices train together, so all of them start
// early or none.
func (d *diagnosis) early() ([]Want, story.Reason) {
	why := d.notEarly()
	for _, s := range d.awaited() {
		if why.IsZero() && d.isRefused(s.Name) && !d.isStarting() {
			why = story.NotStarted.With(s.Name)
		}
	}
	if why.IsZero() && !d.in.Save.Found.At.IsZero() && d.over(d.startsBy()) {
		why = story.NotStartedInTime.With()
	}
	if !why.IsZero() {
		return nil, why
	}
	return d.startCalls(), why
}

// startCalls are the calls that start announced maintenance, one for each slice or for the queued resource that holds it.
func (d *diagnosis) startCalls() (all []Want) {
	var called []string
	for _, s := range d.awaited() {
		n := d.notice(s)
		if pending := n.Status == events.NoticePending && !n.End && s.Condition == evidence.Ready; pending && !slices.Contains(called, s.Name) {
			called = append(called, d.w.group(s.Name)...)
			all = append(all, Want{Action: events.ActionMaintain, Slice: s.Name, Place: view.Place{Zone: s.Zone}, Life: s.Incarnation})
		}
	}
	return all
}

// startEarly starts the maintenance, or asks a person; nil for no calls.
func (d *diagnosis) startEarly(all []Want) *Step {
	if all == nil {
		return nil
	}
	why := story.OursToChoose.With() // a person may be asked before anything is saved
	if !d.in.Save.Found.At.IsZero() {
		why = story.SavedSoStart.With(events.Number(d.w.Training.Saved.Step))
	}
	s := d.mayBe(policy.EarlyMaintenance, call(view.Maintaining, why, d.startsBy(), all...))
	if s.Asks == "" && s.Wants != nil {
		s.Wants = d.notStarted(all)
	}
	return s
}

// notStarted are the calls of which the API has accepted none yet.
func (d *diagnosis) notStarted(all []Want) []Want {
	return slices.DeleteFunc(slices.Clone(all), func(w Want) bool {
		return d.w.life(w.Slice).Notice.Started.After(d.in.Opened) || d.isRefused(w.Slice)
	})
}

// isStarting reports whether a call that starts maintenance may have been made: then the others follow, for as long as that may take.
func (d *diagnosis) isStarting() bool {
	begun := slices.ContainsFunc(d.w.Effects, func(x Effect) bool { return x.Action == events.ActionMaintain && !x.Begun.IsZero() })
	started := len(d.those(func(s *slot) bool { return s.Notice.Started.After(d.in.Opened) })) > 0
	return (begun || started) && !d.forbids(policy.EarlyMaintenance) && !d.over(d.startsBy())
}

// startsBy is until when the maintenance has to be started: it counts from the first call since the save, or from the complete save or the approval.
func (d *diagnosis) startsBy() time.Time {
	since := d.in.Save.complete()
	for _, o := range d.w.Orders {
		if o.Verb == evidence.VerbApprove && o.Incident == d.in.ID {
			since = later(since, o.At)
		}
	}
	for _, c := range d.in.Calls {
		if c.Action == events.ActionMaintain && c.At.After(since) {
			return d.by(c.At, bounds.MaintainFor)
		}
	}
	return d.by(later(since, d.in.Opened), bounds.MaintainFor)
}

// isRefused reports whether the API has refused for good to start the maintenance of a slot.
func (d *diagnosis) isRefused(slice string) bool {
	return slices.ContainsFunc(d.in.Calls, func(c view.Call) bool {
		forGood := c.Code == reason.Permission.Code() || c.Code == reason.Invalid.Code()
		return c.Action == events.ActionMaintain && c.Slice == slice && forGood && !c.NotMade
	})
}

// notEarly says why announced maintenance cannot be started before its window, as far as is known; nothing where it can.
func (d *diagnosis) notEarly() story.Reason {
	for _, sw := range []policy.Switch{policy.EarlyMaintenance, policy.RequestCheckpoint} {
		if d.forbids(sw) {
			return story.SwitchOff.With(string(sw))
		}
	}
	if d.w.Training.Seen.IsZero() || d.w.Directory == "" {
		return story.NoSaveToVerify.With()
	}
	for _, s := range d.awaited() {
		if why := d.slotNotEarly(s); !why.IsZero() {
			return why
		}
	}
	return story.Reason{}
}

// slotNotEarly says why the maintenance of one slot cannot be started before its window.
func (d *diagnosis) slotNotEarly(s *slot) story.Reason {
	switch n := d.notice(s); {
	case n.End:
		return story.EndsAsPlanned.With(s.Name, n.WindowStart.UTC().Format(time.RFC3339))
	case n.Status != events.NoticePending:
		return story.HasBegun.With(s.Name)
	case !n.CanReschedule:
		return story.CannotMove.With(s.Name)
	case s.Condition != evidence.Ready:
		return story.NotUsable.With(s.Name, s.State)
	}
	if !d.w.provider().noticeSaysEarly {
		if shape, err := topology.Parse(s.Accelerator); err != nil || !shape.MaintainsEarly() {
			return story.ShapeNotEarly.With(s.Accelerator)
		}
	}
	for _, name := range append([]string{s.Name}, d.w.group(s.Name)...) {
		if why := d.staysAway(d.slot(name)); !why.IsZero() {
			return why
		}
	}
	return story.Reason{}
}

// staysAway says why nobody may bring a slice back that fails for good when its maintenance begins; nothing where Pitstop does, or where no
// maintenance makes a slice fail. In its window the maintenance comes all the same, so Pitstop must not be what begins it.
func (d *diagnosis) staysAway(s *slot) story.Reason {
	sw, why := policy.Replaces(s.ownCapacity()), ""
	switch {
	case !d.w.provider().trainsAgain || !s.Released.IsZero():
		return story.Reason{}
	case s.Kept != "":
		why = story.OwnersToReplace.With(s.Kept).String()
	case s.Spec == "":
		why = story.NoSpec.With(s.Name).String()
	case d.p.Unreadable == "" && d.level(sw) != policy.Yes:
		why = d.w.Forbids(sw, d.level(sw), d.p)
	default:
		if spent, _ := d.isSpent(events.ActionDelete); !spent {
			return story.Reason{}
		}
		why = story.ReplacesSpent.With(s.Name).String()
	}
	return story.MayStayAway.With(d.w.noun(s.Name), why)
}
