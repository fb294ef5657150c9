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
	"strings"
)

// pitcrew is the program of the training side.
const pitcrew = "pitcrew"

// The machines of a TPU, and how large a program may be that each of them fetches at its start.
const (
	pitcrewOS   = "linux"
	pitcrewArch = "amd64"
	pitcrewMost = 20 << 20
)

// buildPitcrew builds the program, the same bytes from the same sources, and looks at it if that is asked for.
func buildPitcrew(ctx context.Context, m module, dir string, verifies bool) (size int, sum [sha256.Size]byte, err error) {
	path, err := filepath.Abs(filepath.Join(dir, pitcrew))
	if err != nil {
		return 0, sum, err
	}
	// gRPC's own trace of calls, which nobody looks at here, brings a server of web pages with it.
	cmd := exec.CommandContext(ctx, "go", "build", "-tags=grpcnotrace", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", path, "./scripts/pitcrew") //nolint:gosec // our own words
	cmd.Dir = m.Dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+pitcrewOS, "GOARCH="+pitcrewArch, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, sum, fmt.Errorf("go build: %w: %s", err, strings.Join(strings.Fields(string(out)), " "))
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, sum, err
	}
	if verifies {
		err = verifyPitcrew(ctx, path, content)
	}
	return len(content), sha256.Sum256(content), err
}

// verifyPitcrew looks whether the program needs nothing of the machine that it comes to, and does there what it is for.
func verifyPitcrew(ctx context.Context, path string, content []byte) error {
	if len(content) > pitcrewMost {
		return fmt.Errorf("%d bytes are more than the %d that a start-up script should fetch", len(content), pitcrewMost)
	}
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("it is not static: it names an interpreter")
		}
	}
	if runtime.GOOS != pitcrewOS || runtime.GOARCH != pitcrewArch {
		return nil // it cannot be run here
	}
	cmd := exec.CommandContext(ctx, path, "run", "--metadata=none", "--restarts=0", "--job-tries=0", "--", "sh", "-c", "echo runs; exit 7")
	cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+filepath.Dir(path))
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 7 || string(out) != "runs\n" {
		return fmt.Errorf("pitcrew run is not what it runs: %w, %q", err, out)
	}
	return nil
}
