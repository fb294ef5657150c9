package incident

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Idle says that an incident has left usable slices to a person, and that Pitstop deletes them at Due, because the policy's
// when_escalated is delete. Anything that anybody says or does about the workload before then cancels it.
type Idle struct {
	Incident string       `json:"incident"`
	Cause    events.Cause `json:"cause"`
	Since    time.Time    `json:"since"`
	Due      time.Time    `json:"due"`
}

// whenEscalated names the policy setting that allows the deletion of idle slices, besides the switch that would allow their
// replacement.
const whenEscalated policy.Switch = "when_escalated"

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

// idleSwitch is the switch that must allow the deletion of idle slices: the same one that would allow their replacement.
func (w Workload) idleSwitch() policy.Switch {
	for _, s := range w.idle() {
		if !s.Reclaimable {
			return policy.RecreateNonSpot
		}
	}
	return policy.Recreate
}

// trained reports whether any step or checkpoint was ever reported.
func (w Workload) trained() bool {
	p := w.Progress
	return p.High > 0 || p.Step > 0 || p.CheckpointStep > 0 || !p.VerifiedAt.IsZero()
}

// Retains says why the slices that an incident leaves idle would be kept, though the policy's when_escalated is delete. It only
// knows the reasons that are known before Pitstop looks at the slices for their deletion.
func (w Workload) Retains(p policy.Policy) (c Code, why string) {
	m := machine{p: p, w: w}
	return m.retains()
}

// retains says why idle slices are kept. The switch ask keeps them too: the escalation already asks a person, and a person who has
// to approve the deletion can as well make it.
func (m *machine) retains() (c Code, why string) {
	sw := m.w.idleSwitch()
	switch l := m.level(sw); {
	case m.abused():
		return CodeAbuse, "Google suspects abuse on a slice"
	case l == policy.No:
		return CodePolicyNo, m.no(sw)
	case l == policy.Ask:
		return CodePolicyAsk, m.w.Forbids(sw, l, m.p) + ", and a person is asked by the escalation"
	case m.w.Crew.Seen.IsZero():
		return CodeMayTrain, "no crew has been heard that could tell whether training runs"
	case m.w.Crew.Claim.Finished: // a line is enough to keep the slices
		return CodeMayTrain, "a line says that the training is finished, and no verdict of the crew confirms it"
	case m.w.Directory == "":
		return CodeUnverified, "without a checkpoint directory nobody knows what is saved"
	}
	for _, s := range m.w.idle() {
		if s.Spec == "" {
			return CodeNoSpec, "the specification of " + s.Name + " was never read, so it could not be created again"
		}
		if s.Bare {
			return CodeEmptyMachine, s.Name + " has no start-up script: what was set up on it by hand would be lost, and what comes back is an empty machine"
		}
		for _, name := range m.othersInGroup(s) {
			if o := m.w.Slice(name); o.Condition != Ready && o.Condition != Lost && o.Condition != Gone {
				return CodeHoldsMore, m.w.group(s.Group) + " holds " + o.Name + " too, which is " + o.State
			}
		}
	}
	return "", ""
}

// afterEscalation says what happens to the slices that stand idle when this incident ends escalated.
func (m *machine) afterEscalation() string {
	switch {
	case m.p.WhenEscalated != policy.DeleteIdle || m.phase() == Discarding:
		return ""
	case m.w.Crew.Finished: // the finished slices belong to their owner
		return "; when_escalated: delete does not delete them: the training is finished"
	}
	if _, why := m.retains(); why != "" {
		return "; when_escalated: delete does not delete them: " + why
	}
	return fmt.Sprintf("; when_escalated: delete has them deleted in %s, unless you say pitstop cancel %s, or pause or retry %s",
		events.Span(m.p.DeleteAfter), m.w.Incident.ID, m.w.Name)
}

// leaveIdle schedules, at the end of an incident, the later deletion of the slices that it leaves idle.
func (m *machine) leaveIdle(in *Incident) {
	if in.Outcome != Escalated || m.p.WhenEscalated != policy.DeleteIdle || len(m.w.idle()) == 0 {
		return
	}
	if _, why := m.retains(); why == "" {
		m.w.Idle = &Idle{Incident: in.ID, Cause: in.Cause, Since: m.now, Due: m.now.Add(m.p.DeleteAfter)}
	}
}

// cancelIdleDeletion cancels the deletion of idle slices: somebody works on them.
func (m *machine) cancelIdleDeletion() {
	if m.w.Idle != nil {
		m.w.Idle, m.changed = nil, true
	}
}

// openDiscard opens an incident that deletes the slices which another one has left idle, when their time has come.
func (m *machine) openDiscard() {
	idle := m.w.Idle
	if idle == nil || m.now.Before(idle.Due) || m.p.Unreadable != "" {
		return
	}
	ready := m.w.idle()
	if m.p.WhenEscalated != policy.DeleteIdle || m.level(m.w.idleSwitch()) != policy.Yes || len(ready) == 0 {
		m.cancelIdleDeletion() // the owner has changed their mind, or nothing is idle any more
		return
	}
	if due := idle.Since.Add(m.p.DeleteAfter); m.now.Before(due) {
		m.w.Idle, m.changed = &Idle{Incident: idle.Incident, Cause: idle.Cause, Since: idle.Since, Due: due}, true
		return
	}
	span := events.Span(m.now.Sub(idle.Since))
	text := namesOf(ready) + " idle for " + span + ", since " + idle.Incident + " was left to a person"
	in := m.open(Trouble{Cause: idle.Cause, Slice: ready[0].Name, At: idle.Since, Text: text})
	in.Down, in.Of = idle.Since, idle.Incident
	m.enter(Discarding)
	m.line(LineSeen, text, "")
	m.decided("incident opened: delete "+namesOf(ready)+", if no training runs there and its last checkpoint is verified",
		"the policy's when_escalated is delete, and nobody has said a word for "+span)
}

func namesOf(all []*Slot) string {
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// discarding reports whether idle slices are to be deleted, and no deletion of them is under way that nobody could stop.
func (w Workload) discarding() bool {
	if w.Incident == nil || w.phase() != Discarding {
		return false
	}
	return !w.has(func(effect Effect) bool { return effect.Action == events.ActionDelete && effect.inFlight() }) && w.goesForIdle() == nil
}

// goesForIdle are the slices that are being deleted because they stood idle.
func (w Workload) goesForIdle() (going []*Slot) {
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Condition == Deleting && s.End.Discarded {
			going = append(going, s)
		}
	}
	return going
}

// LeftIdle reports whether the slices that an incident has left idle are still to be deleted, or the open incident is deleting
// them.
func (w Workload) LeftIdle(id string) bool {
	return w.Idle != nil && w.Idle.Incident == id || w.Incident != nil && w.Incident.Of != "" && w.Incident.Of == id
}

// discard continues the deletion of idle slices at each tick. It first asks who trains, then how far the training is saved. Until
// the first call, new objections count.
func (m *machine) discard() {
	if !m.w.discarding() {
		return
	}
	idle := m.w.idle()
	if len(idle) == 0 {
		m.discarded()
		return
	}
	if k := m.objection(); k != (Kept{}) {
		m.endKeepingIdle(k.Code, k.Why)
		return
	}
	unknown, _ := m.w.mayTrain(m.now)
	switch save := m.w.Incident.Save; {
	case unknown != "": // no request rests on unknown facts
		for i := range m.w.Effects {
			if effect := &m.effects()[i]; effect.Action == events.ActionDelete {
				effect.Retry = later(effect.Retry, m.now.Add(time.Minute))
			}
		}
	case save.Verified || save.Nothing:
		m.deleteIdle(idle)
	case m.w.effect(events.ActionVerify, "") == nil:
		m.decided("verify the last checkpoint", "what still lives is not deleted without one")
		m.send(Effect{Action: events.ActionVerify, Reason: "before the deletion of idle slices"})
	}
}

// objection is the reason why the idle slices are kept; zero where nobody and nothing objects.
func (m *machine) objection() Kept {
	if k := m.w.Incident.Kept; k != (Kept{}) {
		return k
	}
	if c, why := m.retains(); why != "" {
		return Kept{c, why}
	}
	if m.p.WhenEscalated != policy.DeleteIdle {
		return Kept{CodePolicyNo, "the policy's when_escalated is keep by now"}
	}
	if why, heard := m.w.mayTrain(m.now); heard && why != "" {
		return Kept{CodeMayTrain, why}
	}
	return Kept{}
}

// deleteIdle requests the deletion of the idle slices that no request names yet.
func (m *machine) deleteIdle(idle []*Slot) {
	var names []string
	for _, s := range idle {
		if !m.deletionWanted(s.Name) {
			names = append(names, s.Name)
		}
	}
	if names == nil {
		return
	}
	if in := m.inc(); !m.w.has(func(effect Effect) bool { return effect.Action == events.ActionDelete }) {
		in.Deadline = m.now.Add(RemoveFor)
	}
	m.decided("delete "+namesOf(idle), "no training runs there"+m.saved())
	m.sendDeletions(names, "when_escalated is delete")
}

func (w Workload) has(is func(Effect) bool) bool { return slices.ContainsFunc(w.Effects, is) }

// undecided are the idle slices whose deletion the provider has not accepted. Pitstop listens for their crews right before it
// deletes any of them.
func (w Workload) undecided() []*Slot {
	return slices.DeleteFunc(w.idle(), func(s *Slot) bool {
		return w.has(func(effect Effect) bool {
			return effect.Action == events.ActionDelete && effect.Concerns(s.Name) && !effect.Answered.IsZero()
		})
	})
}

// mayTrain says why training may run on the idle slices that are to be deleted; heard is false where nobody knows yet. The word of
// one crew counts for all crews. Pitstop believes no user's line that training has ended: it requires that no steps are reported,
// and that a crew says on its machine that it does none.
func (w Workload) mayTrain(now time.Time) (why string, heard bool) {
	if why := w.runsOnIdle(now); why != "" {
		return why, true
	}
	for _, s := range w.undecided() {
		if why := w.unknownOf(s, now); why != "" {
			return why, false
		}
	}
	return "", true
}

// runsOnIdle names the crew of an idle slice that reports running training; empty if none does.
func (w Workload) runsOnIdle(now time.Time) string {
	in := w.Incident
	if w.Progress.Stepped.After(in.Down) {
		return "the crew writes on its machine that steps are done"
	}
	since, usual := w.silence()
	for _, s := range w.idle() {
		h := s.Heard
		lately := !h.At.Before(in.Opened) && now.Sub(h.At) <= HeardFor
		if lately && h.runs() && (!w.Crew.knownRunning(h.Attempt) || now.Sub(since) < usual) {
			return "the crew of " + s.Name + " says that the training runs"
		}
	}
	return ""
}

// unknownOf names the missing fact about the crew of an idle slice; empty if it was heard lately.
func (w Workload) unknownOf(s *Slot, now time.Time) string {
	switch h := s.Heard; {
	case h.At.Before(w.Incident.Opened), now.Sub(h.At) > HeardFor:
		return "the crew of " + s.Name + " has not been listened for"
	case h.Seen.IsZero():
		return "what the crew of " + s.Name + " writes on its machine cannot be read"
	}
	return ""
}

// keepIfTraining keeps the idle slices where a crew that Pitstop just listened for reports running training.
func (m *machine) keepIfTraining() {
	if m.phase() != Discarding {
		return
	}
	if why, heard := m.w.mayTrain(m.now); heard && why != "" {
		m.abortIdleDeletion(Kept{CodeMayTrain, why})
	}
}

// Kept is the reason why idle slices are kept.
type Kept struct {
	Code Code   `json:"code,omitzero"`
	Why  string `json:"why,omitzero"`
}

// abortIdleDeletion keeps the idle slices when somebody intervenes or training shows a sign of life. It waits for the end of
// deletions that are under way at that moment.
func (m *machine) abortIdleDeletion(k Kept) {
	switch {
	case m.phase() != Discarding:
	case m.w.discarding():
		m.endKeepingIdle(k.Code, k.Why)
	case m.w.Incident.Kept == Kept{}:
		in := m.inc()
		in.Kept = k
		m.dropEffects(func(effect Effect) bool { return effect.Action == events.ActionDelete && !effect.inFlight() })
		m.decided("delete no more than what is being deleted", k.Why)
		m.coded(k.Code)
	}
}

// endKeepingIdle ends the incident without deleting the idle slices, and says which slices were deleted before.
func (m *machine) endKeepingIdle(c Code, why string) {
	var parts []string
	if gone := m.deletedIdle(); gone != nil {
		parts = append(parts, namesOf(gone)+" was deleted")
	}
	idle := m.w.idle()
	called := func(s *Slot) bool { return s.End.Discarded }
	if kept := slices.DeleteFunc(slices.Clone(idle), called); len(kept) > 0 {
		parts = append(parts, namesOf(kept)+" is kept")
	}
	if doubtful := slices.DeleteFunc(idle, func(s *Slot) bool { return !called(s) }); len(doubtful) > 0 {
		parts = append(parts, namesOf(doubtful)+" may have been deleted, by a call of which nobody knows what came")
	}
	if going := m.w.goesForIdle(); going != nil {
		parts = append(parts, namesOf(going)+" is on its way out")
	}
	if parts == nil {
		parts = []string{"nothing is deleted"}
	}
	m.escalate(c, strings.Join(parts, ", ")+", though when_escalated is delete: "+why, "")
}

// deletedIdle are the slices that this incident has deleted.
func (m *machine) deletedIdle() (gone []*Slot) {
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.discarded() && !s.Since.Before(m.w.Incident.Opened) {
			gone = append(gone, s)
		}
	}
	return gone
}

// byHand says what a person does about idle slices that were not deleted, and what a retry does with the others.
func (m *machine) byHand() string {
	retry := "pitstop retry " + m.w.Name
	idle, gone := m.w.idle(), m.deletedIdle()
	switch {
	case gone != nil:
		retry += " brings back " + namesOf(gone)
	case idle != nil:
		retry += " asks its crew for another attempt"
	default:
		retry += " brings back what cannot be used"
	}
	if idle == nil {
		return retry
	}
	return "delete " + namesOf(idle) + " by hand; " + retry
}

// vanishedIdle notes that a slice is gone during the deletion of idle ones. If Pitstop did not delete it, somebody else did: the
// others are left to them.
func (m *machine) vanishedIdle(s *Slot, was Condition) {
	effect := m.w.effect(events.ActionDelete, s.Name)
	ours := effect != nil && effect.inFlight() || s.End.Discarded
	if ours {
		m.slice(s.Name).End.Discarded = true
	}
	m.dropDone(events.ActionDelete, s.Name)
	switch {
	case !m.w.discarding():
	case !ours && was != Gone:
		m.endKeepingIdle(CodeTakenOver, m.w.noun(s.Name)+" is gone, and this incident has not deleted it")
	case ours && len(m.w.idle()) == 0:
		m.discarded()
	}
}

// discarded ends the incident when no slice stands idle any more.
func (m *machine) discarded() {
	gone := m.deletedIdle()
	if gone == nil {
		m.escalate(CodeNotReady, "nothing of it is READY any more, and nothing was deleted", "")
		return
	}
	m.finish(Escalated, "", CodeIdleDeleted, namesOf(gone)+" deleted, because the policy's when_escalated is delete"+m.saved(),
		"pitstop retry "+m.w.Name+" brings back what was deleted, from its stored specification")
}

// noteActivity takes a sign of training, or of somebody who works there, that is newer than the start of the idle time: the slices
// are kept.
func (m *machine) noteActivity(c Code, what string) {
	if idle := m.w.Idle; idle != nil && m.when().After(idle.Since) {
		m.cancelIdleDeletion()
	}
	if m.phase() == Discarding && m.when().After(m.w.Incident.Down) {
		m.abortIdleDeletion(Kept{c, what})
	}
}

// discardOverdue ends the incident when the facts, or the deletion, take too long.
func (m *machine) discardOverdue(took string) {
	var asked *Effect
	for i := range m.w.Effects {
		if effect := &m.w.Effects[i]; effect.Action == events.ActionDelete {
			asked = effect
		}
	}
	why, heard := m.w.mayTrain(m.now)
	switch {
	case m.w.goesForIdle() != nil:
		m.escalate(CodeOverdue, "the deletion of "+namesOf(m.w.goesForIdle())+" did not end within "+took, "")
	case asked != nil && asked.LastFailure == "":
		m.escalate(CodeOverdue, "the deletion of "+asked.sliceList()+" did not end within "+took, "")
	case asked != nil:
		m.escalate(CodeOverdue, "the deletion of "+asked.sliceList()+" did not end within "+took+": "+asked.LastFailure, "")
	case !heard:
		m.endKeepingIdle(CodeMayTrain, why+", for "+took)
	default:
		failed := m.w.Incident.Save.Failed
		if failed == "" {
			failed = m.lastFailure()
		}
		m.endKeepingIdle(CodeUnverified, "its last checkpoint could not be verified within "+took+": "+failed)
	}
}

// noteDiscarded notes at the end of the incident which slices are being deleted: nobody misses them when they are gone.
func (m *machine) noteDiscarded() {
	for _, effect := range m.w.Effects {
		if effect.Action == events.ActionDelete && effect.inFlight() {
			m.mayBeDiscarded(effect)
		}
	}
}

// mayBeDiscarded marks the slices that the call of an effect may have deleted: nobody misses them, for as long as those lives last.
func (m *machine) mayBeDiscarded(effect Effect) {
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; effect.Concerns(s.Name) {
			by := effect.Begun.Add(CallFor)
			if !effect.Answered.IsZero() {
				by = m.now.Add(UnreleaseAfter) // it was accepted
			}
			s = m.slice(s.Name)
			s.End.Discarded, s.End.DiscardBy = true, by
		}
	}
}
