package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/functions/recreate"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
	"pitstop.internal/shared/trigger"
)

// jobChains is how many Jobs are lost, each in a cluster of its own.
const jobChains = 300

// benchJobChain measures from the delivery of the tick that reads a failed Job to the moment at which its deletion reaches the API
// server, through patrol, recreate and a message between them. In turn it measures a chain of two handlers that do nothing: the first publishes a
// fixed message, the second deletes the Job.
func benchJobChain(ctx context.Context) ([]figure, error) {
	var chain, base []time.Duration
	for range jobChains {
		for _, m := range []struct {
			samples *[]time.Duration
			empty   bool
		}{{&base, true}, {&chain, false}} {
			took, err := loseJob(ctx, m.empty)
			if err != nil {
				return nil, err
			}
			*m.samples = append(*m.samples, took)
		}
	}
	more := percentile(chain, 99) - percentile(base, 99)
	return []figure{{
		what: "a Job's loss delivered -> its deletion at the API server, p99 more than of an empty chain", reach: "at most 10 ms more", ok: more <= chainReach,
		value: fmt.Sprintf("%.2f ms - %.2f ms = %.2f ms more (p50 %.2f - %.2f)", ms(percentile(chain, 99)), ms(percentile(base, 99)), ms(more), ms(percentile(chain, 50)), ms(percentile(base, 50))),
	}}, nil
}

// loseJob has a Job of two Pods fail in a cluster, and returns how long its deletion takes from there.
func loseJob(ctx context.Context, empty bool) (time.Duration, error) {
	r := newRelay()
	defer close(r.queue)
	g, err := newGround(ctx, 1, r)
	if err != nil {
		return 0, err
	}
	defer g.ledger.Close() //nolint:errcheck // it was only used to measure
	var called atomic.Int64
	server := gketest.New(gketest.Config{Clock: g.clock, Seed: 1})
	calls := &counted{next: server.Transport(), by: map[string]int{}, called: func(q *http.Request) {
		if q.Method == http.MethodDelete {
			called.CompareAndSwap(0, time.Now().UnixNano())
		}
	}}
	client := gke.Client{HTTP: &http.Client{Transport: calls}, URL: "http://cluster.invalid"}
	cluster := gke.Cluster{Project: project, Location: "us-east5", Name: "trainers"}
	providers := provider.Set{provider.CloudTPU: g.cloud, provider.GKE: gke.New([]gke.Cluster{cluster},
		func(context.Context, gke.Cluster) (gke.Client, error) { return client, nil }, g.clock.Now)}
	g.fleet.Provider = providers
	do := func(method, path, body string) {
		q, failed := http.NewRequestWithContext(ctx, method, client.URL+path, strings.NewReader(body))
		if err = errors.Join(err, failed); failed != nil {
			return
		}
		res, failed := server.Transport().RoundTrip(q)
		if err = errors.Join(err, failed); failed != nil {
			return
		}
		if err = errors.Join(err, res.Body.Close()); res.StatusCode >= http.StatusMultipleChoices {
			err = errors.Join(err, fmt.Errorf("%s %s: status %d", method, path, res.StatusCode))
		}
	}
	for i := range 2 {
		do(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":"n%d","labels":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-spot":"true"}},`+
			`"status":{"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`, i))
	}
	do(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", `{"metadata":{"name":"llama","labels":{"pitstop-policy":"spot"}},"spec":{"completionMode":"Indexed",
"parallelism":2,"completions":2,"backoffLimit":0,"template":{"spec":{"restartPolicy":"Never","nodeSelector":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice"},
"containers":[{"name":"train","image":"train:1","resources":{"limits":{"google.com/tpu":4},"requests":{"google.com/tpu":4}}}]}}}}`)
	g.clock.Advance(time.Minute)
	handler := func(name string, do func(context.Context) error) *trigger.Adapter {
		return &trigger.Adapter{
			Name: name, Log: g.fleet.Log, Drain: trigger.NewDrain(func() {}), Handle: func(ctx context.Context, _ cloudevents.Event) error { return do(ctx) },
		}
	}
	watch, act := &trigger.Adapter{
		Name: "HandlePatrol", Log: g.fleet.Log, Drain: trigger.NewDrain(func() {}),
		Handle: patrol.New(patrol.Deps{
			Fleet: g.fleet, Provider: providers, Audit: silent{}, Publisher: r, Project: project,
			Accounts: events.Accounts{Ours: []string{"pitstop@demo.iam.gserviceaccount.com"}}, Sleep: ledger.Sleep,
		}),
	}, &trigger.Adapter{
		Name: "HandleRecreate", Log: g.fleet.Log, Drain: trigger.NewDrain(func() {}),
		Handle: recreate.New(recreate.Deps{Fleet: g.fleet, Provider: providers, Limits: ledger.DefaultLimits}),
	}
	_, known := g.tick(ctx, watch, 0)
	do(http.MethodDelete, "/api/v1/nodes/n0", "")
	g.clock.Advance(2 * time.Minute)
	if err = errors.Join(err, known); err != nil {
		return 0, err
	}
	if empty {
		fixed := events.Envelope{ID: "1", Type: events.TypeRecreateRequested, Source: "//bench", Subject: "demo/x", Time: time.Now(), Data: []byte(`{"schema":1}`)}
		watch = handler("First", func(ctx context.Context) error { return r.Publish(ctx, fixed) })
		act = handler("Second", func(ctx context.Context) error {
			q, err := http.NewRequestWithContext(ctx, http.MethodDelete, client.URL+"/apis/batch/v1/namespaces/default/jobs/llama", http.NoBody)
			if err != nil {
				return err
			}
			res, err := client.HTTP.Do(q)
			if err != nil {
				return err
			}
			return res.Body.Close()
		})
	}
	var faults failures
	r.serve(ctx, 1, func(e events.Envelope) http.Handler {
		if e.Type == events.TypeRecreateRequested {
			return act
		}
		return nil
	}, faults.add)
	began := time.Now().UnixNano()
	err = deliver(ctx, watch, "patrol", world.Message{ID: "tick", Data: []byte("{}"), Published: g.clock.Now()})
	r.left.Wait()
	if err = errors.Join(err, faults.err()); err == nil && called.Load() == 0 {
		err = errors.New("the Job was not deleted")
	}
	return time.Duration(called.Load() - began), err
}
