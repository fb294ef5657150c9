package ledger_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider"
)

// TestLeftoversAreThoseOfTheLastSweep: of a zone that could not be read, those found before; of one that is no longer there, none. Nothing
// is written where nothing changed.
func TestLeftoversAreThoseOfTheLastSweep(t *testing.T) {
	writes := 0
	tap := &ledgertest.Tap{Before: func(_ context.Context, c ledgertest.Call) error {
		if c.Write {
			writes++
		}
		return nil
	}}
	l := ledger.New(tap.On(ledgertest.NewStore().Open))
	one := func(name string) []provider.Leftover { return []provider.Leftover{{Kind: "node pool", Name: name}} }
	sweep := func(project string, found map[string][]provider.Leftover, known []string, want ...string) {
		t.Helper()
		if err := l.SaveLeftovers(t.Context(), project, found, known); err != nil {
			t.Fatal(err)
		}
		all, err := l.Leftovers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range all {
			names = append(names, o.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s (-want +left):\n%s", project, diff)
		}
	}
	sweep("b", map[string][]provider.Leftover{"z": nil}, []string{"z"})
	if writes != 0 {
		t.Errorf("nothing is left over, and it was written %d times", writes)
	}
	sweep("b", map[string][]provider.Leftover{"z": one("bz"), "y": one("by")}, []string{"y", "z"}, "by", "bz")
	sweep("a", map[string][]provider.Leftover{"z": one("az")}, []string{"z"}, "az", "by", "bz")
	sweep("b", map[string][]provider.Leftover{"y": one("by")}, []string{"y", "z"}, "az", "by", "bz") // z could not be read
	sweep("b", map[string][]provider.Leftover{"y": one("by")}, []string{"y"}, "az", "by")            // z is not listed any more
	if writes != 3 {
		t.Errorf("%d writes", writes)
	}
	sweep("b", map[string][]provider.Leftover{"y": nil}, []string{"y"}, "az")
	sweep("a", map[string][]provider.Leftover{"z": nil}, []string{"z"})
}
