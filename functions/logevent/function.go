// Package logevent reads entries of Cloud Logging: losses and restarts of machines, calls of the TPU API and their results,
// and lines from the training side. It reads the TPU API before it acts on a loss.
package logevent

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
	// Arrives: log entries on the topic log-events. Publishes: requests, on the three request topics.
	// Grants: roles/pubsub.publisher on those, the right to read and write the ledger, the right to read TPUs in the
	// watched projects.
	trigger.Register("HandleLogEvent", trigger.Function[config, entry]{Decode: decode, Build: build})
}

type config struct {
	Ledger  ledger.Config
	Publish publish.Config
	Policy  policy.Config
	TPU     cloudtpu.Config
	// OurPrincipals are the accounts that Pitstop itself acts as, and Controllers are service accounts that only carry out in a cluster
	// what an owner declares there, both separated by commas. What they do does not count as an owner's act.
	OurPrincipals []string `env:"OUR_PRINCIPALS, required"`
	Controllers   []string `env:"CONTROLLERS"`
	// WatchedProjects are the projects whose TPUs are watched, separated by commas. Empty means the function's own project
	// alone.
	WatchedProjects []string `env:"WATCHED_PROJECTS"`
}

// accounts are those that the function knows by name.
func (c config) accounts() events.Accounts {
	return events.Accounts{Ours: c.OurPrincipals, Controllers: c.Controllers}
}

// Validate returns every fault in the configuration that the field tags cannot find.
func (c config) Validate() error {
	return errors.Join(c.Policy.Validate(), c.TPU.Validate(), c.accounts().Validate())
}

// Watched are the projects whose TPUs are watched.
func (c config) Watched() []string {
	if len(c.WatchedProjects) > 0 {
		return c.WatchedProjects
	}
	return []string{c.Ledger.ProjectID}
}

func build(ctx context.Context, cfg config) (func(context.Context, entry) error, error) {
	cloud, err := cfg.TPU.Open(ctx)
	if err != nil {
		return nil, err
	}
	publisher := publish.New(cfg.Publish.Topics())
	f := fleet.Deployed(cfg.Ledger.Open(), cfg.Policy.Source(checkpoint.Reader()), publisher, provider.Set{provider.CloudTPU: cloud}, "logevent")
	return handler(Deps{Fleet: f, Projects: cfg.Watched(), Accounts: cfg.accounts()}).handle, nil
}
