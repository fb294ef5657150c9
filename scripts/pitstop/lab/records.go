package lab

import (
	"context"
	"fmt"
	"io"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries"
	"pitstop.internal/scripts/pitstop/terminal"
)

// A replay holds every entry that it plays, for it orders them by time before it begins, and these many at most. Of the entries
// from which nothing follows it lists only the first ones.
const (
	maxEntries = 1_000_000
	maxIgnored = 10_000
)

// held are the entries to replay.
type held struct {
	entries.Faults
	records []logfile.Record
	// played, ignored and left count the entries that are played, from which nothing follows, and for which there is no
	// room.
	played, ignored, left int
}

// readRecords reads the entries of files; - is standard input. Text that is no entry is a fault. An entry that says nothing is held with
// the others: the story tells it.
func readRecords(ctx context.Context, files []string, m *terminal.Meter, in io.Reader, errOut io.Writer) (h held, err error) {
	h.ErrOut = errOut
	read := 0
	for _, name := range files {
		next, end := entries.Batches(name, in, nil)
		for b := new(logfile.Batch); next(b); {
			if ctx.Err() != nil {
				end()
				m.Clear()
				return h, unplayed(read, errOut)
			}
			for _, it := range b.Items {
				if it.Err == nil {
					h.hold(it.Read())
					continue
				}
				m.Clear()
				h.Faults.Add(it.Err)
			}
			read += len(b.Items)
			m.Show(0, []string{events.Number(int64(read)) + " entries read"}, float64(read), "entries")
		}
		end()
	}
	m.Clear()
	h.Faults.PrintRest()
	h.leftOut()
	return h, nil
}

// unplayed tells of an interruption before the first entry was played.
func unplayed(read int, errOut io.Writer) error {
	terminal.Print(errOut, fmt.Sprintf("pitstop: interrupted after %s entries were read; none was played", events.Number(int64(read))))
	return cli.ErrInterrupted
}

// leftOut says how many entries are neither played nor listed.
func (h *held) leftOut() {
	if h.left > 0 {
		h.N++
		terminal.Print(h.ErrOut, fmt.Sprintf("pitstop: more than %s entries to play: the last %s are left out; replay takes fewer at a time, report takes any number",
			events.Number(maxEntries), events.Number(int64(h.left))))
	}
	if more := h.ignored - maxIgnored; more > 0 {
		terminal.Print(h.ErrOut, fmt.Sprintf("pitstop: nothing follows from %s entries: replay does not list the last %s of them",
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
