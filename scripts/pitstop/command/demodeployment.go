package main

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

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/publish"
)

// demoProject is the project of the demo, and of every recorded incident.
const demoProject = "demo"

// commands are the verbs on the demo's deployment, and the acts, for another process that asks for them.
func (d *runningDemo) commands() *cobra.Command {
	root := d.verbs(d.deployment())
	acts := &cobra.Command{Use: "demo"}
	acts.AddCommand(actCommands(d.Demo)...)
	root.AddCommand(acts)
	return root
}

// deployment is the demo's, as its operator reaches it.
func (d *runningDemo) deployment() deployment {
	rest := option.WithHTTPClient(&http.Client{Transport: d.Cloud.TransportAs(d.Owner())})
	opts := []option.ClientOption{rest, option.WithoutAuthentication()}
	return deployment{
		open:    func(string, string) *ledger.Ledger { return d.Ledger },
		publish: func(publish.Topics) ledger.Publisher { return d.Publisher() },
		letters: func(context.Context) (letters, error) {
			return &demoLetters{demo: d, out: map[string]world.Message{}}, nil
		},
		cloud: func(ctx context.Context) (cloud, error) { return cloudtpu.New(ctx, opts...) },
		tpus: func(ctx context.Context, legacyZones []string) (tpus, error) {
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
		read:   func(context.Context, string) ([]byte, error) { return d.Opts.Policy, nil },
		store:  checkpoint.Deployed(opts...),
		access: everyRight{},
		grants: d.grants,
		who:    func(context.Context) string { return visitor() },
		canary: d.Canary(),
		look:   func(ctx context.Context) (sight, error) { return sightThrough(ctx, rest) },
		now:    d.Now,
		sleep:  d.Sleep,
		worded: d.worded,
		heldAll: func(by string, lift bool) {
			verb := incident.VerbPause
			if lift {
				verb = incident.VerbResume
			}
			d.Tell(world.Line{Time: d.Now(), Kind: world.Spoken, Text: by + ": " + string(verb) + " everything"})
		},
	}
}

// worded tells of a person's word, and of what follows from it.
func (d *runningDemo) worded(ctx context.Context, s ledger.Step) {
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

// visitor is who looks at the demo.
func visitor() string {
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
	demo *runningDemo
	out  map[string]world.Message
}

// Pull implements letters.
func (l *demoLetters) Pull(_ context.Context, subscription string) (pulled []*pubsubpb.ReceivedMessage, err error) {
	for _, m := range l.demo.Broker.Dead() {
		if _, taken := l.out[m.ID]; taken || path.Base(subscription) != handlers()[m.Topic]+"-dead-letters" {
			continue
		}
		l.out[m.ID] = m
		pulled = append(pulled, &pubsubpb.ReceivedMessage{AckId: m.ID, Message: &pubsubpb.PubsubMessage{
			MessageId: m.ID, Data: m.Data, Attributes: m.Attributes, PublishTime: timestamppb.New(m.Published), OrderingKey: m.OrderingKey,
		}})
		if len(pulled) == atOnce {
			break
		}
	}
	return pulled, nil
}

// handlers name the function that reads each topic.
func handlers() map[string]string {
	reads, _ := world.Wiring()
	return reads
}

// Publish implements letters.
func (l *demoLetters) Publish(_ context.Context, topic string, m *pubsubpb.PubsubMessage) error {
	l.demo.Broker.Publish(path.Base(topic), m.GetData(), m.GetAttributes())
	return nil
}

// Acknowledge implements letters.
func (l *demoLetters) Acknowledge(_ context.Context, _, ackID string) error {
	if !l.demo.Broker.Exhume(ackID) {
		return fmt.Errorf("message %s is no dead letter any more", ackID)
	}
	return nil
}

// GiveBack implements letters.
func (l *demoLetters) GiveBack(_ context.Context, _ string, ackIDs []string) error {
	for _, id := range ackIDs {
		delete(l.out, id)
	}
	return nil
}

// Close implements letters.
func (*demoLetters) Close() error { return nil }

var _ letters = (*demoLetters)(nil)
