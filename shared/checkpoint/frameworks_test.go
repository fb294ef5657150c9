package checkpoint

import (
	"os"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestTheTableHoldsForWhatFrameworksWrote: scripts/dev/frameworks recorded it of each library, at the end and killed while it saved.
func TestTheTableHoldsForWhatFrameworksWrote(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/frameworks.json")
	must(t, err)
	var records []struct {
		Framework, Version string
		Step               int64
		Torn               bool
		// Files are in the order in which they were written.
		Files []struct {
			Name string
			Size int
		}
	}
	if err := json.Unmarshal(raw, &records, json.MatchCaseInsensitiveNames(true)); err != nil || len(records) < 7 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for _, c := range records {
		objects := tree{}
		for i, f := range c.Files {
			objects[f.Name] = made{min(f.Size, 1000), len(c.Files) - i}
		}
		each(t, func(t *testing.T, r rig) {
			t.Helper()
			grow(t, r, objects)
			f, err := Verify(t.Context(), r.store, r.dir, Want{})
			if err != nil || f.Step != c.Step || f.Doubt != "" {
				t.Errorf("%s, torn %v, in %s: want step %d, found %+v, %v", c.Framework+" "+c.Version, c.Torn, r.dir, c.Step, f, err)
			}
		})
	}
}
