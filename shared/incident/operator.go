//go:build !heart

package incident

import (
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
)

// order records an order on the workload, and in the story of the open incident.
func (m *machine) order(v Verb, w Word, text string) {
	o := Spoken{Word: w, At: m.now, Verb: v, Text: text}
	if m.w.Incident != nil {
		o.Incident = m.w.Incident.ID
		m.line(LineSeen, w.By+": "+strings.TrimSpace(string(v)+" "+text), w.Why)
	}
	m.w.Orders = append(slices.Clip(m.w.Orders), o)
	m.w.Orders = m.w.Orders[max(0, len(m.w.Orders)-MaxOrders):]
	m.changed = true
}

// approved goes on with the approved action. The answer counts for this incident, not for the next one.
func (m *machine) approved(e Approved) {
	in := m.w.Incident
	if in == nil || m.phase() != Approving || in.Granted || in.ID != e.Incident || in.Asked != e.Action {
		return
	}
	m.inc().Approved, m.inc().Granted = e.Action, true
	m.order(VerbApprove, e.Word, m.asks(e.Action))
	if m.p.Unreadable == "" {
		m.granted(e.By)
	}
}

// granted goes on with the approved action, under a policy that can be read. Where the function that took the approval could not
// read it, the next tick goes on.
func (m *machine) granted(by string) {
	a := m.w.Incident.Asked
	switch a {
	case events.ActionSave:
		m.entered = Window // sendSave enters the phase anew
		m.sendSave()
	case events.ActionMaintain:
		if m.w.Incident.saved(m.now) {
			m.sendMaintain()
			return
		}
		m.entered = Window
		m.sendSave()
	case events.ActionRestart:
		m.sendRestart("approved by " + by)
	case events.ActionStart:
		m.sendStart("approved by " + by)
	case events.ActionDelete:
		m.remove("approved by " + by)
	default: // no other action ever needs approval
	}
}

// approver names the last person who approved something.
func (w Workload) approver() string {
	for _, o := range slices.Backward(w.Orders) {
		if o.Verb == VerbApprove {
			return o.By
		}
	}
	return "a person"
}

// Question is the action for which the open incident needs approval; empty when it waits for nobody.
func (w Workload) Question() string {
	if w.Incident == nil || w.phase() != Approving || w.Incident.Granted {
		return ""
	}
	return (&machine{w: w}).asks(w.Incident.Asked)
}

// cancelled leaves the incident to the person who cancels it. Pitstop still cleans up the slices that it has ordered itself and in
// which training never ran. It lets announced maintenance come: it requests nothing before the maintenance, unless the window
// moves.
func (m *machine) cancelled(e Cancelled) {
	in := m.w.Incident
	if in == nil || in.ID != e.Incident || m.phase() == Clearing {
		return
	}
	m.order(VerbCancel, e.Word, "")
	switch m.phase() {
	case Saving, Maintaining, Window, Approving, Watching:
		for i := range m.w.Slices {
			if m.awaited(&m.w.Slices[i]) {
				n := &m.slice(m.w.Slices[i].Name).Notice
				n.Declined, n.Due = true, time.Time{}
			}
		}
	}
	m.w.Progress.StallReported, m.w.Crew.Left, m.w.Crew.Theirs = m.now, m.now, true
	if m.phase() == Watching {
		m.finish(Observed, "", CodeCancelled, "cancelled by "+e.By, "")
		return
	}
	m.release(CodeCancelled, "cancelled by "+e.By)
}

// retried repeats the requests that were refused or given up.
func (m *machine) retried(e Retried) {
	if m.w.NothingToRetry(m.now) != "" {
		return
	}
	m.order(VerbRetry, e.Word, "")
	m.settleAbuse()
	m.settleLeft()
	m.w.Crew.Theirs, m.w.Crew.Doubted = false, time.Time{}
	m.forgetImplausible()
	if m.w.Incident != nil {
		m.retryNow()
		if m.phase() == Clearing { // the next tick goes on with the clean-up, which gets its full time again
			m.renew()
		}
		return
	}
	m.w.Budgets, m.w.Crew.Spent, m.w.Crew.Restarted = Budgets{}, Error{}, nil
	if c := m.w.Closed; c != nil && c.Charged > 0 {
		paid := *c
		paid.Charged = 0 // there is nothing left to be refunded
		m.w.Closed = &paid
	}
	text := e.By + " says that it may be tried again"
	if s := m.unusable(); s != nil {
		text += ": " + m.w.noun(s.Name) + " is " + s.State
		for i := range m.w.Slices {
			if m.w.Slices[i].End.Reported {
				m.slice(m.w.Slices[i].Name).End.Reported = false
			}
		}
		m.openRetry(Trouble{Cause: events.CauseUnknown, Slice: s.Name, Life: s.Incarnation.ID, Text: text}, "nothing", func(m *machine) {
			m.enter(Looking)
			m.line(LineSeen, text, e.Why)
			m.decided("incident opened: look at the API first", "what was read before proves no loss now")
		})
		return
	}
	if s := m.w.unadmitted(); s != nil {
		m.openRetry(Trouble{Cause: events.CauseUnknown, Slice: s.Name, Life: s.Incarnation.ID, Text: text}, "admit training to "+s.Name, func(m *machine) {
			m.line(LineSeen, text, e.Why)
			m.admitOnceReady()
		})
		return
	}
	m.openRetry(Trouble{Cause: events.CauseCrash, Text: text}, "ask the crew for another attempt", func(m *machine) {
		m.enterUntil(Resuming, m.now) // the clock asks for it, under a policy that can be read
		m.line(LineSeen, text, e.Why)
		m.decided("incident opened: ask the crew for another attempt", "the slices are usable, and the training does not go on")
	})
}

// OverrulesLease reports whether a person has ordered a retry since the lease was found implausible: then Pitstop may replace the
// lease.
func (w Workload) OverrulesLease() bool {
	return !w.LeaseDoubted.IsZero() && slices.ContainsFunc(w.Orders, func(o Spoken) bool {
		return o.Verb == VerbRetry && o.At.After(w.LeaseDoubted)
	})
}

// settleLeft records a person's word that the slices left to them may be admitted again.
func (m *machine) settleLeft() {
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.Admission == LeftToPerson {
			m.slice(s.Name).Admission = ""
		}
	}
}

// openRetry opens an incident at a person's order, and takes the step that they ask for. The incident counts from that order: the
// one before it has counted until its end.
func (m *machine) openRetry(t Trouble, instead string, step func(*machine)) {
	t.At = m.now
	in := m.open(t)
	in.Retried, in.Down = true, m.now
	m.takeOrWatch(t.Text, instead, step)
}

// retryNow sends again at once every request that waits for its next try, and forgets every zone's refusal.
func (m *machine) retryNow() {
	in := m.inc()
	in.Zones = nil
	for i := range m.effects() {
		if effect := &m.w.Effects[i]; effect.Stage() == StageRefused {
			effect.Failures, effect.Retry = 0, m.now
		}
	}
	if m.p.Unreadable == "" { // else the clock sends it again
		m.askAgain()
	}
}

// NothingToRetry says why there is nothing to try again; empty where there is.
func (w Workload) NothingToRetry(now time.Time) string {
	if w.Incident != nil {
		return w.nothingToRepeat()
	}
	m := machine{w: w}
	anyOf := func(is func(Slot) bool) bool { return slices.ContainsFunc(w.Slices, is) }
	switch {
	case w.Crew.Finished && w.unadmitted() == nil:
		return "the training is finished"
	case anyOf(func(s Slot) bool { return s.Abuse.Suspected && s.Condition == Ready && !s.IsReleased() }):
		return "Google suspects abuse on a slice of it (symptom PROJECT_ABUSE): answer its notification"
	case anyOf(func(s Slot) bool { return s.stoppedByOwner() && !s.IsReleased() }):
		return "its owner stopped it: start it, and Pitstop watches it again"
	case m.unusable() != nil:
		return ""
	case !anyOf(func(s Slot) bool { return !s.IsReleased() }):
		return "its owner deleted every slice or took it over: create them, and Pitstop watches them again"
	case !m.allReady():
		return "it waits for what its owner ordered"
	case w.unadmitted() != nil:
		return ""
	}
	return w.trainsOn(now)
}

// nothingToRepeat says why no request of the open incident can be tried again; empty where one can.
func (w Workload) nothingToRepeat() string {
	switch in := w.Incident; {
	case w.phase() == Clearing && slices.ContainsFunc(w.Slices, Slot.abuseUnsettled):
		return ""
	case w.phase() == Approving:
		return in.ID + " waits for a person: approve it, or cancel it"
	case !w.has(func(effect Effect) bool { return effect.Stage() == StageRefused }):
		return in.ID + " is under way (" + string(w.phase()) + "), and nothing of it waits for another try"
	}
	return ""
}

// trainsOn says why the crew of usable slices is not asked for another attempt; empty where it can be.
func (w Workload) trainsOn(now time.Time) string {
	gaveUp := w.Crew.GaveUp > 0 && w.Crew.GaveUp >= max(w.Crew.Attempt, w.Crew.Exited)
	switch silent := now.Sub(w.Progress.At); {
	case w.Crew.Seen.IsZero():
		return "every slice is usable, and no crew has been heard that could be asked for another attempt"
	case !gaveUp && silent < ResumeFor:
		return "training goes on: step " + events.Number(w.Progress.Step) + " was told " + events.Span(silent) + " ago"
	}
	return ""
}

// unadmitted is the first slice that no lease is known to name, and whose crew may not take the lease over. It is nil while another
// slice cannot be used, for training needs every slice.
func (w Workload) unadmitted() (first *Slot) {
	for i := range w.Slices {
		switch s := &w.Slices[i]; {
		case s.IsReleased():
		case s.Condition != Ready:
			return nil
		case first == nil && w.leaseNamesOtherZone(s):
			first = s
		}
	}
	return first
}

// unusable is the first slice that cannot be used, and is not its owner's business.
func (m *machine) unusable() *Slot {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if !s.IsReleased() && !s.NeverUsable && s.Incarnation.Known() && s.Condition != Ready && s.Condition != Creating {
			return s
		}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// paused holds the workload, or lifts the pause.
func (m *machine) paused(e Paused) {
	switch {
	case !e.Lift:
		m.w.Pause = &Pause{By: e.By, Why: e.Why, At: m.now, Until: e.Until}
		text := ""
		if !e.Until.IsZero() {
			text = "until " + e.Until.UTC().Format(time.RFC3339)
		}
		m.order(VerbPause, e.Word, text)
	case m.w.Pause != nil:
		m.w.Pause = nil
		m.order(VerbResume, e.Word, "")
	}
}
