// Package recovery brings training back on slices that live: it names in the lease where training may run, and which
// attempt is next. The crews read the lease and do the rest. What somebody stopped who is not its owner it starts.
package recovery

import (
	"context"
	"errors"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/tpu"
	"pitstop.internal/shared/trigger"
)

func init() {
	// Arrives: pitstop.recovery.requested.v1 on the topic recovery-requests. Publishes: requests, on the three request
	// topics. Grants: roles/pubsub.publisher on those, roles/datastore.user on the database, roles/tpu.viewer on the project,
	// roles/tpu.admin where it may start what was stopped, roles/storage.objectUser on the checkpoint buckets.
	trigger.Register("HandleRecovery", trigger.Function[config, events.Received]{Decode: decode, Build: build})
}

type config struct {
	Ledger  ledger.Config
	Publish publish.Config
	Policy  policy.Config
	TPU     tpu.Config
}

// Validate returns every fault of the configuration that its tags do not find.
func (c config) Validate() error { return errors.Join(c.Policy.Validate(), c.TPU.Validate()) }

func build(ctx context.Context, cfg config) (func(context.Context, events.Received) error, error) {
	cloud, err := cfg.TPU.Open(ctx)
	if err != nil {
		return nil, err
	}
	publisher := publish.New(cfg.Publish.Topics())
	f := fleet.New(cfg.Ledger.Open(), cfg.Policy.Source(checkpoint.Reader()), publisher, cloud, "recovery")
	return handler(Deps{Fleet: f, Provider: cloud, Store: checkpoint.Deployed()}).handle, nil
}
