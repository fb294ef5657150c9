package recreate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/topology"
)

func (h handler) create(ctx context.Context, r events.RecreateRequested, ref provider.Ref) error {
	w, s, others, err := h.lookAtAll(ctx, r, ref)
	if err != nil {
		return err
	}
	what := "create of " + names(r) + " in " + place(r).String()
	for _, m := range members(r) {
		if w, err = h.lookBehind(ctx, r, w, m.Slice); err != nil {
			return err
		}
	}
	all := append([]provider.Slice{s}, others...)
	if err := h.mayCreate(ctx, r, w, all, what); err != nil {
		return err
	}
	p := h.Fleet.Advancer.Policies.For(ctx, w.Label)
	o, err := h.order(ctx, w, r, p, what)
	if err != nil {
		return err
	}
	there := slices.ContainsFunc(all, func(s provider.Slice) bool { return s.Condition != evidence.Gone })
	if !there {
		if err := h.mapMembers(ctx, r, w); err != nil {
			return err
		}
	}
	id := ledger.RequestID(r.Request, r.Zone)
	// No read or write comes between this and the call, because a decision made meanwhile would go unseen.
	w, err = h.Fleet.Advancer.Begin(ctx, r.Request, id)
	if there && (err == nil || fault.IsBusy(err)) {
		// An earlier try took effect; otherwise the reading would have ended the incident.
		return h.there(ctx, r, err, what+": it already exists")
	}
	switch {
	case err != nil:
		return err
	case p.Unreadable != "":
		return h.Fleet.Advancer.Hold(ctx, r.Request, reason.CodePolicyUnreadable, "the policy cannot be read: "+p.Unreadable, time.Time{})
	case o.unfit != nil: // only the delivery that began it stores this: an earlier one may be about to call
		return h.refused(ctx, r, evidence.Uncalled, what+" refused", provider.Failure(o.unfit))
	case o.heard != nil:
		return h.refused(ctx, r, evidence.Uncalled, what+" not asked for", o.heard)
	}
	op, err := h.Provider.Create(ctx, ref, o.spec, added(w, r), id)
	if err != nil {
		return h.failed(ctx, r, what+" refused", err)
	}
	_, err = h.Fleet.Advancer.Conclude(ctx, evidence.Answered{Request: r.Request, Operation: op, Text: what + " accepted", Note: o.far})
	return err
}

// mayCreate is an error where something is still there beside it, or where another slice has the name.
func (h handler) mayCreate(ctx context.Context, r events.RecreateRequested, w incident.Workload, all []provider.Slice, what string) error {
	for _, s := range all {
		known := w.Slice(s.Name)
		switch {
		case s.Remains: // two would write to one directory
			f := &evidence.Failure{Class: reason.Busy, Message: s.Name + " is " + s.State}
			if err := h.refused(ctx, r, evidence.Unbegun, what+" refused", f); err != nil {
				return err
			}
			return fault.Ignored(f.Reason(), "%s refused: %s", what, f.Message)
		case !s.Incarnation.Known() || s.Incarnation.Same(known.Incarnation):
		case known.Zone == r.Zone:
			return fault.Ignored(reason.CodeOtherLife, "%s refused: %s lives as %v", what, s.Name, s.Incarnation)
		default:
			return h.taken(ctx, r, "a "+w.Words().Slice+" of "+s.Incarnation.Created.UTC().Format(time.DateOnly))
		}
	}
	return nil
}

// mapMembers tells the ledger whose the new slices are. Log entries about them must find their workload, even if they come early.
func (h handler) mapMembers(ctx context.Context, r events.RecreateRequested, w incident.Workload) error {
	for _, m := range members(r) {
		subject := ledger.Subject{Workload: w.ID, Slice: m.Slice}
		if err := h.Fleet.Ledger.Map(ctx, w.Project, r.Zone, ledger.Node, m.Slice, subject); err != nil {
			return err
		}
	}
	return nil
}

// order is what a request orders in its zone.
type order struct {
	spec []byte
	// unfit is why the zone, or the policy, does not allow it.
	unfit error
	// heard is a refusal by the zone of a similar slice, so fresh that it is not asked again.
	heard *evidence.Failure
	// far says that it would land outside the region of its checkpoints, and at what cost.
	far string
}

// order reads what a creation needs. Its error is what could not be read; it is stored.
func (h handler) order(ctx context.Context, w incident.Workload, r events.RecreateRequested, p policy.Policy, what string) (o order, err error) {
	if o.spec, o.unfit, err = h.spec(ctx, w, r, p); err != nil {
		return o, h.unread(ctx, r, what+": its specification is not readable", err)
	}
	if o.unfit == nil && p.Unreadable == "" {
		if o.far, err = h.far(ctx, w, r, p); err != nil {
			return o, h.unread(ctx, r, what+": where its checkpoints are is not readable", err)
		}
		if o.far != "" && !p.OtherRegions {
			o.unfit = &provider.Error{Call: what, Class: reason.OtherRegion, Message: o.far + "; the policy's other_regions is no"}
		}
	}
	// A queued resource waits for capacity by itself, and a reservation has its own capacity.
	if r.QueuedResource == "" && !ordersIn(r.Zone).Waits(o.spec) {
		o.heard = h.heard(ctx, w, r, p)
	}
	return o, nil
}

// spec reads the specification of the slice to create, or of every slice that one queued resource will bring, and fits it to
// the zone. Unfit says why it does not fit.
func (h handler) spec(ctx context.Context, w incident.Workload, r events.RecreateRequested, p policy.Policy) (spec []byte, unfit, err error) {
	var names []string
	var specs [][]byte
	for _, m := range members(r) {
		s := *w.Slice(m.Slice)
		s.Spec = m.Spec
		if spec, unfit, err = fleet.Order(ctx, h.Fleet.Ledger, w, s, place(r), p); unfit != nil || err != nil {
			return nil, unfit, err
		}
		if ordersIn(r.Zone).IsApart(spec) {
			values, err := h.Fleet.Secrets.Of(ctx, s.Spec)
			if err != nil {
				return nil, nil, err
			}
			if spec, err = ordersIn(r.Zone).Whole(spec, values); err != nil {
				return nil, nil, err
			}
		}
		names, specs = append(names, m.Slice), append(specs, spec)
	}
	if r.With == nil {
		return specs[0], nil, nil
	}
	spec, err = ordersIn(r.Zone).Together(names, specs)
	return spec, nil, err
}

// heard returns a fresh refusal by the zone of a similar slice, of another workload or an earlier incident. Zones without
// such a refusal are asked first. An incident that was itself refused there asks again at its own time, and one without
// another zone asks at once. An unreadable record does not stop the call.
func (h handler) heard(ctx context.Context, w incident.Workload, r events.RecreateRequested, p policy.Policy) *evidence.Failure {
	if w.Incident.RefusedIn(place(r)) || !w.OtherPlaceMayHaveIt(p, r.Slice, place(r)) {
		return nil
	}
	now := h.Fleet.Now()
	o, ok, err := h.Fleet.Ledger.Stockout(ctx, w.Project, r.Zone, w.Slice(r.Slice).In(place(r)), now)
	if err != nil {
		h.Fleet.Log.WarnContext(ctx, "stockouts not read", "workload", w.ID, "zone", r.Zone, "error", err.Error())
	}
	if !ok {
		return nil
	}
	return &evidence.Failure{
		Class: reason.Stockout, Hearsay: true, Message: "no capacity: " + o.Workload + " was refused there " + events.Span(now.Sub(o.At)) + " ago",
	}
}

// far says that a slice would land outside the region of its checkpoints, and the cost of that. It is empty if the region is
// the same, or if the slice was there before. A location that may be readable soon is an error.
func (h handler) far(ctx context.Context, w incident.Workload, r events.RecreateRequested, p policy.Policy) (string, error) {
	region := topology.Region(r.Zone)
	if region == topology.Region(w.Slice(r.Slice).Zone) || !strings.HasPrefix(w.Directory, "gs://") {
		return "", nil
	}
	l, err := h.Buckets.Location(ctx, w.Directory)
	switch {
	case errors.Is(err, checkpoint.ErrTransient):
		return "", err
	case err != nil:
		return "where the checkpoints are is not known: " + err.Error(), nil //nolint:nilerr // it is reported, and counts as another region
	case l.Covers(region):
		return "", nil
	}
	return "the checkpoints are in " + l.Name + "; " + w.Egress(p.EgressPrice), nil
}

// lookBehind looks in the slice's last zone and in the zone last admitted, before the slice is created in another zone. It
// may exist there again: its owner may have created it since it was proven gone, or an earlier call of ours, believed to
// have failed, may have worked.
func (h handler) lookBehind(ctx context.Context, r events.RecreateRequested, w incident.Workload, slice string) (incident.Workload, error) {
	known := w.Slice(slice)
	if known == nil {
		return w, nil
	}
	for _, zone := range slices.Compact([]string{known.Zone, w.AdmittedIn(known.Name).Zone}) {
		if zone == "" || zone == r.Zone {
			continue
		}
		ref := fleet.Ref(w, *known)
		ref.Zone = zone
		s, err := h.Fleet.Read(ctx, ref)
		if err != nil {
			return w, h.unread(ctx, r, slice+" is not readable in "+zone, err)
		}
		if s.Condition == evidence.Gone {
			continue
		}
		by, err := h.Fleet.Taken(ctx, w, ref)
		if err != nil {
			return w, err
		}
		if by != "" {
			continue // it belongs to another workload
		}
		if _, err = h.Fleet.Feed(ctx, w, s); err != nil {
			return w, err
		}
		if w, _, err = h.Fleet.Advancer.Check(ctx, r.Pointer()); err != nil {
			return w, err
		}
		if known := w.Slice(slice); known.Maker == r.Incident && known.Zone == zone {
			return w, fault.Ignored(reason.CodeThere, "create of %s in %s refused: an earlier try brought it in %s after all", slice, r.Zone, zone)
		}
	}
	return w, nil
}
