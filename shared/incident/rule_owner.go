package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// leaveToOwner leaves to its owner what they deleted, stopped or made again.
func (d *diagnosis) leaveToOwner() *Step {
	for i := range d.slots {
		s := &d.slots[i]
		switch why := s.ownersDoing(); {
		case !why.IsZero() && !d.wasReleased(s):
			return d.released(reason.CodeOwner, why)
		case d.isMadeByOthers(s):
			return d.released(reason.CodeTakenOver, story.MadeAgain.With(s.Name))
		}
	}
	switch {
	case d.in.TakenBy != "":
		return d.released(reason.CodeTakenOver, story.TakenOver.With(d.in.TakenBy))
	case len(d.inAny(foreign)) == len(d.slots):
		return d.released(reason.CodeOwner, story.NobodyWaits.With())
	}
	return nil
}

// ownersDoing says how its owner took a slot out of Pitstop's hands: they deleted it, took it over or stopped it. It is empty for any other slot.
func (s *slot) ownersDoing() story.Reason {
	switch {
	case !s.Released.IsZero():
		return story.OwnerDeleted.With(s.Name)
	case s.Condition == evidence.Stopped && s.Stop.By != "":
		return story.OwnerStopped.With(s.Name, s.Stop.By)
	}
	return story.Reason{}
}

// wasReleased reports whether a slot was its owner's before the incident, and the incident is not about it.
func (d *diagnosis) wasReleased(s *slot) bool {
	struck := slices.ContainsFunc(d.in.Troubles, func(t Trouble) bool { return t.Slice == s.Name && t.Life == s.Incarnation.ID })
	return !s.Released.IsZero() && s.Released.Before(d.in.Opened) && !struck
}

// isMadeByOthers reports whether somebody else made or ordered a slice again in the middle of the incident, and not in answer to a call of ours.
// Where the training was begun since then, it is one of those in which it runs. Times of lives are whole seconds.
func (d *diagnosis) isMadeByOthers(s *slot) bool {
	made := s.made()
	since := !made.Before(d.in.Opened.Truncate(time.Second)) && later(d.w.leasedAt(), d.w.Training.Began).Before(made)
	again := s.exists() && len(s.Former) > 0 && s.Maker == "" && s.Spoke.IsZero() && !s.Anew && since
	return again && !d.watchOnly() && !d.answersOurs(s.Slot)
}

// answersOurs reports whether somebody else made a life in the place of one that a call of the incident has just deleted: a tool that keeps what
// somebody declared does what Pitstop is about to do.
func (d *diagnosis) answersOurs(s *Slot) bool {
	return s.Maker == "" && d.w.hasDeleted(s, s.made())
}

// hasDeleted reports whether a call of the incident may have deleted a slice by a time, where a new one trains unasked. Times of lives are whole
// seconds.
func (w *Workload) hasDeleted(s *Slot, by time.Time) bool {
	if !w.provider().trainsUnasked || w.Incident == nil {
		return false
	}
	resource := w.calls(Effect{Want: Want{Action: events.ActionDelete, Slice: s.Name, Place: view.Place{Zone: s.Zone}}})[0].Resource
	return slices.ContainsFunc(w.Incident.Calls, func(c view.Call) bool {
		deletes := c.Action == events.ActionDelete && c.Resource == resource && !c.NotMade && c.Code == ""
		return deletes && !by.Before(c.At.Truncate(time.Second))
	})
}

// released ends the incident for its owner, who has taken over.
func (d *diagnosis) released(c reason.Code, why story.Reason) *Step {
	if d.watchOnly() {
		return ends(End{Outcome: view.Observed, Code: c, Reason: why})
	}
	return ends(End{Outcome: view.Released, Code: c, Reason: why})
}

// watch follows what may only be watched.
func (d *diagnosis) watch() *Step {
	since := d.now
	if d.in.Status.Label == view.Watching {
		since = d.in.Status.Since
	}
	until, e := d.by(since, bounds.WatchFor), End{Outcome: view.Observed, Code: reason.CodeWatchOnly, Reason: story.AllowsNothing.With(), At: d.now}
	switch deletes := d.deletesBy(); {
	case !d.watchOnly():
		return nil
	case !deletes.IsZero(): // under a policy that was tightened since
		return wait(d.in.Status.Label, story.AllowsNothing.With(), deletes)
	case d.in.hasMade() && d.leavesBehind(e): // it costs something, or will, and the policy lets nothing come of it any more
		return ends(e)
	case d.prepares():
		return d.watchMaintenance()
	}
	if by, why := d.watchedUntil(until); !why.IsZero() {
		return ends(End{Outcome: view.Observed, By: by, Code: reason.CodeWatchOnly, Reason: why})
	}
	return wait(view.Watching, story.AllowsNothing.With(), until)
}

// watchedUntil is why nothing is left to watch, and what confirms that the training goes on; nothing while there is.
func (d *diagnosis) watchedUntil(until time.Time) (view.Confirmation, story.Reason) {
	switch {
	case d.whole() && d.stepsOn():
		return view.ByStep, d.goesOn()
	case d.whole() && d.w.Training.Seen.IsZero() && d.look() == nil:
		return "", story.HealthOnly.With()
	case d.over(until):
		return "", story.WatchedLong.With()
	case d.whole() && (d.hasGivenUp() || d.claimsGivenUp()):
		return "", story.GaveUpWatched.With()
	}
	return "", story.Reason{}
}

// deletesBy is until when somebody may be making a deletion that was begun; zero for none.
func (d *diagnosis) deletesBy() (by time.Time) {
	for _, x := range d.w.Effects {
		if until := d.by(x.Begun, bounds.CallFor); x.Action == events.ActionDelete && !x.Begun.IsZero() && !d.over(until) {
			by = later(by, until)
		}
	}
	return by
}
