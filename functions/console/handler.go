package console

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/orders"
	"pitstop.internal/shared/page"
	"pitstop.internal/shared/signin"
)

// Deps are the function's dependencies.
type Deps struct {
	// Ledger is only read.
	Ledger   *ledger.Ledger
	Policies ledger.Policies
	Audience string
	// Keys reads the keys of Google's sign-in; nil reads them from Google.
	Keys *http.Client
	// Publisher publishes orders; nil takes none.
	Publisher ledger.Publisher
	Now       func() time.Time
	Log       *slog.Logger
}

// New returns the function over its dependencies.
func New(ctx context.Context, d Deps) (http.Handler, error) {
	s, err := signin.New(ctx, d.Audience, d.Keys, d.Log)
	if err != nil {
		return nil, err
	}
	site := page.Site{Ledger: d.Ledger, Policies: func(context.Context) (ledger.Policies, error) { return d.Policies, nil }, Now: d.Now, Log: d.Log}
	if d.Publisher != nil {
		site.Orders = &page.Orders{Who: signin.Person, Give: d.give, Done: "sent; the story tells within seconds what has become of it"}
	}
	return s.Only(site.Handler()), nil
}

// give publishes an order. What cannot be done any more is refused at once; the function that carries it out looks again.
func (d Deps) give(ctx context.Context, o orders.Order) error {
	w, _, err := d.Ledger.Workload(ctx, o.Workload)
	if err != nil {
		return err
	}
	if why := orders.Refused(w, o, d.Now()); why != "" {
		return orders.RefusedError(why)
	}
	env, err := events.Wrap(o.Message(), "//pitstop/functions/console", "", o.Incident, o.At)
	if err != nil {
		return err
	}
	return d.Publisher.Publish(ctx, env)
}
