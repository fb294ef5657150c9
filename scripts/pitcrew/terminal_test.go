//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitstop.internal/scripts/pitcrew/metadata"
)

// terminal opens a terminal: what is typed goes into the first, programs have the second.
func terminal(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	t.Cleanup(func() { _ = keys.Close() }) //nolint:errcheck // a test's
	fd := int(keys.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Skip("there are no terminals here:", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	t.Cleanup(func() { _ = screen.Close() }) //nolint:errcheck // likewise
	return keys, screen
}

func TestThePersonAtTheTerminal(t *testing.T) {
	for _, c := range []struct {
		name, script, until, types string
		code                       int
		lacks                      string
	}{
		{name: "what is typed goes to the training", script: "echo ready; read x; test $x = hello", until: "ready", types: "hello\n"},
		{name: "Ctrl-C ends it for good", script: "echo ready; exec sleep 60", until: "ready", types: "\x03", code: 130, lacks: "starting again"},
		{name: "Ctrl-C ends the wait", script: "exit 4", until: "starting again", types: "\x03", code: 4},
	} {
		began := time.Now()
		keys, screen := terminal(t)
		cmd := exec.CommandContext(t.Context(), self(t), "run", "--metadata=none", "--backoff=1h", "--backoff-max=1h", "--state="+t.TempDir(), "--", "sh", "-c", c.script)
		cmd.Env = append(os.Environ(), asPitcrew+"=1", metadata.HostVariable+"=")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		seen := ""
		buf := make([]byte, 4096)
		for !strings.Contains(seen, c.until) {
			n, err := keys.Read(buf)
			if seen += string(buf[:n]); err != nil {
				t.Fatal(c.name, seen, err)
			}
		}
		if _, err := keys.WriteString(c.types); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if took := time.Since(began); took > deadline/4 {
			t.Errorf("%s: it took %v: %q", c.name, took, seen)
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code || c.lacks != "" && strings.Contains(seen, c.lacks) {
			t.Errorf("%s: code %d, %v, %q", c.name, code, err, seen)
		}
	}
}
