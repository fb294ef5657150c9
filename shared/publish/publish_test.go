package publish_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"
	"google.golang.org/protobuf/types/known/durationpb"

	"pitstop.internal/events"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/publish/publishtest"
)

// TestInMemory runs the contract on the fake of Google's own client.
func TestInMemory(t *testing.T) {
	publishtest.Conformance(t, func(t *testing.T) publishtest.Broker {
		t.Helper()
		s := pstest.NewServer()
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return &puller{connect(t, s.Addr)}
	})
}

// TestEmulator runs the contract on Google's own emulator, which pushes as the service does.
func TestEmulator(t *testing.T) {
	address := publishtest.Emulator(t, publishtest.PubSub)
	publishtest.Conformance(t, func(t *testing.T) publishtest.Broker {
		t.Helper()
		return &pusher{connect(t, address)}
	})
}

// server is a broker that is reached through Google's API, with topics and subscriptions of one test.
type server struct {
	project   string
	topics    *pubsub.TopicAdminClient
	subs      *pubsub.SubscriptionAdminClient
	receivers []receiver
	opts      []option.ClientOption
}

type receiver struct {
	subscription string
	receive      func(publishtest.Message) bool
}

// projects numbers the projects of this process, so that no test meets the topics of another one.
var projects atomic.Int64

func connect(t *testing.T, address string) *server {
	t.Helper()
	s := &server{project: fmt.Sprintf("projects/test-%d", projects.Add(1)), opts: publishtest.Options(address)}
	var err error
	if s.topics, err = pubsub.NewTopicAdminClient(t.Context(), s.opts...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s.topics) })
	if s.subs, err = pubsub.NewSubscriptionAdminClient(t.Context(), s.opts...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s.subs) })
	return s
}

func closed(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func (s *server) topic(name string) string { return s.project + "/topics/" + name }

func (s *server) Topic(t *testing.T, name string) {
	t.Helper()
	if _, err := s.topics.CreateTopic(t.Context(), &pubsubpb.Topic{Name: s.topic(name)}); err != nil {
		t.Fatal(err)
	}
}

func (s *server) subscribe(t *testing.T, sub publishtest.Subscription, push string) receiver {
	t.Helper()
	p := &pubsubpb.Subscription{
		Name: s.project + "/subscriptions/" + sub.Name, Topic: s.topic(sub.Topic), AckDeadlineSeconds: 10,
		RetryPolicy: &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(0), MaximumBackoff: durationpb.New(time.Second)},
	}
	if push != "" {
		p.PushConfig = &pubsubpb.PushConfig{PushEndpoint: push}
	}
	if sub.DeadLetter != "" {
		p.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: s.topic(sub.DeadLetter), MaxDeliveryAttempts: publishtest.DeadAfter}
	}
	made, err := s.subs.CreateSubscription(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return receiver{made.GetName(), sub.Receive}
}

func (s *server) Publish(ctx context.Context, topic string, e events.Envelope) error {
	p := publish.New(publish.Topics{e.Type: s.topic(topic)}, s.opts...)
	if err := p.Publish(ctx, e); err != nil {
		return err
	}
	return p.Close()
}

// patience bounds the wait for a broker that works in real time.
const patience = 30 * time.Second

// puller is a broker whose messages are fetched.
type puller struct{ *server }

func (p *puller) Subscribe(t *testing.T, s publishtest.Subscription) {
	t.Helper()
	p.receivers = append(p.receivers, p.subscribe(t, s, ""))
}

func (p *puller) Until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); {
		if time.Now().After(end) {
			t.Fatalf("no sign of %s within %v", what, patience)
		}
		p.pull(t)
	}
}

// Rest fetches more often than a message can be refused.
func (p *puller) Rest(t *testing.T) {
	t.Helper()
	for range 3 * publishtest.DeadAfter {
		p.pull(t)
	}
}

// pull fetches once from every subscription and answers.
func (p *puller) pull(t *testing.T) {
	t.Helper()
	for _, r := range p.receivers {
		got, err := p.subs.Pull(t.Context(), &pubsubpb.PullRequest{
			Subscription: r.subscription, MaxMessages: 100,
			ReturnImmediately: true, //nolint:staticcheck // deprecated for throughput alone
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.GetReceivedMessages() {
			in := m.GetMessage()
			if r.receive(publishtest.Message{ID: in.GetMessageId(), Data: in.GetData(), Attributes: in.GetAttributes(), Published: in.GetPublishTime().AsTime()}) {
				err = p.subs.Acknowledge(t.Context(), &pubsubpb.AcknowledgeRequest{Subscription: r.subscription, AckIds: []string{m.GetAckId()}})
			} else {
				err = p.subs.ModifyAckDeadline(t.Context(), &pubsubpb.ModifyAckDeadlineRequest{Subscription: r.subscription, AckIds: []string{m.GetAckId()}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// pusher is a broker that posts its messages.
type pusher struct{ *server }

func (p *pusher) Subscribe(t *testing.T, s publishtest.Subscription) {
	t.Helper()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Message struct {
				Data        []byte            `json:"data"`
				Attributes  map[string]string `json:"attributes"`
				MessageID   string            `json:"messageId"`
				PublishTime time.Time         `json:"publishTime"`
			} `json:"message"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("push body: %v", err)
		}
		m := body.Message
		if !s.Receive(publishtest.Message{ID: m.MessageID, Data: m.Data, Attributes: m.Attributes, Published: m.PublishTime}) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	r := p.subscribe(t, s, endpoint.URL)
	t.Cleanup(func() {
		err := p.subs.DeleteSubscription(context.WithoutCancel(t.Context()), &pubsubpb.DeleteSubscriptionRequest{Subscription: r.subscription})
		if err != nil {
			t.Error(err)
		}
		endpoint.Close()
	})
}

func (p *pusher) Until(t *testing.T, what string, done func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for end := time.After(patience); !done(); {
		select {
		case <-end:
			t.Fatalf("no sign of %s within %v", what, patience)
		case <-look.C:
		}
	}
}

// Rest is longer than the emulator waits before it delivers a refused message again.
func (p *pusher) Rest(*testing.T) { <-time.After(2500 * time.Millisecond) }

var requested = events.Envelope{ID: "1", Type: events.TypeRecreateRequested, Source: "//pitstop/functions/logevent", Data: []byte(`{}`)}

func TestAnEventThatCannotBeStoredIsAnErrorThatNamesIt(t *testing.T) {
	s := pstest.NewServer()
	t.Cleanup(func() { closed(t, s) })
	for _, c := range []struct {
		name   string
		topics publish.Topics
		want   []string
	}{
		{"no topic for its type", publish.Topics{}, []string{events.TypeRecreateRequested, "no topic is configured"}},
		{"an empty topic", publish.Topics{requested.Type: ""}, []string{events.TypeRecreateRequested, "no topic is configured"}},
		{"a topic that is not there", publish.Topics{requested.Type: "projects/demo/topics/gone"}, []string{events.TypeRecreateRequested, "projects/demo/topics/gone", "NotFound"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := publish.New(c.topics, publishtest.Options(s.Addr)...)
			t.Cleanup(func() { closed(t, p) })
			err := p.Publish(t.Context(), requested)
			if err == nil {
				t.Fatal("there is no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not name %q", err, want)
				}
			}
		})
	}
}

func TestAClosedPublisherConnectsAgain(t *testing.T) {
	s := pstest.NewServer()
	t.Cleanup(func() { closed(t, s) })
	c := connect(t, s.Addr)
	c.Topic(t, "requests")
	p := publish.New(publish.Topics{requested.Type: c.topic("requests")}, c.opts...)
	for range 2 {
		if err := p.Publish(t.Context(), requested); err != nil {
			t.Fatal(err)
		}
		closed(t, p)
		closed(t, p) // twice does no harm
	}
	if n := len(s.Messages()); n != 2 {
		t.Errorf("%d messages are stored, want 2", n)
	}
}

func TestCredentialsThatCannotBeReadAreAnErrorEveryTime(t *testing.T) {
	file := t.TempDir() + "/credentials.json"
	p := publish.New(publish.Topics{requested.Type: "projects/demo/topics/requests"}, option.WithAuthCredentialsFile(option.ServiceAccount, file))
	for range 2 {
		if err := p.Publish(t.Context(), requested); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("the error is %v, want one that names %s", err, file)
		}
	}
}

func TestManyPublishOverOneConnection(t *testing.T) {
	s := pstest.NewServer()
	t.Cleanup(func() { closed(t, s) })
	c := connect(t, s.Addr)
	c.Topic(t, "requests")
	p := publish.New(publish.Topics{requested.Type: c.topic("requests")}, c.opts...)
	t.Cleanup(func() { closed(t, p) })
	const n = 100
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			e := requested
			e.ID = fmt.Sprint(i)
			if err := p.Publish(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ids := map[string]bool{}
	for _, m := range s.Messages() {
		ids[m.Attributes["ce-id"]] = true
	}
	if len(ids) != n {
		t.Errorf("%d different events are stored, want %d", len(ids), n)
	}
}

func TestAttributesLeaveOutWhatAnEventDoesNotSay(t *testing.T) {
	e := requested
	e.Time = time.Date(2026, 11, 12, 3, 14, 8, 0, time.FixedZone("CET", 3600))
	want := map[string]string{
		"ce-specversion": "1.0", "ce-id": "1", "ce-type": e.Type, "ce-source": e.Source, "ce-time": "2026-11-12T02:14:08Z", "content-type": "application/json",
	}
	if diff := cmp.Diff(want, publish.Attributes(e)); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestConfigRoutesEveryEvent(t *testing.T) {
	c := publish.Config{
		CheckpointTopic: "projects/p/topics/checkpoint", RecoveryTopic: "projects/p/topics/recovery", RecreateTopic: "projects/p/topics/recreate",
		UpdateTopic: "projects/p/topics/updates",
	}
	want := publish.Topics{
		"pitstop.checkpoint.requested.v1": c.CheckpointTopic,
		"pitstop.recovery.requested.v1":   c.RecoveryTopic,
		"pitstop.recreate.requested.v1":   c.RecreateTopic,
		"pitstop.incident.updated.v1":     c.UpdateTopic,
	}
	if diff := cmp.Diff(want, c.Topics()); diff != "" {
		t.Errorf("topics (-want +got):\n%s", diff)
	}
}

func TestUpdatesAreTakenWhereSomebodyIsToBeTold(t *testing.T) {
	if publish.New(publish.Config{}.Topics()).Takes(events.TypeIncidentUpdated) {
		t.Error("a publisher without the topic takes updates")
	}
	if !publish.New(publish.Config{UpdateTopic: "projects/p/topics/updates"}.Topics()).Takes(events.TypeIncidentUpdated) {
		t.Error("a publisher with the topic takes none")
	}
}
