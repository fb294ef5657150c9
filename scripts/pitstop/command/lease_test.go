package main

import (
	"errors"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
)

// TestTwoWorkloadsInOneDirectoryAreTold: by check to both, and by attach, before anything is lost.
func TestTwoWorkloadsInOneDirectoryAreTold(t *testing.T) {
	const one = "one lease and one save request lie there"
	in := func(directory string) func(*deploymenttest.Story) {
		return deploymenttest.Read(func(r *evidence.Read) { r.Directory = directory })
	}
	for name, c := range map[string]struct {
		other  func(*deploymenttest.Story)
		says   string // of llama-8b
		theirs string // of other
		stops  bool
	}{
		"the same": {in("gs://ckpt/llama-8b/"), "stop      directory: dev/other saves in gs://ckpt/llama-8b too: " + one, "stop      directory: demo/llama-8b saves in gs://ckpt/llama-8b/ too: " + one, true},
		"a bucket that is mounted": {
			in("file:///mnt/ckpt/llama-8b"),
			"warn      directory: dev/other saves in file:///mnt/ckpt/llama-8b, which may be the same as gs://ckpt/llama-8b: one lease",
			"warn      directory: demo/llama-8b saves in gs://ckpt/llama-8b, which may be the same as file:///mnt/ckpt/llama-8b: one lease", false,
		},
		"inside ours": {
			in("gs://ckpt/llama-8b/tuned"),
			"warn      directory: gs://ckpt/llama-8b/tuned, where dev/other saves, is inside gs://ckpt/llama-8b: ", "warn      directory: gs://ckpt/llama-8b/tuned is inside gs://ckpt/llama-8b, where demo/llama-8b saves: ", false,
		},
		"beside ours":           {in("gs://ckpt/llama-8b-2"), "", "", false},
		"it names no directory": {in(""), "", "", false},
		"it is finished":        {func(s *deploymenttest.Story) { in("gs://ckpt/llama-8b/")(s); s.Done = true }, "", "", false},
		"its owner deleted it":  {in("gs://ckpt/llama-8b/"), "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
			other := deploymenttest.Training("other", c.other)
			if other.ID, other.Project = "dev/other", "dev"; strings.Contains(name, "deleted") {
				other.Before(0).IsDeleted()
			}
			if _, err := b.Ledger.Save(t.Context(), other.Workload, ledger.Revision{}); err != nil {
				t.Fatal(err)
			}
			tells := func(says string, args ...string) {
				t.Helper()
				got, err := b.Call(args...)
				if err != nil && !errors.Is(err, cli.ErrFailed) && !strings.Contains(err.Error(), "left to their owner") {
					t.Fatalf("%v:\n%s", err, got)
				}
				if says == "" && strings.Contains(got, "where dev/other saves") || says == "" && strings.Contains(got, one) {
					t.Errorf("it says:\n%s", got)
				}
				if deploymenttest.WantText(t, got, says); says != "" {
					deploymenttest.WantText(t, got, "you: name another directory by pitstop-checkpoint-dir for ")
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

// TestCheckTellsOfALifecycleRule: by the reading that says where the bucket is, and without it nothing.
func TestCheckTellsOfALifecycleRule(t *testing.T) {
	b, _, bucket := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	bucket.Rules("ckpt", `[{"action":{"type":"Delete"},"condition":{"age":30,"matchesPrefix":["llama-8b/"]}}]`)
	const says, wayOut = "a lifecycle rule of the bucket deletes gs://ckpt/llama-8b/pitstop-lease.json 30 days after it was written, and a training may run for longer",
		"you: give the rule a matchesPrefix or matchesSuffix that leaves out pitstop-lease.json"
	b.Want([]string{"check", "llama-8b"}, "warn      lifecycle: "+says, wayOut)
	b.Want([]string{"attach", "llama-8b", "--policy", "spot"}, says, wayOut)
	bucket.Rules("ckpt", `[{"action":{"type":"Delete"},"condition":{"age":30,"matchesPrefix":["logs/"]}}]`)
	if got, err := b.Call("check", "llama-8b"); err != nil || strings.Contains(got, "lifecycle:") {
		t.Errorf("%v:\n%s", err, got)
	}
}
