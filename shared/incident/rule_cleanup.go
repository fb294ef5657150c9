package incident

import (
	"cmp"
	"slices"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// cleanUp deletes what the incident's own calls made, or may still make, once the incident is ending and nobody waits for it.
func (d *diagnosis) cleanUp() *Step {
	if d.in.Ending == nil {
		return nil
	}
	s := call(view.Clearing, story.CleanUp.With(), later(d.by(later(d.in.Ending.At, d.w.retried()), bounds.ClearFor), d.barredBy()))
	covered := map[string]bool{}
	for _, o := range d.those(d.isLeftover) {
		if !covered[o.Name] {
			s.Wants = append(s.Wants, d.deletion(o, s.Why))
			cover(covered, s.Wants)
		}
	}
	for _, w := range d.surplus(s.Why) {
		if !covered[w.Slice] {
			s.Wants = append(s.Wants, w)
		}
	}
	switch {
	case s.Wants == nil && !d.leavesBehind(*d.in.Ending), d.watchOnly() && !d.in.hasMade(): // people were told of what others left
		return ends(*d.in.Ending)
	case s.Wants != nil && d.watchOnly():
		return escalate(reason.CodePolicyNo, story.UnderSwitch.With(s.Why.String(), d.w.Forbids("", policy.No, d.p)), story.DeleteLabelled.With(d.in.ID))
	case d.over(s.Until):
		return escalate(reason.CodeOverdue, story.ClearLasts.With(d.barring()), story.DeleteLabelled.With(d.in.ID))
	}
	return s
}

// clearLate ends an incident that was opened for what came late of another one: it is cleaned up.
func (d *diagnosis) clearLate() *Step {
	s := d.slot(d.in.Troubles[0].Slice)
	if s == nil || !d.in.isAboutLate(s) {
		return nil
	}
	second := s.surplus()
	advice := story.DeleteIt.With(d.w.Words().deletes(cmp.Or(second, &s.Life), s.Name))
	switch {
	case second == nil && (!s.isOurs() || s.Maker == d.in.ID):
		return nil
	case second != nil && !d.isUntouched(s, second):
		return ends(End{Outcome: view.Observed, Code: reason.CodeLeftBehind, Reason: story.SecondLife.With(s.Name, second.Zone), Advice: advice})
	case d.watchOnly():
		return ends(End{Outcome: view.Observed, Code: reason.CodeWatchOnly, Reason: story.CameLate.With(s.Name), Advice: advice})
	}
	return ends(End{Outcome: view.Released, Code: reason.CodeLeftBehind, Reason: story.CameLate.With(s.Name)})
}

// isLeftover reports whether a call of ours has made or ordered something that training was never let into, and that its owner has not deleted since.
// Where a new slice trains unasked, it is its owner's once it is there, and without a directory there is no lease.
func (d *diagnosis) isLeftover(s *slot) bool {
	if d.w.provider().trainsUnasked {
		return false
	}
	taken := !s.usable().IsZero() && s.Released.After(s.usable()) // its owner deletes it
	deleted := !s.Released.IsZero() && (!s.Released.Before(s.Since) || s.Condition == evidence.Deleting)
	return s.Maker != "" && s.exists() && d.isUntouched(s, &s.Life) && !taken && !deleted || !s.Ordered.IsZero()
}

// isUntouched reports whether no training can have begun in a life that our call has made: no lease may name it. Without a directory there is no
// lease, and where a new slice trains unasked, none holds it back.
func (d *diagnosis) isUntouched(s *slot, l *Life) bool {
	if d.w.Directory == "" && !l.usable().IsZero() || d.w.provider().trainsUnasked {
		return false
	}
	return !d.w.Lease.any(func(m Write) bool { return m.of(s.Name).Same(l.Incarnation) })
}

// isAboutLate reports whether an incident was opened for what came late of another one.
func (in *Incident) isAboutLate(s *slot) bool {
	t := in.Troubles[0]
	return t.Slice == s.Name && t.Life == ""
}

// leavesBehind reports whether an end that does not resume the training leaves something behind that our own calls made, or may still make. What
// lacks only its admission is left to the person who has to act.
func (d *diagnosis) leavesBehind(e End) bool {
	unsaved := e.Code == reason.CodeUnverified // what still lives, and is saved nowhere
	if e.Outcome == view.Resumed || unsaved || d.w.provider().trainsUnasked {
		return false
	}
	making := slices.ContainsFunc(d.w.Effects, func(x Effect) bool { return d.mayBring(x) || d.mayTake(x, e) })
	unfinished := e.Outcome == view.Released || len(d.those(func(s *slot) bool { return s.replace })) > 0
	return making || unfinished && len(d.those(d.isLeftover)) > 0 || len(d.surplus(story.Reason{})) > 0
}

// surplus are the deletions of lives that our calls made, and in whose place others stand.
func (d *diagnosis) surplus(why story.Reason) (wants []Want) {
	for i := range d.slots {
		s := &d.slots[i]
		if l := s.surplus(); l != nil && d.isUntouched(s, l) {
			wants = append(wants, Want{Action: events.ActionDelete, Slice: s.Name, Place: view.Place{Zone: l.Zone}, Life: l.Incarnation, Why: why})
		}
	}
	return wants
}

// surplus is a life beside the present one that a call of ours has made; nil where there is none.
func (s *Slot) surplus() *Life {
	for i := range s.Former {
		if l := &s.Former[i]; l.Maker != "" && l.exists() {
			return l
		}
	}
	return nil
}

// mayTake reports whether a deletion of the clean-up may still do its work, whatever its slice turned out to do.
func (d *diagnosis) mayTake(x Effect, e End) bool {
	return x.Action == events.ActionDelete && !x.First.Before(e.At) && d.w.mayAct(&x) && !d.w.isDone(&x)
}

// mayBring reports whether a creation may still bring something that no reading has shown yet.
func (d *diagnosis) mayBring(x Effect) bool {
	came := func(l *Life) bool { return l.Maker == d.in.ID && l.Since.After(x.Begun) }
	if x.Action != events.ActionCreate || x.Begun.IsZero() || d.w.Slice(x.Slice).find(came) != nil {
		return false
	}
	return x.Operation != "" || x.Answered.IsZero() && !d.passed(x.Begun, bounds.AnswerFor)
}
