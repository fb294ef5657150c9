package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// admit lets training into lives that the lease does not name, once every slice can be used and nobody trains any more who is not to be
// named. Without a directory there is no lease.
func (d *diagnosis) admit() *Step {
	waiting := d.awaiting()
	if len(waiting) == 0 || !d.whole() || d.w.Directory == "" {
		return nil
	}
	if s := call(view.Admitting, story.CleanUp.With(), d.by(d.wantedSince(events.ActionDelete), bounds.ClearFor), d.surplus(story.Reason{})...); s.Wants != nil {
		return s
	}
	first := waiting[0].Name
	by, known := d.w.silentBy()
	switch {
	case !known:
		return wait(view.Admitting, story.TrainsElsewhere.With(first), d.by(d.wholeSince(), bounds.AdmitFor))
	case !d.over(by):
		return wait(view.Admitting, story.TrainsElsewhere.With(first), by)
	}
	until := d.callBy(events.ActionAdmit)
	if d.over(until) {
		return escalate(reason.CodeOverdue, story.LeaseUnwritten.With(), story.LookAtBucket.With(d.w.Name))
	}
	return call(view.Admitting, story.LetIn.With(first), until, Want{Action: events.ActionAdmit})
}

// wholeSince is since when every slice can be used.
func (d *diagnosis) wholeSince() time.Time {
	since := d.in.Opened
	for _, s := range d.inAny(serving) {
		since = later(since, s.usable())
	}
	return since
}

// awaiting are the slots whose lives have to be let in: what an incident made, and what its owner made where no crew may put itself into the
// place of the life before.
func (d *diagnosis) awaiting() []*slot {
	return d.those(func(s *slot) bool { return s.is(serving) && s.Released.IsZero() && d.awaits(s) })
}

// unadmitted is the first slot into which a person's word lets training; nil while another one cannot be used.
func (d *diagnosis) unadmitted() *slot {
	for _, s := range d.inAny(serving) {
		if s.Released.IsZero() && !d.w.admits(s.Slot) && d.whole() && d.w.Directory != "" {
			return s
		}
	}
	return nil
}

// awaits reports whether a life has to be let in. One that was left to a person waits for their word. Where the training is done, so does
// every one that was there before.
func (d *diagnosis) awaits(s *slot) bool {
	asked, done := d.w.retried(), d.w.Training.Verdict.At
	switch {
	case d.w.effect(events.ActionAdmit, "") != nil && !d.w.Lease.Sure.of(s.Name).Same(s.Incarnation):
		return true // what was asked for stands, whatever a line tells
	case d.w.admits(s.Slot), d.told(ToldLeft, s.Name, s.Incarnation.ID, asked):
		return false
	case d.isFinished():
		return !done.IsZero() && s.Incarnation.Created.After(done) || asked.After(done)
	}
	return true
}

// isAboutAdmission reports whether a trouble is that a usable life waits, or has waited, to be let in: no reading explains it further.
func (d *diagnosis) isAboutAdmission(t Trouble, s *slot) bool {
	return t.Cause == events.CauseUnknown && s.is(serving) && (t.proven() || d.awaits(s) || d.w.leasedAt().After(t.At))
}

// opensAdmission is the reason to open an incident for a life that its owner made: with a tick, once every slice was read, and no other life
// trains any more. At a person's word, an incident opens without it. Under a policy that cannot be read, it opens only to tell people, after a while.
func (d *diagnosis) opensAdmission(ticks bool) *Trouble {
	at, unreadable := d.admissionAt(), d.p.Unreadable != ""
	if unreadable && !at.IsZero() {
		at = d.by(at, bounds.Grace)
	}
	if !ticks || !d.isDue(at) || d.watchOnly() || unreadable && d.w.Watched {
		return nil
	}
	waiting := d.awaiting()
	s := slices.MinFunc(waiting, func(a, b *slot) int { return a.Since.Compare(b.Since) })
	text := s.Name + " waits in " + s.Zone + ": no lease is known to name it"
	return &Trouble{Cause: events.CauseUnknown, Slice: s.Name, Life: s.Incarnation.ID, At: d.now, Rank: events.RankReading, Text: text}
}

// admissionAt is when lives may be let in that wait for it: every slice can be used by then, and no other life trains. It is zero for never.
func (d *diagnosis) admissionAt() time.Time {
	at, known := d.w.silentBy()
	if !known || len(d.awaiting()) == 0 || !d.whole() || d.w.Directory == "" {
		return time.Time{}
	}
	for i := range d.slots {
		at = later(at, d.slots[i].Since)
	}
	return at
}
