package recovery

import (
	"context"
	"errors"
	"fmt"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
)

// Provider is the part of a provider that this function calls.
type Provider interface {
	Read(ctx context.Context, r provider.Ref) (provider.Slice, error)
	Start(ctx context.Context, r provider.Ref) (operation string, err error)
}

// Deps are the function's dependencies.
type Deps struct {
	Fleet    *fleet.Fleet
	Provider Provider
	Store    checkpoint.Store
}

// New returns the function over its dependencies.
func New(d Deps) trigger.Handle {
	return trigger.Chain(decode, acting(d))
}

// acting carries out the requests that are current.
func acting(d Deps) func(context.Context, events.Received) error {
	return fleet.Acting(d.Fleet, handler(d).handle)
}

type handler Deps

var decode = fleet.DecodeRequest[events.RecoveryRequested]("recovery")

// handle writes into the lease where training may run and which attempt is next. That is enough: the crews read the lease,
// and only they start a training. A stopped slice is started first.
func (h handler) handle(ctx context.Context, w incident.Workload, r events.RecoveryRequested) error {
	if r.Action == events.ActionStart {
		return h.start(ctx, w, r)
	}
	// A lease must not name a slice that is gone, so look first. A request for another attempt in admitted lives does not wait
	// for the API.
	if r.Action == events.ActionAdmit {
		if unread, err := h.look(ctx, w, r); err != nil || unread {
			return err
		}
	} else if _, err := h.Fleet.Look(ctx, w); err != nil {
		return err
	}
	// If this call is held up, a crew may write something newer than the decision saw.
	over, read, err := h.readLease(ctx, w, r)
	if err != nil {
		return h.unbegun(ctx, r, "the lease is not readable", fleet.DirectoryFailure(err))
	}
	w, task, err := h.Fleet.Advancer.BeginLease(ctx, r.Request, ledger.RequestID(r.Request, ""), read)
	if err != nil {
		return err
	}
	for _, a := range r.Admit {
		s := w.Slice(a.Slice)
		if s == nil || !s.Incarnation.Same(a.Incarnation) || s.Condition != evidence.Ready {
			return h.uncalled(ctx, r, reason.CodeNotReady, fmt.Sprintf("%s is not usable as %v", a.Slice, a.Incarnation))
		}
	}
	write, said := checkpoint.ReplaceLease, fmt.Sprintf("the lease names attempt %d", task.Lease.Attempt)
	if w.OverrulesLease() {
		write, said = checkpoint.OverruleLease, said+"; it replaces the implausible lease, as a person ordered"
	}
	if task.Lease.Attempt > events.MaxAttempt {
		err := fmt.Errorf("%w: the lease would name attempt %d, and nothing gets above %d", checkpoint.ErrBeyondBelief, task.Lease.Attempt, events.MaxAttempt)
		return h.answer(ctx, r, "", "the lease was not written", fleet.DirectoryFailure(err))
	}
	err = write(ctx, h.Store, r.Directory, checkpoint.Lease{
		Schema: events.Schema, Workload: r.Workload, Incident: r.Incident, Epoch: r.Epoch, Attempt: task.Lease.Attempt,
		Admitted: admitted(w, r.Admit), Written: h.Fleet.Now(), By: ours,
	}, over, fleet.Places(w)...)
	h.Fleet.TellForeign(ctx, r.Request, r.Directory, err)
	if errors.Is(err, checkpoint.ErrOvertaken) {
		return h.uncalled(ctx, r, reason.CodeOvertaken, "the lease was not written: "+err.Error())
	}
	if err != nil {
		return h.answer(ctx, r, "", "the lease was not written", fleet.DirectoryFailure(err))
	}
	if over == 0 && w.Training.Attempt > 0 {
		said += "; there was none, though a crew had trained: " + checkpoint.Vanished
	}
	return h.answer(ctx, r, "", said, nil)
}

// ours is who Pitstop's lease is written by.
const ours = "pitstop"

// readLease reads the lease and its generation, 0 for none, and what it says about the next attempt. A lease of another workload says
// nothing about it, nor does one that no attempt can follow, once a person has ordered its replacement. The error says why the directory
// is not readable.
func (h handler) readLease(ctx context.Context, w incident.Workload, r events.RecoveryRequested) (over int64, read evidence.Lease, err error) {
	l, over, err := checkpoint.ReadLease(ctx, h.Store, r.Directory)
	if err == nil && l.Foreign(w.ID, true, fleet.Places(w)...) {
		return over, read, nil
	}
	if err == nil && (l.Attempt < events.MaxAttempt || !w.OverrulesLease()) {
		read.Attempt, read.Lives, read.Names = l.Attempt, l.Admitted, len(l.Admitted) == len(r.Admit)
		for _, a := range admitted(w, r.Admit) {
			read.Names = read.Names && l.Admits(a.Slice, a.Incarnation, a.Workers, 0)
		}
		if l.By == ours {
			read.Incident = l.Incident
		} else {
			read.Began = l.Written
		}
		return over, read, nil
	}
	if err != nil && over == 0 && !errors.Is(err, checkpoint.ErrNotExist) {
		return over, read, err
	}
	read.Left, err = checkpoint.LastAttempt(ctx, h.Store, r.Directory)
	return over, read, err
}

// look reads every slice to be admitted, and stores it if one cannot be read: an unknown slice must not be named.
func (h handler) look(ctx context.Context, w incident.Workload, r events.RecoveryRequested) (unread bool, err error) {
	for _, a := range r.Admit {
		known := w.Slice(a.Slice)
		switch {
		case known == nil:
			continue // the lease does not name it either
		case !h.Fleet.Reaches(known.Zone):
			continue // patrol read the cluster a minute ago, and a life made since then waits for a lease that names it
		}
		s, err := h.Fleet.Read(ctx, fleet.Ref(w, *known))
		if err != nil {
			return true, h.unread(ctx, r, a.Slice, err)
		}
		if _, err := h.Fleet.Feed(ctx, w, s); err != nil {
			return false, err
		}
	}
	return false, nil
}

// unread stores that a slice could not be read. That says nothing about the call that was to follow.
func (h handler) unread(ctx context.Context, r events.RecoveryRequested, slice string, err error) error {
	f := provider.Failure(err)
	if f.Class != reason.Permission {
		f.Class, f.Code = reason.Transient, reason.CodeUnread // an unread slice is no reason to call
	}
	return h.unbegun(ctx, r, slice+" is not readable", f)
}

// unbegun stores what kept a call from being begun.
func (h handler) unbegun(ctx context.Context, r events.RecoveryRequested, text string, f *evidence.Failure) error {
	_, err := h.Fleet.Advancer.Conclude(ctx, evidence.Answered{Request: r.Request, NoCall: evidence.Unbegun, Text: text, Failure: f})
	return err
}

// uncalled stores why a lease that was begun was not written.
func (h handler) uncalled(ctx context.Context, r events.RecoveryRequested, c reason.Code, why string) error {
	f := &evidence.Failure{Class: reason.NotInState, Code: c, Message: why}
	_, err := h.Fleet.Advancer.Conclude(ctx, evidence.Answered{Request: r.Request, NoCall: evidence.Uncalled, Text: why, Failure: f})
	return err
}

// admitted adds to the admissions the host names learned since the request was sent.
func admitted(w incident.Workload, asked []events.Admission) []events.Admission {
	var out []events.Admission
	for _, a := range asked {
		if s := w.Slice(a.Slice); a.Workers == "" && s != nil {
			a.Workers = s.ProvenHosts()
		}
		out = append(out, a)
	}
	return out
}

// start starts a slice that the API shows as stopped in the life that the request names.
func (h handler) start(ctx context.Context, w incident.Workload, r events.RecoveryRequested) error {
	ref, what := fleet.Ref(w, *w.Slice(r.Slice)), "start of "+r.Slice
	s, err := h.Fleet.Read(ctx, ref)
	if err != nil {
		return h.unread(ctx, r, r.Slice, err)
	}
	if _, err = h.Fleet.Feed(ctx, w, s); err != nil {
		return err
	}
	if _, _, err = h.Fleet.Advancer.Check(ctx, r.Pointer()); err != nil {
		return err
	}
	if s.Condition != evidence.Stopped || !s.Incarnation.Same(r.Incarnation) {
		return fault.Ignored(reason.CodeNotReady, "%s refused: it is %s, with life %v", what, s.State, s.Incarnation)
	}
	if _, err = h.Fleet.Advancer.Begin(ctx, r.Request, ledger.RequestID(r.Request, ref.Zone)); err != nil {
		return err
	}
	op, err := h.Provider.Start(ctx, ref)
	if err != nil {
		return h.answer(ctx, r, "", what+" failed", provider.Failure(err))
	}
	return h.answer(ctx, r, op, what+" accepted", nil)
}

func (h handler) answer(ctx context.Context, r events.RecoveryRequested, operation, text string, f *evidence.Failure) error {
	_, err := h.Fleet.Advancer.Answer(ctx, r.Request, operation, text, f)
	return err
}
