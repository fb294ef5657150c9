//go:build !heart

package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
)

// called takes an owner's act. Pitstop releases a slice that its owner deleted, or that somebody else takes over.
func (m *machine) called(e Called) {
	s := m.w.Slice(e.Slice)
	deletes := e.Act == events.ActDeleted
	if s == nil || !m.saysSomething(e, s) {
		return
	}
	switch former := deletes && m.deletesPredecessor(s); {
	case m.formerly(s) && !former:
		return
	case deletes && !former && m.isElsewhere(s, e.Zone):
		m.deletedElsewhere(s, e.Zone)
		return
	}
	what := e.Method + " of " + s.Name + " by " + e.Principal
	switch e.Act {
	case events.ActDeleted:
		if m.releaseDeleted(s, e.Whole) {
			m.ownerActed(what, "the owner deleted it")
		}
	case events.ActCreated:
		if !e.Automatic || !m.deletedByUs(s, m.when().Truncate(time.Second)) {
			m.takenOver(what, e.Principal)
		}
	case events.ActStopped:
		if m.ownerStopped(s, e.Principal) {
			m.ownerActed(what, "the owner stopped it")
		}
	case events.ActStarted:
		m.noteStopCall(s, "")
	}
}

// saysSomething reports whether an act on a slice tells what its owner wants. What another object makes, that object makes anew: a Job of a
// JobSet is given up with its JobSet, and what a third object makes once the cluster collects it.
func (m *machine) saysSomething(e Called, s *Slot) bool {
	ofGroup := s.Group != "" && !e.Whole && m.w.provider().remakesSlices
	return e.Everything || !ofGroup && s.Controlled == e.Orphaned
}

// isElsewhere reports whether a zone is known, and is not one in which the slice is or is to be.
func (m *machine) isElsewhere(s *Slot, zone string) bool {
	return zone != "" && zone != s.Zone && zone != m.expectedZone(s)
}

// deletedElsewhere notes that the owner deleted a life in another zone than the slice's. The new slice may be admitted once the training
// of that life has certainly ended.
func (m *machine) deletedElsewhere(s *Slot, zone string) {
	if m.w.waitsFor(s, zone) {
		s = m.slice(s.Name)
		s.Admission = AwaitsAdmission
		s.silentBy(m.when().Add(TakeOverFor)) // the life before may train on
	}
}

// takenOver leaves an incident to somebody who creates its slice.
func (m *machine) takenOver(what, by string) {
	if m.w.Incident != nil && m.phase() != Watching && m.phase() != Clearing && !m.beforeTrouble() {
		m.line(LineSeen, what, "")
		m.release(CodeTakenOver, "somebody else creates it: "+by)
	}
}

// formerly reports whether the evidence is older than this life of a slice.
func (m *machine) formerly(s *Slot) bool {
	return !m.from.Time.IsZero() && m.when().Before(s.Incarnation.Created)
}

// deletesPredecessor reports whether the person who deleted the life before has given up the slice, though it has had another life
// since.
func (m *machine) deletesPredecessor(s *Slot) bool {
	return m.replacementInProgress(s) || m.replacementFailed(s)
}

// replacementInProgress reports whether the incident is creating this life as the replacement of the lost life in the evidence. The
// person who deleted the lost life takes the slice over, and nobody trains in the new one yet.
func (m *machine) replacementInProgress(s *Slot) bool {
	in := m.w.Incident
	return in != nil && m.phase() == PhaseCreating && s.ToReplace && s.Incarnation.Created.After(in.Opened) && !s.isAdmitted() && !m.beforeTrouble()
}

// replacementFailed reports whether Pitstop created this life, never admitted it, and it is gone, and no incident creates another.
// Then the evidence concerns the life that it was to replace.
func (m *machine) replacementFailed(s *Slot) bool {
	ours := s.Admitted().Known() && !s.isAdmitted() && s.Admission != AwaitsAdmission && s.Leased == 0 && s.Condition == Gone
	return ours && m.w.Incident == nil && m.when().After(s.Admitted().Created)
}

// beforeTrouble reports whether the evidence is older than every trouble of the open incident: the act in it created the life that
// was lost.
func (m *machine) beforeTrouble() bool {
	if m.from.Time.IsZero() {
		return false
	}
	for _, t := range m.w.Incident.Troubles {
		if !m.from.Time.Before(t.At) {
			return false
		}
	}
	return len(m.w.Incident.Troubles) > 0
}

// releaseDeleted leaves a deleted slice to the owner who deleted it: a group goes with everything in it. It reports whether that is
// news.
func (m *machine) releaseDeleted(s *Slot, all bool) bool {
	names := []string{s.Name}
	if all {
		names = append(names, m.othersInGroup(s)...)
	}
	news := false
	for _, name := range names {
		switch o := m.w.Slice(name); {
		case m.formerly(o) && !m.deletesPredecessor(o):
		case !o.IsReleased():
			o = m.slice(name)
			o.End.Released, o.Maker, news = m.when(), "", true
		case m.when().After(o.End.Released): // a slice that they have created since, and nobody has read yet
			m.slice(name).End.Released = m.when()
		}
	}
	return news
}

// ownerActed leaves the whole incident to the owner, because of an act on one of its slices.
func (m *machine) ownerActed(what, why string) {
	if m.w.Incident == nil || m.phase() == Clearing {
		return
	}
	m.line(LineSeen, what, "")
	if m.phase() == Watching {
		m.finish(Observed, "", CodeOwner, why, "")
		return
	}
	m.release(CodeOwner, why+": "+what)
}

// ownersOrderFailed notes that a slice which its owner ordered is gone before it could be used. It reports whether that ends the
// incident.
func (m *machine) ownersOrderFailed(s *Slot) bool {
	in := m.w.Incident
	s = m.slice(s.Name)
	s.NeverUsable = false
	if in != nil && (s.ToReplace || in.provesLoss(s)) {
		return false // it existed and was lost, and Pitstop replaces it like any other
	}
	s.End.Released = m.now
	if in == nil || m.phase() == Clearing || slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return !s.IsReleased() }) {
		return false
	}
	m.ownerActed(m.w.noun(s.Name)+" is gone", "what its owner ordered came to nothing")
	return true
}

// unsaid notes that the audit log names nobody who stopped or deleted a slice.
func (m *machine) unsaid(e Unsaid) {
	s := m.w.Slice(e.Slice)
	silent := s != nil && (s.unaccounted() || s.Condition == Gone)
	if !silent || !e.Incarnation.Same(s.Incarnation) || m.when().Sub(s.Since) < Grace || !s.Stop.Unsaid.IsZero() {
		return
	}
	m.slice(s.Name).Stop.Unsaid = m.when()
}

// ownerSilent reports whether a slice has been gone for longer than word of its deletion takes, and the audit log, asked after that
// time, names nobody.
func (l *Life) ownerSilent(now time.Time) bool {
	return l.Condition == Gone && now.Sub(l.Since) >= Grace && !l.Stop.Unsaid.IsZero()
}

// ownerStopped keeps the owner's stop of a slice, also in quiet times: Pitstop never starts a slice that its owner stopped. It
// reports whether the stop explains the slice's present state, and is not over.
func (m *machine) ownerStopped(s *Slot, by string) bool {
	if s.Maker != "" {
		s = m.slice(s.Name)
		s.Maker = "" // the owner handles it now
	}
	used := s.Used
	if s.Condition == Ready {
		used = s.Since
	}
	const skew = 5 * time.Minute // between Google's clock and that of Pitstop's readings
	if m.when().Before(used.Add(-skew)) {
		return false
	}
	if m.when().Before(s.Stop.At) {
		return false
	}
	m.noteStopCall(s, by)
	return true
}

// noteStopCall keeps who last stopped a slice, or that it was started since. An older call changes nothing: entries may come in any
// order.
func (m *machine) noteStopCall(s *Slot, stoppedBy string) {
	if at := m.when(); at.After(s.Stop.At) {
		s = m.slice(s.Name)
		s.Stop.By, s.Stop.At = stoppedBy, at
	}
}

// leaveStopped leaves an incident to the owner who has stopped one of its slices, in whatever order Pitstop learns that.
func (m *machine) leaveStopped() {
	if m.w.Incident == nil {
		return
	}
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.stoppedByOwner() && !s.IsReleased() {
			m.ownerActed(m.w.Words().Stops+" of "+s.Name+" by "+s.Stop.By, "the owner stopped it")
			return
		}
	}
}

// stoppedByOwner reports whether a slice is stopped because its owner wants it so.
func (l *Life) stoppedByOwner() bool { return l.Condition == Stopped && l.Stop.By != "" }

// mayOpen reports whether evidence on this slice may open an incident. It may not if it is no newer than the last progress, if the
// slice is left alone, or if an incident has reported the slice's end.
func (m *machine) mayOpen(s *Slot) bool {
	switch {
	case m.w.leftAlone(s):
		return false
	case m.from.Time.IsZero():
		return true
	}
	return m.from.Time.After(m.w.Progress.At)
}

// leftAlone reports whether nothing about this life of a slice opens an incident.
func (w Workload) leftAlone(s *Slot) bool { return w.whyLeftAlone(s) != "" }

// whyLeftAlone says why nothing about this life of a slice opens an incident, for people; empty where something newer than the last
// progress may.
func (w Workload) whyLeftAlone(s *Slot) string {
	switch {
	case s.IsReleased():
		return "its owner deleted it or took it over"
	case s.stoppedByOwner():
		return "its owner stopped it: " + s.Stop.By
	case s.NeverUsable:
		return "its owner ordered it, and it has not been usable yet"
	case w.Crew.Finished:
		return "the training is finished"
	case w.abuseReported():
		return "Google suspects abuse on a slice of it, and a person was told"
	case s.End.Reported:
		return "an incident has told its end already"
	}
	return ""
}

// ownersBusiness reports whether only the owner waits for a slice.
func (s Slot) ownersBusiness(w Workload) bool {
	return s.IsReleased() || s.NeverUsable || w.Crew.Finished || s.stoppedByOwner()
}
