package lab

import (
	"context"
	"fmt"
	"net/http"
	"os/user"
	"path"
	"strings"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/spf13/cobra"
	"google.golang.org/api/option"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/publish"
)

// demoProject is the project of the demo, and of every recorded incident.
const demoProject = "demo"

// commands are the verbs on the demo's deployment, and the acts, for another process that asks for them.
func (d *RunningDemo) commands() *cobra.Command {
	root := d.Verbs(d.deployment())
	acts := &cobra.Command{Use: "demo"}
	acts.AddCommand(actCommands(d.Demo)...)
	root.AddCommand(acts)
	return root
}

// deployment is the demo's, as its operator reaches it.
func (d *RunningDemo) deployment() deployment.Deployment {
	rest := option.WithHTTPClient(&http.Client{Transport: d.Cloud.TransportAs(d.Owner())})
	opts := []option.ClientOption{rest, option.WithoutAuthentication()}
	return deployment.Deployment{
		OpenLedger: func(string, string) *ledger.Ledger { return d.Ledger },
		Publisher:  func(publish.Topics) ledger.Publisher { return d.Publisher() },
		OpenDeadLetters: func(context.Context) (deployment.DeadLetters, error) {
			return &demoLetters{demo: d, out: map[string]world.Message{}}, nil
		},
		OpenNodeEditor: func(ctx context.Context) (deployment.NodeEditor, error) { return cloudtpu.New(ctx, opts...) },
		OpenNodeLister: func(ctx context.Context, legacyZones []string) (deployment.NodeLister, error) {
			clients := cloudtpu.Clients{Present: opts}
			if len(legacyZones) > 0 {
				conn, err := d.API.Connect(ctx, nil)
				if err != nil {
					return nil, err
				}
				clients.Former = []option.ClientOption{option.WithGRPCConn(conn)}
			}
			return cloudtpu.Config{LegacyZones: legacyZones}.OpenWith(ctx, clients)
		},
		ReadFile:    func(context.Context, string) ([]byte, error) { return d.Opts.Policy, nil },
		Checkpoints: checkpoint.Deployed(opts...),
		Permissions: everyRight{},
		Grants:      d.Grants,
		Caller:      func(context.Context) string { return Visitor() },
		Canary:      d.Canary(),
		OpenReadOnly: func(ctx context.Context) (deployment.ReadOnlyClients, error) {
			return deployment.ReadOnlyThrough(ctx, rest)
		},
		Now:      d.Now,
		Sleep:    d.Sleep,
		Recorded: d.worded,
		PausedAll: func(by string, lift bool) {
			verb := evidence.VerbPause
			if lift {
				verb = evidence.VerbResume
			}
			d.Tell(world.Line{Time: d.Now(), Kind: world.Spoken, Text: by + ": " + string(verb) + " everything"})
		},
	}
}

// worded tells of a person's word, and of what follows from it.
func (d *RunningDemo) worded(ctx context.Context, s ledger.Step) {
	if n := len(s.After.Orders); n > 0 {
		o := s.After.Orders[n-1]
		if m := len(s.Before.Orders); m == 0 || s.Before.Orders[m-1] != o {
			text := o.By + ": " + strings.TrimSpace(string(o.Verb)+" "+o.Text)
			if o.Incident != "" {
				text += ", in " + o.Incident
			}
			d.Tell(world.Line{Time: d.Now(), Kind: world.Spoken, Workload: s.After.ID, Incident: o.Incident, Text: text, Reason: o.Why})
		}
	}
	d.Said(ctx, s)
}

// Visitor is who looks at the demo.
func Visitor() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "you"
}

// everyRight says that every account has every permission: the simulated cloud has none.
type everyRight struct{}

func (everyRight) OnProject(_ context.Context, _, _ string, permissions []string) ([]string, error) {
	return permissions, nil
}

func (everyRight) OnBucket(_ context.Context, _, _ string, permissions []string) ([]string, error) {
	return permissions, nil
}

func (everyRight) OnAccount(_ context.Context, _, _ string, permissions []string) ([]string, error) {
	return permissions, nil
}

// demoLetters are the dead letters of the embedded Pub/Sub. A letter that was pulled comes no second time, until it is given back.
type demoLetters struct {
	demo *RunningDemo
	out  map[string]world.Message
}

// Pull implements deployment.DeadLetters.
func (l *demoLetters) Pull(_ context.Context, subscription string) (pulled []*pubsubpb.ReceivedMessage, err error) {
	for _, m := range l.demo.Broker.Dead() {
		if _, taken := l.out[m.ID]; taken || path.Base(subscription) != Handlers()[m.Topic]+"-dead-letters" {
			continue
		}
		l.out[m.ID] = m
		pulled = append(pulled, &pubsubpb.ReceivedMessage{AckId: m.ID, Message: &pubsubpb.PubsubMessage{
			MessageId: m.ID, Data: m.Data, Attributes: m.Attributes, PublishTime: timestamppb.New(m.Published), OrderingKey: m.OrderingKey,
		}})
		if len(pulled) == deployment.LettersAtOnce {
			break
		}
	}
	return pulled, nil
}

// Handlers name the function that reads each topic.
func Handlers() map[string]string {
	reads, _ := world.Wiring()
	return reads
}

// Publish implements deployment.DeadLetters.
func (l *demoLetters) Publish(_ context.Context, topic string, m *pubsubpb.PubsubMessage) error {
	l.demo.Broker.Publish(path.Base(topic), m.GetData(), m.GetAttributes())
	return nil
}

// Acknowledge implements deployment.DeadLetters.
func (l *demoLetters) Acknowledge(_ context.Context, _, ackID string) error {
	if !l.demo.Broker.Exhume(ackID) {
		return fmt.Errorf("message %s is no dead letter any more", ackID)
	}
	return nil
}

// GiveBack implements deployment.DeadLetters.
func (l *demoLetters) GiveBack(_ context.Context, _ string, ackIDs []string) error {
	for _, id := range ackIDs {
		delete(l.out, id)
	}
	return nil
}

// Close implements deployment.DeadLetters.
func (*demoLetters) Close() error { return nil }

var _ deployment.DeadLetters = (*demoLetters)(nil)
