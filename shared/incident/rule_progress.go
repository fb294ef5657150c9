package incident

import (
	"strconv"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// finished ends the incident of a training that is done: nothing is brought back for it. What is under way is completed first.
func (d *diagnosis) finished() *Step {
	t, e := &d.w.Training, End{Outcome: view.Resumed, By: view.ByStep, Reason: story.TrainingDone.With()}
	if d.w.isComplete() {
		e.By = view.ByHealth
	}
	switch before := t.Verdict.At.Before(d.in.Opened); {
	case !d.isFinished() || d.w.has(events.ActionDelete) || d.w.has(events.ActionCreate) || len(d.awaiting()) > 0:
		return nil
	case d.isWatched():
		e.Outcome, e.Code = view.Observed, reason.CodeWatchOnly
	case before && (d.w.leasedAt().After(d.in.Opened) || !d.whole() && !d.w.isComplete()):
		e = End{Outcome: view.Released, Code: reason.CodeFinished, Reason: story.DoneBefore.With()}
	}
	return ends(e)
}

// progress ends the incident once a step past the last save is done.
func (d *diagnosis) progress() *Step {
	e := End{Outcome: view.Resumed, By: view.ByStep, Reason: d.goesOn()}
	switch {
	case !d.whole():
		return nil
	case d.stepsOn() && d.isWatched():
		e.Outcome, e.Code = view.Observed, reason.CodeHangReport
	case d.stepsOn():
	case d.isTakenBack():
		e.Reason = story.TakenBack.With(events.Span(repeatFor), events.Number(d.w.Training.Step), events.Number(d.w.Baseline()))
	default:
		return nil
	}
	return ends(e)
}

// goesOn says by which step the training goes on.
func (d *diagnosis) goesOn() story.Reason {
	if d.w.Training.Step <= d.w.Baseline() {
		return story.BegunAnew.With(events.Number(d.w.Training.Step))
	}
	return story.GoesOn.With(events.Number(d.w.Training.Step), events.Number(d.w.Baseline()))
}

// waitForProgress waits for that step. What lines alone tell, and cannot all be true, has what stands beside the checkpoints read.
func (d *diagnosis) waitForProgress() *Step {
	t, until, why := d.w.Training, d.resumesBy(), story.Reason{}
	switch {
	case !d.w.toldFar().IsZero():
		why = story.FarAttempt.With(strconv.Itoa(d.w.Lease.Attempt))
	case d.w.Baseline() > t.Saved.Step && t.Step <= d.w.Baseline() && t.StepAt.After(d.lastTrouble()):
		why = story.OnlyLinesTell.With(events.Number(d.w.Baseline()))
	}
	if !why.IsZero() && d.w.Directory != "" && !t.HeardAt.After(before(d.now, farEvery)) {
		return call(view.Resuming, why, until, Want{Action: events.ActionHear})
	}
	return wait(view.Resuming, d.afterExit(), until)
}

// afterExit says why the training may still do that step, though it has ended.
func (d *diagnosis) afterExit() story.Reason {
	switch c := d.w.Training.Claim; {
	case d.w.claimsEnd() && c.Finished && d.w.isSave(c.At):
		return story.WasSave.With()
	case d.in.cause() == events.CauseCrash && !d.hasRestarted():
		return story.CrewRestarts.With()
	case d.w.Training.Seen.IsZero():
		return story.NoCrew.With()
	}
	return story.WaitForStep.With()
}

// farEvery is how often lines that cannot be true have Pitstop read which attempt runs, and what is saved.
const farEvery = time.Hour

// repeatFor is how long a training may repeat steps that it had saved before. A longer repetition is no way to its last save: somebody has begun
// it anew on purpose.
const repeatFor = 4 * time.Hour

// isWatched reports whether the incident is only watched.
func (d *diagnosis) isWatched() bool { return d.watchOnly() || d.in.Status.Label == view.Watching }

// stepsOn reports whether a step past the last save was done since the last trouble, and no other attempt has begun after it. No training runs
// without every slice, and none goes back that far where no directory can tell.
func (d *diagnosis) stepsOn() bool {
	t := d.w.Training
	for _, s := range d.inAny(serving) {
		if !t.StepAt.After(s.usable()) {
			return false
		}
	}
	past := t.Step > d.w.Baseline() || d.w.Directory == "" && t.Step < d.w.Baseline()/2
	followed := t.StepAttempt < t.Attempt && t.StepAt.Before(t.Began)
	return past && !followed && t.StepAt.After(d.lastTrouble())
}

// isTakenBack reports whether a training still does steps long after it ought to have passed its last save: its owner has taken it back, or it
// has begun anew.
func (d *diagnosis) isTakenBack() bool {
	t, since := d.w.Training, d.resumesSince()
	lately := !d.passed(t.StepAt, max(bounds.HangFor, t.patience()))
	return lately && t.StepAttempt >= d.in.BaseAttempt && t.StepAt.After(since) && t.StepAt.After(d.lastTrouble()) && d.passed(since, repeatFor)
}

// resumesSince is from when on progress is waited for: everything was usable and let in, and the crew's attempt had not failed.
func (d *diagnosis) resumesSince() time.Time {
	t := d.w.Training
	since := later(later(d.in.Opened, d.w.leasedAt()), later(t.Exit.At, t.Seen))
	if d.in.isPrepared() {
		since = later(since, d.begunAt())
	}
	for i := range d.slots {
		since = later(since, d.slots[i].usable())
	}
	return since
}

// resumesBy is when progress has to be seen. While steps are done that are not past the last save, it is waited for much longer.
func (d *diagnosis) resumesBy() time.Time {
	t, since := d.w.Training, d.resumesSince()
	until, most := d.by(since, bounds.ResumeFor), d.by(since, repeatFor)
	last := later(t.StepAt, t.Stepped)
	if !last.After(since) || !last.After(d.lastTrouble()) {
		return until
	}
	if still := d.by(last, max(bounds.HeardFor+bounds.ListenAgain, t.patience())); still.Before(most) {
		return later(until, still)
	}
	return most
}

// isFinished reports whether the training is done, by its crew's verdict or by its provider.
func (d *diagnosis) isFinished() bool { return d.w.isFinished() }

// has reports whether a call of that kind is wanted or under way.
func (w *Workload) has(a events.Action) bool { return !w.firstWanted(a).IsZero() }
