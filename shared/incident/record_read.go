package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// read records a reading of a slice: of the present life, of the next one, or of an order for it. What is older than the last reading that
// counted, and what is of a life that is over, teaches nothing.
func (f *facts) read(e evidence.Read) bool {
	s := f.w.Slice(e.Slice)
	switch {
	case s == nil:
		return f.firstSeen(e)
	case f.readFormer(s, e) || f.readAnother(s, e):
		return true
	case f.from.Time.Before(later(s.Since, s.Read)):
		return false
	case e.Condition == evidence.Gone:
		return f.expects(s, e.Zone) && f.shows(s, e)
	case !e.Incarnation.Known():
		return f.readOrder(s, e)
	case e.Incarnation.Same(s.Incarnation):
		return f.shows(s, e)
	case f.isFormer(s, e) || f.isSurplus(s, e):
		return false
	case f.waitsBehindOurs(s, e):
		return f.takenOver(e.Slice + " in " + e.Zone)
	}
	return f.begins(s, e)
}

// expects reports whether a slice that is gone in a zone is missing there. What was complete is not, nor what nobody expects in that zone.
func (f *facts) expects(s *Slot, zone string) bool {
	create := f.w.effect(events.ActionCreate, s.Name)
	return s.Condition != evidence.Done && (zone == s.Zone || !s.exists() && create != nil && zone == create.Zone)
}

// readOrder records a reading of what is ordered, and has brought nothing yet: by Pitstop, by somebody else, or before the life began.
func (f *facts) readOrder(s *Slot, e evidence.Read) bool {
	here, known := e.Zone == s.Zone, s.Incarnation.Known()
	switch {
	case known && !e.Ordered.IsZero() && !e.Ordered.After(s.Incarnation.Created): // it brought the present life, whoever ordered it
		return here && f.shows(s, e)
	case f.isOurs(s, e):
		return f.readOurs(s, e)
	case known && e.Ordered.IsZero(), !known && here:
		return here && f.shows(s, e)
	case !here && s.Condition != evidence.Gone:
		return false // the slice itself is where it was
	}
	return f.begins(s, e)
}

// readOurs records a reading of what a call of Pitstop's has ordered. Where that is lost, its slice came and was lost unseen, or will not come.
func (f *facts) readOurs(s *Slot, e evidence.Read) bool {
	if s.exists() || e.Condition == evidence.Deleting && f.w.Incident == nil { // somebody deletes it
		return false
	}
	news := f.ordersNext(s, e)
	return e.Condition == evidence.Lost && f.shows(s, e) || news
}

// isFormer reports whether a reading is of a life that is over, because a newer one has come. Where that newer one was Pitstop's and is gone,
// an older one elsewhere may be somebody else's, if it is newer than the last life that trained.
func (f *facts) isFormer(s *Slot, e evidence.Read) bool {
	theirs := s.isUndone() && s.Zone != e.Zone && f.w.AdmittedIn(s.Name).Older(e.Incarnation)
	return s.knows(e.Incarnation) || e.Incarnation.Older(s.Incarnation) && !theirs
}

// waitsBehindOurs reports whether a reading shows what somebody else made while an order of Pitstop's waits in another zone: that has to go first.
func (f *facts) waitsBehindOurs(s *Slot, e evidence.Read) bool {
	return !s.Ordered.IsZero() && e.Zone != s.Zone && !f.isOurs(s, e)
}

// isSurplus reports whether a reading shows a second life that a call of Pitstop's has made, while the slice lives elsewhere.
func (f *facts) isSurplus(s *Slot, e evidence.Read) bool {
	return s.lives() && e.Zone != s.Zone && (f.isOurs(s, e) || e.Condition == evidence.Deleting)
}

// firstSeen begins a slot. What exists already had been usable before Pitstop came.
func (f *facts) firstSeen(e evidence.Read) bool {
	if e.Condition == evidence.Gone || e.Condition == evidence.Unread {
		return false
	}
	if f.w.Seen.IsZero() {
		f.w.Seen = f.from.Time
	}
	l := newLife(e)
	if !l.Unused {
		l.Used = e.Incarnation.Created
	}
	f.w.Slices = append(f.w.Slices, Slot{Name: e.Slice, Life: l})
	f.shows(f.w.Slice(e.Slice), e)
	return true
}

func newLife(e evidence.Read) Life {
	l := Life{Incarnation: e.Incarnation, Zone: e.Zone, Facts: e.Facts, Unused: e.Condition == evidence.Creating}
	if hasMachines(e.Condition) {
		l.Standing = e.Incarnation.Created
	}
	return l
}

// lateMargin allows for the difference between the provider's clock and Pitstop's.
const lateMargin = time.Minute

// begins begins another life under the name, as a reading shows it. What was called since it began was about it already.
func (f *facts) begins(s *Slot, e evidence.Read) bool {
	was, next, began := s.Life, newLife(e), orderedAt(e)
	if e.Facts == (evidence.Facts{}) {
		next.Facts = was.Facts
		next.Ends, next.Cause, next.Failed, next.WaitsSince = time.Time{}, "", time.Time{}, time.Time{}
	}
	if f.isOurs(s, e) {
		f.comesOfOurs(s, &next, e)
	} else {
		f.comesOfTheirs(s, &next, e)
	}
	if was.Zone == next.Zone && !was.Released.IsZero() && !was.Released.Before(cmp.Or(e.Incarnation.Created, e.Ordered)) {
		next.Released = was.Released // its name was not free before
	}
	s.Life = next
	if was.Zone == next.Zone && was.exists() { // no two lives have one name in a zone
		if was.Condition == evidence.Ready {
			f.endsRun(0, later(was.Since, began), true)
		}
		was.turnsTo(evidence.Read{Condition: evidence.Gone, State: "gone"}, later(was.Since, began))
		f.stands(&was, was.Since)
	}
	if was.Incarnation.Known() {
		f.keeps(s, was)
	}
	f.w.Told = slices.DeleteFunc(f.w.Told, func(t Told) bool { return t.Slice == s.Name && t.Life != "" && !s.mayBeBack(t.Life) })
	f.countAnew(e.Incarnation.Created)
	return f.shows(s, e)
}

// comesOfOurs records of the next life that a call of Pitstop's made it. An owner's word on the life before counts for this one.
func (f *facts) comesOfOurs(s *Slot, next *Life, e evidence.Read) {
	was, own := s.Life, s.Order
	next.Maker, next.Unused, next.Released = e.Incident, false, was.Released
	s.Order = f.orderOf(s, e.Facts)
	switch {
	case e.Facts.Spec != "":
	case own != (Order{}) && own.Accelerator == e.Facts.Accelerator && own.Capacity == e.Facts.Capacity:
		next.Spec, next.SpecZone = own.Spec, own.SpecZone
	default:
		next.Spec, next.Bare, next.SpecZone = was.Spec, was.Bare, was.SpecZone
	}
}

// comesOfTheirs records of the next life that somebody else made it, or its provider. What people were told of the training before is over with a
// life that its owner has ordered.
func (f *facts) comesOfTheirs(s *Slot, next *Life, e evidence.Read) {
	next.Spec, next.Bare, next.Anew = e.Facts.Spec, e.Facts.Bare, f.isMadeAnew(s, e)
	s.Order = Order{}
	if !next.Anew {
		f.handsOver(orderedAt(e))
		f.w.Told = slices.DeleteFunc(f.w.Told, func(t Told) bool { return t.Of == ToldFailed || t.Of == ToldDoubt })
	}
	f.reorders(e.Facts.Accelerator)
}

// orderOf is the order of its owner's that a slot keeps while it stands in another shape or capacity than that. What stays in its place is always
// as ordered: its provider chooses the machines.
func (f *facts) orderOf(s *Slot, is evidence.Facts) Order {
	switch {
	case is.Accelerator == "":
		return s.Order
	case is.Accelerator == s.ownShape() && is.Capacity == s.ownCapacity(), f.w.provider().staysInPlace:
		return Order{}
	case s.Order != (Order{}):
		return s.Order
	}
	return Order{
		Accelerator: s.Accelerator, Workers: s.Workers, Chips: s.Chips, Capacity: s.Capacity, Spec: s.Spec, SpecZone: cmp.Or(f.w.trainedIn(s), s.Zone),
	}
}

// reorders takes an owner's order for that of every slice that has its shape already: the slices of a Multislice are ordered alike.
func (f *facts) reorders(shape string) {
	for i := range f.w.Slices {
		if s := &f.w.Slices[i]; shape != "" && s.Accelerator == shape && s.ownShape() != shape {
			s.Order = Order{}
		}
	}
}

// isMadeAnew reports whether the provider itself made what a reading shows: in a group that is as old as the life before, or for the object
// that controls both.
func (f *facts) isMadeAnew(s *Slot, e evidence.Read) bool {
	same := s.Group != "" && s.Group == e.Facts.Group && !e.Ordered.IsZero() && !e.Ordered.After(s.Incarnation.Created)
	return same && f.w.provider().remakesSlices || s.Controlled && e.Facts.Controlled
}

// orderedAt is the time of the order in a reading, or the beginning of the life in it.
func orderedAt(e evidence.Read) time.Time { return cmp.Or(e.Ordered, e.Incarnation.Created) }

// isOurs reports whether one of Pitstop's calls made what a reading shows, or ordered it. The label alone is no proof, for anybody can write
// one: the order must be from the time of its incident.
func (f *facts) isOurs(s *Slot, e evidence.Read) bool {
	at := orderedAt(e)
	if !s.Ordered.IsZero() && s.Ordered.Equal(e.Ordered) {
		return true
	}
	if in := f.w.Incident; in != nil && e.Incident == in.ID {
		x := f.w.effect(events.ActionCreate, e.Slice)
		return x != nil && (!x.Begun.IsZero() || x.Attempt > 1) || in.hasMade() && at.After(in.Opened)
	}
	return slices.ContainsFunc(f.w.Made, func(m Making) bool {
		return m.Incident == e.Incident && at.After(m.Opened) && at.Before(m.Closed.Add(lateMargin))
	})
}

// ordersNext records that the queued resource of the next life exists, and has brought nothing yet, or that it waits no more: for every slice that it
// is to bring.
func (f *facts) ordersNext(s *Slot, e evidence.Read) bool {
	known := s.Ordered.Equal(e.Ordered) && s.Zone == e.Zone
	if e.Ordered.IsZero() || known && e.Granted == !s.Granted.IsZero() || known && f.from.Time.Before(s.Granted) {
		return false
	}
	names := []string{s.Name}
	if x := f.w.effect(events.ActionCreate, s.Name); x != nil {
		names = x.all()
	}
	for _, name := range names {
		if l := f.w.life(name); l != nil && !l.exists() {
			l.Ordered, l.Zone, l.Granted = e.Ordered, e.Zone, time.Time{}
			if e.Granted {
				l.Granted = f.from.Time
			}
			if e.Facts.Group != "" {
				l.Group = e.Facts.Group
			}
		}
	}
	return true
}

// shows records what a reading shows of the present life.
func (f *facts) shows(s *Slot, e evidence.Read) bool {
	was := s.Life
	another := f.describes(s, e)
	f.turns(s, e)
	news := []bool{another, f.showsNotice(s, e), f.showsLoss(s), f.showsMaintenance(s, e), f.labelled()}
	if s.Life == was && !slices.Contains(news, true) && !f.isAwaited(s) {
		return false
	}
	if s.Read = f.from.Time; e.Condition == evidence.Gone {
		f.fallsBack(s)
	}
	return true
}

// turns records the condition, and what follows from it. A usable slice that breaks was struck, unless its owner took it over.
func (f *facts) turns(s *Slot, e evidence.Read) {
	l, at, was := &s.Life, f.from.Time, s.Condition
	served := was == evidence.Ready && e.Zone == l.Zone
	worked := served && l.Released.IsZero()
	l.turnsTo(e, at)
	f.stands(l, at)
	if served && l.Condition != evidence.Ready && l.Condition != evidence.Done {
		f.endsRun(0, at, true)
	}
	if e.Condition == evidence.Lost && was != evidence.Lost && was != evidence.Gone { // what is gone had its end before: an order came to nothing
		f.takes(l, at)
	}
	switch e.Condition {
	case evidence.Lost, evidence.Gone, evidence.Unhealthy, evidence.Unclear:
		if worked {
			f.strike(at)
		}
	case evidence.Ready:
		l.Unused = false
		s.disproves(at)
		f.mayRun()
	default:
	}
	if e.Condition == evidence.Gone {
		f.vanishes(s)
	}
	if e.Abuse != s.Suspected && (e.Abuse || e.Condition == evidence.Ready) { // a lost slice may not show it any more
		s.Suspected, s.SuspectedAt = e.Abuse, at
	}
}

// turnsTo records a condition, since when it is so, and since when nothing runs there and nothing brings it back.
func (l *Life) turnsTo(e evidence.Read, at time.Time) {
	over, lost := at, l.Condition == evidence.Lost
	if lost { // nothing has run there since
		over = l.Since
	}
	if l.Condition != e.Condition {
		if l.Condition == evidence.Ready {
			l.Used = l.Since
		}
		l.Condition, l.Since, l.Stop.Unsaid, l.State = e.Condition, at, time.Time{}, e.State
	}
	if l.exists() { // what is gone stays so, whatever a reading calls it
		l.State = e.State
	}
	switch goes := l.Condition == evidence.Deleting && (lost || !l.Over.IsZero()); {
	case !goes && !l.staysAway(at):
		l.Over = time.Time{}
	case l.Over.IsZero():
		l.Over = over
	}
}

// staysAway reports whether nothing brings a life back that is as it is at a time.
func (l *Life) staysAway(at time.Time) bool {
	return l.Condition == evidence.Gone || l.Condition == evidence.Lost && (!l.Heals() || l.endsBy(at))
}

// disproves drops what cannot be true of a life that was usable at that time: a deletion, which was of another life or did not happen, or a
// stop, long before.
func (s *Slot) disproves(at time.Time) {
	if r := s.Released; !r.IsZero() && at.Sub(r) > bounds.UnreleaseAfter {
		s.Released = time.Time{}
	}
	if s.Stop.By != "" && at.Sub(s.Stop.At) > bounds.UnreleaseAfter {
		s.Stop.By, s.Stop.At = "", at
	}
}

// vanishes records that nothing is left of a life. It was a deletion of ours where one was begun; where a new slice trains unasked, only where one
// was called.
func (f *facts) vanishes(s *Slot) {
	x := f.w.effect(events.ActionDelete, s.Name)
	if x == nil || x.Begun.IsZero() {
		s.Ordered, s.Granted = time.Time{}, time.Time{}
		return
	}
	f.withdrawn(s)
	called := func(c view.Call) bool {
		return c.Action == x.Action && x.Concerns(c.Slice) && !c.NotMade && c.Code != reason.NotFound.Code() && !c.At.Before(x.First)
	}
	if !f.w.provider().trainsUnasked || f.w.Incident != nil && slices.ContainsFunc(f.w.Incident.Calls, called) {
		s.EndedBy = f.w.Incident.ID
	}
}

// withdrawn records that an order of Pitstop's is gone, which a deletion of ours has taken from its queue: it waited there in vain, so its place has
// refused. What a clean-up deletes says nothing of its place.
func (f *facts) withdrawn(s *Slot) {
	x, since := f.w.effect(events.ActionCreate, s.Name), s.Ordered
	if x != nil && x.inFlight() && !since.IsZero() && f.w.Incident.Ending == nil {
		f.refused(x, evidence.Failure{Class: reason.Stockout, Message: "it waited in the queue for " + events.Span(f.now.Sub(since)) + ", and was withdrawn"})
	}
	s.Ordered, s.Granted = time.Time{}, time.Time{}
}

// isAwaited reports whether somebody may wait for this very reading, though it shows nothing new: the first one since there was a reason to look,
// since a while after word of a trouble, and since what goes with the slice was lost.
func (f *facts) isAwaited(s *Slot) bool {
	in := f.w.Incident
	waits := func(t time.Time) bool { return s.Read.Before(t) && !f.from.Time.Before(t) }
	if in == nil {
		return false
	}
	return s.Read.IsZero() || f.w.awaits(s.Name, f.from.Time) ||
		slices.ContainsFunc(in.Troubles, func(t Trouble) bool { return t.Slice == s.Name && waits(t.Heard.Add(bounds.SickFor)) }) ||
		slices.ContainsFunc(f.w.group(s.Name), func(name string) bool { return waits(f.w.life(name).Over) })
}
