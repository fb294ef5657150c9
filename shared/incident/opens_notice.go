package incident

import (
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// opensForNotice is the trouble for which what is announced for a slot opens an incident; nil for none. Time makes a save due.
func (d *diagnosis) opensForNotice(s *slot) *Trouble {
	n := d.notice(s)
	begun := n.Status == events.NoticeOngoing && s.Condition == evidence.Ready && n.LastWord.After(later(d.w.Ended, d.w.Training.StepAt))
	saves := d.isDue(d.preparesAt(s, d.saveDue(s)))
	if !begun && !saves || !d.mayPrepare(s) || d.isPast(n) || !d.now.After(d.w.Ended) {
		return nil
	}
	t := s.announced(n, d.now)
	return &t
}

// preparesAt is when a tick opens an incident for a save that is due at a time; zero for never.
func (d *diagnosis) preparesAt(s *slot, due time.Time) time.Time {
	n := d.notice(s)
	if n.Status != events.NoticePending || !d.mayPrepare(s) || d.told(ToldNotice, s.Name, s.Incarnation.ID, later(due, n.LastWord)) {
		return time.Time{}
	}
	return due
}

// announced is the trouble of which a notice tells.
func (s *slot) announced(n Notice, now time.Time) Trouble {
	t := Trouble{Cause: events.CauseMaintenance, Slice: s.Name, Life: s.Incarnation.ID, At: now, Rank: events.RankReading, Announced: n.Status == events.NoticePending}
	switch t.Text = "maintenance announced for " + events.Window(n.WindowStart, n.WindowEnd); {
	case n.End:
		t.Cause, t.Text = events.CauseEnd, "planned end at "+n.WindowStart.UTC().Format(time.RFC3339)
	case !t.Announced:
		t.Text = "maintenance is under way"
	}
	if n.Told {
		t.Rank = events.RankUser
	}
	if n.Unscheduled {
		t.Text = "unscheduled " + t.Text
	}
	return t
}

// mayPrepare reports whether maintenance of a slot may open an incident. While its owner has stopped a slice, or a person was told that one
// cannot be used, no training runs that could be saved. Of maintenance that only lines tell of, one incident is opened until the API shows it.
func (d *diagnosis) mayPrepare(s *slot) bool {
	n := d.notice(s)
	idle := d.those(func(o *slot) bool { return o.Released.IsZero() && !o.Unused && !d.leftAlone(o).IsZero() })
	return s.Released.IsZero() && n.Declined.IsZero() && !(n.Told && d.doubtsLines(s)) && len(idle) == 0
}

// rememberNotices keeps that an incident has prepared for what was announced: the same opens no other one.
func (d *diagnosis) rememberNotices() {
	if !d.in.isPrepared() {
		return
	}
	for i := range d.slots {
		if s := &d.slots[i]; d.notice(s).Status != "" {
			remember(d.w, Told{Of: ToldNotice, Slice: s.Name, Life: s.Incarnation.ID, At: d.now})
		}
	}
}
