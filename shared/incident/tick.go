//go:build !heart

package incident

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
)

// ticked lets time pass: it does due work, and a wait that took too long falls back or goes to a person.
func (m *machine) ticked() {
	if m.w.Incident == nil {
		m.quiet()
		return
	}
	if m.unreadable() {
		if m.isOverdue() && m.w.Incident.heldOut() {
			m.overdue()
		}
		return
	}
	if m.w.Incident.HeldCode == CodePolicyUnreadable {
		in := m.inc()
		in.Held, in.HeldCode, in.HeldUntil = "", "", time.Time{}
	}
	if m.isOverdue() {
		m.overdue()
		return
	}
	if m.askAgain(); m.w.Incident != nil {
		m.wait()
	}
}

// wait goes on with the incident's wait, as far as time alone allows it.
func (m *machine) wait() {
	in := m.w.Incident
	switch m.phase() {
	case Saving:
		if in.Save.Requested.IsZero() {
			m.startSave()
		}
	case Window:
		if !in.Save.Requested.IsZero() {
			m.saveAgain()
		}
	case PhaseCreating:
		if !m.giveUpIfPolicySays() {
			m.remind()
		}
	case Approving:
		m.waitForYes()
	case PhaseGrace:
		if slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return s.ownerSilent(m.now) && !s.IsReleased() }) {
			m.waitForSlices()
		}
	case Clearing:
		m.stillClearing()
	case Healing:
		m.startStopped()
	case Watching:
		if m.onlyHangs() {
			m.openDueMaintenance()
		}
	case Maintaining, Looking, Admitting, Resuming, Restarting, Starting, Closed: // nothing but their end
	}
}

// waitForYes goes on with an approved action, or with one that needs no approval any more.
func (m *machine) waitForYes() {
	in := m.w.Incident
	if in.Granted {
		m.granted(m.w.approver())
		return
	}
	if in.Asked == events.ActionMaintain {
		m.saveAgain()
		if m.phase() != Approving {
			return
		}
	}
	if in.Asked == events.ActionStart && m.startable() == nil && !m.allReady() {
		m.waitForSlices() // somebody else has started it meanwhile
		return
	}
	if m.reminds(in.Since) {
		m.decided("still wait for approval: "+m.asks(in.Asked), events.Span(m.now.Sub(in.Since))+" by now")
	}
}

// quiet opens an incident when its time has come, and otherwise tells of a long wait.
func (m *machine) quiet() {
	m.endProbe()
	for _, open := range []func(){m.openAdmission, m.openDueMaintenance, m.openUnusable, m.hangs} {
		if open(); m.w.Incident != nil {
			return
		}
	}
	m.tellWait()
}

// openDueMaintenance opens the incident of announced maintenance when its save is due, or when it stands that nothing was opened for it.
func (m *machine) openDueMaintenance() {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		n := s.Notice
		if !s.announced() || s.announcedInVain() || !m.mayOpenTogether(s) {
			continue
		}
		if m.p.Unreadable != "" && (n.Due.IsZero() || m.now.Before(m.lastDue(n))) {
			continue // what the policy allows early is not known yet
		}
		if due := m.due(n); !due.IsZero() && !m.now.Before(due) || m.standsUnmet(s) {
			m.openMaintenance(s)
			return
		}
	}
}

// openUnusable opens an incident for the first slice that has not been usable for too long.
func (m *machine) openUnusable() {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if !m.mayOpen(s) {
			continue
		}
		since := m.now.Sub(s.Since)
		trains := m.w.Progress.At.After(s.Since) && m.w.stepsAt(m.now)
		switch {
		case s.ownerSilent(m.now):
			text := m.openSince(s, "gone")
			m.lose(s, text+", and nothing says that its owner deleted it")
			return
		case s.Condition == Gone && since >= Grace+AuditFor:
			m.openUnread(s)
			return
		case (s.Condition == Unhealthy || s.Condition == Unclear) && since >= SickFor && !trains && m.mayOpenTogether(s):
			text := m.openSince(s, s.State)
			m.takeOrWatch(text, "wait for "+m.w.recovery(), func(m *machine) {
				m.enter(Healing)
				m.decided("incident opened: "+text+"; wait for "+m.w.recovery(), "")
			})
			return
		case s.unsaidFor(since):
			m.openStopped(s)
			return
		}
	}
}

// openSince opens an incident for a slice that has been in a state since a reading showed it, and describes that for people.
func (m *machine) openSince(s *Slot, state string) string {
	text := m.w.noun(s.Name) + " has been " + state + " for " + events.Span(m.now.Sub(s.Since))
	m.open(Trouble{Cause: events.CauseUnknown, Slice: s.Name, Life: s.Incarnation.ID, At: s.Since, Text: text, Proven: true})
	m.stopped(s.Since)
	return text
}

// openUnread opens an incident for a slice that is gone while the audit log cannot be read, and leaves it to a person.
func (m *machine) openUnread(s *Slot) {
	text := m.auditUnread(s)
	m.open(Trouble{Cause: events.CauseUnknown, Slice: s.Name, Life: s.Incarnation.ID, At: s.Since, Text: text, Proven: true})
	m.stopped(s.Since)
	m.takeOrWatch(text, "nothing", func(m *machine) {
		m.enterUntil(PhaseGrace, m.now)
		m.line(LineSeen, text, "")
		m.escalate(CodeAuditUnread, text, auditAdvice+m.w.Name)
	})
}

// askAgain sends a request again that was not begun, not answered, or failed a while ago.
func (m *machine) askAgain() {
	for i := 0; m.w.Incident != nil && i < len(m.w.Effects); i++ {
		effect := m.w.Effects[i]
		switch effect.Stage() {
		case StageRefused:
			if !m.now.Before(effect.Retry) {
				m.resend(&m.effects()[i])
			}
		case StageWanted:
			if m.now.Sub(effect.Sent) >= RequestFor {
				m.unanswered(i, "nobody began it within "+events.Span(RequestFor))
			}
		case StageBegun:
			if m.now.Sub(effect.Begun) >= AnswerFor {
				m.unanswered(i, "it was begun and not answered within "+events.Span(AnswerFor))
			}
		case StageAccepted:
			if m.now.Sub(effect.Answered) >= OperationFor {
				m.unanswered(i, "its operation has not ended within "+events.Span(OperationFor))
			}
		case StageDone: // the next reading shows it
		}
	}
}

// unanswered sends an effect again. The function reads the state before it calls: the effect may have happened.
func (m *machine) unanswered(i int, why string) {
	effect := &m.effects()[i]
	if m.phase() == Clearing && m.w.Incident.unwanted(*effect) {
		m.decided("wait no longer for the creation of "+effect.sliceList(), why)
		m.drop(effect.Action, effect.Slice)
		return // the next tick ends the clean-up
	}
	effect.Failures++
	// Their phase bounds a save and its verification: the maintenance comes all the same.
	if effect.Failures >= MaxFailures && effect.Action != events.ActionSave && effect.Action != events.ActionVerify && effect.Action != events.ActionHear {
		m.escalate(CodeUnanswered, fmt.Sprintf("%s: %s, %d times in a row", effect.Action, why, effect.Failures), "look at the function's log and its dead letters")
		return
	}
	m.decided("ask again: "+string(effect.Action)+" "+effect.sliceList(), why)
	m.resend(effect)
}

// giveUpIfPolicySays ends the wait for capacity where the policy bounds it.
func (m *machine) giveUpIfPolicySays() bool {
	in := m.w.Incident
	if m.p.GiveUpAfter == 0 || in.WaitingSince.IsZero() || m.now.Sub(in.WaitingSince) < m.p.GiveUpAfter {
		return false
	}
	m.escalate(CodeGaveUp, "no capacity for "+events.Span(m.now.Sub(in.WaitingSince))+", and the policy gives up after "+events.Span(m.p.GiveUpAfter),
		"create it by hand, or allow more zones or time")
	return true
}

// isOverdue reports whether the phase has reached its deadline.
func (m *machine) isOverdue() bool {
	d := m.w.Incident.Deadline
	return !d.IsZero() && !m.now.Before(d)
}

// overdue handles a phase that has reached its deadline.
func (m *machine) overdue() {
	in := m.w.Incident
	for _, effect := range m.w.Effects {
		if effect.UnderWay(m.now) {
			m.inc().Deadline = effect.Begun.Add(CallFor) // the instance that has begun it cannot see this decision
			return
		}
	}
	if in.heldOut() && m.phase() != Watching {
		m.escalate(in.HeldCode, "it was held for "+events.Span(in.held())+" in all, and is still: "+in.Held, "put right what holds it, then pitstop retry "+m.w.Name)
		return
	}
	m.overdueIn(m.phase(), events.Span(m.now.Sub(in.Since)))
}

// overdueIn takes the next step when a phase has taken so long. No phase stays: it falls back to another one, or a person hears of
// it.
func (m *machine) overdueIn(p Phase, took string) {
	switch p {
	case Saving:
		m.noSave(m.saveOverdue())
	case Maintaining:
		m.maintainOverdue(took)
	case Window, Healing:
		m.unhealed(took)
	case Looking:
		m.unexplained(took)
	case PhaseGrace:
		m.unsaidInTime(took)
	case PhaseDeleting:
		m.undeleted(took)
	case PhaseCreating:
		m.notCreated(took)
	case Admitting, Restarting:
		m.escalate(CodeOverdue, "the lease could not be written within "+took+": "+m.lastFailure(), "look at the bucket and the permissions of the function recovery")
	case Resuming:
		m.noProgress(took)
	case Starting:
		m.unstarted(took)
	case Watching:
		m.finish(Observed, "", m.watchCode(), m.describeUnusable()+" after "+took, "")
	case Clearing:
		m.uncleared(took)
	case Approving, Closed: // which have no deadline
	}
}

// unsaidInTime goes on when the time is over in which an owner may have said that they deleted a slice, or another slice has had its
// time to heal.
func (m *machine) unsaidInTime(took string) {
	silent := slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return s.ownerSilent(m.now) && !s.IsReleased() })
	if !silent && !m.now.Before(m.firstHealedBy(Stopped)) {
		m.unhealed(took)
		return
	}
	m.waitForSlices()
}

// notCreated handles a creation that has not ended in time: a sick new slice is replaced, and an accepted creation gets as much
// time again.
func (m *machine) notCreated(took string) {
	if !m.replaceSick() && !m.slow(took) {
		m.escalate(CodeOverdue, "the creation did not end within "+took, "create it by hand")
	}
}

// unstarted handles a start that has not made a slice usable in time.
func (m *machine) unstarted(took string) {
	lost := func(s Slot) bool {
		return !s.IsReleased() && s.Condition != Ready && s.Condition != Stopped && m.startsOthers(&s)
	}
	if slices.ContainsFunc(m.w.Slices, lost) {
		m.waitForSlices() // another slice was lost meanwhile
		return
	}
	m.escalate(CodeOverdue, "it was not usable within "+took+" of its start: "+m.lastFailure(), m.byHandStart())
}

// uncleared leaves to a person the slices that Pitstop's own requests brought and that could not be deleted.
func (m *machine) uncleared(took string) {
	words := m.w.Words()
	advice := "delete it by hand: look for " + words.Slice + "s, and for the " + words.Slice + "s of " + words.Group + "s, with the label " +
		events.LabelIncident + "=" + m.w.Incident.ID
	if m.abused() {
		m.tellAbuse()
		m.escalate(CodeAbuse, "what our own request brought was left alone for "+took+": Google suspects abuse", "answer Google's notification, and "+advice)
		return
	}
	m.escalate(CodeOverdue, "what our own request brought could not be deleted within "+took+m.barring(), advice)
}

// undeleted leaves a deletion that does not end to a person. Where it waits for a worker, that one may still write.
func (m *machine) undeleted(took string) {
	advice := "delete " + strings.Join(m.toBeReplaced(), ", ") + " by hand; then it can be created again"
	why := "the deletion did not end within " + took + m.barring()
	for _, name := range m.toBeReplaced() {
		if s := m.w.Slice(name); m.w.provider().goesWithWorkers && s.Condition == Deleting {
			why += "; " + m.describe(s)
			advice = "end that " + m.w.Words().Worker + ", or wait until its machine answers or is gone; then pitstop retry creates " + name + " again"
		}
	}
	m.escalate(CodeOverdue, why, advice)
}

// barring says which state forbids a deletion, if one does.
func (m *machine) barring() string {
	for _, effect := range m.w.Effects {
		if !effect.Barred.IsZero() {
			return ": " + m.w.holder(effect.Slice) + " cannot be deleted, " + effect.LastFailure
		}
	}
	return ""
}

// describeUnusable describes the unusable slices.
func (m *machine) describeUnusable() string {
	var parts []string
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.isMissed() {
			parts = append(parts, s.Name+" still is "+s.State)
		}
	}
	if parts == nil {
		return "no progress was seen"
	}
	return strings.Join(parts, ", ")
}

func (m *machine) lastFailure() string {
	for _, effect := range m.w.Effects {
		if effect.LastFailure != "" {
			return effect.LastFailure
		}
	}
	return "nobody answered"
}

// unhealed handles a slice that its provider has not brought back in time.
func (m *machine) unhealed(took string) {
	if m.allReady() {
		m.resume("the slice is usable")
		return
	}
	if m.stepsOn() {
		if !m.w.Progress.At.After(m.lastTrouble()) { // it may have stopped since: a person says that it may be tried again
			m.inc().Deadline = m.now.Add(CheckFor)
			return
		}
		m.resumed(ByStep, "training goes on, though "+m.describeUnusable()+": "+pastBaseline(m.w.Progress.Step, m.w.Incident.Baseline))
		return
	}
	suspended, making := m.replaceUnhealed()
	stopped, names := m.stillStopped(), m.toBeReplaced()
	switch {
	case names != nil && !suspended: // the stopped slices come after that
		m.replace(m.w.Words().Healer + " has not brought " + strings.Join(names, ", ") + " back within " + events.Span(m.now.Sub(m.brokenSince(names))))
	case stopped != nil:
		m.startOrTell(strings.Join(stopped, ", ") + " stopped")
	case making != "":
		m.escalate(CodeOverdue, m.w.noun(making)+" still is "+m.w.Slice(making).State+", as its owner ordered it, after "+took,
			"wait for it, or order it anew; then pitstop retry "+m.w.Name)
	default:
		m.waitForSlices()
	}
}

// replaceUnhealed marks the slices that have had their time to heal for replacement. It reports whether a stopped
// slice, which goes with its group, is among those that cannot be used. Making names a slice that its owner has ordered and that has
// not come.
func (m *machine) replaceUnhealed() (suspended bool, making string) {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		unsaid := s.Condition == Gone && !s.ownerSilent(m.now) && !m.w.knowsWhyGone(s)
		switch {
		case !s.isMissed(), unsaid, s.Condition != Gone && m.now.Before(m.healedBy(s)):
		case s.Condition == Stopped:
			suspended = suspended || !s.onlyStopped()
			if s.ToReplace && m.w.effect(events.ActionDelete, s.Name) == nil {
				m.slice(s.Name).ToReplace = false // a stopped slice is not deleted
			}
		case s.NeverUsable && s.Condition == Creating:
			making = s.Name
		default:
			m.slice(s.Name).ToReplace = true
		}
	}
	return suspended, making
}

// brokenSince is when the first of some slices entered its condition.
func (m *machine) brokenSince(names []string) time.Time {
	first := m.now
	for _, name := range names {
		if s := m.w.Slice(name); s.Since.Before(first) {
			first = s.Since
		}
	}
	return first
}

// stepsOn reports whether the training does steps past the baseline, on slices that only the API calls unusable.
func (m *machine) stepsOn() bool {
	p := m.w.Progress
	for i := range m.w.Slices {
		switch s := &m.w.Slices[i]; {
		case !s.isMissed(), s.NeverUsable:
		case s.Condition != Unhealthy && s.Condition != Unclear, s.ToReplace, !p.At.After(s.Since):
			return false
		}
	}
	return p.Step > m.w.Incident.Baseline && m.w.stepsAt(m.now)
}

// unexplained handles evidence of a loss that the API has not confirmed in time.
func (m *machine) unexplained(took string) {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if s.ToReplace { // the policy could not be read when the loss was proven
			m.loseHeard(s)
			return
		}
	}
	if m.w.Incident.Cause == events.CauseHang && m.w.Incident.Hearing {
		m.decideHang(m.w.Incident.Troubles[0].Text)
		return
	}
	if m.allReady() {
		m.resume("the API has shown a usable slice for " + took)
		return
	}
	m.escalate(CodeOverdue, "the API did not explain the evidence within "+took, "look at the TPU yourself: "+m.w.Words().Describe)
}

// noProgress handles a usable slice whose training does not go on.
func (m *machine) noProgress(took string) {
	in := m.w.Incident
	switch {
	case in.Retried && in.Since.Equal(in.Opened) && !m.w.Crew.Seen.IsZero():
		m.restart("a person has asked for it")
	case m.stillStepping():
		m.inc().Deadline = m.now.Add(Grace)
		m.decided("wait for a step past "+events.Number(in.Baseline), "steps are done still")
	case m.rewound():
		m.acceptRewind()
	case m.w.spoke() && !m.unanswering():
		m.restart("no progress within " + took)
	case m.unread: // it may have been lost since
		m.inc().Deadline = m.now.Add(CheckFor)
	case m.w.Directory != "" && m.w.effect(events.ActionVerify, "") == nil:
		m.inc().Deadline = m.now.Add(CheckFor)
		m.decided("look for a new checkpoint", "no crew can tell of steps")
		m.send(Effect{Action: events.ActionVerify, Reason: "no crew", By: m.lastTrouble()})
	default:
		m.unproven("the slice has been usable for " + took + "; there is no crew that tells of steps")
	}
}

// unproven ends the wait for progress that nothing has shown.
func (m *machine) unproven(why string) {
	switch {
	case m.unanswering():
		m.escalate(CodeOverdue, "no line has come since another attempt was asked for, and no new checkpoint is known", "look whether it trains, and why its lines do not come")
	case !m.w.Crew.Seen.IsZero(): // a crew has spoken in a life before, so it ought to speak in this one
		m.restart("no crew tells of steps, and no new checkpoint is known")
	default:
		m.resumed(ByHealth, why)
	}
}

// stillClearing goes on with a clean-up, and ends one that found nothing to clean.
func (m *machine) stillClearing() {
	m.clear()
	for i := range m.w.Slices {
		if s := m.w.Slices[i]; m.w.Incident != nil && s.Condition == Gone && !s.leftBehind() {
			m.cleared(m.slice(s.Name))
		}
	}
}
