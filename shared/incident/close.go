//go:build !heart

package incident

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
)

// finish ends the open incident. Where one of Pitstop's calls may still bring a slice that nobody wants any more, a clean-up comes
// first, and the end follows it.
func (m *machine) finish(o Outcome, by Confirmation, c Code, reason, advice string) {
	in := m.inc()
	in.Outcome, in.ConfirmedBy, in.Code, in.Reason, in.Advice = o, by, c, reason, advice
	if o != Resumed && m.mayLeaveOrphans(o) {
		m.startClearing(o)
		return
	}
	m.close()
}

// resumed ends the open incident because the training goes on: only this end needs no code.
func (m *machine) resumed(by Confirmation, reason string) { m.finish(Resumed, by, "", reason, "") }

// mayLeaveOrphans reports whether one of Pitstop's creations may still take effect, or has. A slice that lacks only its admission
// is left to the person who has to act. A slice that trains unasked belongs to its owner once it is there.
func (m *machine) mayLeaveOrphans(o Outcome) bool {
	if m.w.provider().trainsUnasked {
		return false
	}
	for _, effect := range m.w.Effects {
		if effect.Action == events.ActionCreate && !effect.Begun.IsZero() {
			return true
		}
	}
	return !m.abused() && (o == Released || m.creates()) && slices.ContainsFunc(m.w.Slices, Slot.leftBehind)
}

// creates reports whether the incident is about to replace slices.
func (m *machine) creates() bool { return m.phase() == PhaseDeleting || m.phase() == PhaseCreating }

// leftBehind reports whether a slice exists, or is ordered, only because an incident created it.
func (l Life) leftBehind() bool { return l.Maker != "" || !l.Ordered.IsZero() }

func (m *machine) startClearing(o Outcome) {
	in := m.inc()
	reason := in.Reason
	m.enter(Clearing)
	in.Outcome, in.Clearing = "", o
	m.dropEffects(func(effect Effect) bool { // the lost slice may go
		return effect.Action == events.ActionDelete && !effect.UnderWay(m.now)
	})
	m.decided("clean up what our own request brought, or may still bring", reason)
	m.clear()
}

// clear deletes the slices that Pitstop's own requests have brought or ordered, whenever a reading showed them. Training was never
// admitted to them, so nothing is lost. Where Google suspects abuse, clear touches nothing.
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
		s.ToReplace = true
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

// cleared ends the incident when no work of Pitstop's own is under way any more.
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

// outlived reports whether a slice that a reading or a line shows alive has outlived every call to delete it. A request that nobody has
// begun makes no call once the effect is dropped.
func (m *machine) outlived(effect *Effect) bool {
	last := effect.Begun
	for _, c := range m.w.Incident.Calls { // of earlier tries
		accepted := !c.Answered.IsZero() && c.Code == "" // the effect knows it, or it was for a former life
		if c.Action == effect.Action && effect.Concerns(c.Slice) && !c.NotMade && !accepted {
			last = later(last, later(c.At, c.Until))
		}
	}
	return effect.Answered.IsZero() && effect.Operation == "" && m.when().After(last.Add(CallFor))
}

// failedClearing handles a call that failed during the clean-up. A failed creation is the wanted result.
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
	m.retryLater(effect, f.Message)
}

// toldOfStandstill reports whether the end of the incident leaves a standstill of the training to a person: the person has to act,
// or has heard that a training does not go on. Announced maintenance that was watched or withdrawn says nothing about a standstill.
func (m *machine) toldOfStandstill() bool {
	in := m.w.Incident
	return in.Outcome == Escalated || in.Outcome == Observed && in.ConfirmedBy != ByStep && (!in.Cause.Infrastructure() || m.isOverdue())
}

// close archives the incident and leaves it where late evidence finds it.
func (m *machine) close() {
	in := m.inc()
	m.raise()
	if m.toldOfStandstill() {
		m.w.Progress.StallReported = m.now
	}
	finished := m.finishedWithin()
	m.opens, m.entered = false, Closed
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

// tellEnds notes the slices whose end the incident's end reports, and clears what the incident wanted of them.
func (m *machine) tellEnds(in *Incident) {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		told := s.End.Reported
		switch {
		case !in.tellsOfAll():
		case in.Outcome == Released && in.reportsLossOf(s), s.Condition != Ready && (s.Condition != Creating || s.ToReplace):
			told = true // its end was reported, though no reading may have shown its life; it opens no second incident
		case s.Condition != Creating: // an incident about another slice does not report this one's end
			told = false
		}
		if s.ToReplace || s.leftBehind() || s.End.Reported != told {
			c := m.slice(s.Name)
			c.ToReplace, c.End.Reported, c.Maker, c.Ordered = false, told, "", time.Time{}
		}
	}
}

// finishedWithin reports whether the training was done while an incident watched, replaced or cleaned up, and so the incident goes
// on to its end. Any other incident has ended with the training, or was opened for slices that the owner created after that.
func (m *machine) finishedWithin() bool {
	in := m.w.Incident
	return m.w.Crew.Finished && (in.Clearing != "" || m.phase() == PhaseDeleting || m.phase() == PhaseCreating || m.phase() == Watching)
}

// markAwaitsAdmission notes after its incident that a slice waits for admission, where admission was due and no lease is known to
// name the slice. Slices that a person has heard of, or has taken over, are left to that person.
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

// tellsOfAll reports whether the end of an incident covers every slice that is unusable then. An incident whose training goes on,
// was withdrawn or concerned a leftover covers nothing else: another loss meanwhile belongs to the next incident.
func (in *Incident) tellsOfAll() bool {
	return in.Outcome != Resumed && in.Outcome != Withdrawn && in.Code != CodeLeftBehind
}

// reportsLossOf reports whether a loss of this life is among the troubles, though no reading may have shown it yet. A repaired loss
// does not count: the next one is another.
func (in *Incident) reportsLossOf(s *Slot) bool {
	return slices.ContainsFunc(in.Troubles, func(t Trouble) bool {
		ofThisLife := t.Slice == s.Name && t.Life != "" && t.Life == s.Incarnation.ID
		return ofThisLife && !t.Announced && t.Cause.Infrastructure() && !t.At.Before(s.usable())
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

// Account names the party to which people charge the incident, by its cause. No budget follows from it; see Payer.
func (in *Incident) Account() string {
	if in.Cause == events.CauseEnd {
		return "nobody"
	}
	if in.Cause.Infrastructure() {
		return "infrastructure"
	}
	return "training"
}

// escalate ends the incident and hands it to a person, with the reason, the advice, and the cost meanwhile.
func (m *machine) escalate(c Code, why, advice string) {
	if m.phase() == Clearing {
		if len(m.w.idle()) > 0 {
			advice += "; " + m.idleCost()
		}
		m.inc().Outcome = Escalated
		m.inc().Code, m.inc().Reason, m.inc().Advice = c, why, advice
		m.close()
		return
	}
	if cost := m.idleCost(); cost != "" {
		advice += "; " + cost
	}
	m.finish(Escalated, "", c, why, advice)
}

// idleCost is the cost of chips that do nothing while Pitstop waits for a person.
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

// watch follows an incident in which Pitstop may do nothing. It keeps the calls that would follow from the step that is not taken,
// or, where there is no step, what Pitstop does instead. Where the policy was tightened in the middle of an incident, a deletion
// under way ends first, and watch waits for slices that Pitstop's calls may still bring.
func (m *machine) watch(seen, instead string, step func(*machine)) {
	in := m.inc()
	first := m.phase() == ""
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
		m.slice(name).ToReplace = false
	}
	m.enter(Watching)
	if first {
		m.line(LineSeen, seen, "")
	}
	m.decided("only watch; would: "+strings.Join(would, "; "), "the policy allows nothing")
	m.coded(CodeWatchOnly)
}

// idle are the usable slices that cost money and belong to the workload alone.
func (w Workload) idle() (idle []*Slot) {
	for i := range w.Slices {
		s := &w.Slices[i]
		if s.Condition == Ready && s.Incarnation.Known() && !s.ownersBusiness(w) {
			idle = append(idle, s)
		}
	}
	return idle
}
