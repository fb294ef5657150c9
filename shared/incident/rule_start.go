package incident

import (
	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// start starts what is stopped, once nothing says that its owner stopped it, and waits until it can be used. Nothing that is stopped is deleted.
func (d *diagnosis) start() *Step {
	if d.onlyMaintenance() && !d.over(d.windowEnds()) {
		return nil // the maintenance that stopped it may bring it back
	}
	s := call(view.Starting, story.NobodyStopped.With(), d.callBy(events.ActionStart))
	for _, o := range d.those(d.isToStart) {
		if o.Workers > 1 {
			return escalate(reason.CodeSeveralWorkers, story.SeveralWorkers.With(o.Name), story.CreateByHand.With(o.Name))
		}
		s.Wants = append(s.Wants, Want{Action: events.ActionStart, Slice: o.Name, Place: view.Place{Zone: o.Zone}, Life: o.Incarnation, Why: s.Why})
	}
	if s.Wants == nil {
		return nil
	}
	name := s.Wants[0].Slice
	advice := story.StartByHand.With(d.w.Words().Start, name+inPlace(s.Wants[0].Zone))
	switch {
	case d.starts() >= bounds.MaxStarts && !d.w.has(events.ActionStart):
		return escalate(reason.CodeOverdue, story.StartsSpent.With(name), advice)
	case d.over(s.Until) && len(d.inAny(lost, sick, vanished)) > 0:
		return nil // another slice is waited for, too
	case d.over(s.Until):
		return escalate(reason.CodeOverdue, story.StartLasts.With(name, d.lastFailure(events.ActionStart)), advice)
	}
	return d.mayBe(policy.StartStopped, s)
}

// isToStart reports whether a slot is to be started, or is being started.
func (d *diagnosis) isToStart(s *slot) bool {
	x := d.w.effect(events.ActionStart, s.Name)
	begun := x != nil && !x.Begun.IsZero() && s.is(sick, moving)
	maintained := d.isAwaited(s) && d.begins(s.Notice) && !d.over(d.by(s.Notice.windowEnd(), passFor)) // and comes back by itself
	return begun || s.is(stopped) && s.isUnsaid() && !maintained
}

// lastFailure is why the last call of a kind failed.
func (d *diagnosis) lastFailure(a events.Action) string {
	for _, x := range d.w.Effects {
		if x.Action == a && x.Last.Text != "" {
			return x.Last.Text
		}
	}
	return "nobody answered"
}

// isUnsaid reports whether the audit log names nobody who stopped a life.
func (l *Life) isUnsaid() bool { return l.isUnaccounted() && !l.Stop.Unsaid.IsZero() }

// starts counts the starts in the incident.
func (d *diagnosis) starts() (n int) {
	for _, c := range d.in.Calls {
		if c.Action == events.ActionStart && !c.NotMade {
			n += 1 + c.Folded
		}
	}
	return n
}
