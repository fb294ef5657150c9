package logfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/logfile"
)

const later, earlier = `{"logName":"projects/p/logs/x","timestamp":"2026-11-02T00:00:00Z"}`, `{"logName":"projects/p/logs/x","timestamp":"2026-11-01T00:00:00Z"}`

// goingDown is a text, as it is and with an entry at either end that says that time goes down in it.
func goingDown(text string) []string { return []string{text, later + "\n" + text + "\n" + earlier} }

// inOrder is everything that is handed on of a text from its earlier end: the entries, and the faults.
func inOrder(e *logfile.EarlierFirst) (entries, faults []string) {
	for b := new(logfile.Batch); e.Next(b); {
		for _, it := range b.Items {
			if it.Err != nil {
				faults = append(faults, it.Err.Error())
				continue
			}
			entries = append(entries, fmt.Sprintf("%s %d %q", it.Where(), it.Index, it.Raw))
		}
	}
	return entries, faults
}

// sameInOrder holds that a text from its earlier end has the entries and the faults that it has from its beginning, at the same places.
func sameInOrder(t *testing.T, text string) {
	t.Helper()
	for i, text := range goingDown(text) {
		var want, wantFaults []string
		logfile.Records(strings.NewReader(text), "f", func(r logfile.Record, err error) {
			if err != nil {
				wantFaults = append(wantFaults, err.Error())
				return
			}
			want = append(want, fmt.Sprintf("%s %d %q", r.Where(), r.Index, r.Raw))
		})
		if i == 1 && strings.Contains(want[len(want)-1], "2026-11-01T") { // the text may have swallowed it
			slices.Reverse(want)
		}
		file := strings.NewReader(text)
		entries, faults := inOrder(logfile.NewEarlierFirst(iotest.HalfReader(strings.NewReader(text)), "f", file))
		if d := cmp.Diff(want, entries); d != "" {
			t.Errorf("%.100q, entries (-want +got):\n%.2000s", text, d)
		}
		if d := cmp.Diff(wantFaults, faults); d != "" {
			t.Errorf("%.100q, faults (-want +got):\n%.2000s", text, d)
		}
	}
}

func TestATextFromItsEarlierEnd(t *testing.T) {
	var lines, array []string
	for i := range 2500 {
		lines = append(lines, fmt.Sprintf(`{"n":%d,"s":"%s"}`, i, strings.Repeat("}{", i%97)))
		array = append(array, fmt.Sprintf("{\n  \"n\": %d,\n  \"s\": {\n    \"t\": [\n      {}\n    ]\n  }\n}", i))
	}
	large := `{"a":"` + strings.Repeat("x", 3<<19) + `"}`
	for _, text := range []string{
		strings.Join(lines, "\n"), "[" + strings.Join(lines, ",") + "]", "[\n" + strings.Join(array, ",\n") + "\n]\n",
		`{"entries":[` + strings.Join(lines, ",") + `],"nextPageToken":"x"}{"entries":[` + strings.Join(array, ",") + "]}",
		strings.Join(lines[:100], "\n") + "\n" + large + "\n" + strings.Join(lines[100:], "\n") + "\n" + large + large + "\ntext\n" + strings.Join(lines, "\n") + "\n{",
		"[" + strings.Join(array[:1000], ",") + ",null,{\n\"a\": {\n" + strings.Join(array, ",") + ",5,\n",
	} {
		sameInOrder(t, text)
	}
}

func FuzzATextFromItsEarlierEnd(f *testing.F) {
	for _, text := range []string{
		"[{\"a\":1},\n{\"b\":\"}\"}]", "{\"a\":\n{\"b\":1}", "x\n{}\ny\n[{},null]", `{"nextPageToken":"a\"]","entries":[{"a":1},{"b":"}"}]}{"entries":[]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(sameInOrder)
}

// TestATextThatChangesMeanwhileIsUnusable: it has become shorter, or its entries lie elsewhere.
func TestATextThatChangesMeanwhileIsUnusable(t *testing.T) {
	text := later + "\n" + earlier + "\n"
	for name, now := range map[string]string{"gone": "", "shorter": text[:len(text)/2], "another": strings.Repeat("x", len(text))} {
		var faults []error
		e := logfile.NewEarlierFirst(strings.NewReader(text), "f", bytes.NewReader([]byte(now)))
		for b := new(logfile.Batch); e.Next(b); {
			for _, it := range b.Items {
				faults = append(faults, it.Err)
			}
		}
		if len(faults) != 1 || !errors.Is(faults[0], logfile.ErrUnusable) || faults[0].Error() != "f: it changed while it was read; read a copy of it" {
			t.Errorf("%s: %v", name, faults)
		}
	}
}
