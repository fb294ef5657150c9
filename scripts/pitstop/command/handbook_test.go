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

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

// page reads a page, by its path in the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("../../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// callsOn are the lines of a page that call the command: those of its code blocks, without what is said beside them.
func callsOn(page string) (calls []string) {
	for line := range strings.SplitSeq(page, "\n") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "go run ./scripts/pitstop "); ok && line[0] == ' ' {
			text, _, _ = strings.Cut(text, " #")
			calls = append(calls, text)
		}
	}
	return calls
}

// TestEveryCallOnThePagesIsOne: every line that calls the command names a verb that there is, with flags and arguments that it
// takes, and so does every call in the middle of a sentence, which may leave arguments out. None is made.
func TestEveryCallOnThePagesIsOne(t *testing.T) {
	fenced := regexp.MustCompile("(?s)```.*?```")
	for name, least := range map[string]int{
		"README.md": 10, "functions/README.md": 5, "scripts/pitstop/README.md": 25, "scripts/pitcrew/README.md": 0, "scripts/sim/README.md": 6,
		"shared/README.md": 0, "terraform/README.md": 18, "terraform/alerts.tf": 11,
	} {
		text := fenced.ReplaceAllString(page(t, name), "")
		held := 0
		hold := func(call string, whole bool) {
			held++
			c, args, err := commands().Find(words(call))
			if err == nil && !c.HasParent() {
				err = errors.New("there is no such verb")
			}
			if err == nil {
				c.InitDefaultHelpFlag()
				err = c.ParseFlags(args)
			}
			if err == nil && whole {
				err = c.ValidateArgs(c.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: pitstop %s: %v", name, call, err)
			}
		}
		for _, call := range callsOn(text) {
			hold(call, true)
		}
		for _, made := range regexp.MustCompile(`for verb in \[([^]]+)\]`).FindAllStringSubmatch(text, -1) { // Terraform makes the calls of these
			for _, verb := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(made[1], -1) {
				hold(verb[1]+" --project MINE --prefix other", false)
			}
		}
		for _, span := range regexp.MustCompile("`([^`|]+)`").FindAllStringSubmatch(text, -1) {
			call := strings.TrimPrefix(span[1], "go run ./scripts/")
			verb := strings.Fields(strings.TrimPrefix(call, "pitstop "))
			switch {
			case len(verb) == 0 || verb[0] == "VERB" || verb[0] == "X" || verb[0] == "${verb}": // whichever it is
			case strings.HasPrefix(call, "pitstop "):
				hold(strings.Join(verb, " "), false)
			case len(verb) > 1 && slices.ContainsFunc(commands().Commands(), func(c *cobra.Command) bool { return c.Name() == verb[0] }):
				hold(call, false)
			}
		}
		if held < least {
			t.Errorf("only %d calls of %s were held", held, name)
		}
	}
}

// TestTheReadmeShowsARealReplay holds the output on the first page against what the command beside it prints: line by line, with gaps
// where the page says so.
func TestTheReadmeShowsARealReplay(t *testing.T) {
	t.Setenv("COLUMNS", "100")
	out, _, code := call(t, "", "replay", "preemption")
	if code != 0 {
		t.Fatalf("replay preemption ends with %d", code)
	}
	_, shown, ok := strings.Cut(page(t, "README.md"), "```text\npreemption · ")
	shown, _, closed := strings.Cut("preemption · "+shown, "\n```")
	if !ok || !closed {
		t.Fatal("the README shows no replay")
	}
	lines, gap, held := strings.Split(out, "\n"), true, 0
	for line := range strings.SplitSeq(shown, "\n") {
		if line == "..." {
			gap = true
			continue
		}
		at := slices.Index(lines, line)
		if at < 0 || at > 0 && !gap {
			t.Fatalf("the README shows the line %q, which replay does not print there", line)
		}
		lines, gap, held = lines[at+1:], false, held+1
	}
	if held < 15 {
		t.Errorf("only %d lines were held", held)
	}
}

// scene is a deployment as it stands when somebody calls a verb.
func scene(t *testing.T, verb string) *deploymenttest.Bench {
	t.Helper()
	switch verb {
	case "check":
		b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
		return b
	case "scale":
		b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
		b.Measures("gs://ckpt/llama-8b", deploymenttest.SpeedOn(1, "v5litepod-16", 512, 4000))
		return b
	case "drill":
		return deploymenttest.Exercise(t, ledgertest.NewStore().Open, map[int]func(*deploymenttest.Bench){2: deploymenttest.Opens, 8: deploymenttest.Resumes})
	case "canary":
		b := deploymenttest.New(t, ledgertest.NewStore().Open)
		s := &deploymenttest.CanarySink{B: b}
		b.Canary = s
		b.Sleep = func(ctx context.Context, _ time.Duration) error {
			_, err := b.Ledger.CanaryReturned(ctx, s.Project, s.ID, ledger.Way{Written: s.Written, Received: s.Written, Published: s.Written}, s.Written)
			return err
		}
		return b
	}
	b, _, _ := deploymenttest.CloudOf(t) // with a sleep that ends what would look again for ever
	b.Sleep = func(context.Context, time.Duration) error { return context.Canceled }
	w := deploymenttest.Asking(func(s *deploymenttest.Story) { s.End = deploymenttest.Noon.Add(-9 * cli.Day) })
	if _, err := b.Ledger.Save(t.Context(), w, ledger.Revision{}); err != nil {
		t.Fatal(err)
	}
	b.Allows("recreate")
	return b
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
	d := deployment.Deployment{Now: func() time.Time { return deploymenttest.Noon }}
	for _, args := range [][]string{
		{"status"},
		{"incident", "llama-8b-20261112-2"},
		{"incidents"},
		{"pause", "w"},
		{"resume", "w"},
		{"approve", "llama-8b-20261112-2"},
		{"cancel", "llama-8b-20261112-2"},
		{"retry", "w"},
		{"attach", "w", "--policy", "spot"},
		{"detach", "w"},
		{"redrive", "recreate-requests"},
		{"check", "w"},
		{"scale", "w"},
		{"canary"},
		{"drill", "w", "--yes"},
		{"watch"},
	} {
		root := &cobra.Command{Use: "pitstop", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(verbs(d)...)
		root.SetArgs(args)
		var wrong cli.UsageError
		if err := root.ExecuteContext(t.Context()); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "--project is missing") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
