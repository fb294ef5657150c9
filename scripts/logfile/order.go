package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Jumbled is how far entries of a file may be out of the order of their times: workers speak at the same moment, and a log takes up
// to a second to get to know of it.
const Jumbled = 2 * time.Second

// GoesUp reports whether the entries with which a text begins go up in time. Those of a text that goes down do not, nor do a few that
// are of the same moment.
func GoesUp(head []byte) bool {
	var first, last time.Time
	Records(bytes.NewReader(head), "", func(r Record, err error) {
		if at := (Item{r, err}).Read().Happened(); !at.IsZero() {
			if first.IsZero() {
				first = at
			}
			last = at
		}
	})
	return last.Sub(first) > Jumbled
}

// place is where the entries of a batch lie in a text, and what its splitter knew there.
type place struct {
	state
	scanned, size int
	entries       int
}

// EarlierFirst hands on the entries of a text from its earlier end. It first goes through the text, to tell the faults and to find where
// the entries lie. Then it reads them there, a batch at a time.
type EarlierFirst struct {
	split  *Splitter // nil when it is through
	name   string
	text   io.ReaderAt
	places []place
	down   bool
}

// NewEarlierFirst reads the entries of r, which is called name where places are named. Once r is read, text holds the same.
func NewEarlierFirst(r io.Reader, name string, text io.ReaderAt) *EarlierFirst {
	return &EarlierFirst{split: NewSplitter(r, name), name: name, text: text}
}

// Next fills a batch, and reports whether there was anything left to fill it with.
func (e *EarlierFirst) Next(b *Batch) bool {
	for e.split != nil && e.split.Next(b) {
		all := len(b.Items)
		b.Items = slices.DeleteFunc(b.Items, func(it Item) bool { return it.Err == nil })
		if b.place.entries = all - len(b.Items); b.place.entries > 0 {
			e.places = append(e.places, b.place)
		}
		if len(b.Items) > 0 {
			return true
		}
	}
	if e.split != nil {
		e.split = nil
		first := e.time(b)
		if e.turn(); !e.time(b).Before(first) {
			e.turn()
		}
	}
	if len(e.places) == 0 {
		return false
	}
	e.fill(b, e.places[0])
	e.places = e.places[1:]
	return true
}

// turn makes the other end the first one.
func (e *EarlierFirst) turn() {
	slices.Reverse(e.places)
	e.down = !e.down
}

// time is that of the first entry which has one.
func (e *EarlierFirst) time(b *Batch) time.Time {
	for _, p := range e.places {
		e.fill(b, p)
		for _, it := range b.Items {
			if r := it.Read(); r.Err == nil && !r.Entry.Time.IsZero() {
				return r.Entry.Time
			}
		}
	}
	return time.Time{}
}

// fill reads the entries of a place again.
func (e *EarlierFirst) fill(b *Batch, p place) {
	if cap(b.buf) < p.size || cap(b.buf) > maxKept {
		b.buf = make([]byte, max(p.size, batchBytes))
	}
	n, err := e.text.ReadAt(b.buf[:p.size], p.base)
	b.Items = b.Items[:0]
	s := Splitter{name: e.name, batch: b, buf: b.buf[:n], state: p.state}
	s.scan(p.scanned)
	b.Items = slices.DeleteFunc(b.Items, func(it Item) bool { return it.Err != nil })
	if len(b.Items) != p.entries {
		if err == nil || errors.Is(err, io.EOF) {
			err = errors.New("it changed while it was read; read a copy of it")
		}
		b.Items = append(b.Items[:0], Item{Record{File: e.name}, Unusable(fmt.Errorf("%s: %w", e.name, err))})
	}
	if e.down {
		slices.Reverse(b.Items)
	}
}
