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

	"pitstop.internal/scripts/layout"
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
	{"simulate", benchSimulate},
	{"start", benchStart},
	{"crew", benchCrew},
	{"chain", benchChain},
	{"jobs", benchJobChain},
	{"patrol", benchPatrol},
	{"clusters", benchClusters},
	{"storm", benchStorm},
	{"notify", benchNotify},
	{"demo", benchDemo},
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == serveArgument {
		if err := serveFunction(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 3 && os.Args[1] == waitArgument {
		if err := waitFor(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == clustersArgument {
		if err := patrolClusters(context.Background(), os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == traineeArgument {
		trainee()
		return
	}
	var names []string
	for _, b := range benches {
		names = append(names, b.name)
	}
	only := flag.String("only", "", "the measurements to run, separated by commas: "+strings.Join(names, ", "))
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
	width := tableWidth()
	machine := fmt.Sprintf("%s, %s/%s, %d cores (%s), %s", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor(),
		time.Now().UTC().Format(time.DateOnly))
	if _, err := fmt.Printf("%s\n\n%s", strings.Join(layout.Break(machine, width, 2), "\n"),
		row(width, "figure", "value", "has to reach", "")); err != nil {
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
			if _, err := fmt.Print(f.row(width)); err != nil {
				return err
			}
		}
	}
	return errors.Join(faults...)
}

// row is a figure as a row of the table.
func (f figure) row(width int) string {
	mark := "reached"
	switch {
	case f.reach == "":
		mark = ""
	case !f.ok:
		mark = "NOT REACHED"
	}
	return row(width, f.what, f.value, f.reach, mark)
}

// leastWidth is how many columns the table takes at the least: in fewer, most cells would be one word wide.
const leastWidth = 80

// tableWidth is how many columns the table takes: those of the terminal.
func tableWidth() int { return max(layout.Width(os.Stdout), leastWidth) }

const (
	columnGap = "  "
	markWidth = len("NOT REACHED")
)

// widths are those of the table's columns in so many columns of the terminal. The last holds a mark; the others share the rest.
func widths(width int) [4]int {
	rest := width - markWidth - 3*len(columnGap)
	most := rest * 30 / 83
	return [4]int{most, most, rest - 2*most, markWidth}
}

// row is one row of the table and an empty line. A cell breaks at spaces.
func row(width int, what, value, reach, mark string) string {
	wide := widths(width)
	var lines [len(wide)][]string
	most := 0
	for i, c := range []string{what, value, reach, mark} {
		lines[i] = layout.Break(c, wide[i], 0)
		most = max(most, len(lines[i]))
	}
	var b strings.Builder
	for n := range most {
		line := ""
		for i, l := range lines {
			cell := ""
			if n < len(l) {
				cell = l[n]
			}
			line += cell + strings.Repeat(" ", max(0, wide[i]-layout.Columns(cell))) + columnGap
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
