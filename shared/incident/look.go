package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
)

// interrupted takes word that a machine was ended or broken. It proves nothing yet: the API is looked at first.
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
		Cause: e.Cause, Slice: s.Name, Life: s.Incarnation.ID, At: m.when(), Text: e.Text, Proven: m.from.Rank >= events.RankReading,
	}
	if m.formerLife(s, e.Incarnation) {
		m.attributeLate(t, e.Incarnation)
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
	case s.Condition == Ready && s.Since.After(at) && m.stale(): // it was found usable since: the word comes days late, from among the dead letters
	case m.mayOpen(s):
		m.openLook(t, t.Text)
	}
}

// interruptedAgain joins the open incident, and has the slice looked at unless it is on its way out.
func (m *machine) interruptedAgain(s *Slot, t Trouble) {
	in := m.w.Incident
	if at := m.from.Time; !at.IsZero() && !at.After(m.w.Ended) && at.Before(in.Opened.Add(-Linger)) {
		return // it is of the incident before, and was delivered again
	}
	if !m.trouble(t, s.Incarnation) {
		return
	}
	m.line(LineSeen, t.Text, "")
	switch m.phase() {
	case Window, Saving, Maintaining:
		m.beginsWith(t.Cause)
	case Clearing, Discarding:
		return
	case PhaseDeleting, PhaseCreating:
		if s.Replace {
			return // it is being replaced already
		}
	case Looking, PhaseGrace, Healing, Approving, Admitting, Resuming, Restarting, Starting, Watching, Closed:
	}
	m.inc().Look = true
}

// explainReleased takes late word of why a slice was lost that its owner has taken in hand since: it opens nothing, and the incident that
// has just ended tells of it.
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
	if in.Phase != Window {
		m.hasBegun()
	}
}

// mendedSince reports whether evidence of a trouble that a person was left with comes late: it is from the minute in which that
// incident ended, and the slice was found usable since.
func (m *machine) mendedSince(s *Slot, c *Incident) bool {
	return c.Outcome == Escalated && s.Condition == Ready && s.Since.After(m.from.Time) && m.from.Time.Sub(c.Closed) <= time.Minute
}

// stale reports whether evidence comes later than entries do.
func (m *machine) stale() bool { return !m.from.Time.IsZero() && m.now.Sub(m.from.Time) > Grace }

// openLook opens an incident on evidence that the API has to explain.
func (m *machine) openLook(t Trouble, text string) {
	m.open(t)
	if m.watched() {
		m.watch(text, "look at the API; what it shows decides", nil) // nothing follows from how it was before
		return
	}
	m.enter(Looking, m.now.Add(LookFor))
	m.line(LineSeen, text, "")
	m.decided("incident opened: "+words(t.Cause)+"; look at the API first", "a log entry alone proves no loss")
}

// formerLife reports whether evidence speaks of a life of the slice that is over.
func (m *machine) formerLife(s *Slot, life events.Incarnation) bool {
	if life.Known() {
		return !life.Same(s.Incarnation)
	}
	return !m.from.Time.IsZero() && m.from.Time.Before(s.Incarnation.Created)
}

// attributeLate attributes an incident anew, open or just closed, when evidence of the life that it ended comes late.
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

// concerns reports whether an incident is about the end of a life, as far as one is known.
func (in *Incident) concerns(slice string, life events.Incarnation) bool {
	return !life.Known() || slices.ContainsFunc(in.Troubles, func(t Trouble) bool { return t.Slice == slice && t.Life == life.ID })
}

// back takes another reason to look, and opens no incident. Every worker's training may write of its end as often as it
// likes: what users write counts once in a while.
func (m *machine) back(e Back) {
	s, in := m.w.Slice(e.Slice), m.w.Incident
	if s != nil && !m.formerLife(s, e.Incarnation) {
		m.unfinish(m.when())
	}
	if s == nil || in == nil || in.Look || m.formerLife(s, e.Incarnation) {
		return
	}
	if n := len(in.Timeline); m.from.Rank < events.RankAudit && n > 0 && m.now.Sub(in.Timeline[n-1].At) < time.Minute {
		return // something was told just now, and looked at
	}
	switch in.Phase {
	case Healing, Window, PhaseGrace, Looking:
		m.line(LineSeen, e.Text, "")
		m.inc().Look = true
	}
}

// read takes a fresh reading of a slice. It decides.
func (m *machine) read(e Read) {
	m.reading = e.Slice
	if n := m.w.Notice(e.Slice); e.NoticeUnread && n != nil && n.InAPI {
		e.Notice = &n.Notice // what could not be read stays as it was
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
	}
	if m.readAnother(s, e) || !e.Incarnation.Known() && m.readOrder(s, e) {
		return
	}
	m.readLife(m.w.Slice(e.Slice), e)
}

// readAnother takes a reading that is not of the life that stands under the slice's name, and reports whether it is such a one.
func (m *machine) readAnother(s *Slot, e Read) bool {
	switch {
	case m.surplus(s, e):
		m.tellSurplus(s, e)
	case m.when().Before(s.Since), s.IsFormer(e.Incarnation):
		// An older reading than the one that was decided on, or one of another life than the last.
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
			m.cleared(m.w.Slice(e.Slice)) // what stands there is not ours
		}
	default:
		return false
	}
	return true
}

// readOrder takes a reading of a group that has brought nothing yet, and reports whether nothing more follows from it.
func (m *machine) readOrder(s *Slot, e Read) bool {
	clearing := m.phase() == Clearing
	if !clearing && (m.phase() != PhaseCreating || !s.Replace) {
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
		return false // what it was to bring came and was lost unseen, or will not come: it is ordered anew
	}
	return true
}

// readLife takes a reading of the life that stands under the slice's name.
func (m *machine) readLife(s *Slot, e Read) {
	if (m.w.Incident == nil || m.phase() == Watching) && m.orderedElsewhere(s, e) {
		s = m.slice(e.Slice)
		s.Zone, s.NeverUsable = e.Zone, true // what becomes of it is theirs
	}
	if s.IsReleased() && e.Ordered.After(s.End.Released) { // its owner has ordered it again since
		s = m.slice(e.Slice)
		s.End.Released, s.NeverUsable = time.Time{}, e.Condition == Creating
	}
	if e.older(s) {
		e.Directory, e.Facts.Label, e.Facts.Spec, e.Facts.Account, e.Facts.Claims = "", s.Label, "", s.Account, s.Claims
	}
	m.facts(s, e, time.Time{})
	if e.Abuse != s.Abuse.Suspected && m.when().After(s.Abuse.At) && (e.Abuse || e.Condition == Ready) { // what is lost may not show it any more
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
	m.react(s, e, was)
	m.explainedByMaintenance(m.w.Slice(e.Slice), e)
}

// breaks reports whether a reading shows that a usable slice is not usable any more, and not by its owner's doing.
func (l *Life) breaks(e Read) bool {
	switch e.Condition {
	case Lost, Gone, Unhealthy, Unclear:
		return l.Condition == Ready && !l.IsReleased() && e.Zone == l.Zone
	case Unread, Creating, Ready, Stopped, Deleting:
	}
	return false
}

// ordered keeps where and when a queued resource of ours was created: it is all that there is of a slice that it has not
// brought.
func (m *machine) ordered(s *Slot, e Read) *Slot {
	if e.Ordered.IsZero() || !m.w.ours(s, e) || s.Ordered.Equal(e.Ordered) && s.Zone == e.Zone {
		return s
	}
	m.noteOrdered(s.Name, e)
	return m.w.Slice(s.Name)
}

// noteOrdered notes when the queued resource was ordered that a reading of one slice shows, for all that it is still to bring.
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

// orderedByOthers reports whether a queued resource that has brought nothing yet was ordered by somebody else: again since the incident
// opened, or in another zone since the slice was made that is gone.
func (m *machine) orderedByOthers(s *Slot, e Read) bool {
	in := m.w.Incident
	if in == nil || in.Phase == Watching || in.Phase == Clearing || e.Incarnation.Known() || e.Incident == in.ID {
		return false
	}
	again := e.Zone == m.expectedZone(s) && e.Ordered.After(in.Opened) && e.Ordered.After(s.Incarnation.Created)
	return again || m.orderedElsewhere(s, e) && e.Zone != m.expectedZone(s)
}

// orderedElsewhere reports whether somebody else has ordered a slice that is gone by a queued resource in another zone, which has
// brought nothing yet.
func (m *machine) orderedElsewhere(s *Slot, e Read) bool {
	waits := e.Condition == Creating && !e.Incarnation.Known() && e.Ordered.After(s.Incarnation.Created)
	return waits && s.Condition == Gone && e.Zone != s.Zone && m.createdBy(e) == nil
}

// waitInQueue notes that a queued resource of ours waits: the slice itself is not there yet, and for Spot that may take as
// long as it takes.
func (m *machine) waitInQueue(s *Slot) {
	if in := m.w.Incident; s.Reclaimable && !in.Deadline.IsZero() {
		in = m.inc()
		in.Deadline = time.Time{}
		if in.WaitingSince.IsZero() {
			in.WaitingSince, in.Reminded = m.now, m.now
		}
	}
}

// introduce adds a slice that was never seen before to its workload. What runs in it now is admitted, for somebody other than us
// started it, unless a lease of ours leads the others: it does not name this one, which waits to be admitted.
func (m *machine) introduce(e Read) {
	if len(m.w.Slices) == 0 {
		m.w.Seen = m.when()
	}
	m.w.Slices = append(m.w.Slices[:len(m.w.Slices):len(m.w.Slices)], Slot{Name: e.Slice, Life: Life{
		Zone: e.Zone, Incarnation: e.Incarnation, Condition: e.Condition, State: e.State, Since: m.when(),
		NeverUsable: e.Condition == Creating, Abuse: Abuse{Suspected: e.Abuse},
	}})
	m.ownSlices, m.changed = true, true
	m.cancelIdleDeletion()
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

// leaseNamesOtherZone reports whether a lease of ours may name a life in another zone than the slice lives in, or none, and none is known to
// name this one: no crew may put itself into its place then.
func (w Workload) leaseNamesOtherZone(s *Slot) bool {
	return w.Crew.LeaseAttempt > 0 && s.Incarnation.Known() && s.Admitted().Zone != s.Incarnation.Zone
}

// waitsFor reports whether a slice was not let in because the life before may have trained on in a zone, where it is gone now.
func (w Workload) waitsFor(s *Slot, zone string) bool {
	return w.leaseNamesOtherZone(s) && s.Admitted().Zone == zone && s.Leased == 0 && s.Admission == "" && !s.IsReleased()
}

// facts follows what a reading says of a slice beside its condition. Since is when its life began, zero where it was known before.
func (m *machine) facts(s *Slot, e Read, since time.Time) {
	f := e.Facts
	if f == (Facts{}) {
		return
	}
	next, from := f, s.Zone
	switch e.Condition {
	case Lost, Unhealthy, Unclear, Stopped, Deleting:
		if f.Ends.IsZero() {
			next.Ends = s.Ends // what is not usable may not show it any more
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
		m.w.Directory, m.w.Crew.LeaseAttempt, m.w.LeaseDoubted, m.changed = e.Directory, 0, time.Time{}, true // no lease of ours is there
		m.leads(func(Slot) int { return 0 })
	}
}

// newest reports whether no slice has begun to live after this one: it says which training is the workload's.
func (m *machine) newest(s *Slot) bool {
	return !slices.ContainsFunc(m.w.Slices, func(o Slot) bool { return !o.IsReleased() && o.Incarnation.Created.After(s.Incarnation.Created) })
}

// anotherTraining forgets what the one before has done: another directory has a lease, attempts, steps and checkpoints of its own, and
// nothing that was saved in the former one is saved of what trains there. Where it came with a new life it trains there since that time.
func (m *machine) anotherTraining(since time.Time) {
	m.w.Progress, m.w.Budgets = Progress{}, Budgets{}
	m.w.Crew = Crew{Seen: m.w.Crew.Seen, Since: later(m.w.Crew.Since, since), Left: m.w.Crew.Left, Restarted: m.w.Crew.Restarted}
	if m.w.Incident != nil {
		in := m.inc()
		in.Baseline, in.BaseAttempt, in.Charged = 0, 0, 0
		m.drop(events.ActionHear, "") // what is under way is of the other directory
		m.drop(events.ActionVerify, "")
	}
}

// expectedZone is where a slice has to be, if it is anywhere.
func (m *machine) expectedZone(s *Slot) string {
	if in := m.w.Incident; in != nil {
		if effect := m.w.effect(events.ActionCreate, s.Name); effect != nil {
			return effect.Zone
		}
	}
	return s.Zone
}

// readNotice takes it from a reading that a notice, which an earlier reading showed, is gone. What cannot be used says nothing of it:
// with a slice that is lost its notice is gone too, and that is no withdrawal.
func (m *machine) readNotice(s *Slot, e Read) {
	if n := m.w.Notice(s.Name); n != nil && n.InAPI && e.Notice == nil && e.Condition == Ready && !m.when().Before(n.LastWord) {
		m.noticeGone(s, Noticed{Slice: s.Name, Text: "the API announces no maintenance any more"})
	}
}

// openAdmission has training admitted to what its owner created where no crew may put itself into the place of another, once all of the
// workload is usable: all that has been read by now, because what they created together is read one after the other.
func (m *machine) openAdmission() {
	due := m.w.admissionDue()
	if due.IsZero() || due.After(m.now) || m.watched() {
		return
	}
	s := m.w.Slice(m.w.firstAwaitingAdmission())
	if m.p.Unreadable != "" && m.now.Sub(s.Since) < Grace {
		return // it may be mended before anybody has to hear of what waits for it
	}
	text, why := m.w.noun(s.Name)+" was created in "+s.Zone+" by somebody else", "the lease names another zone"
	if !s.Admitted().Known() {
		text, why = m.w.noun(s.Name)+" waits in "+s.Zone, "no lease is known to name it"
	}
	in := m.open(Trouble{Cause: events.CauseUnknown, Slice: s.Name, Life: s.Incarnation.ID, At: m.now, Text: text})
	in.Down = m.now
	m.line(LineSeen, text, why)
	m.requestLease()
}

// othersMaintained reports whether it is another slice whose maintenance is waited for. A slice without maintenance of
// its own, which a new life has not yet, tells nothing of theirs. One whose own is over waits for what is under way or about to begin.
func (m *machine) othersMaintained(s *Slot) bool {
	return slices.ContainsFunc(m.w.Slices, func(o Slot) bool {
		return o.Name != s.Name && m.awaited(&o) && (s.Notice.Status == "" || m.begins(o.Notice))
	})
}

// replacementWaits reports whether the replacement of a slice waits for the crew's verdict: another one that cannot be used changes nothing
// of that.
func (m *machine) replacementWaits() bool {
	return m.phase() == Looking && !m.w.Incident.HearBy.IsZero() && len(m.toBeReplaced()) > 0
}

// stopped notes when the training stopped, as far as is known.
func (m *machine) stopped(at time.Time) {
	if m.w.Incident.Down.IsZero() {
		m.inc().Down = at
	}
}

// clearMadeMarks notes that nothing is there any more of what was made or ordered.
func (m *machine) clearMadeMarks(s *Slot) {
	if s.leftBehind() {
		s = m.slice(s.Name)
		s.Maker, s.Ordered = "", time.Time{}
	}
}

// othersHeal reports whether another slice exists and cannot be used.
func (m *machine) othersHeal(s *Slot) bool {
	for i := range m.w.Slices {
		if o := &m.w.Slices[i]; o.Name != s.Name && !o.IsReleased() && o.Condition != Ready && o.Condition != Gone {
			return true
		}
	}
	return false
}

// notThereYet asks again for a slice whose creation the provider calls done and that is not there.
func (m *machine) notThereYet(s *Slot) {
	effect := m.w.effect(events.ActionCreate, s.Name)
	if effect != nil && effect.Stage() == StageDone && m.now.Sub(effect.Answered) >= SickFor {
		m.again(m.effect(events.ActionCreate, s.Name), "the creation was called done, and nothing is there")
	}
}

// provesLoss reports whether Pitstop itself read, in the API or in the audit log, that this life was lost since it was usable last.
// An entry that arrives by a topic proves nothing: anyone who may publish there can write one. A repaired loss explains nothing
// that comes after.
func (in *Incident) provesLoss(s *Slot) bool {
	if in.Retried && s.End.Discarded {
		return true // it was deleted because it stood idle
	}
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

// newLife handles another life under the slice's name: ours, that of its owner in quiet times, or of somebody who takes the slice over.
func (m *machine) newLife(s *Slot, e Read) {
	in := m.w.Incident
	if in == nil {
		m.adoptTheirs(s.Name, e)
		return
	}
	brought := !s.Ordered.IsZero() && s.Ordered.Equal(e.Ordered) // by the queued resource of which another slice is lost again
	ours := m.w.ours(s, e) || brought || in.Phase == Clearing && m.creator(s, e) != nil
	// What was there before the trouble, and only was not read yet, takes nothing over.
	before := in.Phase != Discarding && !s.Replace && !e.Incarnation.Created.IsZero() && e.Incarnation.Created.Before(in.Opened)
	switch {
	case in.Phase == Clearing && (ours || !before):
		m.newLifeWhileClearing(s, e, ours)
	case in.Phase == Watching || before:
		m.adoptTheirs(s.Name, e)
		m.line(LineSeen, m.w.noun(s.Name)+" was created again in "+e.Zone+" by somebody else", "")
		m.react(m.w.Slice(s.Name), e, Gone)
	case ours:
		m.ourLifeCame(s, e)
	default:
		if !s.leftBehind() || s.Zone == e.Zone {
			m.adoptTheirs(s.Name, e)
		}
		m.release(CodeTakenOver, "somebody else created "+m.w.noun(s.Name)+" again in "+e.Zone+" in the middle of this incident")
	}
}

// newLifeWhileClearing goes on with a clean-up when another life shows: ours goes too, and theirs stays.
func (m *machine) newLifeWhileClearing(s *Slot, e Read, ours bool) {
	switch {
	case ours:
		m.adopt(s.Name, e, ours)
		m.slice(s.Name).Maker = m.w.Incident.ID
		m.noteOrdered(s.Name, e)
		m.pointDeletionAtLife(s.Name)
		m.clear()
	case s.leftBehind() && s.Zone != e.Zone:
		// What is ours goes first; theirs is read again when the incident is over.
	default:
		m.adoptTheirs(s.Name, e)
		m.cancelDeletion(s.Name)
		m.cleared(m.slice(s.Name))
	}
}

// ourLifeCame takes it that what the incident has ordered is there.
func (m *machine) ourLifeCame(s *Slot, e Read) {
	m.adopt(s.Name, e, true)
	a := m.slice(s.Name)
	a.Replace, a.Maker = true, m.w.Incident.ID
	m.noteOrdered(s.Name, e)
	switch m.phase() {
	case PhaseCreating, PhaseDeleting, Healing, PhaseGrace, Approving: // another slice may be what is waited for
	default:
		m.enter(PhaseCreating, m.now.Add(RecreateFor))
	}
	m.line(LineSeen, m.w.noun(s.Name)+" lives in "+e.Zone, "incarnation "+e.Incarnation.String())
	m.react(m.w.Slice(s.Name), e, Creating)
}

// older reports whether a reading shows the order of a queued resource alone, which the slice's life came of: what its owner has changed on
// that life since is newer.
func (e Read) older(s *Slot) bool {
	return !e.Incarnation.Known() && s.Incarnation.Known() && !e.Ordered.IsZero() && !e.Ordered.After(s.Incarnation.Created)
}

// over reports whether no training can run in what was read last: there is nothing, or nothing that runs, or it was ordered anew.
func (l Life) over() bool {
	switch l.Condition {
	case Gone, Lost, Stopped, Creating:
		return true
	case Unread, Ready, Unhealthy, Unclear, Deleting:
	}
	return false
}

// cancelDeletion drops the deletion of what is to stay, unless it is being called or something of ours goes with it. It reports whether that
// was so.
func (m *machine) cancelDeletion(slice string) bool {
	effect := m.w.effect(events.ActionDelete, slice)
	if effect == nil || effect.UnderWay(m.now) || slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return effect.Concerns(s.Name) && s.leftBehind() }) {
		return false
	}
	m.drop(events.ActionDelete, slice)
	return true
}

// pointDeletionAtLife has the deletion of what was ordered name the life that has come of it meanwhile.
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

// ours reports whether a reading shows what this incident has ordered. The creation may be given up already: a reading may be under way
// while it fails, or what failed may have come to something.
func (w Workload) ours(s *Slot, e Read) bool {
	in := w.Incident
	late := in.Created && e.when().After(in.Opened)
	return e.Incident == in.ID && (w.made(s.Name) || late)
}

// when is the time from which what a reading shows was ordered, or has lived.
func (e Read) when() time.Time {
	if e.Ordered.IsZero() {
		return e.Incarnation.Created
	}
	return e.Ordered
}

// made reports whether a create of ours for this slice was begun: anybody can write a label.
func (w Workload) made(slice string) bool {
	effect := w.effect(events.ActionCreate, slice)
	return effect != nil && (!effect.Begun.IsZero() || effect.Attempt > 1)
}

// adoptTheirs takes a life that somebody else has ordered under the slice's name, which they want looked after, unless they have
// deleted it since. A crew puts itself into the place of the last where it may. Else it waits to be admitted, unless the last one may
// train on beside it.
func (m *machine) adoptTheirs(name string, e Read) {
	former := m.w.Slice(name).Life
	m.adopt(name, e, false)
	s := m.slice(name)
	s.Replace, s.NeverUsable = false, e.Condition == Creating
	if former.Zone != e.Zone || s.End.Released.Before(e.Incarnation.Created) {
		s.End.Released = time.Time{} // what they deleted was the life before
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

// adopt has another life stand under the slice's name.
func (m *machine) adopt(name string, e Read, ours bool) {
	m.cancelIdleDeletion()
	s := m.slice(name)
	if !ours {
		s.Order = Order{} // what its owner creates is what they order now
	}
	facts := s.Facts
	facts.Ends = time.Time{} // which was that of the life before
	s.begin(Life{
		Incarnation: e.Incarnation, Zone: e.Zone, Facts: facts, SpecZone: s.SpecIn(),
		Condition: e.Condition, State: e.State, Since: m.when(), Abuse: Abuse{Suspected: e.Abuse}, Stop: s.Stop.since(e.Incarnation.Created),
		End: End{Released: s.End.Released}, // what we bring changes nothing of what its owner has taken away
	})
	switch own := s.Order; {
	case e.Facts.Spec != "":
	case !ours: // how it was ordered is not known yet: not as the life before
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
		m.w.Crew.Attempt, m.w.Crew.Exited, m.w.Crew.GaveUp, m.w.Crew.LeaseAttempt, m.w.Progress.Attempt = 0, 0, 0, 0, 0
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
		if s.Group != "" && o.Group == s.Group && o.Zone == s.Zone && o.Name != s.Name && (!o.IsReleased() || o.Replace) {
			names = append(names, o.Name)
		}
	}
	return names
}

// mapped notes the host names of a life, or that they are not to be had.
func (m *machine) mapped(e Mapped) {
	s := m.w.Slice(e.Slice)
	if s == nil || !e.Incarnation.Same(s.Incarnation) {
		return
	}
	if e.Group == "" && !s.HostsAsked {
		m.slice(s.Name).HostsAsked = true
	}
	if e.Group != "" && s.Hosts != e.Group {
		m.slice(s.Name).Hosts = e.Group
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
