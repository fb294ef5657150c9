// Package maintenance turns announced maintenance into a save at the right time. Notices come as log entries of Compute
// Engine through their own sink, and from patrol when the API shows one.
package maintenance

import (
	"context"
	"errors"

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
	// Arrives: entries of upcomingMaintenance and upcomingInfraMaintenance, and pitstop.maintenance.notified.v1, on the topic
	// maintenance-notices. Publishes: requests, on the three request topics.
	// Grants: roles/pubsub.publisher on those, the right to read and write the ledger, the right to read TPUs in the
	// watched projects.
	trigger.Register("HandleMaintenance", trigger.Function[config, notice]{Decode: decode, Build: build})
}

type config struct {
	Ledger  ledger.Config
	Publish publish.Config
	Policy  policy.Config
	TPU     cloudtpu.Config
	// WatchedProjects are the projects whose TPUs are watched, separated by commas. Empty means the function's own project
	// alone.
	WatchedProjects []string `env:"WATCHED_PROJECTS"`
}

// Validate returns every fault in the configuration that the field tags cannot find.
func (c config) Validate() error { return errors.Join(c.Policy.Validate(), c.TPU.Validate()) }

// Watched are the projects whose TPUs are watched.
func (c config) Watched() []string {
	if len(c.WatchedProjects) > 0 {
		return c.WatchedProjects
	}
	return []string{c.Ledger.ProjectID}
}

func build(ctx context.Context, cfg config) (func(context.Context, notice) error, error) {
	cloud, err := cfg.TPU.Open(ctx)
	if err != nil {
		return nil, err
	}
	publisher := publish.New(cfg.Publish.Topics())
	f := fleet.Deployed(cfg.Ledger.Open(), cfg.Policy.Source(checkpoint.Reader()), publisher, provider.Set{provider.CloudTPU: cloud}, "maintenance")
	return handler(Deps{Fleet: f, Projects: cfg.Watched()}).handle, nil
}
