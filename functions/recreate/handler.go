package recreate

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/tpu"
	"pitstop.internal/shared/trigger"
)

// Provider is the part of a provider that this function calls.
type Provider interface {
	Create(ctx context.Context, r tpu.Ref, spec []byte, labels map[string]string, requestID string) (operation string, err error)
	Delete(ctx context.Context, r tpu.Ref, requestID string) (operation string, err error)
}

// Deps is what the function works with.
type Deps struct {
	Fleet    *fleet.Fleet
	Provider Provider
	Limits   ledger.Limits
}

// New returns the function over its dependencies.
func New(d Deps) trigger.Handle { return trigger.Chain(decode, handler(d).handle) }

type handler Deps

func decode(ce cloudevents.Event) (events.RecreateRequested, error) {
	if ce.Type() != events.TypeRecreateRequested {
		return events.RecreateRequested{}, fault.Ignored("the event type %s is no request to recreate", ce.Type())
	}
	return events.DecodeRecreateRequested(ce.Data())
}

// handle looks first and calls second. Every reading goes to the ledger, where it may end what was asked for: then the
// fence refuses the request, and nothing is called.
func (h handler) handle(ctx context.Context, r events.RecreateRequested) error {
	w, _, err := h.Fleet.Advancer.Check(ctx, r.Request)
	if err != nil {
		return err
	}
	slice := w.Slice(r.Slice)
	if slice == nil {
		return fault.Ignored("%s has no slice %s", w.ID, r.Slice)
	}
	ref := fleet.Ref(w, *slice)
	ref.Zone = r.Zone
	if r.Action == events.ActionDelete {
		return h.delete(ctx, r, ref)
	}
	return h.create(ctx, r, ref)
}

// look reads the slice now, gives the reading to the ledger, and checks that the request is still wanted after it.
func (h handler) look(ctx context.Context, r events.RecreateRequested, ref tpu.Ref) (tpu.Slice, error) {
	w, _, err := h.Fleet.Advancer.Check(ctx, r.Request)
	if err != nil {
		return tpu.Slice{}, err
	}
	s, err := h.Fleet.Provider.Read(ctx, ref)
	if err != nil {
		// Not to know is no reason to call. The task is tried again.
		what := r.Slice + " is not readable"
		if err := h.failed(ctx, r, what, err); err != nil {
			return tpu.Slice{}, err
		}
		return tpu.Slice{}, fault.Ignored("%s refused: %s", r.Action, what)
	}
	if _, err := h.Fleet.Feed(ctx, w, s); err != nil {
		return tpu.Slice{}, err
	}
	_, _, err = h.Fleet.Advancer.Check(ctx, r.Request)
	return s, err
}

func (h handler) delete(ctx context.Context, r events.RecreateRequested, ref tpu.Ref) error {
	s, err := h.look(ctx, r, ref)
	if err != nil {
		return err
	}
	what := "delete of " + r.Slice + " in " + r.Zone
	switch {
	case s.Condition == incident.Gone:
		return nil // the reading said so
	case s.Condition == incident.Deleting:
		if _, err := h.Fleet.Advancer.Begin(ctx, r.Request, ledger.RequestID(r.Request, r.Zone)); err != nil {
			return err
		}
		_, err := h.Fleet.Advancer.Answer(ctx, r.Request, "", what+": it is being deleted already", nil)
		return err
	case s.Incarnation.Known() && !s.Incarnation.Same(r.Incarnation):
		return fault.Ignored("%s refused: %s lives as %v", what, r.Slice, s.Incarnation)
	}
	w, id, err := h.Fleet.Advancer.BeginDestructive(ctx, r.Request, r.Zone, h.Limits)
	if err != nil {
		return err
	}
	op, err := h.Provider.Delete(ctx, ref, id)
	if err != nil {
		if err := h.Fleet.Advancer.Refused(ctx, w, r.Zone, id, tpu.Failure(err)); err != nil {
			return err
		}
		return h.failed(ctx, r, what+" failed", err)
	}
	_, err = h.Fleet.Advancer.Answer(ctx, r.Request, op, what+" accepted", nil)
	return err
}

func (h handler) create(ctx context.Context, r events.RecreateRequested, ref tpu.Ref) error {
	s, err := h.look(ctx, r, ref)
	if err != nil {
		return err
	}
	what := "create of " + r.Slice + " in " + r.Zone
	id := ledger.RequestID(r.Request, r.Zone)
	spec, err := h.Fleet.Ledger.Spec(ctx, r.Spec)
	if err != nil {
		return h.failed(ctx, r, what+": its specification is not readable", err)
	}
	w, err := h.Fleet.Advancer.Begin(ctx, r.Request, id)
	if err != nil {
		return err
	}
	if s.Condition != incident.Gone {
		// An earlier try of ours took effect, or the reading would have ended the incident.
		_, err := h.Fleet.Advancer.Answer(ctx, r.Request, "", what+": it is there already", nil)
		return err
	}
	// Entries about the new slice must find their workload, however early they come.
	subject := ledger.Subject{Workload: w.ID, Slice: r.Slice}
	if err := h.Fleet.Ledger.Map(ctx, w.Project, r.Zone, ledger.Node, r.Slice, subject); err != nil {
		return err
	}
	labels := map[string]string{events.LabelWorkload: fleet.LabelValue(w.Name), events.LabelIncident: r.Incident}
	op, err := h.Provider.Create(ctx, ref, spec, labels, id)
	if err != nil {
		return h.failed(ctx, r, what+" refused", err)
	}
	_, err = h.Fleet.Advancer.Answer(ctx, r.Request, op, what+" accepted", nil)
	return err
}

// failed stores a failure of the provider: it is evidence, with a time for the next try, and no reason for a redelivery.
func (h handler) failed(ctx context.Context, r events.RecreateRequested, what string, err error) error {
	_, err = h.Fleet.Advancer.Answer(ctx, r.Request, "", what, tpu.Failure(err))
	return err
}
