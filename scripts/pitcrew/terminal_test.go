//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitstop.internal/scripts/pitcrew/metadata"
)

// terminal opens a terminal: the keyboard writes into the first, programs have the second.
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

// endedBefore is the state of a pitcrew whose training was ended from the keyboard.
func endedBefore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"training.json": `{"attempt":1,"command":["true"],"began":"2026-07-04T09:00:00Z","parent":{"pid":1,"start":"x"},"training":{"pid":1,"start":"x"}}`,
		"exit.json":     `{"attempt":1,"signal":"SIGINT","began":"2026-07-04T09:00:00Z","ended":"2026-07-04T09:01:00Z"}`,
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestThePersonAtTheTerminal(t *testing.T) {
	for _, c := range []struct {
		name, script, until, types string
		code                       int
		lacks                      string
		flags                      []string
	}{
		{name: "the keyboard is the training's", script: "echo ready; read x; test $x = hello", until: "ready", types: "hello\n"},
		{name: "Ctrl-C ends it for good", script: "echo ready; exec sleep 60", until: "ready", types: "\x03", code: 130, lacks: "starting again"},
		{name: "Ctrl-\\ ends one that ignores Ctrl-C", script: "trap '' INT; echo ready; exec sleep 60", until: "ready", types: "\x03\x1c", code: 131, lacks: "starting again"},
		{
			name: "Ctrl-C ended an earlier attempt", flags: []string{
				"--worker=1", "--state=" + endedBefore(t), "--peer-key=" + keyFileOf(t, aKey, 0o600),
				fmt.Sprintf("--peers=127.0.0.1:%d,127.0.0.1", freePort(t)),
			}, until: "starts when worker 0 answers", types: "\x03", code: 130, lacks: "ended the training",
		},
		{name: "Ctrl-C ends the wait", script: "exit 4", until: "starting again", types: "\x03", code: 4},
	} {
		began := time.Now()
		keys, screen := terminal(t)
		cmd := exec.CommandContext(t.Context(), self(t), "run", "--metadata=none", "--backoff=1h", "--backoff-max=1h")
		if c.flags == nil {
			c.flags = []string{"--state=" + t.TempDir()}
		}
		cmd.Args = append(append(cmd.Args, c.flags...), "--", "sh", "-c", c.script)
		cmd.Env = append(os.Environ(), asPitcrew+"=1", metadata.HostVariable+"=")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		must(t, cmd.Start())
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
