package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/functions/recreate"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/trigger"
)

// The sizes of the measurement of patrol, and its goals.
const (
	patrolSlices   = 10_000
	patrolZones    = 20
	patrolOpen     = 200
	patrolQueued   = 1_000
	patrolNotices  = 40
	patrolTicks    = 16 // a sweep is among them
	patrolReach    = 5 * time.Second
	quietTicks     = 5
	quietReach     = 250 * time.Millisecond
	patrolMemory   = 256 // MiB
	patrolArchived = 100_000
	guestReads     = 60
	pageSize       = 500
)

// counted counts the calls of an API by method and kind of resource.
type counted struct {
	next http.RoundTripper
	mu   sync.Mutex
	by   map[string]int
	// called gets each call.
	called func(r *http.Request)
}

// RoundTrip implements http.RoundTripper.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	what := path.Base(r.URL.Path)
	if _, verb, ok := strings.Cut(what, ":"); ok {
		what = verb
	} else if collection := path.Base(path.Dir(r.URL.Path)); r.Method == http.MethodGet && (collection == "nodes" || collection == "queuedResources") {
		what = "get " + collection
	}
	c.mu.Lock()
	c.by[r.Method+" "+what]++
	c.mu.Unlock()
	if c.called != nil {
		c.called(r)
	}
	return c.next.RoundTrip(r)
}

// take returns the counts since the last time.
func (c *counted) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := c.by
	c.by = map[string]int{}
	return by
}

// ground is a ledger and a simulated cloud on a clock that stands still, as all functions share them.
type ground struct {
	api    *cloudtputest.API
	clock  *cloudtputest.ManualClock
	calls  *counted // of those who decide
	acts   *counted // of recreate
	cloud  *cloudtpu.Client
	actor  *cloudtpu.Client
	ledger *ledger.Ledger
	fleet  *fleet.Fleet
}

func newGround(ctx context.Context, zones int, publisher ledger.Publisher) (*ground, error) {
	g := &ground{clock: cloudtputest.NewManualClock(time.Now().Truncate(time.Hour)), ledger: ledger.New(memory)}
	offered := map[string]int{}
	for i := range zones {
		offered[zoneAt(i)] = cloudtputest.Unlimited
	}
	g.api = cloudtputest.New(cloudtputest.Config{Project: project, Clock: g.clock, Zones: offered, PageSize: pageSize})
	g.calls = &counted{next: g.api.Transport(), by: map[string]int{}}
	g.acts = &counted{next: g.api.Transport(), by: map[string]int{}}
	var err error
	if g.actor, err = cloudtpu.New(ctx, option.WithHTTPClient(&http.Client{Transport: g.acts}), option.WithoutAuthentication()); err != nil {
		return nil, err
	}
	if g.cloud, err = cloudtpu.New(ctx, option.WithHTTPClient(&http.Client{Transport: g.calls}), option.WithoutAuthentication()); err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	g.fleet = &fleet.Fleet{Ledger: g.ledger, Secrets: ledger.NewSecrets(memory), Provider: g.cloud, Now: g.clock.Now, Log: log, Advancer: &ledger.Advancer{
		Ledger: g.ledger, Policies: policy.NewSource("", nil, policy.Everything(), g.clock.Now), Publisher: publisher, Now: g.clock.Now,
		Sleep: ledger.Sleep, Source: "//pitstop/functions/bench", Cause: trigger.MessageID, Log: log,
	}}
	return g, nil
}

func zoneAt(i int) string { return fmt.Sprintf("us-west%d-%c", i/4+1, 'a'+i%4) }

// patrolFunction is the function patrol, with an empty audit log. Its waits end as the clock advances.
func (g *ground) patrolFunction(r *relay) *trigger.Adapter {
	return &trigger.Adapter{
		Name: "HandlePatrol", Log: g.fleet.Log, Drain: trigger.NewDrain(func() {}),
		Handle: patrol.New(patrol.Deps{
			Fleet: g.fleet, Provider: g.cloud, Audit: silent{}, Publisher: r, Project: project,
			Accounts: events.Accounts{Ours: []string{"pitstop@demo.iam.gserviceaccount.com"}}, Sleep: func(_ context.Context, d time.Duration) error {
				r.left.Wait() // what it asked for is done at this time
				g.clock.Advance(d)
				return nil
			},
		}),
	}
}

// silent is an audit log without entries.
type silent struct{}

func (silent) Entries(context.Context, cloudlog.Query) ([][]byte, bool, error) { return nil, true, nil }

// recreateFunction is the function recreate.
func (g *ground) recreateFunction(limits ledger.Limits) *trigger.Adapter {
	f := *g.fleet
	f.Provider = g.actor
	return &trigger.Adapter{
		Name: "HandleRecreate", Log: g.fleet.Log, Drain: trigger.NewDrain(func() {}),
		Handle: recreate.New(recreate.Deps{Fleet: &f, Provider: g.actor, Limits: limits}),
	}
}

// deliver hands a message to a function.
func deliver(ctx context.Context, h http.Handler, subscription string, m world.Message) error {
	rec := httptest.NewRecorder()
	body := world.PushBody("projects/demo/subscriptions/"+subscription, m, 1)
	h.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body)))
	if rec.Code != http.StatusOK {
		return fmt.Errorf("%s answered %d: %s", subscription, rec.Code, strings.TrimSpace(rec.Body.String()))
	}
	return nil
}

// ticked is what one tick took.
type ticked struct {
	work  time.Duration // of the processor
	took  time.Duration
	reads map[string]int
}

func (g *ground) tick(ctx context.Context, h http.Handler, n int) (ticked, error) {
	g.calls.take()
	cpu, began := processorTime(), time.Now()
	err := deliver(ctx, h, "patrol", world.Message{ID: fmt.Sprint("tick", n), Data: []byte("{}"), Published: g.clock.Now()})
	return ticked{processorTime() - cpu, time.Since(began), g.calls.take()}, err
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchPatrol measures ticks over a large fleet with incidents open, and holds their reads against the formula; then the same with
// 100,000 closed incidents in the archive. The simulated cloud runs in this process: its work is in the figures.
func benchPatrol(ctx context.Context) ([]figure, error) {
	quiet, err := quietTick(ctx)
	if err != nil {
		return nil, err
	}
	bare, figures, err := patrolled(ctx, 0)
	figures = append([]figure{quiet}, figures...)
	if err != nil {
		return figures, err
	}
	full, _, err := patrolled(ctx, patrolArchived)
	return append(figures, figure{
		what: "patrol, the same with 100,000 closed incidents in the archive", reach: "no more reads, at most 1.5 times the work",
		value: fmt.Sprintf("%d reads and %.2f s of work a tick; without them %d and %.2f s", full.reads, full.work.Seconds(), bare.reads, bare.work.Seconds()),
		ok:    full.reads <= bare.reads && full.work <= bare.work*3/2,
	}), err
}

// quietTick measures a tick at which nothing has changed since the one before, and all workers are known.
func quietTick(ctx context.Context) (figure, error) {
	r := newRelay()
	defer close(r.queue)
	g, err := newGround(ctx, patrolZones, r)
	if err != nil {
		return figure{}, err
	}
	defer g.ledger.Close() //nolint:errcheck // it was only used to measure
	if _, err := g.populate(); err != nil {
		return figure{}, err
	}
	var faults failures
	r.serve(ctx, 1, func(events.Envelope) http.Handler { return nil }, faults.add)
	h := g.patrolFunction(r)
	var work time.Duration
	for n := range quietTicks + 2 { // the first two learn the fleet
		t, err := g.tick(ctx, h, n)
		if err != nil {
			return figure{}, err
		}
		r.left.Wait()
		switch n {
		case 0:
			if err := g.nameAll(ctx); err != nil {
				return figure{}, err
			}
		case 1:
		default:
			work += t.work / quietTicks
		}
		g.clock.Advance(time.Minute)
	}
	return figure{
		what:  fmt.Sprintf("patrol, %d slices in %d zones, nothing changed", patrolSlices, patrolZones),
		value: fmt.Sprintf("%.2f s of processor time a tick with the simulated API", work.Seconds()), reach: "0.25 s", ok: work <= quietReach,
	}, faults.err()
}

// nameAll learns the workers of all slices. A tick learns those of a few.
func (g *ground) nameAll(ctx context.Context) error {
	ids, err := g.ledger.All(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		w, _, err := g.ledger.Workload(ctx, id)
		if err != nil {
			return err
		}
		for _, s := range w.Slices {
			if s.HostsKnown() {
				continue
			}
			if w, err = g.fleet.MapHosts(ctx, w, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// steadily is what ticks took with incidents open: their reads together, and the mean of their work.
type steadily struct {
	reads int
	work  time.Duration
}

// patrolled runs patrol over a fleet that it does not know, of which slices are lost then: they are deleted and, as the requests
// to create them are held up, stay open.
func patrolled(ctx context.Context, archived int) (s steadily, figures []figure, err error) {
	r := newRelay()
	g, err := newGround(ctx, patrolZones, r)
	if err != nil {
		return s, nil, err
	}
	defer g.ledger.Close() //nolint:errcheck // it was only used to measure
	defer close(r.queue)
	held, err := g.populate()
	if err != nil {
		return s, nil, err
	}
	if err := g.archive(ctx, archived); err != nil {
		return s, nil, err
	}
	before := heapMiB()
	h := g.patrolFunction(r)
	act := g.recreateFunction(ledger.Limits{Project: 2 * patrolOpen, Zone: 2 * patrolOpen})
	var faults failures
	r.serve(ctx, 1, func(e events.Envelope) http.Handler {
		if q, err := events.DecodeRecreateRequested(e.Data); err == nil && e.Type == events.TypeRecreateRequested && q.Action == events.ActionDelete {
			return act
		}
		return nil
	}, faults.add)
	note := func(what string, t ticked) {
		most := mostReads(t.reads, held)
		figures = append(figures, figure{
			what: what + ", work", reach: "under 5 s", ok: t.work < patrolReach,
			value: fmt.Sprintf("%.2f s of processor time with the simulated API; %.2f s of time", t.work.Seconds(), t.took.Seconds()),
		}, figure{
			what: what + ", API reads", reach: "pages + 60 guest attributes + one per queued resource with a notice",
			ok:    total(t.reads) <= most && t.reads["GET get nodes"]+t.reads["GET get queuedResources"] == 0,
			value: fmt.Sprintf("%d, at most %d: %s", total(t.reads), most, told(t.reads)),
		})
	}
	tick := func(n int) (ticked, error) {
		t, err := g.tick(ctx, h, n)
		r.left.Wait() // what it asked for is done between two ticks
		return t, err
	}
	first, err := tick(0)
	if err != nil {
		return s, nil, err
	}
	note(fmt.Sprintf("patrol, %d slices in %d zones, a first tick", patrolSlices, patrolZones), first)
	if err := g.interrupt(patrolOpen); err != nil {
		return s, figures, err
	}
	var most, worst ticked
	var peak float64
	for n := range patrolTicks {
		g.clock.Advance(time.Minute)
		t, err := tick(1 + n)
		if err != nil {
			return s, figures, err
		}
		if t.work > most.work {
			most = t
		}
		if total(t.reads) > total(worst.reads) {
			worst = t
		}
		s.reads += total(t.reads)
		s.work += t.work / patrolTicks
		peak = max(peak, heapMiB())
	}
	open, err := g.open(ctx)
	if err != nil {
		return s, figures, err
	}
	note(fmt.Sprintf("patrol, %d incidents open, the tick with most work of %d", open, patrolTicks), most)
	note("patrol, the tick with most reads, while deletions run and end", worst)
	own := peak - before
	return s, append(figures, figure{
		what: "patrol, heap with its ledger in memory, without the simulated cloud", reach: "under 256 MiB", ok: own < patrolMemory && open == patrolOpen,
		value: fmt.Sprintf("%.0f MiB (the simulated cloud has %.0f)", own, before),
	}), faults.err()
}

// populate makes the fleet and returns how many queued resources hold a node with announced maintenance.
func (g *ground) populate() (held int, err error) {
	for i := range patrolSlices {
		c := cloudtputest.NodeConfig{
			Zone: zoneAt(i % patrolZones), Name: fmt.Sprintf("llama-%d", i), Accelerator: "v5litepod-16", Spot: true, Group: group(i),
			Created: g.clock.Now().Add(-72 * time.Hour), Labels: map[string]string{events.LabelPolicy: "spot"},
			Metadata: map[string]string{"startup-script": "pitcrew run -- python3 train.py"},
		}
		if i < patrolQueued {
			err = g.api.AddQueuedResource(cloudtputest.QueuedConfig{Zone: c.Zone, Name: fmt.Sprintf("order-%d", i), Nodes: []cloudtputest.NodeConfig{c}, Spot: true})
		} else {
			_, err = g.api.AddNode(c)
		}
		if err != nil {
			return held, err
		}
		if i < patrolNotices {
			held++
			n := events.Notice{
				Status: events.NoticePending, WindowStart: g.clock.Now().Add(48 * time.Hour), WindowEnd: g.clock.Now().Add(52 * time.Hour),
			}
			if err := g.api.Announce(c.Zone, c.Name, n); err != nil {
				return held, err
			}
		}
	}
	return held, nil
}

// interrupt has slices preempted, none of those that others are measured on.
func (g *ground) interrupt(n int) error {
	for i := range n {
		i += patrolQueued
		if err := g.api.Preempt(zoneAt(i%patrolZones), fmt.Sprintf("llama-%d", i)); err != nil {
			return err
		}
	}
	return nil
}

// mostReads is how many reads the formula allows a tick: the pages of each zone, the same again for each reading of operations in
// which one had ended, and the readings of single slices.
func mostReads(reads map[string]int, queues int) int {
	each := (patrolSlices/patrolZones + pageSize - 1) / pageSize
	pages := patrolZones*each + patrolZones*((patrolQueued/patrolZones+pageSize-1)/pageSize)
	const locations = 1 // at a sweep
	if reads["GET operations"] > 0 {
		pages *= 2
		queues *= 2
	}
	return locations + pages + reads["GET operations"] + guestReads + queues
}

// open counts the incidents that are.
func (g *ground) open(ctx context.Context) (n int, err error) {
	ids, err := g.ledger.All(ctx)
	for _, id := range ids {
		w, _, failed := g.ledger.Workload(ctx, id)
		if err = errors.Join(err, failed); w.Incident != nil {
			n++
		}
	}
	return n, err
}

// archive puts closed incidents where they are kept.
func (g *ground) archive(ctx context.Context, n int) error {
	in := incident.Incident{
		Cause: events.CausePreemption, Phase: incident.Closed, Outcome: incident.Resumed, Opened: g.clock.Now(), Closed: g.clock.Now(),
		Timeline: []incident.Line{{At: g.clock.Now(), Kind: incident.LineEnded, Text: "resumed, confirmed by step", Phase: incident.Closed}},
	}
	for i := range n {
		in.ID = fmt.Sprintf("llama-%d-20261112-%d", i%patrolSlices, i)
		if err := g.ledger.SaveClosed(ctx, fmt.Sprintf("%s/llama-%d", project, i%patrolSlices), in); err != nil {
			return err
		}
	}
	return nil
}

// heapMiB is the size of the reachable heap.
func heapMiB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

func total(by map[string]int) (n int) {
	for _, c := range by {
		n += c
	}
	return n
}

// told are counts in words.
func told(by map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d %s", by[what], strings.TrimPrefix(what, "GET ")))
	}
	return strings.Join(parts, ", ")
}
