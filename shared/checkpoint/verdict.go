package checkpoint

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
)

// ReadVerdict reads the crew's verdict on an attempt. Without a verdict the error is ErrNotExist, for one of a newer release
// events.ErrNewer, and for any other content ErrMalformed. A verdict of the previous release names no life, so it is
// ErrMalformed too.
func ReadVerdict(ctx context.Context, s Store, dir string, attempt int) (events.CrewVerdict, error) {
	uri := Join(dir, events.VerdictObject(attempt))
	o, err := s.Get(ctx, uri)
	if err != nil {
		return events.CrewVerdict{}, err
	}
	v, err := decodeVerdict(o.Content)
	if err == nil && v.Attempt != attempt {
		err = malformed("crew verdict", fmt.Errorf("it names attempt %d", v.Attempt))
	}
	if err != nil {
		return events.CrewVerdict{}, fmt.Errorf("%s: %w", uri, err)
	}
	return v, nil
}

func decodeVerdict(data []byte) (events.CrewVerdict, error) {
	if err := checkSchema("crew verdict", data); err != nil {
		return events.CrewVerdict{}, err
	}
	v, err := events.DecodeCrewVerdict(data)
	if err != nil {
		return events.CrewVerdict{}, malformed("crew verdict", err)
	}
	return v, nil
}

// CreateVerdict writes the crew's verdict on an attempt. If there is one already, that first verdict holds, and the error is
// ErrConflict.
func CreateVerdict(ctx context.Context, s Store, dir string, v events.CrewVerdict) error {
	v.Schema = events.Schema
	if err := v.Validate(); err != nil {
		return fmt.Errorf("crew verdict: %s: %w", oneLine(err.Error()), ErrInvalid)
	}
	content, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("crew verdict: %s: %w", oneLine(err.Error()), ErrInvalid)
	}
	_, err = s.Put(ctx, Join(dir, events.VerdictObject(v.Attempt)), content, 0)
	return err
}

// Confirms reports whether a verdict is about the attempt and the life that a lease names now. A verdict on an earlier
// attempt or another life no longer counts.
func (l Lease) Confirms(v events.CrewVerdict) bool {
	for _, a := range l.Admitted {
		if a.Slice != v.Life.Slice {
			continue
		}
		sameZone := a.Incarnation.Zone == "" || v.Life.Incarnation.Zone == "" || a.Incarnation.Zone == v.Life.Incarnation.Zone
		sameWorkers := a.Workers == "" || v.Life.Workers == "" || a.Workers == v.Life.Workers
		return l.Attempt == v.Attempt && sameZone && sameWorkers
	}
	return false
}
