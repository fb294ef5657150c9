package order

import (
	"context"
	"errors"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/orders"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
)

// Source names the function in the events that it sends.
const Source = "//pitstop/functions/order"

// New returns the function over the loop that stores what it learns.
func New(a *ledger.Advancer) trigger.Handle { return trigger.Chain(decode, handler{a}.handle) }

func decode(ce cloudevents.Event) (e events.OperatorOrdered, err error) {
	if ce.Type() != events.TypeOperatorOrdered {
		return e, fault.Ignored(reason.CodeNotMine, "event type %s is no order of a person", ce.Type())
	}
	return events.DecodeOperatorOrdered(ce.Data())
}

type handler struct{ *ledger.Advancer }

// handle carries out an order. One that is not possible any more stands in the record as refused: the one who gave it has seen no answer.
func (h handler) handle(ctx context.Context, e events.OperatorOrdered) error {
	o := orders.FromMessage(e)
	_, err := orders.Apply(ctx, h.Advancer, o)
	var refused orders.RefusedError
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return fault.Ignored(reason.CodeUnknownWorkload, "%s is not in the ledger", o.Workload)
	case errors.Is(err, orders.ErrTaken):
		return fault.Ignored(reason.CodeAnswered, "%w", err)
	case errors.As(err, &refused):
		h.Log.WarnContext(ctx, "order refused", "workload", o.Workload, "verb", string(o.Verb), "incident", o.Incident, "by", o.By, "order", o.ID, "reason", refused.Error())
		return orders.Note(ctx, h.Advancer, o, refused)
	case err != nil:
		return err
	}
	h.Log.InfoContext(ctx, "order taken", "workload", o.Workload, "verb", string(o.Verb), "incident", o.Incident, "by", o.By, "order", o.ID)
	return nil
}
