//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitcrew/trainer"
	"pitstop.internal/shared/checkpoint"
)

// ladder is the example, with this folder in place of the bucket, a tenth of its steps, and a stand-in for the training. Both
// programs that it calls are this test.
func ladder(t *testing.T) (folder string, climb func(rung, accelerator string) (string, error)) {
	t.Helper()
	folder = t.TempDir()
	raw, err := os.ReadFile("examples/ladder.sh")
	must(t, err)
	script, bin := filepath.Join(folder, "ladder.sh"), filepath.Join(folder, "bin")
	text := strings.NewReplacer("gs://BUCKET", "file://"+folder, "/tmp/step", filepath.Join(folder, "step"), "--steps 4000", "--steps 400").Replace(string(raw))
	pitcrew := fmt.Sprintf("#!/bin/sh\nshift\nexec env %s=1 %s= %s run --metadata=none --state=%s/state %s \"$@\"\n",
		asPitcrew, metadata.HostVariable, self(t), folder, strings.Join(quick, " "))
	training := fmt.Sprintf("#!/bin/sh\necho \"$@\" >%s/called\nexec env %s=1 %s -steps=${3#--steps=} -progress=%s/step\n",
		folder, trainer.Variable, self(t), folder)
	for _, dir := range []string{bin, filepath.Join(folder, "ladder")} { // a bucket has no folders that must be there
		must(t, os.Mkdir(dir, 0o755)) //nolint:gosec // a test's
	}
	for name, content := range map[string]string{script: text, bin + "/pitcrew": pitcrew, bin + "/python3": training} {
		must(t, os.WriteFile(name, []byte(content), 0o755)) //nolint:gosec // they are programs
	}
	return folder, func(rung, accelerator string) (string, error) {
		c := exec.CommandContext(t.Context(), "sh", script, rung)
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TPU_ACCELERATOR_TYPE="+accelerator)
		said, err := c.CombinedOutput()
		return string(said), err
	}
}

// TestTheLadderIsClimbed: each rung trains the same number of examples, with the same batch on each core, and keeps its speed.
func TestTheLadderIsClimbed(t *testing.T) {
	t.Parallel()
	folder, climb := ladder(t)
	for _, c := range []struct{ rung, accelerator, measured, called string }{
		{"device", "v2-8", "v2-2", "train.py --batch=256 --steps=400\n"},
		{"small", "v2-8", "v2-8", "train.py --batch=1024 --steps=100\n"},
		{"full", "v2-32", "v2-32", "train.py --batch=4096 --steps=25\n"},
	} {
		if said, err := climb(c.rung, c.accelerator); err != nil {
			t.Fatalf("%s: %v\n%s", c.rung, err, said)
		}
		called, err := os.ReadFile(filepath.Join(folder, "called"))
		if err != nil || string(called) != c.called {
			t.Errorf("%s: it calls python3 %q, %v; want %q", c.rung, called, err, c.called)
		}
		all, err := peers.Board{Store: checkpoint.NewFiles("/", time.Now), Directory: "file://" + folder + "/ladder/" + c.rung}.Speeds(t.Context())
		if err != nil || len(all) != 1 || all[0].Accelerator != c.measured || all[0].Steps < 1 || all[0].ExamplesPerSecond <= 0 ||
			!strings.Contains(c.called, fmt.Sprintf("--batch=%d ", all[0].GlobalBatch)) {
			t.Errorf("%s: %+v, %v", c.rung, all, err)
		}
	}
	for _, rung := range []string{"", "attic"} {
		said, err := climb(rung, "v2-8")
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.ExitCode() != 2 || said != "ladder.sh takes device, small or full\n" {
			t.Errorf("%q: %v, %s", rung, err, said)
		}
	}
}
