package logevent

import (
	"context"
	"errors"
	"slices"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
)

// Deps are the function's dependencies.
type Deps struct {
	Fleet *fleet.Fleet
	// Projects are the watched projects; entries of other projects are ignored.
	Projects []string
	// Accounts are those that the deployment knows by name.
	Accounts events.Accounts
}

// New returns the function over its dependencies.
func New(d Deps) trigger.Handle { return trigger.Chain(decode, handler(d).handle) }

type handler Deps

type entry struct {
	events.Entry
	raw []byte
}

func decode(ce cloudevents.Event) (entry, error) {
	if ce.Type() != trigger.TypeMessage {
		return entry{}, fault.Ignored(reason.CodeNotMine, "event type %s is not a log entry", ce.Type())
	}
	e, err := events.Read(ce.Data())
	if err != nil {
		return entry{}, err
	}
	if e.Ignored != "" {
		return entry{}, fault.Ignored(reason.CodeNothing, "%s", e.Ignored)
	}
	if e.PubSub {
		return entry{}, fault.Ignored(reason.CodeNoSink, "this message did not come from a log sink")
	}
	return entry{e, ce.Data()}, nil
}

func (h handler) handle(ctx context.Context, e entry) error {
	if p := e.Subject.Project; !slices.Contains(h.Projects, p) {
		return fault.Ignored(reason.CodeNotWatched, "project %s is not watched", p)
	}
	if e.Kind == events.KindCanary {
		return h.canary(ctx, e.Entry)
	}
	// The entry was here before any document was read, so it may meet a held one. What is read from the API later may not.
	holding := h.Fleet.Holding(&ledger.Held{})
	s, found, err := holding.Find(ctx, e.Entry, e.raw)
	if err != nil {
		return err
	}
	if !found && e.Subject.Platform() == events.PlatformGKE {
		return fault.Ignored(reason.CodeNothing, "no watched Job is known by %s", e.Subject)
	}
	if !found {
		return nil // parked, or about an unknown slice that is gone
	}
	evidence := fleet.Evidence(e.Entry, s, h.Accounts)
	if _, _, _, job := e.Subject.Scope(); job {
		return h.job(ctx, holding, e.Entry, s, evidence)
	}
	if evidence == nil {
		return h.hint(ctx, holding, e.Entry, s)
	}
	if e.Kind == events.KindCrew {
		if err := mapCrew(ctx, holding, e.Entry, s); err != nil {
			return err
		}
	}
	w, changed, err := holding.Advancer.AdvanceChanged(ctx, s.Workload, evidence)
	if err == nil && e.Kind == events.KindCall && e.Call.Method == "CreateNode" {
		_, err = h.Fleet.Meet(ctx, e.Subject) // if its owner creates it again now, maybe no other delivery looks
		return err
	}
	if err != nil || !changed || !holding.Advancer.Reads(w).Has(incident.ReadSlices, "") {
		return err
	}
	// The delivery that stored the evidence looks; the other workers' entries add nothing.
	if look, err := h.Fleet.MayLook(ctx, e.Entry); err != nil || !look {
		return err
	}
	_, err = h.Fleet.Look(ctx, w)
	return err
}

// job takes what its owner did to a Job. Nothing is looked at, for patrol lists each cluster every minute.
func (h handler) job(ctx context.Context, holding *fleet.Fleet, e events.Entry, s ledger.Subject, evidence evidence.Evidence) error {
	if evidence == nil {
		return fault.Ignored(reason.CodeNothing, "%s by %s is no word of an owner", e.Call.Method, e.Call.By())
	}
	_, err := holding.Advancer.Advance(ctx, s.Workload, evidence)
	return err
}

// hint takes the audit entry of a finished operation, ours or Google's, as a reason to look now instead of at the next tick.
// It is not evidence: every incident must end right without these entries.
func (h handler) hint(ctx context.Context, holding *fleet.Fleet, e events.Entry, s ledger.Subject) error {
	if e.Call.First && !e.Call.Last && e.Call.Code == 0 {
		return fault.Ignored(reason.CodeNothing, "%s has only begun", e.Call.Method)
	}
	w, err := holding.Advancer.Workload(ctx, s.Workload)
	if err != nil {
		return err
	}
	if w.Incident == nil {
		return fault.Ignored(reason.CodeNoIncident, "no incident is open on %s", w.ID)
	}
	_, err = h.Fleet.Look(ctx, w)
	return err
}

// canary notes that the entry which patrol writes once a day came back.
func (h handler) canary(ctx context.Context, e events.Entry) error {
	news, err := h.Fleet.Ledger.CanaryReturned(ctx, e.Subject.Project, e.ID,
		ledger.Way{Written: e.Time, Received: e.Received, Published: trigger.FromContext(ctx).Published}, h.Fleet.Now())
	if err != nil {
		return err
	}
	if !news {
		return fault.Ignored(reason.CodeUnknownCanary, "canary %s is not the latest one, or came back before", e.ID)
	}
	h.Fleet.Log.InfoContext(ctx, "canary returned", "project", e.Subject.Project, "canary", e.ID, "seconds", h.Fleet.Now().Sub(e.Time).Seconds())
	return nil
}

// mapCrew learns the host names of a slice from its crew's first line, until the API gives them. A line from the crew of a former life
// maps nothing, and is ignored where that life is forgotten. A line takes no workers from another slice.
func mapCrew(ctx context.Context, f *fleet.Fleet, e events.Entry, s ledger.Subject) error {
	group, _, ok := events.WorkerGroup(e.Crew.Hostname)
	if !ok {
		return nil
	}
	w, err := f.Advancer.Workload(ctx, s.Workload)
	if err != nil {
		return err
	}
	slice := w.Slice(s.Slice)
	if slice != nil && slice.Hosts == group && slice.Incarnation.Same(s.Incarnation) {
		return nil // as with most lines
	}
	life := s.Incarnation
	if slice != nil && slice.Zone == e.Subject.Zone && !life.Known() {
		life = slice.Incarnation // the name was mapped when the slice was still to be created
	}
	begun := life.Created
	switch known, err := f.Ledger.Subject(ctx, e.Subject.Project, e.Subject.Zone, ledger.Worker, group); {
	case errors.Is(err, ledger.ErrNotFound):
	case err != nil:
		return err
	case known.Incarnation.Same(life), known.Workload != w.ID || known.Slice != s.Slice:
		return nil
	default:
		begun = begun.Add(clocks) // host names may be used again
	}
	if !e.Time.IsZero() && e.Time.Before(begun) {
		if slice != nil && slice.WasOn(group) {
			return nil // what it tells of the past counts
		}
		return fault.Ignored(reason.CodeFormerLife, "the crew on %s belongs to a former life of %s", group, s.Slice)
	}
	// A late line from a zone that the slice has left names workers of a former life.
	if slice != nil && slice.Hosts == "" && slice.Zone == e.Subject.Zone {
		_, err = f.MapToldGroup(ctx, w, *slice, group)
	}
	return err
}

// clocks is the largest difference expected between the clocks of two machines.
const clocks = 5 * time.Minute
