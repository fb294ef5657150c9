package logfile_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
)

// split reads a text as a file and writes down what was handed on: the entries, and the places of the faults.
func split(text string) (entries, faults []string) {
	logfile.Records(strings.NewReader(text), "f", func(r logfile.Record, err error) {
		if err != nil {
			faults = append(faults, err.Error())
			return
		}
		entries = append(entries, string(r.Raw))
	})
	return entries, faults
}

func TestRecords(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		entries []string
		faults  []string
	}{
		"an array":                   {"[\n {\"a\": 1},\n {\"b\": 2}\n]\n", []string{`{"a": 1}`, `{"b": 2}`}, nil},
		"an array on one line":       {`[{"a":1},{"b":{"c":2}}]`, []string{`{"a":1}`, `{"b":{"c":2}}`}, nil},
		"one object per line":        {"{\"a\":1}\n{\"b\":2}", []string{`{"a":1}`, `{"b":2}`}, nil},
		"objects side by side":       {`{"a":1}{"b":2}`, []string{`{"a":1}`, `{"b":2}`}, nil},
		"an object over many lines":  {"{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", []string{"{\n  \"a\": {\n    \"b\": 1\n  }\n}"}, nil},
		"a byte order mark":          {"\uFEFF{\"a\":1}", []string{`{"a":1}`}, nil},
		"a mark in the middle":       {"{\"a\":1}\n\uFEFF{\"b\":2}", []string{`{"a":1}`, `{"b":2}`}, nil},
		"half a byte order mark":     {"[\xef\xbb]", nil, []string{`f:1: "\xef\xbb" is no JSON log entry`}},
		"half a mark at the end":     {"{\"a\":1}\n\xef", []string{`{"a":1}`}, []string{`f:2: "\xef" is no JSON log entry`}},
		"braces in a string":         {`{"a":"}{\"}"}`, []string{`{"a":"}{\"}"}`}, nil},
		"nothing":                    {"", nil, []string{"f: there is no log entry in it"}},
		"nothing but space":          {" \n\t\n", nil, []string{"f: there is no log entry in it"}},
		"an array that is not ended": {"[\n", nil, []string{"f: there is no log entry in it"}},
		"an empty array":             {"[]\n", nil, nil},
		"an empty array with space":  {"\n [ \n ] \n", nil, nil},
		"empty arrays":               {"[]\n[]\n", nil, nil},
		"truncated at the end":       {"{\"a\":1}\n{\"b\":", []string{`{"a":1}`}, []string{"f:2: log entry: it is truncated"}},
		"truncated in the middle":    {"{\"a\":1}\n{\"b\":{\"x\":\n{\"c\":3}", []string{`{"a":1}`, `{"c":3}`}, []string{"f:2: log entry: it ends in the middle; the next entry begins on line 3"}},
		"truncated inside an array":  {"[\n  {\"a\":1},\n  {\"b\":\n  {\"c\":3}\n]", []string{`{"a":1}`, `{"c":3}`}, []string{"f:3: log entry: it ends in the middle; the next entry begins on line 4"}},
		"a string that is not ended": {"{\"a\":\"x\n{\"b\":2}", []string{`{"b":2}`}, []string{"f:1: log entry: it ends in the middle; the next entry begins on line 2"}},
		"not JSON":                   {"<html>\n{\"a\":1}\n", []string{`{"a":1}`}, []string{`f:1: "<html>" is no JSON log entry`}},
		"YAML":                       {"---\ninsertId: x\nlabels: {}\n---\n{\"a\":1}\n", nil, []string{`f:1: "---" is YAML: read the log again with gcloud logging read --format=json`}},
		"YAML of one entry":          {"\n\uFEFFinsertId: x\nlogName: y\n", nil, []string{`f:2: "insertId: x" is YAML: read the log again with gcloud logging read --format=json`}},
		"YAML as a list":             {"- protoPayload:\n    '@type': x\n", nil, []string{`f:1: "- protoPayload:" is YAML: read the log again with gcloud logging read --format=json`}},
		"YAML after an entry":        {"{\"a\":1}\n---\ninsertId: x\n", []string{`{"a":1}`}, []string{`f:2: "---" is no JSON log entry, nor is the line after it`}},
		"a message of gcloud":        {"ERROR: (gcloud) denied\n", nil, []string{`f:1: "ERROR: (gcloud) denied" is no JSON log entry`}},
		"lines that are no entries":  {"a\nb\n\nc\n{\"a\":1}\nd\ne", []string{`{"a":1}`}, []string{`f:1: "a" is no JSON log entry, nor are the 2 lines after it`, `f:6: "d" is no JSON log entry, nor is the line after it`}},
		"a number between":           {"{\"a\":1}\n42\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}, []string{`f:2: "42" is no JSON log entry`}},
		"a number in an array":       {`[{"a":1}, 5 ,{"b":2}]`, []string{`{"a":1}`, `{"b":2}`}, []string{`f:1: "5" is no JSON log entry`}},
		"a null in an array":         {`[{"a":1},null,{"b":2}]`, []string{`{"a":1}`, `{"b":2}`}, []string{`f:1: "null" is no JSON log entry`}},
		"values at the ends":         {"[true,{\"a\":1},false]\n{\"b\":2}", []string{`{"a":1}`, `{"b":2}`}, []string{`f:1: "true" is no JSON log entry`, `f:1: "false" is no JSON log entry`}},
		"a string in an array":       {`[{"a":1},"x,{]\"{",{"b":2}]`, []string{`{"a":1}`, `{"b":2}`}, []string{`f:1: "\"x,{]\\\"{\"" is no JSON log entry`}},
		"a value before an object over many lines": {
			"[{\"a\":1}, 5, {\n  \"b\":\n  {\n    \"c\": 2\n  }\n}]",
			[]string{`{"a":1}`, "{\n  \"b\":\n  {\n    \"c\": 2\n  }\n}"},
			[]string{`f:1: "5" is no JSON log entry`},
		},
		"a line of another log": {"[INFO] a, {b}, c\n{\"a\":1}\n", []string{`{"a":1}`}, []string{`f:1: "INFO" is no JSON log entry`}},
		"truncated behind another": {
			"[{\"a\":1}, {\n  \"b\": {\n{\"c\":3}]",
			[]string{`{"a":1}`, `{"c":3}`},
			[]string{"f:1, entry 2: log entry: it ends in the middle; the next entry begins on line 3"},
		},
		"an answer of entries.list":      {"{\n \"entries\": [\n  {\"a\":1},\n  {\"b\":2}\n ],\n \"nextPageToken\": \"}x]\"\n}\n", []string{`{"a":1}`, `{"b":2}`}, nil},
		"an answer on one line":          {`{"entries":[{"a":1},{"b":{"entries":[1]}}]}`, []string{`{"a":1}`, `{"b":{"entries":[1]}}`}, nil},
		"an answer, token first":         {`{"nextPageToken" : "a\"b", "entries":[{"a":1}]}{"c":3}`, []string{`{"a":1}`, `{"c":3}`}, nil},
		"answers one after another":      {"{\"entries\":[{\"a\":1}],\"nextPageToken\":\"x\"}\n{\"entries\":[{\"b\":2}]}\n", []string{`{"a":1}`, `{"b":2}`}, nil},
		"an array of answers":            {`[{"entries":[{"a":1}]},{"entries":[]},{"entries":[{"b":2}]}]`, []string{`{"a":1}`, `{"b":2}`}, nil},
		"an answer without an entry":     {`{"entries": [ ]}`, nil, nil},
		"a page without an entry":        {`{"nextPageToken": "x"}`, nil, nil},
		"a fault in an answer":           {"{\"entries\":[\n{\"a\":\n{\"b\":2}]}", []string{`{"b":2}`}, []string{"f:2: log entry: it ends in the middle; the next entry begins on line 3"}},
		"an answer that ends early":      {"{\"entries\":[{\"a\":1},{\"b\"", []string{`{"a":1}`}, []string{"f:1, entry 2: log entry: it is truncated"}},
		"an answer that is not closed":   {"{\"entries\":[{\"a\":1}]\n{\"b\":2}", []string{`{"a":1}`, `{"b":2}`}, nil},
		"more than entries in an answer": {"{\"entries\":[{\"a\":1}],\"x\": 1}\n{\"b\":2}", []string{`{"a":1}`, `{"b":2}`}, []string{`f:1: "1}" is no JSON log entry`}},
		"entries that are no list":       {`{"entries":{"a":1}}`, []string{`{"entries":{"a":1}}`}, nil},
		"an entry of the letter e":       {`{"e":1}{"nextPageToken":1}`, []string{`{"e":1}`, `{"nextPageToken":1}`}, nil},
		"truncated on a line of several": {"[{\"a\":1},{\"b\":2},{\"c\":", []string{`{"a":1}`, `{"b":2}`}, []string{"f:1, entry 3: log entry: it is truncated"}},
	} {
		t.Run(name, func(t *testing.T) {
			entries, faults := split(c.text)
			if d := cmp.Diff(c.entries, entries); d != "" {
				t.Errorf("entries (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.faults, faults); d != "" {
				t.Errorf("faults (-want +got):\n%s", d)
			}
		})
	}
}

func TestRecordsPassOverWhatIsTooLarge(t *testing.T) {
	large := `{"a":"` + strings.Repeat("x", events.MaxBytes) + `"}`
	entries, faults := split("{\"a\":1}\n" + large + "\n{\"b\":2}\n")
	if d := cmp.Diff([]string{`{"a":1}`, `{"b":2}`}, entries); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
	if len(faults) != 1 || !strings.Contains(faults[0], "f:2: log entry: it is larger than") {
		t.Errorf("faults = %q, want one that names line 2 and the size", faults)
	}
}

// TestALongLineIsOneEntryWhereverItIsCut: what is escaped in it stays so.
func TestALongLineIsOneEntryWhereverItIsCut(t *testing.T) {
	for pad := range 4 {
		long := `{"a":"` + strings.Repeat("x", pad) + strings.Repeat(`\\\"}`, 20_000) + `"}`
		entries, faults := split(long + `{"b":2}` + "\n")
		if d := cmp.Diff([]string{long, `{"b":2}`}, entries); d != "" || faults != nil {
			t.Errorf("%d bytes before: %d entries, faults %q", pad, len(entries), faults)
		}
	}
}

func TestRecordsAreNumbered(t *testing.T) {
	var where []string
	logfile.Records(strings.NewReader("[\n{},\n{},{}]"), "f", func(r logfile.Record, _ error) {
		where = append(where, fmt.Sprintf("%s %d", r.Where(), r.Index))
	})
	if d := cmp.Diff([]string{"f:2 1", "f:3 2", "f:3, entry 3 3"}, where); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte("[{\"a\":1},\n{\"b\":\"}\"}]"))
	f.Add([]byte("{\"a\":\n{\"b\":1}"))
	f.Add([]byte("[\xbf]")) // a byte order mark is three bytes, and no two of them
	f.Add([]byte("\xef\xbb\xbf{}\xef\xbb"))
	f.Add([]byte(`{"nextPageToken":"a\"]","entries":[{"a":1},{"b":"}"}]}{"entries":[]}`))
	f.Add([]byte("{\"entries\":[{}\n],\"nextPageToken\":\"\n\"x\"}\nlines\nof text\n{}"))
	f.Add([]byte("---\ninsertId: x\n{}"))
	f.Add([]byte(`{"a":"\\\"}\\\\"}{"\\\\\"":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		total := 0
		calls := 0
		logfile.Records(bytes.NewReader(text), "f", func(r logfile.Record, err error) {
			calls++
			total += len(r.Raw)
			if err == nil && (r.Raw[0] != '{' || r.Raw[len(r.Raw)-1] != '}') {
				t.Errorf("%q is no object", r.Raw)
			}
		})
		if empty := bytes.Contains(text, []byte(`"entries"`)) || bytes.Contains(text, []byte(`"nextPageToken"`)) || bytes.ContainsRune(text, '[') && bytes.ContainsRune(text, ']') && len(bytes.Trim(text, "[], \t\r\n\xEF\xBB\xBF")) == 0; calls == 0 && !empty {
			t.Error("neither an entry nor a fault")
		}
		if total > len(text) {
			t.Errorf("%d bytes of entries out of %d", total, len(text))
		}
		if d := cmp.Diff(told(bytes.NewReader(text)), told(iotest.OneByteReader(bytes.NewReader(text)))); d != "" {
			t.Errorf("read byte by byte it holds something else (-want +got):\n%s", d)
		}
	})
}

// told is everything that is handed on of a file.
func told(r io.Reader) []string {
	var all []string
	logfile.Records(r, "f", func(r logfile.Record, err error) {
		all = append(all, fmt.Sprintf("%s %d %q %v", r.Where(), r.Index, r.Raw, err))
	})
	return all
}

// TestAnEntryMayLieInTwoBatches holds that where a batch ends makes no difference, and that a batch is used again.
func TestAnEntryMayLieInTwoBatches(t *testing.T) {
	var text strings.Builder
	var want []string
	for i := range 5000 {
		entry := fmt.Sprintf("{\"n\": %d, \"s\": \"%s\"}", i, strings.Repeat("}{\\\"", i%97))
		want = append(want, entry)
		text.WriteString(entry + ",\n")
	}
	s := logfile.NewSplitter(strings.NewReader("["+text.String()+"]"), "f")
	var b logfile.Batch
	var got []string
	batches := 0
	for s.Next(&b) {
		batches++
		for _, it := range b.Items {
			if it.Err != nil || it.Line != len(got)+1 {
				t.Fatalf("item %d is on line %d: %v", len(got)+1, it.Line, it.Err)
			}
			got = append(got, string(it.Raw))
		}
	}
	if d := cmp.Diff(want, got); d != "" || batches < 3 {
		t.Errorf("%d batches (-want +got):\n%s", batches, d)
	}
}

// TestABatchIsBounded: tiny entries do not make a large batch, and none of them is lost between two.
func TestABatchIsBounded(t *testing.T) {
	const n = 200_000
	s := logfile.NewSplitter(strings.NewReader(strings.Repeat("{}\n", n)+"x"), "f")
	var b logfile.Batch
	entries, faults, most := 0, 0, 0
	for s.Next(&b) {
		most = max(most, len(b.Items))
		for _, it := range b.Items {
			if it.Err != nil {
				faults++
				continue
			}
			if entries++; it.Index != entries || it.Line != entries {
				t.Fatalf("entry %d is number %d on line %d", entries, it.Index, it.Line)
			}
		}
	}
	if entries != n || faults != 1 || most > 1024 {
		t.Errorf("%d entries, %d faults, at most %d in a batch", entries, faults, most)
	}
}

// BenchmarkSplitter finds the entries of a file as gcloud writes them.
func BenchmarkSplitter(b *testing.B) {
	entry := "  {\n" + strings.Repeat("    \"aKey\": \"a value of thirty two characters\",\n", 22) + "    \"last\": {}\n  },\n"
	text := "[\n" + strings.Repeat(entry, 4000) + "]\n"
	b.SetBytes(int64(len(text)))
	var batch logfile.Batch
	for b.Loop() {
		n := 0
		for s := logfile.NewSplitter(strings.NewReader(text), "f"); s.Next(&batch); {
			n += len(batch.Items)
		}
		if n != 4000 {
			b.Fatalf("%d entries", n)
		}
	}
}
