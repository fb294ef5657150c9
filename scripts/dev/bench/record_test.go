package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/replay"
)

// TestTheRecordIsWhatItClaims: the same seed writes the same bytes, which are one array of sound entries in the order of
// their times, of every kind.
func TestTheRecordIsWhatItClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine writes and reads it")
	}
	const n = 20_000
	var a, b, other bytes.Buffer
	for w, seed := range map[*bytes.Buffer]uint64{&a: 1, &b: 1, &other: 2} {
		if err := writeRecord(w, n, seed); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) || bytes.Equal(a.Bytes(), other.Bytes()) || !json.Valid(a.Bytes()) {
		t.Error("not the same bytes for the same seed, the same for another, or no JSON")
	}
	kinds := map[events.Kind]int{}
	var last time.Time
	replay.Records(&a, "record", func(r replay.Record, err error) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := events.Read(r.Raw)
		if err != nil || e.Time.Before(last) {
			t.Fatalf("%s: at %v after %v: %v", r.Where(), e.Time, last, err)
		}
		last = e.Time
		kinds[e.Kind]++
	})
	for _, k := range []events.Kind{events.KindLoss, events.KindBack, events.KindNotice, events.KindCall, events.KindCrew, ""} {
		if kinds[k] < n/200 {
			t.Errorf("only %d entries of kind %q", kinds[k], k)
		}
	}
}

// TestAMonthOfOnesOwn tells of its 30 days, to the end, and of no others. It has the losses that it is known for.
func TestAMonthOfOnesOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine writes and reads it")
	}
	file, lost, err := ownRecord(filepath.Join(t.TempDir(), "month.json"), month, 30)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	end := recordStart.AddDate(0, 0, 30)
	var last time.Time
	replay.Records(f, "month", func(r replay.Record, err error) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := events.Read(r.Raw)
		if err != nil || e.Time.Before(recordStart) || !e.Time.Before(end) {
			t.Fatalf("%s: at %v: %v", r.Where(), e.Time, err)
		}
		last = e.Time
	})
	if lost != 188 || last.Before(end.Add(-time.Hour)) {
		t.Errorf("%d losses, the last entry is of %v", lost, last)
	}
}
