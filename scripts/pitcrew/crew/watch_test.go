//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pitstop.internal/shared/checkpoint"
)

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
