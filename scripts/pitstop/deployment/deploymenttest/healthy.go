package deploymenttest

import (
	"context"
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
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
)

// Eventful is a slice that had a maintenance event a day before noon.
func Eventful(name string) provider.Slice {
	return provider.Slice{
		Ref: provider.Ref{Project: "demo", Zone: "us-west4-a", Name: name}, Condition: evidence.Ready, Maintained: Noon.Add(-24 * time.Hour),
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
func Healthy(t *testing.T, spec string, but ...func(*Story)) (*Bench, *Granted, *buckettest.Server) {
	t.Helper()
	night := Read(func(r *evidence.Read) { r.Facts.Label = "night" })
	b := New(t, ledgertest.NewStore().Open, Trains("llama-8b", append([]func(*Story){night}, but...)...))
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

// ShowsData has the API show the slice of the tests with these directories of data.
func (b *Bench) ShowsData(data ...string) {
	b.T.Helper()
	s := Eventful("llama-8b")
	s.Zone, s.Data = b.Workload().Slices[0].Zone, data
	b.Shown = []provider.Slice{s}
}

// In has the slices be in a zone, and Pitstop have found checkpoints of 12 GiB.
func In(zone string) func(*Story) {
	return func(s *Story) { s.Slice.Zone, s.Kept, s.Timed = zone, 12<<30, []time.Duration{20 * time.Second} }
}

// SavesEvery has a workload save this often, as its crew tells.
func SavesEvery(every time.Duration) func(*Story) { return func(s *Story) { s.Every = every } }

// Healed is a workload whose provider has just healed its slice, which broke at a time. So many have opened on that day before.
func Healed(name string, broke time.Time, lasts time.Duration, before int) incident.Workload {
	s := Training(name, func(s *Story) { s.End, s.Slice.Facts.Capacity = broke, events.OnDemand })
	s.after(before)
	s.Before(0).Learns(evidence.Interrupted{
		Origin: s.Origin(events.RankAudit), Slice: name, Incarnation: s.Slices[0].Incarnation, Cause: events.CauseHostError, Text: "a host error",
	}).Reads(Is(evidence.Unhealthy, "REPAIRING"))
	s.Before(time.Minute - lasts).Reads(Is(evidence.Ready, "READY"))
	return s.Before(-lasts).Writes(events.CrewReport{Report: events.ReportProgress, Attempt: 2, Step: 48_300}).Workload
}

// Loses archives losses of a workload, one every so often until noon. Each costs half an hour.
func (b *Bench) Loses(n int, every time.Duration) {
	b.T.Helper()
	for i := range n {
		w := Healed("llama-8b", Noon.Add(-time.Duration(n-i)*every), 30*time.Minute, i)
		if err := b.Ledger.SaveClosed(b.T.Context(), w, *w.Closed); err != nil {
			b.T.Fatal(err)
		}
	}
}
