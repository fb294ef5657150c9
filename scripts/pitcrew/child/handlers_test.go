//go:build linux

package child

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestWhatATrainingHasStartedIsNotAsked: PyTorch's loaders of data handle SIGTERM, and end of it.
func TestWhatATrainingHasStartedIsNotAsked(t *testing.T) {
	device := filepath.Join(t.TempDir(), "accel0")
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A wrapper around a process that does not handle the signal, with one below that does.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `sh -c 'exec 9<"$0"; (trap : TERM; while :; do sleep 0.05; done); :' "$0"; :`, device)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it is a test's
		_ = cmd.Wait()                                      //nolint:errcheck // likewise
	})
	var asked []int
	for end := time.Now().Add(20 * time.Second); len(asked) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		asked = HandlersOf(cmd.Process.Pid, syscall.SIGTERM)
	}
	if len(asked) != 1 {
		t.Fatalf("%v", asked)
	}
	old := tpuDevices
	t.Cleanup(func() { tpuDevices = old })
	tpuDevices = append(slices.Clone(old), filepath.Join(filepath.Dir(device), "accel"))
	if got := HandlersOf(cmd.Process.Pid, syscall.SIGTERM); len(got) != 0 {
		t.Errorf("%v would be asked, below the process that uses the TPU", got)
	}
}
