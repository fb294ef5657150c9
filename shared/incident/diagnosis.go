package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
)

// diagnosis is what the rules see: the policy, the facts, the time, and a diagnosis of each slot. It is made anew in each step, and never
// stored. No rule writes through it.
type diagnosis struct {
	p     policy.Policy
	w     *Workload
	in    *Incident
	now   time.Time
	slots []slot
}

// slot is a slot with its diagnosis.
type slot struct {
	*Slot
	situation situation
	// healsBy is until when its provider may bring it back, or make what we ordered usable; see healedBy. It is zero for what does not heal.
	// Replace says that it is to be made again.
	healsBy time.Time
	replace bool
	// create and delete are what is wanted or under way for it, alone or with others.
	create, delete *Effect
}

// situation is how a slot stands.
type situation string

const (
	serving  situation = "serving"
	sick     situation = "sick"     // it exists, and cannot be used
	stopped  situation = "stopped"  // somebody stopped it
	lost     situation = "lost"     // nothing runs there any more, and that is proven
	vanished situation = "vanished" // it is gone, and nobody has said why
	coming   situation = "coming"   // a creation of ours brings it
	moving   situation = "moving"   // somebody else creates or deletes it
	awaited  situation = "awaited"  // its owner has ordered it, and it was never usable
	finished situation = "finished" // its provider calls its work done
	foreign  situation = "foreign"  // it is left to its owner
)

// diagnose looks at the facts at one moment.
func diagnose(p policy.Policy, w *Workload, now time.Time) *diagnosis {
	d := &diagnosis{p: p, w: w, in: w.Incident, now: now, slots: make([]slot, len(w.Slices))}
	for i := range w.Slices {
		d.slots[i].Slot = &w.Slices[i]
	}
	for i := range w.Effects {
		d.finds(&w.Effects[i])
	}
	for i := range d.slots {
		s := &d.slots[i]
		s.situation = d.situationOf(s)
		if d.heals(s) {
			s.healsBy = d.healedBy(s)
		}
		s.replace = d.isToReplace(s)
	}
	for i := range d.slots { // a group goes and comes as a whole
		if s := &d.slots[i]; s.is(lost) && s.replace && s.Group != "" {
			for _, name := range w.group(s.Name) {
				d.slot(name).replace = true
			}
		}
	}
	return d
}

// finds notes an effect with the slots that it creates or deletes.
func (d *diagnosis) finds(x *Effect) {
	if !x.exclusive() || x.Dropped() {
		return
	}
	for _, name := range x.all() {
		switch s := d.slot(name); {
		case s == nil:
		case x.Action == events.ActionCreate:
			s.create = cmp.Or(s.create, x)
		default:
			s.delete = cmp.Or(s.delete, x)
		}
	}
}

// effect is the effect of a want; nil where it has none yet.
func (d *diagnosis) effect(w Want) *Effect {
	switch s := d.slot(w.Slice); {
	case s != nil && w.Action == events.ActionCreate:
		return s.create
	case s != nil && w.Action == events.ActionDelete:
		return s.delete
	}
	return d.w.effect(w.Action, w.Slice)
}

// is reports whether a slot stands in one of these situations.
func (s *slot) is(some ...situation) bool { return slices.Contains(some, s.situation) }

// situationOf finds how a slot stands.
func (d *diagnosis) situationOf(s *slot) situation {
	switch {
	case d.isLeftToOwner(s.Slot):
		return foreign
	case d.isGoing(s):
		return lost
	}
	switch s.Condition {
	case evidence.Ready:
		return serving
	case evidence.Done:
		return finished
	case evidence.Lost:
		return lost
	case evidence.Gone, evidence.Unread:
		return d.goneAs(s)
	case evidence.Unhealthy, evidence.Unclear:
		if d.madeBy(s.Slot) && !d.over(d.healedBy(s)) {
			return coming
		}
		return sick
	case evidence.Stopped:
		return stopped
	case evidence.Creating:
		return d.madeAs(s)
	default:
	}
	return moving
}

// madeAs tells by whom what is being made is made.
func (d *diagnosis) madeAs(s *slot) situation {
	switch {
	case d.madeBy(s.Slot), s.isCreated(): // its crew may have taken the lease over by now
		return coming
	case s.Unused:
		return awaited
	}
	return moving
}

// isCreated reports whether a creation of a slot may still do its work.
func (s *slot) isCreated() bool { return s.create != nil && s.create.inFlight() }

// isGoing reports whether a deletion of ours is wanted of what is being deleted, or may still do its work, whatever a reading shows.
func (d *diagnosis) isGoing(s *slot) bool {
	x := s.delete
	return x != nil && d.w.lifeOf(x) == &s.Life && s.exists() && (s.Condition == evidence.Deleting || d.w.mayAct(x))
}

// goneAs tells what is lost from what is gone for an unknown reason, and from what is to come.
func (d *diagnosis) goneAs(s *slot) situation {
	switch {
	case !s.Ordered.IsZero(), s.isCreated():
		return coming
	case s.EndedBy != "", s.Maker != "", s.endedAsPlanned(), !s.Stop.Unsaid.IsZero():
		return lost
	case d.in.lost(s.Name, s.Incarnation, s.usable()) && !d.w.provider().trainsUnasked:
		return lost // where a new slice trains unasked, its owner may have deleted it after the loss, and the log is asked
	}
	return vanished
}

// heals reports whether the provider may bring a slot back by itself, or is making usable what we ordered.
func (d *diagnosis) heals(s *slot) bool {
	switch {
	case s.is(lost):
		return s.Condition == evidence.Lost && !s.staysAway(d.now)
	case s.is(coming):
		return s.exists() && s.Condition != evidence.Creating // what is being created has the time of a creation
	}
	return s.is(sick, stopped, moving, awaited)
}

// healFor is how long the provider has to bring a slot back: the one place that says so.
func (*diagnosis) healFor() time.Duration { return bounds.HealFor }

// healedBy is until when a slot has to be healed that can heal: the one place that says from when its time counts.
func (d *diagnosis) healedBy(s *slot) time.Time {
	since := s.Since
	if d.in != nil && s.Condition != evidence.Lost && !(s.is(sick) && d.isRetried()) { // a person wants what is sick to be replaced
		since = later(since, d.in.Opened)
	}
	if s.Condition == evidence.Unhealthy && s.Notice.Status == events.NoticeOngoing {
		since = later(since, s.Notice.windowEnd())
	}
	return d.by(since, d.healFor())
}

// isToReplace reports whether a slot is to be made again: it is being made, it cannot heal, or it has not healed in time. What trains though the
// API calls it sick is kept.
func (d *diagnosis) isToReplace(s *slot) bool {
	switch {
	case s.is(coming):
		return true
	case s.is(lost):
		return s.healsBy.IsZero() || d.over(s.healsBy)
	}
	return s.is(sick) && d.over(s.healsBy) && !d.trainsSince(s.Since)
}

// isLeftToOwner reports whether Pitstop leaves a life to its owner: what they deleted or took over, and what they ordered in vain.
func (d *diagnosis) isLeftToOwner(s *Slot) bool {
	return (!s.Released.IsZero() || s.isInVain(d.in)) && s.Condition != evidence.Ready
}

// madeBy reports whether the open incident made a life, or somebody else did in the place of one that it has just deleted.
func (d *diagnosis) madeBy(s *Slot) bool {
	return d.in != nil && (s.Maker == d.in.ID || d.answersOurs(s))
}

func (d *diagnosis) slot(name string) *slot {
	for i := range d.slots {
		if d.slots[i].Name == name {
			return &d.slots[i]
		}
	}
	return nil
}

// all are all slots.
func (d *diagnosis) all() []*slot { return d.those(func(*slot) bool { return true }) }

// those are the slots that are so.
func (d *diagnosis) those(are func(*slot) bool) (all []*slot) {
	for i := range d.slots {
		if s := &d.slots[i]; are(s) {
			all = append(all, s)
		}
	}
	return all
}

// firstOf is what is found for the first of the slots for which something is found; nil for none.
func firstOf[T any](all []*slot, find func(*slot) *T) *T {
	for _, s := range all {
		if found := find(s); found != nil {
			return found
		}
	}
	return nil
}

// inAny are the slots in one of these situations.
func (d *diagnosis) inAny(some ...situation) []*slot {
	return d.those(func(s *slot) bool { return s.is(some...) })
}

// whole reports whether every slice that somebody waits for can be used.
func (d *diagnosis) whole() bool {
	return len(d.those(func(s *slot) bool { return !s.is(serving, foreign, finished) })) == 0
}

// lastTrouble is when the last thing went wrong that has happened.
func (d *diagnosis) lastTrouble() time.Time { return d.in.lastTrouble() }

// wantedSince is when the first call of a kind was wanted, or now.
func (d *diagnosis) wantedSince(a events.Action) time.Time { return d.w.wantedSince(a, d.now) }

// told reports whether people were told something of a life since a time.
func (d *diagnosis) told(of Topic, slice, life string, since time.Time) bool {
	return slices.ContainsFunc(d.w.Told, func(t Told) bool { return t.Of == of && t.Slice == slice && t.Life == life && !t.At.Before(since) })
}
