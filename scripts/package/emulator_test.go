package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/publish/publishtest"
	"pitstop.internal/shared/view"
)

const (
	liveZone  = "us-west4-a"
	liveSlice = "llama-8b"
	// crewSlice is the slice with a real crew.
	crewSlice = "gemma"
	// liveTick is how often patrol looks: once a minute in a deployment.
	liveTick = 2 * time.Second
	// liveWithin bounds the wait for each stage on a busy machine.
	liveWithin = 2 * time.Minute
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
	tpu       *machine
}

func (l *live) publish(t *testing.T, topic string, data []byte, attributes map[string]string) {
	_, err := l.topics.Publish(context.WithoutCancel(t.Context()), &pubsubpb.PublishRequest{
		Topic: "projects/demo/topics/" + topic, Messages: []*pubsubpb.PubsubMessage{{Data: data, Attributes: attributes}},
	})
	if err != nil {
		t.Errorf("publish on %s: %v", topic, err)
	}
}

// told logs how the workloads stand, and what pitcrew said.
func (l *live) told(t *testing.T) {
	t.Helper()
	for _, name := range []string{liveSlice, crewSlice} {
		w, _, err := l.ledger.Workload(context.WithoutCancel(t.Context()), "demo/"+name)
		raw, _ := json.Marshal(w) //nolint:errcheck // it is a document
		t.Logf("%s: %v: %s", name, err, raw)
	}
	t.Logf("pitcrew said: %s", l.tpu.said())
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
			l.told(t)
			for name, p := range l.processes {
				said, _ := os.ReadFile(p.log) //nolint:errcheck // then it said nothing
				t.Logf("%s logged last: %s", name, said[max(0, len(said)-3000):])
			}
			t.Fatalf("after %v it is not so: %s", liveWithin, what)
		}
	}
}

// liveTrainer is a training: it goes on at the step that pitcrew names, and saves every 20 steps.
const liveTrainer = `package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	file, cloud := os.Args[1], os.Args[2]
	step, _ := strconv.Atoi(os.Getenv("PITCREW_RESUME_STEP"))
	for {
		time.Sleep(50 * time.Millisecond)
		step++
		if err := os.WriteFile(file, []byte(strconv.Itoa(step)), 0o600); err != nil {
			panic(err)
		}
		for _, object := range []string{"state/manifest.ocdbt", "_CHECKPOINT_METADATA", "commit_success.txt"} {
			if step%20 != 0 {
				break
			}
			url := fmt.Sprintf("http://%s/upload/storage/v1/b/ckpt/o?uploadType=media&name=gemma/%d/%s", cloud, step, object)
			resp, err := http.Post(url, "application/octet-stream", strings.NewReader("{}"))
			if err != nil || resp.StatusCode != http.StatusOK {
				panic(fmt.Sprint(url, resp, err))
			}
			resp.Body.Close()
		}
	}
}
`

// machine is the only worker of the slice with a real crew: pitcrew and its training run on it in each life of the node.
type machine struct {
	// dir has the programs, and at is the address of the cloud.
	dir, at string
	// absent says why there is none.
	absent error

	mu     sync.Mutex
	crew   *exec.Cmd
	starts int
	fault  error
}

// observe starts the machine with its node and ends it with that.
func (m *machine) observe(e cloudtputest.Event) {
	switch {
	case e.Node != crewSlice:
	case e.Kind == cloudtputest.Ready:
		m.start()
	case e.Kind == cloudtputest.Lost, e.Kind == cloudtputest.Gone:
		m.end()
	}
}

func (m *machine) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.crew != nil || m.absent != nil {
		return
	}
	m.starts++
	own := filepath.Join(m.dir, "life-"+strconv.Itoa(m.starts))
	step := filepath.Join(own, "step")
	if m.fault = os.MkdirAll(own, 0o700); m.fault != nil {
		return
	}
	log, err := os.Create(filepath.Join(own, "log"))
	if err != nil {
		m.fault = err
		return
	}
	defer log.Close() //nolint:errcheck // the process has its own
	var boot []string
	if boot, m.fault = booting(); m.fault != nil {
		return
	}
	c := exec.CommandContext(context.Background(), "unshare", append(boot, filepath.Join(m.dir, "pitcrew"), "run", "-v", //nolint:gosec // built for this test
		"--state="+filepath.Join(own, "state"), "--storage-endpoint=http://"+m.at+"/storage/v1/", "--logging-endpoint="+m.at,
		"--lease-every=500ms", "--look-every=500ms", "--step-every=100ms", "--report-every=1s", "--progress-file="+step,
		"--", filepath.Join(m.dir, "trainer"), step, m.at)...)
	c.Env = append(os.Environ(), "GCE_METADATA_HOST="+m.at+"/machines/"+liveZone+"/"+crewSlice+"/0")
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(c)
	if m.fault = c.Start(); m.fault == nil {
		m.crew = c
	}
}

// booting are the arguments of unshare for a program that believes its machine to start now. A crew belongs to a life of its slice
// that began before its machine. On older kernels the new time reaches only a child of unshare.
func booting() ([]string, error) {
	raw, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return nil, err
	}
	seconds, _, _ := strings.Cut(string(raw), ".")
	return []string{"--time", "--fork", "--kill-child", "--boottime=-" + seconds}, nil
}

// unbootable says why no program can be made to believe here that its machine starts now; nil where that is possible.
func unbootable(ctx context.Context) error {
	boot, err := booting()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "unshare", append(boot, "cat", "/proc/uptime")...).CombinedOutput() //nolint:gosec // our own arguments
	if err != nil {
		return fmt.Errorf("unshare: %w: %s", err, bytes.TrimSpace(out))
	}
	seconds, _, _ := strings.Cut(string(out), ".")
	if up, err := strconv.Atoi(seconds); err != nil || up > 60 {
		return fmt.Errorf("unshare --time leaves the uptime at %q", bytes.TrimSpace(out))
	}
	return nil
}

// end takes the machine away, with all that runs on it.
func (m *machine) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.crew == nil {
		return
	}
	_ = syscall.Kill(-m.crew.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	_ = m.crew.Wait()                                      //nolint:errcheck // it was killed
	m.crew = nil
}

// said is what pitcrew has said in all lives.
func (m *machine) said() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all strings.Builder
	for life := range m.starts {
		raw, _ := os.ReadFile(filepath.Join(m.dir, "life-"+strconv.Itoa(life+1), "log")) //nolint:errcheck // then it said nothing
		all.Write(raw)
	}
	return all.String()
}

// TestStagedFunctionsResumeTrainingOverEmulators builds every function as it is deployed and starts it as a process of its own. Slices
// of the served cloud are preempted; that alone is made to happen. The entries travel through Google's Pub/Sub emulator, the ledger
// is in the Firestore emulator, and in the end training goes on past its last checkpoint, on another node of that name. One slice has
// a simulated training on four workers, the other has pitcrew and its training as processes too.
func TestStagedFunctionsResumeTrainingOverEmulators(t *testing.T) {
	pubsubAt, firestoreAt := publishtest.Emulator(t, publishtest.PubSub), publishtest.Emulator(t, publishtest.Firestore)
	ctx, dir := t.Context(), t.TempDir()
	l := &live{processes: map[string]*running{}}
	var err error
	l.topics, err = pubsub.NewTopicAdminClient(ctx, publishtest.Options(pubsubAt)...)
	must(t, err)
	defer l.topics.Close() //nolint:errcheck // nothing is under way any more
	subscriptions, err := pubsub.NewSubscriptionAdminClient(ctx, publishtest.Options(pubsubAt)...)
	must(t, err)
	defer subscriptions.Close() //nolint:errcheck // likewise
	t.Setenv(ledger.EmulatorHost, firestoreAt)
	l.ledger = ledger.New(ledger.Firestore("demo", ledger.Database))
	defer l.ledger.Close() //nolint:errcheck // likewise

	// The cloud, with two slices. On each there will be a training.
	slice := func(name, accelerator, directory string) string {
		return "  - {name: " + name + ", zone: " + liveZone + ", accelerator: " + accelerator + ", spot: true, policy: spot, directory: \"gs://ckpt/" + directory + "\"}\n"
	}
	fleet, err := world.Parse([]byte("project: demo\ncapacity: {" + liveZone + ": 3}\nfleet:\n" +
		slice(liveSlice, "v5litepod-16", "llama") + slice(crewSlice, "v5litepod-8", "gemma")))
	must(t, err)
	entries := make(chan []byte, 10_000)
	var training atomic.Pointer[trainingtest.Training]
	tpu := &machine{dir: filepath.Join(dir, "machine")}
	l.tpu = tpu
	l.cloud, err = cloud.New(cloud.Config{
		Fleet: fleet, Timing: &brisk, Token: "live", Logged: func(e []byte) { entries <- e },
		Observed: func(e cloudtputest.Event) {
			if run := training.Load(); run != nil {
				run.Observe(e)
				tpu.observe(e)
			}
		},
	})
	must(t, err)
	listener, err := cloud.Listen(ctx, "127.0.0.1:0")
	must(t, err)
	at := listener.Addr().String()

	// Crew and training of the other slice.
	tpu.at = at
	tpu.absent = unbootable(ctx)
	must(t, os.MkdirAll(filepath.Join(tpu.dir, "source"), 0o700))
	must(t, os.WriteFile(filepath.Join(tpu.dir, "source", "main.go"), []byte(liveTrainer), 0o600))
	for program, source := range map[string]string{"pitcrew": "./scripts/pitcrew", "trainer": filepath.Join(tpu.dir, "source", "main.go")} {
		c := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(tpu.dir, program), source) //nolint:gosec // our own arguments
		c.Dir = "../.."
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v: %s", program, err, out)
		}
	}

	// The functions, each behind its own push subscription.
	m, err := findModule(ctx)
	must(t, err)
	functions, err := process.Functions(m.Dir)
	must(t, err)
	environment := append(process.Environment(),
		"UPDATE_TOPIC=projects/demo/topics/"+events.TopicUpdates, "ALLOW=request_checkpoint,early_maintenance,restart,recreate",
		"TPU_ENDPOINT=http://"+at, "STORAGE_EMULATOR_HOST="+at, "LOGGING_EMULATOR_HOST="+at,
		"FIRESTORE_EMULATOR_HOST="+firestoreAt, "PUBSUB_EMULATOR_HOST="+pubsubAt, "HTTPS_PROXY=http://127.0.0.1:1")
	reacts, _ := world.Wiring()
	topicOf := map[string]string{}
	for topic, function := range reacts {
		topicOf[function] = topic
		_, err := l.topics.CreateTopic(ctx, &pubsubpb.Topic{Name: "projects/demo/topics/" + topic})
		must(t, err)
	}
	for _, f := range functions {
		own := filepath.Join(dir, f.Name)
		_, _, err := pack(ctx, m, f.Name, filepath.Join(dir, "out"))
		must(t, err)
		must(t, os.MkdirAll(own, 0o750))
		must(t, build(ctx, m, filepath.Join(dir, "out", f.Name), own))
		p, err := start(context.WithoutCancel(ctx), own, f.Target, environment)
		must(t, err)
		l.processes[f.Name] = p
		t.Cleanup(func() {
			if err := p.kill(); err != nil { // one that never had a message knows no other end
				t.Errorf("%s: %v", f.Name, err)
			}
		})
		if topicOf[f.Name] == "" {
			continue // people ask it
		}
		_, err = subscriptions.CreateSubscription(ctx, &pubsubpb.Subscription{
			Name: "projects/demo/subscriptions/" + f.Name, Topic: "projects/demo/topics/" + topicOf[f.Name], AckDeadlineSeconds: 600,
			PushConfig:  &pubsubpb.PushConfig{PushEndpoint: p.url},
			RetryPolicy: &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(time.Second), MaximumBackoff: durationpb.New(10 * time.Second)},
		})
		must(t, err)
	}
	if len(topicOf) != len(world.Functions) || len(l.processes) < len(topicOf) {
		t.Fatalf("%d functions are served, and %d react to %d topics", len(l.processes), len(world.Functions), len(topicOf))
	}

	// What learns of the events of the cloud. All of it is there before the first one.
	l.cloud.Catch()
	host := l.cloud.API.Hosts(liveZone, liveSlice)
	group, _, _ := events.WorkerGroup(host[0])
	run := trainingtest.New(trainingtest.Config{
		Project: "demo", Slice: liveSlice, Workload: "demo/" + liveSlice, Clock: l.cloud.Clock(), Bucket: l.cloud.Bucket, Directory: "gs://ckpt/llama",
		Emit: l.cloud.Enter, ReportEvery: time.Second, StepTakes: 100 * time.Millisecond, CheckpointEvery: 20, SaveTakes: 200 * time.Millisecond,
		StartTakes: 500 * time.Millisecond, BootTakes: 500 * time.Millisecond,
	}, l.cloud.API.Incarnation(liveZone, liveSlice), group, len(host))
	l.cloud.Bucket.OnChange(run.Changed)
	l.cloud.API.OnGuests(func(_, name string, worker int) (string, bool) { return guestOf(run, name, worker) })
	training.Store(run)

	// What the project does by itself: the cloud goes on, sinks route entries, and the scheduler ticks.
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 3)
	go func() { ended <- l.cloud.Serve(life, listener) }()
	go func() { ended <- l.route(t, life, entries) }()
	go func() { ended <- l.tick(t, life) }()
	defer tpu.end() // once nothing starts it any more
	defer func() {
		stop()
		for range 3 {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	}()
	tpu.start()

	workload := func(name string) view.Workload {
		w, _, err := l.ledger.Workload(ctx, "demo/"+name)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("ledger: %v", err)
		}
		return w.Shown(time.Now())
	}
	resumes := func(t *testing.T, name string) {
		t.Helper()
		l.until(t, "Pitstop knows "+name+" and a checkpoint of it", func() bool { return workload(name).Training.Step > 0 && l.saved(name) > 0 })
		first, saved := l.cloud.API.Incarnation(liveZone, name), l.saved(name)
		began := time.Now()
		must(t, l.cloud.API.Preempt(liveZone, name))
		l.until(t, "an incident of "+name+" ended", func() bool { return workload(name).Closed != nil })
		w := workload(name)
		if w.Closed.Outcome != view.Resumed || w.Closed.Cause != events.CausePreemption {
			t.Errorf("%s: the incident ended %s, its cause is %s: %s", name, w.Closed.Outcome, w.Closed.Cause, w.Closed.Reason)
		}
		if now := l.cloud.API.Incarnation(liveZone, name); now.Same(first) || w.Training.Step <= saved {
			t.Errorf("%s: training is at step %d; the node was %v and is %v, the checkpoint is of step %d", name, w.Training.Step, first, now, saved)
		}
		t.Logf("%s: from the preemption to the end of the incident %v", name, time.Since(began).Round(time.Second))
	}
	t.Run("simulated crew", func(t *testing.T) {
		resumes(t, liveSlice)
		if on, trains := run.Running(); !trains || !on.Same(l.cloud.API.Incarnation(liveZone, liveSlice)) {
			t.Errorf("the simulated training runs: %v, on %v", trains, on)
		}
	})
	t.Run("pitcrew", func(t *testing.T) {
		if tpu.absent != nil {
			t.Skipf("no machine that starts now can be made here: %v", tpu.absent)
		}
		resumes(t, crewSlice)
		if said := tpu.said(); tpu.fault != nil || tpu.starts != 2 || strings.Count(said, "attempt 1 began") != 1 || strings.Count(said, "attempt 2 began") != 1 {
			t.Errorf("pitcrew was started %d times, %v, and said %s", tpu.starts, tpu.fault, said)
		}
	})
}

// saved is the last step with a complete checkpoint of a slice.
func (l *live) saved(name string) (last int64) {
	directory, _, _ := strings.Cut(name, "-")
	for _, object := range l.cloud.Bucket.List("ckpt", directory+"/") {
		parts := strings.Split(object, "/")
		if step, err := strconv.ParseInt(parts[1], 10, 64); err == nil && parts[len(parts)-1] == "commit_success.txt" {
			last = max(last, step)
		}
	}
	return last
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

// guestOf is what the simulated crew has written into the guest attribute of a worker.
func guestOf(run *trainingtest.Training, name string, worker int) (string, bool) {
	state, ok := run.State()
	if name != run.Slice || worker != 0 || !ok {
		return "", false
	}
	raw, err := json.Marshal(state)
	return string(raw), err == nil
}
