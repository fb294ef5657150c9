// Package fleet connects the provider's readings with the ledger: it finds the workload that a log entry is about,
// introduces slices never seen before, and feeds readings to the decision. The API is the truth; this package carries it
// over.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

// Reader is the part of a provider that this package reads.
type Reader interface {
	Read(ctx context.Context, r provider.Ref) (provider.Slice, error)
	List(ctx context.Context, project, zone string) (provider.Listing, error)
	Hosts(ctx context.Context, r provider.Ref) ([]string, error)
	Crews(ctx context.Context, r provider.Ref) ([]events.CrewState, error)
}

// Fleet is safe for concurrent use.
type Fleet struct {
	Ledger   *ledger.Ledger
	Advancer *ledger.Advancer
	Provider Reader
	// Secrets keeps the values of metadata. Without it a reading teaches everything about a slice except how to create it
	// again, because a specification may be named only if its values are stored.
	Secrets *ledger.Secrets
	Now     func() time.Time
	Log     *slog.Logger
}

// New returns the fleet of a function over the loop that stores its decisions.
func New(a *ledger.Advancer, reader Reader) *Fleet {
	f := &Fleet{Ledger: a.Ledger, Advancer: a, Provider: reader, Now: a.Now, Log: a.Log}
	a.Fits = f.Fits
	return f
}

// Deployed returns the fleet of a deployed function, on the real clock.
func Deployed(l *ledger.Ledger, policies ledger.Policies, publisher ledger.Publisher, providers provider.Set, function string) *Fleet {
	return New(&ledger.Advancer{
		Ledger: l, Policies: policies, Publisher: publisher, Now: time.Now, Sleep: ledger.Sleep,
		Source: "//pitstop/functions/" + function, Cause: trigger.MessageID, Log: trigger.Log(),
	}, providers)
}

// Holding returns the fleet for one event, which reads no document of a workload twice; see ledger.Held for what follows.
func (f *Fleet) Holding(h *ledger.Held) *Fleet {
	one := *f
	one.Advancer = f.Advancer.Holding(h)
	return &one
}

// Fits checks the order of a slice, and of all that come with it, against places. An order that names something in another
// zone cannot go there, and an order must fit the shape.
func (f *Fleet) Fits(ctx context.Context, w incident.Workload, slice string, places []view.Place, p policy.Policy) ([]view.ZoneFit, error) {
	s := w.Slice(slice)
	if s == nil {
		return nil, fmt.Errorf("%s has no slice %s", w.ID, slice)
	}
	fits := make([]view.ZoneFit, 0, len(places))
	for _, at := range places {
		fits = append(fits, view.ZoneFit{Place: at, Checked: true})
	}
	for i := range w.Slices {
		o := &w.Slices[i]
		if o != s && (s.Group == "" || o.Group != s.Group || o.Zone != s.Zone) {
			continue
		}
		for j := range fits {
			_, unfit, err := Order(ctx, f.Ledger, w, *o, places[j], p)
			if err != nil {
				return nil, err
			}
			if failure := provider.Failure(unfit); failure != nil && fits[j].Code == "" {
				fits[j].Code, fits[j].Text = failure.Reason(), failure.Message
			}
		}
	}
	return fits, nil
}

// Order is the specification from which a slice is created in a place. Unfit says why it cannot be created there.
func Order(ctx context.Context, l *ledger.Ledger, w incident.Workload, s incident.Slot, at view.Place, p policy.Policy) (spec []byte, unfit, err error) {
	if spec, err = l.Spec(ctx, s.Spec); err != nil {
		return nil, nil, err
	}
	from := s.SpecIn()
	if provider.Of(s.Zone) == provider.GKE {
		return spec, elsewhere(s, at), nil
	}
	by, named := s.Alternative(p, at)
	reshaped := at.Accelerator != ""
	like := reshaped && !named && s.Accelerator == at.Accelerator && w.TrainsOn() > 1 // like the slices that it trains with
	switch {
	case at != view.Place{Zone: at.Zone} && !named && !like:
		return nil, unfitFor(s, at, "the policy does not name "+strings.TrimPrefix(at.Kind(), "as ")), nil
	case reshaped && s.Accelerator != at.Accelerator && checkpoint.Counted(w.Training.Saved.URI):
		return nil, unfitFor(s, at, "the number of a TensorFlow checkpoint may be a count of checkpoints, so the steps left there are unknown"), nil
	}
	if !s.AsOrdered() {
		own, err := l.Spec(ctx, s.Order.Spec)
		if err != nil {
			return nil, nil, err
		}
		if spec, err = cloudtpu.TakeAs(spec, own); err != nil {
			return nil, nil, err
		}
		home := topology.Region(at.Zone) == topology.Region(s.Order.SpecZone)
		if !like {
			if spec, err = cloudtpu.Restore(spec, own, home); err != nil {
				return nil, nil, err
			}
		}
		if home && !like {
			from = s.Order.SpecZone
		}
	}
	if at.Capacity != "" {
		if spec, unfit = cloudtpu.Take(spec, at.Capacity); unfit != nil {
			return nil, unfit, nil
		}
	}
	if reshaped && !like {
		by.Capacity = at.Capacity
		if spec, unfit = cloudtpu.Reshape(spec, by, w.TrainsOn()); unfit != nil {
			return nil, unfit, nil
		}
	}
	if p.Autocheckpoint == policy.AutocheckpointOn {
		if spec, err = cloudtpu.Autocheckpointed(spec); err != nil {
			return nil, nil, err
		}
	}
	spec, unfit = cloudtpu.Fit(spec, cloudtpu.Move{From: from, To: at.Zone, Subnetworks: p.Subnetworks})
	if unfit == nil && at.Capacity != "" && by.Reservation != "" {
		spec, err = cloudtpu.Reserve(spec, w.Project, at.Zone, by.Reservation)
	}
	return spec, unfit, err
}

// elsewhere says why a Job cannot be created in a place other than its own; nil in its own.
func elsewhere(s incident.Slot, at view.Place) error {
	switch {
	case at != view.Place{Zone: at.Zone}:
		return unfitFor(s, at, "the machines of a Job are chosen by its manifest")
	case at.Zone != s.SpecIn():
		return &provider.Error{Call: "create " + s.Name, Class: reason.CannotMove, Message: "a Job is created again in its own cluster and namespace alone"}
	}
	return nil
}

// unfitFor says why a slice cannot be created in another shape or capacity.
func unfitFor(s incident.Slot, at view.Place, why string) error {
	code := reason.CodeOtherCapacity
	if at.Accelerator != "" {
		code = reason.CodeOtherShape
	}
	return &provider.Error{Call: "create " + s.Name, Class: reason.CannotMove, Code: code, Message: why}
}

// Ref is the present or last place of a slice of a workload.
func Ref(w incident.Workload, s incident.Slot) provider.Ref {
	return provider.Ref{Project: w.Project, Zone: s.Zone, Name: s.Name, QueuedResource: s.Group, Legacy: s.Legacy}
}

// Read reads one slice now. The reading counts as old as the start of the call: news that comes during the call is newer.
func (f *Fleet) Read(ctx context.Context, r provider.Ref) (provider.Slice, error) {
	at := f.Now()
	s, err := f.Provider.Read(ctx, r)
	s.At = at
	return s, err
}

// List reads a zone now, and counts as old as its first call.
func (f *Fleet) List(ctx context.Context, project, zone string) (provider.Listing, error) {
	at := f.Now()
	list, err := f.Provider.List(ctx, project, zone)
	list.At = at
	for i := range list.Slices {
		list.Slices[i].At = at
	}
	return list, err
}

// Listen looks for a sign of life from the crew of a slice just read. It feeds the result to the workload, whether there was
// a sign or not. It sends the crew no request.
func (f *Fleet) Listen(ctx context.Context, w incident.Workload, s provider.Slice) (incident.Workload, error) {
	crews, err := f.Provider.Crews(ctx, s.Ref)
	if err != nil {
		f.Log.WarnContext(ctx, "crews not read", "workload", w.ID, "slice", s.Name, "error", err.Error())
	}
	beat := evidence.Beat{Origin: evidence.Origin{Time: f.Now(), Rank: events.RankUser}, Slice: s.Name, Incarnation: s.Incarnation}
	for _, c := range crews {
		if c.Worker == 0 { // it speaks for the slice
			beat.Seen, beat.Runs, beat.Attempt, beat.StepAt = c.Seen, c.Phase == "running", c.Attempt, c.StepAt
			beat.Step, beat.Verdict = c.Step, c.Verdict
			beat.Looked = c.RequestReadAt
		}
	}
	return f.Advancer.Advance(ctx, w.ID, beat)
}

// Reaches reports whether this function reads the provider of a zone. Patrol reads them all, a minute later at most.
func (f *Fleet) Reaches(zone string) bool {
	s, some := f.Provider.(provider.Set)
	return !some || s.Has(zone)
}

// Look reads every slice of a workload now and feeds the readings to it. A slice that is being created elsewhere is looked
// for there. A slice that cannot be read is logged and left for the next look.
func (f *Fleet) Look(ctx context.Context, w incident.Workload) (incident.Workload, error) {
	for _, s := range w.Slices {
		ref := Ref(w, s)
		for _, e := range w.Effects {
			if e.Action == events.ActionCreate && e.Concerns(s.Name) {
				ref.Zone = e.Zone
			}
		}
		if !f.Reaches(ref.Zone) {
			continue
		}
		next, err := f.LookAt(ctx, w, ref)
		if err != nil {
			return w, err
		}
		w = next
	}
	return w, nil
}

// LookAt reads one slice of a workload now and feeds the reading to it, unless the slice there belongs to another workload.
func (f *Fleet) LookAt(ctx context.Context, w incident.Workload, ref provider.Ref) (incident.Workload, error) {
	by, err := f.Taken(ctx, w, ref)
	if err != nil || by != "" {
		return w, err
	}
	s, err := f.Read(ctx, ref)
	if err != nil {
		f.Log.WarnContext(ctx, "slice not read", "workload", w.ID, "slice", ref.String(), "error", err.Error())
		return w, nil
	}
	return f.Feed(ctx, w, s)
}

// Taken returns the workload that has the name of a slice, or of its queued resource, in a zone other than the slice's own;
// it is empty if the name is free. If the name is taken, a reading there says nothing about this workload.
func (f *Fleet) Taken(ctx context.Context, w incident.Workload, r provider.Ref) (by string, err error) {
	if own := w.Slice(r.Name); own == nil || own.Zone == r.Zone {
		return "", nil
	}
	by, err = f.holder(ctx, w, r, ledger.Node, r.Name)
	if err == nil && by == "" && r.QueuedResource != "" {
		return f.holder(ctx, w, r, ledger.QueuedResource, r.QueuedResource)
	}
	return by, err
}

// holder is the other workload that holds a name in a zone, or empty.
func (f *Fleet) holder(ctx context.Context, w incident.Workload, r provider.Ref, kind ledger.SubjectKind, name string) (string, error) {
	s, err := f.Ledger.Subject(ctx, r.Project, r.Zone, kind, name)
	if err == nil && s.Workload != w.ID {
		var other incident.Workload
		if other, err = f.Advancer.Workload(ctx, s.Workload); err == nil && other.Owns(s.Slice, r.Zone) {
			return other.ID, nil
		}
	}
	if errors.Is(err, ledger.ErrNotFound) {
		return "", nil
	}
	return "", err
}

// Feed stores the data that comes with a reading, and gives the reading to the workload.
func (f *Fleet) Feed(ctx context.Context, w incident.Workload, s provider.Slice) (incident.Workload, error) {
	if s.Remains {
		known := w.Slice(s.Name)
		if known == nil {
			return w, nil // nobody knows what it is of
		}
		s.Incarnation = known.Incarnation // while any life has not ended, the last one is not gone
	}
	if f.Secrets == nil {
		s.Spec, s.SpecHash = nil, ""
	}
	if err := f.keep(ctx, w, &s); err != nil {
		return w, err
	}
	e := s.Evidence("")
	if claims := s.Labels[events.LabelWorkload]; claims != w.Name && claims != LabelValue(w.Name) {
		e.Facts.Claims = claims
	}
	return f.Advancer.Introduce(ctx, w, e)
}

// keep saves the specification of a slice before any decision about it, and maps its names to its workload.
func (f *Fleet) keep(ctx context.Context, w incident.Workload, s *provider.Slice) error {
	if s.Condition == evidence.Gone || s.Remains {
		return nil
	}
	known := w.Slice(s.Name)
	if known != nil && w.IsFormer(s.Name, s.Incarnation) {
		return nil // it is not the slice, or no longer
	}
	if err := f.keepSpec(ctx, w, s); err != nil {
		return err
	}
	if Knows(w, *s) {
		return nil
	}
	subject := ledger.Subject{Workload: w.ID, Slice: s.Name, Incarnation: s.Incarnation}
	if err := f.Ledger.Map(ctx, s.Project, s.Zone, ledger.Node, s.Name, subject); err != nil {
		return err
	}
	if s.QueuedResource == "" {
		return nil
	}
	return f.Ledger.Map(ctx, s.Project, s.Zone, ledger.QueuedResource, s.QueuedResource, subject)
}

// Knows reports whether the names of a listed slice are mapped to a workload: for this life, or for the former one while the
// queued resource brings no life.
func Knows(w incident.Workload, s provider.Slice) bool {
	known := w.Slice(s.Name)
	return known != nil && known.Zone == s.Zone && known.Group == s.QueuedResource &&
		(known.Incarnation.Same(s.Incarnation) || !s.Incarnation.Known())
}

// keepSpec saves how a slice was ordered: first the values of its metadata, so that no specification names missing values.
// If they cannot be stored, the reading leaves out the order; the rest of it counts.
func (f *Fleet) keepSpec(ctx context.Context, w incident.Workload, s *provider.Slice) error {
	if len(s.Spec) == 0 {
		return nil
	}
	known := w.Slice(s.Name)
	named := known != nil && known.Spec == s.SpecHash
	if s.Values != nil {
		if err := f.Secrets.Keep(ctx, s.SpecHash, s.Values, s.ValuesSum, f.Now()); err != nil {
			f.Log.ErrorContext(ctx, "metadata values not stored: the slice cannot be created again as it is ordered now", "workload", w.ID, "slice", s.Name, "error", err.Error())
			if !named {
				s.Spec, s.SpecHash = nil, ""
				return nil
			}
		}
	}
	if named {
		return nil
	}
	return f.Ledger.SaveSpec(ctx, s.SpecHash, s.Spec)
}

// RenewValues keeps the metadata values of a workload's slices from expiring. Values of a slice that its owner has deleted
// may expire.
func (f *Fleet) RenewValues(ctx context.Context, w incident.Workload) error {
	var faults []error
	for _, s := range w.Slices {
		if s.IsReleased() && s.Condition == evidence.Gone {
			continue
		}
		for _, name := range []string{s.Spec, s.Order.Spec} {
			if name != "" {
				faults = append(faults, f.Secrets.Renew(ctx, name, f.Now()))
			}
		}
	}
	return errors.Join(faults...)
}

// Observe takes a reading of any slice: it finds the workload that the slice belongs to, or introduces it.
func (f *Fleet) Observe(ctx context.Context, s provider.Slice) (incident.Workload, error) {
	w, err := f.workloadOf(ctx, s)
	if err != nil {
		return incident.Workload{}, err
	}
	return f.Feed(ctx, w, s)
}

// workloadOf finds the workload of a slice. Its name is fixed at first sight: the label pitstop-workload, else the queued
// resource's ID, else the node's. An unlabelled slice must not take the name of one that lives in another zone, or of a
// workload that it does not belong to. Then its zone is added to the name.
func (f *Fleet) workloadOf(ctx context.Context, s provider.Slice) (incident.Workload, error) {
	if subject, err := f.Ledger.Subject(ctx, s.Project, s.Zone, ledger.Node, s.Name); err == nil {
		w, err := f.Advancer.Workload(ctx, subject.Workload)
		if !errors.Is(err, ledger.ErrNotFound) {
			return w, err
		}
	} else if !errors.Is(err, ledger.ErrNotFound) {
		return incident.Workload{}, err
	}
	own := cmp.Or(s.QueuedResource, s.Name)
	in := strings.ReplaceAll(s.Zone, "/", ".") // a name has no slash
	names := []string{own, own + "." + in}
	label := s.Labels[events.LabelWorkload]
	if label != "" {
		names = slices.Insert(names, 0, label)
	}
	for i, name := range names {
		w, err := f.Advancer.Workload(ctx, s.Project+"/"+name)
		switch {
		case errors.Is(err, ledger.ErrNotFound):
			return incident.New(s.Project, name, provider.Of(s.Zone)), nil
		case err != nil:
			return incident.Workload{}, err
		}
		labelled := label != "" && i == 0
		w, why, err := f.stranger(ctx, w, s)
		switch {
		case err != nil:
			return incident.Workload{}, err
		case why != "" && labelled:
			f.Log.ErrorContext(ctx, "slice does not join the workload in its label and becomes its own workload; if it belongs there, "+
				"create it again with the same checkpoint directory, policy and service account; if not, remove the label",
				"slice", s.String(), "workload", w.ID, "reason", why)
			continue
		case why != "":
			continue
		case labelled:
			return w, nil
		}
		if w, err = f.namesake(ctx, w, s); err != nil || !livesElsewhere(w, s) {
			return w, err
		}
	}
	return incident.New(s.Project, own+"."+in+"."+s.Incarnation.ID, provider.Of(s.Zone)), nil
}

// stranger says why a slice with the name of a workload does not belong to it. The workload's slices may be gone since the
// last reading, so they are read first.
func (f *Fleet) stranger(ctx context.Context, w incident.Workload, s provider.Slice) (_ incident.Workload, why string, err error) {
	if of := provider.Of(s.Zone); cmp.Or(w.Provider, provider.CloudTPU) != of {
		return w, "it is of the provider " + of + ", and the workload of " + w.Provider, nil
	}
	e := s.Evidence("")
	if w.Stranger(e) == "" {
		return w, "", nil
	}
	for _, known := range w.Slices {
		now, err := f.Read(ctx, Ref(w, known))
		if err != nil {
			return w, "", fmt.Errorf("look whether %s still lives in %s: %w", known.Name, known.Zone, err)
		}
		if w, err = f.Feed(ctx, w, now); err != nil {
			return w, "", err
		}
	}
	return w, w.Stranger(e), nil
}

// LabelValue writes the name of a workload in the characters that a label allows.
func LabelValue(name string) string {
	value := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	const longest = 63
	return value[:min(len(value), longest)]
}

// namesake reads the slice whose name a new slice would take, and that lived in another zone at its last reading. Its owner
// may have deleted it and created it in the new zone since.
func (f *Fleet) namesake(ctx context.Context, w incident.Workload, s provider.Slice) (incident.Workload, error) {
	known := w.Slice(s.Name)
	if known == nil || !livesElsewhere(w, s) {
		return w, nil
	}
	now, err := f.Read(ctx, Ref(w, *known))
	if err != nil {
		return w, fmt.Errorf("look whether %s still lives in %s: %w", s.Name, known.Zone, err)
	}
	return f.Feed(ctx, w, now)
}

// livesElsewhere reports whether a slice of that name lives in another zone and is not being deleted, or lived there after
// this one had begun to live.
func livesElsewhere(w incident.Workload, s provider.Slice) bool {
	known := w.Slice(s.Name)
	if known == nil {
		return len(w.Slices) > 0 && w.Slices[0].Zone != s.Zone
	}
	over := known.Condition == evidence.Gone || known.Condition == evidence.Lost || known.Condition == evidence.Deleting
	return known.Zone != s.Zone && (!over || w.IsFormer(s.Name, s.Incarnation))
}

// MapHosts reads the host names of a life of a slice and records their slice, so that entries about its workers are
// understood. It asks once for each life, even if a line has named some. If the names are not available, the first line that names some
// is the second source.
func (f *Fleet) MapHosts(ctx context.Context, w incident.Workload, s incident.Slot) (incident.Workload, error) {
	if s.HostsKnown() {
		return w, nil
	}
	hosts, err := f.Provider.Hosts(ctx, Ref(w, s))
	forbidden := err != nil && provider.Failure(err).Class == reason.Permission
	switch {
	case forbidden:
		f.Log.WarnContext(ctx, "host names may not be read, so entries about single workers are understood only after a crew has reported; "+
			"lift the organization's constraint compute.disableGuestAttributesAccess, or grant the permission in the error",
			"workload", w.ID, "slice", s.Name, "error", err.Error())
	case err != nil:
		f.Log.WarnContext(ctx, "host names not read", "workload", w.ID, "slice", s.Name, "error", err.Error())
		return w, nil
	}
	for _, h := range hosts {
		if group, _, ok := events.WorkerGroup(h); ok {
			return f.MapGroup(ctx, w, s, group)
		}
	}
	if !forbidden && s.Condition != evidence.Ready {
		return w, nil // its workers may be about to write them
	}
	return f.mapped(ctx, w, s, "", events.RankReading)
}

// MapMachines records since when a life of a slice is on machines of GKE, and until when it was on others: what happens to a machine
// at another time does not concern it. What has failed for good left them then. Was and is are all of them, before and now.
func (f *Fleet) MapMachines(ctx context.Context, w incident.Workload, s provider.Slice, was, is ledger.Machines) error {
	former, until := ledger.Subject{Workload: w.ID, Slice: s.Name, Incarnation: was.Incarnation}, s.At
	if at := s.Failed.Add(bounds.NoticedFor); !s.Failed.IsZero() && at.Before(until) {
		until = at
	}
	for _, name := range was.Names {
		if was.Incarnation.Same(is.Incarnation) && slices.Contains(is.Names, name) {
			continue
		}
		if err := f.Ledger.Leave(ctx, s.Project, name, former, until); err != nil {
			return err
		}
	}
	present := ledger.Subject{Workload: w.ID, Slice: s.Name, Incarnation: is.Incarnation, Since: s.At}
	for _, name := range is.Names {
		if was.Incarnation.Same(is.Incarnation) && slices.Contains(was.Names, name) {
			continue
		}
		if err := f.Ledger.Map(ctx, s.Project, ledger.AnyZone, ledger.Machine, name, present); err != nil {
			return err
		}
	}
	return f.Ledger.KeepMachines(ctx, s.Project, s.Zone, s.Name, is)
}

// MapGroup records that workers with this common name belong to a life of a slice, according to the API.
func (f *Fleet) MapGroup(ctx context.Context, w incident.Workload, s incident.Slot, group string) (incident.Workload, error) {
	return f.mapGroup(ctx, w, s, group, events.RankReading)
}

// MapToldGroup records the same according to a line. It is provisional: the API is asked all the same, and decides.
func (f *Fleet) MapToldGroup(ctx context.Context, w incident.Workload, s incident.Slot, group string) (incident.Workload, error) {
	return f.mapGroup(ctx, w, s, group, events.RankUser)
}

func (f *Fleet) mapGroup(ctx context.Context, w incident.Workload, s incident.Slot, group string, by events.Rank) (incident.Workload, error) {
	subject := ledger.Subject{Workload: w.ID, Slice: s.Name, Incarnation: s.Incarnation}
	if err := f.Ledger.Map(ctx, w.Project, s.Zone, ledger.Worker, group, subject); err != nil {
		return w, err
	}
	return f.mapped(ctx, w, s, group, by)
}

func (f *Fleet) mapped(ctx context.Context, w incident.Workload, s incident.Slot, group string, by events.Rank) (incident.Workload, error) {
	return f.Advancer.Advance(ctx, w.ID, evidence.Mapped{
		Origin: evidence.Origin{Time: f.Now(), Rank: by}, Slice: s.Name, Incarnation: s.Incarnation, Group: group,
	})
}

// Find finds the subject of a log entry. An unknown node is read from the API. Entries of workers of an unknown slice are
// parked, and now and then one caller reads their zone. Lines share looks of their own. found is false while the subject of the entry
// is unknown.
func (f *Fleet) Find(ctx context.Context, e events.Entry, raw []byte) (s ledger.Subject, found bool, err error) {
	s, err = f.Known(ctx, e.Subject)
	if !errors.Is(err, ledger.ErrNotFound) {
		return s, err == nil && s.At(e.Time), err
	}
	if _, _, _, job := e.Subject.Scope(); job || e.Subject.Zone == "" || e.Subject.Project == "" {
		return s, false, nil // patrol alone reads clusters
	}
	if _, _, worker := e.Subject.Group(); e.Subject.Node == "" && !worker {
		return s, false, nil
	}
	if look, err := f.mayLook(ctx, e, raw); err != nil || !look {
		return s, false, err
	}
	if e.Subject.Node != "" {
		if met, err := f.Meet(ctx, e.Subject); err != nil || !met {
			return s, false, err
		}
		s, err = f.Known(ctx, e.Subject)
		return s, err == nil, err
	}
	if err := f.introduce(ctx, e.Subject.Project, e.Subject.Zone); err != nil {
		return s, false, err
	}
	s, err = f.Known(ctx, e.Subject)
	if errors.Is(err, ledger.ErrNotFound) {
		return s, false, nil
	}
	return s, err == nil, err
}

// mayLook reports whether the caller looks for the unknown subject of an entry. It parks an entry that the look may not find. A line gets
// no place of its own where too many were written in one minute, because each may name another zone.
func (f *Fleet) mayLook(ctx context.Context, e events.Entry, raw []byte) (look bool, err error) {
	line, node := e.Rank == events.RankUser, e.Subject.Node != ""
	if node && !line {
		return true, nil
	}
	var shared bool
	if line {
		if look, shared, err = f.Ledger.LookForLine(ctx, e.Subject.Project, e.Subject.Zone, f.Now()); err != nil || !look && !shared || look && node {
			return look, err
		}
	}
	group, _, _ := e.Subject.Group()
	of := cmp.Or(group, "node "+e.Subject.Node)
	if e.Crew != nil {
		of += " " + string(e.Crew.Report)
	}
	parked, err := f.Ledger.Park(ctx, e.Subject.Project, e.Subject.Zone, ledger.ParkedEntry{
		Key: of + " " + string(e.Kind) + " " + string(e.Cause) + " " + string(e.Notice.Status), Raw: raw, At: f.Now(), Line: line,
	})
	return look || parked, err
}

// MayLook reports whether evidence that came with an entry may cause a look now: Google's may, and lines share theirs. Patrol looks at its
// next tick where it may not.
func (f *Fleet) MayLook(ctx context.Context, e events.Entry) (bool, error) {
	if e.Rank != events.RankUser {
		return true, nil
	}
	may, _, err := f.Ledger.LookForLine(ctx, e.Subject.Project, e.Subject.Zone, f.Now())
	return may, err
}

// Meet reads the node of a log entry in the zone that the entry names, and gives the reading to the ledger; met is false if
// the node is gone, or if this function does not read its provider.
func (f *Fleet) Meet(ctx context.Context, of events.Subject) (met bool, err error) {
	if !f.Reaches(of.Zone) {
		return false, nil
	}
	s, err := f.Read(ctx, provider.Ref{Project: of.Project, Zone: of.Zone, Name: of.Node})
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", of, err)
	}
	if s.Condition == evidence.Gone {
		return false, nil
	}
	_, err = f.Observe(ctx, s)
	return err == nil, err
}

// Known finds the subject of a log entry in the ledger. It returns ledger.ErrNotFound if there is none, or if the slice
// vanished between the two writes that introduce it, so that its workload never knew it. Any other slice of the same queued
// resource stands for it.
func (f *Fleet) Known(ctx context.Context, of events.Subject) (ledger.Subject, error) {
	s, err := f.Ledger.Find(ctx, of)
	if err != nil {
		return s, err
	}
	w, err := f.Advancer.Workload(ctx, s.Workload)
	if err != nil || w.Slice(s.Slice) != nil {
		return s, err
	}
	for _, o := range w.Slices {
		if of.Node == "" && of.QueuedResource != "" && o.Group == of.QueuedResource && o.Zone == of.Zone {
			return ledger.Subject{Workload: w.ID, Slice: o.Name, Incarnation: o.Incarnation}, nil
		}
	}
	return s, fmt.Errorf("fleet: %s has no slice %s: %w", w.ID, s.Slice, ledger.ErrNotFound)
}

// Broken finds the one slice of a zone that a loss of workers with unknown names can be about: the API shows it lost or
// broken since about that time. If there are several such slices, none is found. No log speaks of the machines of a legacy TPU Node.
func Broken(workloads []incident.Workload, zone string, e events.Entry) (found ledger.Subject, ok bool) {
	if e.Kind != events.KindLoss || e.Time.IsZero() {
		return found, false
	}
	for _, w := range workloads {
		for _, s := range w.Slices {
			since := w.Broken(s.Name)
			if s.Zone != zone || s.ProvenHosts() != "" || s.Legacy || since.IsZero() || since.Sub(e.Time).Abs() > ledger.ParkFor || e.Time.Before(s.Incarnation.Created) {
				continue
			}
			if ok {
				return ledger.Subject{}, false
			}
			found, ok = ledger.Subject{Workload: w.ID, Slice: s.Name, Incarnation: s.Incarnation}, true
		}
	}
	return found, ok
}

// introduce reads a zone to find the subjects of unmatched entries: unknown slices become known, and slices with unknown
// host names are asked for them.
func (f *Fleet) introduce(ctx context.Context, project, zone string) error {
	list, err := f.List(ctx, project, zone)
	if err != nil {
		return fmt.Errorf("look at zone %s: %w", zone, err)
	}
	left := maxHosts
	for _, s := range list.Slices {
		w, err := f.Observe(ctx, s)
		if err != nil {
			return err
		}
		known := w.Slice(s.Name)
		if known == nil || known.HostsKnown() || left == 0 {
			continue
		}
		left--
		if _, err := f.MapHosts(ctx, w, *known); err != nil {
			return err
		}
	}
	return nil
}

// maxHosts bounds the host names read in one look.
const maxHosts = 60

// Evidence is the meaning of a log entry for one slice of a workload. It is nil if the entry has none. A call means something if it
// succeeded and was an owner's, or if a cluster deleted what had lost its owner.
func Evidence(e events.Entry, s ledger.Subject, known events.Accounts) evidence.Evidence {
	o := evidence.Origin{ID: e.ID, Time: e.Time, Rank: e.Rank}
	switch e.Kind {
	case events.KindNotice:
		return evidence.Noticed{Origin: o, Slice: s.Slice, Incarnation: lifeOf(e, s), Notice: e.Notice, Text: e.Describe()}
	case events.KindLoss:
		return evidence.Interrupted{Origin: o, Slice: s.Slice, Incarnation: lifeOf(e, s), Cause: e.Cause, Text: e.Describe()}
	case events.KindBack, events.KindLine:
		return evidence.Back{Origin: o, Slice: s.Slice, Incarnation: lifeOf(e, s), Text: e.Describe()}
	case events.KindCrew:
		return evidence.Reported{Origin: o, Slice: s.Slice, Report: *e.Crew}
	case events.KindCall:
		if e.Call.Code == 0 && (known.Party(e.Call) == events.PartyOwner || e.Call.Orphaned()) {
			act, whole := e.Call.Act()
			return evidence.Called{
				Origin: o, Slice: s.Slice, Zone: e.Subject.Zone, Act: act, Whole: whole, Method: e.Call.Method,
				Principal: cmp.Or(e.Call.Principal, "somebody whom the log does not name"), Automatic: e.Call.Automatic(), Orphaned: e.Call.Orphaned(), Everything: e.Everything(),
			}
		}
	case events.KindJob, events.KindCluster, events.KindLimit, events.KindCanary, events.KindForeign:
	}
	return nil
}

// lifeOf is the life that an entry is about, taken from its worker's or machine's name. A node keeps its name through every life, so an
// entry about a node names none.
func lifeOf(e events.Entry, s ledger.Subject) events.Incarnation {
	if _, _, ok := e.Subject.Group(); ok || e.Subject.Node == "" && e.Subject.Worker != "" {
		return s.Incarnation
	}
	return events.Incarnation{}
}
