package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"google.golang.org/api/option"

	"pitstop.internal/events"
	checkpointfn "pitstop.internal/functions/checkpoint"
	"pitstop.internal/functions/logevent"
	"pitstop.internal/functions/maintenance"
	"pitstop.internal/functions/notify"
	"pitstop.internal/functions/order"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/functions/recovery"
	"pitstop.internal/functions/recreate"
	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/loopback"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/cloudlog/cloudlogtest"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/trigger"
)

// Functions are the entry points of the pipeline by topic.
var Functions = []struct{ Topic, Name, Entry string }{
	{events.TopicNotices, "maintenance", "HandleMaintenance"},
	{events.TopicLogs, "logevent", "HandleLogEvent"},
	{events.TopicTicks, "patrol", "HandlePatrol"},
	{events.TopicCheckpoint, "checkpoint", "HandleCheckpoint"},
	{events.TopicRecovery, "recovery", "HandleRecovery"},
	{events.TopicRecreate, "recreate", "HandleRecreate"},
	{events.TopicUpdates, "notify", "HandleNotify"},
	{events.TopicOrders, "order", "HandleOrder"},
}

// routes says on which topic an event of ours travels.
var routes = publish.Topics(events.Topics())

// Wiring is which function reacts to which topic, and on which topic which event travels, in the simulated deployment.
func Wiring() (reacts, travels map[string]string) {
	reacts = map[string]string{}
	for _, f := range Functions {
		reacts[f.Topic] = f.Name
	}
	return reacts, maps.Clone(routes)
}

// Options are how a scenario is run.
type Options struct {
	// Policy is the policy file; nil has the presets alone. Allow is what the deployment allows, above all policies; nil takes
	// nothing away.
	Policy []byte
	Allow  *policy.Switches
	// Framework is the address of the functions framework that serves the functions; empty calls them in process.
	Framework string
	// NoOwnAudit loses every audit entry of an operation of ours, Duplicates delivers every message twice.
	NoOwnAudit, Duplicates bool
	// Log takes what the functions log; nil takes it nowhere.
	Log io.Writer
	// Store keeps the ledger; nil is a new one in memory.
	Store *ledgertest.Store
	// Settings says that people look: patrol keeps the deployment's configuration in the ledger, where an operator's verbs read it, ticks
	// every minute, and reads what waits for the functions.
	Settings bool
	// Trail records the actions, for a comparison with another build.
	Trail bool
	// Wire takes the calls of the TPU API through its clients, over HTTP and by gRPC. Without it they take the short way, with the same ends.
	Wire bool
	// Hooks are the first ones in it.
	Hooks Hooks
	// Mute keeps no story, and Unnotified has nobody informed of incidents.
	Mute, Unnotified bool
	// Mingled is that of the simulated API's Config.
	Mingled bool
	// Limits are those of the brake; the zero value has the usual ones.
	Limits ledger.Limits
}

// Ceiling is what the deployment puts over all policies.
func (o Options) Ceiling() policy.Switches {
	if o.Allow == nil {
		return policy.Everything()
	}
	return *o.Allow
}

// World is a scenario under way.
type World struct {
	Scenario
	Opts   Options
	Clock  *clock.Clock
	Broker *Broker
	API    *cloudtputest.API
	// GKE are the clusters, in the order of the scenario.
	GKE    []*Cluster
	Bucket *buckettest.Server
	// Audited is the project's audit log: it holds the entries delivered on the topic, and also those lost on their way.
	Audited *cloudlogtest.Log
	Ledger  *ledger.Ledger
	secrets *ledger.Secrets
	// stores are the stores to close at the end.
	stores []io.Closer
	log    *slog.Logger
	// make builds an instance of the function behind an entry point; idle are those that handle nothing at the moment.
	make map[string]func() http.Handler
	idle map[string][]http.Handler
	// handlings is how many there were so far.
	handlings int
	// tracker keeps the trail; nil where none is asked for.
	tracker *tracker
	// Hooks are what hangs in it, before it is deployed.
	Hooks Hooks
	// Store reads checkpoint directories with nothing going wrong.
	Store checkpoint.Store

	mu    sync.Mutex
	Story *Story
	// Trainings are the runs, by the name of their slice. Of several slices with one name the later ones are here by their workload.
	Trainings map[string]*trainingtest.Training
	runs      []string // their names, in order
	// lines are those of messages under way, by message ID: whom they concern is known when they are handled. places are the lines
	// about each workload that no ended incident has taken yet.
	lines  map[string]int
	places map[string][]int
	// justEnded are the incidents that ended at the present moment.
	justEnded []Result
	// incidents is the incident of each workload that lines belong to, busy the workloads at which something is due.
	incidents map[string]string
	owners    map[string]string // zone/node -> workload
	Busy      map[string]bool
	// Open opens the collections of the ledger.
	Open   ledger.Opener
	closed map[string]int
	// silent are calls whose audit entries were recorded.
	silent map[string]int
	// left counts what the scenario still has to play.
	left int
	// dirty has the next tick look, and struck is how many faults there were at the last one.
	dirty  bool
	struck int
}

// Ours is whom the pipeline acts as.
func Ours(project string) string { return "pitstop@" + project + ".iam.gserviceaccount.com" }

// New is a world in which nothing is there yet.
func New(name string, s Scenario, opts Options) *World {
	if opts.Limits == (ledger.Limits{}) {
		opts.Limits = ledger.DefaultLimits
	}
	if opts.Store == nil {
		opts.Store = ledgertest.NewStore()
	}
	clock := clock.NewClock(s.Start)
	w := &World{
		Scenario: s, Opts: opts, Hooks: opts.Hooks, Clock: clock, Broker: NewBroker(clock),
		Story:     &Story{Name: name, Title: s.Title, About: s.About, Calls: map[string]int{}, Requests: map[string]int{}},
		Trainings: map[string]*trainingtest.Training{}, lines: map[string]int{}, places: map[string][]int{}, incidents: map[string]string{}, owners: map[string]string{},
		Busy: map[string]bool{}, closed: map[string]int{}, silent: map[string]int{}, make: map[string]func() http.Handler{},
		idle: map[string][]http.Handler{}, Open: opts.Store.Open, dirty: true,
	}
	w.Ledger = ledger.New(w.Open)
	if opts.Trail {
		w.tracker = newTracker(w)
	}
	w.log = slog.New(slog.DiscardHandler)
	if opts.Log != nil {
		w.log = slog.New(slog.NewTextHandler(opts.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	w.Broker.Duplicates = opts.Duplicates
	w.Broker.Delivered = w.delivered
	w.API = cloudtputest.New(cloudtputest.Config{
		Project: s.Project, Clock: clock, Seed: 1, Zones: s.Capacity, Principal: Ours(s.Project),
		Timing: cloudtputest.Timing{Maintenance: s.Maintenance()}, Mingled: opts.Mingled,
	})
	for zone, chips := range s.Quota {
		w.API.SetQuota(zone, chips)
	}
	w.Audited = cloudlogtest.New(s.Project, clock.Now)
	for i, c := range s.Clusters {
		w.GKE = append(w.GKE, w.newCluster(c, uint64(i+1)))
	}
	return w
}

// Found deploys the functions and puts the fleet there.
func (w *World) Found(ctx context.Context) error {
	w.Broker.luck = w.Hooks.Luck
	if err := w.deploy(ctx); err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	w.API.Observe(w.observe)
	return nil
}

const maintenanceTakes = 20 * time.Minute

// settle puts the fleet there, with its training.
func (w *World) settle() error {
	var buckets, directories []string
	for _, c := range w.Fleet {
		directories = append(directories, c.Directory)
	}
	for _, c := range w.Clusters {
		for _, j := range c.Jobs {
			directories = append(directories, j.Directory)
		}
	}
	for _, d := range directories {
		if rest, ok := strings.CutPrefix(d, "gs://"); ok {
			b, _, _ := strings.Cut(rest, "/")
			buckets = append(buckets, b)
		}
	}
	w.Bucket = buckettest.New(w.Clock.Now, buckets...)
	for name, region := range w.Buckets {
		w.Bucket.Place(name, buckettest.Location{Name: strings.ToUpper(region)})
	}
	for _, c := range w.Fleet {
		if err := w.place(c); err != nil {
			return err
		}
	}
	w.runs = slices.Sorted(maps.Keys(w.Trainings))
	for _, c := range w.GKE {
		if err := c.settle(); err != nil {
			return err
		}
	}
	w.Bucket.OnChange(w.changed)
	return nil
}

func (w *World) place(c SliceConfig) error {
	if !c.Gone {
		if err := w.provide(w.API, c, w.Start); err != nil {
			return fmt.Errorf("scenario: slice %s: %w", c.Name, err)
		}
	}
	hosts := w.API.Hosts(c.Zone, c.Name)
	group := c.Workers
	if len(hosts) > 0 {
		group, _, _ = events.WorkerGroup(hosts[0])
	}
	t := c.Trainer
	run := c.Name
	if w.Trainings[run] != nil {
		run = c.WorkloadName() // another zone has a slice of this name
	}
	w.Trainings[run] = trainingtest.New(trainingtest.Config{
		Project: w.Project, Slice: c.Name, Workload: w.Project + "/" + c.WorkloadName(), With: w.beside(c), Clock: w.Clock, Bucket: w.Bucket, Directory: c.Directory,
		Emit: w.Logged, Attempt: t.Attempt, Quiet: c.Quiet, NoCrew: c.Crew.Absent, Restarts: c.Crew.Restarts, Backoff: time.Duration(c.Crew.Backoff),
		ReportEvery: time.Duration(c.Crew.ReportEvery), Refuses: c.Crew.Refuses, Silent: c.Crew.Silent,
		Step: t.Step, StepTakes: time.Duration(t.StepTakes), CheckpointEvery: t.CheckpointEvery, SaveTakes: time.Duration(t.SaveTakes),
		StartTakes: time.Duration(t.StartTakes), OnSignal: t.Sigterm, Exited: func() { w.exited(run) }, Torn: t.Torn, Fails: t.Fails, FailsAfter: time.Duration(t.FailsAfter), FailsAnew: t.FailsAnew,
	}, w.API.Incarnation(c.Zone, c.Name), group, max(len(hosts), 1))
	if c.Gone {
		w.Trainings[run].Observe(cloudtputest.Event{Kind: cloudtputest.Gone, Node: c.Name})
	}
	if w.Hooks.Committed != nil && c.Directory != "" {
		w.Hooks.Committed(c.Directory, strconv.FormatInt(w.Trainings[run].Saved(), 10))
	}
	return nil
}

// Training is the run on a slice. A name alone does not say which one: the same may be there in several zones, and then the
// later ones are labelled as workloads of their own. The label stays with a slice that is created elsewhere.
func (w *World) Training(zone, slice string) *trainingtest.Training {
	if label := w.API.Label(zone, slice, events.LabelWorkload); label != "" {
		if t := w.Trainings[label]; t != nil && t.Slice == slice {
			return t
		}
	}
	return w.Trainings[slice]
}

// exited tells the simulated API that the process of a run has exited.
func (w *World) exited(run string) {
	t := w.Trainings[run]
	for _, zone := range w.Zones() {
		if state, _ := w.API.State(zone, t.Slice); state != "" && w.Training(zone, t.Slice) == t {
			w.Must(w.API.Exited(zone, t.Slice))
		}
	}
}

// beside names the other slices of a Multislice.
func (w *World) beside(c SliceConfig) []string {
	var names []string
	for _, f := range w.Fleet {
		if f.Name != c.Name && f.WorkloadName() == c.WorkloadName() {
			names = append(names, f.Name)
		}
	}
	return names
}

// guest is what the crew on a worker has written into its guest attribute.
func (w *World) guest(zone, name string, worker int) (string, bool) {
	t := w.Trainings[name]
	for _, other := range w.Trainings { // the simulated API asks, so it cannot be asked for the label
		if other.Slice == name && other.Life().Zone == zone {
			t = other
		}
	}
	if t == nil || worker != 0 {
		return "", false
	}
	s, ok := t.State()
	if !ok {
		return "", false
	}
	raw, err := json.Marshal(s)
	return string(raw), err == nil
}

// deploy builds the functions over the simulated cloud and subscribes them.
func (w *World) deploy(ctx context.Context) error {
	w.API.OnGuests(w.guest)
	client, err := w.tpuAPI(ctx)
	if err != nil {
		return fmt.Errorf("scenario: %w", err)
	}
	counted := func(p provider.Provider) provider.Provider {
		if w.Hooks.Failed == nil {
			return p
		}
		return counting{p, w.Hooks.Failed}
	}
	clusters, err := w.clusters()
	if err != nil {
		return fmt.Errorf("scenario: %w", err)
	}
	bucket := http.RoundTripper(RoundTripper(func(r *http.Request) (*http.Response, error) { return w.Bucket.Transport().RoundTrip(r) }))
	w.Store = checkpoint.NewBucket(option.WithHTTPClient(&http.Client{Transport: bucket}), option.WithoutAuthentication())
	store := named{checkpoint.Mux{"gs": checkpoint.NewBucket(option.WithHTTPClient(&http.Client{Transport: w.overHTTP("storage", through(w.Hooks.Bucket, bucket))}), option.WithoutAuthentication())}}
	log := cloudlog.New(option.WithHTTPClient(&http.Client{Transport: w.overHTTP("logging", through(w.Hooks.Audit, w.Audited.Transport()))}), option.WithoutAuthentication())
	functionsLedger := w.Ledger
	// Each database is collections of its own in one store.
	database := func(name string) ledger.Opener {
		open := w.Open
		if w.Hooks.Called != nil {
			open = w.overStore(name, open)
		}
		return throughOf(w.Hooks.Ledger, name, open)
	}
	if w.Hooks.Called != nil || w.Hooks.Ledger != nil {
		functionsLedger = ledger.New(database("ledger"))
	}
	w.secrets = ledger.NewSecrets(database("secrets"))
	journal := ledger.NewJournal(database("told"))
	w.stores = append(w.stores, w.Ledger, functionsLedger, w.secrets, journal)
	reaching := func(name string) provider.Provider {
		tpus := throughOf(w.Hooks.Provider, name, counted(client))
		if clusters == nil {
			return tpus
		}
		return provider.Set{provider.CloudTPU: tpus, provider.GKE: throughOf(w.Hooks.Provider, name, counted(clusters))}
	}
	// Patrol, recreate and checkpoint read clusters for everything, as they are deployed.
	cloud := func(name string) provider.Provider {
		if clusters == nil || slices.Contains([]string{"patrol", "recreate", "checkpoint"}, name) {
			return reaching(name)
		}
		return provider.Set{provider.CloudTPU: throughOf(w.Hooks.Provider, name, counted(client))}
	}
	publisher := eventPublisher{
		broker: w.Broker, topics: routes, sent: w.sent, around: w.Hooks.Publication, unnotified: w.Opts.Unnotified, called: w.called,
	}
	policies := policy.NewSource(policyURI(w.Opts.Policy), func(context.Context, string) ([]byte, error) { return w.Opts.Policy, nil }, w.Opts.Ceiling(), w.Clock.Now)
	of := func(name string) *fleet.Fleet {
		f := fleet.New(&ledger.Advancer{
			Ledger: functionsLedger, Policies: throughOf(w.Hooks.Policies, name, ledger.Policies(policies)), Publisher: publisher, Now: w.Clock.Now, Sleep: w.Clock.Sleep,
			Decide: w.Hooks.Decide, Omit: w.Hooks.Reads, Source: "//pitstop/functions/" + name, Cause: trigger.MessageID, Log: w.log,
			Saved: func(_ context.Context, s ledger.Step) { w.saved(name, s) },
		}, cloud(name))
		if name == "patrol" || name == "recreate" {
			f.Secrets = w.secrets
		}
		return f
	}
	us := []string{Ours(w.Project)}
	buckets, limits := through(w.Hooks.Store, Buckets(store)), through(w.Hooks.Limits, w.Opts.Limits)
	handles := map[string]func() trigger.Handle{
		"maintenance": func() trigger.Handle {
			return maintenance.New(maintenance.Deps{Fleet: of("maintenance"), Projects: []string{w.Project}})
		},
		"logevent": func() trigger.Handle {
			return logevent.New(logevent.Deps{Fleet: of("logevent"), Projects: []string{w.Project}, Accounts: events.Accounts{Ours: us}})
		},
		"patrol": func() trigger.Handle {
			d := patrol.Deps{Fleet: of("patrol"), Provider: cloud("patrol"), Audit: log, Publisher: publisher, Project: w.Project, Accounts: events.Accounts{Ours: us}, Sleep: w.Clock.Sleep}
			if w.Hooks.Called != nil {
				d.Canary = canary{w}
			}
			if w.Opts.Settings {
				d.Settings = w.settings()
			}
			if w.Opts.Settings || w.Hooks.Called != nil {
				d.Queues = queues{w}
			}
			return patrol.New(d)
		},
		"checkpoint": func() trigger.Handle {
			return checkpointfn.New(checkpointfn.Deps{Fleet: of("checkpoint"), Provider: cloud("checkpoint"), Store: buckets, Limits: limits})
		},
		"recovery": func() trigger.Handle {
			return recovery.New(recovery.Deps{Fleet: of("recovery"), Provider: reaching("recovery"), Store: buckets})
		},
		"recreate": func() trigger.Handle {
			return recreate.New(recreate.Deps{Fleet: of("recreate"), Provider: cloud("recreate"), Buckets: buckets, Limits: limits})
		},
		"notify": func() trigger.Handle {
			d := notify.Deps{Ledger: functionsLedger, Journal: journal, PerMinute: 20, Now: w.Clock.Now, Log: w.log}
			if w.Hooks.Tell != nil {
				d.Targets = w.Hooks.Tell(w.Clock.Now)
			}
			return notify.New(d)
		},
		"order": func() trigger.Handle { return order.New(of("order").Advancer) },
	}
	for _, f := range Functions {
		w.make[f.Entry] = func() http.Handler {
			return throughOf(w.Hooks.Handler, f.Name, http.Handler(&trigger.Adapter{Name: f.Entry, Handle: handles[f.Name](), Log: w.log, Drain: trigger.NewDrain(func() {})}))
		}
		adapter := w.make[f.Entry]()
		w.idle[f.Entry] = []http.Handler{adapter}
		if w.Opts.Framework != "" {
			if err := trigger.Use(f.Entry, loopback.Only(adapter)); err != nil {
				return fmt.Errorf("scenario: %w", err)
			}
		}
		w.subscribe(f.Name, f.Entry, f.Topic)
	}
	return nil
}

// subscribe has a function get the messages of a topic.
func (w *World) subscribe(name, entry, topic string) {
	sub := Subscription{
		Name: "projects/" + w.Project + "/subscriptions/" + name, Topic: topic, MinBackoff: 10 * time.Second, MaxBackoff: 600 * time.Second,
		MaxAttempts: 20, DeadLetter: topic + "-dead",
		Push: func(ctx context.Context, body []byte) int { return w.post(ctx, entry, body) },
	}
	if w.Hooks.Intercept != nil {
		sub.Intercept = func(m Message) int { return w.Hooks.Intercept(entry, m) }
	}
	if topic == events.TopicTicks {
		sub.MaxAttempts, sub.DeadLetter = 1, "" // the next tick takes up what this one left
	}
	w.Broker.Subscribe(sub)
}

// RoundTripper is a function that makes the calls of an HTTP client.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// settings are the configuration of the simulated deployment.
func (w *World) settings() *ledger.Settings {
	var allowed []string
	for _, s := range policy.All() {
		if w.Opts.Ceiling().Level(s) == policy.Yes {
			allowed = append(allowed, string(s))
		}
	}
	return &ledger.Settings{Policy: policy.Config{URI: policyURI(w.Opts.Policy), Allow: strings.Join(allowed, ",")}, Watched: []string{w.Project}}
}

// policyURI names the policy file of a scenario, if it has one.
func policyURI(file []byte) string {
	if file == nil {
		return ""
	}
	return "file:///policy.yaml"
}

// post delivers one push request.
func (w *World) post(ctx context.Context, entry string, body []byte) int {
	return w.Ask(ctx, http.MethodPost, entry, http.Header{"Content-Type": {"application/json"}}, body)
}

// Ask sends a request to a function, and returns the status of the answer: through the functions framework where one serves, else by the
// same handler in process.
func (w *World) Ask(ctx context.Context, method, entry string, header http.Header, body []byte) int {
	r, err := http.NewRequestWithContext(ctx, method, w.Opts.Framework+"/"+entry, bytes.NewReader(body))
	if err != nil {
		return http.StatusInternalServerError
	}
	r.Header = header
	if w.Opts.Framework == "" {
		return w.handle(entry, r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return http.StatusBadGateway
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if errors.Join(err, resp.Body.Close()) != nil {
		return http.StatusBadGateway
	}
	return resp.StatusCode
}

// handle has an idle instance of a function handle a request, or a new one. An instance that crashes is not seen again.
func (w *World) handle(entry string, r *http.Request) int {
	w.mu.Lock()
	var h http.Handler
	if idle := w.idle[entry]; len(idle) > 0 {
		h, w.idle[entry] = idle[len(idle)-1], idle[:len(idle)-1]
	} else {
		h = w.make[entry]()
	}
	w.handlings++
	number := w.handlings
	w.mu.Unlock()
	if w.Hooks.Called != nil {
		r = r.WithContext(calling(r.Context(), entry))
	}
	inst := &Instance{Number: number, Function: entry, Luck: luckOf(r.Context()), Read: map[Place]SliceRead{}, Began: w.Clock.Now()}
	if w.Broker.luck != nil {
		var ctx context.Context
		ctx, inst.Cancel = context.WithCancel(r.Context())
		defer inst.Cancel()
		r = r.WithContext(context.WithValue(ctx, instanceKey{}, inst))
	}
	code := statusOf(h, http.Header{}, r)
	if inst.Crashed {
		runtime.Goexit()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle[entry] = append(w.idle[entry], h)
	return code
}

// statusOf has a handler answer a request, and returns the status of its answer.
func statusOf(h http.Handler, header http.Header, r *http.Request) int {
	answer := &response{header: header, code: http.StatusOK}
	h.ServeHTTP(answer, r)
	return answer.code
}

// response is one of which only the status counts.
type response struct {
	header http.Header
	code   int
}

func (s *response) Header() http.Header         { return s.header }
func (s *response) Write(b []byte) (int, error) { return len(b), nil }
func (s *response) WriteHeader(code int)        { s.code = code }

// Close closes what the functions and the judge have opened. To close one twice does nothing.
func (w *World) Close() error {
	var faults []error
	for _, s := range w.stores {
		faults = append(faults, s.Close())
	}
	return errors.Join(faults...)
}
