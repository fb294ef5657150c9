//go:build !heart

package incident

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Stop holds the known facts about the stop of a slice.
type Stop struct {
	// By is the owner who stopped it; empty where it was started since. At is the time of the newest call of either kind.
	By string    `json:"by,omitzero"`
	At time.Time `json:"at,omitzero"`
	// Unsaid is when patrol asked the audit log, late enough, who stopped or deleted the slice, and the log named nobody.
	Unsaid time.Time `json:"unsaid,omitzero"`
}

// since keeps a stop that is no older than that time: a life may have been stopped already when it is first read.
func (s Stop) since(t time.Time) Stop {
	if s.At.Before(t) {
		return Stop{}
	}
	return Stop{By: s.By, At: s.At}
}

// usable is the beginning of the slice's present usable time, or of the last one; zero where it was never usable in this life.
func (l *Life) usable() time.Time {
	if l.Condition == Ready {
		return l.Since
	}
	return l.Used
}

// turns sets another condition, read at that time.
func (l *Life) turns(c Condition, at time.Time) {
	if l.Condition == Ready {
		l.Used = l.Since
	}
	l.Condition, l.Since, l.Stop.Unsaid = c, at, time.Time{}
	l.endsIf(at)
}

// endsIf derives from the condition, read at that time, whether the life is over.
func (l *Life) endsIf(at time.Time) {
	switch over := l.Condition == Gone || l.Condition == Lost && !l.healsAt(at); {
	case !over:
		l.End.Since = time.Time{}
	case l.End.Since.IsZero():
		l.End.Since = at
	}
}

// unaccounted reports whether a slice is stopped, and nobody has said by whom. Two cases are the owner's doing. A slice that was
// stopped when Pitstop first saw it was stopped before anybody watched it, unless an incident has just created it. And only a user
// suspends a queued resource.
func (l *Life) unaccounted() bool {
	found := l.Used.IsZero() && l.Maker == ""
	return l.Condition == Stopped && l.Incarnation.Known() && l.Group == "" && !found && l.Stop.By == ""
}

// unsaidFor reports whether a slice has been stopped for so long, and the audit log has named nobody.
func (l *Life) unsaidFor(since time.Duration) bool {
	return l.unaccounted() && since >= Grace && !l.Stop.Unsaid.IsZero()
}

// openStopped opens an incident for a slice that somebody other than its owner stopped.
func (m *machine) openStopped(s *Slot) {
	text := m.openSince(s, s.State)
	m.takeOrWatch(text, "nothing", func(m *machine) {
		m.enter(Healing)
		m.decided("incident opened: "+text, "the audit log does not say that its owner stopped it")
		m.startOrTell(text)
	})
}

// onlyStopped reports whether a slice exists, whole, and is stopped. A slice in a queued resource is created and deleted with it.
func (l *Life) onlyStopped() bool { return l.Condition == Stopped && l.Group == "" }

const waitForStopper = "wait for word of who stopped it"

// standsStopped notes that a slice which was to be replaced is only stopped: Pitstop does not delete it. It reports whether that
// changes the incident's course.
func (m *machine) standsStopped(s *Slot) bool {
	in := m.w.Incident
	if !s.onlyStopped() || !s.ToReplace || m.w.effect(events.ActionDelete, s.Name) != nil {
		return false // a slice under deletion may be gone
	}
	switch {
	case s.Maker != "" || m.creationUnderWay(s) && s.Incarnation.Created.After(in.Opened): // the crew of a new one may have spoken already
		m.markArrived(s)
		if m.phase() == PhaseCreating {
			m.goOnOnceThere()
			return true
		}
	case !m.creationUnderWay(s):
		m.slice(s.Name).ToReplace = false
	}
	if m.phase() == Approving && in.Asked == events.ActionDelete && m.toBeReplaced() == nil {
		m.waitForSlices()
		return true
	}
	return false
}

// stillStopped names the slices that are stopped.
func (m *machine) stillStopped() (names []string) {
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.Condition == Stopped && !s.IsReleased() && !s.ToReplace {
			names = append(names, s.Name)
		}
	}
	return names
}

// startOrTell starts the stopped slices, or leaves them to a person: Pitstop never deletes a slice that is only stopped.
func (m *machine) startOrTell(text string) {
	if m.unreadable() {
		return
	}
	why := text + ", and nothing says that its owner stopped it"
	switch names := m.startable(); {
	case names == nil && slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return s.Condition == Stopped && s.Workers > 1 }):
		m.escalate(CodeSeveralWorkers, why+"; a TPU of several workers cannot be started", "look at it, and recreate it by hand")
	case names == nil:
		m.escalate(CodeUnread, text+", and it is not known by whom", m.byHandStart())
	case m.level(policy.StartStopped) == policy.No:
		m.rehearse("", func(m *machine) { m.startOrTell(text) })
		m.escalate(CodePolicyNo, why+", and "+m.no(policy.StartStopped), m.byHandStart()+", or allow the switch")
	default:
		m.start(why)
	}
}

// startStopped starts stopped slices during the wait for the provider's own recovery, as soon as it is known that their owner did not
// stop them.
func (m *machine) startStopped() {
	if m.level(policy.StartStopped) == policy.No || m.unreadable() {
		return
	}
	if names := m.startable(); names != nil {
		m.start(strings.Join(names, ", ") + " stopped, and nothing says that the owner stopped it")
	}
}

func (m *machine) start(why string) {
	if m.level(policy.StartStopped) == policy.Ask && m.w.Incident.Approved != events.ActionStart {
		m.ask(events.ActionStart)
		return
	}
	m.sendStart(why)
}

// startable names the slices that may be started: the API starts only slices of one worker.
func (m *machine) startable() []string {
	var names []string
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if s.unsaidFor(m.now.Sub(s.Since)) && s.Workers <= 1 && !s.IsReleased() && !s.ToReplace {
			names = append(names, s.Name)
		}
	}
	return names
}

func (m *machine) sendStart(why string) {
	names := m.startable()
	if names == nil { // the state changed after the question
		m.waitForSlices()
		return
	}
	if m.w.Incident.Starts >= MaxStarts {
		m.escalate(CodeOverdue, strings.Join(names, ", ")+" stopped again, or was not usable within "+events.Span(StartFor)+", after "+strconv.Itoa(MaxStarts)+" starts", m.byHandStart())
		return
	}
	m.enter(Starting)
	m.inc().Starts++
	m.decided("start "+strings.Join(names, ", "), why)
	var effects []Effect
	for _, name := range names {
		s := m.w.Slice(name)
		effects = append(effects, Effect{Action: events.ActionStart, Slice: name, Zone: s.Zone, Incarnation: s.Incarnation, Reason: why})
	}
	m.send(effects...)
}

// startsOthers reports whether the start of other slices is under way, or requested.
func (m *machine) startsOthers(s *Slot) bool {
	in := m.w.Incident
	return m.phase() == Starting && m.w.effect(events.ActionStart, s.Name) == nil ||
		m.phase() == Approving && in.Asked == events.ActionStart && m.startable() != nil
}

// startedAll reports whether every slice that was to be started can be used.
func (m *machine) startedAll() bool {
	return !slices.ContainsFunc(m.w.Effects, func(effect Effect) bool {
		return effect.Action == events.ActionStart && m.w.Slice(effect.Slice).Condition != Ready
	})
}

func (m *machine) byHandStart() string {
	var parts []string
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.Condition == Stopped && !s.IsReleased() {
			parts = append(parts, m.w.Words().Start+" "+s.Name+inPlace(s.Zone))
		}
	}
	if parts == nil {
		return "look at the TPU yourself"
	}
	advice := "start it by hand: " + strings.Join(parts, "; ")
	if slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return s.Condition == Stopped && !s.IsReleased() && m.w.leaseNamesOtherZone(&s) }) {
		advice += "; then pitstop retry " + m.w.Name + " lets training in where it is now"
	}
	return advice
}
