// Package fleettest is the bench on which the functions and package fleet are tested: a ledger in memory, the simulated
// Cloud TPU API and Cloud Storage, and policies that a test may tighten. It records sent messages and calls. One clock,
// which only the test moves, drives all of it.
package fleettest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/cloudlog/cloudlogtest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

// The places of a bench, and its actors.
const (
	Project   = "demo"
	Zone      = "us-west4-a"
	OtherZone = "us-west4-b"
	Bucket    = "ckpt"
	Directory = "gs://" + Bucket + "/run"
	Us        = "pitstop@demo.iam.gserviceaccount.com"
	Owner     = "ada@example.com"
	// Source is the function named as sender by the bench's fleet, Cause the message that it acts on.
	Source = "//pitstop/functions/test"
	Cause  = "m1"
)

// Start is when a bench begins.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Bench holds the dependencies of a function. A test may change its parts at any time.
type Bench struct {
	Clock *cloudtputest.ManualClock
	API   *cloudtputest.API
	// Log is the project's log. It holds only entries that a test writes.
	Log      *cloudlogtest.Log
	AuditLog *cloudlog.Log
	Cloud    provider.Provider
	Storage  *buckettest.Server
	Store    checkpoint.Store
	Buckets  checkpoint.Locator
	Policies *Policies
	Sender   *Sender
	Ledger   *ledger.Ledger
	Secrets  *ledger.Secrets
	Fleet    *fleet.Fleet

	T testing.TB

	open ledger.Opener

	mu      sync.Mutex
	calls   []string
	audit   []cloudtputest.Event
	outside []string
	// logged holds the fleet's own log lines.
	logged bytes.Buffer
}

// New returns an empty bench.
func New(t testing.TB) *Bench {
	t.Helper()
	b := &Bench{
		T: t, Clock: cloudtputest.NewManualClock(Start), Sender: &Sender{}, Policies: &Policies{Ceiling: policy.Everything()},
	}
	b.API = cloudtputest.New(cloudtputest.Config{
		Project: Project, Principal: Us, Clock: b.Clock, Seed: 1,
		Zones: map[string]int{Zone: cloudtputest.Unlimited, OtherZone: cloudtputest.Unlimited},
	})
	b.API.Observe(b.observe)
	b.Log = cloudlogtest.New(Project, b.Clock.Now)
	b.AuditLog = cloudlog.New(option.WithHTTPClient(&http.Client{Transport: b.Log.Transport()}), option.WithoutAuthentication())
	b.Storage = buckettest.New(b.Clock.Now, Bucket)
	bucket := checkpoint.NewBucket(b.client(b.Storage.Transport()), option.WithoutAuthentication())
	b.Store, b.Buckets = bucket, bucket
	b.Cloud = b.provider(cloudtpu.Config{})
	b.open = ledgertest.NewStrictStore().Open
	b.Ledger, b.Secrets = ledger.New(b.open), ledger.NewSecrets(b.open)
	log := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &b.logged), nil))
	b.Fleet = fleet.New(&ledger.Advancer{
		Ledger: b.Ledger, Policies: b.Policies, Publisher: b.Sender, Now: b.Clock.Now, Sleep: b.Sleep, Source: Source,
		Cause: func(context.Context) string { return Cause }, Log: log,
	}, b.Cloud)
	b.Fleet.Secrets = b.Secrets
	return b
}

// Legacy turns on the search for legacy nodes in zones.
func (b *Bench) Legacy(zones ...string) {
	b.Cloud = b.provider(cloudtpu.Config{LegacyZones: zones})
	b.Fleet.Provider = b.Cloud
}

func (b *Bench) provider(c cloudtpu.Config) provider.Provider {
	conn, err := b.API.Connect(b.T.Context(), func(_ context.Context, r cloudtputest.Request, next func() error) error {
		b.made(r.Method + " " + r.Path + "?" + r.Query)
		return next()
	})
	b.Must(err)
	p, err := c.OpenWith(b.T.Context(), cloudtpu.Clients{
		Present: []option.ClientOption{b.client(b.API.Transport()), option.WithoutAuthentication()}, Former: []option.ClientOption{option.WithGRPCConn(conn)},
	})
	b.Must(err)
	return p
}

// client calls through a transport and records the calls.
func (b *Bench) client(through http.RoundTripper) option.ClientOption {
	return option.WithHTTPClient(&http.Client{Transport: recorded{through, b}})
}

// Must ends the test on an error.
func (b *Bench) Must(err error) {
	b.T.Helper()
	if err != nil {
		b.T.Fatal(err)
	}
}

// Want fails the test where both differ.
func (b *Bench) Want(got, want any) {
	b.T.Helper()
	if d := cmp.Diff(want, got); d != "" {
		b.T.Errorf("(-want +got):\n%s", d)
	}
}

// Sleep advances the clock by the time that a caller wants to wait.
func (b *Bench) Sleep(_ context.Context, d time.Duration) error {
	b.Clock.Advance(d)
	return nil
}

// observe records our calls of the API, and the API's audit log of all calls.
func (b *Bench) observe(e cloudtputest.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cloudtputest.AuditEntry(e) != nil {
		b.audit = append(b.audit, e)
	}
	if e.Kind != cloudtputest.Called || e.Principal != Us {
		return
	}
	call := e.Method
	if e.Zone != "" {
		call += " " + strings.TrimSuffix(e.Zone+"/"+e.QueuedResource+e.Node, "/")
	}
	if e.RequestID != "" {
		call += " as " + e.RequestID
	}
	b.calls = append(b.calls, call)
}

// Calls returns the calls of the API since the last time: method, zone and name, and the request ID if one was sent.
func (b *Bench) Calls() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.calls
	b.calls = nil
	return calls
}

// Count returns how many of some calls are of a method.
func Count(calls []string, method string) int {
	n := 0
	for _, c := range calls {
		if m, _, _ := strings.Cut(c, " "); m == method {
			n++
		}
	}
	return n
}

// Audit returns the entries that the audit log has of a method, in order: two for each operation that has ended.
func (b *Bench) Audit(method string) [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	var entries [][]byte
	for _, e := range b.audit {
		if e.Method == method {
			entries = append(entries, cloudtputest.AuditEntry(e))
		}
	}
	return entries
}

// Slice creates a node, under the policy spot and with a checkpoint directory unless its configuration says otherwise. It
// introduces the node and returns its workload.
func (b *Bench) Slice(c cloudtputest.NodeConfig) incident.Workload {
	b.T.Helper()
	if c.Zone == "" {
		c.Zone = Zone
	}
	if c.Name == "" {
		c.Name = "llama"
	}
	if c.Labels == nil {
		c.Labels = map[string]string{events.LabelPolicy: "spot"}
	}
	if c.Metadata == nil {
		c.Metadata = map[string]string{events.MetadataCheckpointDir: Directory, "startup-script": "export TOKEN=secret"}
	}
	if c.Created.IsZero() {
		c.Created = b.Clock.Now().Add(-72 * time.Hour)
	}
	_, err := b.API.AddNode(c)
	b.Must(err)
	return b.Look(c.Zone, c.Name)
}

// Look reads and introduces a slice, as patrol would, and returns its workload. The calls for that are not recorded.
func (b *Bench) Look(zone, name string) incident.Workload {
	b.T.Helper()
	calls := b.Calls()
	s, err := b.Fleet.Read(b.T.Context(), provider.Ref{Project: Project, Zone: zone, Name: name})
	b.Must(err)
	w, err := b.Fleet.Observe(b.T.Context(), s)
	b.Must(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = calls
	return w
}

// Logged returns the fleet's own log lines, as slog's text.
func (b *Bench) Logged() string { return b.logged.String() }

// Report gives a line of worker 0's crew to the workload of a slice.
func (b *Bench) Report(w incident.Workload, slice string, r events.CrewReport) incident.Workload {
	b.T.Helper()
	w, err := b.Fleet.Advancer.Advance(b.T.Context(), w.ID, evidence.Reported{
		Origin: evidence.Origin{ID: "crew", Time: b.Clock.Now(), Rank: events.RankUser}, Slice: slice, Report: r,
	})
	b.Must(err)
	return w
}

// Confirm gives the guest attribute of a slice's crew to its workload: the crew's verdict that it has given up, or that the training
// is finished.
func (b *Bench) Confirm(w incident.Workload, slice string, attempt int, finished bool) incident.Workload {
	b.T.Helper()
	s := w.Slice(slice)
	return b.Give(w, evidence.Beat{
		Origin: evidence.Origin{ID: "crew", Time: b.Clock.Now(), Rank: events.RankUser}, Slice: slice, Incarnation: s.Incarnation, Seen: b.Clock.Now(),
		Attempt: attempt, Verdict: &events.CrewVerdict{
			Schema: events.Schema, Attempt: attempt, Finished: finished, Ended: b.Clock.Now(), Reason: "exit code 1",
			Life: events.Admission{Slice: slice, Incarnation: events.Incarnation{Zone: s.Zone}, Workers: s.Hosts},
		},
	})
}

// Progress is a line of a crew whose training has reached a step and saved it.
func Progress(step int64) events.CrewReport {
	return events.CrewReport{Schema: events.Schema, Report: events.ReportProgress, Attempt: 1, Step: step, CheckpointStep: step}
}

// GoesOn has recovery's handle carry out the only request that was sent, and the training come further in the attempt that it begins.
func (b *Bench) GoesOn(recovery trigger.Handle, id, slice string) {
	b.T.Helper()
	r, sent := One(b.T, b, events.DecodeRecoveryRequested)
	b.Want(b.Deliver(recovery, Event(sent)), Handled)
	b.Clock.Advance(time.Minute)
	line := Progress(2000)
	line.Attempt = r.TrainingAttempt
	b.Report(b.Workload(id), slice, line)
}

// Verify has a slice saved before maintenance, which is called off then: Pitstop has found a checkpoint of so many bytes there.
func (b *Bench) Verify(id, slice, uri string, bytes int64) {
	b.T.Helper()
	now := b.Clock.Now
	n := events.Notice{Status: events.NoticePending, WindowStart: now().Add(15 * time.Minute), WindowEnd: now().Add(4 * time.Hour)}
	notice := func() {
		w := b.Workload(id)
		b.Give(w, evidence.Noticed{
			Origin: evidence.Origin{Time: now(), Rank: events.RankReading}, Slice: slice, Incarnation: w.Slice(slice).Incarnation, Notice: n, InAPI: true,
		})
	}
	tick := func() {
		b.Clock.Advance(time.Minute)
		b.Give(b.Workload(id), evidence.Ticked{})
	}
	begun := func() events.CheckpointRequested {
		tick()
		r, _ := One(b.T, b, events.DecodeCheckpointRequested)
		_, err := b.Fleet.Advancer.Begin(b.T.Context(), r.Request, "request-id")
		b.Must(err)
		return r
	}
	notice()
	save := begun()
	b.Give(b.Workload(id), evidence.Answered{Origin: evidence.Origin{Time: now()}, Request: save.Request})
	b.Report(b.Workload(id), slice, events.CrewReport{Schema: events.Schema, Report: events.ReportSaved, SaveID: save.SaveID, Attempt: 1, CheckpointStep: 1200})
	b.Give(b.Workload(id), evidence.Checked{
		Origin: evidence.Origin{Time: now(), Rank: events.RankReading}, Request: begun().Request, Found: true, Step: 1200, At: now(), URI: uri, Bytes: bytes,
	})
	n.Status = events.NoticeGone
	notice()
	tick()
	b.Sender.Sent()
}

// Give gives any evidence to a workload.
func (b *Bench) Give(w incident.Workload, e evidence.Evidence) incident.Workload {
	b.T.Helper()
	w, err := b.Fleet.Advancer.Advance(b.T.Context(), w.ID, e)
	b.Must(err)
	return w
}

// Workload reads the document of a workload.
func (b *Bench) Workload(id string) incident.Workload {
	b.T.Helper()
	w, _, err := b.Ledger.Workload(b.T.Context(), id)
	b.Must(err)
	return w
}

// Shown is what is shown of a workload now.
func (b *Bench) Shown(id string) view.Workload {
	b.T.Helper()
	return b.Workload(id).Shown(b.Clock.Now())
}

// Workloads lists the workloads of the ledger.
func (b *Bench) Workloads() []string {
	b.T.Helper()
	ids, err := b.Ledger.All(b.T.Context())
	b.Must(err)
	slices.Sort(ids)
	return ids
}

// Parked are the entries that wait in a zone at a time.
func (b *Bench) Parked(zone string, at time.Time) []ledger.ParkedEntry {
	b.T.Helper()
	zones, err := b.Ledger.ParkedZones(b.T.Context(), Project, at)
	b.Must(err)
	for _, z := range zones {
		if z.Zone == zone {
			return z.Waiting
		}
	}
	return nil
}

// Tapped puts a tap between the fleet and both of its databases, with nothing remembered from before.
func (b *Bench) Tapped() *ledgertest.Tap {
	tap := &ledgertest.Tap{}
	open := tap.On(b.open)
	b.Ledger, b.Secrets = ledger.New(open), ledger.NewSecrets(open)
	b.Mend()
	return tap
}

// Change changes the document of a workload outside the decision, as the operator's command may.
func (b *Bench) Change(id string, change func(w *incident.Workload)) {
	b.T.Helper()
	w, rev, err := b.Ledger.Workload(b.T.Context(), id)
	b.Must(err)
	change(&w)
	_, err = b.Ledger.Save(b.T.Context(), w, rev)
	b.Must(err)
}

// Newer marks the document of a workload as written by a newer release.
func (b *Bench) Newer(id string) {
	b.T.Helper()
	c, err := b.open(b.T.Context(), ledger.Workloads)
	b.Must(err)
	b.Must(c.Update(b.T.Context(), &ledger.Record{ID: url.PathEscape(id), Schema: incident.Schema + 1}))
}

// Slots returns how many destructive calls the brake counts in this hour in a zone.
func (b *Bench) Slots(zone string) int {
	b.T.Helper()
	_, n, err := b.Ledger.Slots(b.T.Context(), Project, zone, b.Clock.Now())
	b.Must(err)
	return n
}

// Break makes every call of these collections of the ledger and of the second database fail, until Mend.
func (b *Bench) Break(collections ...string) {
	open := func(ctx context.Context, name string) (ledger.Collection, error) {
		if slices.Contains(collections, name) {
			return nil, errors.New("the database is away")
		}
		return b.open(ctx, name)
	}
	b.Fleet.Ledger, b.Fleet.Secrets = ledger.New(open), ledger.NewSecrets(open)
	b.Fleet.Advancer.Ledger = b.Fleet.Ledger
}

// Mend ends what Break began.
func (b *Bench) Mend() {
	b.Fleet.Ledger, b.Fleet.Advancer.Ledger, b.Fleet.Secrets = b.Ledger, b.Ledger, b.Secrets
}

// Document is a document as stored in its collection.
func (b *Bench) Document(collection, key string) ledger.Record {
	b.T.Helper()
	c, err := b.open(b.T.Context(), collection)
	b.Must(err)
	r, err := c.Get(b.T.Context(), key)
	b.Must(err)
	return r
}

// Begun reports whether the intent of a call is stored.
func Begun(w incident.Workload) bool {
	return w.HasOpenIncident() && slices.ContainsFunc(w.Effects, func(x incident.Effect) bool { return !x.Begun.IsZero() })
}

// CrashAfter makes the function die right after the first write for which is returns true.
func (b *Bench) CrashAfter(is func(w incident.Workload) bool) {
	b.after(is, func() { panic(errCrash) })
}

// SlowAfter makes the function stall for a while right after that write.
func (b *Bench) SlowAfter(is func(w incident.Workload) bool, took time.Duration) {
	b.after(is, func() { b.Clock.Advance(took) })
}

func (b *Bench) after(is func(w incident.Workload) bool, what func()) {
	b.Fleet.Advancer.Saved = func(_ context.Context, s ledger.Step) {
		if is(s.After) {
			b.Fleet.Advancer.Saved = nil
			what()
		}
	}
}

var errCrash = errors.New("the instance died")

// Deliver hands a message to a function and returns its outcome; see Outcome.
func (b *Bench) Deliver(h trigger.Handle, e cloudevents.Event) (outcome string) {
	b.T.Helper()
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, errCrash) {
				panic(p)
			}
			outcome = Redelivered
		}
	}()
	err := h(b.T.Context(), e)
	if err != nil {
		b.T.Log(err)
	}
	return Outcome(err)
}

// The outcomes of a message. All but the last two acknowledge it.
const (
	Handled     = "handled"
	Ignored     = "ignored"
	Rejected    = "rejected"
	Later       = "left for later"
	Redelivered = "left for redelivery"
)

// Outcome says what an error of a handler means for its message.
func Outcome(err error) string {
	switch {
	case err == nil:
		return Handled
	case fault.IsIgnored(err):
		return Ignored
	case fault.IsPermanent(err):
		return Rejected
	case fault.IsBusy(err):
		return Later
	}
	return Redelivered
}

// Message is a message of a log sink or of the scheduler.
func Message(data []byte, published time.Time) cloudevents.Event {
	return event(trigger.TypeMessage, "m1", data, published)
}

// Event is a message with one of Pitstop's events.
func Event(e events.Envelope) cloudevents.Event { return event(e.Type, e.ID, e.Data, e.Time) }

func event(eventType, id string, data []byte, at time.Time) cloudevents.Event {
	ce := cloudevents.NewEvent()
	ce.SetType(eventType)
	ce.SetID(id)
	ce.SetSource("//test")
	ce.SetTime(at)
	if err := ce.SetData(cloudevents.ApplicationJSON, data); err != nil {
		panic(err)
	}
	return ce
}

// Request wraps a request as the ledger would send it.
func Request(e events.Event) cloudevents.Event {
	data, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return event(e.EventType(), e.EventID(), data, Start)
}

// SystemEvent is an entry of the system event log of Compute Engine, or of the TPU API, about a worker or a node:
// zones/Z/instances/I or locations/Z/nodes/N.
func SystemEvent(method, resource string, at time.Time, metadata map[string]any) []byte {
	data, err := json.Marshal(map[string]any{
		"insertId": events.ID(method, resource, at.String())[:16],
		"logName":  "projects/" + Project + "/logs/cloudaudit.googleapis.com%2Fsystem_event", "timestamp": at.Format(time.RFC3339Nano),
		"resource": map[string]any{"type": "gce_instance", "labels": map[string]any{"project_id": Project}},
		"protoPayload": map[string]any{
			"methodName": method, "resourceName": "projects/" + Project + "/" + resource,
			"authenticationInfo": map[string]any{"principalEmail": "system@google.com"}, "metadata": metadata,
		},
	})
	if err != nil {
		panic(err)
	}
	return data
}

// Policies resolves labels. A test may give it a file, lower its ceiling, or make it unreadable.
type Policies struct {
	File       *policy.File
	Ceiling    policy.Switches
	Unreadable string
}

// For implements ledger.Policies.
func (p *Policies) For(_ context.Context, label string) policy.Policy {
	if p.Unreadable != "" {
		return policy.Policy{Name: label, Unreadable: p.Unreadable}
	}
	return p.File.For(label, p.Ceiling)
}

// Sender keeps the sent events. With a fault it sends none.
type Sender struct {
	mu    sync.Mutex
	fault error
	sent  []events.Envelope
}

// Fail makes every sending fail, until it is called with nil.
func (s *Sender) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

// Publish implements ledger.Publisher.
func (s *Sender) Publish(_ context.Context, e events.Envelope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		return s.fault
	}
	s.sent = append(s.sent, e)
	return nil
}

// Sent returns the events sent since the last time.
func (s *Sender) Sent() []events.Envelope {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = nil
	return sent
}

// Types are the types of sent events.
func Types(sent []events.Envelope) []string {
	var types []string
	for _, e := range sent {
		types = append(types, e.Type)
	}
	return types
}

// One is the only event that was sent since the last time, decoded.
func One[E events.Event](t testing.TB, b *Bench, decode func([]byte) (E, error)) (E, events.Envelope) {
	t.Helper()
	sent := b.Sender.Sent()
	if len(sent) != 1 {
		t.Fatalf("%d events were sent, want one: %v", len(sent), Types(sent))
	}
	return decoded(t, sent[0], decode), sent[0]
}

// All are the events that were sent since the last time, all of one type, decoded.
func All[E events.Event](t testing.TB, b *Bench, decode func([]byte) (E, error)) (all []E) {
	t.Helper()
	for _, e := range b.Sender.Sent() {
		all = append(all, decoded(t, e, decode))
	}
	return all
}

func decoded[E events.Event](t testing.TB, sent events.Envelope, decode func([]byte) (E, error)) E {
	t.Helper()
	e, err := decode(sent.Data)
	if err != nil {
		t.Fatalf("%s: %v", sent.Type, err)
	}
	return e
}

// Label names a policy.
func Label(name string) map[string]string { return map[string]string{events.LabelPolicy: name} }
