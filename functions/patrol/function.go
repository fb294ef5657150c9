// Package patrol reads the true state from the API once a minute, so it finds losses that no event reported. It follows
// running operations, advances workloads whose time has come, and sends requests left in an outbox.
package patrol

import (
	"context"
	"errors"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/backlog"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/cloudlog"
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
	// Arrives: a tick a minute on the topic patrol-ticks. Publishes: notices on maintenance-notices, requests on the three
	// request topics. One instance, one tick at a time, no redelivery: the next tick continues the work of this one. Grants:
	// roles/pubsub.publisher on those. It reads and writes the ledger, and writes but does not read the second database. It reads
	// figures of Cloud Monitoring. In the watched projects it reads TPUs and logs, and writes the canary.
	// Where CLUSTERS names clusters: container.clusters.get and container.clusters.connect, and the right to list Jobs, JobSets, Pods and nodes there.
	trigger.Register("HandlePatrol", trigger.Function[config, time.Time]{Decode: decode, Build: build})
}

type config struct {
	Ledger  ledger.Config
	Secrets ledger.SecretsConfig
	Publish publish.Config
	Policy  policy.Config
	TPU     cloudtpu.Config
	// OurPrincipals are the accounts that Pitstop itself acts as, and Controllers are service accounts that only carry out in a cluster
	// what an owner declares there, both separated by commas. What they do does not count as an owner's act.
	OurPrincipals []string `env:"OUR_PRINCIPALS, required"`
	Controllers   []string `env:"CONTROLLERS"`
	GKE           gke.Config
	Backlog       backlog.Config
	// NoticeTopic is the full name of the topic maintenance-notices.
	NoticeTopic string `env:"NOTICE_TOPIC, required"`
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
	return errors.Join(c.Policy.Validate(), c.TPU.Validate(), c.GKE.Validate(), c.accounts().Validate())
}

// Watched are the projects whose TPUs are watched.
func (c config) Watched() []string {
	if len(c.WatchedProjects) > 0 {
		return c.WatchedProjects
	}
	return []string{c.Ledger.ProjectID}
}

func build(ctx context.Context, cfg config) (func(context.Context, time.Time) error, error) {
	cloud, err := cfg.TPU.Open(ctx)
	if err != nil {
		return nil, err
	}
	providers := provider.Set{provider.CloudTPU: cloud}
	if clusters := cfg.GKE.Open(cfg.Ledger.ProjectID); clusters != nil {
		providers[provider.GKE] = clusters
	}
	topics := cfg.Publish.Topics()
	topics[events.TypeMaintenanceNotified] = cfg.NoticeTopic
	publisher := publish.New(topics)
	f := fleet.Deployed(cfg.Ledger.Open(), cfg.Policy.Source(checkpoint.Reader()), publisher, providers, "patrol")
	f.Secrets = cfg.Secrets.Open(cfg.Ledger.ProjectID)
	log := cloudlog.New()
	settings := &ledger.Settings{Policy: cfg.Policy, Watched: cfg.Watched()}
	var watched []Deps
	for _, project := range cfg.Watched() {
		d := Deps{
			Fleet: f, Provider: providers, Audit: log, Publisher: publisher, Canary: log, Project: project, Accounts: cfg.accounts(),
			Settings: settings, Sleep: ledger.Sleep,
		}
		if queues := cfg.Backlog.Open(cfg.Ledger.ProjectID); queues != nil {
			d.Queues = queues
		}
		watched = append(watched, d)
	}
	return newHandler(watched).tick, nil
}
