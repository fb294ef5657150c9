package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/functions/notify"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/publish/publishtest"
	"pitstop.internal/shared/trigger"
)

// The sizes of the measurement of notifications, and its goals.
const (
	notified       = 1000
	notifyReach    = 20 * time.Millisecond
	stormIncidents = 2500
	stormPerMinute = 20
)

// hook is a webhook on loopback that notes when a message has come.
type hook struct {
	*httptest.Server
	came atomic.Int64
	told func(body []byte)
}

func newHook() *hook {
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h.came.Store(time.Now().UnixNano())
		if h.told != nil && err == nil {
			h.told(body)
		}
	}))
	return h
}

// notifyFunction is the function notify, which tells a webhook.
func notifyFunction(l *ledger.Ledger, j *ledger.Journal, address string, perMinute int, now func() time.Time) (*trigger.Adapter, error) {
	target, err := notify.NewWebhook(address, "a secret", now)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	return &trigger.Adapter{
		Name: "HandleNotify", Log: log, Drain: trigger.NewDrain(func() {}),
		Handle: notify.New(notify.Deps{Ledger: l, Journal: j, Targets: []notify.Target{target}, PerMinute: perMinute, Now: now, Log: log}),
	}, nil
}

// courseOf are the updates of one incident, in order.
func courseOf(i int, at time.Time) (updates []events.IncidentUpdated) {
	for n, phase := range []string{"deleting", "creating", "resuming", "closed"} {
		u := events.IncidentUpdated{
			Schema: events.Schema, Workload: fmt.Sprintf("%s/llama-%d", project, i), Incident: fmt.Sprintf("llama-%d-20261112-1", i), Number: 3*n + 2, At: at, Opened: at,
			Cause: events.CausePreemption, Policy: "spot", Chips: 16, Phase: phase, Happened: []string{"worker 2 was preempted"}, Down: at,
			Slices: []events.Affected{{Name: fmt.Sprintf("llama-%d", i), Zone: zone, Accelerator: "v5litepod-16", Spot: true}},
			Doing:  "recreate: delete it first", Why: "Spot, loss proven, checkpoint 48,190 verified 6 m 2 s ago",
		}
		if phase == "closed" {
			u.Outcome, u.ConfirmedBy = "resumed", "step"
		}
		updates = append(updates, u)
	}
	return updates
}

// updateBody is the push body of an update.
func updateBody(u events.IncidentUpdated) ([]byte, error) {
	env, err := events.Wrap(u, "//pitstop/functions/bench", "", u.Incident, u.At)
	if err != nil {
		return nil, err
	}
	m := world.Message{ID: env.ID, Data: env.Data, Attributes: publish.Attributes(env), Published: u.At}
	return world.PushBody("projects/demo/subscriptions/notify", m, 1), nil
}

func status(ctx context.Context, h http.Handler, body []byte) int {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body)))
	return rec.Code
}

// benchNotify measures from the delivery of an update to the arrival of its message at a webhook, and in turn a handler that posts
// one fixed message there; then a storm of updates.
func benchNotify(ctx context.Context) ([]figure, error) {
	f, err := notifyOn(ctx, "ledger in memory", memory)
	if err != nil {
		return nil, err
	}
	figures := []figure{f}
	switch err := firestore(); {
	case errors.Is(err, publishtest.ErrMissing):
		figures = append(figures, figure{what: "update to webhook, Firestore emulator", value: "skipped: " + err.Error()})
	case err != nil:
		return figures, err
	default:
		if f, err = notifyOn(ctx, "Firestore emulator", ledger.Firestore("bench", ledger.Database)); err != nil {
			return figures, err
		}
		figures = append(figures, f)
	}
	storm, err := notifyStorm(ctx)
	return append(figures, storm...), err
}

func notifyOn(ctx context.Context, on string, open ledger.Opener) (figure, error) {
	h := newHook()
	defer h.Close()
	l, j := ledger.New(open), ledger.NewJournal(open)
	defer l.Close() //nolint:errcheck // it was only used to measure
	defer j.Close() //nolint:errcheck // the same
	tells, err := notifyFunction(l, j, h.URL, 1<<30, time.Now)
	if err != nil {
		return figure{}, err
	}
	client := &http.Client{}
	fixed := []byte(`{"schema":1}`)
	empty := &trigger.Adapter{
		Name: "Empty", Log: slog.New(slog.DiscardHandler), Drain: trigger.NewDrain(func() {}),
		Handle: func(ctx context.Context, _ cloudevents.Event) error {
			if post(ctx, client, h.URL, fixed) != http.StatusOK {
				return errors.New("it was not taken")
			}
			return nil
		},
	}
	began := time.Now()
	var took, base, alone []time.Duration
	for i := range notified {
		u := courseOf(i, began)[0]
		u.Incident = fmt.Sprintf("%s-%d", u.Incident, began.UnixNano()) // the emulator keeps what was told before
		body, err := updateBody(u)
		if err != nil {
			return figure{}, err
		}
		for _, m := range []struct {
			h       http.Handler
			samples *[]time.Duration
		}{{empty, &base}, {tells, &took}} {
			h.came.Store(0)
			at := time.Now().UnixNano()
			code, came := status(ctx, m.h, body), h.came.Load()
			if code != http.StatusOK || came == 0 {
				return figure{}, fmt.Errorf("status %d, told: %v", code, came != 0)
			}
			*m.samples = append(*m.samples, time.Duration(came-at))
		}
		at := time.Now()
		if err := claimed(ctx, j, u, at); err != nil {
			return figure{}, err
		}
		alone = append(alone, time.Since(at))
	}
	more := percentile(took, 99) - percentile(base, 99)
	return figure{
		what: "update to webhook, " + on + ", p99 more than of an empty handler", reach: "at most 20 ms more", ok: more <= notifyReach,
		value: fmt.Sprintf("%.2f ms - %.2f ms = %.2f ms more (p50 %.2f - %.2f); the journal's read and write alone %.2f (p50 %.2f)",
			ms(percentile(took, 99)), ms(percentile(base, 99)), ms(more), ms(percentile(took, 50)), ms(percentile(base, 50)), ms(percentile(alone, 99)), ms(percentile(alone, 50))),
	}, nil
}

// claimed does the work with the journal before a notification: it reads which steps were sent, and claims the next one.
func claimed(ctx context.Context, j *ledger.Journal, u events.IncidentUpdated, now time.Time) error {
	record, rev, err := j.Told(ctx, "bench", u.Workload, u.Incident)
	if err != nil {
		return err
	}
	record.Sending = &ledger.Sending{Step: u.Step(), Number: u.Number, At: now}
	_, err = j.Save(ctx, "bench", u.Workload, u.Incident, record, rev, now)
	return err
}

// notifyStorm has 10,000 updates of 2,500 incidents delivered at once, in any order and by many deliveries, and again every ten
// seconds until each is acknowledged; the clock goes on by itself.
func notifyStorm(ctx context.Context) ([]figure, error) {
	h := newHook()
	defer h.Close()
	l, j := ledger.New(memory), ledger.NewJournal(memory)
	defer l.Close() //nolint:errcheck // it was only used to measure
	defer j.Close() //nolint:errcheck // the same
	clock := cloudtputest.NewManualClock(time.Now())
	tells, err := notifyFunction(l, j, h.URL, stormPerMinute, clock.Now)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	told, ends := map[string]int{}, map[string]bool{}
	var times []time.Time
	var faults failures
	h.told = func(body []byte) {
		var m struct {
			Updates []struct {
				ID, Step string
				Incident struct{ Workload string }
			}
		}
		if err := json.Unmarshal(body, &m); err != nil {
			faults.add(err)
		}
		mu.Lock()
		defer mu.Unlock()
		times = append(times, clock.Now())
		for _, u := range m.Updates {
			told[u.ID]++
			if u.Step == "resumed" {
				ends[u.Incident.Workload] = true
			}
		}
	}
	var queue [][]byte
	for i := range stormIncidents {
		for _, u := range courseOf(i, clock.Now()) {
			body, err := updateBody(u)
			if err != nil {
				return nil, err
			}
			queue = append(queue, body)
		}
	}
	updates := len(queue)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] }) //nolint:gosec // the same each time
	began, start, deliveries := time.Now(), clock.Now(), 0
	for len(queue) > 0 {
		next := make(chan []byte)
		var left [][]byte
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				for body := range next {
					if status(ctx, tells, body) != http.StatusOK {
						mu.Lock()
						left = append(left, body)
						mu.Unlock()
					}
				}
			})
		}
		for _, body := range queue {
			next <- body
		}
		close(next)
		wg.Wait()
		deliveries += len(queue)
		queue = left
		clock.Advance(10 * time.Second)
	}
	took := time.Since(began)
	twice, most := 0, 0
	for _, n := range told {
		if n > 1 {
			twice++
		}
	}
	for i := range times {
		n := 0
		for _, at := range times[i:] {
			if at.Sub(times[i]) < time.Minute {
				n++
			}
		}
		most = max(most, n)
	}
	what := fmt.Sprintf("a storm of %d updates", updates)
	return []figure{{
		what: what + ", notifications", reach: "each step at most once, each incident to its end", ok: twice == 0 && len(ends) == stormIncidents,
		value: fmt.Sprintf("%d twice, %d of %d ends, in %d messages", twice, len(ends), stormIncidents, len(times)),
	}, {
		what: what + ", messages in any minute", reach: fmt.Sprintf("at most %d", stormPerMinute), ok: most <= stormPerMinute,
		value: fmt.Sprintf("%d, the last after %v", most, clock.Now().Sub(start)),
	}, {
		what: what + ", time", value: fmt.Sprintf("%v for %d deliveries", took.Round(time.Millisecond), deliveries),
	}}, faults.err()
}
