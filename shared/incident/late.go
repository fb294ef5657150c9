//go:build !heart

package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
)

const (
	// maxCreators bounds how many creating incidents are remembered.
	maxCreators = 8
	// lateMargin allows for the difference between the provider's clock and Pitstop's.
	lateMargin = time.Minute
)

// late reports whether a reading shows a resource that a closed incident has ordered or created, and that nobody has ever used: a
// queued resource that waits, was filled or died after the incident's end. Pitstop reports it once for a slice.
func (m *machine) late(s *Slot, e Read) bool {
	if m.w.Incident != nil || s.Condition != Gone || m.abused() || m.w.provider().trainsUnasked {
		return false // something else holds the name, or what has come is its owner's
	}
	switch e.Condition {
	case Unread, Deleting, Gone, Stopped, Done:
		return false
	case Creating, Ready, Unhealthy, Lost, Unclear:
	}
	c := m.creator(s, e)
	return c != nil && !slices.Contains(c.ReportedSlices, s.Name)
}

// surplus reports whether a reading shows a second life that an incident has created, in another zone than the life that it has
// admitted or is about to admit. Pitstop had assumed that the call would bring nothing.
func (m *machine) surplus(s *Slot, e Read) bool {
	if !e.Incarnation.Known() || e.Zone == s.Zone || e.Incarnation.Same(s.Incarnation) || e.Incarnation.Same(s.Admitted()) || e.Condition == Deleting {
		return false
	}
	if in := m.w.Incident; in != nil {
		let := s.Maker == in.ID || s.isAdmitted() && s.Incarnation.Created.After(in.Opened)
		return m.phase() != Clearing && in.Created && e.Incident == in.ID && orderedAt(e).After(in.Opened) && let && !s.ToReplace
	}
	return s.lives() && m.createdBy(e) != nil
}

// tellSurplus reports a surplus life once it is certain. It leaves that life to a person, for the slice itself lives elsewhere.
func (m *machine) tellSurplus(s *Slot, e Read) {
	if m.w.Incident != nil || slices.Contains(m.createdBy(e).ReportedSlices, s.Name) {
		return // the name goes to this life once the other one is deleted
	}
	m.w.Creators = slices.Clone(m.w.Creators)
	c := m.createdBy(e)
	c.ReportedSlices = append(slices.Clip(c.ReportedSlices), s.Name)
	advice := "delete it: " + m.w.Words().Delete + " " + s.Name
	if q := e.Facts.Group; q != "" {
		advice = "delete it: " + m.w.Words().DeleteGroup + " " + q + m.w.Words().After
		for i := range m.w.Slices {
			if o := &m.w.Slices[i]; o.Group == q && o.Name != s.Name {
				c.ReportedSlices = append(c.ReportedSlices, o.Name) // it holds them all
			}
		}
	}
	text := m.w.noun(s.Name) + " in " + e.Zone + " is " + e.State + ": " + e.Incident + " had made it, and " + s.Name + " lives in " + s.Zone
	m.open(Trouble{Cause: events.CauseUnknown, Slice: s.Name, At: m.when(), Text: text})
	m.line(LineSeen, text, "")
	m.finish(Observed, "", CodeLeftBehind, text, advice+inPlace(e.Zone))
}

// createdBy is the closed incident that may have ordered the slice in a reading.
func (m *machine) createdBy(e Read) *Creator {
	for i := range m.w.Creators {
		if c := &m.w.Creators[i]; c.Incident == e.Incident && orderedAt(e).After(c.Opened) && orderedAt(e).Before(c.Closed.Add(lateMargin)) {
			return c
		}
	}
	return nil
}

// creator is the closed incident that ordered the slice in a reading. The label alone proves nothing, for a person who creates a
// slice again from its old order may copy the label: the order must also be from the time of that incident.
func (m *machine) creator(s *Slot, e Read) *Creator {
	if e.Incident == "" || e.Incarnation.Same(s.Incarnation) || e.Incarnation.Same(s.Admitted()) || !orderedAt(e).After(s.Incarnation.Created) {
		return nil
	}
	return m.createdBy(e)
}

// openLate opens an incident that only cleans up the leftovers of another one.
func (m *machine) openLate(s *Slot, e Read) {
	if m.p.Unreadable != "" {
		return // the next reading decides, under a policy that can be read
	}
	m.w.Creators = slices.Clone(m.w.Creators)
	c := m.creator(s, e)
	c.ReportedSlices = append(slices.Clip(c.ReportedSlices), s.Name)
	what := m.w.noun(s.Name)
	if !e.Incarnation.Known() {
		what = m.w.group(e.Facts.Group)
	}
	text := what + " in " + e.Zone + " is " + e.State + ", and " + e.Incident + ", which had ordered it, is over"
	m.open(Trouble{Cause: events.CauseUnknown, Slice: s.Name, At: m.when(), Text: text})
	if m.watchOnly() {
		m.keepCalls(m.plannedCalls("", "", Effect{Action: events.ActionDelete, Slice: s.Name, Zone: e.Zone})...)
		m.finish(Observed, "", CodeWatchOnly, text, "delete it: it may hold quota, or be filled and paid for")
		return
	}
	if e.Incarnation.Known() {
		m.adopt(s.Name, e, true)
		m.slice(s.Name).Maker = m.w.Incident.ID
	} else {
		waits := m.slice(s.Name)
		waits.Zone, waits.Group, waits.Ordered = e.Zone, e.Facts.Group, e.Ordered
	}
	m.finish(Released, "", CodeLeftBehind, text, "")
}

// failedBefore reports whether a slice had failed for good before a machine of it was lost: it had left that machine, and another slice may
// have been on it. A machine may end what runs on it a while before it is lost, and long before maintenance or its planned end.
func (l *Life) failedBefore(c events.Cause, lost time.Time) bool {
	sudden := c == events.CausePreemption || c == events.CauseHostError || c == events.CauseTerminated
	return sudden && l.Condition == Lost && !l.Failed.IsZero() && lost.After(l.Failed.Add(NoticedFor))
}

// unexplain takes back what an open incident was told of the loss of machines that a slice had left: a reading shows now that the slice had
// failed before, and why, as far as that is known.
func (m *machine) unexplain(s *Slot) {
	in := m.w.Incident
	left := func(t Trouble) bool {
		return t.Slice == s.Name && t.Life == s.Incarnation.ID && !t.Proven && s.failedBefore(t.Cause, t.At)
	}
	if in == nil || !slices.ContainsFunc(in.Troubles, left) {
		return
	}
	in = m.inc()
	in.Troubles = slices.Clone(in.Troubles)
	for i, t := range in.Troubles {
		if left(t) {
			m.line(LineSeen, t.Text, m.w.noun(s.Name)+" had failed before, at "+s.Failed.Format("15:04")+" UTC")
			in.Troubles[i] = m.loss(s)
			in.Troubles[i].Life = s.Incarnation.ID
		}
	}
	in.Cause = slices.MaxFunc(in.Troubles, func(a, b Trouble) int { return specific(a.Cause) - specific(b.Cause) }).Cause
}
