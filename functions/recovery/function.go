// Package recovery brings training back on running slices: the lease that it writes names the slices where training may run,
// and the next attempt. The crews read the lease and do the rest. It also starts a slice that was stopped by somebody other
// than its owner.
package recovery

import (
	"context"
	"errors"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/trigger"
)

func init() {
	// Arrives: pitstop.recovery.requested.v1 on the topic recovery-requests. Publishes: requests, on the three request topics.
	// Grants: roles/pubsub.publisher on these topics, the right to read and write the ledger, the right to read TPUs in the
	// watched projects, roles/storage.objectViewer on the checkpoint buckets, and the right to write pitstop-lease.json there. If the
	// switches ask for it: the right to start TPUs in the watched projects.
	trigger.Register("HandleRecovery", trigger.Function[config, events.Received]{Decode: decode, Build: build})
}

type config struct {
	Ledger  ledger.Config
	Publish publish.Config
	Policy  policy.Config
	TPU     cloudtpu.Config
}

// Validate returns every fault in the configuration that the field tags cannot find.
func (c config) Validate() error {
	return errors.Join(c.Policy.Validate(), c.TPU.Validate())
}

func build(ctx context.Context, cfg config) (func(context.Context, events.Received) error, error) {
	cloud, err := cfg.TPU.Open(ctx)
	if err != nil {
		return nil, err
	}
	publisher := publish.New(cfg.Publish.Topics())
	f := fleet.Deployed(cfg.Ledger.Open(), cfg.Policy.Source(checkpoint.Reader()), publisher, provider.Set{provider.CloudTPU: cloud}, "recovery")
	return acting(Deps{Fleet: f, Provider: cloud, Store: checkpoint.Deployed()}), nil
}
