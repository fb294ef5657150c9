package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/publish/publishtest"
	"pitstop.internal/shared/trigger"
)

// hops is how many hops are measured on each broker.
const hops = 2000

// hopReach is how much more a hop may take than one that publishes a fixed message, at the 99th percentile.
const hopReach = 5 * time.Millisecond

// stamped notes when the last publication was answered.
type stamped struct {
	ledger.Publisher
	answered atomic.Int64
}

func (s *stamped) Publish(ctx context.Context, e events.Envelope) error {
	err := s.Publisher.Publish(ctx, e)
	s.answered.Store(time.Now().UnixNano())
	return err
}

// embedded publishes on the scenario's broker.
type embedded struct{ broker *world.Broker }

func (e embedded) Publish(_ context.Context, env events.Envelope) error {
	e.broker.Publish(events.TopicRecreate, env.Data, publish.Attributes(env))
	return nil
}

// benchHop measures from the call of a handler to the answer to its publication: a preemption comes in, an incident is
// opened, the API looked at, the deletion requested. In turn it measures a handler that publishes one fixed message.
func benchHop(ctx context.Context) ([]figure, error) {
	var figures []figure
	clock := clock.NewClock(time.Now())
	f, err := hopOn(ctx, "embedded broker", embedded{world.NewBroker(clock)})
	if err != nil {
		return nil, err
	}
	figures = append(figures, f...)
	p, err := emulated(ctx)
	if errors.Is(err, publishtest.ErrMissing) {
		return append(figures, figure{what: "one hop, Pub/Sub emulator", value: "skipped: " + err.Error()}), nil
	}
	if err != nil {
		return figures, err
	}
	defer p.Close() //nolint:errcheck // it was only used to measure
	f, err = hopOn(ctx, "Pub/Sub emulator", p)
	return append(figures, f...), err
}

func hopOn(ctx context.Context, on string, p ledger.Publisher) ([]figure, error) {
	pub := &stamped{Publisher: p}
	w, err := newListener(ctx, memory, pub, func() {})
	if err != nil {
		return nil, err
	}
	defer w.ledger.Close() //nolint:errcheck // it was only used to measure
	for i := range hops {
		name, err := w.slice(ctx, i, "v5litepod-16")
		if err != nil {
			return nil, err
		}
		if err := w.api.Preempt(zone, name); err != nil {
			return nil, err
		}
	}
	fixed := events.Envelope{ID: "1", Type: events.TypeRecreateRequested, Source: "//bench", Subject: "demo/x", Time: time.Now(), Data: []byte(`{"schema":1}`)}
	empty := &trigger.Adapter{
		Name: "Empty", Log: w.function.Log, Drain: trigger.NewDrain(func() {}),
		Handle: func(ctx context.Context, _ cloudevents.Event) error { return pub.Publish(ctx, fixed) },
	}
	var hop, base []time.Duration
	for i := range hops {
		for _, m := range []struct {
			h       http.Handler
			samples *[]time.Duration
		}{{empty, &base}, {w.function, &hop}} {
			took, err := call(ctx, m.h, preempted(i, 2), pub)
			if err != nil {
				return nil, fmt.Errorf("on the %s: %w", on, err)
			}
			*m.samples = append(*m.samples, took)
		}
	}
	more := percentile(hop, 99) - percentile(base, 99)
	return []figure{{
		what: "one hop, " + on + ", p99 more than of an empty handler", ok: more <= hopReach, reach: "at most 5 ms more",
		value: fmt.Sprintf("%.2f ms - %.2f ms = %.2f ms more (p50 %.2f - %.2f)", ms(percentile(hop, 99)), ms(percentile(base, 99)), ms(more), ms(percentile(hop, 50)), ms(percentile(base, 50))),
	}}, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// call delivers one message and returns the time until its publication was answered.
func call(ctx context.Context, h http.Handler, body []byte, pub *stamped) (time.Duration, error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))
	rec := httptest.NewRecorder()
	pub.answered.Store(0)
	began := time.Now()
	h.ServeHTTP(rec, r)
	answered := pub.answered.Load()
	if rec.Code != http.StatusOK || answered == 0 {
		return 0, fmt.Errorf("status %d, published: %v", rec.Code, answered != 0)
	}
	return time.Duration(answered - began.UnixNano()), nil
}

// burstWorkers is the largest slice there is.
const burstWorkers = 1536

// burstReach is how many writes the entries of one slice may take, up to the stored request.
const burstReach = 5

// benchBurst sends the entries of all workers of one slice at once.
func benchBurst(ctx context.Context) ([]figure, error) {
	f, err := burstOn(ctx, "memory", memory)
	if err != nil {
		return nil, err
	}
	figures := []figure{f}
	err = firestore()
	if errors.Is(err, publishtest.ErrMissing) {
		return append(figures, figure{what: "1,536 entries at once, Firestore emulator", value: "skipped: " + err.Error()}), nil
	}
	if err != nil {
		return figures, err
	}
	f, err = burstOn(ctx, "Firestore emulator", ledger.Firestore("bench", ledger.Database))
	return append(figures, f), err
}

func burstOn(ctx context.Context, on string, open ledger.Opener) (figure, error) {
	var writes atomic.Int64
	var requested atomic.Int64
	counting := publisherFunc(func(_ context.Context, e events.Envelope) error {
		if e.Type == events.TypeRecreateRequested {
			requested.CompareAndSwap(0, writes.Load())
		}
		return nil
	})
	w, err := newListener(ctx, open, counting, func() { writes.Add(1) })
	if err != nil {
		return figure{}, err
	}
	defer w.ledger.Close() //nolint:errcheck // it was only used to measure
	name, err := w.slice(ctx, 1, "v5p-"+strconv.Itoa(burstWorkers*8))
	if err != nil {
		return figure{}, err
	}
	if err := w.api.Preempt(zone, name); err != nil {
		return figure{}, err
	}
	writes.Store(0)
	var left atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for worker := range burstWorkers {
		b := preempted(1, worker)
		wg.Go(func() {
			rec := httptest.NewRecorder()
			w.function.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(b)))
			if rec.Code != http.StatusOK {
				left.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	return figure{
		what: "1,536 entries of one slice at once, " + on, reach: "at most 5 writes up to the stored request, none left for redelivery",
		value: fmt.Sprintf("%d writes up to the request, %d in all, %d entries left, in %v", requested.Load(), writes.Load(), left.Load(), took.Round(time.Millisecond)),
		ok:    requested.Load() > 0 && requested.Load() <= burstReach && left.Load() == 0,
	}, nil
}

type publisherFunc func(ctx context.Context, e events.Envelope) error

func (f publisherFunc) Publish(ctx context.Context, e events.Envelope) error { return f(ctx, e) }
