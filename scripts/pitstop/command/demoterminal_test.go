//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/terminal"
)

// terminalOf opens a terminal with so many columns: the keyboard writes into the first, programs have the second.
func terminalOf(t *testing.T, columns uint16) (keys, shown *os.File) {
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
	shown, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	t.Cleanup(func() { _ = shown.Close() }) //nolint:errcheck // likewise
	if err := unix.IoctlSetWinsize(int(shown.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return keys, shown
}

// TestTheDemosTerminal runs the demo in a terminal: its lines fit, it is in colour unless somebody wants none, and Ctrl-C ends it.
func TestTheDemosTerminal(t *testing.T) {
	for _, c := range []struct {
		Columns     uint16
		environment string
		colour      bool
	}{{100, "TERM=xterm", true}, {100, "NO_COLOR=1", false}} {
		keys, shown := terminalOf(t, c.Columns)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "demo", "--listen", "127.0.0.1:0", "--speed", "900") //nolint:gosec // this test
		environment := ownHome(t)
		cmd.Env = append([]string{isCommand + "=1", endsAtOnce, c.environment}, environment...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = shown, shown, shown
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(keys)
		var all strings.Builder
		until := func(text string) {
			t.Helper()
			for {
				line, err := said.ReadString('\n')
				all.WriteString(line)
				if err != nil {
					t.Fatalf("it never said %q: %v\n%s", text, err, all.String())
				}
				if !strings.HasSuffix(line, "\r\n") || strings.HasSuffix(line, "\r\r\n") {
					t.Errorf("the line %q does not end as on a terminal", line)
				}
				line = strings.TrimSuffix(line, "\r\n")
				if n := terminal.Columns(line); n > int(c.Columns) && len(strings.Fields(line)) > 1 {
					t.Errorf("the line %q takes %d columns of %d", line, n, c.Columns)
				}
				if strings.Contains(line, text) {
					return
				}
			}
		}
		until("gcloud compute tpus tpu-vm list")
		if a := ownProcess(t, environment, []string{"demo", "preempt", "llama-8b"}); a.code != cli.ExitDone {
			t.Errorf("preempt: %+v", a)
		}
		until("RESUMED")
		hangs := time.AfterFunc(endsWithin, func() { _ = cmd.Process.Kill() }) //nolint:errcheck // it may have ended
		if _, err := keys.WriteString("\x03"); err != nil {
			t.Fatal(err)
		}
		until("the demo has ended")
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
		hangs.Stop()
		if painted := strings.Contains(all.String(), "\x1b["); painted != c.colour {
			t.Errorf("in colour: %v, want %v", painted, c.colour)
		}
	}
}
