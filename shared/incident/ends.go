//go:build !heart

package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
)

// EndMargin is how much earlier than planned a life may end and still end as planned: its machines need time to shut down, and
// clocks differ.
const EndMargin = 5 * time.Minute

// endsBy reports whether a life was to end by a time, as planned.
func (l *Life) endsBy(t time.Time) bool { return !l.Ends.IsZero() && !t.Before(l.Ends.Add(-EndMargin)) }

// healsAt reports whether the provider brings a life back by itself that is lost at that time. After its planned end it does not.
func (l *Life) healsAt(t time.Time) bool { return l.Heals() && !l.endsBy(t) }

// heals reports whether the provider brings a slice back by itself that is lost now. No slice of a group comes back alone once
// another slice of the group has ended as planned.
func (m *machine) heals(s *Slot) bool {
	return s.healsAt(m.now) && !slices.ContainsFunc(m.othersInGroup(s), func(name string) bool { return m.w.Slice(name).endedAsPlanned() })
}

// endedAsPlanned reports whether a life is over, and ended as planned.
func (l *Life) endedAsPlanned() bool {
	return (l.Condition == Lost || l.Condition == Gone) && l.endsBy(l.Since)
}

// planEnds keeps the planned end of each life in the place of its announced maintenance, unless maintenance is announced for an
// earlier time. Pitstop requests the save before it like any other.
func (m *machine) planEnds() {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		n := s.Notice
		sooner := n.stands() && !n.End && (n.WindowStart.Before(s.Ends) || n.Status == events.NoticeOngoing) && !m.history(n.Notice)
		switch {
		case s.Ends.IsZero() || !s.Incarnation.Known():
			if n.End {
				m.slice(s.Name).Notice = Notice{}
			}
		case sooner, n.End && n.WindowStart.Equal(s.Ends):
		default:
			m.slice(s.Name).Notice = Notice{
				Notice:   events.Notice{Status: events.NoticePending, WindowStart: s.Ends, WindowEnd: s.Ends},
				LastWord: later(s.Incarnation.Created, n.LastWord), End: true, // an older word of maintenance stays an older one
			}
		}
	}
}

// awaited reports whether an incident may concern a slice's announcement now: a planned end concerns no incident before its save is
// due.
func (m *machine) awaited(s *Slot) bool {
	return s.announced() && (!s.Notice.End || m.begins(s.Notice))
}

// at describes the time of a planned end, for people.
func (n Notice) at() string { return "planned end at " + n.WindowStart.UTC().Format(time.RFC3339) }

// awaits names the event that an incident waits for, for people.
func (m *machine) awaits() string {
	if m.firstNotice().End {
		return "planned end"
	}
	return "maintenance"
}

// endedUnseen treats a gone slice as ended as planned if it has been gone only since its planned end: that is positive evidence. An
// owner's act, where there is one, still counts.
func (m *machine) endedUnseen(s *Slot) {
	if !s.endedAsPlanned() || !s.Incarnation.Known() || s.NeverUsable || s.ToReplace || s.IsReleased() {
		return
	}
	t := m.loss(s)
	switch in := m.w.Incident; {
	case in == nil:
		if m.mayOpen(s) {
			t.Life = s.Incarnation.ID
			m.open(t)
			m.lose(s, t.Text)
		}
	case m.phase() != Clearing:
		m.trouble(t, s.Incarnation)
	}
}

// Payer is the party that is charged for a replacement.
type Payer string

// The payers of a replacement.
const (
	Infrastructure Payer = ""
	Training       Payer = "training" // the slice ended by an error of its training
	Nobody         Payer = "nobody"   // it ended as planned
)

// struck reports whether something is known to have struck the machines in this incident: then what the training did is a
// consequence. A line that users can write does not count: a writer of logs does not decide who pays.
func (in *Incident) struck() bool {
	return slices.ContainsFunc(in.Troubles, func(t Trouble) bool { return !t.Claimed && !t.Announced && strikes(t.Cause) })
}

// maintenanceStruck reports whether maintenance is known to have begun on a slice of the incident. Who began it does not matter.
func (m *machine) maintenanceStruck() bool {
	return m.w.Incident.Begun && slices.ContainsFunc(m.w.Slices, func(s Slot) bool {
		return !s.Notice.Started.IsZero() || s.Notice.Status == events.NoticeOngoing && s.Notice.InAPI
	})
}

// payer is charged for the replacement of the slices that are to go. A group has one payer: what a slice of it ended for ended it.
func (m *machine) payer() Payer {
	payer, some := Nobody, false
	for _, name := range m.toBeReplaced() {
		s := m.w.Slice(name)
		if !m.stillToReplace(s) {
			continue
		}
		some = true
		planned, crashed := s.endedAsPlanned(), s.Cause == events.CauseCrash
		for _, other := range m.othersInGroup(s) {
			o := m.w.Slice(other)
			planned, crashed = planned || o.endedAsPlanned(), crashed || o.Cause == events.CauseCrash
		}
		switch {
		case crashed && !m.w.Incident.struck() && !m.maintenanceStruck():
			payer = Training
		case planned:
		default:
			return Infrastructure
		}
	}
	if !some {
		return Infrastructure
	}
	return payer
}
