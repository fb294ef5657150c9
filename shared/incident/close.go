package incident

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
)

// finish ends the open incident. Where a call of ours may still bring a slice that nobody wants any more, that is
// cleaned up first, and the end stands behind it.
func (m *machine) finish(o Outcome, by Confirmation, c Code, reason, advice string) {
	in := m.inc()
	in.Outcome, in.ConfirmedBy, in.Code, in.Reason, in.Advice = o, by, c, reason, advice
	if o != Resumed && m.mayLeaveOrphans(o) {
		m.startClearing(o)
		return
	}
	m.close()
}

// resumed ends the open incident with the training going on: that alone needs no code.
func (m *machine) resumed(by Confirmation, reason string) { m.finish(Resumed, by, "", reason, "") }

// mayLeaveOrphans reports whether a create of ours may still take effect, or has. What lacks nothing but its admission is left to
// the person whose turn it is.
func (m *machine) mayLeaveOrphans(o Outcome) bool {
	for _, effect := range m.w.Effects {
		if effect.Action == events.ActionCreate && !effect.Begun.IsZero() {
			return true
		}
	}
	return !m.abused() && (o == Released || m.creates()) && slices.ContainsFunc(m.w.Slices, Slot.leftBehind)
}

// creates reports whether the incident is about to replace slices.
func (m *machine) creates() bool { return m.phase() == PhaseDeleting || m.phase() == PhaseCreating }

// leftBehind reports whether a slice is there, or ordered, by an incident alone.
func (l Life) leftBehind() bool { return l.Maker != "" || !l.Ordered.IsZero() }

func (m *machine) startClearing(o Outcome) {
	in := m.inc()
	reason := in.Reason
	m.enter(Clearing, m.now.Add(ClearFor))
	in.Outcome, in.Clearing = "", o
	m.dropEffects(func(effect Effect) bool { // what was lost may go
		return effect.Action == events.ActionDelete && !effect.UnderWay(m.now)
	})
	m.decided("clean up what our own request brought, or may still bring", reason)
	m.clear()
}

// clear deletes what our own requests have brought, and what they have ordered, whenever that was read. Training was never
// admitted to it, so nothing is lost. Where Google suspects abuse nothing is touched.
func (m *machine) clear() {
	if m.abused() {
		return
	}
	var effects []Effect
	var covered []string
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if !s.leftBehind() || slices.Contains(covered, s.Name) || m.w.effect(events.ActionDelete, s.Name) != nil {
			continue
		}
		s = m.slice(s.Name)
		s.Replace = true
		effect := Effect{Action: events.ActionDelete, Slice: s.Name, Zone: s.Zone, Ordered: s.Ordered, Reason: "clean-up"}
		if c := m.w.effect(events.ActionCreate, s.Name); c != nil && len(c.With) > 0 {
			effect.With = slices.DeleteFunc(append([]string{c.Slice}, c.With...), func(name string) bool { return name == s.Name })
		} else if s.Group != "" {
			effect.With = m.othersInGroup(s)
		}
		m.drop(events.ActionCreate, s.Name)
		covered = append(covered, effect.With...)
		if s.Ordered.IsZero() {
			effect.Incarnation = s.Incarnation
			m.decided("delete "+effect.sliceList()+" in "+s.Zone, "our own request brought it, nobody waits for it any more, and training was never admitted to it")
		} else {
			m.decided("cancel "+m.w.group(s.Group)+" in "+s.Zone, "our own request ordered it, nobody waits for it any more, and it has brought nothing yet")
		}
		effects = append(effects, effect)
	}
	if effects != nil {
		m.send(effects...)
	}
}

// cleared ends the incident when nothing of ours is under way any more.
func (m *machine) cleared(s *Slot) {
	if effect := m.w.effect(events.ActionCreate, s.Name); effect != nil && (effect.Operation != "" || effect.Answered.IsZero() && m.now.Sub(effect.Begun) < AnswerFor) {
		return // it may still come
	}
	m.drop(events.ActionCreate, s.Name)
	m.dropDone(events.ActionDelete, s.Name)
	if len(m.w.Effects) > 0 || slices.ContainsFunc(m.w.Slices, Slot.leftBehind) {
		return
	}
	in := m.inc()
	in.Outcome = in.Clearing
	m.close()
}

// adoptLateCapacity goes on with an incident that had given up only because capacity did not come in time: it has come, whole and usable,
// and a reading shows that it has outlived every call to delete it. It reports whether that is so.
func (m *machine) adoptLateCapacity() bool {
	in := m.w.Incident
	if !in.gaveUpForCapacity() || m.abused() || !m.allReady() {
		return false
	}
	var kept []string
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if !s.leftBehind() {
			continue
		}
		if effect := m.w.effect(events.ActionDelete, s.Name); s.IsReleased() || effect != nil && !m.outlived(effect) {
			return false
		}
		kept = append(kept, s.Name)
	}
	if kept == nil {
		return false // somebody else's has the name
	}
	in = m.inc()
	in.Clearing, in.Outcome, in.Code, in.Reason, in.Advice = "", "", "", "", ""
	m.w.Effects = nil
	for _, name := range kept {
		m.slice(name).Replace = false
	}
	m.decided("keep "+strings.Join(kept, ", "), "the capacity that was given up has come before it was given back")
	m.capacityFound()
	m.requestLease()
	return true
}

// gaveUpForCapacity reports whether the incident cleans up only because capacity did not come in time.
func (in *Incident) gaveUpForCapacity() bool {
	return in.Clearing == Escalated && in.Code == CodeGaveUp
}

// delayDeletionRetry asks for no further deletion of a slice that a reading has just shown usable, until later readings can tell whether it
// is kept.
func (m *machine) delayDeletionRetry(s *Slot) {
	if effect := m.w.effect(events.ActionDelete, s.Name); !m.w.Incident.gaveUpForCapacity() || effect == nil || effect.inFlight() {
		return
	}
	effect := m.effect(events.ActionDelete, s.Name)
	effect.Retry = later(effect.Retry, m.now.Add(CallFor+2*time.Minute))
}

// outlived reports whether a slice that a reading shows alive has outlived whatever was called to delete it.
func (m *machine) outlived(effect *Effect) bool {
	if effect.Begun.IsZero() && effect.Attempt == 1 {
		return true // nobody has begun
	}
	last := effect.Begun
	if effect.Attempt > 1 && effect.Sent.After(last) {
		last = effect.Sent // an earlier try was begun before that
	}
	return effect.Answered.IsZero() && effect.Operation == "" && m.when().After(last.Add(CallFor))
}

// failedClearing handles a call that failed during the clean-up: a create that failed is what was hoped for.
func (m *machine) failedClearing(effect *Effect, f Failure) {
	if effect.Action == events.ActionCreate {
		name := effect.Slice
		m.drop(events.ActionCreate, name)
		if s := m.w.Slice(name); s != nil {
			m.cleared(s)
		}
		return
	}
	if f.Class == NotFound {
		m.inc().Look = true
	}
	m.again(effect, f.Message)
}

// toldOfStandstill reports whether the end of the incident leaves it to a person that the training stands still: one that is to
// act, or was told of a training that does not go on. Announced maintenance that was watched or withdrawn tells nothing of it.
func (m *machine) toldOfStandstill() bool {
	in := m.w.Incident
	return in.Outcome == Escalated || in.Outcome == Observed && in.ConfirmedBy != ByStep && (!in.Cause.Infrastructure() || m.isOverdue())
}

// close archives the incident and leaves it where late evidence finds it.
func (m *machine) close() {
	in := m.inc()
	m.raise()
	if in.Phase == Discarding {
		m.noteDiscarded()
	} else {
		m.leaveIdle(in)
	}
	if m.toldOfStandstill() {
		m.w.Progress.StallReported = m.now
	}
	finished := m.finishedWithin()
	in.Phase, in.Since, in.Closed, in.Deadline = Closed, m.now, m.now, time.Time{}
	if !in.Save.Requested.IsZero() && in.Save.Result == "" {
		in.Save.Result = SaveOvertaken
	}
	m.w.Effects = nil
	in.Look, in.Held, in.HeldCode, in.HeldUntil, in.Asked, in.Granted, in.Revision = false, "", "", time.Time{}, "", false, 1
	m.line(LineEnded, m.summary(), in.Reason)
	m.coded(in.Code)
	m.tellEnds(in)
	m.out = append(m.out, events.IncidentClosed{
		Schema: events.Schema, Workload: m.w.ID, Incident: in.ID, Outcome: string(in.Outcome), Revision: in.Revision,
	})
	if in.Created {
		m.w.Creators = append(slices.Clip(m.w.Creators), Creator{Incident: in.ID, Opened: in.Opened, Closed: in.Closed})
		m.w.Creators = m.w.Creators[max(0, len(m.w.Creators)-maxCreators):]
	}
	if !finished {
		m.markAwaitsAdmission(in.Outcome == Escalated || in.Code == CodeCancelled)
	}
	if in.Outcome == Escalated || in.Outcome == Observed {
		m.w.Crew.Left = m.now
	}
	m.w.Closed, m.w.Ended, m.w.Incident, m.ownIncident = in, m.now, nil, false
}

// tellEnds notes of which slices the end is told with that of the incident, and that it wants nothing of any more.
func (m *machine) tellEnds(in *Incident) {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		told := s.End.Reported
		switch {
		case !in.tellsOfAll():
		case in.Outcome == Released && in.reportsLossOf(s), s.Condition != Ready && (s.Condition != Creating || s.Replace):
			told = s.Incarnation.Known() // its end has been told; it opens no second incident
		case s.Condition != Creating: // an incident about another slice changes nothing about what came of it
			told = false
		}
		if s.Replace || s.leftBehind() || s.End.Reported != told {
			c := m.slice(s.Name)
			c.Replace, c.End.Reported, c.Maker, c.Ordered = false, told, "", time.Time{}
		}
	}
}

// finishedWithin reports whether the training was done while an incident watched, or replaced or cleaned up, which it brings to its
// end: any other has ended with it, or was opened for what its owner created after that.
func (m *machine) finishedWithin() bool {
	in := m.w.Incident
	return m.w.Crew.Finished && (in.Clearing != "" || in.Phase == PhaseDeleting || in.Phase == PhaseCreating || in.Phase == Watching)
}

// markAwaitsAdmission has what was to be admitted, and is not known to be, wait for it when its incident is over; what a person was told of, or
// has in hand, is theirs.
func (m *machine) markAwaitsAdmission(theirs bool) {
	waits := AwaitsAdmission
	if theirs {
		waits = LeftToPerson
	}
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if !m.w.leaseNamesOtherZone(s) || s.IsReleased() || s.Admission != "" {
			continue
		}
		m.slice(s.Name).Admission = waits
	}
}

// tellsOfAll reports whether the end of an incident tells of whatever cannot be used then. One after which training goes on, and one
// that was withdrawn or is about a leftover, tells of nothing else: what is lost meanwhile is the next one's.
func (in *Incident) tellsOfAll() bool {
	return in.Outcome != Resumed && in.Outcome != Withdrawn && in.Code != CodeLeftBehind
}

// reportsLossOf reports whether a loss of this life is among the troubles, though no reading may have shown it yet.
func (in *Incident) reportsLossOf(s *Slot) bool {
	return slices.ContainsFunc(in.Troubles, func(t Trouble) bool {
		return !t.Announced && t.Cause.Infrastructure() && t.Slice == s.Name && t.Life != "" && t.Life == s.Incarnation.ID
	})
}

// summary is the last line of the story.
func (m *machine) summary() string {
	in := m.w.Incident
	parts := []string{string(in.Outcome)}
	if in.ConfirmedBy != "" {
		parts[0] += ", confirmed by " + string(in.ConfirmedBy)
	}
	if !in.Down.IsZero() {
		away := m.now.Sub(in.Down)
		parts = append(parts, "away "+events.Span(away))
		if chips := in.lostChips(m.w); chips > 0 {
			parts = append(parts, strconv.FormatFloat(away.Hours()*float64(chips), 'f', 1, 64)+" chip-hours")
		}
	}
	parts = append(parts, "charged to "+in.Account())
	return strings.Join(parts, " · ")
}

// Account is what the incident is charged to.
func (in *Incident) Account() string {
	if in.Cause == events.CauseEnd {
		return "nobody"
	}
	if in.Cause.Infrastructure() {
		return "infrastructure"
	}
	return "training"
}

// escalate ends the incident with a person's turn: why, what to do, and what it costs meanwhile.
func (m *machine) escalate(c Code, why, advice string) {
	if m.phase() == Clearing {
		if len(m.w.idle()) > 0 {
			advice += "; " + m.idleCost() + m.afterEscalation()
		}
		m.inc().Outcome = Escalated
		m.inc().Code, m.inc().Reason, m.inc().Advice = c, why, advice
		m.close()
		return
	}
	if m.phase() == Discarding {
		advice = strings.TrimPrefix(advice+"; "+m.byHand(), "; ")
	}
	if cost := m.idleCost(); cost != "" {
		advice += "; " + cost + m.afterEscalation()
	}
	m.finish(Escalated, "", c, why, advice)
}

// idleCost is what chips that do nothing cost while a person is waited for.
func (m *machine) idleCost() string {
	chips := 0
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.Condition == Ready && !s.IsReleased() && !(s.leftBehind() && m.creates()) {
			chips += s.Chips
		}
	}
	if chips == 0 {
		return ""
	}
	cost := fmt.Sprintf("meanwhile %s stand idle: %d chip-hours every hour", count(chips, "chip"), chips)
	if m.p.ChipHourPrice > 0 {
		cost += fmt.Sprintf(", $%.2f an hour at the policy's price", m.p.ChipHourPrice*float64(chips))
	}
	return cost
}

// release leaves the workload to its owner.
func (m *machine) release(c Code, why string) {
	m.finish(Released, "", c, why, "")
}

// watch follows an incident in which nothing may be done. It keeps the calls that would follow from the step that is not taken, or,
// where there is none, what is done instead. Where the policy was tightened in its middle, whoever calls for a deletion ends first, and
// what a call of ours may still bring is waited for.
func (m *machine) watch(seen, instead string, step func(*machine)) {
	in := m.inc()
	first := in.Phase == ""
	if m.w.has(func(effect Effect) bool { return effect.Action == events.ActionDelete && effect.UnderWay(m.now) }) {
		in.Look = true
		return
	}
	var would []string
	if step != nil {
		would = m.rehearse("", step)
	}
	if would == nil {
		would = []string{instead}
		m.keepText(instead)
	}
	if m.mayLeaveOrphans(Observed) {
		m.finish(Observed, "", CodeWatchOnly, seen+", and the policy allows nothing any more", "")
		return
	}
	m.w.Effects = nil
	for _, name := range m.toBeReplaced() {
		m.slice(name).Replace = false
	}
	m.enter(Watching, m.now.Add(WatchFor))
	if first {
		m.line(LineSeen, seen, "")
	}
	m.decided("only watch; would: "+strings.Join(would, "; "), "the policy allows nothing")
	m.coded(CodeWatchOnly)
}
