package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// pitcrew is the program that runs beside the training.
const pitcrew = "pitcrew"

// The machines of a TPU, and how large pitcrew may be: each machine fetches it at its start.
const (
	pitcrewOS   = "linux"
	pitcrewArch = "amd64"
	pitcrewMost = 18 << 20
)

// buildPitcrew builds the program, the same bytes from the same sources, and checks it if asked to.
func buildPitcrew(ctx context.Context, m module, dir string, verifies bool) (size int, sum [sha256.Size]byte, err error) {
	path, err := filepath.Abs(filepath.Join(dir, pitcrew))
	if err != nil {
		return 0, sum, err
	}
	content, err := edition{target: target{pitcrewOS, pitcrewArch}}.program(ctx, m, pitcrewProgram, path)
	if err == nil && verifies {
		err = verifyPitcrew(ctx, path, content)
	}
	return len(content), sha256.Sum256(content), err
}

// verifyPitcrew checks that the program is small and static, and that it runs a command and returns its exit code.
func verifyPitcrew(ctx context.Context, path string, content []byte) error {
	if len(content) > pitcrewMost {
		return fmt.Errorf("pitcrew has %d bytes, more than the %d that a start-up script should fetch", len(content), pitcrewMost)
	}
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("pitcrew is not static: it names an interpreter")
		}
	}
	if runtime.GOOS != pitcrewOS || runtime.GOARCH != pitcrewArch {
		return nil // it does not run on this machine
	}
	cmd := exec.CommandContext(ctx, path, "run", "--metadata=none", "--restarts=0", "--job-tries=0", "--", "sh", "-c", "echo runs; exit 7")
	cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+filepath.Dir(path))
	out, err := cmd.Output() // the lines on standard error are pitcrew's own
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 7 || string(out) != "runs\n" {
		return fmt.Errorf("pitcrew run did not end as its command does: %w, %q", err, out)
	}
	return nil
}
