// Command pitstop builds the operator's command and runs it. It is small, so that it runs at once and can say what it is
// doing: the first build compiles six functions and Google's client libraries, which takes a minute or two, and go run
// says nothing while it does that. Later runs find everything built.
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

// patience is how long a build may be silent before it is explained: to find everything built takes seconds on a busy machine.
const patience = 5 * time.Second

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
	return ended(c.Run(), errOut)
}

// ended is the exit code for how the command ended. That nobody reads any more of what it prints, as behind | head, is no failure.
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
	c := exec.Command("go", "build", "-o", binary, "./scripts/pitstop/command") //nolint:gosec,noctx // as long as it takes
	c.Dir = root
	if err := explained(c, errOut, patience); err != nil {
		return "", err
	}
	return binary, nil
}

// explained runs a build and says what takes so long where it is silent for longer than that.
func explained(c *exec.Cmd, errOut io.Writer, patience time.Duration) error {
	shared := &lockedWriter{w: errOut}
	c.Stdout, c.Stderr = shared, shared
	if err := c.Start(); err != nil {
		return fmt.Errorf("the Go tool chain is needed: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(patience):
		_, _ = fmt.Fprintln(shared, //nolint:errcheck // there is nobody else to tell
			"pitstop: building the functions and their libraries; after a change, or the first time, this takes a minute or two")
		err = <-ended
	}
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	return nil
}

// lockedWriter takes one write at a time: while a build runs, what it says and what is said about it go the same way.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
