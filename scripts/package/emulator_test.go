package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"pitstop.internal/events"
	"pitstop.internal/scripts/package/process"
	"pitstop.internal/scripts/sim/cloud"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/publish/publishtest"
)

const (
	liveZone  = "us-west4-a"
	liveSlice = "llama-8b"
	// liveTick is how often patrol looks: once a minute in a deployment.
	liveTick = 2 * time.Second
	// liveWithin bounds the wait for each stage on a busy machine.
	liveWithin = 3 * time.Minute
)

// brisk is how long things take in a cloud whose clients live by the clock of this machine.
var brisk = cloudtputest.Timing{
	Create: 2 * time.Second, Delete: time.Second, Refuse: time.Second, Patch: -1, Accept: time.Second, Queue: time.Second, Suspend: time.Second, Linger: time.Second,
}

// live is a deployment on this machine: each function a process, built from its archive, over Google's emulators and a served cloud.
type live struct {
	cloud     *cloud.Cloud
	ledger    *ledger.Ledger
	topics    *pubsub.TopicAdminClient
	processes map[string]*running
}

func (l *live) publish(t *testing.T, topic string, data []byte, attributes map[string]string) {
	_, err := l.topics.Publish(context.WithoutCancel(t.Context()), &pubsubpb.PublishRequest{
		Topic: "projects/demo/topics/" + topic, Messages: []*pubsubpb.PubsubMessage{{Data: data, Attributes: attributes}},
	})
	if err != nil {
		t.Errorf("publish on %s: %v", topic, err)
	}
}

// until waits until something is so, and prints what the functions logged last if that does not come.
func (l *live) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), liveWithin)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-ctx.Done():
			for name, p := range l.processes {
				said, _ := os.ReadFile(p.log) //nolint:errcheck // then it said nothing
				t.Logf("%s logged last: %s", name, said[max(0, len(said)-3000):])
			}
			t.Fatalf("after %v it is not so: %s", liveWithin, what)
		}
	}
}

// TestStagedFunctionsResumeTrainingOverEmulators builds every function as it is deployed and starts it as a process of its own. A
// slice of the served cloud is preempted; that alone is made to happen. The entries travel through Google's Pub/Sub emulator, the
// ledger is in the Firestore emulator, and in the end training goes on past its last checkpoint, on another node of that name.
func TestStagedFunctionsResumeTrainingOverEmulators(t *testing.T) {
	pubsubAt, firestoreAt := publishtest.Emulator(t, publishtest.PubSub), publishtest.Emulator(t, publishtest.Firestore)
	ctx, dir := t.Context(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	l := &live{processes: map[string]*running{}}
	var err error
	l.topics, err = pubsub.NewTopicAdminClient(ctx, publishtest.Options(pubsubAt)...)
	must(err)
	defer l.topics.Close() //nolint:errcheck // nothing is under way any more
	subscriptions, err := pubsub.NewSubscriptionAdminClient(ctx, publishtest.Options(pubsubAt)...)
	must(err)
	defer subscriptions.Close() //nolint:errcheck // likewise
	t.Setenv(ledger.EmulatorHost, firestoreAt)
	l.ledger = ledger.New(ledger.Firestore("demo", ledger.Database))
	defer l.ledger.Close() //nolint:errcheck // likewise

	// The cloud, with a training on its only slice.
	fleet, err := world.Parse([]byte("project: demo\ncapacity: {" + liveZone + ": 2}\nfleet: [{name: " + liveSlice + ", zone: " + liveZone +
		", accelerator: v5litepod-16, spot: true, policy: spot, directory: \"gs://ckpt/llama\"}]"))
	must(err)
	entries := make(chan []byte, 10_000)
	var training atomic.Pointer[trainingtest.Training]
	l.cloud, err = cloud.New(cloud.Config{
		Fleet: fleet, Timing: &brisk, Token: "live", Logged: func(e []byte) { entries <- e },
		Observed: func(e cloudtputest.Event) {
			if run := training.Load(); run != nil {
				run.Observe(e)
			}
		},
	})
	must(err)
	listener, err := cloud.Listen(ctx, "127.0.0.1:0")
	must(err)
	at := listener.Addr().String()

	// The functions, each behind its own push subscription.
	m, err := findModule(ctx)
	must(err)
	functions, err := process.Functions(m.Dir)
	must(err)
	environment := append(process.Environment(),
		"UPDATE_TOPIC=projects/demo/topics/"+events.TopicUpdates, "ALLOW=request_checkpoint,early_maintenance,restart,recreate",
		"TPU_ENDPOINT=http://"+at, "STORAGE_EMULATOR_HOST="+at, "LOGGING_EMULATOR_HOST="+at,
		"FIRESTORE_EMULATOR_HOST="+firestoreAt, "PUBSUB_EMULATOR_HOST="+pubsubAt, "HTTPS_PROXY=http://127.0.0.1:1")
	reacts, _ := world.Wiring()
	topicOf := map[string]string{}
	for topic, function := range reacts {
		topicOf[function] = topic
		_, err := l.topics.CreateTopic(ctx, &pubsubpb.Topic{Name: "projects/demo/topics/" + topic})
		must(err)
	}
	for _, f := range functions {
		own := filepath.Join(dir, f.Name)
		_, _, err := pack(ctx, m, f.Name, filepath.Join(dir, "out"))
		must(err)
		must(os.MkdirAll(own, 0o750))
		must(build(ctx, m, filepath.Join(dir, "out", f.Name), own))
		p, err := start(context.WithoutCancel(ctx), own, f.Target, environment)
		must(err)
		l.processes[f.Name] = p
		t.Cleanup(func() {
			if err := p.kill(); err != nil { // one that never had a message knows no other end
				t.Errorf("%s: %v", f.Name, err)
			}
		})
		_, err = subscriptions.CreateSubscription(ctx, &pubsubpb.Subscription{
			Name: "projects/demo/subscriptions/" + f.Name, Topic: "projects/demo/topics/" + topicOf[f.Name], AckDeadlineSeconds: 600,
			PushConfig:  &pubsubpb.PushConfig{PushEndpoint: p.url},
			RetryPolicy: &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(time.Second), MaximumBackoff: durationpb.New(10 * time.Second)},
		})
		must(err)
	}
	if len(l.processes) != len(world.Functions) {
		t.Fatalf("%d functions are served, and %d react to topics", len(l.processes), len(world.Functions))
	}

	// What the project does by itself: the cloud goes on, sinks route entries, and the scheduler ticks.
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 3)
	go func() { ended <- l.cloud.Serve(life, listener) }()
	go func() { ended <- l.route(t, life, entries) }()
	go func() { ended <- l.tick(t, life) }()
	defer func() {
		stop()
		for range 3 {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	}()
	l.cloud.Catch()
	host := l.cloud.API.Hosts(liveZone, liveSlice)
	group, _, _ := events.WorkerGroup(host[0])
	first := l.cloud.API.Incarnation(liveZone, liveSlice)
	run := trainingtest.New(trainingtest.Config{
		Project: "demo", Slice: liveSlice, Workload: "demo/" + liveSlice, Clock: l.cloud.Clock(), Bucket: l.cloud.Bucket, Directory: "gs://ckpt/llama",
		Emit: l.cloud.Enter, ReportEvery: time.Second, StepTakes: 100 * time.Millisecond, CheckpointEvery: 20, SaveTakes: 200 * time.Millisecond,
		StartTakes: 500 * time.Millisecond, BootTakes: 500 * time.Millisecond,
	}, first, group, len(host))
	l.cloud.Bucket.OnChange(run.Changed)
	l.cloud.API.OnGuests(func(_, _ string, worker int) (string, bool) { return guestOf(run, worker) })
	training.Store(run)

	workload := func() incident.Workload {
		w, _, err := l.ledger.Workload(ctx, "demo/"+liveSlice)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("ledger: %v", err)
		}
		return w
	}
	l.until(t, "Pitstop knows the slice and its training", func() bool { return workload().Progress.Step > 0 })
	saved := run.Saved()
	began := time.Now()
	must(l.cloud.API.Preempt(liveZone, liveSlice))
	l.until(t, "an incident ended", func() bool { return workload().Closed != nil })
	closed := workload().Closed
	if closed.Outcome != incident.Resumed || closed.Cause != events.CausePreemption {
		t.Errorf("the incident ended %s, its cause is %s: %s", closed.Outcome, closed.Cause, closed.Reason)
	}
	now := l.cloud.API.Incarnation(liveZone, liveSlice)
	if on, trains := run.Running(); now.Same(first) || !trains || !on.Same(now) || run.Stepped() <= saved {
		t.Errorf("training runs: %v, on %v, at step %d; the node was %v and is %v, the checkpoint is of step %d", trains, on, run.Stepped(), first, now, saved)
	}
	t.Logf("from the preemption to the end of the incident: %v", time.Since(began).Round(time.Second))
}

// route brings entries to the topics, as the sinks do.
func (l *live) route(t *testing.T, ctx context.Context, entries <-chan []byte) error { //nolint:revive // the context is that of the deployment, and not of the test
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case raw := <-entries:
			e, err := events.Read(raw)
			if err != nil {
				return err
			}
			topic := events.TopicLogs
			switch {
			case e.Ignored != "":
				continue
			case e.Kind == events.KindNotice:
				topic = events.TopicNotices
			}
			l.publish(t, topic, raw, map[string]string{"logging.googleapis.com/timestamp": e.Time.UTC().Format(time.RFC3339Nano)})
		}
	}
}

// tick is Cloud Scheduler, in a hurry.
func (l *live) tick(t *testing.T, ctx context.Context) error { //nolint:revive // likewise
	again := time.NewTicker(liveTick)
	defer again.Stop()
	for {
		l.publish(t, events.TopicTicks, []byte("{}"), nil)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// guestOf is what a crew has written into the guest attribute of a worker.
func guestOf(run *trainingtest.Training, worker int) (string, bool) {
	state, ok := run.State()
	if worker != 0 || !ok {
		return "", false
	}
	raw, err := json.Marshal(state)
	return string(raw), err == nil
}
