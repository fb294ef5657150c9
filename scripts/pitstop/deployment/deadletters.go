package deployment

import (
	"context"
	"errors"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"

	"pitstop.internal/scripts/pitstop/google"
)

// DeadLetters is the part of Pub/Sub that redrive calls.
type DeadLetters interface {
	// Pull takes some messages of a subscription. It returns none from an empty one.
	Pull(ctx context.Context, subscription string) ([]*pubsubpb.ReceivedMessage, error)
	Publish(ctx context.Context, topic string, m *pubsubpb.PubsubMessage) error
	Acknowledge(ctx context.Context, subscription, ackID string) error
	// GiveBack returns messages that were not handled. Pub/Sub delivers them again at once.
	GiveBack(ctx context.Context, subscription string, ackIDs []string) error
	Close() error
}

// Broker is Pub/Sub.
type Broker struct {
	Topics *pubsub.TopicAdminClient
	Subs   *pubsub.SubscriptionAdminClient
	// wait is how long a pull waits for messages.
	wait time.Duration
}

// PullFor is how long a pull waits: Pub/Sub may hold a message back for a moment.
const PullFor = 5 * time.Second

// LettersAtOnce is how many letters one pull takes. They are handled one by one, all before Pub/Sub delivers the first again.
const LettersAtOnce = 10

// NewBroker needs the options of google.TrackRPC: Pull asks when its question was sent.
func NewBroker(ctx context.Context, wait time.Duration, opts ...option.ClientOption) (*Broker, error) {
	topics, err := pubsub.NewTopicAdminClient(ctx, opts...)
	if err != nil {
		return nil, err
	}
	subs, err := pubsub.NewSubscriptionAdminClient(ctx, opts...)
	if err != nil {
		return nil, errors.Join(err, topics.Close())
	}
	subs.CallOptions.Pull = nil // its own retries go on for as long as no message comes
	return &Broker{topics, subs, wait}, nil
}

// Pull waits for messages from the moment at which the question has been sent. Pub/Sub answers nothing while there are none, and
// nothing else tells an empty subscription from a network that leads nowhere.
func (b *Broker) Pull(ctx context.Context, subscription string) ([]*pubsubpb.ReceivedMessage, error) {
	pulling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	sent := google.OnSent(pulling, func() { time.AfterFunc(google.AtMostHalfOfTimeout(ctx, b.wait), func() { stop(errNoMessages) }) })
	r, err := b.Subs.Pull(sent, &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: LettersAtOnce})
	if err != nil && errors.Is(context.Cause(pulling), errNoMessages) {
		return nil, nil
	}
	return r.GetReceivedMessages(), err
}

// errNoMessages says that a subscription was asked for long enough.
var errNoMessages = errors.New("no messages")

// Publish implements DeadLetters.
func (b *Broker) Publish(ctx context.Context, topic string, m *pubsubpb.PubsubMessage) error {
	_, err := b.Topics.Publish(ctx, &pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{m}})
	return err
}

// Acknowledge implements DeadLetters.
func (b *Broker) Acknowledge(ctx context.Context, subscription, ackID string) error {
	return b.Subs.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: subscription, AckIds: []string{ackID}})
}

// GiveBack implements DeadLetters.
func (b *Broker) GiveBack(ctx context.Context, subscription string, ackIDs []string) error {
	return b.Subs.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: subscription, AckIds: ackIDs})
}

// Close implements DeadLetters.
func (b *Broker) Close() error { return errors.Join(b.Topics.Close(), b.Subs.Close()) }
