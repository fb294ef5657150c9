package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
	"pitstop.internal/scripts/pitstop/terminal"
)

// losses are entries of so many losses of one slice, in ascending order. Cloud Logging got each entry so much later; a negative time leaves
// that out.
func manyLosses(slice string, n int, later time.Duration) (entries []string) {
	at := time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)
	for range n {
		received := ""
		if later >= 0 {
			received = `,"receiveTimestamp":"` + at.Add(later).Format(time.RFC3339) + `"`
		}
		entries = append(entries, fmt.Sprintf(`{"protoPayload":{"methodName":"compute.instances.preempted","resourceName":"projects/mine/zones/us-west4-a/instances/t1v-n-%s-w-0"},`+
			`"insertId":"%s","logName":"projects/mine/logs/cloudaudit.googleapis.com%%2Fsystem_event","timestamp":"%s"%s}`,
			slice, at.Format(time.RFC3339), at.Format(time.RFC3339), received))
		at = at.Add(10 * time.Minute)
	}
	return entries
}

func reversed(all []string) []string {
	all = slices.Clone(all)
	slices.Reverse(all)
	return all
}

// TestReportOfAFileWithAPartThatCannotBeRead: what cannot be read is counted, and takes nothing else with it, in either order.
func TestReportOfAFileWithAPartThatCannotBeRead(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	const n = 3000
	up := manyLosses("0a0a0a0a", n, time.Second)
	whole := func(all []string) string { return strings.Join(all, "\n") + "\n" }
	array := func(all []string) string { return "[\n" + strings.Join(all, ",\n") }
	for name, c := range map[string]struct {
		text func(all []string) string
		most int // of the losses
		bad  int
	}{
		"a download that was cut": {func(all []string) string { return array(all)[:len(array(all))-10] }, n - 1, 1},
		"an error of gcloud":      {func(all []string) string { return whole(all) + "ERROR: (gcloud.logging.read) RESOURCE_EXHAUSTED\n" }, n, 1},
		"a block of unreadable lines": {func(all []string) string {
			return whole(all[:n/2]) + strings.Repeat("{\"n\":1}\n", 2500) + whole(all[n/2:])
		}, n, 2500},
		"a block of lines of text":    {func(all []string) string { return whole(all[:n/2]) + strings.Repeat("x\n", 200_000) + whole(all[n/2:]) }, n, 1},
		"unreadable lines at its end": {func(all []string) string { return whole(all) + strings.Repeat("{\"n\":1}\n", 2500) }, n, 2500},
	} {
		for order, all := range map[string][]string{"up": up, "down": reversed(up)} {
			t.Run(name+", "+order, func(t *testing.T) {
				file := entriestest.Write(t, "entries.json", c.text(all))
				other := entriestest.Write(t, "other.json", whole(reversed(manyLosses("0b0b0b0b", 7, time.Second))))
				for files, want := range map[string]int{file: c.most, file + " " + other: c.most + 7} {
					out, errOut, code := call(t, "", append([]string{"report"}, strings.Fields(files)...)...)
					if says := fmt.Sprintf("%s losses: ", events.Number(int64(want))); code != cli.ExitFailed || !strings.Contains(out, says) {
						t.Errorf("%d files: exit code %d, no %q in\n%.600s\n%.300s", len(strings.Fields(files)), code, says, out, errOut)
					}
					if says := couldNot(c.bad); !strings.Contains(out, says) || !strings.Contains(errOut, "entries.json:") {
						t.Errorf("%q is not in\n%.600s\n%.300s", says, out, errOut)
					}
					out, _, _ = call(t, "", append([]string{"report", "--json"}, strings.Fields(files)...)...)
					if says := fmt.Sprintf(`"faults":%d`, c.bad); !strings.Contains(out, says) || strings.Count(out, `"at":`) != want {
						t.Errorf("%d files as JSON: %d losses, want %d and %s", len(strings.Fields(files)), strings.Count(out, `"at":`), want, says)
					}
				}
			})
		}
	}
}

// TestARecordSaysTheSameInEveryForm: up or down, as an array or a line each, in a file, packed or through a pipe.
func TestARecordSaysTheSameInEveryForm(t *testing.T) {
	up := append(manyLosses("0a0a0a0a", 1250, time.Second), interrupted()...)
	pretty := func(all []string) string {
		var out bytes.Buffer
		if err := json.Indent(&out, []byte("["+strings.Join(all, ",")+"]"), "", "  "); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	forms := map[string]func(all []string) string{
		"a line each":      func(all []string) string { return strings.Join(all, "\n") + "\n" },
		"as gcloud writes": pretty,
		"all on a line":    func(all []string) string { return "[" + strings.Join(all, ",") + "]" },
		"answers of the API": func(all []string) string {
			return `{"entries":` + pretty(all[:1000]) + `,"nextPageToken":"x"}{"entries":` + pretty(all[1000:]) + "}"
		},
	}
	for _, verb := range []string{"report", "goodput"} {
		want, _, code := call(t, strings.Join(up, "\n"), verb, "--json", "-")
		if code != cli.ExitDone || !strings.Contains(want, `"llama"`) || !strings.Contains(want, "0a0a0a0a") && verb == "report" {
			t.Fatalf("%s: exit code %d\n%.500s", verb, code, want)
		}
		for form, write := range forms {
			for order, all := range map[string][]string{"up": up, "down": reversed(up)} {
				text := write(all)
				for way, args := range map[string][2]string{
					"file": {"", entriestest.Write(t, "entries.json", text)}, "packed": {"", entriestest.Write(t, "entries.json.gz", zipped(t, text))}, "pipe": {text, "-"},
				} {
					got, errOut, code := call(t, args[0], verb, "--json", args[1])
					if code != cli.ExitDone || errOut != "" || got != want {
						t.Errorf("%s of %s, %s, %s: exit code %d, %q, and says something else:\n%.300s", verb, form, order, way, code, errOut, got)
					}
				}
			}
		}
	}
}

// TestARecordThatGoesDownInAPipeNeedsAFolderForAWhile, and says so where there is none. One that goes up needs none.
func TestARecordThatGoesDownInAPipeNeedsAFolderForAWhile(t *testing.T) {
	folder := t.TempDir()
	up := manyLosses("0a0a0a0a", 10, time.Second)
	for name, code := range map[string]int{folder: cli.ExitDone, filepath.Join(folder, "nowhere"): cli.ExitUsage} {
		t.Setenv("TMPDIR", name)
		_, errOut, got := call(t, strings.Join(reversed(up), "\n"), "report", "-")
		if got != code || code != cli.ExitDone && (strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, "standard input: ") || !strings.Contains(errOut, "--order=asc, or name a folder in TMPDIR")) {
			t.Errorf("exit code %d, want %d: %q", got, code, errOut)
		}
		if _, errOut, got = call(t, strings.Join(up, "\n"), "report", "-"); got != cli.ExitDone {
			t.Errorf("up: exit code %d, %q", got, errOut)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%d files are left: %v", len(left), err)
	}
}

// TestReportOfEntriesThatAreReceivedAtOnce: a log may give an entry the time at which it got it. Such a record has an order too.
func TestReportOfEntriesThatAreReceivedAtOnce(t *testing.T) {
	for name, later := range map[string]time.Duration{"at once": 0, "at a time that is left out": -1, "a second later": time.Second} {
		up := manyLosses("0a0a0a0a", 1500, later)
		want, _, _ := call(t, strings.Join(up, "\n"), "report", "--json", "-")
		got, errOut, code := call(t, strings.Join(reversed(up), "\n"), "report", "--json", "-")
		if code != cli.ExitDone || errOut != "" || strings.Count(want, `"at":`) != 1500 || got != want {
			t.Errorf("received %s: exit code %d, %q: %d losses up, %d down", name, code, errOut, strings.Count(want, `"at":`), strings.Count(got, `"at":`))
		}
	}
}

// couldNot is what a report says of so many faults.
func couldNot(n int) string {
	return terminal.Numbered(n, "entry or line", "entries or lines") + " could not be read"
}
