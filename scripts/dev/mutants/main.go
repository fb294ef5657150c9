// Command mutants breaks Pitstop's rules on purpose, one at a time, and lets the simulation find out: a rule whose breaking
// nobody notices is not proved by it. A mutant breaks what goes into a decision, what comes out of it, or what a function
// calls and reads, and never the judge. It prints which seed caught which mutant, and by what.
//
//	go run ./scripts/dev/mutants [-seeds 200] [NAME...]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

const usage = `usage: go run ./scripts/dev/mutants [-seeds 200] [NAME...]
Breaks Pitstop's rules on purpose, one after the other, and prints who notices; with a NAME, in quotes, that mutant alone. Exit
code 1 when one is not noticed.
`

func main() {
	seeds := flag.Uint64("seeds", 200, "how many seeds a mutant may survive")
	flag.Usage = func() {
		_, _ = fmt.Fprint(flag.CommandLine.Output(), usage) //nolint:errcheck // nobody is left to tell
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(context.Background(), *seeds, flag.Args(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, seeds uint64, names []string, out, progress io.Writer) error {
	chosen, err := named(names)
	if err != nil {
		return err
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("call this in Pitstop's repository: %w", err)
	}
	h, err := newHunt(strings.TrimSpace(string(root)))
	if err != nil {
		return err
	}
	debug.SetGCPercent(400) // a simulation makes much garbage and needs little memory
	survived := 0
	_, _ = fmt.Fprintf(out, "%-12s %-72s %-10s %s\n", "rule", "mutant", "caught by", "what it broke") //nolint:errcheck // as all lines below
	for i, m := range chosen {
		_, _ = fmt.Fprintf(progress, "mutants: %d of %d, %s\n", i+1, len(chosen), m.name) //nolint:errcheck // progress alone
		began := time.Now()
		found, err := h.hunt(ctx, m, seeds)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if found.by == "" {
			survived++
			found.by, found.text = "NOBODY", fmt.Sprintf("%d seeds, %.0f s", seeds, time.Since(began).Seconds())
		}
		_, _ = fmt.Fprintf(out, "%-12s %-72s %-10s %s\n", m.rule, m.name, found.by, found.text) //nolint:errcheck // the exit code tells
	}
	if survived > 0 {
		return fmt.Errorf("%d of %d mutants were not caught", survived, len(chosen))
	}
	return nil
}

// named are the mutants of these names, or all of them.
func named(names []string) ([]mutant, error) {
	if len(names) == 0 {
		return mutants, nil
	}
	var chosen []mutant
	for _, name := range names {
		i := slices.IndexFunc(mutants, func(m mutant) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no mutant %q; without a name all are run", name)
		}
		chosen = append(chosen, mutants[i])
	}
	return chosen, nil
}
