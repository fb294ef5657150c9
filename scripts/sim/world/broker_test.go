package world

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/publish/publishtest"
)

// TestBroker runs the contract of Google's brokers on the embedded one.
func TestBroker(t *testing.T) {
	publishtest.Conformance(t, func(t *testing.T) publishtest.Broker {
		t.Helper()
		clock := clock.NewClock(began)
		return &embedded{clock: clock, broker: NewBroker(clock)}
	})
}

var began = time.Date(2026, 11, 12, 2, 14, 7, 0, time.UTC)

// embedded drives the embedded broker in the terms of the contract.
type embedded struct {
	clock  *clock.Clock
	broker *Broker
}

func (*embedded) Topic(*testing.T, string) {}

func (e *embedded) Publish(ctx context.Context, topic string, env events.Envelope) error {
	return eventPublisher{broker: e.broker, topics: publish.Topics{env.Type: topic}}.Publish(ctx, env)
}

func (e *embedded) Subscribe(t *testing.T, s publishtest.Subscription) {
	t.Helper()
	sub := Subscription{
		Name: "projects/demo/subscriptions/" + s.Name, Topic: s.Topic, MinBackoff: 10 * time.Second, MaxBackoff: 10 * time.Minute, DeadLetter: s.DeadLetter,
		Push: func(_ context.Context, body []byte) int {
			m := pushed(t, body)
			if s.Receive(publishtest.Message{ID: m.MessageID, Data: m.Data, Attributes: m.Attributes, Published: m.PublishTime}) {
				return http.StatusOK
			}
			return http.StatusServiceUnavailable
		},
	}
	if s.DeadLetter != "" {
		sub.MaxAttempts = publishtest.DeadAfter
	}
	e.broker.Subscribe(sub)
}

func (e *embedded) Until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for limit := e.clock.Now().Add(time.Hour); !done(); {
		if !e.clock.Step(limit) {
			t.Fatalf("no sign of %s within an hour of the scenario", what)
		}
		e.clock.Settle()
	}
}

// Rest is a day: here it costs nothing.
func (e *embedded) Rest(*testing.T) {
	limit := e.clock.Now().Add(24 * time.Hour)
	for e.clock.Step(limit) {
		e.clock.Settle()
	}
}

// push is what a push body says.
type push struct {
	Data        []byte            `json:"data"`
	Attributes  map[string]string `json:"attributes"`
	MessageID   string            `json:"messageId"`
	PublishTime time.Time         `json:"publishTime"`
}

func pushed(t *testing.T, body []byte) push {
	t.Helper()
	var p struct {
		Message push `json:"message"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		t.Errorf("push body: %v", err)
	}
	return p.Message
}

// delivery is one attempt of the broker, by the scenario's time.
type delivery struct {
	After   time.Duration
	Attempt int
	Status  int
}

// deliveries publishes one message to a subscription that answers with these statuses, the last one for ever, and
// returns what the broker did within a day.
func deliveries(t *testing.T, s Subscription, duplicates bool, statuses ...int) []delivery {
	t.Helper()
	e := &embedded{clock: clock.NewClock(began)}
	e.broker = NewBroker(e.clock)
	e.broker.Duplicates = duplicates
	var got []delivery
	answered := 0
	s.Name, s.Topic = "projects/demo/subscriptions/inbox", "requests"
	s.Push = func(context.Context, []byte) int {
		status := statuses[min(answered, len(statuses)-1)]
		answered++
		return status
	}
	e.broker.Delivered = func(_ string, _ Message, attempt, status int) {
		got = append(got, delivery{e.clock.Now().Sub(began), attempt, status})
	}
	e.broker.Subscribe(s)
	e.broker.Publish("requests", nil, nil)
	e.Rest(t)
	return got
}

func TestBrokerTakesTheStatusesThatGoogleTakesForAnAcknowledgement(t *testing.T) {
	for _, status := range []int{102, 200, 201, 204} {
		if n := len(deliveries(t, Subscription{MaxAttempts: 5}, false, status)); n != 1 {
			t.Errorf("%d: delivered %d times, want once", status, n)
		}
	}
	for _, status := range []int{202, 302, 400, 404, 429, 500, 503} {
		if n := len(deliveries(t, Subscription{MaxAttempts: 5}, false, status)); n != 5 {
			t.Errorf("%d: delivered %d times, want 5", status, n)
		}
	}
}

func TestBrokerBacksOffFromTheLeastToTheMost(t *testing.T) {
	s := Subscription{MinBackoff: 10 * time.Second, MaxBackoff: time.Minute}
	want := []delivery{
		{200 * time.Millisecond, 1, 503},
		{10*time.Second + 200*time.Millisecond, 2, 503},
		{30*time.Second + 200*time.Millisecond, 3, 503},
		{70*time.Second + 200*time.Millisecond, 4, 503},
		{130*time.Second + 200*time.Millisecond, 5, 503},
		{190*time.Second + 200*time.Millisecond, 6, 200},
	}
	got := deliveries(t, s, false, 503, 503, 503, 503, 503, 200)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

func TestBrokerDeliversTwiceWhenItIsAskedTo(t *testing.T) {
	want := []delivery{{200 * time.Millisecond, 1, 200}, {1200 * time.Millisecond, 1, 200}}
	if diff := cmp.Diff(want, deliveries(t, Subscription{}, true, 200)); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

func TestBrokerSaysWhereADeadLetterComesFrom(t *testing.T) {
	e := &embedded{clock: clock.NewClock(began)}
	e.broker = NewBroker(e.clock)
	e.broker.Subscribe(Subscription{
		Name: "projects/demo/subscriptions/inbox", Topic: "requests", MaxAttempts: 6, DeadLetter: "dead-letters",
		Push: func(context.Context, []byte) int { return http.StatusInternalServerError },
	})
	var dead []push
	e.broker.Subscribe(Subscription{
		Name: "projects/demo/subscriptions/dead", Topic: "dead-letters",
		Push: func(_ context.Context, body []byte) int {
			dead = append(dead, pushed(t, body))
			return http.StatusOK
		},
	})
	id := e.broker.Publish("requests", []byte("x"), map[string]string{"ce-id": "1"})
	if n := e.broker.Pending(); n != 1 {
		t.Errorf("%d messages are pending, want the one that was published", n)
	}
	e.Rest(t)
	if n := e.broker.Pending(); n != 0 {
		t.Errorf("%d messages are pending in the end, want none", n)
	}
	want := map[string]string{
		"ce-id": "1", "CloudPubSubDeadLetterSourceDeliveryCount": "6", "CloudPubSubDeadLetterSourceSubscription": "inbox",
		"CloudPubSubDeadLetterSourceTopicPublishTime": "2026-11-12T02:14:07Z",
	}
	if len(dead) != 1 || string(dead[0].Data) != "x" {
		t.Fatalf("dead letters: %+v, want one that says x", dead)
	}
	if diff := cmp.Diff(want, dead[0].Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if all := e.broker.Dead(); len(all) != 1 || all[0].ID != id {
		t.Errorf("the broker tells of the dead letters %+v, want message %s", all, id)
	}
}

func TestBrokerPushesWhatGooglePushes(t *testing.T) {
	m := Message{ID: "7", Data: []byte("hello"), Attributes: map[string]string{"ce-id": "1"}, Published: began, OrderingKey: "demo/llama-8b"}
	var got, want any
	if err := json.Unmarshal(PushBody("projects/demo/subscriptions/inbox", m, 3), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"message":{"attributes":{"ce-id":"1"},"data":"aGVsbG8=","messageId":"7","message_id":"7","orderingKey":"demo/llama-8b",
		"publishTime":"2026-11-12T02:14:07Z","publish_time":"2026-11-12T02:14:07Z"},"subscription":"projects/demo/subscriptions/inbox","deliveryAttempt":3}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("push body (-want +got):\n%s", diff)
	}
}

// TestAHeldBrokerKeepsEverything: messages that fall due while nothing is delivered come when that is over, in their order, and not
// before; the latest word counts.
func TestAHeldBrokerKeepsEverything(t *testing.T) {
	for _, c := range []struct {
		name string
		// said is how long it is held, by when that is said, all in minutes.
		said map[int]int
		want []int // the minute of each delivery
	}{
		{"never", nil, []int{0, 2, 4, 6}},
		{"for a while", map[int]int{1: 4}, []int{0, 5, 5, 6}},
		{"longer than said at first", map[int]int{1: 2, 3: 6}, []int{0, 9, 9, 9}},
		{"shorter than said at first", map[int]int{1: 60, 5: 0}, []int{0, 5, 5, 6}},
		{"twice", map[int]int{1: 2, 4: 1}, []int{0, 3, 5, 6}},
	} {
		clock := clock.NewClock(began)
		b := NewBroker(clock)
		b.Latency = 0
		var got []int
		var ids []string
		b.Subscribe(Subscription{Name: "projects/demo/subscriptions/s", Topic: "t", Push: func(_ context.Context, body []byte) int {
			got, ids = append(got, int(clock.Now().Sub(began).Minutes())), append(ids, pushed(t, body).MessageID)
			return http.StatusOK
		}})
		for m, long := range c.said {
			clock.At(began.Add(time.Duration(m)*time.Minute), func() { b.Hold(clock.Now().Add(time.Duration(long) * time.Minute)) })
		}
		for m := 0; m < 8; m += 2 {
			clock.At(began.Add(time.Duration(m)*time.Minute), func() { b.Publish("t", nil, nil) })
		}
		clock.Run(func() time.Time { return began.Add(30 * time.Minute) }, func() bool { return true })
		clock.Close()
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if d := cmp.Diff([]string{"1", "2", "3", "4"}, ids); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}
