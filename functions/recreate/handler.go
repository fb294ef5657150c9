package recreate

import (
	"context"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

// Provider is the part of a provider that this function calls.
type Provider interface {
	Create(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string) (operation string, err error)
	Creatable(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string) error
	Delete(ctx context.Context, r provider.Ref, requestID string) (operation string, err error)
}

// Deps are the function's dependencies.
type Deps struct {
	Fleet    *fleet.Fleet
	Provider Provider
	// Buckets gives the location of a checkpoint bucket. It is called only before a slice is created in another region.
	Buckets checkpoint.Locator
	Limits  ledger.Limits
}

// ordersIn understands the specifications of the slices in a zone.
func ordersIn(zone string) provider.Orders {
	if provider.Of(zone) == provider.GKE {
		return gke.Orders{}
	}
	return cloudtpu.Orders{}
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

var decode = fleet.DecodeRequest[events.RecreateRequested]("recreate")

// handle looks first and calls second. Every reading goes to the ledger. If a reading makes the request obsolete, the fence
// refuses it, and no call is made.
func (h handler) handle(ctx context.Context, w incident.Workload, r events.RecreateRequested) error {
	ref := fleet.Ref(w, *w.Slice(r.Slice))
	ref.Zone = r.Zone
	if r.Action == events.ActionDelete {
		return h.delete(ctx, r, ref)
	}
	return h.create(ctx, r, ref)
}

// look reads the slice now, gives the reading to the ledger, and checks that the request is still wanted after it. In
// another zone the name may belong to another workload; then it is not read.
func (h handler) look(ctx context.Context, r events.RecreateRequested, ref provider.Ref) (w incident.Workload, s provider.Slice, err error) {
	if w, _, err = h.Fleet.Advancer.Check(ctx, r.Pointer()); err != nil {
		return w, s, err
	}
	by, err := h.Fleet.Taken(ctx, w, ref)
	if err != nil {
		return w, s, err
	}
	if by != "" {
		return w, s, h.taken(ctx, r, by)
	}
	if s, err = h.Fleet.Read(ctx, ref); err != nil {
		return w, s, h.unread(ctx, r, ref.Name+" is not readable", err)
	}
	if _, err = h.Fleet.Feed(ctx, w, s); err != nil {
		return w, s, err
	}
	w, _, err = h.Fleet.Advancer.Check(ctx, r.Pointer())
	return w, s, err
}

// lookAtAll looks at every slice of the request, one after the other. It returns the reading of each.
func (h handler) lookAtAll(ctx context.Context, r events.RecreateRequested, ref provider.Ref) (w incident.Workload, s provider.Slice, others []provider.Slice, err error) {
	if w, s, err = h.look(ctx, r, ref); err != nil {
		return w, s, nil, err
	}
	for _, m := range r.With {
		ref.Name = m.Slice
		var other provider.Slice
		if w, other, err = h.look(ctx, r, ref); err != nil {
			return w, s, nil, err
		}
		others = append(others, other)
	}
	return w, s, others, nil
}

// added are the labels that a slice gets when it is created.
func added(w incident.Workload, r events.RecreateRequested) map[string]string {
	return map[string]string{events.LabelWorkload: fleet.LabelValue(w.Name), events.LabelIncident: r.Incident}
}

// place is the place where a request creates.
func place(r events.RecreateRequested) view.Place {
	return view.Place{Zone: r.Zone, Accelerator: r.Accelerator, Capacity: r.Capacity}
}

// members are the slices of a request.
func members(r events.RecreateRequested) []events.Member {
	return append([]events.Member{{Slice: r.Slice, Incarnation: r.Incarnation, Spec: r.Spec}}, r.With...)
}

// names are their names, for people.
func names(r events.RecreateRequested) string {
	s := r.Slice
	for _, m := range r.With {
		s += ", " + m.Slice
	}
	return s
}

// unread stores a failed reading. A failed reading is no reason to call, and its cause says nothing about the call itself,
// so the effect is tried again in the same zone.
func (h handler) unread(ctx context.Context, r events.RecreateRequested, what string, err error) error {
	f := provider.Failure(err)
	if f.Class != reason.Permission {
		f.Class, f.Code = reason.Transient, reason.CodeUnread
	}
	if err := h.refused(ctx, r, evidence.Unbegun, what, f); err != nil {
		return err
	}
	return fault.Ignored(f.Reason(), "%s refused: %s", r.Action, what)
}

// taken stores that a zone cannot give the slice, because its name belongs to another workload there.
func (h handler) taken(ctx context.Context, r events.RecreateRequested, by string) error {
	what := string(r.Action) + " of " + r.Slice + " in " + r.Zone + " refused"
	f := &evidence.Failure{Class: reason.WrongZone, Code: reason.CodeTaken, Message: "the name is taken there by " + by}
	if err := h.refused(ctx, r, evidence.Unbegun, what, f); err != nil {
		return err
	}
	return fault.Ignored(f.Code, "%s: %s", what, f.Message)
}

// there stores that the requested state already holds. begun is the error from beginning the effect: if another delivery has
// begun it, only that one stores the result.
func (h handler) there(ctx context.Context, r events.RecreateRequested, begun error, what string) error {
	how := evidence.Uncalled
	if begun != nil {
		how = evidence.Unbegun
	}
	_, err := h.Fleet.Advancer.Conclude(ctx, evidence.Answered{Request: r.Request, NoCall: how, Text: what})
	return err
}

// refused stores why no call was made.
func (h handler) refused(ctx context.Context, r events.RecreateRequested, how evidence.NoCall, what string, f *evidence.Failure) error {
	_, err := h.Fleet.Advancer.Conclude(ctx, evidence.Answered{Request: r.Request, NoCall: how, Text: what, Failure: f})
	return err
}

// failed stores a failure of the provider. It is evidence with a time for the next try, not a reason for a redelivery.
func (h handler) failed(ctx context.Context, r events.RecreateRequested, what string, err error) error {
	_, err = h.Fleet.Advancer.Answer(ctx, r.Request, "", what, provider.Failure(err))
	return err
}
