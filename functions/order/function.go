// Package order carries out the orders that people give on the console's pages. The operators' console may write nothing: it publishes an order
// on a topic of its own, on which nobody else may publish. This function stores it, in the name of the one who gave it, once however often it
// arrives, or says why it is not possible any more.
package order

import (
	"context"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/trigger"
)

func init() {
	// Arrives: pitstop.operator.ordered.v1 on the topic operator-orders. Publishes: requests, on the three request topics.
	// Grants: roles/pubsub.publisher on these topics, and the right to read and write the ledger. It calls no TPU.
	trigger.Register("HandleOrder", trigger.Function[config, events.OperatorOrdered]{Decode: decode, Build: build})
}

type config struct {
	Ledger  ledger.Config
	Publish publish.Config
	Policy  policy.Config
}

// Validate returns every fault in the configuration that the field tags cannot find.
func (c config) Validate() error { return c.Policy.Validate() }

func build(_ context.Context, cfg config) (func(context.Context, events.OperatorOrdered) error, error) {
	return handler{&ledger.Advancer{
		Ledger: cfg.Ledger.Open(), Policies: cfg.Policy.Source(checkpoint.Reader()), Publisher: publish.New(cfg.Publish.Topics()), Now: time.Now, Sleep: ledger.Sleep,
		Source: Source, Cause: trigger.MessageID, Log: trigger.Log(),
	}}.handle, nil
}
