package incident_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
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

// begin stores an intent, and reports whether the call may be made: one that writes the lease by each delivery.
func (o *world) begin(r events.Request, l evidence.Lease) (effect incident.Effect, mine bool) {
	id, leases := fmt.Sprint(r.Epoch, r.Action, r.Slice, r.Attempt), r.Action == events.ActionAdmit || r.Action == events.ActionRestart
	o.give(evidence.Intended{Origin: o.origin(events.RankReading), Request: r, RequestID: id, Lease: l})
	effect, err := o.w.Fence(r.Pointer(), o.now)
	return effect, err == nil && effect.RequestID == id && (leases || effect.Begun.Equal(o.now))
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

// call makes a call, late or never.
func (o *world) call(do func()) {
	switch {
	case o.chance(10): // the instance dies before the call
	case o.chance(20):
		o.later(o.within(bounds.CallFor), do)
	default:
		do()
	}
}

// recover writes the lease.
func (o *world) recover(e events.RecoveryRequested) {
	for _, a := range e.Admit {
		o.read(a.Slice, a.Incarnation.Zone)
	}
	if o.chance(5) {
		o.answer(e.Request, evidence.Unbegun, &evidence.Failure{Class: reason.Transient, Message: "the lease is not readable"})
		return
	}
	lives := o.named(e.Admit)
	over, said := o.readLease(lives)
	effect, mine := o.begin(e.Request, said)
	switch {
	case !mine:
		return
	case !o.areReady(e.Admit):
		o.answer(e.Request, evidence.Uncalled, &evidence.Failure{Class: reason.NotInState, Code: reason.CodeNotReady})
		return
	case e.Action == events.ActionAdmit:
		o.mayAdmit(lives)
	}
	for _, l := range o.lives { // the worst moment not to see what comes
		if l.trains > 0 && o.chance(30) {
			l.blind = o.now.Add(o.within(30 * time.Minute))
		}
	}
	next := lease{epoch: e.Epoch, incident: e.Incident, attempt: effect.Lease.Attempt, lives: lives}
	o.call(func() { o.write(e.Request, next, over) })
}

// named are the lives that a request names, by their slices.
func (o *world) named(all []events.Admission) map[string]*life {
	lives := map[string]*life{}
	for _, a := range all {
		for _, l := range o.lives {
			if l.slice == a.Slice && l.inc.Same(a.Incarnation) {
				lives[a.Slice] = l
			}
		}
	}
	return lives
}

// readLease is the generation of the lease that stands there, and what it says to the one who is to write one for these lives.
func (o *world) readLease(lives map[string]*life) (over int, said evidence.Lease) {
	at := o.lease
	if at != nil {
		over = at.generation
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
			said.Began = at.began
		}
	}
	return over, said
}

// areReady reports whether the heart knows these lives, and each of them can be used.
func (o *world) areReady(all []events.Admission) bool {
	return !slices.ContainsFunc(all, func(a events.Admission) bool {
		s := slot(o.w, a.Slice)
		return s == nil || !s.Incarnation.Same(a.Incarnation) || s.Condition != evidence.Ready
	})
}

// mayAdmit looks whether these lives may be let in: what a second creation has left goes first.
func (o *world) mayAdmit(lives map[string]*life) {
	for slice, named := range lives {
		for _, l := range o.lives {
			left := l.label != "" && !l.theirs && l.told == 0 && l.shown && l.stands(o.now)
			if l.slice == slice && l != named && left {
				o.breaks("%s is let in before %s is deleted", named.id(), l.id())
			}
		}
	}
}

// write replaces the lease over one generation.
func (o *world) write(r events.Request, next lease, over int) {
	at, stands := o.lease, 0
	if at != nil {
		stands = at.generation
	}
	switch {
	case at != nil && at.epoch == next.epoch && at.attempt == next.attempt && maps.Equal(at.lives, next.lives):
		o.answer(r, "", nil)
		return
	case stands != over:
		o.answer(r, evidence.Uncalled, &evidence.Failure{Class: reason.NotInState, Code: reason.CodeOvertaken})
		return
	}
	f := at.refuses(next)
	if f == nil && at != nil && next.attempt < at.attempt {
		o.breaks("the lease goes back from attempt %d to %d", at.attempt, next.attempt)
	}
	if f == nil {
		o.put(next, "pitstop")
		o.letIn(next.lives)
		o.ours++
	}
	o.answer(r, "", f)
}

// refuses is why a lease is not replaced by another one; nil where it is, or where none stands.
func (l *lease) refuses(next lease) *evidence.Failure {
	switch {
	case l == nil:
		return nil
	case l.foreign:
		return &evidence.Failure{Class: reason.Invalid, Code: reason.CodeForeign}
	case l.wild:
		return &evidence.Failure{Class: reason.Invalid, Code: reason.CodeLeaseDoubted}
	case l.epoch > next.epoch || l.epoch == next.epoch && l.attempt >= next.attempt:
		return &evidence.Failure{Class: reason.Transient, Message: "a newer lease is in place"}
	}
	return nil
}

// letIn looks beside which lives Pitstop has let others in. Those among them that its own calls made are surplus, and never let in themselves.
func (o *world) letIn(lives map[string]*life) {
	for _, l := range lives {
		if l.surplus {
			o.breaks("the lease names %s, which was surplus", l.id())
		}
		for _, s := range o.lives {
			if s.slice != l.slice || s == l {
				continue
			}
			if s.gone.After(o.now) {
				o.risky++
			}
			s.surplus = s.surplus || s.label != "" && !s.theirs && s.dead.After(o.now)
		}
	}
}

// recreate deletes or creates a slice.
func (o *world) recreate(e events.RecreateRequested) {
	if _, mine := o.begin(e.Request, evidence.Lease{}); !mine {
		return
	}
	o.mayRecreate(e)
	o.call(func() {
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
	})
}

// mayRecreate looks whether a call may begin: where no lease keeps two apart, nothing may run under the name of what is created, and nothing
// is deleted that trains as it may.
func (o *world) mayRecreate(e events.RecreateRequested) {
	leased := o.w.Directory != ""
	for _, l := range o.lives {
		if l.slice != e.Slice || !l.stands(o.now) {
			continue
		}
		trains := l.trains > 0 && l.told == l.trains
		if e.Action == events.ActionDelete && l.inc.Same(e.Incarnation) && trains && leased {
			o.breaks("%s is deleted, and trains", l.id())
		}
		if e.Action == events.ActionCreate && l.shown && l.label == "" && !leased {
			o.breaks("%s is created in %s while %s runs, and there is no lease", e.Slice, e.Zone, l.id())
		}
	}
}

func slot(w incident.Workload, name string) *incident.Slot {
	for i := range w.Slices {
		if w.Slices[i].Name == name {
			return &w.Slices[i]
		}
	}
	return nil
}
