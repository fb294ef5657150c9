// Command pitstop builds the operator's command and runs it. It is small, so that it starts early and reports how the build goes on:
// the first build compiles the functions and Google's client libraries, which takes minutes, and go run prints nothing meanwhile.
// Later runs find everything built. A release needs none of this: scripts/package release builds the command itself.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// exitUsage is the exit code of a wrong call.
const exitUsage = 2

// reportEvery is how often a build reports how far it is. A build that has nothing to do ends earlier and stays silent.
const reportEvery = 5 * time.Second

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, in io.Reader, out, errOut io.Writer) int {
	root, err := moduleRoot()
	if err != nil {
		return fail(errOut, err, exitUsage)
	}
	binary, err := build(root, errOut)
	if err != nil {
		return fail(errOut, err, 1)
	}
	// An interrupt reaches the command too, which ends in its own way; this one waits for it.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	c := exec.Command(binary, args...) //nolint:gosec,noctx // our own binary, until it ends
	c.Stdin, c.Stdout, c.Stderr = in, out, errOut
	c.Env = append(os.Environ(), "PITSTOP_CALLED_AS=go run ./scripts/pitstop") // for what it tells people to call
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGHUP)
	return ended(passOn(c, ends), errOut)
}

// passOn runs a command and passes signals on to it, because whoever sends them knows this process alone.
func passOn(c *exec.Cmd, signals <-chan os.Signal) error {
	if err := c.Start(); err != nil {
		return err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case s := <-signals:
				_ = c.Process.Signal(s) //nolint:errcheck // it has ended
			case <-over:
				return
			}
		}
	}()
	return c.Wait()
}

// ended is the exit code for how the command ended. A closed output, as in | head, is no failure.
func ended(err error, errOut io.Writer) int {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err == nil {
			return 0
		}
		return fail(errOut, err, 1)
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	switch {
	case exit.ExitCode() >= 0:
		return exit.ExitCode()
	case ok && status.Signaled() && status.Signal() == syscall.SIGPIPE:
		return 0
	}
	return fail(errOut, err, 1)
}

func fail(w io.Writer, err error, code int) int {
	_, _ = fmt.Fprintln(w, "pitstop:", err) //nolint:errcheck // there is nobody else to tell
	return code
}

// moduleRoot is the folder of Pitstop's repository, from which this was called or above it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module pitstop.internal\n")) {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("call this in Pitstop's repository: go run ./scripts/pitstop")
		}
		dir = up
	}
}

// build brings the command up to date and returns its path. go build does nothing where it is.
func build(root string, errOut io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	h := fnv.New64a()
	h.Write([]byte(root))
	dir := filepath.Join(cache, "pitstop", fmt.Sprintf("%x", h.Sum64()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "pitstop")
	c := exec.Command("go", "build", "-v", "-o", binary, "./scripts/pitstop/command") //nolint:gosec,noctx // as long as it takes
	c.Dir = root
	ticks := time.NewTicker(reportEvery)
	defer ticks.Stop()
	if err := reported(c, errOut, time.Now(), ticks.C); err != nil {
		return "", err
	}
	return binary, nil
}

// reported runs a build that names each package when it is compiled. It reports at each tick how many there are.
func reported(c *exec.Cmd, errOut io.Writer, began time.Time, ticks <-chan time.Time) error {
	said := &buildOutput{w: errOut}
	c.Stdout, c.Stderr = said, said
	if err := c.Start(); err != nil {
		return fmt.Errorf("the Go tool chain is needed: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for first := true; ; first = false {
		select {
		case err := <-ended:
			said.flush()
			if err != nil {
				return fmt.Errorf("build: %w", err)
			}
			return nil
		case at := <-ticks:
			if first {
				said.report("building the functions and Google's client libraries; a first build takes one to three minutes")
			}
			said.report(fmt.Sprintf("%d packages built in %.0f s", said.packages(), at.Sub(began).Seconds()))
		}
	}
}

// buildOutput counts the packages that a build names, and passes on everything else: downloads, and faults. One write at a time:
// the build and the reports about it share the way.
type buildOutput struct {
	mu    sync.Mutex
	w     io.Writer
	built int
	rest  []byte // the beginning of a line
}

// Write implements io.Writer.
func (b *buildOutput) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest = append(b.rest, p...)
	for {
		line, after, ok := bytes.Cut(b.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		b.rest = bytes.Clone(after)
		if len(line) > 0 && !bytes.ContainsAny(line, " \t:") { // an import path has neither spaces nor colons
			b.built++
			continue
		}
		if _, err := b.w.Write(append(line, '\n')); err != nil {
			return 0, err
		}
	}
}

func (b *buildOutput) packages() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.built
}

func (b *buildOutput) report(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = fmt.Fprintln(b.w, "pitstop:", text) //nolint:errcheck // there is nobody else to tell
}

// flush passes on a last line without an end.
func (b *buildOutput) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.w.Write(b.rest) //nolint:errcheck // there is nobody else to tell
	b.rest = nil
}
