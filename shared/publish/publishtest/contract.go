package publishtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
)

// Message is a received message, with the fields that every broker has.
type Message struct {
	ID         string
	Data       []byte
	Attributes map[string]string
	Published  time.Time
}

// Subscription hands every message of a topic to its receiver until the receiver acknowledges it by returning true.
type Subscription struct {
	Name, Topic string
	Receive     func(Message) (ack bool)
	// DeadLetter is the topic for a message after DeadAfter deliveries; empty is none.
	DeadLetter string
}

// DeadAfter is the least number of deliveries that Pub/Sub allows before it gives a message up.
const DeadAfter = 5

// Broker is a broker that a test drives.
type Broker interface {
	// Topic makes a topic.
	Topic(t *testing.T, name string)
	// Subscribe makes a subscription.
	Subscribe(t *testing.T, s Subscription)
	// Publish stores an event on a topic, as the functions do.
	Publish(ctx context.Context, topic string, e events.Envelope) error
	// Until lets the broker work until done reports true, and fails the test if it never does.
	Until(t *testing.T, what string, done func() bool)
	// Rest lets the broker work long enough to make a mistake.
	Rest(t *testing.T)
}

// Conformance is the contract that every broker must keep for Pitstop. Each case gets a broker without topics.
func Conformance(t *testing.T, open func(t *testing.T) Broker) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, b Broker)
	}{
		{"an event comes to every subscription of its topic and to no other", everySubscription},
		{"an acknowledged message does not come again", acknowledged},
		{"a refused message comes again, unchanged, until it is acknowledged", refused},
		{"a refused message keeps no other one from coming", besides},
		{"a message that is refused too often goes on as a dead letter", deadLetter},
		{"a message of the largest event comes whole", large},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// inbox receives messages and acknowledges those that its test selects.
type inbox struct {
	mu   sync.Mutex
	got  []Message
	acks func(m Message, times int) bool
}

func (i *inbox) receive(m Message) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got = append(i.got, m)
	times := 0
	for _, o := range i.got {
		if o.ID == m.ID {
			times++
		}
	}
	return i.acks == nil || i.acks(m, times)
}

func (i *inbox) has(n int) func() bool {
	return func() bool { return len(i.messages()) >= n }
}

func (i *inbox) messages() []Message {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]Message(nil), i.got...)
}

// event is the nth event of a test.
func event(n int) events.Envelope {
	return events.Envelope{
		ID: fmt.Sprintf("%032x", n), Type: events.TypeRecreateRequested, Source: "//pitstop/functions/logevent", Subject: "demo/llama-8b",
		Time: time.Date(2026, 11, 12, 2, 14, 8, 123456789, time.UTC), Cause: "11420938112", Correlation: "llama-8b-20261112-1",
		Data: fmt.Appendf(nil, `{"schema":1,"workload":"demo/llama-8b","epoch":%d}`, n),
	}
}

func publish(t *testing.T, b Broker, topic string, e events.Envelope) {
	t.Helper()
	if err := b.Publish(t.Context(), topic, e); err != nil {
		t.Fatal(err)
	}
}

// check compares a message with the event that it carries.
func check(t *testing.T, m Message, e events.Envelope) {
	t.Helper()
	if diff := cmp.Diff(string(e.Data), string(m.Data)); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"ce-specversion": "1.0", "ce-id": e.ID, "ce-type": e.Type, "ce-source": e.Source, "ce-subject": e.Subject,
		"ce-time": "2026-11-12T02:14:08.123456789Z", "ce-causationid": e.Cause, "ce-correlationid": e.Correlation, "content-type": "application/json",
	} {
		if got := m.Attributes[name]; got != want {
			t.Errorf("attribute %s is %q, want %q", name, got, want)
		}
	}
}

func everySubscription(t *testing.T, b Broker) {
	var first, second, other inbox
	b.Topic(t, "requests")
	b.Topic(t, "others")
	b.Subscribe(t, Subscription{Name: "first", Topic: "requests", Receive: first.receive})
	b.Subscribe(t, Subscription{Name: "second", Topic: "requests", Receive: second.receive})
	b.Subscribe(t, Subscription{Name: "other", Topic: "others", Receive: other.receive})
	publish(t, b, "requests", event(1))
	b.Until(t, "an event at both subscriptions", func() bool { return first.has(1)() && second.has(1)() })
	one, two := first.messages()[0], second.messages()[0]
	check(t, one, event(1))
	check(t, two, event(1))
	if one.ID == "" || one.ID != two.ID {
		t.Errorf("the message has the IDs %q and %q, want the same one", one.ID, two.ID)
	}
	if one.Published.IsZero() {
		t.Error("the message does not say when it was published")
	}
	publish(t, b, "others", event(2))
	b.Until(t, "an event at the other topic", other.has(1))
	if n := len(other.messages()); n != 1 {
		t.Errorf("the other subscription got %d messages, want its own alone", n)
	}
}

func acknowledged(t *testing.T, b Broker) {
	var in inbox
	b.Topic(t, "requests")
	b.Subscribe(t, Subscription{Name: "inbox", Topic: "requests", Receive: in.receive})
	publish(t, b, "requests", event(1))
	b.Until(t, "an event", in.has(1))
	b.Rest(t)
	if n := len(in.messages()); n != 1 {
		t.Errorf("the message came %d times, want once", n)
	}
}

func refused(t *testing.T, b Broker) {
	in := inbox{acks: func(_ Message, times int) bool { return times == 3 }}
	b.Topic(t, "requests")
	b.Subscribe(t, Subscription{Name: "inbox", Topic: "requests", Receive: in.receive})
	publish(t, b, "requests", event(1))
	b.Until(t, "the third delivery", in.has(3))
	b.Rest(t)
	got := in.messages()
	if len(got) != 3 {
		t.Fatalf("the message came %d times, want 3", len(got))
	}
	for _, m := range got[1:] {
		if diff := cmp.Diff(got[0], m); diff != "" {
			t.Errorf("a later delivery differs (-first +later):\n%s", diff)
		}
	}
	check(t, got[2], event(1))
}

func besides(t *testing.T, b Broker) {
	in := inbox{acks: func(m Message, _ int) bool { return m.Attributes["ce-id"] != event(1).ID }}
	b.Topic(t, "requests")
	b.Subscribe(t, Subscription{Name: "inbox", Topic: "requests", Receive: in.receive})
	const others = 20
	for n := range others + 1 {
		publish(t, b, "requests", event(n+1))
	}
	b.Until(t, "all others", func() bool {
		ids := map[string]bool{}
		for _, m := range in.messages() {
			ids[m.Attributes["ce-id"]] = true
		}
		return len(ids) == others+1
	})
}

func deadLetter(t *testing.T, b Broker) {
	in := inbox{acks: func(Message, int) bool { return false }}
	var dead inbox
	b.Topic(t, "requests")
	b.Topic(t, "dead-letters")
	b.Subscribe(t, Subscription{Name: "dead", Topic: "dead-letters", Receive: dead.receive})
	b.Subscribe(t, Subscription{Name: "inbox", Topic: "requests", Receive: in.receive, DeadLetter: "dead-letters"})
	publish(t, b, "requests", event(1))
	b.Until(t, "the dead letter", dead.has(1))
	b.Rest(t)
	if n := len(in.messages()); n != DeadAfter {
		t.Errorf("the message came %d times, want %d", n, DeadAfter)
	}
	for _, m := range dead.messages() { // at least once: the fake of Google's client repeats itself
		check(t, m, event(1))
	}
}

func large(t *testing.T, b Broker) {
	var in inbox
	b.Topic(t, "requests")
	b.Subscribe(t, Subscription{Name: "inbox", Topic: "requests", Receive: in.receive})
	e := event(1)
	e.Data = []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	publish(t, b, "requests", e)
	b.Until(t, "a large message", in.has(1))
	check(t, in.messages()[0], e)
}
