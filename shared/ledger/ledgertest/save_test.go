package ledgertest_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

// TestASavedStoreIsTheSame saves documents and restores them in another store, where they can be found and written again.
func TestASavedStoreIsTheSame(t *testing.T) {
	due := time.Date(2026, 11, 12, 12, 0, 0, 1000, time.UTC)
	want := map[string][]ledger.Record{
		"archive":   {{ID: "a/1", Schema: 2, Body: `{"x":"\u202e"}`, Expires: due.Add(time.Hour)}},
		"workloads": {{ID: "demo/a", Schema: 1, Body: "{}", Due: due}, {ID: "demo/b", Body: "line\nline"}},
	}
	before := ledgertest.NewStore()
	for name, records := range want {
		c, err := before.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if err := c.Put(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
		}
	}
	var saved bytes.Buffer
	after := ledgertest.NewStore()
	if err := before.Save(&saved); err != nil {
		t.Fatal(err)
	}
	if err := after.Restore(&saved); err != nil {
		t.Fatal(err)
	}
	for name, records := range want {
		c, err := after.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Query(t.Context(), ledger.Query{})
		if d := cmp.Diff(records, got, cmpopts.IgnoreFields(ledger.Record{}, "Revision", "Decoded")); d != "" || err != nil {
			t.Errorf("%s, %v (-want +got):\n%s", name, err, d)
		}
		got[0].Body = "other"
		if err := c.Put(t.Context(), &got[0]); err != nil {
			t.Errorf("%s: it cannot be written again: %v", name, err)
		}
	}
}

func TestWhatIsNoSavedStoreIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{":                          "document 1: unexpected EOF",
		`{"collection":"a","id":""}`: "document 1:  in a: a document needs an ID",
		`{"collection":"a","id":"x"}` + "\n" + `{"collection":"a","id":"x"}`: "document 2: x in a: ",
	} {
		if err := ledgertest.NewStore().Restore(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
