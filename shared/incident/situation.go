//go:build !heart

package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
)

// A situation is the state of a slice for decisions. It follows from the known facts about the slice, and is never stored.
type situation string

const (
	serving  situation = "serving"  // it can be used
	unusable situation = "unusable" // it exists, and cannot be used now
	halted   situation = "stopped"  // it exists, and somebody stopped it
	lost     situation = "lost"     // nothing runs there any more, and Pitstop itself has read that
	vanished situation = "vanished" // the API does not know it, and nobody has said why
	moving   situation = "moving"   // it arrives or leaves: nothing follows until it has
	foreign  situation = "foreign"  // its owner has it, and nobody waits for it
)

// sight is a slice as a reading has just shown it.
type sight struct {
	*Slot
	is situation
	// was is its condition before. Announced says that the reading shows announced maintenance, and made that the ordered slice has
	// come.
	was             Condition
	announced, made bool
}

// situation is the slice's situation for the open incident.
func (m *machine) situation(s *Slot) situation {
	if s.IsReleased() && !s.ToReplace && s.Condition != Ready && m.phase() != Clearing {
		return foreign
	}
	switch s.Condition {
	case Ready:
		return serving
	case Unhealthy, Unclear:
		return unusable
	case Stopped:
		return halted
	case Lost:
		return lost
	case Gone:
		if m.w.knowsWhyGone(s) {
			return lost
		}
		return vanished
	case Unread, Creating, Done, Deleting:
	}
	return moving
}

// react takes a reading of a slice, and decides what follows in the incident's phase.
func (m *machine) react(s *Slot, e Read, was Condition) {
	if s.Condition == Ready {
		m.servesAgain(s)
		s = m.w.Slice(s.Name)
	}
	if m.w.Incident == nil {
		m.reactInPeace(s)
		return
	}
	if m.w.Incident.Look && m.phase() != Looking {
		m.inc().Look = false
	}
	if m.phase() == Looking && s.lives() && m.lossInGroup(s) {
		m.replace(m.describeLossInGroup(s) + ", and the " + m.w.group(s.Group) + " holds " + s.Name + " too")
		return
	}
	made := s.Condition == Ready && s.ToReplace && m.w.effect(events.ActionCreate, s.Name) != nil
	if made {
		m.markArrived(s)
		s = m.w.Slice(s.Name)
	}
	at := sight{Slot: s, is: m.situation(s), was: was, announced: e.Notice != nil, made: made}
	if at.is == foreign || at.is == moving || at.is == halted && m.standsStopped(s) {
		return
	}
	m.reactIn(m.phase(), at)
}

// reactIn decides what follows from a slice's situation. Each phase says so in one place, for every situation.
func (m *machine) reactIn(p Phase, s sight) {
	switch p {
	case Looking, PhaseGrace, Healing, Admitting, Resuming, Restarting:
		m.reactWaiting(s)
	case Saving, Maintaining, Window:
		m.reactToMaintenance(s)
	case Approving:
		m.reactWhileAsked(s)
	case PhaseDeleting:
		m.reactWhileDeleting(s)
	case PhaseCreating:
		m.reactWhileCreating(s)
	case Starting:
		m.reactWhileStarting(s)
	case Watching:
		m.reactWatching(s)
	case Clearing:
		m.reactWhileClearing(s)
	case Closed: // nothing is open
	}
}

// servesAgain clears the marks that a usable slice disproves: released, unused, stopped.
func (m *machine) servesAgain(s *Slot) {
	if s.IsReleased() && m.now.Sub(s.End.Released) > UnreleaseAfter {
		s = m.slice(s.Name)
		s.End.Released = time.Time{} // the owner deleted another life
		switch {
		case m.w.leaseNamesOtherZone(s):
			s.Admission = AwaitsAdmission
		case s.Admission == AwaitsAdmission:
			s.Admission = ""
		}
	}
	if s.NeverUsable {
		s = m.slice(s.Name)
		s.NeverUsable = false
	}
	if s.Stop.By != "" && m.when().Sub(s.Stop.At) > UnreleaseAfter {
		m.noteStopCall(s, "") // it was started again, or never stopped
		s = m.w.Slice(s.Name)
	}
	if m.w.Incident == nil && s.End.Reported {
		m.slice(s.Name).End.Reported = false
	}
}

// reactInPeace opens an incident for a slice that a reading proves lost. For other unusable slices, the clock opens it.
func (m *machine) reactInPeace(s *Slot) {
	if s.Condition != Lost || !m.mayOpen(s) || !s.Incarnation.Known() {
		return // no life that was ever seen is lost
	}
	t := m.loss(s)
	t.Life = s.Incarnation.ID
	m.open(t)
	m.lose(s, t.Text)
}

// loss is the trouble that a slice is lost, as a reading shows it.
func (m *machine) loss(s *Slot) Trouble {
	t := Trouble{Cause: events.CauseTerminated, Slice: s.Name, At: m.now, Text: m.describe(s), Proven: true}
	switch {
	case s.endedAsPlanned():
		t.Cause, t.Text = events.CauseEnd, t.Text+", as planned for "+s.Ends.UTC().Format(time.RFC3339)
	case s.Cause != "":
		t.Cause = s.Cause
	case s.Reclaimable:
		t.Cause = events.CausePreemption
	}
	return t
}

// describe describes a slice's state for people.
func (m *machine) describe(s *Slot) string { return m.w.noun(s.Name) + " is " + s.State }

// mayHeal reports whether the provider may bring a lost slice back by itself. A gone slice does not come back.
func (m *machine) mayHeal(s sight) bool { return s.Condition == Lost && m.heals(s.Slot) }

// reactToLoss goes on with a slice that is lost.
func (m *machine) reactToLoss(s sight) {
	if s.Condition == Lost {
		m.trouble(m.loss(s.Slot), s.Incarnation)
	} else {
		m.stopped(s.Since)
	}
	m.lose(s.Slot, m.loss(s.Slot).Text)
}

// cannotServe goes on with a slice that is gone, or that exists and cannot be used.
func (m *machine) cannotServe(s sight) {
	at := m.now
	if s.is == vanished {
		at = s.Since
	}
	m.stopped(at)
	m.line(LineSeen, m.describe(s.Slot), "")
	m.waitForSlices()
}

// reactWaiting: the incident waits for a reading, for word of an owner, for the provider, for a lease or for progress.
func (m *machine) reactWaiting(s sight) {
	waits := m.phase() == PhaseGrace || m.phase() == Healing
	switch s.is {
	case lost:
		if waits && m.mayHeal(s) && m.now.Before(m.healedBy(s.Slot)) {
			m.noteLossWhileWaiting(s)
			return
		}
		m.reactToLoss(s)
	case vanished:
		if s.ToReplace { // not before somebody has said who deleted it
			m.slice(s.Name).ToReplace = false
		}
		if m.phase() != PhaseGrace { // its word is waited for
			m.cannotServe(s)
		}
	case unusable, halted:
		if !waits && !m.replacementWaits() {
			m.cannotServe(s)
		}
	case serving:
		m.servesWhileWaiting(s)
	case moving, foreign: // nothing follows
	}
}

// servesWhileWaiting notes a slice that can be used again, and ends a look that has found nothing for long enough.
func (m *machine) servesWhileWaiting(s sight) {
	switch p := m.phase(); {
	case (p == PhaseGrace || p == Healing) && s.was != Ready:
		m.line(LineSeen, m.w.noun(s.Name)+" is usable again", "")
	case p == Looking && m.allReady() && m.now.Sub(m.w.Incident.Since) >= SickFor:
		m.resume("the API has shown a usable slice for " + events.Span(SickFor))
	}
}

// noteLossWhileWaiting notes that a slice is lost which its provider may bring back, while the incident waits for slices: the wait ends no later than
// that slice's time.
func (m *machine) noteLossWhileWaiting(s sight) {
	m.stopped(s.Since)
	if by := m.healedBy(s.Slot); by.Before(m.w.Incident.Deadline) {
		m.inc().Deadline = by
	}
	m.trouble(m.loss(s.Slot), s.Incarnation)
}

// reactToMaintenance: the incident saves before announced maintenance, starts it, or waits for it to pass.
func (m *machine) reactToMaintenance(s sight) {
	in := m.w.Incident
	switch s.is {
	case lost:
		if m.phase() == Window && m.mayHeal(s) {
			m.stopped(s.Since)
			m.beganEarly()
			return // its deadline decides
		}
		m.reactToLoss(s)
	case vanished:
		m.cannotServe(s)
	case unusable, halted:
		m.stopped(m.now)
		if in.Begun && m.phase() == Window {
			return
		}
		m.beganEarly()
		m.inc().Begun = true
		m.line(LineSeen, m.describe(s.Slot), "")
		if m.phase() != Window {
			m.hasBegun()
		}
	case serving:
		if m.phase() == Window && m.maintenancePassed(s) {
			if s.was != Ready {
				m.line(LineSeen, m.w.noun(s.Name)+" is usable again", "")
			}
			m.maintenanceOver("the maintenance is over")
		}
	case moving, foreign: // nothing follows
	}
}

// maintenancePassed reports whether a usable slice shows that the awaited maintenance is over.
func (m *machine) maintenancePassed(s sight) bool {
	if s.announced || m.othersMaintained(s.Slot) || m.awaited(s.Slot) && s.Notice.End {
		return false // a life may last a little longer than planned
	}
	in := m.w.Incident
	announced, past := m.awaited(s.Slot), m.now.After(windowEnd(s.Notice.Notice))
	return in.Begun && (!announced || !in.Down.IsZero() || past) || announced && past
}

// reactWhileAsked: the incident waits for a person's approval.
func (m *machine) reactWhileAsked(s sight) {
	asked := m.w.Incident.Asked
	switch {
	case asked == events.ActionSave || asked == events.ActionMaintain:
		m.reactToMaintenance(s)
	case s.is == serving:
		if (asked == events.ActionDelete || asked == events.ActionStart) && m.allReady() {
			m.resume("the slice came back by itself")
		}
	case asked == events.ActionDelete && s.is == vanished && m.w.provider().trainsUnasked:
		for _, name := range m.toBeReplaced() { // not before somebody has said who deleted it
			m.slice(name).ToReplace = false
		}
		m.cannotServe(s)
	case asked == events.ActionDelete: // what is asked for is decided anew once it is answered
	default:
		m.reactBesideStart(s)
	}
}

// reactBesideStart goes on with a slice that is lost or gone while a start is asked for, or under way. If that start is of other slices, the
// slice waits for it, unless the loss is final.
func (m *machine) reactBesideStart(s sight) {
	others := m.startsOthers(s.Slot)
	switch {
	case s.is == lost && others && m.mayHeal(s):
		m.stopped(s.Since)
		if t := m.loss(s.Slot); m.trouble(t, s.Incarnation) {
			m.line(LineSeen, t.Text, "")
		}
	case s.is == lost:
		m.reactToLoss(s)
	case s.is == vanished && others:
		m.stopped(s.Since)
	case s.is == vanished:
		m.cannotServe(s)
	}
}

// reactWhileStarting: the incident waits for slices that it starts.
func (m *machine) reactWhileStarting(s sight) {
	switch {
	case s.is == serving && m.allReady():
		m.line(LineSeen, m.w.noun(s.Name)+" is usable again", "")
		m.resume("the slice is back")
	case s.is == serving && m.startedAll():
		m.waitForSlices()
	default:
		m.reactBesideStart(s)
	}
}

// reactWhileDeleting: the incident deletes the lost slices.
func (m *machine) reactWhileDeleting(s sight) {
	switch {
	case s.made:
		m.goOnOnceThere()
	case s.Condition == Gone && s.ToReplace && m.deletedByOthers(s.Slot):
		m.explainEnd(s)
	case s.Condition == Gone && s.ToReplace:
		m.goOnOnceGone(s.Slot)
	case s.is == serving, s.ToReplace && (s.is == unusable || s.is == halted):
		m.keepIfAlive(s.Slot)
	case s.is == lost && m.stillToReplace(s.Slot): // it is on its way out
	case s.is == lost:
		m.joinReplacement(s)
	}
}

// reactWhileCreating: the incident creates the gone slices again.
func (m *machine) reactWhileCreating(s sight) {
	switch {
	case s.made:
		m.goOnOnceThere()
	case s.is == lost:
		m.joinReplacement(s)
	case s.ToReplace && (s.is == unusable || s.is == halted):
		m.limitRecovery(s)
	}
}

// joinReplacement adds a slice to the replacement that is lost while others are being replaced. Where its provider may bring it
// back, the wait for that begins when the others exist again.
func (m *machine) joinReplacement(s sight) {
	if !s.ToReplace && m.mayHeal(s) {
		m.trouble(m.loss(s.Slot), s.Incarnation)
		return
	}
	m.reactToLoss(s)
}

// limitRecovery bounds the wait for a new, unusable slice like the wait for one that heals: the incident waits no longer for
// capacity.
func (m *machine) limitRecovery(s sight) {
	in, until := m.w.Incident, s.Since.Add(HealFor)
	if in.Deadline.IsZero() || until.Before(in.Deadline) {
		m.line(LineSeen, m.describe(s.Slot), "")
		m.inc().Deadline = until
	}
}

// reactWhileClearing: Pitstop cleans up the slices that its own requests have brought, or may still bring.
func (m *machine) reactWhileClearing(s sight) {
	if s.Condition == Gone {
		m.cleared(s.Slot)
	}
}

// reactWatching: Pitstop may do nothing, or nothing about the training that hangs. A slice that cannot be used is another trouble.
func (m *machine) reactWatching(s sight) {
	passes := s.is == unusable && m.now.Sub(s.Since) < SickFor // in quiet times it would open no incident either
	if m.onlyHangs() && s.is != serving && !passes {
		m.enter(Resuming)
		m.reactWaiting(s)
		return
	}
	switch {
	case s.Condition == Lost:
		m.stopped(m.now)
		m.raiseBaseline()
		if t := m.loss(s.Slot); m.trouble(t, s.Incarnation) {
			m.line(LineSeen, t.Text, "")
		}
		m.rehearseLost()
	case s.Condition == Gone:
		m.stopped(s.Since)
		m.rehearseLost()
	case s.is == serving:
		m.servesWhileWatched(s)
	case s.was != s.Condition:
		m.line(LineSeen, m.describe(s.Slot), "")
		m.stopped(m.now)
	}
}

// servesWhileWatched notes a slice that can be used again, and ends the incident where no crew could report more.
func (m *machine) servesWhileWatched(s sight) {
	if s.was == Ready || s.was == Unread || !m.w.Incident.Cause.Infrastructure() {
		return
	}
	m.line(LineSeen, m.w.noun(s.Name)+" is usable again", "")
	if m.w.Crew.Seen.IsZero() && m.allReady() && !m.anyAnnounced() {
		m.finish(Observed, "", m.watchCode(), "the slice is usable again", "")
	}
}

// allReady reports whether every slice that somebody waits for can be used.
func (m *machine) allReady() bool {
	return !slices.ContainsFunc(m.w.Slices, Slot.isMissed)
}

// gone notes that the API does not know a slice.
func (m *machine) gone(s *Slot) {
	if s.Condition == Done {
		return // its work is complete, and nothing is missing
	}
	if s.Maker != "" && m.phase() == Clearing {
		s = m.slice(s.Name)
		s.End.Reported = true // nobody waited for it, and nobody misses it
	}
	m.clearMadeMarks(s)
	s = m.w.Slice(s.Name)
	in, was := m.w.Incident, s.Condition
	if in != nil && m.phase() == PhaseCreating && s.ToReplace {
		m.notThereYet(s)
		return
	}
	if s.Condition != Gone {
		s = m.slice(s.Name)
		s.turns(Gone, m.when())
		s.State = "gone"
	}
	if s.NeverUsable && m.ownersOrderFailed(s) {
		return
	}
	if m.endedUnseen(m.w.Slice(s.Name)); in == nil {
		return // unless it ended as planned, the clock opens an incident when nobody has said in time that the owner deleted it
	}
	m.react(m.w.Slice(s.Name), Read{}, was)
}
