package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	demoFirstReach  = 5 * time.Second
	demoBackReach   = time.Minute
	demoEndReach    = time.Second
	demoMemoryReach = 150 << 10 // KiB
	// demoHourTakes is how long at the greatest speed what takes an hour at the usual one.
	demoHourTakes = time.Minute
)

// shownDemo is a demo in a process of its own, and what has called it.
type shownDemo struct {
	*exec.Cmd
	lines *bufio.Reader
	began time.Time
	// first is when its first line was there.
	first time.Duration
}

// benchDemo measures what somebody waits for who has never seen Pitstop: the demo's first line, a preempted slice that trains again, and
// the end. The first start warms the build cache.
func benchDemo(ctx context.Context) ([]figure, error) {
	dir, err := os.MkdirTemp("", "pitstop-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder in the temporary one
	command := filepath.Join(dir, "command")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", command, "./scripts/pitstop/command").CombinedOutput(); err != nil { //nolint:gosec // our own names
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var first, ended time.Duration
	for i := range 4 {
		d, err := startDemo(ctx, dir, []string{"go", "run", "./scripts/pitstop"})
		if err != nil {
			return nil, err
		}
		took, _, err := d.interrupt()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			first, ended = max(first, d.first), max(ended, took)
		}
	}
	d, err := startDemo(ctx, dir, []string{command})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	act := exec.CommandContext(ctx, command, "demo", "preempt", "llama-8b") //nolint:gosec // our own binary
	act.Env = d.Env
	if out, err := act.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, out), d.Process.Kill())
	}
	if err := d.until("RESUMED"); err != nil {
		return nil, err
	}
	back := time.Since(began)
	_, peak, err := d.interrupt()
	if err != nil {
		return nil, err
	}
	hour, err := startDemo(ctx, dir, []string{command}, "--speed", "3600")
	if err != nil {
		return nil, err
	}
	over := time.AfterFunc(demoHourTakes, func() { _ = syscall.Kill(-hour.Process.Pid, syscall.SIGINT) }) //nolint:errcheck // it may have ended
	defer over.Stop()
	if err := hour.until("the demo has ended"); err != nil {
		return nil, err
	}
	_, later, err := hour.interrupt()
	if err != nil {
		return nil, err
	}
	return []figure{
		{"pitstop demo, warm build cache, to the first line (worst of 3)", fmt.Sprintf("%.2f s", first.Seconds()), "under 5 s", first < demoFirstReach},
		{"pitstop demo, from a preemption to the training back", fmt.Sprintf("%.1f s", back.Seconds()), "under 60 s", back < demoBackReach},
		{"pitstop demo, from Ctrl-C to its end (worst of 3)", fmt.Sprintf("%.2f s", ended.Seconds()), "under 1 s", ended < demoEndReach},
		{"pitstop demo, peak memory", fmt.Sprintf("%.0f MiB", float64(peak)/1024), "under 150 MiB", peak < demoMemoryReach},
		{"pitstop demo, peak memory of an hour of it", fmt.Sprintf("%.0f MiB", float64(later)/1024), "under 150 MiB", later < demoMemoryReach},
	}, nil
}

// demoEnvironment has a demo note where it runs in this folder, and the build cache stay where it is.
func demoEnvironment(ctx context.Context, dir string) ([]string, error) {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	return append(os.Environ(), "XDG_CACHE_HOME="+dir, "GOCACHE="+strings.TrimSpace(string(cache))), err
}

// startDemo starts a demo as a group of processes, as a shell does, and waits for its first line.
func startDemo(ctx context.Context, dir string, command []string, flags ...string) (*shownDemo, error) {
	environment, err := demoEnvironment(ctx, dir)
	if err != nil {
		return nil, err
	}
	args := append(append(slices.Clone(command[1:]), "demo", "--listen", "127.0.0.1:0"), flags...)
	d := &shownDemo{Cmd: exec.CommandContext(ctx, command[0], args...), began: time.Now()} //nolint:gosec // our own words
	d.Env, d.Stderr = environment, os.Stderr
	d.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := d.StdoutPipe()
	if err == nil {
		err = d.Start()
	}
	if err != nil {
		return nil, err
	}
	d.lines = bufio.NewReader(out)
	if err := d.until("Pitstop"); err != nil {
		return nil, err
	}
	d.first = time.Since(d.began)
	return d, d.until("gcloud compute tpus")
}

// until waits for a line with a text.
func (d *shownDemo) until(text string) error {
	for {
		line, err := d.lines.ReadString('\n')
		if err != nil {
			return errors.Join(fmt.Errorf("the demo never said %q: %w", text, err), d.Wait())
		}
		if strings.Contains(line, text) {
			return nil
		}
	}
}

// interrupt ends a demo as Ctrl-C does. It returns how long that took, and the peak memory in KiB.
func (d *shownDemo) interrupt() (took time.Duration, peak int64, err error) {
	began := time.Now()
	if err := syscall.Kill(-d.Process.Pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return 0, 0, err
	}
	if _, err := io.Copy(io.Discard, d.lines); err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	err = d.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys() != nil { // go run itself is interrupted, too
		err = nil
	}
	if u, ok := d.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = u.Maxrss
	}
	return took, peak, err
}
