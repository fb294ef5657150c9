package operate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/publish/publishtest"
)

// TestDeadLettersComeBack runs on the fake of Google's own client and on its emulator.
func TestDeadLettersComeBack(t *testing.T) {
	t.Run("in memory", func(t *testing.T) {
		s := pstest.NewServer()
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		deadLettersComeBack(t, s.Addr)
	})
	t.Run("emulator", func(t *testing.T) { deadLettersComeBack(t, publishtest.Emulator(t, publishtest.PubSub)) })
}

func deadLettersComeBack(t *testing.T, address string) {
	project := "p-" + uuid.NewString()[:8]
	wait := 2 * time.Second
	broker, err := deployment.NewBroker(t.Context(), wait, append(google.TrackRPC(), publishtest.Options(address)...)...)
	if err != nil {
		t.Fatal(err)
	}
	topic := func(name string) string { return "projects/" + project + "/topics/" + name }
	for _, name := range []string{"dev-recreate-requests", "dev-recreate-dead-letters", "dev-log-events", "dev-logevent-dead-letters"} {
		if _, err := broker.Topics.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic(name)}); err != nil {
			t.Fatal(err)
		}
		if _, err := broker.Subs.CreateSubscription(t.Context(), &pubsubpb.Subscription{
			Name: "projects/" + project + "/subscriptions/" + name, Topic: topic(name), AckDeadlineSeconds: 10,
		}); err != nil {
			t.Fatal(err)
		}
	}
	bury := func(name string, data []byte, attributes map[string]string) {
		t.Helper()
		attributes["CloudPubSubDeadLetterSourceDeliveryCount"] = "20"
		if err := broker.Publish(t.Context(), topic(name), &pubsubpb.PubsubMessage{Data: data, Attributes: attributes}); err != nil {
			t.Fatal(err)
		}
	}
	pulled := func(name string) (all []*pubsubpb.PubsubMessage) {
		t.Helper()
		from := "projects/" + project + "/subscriptions/" + name
		batch, err := broker.Pull(t.Context(), from)
		for _, m := range batch {
			all = append(all, m.GetMessage())
			if err == nil {
				err = broker.Acknowledge(t.Context(), from, m.GetAckId())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return all
	}

	begun := deploymenttest.Begin("llama-8b")
	begun.Epoch, begun.Now = 2, time.Now()
	begun.Slice.Incarnation.Created = begun.Now.Add(-time.Hour)
	w := begun.Reads().Reads(deploymenttest.Is(evidence.Lost, "PREEMPTED")).Workload
	b := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	b.Now = time.Now
	b.OpenDeadLetters = func(ctx context.Context) (deployment.DeadLetters, error) {
		return deployment.NewBroker(ctx, wait, append(google.TrackRPC(), publishtest.Options(address)...)...)
	}
	redrive := func(args ...string) (string, error) {
		return b.CallAt(project, append([]string{"redrive", "--prefix", "dev-", "--why", "the bucket is there again"}, args...)...)
	}
	request := func(epoch int64) []byte {
		r := events.RecreateRequested{Request: events.Request{
			Schema: events.Schema, Workload: w.ID, Incident: w.Incident.ID, Epoch: epoch, Action: events.ActionDelete, Slice: "llama-8b", Attempt: 1,
			Expires: time.Now().Add(time.Hour),
		}, Zone: "us-west4-a"}
		r.Incarnation = w.Slices[0].Incarnation
		env, err := events.Wrap(r, "//pitstop/functions/patrol", "", w.Incident.ID, deploymenttest.Noon)
		if err != nil {
			t.Fatal(err)
		}
		bury("dev-recreate-dead-letters", env.Data, publish.Attributes(env))
		return env.Data
	}
	wanted := request(w.Epoch)
	request(3)
	bury("dev-recreate-dead-letters", []byte(`{"schema":99}`), map[string]string{"ce-type": events.TypeRecreateRequested, "ce-id": "newer"})
	got, err := redrive("recreate-requests")
	if err != nil {
		t.Fatal(err)
	}
	deploymenttest.WantText(t, got, "dropped, refused: the epoch is 4, not 3", "2 published again on projects/"+project+"/topics/dev-recreate-requests, 1 dropped")
	back := pulled("dev-recreate-requests")
	if len(back) != 2 {
		t.Fatalf("%d came back", len(back))
	}
	for _, m := range back {
		a := m.GetAttributes()
		if a["ce-id"] == "newer" {
			continue
		}
		if d := cmp.Diff(string(wanted), string(m.GetData())); d != "" {
			t.Errorf("the letter that came back (-want +got):\n%s", d)
		}
		if a["pitstop-redriven-by"] != "ada@example.com" || a["pitstop-redriven-why"] != "the bucket is there again" || a["ce-type"] != events.TypeRecreateRequested || a["CloudPubSubDeadLetterSourceDeliveryCount"] != "" {
			t.Errorf("its attributes are %v", a)
		}
	}
	if left := pulled("dev-recreate-dead-letters"); len(left) > 0 {
		t.Errorf("%d letters are left", len(left))
	}

	for range 3 {
		bury("dev-logevent-dead-letters", []byte(`{"logName":"x"}`), map[string]string{})
	}
	held, err := broker.Pull(t.Context(), "projects/"+project+"/subscriptions/dev-logevent-dead-letters")
	if err != nil || len(held) == 0 {
		t.Fatalf("%d letters: %v", len(held), err)
	}
	for _, m := range held { // who held them has left without handling them
		if err := broker.GiveBack(t.Context(), "projects/"+project+"/subscriptions/dev-logevent-dead-letters", []string{m.GetAckId()}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err = redrive("dev-log-events"); err != nil {
		t.Fatal(err)
	}
	deploymenttest.WantText(t, got, "3 published again", "0 dropped")
	if back := pulled("dev-log-events"); len(back) != 3 {
		t.Errorf("%d log entries came back", len(back))
	}
	if _, err := redrive("patrol-ticks"); err == nil || !strings.Contains(err.Error(), "has dead letters; these have") {
		t.Errorf("ticks: %v", err)
	}
	if err := broker.Close(); err != nil {
		t.Error(err)
	}
}

// mailbox is a subscription of dead letters that hands out what it is told to, batch after batch.
type mailbox struct {
	batches                     [][]*pubsubpb.ReceivedMessage
	refuses                     string
	published, acked, givenBack []string
}

func (m *mailbox) Pull(context.Context, string) (batch []*pubsubpb.ReceivedMessage, err error) {
	if len(m.batches) > 0 {
		batch, m.batches = m.batches[0], m.batches[1:]
	}
	return batch, nil
}

func (m *mailbox) Publish(_ context.Context, _ string, p *pubsubpb.PubsubMessage) error {
	if string(p.GetData()) == m.refuses {
		return errors.New("no such topic")
	}
	m.published = append(m.published, string(p.GetData()))
	return nil
}

func (m *mailbox) Acknowledge(_ context.Context, _, ackID string) error {
	m.acked = append(m.acked, ackID)
	return nil
}

func (m *mailbox) GiveBack(_ context.Context, _ string, ackIDs []string) error {
	m.givenBack = append(m.givenBack, ackIDs...)
	return nil
}

func (*mailbox) Close() error { return nil }

// letter is one of that name, delivered for the n-th time.
func letter(name, n string) *pubsubpb.ReceivedMessage {
	at := deploymenttest.Noon.Add(-time.Hour)
	if strings.HasPrefix(name, "young") {
		at = deploymenttest.Noon.Add(time.Second)
	}
	return &pubsubpb.ReceivedMessage{
		AckId: name + n, Message: &pubsubpb.PubsubMessage{MessageId: name, Data: []byte(name), PublishTime: timestamppb.New(at)},
	}
}

// TestLettersThatComeAgain: an acknowledgement may come too late, and then the letter is delivered again. It is brought back once,
// acknowledged by its new delivery, and hides none that waits behind it.
func TestLettersThatComeAgain(t *testing.T) {
	type batch = []*pubsubpb.ReceivedMessage
	for name, c := range map[string]struct {
		batches                     []batch
		refuses                     string
		published, acked, givenBack []string
	}{
		"acknowledged on sight": {
			batches:   []batch{{letter("a", "1"), letter("b", "1")}, {letter("a", "2"), letter("b", "2")}, {letter("c", "1")}},
			published: []string{"a", "b", "c"}, acked: []string{"a1", "b1", "a2", "b2", "c1"},
		},
		"what died since it began is left": {
			batches:   []batch{{letter("young", "1")}, {letter("a", "1")}},
			published: []string{"a"}, acked: []string{"a1"}, givenBack: []string{"young1"},
		},
		"what could not be brought back waits for nobody": {
			batches:   []batch{{letter("a", "1"), letter("b", "1"), letter("c", "1")}},
			refuses:   "b",
			published: []string{"a"}, acked: []string{"a1"}, givenBack: []string{"b1", "c1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mailbox{batches: slices.Clone(c.batches), refuses: c.refuses}
			r := redrive{letters: m, ledger: deploymenttest.New(t, ledgertest.NewStore().Open).Ledger, start: deploymenttest.Noon, tell: func(string) {}, seen: map[string]bool{}}
			if err := r.run(t.Context()); (err != nil) != (c.refuses != "") {
				t.Error(err)
			}
			for what, d := range map[string]string{
				"published": cmp.Diff(c.published, m.published), "acknowledged": cmp.Diff(c.acked, m.acked), "given back": cmp.Diff(c.givenBack, m.givenBack),
			} {
				if d != "" {
					t.Errorf("%s (-want +got):\n%s", what, d)
				}
			}
		})
	}
}
