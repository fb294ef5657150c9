package main

import (
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
)

// callsIn are the calls of the command in a line of a shell, without what the shell itself reads.
func callsIn(line string) (calls []string) {
	for _, part := range regexp.MustCompile(`(?:^|[ (])pitstop(?: |$)`).Split(line, -1)[1:] {
		if end := strings.IndexAny(part, "|<>)"); end >= 0 {
			part = part[:end]
		}
		calls = append(calls, strings.TrimSpace(part))
	}
	return calls
}

// TestEveryVerbHasExamplesThatAreCalls: each line of an example calls the verb that it is an example of, with flags and arguments
// that the verb takes. The examples of a command with verbs below it call one of those.
func TestEveryVerbHasExamplesThatAreCalls(t *testing.T) {
	verbs := 0
	everyCommand(commands(), func(c *cobra.Command) {
		verbs++
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.SplitSeq(c.Example, "\n") {
			calls := callsIn(line)
			if len(calls) == 0 {
				t.Errorf("%s: %q calls nothing", c.CommandPath(), line)
			}
			for _, call := range calls {
				found, args, err := commands().Find(words(call))
				if err == nil {
					found.InitDefaultHelpFlag()
					err = found.ParseFlags(args)
				}
				if err == nil {
					err = found.ValidateArgs(found.Flags().Args())
				}
				if err != nil || !strings.HasPrefix(found.CommandPath(), c.CommandPath()) || !c.HasParent() && found == found.Root() {
					t.Errorf("%s: %q calls %s, %v", c.CommandPath(), line, found.CommandPath(), err)
				}
			}
		}
	})
	for path := range examples {
		if c, _, err := commands().Find(strings.Fields(path)[1:]); err != nil || c.CommandPath() != path {
			t.Errorf("there is an example of %s, which is no command", path)
		}
	}
	if verbs < 24 {
		t.Errorf("only %d commands were looked at", verbs)
	}
}

func TestParagraphsAreBrokenAnewAndListsKeepTheirPlace(t *testing.T) {
	text := "One\ntwo three four.\n\n  a     five six\n        seven\n  causes:\n    eight: 9   # ten\n    b\nEnd\nof it."
	want := []string{"One two three", "four.", "", "  a     five six", "        seven", "  causes:", "    eight: 9   #", "      ten", "    b", "End of it."}
	if got := flowed(text, 16); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestHelpIsPrinted by the flag and by the command.
func TestHelpIsPrinted(t *testing.T) {
	byFlag, _, _ := call(t, "", "simulate", "--help")
	byCommand, _, _ := call(t, "", "help", "simulate")
	if byFlag != byCommand || !strings.Contains(byFlag, "pitstop simulate --seed 42") || !strings.Contains(byFlag, "\nFlags:\n") {
		t.Errorf("help is %q and %q", byFlag, byCommand)
	}
	out, _, _ := call(t, "", "--help")
	if !strings.Contains(out, "130 when Ctrl-C ended it") {
		t.Errorf("the help names no exit code of Ctrl-C: %q", out)
	}
	if byCommand, _, code := call(t, "", "help"); byCommand != out || code != cli.ExitDone {
		t.Errorf("exit code %d, help of everything is %q and %q", code, out, byCommand)
	}
}

func TestAWrongNameNamesTheNearest(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"statsu"}, `pitstop has no command "statsu"; did you mean status?`},
		{[]string{"statsu", "--project", "mine"}, `pitstop has no command "statsu"; did you mean status?`},
		{[]string{"help", "repaly"}, `pitstop has no command "repaly"; did you mean replay?`},
		{[]string{"help", "policy", "chek"}, `pitstop policy has no command "chek"; did you mean check?`},
		{[]string{"help", "frobnicate"}, `pitstop has no command "frobnicate"; pitstop --help lists all`},
		{[]string{"frobnicate"}, `pitstop has no command "frobnicate"; pitstop --help lists all`},
		{[]string{"policy", "chek", "x"}, `pitstop policy has no command "chek"; did you mean check?`},
		{[]string{"replay", "--polcy", "spot"}, `pitstop replay has no flag --polcy; did you mean --policy?`},
		{[]string{"status", "--projct=mine"}, `pitstop status has no flag --projct; did you mean --project?`},
		{[]string{"--versin"}, `pitstop has no flag --versin; did you mean --version?`},
		{[]string{"simulate", "--frobnicate"}, `pitstop simulate has no flag --frobnicate; pitstop simulate --help lists all`},
		{[]string{"simulate", "-x"}, `unknown shorthand flag: 'x' in -x; pitstop simulate --help lists the flags`},
		{[]string{"simulate", "--days", "many"}, `invalid argument "many" for "--days" flag: strconv.ParseFloat: parsing "many": invalid syntax; pitstop simulate --help lists the flags`},
	} {
		out, errOut, code := call(t, "", c.args...)
		if out != "" || errOut != "pitstop: "+c.says+"\n" || code != cli.ExitUsage {
			t.Errorf("%q: exit code %d, %q and %q, want %q", c.args, code, out, errOut, c.says)
		}
	}
}

// TestWhatIsForProgramsKeepsItsLines: JSON, scripts and filters are not broken at any width.
func TestWhatIsForProgramsKeepsItsLines(t *testing.T) {
	for _, args := range [][]string{
		{"filter"},
		{"filter", "--json"},
		{"policy", "schema"},
		{"explain", "--json", "-"},
		{"completion", "bash"},
		{cobra.ShellCompRequestCmd, "re"},
	} {
		t.Setenv("COLUMNS", "10000")
		wide, _, _ := call(t, entriestest.Preempted("2"), args...)
		t.Setenv("COLUMNS", "40")
		if narrow, _, _ := call(t, entriestest.Preempted("2"), args...); narrow != wide || wide == "" {
			t.Errorf("%q depends on the width:\n%s\n%s", args, wide, narrow)
		}
	}
	t.Setenv("COLUMNS", "80")
	out, _, _ := call(t, entriestest.Preempted("2"), "explain", "-")
	for line := range strings.Lines(out) {
		if len([]rune(line)) > 81 {
			t.Errorf("explain prints %q", line)
		}
	}
}

func TestTheVersionSaysWhatThisIsAndWhatItReads(t *testing.T) {
	out, _, code := call(t, "", "--version")
	for _, want := range []string{"pitstop  ", "\ncommit   ", "\nbuilt    with go1.", "\nreads    ledger documents up to schema ", "policy files of schema "} {
		if !strings.Contains(out, want) || code != cli.ExitDone {
			t.Errorf("exit code %d, %q, want %q", code, out, want)
		}
	}
	bi := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v0.0.0-20261112021406-1cb901d00000+dirty"}, Settings: []debug.BuildSetting{
		{Key: "GOOS", Value: "linux"},
		{Key: "GOARCH", Value: "amd64"},
		{Key: "vcs.revision", Value: "1cb901d"},
		{Key: "vcs.modified", Value: "true"},
	}}
	for _, c := range []struct {
		bi              *debug.BuildInfo
		version, commit string
		want            string
	}{
		{bi, "", "", "pitstop  v0.0.0-20261112021406-1cb901d00000+dirty\ncommit   1cb901d, with changes that are not committed\nbuilt    with go1.26.8 for linux/amd64\n"},
		{bi, "v1.2.0", "77aa", "pitstop  v1.2.0\ncommit   77aa\nbuilt    with go1.26.8 for linux/amd64\n"},
		{bi, "v1.2.0-unclean", "77aa", "pitstop  v1.2.0-unclean\ncommit   77aa, with changes that are not committed\nbuilt    with go1.26.8 for linux/amd64\n"},
		{&debug.BuildInfo{GoVersion: "go1.26.8"}, "", "", "pitstop  unknown: Go recorded no commit in this build\ncommit   unknown\nbuilt    with go1.26.8\n"},
	} {
		if got := buildText(c.bi, c.version, c.commit); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
