//go:build unix

package crew

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/child"
)

// TestAProgressFileThatDoesNotAnswerKeepsNothingBack: it may be a pipe, or lie where a storage is mounted that is not to be
// reached. The crew has to read the lease all the same.
func TestAProgressFileThatDoesNotAnswerKeepsNothingBack(t *testing.T) {
	c := crewOf(t, 1)
	c.reader = make(chan struct{}, 1)
	c.child = &child.Child{Record: child.Record{Began: time.Now()}}
	c.ProgressFile = filepath.Join(t.TempDir(), "step")
	if err := syscall.Mkfifo(c.ProgressFile, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // whoever still reads it is let go
		if f, err := os.OpenFile(c.ProgressFile, os.O_RDWR, 0); err == nil {
			_ = f.Close() //nolint:errcheck // a test's
		}
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.readStep(time.Now())
		(<-c.do)()
		c.readStep(time.Now().Add(c.Times.Step))
		(<-c.do)()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits")
	}
	if c.seen["progress file"] == "" {
		t.Error("nobody is told")
	}
	c.ProgressFile = filepath.Join(t.TempDir(), "step")
	<-c.reader // as if it were another crew's
	if err := os.WriteFile(c.ProgressFile, []byte("7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.readStep(time.Now().Add(2 * c.Times.Step))
	(<-c.do)()
	if c.step.n != 7 || c.seen["progress file"] != "" {
		t.Errorf("%+v, %v", c.step, c.seen)
	}
}
