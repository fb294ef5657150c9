package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestCorpus holds explain against what a person says that each real log entry of other people's projects means. The
// entries stand beside the project, because they are not ours to publish.
func TestCorpus(t *testing.T) {
	const corpus = "../../../../shared/samples/corpus"
	if _, err := os.Stat(corpus); os.IsNotExist(err) {
		t.Skip("there is no folder ../shared/samples/corpus beside the project")
	}
	expected := readExpected(t, filepath.Join(corpus, "expected.tsv"))
	for file, exit := range map[string]string{
		"039-entries-list-answer.json":           "0", // the container is read by now
		"076-gke-nodepool-deletion-as-yaml.json": "2", // a file that cannot be used
	} {
		if row := expected[file]; row != nil { // the table stands beside the project, and is older
			row["exit"] = exit
		}
	}
	files, err := os.ReadDir(corpus)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if expected[f.Name()] == nil && f.Name() != "expected.tsv" {
			t.Errorf("%s: expected.tsv has no row for it", f.Name())
		}
	}
	for _, file := range slices.Sorted(maps.Keys(expected)) {
		t.Run(file, func(t *testing.T) {
			out, _, code := call(t, "", "explain", "--json", filepath.Join(corpus, file))
			checkExplained(t, expected[file], out, code)
		})
	}
}

// readExpected reads a table that is separated by tabs: the rows by their file, each value by its column.
func readExpected(t *testing.T, file string) map[string]map[string]string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]map[string]string{}
	var columns []string
	for line := range strings.Lines(string(raw)) {
		values := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if columns == nil {
			columns = values
			continue
		}
		row := map[string]string{}
		for i, v := range values[:min(len(values), len(columns))] {
			row[columns[i]] = v
		}
		rows[row["file"]] = row
	}
	for _, c := range []string{"file", "kind", "subject", "acts", "exit", "says", "never", "meaning"} {
		if !slices.Contains(columns, c) {
			t.Fatalf("%s has no column %s", file, c)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no rows", file)
	}
	return rows
}

// checkExplained compares what explain printed of one file with its row.
func checkExplained(t *testing.T, row map[string]string, out string, code int) {
	t.Helper()
	wantOneOf := func(column, got string) {
		if !slices.Contains(strings.Split(row[column], "|"), got) {
			t.Errorf("%s %q, want %s: %s", column, got, row[column], row["meaning"])
		}
	}
	wantOneOf("exit", strconv.Itoa(code))
	type explained struct {
		Kind, Subject, Reason, Error string
		Ignored                      bool
	}
	var first explained
	var told strings.Builder
	acts := "no"
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var e explained
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if i == 0 {
			first = e
		}
		if !e.Ignored && e.Error == "" {
			acts = "yes"
		}
		told.WriteString(e.Reason + " " + e.Error + " ")
	}
	switch {
	case first.Kind != "":
		wantOneOf("kind", first.Kind)
	case first.Error != "":
		wantOneOf("kind", "error")
	default:
		wantOneOf("kind", "-")
	}
	if row["subject"] != "" {
		wantOneOf("subject", first.Subject)
	}
	wantOneOf("acts", acts)
	if says := row["says"]; says != "" && !regexp.MustCompile(says).MatchString(told.String()) {
		t.Errorf("does not say %q: %s", says, told.String())
	}
	if never := row["never"]; never != "" && regexp.MustCompile(never).MatchString(told.String()) {
		t.Errorf("says %q: %s", never, told.String())
	}
}
