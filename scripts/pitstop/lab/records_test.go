package lab

import (
	"bytes"
	"strings"
	"testing"

	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/pitstop/entries"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
)

// TestMoreEntriesThanAreHeldAreOneFault: an entry from which nothing follows takes no room.
func TestMoreEntriesThanAreHeldAreOneFault(t *testing.T) {
	h := held{played: maxEntries - 1, ignored: maxIgnored - 1}
	file := entriestest.Write(t, "entries.json", strings.Repeat(entriestest.Preempted("2")+"\n"+`{"logName":"projects/mine/logs/syslog"}`+"\n", 4))
	next, end := entries.Batches(file, nil, nil)
	defer end()
	for b := new(logfile.Batch); next(b); {
		for _, it := range b.Items {
			h.hold(it.Read())
		}
	}
	if len(h.records) != 2 || h.played != maxEntries || h.left != 3 || h.ignored != maxIgnored+3 {
		t.Errorf("%d held, %d played, %d left out, %d ignored", len(h.records), h.played, h.left, h.ignored)
	}
	var errOut bytes.Buffer
	h.ErrOut = &errOut
	h.leftOut()
	const want = "pitstop: more than 1,000,000 entries to play: the last 3 are left out; replay takes fewer at a time, report takes any number\n" +
		"pitstop: nothing follows from 10,003 entries: replay does not list the last 3 of them\n"
	if errOut.String() != want || h.N != 1 {
		t.Errorf("%d faults, stderr = %q, want %q", h.N, errOut.String(), want)
	}
}
