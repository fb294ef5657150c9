// Package checkpoint carries out checkpoint requests: it asks the training side to save, verifies that a complete checkpoint
// exists, and starts announced maintenance early where the policy allows it.
package checkpoint

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
	// Arrives: pitstop.checkpoint.requested.v1 on the topic checkpoint-requests. Publishes: requests, on the three request
	// topics. Grants: roles/pubsub.publisher on these topics, the right to read and write the ledger,
	// roles/storage.objectViewer on the checkpoint buckets, the right to write pitstop-request.json there, and the right to read TPUs in
	// the watched projects. If the switches ask for it: the right to change the metadata of these TPUs, and to start their maintenance. If
	// they let maintenance start early and CLUSTERS names clusters: container.clusters.get and container.clusters.connect, and the right
	// to list Jobs, JobSets, Pods and nodes there, and to patch nodes.
	trigger.Register("HandleCheckpoint", trigger.Function[config, events.Received]{Decode: decode, Build: build})
}

type config struct {
	Ledger  ledger.Config
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
	f := fleet.Deployed(cfg.Ledger.Open(), cfg.Policy.Source(checkpoint.Reader()), publisher, providers, "checkpoint")
	return acting(Deps{Fleet: f, Provider: providers, Store: checkpoint.Deployed(), Limits: cfg.Brake.Limits()}), nil
}
