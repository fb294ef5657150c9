package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// askWho waits for word of who deleted what is gone without a reason, first from the owner and then from the audit log: what an owner deletes
// is not brought back.
func (d *diagnosis) askWho() *Step {
	gone := d.inAny(vanished)
	if len(gone) == 0 {
		return nil
	}
	first := slices.MinFunc(gone, func(a, b *slot) int { return a.Since.Compare(b.Since) })
	until := d.saidBy(&first.Life)
	if d.over(until) {
		if t := d.in.Troubles[0]; t.Slice != first.Name || t.Life != first.Incarnation.ID || !t.At.Equal(first.Since) {
			until = later(until, d.in.Opened) // the incident was about something else
		}
		until = d.by(until, bounds.AuditFor)
	}
	if d.over(until) {
		return escalate(reason.CodeAuditUnread, story.AuditUnread.With(first.Name), story.LookWhoDeleted.With(first.Name, d.w.Name))
	}
	return wait(view.PhaseGrace, story.WhoDeleted.With(first.Name), d.firstHealed(until))
}

// firstHealed is the earlier of a time and the end of the first healing. What is stopped waits with what is gone: whoever deleted the one may want
// the other stopped.
func (d *diagnosis) firstHealed(until time.Time) time.Time {
	for _, s := range d.inAny(sick, lost, moving) {
		if !s.healsBy.IsZero() && s.healsBy.Before(until) {
			until = s.healsBy
		}
	}
	return until
}

// letHeal waits for the provider's own recovery, and for what an owner has ordered.
func (d *diagnosis) letHeal() *Step {
	bad := d.inAny(sick, lost, stopped, moving, awaited)
	if len(bad) == 0 || d.onlyMaintenance() {
		return nil
	}
	first := slices.MinFunc(bad, func(a, b *slot) int { return a.healsBy.Compare(b.healsBy) })
	until := first.healsBy
	if first.is(sick) && d.over(until) {
		if d.trainsSince(later(first.Since, d.lastTrouble())) && d.w.Training.Step > d.w.Baseline() {
			return ends(End{Outcome: view.Resumed, By: view.ByStep, Reason: d.goesOn()}) // only the API calls it unusable
		}
		until = d.trainsUntil(first.Since) // it is kept for as long as it may do a step
	}
	if first.is(stopped) && d.over(first.healsBy) {
		return escalate(reason.CodeUnread, story.StoppedByWhom.With(first.Name), story.StartByHand.With(d.w.Words().Start, first.Name+inPlace(first.Zone)))
	}
	return wait(view.Healing, story.Heals.With(first.Name, first.State, d.w.Words().Healer), until)
}

// look waits for a reading that explains what a log tells: a log entry alone proves no loss.
func (d *diagnosis) look() *Step {
	until := d.by(d.in.Opened, bounds.LookFor)
	if d.over(until) || len(d.inAny(sick, lost, stopped, moving)) > 0 {
		return nil
	}
	for _, t := range d.in.Troubles {
		if d.isUnexplained(t) {
			return wait(view.Looking, story.Look.With(t.Slice), until)
		}
	}
	return nil
}

// isExpected reports whether a trouble is what was announced. Maintenance is, where its notice knows of it: it may strike long before the window
// that was announced.
func (d *diagnosis) isExpected(t Trouble, s *slot) bool {
	return t.Announced || t.Cause == events.CauseMaintenance && (d.begins(s.Notice) || !s.Notice.LastWord.Before(t.At))
}

// isUnexplained reports whether no reading has shown yet what became of a life after a trouble.
func (d *diagnosis) isUnexplained(t Trouble) bool {
	s := d.slot(t.Slice)
	if s == nil || d.isExpected(t, s) || d.isAboutAdmission(t, s) || !t.Cause.Infrastructure() || t.Life != s.Incarnation.ID || t.At.Before(s.usable()) {
		return false
	}
	if by := d.by(t.At, bounds.SickFor); d.stepsOn() && !d.w.Training.StepAt.Before(by) { // a worker's clock may go before
		return false
	}
	return s.Read.Before(d.by(t.Heard, bounds.SickFor))
}
