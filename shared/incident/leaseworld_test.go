package incident_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// world is what is true: which lives there are, what their crews do, and which lease stands beside the checkpoints. The heart learns of it
// only by evidence.
type world struct {
	*rand.Rand
	now    time.Time
	w      incident.Workload
	policy policy.Policy
	zones  []string
	lives  []*life
	soon   []deed
	// lease is nil where none stands there. Trained says that a crew has left something there.
	lease   *lease
	written int
	ours    int
	risky   int
	trained bool
	beaten  time.Time
	last    map[string]string
	seen    map[string]string
	journal []string
	broken  string
}

// deed is something that happens later.
type deed struct {
	at time.Time
	do func()
}

// lease is the object beside the checkpoints.
type lease struct {
	generation, attempt int
	epoch               int64
	incident            string // empty where a crew has written it
	began               time.Time
	foreign, wild       bool
	lives               map[string]*life
}

func (l *lease) String() string {
	if l == nil {
		return "none"
	}
	var names []string
	for _, slice := range slices.Sorted(maps.Keys(l.lives)) {
		names = append(names, slice+"="+l.lives[slice].id())
	}
	return fmt.Sprintf("epoch %d attempt %d %s foreign %v wild %v", l.epoch, l.attempt, strings.Join(names, " "), l.foreign, l.wild)
}

// life is one TPU with its crew.
type life struct {
	slice, label       string
	inc                events.Incarnation
	ready, booted      time.Time
	dead, gone, called time.Time // nothing runs there any more; the API forgets it; somebody called for its deletion
	blind              time.Time // its crew cannot reach the directory until then
	// trains is the attempt that runs there, with is who trains in it, and over is the last one that is done there.
	trains, over int
	with         []*life
	// seen is the lease that its crew read last, named when one that names it, and since when another one keeps it from training.
	seen    *lease
	named   time.Time
	rival   string
	since   time.Time
	surplus bool
	theirs  bool
	shown   bool
	told    int // the attempt of which the heart was told that it runs there
}

func (l *life) id() string { return l.inc.ID + "@" + l.inc.Zone }

var never = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

func (l *life) alive(now time.Time) bool { return !now.Before(l.booted) && now.Before(l.dead) }

// stands reports whether it runs, and nobody has called for its deletion.
func (l *life) stands(now time.Time) bool { return l.called.IsZero() && now.Before(l.dead) }

// condition is what the API shows.
func (l *life) condition(now time.Time) evidence.Condition {
	switch {
	case !now.Before(l.gone):
		return evidence.Gone
	case !l.called.IsZero() && !now.Before(l.called):
		return evidence.Deleting
	case !now.Before(l.dead):
		return evidence.Lost
	case now.Before(l.ready):
		return evidence.Creating
	}
	return evidence.Ready
}

func (o *world) note(format string, args ...any) {
	o.journal = append(o.journal, o.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (o *world) breaks(format string, args ...any) {
	o.note("BROKEN: "+format, args...)
	if o.broken == "" {
		o.broken = fmt.Sprintf(format, args...)
	}
}

func (o *world) chance(percent int) bool { return o.IntN(100) < percent }

func (o *world) within(d time.Duration) time.Duration { return time.Duration(o.Int64N(int64(d))) }

func (o *world) later(d time.Duration, do func()) {
	o.soon = append(o.soon, deed{o.now.Add(d), do})
}

// give has the heart learn something.
func (o *world) give(e evidence.Evidence) (changed bool) {
	var out []events.Event
	before := ""
	if in := o.w.Incident; in != nil {
		before = string(in.Status.Label)
	}
	o.w, out, changed = incident.Advance(o.policy, o.w, e, o.now)
	for _, e := range out {
		if r, is := e.(interface{ Header() events.Request }); is {
			o.note("asked: %s %s", r.Header().Action, r.Header().Slice)
			o.deliver(e)
		} else {
			o.note("closed: %s %s", o.w.Closed.Ending.Outcome, o.w.Closed.Ending.Reason)
			for _, l := range o.lives { // what lacks only its admission is left to a person
				l.theirs = l.theirs || l.label == o.w.Closed.ID && o.w.Closed.Ending.Outcome == view.Escalated
			}
		}
	}
	if in := o.w.Incident; in != nil && string(in.Status.Label) != before {
		o.note("stands as %s", in.Status.Label)
	}
	if changed {
		o.noteSlices()
	}
	return changed
}

// noteSlices notes what the heart knows of each slice, where that has changed.
func (o *world) noteSlices() {
	for _, s := range o.w.Slices {
		text := fmt.Sprintf("%s is %s %s %q", s.Name, s.Incarnation, s.Condition, s.Maker)
		for _, l := range s.Former {
			text += fmt.Sprintf(" after %s %s %q", l.Incarnation, l.Condition, l.Maker)
		}
		if o.last[s.Name] != text {
			o.last[s.Name] = text
			o.note("  %s", text)
		}
	}
}

func (o *world) origin(rank events.Rank) evidence.Origin {
	return evidence.Origin{ID: fmt.Sprint("e", len(o.journal)), Time: o.now, Rank: rank}
}

// make begins a life.
func (o *world) make(slice, zone, label string) *life {
	l := &life{slice: slice, label: label, dead: never, gone: never}
	l.inc = events.Incarnation{Zone: zone, ID: fmt.Sprint(slice, len(o.lives)), Created: o.now}
	l.ready = o.now.Add(o.within(10 * time.Minute))
	l.booted = l.ready.Add(o.within(2 * time.Minute))
	if o.chance(15) { // a late crew
		l.booted = l.ready.Add(o.within(time.Hour))
	}
	o.lives = append(o.lives, l)
	return l
}

// delete ends a life: what trains there ends within the time of a take-over, and the API forgets it later.
func (o *world) delete(l *life) {
	if l.called.IsZero() {
		l.called = o.now
		if l.dead.After(o.now) {
			l.dead = o.now.Add(o.within(bounds.TakeOverFor - time.Minute))
		}
		l.gone = l.dead.Add(o.within(20 * time.Minute))
	}
}

// at is the life of a slice that the API shows in a zone.
func (o *world) at(slice, zone string) *life {
	for _, l := range o.lives {
		if l.slice == slice && l.inc.Zone == zone && o.now.Before(l.gone) {
			return l
		}
	}
	return nil
}

// looks has patrol read a slice in a zone: mostly only what has changed.
func (o *world) looks(slice, zone string) {
	now := "gone"
	if l := o.at(slice, zone); l != nil {
		now = l.id() + string(l.condition(o.now))
	}
	if at := slice + "@" + zone; o.seen[at] != now || o.chance(20) {
		o.seen[at] = now
		o.read(slice, zone)
	}
}

// read has the API read a slice in a zone.
func (o *world) read(slice, zone string) {
	e := evidence.Read{Origin: o.origin(events.RankReading), Slice: slice, Zone: zone, Condition: evidence.Gone, State: "gone"}
	if l := o.at(slice, zone); l != nil {
		l.shown = true
		e.Condition, e.Incarnation, e.Incident = l.condition(o.now), l.inc, l.label
		e.State = string(e.Condition)
		e.Facts = evidence.Facts{Workers: 4, Chips: 16, Spec: "s", Label: "everything", Capacity: events.Spot}
		if o.w.Directory != "" || len(o.w.Slices) == 0 {
			e.Directory = o.w.Directory
		}
	}
	o.give(e)
}

// pass lets time pass.
func (o *world) pass(d time.Duration) {
	const beat = 30 * time.Second
	for end := o.now.Add(d); o.now.Before(end) && o.broken == ""; o.now = o.now.Add(beat) {
		for i := 0; i < len(o.soon); i++ {
			if t := o.soon[i]; !t.at.After(o.now) {
				o.soon = slices.Delete(o.soon, i, i+1)
				t.do()
				i = -1
			}
		}
		for _, i := range o.Perm(len(o.lives)) {
			o.crew(o.lives[i])
		}
		o.check()
	}
}

// check looks whether two train where one may.
func (o *world) check() {
	if o.w.Directory == "" {
		return
	}
	attempts := map[int]bool{}
	for i, l := range o.lives {
		if l.trains == 0 {
			continue
		}
		for _, m := range o.lives[:i] {
			if m.slice == l.slice && m.trains != 0 {
				o.breaks("two lives of a slice train: %s and %s; lease %s", m.id(), l.id(), o.lease)
			}
		}
		if !slices.ContainsFunc(l.with, func(m *life) bool { return m.trains != l.trains }) {
			attempts[l.trains] = true
		}
	}
	if len(attempts) > 1 {
		o.breaks("two attempts write: %v", slices.Sorted(maps.Keys(attempts)))
	}
}
