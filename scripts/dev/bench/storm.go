package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"sync/atomic"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/functions/logevent"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/trigger"
)

// What a chain and a storm have to reach.
const (
	chains      = 1000
	chainReach  = 10 * time.Millisecond
	storm       = 5000
	stormZones  = 20
	stormMemory = 256 // MiB
)

// relay hands each message to its function, as Pub/Sub would: the publisher does not wait for the function.
type relay struct {
	queue chan events.Envelope
	left  sync.WaitGroup
}

func newRelay() *relay { return &relay{queue: make(chan events.Envelope, 4*storm)} }

// Publish implements ledger.Publisher.
func (r *relay) Publish(_ context.Context, e events.Envelope) error {
	r.left.Add(1)
	r.queue <- e
	return nil
}

// serve delivers the queue, with so many deliveries at once, until the queue is closed. An answer other than 200 is a fault.
func (r *relay) serve(ctx context.Context, workers int, h func(events.Envelope) http.Handler, fault func(error)) {
	for range workers {
		go func() {
			for e := range r.queue {
				m := world.Message{ID: e.ID, Data: e.Data, Attributes: publish.Attributes(e), Published: time.Now()}
				if to := h(e); to != nil {
					if err := deliver(ctx, to, "relay", m); err != nil {
						fault(err)
					}
				}
				r.left.Done()
			}
		}()
	}
}

// logFunction is the function logevent.
func (g *ground) logFunction() *trigger.Adapter {
	return &trigger.Adapter{
		Name: "HandleLogEvent", Log: g.fleet.Log, Drain: trigger.NewDrain(func() {}),
		Handle: logevent.New(logevent.Deps{Fleet: g.fleet, Projects: []string{project}, Accounts: events.Accounts{Ours: []string{"pitstop@demo.iam.gserviceaccount.com"}}}),
	}
}

// introduce puts a Spot slice there and makes it and its workers known.
func (g *ground) introduce(ctx context.Context, zone string, i int) (name string, err error) {
	name = fmt.Sprintf("llama-%d", i)
	if _, err = g.api.AddNode(cloudtputest.NodeConfig{
		Zone: zone, Name: name, Accelerator: "v5litepod-16", Spot: true, Group: group(i), Labels: map[string]string{events.LabelPolicy: "spot"},
		Metadata: map[string]string{"startup-script": "pitcrew run -- python3 train.py"}, Created: g.clock.Now().Add(-72 * time.Hour),
	}); err != nil {
		return name, err
	}
	s, err := g.fleet.Read(ctx, provider.Ref{Project: project, Zone: zone, Name: name})
	if err != nil {
		return name, err
	}
	w, err := g.fleet.Observe(ctx, s)
	if err != nil {
		return name, err
	}
	_, err = g.fleet.MapGroup(ctx, w, *w.Slice(name), group(i))
	return name, err
}

// benchChain measures from the delivery of an entry to the moment at which the deletion that follows reaches the TPU API, through
// two functions and a message between them. In turn it measures a chain of two handlers that do nothing: the first
// publishes a fixed message, the second makes a call. Messages go from one to the other in this process.
func benchChain(ctx context.Context) ([]figure, error) {
	r := newRelay()
	g, err := newGround(ctx, 1, r)
	if err != nil {
		return nil, err
	}
	defer g.ledger.Close() //nolint:errcheck // it was only used to measure
	defer close(r.queue)
	var called atomic.Int64
	g.calls.called = func(q *http.Request) {
		if q.Method == http.MethodDelete || path.Base(q.URL.Path) == "empty" {
			called.CompareAndSwap(0, time.Now().UnixNano())
		}
	}
	g.acts.called = g.calls.called
	fixed := events.Envelope{ID: "1", Type: "empty", Source: "//bench", Subject: "demo/x", Time: time.Now(), Data: []byte(`{"schema":1}`)}
	handler := func(name string, do func(context.Context) error) *trigger.Adapter {
		return &trigger.Adapter{
			Name: name, Log: g.fleet.Log, Drain: trigger.NewDrain(func() {}), Handle: func(ctx context.Context, _ cloudevents.Event) error { return do(ctx) },
		}
	}
	first := handler("First", func(ctx context.Context) error { return r.Publish(ctx, fixed) })
	second := handler("Second", func(ctx context.Context) error {
		_, err := g.fleet.Read(ctx, provider.Ref{Project: project, Zone: zoneAt(0), Name: "empty"})
		return err
	})
	act := g.recreateFunction(ledger.Limits{Project: 2 * chains, Zone: 2 * chains})
	var faults failures
	r.serve(ctx, 1, func(e events.Envelope) http.Handler {
		switch e.Type {
		case "empty":
			return second
		case events.TypeRecreateRequested:
			return act
		}
		return nil
	}, faults.add)
	for i := range chains {
		name, err := g.introduce(ctx, zoneAt(0), i)
		if err != nil {
			return nil, err
		}
		if err := g.api.Preempt(zoneAt(0), name); err != nil {
			return nil, err
		}
	}
	decide := g.logFunction()
	var chain, base []time.Duration
	for i := range chains {
		for _, m := range []struct {
			h       http.Handler
			samples *[]time.Duration
		}{{first, &base}, {decide, &chain}} {
			called.Store(0)
			rec := httptest.NewRecorder()
			q := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(preemptedIn(zoneAt(0), i, 2)))
			began := time.Now().UnixNano()
			m.h.ServeHTTP(rec, q)
			r.left.Wait()
			if rec.Code != http.StatusOK || called.Load() == 0 {
				return nil, errors.Join(faults.err(), fmt.Errorf("chain %d: status %d, called: %v", i, rec.Code, called.Load() != 0))
			}
			*m.samples = append(*m.samples, time.Duration(called.Load()-began))
		}
	}
	more := percentile(chain, 99) - percentile(base, 99)
	return []figure{{
		what: "evidence delivered -> deletion at the TPU API, p99 more than of an empty chain", reach: "at most 10 ms more", ok: more <= chainReach,
		value: fmt.Sprintf("%.2f ms - %.2f ms = %.2f ms more (p50 %.2f - %.2f)", ms(percentile(chain, 99)), ms(percentile(base, 99)), ms(more), ms(percentile(chain, 50)), ms(percentile(base, 50))),
	}}, faults.err()
}

// failures collects what went wrong at once in many places.
type failures struct {
	mu    sync.Mutex
	first error
	n     int
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.first == nil {
		f.first = err
	}
}

func (f *failures) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		return nil
	}
	return fmt.Errorf("%d failures, the first: %w", f.n, f.first)
}

// benchStorm preempts 5,000 slices within a minute, and delivers two entries about each, many at once. Each slice must get one
// incident and one request. The deletions must be as many as the brake allows in the first hour, and as many again in the next.
func benchStorm(ctx context.Context) ([]figure, error) {
	r := newRelay()
	g, err := newGround(ctx, stormZones, r)
	if err != nil {
		return nil, err
	}
	defer g.ledger.Close() //nolint:errcheck // it was only used to measure
	defer close(r.queue)
	var mu sync.Mutex
	deleted := map[string]int{}
	g.acts.called = func(q *http.Request) {
		if q.Method == http.MethodDelete {
			mu.Lock()
			deleted[path.Base(q.URL.Path)]++
			mu.Unlock()
		}
	}
	for i := range storm {
		name, err := g.introduce(ctx, zoneAt(i%stormZones), i)
		if err == nil {
			err = g.api.Preempt(zoneAt(i%stormZones), name)
		}
		if err != nil {
			return nil, err
		}
	}
	cloud := heapMiB()
	var faults failures
	act := g.recreateFunction(ledger.DefaultLimits)
	r.serve(ctx, clients, func(e events.Envelope) http.Handler {
		if e.Type == events.TypeRecreateRequested {
			return act
		}
		return nil
	}, faults.add)
	decide := g.logFunction()
	next := make(chan int)
	var wg sync.WaitGroup
	began := time.Now()
	for range clients {
		wg.Go(func() {
			for i := range next {
				rec := httptest.NewRecorder()
				body := preemptedIn(zoneAt(i%stormZones), i%storm, i/storm)
				if decide.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))); rec.Code != http.StatusOK {
					faults.add(fmt.Errorf("logevent answered %d", rec.Code))
				}
			}
		})
	}
	for i := range 2 * storm {
		next <- i
	}
	close(next)
	wg.Wait()
	r.left.Wait()
	took := time.Since(began)
	own := heapMiB() - cloud
	open, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	most := func() (n, twice int) {
		mu.Lock()
		defer mu.Unlock()
		for _, times := range deleted {
			n += times
			if times > 1 {
				twice++
			}
		}
		return n, twice
	}
	hour, twice := most()
	g.clock.Advance(ledger.NextHour(g.clock.Now()).Sub(g.clock.Now()) + time.Minute)
	h := g.patrolFunction(r)
	if _, err := g.tick(ctx, h, 0); err != nil {
		return nil, err
	}
	r.left.Wait()
	later, twiceLater := most()
	what := "a storm of 5,000 preemptions, two entries each"
	return []figure{{
		what: what + ", incidents", reach: "5,000, none lost", value: fmt.Sprintf("%d in %v", open, took.Round(time.Millisecond)), ok: open == storm && took < time.Minute,
	}, {
		what: what + ", deletions", reach: fmt.Sprintf("%d in the first hour, %d with the second, none twice", ledger.DefaultLimits.Project, 2*ledger.DefaultLimits.Project),
		value: fmt.Sprintf("%d, with the next hour %d, %d twice", hour, later, twice+twiceLater),
		ok:    hour == ledger.DefaultLimits.Project && later == 2*ledger.DefaultLimits.Project && twice+twiceLater == 0,
	}, {
		what: what + ", growth of the heap with its ledger in memory", reach: "under 256 MiB", ok: own < stormMemory,
		value: fmt.Sprintf("%.0f MiB more", own),
	}}, faults.err()
}

var _ ledger.Publisher = (*relay)(nil)
