package functions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/trigger"
)

// measured is a deployment that logs nothing.
func measured(b *testing.B) *deployment {
	b.Helper()
	d := deployed(b, cloudtputest.NodeConfig{Spot: true})
	quiet := slog.New(slog.DiscardHandler)
	d.Fleet.Log, d.Fleet.Advancer.Log = quiet, quiet
	return d
}

// push delivers a message as Pub/Sub does, through the adapter of a function.
func (d *deployment) push(h trigger.Handle, id string, data []byte, attributes map[string]string) {
	d.T.Helper()
	body, err := json.Marshal(map[string]any{
		"message":      map[string]any{"data": data, "attributes": attributes, "messageId": id, "publishTime": d.Clock.Now()},
		"subscription": "projects/demo/subscriptions/s",
	})
	d.Must(err)
	adapter := &trigger.Adapter{Name: "Measured", Log: d.Fleet.Log, Drain: trigger.NewDrain(func() {}), Handle: h}
	rec := httptest.NewRecorder()
	adapter.ServeHTTP(rec, httptest.NewRequestWithContext(d.T.Context(), http.MethodPost, "/", bytes.NewReader(body)))
	if rec.Code != http.StatusOK {
		d.T.Fatalf("the answer is %d: %s", rec.Code, rec.Body)
	}
}

// lost is a new slice that is lost, and Google's entry about one of its workers.
func (d *deployment) lost(n int) (entry []byte) {
	d.T.Helper()
	d.Clock.Advance(time.Hour) // the brake counts deletions by the hour
	name, group := fmt.Sprintf("lost-%d", n), fmt.Sprintf("t1v-n-%08x", n)
	w := d.Slice(cloudtputest.NodeConfig{Name: name, Spot: true, Group: group})
	_, err := d.Fleet.MapGroup(d.T.Context(), w, w.Slices[0], group)
	d.Must(err)
	d.Must(d.API.Preempt(fleettest.Zone, name))
	return fleettest.SystemEvent("compute.instances.preempted", fmt.Sprintf("zones/%s/instances/%s-w-2", fleettest.Zone, group), d.Clock.Now(), nil)
}

// BenchmarkEvent is the handling of one log entry: logevent reads the TPU, opens an incident, stores it and requests the deletion.
func BenchmarkEvent(b *testing.B) {
	d := measured(b)
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		entry := d.lost(n)
		b.StartTimer()
		d.push(d.handle["logevent"], fmt.Sprint("m", n), entry, nil)
	}
	if sent := len(fleettest.All(b, d.Bench, events.DecodeRecreateRequested)); sent != b.N {
		b.Errorf("%d events requested %d deletions", b.N, sent)
	}
}

// BenchmarkChain is the way from a log entry to the answered deletion: logevent, a message, recreate. Beside it runs a chain of two
// handlers that only publish a fixed message and read a TPU.
func BenchmarkChain(b *testing.B) {
	d := measured(b)
	fixed := events.Envelope{ID: "1", Type: "empty", Source: "//bench", Subject: "demo/x", Time: d.Clock.Now(), Data: []byte(`{"schema":1}`)}
	first := func(ctx context.Context, _ cloudevents.Event) error { return d.Sender.Publish(ctx, fixed) }
	second := func(ctx context.Context, _ cloudevents.Event) error {
		_, err := d.Cloud.Read(ctx, fleet.Ref(d.Workload(llamaID), d.Workload(llamaID).Slices[0]))
		return err
	}
	run := func(n int, entry []byte, decide, act trigger.Handle) time.Duration {
		began := time.Now()
		d.push(decide, fmt.Sprint("m", n), entry, nil)
		for _, e := range d.Sender.Sent() {
			if e.Type == events.TypeRecreateRequested || e.Type == fixed.Type {
				d.push(act, e.ID, e.Data, map[string]string{"ce-type": e.Type, "ce-id": e.ID, "ce-source": e.Source, "ce-specversion": "1.0"})
			}
		}
		return time.Since(began)
	}
	var chain, empty []time.Duration
	for n := 0; b.Loop(); n++ {
		entry := d.lost(n)
		d.Calls()
		empty = append(empty, run(n, entry, first, second))
		chain = append(chain, run(n, entry, d.handle["logevent"], d.handle["recreate"]))
		if deletions := fleettest.Count(d.Calls(), "DeleteNode"); deletions != 1 {
			b.Fatalf("chain %d makes %d deletions", n, deletions)
		}
	}
	p99 := func(took []time.Duration) float64 {
		slices.Sort(took)
		return float64(took[len(took)*99/100]) / float64(time.Millisecond)
	}
	b.ReportMetric(0, "ns/op") // it would count the making of the slice
	b.ReportMetric(p99(empty), "p99-empty-ms")
	b.ReportMetric(p99(chain)-p99(empty), "p99-over-empty-ms")
}

// BenchmarkPatrol is a tick over 10,000 slices of which nothing has changed. The simulated API is in the figure.
func BenchmarkPatrol(b *testing.B) {
	d := measured(b)
	for n := range 10_000 {
		_, err := d.API.AddNode(cloudtputest.NodeConfig{
			Zone: []string{fleettest.Zone, fleettest.OtherZone}[n%2], Name: fmt.Sprintf("llama-%d", n), Accelerator: "v5litepod-16", Spot: true,
			Group: fmt.Sprintf("t1v-n-%08x", n), Labels: fleettest.Label("spot"),
		})
		d.Must(err)
	}
	tick := func() {
		d.Clock.Advance(time.Minute)
		d.push(d.handle["patrol"], fmt.Sprint("tick", d.Clock.Now()), []byte("{}"), nil)
	}
	d.Clock.Advance(15 * time.Minute) // patrol looks into all zones that seldom
	tick()
	for _, id := range d.Workloads() {
		w := d.Workload(id)
		_, err := d.Fleet.MapHosts(b.Context(), w, w.Slices[0])
		d.Must(err)
	}
	tick()
	d.Calls()
	for b.Loop() {
		tick()
	}
	b.ReportMetric(float64(len(d.Calls()))/float64(b.N), "reads/op")
	if known := len(d.Workloads()); known != 10_001 {
		b.Errorf("patrol knows %d workloads", known)
	}
}
