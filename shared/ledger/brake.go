package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitstop.internal/shared/evidence"
)

// Limits bound the destructive calls of an hour.
type Limits struct {
	Project int
	Zone    int
}

// DefaultLimits hold if a deployment sets none.
var DefaultLimits = Limits{Project: 30, Zone: 10}

// slots are the calls of one hour in one place, by the ID of the call.
type slots struct {
	Taken []string `json:"taken"`
}

const slotsSchema = 1

// KeepSlots is how long the brake's hours are stored.
const KeepSlots = 48 * time.Hour

// ErrBraked says that the brake allows no further destructive call in this hour.
var ErrBraked = errors.New("the brake holds")

// Take takes a slot for a destructive call, or returns ErrBraked with the limit that is reached. The same call takes one
// slot, however often it is tried within the hour.
func (l *Ledger) Take(ctx context.Context, project, zone, call string, limits Limits, now time.Time) error {
	taken, err := l.take(ctx, hourOf(project, zone, now), call, limits.Zone, now)
	if err != nil {
		return err
	}
	if _, err := l.take(ctx, hourOf(project, "", now), call, limits.Project, now); err != nil {
		if !taken {
			return err // the slot belongs to an earlier try, which may have made the call
		}
		return errors.Join(err, l.giveBack(ctx, hourOf(project, zone, now), call, now))
	}
	return nil
}

// GiveBack returns the slot of a refused call, because the call destroyed nothing.
func (l *Ledger) GiveBack(ctx context.Context, project, zone, call string, now time.Time) error {
	return errors.Join(l.giveBack(ctx, hourOf(project, zone, now), call, now), l.giveBack(ctx, hourOf(project, "", now), call, now))
}

// Slots returns how many slots of this hour are taken in the project and in the zone.
func (l *Ledger) Slots(ctx context.Context, project, zone string, now time.Time) (inProject, inZone int, err error) {
	p, _, err := load[slots](ctx, l, Brake, hourOf(project, "", now), slotsSchema)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return 0, 0, err
	}
	z, _, err := load[slots](ctx, l, Brake, hourOf(project, zone, now), slotsSchema)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return 0, 0, err
	}
	return len(p.Taken), len(z.Taken), nil
}

// NextHour is when the brake releases.
func NextHour(now time.Time) time.Time { return now.UTC().Truncate(time.Hour).Add(time.Hour) }

func hourOf(project, zone string, now time.Time) string {
	return project + "/" + zone + "/" + now.UTC().Format("2006010215")
}

// take takes a slot of one place and hour. taken says that the call did not have it before.
func (l *Ledger) take(ctx context.Context, id, call string, limit int, now time.Time) (taken bool, err error) {
	for range tries {
		s, rev, err := load[slots](ctx, l, Brake, id, slotsSchema)
		switch {
		case err != nil && !errors.Is(err, ErrNotFound):
			return false, err
		case slices.Contains(s.Taken, call):
			return false, nil
		case len(s.Taken) >= limit:
			return false, fmt.Errorf("%w: %d destructive calls in this hour is the limit of %s", ErrBraked, limit, id)
		}
		s.Taken = append(slices.Clip(s.Taken), call)
		if _, err := l.store(ctx, Brake, id, Record{Schema: slotsSchema, Expires: now.Add(KeepSlots)}, s, rev); !errors.Is(err, ErrConflict) {
			return err == nil, err
		}
	}
	return false, fmt.Errorf("ledger: %s %s: %w", Brake, id, ErrConflict)
}

func (l *Ledger) giveBack(ctx context.Context, id, call string, now time.Time) error {
	for range tries {
		s, rev, err := load[slots](ctx, l, Brake, id, slotsSchema)
		switch {
		case errors.Is(err, ErrNotFound):
			return nil
		case err != nil:
			return err
		}
		i := slices.Index(s.Taken, call)
		if i < 0 {
			return nil
		}
		s.Taken = slices.Delete(slices.Clone(s.Taken), i, i+1)
		if _, err := l.store(ctx, Brake, id, Record{Schema: slotsSchema, Expires: now.Add(KeepSlots)}, s, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s %s: %w", Brake, id, ErrConflict)
}

// allID is the key of the pause of everything.
const allID = "all"

const pauseSchema = 1

// SetPause pauses everything, or lifts the pause with nil.
func (l *Ledger) SetPause(ctx context.Context, p *evidence.Pause) error {
	for range tries {
		_, rev, err := load[evidence.Pause](ctx, l, Pauses, allID, pauseSchema)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		next := evidence.Pause{}
		if p != nil {
			next = *p
		}
		if _, err := l.store(ctx, Pauses, allID, Record{Schema: pauseSchema}, next, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s: %w", Pauses, ErrConflict)
}

// Pause is the pause of everything, or nil.
func (l *Ledger) Pause(ctx context.Context) (*evidence.Pause, error) {
	p, _, err := load[evidence.Pause](ctx, l, Pauses, allID, pauseSchema)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && p == (evidence.Pause{}):
		return nil, nil //nolint:nilnil // no pause is the usual case, not an error
	case err != nil:
		return nil, err
	}
	return &p, nil
}
