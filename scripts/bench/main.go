// Command bench measures the figures that Pitstop promises. It measures each one and its baseline in the same run on the same
// machine: one hop and a handler that publishes one fixed message, a function and a hello-world on the same framework. It prints
// each figure with its goal. go test -bench measures single functions.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mitchellh/go-wordwrap"
)

// figure is one measured value.
type figure struct {
	what, value, reach string
	ok                 bool
}

// benches are the measurements by name, in the order in which they run.
var benches = []struct {
	name string
	run  func(ctx context.Context) ([]figure, error)
}{
	{"read", benchRead},
	{"hop", benchHop},
	{"throughput", benchThroughput},
	{"burst", benchBurst},
	{"replay", benchReplay},
	{"record", benchRecord},
	{"start", benchStart},
	{"crew", benchCrew},
	{"chain", benchChain},
	{"patrol", benchPatrol},
	{"storm", benchStorm},
	{"notify", benchNotify},
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == serveArgument {
		if err := serveFunction(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == traineeArgument {
		trainee()
		return
	}
	only := flag.String("only", "", "the measurements to run, separated by commas: read, hop, throughput, burst, replay, record, start, crew, chain, patrol, storm, notify")
	record := flag.String("record", "", "write a made-up record to this file and measure nothing; - is standard output")
	entries := flag.Int("entries", recordEntries, "how many entries the record has")
	seed := flag.Uint64("seed", 1, "the seed of the record: the same seed writes the same bytes")
	flag.Parse()
	if *record != "" {
		if err := writeRecordFile(*record, *entries, *seed); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(context.Background(), *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string) error {
	if _, err := fmt.Printf("%s, %s/%s, %d cores (%s), %s\n\n%s", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor(), time.Now().UTC().Format(time.DateOnly),
		row("figure", "value", "has to reach", "")); err != nil {
		return err
	}
	var faults []error
	for _, b := range benches {
		if only != "" && !slices.Contains(strings.Split(only, ","), b.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "bench: measuring", b.name)
		figures, err := b.run(ctx)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", b.name, err))
		}
		for _, f := range figures {
			if _, err := fmt.Print(f.row()); err != nil {
				return err
			}
		}
	}
	return errors.Join(faults...)
}

// row is a figure as a row of the table.
func (f figure) row() string {
	mark := "reached"
	switch {
	case f.reach == "":
		mark = ""
	case !f.ok:
		mark = "NOT REACHED"
	}
	return row(f.what, f.value, f.reach, mark)
}

// widths are those of the table's columns. With two spaces between columns a row has 100.
var widths = []uint{30, 30, 23, 11}

// row is one row of the table and an empty line. A cell breaks at spaces.
func row(cells ...string) string {
	var b strings.Builder
	lines := make([][]string, len(cells))
	most := 0
	for i, c := range cells {
		lines[i] = strings.Split(wordwrap.WrapString(c, widths[i]), "\n")
		most = max(most, len(lines[i]))
	}
	for n := range most {
		line := ""
		for i, l := range lines {
			cell := ""
			if n < len(l) {
				cell = l[n]
			}
			line += fmt.Sprintf("%-*s  ", int(widths[i]), cell) //nolint:gosec // a width is small
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String() + "\n"
}

// processor is the model of the machine's processor, where it can be read.
func processor() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	_, after, _ := strings.Cut(string(raw), "model name")
	line, _, _ := strings.Cut(after, "\n")
	return strings.Trim(line, "\t :")
}

// percentile is the value below which p percent of the samples lie; the samples are sorted by it.
func percentile(samples []time.Duration, p int) time.Duration {
	slices.Sort(samples)
	return samples[min(len(samples)-1, len(samples)*p/100)]
}
