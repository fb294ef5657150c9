package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pitstop.internal/scripts/layout"
)

// TestTheMemoryOfACommandIsItsOwn: a small command takes little, though this process holds much.
func TestTheMemoryOfACommandIsItsOwn(t *testing.T) {
	held := bytes.Repeat([]byte("x"), 256<<20)
	w, _, err := wait(t.Context(), filepath.Join(t.TempDir(), "true"))
	if err == nil {
		t.Errorf("a command that is not there: %+v", w)
	}
	command := filepath.Join(t.TempDir(), "pitstop")
	if err := os.WriteFile(command, []byte("#!/bin/sh\necho '{\"incidents\": 7}'\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	w, incidents, err := wait(t.Context(), command, "simulate")
	if err != nil || incidents != 7 || w.Took <= 0 || w.PeakKiB <= 0 || w.PeakKiB > 100<<10 {
		t.Errorf("%+v, %d incidents, %v", w, incidents, err)
	}
	runtime.KeepAlive(held)
}

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == waitArgument {
		if err := waitFor(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// TestTheTableFits: at each width of a terminal a row of long cells has no wider line and loses no word, and it uses the width.
func TestTheTableFits(t *testing.T) {
	f := figure{
		what:  "patrol, 10000 slices in 20 zones, 1000 incidents open, the tick with most work of 10, API reads",
		value: "123.45 ms - 123.45 ms = 0.12 ms more (p50 0.12 - 0.34); the ledger's read and write alone 0.56 (p50 0.78), GET list queuedResources 12",
		reach: "pages + 60 guest attributes + one per queued resource with a notice",
	}
	for columns, want := range map[string]int{"80": 80, "100": 100, "160": 160, "": 100, "50": leastWidth} {
		t.Setenv("COLUMNS", columns)
		text := f.row(tableWidth())
		widest := 0
		for line := range strings.Lines(text) {
			widest = max(widest, layout.Columns(strings.TrimSuffix(line, "\n")))
		}
		if widest != want {
			t.Errorf("COLUMNS=%q: the widest line has %d columns, want %d:\n%s", columns, widest, want, text)
		}
		for _, word := range strings.Fields(strings.Join([]string{f.what, f.value, f.reach, "NOT REACHED"}, " ")) {
			if !strings.Contains(text, word) {
				t.Errorf("%q is broken in\n%s", word, text)
			}
		}
	}
	for mark, f := range map[string]figure{"reached\n": {reach: "x", ok: true}, "NOT REACHED\n": {reach: "x"}, "x\n": {what: "x"}} {
		if text := f.row(leastWidth); !strings.HasSuffix(strings.TrimSuffix(text, "\n"), mark) {
			t.Errorf("%q ends without %q", text, mark)
		}
	}
}
