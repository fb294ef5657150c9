package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// LineLooks is how many looks lines may cause in a project within a minute. The rest of what the API grants is patrol's.
const LineLooks = 30

// looks are the looks in a project that lines have caused in the last minute. The document lies beside the parked entries, under a key
// that no zone has.
type looks struct {
	Made []look `json:"made"`
}

type look struct {
	Zone string    `json:"zone"`
	At   time.Time `json:"at"`
}

const looksSchema = 1

// LookForLine reports whether a line may cause a look at a zone now. Anybody can write lines, and choose the zone in them. So all of them
// together cause one look at a zone in LookEvery, and LineLooks in the project in a minute. Shared says that the line came in the
// shadow of another line's look at the same zone.
func (l *Ledger) LookForLine(ctx context.Context, project, zone string, now time.Time) (may, shared bool, err error) {
	for range tries {
		made, rev, err := load[looks](ctx, l, Parked, project, looksSchema)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return false, false, err
		}
		recent := slices.DeleteFunc(slices.Clone(made.Made), func(o look) bool { return now.Sub(o.At) >= time.Minute })
		shared = slices.ContainsFunc(recent, func(o look) bool { return o.Zone == zone && now.Sub(o.At) < LookEvery })
		if shared || len(recent) >= LineLooks {
			return false, shared, nil
		}
		recent = append(recent, look{zone, now.UTC()})
		if _, err := l.store(ctx, Parked, project, Record{Schema: looksSchema}, looks{recent}, rev); !errors.Is(err, ErrConflict) {
			return err == nil, false, err
		}
	}
	return false, false, fmt.Errorf("ledger: %s %s: %w", Parked, project, ErrConflict)
}
