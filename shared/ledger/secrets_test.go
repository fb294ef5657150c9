package ledger_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

// TestValuesAreWrittenAnewOnceADay: an instance with an older reading may have written the former ones.
func TestValuesAreWrittenAnewOnceADay(t *testing.T) {
	open := ledgertest.NewStore().Open
	patrol, recreate, now := ledger.NewSecrets(open), ledger.NewSecrets(open), start
	keep := func(s *ledger.Secrets, value string) {
		t.Helper()
		must(t, s.Keep(t.Context(), "h@l", map[string]string{"k": value}, value, now))
	}
	keep(patrol, "new")
	keep(recreate, "old")
	for range 25 * 4 {
		now = now.Add(15 * time.Minute)
		must(t, patrol.Renew(t.Context(), "h@l", now))
		keep(patrol, "new")
	}
	if v, err := recreate.Of(t.Context(), "h@l"); err != nil || v["k"] != "new" {
		t.Errorf("a day later it is %v, %v", v, err)
	}
}

// TestSecretsInMemory, TestSecretsInASimulation and TestSecretsOnFirestore hold the second database to the same on every store.
func TestSecretsInMemory(t *testing.T)      { secrets(t, memory) }
func TestSecretsInASimulation(t *testing.T) { secrets(t, simulated) }
func TestSecretsOnFirestore(t *testing.T)   { secrets(t, firestore) }

func secrets(t *testing.T, s store) {
	t.Helper()
	const name = "hash@life"
	ctx, now := t.Context(), start
	open := s(t)
	reads, tap := 0, &ledgertest.Tap{}
	tap.Before = func(_ context.Context, c ledgertest.Call) error {
		if !c.Write {
			reads++
		}
		return nil
	}
	k, other := ledger.NewSecrets(tap.On(open)), ledger.NewSecrets(tap.On(open))
	t.Cleanup(func() {
		if err := errors.Join(k.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	})
	wrote := func(want int) {
		t.Helper()
		if got := tap.Writes(); got != want {
			t.Errorf("%d writes, want %d", got, want)
		}
	}
	expires := func(want time.Time) {
		t.Helper()
		c, err := open(ctx, ledger.Values)
		must(t, err)
		r, err := c.Get(ctx, name)
		must(t, err)
		if !r.Expires.Equal(want) {
			t.Errorf("it is kept until %v, want %v", r.Expires, want)
		}
	}
	must(t, k.Renew(ctx, name, now)) // a missing name stays missing
	wrote(0)
	first := map[string]string{"startup-script": "#!/bin/sh\necho ü \u0000 \"$TOKEN\"\n", "empty": ""}
	for range 3 {
		must(t, k.Keep(ctx, name, first, "1", now))
	}
	wrote(1)
	must(t, other.Keep(ctx, name, first, "1", now)) // it does not know of that
	wrote(2)
	expires(now.Add(ledger.KeepValues))

	now = now.Add(23 * time.Hour)
	must(t, k.Renew(ctx, name, now))
	wrote(2)
	now = now.Add(time.Hour)
	must(t, k.Renew(ctx, name, now))
	must(t, k.Keep(ctx, name, first, "1", now))
	wrote(4) // somebody with an older reading may have written since
	expires(now.Add(ledger.KeepValues))

	second := map[string]string{"startup-script": "another"}
	must(t, k.Keep(ctx, name, second, "2", now))
	wrote(5)
	if reads != 0 {
		t.Errorf("who writes has read %d times", reads)
	}
	got, err := other.Of(ctx, name)
	must(t, err)
	if !maps.Equal(got, second) {
		t.Errorf("%q, want %q", got, second)
	}
	if _, err := other.Of(ctx, "hash@another"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("what nobody stored: %v", err)
	}
	if err := k.Keep(ctx, "large", map[string]string{"k": strings.Repeat("x", ledger.MaxBody)}, "", now); !fault.IsPermanent(err) {
		t.Errorf("values that are too large: %v, want a permanent fault", err)
	}
	// Somebody deleted it: the next one that has the values stores them again.
	c, err := open(ctx, ledger.Values)
	must(t, err)
	remove(t, c, name)
	now = now.Add(25 * time.Hour)
	must(t, k.Renew(ctx, name, now))
	must(t, k.Keep(ctx, name, second, "2", now))
	if got, err := other.Of(ctx, name); err != nil || !maps.Equal(got, second) {
		t.Errorf("%q, %v, want %q", got, err, second)
	}
}
