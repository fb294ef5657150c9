package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
)

// A replay holds every entry that it plays, for it orders them by time before it begins, and these many at most. Of the entries
// from which nothing follows it lists only the first ones.
const (
	maxEntries = 1_000_000
	maxIgnored = 10_000
)

// faulty tells what could not be read, and counts it.
type faulty struct {
	errOut io.Writer
	n      int
	// unusable says that a whole file could not be read.
	unusable bool
}

// mostTold is how many faults are told one by one.
const mostTold = 20

func (f *faulty) tell(err error) {
	f.n++
	f.unusable = f.unusable || errors.Is(err, logfile.ErrUnusable)
	if f.n <= mostTold {
		tell(f.errOut, "pitstop: "+oneLine(err))
	}
}

// end says how many faults were not told.
func (f *faulty) end() {
	if more := f.n - mostTold; more > 0 {
		tell(f.errOut, "pitstop: "+events.Number(int64(more))+" more that could not be read; explain tells each")
	}
}

// held are the entries to replay.
type held struct {
	faulty
	records []logfile.Record
	// played, ignored and left count the entries that are played, from which nothing follows, and for which there is no
	// room.
	played, ignored, left int
}

// readRecords reads the entries of files; - is standard input. Text that is no entry is a fault. An entry that says nothing is held with
// the others: the story tells it.
func readRecords(ctx context.Context, files []string, m *meter, in io.Reader, errOut io.Writer) (h held, err error) {
	h.errOut = errOut
	read := 0
	for _, name := range files {
		next, end := split(name, in, nil)
		for b := new(logfile.Batch); next(b); {
			if ctx.Err() != nil {
				end()
				m.clear()
				return h, unplayed(read, errOut)
			}
			for _, it := range b.Items {
				if it.Err == nil {
					h.hold(it.Read())
					continue
				}
				m.clear()
				h.faulty.tell(it.Err)
			}
			read += len(b.Items)
			m.at(0, []string{events.Number(int64(read)) + " entries read"}, float64(read), "entries")
		}
		end()
	}
	m.clear()
	h.faulty.end()
	h.leftOut()
	return h, nil
}

// unplayed tells of an interruption before the first entry was played.
func unplayed(read int, errOut io.Writer) error {
	tell(errOut, fmt.Sprintf("pitstop: interrupted after %s entries were read; none was played", events.Number(int64(read))))
	return errInterrupted
}

// leftOut says how many entries are neither played nor listed.
func (h *held) leftOut() {
	if h.left > 0 {
		h.n++
		tell(h.errOut, fmt.Sprintf("pitstop: more than %s entries to play: the last %s are left out; replay takes fewer at a time, report takes any number",
			events.Number(maxEntries), events.Number(int64(h.left))))
	}
	if more := h.ignored - maxIgnored; more > 0 {
		tell(h.errOut, fmt.Sprintf("pitstop: nothing follows from %s entries: replay does not list the last %s of them",
			events.Number(int64(h.ignored)), events.Number(int64(more))))
	}
}

// hold keeps an entry if there is room for it.
func (h *held) hold(r logfile.Reading) {
	if r.Err == nil && r.Entry.Ignored != "" {
		if h.ignored++; h.ignored <= maxIgnored {
			h.records = append(h.records, r.Clone())
		}
		return
	}
	if h.played == maxEntries {
		h.left++
		return
	}
	h.played++
	h.records = append(h.records, r.Clone())
}

// noEntries reports that there was no entry, and a likely reason.
func noEntries(errOut io.Writer) {
	tell(errOut, "pitstop: 0 entries; gcloud logging read looks back one day, unless --freshness says more")
}
