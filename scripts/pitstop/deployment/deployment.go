// Package deployment is an installation of Pitstop as an operator reaches it: its place, its ledger, its topics, the TPUs that it watches,
// and the rights of its functions.
package deployment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/api/container/v1"
	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/publish"
)

// CanaryWriter writes the entry that has to come back.
type CanaryWriter interface {
	WriteCanary(ctx context.Context, project, id string, at time.Time) error
}

// CheckpointStore is a store of checkpoints that knows where they are.
type CheckpointStore interface {
	checkpoint.Store
	checkpoint.Locator
}

// Deployment is an installation of Pitstop as an operator reaches it with their own credentials: its ledger, its topics and the TPUs
// that it watches.
type Deployment struct {
	// Google is the connection to Google. It is nil in a test that asks nothing over a network.
	Google          *google.Connection
	OpenLedger      func(project, database string) *ledger.Ledger
	Publisher       func(topics publish.Topics) ledger.Publisher
	OpenDeadLetters func(ctx context.Context) (DeadLetters, error)
	OpenNodeEditor  func(ctx context.Context) (NodeEditor, error)
	// OpenNodeLister lists nodes, with the legacy ones of these zones.
	OpenNodeLister func(ctx context.Context, legacyZones []string) (NodeLister, error)
	ReadFile       func(ctx context.Context, uri string) ([]byte, error)
	Checkpoints    CheckpointStore
	Permissions    PermissionTester
	Grants         func() ([]Grant, error)
	// Caller names the caller, for the record.
	Caller       func(ctx context.Context) string
	Canary       CanaryWriter
	OpenReadOnly func(ctx context.Context) (ReadOnlyClients, error)
	// NodePools reads the node pools of a cluster.
	NodePools func(ctx context.Context, project, location, cluster string) ([]*container.NodePool, error)
	Now       func() time.Time
	Sleep     func(ctx context.Context, d time.Duration) error
	// Recorded is told of each word of a person's that is stored; nil is not.
	Recorded func(ctx context.Context, s ledger.Step)
	// PausedAll is told who has paused everything, or has lifted that; nil is not.
	PausedAll func(by string, lift bool)
}

// NodeEditor is the part of the Cloud TPU API with which the verbs change something.
type NodeEditor interface {
	SetLabel(ctx context.Context, r provider.Ref, key, value string) error
	Simulate(ctx context.Context, r provider.Ref) (operation string, err error)
}

// NodeLister lists the TPUs as the API shows them now.
type NodeLister interface {
	List(ctx context.Context, project, zone string) (provider.Listing, error)
}

// Connect is a deployment behind this connection.
func Connect(g *google.Connection) Deployment {
	rest := option.WithHTTPClient(g.Client())
	return Deployment{
		Google:     g,
		OpenLedger: g.Ledger,
		Publisher:  g.Publisher,
		OpenDeadLetters: func(ctx context.Context) (DeadLetters, error) {
			opts, err := g.RPC(ctx)
			if err != nil {
				return nil, err
			}
			return NewBroker(ctx, PullFor, opts...)
		},
		OpenNodeEditor: func(ctx context.Context) (NodeEditor, error) { return cloudtpu.New(ctx, rest) },
		OpenNodeLister: listers(g, rest),
		ReadFile:       checkpoint.Reader(rest),
		Checkpoints:    checkpoint.Deployed(rest),
		Permissions:    IAM{google: g},
		Grants:         ReadGrants,
		Caller:         g.NameCaller,
		Canary:         cloudlog.New(rest),
		OpenReadOnly:   func(ctx context.Context) (ReadOnlyClients, error) { return readOnlyClients(ctx, g) },
		NodePools:      ReadNodePools(rest),
		Now:            time.Now,
		Sleep:          ledger.Sleep,
	}
}

// listers opens each client once: a verb that looks again and again would otherwise leave a connection behind at each look.
func listers(g *google.Connection, rest option.ClientOption) func(ctx context.Context, legacyZones []string) (NodeLister, error) {
	var mu sync.Mutex
	open := map[string]NodeLister{}
	return func(ctx context.Context, legacyZones []string) (NodeLister, error) {
		legacyZones = slices.Sorted(slices.Values(legacyZones))
		mu.Lock()
		defer mu.Unlock()
		key := strings.Join(legacyZones, ",")
		if known := open[key]; known != nil {
			return known, nil
		}
		opts := cloudtpu.Clients{Present: []option.ClientOption{rest}}
		if len(legacyZones) > 0 {
			var err error
			if opts.Former, err = g.RPC(ctx); err != nil {
				return nil, err
			}
		}
		client, err := cloudtpu.Config{LegacyZones: legacyZones}.OpenWith(ctx, opts)
		if err != nil {
			return nil, err
		}
		open[key] = client
		return client, nil
	}
}

// Ledger opens the ledger of the deployment at a place.
func (d Deployment) Ledger(a Place) (*ledger.Ledger, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	return d.OpenLedger(a.Project, cmp.Or(a.database, a.Prefix+ledger.Database)), nil
}

// Bound adds --timeout to verbs, and sees that they never wait longer for Google.
func (d Deployment) Bound(all ...*cobra.Command) []*cobra.Command {
	as := func() string { return "" }
	if d.Google != nil {
		as = d.Google.Caller
	}
	for _, c := range all {
		google.Bound(c, as)
	}
	return all
}

// check refuses what no deployment is called.
func (a Place) check() error {
	if a.Project == "" {
		return cli.Usage("--project is missing: the project in which Pitstop is deployed; --demo asks the demo on this machine instead")
	}
	if err := cli.CheckProject("--project", a.Project); err != nil {
		return err
	}
	switch {
	case !cli.PrefixForm.MatchString(a.Prefix):
		return cli.Usage("--prefix %q is no prefix of a deployment: one has up to 5 small letters and digits, and ends with a hyphen, as in dev-",
			a.Prefix)
	case a.database != "" && !cli.DatabaseForm.MatchString(a.database):
		return cli.Usage("--database %q is no name of a database: one has 4 to 63 small letters, digits and hyphens", a.database)
	}
	return nil
}

// Place names a deployment on the command line.
type Place struct{ Project, Prefix, database string }

// Flags adds the flags that name a deployment.
func (a *Place) Flags(c *cobra.Command) {
	c.Flags().StringVar(&a.Project, "project", "", "the project in which Pitstop is deployed")
	c.Flags().StringVar(&a.Prefix, "prefix", "", "the prefix of the deployment's names, if it has one")
	c.Flags().StringVar(&a.database, "database", "", "its Firestore database; the default is the prefix and "+ledger.Database)
}

// Topics are those of a deployment, in full.
func (a Place) Topics() publish.Topics {
	topics := publish.Topics{}
	for typ, topic := range events.Topics() {
		topics[typ] = a.Topic(topic)
	}
	return topics
}

// Topic is a topic of the deployment, in full.
func (a Place) Topic(name string) string {
	return "projects/" + a.Project + "/topics/" + a.Prefix + strings.TrimPrefix(name, a.Prefix)
}

// Policies are those of a deployment. Its patrol records where they are and what the deployment allows. Before that, known is false:
// then there are presets alone, without a ceiling.
func (d Deployment) Policies(ctx context.Context, l *ledger.Ledger) (source *policy.Source, known bool, err error) {
	s, err := l.Settings(ctx)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return policy.NewSource("", nil, policy.Everything(), d.Now), false, nil
	case err != nil:
		return nil, false, err
	}
	return s.Policy.Source(d.ReadPolicy), true, nil
}

// ReadPolicy reads the policy file. The verbs go on without it.
func (d Deployment) ReadPolicy(ctx context.Context, uri string) ([]byte, error) {
	ctx, end := google.OptionalQuestion(ctx)
	raw, err := d.ReadFile(ctx, uri)
	return raw, end(err)
}

// ReadNodePools reads the node pools of a cluster from GKE.
func ReadNodePools(opts ...option.ClientOption) func(ctx context.Context, project, location, cluster string) ([]*container.NodePool, error) {
	return func(ctx context.Context, project, location, cluster string) ([]*container.NodePool, error) {
		svc, err := container.NewService(ctx, opts...)
		if err != nil {
			return nil, err
		}
		found, err := svc.Projects.Locations.Clusters.Get("projects/" + project + "/locations/" + location + "/clusters/" + cluster).Fields("nodePools").Context(ctx).Do()
		if err != nil {
			return nil, google.ShortError(err)
		}
		return found.NodePools, nil
	}
}
