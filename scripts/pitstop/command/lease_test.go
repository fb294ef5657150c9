package main

import (
	"errors"
	"strings"
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
)

// TestTwoWorkloadsInOneDirectoryAreTold: by check to both, and by attach, before anything is lost.
func TestTwoWorkloadsInOneDirectoryAreTold(t *testing.T) {
	const one = "one lease and one save request lie there"
	for name, c := range map[string]struct {
		other  func(w *incident.Workload)
		says   string // of llama-8b
		theirs string // of other
		stops  bool
	}{
		"the same": {func(*incident.Workload) {}, "stop      directory: dev/other saves in gs://ckpt/llama-8b too: " + one, "stop      directory: demo/llama-8b saves in gs://ckpt/llama-8b/ too: " + one, true},
		"a bucket that is mounted": {
			func(w *incident.Workload) { w.Directory = "file:///mnt/ckpt/llama-8b" },
			"warn      directory: dev/other saves in file:///mnt/ckpt/llama-8b, which may be the same as gs://ckpt/llama-8b: one lease",
			"warn      directory: demo/llama-8b saves in gs://ckpt/llama-8b, which may be the same as file:///mnt/ckpt/llama-8b: one lease", false,
		},
		"inside ours": {
			func(w *incident.Workload) { w.Directory = "gs://ckpt/llama-8b/tuned" },
			"warn      directory: gs://ckpt/llama-8b/tuned, where dev/other saves, is inside gs://ckpt/llama-8b: ", "warn      directory: gs://ckpt/llama-8b/tuned is inside gs://ckpt/llama-8b, where demo/llama-8b saves: ", false,
		},
		"beside ours":           {func(w *incident.Workload) { w.Directory = "gs://ckpt/llama-8b-2" }, "", "", false},
		"it names no directory": {func(w *incident.Workload) { w.Directory = "" }, "", "", false},
		"it is finished":        {func(w *incident.Workload) { w.Crew.Finished = true }, "", "", false},
		"its owner deleted it": {func(w *incident.Workload) {
			w.Slices[0].Condition, w.Slices[0].End.Released = incident.Gone, noon
		}, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := healthy(t, startsCrew)
			other := trains("other")
			other.ID, other.Project, other.Directory = "dev/other", "dev", "gs://ckpt/llama-8b/"
			c.other(&other)
			if _, err := b.ledger.Save(t.Context(), other, ledger.Revision{}); err != nil {
				t.Fatal(err)
			}
			tells := func(says string, args ...string) {
				t.Helper()
				got, err := b.call(args...)
				if err != nil && !errors.Is(err, errFailed) && !strings.Contains(err.Error(), "left to their owner") {
					t.Fatalf("%v:\n%s", err, got)
				}
				if says == "" && strings.Contains(got, "where dev/other saves") || says == "" && strings.Contains(got, one) {
					t.Errorf("it says:\n%s", got)
				}
				if wants(t, got, says); says != "" {
					wants(t, got, "you: name another directory by pitstop-checkpoint-dir for ")
				}
				if args[0] == "check" && args[1] == "llama-8b" && (err != nil) != c.stops {
					t.Errorf("it ends with %v:\n%s", err, got)
				}
			}
			tells(c.says, "check", "llama-8b")
			tells(c.theirs, "check", "other")
			_, text, _ := strings.Cut(c.says, "directory: ")
			tells(text, "attach", "llama-8b", "--policy", "spot")
		})
	}
}

// TestCheckReadsWhoseLeaseLiesThere: of another workload, though the ledger does not know it; or none, though a crew trains.
func TestCheckReadsWhoseLeaseLiesThere(t *testing.T) {
	for name, c := range map[string]struct {
		lease func(l *checkpoint.Lease)
		says  []string
		stops bool
	}{
		"ours":                               {func(*checkpoint.Lease) {}, nil, false},
		"a crew's, named after our node":     {func(l *checkpoint.Lease) { l.Epoch, l.Workload = 0, "demo/node" }, nil, false},
		"a crew's, of a namesake in another": {func(l *checkpoint.Lease) { l.Epoch, l.Workload = 0, "prod/llama-8b" }, []string{"stop      lease: gs://ckpt/llama-8b/pitstop-lease.json is that of prod/llama-8b", "you: give each workload a directory of its own, or delete this object if prod/llama-8b has ended"}, true},
		"Pitstop's, of another workload":     {func(l *checkpoint.Lease) { l.Workload = "demo/other" }, []string{"stop      lease: gs://ckpt/llama-8b/pitstop-lease.json is that of demo/other"}, true},
		"none":                               {nil, []string{"warn      lease: there is no gs://ckpt/llama-8b/pitstop-lease.json, though a crew trains: somebody or a lifecycle rule"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := healthy(t, startsCrew)
			if c.lease != nil {
				l := checkpoint.Lease{
					Workload: "demo/llama-8b", Epoch: 1, Attempt: 2, Written: noon, By: "pitstop",
					Admitted: []events.Admission{{Slice: "llama-8b", Incarnation: events.Incarnation{Zone: "us-west4-a"}, Workers: "t1v-n-1"}},
				}
				c.lease(&l)
				if err := checkpoint.WriteLease(t.Context(), b.store, "gs://ckpt/llama-8b", l); err != nil {
					t.Fatal(err)
				}
			}
			got, err := b.call("check", "llama-8b")
			if (err != nil) != c.stops || err != nil && !errors.Is(err, errFailed) {
				t.Errorf("it ends with %v:\n%s", err, got)
			}
			if wants(t, got, c.says...); c.says == nil && strings.Contains(got, " lease: ") {
				t.Errorf("it says:\n%s", got)
			}
		})
	}
}

// TestCheckTellsOfALifecycleRule: by the reading that says where the bucket is, and without it nothing.
func TestCheckTellsOfALifecycleRule(t *testing.T) {
	b, _, bucket := healthy(t, startsCrew)
	bucket.Rules("ckpt", `[{"action":{"type":"Delete"},"condition":{"age":30,"matchesPrefix":["llama-8b/"]}}]`)
	const says, wayOut = "a lifecycle rule of the bucket deletes gs://ckpt/llama-8b/pitstop-lease.json 30 days after it was written, and a training may run for longer",
		"you: give the rule a matchesPrefix or matchesSuffix that leaves out pitstop-lease.json"
	b.want([]string{"check", "llama-8b"}, "warn      lifecycle: "+says, wayOut)
	b.want([]string{"attach", "llama-8b", "--policy", "spot"}, says, wayOut)
	bucket.Rules("ckpt", `[{"action":{"type":"Delete"},"condition":{"age":30,"matchesPrefix":["logs/"]}}]`)
	if got, err := b.call("check", "llama-8b"); err != nil || strings.Contains(got, "lifecycle:") {
		t.Errorf("%v:\n%s", err, got)
	}
}
