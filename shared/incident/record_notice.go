package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
)

// noticed records a word of a life's maintenance. The newest word counts; an older one adds what the newer ones do not say. The log, the API
// and a machine's own metadata do not all say the same of it.
func (f *facts) noticed(e evidence.Noticed) bool {
	s := f.w.Slice(e.Slice)
	if s == nil || s.lifeOf(e.Incarnation, "", f.from.Time) != &s.Life || !f.heeds(e, s.Notice) {
		return false
	}
	was, under := s.Notice, e.Notice.Status == events.NoticeOngoing && s.Released.IsZero()
	if e.Notice.Status == events.NoticeGone {
		return f.noticeGone(s)
	}
	struck := under && f.strike(f.from.Time)             // the training gets the signal to end
	if !isPast(completed(e.Notice, was.Notice), f.now) { // what is long over is history
		s.Notice = f.merged(was, e)
	}
	news := s.Notice != was
	if news && under && s.Notice.Status == events.NoticeOngoing {
		f.begun(e, &s.Life)
	}
	return news || struck
}

// heeds reports whether a word of maintenance counts. Of maintenance that the API shows, a line says only that it has begun.
func (f *facts) heeds(e evidence.Noticed, known Notice) bool {
	shown := known.InAPI && known.stands()
	return !shown || f.from.Rank != events.RankUser || saysBegun(known.Notice, completed(e.Notice, known.Notice))
}

// merged is what is known of maintenance with one more word of it.
func (f *facts) merged(known Notice, e evidence.Noticed) Notice {
	next, older := known, f.from.Time.Before(known.LastWord)
	other, ended := !e.Notice.WindowStart.IsZero() && !e.Notice.WindowStart.Equal(known.WindowStart), !known.stands()
	switch {
	case ended && older:
		return known
	case !older && (ended || other):
		next = Notice{Notice: e.Notice, LastWord: f.from.Time, Told: true}
		if !other {
			next.Started, next.Declined = known.Started, known.Declined
		}
	default:
		next.Notice = newest(known.Notice, e.Notice, older)
		// A word after the end of an incident says that maintenance goes on. Else an entry that was on its way may still say more.
		if goesOn := known.Status == events.NoticeOngoing && !known.LastWord.After(f.w.Ended); goesOn || !next.Notice.Equal(known.Notice) {
			next.LastWord = later(known.LastWord, f.from.Time)
		}
	}
	f.sources(&next, e)
	return next
}

// sources records whether a reading shows a notice, or lines alone tell of it.
func (f *facts) sources(n *Notice, e evidence.Noticed) {
	n.InAPI = n.InAPI || e.InAPI && n.WindowStart.Equal(e.Notice.WindowStart)
	n.Told = n.Told && f.from.Rank <= events.RankUser && !n.InAPI
}

// newest is what two words say of the same maintenance. Once it has begun, no other worker's word from before says otherwise.
func newest(known, word events.Notice, older bool) events.Notice {
	next := completed(word, known)
	if older && !saysBegun(known, next) || saysBegun(word, known) {
		return completed(known, word)
	}
	return next
}

// begun records that maintenance is under way: a trouble of an incident that is about it, or a reason to open one.
func (f *facts) begun(e evidence.Noticed, l *Life) {
	t := Trouble{
		Cause: events.CauseMaintenance, Slice: e.Slice, Life: l.Incarnation.ID, At: f.from.Time, Rank: f.from.Rank, Text: cmp.Or(e.Text, "maintenance is under way"),
	}
	switch in := f.w.Incident; {
	case in != nil && (in.isPrepared() || in.cause() == events.CauseHang):
		f.trouble(t)
	case in == nil && t.At.After(later(f.w.Ended, f.w.Training.StepAt)):
		f.suspicion = &t
	}
}

// noticeGone records that maintenance is over, or was withdrawn before it began. Every earlier announcement is void.
func (f *facts) noticeGone(s *Slot) bool {
	n, at := &s.Notice, f.from.Time
	if at.Before(n.LastWord) || !at.After(n.LastWord) && !n.stands() {
		return false
	}
	began := n.Status == events.NoticeOngoing || n.stands() && !n.WindowStart.IsZero() && !at.Before(n.WindowStart)
	n.Status, n.LastWord, n.InAPI = events.NoticeGone, at, false
	if in := f.w.Incident; began && in != nil && in.isPrepared() && s.Released.IsZero() {
		f.trouble(Trouble{Cause: events.CauseMaintenance, Slice: s.Name, Life: s.Incarnation.ID, At: at, Rank: f.from.Rank, Text: "maintenance has passed"})
	}
	return true
}

// showsNotice records that a notice which the API showed is gone from a reading of a usable slice: when a slice is lost, its notice goes too,
// and that is no withdrawal.
func (f *facts) showsNotice(s *Slot, e evidence.Read) bool {
	n := s.Notice
	return n.InAPI && n.stands() && e.Notice == nil && !e.NoticeUnread && e.Condition == evidence.Ready && f.noticeGone(s)
}

// showsMaintenance records that the last maintenance in a reading explains an incident which began at that time: a TPU Node announces none.
func (f *facts) showsMaintenance(s *Slot, e evidence.Read) bool {
	at, in := e.Maintained, cmp.Or(f.w.Incident, f.w.Closed)
	if in == nil || !at.After(s.Incarnation.Created) || !s.Released.IsZero() || in.Troubles[0].At.Sub(at).Abs() > bounds.SickFor ||
		explains(in.cause()) >= explains(events.CauseMaintenance) {
		return false
	}
	t := Trouble{
		Cause: events.CauseMaintenance, Slice: s.Name, Life: s.Incarnation.ID, At: at, Rank: events.RankReading,
		Text: s.Name + " had a maintenance event at " + at.UTC().Format(time.RFC3339),
	}
	return f.joins(t)
}

// isPrepared reports whether the incident is about maintenance or a planned end.
func (in *Incident) isPrepared() bool {
	return slices.ContainsFunc(in.Troubles, func(t Trouble) bool { return t.Cause == events.CauseMaintenance || t.Cause == events.CauseEnd })
}

// saysBegun reports whether one notice says that another one's announced maintenance is under way.
func saysBegun(pending, ongoing events.Notice) bool {
	return pending.Status == events.NoticePending && ongoing.Status == events.NoticeOngoing && pending.WindowStart.Equal(ongoing.WindowStart)
}

// completed adds to a word what only another one of the same maintenance said. Some words give the state alone.
func completed(n, other events.Notice) events.Notice {
	switch {
	case n.WindowStart.IsZero():
		other.Status = n.Status
		return other
	case n.WindowStart.Equal(other.WindowStart):
		n.WindowEnd = cmp.Or(n.WindowEnd, other.WindowEnd)
		n.LatestWindowStart = cmp.Or(n.LatestWindowStart, other.LatestWindowStart)
	}
	return n
}
