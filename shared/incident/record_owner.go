package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
)

// interrupted records word of a loss. It proves nothing unless Pitstop itself read it.
func (f *facts) interrupted(e evidence.Interrupted) bool {
	s, at := f.w.Slice(e.Slice), f.from.Time
	if s == nil {
		return false
	}
	l := s.lifeOf(e.Incarnation, "", at)
	if l == nil || l.failedBefore(e.Cause, at) || !l.Released.IsZero() && !at.Before(l.Released) { // so ends what is deleted
		return false
	}
	t := Trouble{Cause: e.Cause, Slice: e.Slice, Life: l.Incarnation.ID, At: at, Rank: f.from.Rank, Text: e.Text}
	if l != &s.Life || f.w.Incident == nil && !l.Released.IsZero() {
		return f.tellsOfPast(t)
	}
	struck := (e.Cause == events.CauseMaintenance || endsLife(e.Cause)) && f.strike(at) // the training saves itself and exits
	return f.suspect(t) || struck
}

// tellsOfPast records word of a life that is over, or that its owner has taken over since: in the incident that is about it.
func (f *facts) tellsOfPast(t Trouble) bool {
	in := f.w.Incident
	return (in == nil || in.concerns(t) || !t.At.Before(in.Opened)) && f.joins(t)
}

// back records another reason to look, which is no trouble: in an incident, what was read before says nothing any more.
func (f *facts) back(e evidence.Back) bool {
	s := f.w.Slice(e.Slice)
	if s == nil || s.lifeOf(e.Incarnation, "", f.from.Time) != &s.Life {
		return false
	}
	news := f.strike(f.from.Time)
	if f.w.Incident != nil && !s.Read.IsZero() && s.Read.Before(f.from.Time) {
		s.Read, news = time.Time{}, true
	}
	return news
}

// called records what an owner did with a slice, on the life of that time.
func (f *facts) called(e evidence.Called) bool {
	s := f.w.Slice(e.Slice)
	if s == nil || !f.saysSomething(s, e) {
		return false
	}
	news := false
	switch e.Act {
	case events.ActDeleted:
		news = f.deleted(s, e.Zone)
		for _, name := range f.w.group(e.Slice) {
			news = e.Whole && f.deleted(f.w.Slice(name), e.Zone) || news
		}
	case events.ActCreated:
		news = f.madeAgain(e)
	case events.ActStopped:
		news = f.stops(s, e.Zone, e.Principal)
	case events.ActStarted:
		news = f.stops(s, e.Zone, "")
	}
	if news {
		f.handsOver(f.from.Time)
	}
	return f.labelled() || news
}

// saysSomething reports whether an act on a slice tells what its owner wants. What another object makes, that object makes anew: a Job of a
// JobSet is given up with its JobSet, and what a third object makes once the cluster collects it.
func (f *facts) saysSomething(s *Slot, e evidence.Called) bool {
	ofGroup := s.Group != "" && !e.Whole && f.w.provider().remakesSlices
	return e.Everything || !ofGroup && s.Controlled == e.Orphaned
}

// deleted records that an owner deleted a life. Who deleted the life before takes over what replaces it, until training is let in.
func (f *facts) deleted(s *Slot, zone string) bool {
	l, at := s.lifeOf(events.Incarnation{}, zone, f.from.Time), f.from.Time
	switch {
	case l == nil, !at.After(l.Released):
		return false
	case l == &s.Life && l.Condition == evidence.Ready && s.Read.Sub(at) > bounds.UnreleaseAfter: // it did not happen
		return false
	}
	l.Released = at
	if l.Condition == evidence.Gone && l.Since.Equal(l.Over) { // it was usable until then, and nothing struck it
		t := &f.w.Training
		t.Strikes = append([]time.Time(nil), slices.DeleteFunc(slices.Clone(t.Strikes), l.Over.Equal)...) // none is nil: so it stays out of the document
	}
	if s.Maker != "" || !s.Ordered.IsZero() {
		s.Released = later(s.Released, at)
	}
	none := func(t Trouble) bool {
		return t.Slice == s.Name && t.Life == l.Incarnation.ID && !t.proven() && !t.At.Before(at)
	}
	f.w.Incident.unlearns(none)
	f.w.Closed.unlearns(none)
	return true
}

// madeAgain records that somebody makes a slice again in the middle of an incident. What is older than every trouble made what was lost. A tool
// that makes again what Pitstop has deleted takes nothing over.
func (f *facts) madeAgain(e evidence.Called) bool {
	in, at := f.w.Incident, f.from.Time
	since := func(t Trouble) bool { return !at.Before(t.At) }
	if in == nil || !slices.ContainsFunc(in.Troubles, since) || e.Automatic && f.w.hasDeleted(f.w.Slice(e.Slice), at.Truncate(time.Second)) {
		return false
	}
	return f.takenOver(e.Principal)
}

// takenOver records who, or what, has taken the open incident over; the first one counts.
func (f *facts) takenOver(by string) bool {
	in := f.w.Incident
	if in == nil || in.TakenBy != "" {
		return false
	}
	in.TakenBy = by
	return true
}

// stops records who last stopped a life, or that it was started since. An older call changes nothing, nor does one from before the life was
// last usable: the clocks of the provider and of readings differ a little.
func (f *facts) stops(s *Slot, zone, by string) bool {
	const skew = 5 * time.Minute
	l, at := &s.Life, f.from.Time
	if s.lifeOf(events.Incarnation{}, zone, at) != l || !at.After(l.Stop.At) || by != "" && at.Before(l.usable().Add(-skew)) {
		return false
	}
	l.Stop.By, l.Stop.At = by, at
	if by != "" {
		l.Maker = "" // its owner handles it now
	}
	return true
}

// unsaid records that the audit log names nobody who ended or stopped a life.
func (f *facts) unsaid(e evidence.Unsaid) bool {
	l := f.w.life(e.Slice)
	if l == nil || !e.Incarnation.Same(l.Incarnation) || l.Condition != evidence.Gone && l.Condition != evidence.Stopped {
		return false
	}
	if !l.Stop.Unsaid.IsZero() || f.from.Time.Sub(l.Since) < bounds.Grace {
		return false
	}
	l.Stop.Unsaid = f.from.Time
	return true
}
