package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ParkFor is how long an entry waits for somebody to find out whom it concerns; LookEvery is how often the entries of a
// zone cause a look at it, at the most, however many they are.
const (
	ParkFor   = 30 * time.Minute
	LookEvery = 5 * time.Second
)

// maxParked and maxParkedBytes bound the entries of a zone: what is parked is one entry per slice and kind, not one per
// worker, and all of them are one document, in which their bytes take a third more.
const (
	maxParked      = 256
	maxParkedBytes = 512 << 10
)

// ParkedEntry is a log entry whose subject is not mapped.
type ParkedEntry struct {
	// Key is the same for entries that say the same of one slice.
	Key string `json:"key"`
	// Raw is the entry as it came.
	Raw []byte    `json:"raw"`
	At  time.Time `json:"at"`
}

type parking struct {
	Entries []ParkedEntry `json:"entries"`
	// Looked is when an entry last caused a look at the zone, Asked when the audit log was last asked about it.
	Looked time.Time `json:"looked,omitzero"`
	Asked  time.Time `json:"asked,omitzero"`
}

const parkingSchema = 1

// wants reports whether an entry is new and has a place.
func (p *parking) wants(e ParkedEntry) bool {
	bytes := len(e.Raw) + len(e.Key)
	for _, o := range p.Entries {
		if o.Key == e.Key {
			return false
		}
		bytes += len(o.Raw) + len(o.Key)
	}
	return len(p.Entries) < maxParked && bytes <= maxParkedBytes
}

// expired reports whether an entry has waited for too long.
func (e ParkedEntry) expired(now time.Time) bool { return now.Sub(e.At) > ParkFor }

// Park keeps an entry of a zone that concerns nobody known, in the place of those that have expired. Look says that the
// caller has to look at the zone: one caller per LookEvery is told so. An entry that says nothing new is not written, and
// one for which there is no place left is not kept: the look finds out what it had to say.
func (l *Ledger) Park(ctx context.Context, project, zone string, e ParkedEntry) (look bool, err error) {
	err = l.parking(ctx, project, zone, func(p *parking) bool {
		p.Entries = slices.DeleteFunc(p.Entries, func(o ParkedEntry) bool { return o.expired(e.At) })
		look = e.At.Sub(p.Looked) >= LookEvery
		keep := p.wants(e)
		if keep {
			p.Entries = append(p.Entries, e)
		}
		if look {
			p.Looked = e.At
		}
		return keep || look
	})
	return look, err
}

// Ask reports whether the caller may ask the audit log about a zone now: one caller in a minute may.
func (l *Ledger) Ask(ctx context.Context, project, zone string, now time.Time) (ask bool, err error) {
	err = l.parking(ctx, project, zone, func(p *parking) bool {
		if ask = now.Truncate(time.Minute).After(p.Asked); ask {
			p.Asked = now.UTC().Truncate(time.Minute)
		}
		return ask
	})
	return ask && err == nil, err
}

// ParkedIn returns the entries of a zone that still wait.
func (l *Ledger) ParkedIn(ctx context.Context, project, zone string, now time.Time) ([]ParkedEntry, error) {
	var p parking
	_, err := l.load(ctx, Parked, project+"/"+zone, parkingSchema, &p)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return slices.DeleteFunc(p.Entries, func(e ParkedEntry) bool { return e.expired(now) }), err
}

// Unpark forgets entries: those named, and those that have waited for too long. It returns the latter.
func (l *Ledger) Unpark(ctx context.Context, project, zone string, keys []string, now time.Time) (expired []ParkedEntry, err error) {
	err = l.parking(ctx, project, zone, func(p *parking) bool {
		expired = nil
		before := len(p.Entries)
		p.Entries = slices.DeleteFunc(p.Entries, func(e ParkedEntry) bool {
			if slices.Contains(keys, e.Key) {
				return true
			}
			if e.expired(now) {
				expired = append(expired, e)
				return true
			}
			return false
		})
		return len(p.Entries) != before
	})
	return expired, err
}

// parking changes the entries of a zone; change reports whether there is anything to write.
func (l *Ledger) parking(ctx context.Context, project, zone string, change func(*parking) bool) error {
	id := project + "/" + zone
	for range tries {
		var p parking
		rev, err := l.load(ctx, Parked, id, parkingSchema, &p)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if !change(&p) {
			return nil
		}
		if _, err := l.store(ctx, Parked, id, record{Schema: parkingSchema}, p, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s %s: %w", Parked, id, ErrConflict)
}
