// Package recreate replaces lost slices: it deletes one, or creates one from its stored specification. It never waits:
// operations continue, and patrol follows them.
package recreate

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
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/trigger"
)

func init() {
	// Arrives: pitstop.recreate.requested.v1 on the topic recreate-requests. Publishes: requests, on the three request topics.
	// Grants: roles/pubsub.publisher on those, the right to read and write the ledger, the right to write and read the second database,
	// and the right to read TPUs in the watched projects. If the switches ask for it: the right to delete TPUs there and to create them,
	// and roles/storage.bucketViewer on the checkpoint buckets; where CLUSTERS names clusters: container.clusters.get and
	// container.clusters.connect, and the right to list Jobs, JobSets, Pods and nodes there, and to delete and create Jobs and JobSets.
	trigger.Register("HandleRecreate", trigger.Function[config, events.Received]{Decode: decode, Build: build})
}

type config struct {
	Ledger  ledger.Config
	Secrets ledger.SecretsConfig
	Publish publish.Config
	Policy  policy.Config
	TPU     cloudtpu.Config
	GKE     gke.Config
	Brake   ledger.BrakeConfig
}

// Validate returns every fault in the configuration that the field tags cannot find.
func (c config) Validate() error {
	return errors.Join(c.Policy.Validate(), c.TPU.Validate(), c.GKE.Validate())
}

func build(ctx context.Context, cfg config) (func(context.Context, events.Received) error, error) {
	cloud, err := cfg.TPU.Open(ctx)
	if err != nil {
		return nil, err
	}
	providers := provider.Set{provider.CloudTPU: cloud}
	if clusters := cfg.GKE.Open(cfg.Ledger.ProjectID); clusters != nil {
		providers[provider.GKE] = clusters
	}
	publisher := publish.New(cfg.Publish.Topics())
	f := fleet.Deployed(cfg.Ledger.Open(), cfg.Policy.Source(checkpoint.Reader()), publisher, providers, "recreate")
	f.Secrets = cfg.Secrets.Open(cfg.Ledger.ProjectID)
	return acting(Deps{Fleet: f, Provider: providers, Buckets: checkpoint.Deployed(), Limits: cfg.Brake.Limits()}), nil
}
