package maintenance

import (
	"context"
	"errors"
	"slices"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
)

// Deps are the function's dependencies.
type Deps struct {
	Fleet *fleet.Fleet
	// Projects are the watched projects; entries of other projects are ignored.
	Projects []string
}

// New returns the function over its dependencies.
func New(d Deps) trigger.Handle { return trigger.Chain(decode, handler(d).handle) }

type handler Deps

// notice is announced maintenance, or its end, from whichever source.
type notice struct {
	entry events.Entry
	raw   []byte
	// notified is set if the notice came from a reading of the API.
	notified *events.MaintenanceNotified
}

func decode(ce cloudevents.Event) (notice, error) {
	switch ce.Type() {
	case events.TypeMaintenanceNotified:
		n, err := events.DecodeMaintenanceNotified(ce.Data())
		return notice{notified: &n}, err
	case trigger.TypeMessage:
		e, err := events.Read(ce.Data())
		if err != nil {
			return notice{}, err
		}
		if e.Ignored != "" {
			return notice{}, fault.Ignored(reason.CodeNothing, "%s", e.Ignored)
		}
		if e.PubSub {
			return notice{}, fault.Ignored(reason.CodeNoSink, "this message did not come from a log sink")
		}
		if e.Kind != events.KindNotice {
			return notice{}, fault.Ignored(reason.CodeNotMine, "an entry about %s is not a maintenance notice", e.Kind)
		}
		return notice{entry: e, raw: ce.Data()}, nil
	}
	return notice{}, fault.Ignored(reason.CodeNotMine, "event type %s is not about maintenance", ce.Type())
}

func (h handler) handle(ctx context.Context, n notice) error {
	if n.notified != nil {
		return h.notified(ctx, *n.notified)
	}
	if p := n.entry.Subject.Project; !slices.Contains(h.Projects, p) {
		return fault.Ignored(reason.CodeNotWatched, "project %s is not watched", p)
	}
	holding := h.Fleet.Holding(&ledger.Held{}) // the entry was here before any document was read
	s, found, err := holding.Find(ctx, n.entry, n.raw)
	if err != nil {
		return err
	}
	if !found {
		return nil // parked until its slice is known
	}
	_, err = holding.Advancer.Advance(ctx, s.Workload, fleet.Evidence(n.entry, s, events.Accounts{}))
	return err
}

func (h handler) notified(ctx context.Context, n events.MaintenanceNotified) error {
	s, err := h.Fleet.Ledger.Subject(ctx, n.Project, n.Incarnation.Zone, ledger.Node, n.Node)
	if errors.Is(err, ledger.ErrNotFound) {
		return fault.Ignored(reason.CodeUnknownNode, "%s in %s is not known", n.Node, n.Incarnation.Zone)
	}
	if err != nil {
		return err
	}
	_, err = h.Fleet.Advancer.Advance(ctx, s.Workload, evidence.Noticed{
		Origin: evidence.Origin{ID: n.EventID(), Time: n.Read, Rank: events.RankReading},
		Slice:  s.Slice, Incarnation: n.Incarnation, Notice: n.Notice, InAPI: true,
		Text: "the API announces maintenance for " + events.Window(n.Notice.WindowStart, n.Notice.WindowEnd),
	})
	return err
}
