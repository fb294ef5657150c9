package incident

import (
	"slices"
	"strconv"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// restart asks the crew for another attempt, once it has given up, or has been silent for too long.
func (d *diagnosis) restart() *Step {
	t := d.w.Training
	if d.hasGivenUp() {
		if d.w.isSameError() {
			return escalate(reason.CodeSameError, story.SameError.With(events.Number(t.Exit.High), t.Exit.Sign), story.ReadLog.With(d.w.Name))
		}
		return d.anotherAttempt(story.CrewGaveUp.With())
	}
	late := d.over(d.resumesBy())
	if s := d.hearsEnd(late); s != nil {
		return s
	}
	switch {
	case d.isOrdered():
		return d.anotherAttempt(story.PersonAsks.With())
	case !late:
		return nil
	case !d.w.spoke() || d.isUnanswered():
		return d.lookForSave()
	}
	return d.anotherAttempt(story.NoProgress.With())
}

// hearsEnd reads the verdict behind a line about the end of the training; nil where there is no such line. Of an exit 0 near a strike, the crew
// goes on by itself, until it is late.
func (d *diagnosis) hearsEnd(late bool) *Step {
	c := d.w.Training.Claim
	switch saved := c.Finished && d.w.isSave(c.At); {
	case late: // a fresh verdict decides
		return d.hearsClaim(before(d.resumesBy(), bounds.HearFor))
	case saved:
		return nil
	}
	return d.hearsClaim(c.At)
}

// anotherAttempt asks the crew for another attempt, within the budgets of the training.
func (d *diagnosis) anotherAttempt(why story.Reason) *Step {
	if !d.w.has(events.ActionRestart) {
		if no := d.hasNoAttempt(why); no != nil {
			return no
		}
	}
	until := d.callBy(events.ActionRestart)
	switch {
	case d.in.cause() == events.CauseHang && d.p.Unreadable == "" && d.p.Hang != policy.HangRestart && !d.hasGivenUp():
		return escalate(reason.CodeHangReport, story.HangIsReport.With(why.String()), story.RestartByHand.With())
	case d.w.Directory == "" && d.level(policy.Restart) != policy.No:
		return escalate(reason.CodeNoLease, story.NoLease.With(why.String()), story.RestartByHand.With())
	case d.over(until):
		return escalate(reason.CodeOverdue, story.LeaseUnwritten.With(), story.LookAtBucket.With(d.w.Name))
	case len(d.w.toAdmit(d.now)) == 0:
		return wait(view.Restarting, story.TrainsElsewhere.With(d.w.Name), d.by(d.resumesBy(), bounds.RestartFor))
	}
	return d.mayBe(policy.Restart, call(view.Restarting, why, until, Want{Action: events.ActionRestart}))
}

// hasNoAttempt leaves the training to a person once its budgets are spent, unless the verdict says otherwise; nil where another attempt may be
// asked for. Nothing is read anew while a person is asked, or while the policy cannot be read: what lets the attempt be has it read.
func (d *diagnosis) hasNoAttempt(why story.Reason) *Step {
	spent, today := d.isSpent(events.ActionRestart)
	waits := d.p.Unreadable != "" || d.in.Status.Asks == events.ActionRestart && !d.in.isGranted()
	if spent || d.w.mayBeFinished() && !waits {
		if s := d.hears(view.Resuming, why, before(d.now, bounds.HearFor)); s != nil {
			return s
		}
	}
	switch {
	case spent:
		return escalate(reason.CodeBudget, story.RestartsSpent.With(why.String(), strconv.Itoa(bounds.MaxRestarts), events.Number(d.w.Baseline())), story.MendTraining.With(d.w.Name))
	case today:
		return d.spentToday(why)
	}
	return nil
}

// spentToday leaves to a person what the policy allows only so many times a day.
func (d *diagnosis) spentToday(why story.Reason) *Step {
	return escalate(reason.CodeRestartsADay, story.RestartsOfDay.With(why.String(), strconv.Itoa(d.p.DailyRestarts())), story.RaiseRestarts.With(d.w.Name))
}

// hears has the crew's verdict read, and how far the training is saved; nil where that was done since a time, or could not be in its own time.
func (d *diagnosis) hears(label phase, why story.Reason, since time.Time) *Step {
	until := d.callBy(events.ActionHear)
	if d.w.Directory == "" || !d.w.Training.HeardAt.Before(since) || d.over(until) {
		return nil
	}
	return call(label, why, until, Want{Action: events.ActionHear})
}

// hearsClaim has the verdict read where a line says that the training is over, and nobody read it since that line and a time: a line alone
// proves nothing.
func (d *diagnosis) hearsClaim(since time.Time) *Step {
	if !d.w.claimsEnd() || d.w.has(events.ActionRestart) {
		return nil
	}
	return d.hears(view.Resuming, story.LineProvesNothing.With(), later(d.w.Training.Claim.At, since))
}

// hasGivenUp reports whether the crew's verdict says so of the newest attempt. Lines of a later one undo no request for another attempt.
// Where the provider itself begins the training again, a verdict ends nothing.
func (d *diagnosis) hasGivenUp() bool {
	v := d.w.Training.Verdict
	newest := d.w.Training.isJudged() || d.w.has(events.ActionRestart)
	return v.GaveUp && newest && v.Attempt >= d.w.Lease.Sure.Attempt && !d.w.provider().trainsAgain
}

// claimsGivenUp reports whether a line says that the crew gave up, which no verdict confirms.
func (d *diagnosis) claimsGivenUp() bool { return d.w.claimsEnd() && !d.w.Training.Claim.Finished }

// isOrdered reports whether a person wants the training to be begun again, and nothing came of it yet.
func (d *diagnosis) isOrdered() bool {
	t := d.w.Training
	return d.isRetried() && d.in.Troubles[0].Cause == events.CauseCrash && !t.Seen.IsZero() && !d.hasRestarted() && !t.StepAt.After(d.in.Opened)
}

// hasRestarted reports whether the lease has named another attempt in this incident.
func (d *diagnosis) hasRestarted() bool {
	at := d.w.leasedAt()
	return !at.IsZero() && !at.Before(d.in.Opened)
}

// spoke reports whether a crew has written a line in the present life of a slice. One from a life before may have been the last: the next image
// may hold no crew.
func (w *Workload) spoke() bool {
	return slices.ContainsFunc(w.Slices, func(s Slot) bool { return !s.Spoke.IsZero() && s.Released.IsZero() })
}

// isUnanswered reports whether no line has come of the attempt that a training which hangs was asked for, and only lines could tell of it: a
// further request might end an attempt that trains.
func (d *diagnosis) isUnanswered() bool {
	return d.w.provider().onlyLines && d.in.cause() == events.CauseHang && d.hasRestarted() && d.w.Training.Attempt < d.w.Lease.Sure.Attempt
}

// lookForSave lets a new checkpoint prove progress where no crew tells of steps.
func (d *diagnosis) lookForSave() *Step {
	t, until := d.w.Training, d.by(d.resumesBy(), bounds.CheckFor)
	switch {
	case t.Saved.At.After(d.lastTrouble()) && (t.Saved.Step > d.w.Baseline() || d.isUnanswered()):
		return ends(End{Outcome: view.Resumed, By: view.ByCheckpoint, Reason: story.SavedSince.With()})
	case d.w.Directory != "" && !d.over(until):
		return call(view.Resuming, story.NoCrew.With(), until, Want{Action: events.ActionVerify, By: d.lastTrouble()})
	case d.isUnanswered():
		return escalate(reason.CodeOverdue, story.NoLineSince.With(), story.LookWhetherItTrains.With())
	case !t.Seen.IsZero(): // a crew has spoken in a life before, so it ought to speak in this one
		return d.anotherAttempt(story.NoCrewSpeaks.With())
	case d.w.Unread: // what was usable may be lost by now
		return wait(view.Resuming, story.NoCrew.With(), d.by(until, bounds.WatchFor))
	}
	return ends(End{Outcome: view.Resumed, By: view.ByHealth, Reason: story.HealthOnly.With()})
}

// tellsOfStandstill reports whether an end tells people that the training stands still: nobody is told so again before it has moved.
func (d *diagnosis) tellsOfStandstill(e End) bool {
	return e.Outcome == view.Escalated || e.Code == reason.CodeCancelled ||
		e.Outcome == view.Observed && e.By != view.ByStep && !d.in.cause().Infrastructure()
}
