//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
)

// TestRealOrbax has a training on real Orbax saved by a request: what the crew takes for complete is what Orbax wrote.
func TestRealOrbax(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "python3", "-c", "import jax, orbax.checkpoint").CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Skipf("Python with JAX and Orbax is not here: %s", lines[len(lines)-1])
	}
	script, err := filepath.Abs("testdata/orbax_train.py")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := launch(t, []string{"--checkpoint-dir=file://" + dir, "--node=llama", "--zone=us-west4-a", "--workload=demo/llama"}, []string{"python3", script, dir})
	until(t, "it trains", func() bool { return strings.Contains(p.output(), "began at 0") })
	store := checkpoint.NewFiles("/", time.Now)
	if err := checkpoint.WriteRequest(t.Context(), store, "file://"+dir, events.CrewRequest{
		SaveID: "save-1", Action: events.ActionSave, Mode: events.SaveSignal, By: time.Now().Add(time.Minute),
	}, time.Now()); err != nil {
		t.Fatal(err)
	}
	until(t, "saved", func() bool { return strings.Contains(p.output(), "the request beside the checkpoints: saved step") })
	found, err := checkpoint.Verify(t.Context(), store, "file://"+dir, checkpoint.Want{})
	if err != nil || found.Step < 1 {
		t.Errorf("%+v, %v", found, err)
	}
}
