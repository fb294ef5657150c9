package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// month and year are what records of one's own are about.
var (
	month = kept{slices: 20, least: 11 * time.Hour, most: 128 * time.Hour}
	year  = kept{slices: 1, least: 24 * time.Hour, most: 240 * time.Hour}
)

// waits is a figure of what a user waits for: calls of the command, one after another.
type waits struct {
	what  string
	calls []string
	reach time.Duration
	// memory is the most memory that they may take in MiB, where that is a figure, too.
	memory int64
}

// benchSimulate has the command replay and simulate, as a process that somebody waits for.
func benchSimulate(ctx context.Context) ([]figure, error) {
	dir, err := os.MkdirTemp("", "pitstop-simulate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is temporary
	command := filepath.Join(dir, "pitstop")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", command, "./scripts/pitstop/command").CombinedOutput(); err != nil { //nolint:gosec // our own names
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	ownMonth, monthLost, err := ownRecord(filepath.Join(dir, "month.json"), month, 30)
	if err != nil {
		return nil, err
	}
	ownYear, yearLost, err := ownRecord(filepath.Join(dir, "year.json"), year, 365)
	if err != nil {
		return nil, err
	}
	const rare = "scripts/sim/testdata/rare/"
	if _, _, err := wait(ctx, command, "replay"); err != nil { // what it reads is in memory then
		return nil, err
	}
	var all []figure
	for _, w := range []waits{
		{what: "pitstop replay of the recorded incidents, warm", calls: []string{"replay"}, reach: 2 * time.Second},
		{
			what: fmt.Sprintf("pitstop replay --policy spot, a month of %d TPUs with %d losses", month.slices, monthLost), reach: 15 * time.Second,
			calls: []string{"replay --summary --policy spot " + ownMonth},
		},
		{
			what: fmt.Sprintf("pitstop replay --policy spot, 365 days of one TPU with %d losses", yearLost), reach: 15 * time.Second,
			calls: []string{"replay --summary --policy spot " + ownYear},
		},
		{what: "pitstop simulate as it is, 60 days, 29 slices", calls: []string{"simulate --json"}, reach: 45 * time.Second, memory: 200},
		{what: "pitstop simulate, 10,000 incidents under light faults", calls: []string{"simulate --json --sum --seeds 6 --days 30"}, reach: 45 * time.Second},
		{
			what: "pitstop simulate, 200 seeds under heavy faults and 20 under hostile ones", reach: 50 * time.Second, calls: []string{
				"simulate --json --sum --seeds 200 --days 1 --slices 4 --faults heavy --incidents 10",
				"simulate --json --sum --seeds 20 --days 2 --slices 4 --faults hostile --fleet " + rare + "fleet.yaml --policy " + rare + "policy.yaml --rates " + rare + "rates.yaml",
			},
		},
	} {
		var sum waited
		incidents := 0
		for _, call := range w.calls {
			took, n, err := wait(ctx, command, strings.Fields(call)...)
			if err != nil {
				return all, err
			}
			sum.Took, sum.PeakKiB, incidents = sum.Took+took.Took, max(sum.PeakKiB, took.PeakKiB), incidents+n
		}
		f := figure{what: w.what, value: fmt.Sprintf("%.1f s", sum.Took.Seconds()), reach: fmt.Sprintf("under %v", w.reach), ok: sum.Took < w.reach}
		if incidents > 0 {
			f.value += fmt.Sprintf(", %d incidents", incidents)
		}
		memory := figure{what: w.what + ", peak memory", value: fmt.Sprintf("%d MiB", sum.PeakKiB>>10)}
		if w.memory > 0 {
			memory.reach, memory.ok = fmt.Sprintf("under %d MiB", w.memory), sum.PeakKiB>>10 < w.memory
		}
		all = append(all, f, memory)
	}
	return all, nil
}

// ownRecord writes a record of so many days, and returns its file and how many losses it tells of.
func ownRecord(file string, k kept, days int) (name string, lost int, err error) {
	f, err := os.Create(file)
	if err != nil {
		return "", 0, err
	}
	lost, err = k.write(f, math.MaxInt, recordStart.AddDate(0, 0, days), 1)
	return file, lost, errors.Join(err, f.Close())
}

// waitArgument has this program run a command and measure it. The kernel counts what the starting process holds as the peak of the
// started one, and the process of all measurements may hold much.
const waitArgument = "wait-for"

// waited is what waitFor measures.
type waited struct {
	Took time.Duration
	// PeakKiB is the most memory that the command had.
	PeakKiB int64
}

// waitFor runs a command with this process's output, and writes what it measured to a file.
func waitFor(file string, command []string) error {
	c := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // what wait hands over, until it ends
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	began := time.Now()
	if err := c.Run(); err != nil {
		return err
	}
	w := waited{Took: time.Since(began)}
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		w.PeakKiB = u.Maxrss
	}
	raw, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600) //nolint:gosec // what wait names
}

// wait runs the command, and returns what that took and how many incidents a simulation says that there were. The command's own
// judgement, an incident that does not end or a broken rule, is an error.
func wait(ctx context.Context, command string, args ...string) (w waited, incidents int, err error) {
	self, err := os.Executable()
	if err != nil {
		return w, 0, err
	}
	file := filepath.Join(filepath.Dir(command), "waited.json")
	c := exec.CommandContext(ctx, self, append([]string{waitArgument, file, command}, args...)...) //nolint:gosec // this very program
	var out, faults bytes.Buffer
	c.Stdout, c.Stderr = &out, &faults
	if err := c.Run(); err != nil {
		return w, 0, fmt.Errorf("pitstop %s: %w: %.1000s", strings.Join(args, " "), err, &faults)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return w, 0, err
	}
	if err := json.Unmarshal(raw, &w); err != nil || args[0] != "simulate" {
		return w, 0, err
	}
	var report struct {
		Incidents int `json:"incidents"`
	}
	err = json.Unmarshal(out.Bytes(), &report)
	return w, report.Incidents, err
}
