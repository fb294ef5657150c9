package main

import (
	"strings"
	"testing"
)

// TestTheTableFits: a row of long cells has no line over 100 columns and loses no word.
func TestTheTableFits(t *testing.T) {
	f := figure{
		what:  "patrol, 10000 slices in 20 zones, 1000 incidents open, the tick with most work of 10, API reads",
		value: "123.45 ms - 123.45 ms = 0.12 ms more (p50 0.12 - 0.34); the ledger's read and write alone 0.56 (p50 0.78), GET list queuedResources 12",
		reach: "pages + 60 guest attributes + one per queued resource with a notice",
	}
	text := f.row()
	for line := range strings.Lines(text) {
		if len(line) > 101 {
			t.Errorf("%d columns: %q", len(line)-1, line)
		}
	}
	for _, word := range strings.Fields(strings.Join([]string{f.what, f.value, f.reach, "NOT REACHED"}, " ")) {
		if !strings.Contains(text, word) {
			t.Errorf("%q is broken in\n%s", word, text)
		}
	}
	for mark, f := range map[string]figure{"reached\n": {reach: "x", ok: true}, "NOT REACHED\n": {reach: "x"}, "x\n": {what: "x"}} {
		if !strings.HasSuffix(strings.TrimSuffix(f.row(), "\n"), mark) {
			t.Errorf("%q ends without %q", f.row(), mark)
		}
	}
}
