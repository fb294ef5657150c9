//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/shared/checkpoint"
)

// TestACheckpointThatIsGoneIsNotResumedFrom: people clear a directory, and begin again.
func TestACheckpointThatIsGoneIsNotResumedFrom(t *testing.T) {
	c := crewOf(t, 1)
	step := filepath.Join(strings.TrimPrefix(c.Directory, "file://"), "40")
	if err := errors.Join(os.Mkdir(step, 0o700), os.WriteFile(filepath.Join(step, "data"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{40, -1} {
		c.verify(nil)
		(<-c.do)()
		if c.saved() != want {
			t.Errorf("%+v, want step %d", c.found, want)
		}
		if err := os.RemoveAll(step); err != nil {
			t.Fatal(err)
		}
	}
}

// broken is a storage that lists nothing.
type broken struct {
	checkpoint.Store
	kind error
}

func (b *broken) List(ctx context.Context, uri string, o checkpoint.ListOptions) (checkpoint.Listing, error) {
	if b.kind != nil {
		return checkpoint.Listing{}, &checkpoint.Error{Op: "list", URI: uri, Kind: b.kind, Text: "injected"}
	}
	return b.Store.List(ctx, uri, o)
}

// TestAnAttemptWaitsUntilItIsKnownWhatItResumesFrom: it would begin at step 0 because the bucket did not answer once.
func TestAnAttemptWaitsUntilItIsKnownWhatItResumesFrom(t *testing.T) {
	for name, kind := range map[string]error{"it works again": nil, "it is not permitted, which a person has to mend": checkpoint.ErrPermission, "for too long": checkpoint.ErrTransient} {
		c := crewOf(t, 1)
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		c.clock = func() time.Time { return now }
		store := &broken{Store: c.Store, kind: checkpoint.ErrTransient}
		c.Store = store
		looks := func(d time.Duration) {
			for end := now.Add(d); now.Before(end); now = now.Add(c.Times.Hurry) {
				if c.look(now); c.looked.busy {
					(<-c.do)()
				}
			}
		}
		quiet := now
		c.refresh(quiet)
		(<-c.do)()
		now = now.Add(c.Times.Hurry)
		looks(c.Times.Unread - time.Minute)
		if !c.view(now).Looked.Before(quiet) {
			t.Fatalf("%s: it begins", name)
		}
		store.kind = kind
		if kind == checkpoint.ErrTransient { //nolint:errorlint // the case of this table
			looks(time.Minute)
		} else {
			looks(c.Times.Hurry)
		}
		if c.view(now).Looked.Before(quiet) {
			t.Errorf("%s: it waits", name)
		}
	}
}

// fickle is a storage that can be read now and then.
type fickle struct {
	checkpoint.Store
	down bool
}

func (f *fickle) Get(ctx context.Context, uri string) (checkpoint.Object, error) {
	if f.down {
		return checkpoint.Object{}, errors.New("denied")
	}
	return f.Store.Get(ctx, uri)
}

func TestTroubleWithTheRequestIsToldAndSoIsItsEnd(t *testing.T) {
	c := crewOf(t, 1)
	var said []string
	c.Say = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	f := &fickle{Store: c.Store}
	c.Store = f
	for _, f.down = range []bool{true, true, false, false, true} {
		c.readRequest()
		(<-c.do)()
	}
	const name = "request beside the checkpoints"
	if want := []string{name + ": denied", name + ": it works again", name + ": denied"}; !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
}

// TestWhoIsToldToEndMendsNothing: whom a crew waited for is as silent as before when it ends.
func TestWhoIsToldToEndMendsNothing(t *testing.T) {
	c := crewOf(t, 1)
	c.Machine.Workers, c.leader.Workers, c.leader.Stage = 2, 2, agree.Gathering
	var said []string
	c.Say = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	want := []string{
		"the training starts when all workers are here; waiting for 2 of 2: worker 0, not heard yet; worker 1, not heard yet",
	}
	if c.awaited(time.Now()); !slices.Equal(said, want) {
		t.Fatalf("%q, want %q", said, want)
	}
	c.told = syscall.SIGTERM
	if c.awaited(time.Now()); !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}
