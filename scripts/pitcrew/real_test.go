//go:build linux

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/checkpoint"
)

// TestRealOrbax has a training with JAX and Orbax stopped by SIGTERM in mid-step, twice: it saves itself, what pitcrew takes for complete is
// what Orbax saved, and the next one resumes there.
func TestRealOrbax(t *testing.T) {
	t.Parallel()
	resumesWhereItSaved(t, 3, 1, "jax, orbax.checkpoint", "testdata/orbax_train.py")
}

// TestRealTorch does the same once with PyTorch's distributed checkpoints, and with the Trainer of Hugging Face.
func TestRealTorch(t *testing.T) {
	t.Parallel()
	breadth.Rarely(t)
	t.Run("dcp", func(t *testing.T) { resumesWhereItSaved(t, 2, 0, "torch", "testdata/torch_train.py", "dcp") })
	t.Run("trainer", func(t *testing.T) {
		resumesWhereItSaved(t, 2, 0, "transformers, accelerate", "testdata/torch_train.py", "trainer")
	})
}

// resumesWhereItSaved starts a training in Python as often as lives says, and ends each with SIGTERM. It has to begin that many steps after
// the one that it saved.
func resumesWhereItSaved(t *testing.T, lives int, after int64, needs, script string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "python3", "-c", "import "+needs).CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Skipf("Python cannot import %s here: %s", needs, lines[len(lines)-1])
	}
	script, err := filepath.Abs(script)
	must(t, err)
	folder, state := t.TempDir(), t.TempDir()
	dir, steps := folder+"/run", folder+"/step"
	saved := regexp.MustCompile(`(?m)^saved=(\d+)$`)
	last := int64(-1)
	for life := range lives {
		p := launch(t, []string{"--state=" + state, "--checkpoint-dir=file://" + dir, "--progress-file=" + steps, "--stop-grace=30s", "--lease-take-over=60s"},
			append(append([]string{"python3", script}, args...), dir, steps))
		until(t, "it trains", func() bool { return strings.Contains(p.output(), "trains in attempt") || !p.running() })
		want := "resume=None begins=0 trained=0\n"
		if life > 0 {
			want = fmt.Sprintf("resume=%d begins=%d trained=%d\n", last, last+after, last+after)
		}
		if !strings.Contains(p.output(), want) {
			t.Fatalf("life %d without %q:\n%s", life, want, p.output())
		}
		p.signal(syscall.SIGTERM)
		if life == lives-1 {
			return // it has resumed as often as it should
		}
		if code := p.code(); code != 128+int(syscall.SIGTERM) {
			t.Errorf("life %d: code %d", life, code)
		}
		m := saved.FindStringSubmatch(p.output())
		if m == nil {
			t.Fatalf("life %d saved nothing:\n%s", life, p.output())
		}
		step, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || step <= last {
			t.Errorf("life %d saved step %s after %d: %v", life, m[1], last, err)
		}
		found, err := checkpoint.Verify(t.Context(), checkpoint.NewFiles("/", time.Now), "file://"+dir, checkpoint.Want{})
		if err != nil || found.Step != step || found.Doubt != "" {
			t.Errorf("life %d saved step %d, found %+v, %v", life, step, found, err)
		}
		last = step
	}
}
