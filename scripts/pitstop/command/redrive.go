package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/spf13/cobra"
	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/trigger"
)

// letters is the part of Pub/Sub that redrive calls.
type letters interface {
	// Pull takes some messages of a subscription. It returns none from an empty one.
	Pull(ctx context.Context, subscription string) ([]*pubsubpb.ReceivedMessage, error)
	Publish(ctx context.Context, topic string, m *pubsubpb.PubsubMessage) error
	Acknowledge(ctx context.Context, subscription, ackID string) error
	// GiveBack returns messages that were not handled. Pub/Sub delivers them again at once.
	GiveBack(ctx context.Context, subscription string, ackIDs []string) error
	Close() error
}

// broker is Pub/Sub.
type broker struct {
	topics *pubsub.TopicAdminClient
	subs   *pubsub.SubscriptionAdminClient
	// wait is how long a pull waits for messages.
	wait time.Duration
}

// pullFor is how long a pull waits: Pub/Sub may hold a message back for a moment.
const pullFor = 5 * time.Second

// atOnce is how many letters one pull takes. They are handled one by one, all before Pub/Sub delivers the first again.
const atOnce = 10

// newBroker needs the options of heardRPC: Pull asks when its question was sent.
func newBroker(ctx context.Context, wait time.Duration, opts ...option.ClientOption) (*broker, error) {
	topics, err := pubsub.NewTopicAdminClient(ctx, opts...)
	if err != nil {
		return nil, err
	}
	subs, err := pubsub.NewSubscriptionAdminClient(ctx, opts...)
	if err != nil {
		return nil, errors.Join(err, topics.Close())
	}
	subs.CallOptions.Pull = nil // its own retries go on for as long as no message comes
	return &broker{topics, subs, wait}, nil
}

// Pull waits for messages from the moment at which the question has been sent. Pub/Sub answers nothing while there are none, and
// nothing else tells an empty subscription from a network that leads nowhere.
func (b *broker) Pull(ctx context.Context, subscription string) ([]*pubsubpb.ReceivedMessage, error) {
	pulling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	sent := whenSent(pulling, func() { time.AfterFunc(atMost(ctx, b.wait), func() { stop(errNoMessages) }) })
	r, err := b.subs.Pull(sent, &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: atOnce})
	if err != nil && errors.Is(context.Cause(pulling), errNoMessages) {
		return nil, nil
	}
	return r.GetReceivedMessages(), err
}

// errNoMessages says that a subscription was asked for long enough.
var errNoMessages = errors.New("no messages")

func (b *broker) Publish(ctx context.Context, topic string, m *pubsubpb.PubsubMessage) error {
	_, err := b.topics.Publish(ctx, &pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{m}})
	return err
}

func (b *broker) Acknowledge(ctx context.Context, subscription, ackID string) error {
	return b.subs.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: subscription, AckIds: []string{ackID}})
}

func (b *broker) GiveBack(ctx context.Context, subscription string, ackIDs []string) error {
	return b.subs.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: subscription, AckIds: ackIDs})
}

func (b *broker) Close() error { return errors.Join(b.topics.Close(), b.subs.Close()) }

// redriveCommand needs the names of the functions, by the topics that they read.
func (d deployment) redriveCommand(handlers map[string]string) *cobra.Command {
	var where place
	var why string
	names := slices.Sorted(maps.Keys(handlers))
	names = slices.DeleteFunc(names, func(name string) bool { return handlers[name] == patrols })
	c := &cobra.Command{
		Use:   "redrive TOPIC",
		Short: "Publish the dead letters of a topic again",
		Long: "Publish the dead letters of a topic again, once you have removed the cause. A dead letter is a message that failed at\n" +
			"every delivery.\n" +
			"The topics are " + strings.Join(names, ", ") + ".\n\n" +
			"redrive drops a request whose incident is over, whose epoch is old or whose time is up, and prints that. Patrol has\n" +
			"published a new request by then if the incident still needs one. A letter leaves the subscription after it is published.\n" +
			"Its attributes, and the log line of the function that handles it, hold your name and your reason.\n\n" +
			"This needs roles/pubsub.subscriber on the dead-letter subscription, roles/pubsub.publisher on the topic and\n" +
			"roles/datastore.viewer.",
		Args: oneName("topic", events.TopicRecreate),
		RunE: func(c *cobra.Command, args []string) error {
			topic := strings.TrimPrefix(args[0], where.prefix)
			if !slices.Contains(names, topic) {
				return usage("no topic %s has dead letters; these have: %s", args[0], strings.Join(names, ", "))
			}
			l, err := d.at(where)
			if err != nil {
				return err
			}
			from := "projects/" + where.project + "/subscriptions/" + where.prefix + handlers[topic] + "-dead-letters"
			broker, err := d.letters(c.Context())
			if err != nil {
				return err
			}
			r := redrive{
				letters: broker, ledger: l, from: from, to: where.topic(topic), word: incident.Word{By: d.who(c.Context()), Why: why}, start: d.now(),
				tell: func(line string) { tell(c.OutOrStdout(), line) }, seen: map[string]bool{},
			}
			return errors.Join(r.run(c.Context()), broker.Close())
		},
	}
	where.flags(c)
	whyFlag(c, &why)
	return c
}

// patrols is the function that handles ticks. A lost tick has no dead letter.
const patrols = "patrol"

// redrive publishes the dead letters of one subscription again.
type redrive struct {
	letters letters
	ledger  *ledger.Ledger
	// from is the dead-letter subscription, to the topic of the letters.
	from, to string
	word     incident.Word
	start    time.Time
	tell     func(line string)

	// seen are the IDs of letters that were published or dropped. kept are the deliveries of all others.
	seen           map[string]bool
	kept           []string
	sent, outdated int
}

// run handles letters until none come. It leaves letters that are newer than its start.
func (r *redrive) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.giveBack(ctx)) }()
	for {
		batch, err := r.letters.Pull(ctx, r.from)
		if err != nil {
			return fmt.Errorf("pull %s: %w", r.from, err)
		}
		if len(batch) == 0 {
			break
		}
		for i, m := range batch {
			switch at := m.GetMessage().GetPublishTime(); {
			case r.seen[m.GetMessage().GetMessageId()]: // its acknowledgement came too late, or was lost
				err = r.letters.Acknowledge(ctx, r.from, m.GetAckId())
			case at != nil && at.AsTime().After(r.start):
				r.kept = append(r.kept, m.GetAckId())
			default:
				err = r.bring(ctx, m)
			}
			if err == nil {
				continue
			}
			for _, m := range batch[i:] {
				if !r.seen[m.GetMessage().GetMessageId()] {
					r.kept = append(r.kept, m.GetAckId())
				}
			}
			return fmt.Errorf("%w; %d letters were published again before that", err, r.sent)
		}
	}
	r.tell(fmt.Sprintf("%s: %d published again on %s, %d dropped as outdated", r.from, r.sent, r.to, r.outdated))
	return nil
}

// giveBack returns letters that were only held, so that the next redrive finds them. It does so after an interrupt too.
func (r *redrive) giveBack(ctx context.Context) error {
	if !lasting(ctx) {
		return nil // Pub/Sub does not answer. It delivers them again by itself
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pullFor)
	defer cancel()
	for some := range slices.Chunk(r.kept, 500) { // a request may have 512 KiB
		if err := r.letters.GiveBack(ctx, r.from, some); err != nil {
			return fmt.Errorf("give back to %s: %w; Pub/Sub delivers these letters again within 10 minutes", r.from, err)
		}
	}
	return nil
}

func (r *redrive) bring(ctx context.Context, m *pubsubpb.ReceivedMessage) error {
	msg := m.GetMessage()
	name := msg.GetAttributes()["ce-type"]
	if name == "" {
		name = "message"
	}
	name += " " + msg.GetMessageId()
	why, err := r.unwanted(ctx, msg)
	if err != nil {
		return err
	}
	if why != "" {
		r.outdated++
		r.seen[msg.GetMessageId()] = true
		r.tell(name + ": dropped, " + why)
		return r.letters.Acknowledge(ctx, r.from, m.GetAckId())
	}
	attributes := maps.Clone(msg.GetAttributes())
	if attributes == nil {
		attributes = map[string]string{}
	}
	maps.DeleteFunc(attributes, func(key, _ string) bool { return strings.HasPrefix(key, "CloudPubSubDeadLetter") })
	attributes[trigger.RedrivenBy] = r.word.By
	if r.word.Why != "" {
		attributes[trigger.RedrivenWhy] = r.word.Why
	}
	again := &pubsubpb.PubsubMessage{Data: msg.GetData(), Attributes: attributes, OrderingKey: msg.GetOrderingKey()}
	if err := r.letters.Publish(ctx, r.to, again); err != nil {
		return fmt.Errorf("publish %s on %s: %w", name, r.to, err)
	}
	r.sent++
	r.seen[msg.GetMessageId()] = true
	r.tell(name + ": published again")
	return r.letters.Acknowledge(ctx, r.from, m.GetAckId())
}

// unwanted says why a request is outdated. Its function judges all other messages, and those of a newer release.
func (r *redrive) unwanted(ctx context.Context, m *pubsubpb.PubsubMessage) (string, error) {
	eventType := m.GetAttributes()["ce-type"]
	if !events.IsRequest(eventType) {
		return "", nil
	}
	q, err := events.DecodeRequest(eventType, m.GetData())
	switch {
	case errors.Is(err, events.ErrNewer):
		return "", nil
	case err != nil:
		return oneLine(err), nil
	}
	w, _, err := r.ledger.Workload(ctx, q.Workload)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return "the workload " + q.Workload + " is not in the ledger", nil
	case errors.Is(err, events.ErrNewer):
		return "", nil
	case err != nil:
		return "", err
	}
	if _, err := w.Fence(q.Pointer, r.start); err != nil {
		return oneLine(err), nil
	}
	return "", nil
}
