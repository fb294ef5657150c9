// Command mutants breaks Pitstop's rules on purpose, one at a time in a copy of the repository, and lets the simulation find
// out: a rule whose breaking nobody notices is not proved by it. It prints which seed caught which mutant, and by what.
//
//	go run ./scripts/mutants [-seeds 200] [NAME...]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mutant is one way to break a rule.
type mutant struct {
	rule, name string
	edits      []edit
}

// The faults that mutants are run under.
var (
	heavy   = []string{"--faults", "heavy", "--days", "1"}
	hostile = []string{
		"--faults", "hostile", "--days", "2", "--fleet", "scripts/scenario/testdata/rare/fleet.yaml",
		"--policy", "scripts/scenario/testdata/rare/policy.yaml", "--rates", "scripts/scenario/testdata/rare/rates.yaml",
	}
)

// edit replaces a text that stands once in a file.
type edit struct{ file, old, new string }

// batch is how many seeds are run before it is looked whether one has caught the mutant.
const batch = 20

func main() {
	seeds := flag.Int("seeds", 200, "how many seeds a mutant may survive")
	flag.Parse()
	if err := run(context.Background(), *seeds, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, seeds int, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.name == name }) {
			return fmt.Errorf("there is no mutant %q; without a name all are run", name)
		}
	}
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary folder
	root = strings.TrimSpace(root)
	itself := filepath.Join(dir, "pitstop")
	if _, err := output(ctx, root, "go", "build", "-o", itself, "./scripts/pitstop/command"); err != nil {
		return err
	}
	survived := 0
	faults := heavy
	fmt.Printf("%-12s %-52s %-10s %s\n", "rule", "mutant", "caught by", "what it broke")
	for i, m := range mutants {
		if i == len(common) {
			faults = hostile
		}
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		began := time.Now()
		found, err := m.hunt(ctx, root, filepath.Join(dir, "copy"), faults, seeds)
		if err != nil { // the others are told of all the same
			survived++
			fmt.Printf("%-12s %-52s %-10s %s\n", m.rule, m.name, "NO MUTANT", err)
			continue
		}
		if found.Seed > 0 {
			if same, err := simulate(ctx, root, itself, faults, found.Seed, 1); err != nil || same.Seed > 0 {
				return fmt.Errorf("%s: seed %d breaks a rule without the mutant: %s: %s, %w", m.name, found.Seed, same.Rule, same.Text, err)
			}
		}
		if found.Seed < 0 {
			survived++
			fmt.Printf("%-12s %-52s %-10s %d seeds, %.0f s\n", m.rule, m.name, "NOBODY", seeds, time.Since(began).Seconds())
			continue
		}
		fmt.Printf("%-12s %-52s seed %-5d %s: %s\n", m.rule, m.name, found.Seed, found.Rule, found.Text)
	}
	if survived > 0 {
		return fmt.Errorf("%d mutants were not caught", survived)
	}
	return nil
}

// catch is the first violation that a mutant brought about; Seed is -1 where there was none.
type catch struct {
	Seed int
	Rule string
	Text string
}

// hunt runs a mutant until a seed catches it.
func (m mutant) hunt(ctx context.Context, root, dir string, faults []string, seeds int) (catch, error) {
	if err := copyTree(ctx, root, dir); err != nil {
		return catch{}, err
	}
	for _, e := range m.edits {
		if err := e.apply(dir); err != nil {
			return catch{}, err
		}
	}
	binary := filepath.Join(dir, "pitstop.mutant")
	if _, err := output(ctx, dir, "go", "build", "-o", binary, "./scripts/pitstop/command"); err != nil {
		return catch{}, err
	}
	for seed := 1; seed <= seeds; seed += batch {
		if found, err := simulate(ctx, dir, binary, faults, seed, min(batch, seeds-seed+1)); err != nil || found.Seed > 0 {
			return found, err
		}
	}
	return catch{Seed: -1}, nil
}

// simulate runs seeds and returns the first violation; its seed is -1 where there is none.
func simulate(ctx context.Context, dir, binary string, faults []string, seed, seeds int) (catch, error) {
	out, err := output(ctx, dir, binary, append([]string{
		"simulate", "--json", "--slices", "4", "--seed", strconv.Itoa(seed), "--seeds", strconv.Itoa(seeds),
	}, faults...)...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return catch{Seed: -1}, nil
	case !errors.As(err, &exit) || exit.ExitCode() != 1:
		return catch{seed, "crash", firstLine(err.Error())}, nil
	}
	return first(out)
}

// first finds the first violation in the reports of several seeds.
func first(reports string) (catch, error) {
	for line := range strings.Lines(reports) {
		var r struct {
			Seed       int
			Violations []struct{ Rule, Text string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return catch{}, err
		}
		if len(r.Violations) > 0 {
			return catch{r.Seed, r.Violations[0].Rule, r.Violations[0].Text}, nil
		}
	}
	return catch{}, errors.New("it failed, and no report tells of a violation")
}

// copyTree copies what git knows, with what is not committed.
func copyTree(ctx context.Context, root, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	files, err := output(ctx, root, "git", "ls-files", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.Lines(files) {
		name = strings.TrimSpace(name)
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted and not committed
		}
		if err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o600); err != nil { //nolint:gosec // git names the files
			return err
		}
	}
	return nil
}

func (e edit) apply(dir string) error {
	name := filepath.Join(dir, filepath.FromSlash(e.file))
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if n := bytes.Count(data, []byte(e.old)); n != 1 {
		return fmt.Errorf("%s: %q stands there %d times, want once: the code has changed, and the mutant has to follow", e.file, e.old, n)
	}
	return os.WriteFile(name, bytes.Replace(data, []byte(e.old), []byte(e.new), 1), 0o600) //nolint:gosec // the table names the file
}

// output runs a program and returns what it printed; its error says what it complained of.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // git, go, and what they built
	c.Dir = dir
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %.500s", err, said.String())
	}
	return out.String(), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
