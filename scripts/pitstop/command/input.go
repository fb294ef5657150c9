package main

import (
	"fmt"
	"io"
	"os"

	"pitstop.internal/events"
	"pitstop.internal/scripts/scenario"
)

// maxEntries is how many entries are held at once: a replay orders them by time before it begins.
const maxEntries = 1_000_000

// readRecords reads the entries of files, "-" being standard input. What is no entry is told in one line each, and the
// rest is used all the same.
func readRecords(files []string, in io.Reader, errOut io.Writer) (records []scenario.Record, faults int) {
	left := 0
	for _, name := range files {
		each(name, in, func(r scenario.Record, err error) {
			switch {
			case err != nil:
				faults++
				tell(errOut, "pitstop: "+oneLine(err))
			case len(records) == maxEntries:
				left++
			default:
				records = append(records, r)
			}
		})
	}
	if left > 0 {
		faults++
		tell(errOut, fmt.Sprintf("pitstop: more than %s entries: the last %s are left out", events.Number(maxEntries), events.Number(int64(left))))
	}
	return records, faults
}

// noEntries says that there was nothing to do, and why that may be.
func noEntries(errOut io.Writer) {
	tell(errOut, "pitstop: 0 entries; gcloud logging read looks back one day, unless --freshness says more")
}

// each hands on the entries of one file.
func each(name string, in io.Reader, yield func(scenario.Record, error)) {
	if name == "-" {
		scenario.Records(in, "standard input", yield)
		return
	}
	f, err := os.Open(name)
	if err != nil {
		yield(scenario.Record{Where: name}, err)
		return
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		yield(scenario.Record{Where: name}, fmt.Errorf("%s: it is a folder; name the files in it", name))
		return
	}
	scenario.Records(f, name, yield)
}
