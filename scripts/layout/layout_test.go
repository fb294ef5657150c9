package layout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheWidthIsColumnsOrAHundred(t *testing.T) {
	for columns, want := range map[string]int{"": 100, "80": 80, "160": 160, "0": 100, "12": 100, "wide": 100, "99999": 100} {
		t.Setenv("COLUMNS", columns)
		if got := Width(); got != want {
			t.Errorf("COLUMNS=%q: %d, want %d", columns, got, want)
		}
	}
}

func TestALineIsBrokenAtSpacesAndHangs(t *testing.T) {
	for _, c := range []struct {
		line          string
		width, indent int
		want          []string
	}{
		{"", 4, 0, []string{""}},
		{"a verylongword b c", 4, 0, []string{"a", "verylongword", "b c"}},
		{"a  b  c d", 7, 2, []string{"a  b  c", "  d"}},
		{"ümläut · über x", 12, 2, []string{"ümläut ·", "  über x"}},
		{"one \x1b[31mtwo\x1b[0m three", 9, 2, []string{"one \x1b[31mtwo\x1b[0m", "  three"}},
	} {
		if d := cmp.Diff(c.want, Break(c.line, c.width, c.indent)); d != "" {
			t.Errorf("%q in %d columns (-want +got):\n%s", c.line, c.width, d)
		}
	}
}
