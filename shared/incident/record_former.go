package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// maxFormer is how many lives before the present one are kept: entries that concern them come late, and training may still run there.
const maxFormer = 2

// keeps keeps a life that is not the present one. Of too many, the oldest goes in which nothing runs.
func (f *facts) keeps(s *Slot, l Life) {
	l.Ordered = time.Time{}
	s.Former = append(s.Former, l)
	for i := range s.Former {
		if o := &s.Former[i]; o.Zone == s.Zone && o.Condition != evidence.Gone { // only one lives in a zone at a time
			o.Condition, o.Since = evidence.Gone, later(o.Since, s.Incarnation.Created)
			f.stands(o, o.Since)
		}
		s.Former[i].forgetDetails()
	}
	over := slices.IndexFunc(s.Former, func(l Life) bool { return l.isOver() })
	if n := len(s.Former); n > maxFormer && over >= 0 || n > 2*maxFormer {
		f.w.spends(s.Former[max(0, over)].ran(f.from.Time))
		s.Former = slices.Delete(s.Former, max(0, over), max(0, over)+1)
	}
}

// forgetDetails forgets of a life before the present one that is gone how it was ordered and what prepared for its end: nobody makes it again.
func (l *Life) forgetDetails() {
	if l.Condition == evidence.Gone {
		*l = Life{
			Incarnation: l.Incarnation, Zone: l.Zone, Hosts: l.Hosts, HostsTold: l.HostsTold, Condition: l.Condition, Since: l.Since, Used: l.Used,
			Over: l.Over, Spoke: l.Spoke, Maker: l.Maker, EndedBy: l.EndedBy, Released: l.Released,
			Facts: evidence.Facts{Accelerator: l.Accelerator, Workers: l.Workers, Chips: l.Chips, Capacity: l.Capacity, Healing: l.Healing},
		}
	}
}

// readFormer records what became of a life before the present one: training may still run there, whatever the answer to a call said.
func (f *facts) readFormer(s *Slot, e evidence.Read) bool {
	l := s.find(func(l *Life) bool {
		about := e.Condition == evidence.Gone && e.Zone == l.Zone || e.Incarnation.Same(l.Incarnation)
		return l.Zone != s.Zone && about && l.Condition != e.Condition && !f.from.Time.Before(l.Since) // what was where the present one is, is over
	})
	if l != nil {
		if e.Facts != (evidence.Facts{}) {
			l.Facts = e.Facts
		}
		l.turnsTo(e, f.from.Time)
		f.stands(l, f.from.Time)
		l.forgetDetails()
	}
	return l != nil
}

// fallsBack makes another life the present one, where that is gone and the other is still there: an earlier one, or a second one that the same
// incident has made.
func (f *facts) fallsBack(s *Slot) {
	l := s.find(func(l *Life) bool {
		return (l.Maker == "" || l.Maker == s.Maker) && l.Released.IsZero() && l.exists() && !l.isOver()
	})
	if l != nil && s.Ordered.IsZero() {
		s.Order = f.orderOf(s, l.Facts)
		s.Life, *l = *l, s.Life
		l.forgetDetails()
	}
}

// readAnother records a life that stands beside the present one, or has outlived it: an older one, or a second one that a call of ours has
// made, which has to go before anybody is let in.
func (f *facts) readAnother(s *Slot, e evidence.Read) bool {
	if !e.Incarnation.Known() || e.Zone == s.Zone || s.knows(e.Incarnation) || s.isUndone() {
		return false
	}
	l := newLife(e)
	l.Condition, l.State, l.Since = e.Condition, e.State, f.from.Time
	switch stands := s.exists() && !s.isOver() && s.Condition != evidence.Deleting; {
	case l.isOver():
		return false
	case !f.isOurs(s, e):
		if !e.Incarnation.Older(s.Incarnation) {
			return false
		}
	case stands:
		l.Maker, l.Unused = e.Incident, false
	default:
		return false
	}
	f.keeps(s, l)
	if s.Condition == evidence.Gone {
		f.fallsBack(s)
	}
	return true
}

// isUndone reports whether a call of Pitstop's ended the present life.
func (l *Life) isUndone() bool { return l.Condition == evidence.Gone && l.EndedBy != "" }

// mayBeBack reports whether a life with that ID of the provider is the present one, or may be so again.
func (s *Slot) mayBeBack(id string) bool {
	return s.find(func(l *Life) bool { return l.Incarnation.ID == id && (l == &s.Life || l.exists()) }) != nil
}

// knows reports whether a slot remembers a life.
func (s *Slot) knows(life events.Incarnation) bool {
	return s.find(func(l *Life) bool { return l.Incarnation.Same(life) }) != nil
}

// remembered is the life of a slice with that ID of the provider, or nil.
func (w *Workload) remembered(slice, id string) *Life {
	if s := w.Slice(slice); s != nil {
		return s.find(func(l *Life) bool { return l.Incarnation.ID == id })
	}
	return nil
}

// lifeOf is the life that an effect is about, present or former; nil where it is not remembered.
func (w *Workload) lifeOf(x *Effect) *Life {
	if s := w.Slice(x.Slice); s != nil {
		return s.find(func(l *Life) bool { return l.Incarnation.Same(x.Life) })
	}
	return nil
}
