//go:build !heart

package incident

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
)

// Advance is the whole decision. From the present knowledge, one piece of evidence and the time, it makes the next state of the
// workload and the events to send. It does no I/O and changes none of its arguments. Changed is false where the evidence taught
// nothing new; then the document need not be written, and there is nothing to send.
func Advance(p policy.Policy, w Workload, e Evidence, now time.Time) (next Workload, send []events.Event, changed bool) {
	m := machines.Get().(*machine) //nolint:forcetypeassert // it holds nothing else
	*m = machine{p: p, w: w, now: now}
	m.learn(e)
	next, send, changed = m.w, m.out, m.changed
	*m = machine{}
	machines.Put(m)
	return next, send, changed
}

// machines are used again. A rehearsal passes a machine to the step that it takes, so the compiler cannot keep one on the stack, and most
// evidence teaches nothing: making a new machine would take longer than the decision.
var machines = sync.Pool{New: func() any { return new(machine) }}

// learn takes one piece of evidence, and decides what follows.
func (m *machine) learn(e Evidence) {
	m.from, m.reading, m.opens, m.entered = evidence.OriginOf(e), "", false, m.w.phase()
	if m.from.Time.After(m.now) {
		m.from.Time = m.now // a clock ahead of Pitstop's orders nothing
	}
	m.forget()
	m.settle() // a document of the release before has the name of the wait alone
	switch e := e.(type) {
	case Mapped:
		m.mapped(e)
	case Interrupted:
		m.interrupted(e)
	case Back:
		m.back(e)
	case Noticed:
		m.noticed(e)
	case Beat:
		m.noteDeafness(e)
		m.noteStep(e)
		m.takeVerdict(e)
	case Called:
		m.called(e)
	case Unsaid:
		m.unsaid(e)
	case Reported:
		m.reported(e)
	case Read:
		m.read(e)
		m.complete()
	case Ticked:
		m.unread = e.Unread
		m.ticked()
	default:
		m.learnOfCall(e)
		m.learnWord(e)
	}
	m.label()
	m.leaveStopped()
	m.stopAbused()
	m.settle()
	m.scheduleSaves()
}

// learnOfCall takes what came of one of Pitstop's own calls.
func (m *machine) learnOfCall(e Evidence) {
	switch e := e.(type) {
	case Intended:
		m.intended(e)
	case Answered:
		m.answered(e)
	case Ended:
		m.operationEnded(e)
	case Checked:
		m.checked(e)
	case VerdictRead:
		m.verdictRead(e)
	case Held:
		m.held(e)
	case Forbidden:
		m.forbidden(e)
	case Fitted:
		m.fitted(e)
	}
}

// learnWord takes a person's command.
func (m *machine) learnWord(e Evidence) {
	switch e := e.(type) {
	case Approved:
		m.approved(e)
	case Cancelled:
		m.cancelled(e)
	case Retried:
		m.retried(e)
	case Paused:
		m.paused(e)
	case Ordered:
		m.order(e.Verb, e.Word, e.Text)
	}
}

// label sets the workload's policy label from its slices, once a reading has been taken in whole.
func (m *machine) label() {
	if m.reading == "" {
		return
	}
	if label := m.w.labelled(); m.w.Label != label {
		m.w.Label, m.changed = label, true
	}
}

// New is the document of a workload that was never seen before.
func New(project, name, provider string) Workload {
	return Workload{Schema: Schema, ID: project + "/" + name, Project: project, Name: name, Provider: provider}
}

// machine is one call of Advance. It copies before it changes: w shares its slices with the caller's workload until slice, effects
// or inc is called.
type machine struct {
	p       policy.Policy
	w       Workload
	now     time.Time
	from    Origin
	out     []events.Event
	changed bool
	// reading is the slice that the evidence is a reading of.
	reading string
	// unread says that the slices could not be read when the clock ticked.
	unread bool

	// opens says that the incident opens in this step, and that nothing is decided yet. Entered is the phase that the step has entered.
	opens   bool
	entered Phase

	ownSlices, ownEffects, ownIncident, ownCalls bool
}

// slice returns a slice to change, or nil.
func (m *machine) slice(name string) *Slot {
	if m.w.Slice(name) == nil {
		return nil
	}
	if !m.ownSlices {
		m.w.Slices = slices.Clone(m.w.Slices)
		m.ownSlices = true
	}
	m.changed = true
	return m.w.Slice(name)
}

// effects returns the effects to change.
func (m *machine) effects() []Effect {
	if !m.ownEffects {
		m.w.Effects = slices.Clone(m.w.Effects)
		m.ownEffects = true
	}
	m.changed = true
	return m.w.Effects
}

// inc returns the open incident to change.
func (m *machine) inc() *Incident {
	if !m.ownIncident {
		in := *m.w.Incident
		in.Troubles = slices.Clip(in.Troubles)
		in.Zones = slices.Clone(in.Zones)
		in.Calls = slices.Clip(in.Calls)
		in.Would = slices.Clip(in.Would)
		in.PlannedCalls = slices.Clip(in.PlannedCalls)
		in.Timeline = slices.Clip(in.Timeline)
		m.w.Incident = &in
		m.ownIncident = true
	}
	m.changed = true
	return m.w.Incident
}

// phase is what the open incident waits for at this point of the step; empty where none is open, or nothing is decided yet.
func (m *machine) phase() Phase {
	switch {
	case m.w.Incident == nil || m.opens:
		return ""
	case m.entered == "":
		return m.w.phase()
	}
	return m.entered
}

// forget drops the closed incident when no late evidence can reach it any more. That alone is no change worth writing.
func (m *machine) forget() {
	if c := m.w.Closed; c != nil && m.now.Sub(c.Closed) > Linger {
		m.w.Closed = nil
	}
	for len(m.w.Unbound) > 0 && m.now.Sub(m.w.Unbound[0].Time) > Linger {
		m.w.Unbound = m.w.Unbound[1:]
	}
}

// line adds to the story of the open incident. A story that grows too long loses its middle, a few lines at once: a reader needs
// the beginning and the present state.
func (m *machine) line(kind LineKind, text, reason string) {
	in := m.inc()
	l := Line{At: m.now, Kind: kind, Text: clip(text), Reason: clip(reason), Source: m.from.ID, Phase: m.phase()}
	for n := len(in.Timeline); n >= MaxLines || n > 2*spare && in.told()+sizeOf(l) > maxStory; n = len(in.Timeline) {
		in.Timeline = slices.Concat(in.Timeline[:n/2], in.Timeline[n/2+spare:])
		in.LeftOut += spare
	}
	in.Timeline = append(in.Timeline, l)
}

const (
	// spare is how many lines make room at once in a timeline that is full.
	spare = 8
	// maxStory bounds the words of a timeline, in bytes, and longestText the words of one text in it: the document needs room for
	// its facts.
	maxStory    = 64 << 10
	longestText = 1 << 10
)

// told is how many bytes the words of the timeline have.
func (in *Incident) told() (n int) {
	for _, l := range in.Timeline {
		n += sizeOf(l)
	}
	return n
}

func sizeOf(l Line) int { return len(l.Text) + len(l.Reason) }

func (m *machine) decided(text, reason string) { m.line(LineDecided, text, reason) }

// seenOnce adds an observation to the story, unless this very line of a log has added it before.
func (m *machine) seenOnce(text string) {
	told := slices.ContainsFunc(m.w.Incident.Timeline, func(l Line) bool {
		return l.Source != "" && l.Source == m.from.ID && l.Text == clip(text)
	})
	if !told {
		m.line(LineSeen, text, "")
	}
}

// coded gives the line that was just added its reason in one word.
func (m *machine) coded(c Code) {
	in := m.inc()
	in.Timeline[len(in.Timeline)-1].Code = c
}

// enter begins a phase, which lasts for its own time.
func (m *machine) enter(p Phase) { m.enterUntil(p, m.lasts(p)) }

// enterUntil sets the facts from which a phase follows that ends no later than the deadline. A zero deadline is for the two waits that
// have none. Unanswered requests of the phase before are void: the fence finds no effect for them. In the window, Pitstop may still
// look for the checkpoint of a save.
func (m *machine) enterUntil(p Phase, deadline time.Time) {
	in := m.inc()
	if p != Saving && !in.Save.Requested.IsZero() && in.Save.Result == "" {
		in.Save.Result = SaveOvertaken
	}
	m.opens, m.entered = false, p
	in.Phase, in.Since, in.Deadline = p, m.now, deadline
	in.OnlyWatched, in.Save.Pending = p == Watching, p == Saving
	switch p {
	case Saving, Maintaining, Window:
		in.Announced = true
	case Approving: // the question says what it is about
	default:
		in.Announced = false
	}
	if in.Unexplained = (time.Time{}); p == Looking {
		in.Unexplained = m.now
	}
	in.Asked, in.Held, in.HeldCode, in.Granted = "", "", "", false
	in.Hearing, in.HeldUntil = false, time.Time{}
	in.StoodAt = time.Time{} // nothing that is done from here on rests on that look
	in.Look = p == Looking
	m.dropEffects(func(effect Effect) bool {
		return !effect.inFlight() && (p != Window || effect.Action != events.ActionVerify)
	})
}

// settle enters the wait that follows from the facts, if it is not the one that was entered last. A slice that cannot be used comes before
// the training on the others.
func (m *machine) settle() {
	if m.w.Incident == nil || m.opens {
		return
	}
	switch p := m.w.phase(); p {
	case m.w.Incident.Phase:
	case PhaseGrace, Healing:
		m.waitForSlices()
	case Resuming:
		m.resume("every slice is usable")
	default: // a call that is under way says what is waited for
		in := m.inc()
		in.Phase, in.Since, in.Deadline, m.entered = p, m.now, m.lasts(p), p
	}
}

// lasts is the latest end of a phase that begins now; zero for the question to a person, which has none. Word of an owner has its own
// time, with which that phase is entered.
func (m *machine) lasts(p Phase) time.Time {
	switch p {
	case Approving:
		return time.Time{}
	case Saving:
		return m.saveDeadline()
	case Window:
		return m.windowDeadline()
	case Healing:
		return m.firstHealedBy()
	}
	return m.now.Add(lasts[p])
}

// renew gives the present phase its full time again.
func (m *machine) renew() { m.inc().Deadline = m.lasts(m.phase()) }

// inFlight reports whether a call that creates or deletes a slice may still take effect.
func (effect Effect) inFlight() bool {
	return effect.exclusive() && !effect.Begun.IsZero() && effect.Retry.IsZero()
}

// open opens an incident. The caller sets the phase.
func (m *machine) open(t Trouble) *Incident {
	m.raise()
	pr := m.w.Progress
	in := &Incident{
		ID:    incidentID(m.w.Name, m.now, m.w.Epoch),
		Cause: t.Cause, Opened: m.now, Since: m.now,
		Switches: m.p.Switches, Limits: m.p.Limits, Policy: m.p.Name, ChipHourPrice: m.p.ChipHourPrice,
		Baseline: max(pr.Verified, pr.CheckpointStep), BaseAttempt: max(m.w.Crew.Attempt, pr.Attempt),
		Troubles: []Trouble{t},
	}
	if m.p.Unreadable != "" {
		in.Switches = policy.Everything() // the first policy that can be read counts
	}
	m.w.Incident, m.ownIncident, m.changed, m.opens, m.entered = in, true, true, true, ""
	m.w.PolicyHash = m.p.Hash
	if m.p.Unknown {
		in.Would = append(in.Would, "the label pitstop-policy names no policy ("+m.p.Name+")")
	}
	return in
}

// incidentID is unique for a workload, because its epoch never falls, and fits into the value of a label.
func incidentID(name string, now time.Time, epoch int64) string {
	return incidentsOf(name) + now.UTC().Format("20060102-") + strconv.FormatInt(epoch, 10)
}

// incidentsOf is the prefix of the IDs of a workload's incidents.
func incidentsOf(name string) string {
	const longest = 40
	name = strings.ReplaceAll(strings.ToLower(name), ".", "-")
	return name[:min(len(name), longest)] + "-"
}

// MayHave reports whether an incident with this ID may belong to the workload.
func (w Workload) MayHave(id string) bool { return strings.HasPrefix(id, incidentsOf(w.Name)) }

// level is the lower of two levels of a switch: the level when the incident opened, and the present one.
func (m *machine) level(s policy.Switch) policy.Level {
	if m.w.Incident == nil {
		return m.p.Switches.Level(s)
	}
	return min(m.w.Incident.Switches.Level(s), m.p.Switches.Level(s))
}

// watchOnly reports whether nothing at all is allowed.
func (m *machine) watchOnly() bool {
	s := m.p.Switches
	if m.w.Incident != nil {
		s = s.Lower(m.w.Incident.Switches)
	}
	return s.WatchOnly()
}

// watched reports whether the policy is known to allow nothing.
func (m *machine) watched() bool { return m.p.Unreadable == "" && m.watchOnly() }

// unreadable reports whether the policy could not be read, and records that once: Pitstop decides nothing until it can be read.
func (m *machine) unreadable() bool {
	if m.p.Unreadable == "" {
		return false
	}
	m.hold(CodePolicyUnreadable, policyHeld+m.p.Unreadable, m.now.Add(time.Minute)) // the next tick tries again
	return true
}

const policyHeld = "the policy cannot be read: "

// hold records once why Pitstop does nothing, and until when: then it looks again. Waiting is no failure, so the deadline moves by
// the time of the hold. No time counts twice. A hold that is met again within RequestFor has lasted since it was last met. A phase
// that was already overdue is overdue again when the hold ends. After HeldForMost the deadline stays where it is.
func (m *machine) hold(c Code, why string, until time.Time) {
	in := m.w.Incident
	if in == nil {
		return
	}
	from := m.now
	if u := in.HeldUntil; u.After(from) || !u.IsZero() && from.Sub(u) <= RequestFor {
		from = u
	}
	if in.Held != why {
		in = m.inc()
		in.Held, in.HeldCode = why, c
		m.decided("hold", why)
		m.coded(c)
	}
	more := min(until.Sub(from), HeldForMost-in.held())
	if in.Deadline.IsZero() || more <= 0 {
		return
	}
	in = m.inc()
	in.Deadline, in.HeldUntil = later(in.Deadline, m.now).Add(more), from.Add(more)
	in.HeldSeconds += int64(more / time.Second)
}

// held is the total time for which the phases of the incident were held.
func (in *Incident) held() time.Duration { return time.Duration(in.HeldSeconds) * time.Second }

// heldOut reports whether the incident is still held, and its deadline no longer moves.
func (in *Incident) heldOut() bool { return in.Held != "" && in.held() >= HeldForMost }

// trouble adds a trouble, once per cause and life for as long as the slice is not usable in between, and attributes the incident to
// the best cause known. It reports whether the trouble is news, or proves one that was only reported.
func (m *machine) trouble(t Trouble, life events.Incarnation) bool {
	in := m.w.Incident
	var usable time.Time
	if s := m.w.Slice(t.Slice); s != nil {
		usable = s.usable()
	}
	for i, known := range in.Troubles {
		again := known.At.Before(usable) && !t.At.Before(usable)
		if known.Cause == t.Cause && known.Slice == t.Slice && known.Life == life.ID && !again {
			proves := t.Proven && !known.Proven
			if !proves && (t.Claimed || !known.Claimed) {
				return false
			}
			in = m.inc()
			in.Troubles = slices.Clone(in.Troubles)
			in.Troubles[i].Claimed = false
			m.attribute(in, t.Cause, t.At)
			if !proves {
				return false
			}
			in.Troubles[i].Proven = true
			if known.Announced { // a planned end: now it has come
				in.Troubles[i].Announced, in.Troubles[i].At, in.Troubles[i].Text = false, t.At, t.Text
			}
			return true
		}
	}
	if len(in.Troubles) >= maxTroubles {
		return false
	}
	t.Life = life.ID
	in = m.inc()
	in.Troubles = append(in.Troubles, t)
	m.attribute(in, t.Cause, t.At)
	return true
}

const maxTroubles = 32

// specific orders causes by how much they explain: a later, better cause replaces a poorer one.
func specific(c events.Cause) int {
	switch c {
	case events.CauseCrash:
		return 0
	case events.CauseUnknown, events.CauseHang:
		return 1
	case events.CauseGuest:
		return 2
	case events.CauseTerminated:
		return 3
	case events.CausePreemption, events.CauseHostError, events.CauseMaintenance:
		return 4
	case events.CauseEnd:
		return 5
	}
	return 1
}

// attribute takes the better cause. It refunds the training's charges when an event of the machines came before the incident's
// trouble. A later event explains none of that trouble.
func (m *machine) attribute(in *Incident, c events.Cause, at time.Time) {
	if specific(c) <= specific(in.Cause) || m.onlyClaimsRefund(in) {
		return
	}
	was := in.Cause
	in.Cause = c
	if !was.Infrastructure() && in.Charged > 0 && len(in.Troubles) > 0 && at.Before(in.Troubles[0].At.Add(SickFor)) {
		m.w.Budgets.Restarts = max(0, m.w.Budgets.Restarts-in.Charged)
		in.Charged = 0
		m.w.Crew.Spent = Error{} // the machine's error, not the training's
	}
	m.changed = true
}

// onlyClaimsRefund reports whether the evidence is a line that users can write, and would give charges back. What proves it does.
func (m *machine) onlyClaimsRefund(in *Incident) bool {
	return m.from.Rank == events.RankUser && !in.Cause.Infrastructure() && in.Charged > 0
}

// reattribute corrects the incident that closed last when evidence about it arrives late. It rewrites the archive record under the
// same ID; a late message opens nothing.
func (m *machine) reattribute(c events.Cause, text string) {
	if m.w.Closed == nil || specific(c) <= specific(m.w.Closed.Cause) || m.onlyClaimsRefund(m.w.Closed) {
		return
	}
	first, before := m.w.Closed.Troubles[0], Linger
	if first.Cause == events.CauseHang {
		before = 0 // it did a step after that
	}
	if m.when().Before(first.At.Add(-before)) {
		return // it explains an earlier trouble: an entry may be delivered again hours later
	}
	in := *m.w.Closed
	in.Timeline = slices.Clip(in.Timeline)
	was := in.Cause
	m.attribute(&in, c, m.when())
	in.Revision++
	in.Timeline = append(in.Timeline, Line{
		At: m.now, Kind: LineSeen, Text: text, Source: m.from.ID, Phase: Closed,
		Reason: "late evidence: attributed to " + string(c) + " instead of " + string(was),
	})
	m.w.Closed = &in
	m.out = append(m.out, events.IncidentClosed{
		Schema: events.Schema, Workload: m.w.ID, Incident: in.ID, Outcome: string(in.Outcome), Revision: in.Revision,
	})
}

// when is the evidence's own time, else now.
func (m *machine) when() time.Time {
	if m.from.Time.IsZero() {
		return m.now
	}
	return m.from.Time
}
