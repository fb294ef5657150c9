package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"
)

func TestTheWidthIsColumnsOrTheTerminalsOrAHundred(t *testing.T) {
	for columns, want := range map[string]int{"": 100, "80": 80, "160": 160, "0": 100, "-1": 100, "12": 100, "wide": 100, "99999": 100} {
		t.Setenv("COLUMNS", columns)
		if got := width(newScreen(&bytes.Buffer{})); got != want {
			t.Errorf("COLUMNS=%q: %d, want %d", columns, got, want)
		}
	}
}

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
		{"ümläut · 日本 x", 12, []string{"ümläut ·", "  日本 x"}},
		{"a" + red + "b" + reset + "c d", 5, []string{"a" + red + "b" + reset + "c d"}},
		{"one " + red + "two" + reset + " three", 9, []string{"one " + red + "two" + reset, "  three"}},
	} {
		if d := cmp.Diff(c.want, fitted(c.line, c.width)); d != "" {
			t.Errorf("%q in %d columns (-want +got):\n%s", c.line, c.width, d)
		}
	}
	if d := cmp.Diff([]string{"a", "verylongword", "b c"}, wrap("a verylongword b c", 4)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestTheScreenBreaksWhatPeopleReadAndNothingElse: text for programs, and of the verbs that print such, stays as it is.
func TestTheScreenBreaksWhatPeopleReadAndNothingElse(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	long := strings.Repeat("many words ", 10)
	for text, want := range map[string]bool{long + "\n": true, "short\n" + long: true, `{"text":"` + long + "\"}\n": false} {
		var b bytes.Buffer
		s := newScreen(&b)
		for _, piece := range strings.SplitAfter(text, " ") {
			if _, err := s.Write([]byte(piece)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.flush(); err != nil {
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
		s.verbatim = true
		if _, err := s.Write([]byte(text)); err != nil || b.String() != text {
			t.Errorf("%q became %q as it is, %v", text, b.String(), err)
		}
	}
}

// TestWhatTheVerbsPrintFits: at each width the verbs print the same words, and a line is no wider unless it is one word.
func TestWhatTheVerbsPrintFits(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays each verb four times")
	}
	data := filepath.Join("..", "..", "..", "events", "testdata")
	policies := write(t, "policy.yaml", "policies:\n  night: {preset: spot}\n")
	entries := filepath.Join(data, "preemption", "entries.json")
	sources, err := filepath.Glob(filepath.Join(data, "sources", "t*.json"))
	if err != nil || len(sources) < 4 {
		t.Fatal(len(sources), err)
	}
	for _, args := range [][]string{
		{"replay", "--policy", "spot", entries},
		append([]string{"explain", "--policy", "spot"}, sources...),
		append([]string{"report", "--losses"}, sources...),
		{"simulate", "--days", "1", "--slices", "2"},
		{"policy", "check", "--allow", "recreate", policies},
	} {
		t.Setenv("COLUMNS", "10000")
		whole, wholeFaults, _ := call(t, "", args...)
		for _, columns := range []int{80, 100, 160} {
			t.Setenv("COLUMNS", strconv.Itoa(columns))
			out, faults, _ := call(t, "", args...)
			for line := range strings.Lines(out + faults) {
				text := strings.TrimRight(line, "\n")
				if uniseg.StringWidth(text) > columns && strings.Contains(strings.TrimSpace(text), " ") {
					t.Errorf("%s: %d of %d columns: %q", args[0], uniseg.StringWidth(text), columns, text)
				}
			}
			// How long it took in real time is never the same.
			words := func(s string) string {
				all := strings.Fields(regexp.MustCompile(`\d+\.\d+ s\b`).ReplaceAllString(s, ""))
				if args[0] == "report" { // a narrow table names its columns in each row
					for i := range all {
						all[i] = strings.Trim(all[i], ":·")
					}
					all = slices.Compact(slices.Sorted(slices.Values(all)))
				}
				return strings.TrimSpace(strings.Join(all, " "))
			}
			if words(out) != words(whole) || words(faults) != words(wholeFaults) {
				t.Errorf("%s: at %d columns other words:\n%s%s\nwant\n%s%s", args[0], columns, out, faults, whole, wholeFaults)
			}
		}
	}
}

// TestAnIncidentsLastLinesAreBrokenOnce: the screen breaks no line again that the story broke. A line that it breaks leaves a rest that
// stands further left than the continuation of a limit or an advice.
func TestAnIncidentsLastLinesAreBrokenOnce(t *testing.T) {
	for _, width := range []string{"80", "100"} {
		t.Setenv("COLUMNS", width)
		out, _, _ := call(t, "", "replay", "preemption", "watched", "crash-loop")
		const margin = 2 + 8 + 2 + markWidth
		hangs, held := false, 0
		for line := range strings.SplitSeq(out, "\n") {
			bare := strings.TrimLeft(line, " ")
			at := len(line) - len(bare)
			switch {
			case at == margin && regexp.MustCompile("^(limited by|would have|what to do)").MatchString(bare):
				hangs, held = true, held+1
			case hangs && at > 2 && at != margin+2:
				t.Errorf("at %s columns this follows a limit or an advice: %q", width, line)
			case at <= 2:
				hangs = false
			}
		}
		if held < 3 {
			t.Errorf("at %s columns only %d such lines were held:\n%s", width, held, out)
		}
	}
}
