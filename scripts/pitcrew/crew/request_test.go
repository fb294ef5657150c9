//go:build unix

package crew

import (
	"context"
	"errors"
	"testing"
	"time"

	"pitstop.internal/shared/checkpoint"
)

// unreadable is a storage that nothing can be read of.
type unreadable struct{ checkpoint.Store }

func (unreadable) Get(context.Context, string) (checkpoint.Object, error) {
	return checkpoint.Object{}, errors.New("denied")
}

// TestWhetherARequestCouldBeReadIsKnown: where the bucket cannot be read, a request that is left there is not seen, and only
// the crew knows that.
func TestWhetherARequestCouldBeReadIsKnown(t *testing.T) {
	now := time.Date(2026, 11, 12, 2, 14, 1, 0, time.UTC)
	files := checkpoint.NewFiles("/", time.Now)
	dir := "file://" + t.TempDir()
	for name, c := range map[string]struct {
		store checkpoint.Store
		want  time.Time
	}{
		"there is none":     {files, now},
		"it cannot be read": {unreadable{files}, time.Time{}},
	} {
		c1 := &crew{
			Options: Options{Store: c.store, Directory: dir, Say: func(string, ...any) {}},
			ctx:     t.Context(), do: make(chan func(), 1), clock: func() time.Time { return now }, seen: map[string]string{},
		}
		c1.readRequest()
		(<-c1.do)()
		if !c1.requestRead.Equal(c.want) {
			t.Errorf("%s: read at %v, want %v", name, c1.requestRead, c.want)
		}
	}
}
