//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// callsOn are the calls of pitcrew on a page, in a script, a Dockerfile or a JobSet, as the words of each.
func callsOn(t *testing.T, name string) (calls [][]string) {
	t.Helper()
	raw, err := os.ReadFile(name)
	must(t, err)
	text := strings.ReplaceAll(string(raw), "\\\n", " ")
	for line := range strings.Lines(text) {
		line, listed := strings.TrimSpace(line), []string(nil)
		_, list, _ := strings.Cut(line, "[pitcrew,")
		_, array, _ := strings.Cut(line, `["pitcrew",`)
		switch {
		case list != "" && yaml.Unmarshal([]byte("["+list), &listed) == nil, array != "" && json.Unmarshal([]byte("["+array), &listed) == nil:
			calls = append(calls, listed)
		case strings.HasPrefix(line, "pitcrew "), strings.HasPrefix(line, "exec pitcrew "):
			_, line, _ = strings.Cut(line, "pitcrew ")
			calls = append(calls, wordsOf(line))
		}
	}
	if filepath.Ext(name) == ".md" {
		for _, span := range regexp.MustCompile("`pitcrew ([^`]+)`").FindAllStringSubmatch(text, -1) {
			calls = append(calls, wordsOf(span[1]))
		}
	}
	return calls
}

// wordsOf are the words of a call, without its comment and without placeholders for flags.
func wordsOf(line string) []string {
	line, _, _ = strings.Cut(line, " #")
	line = regexp.MustCompile(`\[([^\]]*--\]|flags\])`).ReplaceAllString(line, "")
	return strings.Fields(strings.ReplaceAll(line, `"`, ""))
}

// TestEveryCallOnThePagesIsOne: every call of pitcrew names a command that there is, with flags and values that it takes, and
// every flag that the page names is one. None is made.
func TestEveryCallOnThePagesIsOne(t *testing.T) {
	examples, err := filepath.Glob("examples/*")
	must(t, err)
	for _, name := range append(examples, "README.md", "../../README.md") {
		calls := callsOn(t, name)
		launches := strings.HasPrefix(name, "examples/maxtext-") // it has a launcher run maxtext.sh, and a test of its own
		if len(calls) == 0 && name != "examples/pitcrew.service" && !launches {
			t.Errorf("%s: no call of pitcrew", name)
		}
		for _, call := range calls {
			c, args, err := commands().Find(call)
			if err == nil && !c.HasParent() {
				t.Errorf("%s: pitcrew %s: there is no such command", name, strings.Join(call, " "))
				continue
			}
			if err == nil {
				err = c.ParseFlags(args)
			}
			if err == nil && c.ArgsLenAtDash() >= 0 {
				err = holdTraining(c, args)
			}
			if err != nil {
				t.Errorf("%s: pitcrew %s: %v", name, strings.Join(call, " "), err)
			}
		}
	}
}

// holdTraining holds the flags that are for run, and the training after them, against the flags of run.
func holdTraining(c *cobra.Command, args []string) error {
	if _, err := command(c, c.Flags().Args()); err != nil {
		return err
	}
	if c.Name() == "install" {
		if args = c.Flags().Args(); !slices.Contains(args, "--") {
			args = append([]string{"--"}, args...)
		}
	}
	dash := slices.Index(args, "--")
	var f flags
	run := &cobra.Command{}
	f.define(run)
	if err := run.ParseFlags(slices.DeleteFunc(slices.Clone(args[:dash]), func(a string) bool { return strings.HasPrefix(a, "--try=") })); err != nil {
		return err
	}
	return f.check(args[dash+1:])
}

func TestEveryFlagOnThePageIsOne(t *testing.T) {
	page, err := os.ReadFile("README.md")
	must(t, err)
	// Lines that call another program have flags of that program.
	page = regexp.MustCompile(`(?m)^ {4}(gcloud|uv) (.*\\\n)*.*$`).ReplaceAll(page, nil)
	found := regexp.MustCompile("--([a-z][a-z-]+)").FindAllStringSubmatch(string(page), -1)
	for _, m := range found {
		isOne := func(c *cobra.Command) bool { return c.Flags().Lookup(m[1]) != nil }
		if m[0] != "--block" && !slices.ContainsFunc(commands().Commands(), isOne) { // that is Ray's
			t.Errorf("--%s: no command has it", m[1])
		}
	}
	if len(found) < 10 {
		t.Errorf("only %d flags were held", len(found))
	}
}
