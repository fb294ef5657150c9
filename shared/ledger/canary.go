package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Canary is the last entry written into a project's log to see whether it comes back.
type Canary struct {
	ID string `json:"id"`
	// Written is when it was written, Returned when a canary last came back.
	Written  time.Time `json:"written,omitzero"`
	Returned time.Time `json:"returned,omitzero"`
	// Way is the way of the last canary that came back.
	Way Way `json:"way,omitzero"`
}

// Way holds the times at the stations of a canary; zero if unknown.
type Way struct {
	// Written is the entry's own time, Received when Cloud Logging had it, Published when its sink had published it on the
	// topic.
	Written   time.Time `json:"written,omitzero"`
	Received  time.Time `json:"received,omitzero"`
	Published time.Time `json:"published,omitzero"`
}

const (
	canaryEvery = 24 * time.Hour
	// canaryTakes is far longer than a log entry needs: Cloud Logging delivers most within seconds.
	canaryTakes  = 30 * time.Minute
	canarySchema = 1
)

// Due reports whether it is time for another canary.
func (c Canary) Due(now time.Time) bool { return now.Sub(c.Written) >= canaryEvery }

// Overdue reports whether another canary should have been written long ago; that holds if none ever was.
func (c Canary) Overdue(now time.Time) bool { return now.Sub(c.Written) > canaryEvery+canaryTakes }

// Missing reports whether the last canary should be back and is not.
func (c Canary) Missing(now time.Time) bool {
	return c.Returned.Before(c.Written) && now.Sub(c.Written) > canaryTakes
}

// Canary reads the last canary of a project; it may be empty.
func (l *Ledger) Canary(ctx context.Context, project string) (c Canary, err error) {
	c, _, err = load[Canary](ctx, l, Canaries, project, canarySchema)
	if errors.Is(err, ErrNotFound) {
		return Canary{}, nil
	}
	return c, err
}

// CanaryWritten notes that a canary was written.
func (l *Ledger) CanaryWritten(ctx context.Context, project, id string, at time.Time) error {
	return l.updateCanary(ctx, project, func(c *Canary) bool {
		if c.ID == id && !c.Returned.IsZero() {
			c.Written = c.Returned // it was faster than this note
			return true
		}
		c.ID, c.Written = id, at
		return true
	})
}

// CanaryReturned notes that a canary came back. It ignores an earlier one than the last, and the last one a second time.
func (l *Ledger) CanaryReturned(ctx context.Context, project, id string, way Way, at time.Time) (news bool, err error) {
	err = l.updateCanary(ctx, project, func(c *Canary) bool {
		news = way.Written.After(c.Written) || c.ID == id && c.Returned.Before(c.Written)
		if news {
			c.ID, c.Returned, c.Way = id, at, way
		}
		return news
	})
	return news, err
}

// updateCanary changes the document of a project's canary, if change returns true.
func (l *Ledger) updateCanary(ctx context.Context, project string, change func(*Canary) bool) error {
	for range tries {
		c, rev, err := load[Canary](ctx, l, Canaries, project, canarySchema)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if !change(&c) {
			return nil
		}
		if _, err := l.store(ctx, Canaries, project, Record{Schema: canarySchema}, c, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s %s: %w", Canaries, project, ErrConflict)
}
