package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/publish/publishtest"
)

// remote carries the messages of a scenario through Google's Pub/Sub emulator, by push to the functions framework. The
// emulator lives in real time: while a message is on its way a minute of the scenario passes in a second, and idle
// stretches are jumped. A message takes no longer than onTheWay or afterRefusal, however slow the machine is: then the
// scenario waits for it, so that its ends do not hang on the machine.
type remote struct {
	clock   *clock.Clock
	topics  *pubsub.TopicAdminClient
	subs    *pubsub.SubscriptionAdminClient
	project string
	run     int64

	mu sync.Mutex
	// published are the messages that nobody has acknowledged yet; acknowledged are those whose acknowledgement was
	// faster than the answer to their publication.
	published    map[string]*sent
	acknowledged map[string]bool
	// early are the messages that a function began to handle before the answer to their publication was there.
	early  map[string]bool
	faults []error
}

// sent is a message that nobody has acknowledged yet.
type sent struct {
	world.Message
	// arrives is when it is delivered at the latest, in the scenario's time, and since when it is waited for, in real time.
	// Both are zero while a function handles it.
	arrives, since time.Time
}

const (
	// onTheWay is the longest that a message is on its way, in the scenario's time.
	onTheWay = time.Minute
	// afterRefusal is the longest until the emulator delivers a refused message again, in the scenario's time: its longest
	// pause by flow.
	afterRefusal = longestPause * flow
	longestPause = 10 * time.Second
	// longestWait is how long a delivery is waited for, in real time.
	longestWait = 2 * time.Minute
)

// waitFor says how long the scenario waits at most for m to be delivered.
func (r *remote) waitFor(m *sent, longest time.Duration) {
	m.arrives, m.since = r.clock.Now().Add(longest), time.Now()
}

// runs numbers the scenarios of this process, so that no message of one reaches another, and handlers are those of each
// that is under way: a process has one framework, which serves all of them at the same addresses.
var (
	runs     atomic.Int64
	handlers sync.Map // handlerKey -> http.Handler
)

type handlerKey struct{ entry, run string }

// runParameter says in a push's address which scenario it belongs to.
const runParameter = "run"

// dispatch serves an entry point for every scenario.
func dispatch(entry string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h, ok := handlers.Load(handlerKey{entry, req.URL.Query().Get(runParameter)})
		handler, is := h.(http.Handler)
		if !ok || !is {
			http.Error(w, "that scenario is over", http.StatusGone)
			return
		}
		handler.ServeHTTP(w, req)
	})
}

func newRemote(ctx context.Context, clock *clock.Clock, address string) (*remote, error) {
	opts := publishtest.Options(address)
	topics, err := pubsub.NewTopicAdminClient(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("pub/sub emulator at %s: %w", address, err)
	}
	subs, err := pubsub.NewSubscriptionAdminClient(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("pub/sub emulator at %s: %w", address, err)
	}
	return &remote{
		clock: clock, topics: topics, subs: subs, project: "projects/pitstop-replay", run: runs.Add(1),
		published: map[string]*sent{}, acknowledged: map[string]bool{}, early: map[string]bool{},
	}, nil
}

func (r *remote) topic(name string) string {
	return fmt.Sprintf("%s/topics/%s-%d", r.project, name, r.run)
}

func (r *remote) subscription(name string) string {
	return fmt.Sprintf("%s/subscriptions/%s-%d", r.project, name, r.run)
}

// Subscribe implements Carrier: it makes a topic and its push subscription.
func (r *remote) Subscribe(ctx context.Context, topic, name, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := r.topics.CreateTopic(ctx, &pubsubpb.Topic{Name: r.topic(topic)}); err != nil {
		return fmt.Errorf("pub/sub emulator: topic %s: %w", topic, err)
	}
	_, err := r.subs.CreateSubscription(ctx, &pubsubpb.Subscription{
		Name: r.subscription(name), Topic: r.topic(topic), AckDeadlineSeconds: 600,
		PushConfig:  &pubsubpb.PushConfig{PushEndpoint: endpoint + "?" + runParameter + "=" + strconv.FormatInt(r.run, 10)},
		RetryPolicy: &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(time.Second), MaximumBackoff: durationpb.New(longestPause)},
	})
	if err != nil {
		return fmt.Errorf("pub/sub emulator: subscription %s: %w", name, err)
	}
	return nil
}

// close removes the created resources.
func (r *remote) close(ctx context.Context) error {
	var faults []error
	for _, f := range world.Functions {
		handlers.Delete(handlerKey{f.Entry, strconv.FormatInt(r.run, 10)})
		faults = append(faults,
			r.subs.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: r.subscription(f.Name)}),
			r.topics.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: r.topic(f.Topic)}))
	}
	faults = append(faults, r.subs.Close(), r.topics.Close())
	return errors.Join(append(faults, r.faults...)...)
}

// Publish implements Carrier.
func (r *remote) Publish(topic string, data []byte, attributes map[string]string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	got, err := r.topics.Publish(ctx, &pubsubpb.PublishRequest{Topic: r.topic(topic), Messages: []*pubsubpb.PubsubMessage{{Data: data, Attributes: attributes}}})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || len(got.GetMessageIds()) != 1 {
		r.faults = append(r.faults, fmt.Errorf("pub/sub emulator: publish on %s: %w", topic, err))
		return ""
	}
	id := got.GetMessageIds()[0]
	handled := r.early[id]
	delete(r.early, id)
	if r.acknowledged[id] {
		delete(r.acknowledged, id)
		return id
	}
	m := &sent{Message: world.Message{ID: id, Topic: topic, Data: data, Attributes: attributes, Published: r.clock.Now()}}
	if !handled {
		r.waitFor(m, onTheWay)
	}
	r.published[id] = m
	return id
}

// Pending implements Carrier.
func (r *remote) Pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.published)
}

// Serve implements Carrier. It wraps the handler of a function, so that the clock knows that it runs, and the story
// that a message was delivered. The wrapped handler serves the other scenarios of this process too.
func (r *remote) Serve(entry string, h http.Handler, delivered func(sub string, m world.Message, attempt, status int)) http.Handler {
	handlers.Store(handlerKey{entry, strconv.FormatInt(r.run, 10)}, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.clock.Add(1)
		defer r.clock.Add(-1)
		body, err := io.ReadAll(req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body, m := r.virtual(body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		code := http.StatusInternalServerError // of a handler that panics
		defer func() { r.answered(m, code == http.StatusOK) }()
		code = world.StatusOf(h, w.Header(), req)
		delivered("", m, 1, code)
		w.WriteHeader(code)
	}))
	return dispatch(entry)
}

// virtual puts the scenario's time of publication into a push body: the emulator knows the real one only.
func (r *remote) virtual(body []byte) ([]byte, world.Message) {
	var p struct {
		Message struct {
			Data       []byte            `json:"data"`
			Attributes map[string]string `json:"attributes"`
			MessageID  string            `json:"messageId"`
		} `json:"message"`
		Subscription string `json:"subscription"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return body, world.Message{}
	}
	m := world.Message{ID: p.Message.MessageID, Data: p.Message.Data, Attributes: p.Message.Attributes, Published: r.clock.Now()}
	r.mu.Lock()
	if known, ok := r.published[m.ID]; ok {
		m.Published = known.Published
		known.arrives, known.since = time.Time{}, time.Time{}
	} else {
		r.early[m.ID] = true
	}
	r.mu.Unlock()
	return world.PushBody(p.Subscription, m, 0), m
}

func (r *remote) answered(m world.Message, acknowledged bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.published[m.ID]
	delete(r.early, m.ID)
	switch {
	case ok && acknowledged:
		delete(r.published, m.ID)
	case ok:
		r.waitFor(known, afterRefusal)
	case acknowledged:
		r.acknowledged[m.ID] = true
	}
}

// busy takes the real time in which a function worked off the waiting for a delivery.
func (r *remote) busy(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.published {
		if !m.since.IsZero() {
			m.since = m.since.Add(d)
		}
	}
}

// latest is the earliest time at which a message must be delivered, or to if none must be by then. It is an error if the
// emulator has not delivered a message for as long as longestWait.
func (r *remote) latest(to time.Time) (time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.published {
		if m.arrives.IsZero() {
			continue
		}
		if time.Since(m.since) > longestWait {
			return to, fmt.Errorf("pub/sub emulator: message %s on topic %s was not delivered for %v", m.ID, m.Topic, longestWait)
		}
		if m.arrives.Before(to) {
			to = m.arrives
		}
	}
	return to, nil
}

// flow is how much faster than real time a scenario goes while a message is on its way.
const flow = 60

// step goes on: to the next due function if no message is on its way, else by real time, once no handler runs.
func (r *remote) step(ctx context.Context, limit time.Time) (bool, error) {
	const beat = 5 * time.Millisecond
	if r.Pending() == 0 && r.clock.Quiet() {
		return r.clock.Step(limit), nil
	}
	if err := ledger.Sleep(ctx, beat); err != nil {
		return false, err
	}
	if !r.clock.Quiet() {
		r.busy(beat)
		return true, nil // the time that a handler takes on this machine is none of the scenario's
	}
	to, err := r.latest(r.clock.Now().Add(beat * flow))
	if err != nil {
		return false, err
	}
	for r.clock.StepBefore(to) {
		continue
	}
	r.clock.Advance(to)
	return true, nil
}
