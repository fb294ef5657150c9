package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
)

// EndMargin is how much earlier than planned a life may end and still end as planned: its machines need time to shut down, and clocks
// differ.
const EndMargin = 5 * time.Minute

// passFor is how long after its window maintenance may last, or come late: providers keep their windows loosely. After that it is a person's, or
// is not awaited any more.
const passFor = 4 * time.Hour

// endsBy reports whether a life was to end by a time, as planned.
func (l *Life) endsBy(t time.Time) bool {
	return !l.Ends.IsZero() && !t.Before(before(l.Ends, EndMargin))
}

// endedAsPlanned reports whether a life is over, and ended as planned. What was over before that did not, though its rest is gone only later.
func (l *Life) endedAsPlanned() bool {
	return (l.Condition == evidence.Lost || l.Condition == evidence.Gone) && l.endsBy(cmp.Or(l.Over, l.Since))
}

// notice is what is announced for a slot: its maintenance, or its planned end where that comes first.
func (d *diagnosis) notice(s *slot) Notice {
	n := s.Notice
	sooner := n.stands() && (n.WindowStart.Before(s.Ends) || n.Status == events.NoticeOngoing) && !d.isPast(n)
	if s.Ends.IsZero() || !s.Incarnation.Known() || sooner {
		return n
	}
	end := Notice{
		Notice:   events.Notice{Status: events.NoticePending, WindowStart: s.Ends, WindowEnd: s.Ends},
		LastWord: later(s.Incarnation.Created, n.LastWord), End: true,
	}
	if lead, _ := d.lead(); n.Declined.After(before(s.Ends, lead)) { // else the person declined maintenance that was announced before
		end.Declined = n.Declined
	}
	return end
}

// stands reports whether a notice announces something that is not over.
func (n Notice) stands() bool {
	return n.Status == events.NoticePending || n.Status == events.NoticeOngoing
}

// windowEnd is when the maintenance ought to be over, as far as the notice says.
func (n Notice) windowEnd() time.Time { return windowEnd(n.Notice) }

func windowEnd(n events.Notice) time.Time {
	if n.WindowEnd.IsZero() {
		return n.WindowStart
	}
	return n.WindowEnd
}

// isPast reports whether the window of a notice has been over for longer than any wait for it.
func (d *diagnosis) isPast(n Notice) bool { return isPast(n.Notice, d.now) }

func isPast(n events.Notice, now time.Time) bool {
	end := windowEnd(n)
	return !end.IsZero() && now.Sub(end) > passFor
}

// isAwaited reports whether an incident may be about what is announced for a slot: about a planned end not before its save is due. One that was
// opened for it stays so while its lead changes, unless the end has moved away.
func (d *diagnosis) isAwaited(s *slot) bool {
	n := d.notice(s)
	near := !n.End || d.begins(n) || d.in.isForEnd(s) && d.over(before(n.WindowStart, policy.MaxLead))
	return n.stands() && s.Released.IsZero() && near
}

// isForEnd reports whether an incident is about the planned end of a life.
func (in *Incident) isForEnd(s *slot) bool {
	return in != nil && slices.ContainsFunc(in.Troubles, func(t Trouble) bool {
		return t.Cause == events.CauseEnd && t.Slice == s.Name && t.Life == s.Incarnation.ID
	})
}

// awaited are the slots for which something is announced that an incident may be about.
func (d *diagnosis) awaited() []*slot { return d.those(d.isAwaited) }

// begins reports whether what is announced is under way, or so near that the save before it is due.
func (d *diagnosis) begins(n Notice) bool {
	return n.stands() && (n.Status == events.NoticeOngoing || !n.Started.IsZero()) || d.isSoon(n)
}

// isSoon reports whether the last moment for the save before a window has come.
func (d *diagnosis) isSoon(n Notice) bool {
	last := d.lastDue(n)
	return !last.IsZero() && d.over(last)
}

// lastDue is the last moment to ask for the save before a window; zero for maintenance that will not come, or that a person declined.
func (d *diagnosis) lastDue(n Notice) time.Time {
	if n.Status != events.NoticePending || !n.Declined.IsZero() || n.WindowStart.IsZero() || d.isPast(n) {
		return time.Time{}
	}
	lead, _ := d.lead()
	return before(n.WindowStart, lead)
}

// first is what is announced for the earliest time, among what the incident is about.
func (d *diagnosis) first() (first Notice) {
	for _, s := range d.awaited() {
		if n := d.notice(s); !first.stands() || n.WindowStart.Before(first.WindowStart) {
			first = n
		}
	}
	return first
}
