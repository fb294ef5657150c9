package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// orphanVariable makes this test's program the parent in TestAProcessDiesWithItsParent.
const orphanVariable = "PITSTOP_TEST_ORPHAN"

// TestAProcessDiesWithItsParent kills the parent of a process that would go on. The pipe into which both write ends with the last of them.
func TestAProcessDiesWithItsParent(t *testing.T) {
	if os.Getenv(orphanVariable) != "" {
		c := exec.CommandContext(t.Context(), "cat")
		c.Stdin, c.Stdout = os.Stdin, os.Stdout
		dieWithParent(c)
		must(t, c.Start())
		fmt.Println("started")
		_ = c.Wait() //nolint:errcheck // this program is killed before
		return
	}
	in, hold, err := os.Pipe() // cat ends when the test does
	must(t, err)
	defer hold.Close() //nolint:errcheck // nothing is written
	out, into, err := os.Pipe()
	must(t, err)
	defer out.Close()                                                                                   //nolint:errcheck // it was only read
	parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAProcessDiesWithItsParent$") //nolint:gosec // this program
	parent.Env = append(os.Environ(), orphanVariable+"=1")
	parent.Stdin, parent.Stdout = in, into
	must(t, parent.Start())
	must(t, in.Close())
	must(t, into.Close())
	must(t, out.SetReadDeadline(time.Now().Add(20*time.Second)))
	lines := bufio.NewReader(out)
	if said, err := lines.ReadString('\n'); said != "started\n" {
		t.Fatalf("the parent said %q, %v", said, err)
	}
	must(t, parent.Process.Kill())
	_ = parent.Wait() //nolint:errcheck // it was killed
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Errorf("the process outlives its parent: %v", err)
	}
}
