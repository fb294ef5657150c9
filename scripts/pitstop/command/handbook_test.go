package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/shared/ledger"
)

// TestTheHandbookIsTrue calls every line of the README that operates a deployment, word for word, and holds its table of verbs
// against the verbs that there are.
func TestTheHandbookIsTrue(t *testing.T) {
	raw, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(raw), "\n## Look at it, hold it, take it over\n")
	section, _, ok := strings.Cut(section, "\n## ")
	if !ok {
		t.Fatal("the README has no such section any more")
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("prices.yaml", []byte("v5litepod: {spot: 0.48, other: 1.20}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	called := 0
	for line := range strings.SplitSeq(section, "\n") {
		text, ok := strings.CutPrefix(line, "    go run ./scripts/pitstop ")
		if !ok {
			continue
		}
		text, _, _ = strings.Cut(text, " #")
		b, _, _ := cloudOf(t)
		b.sleep = func(context.Context, time.Duration) error { return context.Canceled }
		w := asking()
		w.Incident.ID = "llama-8b-20261112-3"
		if _, err := b.ledger.Save(t.Context(), w, ledger.Revision{}); err != nil {
			t.Fatal(err)
		}
		b.allows("recreate")
		args := words(text)
		i := slices.Index(args, "--project")
		if i < 0 || args[i+1] != "MINE" {
			t.Fatalf("%q names no project MINE", text)
		}
		args = slices.Delete(args, i, i+2)
		if got, err := b.call(args...); err != nil || got == "" {
			t.Errorf("%s: %v\n%s", text, err, got)
		}
		called++
	}
	if called < 5 {
		t.Errorf("only %d lines were called", called)
	}

	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(section, -1) {
		for _, verb := range regexp.MustCompile("`([a-z]+)").FindAllStringSubmatch(row[1], -1) {
			told = append(told, verb[1])
		}
	}
	var there []string
	for _, c := range deployed.commands() {
		there = append(there, c.Name())
		if c.Short == "" || c.Long == "" || c.RunE == nil {
			t.Errorf("%s says nothing of itself", c.Name())
		}
	}
	slices.Sort(told)
	slices.Sort(there)
	if !slices.Equal(told, there) {
		t.Errorf("the README has the verbs %v, and there are %v", told, there)
	}
}

// words are those of a shell line in which double quotes hold some together.
func words(line string) (all []string) {
	for i, part := range strings.Split(strings.TrimSpace(line), `"`) {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

// TestEveryVerbNeedsItsPlace: a call without a project ends before anything is opened.
func TestEveryVerbNeedsItsPlace(t *testing.T) {
	d := deployment{now: func() time.Time { return noon }}
	for _, args := range [][]string{
		{"status"},
		{"incident", "i-1"},
		{"pause", "w"},
		{"resume", "w"},
		{"approve", "i-1"},
		{"cancel", "i-1"},
		{"retry", "w"},
		{"attach", "w", "--policy", "spot"},
		{"detach", "w"},
		{"redrive", "recreate-requests"},
		{"check", "w"},
		{"canary"},
		{"drill", "w", "--yes"},
		{"watch"},
	} {
		root := &cobra.Command{Use: "pitstop", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(d.commands()...)
		root.SetArgs(args)
		var wrong usageError
		if err := root.ExecuteContext(t.Context()); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "--project is missing") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
