package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitcrew/trainer"
)

// TestPitcrewIsTheEntrypointOfAContainer runs it under runc, which Docker and Kubernetes run containers with.
func TestPitcrewIsTheEntrypointOfAContainer(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skip("there is no runc here to run a container")
	}
	for name, c := range map[string]struct {
		train  []string
		signal string // from outside, once a training runs
		code   int
		last   string // what the training wrote at its end
	}{
		"the training's exit code":      {[]string{"-children=3", "-detached", "-at=5", "-exit=6"}, "", 6, "exits"},
		"a save at the end by a signal": {[]string{"-on-term=save-stop"}, "TERM", 143, "stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, state := t.TempDir(), t.TempDir()
			command := train(t, append([]string{"-log=" + dir}, c.train...)...)
			args := slices.Concat([]string{self(t), "run", "--metadata=none", "--state=" + state, "--restarts=0", "--job-tries=0"}, quick, []string{"--"}, command)
			bundle := bundled(t, args, []string{"/usr", "/bin", "/lib", "/lib64", filepath.Dir(self(t))}, []string{dir, state})
			id := "pitcrew-" + filepath.Base(filepath.Dir(dir)) + "-" + filepath.Base(dir)
			runc := func(args ...string) *exec.Cmd {
				return exec.CommandContext(t.Context(), "runc", append([]string{"--root", filepath.Join(bundle, "runc")}, args...)...)
			}
			var out bytes.Buffer
			run := runc("run", "--bundle", bundle, id)
			run.Stdout, run.Stderr = &out, &out
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			if c.signal != "" {
				journal(t, dir, "began", 1)
				if said, err := runc("kill", id, c.signal).CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, said)
				}
			}
			err := run.Wait()
			if strings.Contains(out.String(), "runc run failed") {
				t.Skipf("no container can be run here: %s", out.String())
			}
			if code := run.ProcessState.ExitCode(); code != c.code || trainer.Count(dir, c.last) != 1 {
				t.Errorf("code %d, want %d; %v: %s\n%v", code, c.code, err, out.String(), trainer.Read(dir))
			}
		})
	}
}

// bundled makes a container of this machine's own programs, with folders in it to read and others to write.
func bundled(t *testing.T, args, reads, writes []string) string {
	t.Helper()
	bundle := t.TempDir()
	root := filepath.Join(bundle, "root")
	mounts := []map[string]any{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755"}},
		{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
	}
	bind := func(dir, access string) {
		if _, err := os.Stat(dir); err == nil { // not every machine has each of them
			mounts = append(mounts, map[string]any{"destination": dir, "type": "bind", "source": dir, "options": []string{"rbind", access}})
		}
	}
	for _, dir := range reads {
		bind(dir, "ro")
	}
	for _, dir := range writes {
		bind(dir, "rw")
	}
	raw, err := json.Marshal(map[string]any{
		"ociVersion": "1.0.2",
		"process":    map[string]any{"args": args, "cwd": "/", "env": []string{"PATH=/usr/bin:/bin", asPitcrew + "=1"}, "user": map[string]int{"uid": 0, "gid": 0}},
		"root":       map[string]any{"path": root},
		"mounts":     mounts,
		"linux":      map[string]any{"namespaces": []map[string]string{{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(root, 0o755); err != nil { //nolint:gosec // as a root folder is
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return bundle
}
