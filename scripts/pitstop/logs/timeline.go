package logs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries"
)

// direction is how the times of a file go.
type direction int

const (
	undecided direction = iota
	ascending
	descending
)

// timeline hands on the entries of one file in the order of their times. A file that goes up is handed on as it is read;
// one that goes down is kept, in short, in a temporary file until its end is known.
type timeline struct {
	source *entries.Stream[entries.Readings]
	fault  func(error)

	goes direction
	// first and last are the times of the first and the last entry. least and most bound the times of those that say when they happened.
	first, last, least, most time.Time
	kept                     *spool
	// now are the entries handed on at present. With drain the kept ones come next, and then those that wait. back is
	// memory for the kept ones.
	now     []logfile.Reading
	i       int
	back    []logfile.Reading
	drain   bool
	waiting []logfile.Reading
	ended   bool
}

// next is the next entry, or nil at the end. It is good until the next call.
func (t *timeline) next(ctx context.Context) (*events.Entry, error) {
	for t.i == len(t.now) {
		if t.ended && !t.drain && len(t.waiting) == 0 {
			return nil, nil
		}
		if err := t.fill(ctx); err != nil {
			return nil, err
		}
	}
	t.i++
	return &t.now[t.i-1].Entry, nil
}

// fill finds the entries to hand on next.
func (t *timeline) fill(ctx context.Context) (err error) {
	t.i, t.now = 0, nil
	switch {
	case t.drain:
		t.back, err = t.kept.next(t.goes == descending, t.back[:0])
		t.now = t.back
		t.drain = len(t.kept.runs) > 0
		return err
	case len(t.waiting) > 0:
		t.now, t.waiting = t.waiting, nil
		return nil
	}
	r := t.source.Next(ctx)
	if r == nil {
		t.ended, t.drain = true, t.kept != nil && len(t.kept.runs) > 0
		if t.goes == undecided && t.last.Before(t.first) {
			t.goes = descending
		}
		return ctx.Err()
	}
	all, err := t.ordered(r.All)
	if err != nil || len(all) == 0 || t.goes == ascending && t.kept == nil {
		t.now = all
		return err
	}
	if t.kept == nil {
		if t.kept, err = newSpool(); err != nil {
			return err
		}
	}
	if t.goes == ascending { // it was undecided so far
		t.drain, t.waiting = len(t.kept.runs) > 0, all
		return nil
	}
	return t.kept.add(all)
}

func (t *timeline) close() {
	if t.kept != nil {
		t.kept.close()
	}
}

// errMixed says that the times of a file go neither up nor down.
var errMixed = errors.New("its time is before and after those around it; report takes entries in ascending or descending order, as gcloud logging read --order=asc or --order=desc writes them")

// ordered tells the faults of a run of entries and returns the others, whose times it holds to go one way. An entry that does not say
// when it happened is not held to it: when it was received may be later than what happened next.
func (t *timeline) ordered(all []logfile.Reading) ([]logfile.Reading, error) {
	n := 0
	for i := range all {
		r := &all[i]
		if r.Err != nil {
			t.fault(r.Err)
			continue
		}
		if !t.inOrder(r.Entry) {
			return nil, cli.Usage("%s: %w", r.Where(), errMixed)
		}
		all[n] = *r
		n++
	}
	return all[:n], nil
}

// jumbled is how far entries may be out of order: workers speak at the same moment, and a log takes up to a second to get
// to know of it.
const jumbled = 2 * time.Second

// inOrder reports whether the time of an entry goes the way of those before.
func (t *timeline) inOrder(e events.Entry) bool {
	at := e.Time
	if at.IsZero() {
		return true
	}
	if t.first.IsZero() {
		t.first = at
	}
	t.last = at
	if at.Equal(e.Received) {
		return true
	}
	if t.least.IsZero() {
		t.least, t.most = at, at
	}
	switch t.goes {
	case undecided:
		switch {
		case at.Sub(t.least) > jumbled:
			t.goes = ascending
		case t.most.Sub(at) > jumbled:
			t.goes = descending
		}
	case ascending:
		if t.most.Sub(at) > jumbled {
			return false
		}
	case descending:
		if at.Sub(t.least) > jumbled {
			return false
		}
	}
	if at.Before(t.least) {
		t.least = at
	}
	if at.After(t.most) {
		t.most = at
	}
	return true
}

// spool keeps entries in a temporary file, a run at a time, and gives the runs back from either end.
type spool struct {
	f *os.File
	// runs are the places of the runs that are left; size is where the next one goes.
	runs []extent
	size int64
	buf  bytes.Buffer
}

type extent struct{ from, to int64 }

func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "pitstop-*")
	if err != nil {
		return nil, fmt.Errorf("a record in descending order needs room for a temporary file: %w", err)
	}
	_ = os.Remove(f.Name()) //nolint:errcheck // where that is allowed it is gone whatever becomes of the program
	return &spool{f: f}, nil
}

// keptEntry is an entry in the temporary file. Its encoding has no false behind a pointer: Resumes says that a call sets suspend to it.
type keptEntry struct {
	events.Entry
	Resumes bool
}

func (s *spool) add(all []logfile.Reading) error {
	run := make([]keptEntry, len(all))
	for i := range all {
		suspend := all[i].Entry.Call.Suspend
		run[i] = keptEntry{all[i].Entry, suspend != nil && !*suspend}
	}
	s.buf.Reset()
	if err := gob.NewEncoder(&s.buf).Encode(run); err != nil {
		return err
	}
	if _, err := s.f.WriteAt(s.buf.Bytes(), s.size); err != nil {
		return fmt.Errorf("a record in descending order needs room for a temporary file: %w", err)
	}
	to := s.size + int64(s.buf.Len())
	s.runs = append(s.runs, extent{s.size, to})
	s.size = to
	return nil
}

// next gives a run back: the first one, or the last one from its end.
func (s *spool) next(backward bool, into []logfile.Reading) ([]logfile.Reading, error) {
	at := s.runs[0]
	if backward {
		at = s.runs[len(s.runs)-1]
		s.runs = s.runs[:len(s.runs)-1]
	} else {
		s.runs = s.runs[1:]
	}
	var run []keptEntry
	if err := gob.NewDecoder(bufio.NewReader(io.NewSectionReader(s.f, at.from, at.to-at.from))).Decode(&run); err != nil {
		return into, err
	}
	if backward {
		slices.Reverse(run)
	}
	for _, k := range run {
		if k.Resumes {
			k.Call.Suspend = new(bool)
		}
		into = append(into, logfile.Reading{Entry: k.Entry})
	}
	return into, nil
}

func (s *spool) close() {
	_ = s.f.Close()           //nolint:errcheck // it is not needed any more
	_ = os.Remove(s.f.Name()) //nolint:errcheck // most systems have done so
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
