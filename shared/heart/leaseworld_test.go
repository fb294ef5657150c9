package heart_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/heart"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// world is what is true: which lives there are, what their crews do, and which lease stands beside the checkpoints. The heart learns of it
// only by evidence.
type world struct {
	*rand.Rand
	now    time.Time
	w      heart.Workload
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
	incident            string
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
	o.w, out, changed = heart.Advance(o.policy, o.w, e, o.now)
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
	for _, s := range o.w.Slices {
		if !changed {
			break
		}
		text := fmt.Sprintf("%s is %s %s %q", s.Name, s.Incarnation, s.Condition, s.Maker)
		for _, l := range s.Former {
			text += fmt.Sprintf(" after %s %s %q", l.Incarnation, l.Condition, l.Maker)
		}
		if o.last[s.Name] != text {
			o.last[s.Name] = text
			o.note("  %s", text)
		}
	}
	return changed
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
		e.Facts = evidence.Facts{Workers: 4, Chips: 16, Spec: "s", Label: "everything", Reclaimable: true}
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

// crew is what the crew of a life does in a moment; see scripts/pitcrew/crew/lease.go.
func (o *world) crew(l *life) {
	const unread = 5 * time.Minute
	stale := l.trains > 0 && o.now.Sub(l.named) >= unread
	switch {
	case !l.alive(o.now), stale:
		l.trains = 0
		if !l.alive(o.now) {
			return
		}
	}
	if o.now.Before(l.blind) || o.lease != nil && o.lease.wild {
		return
	}
	switch at := o.lease; {
	case at == nil:
		o.unleased(l)
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
		next.epoch, next.incident, next.attempt = last.epoch, last.incident, last.attempt+1
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
	next.generation = o.written
	o.lease, o.trained = &next, true
	o.note("lease: %s, by %s", &next, by)
	for _, l := range next.lives {
		if l.surplus && by == "pitstop" {
			o.breaks("the lease names %s, which was surplus", l.id())
		}
		for _, s := range o.lives {
			if s.slice == l.slice && s != l && s.gone.After(o.now) && by == "pitstop" {
				o.risky++
			}
			if s.slice == l.slice && s != l && s.label != "" && !s.theirs && s.dead.After(o.now) && by == "pitstop" {
				s.surplus = true
			}
		}
	}
}

// unleased is what a crew does where no lease stands.
func (o *world) unleased(l *life) {
	switch {
	case !o.trained: // a first start, of all slices together
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
	case l.seen != nil && l.seen.lives[l.slice] == l && o.now.Sub(l.named) < 5*time.Minute:
		o.put(*l.seen, "the crew that it named, again: "+l.id())
	case l.seen != nil && l.seen.epoch > 0 && l.seen.lives[l.slice] == nil:
	case o.waited(l, "none"):
		last := l.seen
		if last == nil {
			last = &lease{attempt: o.written}
		}
		o.takeOver(l, last)
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

// deliver carries a request to its function: later, twice, or never.
func (o *world) deliver(e events.Event) {
	if o.chance(10) {
		return
	}
	o.later(o.within([]time.Duration{10 * time.Second, 4 * time.Minute}[o.IntN(2)]), func() { o.act(e) })
	if o.chance(10) {
		o.later(o.within(12*time.Minute), func() { o.act(e) })
	}
}

// act is what a function does with a request; see functions/recovery and functions/recreate.
func (o *world) act(e events.Event) {
	r := e.(interface{ Header() events.Request }).Header() //nolint:forcetypeassert // only requests are delivered
	if _, err := o.w.Fence(r.Pointer(), o.now); err != nil {
		return
	}
	switch r.Action {
	case events.ActionAdmit, events.ActionRestart:
		o.recover(e.(events.RecoveryRequested)) //nolint:forcetypeassert // it is one
	case events.ActionDelete, events.ActionCreate:
		o.recreate(e.(events.RecreateRequested)) //nolint:forcetypeassert // it is one
	case events.ActionHear:
		o.hear(r)
	case events.ActionVerify:
		o.give(evidence.Checked{Origin: o.origin(events.RankReading), Request: r, Text: "none"})
	case events.ActionSave, events.ActionMaintain, events.ActionStart:
		o.give(evidence.Answered{Origin: o.origin(events.RankReading), Request: r})
	}
}

func (o *world) hear(r events.Request) {
	v := evidence.VerdictRead{Origin: o.origin(events.RankReading), Request: r}
	if at := o.lease; at != nil && !at.foreign && !at.wild {
		v.Attempt = at.attempt
		for slice, l := range at.lives {
			if l.over == at.attempt {
				v.Verdict = &events.CrewVerdict{Attempt: at.attempt, Life: events.Admission{Slice: slice, Incarnation: l.inc}, Ended: o.now}
			}
		}
	}
	o.give(v)
}

// begin stores an intent, and reports whether the call may be made.
func (o *world) begin(r events.Request, l evidence.Lease) (effect heart.Effect, mine bool) {
	id := fmt.Sprint(r.Epoch, r.Action, r.Slice, r.Attempt, len(o.journal))
	o.give(evidence.Intended{Origin: o.origin(events.RankReading), Request: r, RequestID: id, Lease: l})
	effect, err := o.w.Fence(r.Pointer(), o.now)
	return effect, err == nil && effect.RequestID == id && effect.Begun.Equal(o.now)
}

func (o *world) answer(r events.Request, no evidence.NoCall, f *evidence.Failure) {
	if o.chance(20) {
		return // the answer is lost
	}
	if f == nil && o.chance(20) {
		f = &evidence.Failure{Class: reason.Transient, Message: "no answer"}
	}
	o.give(evidence.Answered{Origin: o.origin(events.RankReading), Request: r, NoCall: no, Failure: f})
}

// recover writes the lease.
func (o *world) recover(e events.RecoveryRequested) {
	for _, a := range e.Admit {
		o.read(a.Slice, a.Incarnation.Zone)
	}
	at, over, said := o.lease, 0, evidence.Lease{}
	if at != nil {
		over = at.generation
	}
	lives := map[string]*life{}
	for _, a := range e.Admit {
		for _, l := range o.lives {
			if l.slice == a.Slice && l.inc.Same(a.Incarnation) {
				lives[a.Slice] = l
			}
		}
	}
	switch {
	case at == nil, at.wild:
		said.Left = o.written
	case !at.foreign:
		said.Attempt, said.Names = at.attempt, maps.Equal(at.lives, lives)
		for slice, l := range at.lives {
			said.Lives = append(said.Lives, events.Admission{Slice: slice, Incarnation: l.inc})
		}
		if said.Incident = at.incident; at.incident == "" {
			said.Began = o.now
		}
	}
	effect, mine := o.begin(e.Request, said)
	if !mine {
		return
	}
	for _, a := range e.Admit {
		s := slot(o.w, a.Slice)
		if s == nil || !s.Incarnation.Same(a.Incarnation) || s.Condition != evidence.Ready {
			o.answer(e.Request, evidence.Uncalled, &evidence.Failure{Class: reason.NotInState, Code: reason.CodeNotReady})
			return
		}
	}
	for slice, named := range lives { // what a second creation has left goes first
		for _, l := range o.lives {
			stands := l.shown && l.dead.After(o.now) && l.called.IsZero()
			if l.slice == slice && l != named && l.label != "" && !l.theirs && l.told == 0 && stands && e.Action == events.ActionAdmit {
				o.breaks("%s is let in before %s is deleted", named.id(), l.id())
			}
		}
	}
	for _, l := range o.lives { // the worst moment not to see what comes
		if l.trains > 0 && o.chance(30) {
			l.blind = o.now.Add(o.within(30 * time.Minute))
		}
	}
	next := lease{epoch: e.Epoch, incident: e.Incident, attempt: effect.Lease.Attempt, lives: lives}
	write := func() { o.write(e.Request, next, over) }
	switch {
	case o.chance(10): // the instance dies before the call
	case o.chance(20):
		o.later(o.within(bounds.CallFor), write)
	default:
		write()
	}
}

// write replaces the lease over one generation.
func (o *world) write(r events.Request, next lease, over int) {
	var f *evidence.Failure
	switch at := o.lease; {
	case at == nil && over == 0:
	case at != nil && at.epoch == next.epoch && at.attempt == next.attempt && maps.Equal(at.lives, next.lives):
		o.answer(r, "", nil)
		return
	case at == nil, at.generation != over:
		o.answer(r, evidence.Uncalled, &evidence.Failure{Class: reason.NotInState, Code: reason.CodeOvertaken})
		return
	case at.foreign:
		f = &evidence.Failure{Class: reason.Invalid, Code: reason.CodeForeign}
	case at.wild:
		f = &evidence.Failure{Class: reason.Invalid, Code: reason.CodeLeaseDoubted}
	case at.epoch > next.epoch || at.epoch == next.epoch && at.attempt >= next.attempt:
		f = &evidence.Failure{Class: reason.Transient, Message: "a newer lease is in place"}
	}
	if f == nil {
		o.put(next, "pitstop")
		o.ours++
	}
	o.answer(r, "", f)
}

// recreate deletes or creates a slice.
func (o *world) recreate(e events.RecreateRequested) {
	if _, mine := o.begin(e.Request, evidence.Lease{}); !mine {
		return
	}
	o.mayRecreate(e)
	call := func() {
		at := o.at(e.Slice, e.Zone)
		var f *evidence.Failure
		switch {
		case e.Action == events.ActionDelete && (at == nil || !at.inc.Same(e.Incarnation)):
			f = &evidence.Failure{Class: reason.NotFound}
		case e.Action == events.ActionDelete:
			o.note("pitstop deletes %s", at.id())
			o.delete(at)
		case at != nil:
			f = &evidence.Failure{Class: reason.Exists}
		case o.chance(30):
			if f = (&evidence.Failure{Class: reason.Stockout}); o.chance(30) { // and it comes all the same
				o.note("pitstop creates %s, unawares", o.make(e.Slice, e.Zone, e.Incident).id())
			}
		default:
			o.note("pitstop creates %s", o.make(e.Slice, e.Zone, e.Incident).id())
		}
		o.answer(e.Request, "", f)
	}
	switch {
	case o.chance(10):
	case o.chance(20):
		o.later(o.within(bounds.CallFor), call)
	default:
		call()
	}
}

// mayRecreate looks whether a call may begin: where no lease keeps two apart, nothing may run under the name of what is created, and nothing
// is deleted that trains as it may.
func (o *world) mayRecreate(e events.RecreateRequested) {
	for _, l := range o.lives {
		switch {
		case l.slice != e.Slice || !l.dead.After(o.now) || !l.called.IsZero():
		case e.Action == events.ActionDelete && l.inc.Same(e.Incarnation) && l.trains > 0 && l.told == l.trains && o.w.Directory != "":
			o.breaks("%s is deleted, and trains", l.id())
		case e.Action == events.ActionCreate && l.shown && l.label == "" && o.w.Directory == "":
			o.breaks("%s is created in %s while %s runs, and there is no lease", e.Slice, e.Zone, l.id())
		}
	}
}

func slot(w heart.Workload, name string) *heart.Slot {
	for i := range w.Slices {
		if w.Slices[i].Name == name {
			return &w.Slices[i]
		}
	}
	return nil
}
