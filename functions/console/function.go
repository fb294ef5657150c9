// Package console shows people in a browser what Pitstop knows, after Google's own sign-in: the fleet, an incident, all incidents, and where the
// time went. Deployed for viewers it only shows. Deployed for operators it takes orders too: it publishes each with the name of the one who gave it,
// and the function order carries it out. It writes nothing itself.
package console

import (
	"context"
	"net/http"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/trigger"
)

func init() {
	// Arrives: requests of browsers, through Identity-Aware Proxy. Publishes: orders on the topic operator-orders, where ORDERS_TOPIC names it.
	// Grants: to read the ledger and the policy file; for operators roles/pubsub.publisher on that one topic.
	trigger.RegisterPages("ServeConsole", build)
}

type config struct {
	Ledger ledger.Config
	Policy policy.Config
	// Audience is the service as Google's sign-in names it: /projects/NUMBER/locations/REGION/services/NAME.
	Audience string `env:"IAP_AUDIENCE, required"`
	// OrdersTopic is the full name of the topic operator-orders; without it nobody can give orders.
	OrdersTopic string `env:"ORDERS_TOPIC"`
}

// Validate returns every fault in the configuration that the field tags cannot find.
func (c config) Validate() error { return c.Policy.Validate() }

func build(ctx context.Context, cfg config) (http.Handler, error) {
	d := Deps{
		Ledger: cfg.Ledger.Open(), Policies: cfg.Policy.Source(checkpoint.Reader()), Audience: cfg.Audience, Now: time.Now, Log: trigger.Log(),
	}
	if cfg.OrdersTopic != "" {
		d.Publisher = publish.New(publish.Topics{events.TypeOperatorOrdered: cfg.OrdersTopic})
	}
	return New(ctx, d)
}
