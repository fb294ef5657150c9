package gke

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestATallyNamesWhoTookMost: beyond a bound the namespace with most of it is named, whichever list it was in, and whoever came last.
func TestATallyNamesWhoTookMost(t *testing.T) {
	for name, c := range map[string]struct {
		text, kept int // of eve, twice
		says       string
	}{
		"within":        {mostText/2 - 3<<20, mostKept/2 - 3<<20, ""},
		"what is kept":  {0, mostKept/2 - 1<<20, "namespace eve: what is kept of the cluster takes more than 96 MiB"},
		"what is there": {mostText/2 - 1<<20, 0, "namespace eve: the lists of the cluster have more than 512 MiB"},
	} {
		var before, now tally
		if err := errors.Join(before.add(tally{}, "eve", c.text, c.kept), before.add(tally{}, "bob", 1<<20, 1<<20), now.add(before, "eve", c.text, c.kept)); err != nil {
			t.Errorf("%s: too early: %v", name, err)
		}
		err := now.add(before, "bob", 2<<20, 2<<20)
		if (err == nil) != (c.says == "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// TestWeightCountsAllThatIsKept: many small things take more memory than their text, and what nobody keeps takes none.
func TestWeightCountsAllThatIsKept(t *testing.T) {
	of := func(text string) int {
		t.Helper()
		var j Job
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			t.Fatal(err)
		}
		return weight(j)
	}
	none, many := of(`{}`), "{"+strings.Repeat("{},", 999)+"{}]"
	for text, least := range map[string]int{
		`{"status":{"conditions":[` + many[1:] + `}}`:                                                          1000 * 64,
		`{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 10_000) + `"}}}`:                             10_000,
		`{"spec":{"template":{"spec":{"containers":[{"args":["` + strings.Repeat("x", 10_000) + `"]}]}}}}`:     10_000,
		`{"spec":{"template":{"spec":{"containers":[{"resources":{"limits":{"a":"12345678"}}}]}}}}`:            8,
		`{"metadata":{"creationTimestamp":"2026-11-12T02:00:00Z","deletionTimestamp":"2026-11-12T02:00:00Z"}}`: 8,
	} {
		if got := of(text) - none; got < least || got > 3*least+200 {
			t.Errorf("%.60s: %d bytes, want at least %d", text, got, least)
		}
	}
	if got := of(`{"metadata":{"managedFields":["` + strings.Repeat("x", 10_000) + `"]}}`); got != none {
		t.Errorf("what is not kept takes %d bytes", got-none)
	}
	kept := weight(Job{order: &order{spec: make([]byte, 10_000)}})
	if kept-none < 10_000 {
		t.Errorf("a manifest takes %d bytes", kept-none)
	}
}

// TestWhatIsLeftOutIsNotKept: neither the manifests of a namespace that is left out, nor what a reading took before it began again.
func TestWhatIsLeftOutIsNotKept(t *testing.T) {
	c := Client{orders: &orders{}}
	turns := 0
	out, err := c.leavingOut(func(c Client) error {
		turns++
		c.orders.of(kindJob, Meta{Name: "a", Namespace: "bob", UID: "bob"}, []byte(`{}`))
		if c.tally.kept.all != 0 {
			t.Errorf("the reading begins with %d bytes", c.tally.kept.all)
		}
		if len(c.without) > 0 {
			return nil
		}
		c.orders.of(kindJob, Meta{Name: "a", Namespace: "eve", UID: "eve"}, []byte(`{}`))
		return c.tally.add(tally{}, "eve", 0, mostKept+1)
	})
	if err != nil || turns != 2 || len(out) != 1 || out[0].Namespace != "eve" || len(c.orders.kept) != 1 || c.orders.kept["bob"] == nil {
		t.Errorf("%d turns, left out %v, kept %v, %v", turns, out, c.orders.kept, err)
	}
}
