package fleet

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/reason"
)

// DecodeRequest decodes the one type of request that an acting function takes. name is what a person calls it.
func DecodeRequest[E events.Event](name string) func(cloudevents.Event) (events.Received, error) {
	return func(ce cloudevents.Event) (r events.Received, err error) {
		var taken E
		if ce.Type() != taken.EventType() {
			return r, fault.Ignored(reason.CodeNotMine, "event type %s is not a %s request", ce.Type(), name)
		}
		return events.DecodeRequest(ce.Type(), ce.Data())
	}
}

// Acting is how every acting function begins. It finds the effect that a request points to, and hands the request on as the ledger
// rebuilds it.
func Acting[E events.Event](f *Fleet, act func(context.Context, incident.Workload, E) error) func(context.Context, events.Received) error {
	return func(ctx context.Context, m events.Received) error {
		w, r, err := ledger.Resolve[E](ctx, f.Advancer, m)
		if err != nil {
			return err
		}
		return act(ctx, w, r)
	}
}
