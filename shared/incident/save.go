//go:build !heart

package incident

import (
	"fmt"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// saveDeadline is the deadline of a save that is requested now: the start of the window, or, long before the window, the time at
// which the window's own save is requested.
func (m *machine) saveDeadline() time.Time {
	n := m.firstNotice()
	switch last := m.lastDue(n); {
	case n.Status != events.NoticePending || !n.WindowStart.After(m.now):
		return m.now.Add(SaveFor)
	case last.Sub(m.now) >= m.lead():
		return last
	}
	return n.WindowStart
}

// startSave asks the training to save, if that is allowed and a crew is there to answer.
func (m *machine) startSave() {
	if m.unreadable() {
		return
	}
	switch {
	case m.level(policy.RequestCheckpoint) == policy.No:
		if !m.w.Crew.Seen.IsZero() {
			m.rehearse("", (*machine).startSave)
		}
		m.noSave(SaveForbidden, m.no(policy.RequestCheckpoint))
	case m.w.Crew.Seen.IsZero():
		m.noSave(SaveUnheard, "no crew has been seen that could answer; autocheckpoint, where it is enabled, saves by itself")
	case m.level(policy.RequestCheckpoint) == policy.Ask:
		m.ask(events.ActionSave)
	default:
		m.sendSave()
	}
}

func (m *machine) noSave(r SaveResult, why string) {
	in := m.inc()
	in.Save.Result, in.Save.Failed = r, why
	m.enterWindow(r.Code(), why)
}

func (m *machine) sendSave() {
	in := m.inc()
	if m.phase() != Saving {
		m.enter(Saving)
	}
	in.Save = Save{ID: events.ID(in.ID, "save", m.now.UTC().Format(time.RFC3339)), Requested: m.now, Pending: true}
	when := "the maintenance has begun"
	if left := m.firstNotice().WindowStart.Sub(m.now); !in.Begun && left > 0 {
		when = events.Span(left) + " before the window"
		if m.firstNotice().End {
			when = events.Span(left) + " before the planned end"
		}
		if lead, why := m.w.lead(m.p); left <= lead {
			when += "; the lead is " + events.Span(lead) + ", " + why
		}
	}
	m.decided("ask the training to save", fmt.Sprintf("%s, mode %s", when, m.saveMode()))
	m.send(Effect{Action: events.ActionSave, By: in.Deadline, Reason: m.awaits()})
}

// saveAgain requests another save before the window when the first one was long before: the window was moved away, or the
// maintenance could not be started early.
func (m *machine) saveAgain() {
	in := m.w.Incident
	n := m.firstNotice()
	if in.Begun || !m.soon(n) || m.lastDue(n).Sub(in.Save.Requested) < m.lead() {
		return
	}
	m.startSave()
}

// saved reports whether there is a verified save that is as good as a new one.
func (in *Incident) saved(now time.Time) bool {
	return in.Save.Verified && now.Sub(in.Save.Acked) < SavedFor
}

func (m *machine) saveMode() events.SaveMode { return saveMode(m.p) }

func saveMode(p policy.Policy) events.SaveMode {
	if p.Save == "" {
		return events.SaveNatural
	}
	return p.Save
}

// saveAcked takes the crew's word that a save is complete, and requests its verification. A save after the deadline counts too:
// steps that are saved before the maintenance stops the training need not be trained again.
func (m *machine) saveAcked(r events.CrewReport) {
	in := m.w.Incident
	if in == nil || m.phase() != Saving && m.phase() != Window || r.SaveID != in.Save.ID || !in.Save.Acked.IsZero() {
		return
	}
	in = m.inc()
	in.Save.Acked, in.Save.Step = m.now, r.CheckpointStep
	m.line(LineSeen, "crew: saved step "+events.Number(r.CheckpointStep), r.CheckpointURI)
	if m.w.Directory == "" {
		if m.phase() == Saving {
			m.noSave(SaveIncomplete, "there is no checkpoint directory in which the save could be verified")
		}
		return
	}
	m.drop(events.ActionSave, "")
	m.decided("verify the checkpoint", "an acknowledgement proves nothing")
	m.send(Effect{Action: events.ActionVerify, Reason: "acknowledged save", By: in.Save.Requested})
}

func (m *machine) saveRefused(r events.CrewReport) {
	in := m.w.Incident
	if in == nil || m.phase() != Saving || r.SaveID != in.Save.ID {
		return
	}
	m.line(LineSeen, "crew: cannot save", r.Reason)
	m.noSave(SaveRefused, "the crew cannot save: "+r.Reason)
}

// checked takes the result of a look for a complete checkpoint.
func (m *machine) checked(e Checked) {
	switch {
	case m.asked(e.Request) == nil:
		return
	case !e.Found:
		if m.begun(e.Request) != nil {
			m.unverified(e)
		}
		return
	}
	m.saves(e.Step, e.At, e.URI, e.Bytes)
	m.line(LineCame, m.found(e), e.URI)
	m.drop(events.ActionVerify, "")
	switch m.phase() {
	case Saving, Window:
		in := m.inc()
		in.Baseline = max(in.Baseline, e.Step)
		s := &in.Save
		m.saveTook(e.At.Sub(s.Requested))
		s.Verified, s.At, s.Bytes, s.Failed, s.Result = true, e.At, e.Bytes, "", SaveVerified
		if m.phase() == Window {
			s.Result = SaveLate
			return
		}
		m.afterSave()
	case Resuming:
		m.resumed(ByCheckpoint, "checkpoint "+events.Number(e.Step)+" is newer than the trouble")
	case Watching:
		m.savedWhileWatched(e)
	}
}

// saves notes a checkpoint that Pitstop has inspected and found complete.
func (m *machine) saves(step int64, at time.Time, uri string, bytes int64) {
	p := &m.w.Progress
	if step > p.Verified || p.VerifiedAt.IsZero() {
		p.Verified, p.VerifiedAt, p.VerifiedURI, p.VerifiedBytes, m.changed = step, at, uri, bytes, true
	}
	if step > p.CheckpointStep {
		p.CheckpointStep, p.CheckpointAt, m.changed = step, at, true
	}
	m.proven(step, at)
}

// unverified looks again, as long as there is time.
func (m *machine) unverified(e Checked) {
	in := m.inc()
	switch m.phase() {
	case Resuming:
		m.drop(events.ActionVerify, "")
		if !m.w.spoke() || m.unanswering() || m.isOverdue() { // else its crew has spoken since, and has its time
			m.unproven("the slice is usable; there is no crew that tells of steps and no new checkpoint yet")
		}
		return
	case Watching:
		m.foundNoSave(e)
		return
	}
	in.Save.Failed, in.Save.Result = e.Text, resultOf(e)
	effect := m.effect(events.ActionVerify, "")
	effect.Begun, effect.RequestID = time.Time{}, ""
	effect.Failures++
	effect.Retry = m.now.Add(time.Minute)
	if m.phase() == Window {
		effect.Retry = m.now.Add(backoff(effect.Failures)) // no decision waits for it any more
	}
	if effect.Failures == 1 {
		m.line(LineCame, "the checkpoint is not complete yet", e.Text)
		m.coded(in.Save.Result.Code())
	}
	if m.phase() == Window && effect.Failures >= MaxFailures {
		m.line(LineCame, "the checkpoint is not complete, and is not looked for any more", e.Text)
		m.coded(in.Save.Result.Code())
		m.drop(events.ActionVerify, "")
	}
}

// saveOverdue is the result of a save at its deadline, and the reason.
func (m *machine) saveOverdue() (SaveResult, string) {
	s := m.w.Incident.Save
	switch {
	case s.Failed != "":
		return s.Result, "the save could not be verified in time: " + s.Failed
	case !s.Acked.IsZero():
		return SaveIncomplete, "the save was acknowledged and not verified in time"
	case !s.Left.IsZero():
		return SaveUnanswered, "the save was not acknowledged in time"
	}
	if effect := m.w.effect(events.ActionSave, ""); effect != nil && effect.LastFailure != "" {
		return SaveUndelivered, "the request for a save was not delivered in time: " + effect.LastFailure
	}
	return SaveUndelivered, "the request for a save was not delivered in time"
}

// resultOf is the save's result after a look that found nothing.
func resultOf(e Checked) SaveResult {
	if e.Stale {
		return SaveStale
	}
	return SaveIncomplete
}

// found describes the checkpoint: its size and its age.
func (m *machine) found(e Checked) string {
	text := "checkpoint " + events.Number(e.Step) + " is complete"
	if e.Bytes > 0 {
		text += ": " + size(e.Bytes)
		if e.More {
			text += " or more"
		}
	}
	if age := m.now.Sub(e.At); !e.At.IsZero() && age > 0 {
		text += ", " + events.Span(age) + " old"
	}
	return text
}
