package incident_test

import (
	"strconv"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
)

// unread is for how long a crew trains on by the lease that it read last.
const unread = 5 * time.Minute

// crew is what the crew of a life does in a moment; see scripts/pitcrew/crew/lease.go.
func (o *world) crew(l *life) {
	if stale := o.now.Sub(l.named) >= unread; stale || !l.alive(o.now) {
		l.trains = 0
	}
	if !l.alive(o.now) || o.now.Before(l.blind) {
		return
	}
	switch at := o.lease; {
	case at == nil:
		o.unleased(l)
	case at.wild:
	case at.foreign:
		l.trains, l.rival = 0, ""
	case at.lives[l.slice] == l:
		o.led(l)
	default:
		l.trains, l.seen = 0, at
		named := at.lives[l.slice]
		waited := o.waited(l, strconv.Itoa(at.generation))
		if succeeds := at.epoch == 0 || named != nil && named.inc.Zone == l.inc.Zone; succeeds && waited {
			o.takeOver(l, at)
		}
	}
}

// led has a crew train by the lease that names its life.
func (o *world) led(l *life) {
	at := o.lease
	l.seen, l.named, l.rival = at, o.now, ""
	if at.epoch == 0 {
		o.beaten = o.now
	}
	if l.trains != 0 && l.trains != at.attempt {
		l.trains = 0
		return
	}
	if l.trains != 0 || at.attempt <= l.over {
		return
	}
	var with []*life
	for _, m := range at.lives { // all begin together
		if !m.alive(o.now) || m.seen != at || m.trains != 0 && m.trains != at.attempt {
			return
		}
		with = append(with, m)
	}
	l.trains, l.with, o.trained = at.attempt, with, true
	if o.chance(80) {
		o.later(o.within(5*time.Minute), func() { o.report(l, events.ReportStarted, at.attempt) })
	}
}

// waited reports whether the same thing has kept a crew from the lease for long enough.
func (o *world) waited(l *life, rival string) bool {
	if rival += " " + strconv.FormatInt(o.beaten.Unix(), 10); rival != l.rival {
		l.rival, l.since = rival, o.now
	}
	return o.now.Sub(l.since) >= bounds.TakeOverFor
}

// takeOver has a crew put itself into the place of the one that a lease names.
func (o *world) takeOver(l *life, last *lease) {
	next := lease{attempt: 1, lives: map[string]*life{l.slice: l}}
	if last != nil {
		next.epoch, next.attempt = last.epoch, last.attempt+1
		for slice, m := range last.lives {
			if slice != l.slice {
				next.lives[slice] = m
			}
		}
	}
	o.put(next, "the crew of "+l.id())
}

func (o *world) put(next lease, by string) {
	o.written++
	next.generation, next.began = o.written, o.now
	o.lease, o.trained = &next, true
	o.note("lease: %s, by %s", &next, by)
}

// unleased is what a crew does where no lease stands.
func (o *world) unleased(l *life) {
	last := l.seen
	switch {
	case !o.trained:
		o.startFirst(l)
	case last != nil && last.lives[l.slice] == l && o.now.Sub(l.named) < unread:
		o.put(*last, "the crew that it named, again: "+l.id())
	case last != nil && last.epoch > 0 && last.lives[l.slice] == nil:
	case !o.waited(l, "none"):
	case last == nil:
		o.takeOver(l, &lease{attempt: o.written})
	default:
		o.takeOver(l, last)
	}
}

// startFirst has a crew begin what nobody has begun before, together with those of all slices.
func (o *world) startFirst(l *life) {
	first := lease{attempt: 1, lives: map[string]*life{}}
	for _, s := range o.w.Slices {
		for _, m := range o.lives {
			if m.slice == s.Name && m.alive(o.now) && !o.now.Before(m.blind) {
				first.lives[s.Name] = m
			}
		}
	}
	if len(first.lives) == len(o.w.Slices) && first.lives[l.slice] == l {
		o.put(first, "a first start")
	}
}
