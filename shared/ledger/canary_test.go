package ledger_test

import (
	"errors"
	"testing"
	"time"

	"pitstop.internal/shared/ledger"
)

func canary(t *testing.T, s *suite) {
	ctx := t.Context()
	read := func() ledger.Canary {
		t.Helper()
		c, err := s.Canary(ctx, "demo")
		must(t, err)
		return c
	}
	returned := func(id string, written, at time.Time, want bool) {
		t.Helper()
		news, err := s.CanaryReturned(ctx, "demo", id, ledger.Way{Written: written, Received: written.Add(time.Second), Published: written.Add(2 * time.Second)}, at)
		must(t, err)
		if news != want {
			t.Errorf("the return of %s is news: %v", id, news)
		}
	}
	if c := read(); !c.Due(start) || c.Missing(start) {
		t.Errorf("before the first: %+v", c)
	}
	must(t, s.CanaryWritten(ctx, "demo", "one", start))
	late := start.Add(time.Hour)
	if c := read(); c.Due(late) || !c.Missing(late) || c.Missing(start.Add(time.Minute)) {
		t.Errorf("not back: %+v", c)
	}
	returned("one", start, late, true)
	writes := s.tap.Writes()
	returned("one", start, late, false)
	if s.tap.Writes() != writes {
		t.Error("the same return was written twice")
	}
	tomorrow := start.Add(24 * time.Hour)
	if c := read(); c.Missing(tomorrow) || !c.Due(tomorrow) || !c.Way.Published.Equal(start.Add(2*time.Second)) {
		t.Errorf("back: %+v", c)
	}
	must(t, s.CanaryWritten(ctx, "demo", "two", tomorrow))
	returned("one", start, tomorrow.Add(time.Hour), false) // yesterday's once more proves nothing today
	if c := read(); !c.Missing(tomorrow.Add(time.Hour)) {
		t.Errorf("the second is not back: %+v", c)
	}
	// The sink may be faster than the note that the entry was written.
	after := tomorrow.Add(24 * time.Hour)
	returned("three", after, after.Add(time.Second), true)
	must(t, s.CanaryWritten(ctx, "demo", "three", after))
	if c := read(); c.Missing(after.Add(time.Hour)) {
		t.Errorf("the third was back before it was noted: %+v", c)
	}
	if c, err := s.Canary(ctx, "other"); err != nil || c != (ledger.Canary{}) {
		t.Errorf("another project's: %+v, %v", c, err)
	}
	s.create(t, ledger.Canaries, "newer", 2, "{}")
	if _, err := s.Canary(ctx, "newer"); err == nil || errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a newer release's: %v", err)
	}
}
