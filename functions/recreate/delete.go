package recreate

import (
	"context"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

func (h handler) delete(ctx context.Context, r events.RecreateRequested, ref provider.Ref) error {
	w, s, others, err := h.lookAtAll(ctx, r, ref)
	if err != nil {
		return err
	}
	what := "delete of " + names(r) + " in " + r.Zone
	if err := sameLives(r, w, s, others, what); err != nil {
		return err
	}
	for _, name := range s.With {
		if !asksFor(r, w, name) {
			return h.holdsMore(ctx, r, w, s, name)
		}
	}
	switch {
	case s.Condition == evidence.Gone:
		return nil // the reading already says so
	case s.Condition == evidence.Deleting:
		// The other delivery that began it has made the call.
		_, err := h.Fleet.Advancer.Begin(ctx, r.Request, ledger.RequestID(r.Request, r.Zone))
		if err != nil && !fault.IsBusy(err) {
			return err
		}
		return h.there(ctx, r, err, what+": it is already being deleted")
	}
	if err := h.comesBack(ctx, r, w, ref, what); err != nil {
		return err
	}
	var id string
	w, id, err = h.Fleet.Advancer.BeginDestructive(ctx, r.Request, s.At, r.Zone, h.Limits)
	if err != nil {
		return err
	}
	ref.Life = s.Life // the one that was read, and that everything above was decided on
	op, err := h.Provider.Delete(ctx, ref, id)
	if err != nil {
		if err := h.Fleet.Advancer.Refused(ctx, w, r.Zone, id, provider.Failure(err)); err != nil {
			return err
		}
		return h.failed(ctx, r, what+" failed", err)
	}
	w, err = h.Fleet.Advancer.Answer(ctx, r.Request, op, what+" accepted", nil)
	if err != nil || op != "" {
		return err
	}
	return h.lookAfter(ctx, r, w, ref)
}

// sameLives is an error where a slice of the request lives another life than the one that the request means.
func sameLives(r events.RecreateRequested, w incident.Workload, s provider.Slice, others []provider.Slice, what string) error {
	for i, m := range r.With {
		// A slice that an incident made since the request was sent was never admitted.
		if life := others[i].Incarnation; life.Known() && !life.Same(m.Incarnation) && w.Slice(m.Slice).Maker != r.Incident {
			return fault.Ignored(reason.CodeOtherLife, "%s refused: %s lives as %v", what, m.Slice, life)
		}
	}
	switch {
	case s.Condition == evidence.Gone, s.Condition == evidence.Deleting:
		return nil
	case s.Incarnation.Known() && !s.Incarnation.Same(r.Incarnation):
		return fault.Ignored(reason.CodeOtherLife, "%s refused: %s lives as %v", what, r.Slice, s.Incarnation)
	case !s.Incarnation.Known() && !held(r, s):
		return fault.Ignored(reason.CodeOtherLife, "%s refused: %s %s was created at %s", what, w.Words().Group, s.QueuedResource, s.Ordered.UTC().Format(time.RFC3339))
	}
	return nil
}

// lookAfter looks once at what a finished deletion has left, because patrol's next look may be a minute away. What cannot be read now is
// left to that look.
func (h handler) lookAfter(ctx context.Context, r events.RecreateRequested, w incident.Workload, ref provider.Ref) error {
	ref.Life = ""
	for _, m := range members(r) {
		ref.Name = m.Slice
		s, err := h.Fleet.Read(ctx, ref)
		if err != nil {
			h.Fleet.Log.InfoContext(ctx, "not read after its deletion", "workload", w.ID, "slice", m.Slice, "error", err.Error())
			return nil
		}
		if w, err = h.Fleet.Feed(ctx, w, s); err != nil || s.Condition != evidence.Gone {
			return err // nothing is created before all of them are gone
		}
	}
	return nil
}

// comesBack asks whether what is about to be deleted could be created again. A creation that is refused once the slice is gone, by an
// admission policy or for a missing right, would leave its owner without it. So a refusal here refuses the deletion. The Cloud TPU API
// cannot be asked that.
func (h handler) comesBack(ctx context.Context, r events.RecreateRequested, w incident.Workload, ref provider.Ref, what string) error {
	if provider.Of(r.Zone) != provider.GKE {
		return nil
	}
	spec, no, err := h.spec(ctx, w, r, h.Fleet.Advancer.Policies.For(ctx, w.Label))
	if err != nil {
		return h.unread(ctx, r, what+": its specification is not readable", err)
	}
	if no == nil {
		no = h.Provider.Creatable(ctx, ref, spec, added(w, r), ledger.RequestID(r.Request, r.Zone))
	}
	if no == nil {
		return nil
	}
	f := provider.Failure(no)
	f.Message = "it could not be created again: " + f.Message
	if err := h.refused(ctx, r, evidence.Unbegun, what+" refused", f); err != nil {
		return err
	}
	return fault.Ignored(f.Reason(), "%s refused: %s", what, f.Message)
}

// asksFor reports whether a request covers a slice that its queued resource holds, or whether that slice is gone and left to
// its owner.
func asksFor(r events.RecreateRequested, w incident.Workload, slice string) bool {
	if slices.ContainsFunc(members(r), func(m events.Member) bool { return m.Slice == slice }) {
		return true
	}
	s := w.Slice(slice)
	return s != nil && s.IsReleased() && s.Condition == evidence.Gone
}

// holdsMore stores that the queued resource holds a slice outside the request. A slice not seen before is added to the
// workload, so that the next decision covers all of them. A slice of another workload is never deleted with ours.
func (h handler) holdsMore(ctx context.Context, r events.RecreateRequested, w incident.Workload, s provider.Slice, name string) error {
	f := &provider.Error{Class: reason.Busy, Code: reason.CodeHoldsMore, Message: w.Words().Group + " " + s.QueuedResource + " holds " + name + " too"}
	if w.Slice(name) == nil {
		ref := s.Ref
		ref.Name = name
		other, err := h.Fleet.Read(ctx, ref)
		if err != nil {
			return h.unread(ctx, r, name+" is not readable", err)
		}
		of, err := h.Fleet.Observe(ctx, other)
		if err != nil {
			return err
		}
		if of.ID != w.ID {
			f.Class, f.Message = reason.Invalid, f.Message+", which belongs to "+of.ID
		}
	}
	return h.refused(ctx, r, evidence.Unbegun, "delete of "+names(r)+" in "+r.Zone+" refused", provider.Failure(f))
}

// held reports whether a queued resource without a node is the right one: the one in the request, or the one that held the
// life in the request.
func held(r events.RecreateRequested, s provider.Slice) bool {
	if r.Ordered.IsZero() {
		return !s.Ordered.After(r.Incarnation.Created)
	}
	return s.Ordered.Equal(r.Ordered)
}
