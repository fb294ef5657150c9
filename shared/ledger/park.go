package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ParkFor is how long an entry waits until its subject is found. LookEvery is the shortest time between two looks at a zone
// that its entries cause, however many they are.
const (
	ParkFor   = 30 * time.Minute
	LookEvery = 5 * time.Second
)

// maxParked and maxParkedBytes bound the entries of a zone. One entry per slice and kind is parked, not one per worker. All
// of them are in one document, where their bytes take a third more. Lines have a part of that room alone, because anybody can write one.
const (
	maxParked      = 256
	maxParkedBytes = 512 << 10
	maxLines       = 32
	maxLineBytes   = 64 << 10
)

// ParkedEntry is a log entry with an unknown subject.
type ParkedEntry struct {
	// Key is the same for entries with the same news about one slice.
	Key string `json:"key"`
	// Raw is the entry as received.
	Raw []byte    `json:"raw"`
	At  time.Time `json:"at"`
	// Line says that anybody can have written it. Such an entry gets no look from Park: see LookForLine.
	Line bool `json:"line,omitzero"`
}

type parking struct {
	Entries []ParkedEntry `json:"entries"`
	// Looked is when an entry last caused a look at the zone, Asked when the audit log was last asked about it.
	Looked time.Time `json:"looked,omitzero"`
	Asked  time.Time `json:"asked,omitzero"`
}

const parkingSchema = 1

// since is when the first entry was parked; zero if there is none. As the document's due time it makes the query of
// ParkedZones find the document.
func (p *parking) since() (first time.Time) {
	for _, e := range p.Entries {
		if first.IsZero() || e.At.Before(first) {
			first = e.At
		}
	}
	return first
}

// wants reports whether an entry is new and fits.
func (p *parking) wants(e ParkedEntry) bool {
	count, bytes := 1, len(e.Raw)+len(e.Key)
	for _, o := range p.Entries {
		if o.Key == e.Key {
			return false
		}
		if o.Line || !e.Line {
			count, bytes = count+1, bytes+len(o.Raw)+len(o.Key)
		}
	}
	if e.Line {
		return count <= maxLines && bytes <= maxLineBytes
	}
	return count <= maxParked && bytes <= maxParkedBytes
}

// expired reports whether an entry has waited for too long.
func (e ParkedEntry) expired(now time.Time) bool { return now.Sub(e.At) > ParkFor }

// Park keeps an entry of a zone with an unknown subject, and drops expired ones. look says that the caller must look at the
// zone; one caller per LookEvery gets that order. An entry without news is not written. One without room is not kept,
// because the look at the zone finds its news anyway.
func (l *Ledger) Park(ctx context.Context, project, zone string, e ParkedEntry) (look bool, err error) {
	err = l.parking(ctx, project, zone, func(p *parking) bool {
		p.Entries = slices.DeleteFunc(p.Entries, func(o ParkedEntry) bool { return o.expired(e.At) })
		look = !e.Line && e.At.Sub(p.Looked) >= LookEvery
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

// Ask reports whether the caller may query the audit log about a zone now; one caller in a minute may.
func (l *Ledger) Ask(ctx context.Context, project, zone string, now time.Time) (ask bool, err error) {
	err = l.parking(ctx, project, zone, func(p *parking) bool {
		if ask = now.Truncate(time.Minute).After(p.Asked); ask {
			p.Asked = now.UTC().Truncate(time.Minute)
		}
		return ask
	})
	return ask && err == nil, err
}

// ParkedZone is a zone with parked entries.
type ParkedZone struct {
	Zone string
	// Waiting are the entries that still wait. Expired says that others have waited too long, so Unpark has work.
	Waiting []ParkedEntry
	Expired bool
}

// ParkedZones returns the zones of a project with parked entries, in the order of their names. It returns the readable ones
// together with an error for the others. The query finds only documents that hold entries.
func (l *Ledger) ParkedZones(ctx context.Context, project string, now time.Time) (zones []ParkedZone, err error) {
	found, err := l.query(ctx, Parked, Query{Due: now.UTC()})
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, r := range found {
		zone, ours := strings.CutPrefix(r.ID, project+"/")
		if !ours {
			continue
		}
		p, err := decode[parking](Parked, r.ID, parkingSchema, r)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		waiting := slices.DeleteFunc(slices.Clone(p.Entries), func(e ParkedEntry) bool { return e.expired(now) })
		if len(p.Entries) > 0 {
			zones = append(zones, ParkedZone{Zone: zone, Waiting: waiting, Expired: len(waiting) < len(p.Entries)})
		}
	}
	return zones, errors.Join(faults...)
}

// Unpark forgets the named entries and the expired ones. It returns the expired ones.
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

// parking changes the entries of a zone; change reports whether a write is needed.
func (l *Ledger) parking(ctx context.Context, project, zone string, change func(*parking) bool) error {
	id := project + "/" + zone
	for range tries {
		p, rev, err := load[parking](ctx, l, Parked, id, parkingSchema)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		p.Entries = slices.Clone(p.Entries)
		if !change(&p) {
			return nil
		}
		if _, err := l.store(ctx, Parked, id, Record{Schema: parkingSchema, Due: p.since()}, p, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s %s: %w", Parked, id, ErrConflict)
}
