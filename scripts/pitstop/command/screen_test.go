package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/breadth"
)

// hostile is what a terminal would obey, or a reader be deceived by.
const hostile = "\x1b[2J\x1b]0;x\x07\u009b31m\u0085\b\x7f\r\nFORGED\t\u202e\u202a\u2066\u2069\u200e\u200f\u061c\u2028\u2029\ufeff\u200b\U000e0041"

// harmless holds a whole output against what may stand in it: graphic characters, ends of lines and tabs. No line of it was made by hostile.
func harmless(t *testing.T, what, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		bad := func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }
		if !utf8.ValidString(line) || strings.ContainsFunc(line, bad) || strings.HasPrefix(line, "FORGED") {
			t.Errorf("%s: %q", what, line)
			return
		}
	}
}

// TestNoFieldReachesATerminal puts it into each string of each recorded entry in turn, and has the command tell of all of them.
func TestNoFieldReachesATerminal(t *testing.T) {
	breadth.Again(t)
	var all strings.Builder
	for _, pattern := range []string{"sources/*.json", "*/entries.json"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "events", "testdata", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var entries []any
			if json.Unmarshal(raw, &entries) != nil {
				continue // what is wanted of them
			}
			var own strings.Builder
			for _, entry := range entries {
				poisoned(t, entry, &own)
			}
			all.WriteString(own.String())
			if pattern == "sources/*.json" || strings.Contains(f, "preemption/") {
				tells(t, f, own.String(), "replay", "--policy", "spot", "-")
			}
		}
	}
	for _, args := range [][]string{{"explain", "-"}, {"explain", "--json", "--policy", "spot", "-"}, {"report", "--losses", "-"}, {"report", "--json", "-"}} {
		tells(t, strings.Join(args, " "), all.String(), args...)
	}
}

func tells(t *testing.T, what, entries string, args ...string) {
	t.Helper()
	out, errOut, _ := call(t, entries, args...)
	if out+errOut == "" {
		t.Errorf("%s: nothing is told", what)
	}
	harmless(t, what, out)
	harmless(t, what, errOut)
}

// poisoned writes an entry once for each string in it, with that string made hostile.
func poisoned(t *testing.T, entry any, into io.Writer) {
	t.Helper()
	var walk func(v any, set func(any))
	walk = func(v any, set func(any)) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				walk(e, func(n any) { v[k] = n })
			}
		case []any:
			for i, e := range v {
				walk(e, func(n any) { v[i] = n })
			}
		case string:
			set(v + hostile)
			raw, err := json.Marshal(entry)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := into.Write(append(raw, '\n')); err != nil {
				t.Fatal(err)
			}
			set(v)
		}
	}
	walk(entry, nil)
}

// TestTheScreenShowsAndDoesNotObey has texts as somebody else than an entry writes them, in pieces of every length.
func TestTheScreenShowsAndDoesNotObey(t *testing.T) {
	for text, want := range map[string]string{
		"plain → ümläut · 日本 👍\n\tx":         "plain → ümläut · 日本 👍\n\tx",
		"a\x1b[2Jb":                          `a\u001b[2Jb`,
		"a\x9bb\xe2\x80":                     "a\ufffdb",
		"\u202eevil\u2028":                   `\u202eevil\u2028`,
		"\r\x7f\ufeff\U000e0041":             `\u000d\u007f\ufeff\udb40\udc41`,
		terminal.Bold + "x" + terminal.Reset: `\u001b[1mx\u001b[0m`,
		`{"a":"` + "\u202e\u009b\"}":         `{"a":"\u202e\u009b"}`,
	} {
		for size := 1; size <= len(text); size++ {
			var b bytes.Buffer
			s := terminal.NewScreen(&b)
			for rest := text; rest != ""; {
				piece := rest[:min(size, len(rest))]
				rest = rest[len(piece):]
				if n, err := s.Write([]byte(piece)); n != len(piece) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			if b.String() != want {
				t.Errorf("%q in pieces of %d: %q, want %q", text, size, b.String(), want)
			}
		}
	}
	var b bytes.Buffer
	s := &terminal.Screen{Out: &b, Colour: true}
	p := terminal.NewPrinter(s, false)
	terminal.Print(s, p.Paint(terminal.Red, "red")+"\x1b[5m")
	if want := terminal.Red + "red" + terminal.Reset + `\u001b[5m` + "\n"; b.String() != want {
		t.Errorf("%q on a terminal, want %q", b.String(), want)
	}
}
