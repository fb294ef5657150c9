package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	recordEntries = 1_000_000
	recordReach   = 150_000
	recordMemory  = 200 << 10 // KiB
)

func writeRecordFile(name string, entries int, seed uint64) error {
	if name == "-" {
		return writeRecord(os.Stdout, entries, seed)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := writeRecord(f, entries, seed); err != nil {
		_ = f.Close() //nolint:errcheck // the first error is told
		return err
	}
	return f.Close()
}

// benchRecord has the command read a record of a million entries: explain, as text and as JSON, and report.
func benchRecord(ctx context.Context) ([]figure, error) {
	dir, err := os.MkdirTemp("", "pitstop-record")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is temporary
	record, command := filepath.Join(dir, "record.json"), filepath.Join(dir, "pitstop")
	if err := writeRecordFile(record, recordEntries, 1); err != nil {
		return nil, err
	}
	info, err := os.Stat(record)
	if err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", command, "./scripts/pitstop/command").CombinedOutput(); err != nil { //nolint:gosec // our own names
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var all []figure
	for _, args := range [][]string{{"explain"}, {"explain", "--json"}, {"report"}, {"report", "--json"}} {
		c := exec.CommandContext(ctx, command, slices.Concat(args, []string{record})...) //nolint:gosec // our own binary
		began := time.Now()
		if err := c.Run(); err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		took := time.Since(began)
		name := fmt.Sprintf("pitstop %s, %d entries, %.2f GB", strings.Join(args, " "), recordEntries, float64(info.Size())/1e9)
		rate := float64(recordEntries) / took.Seconds()
		all = append(all, figure{what: name, value: fmt.Sprintf("%.0f entries/s", rate), reach: "at least 150000 entries/s", ok: rate >= recordReach})
		cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		all = append(all, figure{what: name + ", processor time", value: fmt.Sprintf("%.1f s", cpu.Seconds())})
		if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
			all = append(all, figure{what: name + ", peak memory", value: fmt.Sprintf("%.0f MiB", float64(u.Maxrss)/1024), reach: "under 200 MiB", ok: u.Maxrss < recordMemory})
		}
	}
	return all, nil
}
