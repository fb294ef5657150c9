package logs

import (
	"context"
	"errors"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries"
)

// timeline hands on the entries of one file, which come in the order of their times, and tells what could not be read.
type timeline struct {
	source *entries.Stream[entries.Readings]
	fault  func(error)

	now    []logfile.Reading
	latest time.Time
}

// errMixed says that the times of a file go neither up nor down.
var errMixed = errors.New("its time is out of order: the entries of a file have to go up or down in time, as gcloud logging read --order=asc or --order=desc writes them")

// next is the next entry, or nil at the end. It is good until the next call.
func (t *timeline) next(ctx context.Context) (*events.Entry, error) {
	for {
		for len(t.now) > 0 {
			r := &t.now[0]
			t.now = t.now[1:]
			if r.Err != nil {
				t.fault(r.Err)
				continue
			}
			at := r.Happened()
			if !at.IsZero() && t.latest.Sub(at) > logfile.Jumbled {
				return nil, cli.Usage("%s: %w", r.Where(), errMixed)
			}
			if at.After(t.latest) {
				t.latest = at
			}
			return &r.Entry, nil
		}
		r := t.source.Next(ctx)
		if r == nil {
			return nil, ctx.Err()
		}
		t.now = r.All
	}
}

// merged hands on the entries of several timelines in the order of their times.
type merged struct {
	lines []*timeline
	heads []*events.Entry // the next entry of each, nil at its end
	first int             // whose head was handed on last
}

// next is the next entry, or nil at the end. It is good until the next call.
func (m *merged) next(ctx context.Context) (*events.Entry, error) {
	from, to := m.first, m.first+1
	if m.heads == nil {
		m.heads = make([]*events.Entry, len(m.lines))
		from, to = 0, len(m.lines)
	}
	for i := from; i < to; i++ {
		var err error
		if m.heads[i], err = m.lines[i].next(ctx); err != nil {
			return nil, err
		}
	}
	var first *events.Entry
	for i, h := range m.heads {
		if h != nil && (first == nil || h.Time.Before(first.Time)) {
			first, m.first = h, i
		}
	}
	return first, nil
}
