//go:build !heart

package deploymenttest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
)

// Eventful is a slice that had a maintenance event a day before noon.
func Eventful(name string) provider.Slice {
	return provider.Slice{
		Ref: provider.Ref{Project: "demo", Zone: "us-west4-a", Name: name}, Condition: incident.Ready, Maintained: Noon.Add(-24 * time.Hour),
	}
}

// Granted is an access under which accounts lack some permissions, or cannot be asked as.
type Granted struct {
	Lacks map[string][]string
	Err   error
	Asked []string
}

func (g *Granted) has(account, on string, permissions []string) ([]string, error) {
	g.Asked = append(g.Asked, account+" on "+on+": "+strings.Join(permissions, " "))
	return slices.DeleteFunc(slices.Clone(permissions), func(p string) bool { return slices.Contains(g.Lacks[account], p) }), g.Err
}

// OnProject implements deployment.PermissionTester.
func (g *Granted) OnProject(_ context.Context, account, on string, p []string) ([]string, error) {
	return g.has(account, on, p)
}

// OnBucket implements deployment.PermissionTester.
func (g *Granted) OnBucket(_ context.Context, account, on string, p []string) ([]string, error) {
	return g.has(account, on, p)
}

// OnAccount implements deployment.PermissionTester.
func (g *Granted) OnAccount(_ context.Context, account, on string, p []string) ([]string, error) {
	return g.has(account, on, p)
}

// Healthy is a deployment with one workload of which everything is as it has to be.
func Healthy(t *testing.T, spec string) (*Bench, *Granted, *buckettest.Server) {
	t.Helper()
	w := Trains("llama-8b")
	w.Label = "night"
	b := New(t, ledgertest.NewStore().Open, w)
	if err := b.Ledger.SaveSpec(t.Context(), "spec1", []byte(spec)); err != nil {
		t.Fatal(err)
	}
	if err := b.Ledger.SaveSettings(t.Context(), ledger.Settings{Policy: policy.Config{URI: "gs://ops/policy.yaml", Allow: "request_checkpoint,restart,recreate"}}); err != nil {
		t.Fatal(err)
	}
	b.ReadFile = func(context.Context, string) ([]byte, error) {
		return []byte("policies:\n  night: {preset: spot, zones: [us-west4-b, us-central1-a], chip_hour_price: 0.5}\n"), nil
	}
	bucket := b.Bucket()
	b.PutCheckpoint("48000")
	g := &Granted{Lacks: map[string][]string{}}
	b.Permissions, b.Grants = g, deployment.ReadGrants
	return b, g, bucket
}

// Bucket is the one for the checkpoints, which is empty.
func (b *Bench) Bucket() *buckettest.Server {
	bucket := buckettest.New(func() time.Time { return Noon.Add(-20 * time.Minute) }, "ckpt")
	bucket.Place("ckpt", buckettest.Location{Name: "US-WEST4"})
	b.Checkpoints = checkpoint.Mux{"gs": checkpoint.NewBucket(option.WithHTTPClient(&http.Client{Transport: bucket.Transport()}), option.WithoutAuthentication())}
	return bucket
}

// PutCheckpoint puts a complete checkpoint of a step there.
func (b *Bench) PutCheckpoint(step string) {
	b.T.Helper()
	for _, name := range []string{"/params/0", "/commit_success.txt"} {
		if _, err := b.Checkpoints.Put(b.T.Context(), "gs://ckpt/llama-8b/"+step+name, []byte("x"), 0); err != nil {
			b.T.Fatal(err)
		}
	}
}

// StartsCrew is the specification of a TPU whose start-up script starts pitcrew.
const StartsCrew = `{"node":{"runtimeVersion":"v2","metadata":{"startup-script":"#!/bin/sh\nTOKEN=s3cret pitcrew run -- python3 train.py"},"serviceAccount":{"email":"tpu@demo.iam.gserviceaccount.com"}}}`

// ShowsData has the API show the slice of the tests in a zone, with these directories of data.
func (b *Bench) ShowsData(zone string, data ...string) {
	s := Eventful("llama-8b")
	s.Zone, s.Data = zone, data
	b.Shown = []provider.Slice{s}
	b.Change(func(w *incident.Workload) { w.Slices[0].Zone, w.Progress.VerifiedBytes = zone, 12<<30 })
}

// SavesEvery has a workload save this often, as its crew tells.
func SavesEvery(every time.Duration) func(*incident.Workload) {
	return func(w *incident.Workload) {
		w.Seen = Noon.Add(-10 * 24 * time.Hour)
		w.Pace.Gaps = slices.Repeat([]int64{int64(every.Seconds())}, 5)
	}
}

// Loses archives losses of a workload, one every so often until noon. Each costs half an hour.
func (b *Bench) Loses(n int, every time.Duration) {
	b.T.Helper()
	for i := range n {
		down := Noon.Add(-time.Duration(n-i) * every)
		in := incident.Incident{
			ID: fmt.Sprintf("llama-8b-%s-%d", down.Format("20060102"), 2*i+1), Cause: events.CausePreemption, Opened: down, Down: down,
			Closed: down.Add(30 * time.Minute), Phase: incident.Closed, Outcome: incident.Resumed,
		}
		if err := b.Ledger.SaveClosed(b.T.Context(), LlamaID, in); err != nil {
			b.T.Fatal(err)
		}
	}
}
