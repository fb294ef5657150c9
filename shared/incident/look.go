//go:build !heart

package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
)

// interrupted takes word that a machine was ended or broken. The word proves nothing yet: Pitstop reads the API first.
func (m *machine) interrupted(e Interrupted) {
	s := m.w.Slice(e.Slice)
	if s == nil {
		return
	}
	if s.IsReleased() {
		m.explainReleased(s, e)
		return
	}
	t := Trouble{
		Cause: e.Cause, Slice: s.Name, Life: s.Incarnation.ID, At: m.when(), Text: e.Text,
		Proven: m.from.Rank >= events.RankReading, Claimed: m.from.Rank == events.RankUser,
	}
	if m.formerLife(s, e.Incarnation) {
		m.attributeLate(t, e.Incarnation)
		return
	}
	if s.failedBefore(e.Cause, m.when()) {
		return
	}
	if strikes(e.Cause) {
		m.unfinish(m.when())
	}
	if m.w.Incident == nil {
		m.interruptedInPeace(s, t)
		return
	}
	m.interruptedAgain(s, t)
}

// interruptedInPeace opens an incident, unless the word belongs to one that is over.
func (m *machine) interruptedInPeace(s *Slot, t Trouble) {
	at, c := m.from.Time, m.w.Closed
	switch {
	case c != nil && !at.IsZero() && (!at.After(c.Closed) || m.mendedSince(s, c)):
		m.reattribute(t.Cause, t.Text)
	case !at.IsZero() && !at.After(m.w.Ended): // the incident that it belonged to is over, and forgotten
	case s.Condition == Ready && s.Since.After(at) && m.stale(): // a reading found it usable since: the word comes days late, from among the dead letters
	case s.Alarmed && t.Claimed: // a line has opened an incident before, and the API has shown nothing since
	case m.mayOpen(s) && (t.Cause != events.CauseMaintenance || m.mayOpenTogether(s)):
		if t.Claimed {
			m.slice(s.Name).Alarmed = true
		}
		m.openLook(t, t.Text)
	}
}

// interruptedAgain adds the trouble to the open incident, and requests a reading of the slice unless the slice is already being
// deleted.
func (m *machine) interruptedAgain(s *Slot, t Trouble) {
	in := m.w.Incident
	if at := m.from.Time; !at.IsZero() && !at.After(m.w.Ended) && at.Before(in.Opened.Add(-Linger)) {
		return // it belongs to the incident before, and was delivered again
	}
	if !m.trouble(t, s.Incarnation) {
		return
	}
	m.line(LineSeen, t.Text, "")
	switch m.phase() {
	case Window, Saving, Maintaining:
		m.beginsWith(t.Cause)
	case Clearing:
		return
	case PhaseDeleting, PhaseCreating:
		if s.ToReplace {
			return // it is being replaced already
		}
	case Looking, PhaseGrace, Healing, Approving, Admitting, Resuming, Restarting, Starting, Watching, Closed:
	}
	m.inc().Look = true
}

// explainReleased takes late word of why a slice was lost that its owner has taken over since. The word opens nothing; the incident
// that has just ended records it.
func (m *machine) explainReleased(s *Slot, e Interrupted) {
	c := m.w.Closed
	if m.w.Incident != nil || c == nil || m.from.Time.IsZero() || m.from.Time.After(c.Closed) {
		return
	}
	life := e.Incarnation
	if !life.Known() && !m.from.Time.Before(s.Incarnation.Created) {
		life = s.Incarnation
	}
	if c.concerns(s.Name, life) {
		m.reattribute(e.Cause, e.Text)
	}
}

// beginsWith notes that announced maintenance has begun when a host stops for it.
func (m *machine) beginsWith(c events.Cause) {
	if c != events.CauseMaintenance {
		return
	}
	in := m.inc()
	in.Begun = true
	if in.Down.IsZero() {
		in.Down = m.when()
	}
	if m.phase() != Window {
		m.hasBegun()
	}
}

// mendedSince reports whether evidence comes late of a trouble that was left to a person: the evidence is from no later than a
// minute after that incident's end, and the slice was found usable since.
func (m *machine) mendedSince(s *Slot, c *Incident) bool {
	return c.Outcome == Escalated && s.Condition == Ready && s.Since.After(m.from.Time) && m.from.Time.Sub(c.Closed) <= time.Minute
}

// stale reports whether evidence is later than log entries normally are.
func (m *machine) stale() bool { return !m.from.Time.IsZero() && m.now.Sub(m.from.Time) > Grace }

// openLook opens an incident on evidence that the API has to explain.
func (m *machine) openLook(t Trouble, text string) {
	m.open(t)
	if m.watched() {
		m.watch(text, "look at the API; what it shows decides", nil) // its former state leads to nothing
		return
	}
	m.enter(Looking)
	m.line(LineSeen, text, "")
	m.decided("incident opened: "+words(t.Cause)+"; look at the API first", "a log entry alone proves no loss")
}

// formerLife reports whether evidence concerns a life of the slice that is over.
func (m *machine) formerLife(s *Slot, life events.Incarnation) bool {
	if life.Known() {
		return !life.Same(s.Incarnation)
	}
	return !m.from.Time.IsZero() && m.from.Time.Before(s.Incarnation.Created)
}

// attributeLate corrects the cause of an incident, open or just closed, when late evidence concerns the life whose end the incident
// is about.
func (m *machine) attributeLate(t Trouble, life events.Incarnation) {
	in := m.w.Incident
	if in == nil {
		if c := m.w.Closed; c != nil && c.concerns(t.Slice, life) {
			m.reattribute(t.Cause, t.Text)
		}
		return
	}
	if !in.concerns(t.Slice, life) {
		return // it has ended with an incident before this one
	}
	if !m.from.Time.IsZero() && m.from.Time.Before(in.Opened.Add(-Linger)) || specific(t.Cause) <= specific(in.Cause) {
		return
	}
	was := in.Cause
	m.attribute(m.inc(), t.Cause, t.At)
	m.line(LineSeen, t.Text, "late evidence: attributed to "+words(t.Cause)+" instead of "+words(was))
}

// concerns reports whether an incident is about the end of a life. An unknown life counts as the incident's own.
func (in *Incident) concerns(slice string, life events.Incarnation) bool {
	return !life.Known() || slices.ContainsFunc(in.Troubles, func(t Trouble) bool { return t.Slice == slice && t.Life == life.ID })
}

// back takes another reason to look, and opens no incident. Every worker's training may write of its end as often as it likes, so
// Pitstop counts lines from users only once in a while.
func (m *machine) back(e Back) {
	s, in := m.w.Slice(e.Slice), m.w.Incident
	if s != nil && !m.formerLife(s, e.Incarnation) {
		m.unfinish(m.when())
	}
	if s == nil || in == nil || in.Look || m.formerLife(s, e.Incarnation) {
		return
	}
	if n := len(in.Timeline); m.from.Rank < events.RankAudit && n > 0 && m.now.Sub(in.Timeline[n-1].At) < time.Minute {
		return // another line came just now, and led to a reading
	}
	switch m.phase() {
	case Healing, Window, PhaseGrace, Looking:
		m.line(LineSeen, e.Text, "")
		m.inc().Look = true
	}
}

// read takes a fresh reading of a slice. The reading decides.
func (m *machine) read(e Read) {
	m.reading = e.Slice
	if n := m.w.Notice(e.Slice); e.NoticeUnread && n != nil && n.InAPI {
		e.Notice = &n.Notice // a notice that could not be read stays as it was
	}
	s := m.w.Slice(e.Slice)
	if s == nil {
		if e.Condition != Gone && e.Condition != Unread {
			m.introduce(e)
		}
		return
	}
	if s.breaks(e) && !m.when().Before(s.Since) {
		m.unfinish(m.when())
		if s.Alarmed {
			m.slice(s.Name).Alarmed = false
		}
	}
	if m.readAnother(s, e) || !e.Incarnation.Known() && m.readOrder(s, e) {
		return
	}
	m.readLife(m.w.Slice(e.Slice), e)
}

// readAnother takes a reading that is not of the current life under the slice's name. It reports whether the reading is such a one.
func (m *machine) readAnother(s *Slot, e Read) bool {
	switch {
	case m.surplus(s, e):
		m.tellSurplus(s, e)
	case m.when().Before(s.Since), s.IsFormer(e.Incarnation):
		// This reading is older than the one behind the last decision, or shows another life than the last.
	case e.Condition == Gone && e.Zone == m.expectedZone(s):
		m.gone(s)
	case e.Condition == Gone:
		if m.w.waitsFor(s, e.Zone) {
			m.slice(s.Name).Admission = AwaitsAdmission
		}
	case m.late(s, e):
		m.openLate(s, e)
	case e.Incarnation.Known() && !e.Incarnation.Same(s.Incarnation):
		m.newLife(s, e)
	case m.orderedByOthers(s, e):
		m.release(CodeTakenOver, "somebody else ordered "+m.w.group(e.Facts.Group)+" again in "+e.Zone+" in the middle of this incident")
		if m.phase() == Clearing && s.Ordered.IsZero() {
			m.cleared(m.w.Slice(e.Slice)) // Pitstop did not create the slice there
		}
	default:
		return false
	}
	return true
}

// readOrder takes a reading of a group that has brought nothing yet, and reports whether nothing more follows from it.
func (m *machine) readOrder(s *Slot, e Read) bool {
	clearing := m.phase() == Clearing
	if !clearing && (m.phase() != PhaseCreating || !s.ToReplace) {
		return e.Zone != s.Zone && s.Incarnation.Known() && s.Condition != Gone // elsewhere: the slice itself is where it was
	}
	if e.Zone != m.expectedZone(s) {
		return true
	}
	switch s = m.ordered(s, e); {
	case clearing && s.Ordered.IsZero():
		m.cleared(s)
	case clearing:
		m.clear()
	case e.Condition != Lost:
		m.waitInQueue(s)
	default:
		return false // its slice came and was lost unseen, or will not come: Pitstop orders it again
	}
	return true
}

// readLife takes a reading of the current life under the slice's name.
func (m *machine) readLife(s *Slot, e Read) {
	if (m.w.Incident == nil || m.phase() == Watching) && m.orderedElsewhere(s, e) {
		s = m.slice(e.Slice)
		s.Zone, s.NeverUsable = e.Zone, true // the owner handles it from here
	}
	if s.IsReleased() && e.Ordered.After(s.End.Released) { // its owner has ordered it again since
		s = m.slice(e.Slice)
		s.End.Released, s.NeverUsable = time.Time{}, e.Condition == Creating
	}
	if older(e, s) {
		e.Directory, e.Facts.Label, e.Facts.Spec, e.Facts.Account, e.Facts.Claims = "", s.Label, "", s.Account, s.Claims
	}
	m.facts(s, e, time.Time{})
	if e.Abuse != s.Abuse.Suspected && m.when().After(s.Abuse.At) && (e.Abuse || e.Condition == Ready) { // a lost slice may not show it any more
		s = m.slice(e.Slice)
		s.Abuse.Suspected, s.Abuse.At, s.Abuse.Reported = e.Abuse, m.when(), false
	}
	was := s.Condition
	if s.Condition != e.Condition || s.State != e.State {
		s = m.slice(e.Slice)
		s.State = e.State
		if s.Condition != e.Condition {
			s.turns(e.Condition, m.when())
		}
	}
	m.readNotice(s, e)
	m.unexplain(s)
	m.react(s, e, was)
	m.explainedByMaintenance(m.w.Slice(e.Slice), e)
}

// breaks reports whether a reading shows that a usable slice is not usable any more, and that its owner did not cause that.
func (l *Life) breaks(e Read) bool {
	switch e.Condition {
	case Lost, Gone, Unhealthy, Unclear:
		return l.Condition == Ready && !l.IsReleased() && e.Zone == l.Zone
	case Unread, Creating, Ready, Stopped, Done, Deleting:
	}
	return false
}

// ordered keeps where and when one of Pitstop's queued resources was created. Until it brings its slice, nothing else of that slice
// exists.
func (m *machine) ordered(s *Slot, e Read) *Slot {
	if e.Ordered.IsZero() || !m.w.ours(s, e) || s.Ordered.Equal(e.Ordered) && s.Zone == e.Zone {
		return s
	}
	m.noteOrdered(s.Name, e)
	return m.w.Slice(s.Name)
}

// noteOrdered notes the queued resource's creation time from a reading of one slice, for every slice that it still has to bring.
func (m *machine) noteOrdered(slice string, e Read) {
	effect := m.w.effect(events.ActionCreate, slice)
	if effect == nil || e.Ordered.IsZero() {
		return
	}
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; effect.Concerns(s.Name) && s.Maker == "" {
			s = m.slice(s.Name)
			s.SpecZone, s.Zone, s.Ordered = s.SpecIn(), e.Zone, e.Ordered
		}
	}
}

// orderedByOthers reports whether somebody else ordered a queued resource that has brought nothing yet: again since the incident
// opened, or in another zone since the creation of the slice that is gone.
func (m *machine) orderedByOthers(s *Slot, e Read) bool {
	in := m.w.Incident
	if in == nil || m.phase() == Watching || m.phase() == Clearing || e.Incarnation.Known() || e.Incident == in.ID {
		return false
	}
	again := e.Zone == m.expectedZone(s) && e.Ordered.After(in.Opened) && e.Ordered.After(s.Incarnation.Created)
	return again || m.orderedElsewhere(s, e) && e.Zone != m.expectedZone(s)
}

// orderedElsewhere reports whether somebody else has ordered a gone slice by a queued resource in another zone, which has brought
// nothing yet.
func (m *machine) orderedElsewhere(s *Slot, e Read) bool {
	waits := e.Condition == Creating && !e.Incarnation.Known() && e.Ordered.After(s.Incarnation.Created)
	return waits && s.Condition == Gone && e.Zone != s.Zone && m.createdBy(e) == nil
}

// waitInQueue notes that one of Pitstop's queued resources waits: the slice itself does not exist yet. For Spot the wait has no
// limit.
func (m *machine) waitInQueue(s *Slot) {
	if in := m.w.Incident; s.Reclaimable && !in.Deadline.IsZero() {
		in = m.inc()
		in.Deadline = time.Time{}
		if in.WaitingSince.IsZero() {
			in.WaitingSince, in.Reminded = m.now, m.now
		}
	}
}

// introduce adds a slice that was never seen before to its workload. Its training is admitted, because somebody else started it.
// The exception is a workload whose other slices run under Pitstop's lease: that lease does not name this slice, which waits for
// admission.
func (m *machine) introduce(e Read) {
	if len(m.w.Slices) == 0 {
		m.w.Seen = m.when()
	}
	m.w.Slices = append(m.w.Slices[:len(m.w.Slices):len(m.w.Slices)], Slot{Name: e.Slice, Life: Life{
		Zone: e.Zone, Incarnation: e.Incarnation, Condition: e.Condition, State: e.State, Since: m.when(),
		NeverUsable: e.Condition == Creating, Abuse: Abuse{Suspected: e.Abuse},
	}})
	m.ownSlices, m.changed = true, true
	s := m.w.Slice(e.Slice)
	m.facts(s, e, e.Incarnation.Created)
	s.endsIf(m.when())
	if m.w.leaseNamesOtherZone(s) {
		s.Admission = AwaitsAdmission
	} else {
		s.markAdmitted()
	}
	m.react(s, e, Unread)
}

// leaseNamesOtherZone reports whether Pitstop's lease may name a life in another zone than the slice's, or none, and no lease is
// known to name this life. Then the slice's crew may not take the lease over.
func (w Workload) leaseNamesOtherZone(s *Slot) bool {
	return w.Crew.LeaseAttempt > 0 && s.Incarnation.Known() && s.Admitted().Zone != s.Incarnation.Zone
}

// waitsFor reports whether a slice was not admitted because the life before it may have trained on in a zone, and that life is gone
// now.
func (w Workload) waitsFor(s *Slot, zone string) bool {
	return w.leaseNamesOtherZone(s) && s.Admitted().Zone == zone && s.Leased == 0 && s.Admission == "" && !s.IsReleased()
}

// facts stores the facts of a reading other than the slice's condition. Since is when the slice's life began, zero where the life
// was known before.
func (m *machine) facts(s *Slot, e Read, since time.Time) {
	f := e.Facts
	if f == (Facts{}) {
		if !s.WaitsSince.IsZero() && s.Condition != e.Condition {
			m.slice(s.Name).WaitsSince = time.Time{} // that was another wait
		}
		return
	}
	next, from := f, s.Zone
	switch e.Condition {
	case Lost, Unhealthy, Unclear, Stopped, Done, Deleting:
		if f.Ends.IsZero() {
			next.Ends = s.Ends // an unusable slice may not show it any more
		}
		next.Reclaimable = f.Reclaimable || s.Reclaimable // likewise
		if f.Cause == "" && e.Condition == Lost {
			next.Cause = s.Cause // what showed it may be gone by now
		}
		if f.Failed.IsZero() && e.Condition == Lost {
			next.Failed = s.Failed
		}
	case Unread, Creating, Ready, Gone:
	}
	if f.Spec == "" {
		next.Spec, next.Bare, from = s.Spec, s.Bare, s.SpecZone
	}
	if next != s.Facts || from != s.SpecZone {
		s = m.slice(s.Name)
		s.Facts, s.SpecZone = next, from
	}
	if e.Directory != "" && !sameDirectory(m.w.Directory, e.Directory) && m.newest(s) {
		if m.w.Directory != "" {
			m.anotherTraining(since)
		}
		m.w.Directory, m.w.Crew.LeaseAttempt, m.w.Crew.Confirmed, m.w.LeaseDoubted, m.changed = e.Directory, 0, 0, time.Time{}, true // Pitstop has no lease there
		m.leads(func(Slot) int { return 0 })
	}
}

// newest reports whether no other slice began its life after this one: the newest slice says which training the workload runs.
func (m *machine) newest(s *Slot) bool {
	return !slices.ContainsFunc(m.w.Slices, func(o Slot) bool { return !o.IsReleased() && o.Incarnation.Created.After(s.Incarnation.Created) })
}

// anotherTraining forgets the results of the training before. Another directory has its own lease, attempts, steps and checkpoints,
// and no checkpoint in the former directory saves the new training. Where the new directory came with a new life, the new training
// counts from that time.
func (m *machine) anotherTraining(since time.Time) {
	m.w.Progress, m.w.Budgets = Progress{}, Budgets{}
	m.w.Crew = Crew{Seen: m.w.Crew.Seen, Since: later(m.w.Crew.Since, since), Left: m.w.Crew.Left, Restarted: m.w.Crew.Restarted}
	if m.w.Incident != nil {
		in := m.inc()
		in.Baseline, in.BaseAttempt, in.Charged = 0, 0, 0
		m.drop(events.ActionHear, "") // effects under way concern the other directory
		m.drop(events.ActionVerify, "")
	}
}

// expectedZone is the only zone in which the slice may be.
func (m *machine) expectedZone(s *Slot) string {
	if in := m.w.Incident; in != nil {
		if effect := m.w.effect(events.ActionCreate, s.Name); effect != nil {
			return effect.Zone
		}
	}
	return s.Zone
}

// readNotice takes from a reading that a notice, which an earlier reading showed, is gone. An unusable slice's reading says nothing
// about it: when a slice is lost its notice disappears too, and that is no withdrawal.
func (m *machine) readNotice(s *Slot, e Read) {
	if n := m.w.Notice(s.Name); n != nil && n.InAPI && e.Notice == nil && e.Condition == Ready && !m.when().Before(n.LastWord) {
		m.noticeGone(s, Noticed{Slice: s.Name, Text: "the API announces no maintenance any more"})
	}
}

// openAdmission admits training to a slice that its owner created and whose crew may not take the lease over, once the whole
// workload is usable. It waits until every slice has been read: slices that were created together are read one after the other.
func (m *machine) openAdmission() {
	due := m.w.admissionDue()
	if due.IsZero() || due.After(m.now) || m.watched() {
		return
	}
	s := m.w.Slice(m.w.firstAwaitingAdmission())
	if m.p.Unreadable != "" && m.now.Sub(s.Since) < Grace {
		return // somebody may fix it before people have to hear of the wait
	}
	text, why := m.w.noun(s.Name)+" was created in "+s.Zone+" by somebody else", "the lease names another zone"
	if !s.Admitted().Known() {
		text, why = m.w.noun(s.Name)+" waits in "+s.Zone, "no lease is known to name it"
	}
	in := m.open(Trouble{Cause: events.CauseUnknown, Slice: s.Name, Life: s.Incarnation.ID, At: m.now, Text: text})
	in.Down = m.now
	m.line(LineSeen, text, why)
	m.admitOnceReady()
}

// othersMaintained reports whether the incident waits for another slice's maintenance. A slice without maintenance of its own, such
// as a new life, says nothing about theirs. A slice whose own maintenance is over waits for maintenance that is under way or about
// to begin.
func (m *machine) othersMaintained(s *Slot) bool {
	return slices.ContainsFunc(m.w.Slices, func(o Slot) bool {
		return o.Name != s.Name && m.awaited(&o) && (s.Notice.Status == "" || m.begins(o.Notice))
	})
}

// replacementWaits reports whether the replacement of a slice waits for the crew's verdict: another unusable slice changes nothing
// about that wait.
func (m *machine) replacementWaits() bool {
	return m.phase() == Looking && m.w.Incident.Hearing && len(m.toBeReplaced()) > 0
}

// stopped notes when the training stopped, as far as is known.
func (m *machine) stopped(at time.Time) {
	if m.w.Incident.Down.IsZero() {
		m.inc().Down = at
	}
}

// clearMadeMarks notes that nothing created or ordered by Pitstop remains of a slice.
func (m *machine) clearMadeMarks(s *Slot) {
	if s.leftBehind() {
		s = m.slice(s.Name)
		s.Maker, s.Ordered = "", time.Time{}
	}
}

// notThereYet requests a slice again whose creation the provider calls done, although the slice does not exist.
func (m *machine) notThereYet(s *Slot) {
	effect := m.w.effect(events.ActionCreate, s.Name)
	if effect != nil && effect.Stage() == StageDone && m.now.Sub(effect.Answered) >= SickFor {
		m.retryLater(m.effect(events.ActionCreate, s.Name), "the creation was called done, and nothing is there")
	}
}

// provesLoss reports whether Pitstop itself read, in the API or in the audit log, that this life was lost since it was last usable.
// A log entry that arrives by a topic proves nothing: anyone who may publish there can write one. A repaired loss explains nothing
// that comes after it.
func (in *Incident) provesLoss(s *Slot) bool {
	for _, t := range in.Troubles {
		if t.Slice != s.Name || t.Life != s.Incarnation.ID || !t.Proven || t.At.Before(s.usable()) {
			continue
		}
		switch t.Cause {
		case events.CausePreemption, events.CauseHostError, events.CauseTerminated, events.CauseEnd:
			return true
		case events.CauseUnknown, events.CauseMaintenance, events.CauseGuest, events.CauseCrash, events.CauseHang:
			// None of these makes a slice vanish.
		}
	}
	return false
}

// knowsWhyGone reports whether a slice that is gone was lost. Where a new slice trains unasked, a loss is not
// enough: its owner may have deleted it after that, and the log is asked.
func (w Workload) knowsWhyGone(s *Slot) bool {
	return w.Incident.provesLoss(s) && !w.provider().trainsUnasked
}

// newLife handles another life under the slice's name. Pitstop may have created it, or the owner in quiet times, or somebody who
// takes the slice over.
func (m *machine) newLife(s *Slot, e Read) {
	if m.w.Incident == nil {
		m.adoptTheirs(s.Name, e)
		return
	}
	ours, before := m.madeByUs(s, e), m.fromBefore(s, e)
	switch {
	case m.phase() == Clearing && (ours || !before):
		m.newLifeWhileClearing(s, e, ours)
	case m.phase() == Watching || before:
		m.adoptTheirs(s.Name, e)
		m.line(LineSeen, m.w.noun(s.Name)+" was created again in "+e.Zone+" by somebody else", "")
		m.react(m.w.Slice(s.Name), e, Gone)
	case ours:
		m.ourLifeCame(s, e)
	case m.madeInOurPlace(s, e):
		m.answersOurs(s, e)
	case m.madeByProvider(s, e):
		m.adoptTheirs(s.Name, e)
		m.line(LineSeen, m.w.Words().Healer+" made "+m.w.noun(s.Name)+" anew", "")
		m.react(m.w.Slice(s.Name), e, Gone)
	default:
		if !s.leftBehind() || s.Zone == e.Zone {
			m.adoptTheirs(s.Name, e)
		}
		m.release(CodeTakenOver, "somebody else created "+m.w.noun(s.Name)+" again in "+e.Zone+" in the middle of this incident")
	}
}

// madeByUs reports whether one of Pitstop's calls created the life in a reading, alone or in a queued resource in which another slice is
// lost again.
func (m *machine) madeByUs(s *Slot, e Read) bool {
	brought := !s.Ordered.IsZero() && s.Ordered.Equal(e.Ordered)
	return m.w.ours(s, e) || brought || m.phase() == Clearing && m.creator(s, e) != nil
}

// fromBefore reports whether the life in a reading began before the trouble, and had only not been read yet: it takes nothing over.
func (m *machine) fromBefore(s *Slot, e Read) bool {
	created := e.Incarnation.Created
	return !s.ToReplace && !created.IsZero() && created.Before(m.w.Incident.Opened)
}

// madeByProvider reports whether the provider itself made the life in a reading, in a group that is as old as the life before.
func (m *machine) madeByProvider(s *Slot, e Read) bool {
	same := s.Group != "" && s.Group == e.Facts.Group && !e.Ordered.IsZero() && !e.Ordered.After(s.Incarnation.Created)
	return same && m.w.provider().remakesSlices || s.Controlled && e.Facts.Controlled
}

// madeInOurPlace reports whether somebody else made the life in a reading in the place of one that Pitstop has just deleted.
func (m *machine) madeInOurPlace(s *Slot, e Read) bool {
	return (m.phase() == PhaseDeleting || m.phase() == PhaseCreating) && s.ToReplace && m.deletedByUs(s, e.Incarnation.Created)
}

// answersOurs takes a life that somebody else made in the place of one that Pitstop has just deleted: it answers Pitstop's own creation, and
// stays theirs. Where others have yet to be deleted, it is no longer to be replaced.
func (m *machine) answersOurs(s *Slot, e Read) {
	if m.phase() == PhaseDeleting { // the lives before it are over, and a group is made anew as a whole
		for _, name := range append([]string{e.Slice}, m.othersInGroup(s)...) {
			m.gone(m.w.Slice(name))
		}
	}
	if m.phase() != PhaseCreating {
		m.adoptTheirs(e.Slice, e)
		return
	}
	m.line(LineSeen, m.w.noun(e.Slice)+" was created again by somebody else", "Pitstop was about to create it, and takes it as the new life")
	if effect := m.effect(events.ActionCreate, e.Slice); effect != nil && effect.Answered.IsZero() {
		effect.Answered, effect.Retry, effect.Failures = m.now, time.Time{}, 0
		m.accepted(effect, false)
	}
	m.ourLifeCame(m.w.Slice(e.Slice), e)
	m.slice(e.Slice).Maker = ""
}

// newLifeWhileClearing continues a clean-up when another life appears: Pitstop's life is deleted too, and anybody else's stays.
func (m *machine) newLifeWhileClearing(s *Slot, e Read, ours bool) {
	switch {
	case ours:
		m.adopt(s.Name, e, ours)
		m.slice(s.Name).Maker = m.w.Incident.ID
		m.noteOrdered(s.Name, e)
		m.pointDeletionAtLife(s.Name)
		m.clear()
	case s.leftBehind() && s.Zone != e.Zone:
		// Pitstop's own leftover is deleted first; the other life is read again when the incident is over.
	default:
		m.adoptTheirs(s.Name, e)
		m.cancelDeletion(s.Name)
		m.cleared(m.slice(s.Name))
	}
}

// ourLifeCame notes that the slice which this incident ordered exists.
func (m *machine) ourLifeCame(s *Slot, e Read) {
	m.adopt(s.Name, e, true)
	a := m.slice(s.Name)
	a.ToReplace, a.Maker = true, m.w.Incident.ID
	m.noteOrdered(s.Name, e)
	switch m.phase() {
	case PhaseCreating, PhaseDeleting, Healing, PhaseGrace, Approving: // the wait may be for another slice
	default:
		m.enter(PhaseCreating)
	}
	m.line(LineSeen, m.w.noun(s.Name)+" lives in "+e.Zone, "incarnation "+e.Incarnation.String())
	m.react(m.w.Slice(s.Name), e, Creating)
}

// older reports whether a reading only shows the order of a queued resource from which the slice's life came. The owner's later
// changes to that life are newer.
func older(e Read, s *Slot) bool {
	return !e.Incarnation.Known() && s.Incarnation.Known() && !e.Ordered.IsZero() && !e.Ordered.After(s.Incarnation.Created)
}

// over reports whether no training can run in the last read life: the slice is gone, does not run, or was ordered again.
func (l Life) over() bool {
	switch l.Condition {
	case Gone, Lost, Stopped, Done, Creating:
		return true
	case Unread, Ready, Unhealthy, Unclear, Deleting:
	}
	return false
}

// cancelDeletion drops the deletion of a slice that is to stay, unless the call is under way or the deletion also covers something
// of Pitstop's. It reports whether the deletion was cancelled.
func (m *machine) cancelDeletion(slice string) bool {
	effect := m.w.effect(events.ActionDelete, slice)
	if effect == nil || effect.UnderWay(m.now) || slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return effect.Concerns(s.Name) && s.leftBehind() }) {
		return false
	}
	m.drop(events.ActionDelete, slice)
	return true
}

// pointDeletionAtLife points the deletion of an order at the life that the order has brought meanwhile.
func (m *machine) pointDeletionAtLife(slice string) {
	effect := m.w.effect(events.ActionDelete, slice)
	switch {
	case effect == nil:
	case effect.Answered.IsZero():
		m.drop(events.ActionDelete, slice)
	case effect.Slice == slice:
		effect = m.effect(events.ActionDelete, slice)
		effect.Incarnation, effect.Ordered = m.w.Slice(slice).Incarnation, time.Time{}
	}
}

// ours reports whether a reading shows a slice that this incident has ordered. The creation may be given up already: a reading may
// be under way while it fails, or a failed creation may still have brought a slice.
func (w Workload) ours(s *Slot, e Read) bool {
	in := w.Incident
	late := in.Created && orderedAt(e).After(in.Opened)
	return e.Incident == in.ID && (w.made(s.Name) || late)
}

// orderedAt is the time of the order in a reading, or the beginning of the life in it.
func orderedAt(e Read) time.Time {
	if e.Ordered.IsZero() {
		return e.Incarnation.Created
	}
	return e.Ordered
}

// made reports whether Pitstop began a creation of this slice. The slice's label is no proof: anybody can write one.
func (w Workload) made(slice string) bool {
	effect := w.effect(events.ActionCreate, slice)
	return effect != nil && (!effect.Begun.IsZero() || effect.Attempt > 1)
}

// adoptTheirs adopts a life that somebody else has ordered under the slice's name. They want Pitstop to look after it, unless they
// have deleted it since. The crew takes the lease over from the last life where it may. Otherwise the new life waits for admission,
// unless the last life may train on at the same time.
func (m *machine) adoptTheirs(name string, e Read) {
	former := m.w.Slice(name).Life
	if !m.madeByProvider(m.w.Slice(name), e) {
		m.w.Crew.Theirs, m.w.Crew.Doubted = false, time.Time{} // the trouble that they took over was of the training before
	}
	m.adopt(name, e, false)
	s := m.slice(name)
	s.ToReplace, s.NeverUsable = false, e.Condition == Creating
	m.trainsAgain()
	if former.Zone != e.Zone || s.End.Released.Before(e.Incarnation.Created) {
		s.End.Released = time.Time{} // they deleted the life before
	}
	switch {
	case !m.w.leaseNamesOtherZone(s):
		s.markAdmitted()
	case former.Zone == e.Zone || former.over():
		s.Admission = AwaitsAdmission
	case former.Condition == Deleting, former.IsReleased() && m.now.Sub(former.End.Released) <= UnreleaseAfter:
		s.Admission = AwaitsAdmission
		s.silentBy(m.when().Add(TakeOverFor))
	}
}

// adopt makes another life the current one under the slice's name.
func (m *machine) adopt(name string, e Read, ours bool) {
	s := m.slice(name)
	if !ours {
		s.Order = Order{} // the owner's creation is their order now
	}
	facts := s.Facts
	facts.Ends, facts.Cause, facts.Failed = time.Time{}, "", time.Time{} // these were of the life before
	s.begin(Life{
		Incarnation: e.Incarnation, Zone: e.Zone, Facts: facts, SpecZone: s.SpecIn(),
		Condition: e.Condition, State: e.State, Since: m.when(), Abuse: Abuse{Suspected: e.Abuse}, Stop: s.Stop.since(e.Incarnation.Created),
		End: End{Released: s.End.Released}, // Pitstop's creation changes nothing in the owner's takeover
	})
	switch own := s.Order; {
	case e.Facts.Spec != "":
	case !ours: // its order is not known yet: it may differ from the life before
		s.Spec, s.Bare, s.SpecZone = "", false, ""
	case own != (Order{}) && own.Accelerator == e.Facts.Accelerator: // it came as its owner ordered it, and not as the life before
		s.Spec, s.SpecZone = own.Spec, own.SpecIn()
	}
	m.facts(s, e, e.Incarnation.Created)
	s.endsIf(m.when())
	m.forgetFormer(s)
	m.reordered()
	if m.w.Directory == "" {
		// Without a lease a crew counts its attempts from 1 in every life.
		m.w.Crew.Attempt, m.w.Crew.Exited, m.w.Crew.GaveUp, m.w.Crew.Confirmed, m.w.Crew.LeaseAttempt, m.w.Progress.Attempt = 0, 0, 0, 0, 0, 0
		m.w.Crew.Claim, m.w.Crew.Done, m.w.Crew.NotDone, m.w.Crew.Since = Claim{}, 0, 0, e.Incarnation.Created
		if m.w.Incident != nil {
			m.inc().BaseAttempt = 0
		}
	}
}

// othersInGroup names the other slices of the queued resource that holds a slice.
func (m *machine) othersInGroup(s *Slot) []string {
	var names []string
	for i := range m.w.Slices {
		o := &m.w.Slices[i]
		if s.Group != "" && o.Group == s.Group && o.Zone == s.Zone && o.Name != s.Name && (!o.IsReleased() || o.ToReplace) {
			names = append(names, o.Name)
		}
	}
	return names
}

// mapped notes the host names of a life, or that nobody can find them. The name in a line stands until the API gives the names.
func (m *machine) mapped(e Mapped) {
	s := m.w.Slice(e.Slice)
	if s == nil || !e.Incarnation.Same(s.Incarnation) {
		return
	}
	told := e.Rank == events.RankUser
	switch {
	case e.Group == "":
		if !s.HostsAsked {
			m.slice(s.Name).HostsAsked = true
		}
	case told && s.Hosts != "":
	case s.Hosts != e.Group || s.HostsTold != told:
		s = m.slice(s.Name)
		s.Hosts, s.HostsTold = e.Group, told
	}
}

// words writes a cause for people.
func words(c events.Cause) string {
	switch c {
	case events.CauseMaintenance:
		return "host maintenance"
	case events.CausePreemption:
		return "preemption"
	case events.CauseHostError:
		return "host error"
	case events.CauseTerminated:
		return "termination"
	case events.CauseGuest:
		return "shut down from inside"
	case events.CauseCrash:
		return "training crash"
	case events.CauseHang:
		return "training that hangs"
	case events.CauseEnd:
		return "planned end"
	case events.CauseUnknown:
	}
	return "unknown cause"
}
