package recreate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/trigger"
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
	return trigger.Chain(decode, fleet.Acting(d.Fleet, handler(d).handle))
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

func (h handler) delete(ctx context.Context, r events.RecreateRequested, ref provider.Ref) error {
	w, s, others, err := h.lookAtAll(ctx, r, ref)
	if err != nil {
		return err
	}
	what := "delete of " + names(r) + " in " + r.Zone
	for i, m := range r.With {
		// A slice that an incident made since the request was sent was never admitted.
		if life := others[i].Incarnation; life.Known() && !life.Same(m.Incarnation) && w.Slice(m.Slice).Maker != r.Incident {
			return fault.Ignored(incident.CodeOtherLife, "%s refused: %s lives as %v", what, m.Slice, life)
		}
	}
	for _, name := range s.With {
		if !asksFor(r, w, name) {
			return h.holdsMore(ctx, r, w, s, name)
		}
	}
	switch {
	case s.Condition == incident.Gone:
		return nil // the reading already says so
	case s.Condition == incident.Deleting:
		// The other delivery that began it has made the call.
		_, err := h.Fleet.Advancer.Begin(ctx, r.Request, ledger.RequestID(r.Request, r.Zone))
		if err != nil && !fault.IsBusy(err) {
			return err
		}
		return h.there(ctx, r, err, what+": it is already being deleted")
	case s.Incarnation.Known() && !s.Incarnation.Same(r.Incarnation):
		return fault.Ignored(incident.CodeOtherLife, "%s refused: %s lives as %v", what, r.Slice, s.Incarnation)
	case !s.Incarnation.Known() && !held(r, s):
		return fault.Ignored(incident.CodeOtherLife, "%s refused: %s %s was created at %s", what, w.Words().Group, s.QueuedResource, s.Ordered.UTC().Format(time.RFC3339))
	}
	if err := h.comesBack(ctx, r, w, ref, what); err != nil {
		return err
	}
	if err := h.listen(ctx, r, w); err != nil {
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
		if w, err = h.Fleet.Feed(ctx, w, s); err != nil || s.Condition != incident.Gone {
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
	if err := h.refused(ctx, r, incident.Unbegun, what+" refused", f); err != nil {
		return err
	}
	return fault.Ignored(f.Reason(), "%s refused: %s", what, f.Message)
}

// added are the labels that a slice gets when it is created.
func added(w incident.Workload, r events.RecreateRequested) map[string]string {
	return map[string]string{events.LabelWorkload: fleet.LabelValue(w.Name), events.LabelIncident: r.Incident}
}

// listen reads the crews' word on every idle slice before any is deleted. Somebody may have started the training again a
// moment ago: then the decision ends the incident, and the fence refuses the request.
func (h handler) listen(ctx context.Context, r events.RecreateRequested, w incident.Workload) error {
	crews := func() incident.Reads { // none once the decision is another one
		if w.Incident == nil || w.Incident.ID != r.Incident {
			return nil
		}
		return h.Fleet.Advancer.Reads(w).Of(incident.ReadIdleCrew, "")
	}
	for _, crew := range crews() {
		var err error
		if w, err = h.Fleet.Listen(ctx, w, provider.Slice{Ref: fleet.Ref(w, *w.Slice(crew.Slice)), Incarnation: crew.Life}); err != nil {
			return err
		}
		if len(crews()) == 0 {
			return nil
		}
	}
	for _, crew := range crews() { // what could not be read
		if why := crew.Why; why != "" {
			return h.unread(ctx, r, why, &provider.Error{Call: "listen for the crews of " + w.ID, Class: incident.Transient, Message: why})
		}
	}
	return nil
}

// asksFor reports whether a request covers a slice that its queued resource holds, or whether that slice is gone and left to
// its owner.
func asksFor(r events.RecreateRequested, w incident.Workload, slice string) bool {
	if slices.ContainsFunc(members(r), func(m events.Member) bool { return m.Slice == slice }) {
		return true
	}
	s := w.Slice(slice)
	return s != nil && s.IsReleased() && s.Condition == incident.Gone
}

// holdsMore stores that the queued resource holds a slice outside the request. A slice not seen before is added to the
// workload, so that the next decision covers all of them. A slice of another workload is never deleted with ours.
func (h handler) holdsMore(ctx context.Context, r events.RecreateRequested, w incident.Workload, s provider.Slice, name string) error {
	f := &provider.Error{Class: incident.Busy, Code: incident.CodeHoldsMore, Message: w.Words().Group + " " + s.QueuedResource + " holds " + name + " too"}
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
			f.Class, f.Message = incident.Invalid, f.Message+", which belongs to "+of.ID
		}
	}
	return h.refused(ctx, r, incident.Unbegun, "delete of "+names(r)+" in "+r.Zone+" refused", provider.Failure(f))
}

// held reports whether a queued resource without a node is the right one: the one in the request, or the one that held the
// life in the request.
func held(r events.RecreateRequested, s provider.Slice) bool {
	if r.Ordered.IsZero() {
		return !s.Ordered.After(r.Incarnation.Created)
	}
	return s.Ordered.Equal(r.Ordered)
}

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
	for _, s := range all {
		known := w.Slice(s.Name)
		switch {
		case s.Remains: // two would write to one directory
			f := &incident.Failure{Class: incident.Busy, Message: s.Name + " is " + s.State}
			if err := h.refused(ctx, r, incident.Unbegun, what+" refused", f); err != nil {
				return err
			}
			return fault.Ignored(f.Reason(), "%s refused: %s", what, f.Message)
		case !s.Incarnation.Known() || s.Incarnation.Same(known.Incarnation):
		case known.Zone == r.Zone:
			return fault.Ignored(incident.CodeOtherLife, "%s refused: %s lives as %v", what, s.Name, s.Incarnation)
		default:
			return h.taken(ctx, r, "a "+w.Words().Slice+" of "+s.Incarnation.Created.UTC().Format(time.DateOnly))
		}
	}
	id := ledger.RequestID(r.Request, r.Zone)
	p := h.Fleet.Advancer.Policies.For(ctx, w.Label)
	spec, unfit, err := h.spec(ctx, w, r, p)
	if err != nil {
		return h.unread(ctx, r, what+": its specification is not readable", err)
	}
	far := ""
	if unfit == nil && p.Unreadable == "" {
		if far, err = h.far(ctx, w, r, p); err != nil {
			return h.unread(ctx, r, what+": where its checkpoints are is not readable", err)
		}
		if far != "" && !p.OtherRegions {
			unfit = &provider.Error{Call: what, Class: incident.OtherRegion, Message: far + "; the policy's other_regions is no"}
		}
	}
	var heard *incident.Failure
	// A queued resource waits for capacity by itself, and a reservation has its own capacity.
	if r.QueuedResource == "" && !ordersIn(r.Zone).Waits(spec) {
		heard = h.heard(ctx, w, r, p)
	}
	there := slices.ContainsFunc(all, func(s provider.Slice) bool { return s.Condition != incident.Gone })
	for _, m := range members(r) {
		if there {
			break
		}
		// Log entries about the new slice must find their workload, even if they come early.
		subject := ledger.Subject{Workload: w.ID, Slice: m.Slice}
		if err := h.Fleet.Ledger.Map(ctx, w.Project, r.Zone, ledger.Node, m.Slice, subject); err != nil {
			return err
		}
	}
	// No read or write comes between this and the call, because a decision made meanwhile would go unseen.
	w, err = h.Fleet.Advancer.Begin(ctx, r.Request, id)
	if there && (err == nil || fault.IsBusy(err)) {
		// An earlier try took effect; otherwise the reading would have ended the incident.
		return h.there(ctx, r, err, what+": it already exists")
	}
	if err != nil {
		return err
	}
	if p.Unreadable != "" {
		return h.Fleet.Advancer.Hold(ctx, r.Request, incident.CodePolicyUnreadable, "the policy cannot be read: "+p.Unreadable, time.Time{})
	}
	if unfit != nil { // only the delivery that began it stores this: an earlier one may be about to call
		return h.refused(ctx, r, incident.Uncalled, what+" refused", provider.Failure(unfit))
	}
	if heard != nil {
		return h.refused(ctx, r, incident.Uncalled, what+" not asked for", heard)
	}
	op, err := h.Provider.Create(ctx, ref, spec, added(w, r), id)
	if err != nil {
		return h.failed(ctx, r, what+" refused", err)
	}
	accepted := what + " accepted"
	if far != "" {
		accepted += ": " + far
	}
	_, err = h.Fleet.Advancer.Answer(ctx, r.Request, op, accepted, nil)
	return err
}

// heard returns a fresh refusal by the zone of a similar slice, of another workload or an earlier incident. Zones without
// such a refusal are asked first. An incident that was itself refused there asks again at its own time, and one without
// another zone asks at once. An unreadable record does not stop the call.
func (h handler) heard(ctx context.Context, w incident.Workload, r events.RecreateRequested, p policy.Policy) *incident.Failure {
	if w.Incident.RefusedIn(place(r)) || !w.OtherPlaceMayHaveIt(p, r.Slice, place(r)) {
		return nil
	}
	now := h.Fleet.Now()
	o, ok, err := h.Fleet.Ledger.Stockout(ctx, w.Project, r.Zone, place(r).In(*w.Slice(r.Slice)), now)
	if err != nil {
		h.Fleet.Log.WarnContext(ctx, "stockouts not read", "workload", w.ID, "zone", r.Zone, "error", err.Error())
	}
	if !ok {
		return nil
	}
	return &incident.Failure{
		Class: incident.Stockout, Hearsay: true, Message: "no capacity: " + o.Workload + " was refused there " + events.Span(now.Sub(o.At)) + " ago",
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

// place is the place where a request creates.
func place(r events.RecreateRequested) incident.Place {
	return incident.Place{Zone: r.Zone, Accelerator: r.Accelerator}
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

// lookBehind looks in the slice's last zone and in the zone last admitted, before the slice is created in another zone. It
// may exist there again: its owner may have created it since it was proven gone, or an earlier call of ours, believed to
// have failed, may have worked.
func (h handler) lookBehind(ctx context.Context, r events.RecreateRequested, w incident.Workload, slice string) (incident.Workload, error) {
	known := w.Slice(slice)
	if known == nil {
		return w, nil
	}
	for _, zone := range slices.Compact([]string{known.Zone, known.Admitted().Zone}) {
		if zone == "" || zone == r.Zone {
			continue
		}
		ref := fleet.Ref(w, *known)
		ref.Zone = zone
		s, err := h.Fleet.Read(ctx, ref)
		if err != nil {
			return w, h.unread(ctx, r, slice+" is not readable in "+zone, err)
		}
		if s.Condition == incident.Gone {
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
			return w, fault.Ignored(incident.CodeThere, "create of %s in %s refused: an earlier try brought it in %s after all", slice, r.Zone, zone)
		}
	}
	return w, nil
}

// unread stores a failed reading. A failed reading is no reason to call, and its cause says nothing about the call itself,
// so the effect is tried again in the same zone.
func (h handler) unread(ctx context.Context, r events.RecreateRequested, what string, err error) error {
	f := provider.Failure(err)
	if f.Class != incident.Permission {
		f.Class, f.Code = incident.Transient, incident.CodeUnread
	}
	if err := h.refused(ctx, r, incident.Unbegun, what, f); err != nil {
		return err
	}
	return fault.Ignored(f.Reason(), "%s refused: %s", r.Action, what)
}

// taken stores that a zone cannot give the slice, because its name belongs to another workload there.
func (h handler) taken(ctx context.Context, r events.RecreateRequested, by string) error {
	what := string(r.Action) + " of " + r.Slice + " in " + r.Zone + " refused"
	f := &incident.Failure{Class: incident.WrongZone, Code: incident.CodeTaken, Message: "the name is taken there by " + by}
	if err := h.refused(ctx, r, incident.Unbegun, what, f); err != nil {
		return err
	}
	return fault.Ignored(f.Code, "%s: %s", what, f.Message)
}

// there stores that the requested state already holds. begun is the error from beginning the effect: if another delivery has
// begun it, only that one stores the result.
func (h handler) there(ctx context.Context, r events.RecreateRequested, begun error, what string) error {
	how := incident.Uncalled
	if begun != nil {
		how = incident.Unbegun
	}
	_, err := h.Fleet.Advancer.Conclude(ctx, incident.Answered{Request: r.Request, NoCall: how, Text: what})
	return err
}

// refused stores why no call was made.
func (h handler) refused(ctx context.Context, r events.RecreateRequested, how incident.NoCall, what string, f *incident.Failure) error {
	_, err := h.Fleet.Advancer.Conclude(ctx, incident.Answered{Request: r.Request, NoCall: how, Text: what, Failure: f})
	return err
}

// failed stores a failure of the provider. It is evidence with a time for the next try, not a reason for a redelivery.
func (h handler) failed(ctx context.Context, r events.RecreateRequested, what string, err error) error {
	_, err = h.Fleet.Advancer.Answer(ctx, r.Request, "", what, provider.Failure(err))
	return err
}
