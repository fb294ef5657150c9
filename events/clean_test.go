package events_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pitstop.internal/events"
)

// hostile holds characters that a terminal obeys or that deceive a reader: escape sequences in C0 and C1, a forged line,
// marks that change the text's direction or have no width, line separators, and an invisible tag.
const hostile = "\x1b[2J\x1b]0;x\x07\u009b31m\u0085\b\x7f\r\nFORGED\t\u202e\u202a\u2066\u2069\u200e\u200f\u061c\u2028\u2029\ufeff\u200b\U000e0041"

// TestNoEntryLeavesWhatATerminalObeys puts it into every string of every recorded entry, and looks at every string of what
// comes out.
func TestNoEntryLeavesWhatATerminalObeys(t *testing.T) {
	n := 0
	for _, entry := range samples(t) {
		var value any
		must(t, json.Unmarshal(entry, &value))
		leaves(value, func(v string, set func(string)) {
			for _, s := range []string{hostile, hostile + v, v + hostile, v[:len(v)/2] + hostile + v[len(v)/2:]} {
				set(s)
				raw, err := json.Marshal(value)
				must(t, err)
				n++
				e, err := events.Read(raw)
				if err != nil {
					harmless(t, raw, strings.ReplaceAll(err.Error(), "\n", "; ")) // one fault a line
				}
				every(reflect.ValueOf(e), func(s string) { harmless(t, raw, s) })
				harmless(t, raw, e.Describe())
				harmless(t, raw, e.Noted())
				harmless(t, raw, e.Subject.String())
			}
			set(v)
		})
	}
	if n < 5000 {
		t.Errorf("only %d entries were made", n)
	}
}

// TestNoVerdictLeavesWhatATerminalObeys does the same to what crews leave elsewhere.
func TestNoVerdictLeavesWhatATerminalObeys(t *testing.T) {
	reason, err := json.Marshal(hostile)
	must(t, err)
	verdict := `{"schema":1,"attempt":1,"life":{"slice":` + string(reason) + `},"reason":` + string(reason) + `}`
	v, err := events.DecodeCrewVerdict([]byte(verdict))
	must(t, err)
	s, err := events.DecodeCrewState([]byte(`{"schema":1,"seen":"2026-11-12T02:14:06Z","phase":"ended","checkpoint_uri":` + string(reason) + `,"verdict":` + verdict + `}`))
	must(t, err)
	for _, v := range []any{v, s} {
		every(reflect.ValueOf(v), func(s string) { harmless(t, []byte(verdict), s) })
	}
}

// TestWhatIsShownStays has letters of other scripts.
func TestWhatIsShownStays(t *testing.T) {
	for _, word := range []string{"llama-8b", "Zürich", "日本語 ", "עברית", "مرحبا", "हिन्दी", "👍"} {
		e, err := events.Read([]byte(`{"logName":"projects/demo/logs/` + word + `","timestamp":"2026-11-12T02:14:06Z"}`))
		if err != nil || !strings.Contains(e.Ignored, word) {
			t.Errorf("%q, %v does not hold %q", e.Ignored, err, word)
		}
	}
}

func harmless(t *testing.T, raw []byte, s string) {
	t.Helper()
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return
	}
	t.Fatalf("%q comes of %.2000s", s, raw)
}

// samples are all recorded entries.
func samples(t *testing.T) (all []json.RawMessage) {
	t.Helper()
	for _, pattern := range []string{"testdata/sources/*.json", "testdata/*/entries.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			var entries []json.RawMessage
			raw, err := os.ReadFile(f)
			must(t, err)
			if json.Unmarshal(raw, &entries) == nil { // otherwise the text is as wanted
				all = append(all, entries...)
			}
		}
	}
	return all
}

// leaves hands out every string in a JSON value, with what sets it.
func leaves(value any, do func(v string, set func(string))) {
	each := func(v any, set func(any)) {
		if s, ok := v.(string); ok {
			do(s, func(s string) { set(s) })
			return
		}
		leaves(v, do)
	}
	switch value := value.(type) {
	case map[string]any:
		for k, v := range value {
			each(v, func(v any) { value[k] = v })
		}
	case []any:
		for i, v := range value {
			each(v, func(v any) { value[i] = v })
		}
	}
}

// every hands out every string in a value of Go.
func every(v reflect.Value, do func(string)) {
	switch v.Kind() { //nolint:exhaustive // nothing else holds strings here
	case reflect.String:
		do(v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			every(v.Elem(), do)
		}
	case reflect.Slice:
		for i := range v.Len() {
			every(v.Index(i), do)
		}
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			for i := range v.NumField() {
				every(v.Field(i), do)
			}
		}
	}
}
