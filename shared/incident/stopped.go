package incident

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Stop is what is known of who stopped a slice.
type Stop struct {
	// By is its owner, who stopped it; empty where it was started since. At is the time of the newest call, of either kind.
	By string    `json:"by,omitzero"`
	At time.Time `json:"at,omitzero"`
	// Unsaid is when patrol asked the audit log who stopped or deleted it, late enough, and the log named nobody.
	Unsaid time.Time `json:"unsaid,omitzero"`
}

// since is what was called for since that time: a life that is read for the first time may have been stopped already.
func (s Stop) since(t time.Time) Stop {
	if s.At.Before(t) {
		return Stop{}
	}
	return Stop{By: s.By, At: s.At}
}

// usable is since when the slice is usable, or was last; zero where it never was in this life.
func (l *Life) usable() time.Time {
	if l.Condition == Ready {
		return l.Since
	}
	return l.Used
}

// turns takes another condition, read at that time.
func (l *Life) turns(c Condition, at time.Time) {
	if l.Condition == Ready {
		l.Used = l.Since
	}
	l.Condition, l.Since, l.Stop.Unsaid = c, at, time.Time{}
	l.endsIf(at)
}

// endsIf takes it from the condition read at that time whether the life is over.
func (l *Life) endsIf(at time.Time) {
	switch over := l.Condition == Gone || l.Condition == Lost && !l.healsAt(at); {
	case !over:
		l.End.Since = time.Time{}
	case l.End.Since.IsZero():
		l.End.Since = at
	}
}

// unaccounted reports whether a slice is stopped, and nobody has said by whom. What was found stopped was stopped before
// anybody watched it, unless an incident has just made it, and what is suspended in a queued resource by its user: that is the
// owner's doing.
func (l *Life) unaccounted() bool {
	found := l.Used.IsZero() && l.Maker == ""
	return l.Condition == Stopped && l.Incarnation.Known() && l.Group == "" && !found && l.Stop.By == ""
}

// unsaidFor reports whether a slice is stopped for so long, and the audit log has named nobody.
func (l *Life) unsaidFor(since time.Duration) bool {
	return l.unaccounted() && since >= Grace && !l.Stop.Unsaid.IsZero()
}

// openStopped opens an incident for a slice that somebody stopped who is not its owner.
func (m *machine) openStopped(s *Slot) {
	text := m.openSince(s, s.State)
	m.takeOrWatch(text, "nothing", func(m *machine) {
		m.enter(Healing, m.now.Add(HealFor))
		m.decided("incident opened: "+text, "the audit log does not say that its owner stopped it")
		m.startOrTell(text)
	})
}

// onlyStopped reports whether a slice is there, whole, and stopped. What a queued resource holds goes and comes with it.
func (l *Life) onlyStopped() bool { return l.Condition == Stopped && l.Group == "" }

const waitForStopper = "wait for word of who stopped it"

// standsStopped takes it that a slice which was to be replaced is only stopped: nothing of it is deleted. It reports whether that
// changes where the incident goes.
func (m *machine) standsStopped(s *Slot) bool {
	in := m.w.Incident
	if !s.onlyStopped() || !s.Replace || m.w.effect(events.ActionDelete, s.Name) != nil {
		return false // what is being deleted may be gone
	}
	switch {
	case s.Maker != "" || m.creationUnderWay(s) && s.Incarnation.Created.After(in.Opened): // the crew of a new one may have spoken already
		m.markArrived(s)
		if in.Phase == PhaseCreating {
			m.goOnOnceThere()
			return true
		}
	case !m.creationUnderWay(s):
		m.slice(s.Name).Replace = false
	}
	if in.Phase == Approving && in.Asked == events.ActionDelete && m.toBeReplaced() == nil {
		m.enter(Healing, m.healUntil(s))
		m.decided(waitForStopper, m.w.noun(s.Name)+" is only stopped")
		return true
	}
	return false
}

// stillStopped names the slices that are stopped.
func (m *machine) stillStopped() (names []string) {
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.Condition == Stopped && !s.IsReleased() && !s.Replace {
			names = append(names, s.Name)
		}
	}
	return names
}

// startOrTell starts what is stopped, or leaves it to a person: what is only stopped is never deleted.
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

// startStopped starts what is stopped while Google's own recovery is waited for, as soon as it is known not to be its
// owner's doing.
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

// startable names the slices that may be started: the API starts those of one worker.
func (m *machine) startable() []string {
	var names []string
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if s.unsaidFor(m.now.Sub(s.Since)) && s.Workers <= 1 && !s.IsReleased() && !s.Replace {
			names = append(names, s.Name)
		}
	}
	return names
}

func (m *machine) sendStart(why string) {
	names := m.startable()
	if names == nil { // since it was asked, it changed
		m.enter(Healing, m.now.Add(HealFor))
		m.decided("wait for "+m.w.recovery(), "nothing is stopped any more that may be started")
		return
	}
	if m.w.Incident.Starts >= MaxStarts {
		m.escalate(CodeOverdue, strings.Join(names, ", ")+" stopped again, or was not usable within "+events.Span(StartFor)+", after "+strconv.Itoa(MaxStarts)+" starts", m.byHandStart())
		return
	}
	m.enter(Starting, m.now.Add(StartFor))
	m.inc().Starts++
	m.decided("start "+strings.Join(names, ", "), why)
	var effects []Effect
	for _, name := range names {
		s := m.w.Slice(name)
		effects = append(effects, Effect{Action: events.ActionStart, Slice: name, Zone: s.Zone, Incarnation: s.Incarnation, Reason: why})
	}
	m.send(effects...)
}

// startsOthers reports whether the start of other slices is under way, or asked for.
func (m *machine) startsOthers(s *Slot) bool {
	in := m.w.Incident
	return in.Phase == Starting && m.w.effect(events.ActionStart, s.Name) == nil ||
		in.Phase == Approving && in.Asked == events.ActionStart && m.startable() != nil
}

// startedAll reports whether everything that was to be started can be used.
func (m *machine) startedAll() bool {
	return !slices.ContainsFunc(m.w.Effects, func(effect Effect) bool {
		return effect.Action == events.ActionStart && m.w.Slice(effect.Slice).Condition != Ready
	})
}

func (m *machine) byHandStart() string {
	var parts []string
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.Condition == Stopped && !s.IsReleased() {
			parts = append(parts, m.w.Words().Start+" "+s.Name+" --zone "+s.Zone)
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
