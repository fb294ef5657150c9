// Package publish stores events in Pub/Sub, in the CloudEvents binding for it: the attributes carry what routes and
// identifies an event, the body is its data. When Publish has returned nil the event is stored and will be delivered at
// least once; a repetition has the same ce-id.
package publish

import (
	"context"
	"fmt"
	"sync"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"

	"pitstop.internal/events"
)

// Topics maps an event type to its topic, as full topic names.
type Topics map[string]string

// Publisher publishes events on their topics. It uses the plain API client: a function publishes a few messages and
// waits for each, so batching, flow control and their start-up would only cost.
type Publisher struct {
	topics  Topics
	connect func(ctx context.Context) (*pubsub.TopicAdminClient, error)

	mu     sync.Mutex
	client *pubsub.TopicAdminClient
}

// New returns a publisher that connects with these options at its first event.
func New(topics Topics, opts ...option.ClientOption) *Publisher {
	return &Publisher{topics: topics, connect: func(ctx context.Context) (*pubsub.TopicAdminClient, error) {
		return pubsub.NewTopicAdminClient(ctx, opts...)
	}}
}

// Takes reports whether a topic is configured for an event type.
func (p *Publisher) Takes(eventType string) bool { return p.topics[eventType] != "" }

// timeout bounds one publication, including the client's retries.
const timeout = 30 * time.Second

// Publish stores one event and returns when it is stored.
func (p *Publisher) Publish(ctx context.Context, e events.Envelope) error {
	topic, ok := p.topics[e.Type]
	if !ok || topic == "" {
		return fmt.Errorf("publish %s: no topic is configured for it", e.Type)
	}
	client, err := p.connected(ctx)
	if err != nil {
		return fmt.Errorf("publish %s: %w", e.Type, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err = client.Publish(ctx, &pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{{
		Data: e.Data, Attributes: Attributes(e),
	}}})
	if err != nil {
		return fmt.Errorf("publish %s on %s: %w", e.Type, topic, err)
	}
	return nil
}

func (p *Publisher) connected(ctx context.Context) (*pubsub.TopicAdminClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		c, err := p.connect(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		p.client = c
	}
	return p.client, nil
}

// Close ends the connection, if there is one.
func (p *Publisher) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		return nil
	}
	c := p.client
	p.client = nil
	return c.Close()
}

// Attributes are the message attributes of an event.
func Attributes(e events.Envelope) map[string]string {
	a := map[string]string{
		"ce-specversion": "1.0",
		"ce-id":          e.ID,
		"ce-type":        e.Type,
		"ce-source":      e.Source,
		"ce-time":        e.Time.UTC().Format(time.RFC3339Nano),
		"content-type":   "application/json",
	}
	for key, value := range map[string]string{"ce-subject": e.Subject, "ce-causationid": e.Cause, "ce-correlationid": e.Correlation} {
		if value != "" {
			a[key] = value
		}
	}
	return a
}
