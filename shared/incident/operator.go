package incident

import (
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
)

// Word is what a person says through the operator's command: who, and why.
type Word struct {
	By  string `json:"by"`
	Why string `json:"why,omitzero"`
}

// Spoken is a word that was given, as the workload keeps it.
type Spoken struct {
	Word
	At   time.Time `json:"at"`
	Verb Verb      `json:"verb"`
	// Incident is the one that was open then; Text is what was ordered, where the verb alone does not tell.
	Incident string `json:"incident,omitzero"`
	Text     string `json:"text,omitzero"`
}

// MaxOrders is how many orders a workload keeps; those of an incident stand in its timeline too.
const MaxOrders = 20

// Verb is what a person orders.
type Verb string

// The verbs.
const (
	VerbApprove Verb = "approve"
	VerbCancel  Verb = "cancel"
	VerbRetry   Verb = "retry"
	VerbPause   Verb = "pause"
	VerbResume  Verb = "resume"
	VerbAttach  Verb = "attach"
	VerbDetach  Verb = "detach"
	VerbDrill   Verb = "drill"
)

// Approved is a person's yes to what waits for approval: to this action of this incident, and to nothing that is asked since.
type Approved struct {
	Origin
	Word
	Incident string
	Action   events.Action
}

// Cancelled is a person's word that an incident is theirs from now on.
type Cancelled struct {
	Origin
	Word
	Incident string
}

// Retried is a person's word that what stood in the way is mended. It makes no decision of its own: what was refused is
// asked for again, and what was given up is looked at anew.
type Retried struct {
	Origin
	Word
}

// Paused holds every mutating call of the workload, until a time if there is one, or lifts that.
type Paused struct {
	Origin
	Word
	Until time.Time
	Lift  bool
}

// Ordered records what a person did to the workload by another way than its document.
type Ordered struct {
	Origin
	Word
	Verb Verb
	Text string
}

func (Approved) kind() string  { return "Approved" }
func (Cancelled) kind() string { return "Cancelled" }
func (Retried) kind() string   { return "Retried" }
func (Paused) kind() string    { return "Paused" }
func (Ordered) kind() string   { return "Ordered" }

// order records a word on the workload, and in the story of the open incident. Whatever it is, it keeps what stands idle.
func (m *machine) order(v Verb, w Word, text string) {
	o := Spoken{Word: w, At: m.now, Verb: v, Text: text}
	if m.w.Incident != nil {
		o.Incident = m.w.Incident.ID
		m.line(LineSeen, w.By+": "+strings.TrimSpace(string(v)+" "+text), w.Why)
	}
	m.cancelIdleDeletion()
	m.w.Orders = append(slices.Clip(m.w.Orders), o)
	m.w.Orders = m.w.Orders[max(0, len(m.w.Orders)-MaxOrders):]
	m.changed = true
	if v != VerbCancel { // which ends it by itself
		c := CodeCancelled
		if v == VerbPause {
			c = CodePaused
		}
		m.abortIdleDeletion(Kept{c, w.By + " says " + string(v)})
	}
}

// approved goes on with what was asked. The answer counts for the incident, not for the next one.
func (m *machine) approved(e Approved) {
	in := m.w.Incident
	if in == nil || in.Phase != Approving || in.Granted || in.ID != e.Incident || in.Asked != e.Action {
		return
	}
	m.inc().Approved, m.inc().Granted = e.Action, true
	m.order(VerbApprove, e.Word, m.asks(e.Action))
	if m.p.Unreadable == "" {
		m.granted(e.By)
	}
}

// granted goes on with what a person has said yes to, under a policy that can be read: the clock does where whoever took the
// yes in could not.
func (m *machine) granted(by string) {
	a := m.w.Incident.Asked
	switch a {
	case events.ActionSave:
		m.inc().Phase = Window // sendSave enters the phase anew
		m.sendSave()
	case events.ActionMaintain:
		if m.w.Incident.saved(m.now) {
			m.sendMaintain()
			return
		}
		m.inc().Phase = Window
		m.sendSave()
	case events.ActionRestart:
		m.sendRestart("approved by " + by)
	case events.ActionStart:
		m.sendStart("approved by " + by)
	case events.ActionDelete:
		m.remove("approved by " + by)
	default: // nothing else is ever asked for
	}
}

// approver is who said yes last.
func (w Workload) approver() string {
	for _, o := range slices.Backward(w.Orders) {
		if o.Verb == VerbApprove {
			return o.By
		}
	}
	return "a person"
}

// Question is what the open incident waits to be told yes to; empty when it waits for nobody.
func (w Workload) Question() string {
	if w.Incident == nil || w.Incident.Phase != Approving || w.Incident.Granted {
		return ""
	}
	return (&machine{w: w}).asks(w.Incident.Asked)
}

// cancelled leaves the incident to the person who says so. What it has ordered itself, and training never ran in, is still
// cleaned up. Maintenance that it was about is let come: nothing is asked for before it, unless its window moves.
func (m *machine) cancelled(e Cancelled) {
	in, idle := m.w.Incident, m.w.LeftIdle(e.Incident)
	if in == nil && idle {
		m.order(VerbCancel, e.Word, "the deletion of what "+e.Incident+" left idle")
		return
	}
	if in == nil || in.ID != e.Incident && !idle || in.Phase == Clearing {
		return
	}
	m.order(VerbCancel, e.Word, "")
	switch in.Phase {
	case Saving, Maintaining, Window, Approving, Watching:
		for i := range m.w.Slices {
			if m.awaited(&m.w.Slices[i]) {
				n := &m.slice(m.w.Slices[i].Name).Notice
				n.Declined, n.Due = true, time.Time{}
			}
		}
	}
	m.w.Progress.StallReported, m.w.Crew.Left, m.w.Crew.Theirs = m.now, m.now, true
	if in.Phase == Watching {
		m.finish(Observed, "", CodeCancelled, "cancelled by "+e.By, "")
		return
	}
	m.release(CodeCancelled, "cancelled by "+e.By)
}

// retried asks again for what was refused or given up.
func (m *machine) retried(e Retried) {
	if m.w.NothingToRetry(m.now) != "" {
		return
	}
	m.order(VerbRetry, e.Word, "")
	m.settleAbuse()
	m.settleLeft()
	m.w.Crew.Theirs = false
	if m.w.Incident != nil {
		m.retryNow()
		if m.phase() == Clearing { // with which the clock goes on, and has its time anew
			m.inc().Deadline = m.now.Add(ClearFor)
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
			m.enter(Looking, m.now.Add(LookFor))
			m.line(LineSeen, text, e.Why)
			m.decided("incident opened: look at the API first", "what was read before proves no loss now")
		})
		return
	}
	if s := m.w.unadmitted(); s != nil {
		m.openRetry(Trouble{Cause: events.CauseUnknown, Slice: s.Name, Life: s.Incarnation.ID, Text: text}, "admit training to "+s.Name, func(m *machine) {
			m.line(LineSeen, text, e.Why)
			m.requestLease()
		})
		return
	}
	m.openRetry(Trouble{Cause: events.CauseCrash, Text: text}, "ask the crew for another attempt", func(m *machine) {
		m.enter(Resuming, m.now) // the clock asks for it, under a policy that can be read
		m.line(LineSeen, text, e.Why)
		m.decided("incident opened: ask the crew for another attempt", "the slices are usable, and the training does not go on")
	})
}

// OverrulesLease reports whether a person has said retry since the lease was found to be beyond belief: it may be replaced.
func (w Workload) OverrulesLease() bool {
	return !w.LeaseDoubted.IsZero() && slices.ContainsFunc(w.Orders, func(o Spoken) bool {
		return o.Verb == VerbRetry && o.At.After(w.LeaseDoubted)
	})
}

// settleLeft takes a person's word for it that what was left to them may be admitted again.
func (m *machine) settleLeft() {
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.Admission == LeftToPerson {
			m.slice(s.Name).Admission = ""
		}
	}
}

// openRetry opens an incident at a person's word, and takes the step that they ask for. It counts from that word: the one before it has
// counted until its end.
func (m *machine) openRetry(t Trouble, instead string, step func(*machine)) {
	t.At = m.now
	in := m.open(t)
	in.Retried, in.Down = true, m.now
	m.takeOrWatch(t.Text, instead, step)
}

// retryNow sends again at once what waits for its next try, and asks every zone anew.
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

// NothingToRetry says why there is nothing that could be tried again; empty where there is.
func (w Workload) NothingToRetry(now time.Time) string {
	if in := w.Incident; in != nil && !w.discarding() {
		switch {
		case in.Phase == Clearing && slices.ContainsFunc(w.Slices, Slot.abuseUnsettled):
			return ""
		case in.Phase == Approving:
			return in.ID + " waits for a person: approve it, or cancel it"
		case in.Phase == Discarding:
			return in.ID + " deletes what stands idle: try again once it is over"
		case !w.has(func(effect Effect) bool { return effect.Stage() == StageRefused }):
			return in.ID + " is under way (" + string(in.Phase) + "), and nothing of it waits for another try"
		}
		return ""
	}
	m := machine{w: w}
	idle := w.Crew.GaveUp > 0 && w.Crew.GaveUp >= max(w.Crew.Attempt, w.Crew.Exited) || now.Sub(w.Progress.At) >= ResumeFor
	switch {
	case w.Crew.Finished && w.unadmitted() == nil:
		return "the training is finished"
	case slices.ContainsFunc(w.Slices, func(s Slot) bool { return s.Abuse.Suspected && s.Condition == Ready && !s.IsReleased() }):
		return "Google suspects abuse on a slice of it (symptom PROJECT_ABUSE): answer its notification"
	case slices.ContainsFunc(w.Slices, func(s Slot) bool { return s.stoppedByOwner() && !s.IsReleased() }):
		return "its owner stopped it: start it, and Pitstop watches it again"
	case m.unusable() != nil:
		return ""
	case !slices.ContainsFunc(w.Slices, func(s Slot) bool { return !s.IsReleased() }):
		return "its owner deleted every slice or took it over: create them, and Pitstop watches them again"
	case !m.allReady():
		return "it waits for what its owner ordered"
	case w.unadmitted() != nil:
		return ""
	case w.Crew.Seen.IsZero():
		return "every slice is usable, and no crew has been heard that could be asked for another attempt"
	case !idle:
		return "training goes on: step " + events.Number(w.Progress.Step) + " was told " + events.Span(now.Sub(w.Progress.At)) + " ago"
	}
	return ""
}

// unadmitted is the first slice that no lease is known to name, and whose crew may not put itself into the place of another; none
// while another slice cannot be used, without which there is no training.
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

// paused holds the workload, or lifts that.
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
