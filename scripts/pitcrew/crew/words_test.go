//go:build unix

package crew

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/shared/checkpoint"
)

// TestEveryWorkerSaysWhatWorker0WaitsFor, once for each change, whether there is a plan yet or not.
func TestEveryWorkerSaysWhatWorker0WaitsFor(t *testing.T) {
	const (
		two  = "the training starts when all workers are here; waiting for 2 of 3: worker 1; worker 2"
		one  = "the training starts when all workers are here; waiting for 1 of 3: worker 2"
		over = "attempt 1 ended on worker 2: exit code 1"
	)
	ended := agree.Plan{Version: "a.2", Attempt: 1, Ended: true, Reason: over, Waits: one}
	next := agree.Plan{Version: "a.3", Attempt: 2, Run: true, Before: over}
	crew := crewOf(t, 1)
	var said []string
	crew.Say = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	for _, p := range []agree.Plan{{Waits: two}, {Waits: two}, {Waits: one}, ended, ended, next} {
		crew.follow(p)
		if p.Version == "" && crew.plan != (agree.Plan{}) {
			t.Errorf("%+v is no plan", crew.plan)
		}
	}
	if want := []string{two, one, over}; !slices.Equal(said, want) || crew.plan != next {
		t.Errorf("%q, want %q; %+v", said, want, crew.plan)
	}
}

// TestEveryWorkerSaysOnceWhyItsAttemptRestarted: it sees only the newest plan, so the plan between two attempts may pass it by.
func TestEveryWorkerSaysOnceWhyItsAttemptRestarted(t *testing.T) {
	const why = "attempt 1 ended on worker 2: exit code 1; restart 1 of 5"
	ended := agree.Plan{Version: "a.2", Attempt: 1, Ended: true, Reason: why, After: 12 * time.Second}
	next := agree.Plan{Version: "a.3", Attempt: 2, Run: true, Before: why}
	for name, c := range map[string]struct {
		plans []agree.Plan
		want  []string
	}{
		"it sees both plans":        {[]agree.Plan{ended, next}, []string{why + "; starting again in 12s"}},
		"it sees the last one only": {[]agree.Plan{next, next}, []string{why + "; starting again"}},
		"it begins":                 {[]agree.Plan{{Version: "a.1", Attempt: 1, Run: true}}, nil},
	} {
		crew := crewOf(t, 1)
		var said []string
		crew.Say = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
		for _, p := range c.plans {
			crew.follow(p)
		}
		if !slices.Equal(said, c.want) {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
	}
}

// TestAFullDiskIsSaidOnce, whatever finds no room on it, and so is its end.
func TestAFullDiskIsSaidOnce(t *testing.T) {
	c, now, said := atNine(t)
	full := func(name string) error {
		return &fs.PathError{Op: "write", Path: filepath.Join(t.TempDir(), name), Err: syscall.ENOSPC}
	}
	lease := &checkpoint.Error{Op: "put", URI: "file:///run/pitstop-lease.json", Kind: checkpoint.ErrTransient, Cause: full("lease")}
	for range 3 {
		*now = now.Add(time.Hour)
		c.fault("state directory", full("memory.json.7"))
		c.fault("write of the lease", lease)
		c.fault("sign of life", lease)
	}
	c.fault("state directory", nil)
	c.fault("sign of life", nil)
	if len(*said) != 1 || !strings.HasPrefix((*said)[0], "the disk of /") || !strings.Contains((*said)[0], " is full: make room there") {
		t.Errorf("%q", *said)
	}
	c.fault("write of the lease", errors.New("denied"))
	if n := len(*said); n != 3 || !strings.HasSuffix((*said)[1], " has room again") || (*said)[2] != "write of the lease: denied" {
		t.Errorf("%q", *said)
	}
}
