package world

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/shared/publish"
)

// Message is one message of the embedded Pub/Sub.
type Message struct {
	ID          string
	Topic       string
	Data        []byte
	Attributes  map[string]string
	Published   time.Time
	OrderingKey string

	// entry is the log entry in the data, if it was read before it was published.
	entry *events.Entry
	// luck is that of one delivery; nil has nothing befall it.
	luck Luck
}

// Read reads the log entry in the data.
func (m Message) Read() (events.Entry, error) {
	if m.entry != nil {
		return *m.entry, nil
	}
	return events.Read(m.Data)
}

// Subscription is a push subscription with Google's own terms: at least once, with backoff between two deliveries and a
// dead-letter topic after so many of them.
type Subscription struct {
	Name  string
	Topic string
	// Push delivers one message and returns the HTTP status; 2xx acknowledges. Intercept may answer instead, unless it is nil
	// or returns 0.
	Push      func(ctx context.Context, body []byte) int
	Intercept func(m Message) int
	// MinBackoff and MaxBackoff bound the time between two deliveries.
	MinBackoff, MaxBackoff time.Duration
	// MaxAttempts ends the deliveries; 0 has no end. DeadLetter is the topic on which the message goes on then, if any.
	MaxAttempts int
	DeadLetter  string
}

// Broker is an embedded Pub/Sub on the scenario's clock: every subscription has a queue of its own, and delivers by
// push as Google does.
type Broker struct {
	clock *clock.Clock
	// Latency is the time from publication to delivery.
	Latency time.Duration
	// Duplicates has every message delivered twice.
	Duplicates bool
	// Delivered is called for every delivery with its status.
	Delivered func(sub string, m Message, attempt, status int)

	luck func(m Message) Luck

	mu      sync.Mutex
	subs    []Subscription
	seq     int
	pending map[string]waiting
	dead    []Message
	// held is until when nothing is delivered, and kept are the deliveries that fell due meanwhile.
	held time.Time
	kept []func()
}

// waiting is a message that is not acknowledged: how many of its deliveries are due or under way.
type waiting struct {
	Message
	deliveries int
}

// NewBroker returns a broker without subscriptions.
func NewBroker(clock *clock.Clock) *Broker {
	return &Broker{clock: clock, Latency: 200 * time.Millisecond, pending: map[string]waiting{}}
}

// Subscribe adds a subscription.
func (b *Broker) Subscribe(s Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs = append(b.subs, s)
}

// Publish stores a message for every subscription of its topic and returns its ID.
func (b *Broker) Publish(topic string, data []byte, attributes map[string]string) string {
	return b.publish(Message{Topic: topic, Data: data, Attributes: attributes})
}

func (b *Broker) publish(m Message) string {
	b.mu.Lock()
	b.seq++
	m.ID, m.Published = strconv.Itoa(b.seq), b.clock.Now()
	if b.luck != nil {
		m.luck = b.luck(m)
	}
	var subs []Subscription
	for _, s := range b.subs {
		if s.Topic == m.Topic {
			subs = append(subs, s)
		}
	}
	b.mu.Unlock()
	for _, s := range subs {
		b.enqueue(s, m, 1, b.latency(m))
		if twin, comes := b.twin(m); comes {
			b.enqueue(s, twin, 1, b.latency(twin)+time.Second)
		}
	}
	return m.ID
}

// twin is a second copy of a message, if it comes twice.
func (b *Broker) twin(m Message) (twin Message, comes bool) {
	twin, comes = m, b.Duplicates
	if m.luck != nil {
		var drawn bool
		twin.luck, drawn = m.luck.Twin(m)
		comes = comes || drawn
	}
	return twin, comes
}

// latency is the time from publication to delivery.
func (b *Broker) latency(m Message) time.Duration {
	if m.luck == nil {
		return b.Latency
	}
	return m.luck.Latency(m, b.Latency)
}

// Hold delivers nothing until then, whatever was said before. The messages stay on their topics.
func (b *Broker) Hold(until time.Time) {
	b.mu.Lock()
	b.held = until
	b.mu.Unlock()
	b.clock.At(until, b.release)
}

// Held is until when nothing is delivered.
func (b *Broker) Held() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Pending is the number of messages that wait for a delivery or are being delivered.
func (b *Broker) Pending() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pending)
}

// Waiting names the messages that wait for a delivery or are being delivered, with their topics.
func (b *Broker) Waiting() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.pending))
}

// Oldest is when the oldest message of a topic was published that is not acknowledged, zero for none.
func (b *Broker) Oldest(topic string) (at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.pending {
		if m.Topic == topic && (at.IsZero() || m.Published.Before(at)) {
			at = m.Published
		}
	}
	return at
}

// Exhume takes a message out of those that were dead-lettered, and reports whether it was there.
func (b *Broker) Exhume(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.dead)
	b.dead = slices.DeleteFunc(b.dead, func(m Message) bool { return m.ID == id })
	return len(b.dead) < before
}

// Dead returns the messages that were dead-lettered.
func (b *Broker) Dead() []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Message(nil), b.dead...)
}

func (b *Broker) enqueue(s Subscription, m Message, attempt int, in time.Duration) {
	b.add(m, 1)
	deliver := func() {
		b.clock.Go(func() {
			defer b.add(m, -1)
			b.deliver(s, m, attempt)
		})
	}
	b.clock.At(b.clock.Now().Add(in), func() {
		if !b.holds(deliver) {
			deliver()
		}
	})
}

// holds keeps a delivery while nothing is delivered, and reports whether it does.
func (b *Broker) holds(delivery func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.clock.Now().Before(b.held) {
		return false
	}
	b.kept = append(b.kept, delivery)
	return true
}

// release makes the deliveries that were kept, unless it was decided meanwhile to keep them longer.
func (b *Broker) release() {
	b.mu.Lock()
	kept := b.kept
	if b.clock.Now().Before(b.held) {
		kept = nil
	} else {
		b.kept = nil
	}
	b.mu.Unlock()
	for _, deliver := range kept {
		deliver()
	}
}

func (b *Broker) add(m Message, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := m.Topic + " " + m.ID
	n += b.pending[name].deliveries
	if n == 0 {
		delete(b.pending, name)
		return
	}
	b.pending[name] = waiting{m, n}
}

func (b *Broker) deliver(s Subscription, m Message, attempt int) {
	status := 0 // no answer: its handler crashed
	defer func() { b.answered(s, m, attempt, status) }()
	if s.Intercept != nil {
		if status = s.Intercept(m); status != 0 {
			return
		}
	}
	status = s.Push(m.context(), PushBody(s.Name, m, attempt))
}

// context is that of a delivery.
func (m Message) context() context.Context {
	if m.luck == nil {
		return context.Background()
	}
	return context.WithValue(context.Background(), luckKey{}, m.luck)
}

// next is the next delivery of a message.
func (m Message) next() Message {
	if m.luck != nil {
		m.luck = m.luck.Next()
	}
	return m
}

// answered goes on as the answer to a delivery says.
func (b *Broker) answered(s Subscription, m Message, attempt, status int) {
	if b.Delivered != nil {
		b.Delivered(s.Name, m, attempt, status)
	}
	switch {
	case status >= 200 && status < 300 && status != http.StatusAccepted || status == http.StatusProcessing:
		if m.luck == nil {
			return
		}
		if luck, after, comes := m.luck.Again(m); comes {
			m.luck = luck
			b.enqueue(s, m, attempt+1, after)
		}
		return
	case s.MaxAttempts > 0 && attempt >= s.MaxAttempts:
		b.bury(s, m, attempt)
		return
	}
	b.enqueue(s, m.next(), attempt+1, backoff(s, attempt))
}

// bury publishes a message on the dead-letter topic, with the attributes that tell where it comes from.
// https://cloud.google.com/pubsub/docs/dead-letter-topics#how_dead_letter_topics_work
func (b *Broker) bury(s Subscription, m Message, attempts int) {
	b.mu.Lock()
	b.dead = append(b.dead, m)
	b.mu.Unlock()
	if s.DeadLetter == "" {
		return
	}
	if m.luck != nil {
		var after time.Duration
		m.luck, after = m.luck.Redriven()
		b.enqueue(s, m, 1, after)
		return
	}
	attributes := map[string]string{
		"CloudPubSubDeadLetterSourceDeliveryCount":    strconv.Itoa(attempts),
		"CloudPubSubDeadLetterSourceSubscription":     path.Base(s.Name),
		"CloudPubSubDeadLetterSourceTopicPublishTime": m.Published.UTC().Format(time.RFC3339Nano),
	}
	maps.Copy(attributes, m.Attributes)
	b.Publish(s.DeadLetter, m.Data, attributes)
}

// backoff doubles from the least to the most.
func backoff(s Subscription, attempt int) time.Duration {
	d := s.MinBackoff
	for range attempt - 1 {
		if d >= s.MaxBackoff {
			break
		}
		d *= 2
	}
	return min(max(d, s.MinBackoff), max(s.MaxBackoff, s.MinBackoff))
}

// pushRequest is a push request as Google sends it, with both spellings of its fields.
// https://cloud.google.com/pubsub/docs/push#receive_push
type pushRequest struct {
	Message struct {
		Attributes   map[string]string `json:"attributes,omitempty"`
		Data         []byte            `json:"data"`
		MessageID    string            `json:"messageId"`
		MessageID2   string            `json:"message_id"`
		OrderingKey  string            `json:"orderingKey,omitempty"`
		PublishTime  time.Time         `json:"publishTime"`
		PublishTime2 time.Time         `json:"publish_time"`
	} `json:"message"`
	Subscription    string `json:"subscription"`
	DeliveryAttempt int    `json:"deliveryAttempt"`
}

// PushBody is the body of a push request.
func PushBody(subscription string, m Message, attempt int) []byte {
	p := pushRequest{Subscription: subscription, DeliveryAttempt: attempt}
	p.Message.Attributes, p.Message.Data, p.Message.OrderingKey = m.Attributes, m.Data, m.OrderingKey
	p.Message.MessageID, p.Message.MessageID2 = m.ID, m.ID
	p.Message.PublishTime = m.Published.UTC()
	p.Message.PublishTime2 = p.Message.PublishTime
	body, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("push body: %v", err)) // strings, numbers and times only
	}
	return body
}

// eventPublisher publishes events of the functions on the broker.
type eventPublisher struct {
	broker *Broker
	topics publish.Topics
	sent   func(e events.Envelope, topic, id string)
	around func(ctx context.Context, e events.Envelope, next func()) error
	// unnotified says that nobody is informed of incidents.
	unnotified bool
	called     func(ctx context.Context, c Call)
}

// Takes implements ledger.Taker. A simulation sends no updates: their fate on the way changes nothing there, and notify has
// faults of its own in its tests.
func (p eventPublisher) Takes(eventType string) bool {
	return p.topics[eventType] != "" && !p.unnotified
}

// Publish implements ledger.Publisher.
func (p eventPublisher) Publish(ctx context.Context, e events.Envelope) error {
	topic, ok := p.topics[e.Type]
	if !ok {
		return fmt.Errorf("publish %s: no topic is configured for it", e.Type)
	}
	if p.called != nil {
		p.called(ctx, Call{Service: "pubsub", Method: "topics.publish", Topic: topic})
	}
	next := func() {
		id := p.broker.Publish(topic, e.Data, publish.Attributes(e))
		if p.sent != nil {
			p.sent(e, topic, id)
		}
	}
	if p.around != nil {
		return p.around(ctx, e, next)
	}
	next()
	return nil
}
