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
	"testing"

	"pitstop.internal/shared/checkpoint"
)

// TestACheckpointThatIsGoneIsNotResumedFrom: people clear a directory, and begin anew.
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
