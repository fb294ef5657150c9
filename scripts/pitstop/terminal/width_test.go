package terminal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALineIsBrokenAtSpacesAlone(t *testing.T) {
	for _, c := range []struct {
		line  string
		width int
		want  []string
	}{
		{"fits", 4, []string{"fits"}},
		{"one two three", 9, []string{"one two", "  three"}},
		{"- one two three", 9, []string{"- one two", "  three"}},
		{"  slice     a b c d e f", 18, []string{"  slice     a b c", "    d e f"}},
		{"  slice     a b c d e f g h i j k l m n o", 30, []string{"  slice     a b c d e f g h i", "            j k l m n o"}},
		{"a  b  c d e f g h i j k l m n o p q", 20, []string{"a  b  c d e f g h i", "      j k l m n o p", "      q"}},
		{"averyverylongword and more", 10, []string{"averyverylongword", "  and more"}},
		{"see averyverylongword", 10, []string{"see", "  averyverylongword"}},
		{"  at  averyverylongword", 12, []string{"  at  averyverylongword"}},
		{"ümläut · über x", 12, []string{"ümläut ·", "  über x"}},
		{"a" + Red + "b" + Reset + "c d", 5, []string{"a" + Red + "b" + Reset + "c d"}},
		{"one " + Red + "two" + Reset + " three", 9, []string{"one " + Red + "two" + Reset, "  three"}},
	} {
		if d := cmp.Diff(c.want, Fit(c.line, c.width)); d != "" {
			t.Errorf("%q in %d columns (-want +got):\n%s", c.line, c.width, d)
		}
	}
	if d := cmp.Diff([]string{"a", "verylongword", "b c"}, Wrap("a verylongword b c", 4)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestTheScreenBreaksWhatPeopleReadAndNothingElse: text for programs, and of the verbs that print such, stays as it is.
func TestTheScreenBreaksWhatPeopleReadAndNothingElse(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	long := strings.Repeat("many words ", 10)
	for text, want := range map[string]bool{long + "\n": true, "short\n" + long: true, `{"text":"` + long + "\"}\n": false} {
		var b bytes.Buffer
		s := NewScreen(&b)
		for _, piece := range strings.SplitAfter(text, " ") {
			if _, err := s.Write([]byte(piece)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		widest := 0
		for line := range strings.Lines(b.String()) {
			widest = max(widest, len(strings.TrimSuffix(line, "\n")))
		}
		if (widest <= 40) != want || strings.Join(strings.Fields(b.String()), " ") != strings.Join(strings.Fields(text), " ") {
			t.Errorf("%q became %q", text, b.String())
		}
		b.Reset()
		s.Verbatim = true
		if _, err := s.Write([]byte(text)); err != nil || b.String() != text {
			t.Errorf("%q became %q as it is, %v", text, b.String(), err)
		}
	}
}
