package heart_test

import (
	"fmt"
	"maps"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/heart"
	"pitstop.internal/shared/reason"
)

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
