package incident

import (
	"math"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// hangsSince notes since when a life of a slice hangs on workers whose machines do not answer. Where they do not hang any more, nothing is
// left of a release: if they hang again, the lease is looked at anew.
func (m *machine) hangsSince(e Read) {
	s := m.w.Slice(e.Slice)
	if s == nil || m.when().Before(s.Since) || s.IsFormer(e.Incarnation) {
		return
	}
	if !s.Hung.Equal(e.Hung) {
		m.slice(s.Name).Hung = e.Hung
	}
	if e.Hung.IsZero() && m.w.effect(events.ActionRelease, s.Name) != nil {
		m.drop(events.ActionRelease, s.Name)
	}
}

// releaseHung asks for the release of workers on which Pitstop's own deletion hangs, or a failure that only counts once they have ended. A
// release has two calls: the first takes the slice out of the lease, and the second, TakeOverFor later, ends the workers. Where no crew
// obeys a lease, recovery refuses the first.
func (m *machine) releaseHung() {
	if m.unread || m.unreadable() || m.w.Directory == "" || m.level(policy.Release) != policy.Yes {
		return // nobody is asked: a person who may say yes can end the worker, too
	}
	if m.now.Add(TakeOverFor + CheckFor).After(m.w.Incident.Deadline) {
		return // a person hears of it before that
	}
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if !m.hangsForUs(s) || m.w.effect(events.ActionRelease, s.Name) != nil {
			continue
		}
		why := "it hangs since " + s.Hung.UTC().Format("15:04") + " UTC on a machine that does not answer"
		m.decided("take "+s.Name+" out of the lease, and end its "+m.w.Words().Worker+"s "+events.Span(TakeOverFor)+" later", why)
		m.send(Effect{Action: events.ActionRelease, Slice: s.Name, Zone: s.Zone, Incarnation: s.Incarnation, Reason: why})
	}
}

// hangsForUs reports whether a slice hangs whose next life Pitstop has to make. A group's slices begin again together, and the lease names
// the others.
func (m *machine) hangsForUs(s *Slot) bool {
	deletion := m.w.effect(events.ActionDelete, s.Name)
	switch {
	case s.Hung.IsZero(), s.Kept != "", s.IsReleased():
		return false
	case m.phase() == PhaseDeleting:
		return s.Condition == Deleting && s.ToReplace && deletion != nil && !deletion.Answered.IsZero()
	}
	// What hangs may still train and save. Where Pitstop may not bring it back at once, ending it would leave nobody who trains, and a person
	// who has to act in any case can end the worker, too.
	return m.phase() == Healing && s.Condition == Unhealthy && s.Group == "" && m.staysAway(s) == ""
}

// unleased goes on once the lease names no life of the slice: whoever trains there has to end within TakeOverFor of now.
func (m *machine) unleased(effect *Effect) {
	if !effect.By.IsZero() {
		return // its workers were ended; the next reading shows it
	}
	effect.By, effect.Retry = m.now, m.now.Add(TakeOverFor)
	effect.Answered, effect.Begun, effect.RequestID = time.Time{}, time.Time{}, ""
}

// UnleasedWith are the lives that leave the lease together with that of a slice that is released: those whose releases were asked for with
// it, and are as far, because the lease takes one write of an epoch; and those that the same deletion has deleted.
func (w Workload) UnleasedWith(slice string) (all []events.Admission) {
	of := w.effect(events.ActionRelease, slice)
	for _, effect := range w.Effects {
		switch {
		case of == nil || effect.Maker != of.Maker:
		case effect.Action == events.ActionRelease && effect.Epoch == of.Epoch && effect.By.IsZero():
			all = append(all, events.Admission{Slice: effect.Slice, Incarnation: effect.Incarnation})
		case effect.Action == events.ActionDelete && effect.Concerns(slice) && !effect.Answered.IsZero() && len(effect.Lives) == len(effect.With):
			all = append(all, events.Admission{Slice: effect.Slice, Incarnation: effect.Incarnation})
			for i, name := range effect.With {
				all = append(all, events.Admission{Slice: name, Incarnation: effect.Lives[i]})
			}
		}
	}
	return all
}

// neverAgain stands for the attempt with which the lease names a life that was taken out of it: that life is over. A crew that still trains
// on its machine, or a line of it that comes late, does not show that a lease lets it.
const neverAgain = math.MaxInt32

// markUnleased notes the doubt that begins once a function has begun to take lives out of the lease.
func (m *machine) markUnleased(effect Effect) {
	m.w.Crew.LeaseAttempt, m.changed = max(m.w.Crew.LeaseAttempt, 1), true
	for _, a := range m.w.UnleasedWith(effect.Slice) {
		if s := m.w.Slice(a.Slice); s != nil && s.Incarnation.Same(a.Incarnation) {
			m.slice(a.Slice).exclude()
			m.slice(a.Slice).Leased = neverAgain
		}
	}
}

// howGone says how it is known that a former life is gone. Of one whose worker Pitstop ended unheard, only the lease says that it cannot
// write.
func (w Workload) howGone() string {
	unheard := func(c Call) bool {
		return c.Action == events.ActionRelease && c.Method != methodWrite && !c.NotMade && (c.Code == "" || c.Answered.IsZero())
	}
	if slices.ContainsFunc(w.Incident.Calls, unheard) {
		return "was ended unheard"
	}
	return "is proven gone"
}

// notReleased tries a release again after a failure that passes. Any other leaves the worker to the time of the deletion, and then to a person.
func (m *machine) notReleased(effect *Effect, f Failure) {
	effect.Failures++
	effect.Retry = m.now.Add(backoff(effect.Failures))
	if f.Class != Transient && f.Class != Busy {
		effect.Retry = later(effect.Retry, m.w.Incident.Deadline)
	}
}
