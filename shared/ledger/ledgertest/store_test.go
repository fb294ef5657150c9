package ledgertest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

func saved(t *testing.T, l *ledger.Ledger, label string, rev ledger.Revision) ledger.Revision {
	t.Helper()
	rev, err := l.Save(t.Context(), incident.Workload{ID: "demo/llama", Label: label, Slices: []incident.Slot{{Name: "llama"}}}, rev)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func read(t *testing.T, l *ledger.Ledger) incident.Workload {
	t.Helper()
	w, _, err := l.Workload(t.Context(), "demo/llama")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestAVersionIsDecodedOnce: all readers of a version share its value, whichever ledger they read with, and what is written next
// has a value of its own.
func TestAVersionIsDecodedOnce(t *testing.T) {
	store := ledgertest.NewStore()
	one, other := ledger.New(store.Open), ledger.New(new(ledgertest.Tap).On(store.Open))
	rev := saved(t, one, "spot", ledger.Revision{})
	first, second := read(t, one), read(t, other)
	if &first.Slices[0] != &second.Slices[0] {
		t.Error("the document was decoded twice")
	}
	all, err := other.Workloads(t.Context())
	if err != nil || len(all) != 1 || &all[0].Slices[0] != &first.Slices[0] {
		t.Errorf("a listing has %d values, or decoded them again: %v", len(all), err)
	}
	saved(t, one, "watch", rev)
	if next := read(t, other); next.Label != "watch" || &next.Slices[0] == &first.Slices[0] {
		t.Errorf("the next version has the label %q, or the slices of the former one", next.Label)
	}
	if first.Label != "spot" {
		t.Errorf("what was read before now says %q", first.Label)
	}
}

// TestAWriterKeepsItsOwnValue: a value comes from the bytes that were written, never from the writer's memory.
func TestAWriterKeepsItsOwnValue(t *testing.T) {
	l := ledger.New(ledgertest.NewStore().Open)
	w := incident.Workload{ID: "demo/llama", Slices: []incident.Slot{{Name: "llama"}}}
	if _, err := l.Save(t.Context(), w, ledger.Revision{}); err != nil {
		t.Fatal(err)
	}
	w.Slices[0].Name = "another"
	if got := read(t, l).Slices[0].Name; got != "llama" {
		t.Errorf("after the writer changed its value, the document says %q", got)
	}
}

// TestAChangedValueIsFound: somebody changes a value that others share. The 1,000th read at the latest finds that, and nobody who
// recovers from the panic reads on.
func TestAChangedValueIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		store *ledgertest.Store
		most  int
	}{
		"in a simulation": {ledgertest.NewStore(), 1000},
		"strictly":        {ledgertest.NewStrictStore(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledger.New(c.store.Open)
			saved(t, l, "spot", ledger.Revision{})
			shared := read(t, l)
			for range 3 * c.most {
				if wrong := panics(func() { read(t, l) }); wrong != "" {
					t.Fatalf("nobody has changed anything, and yet: %s", wrong)
				}
			}
			shared.Slices[0].Name = "changed"
			wrong := ""
			for range c.most {
				if wrong = panics(func() { read(t, l) }); wrong != "" {
					break
				}
			}
			for _, want := range []string{"demo%2Fllama", `"changed"`, `"llama"`} {
				if !strings.Contains(wrong, want) {
					t.Errorf("%q does not say %s", wrong, want)
				}
			}
			for what, call := range map[string]func(){
				"a read":  func() { _, _ = l.Pause(context.Background()) },      //nolint:errcheck // it panics
				"a write": func() { _ = l.SetPause(context.Background(), nil) }, //nolint:errcheck // it panics
				"a query": func() { _, _ = l.All(context.Background()) },        //nolint:errcheck // it panics
			} {
				if panics(call) != wrong {
					t.Errorf("%s after that goes on", what)
				}
			}
		})
	}
}

func panics(call func()) (wrong string) {
	defer func() {
		if p := recover(); p != nil {
			wrong = fmt.Sprint(p)
		}
	}()
	call()
	return ""
}

// TestCallsAreNamedAsEver: the faults of a simulation hang on these words, so with others a seed would run otherwise.
func TestCallsAreNamedAsEver(t *testing.T) {
	var calls []string
	tap := &ledgertest.Tap{Before: func(_ context.Context, c ledgertest.Call) error {
		calls = append(calls, fmt.Sprint(c.Collection, " ", c.About, " ", c.Write, " ", c.Query, " ", c.Doc != nil))
		return nil
	}}
	open := tap.On(ledgertest.NewStore().Open)
	l, s := ledger.New(open), ledger.NewSecrets(open)
	ctx, now := t.Context(), time.Date(2026, 11, 12, 2, 14, 7, 0, time.UTC)
	for _, err := range []error{
		l.SaveSpec(ctx, "spec", []byte("{}")),
		s.Keep(ctx, "h@l", nil, "", now),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	saved(t, l, "spot", ledger.Revision{})
	read(t, l)
	for _, ask := range []func() error{
		func() error { _, err := l.Due(ctx, now); return err },
		func() error { _, err := l.Workloads(ctx); return err },
		func() error { _, err := l.All(ctx); return err },
	} {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{
		"specs spec true false true",
		"values h@l true false true",
		"values h@l true false true",
		"workloads demo%2Fllama true false true",
		"workloads demo%2Fllama false false true",
		"workloads where due<= false true false",
		"workloads  false true false",
		"workloads only ID false true false",
	}, calls); d != "" {
		t.Error(d)
	}
}
