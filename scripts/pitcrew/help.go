//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pitstop.internal/scripts/layout"
	"pitstop.internal/scripts/pitcrew/crew"
)

// page is how wide the help is: every terminal has that many columns.
const page = 80

// group is the annotation of a flag that names its group on the help page. A flag without one stands under "Flags".
const group = "group"

// timings is the group with a page of its own, pitcrew help timings: few people change these flags.
const timings = "Timings"

// mark puts the flags that have no group yet into this one.
func mark(c *cobra.Command, title string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[group] == nil {
			f.Annotations = map[string][]string{group: {title}}
		}
	})
}

// grouped are the flags of a command in their groups, and the titles in the order of definition.
func grouped(c *cobra.Command) (titles []string, sets map[string]*pflag.FlagSet) {
	sets = map[string]*pflag.FlagSet{}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		title := "Flags"
		if g := f.Annotations[group]; g != nil {
			title = g[0]
		}
		if sets[title] == nil {
			titles = append(titles, title)
			sets[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			sets[title].SortFlags = false
		}
		sets[title].AddFlag(f)
	})
	return titles, sets
}

// explain prints the help of a command: its purpose, its call, examples, and its flags in their groups.
func explain(c *cobra.Command, _ []string) {
	var b strings.Builder
	section := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s\n", title, text)
		}
	}
	for line := range strings.SplitSeq(cmp.Or(c.Long, c.Short), "\n") {
		b.WriteString(hang(line, page, 0) + "\n")
	}
	switch {
	case c.HasAvailableSubCommands():
		section("Usage", "  "+c.CommandPath()+" COMMAND")
	case c.Runnable():
		section("Usage", "  "+c.UseLine())
	}
	section("Examples", c.Example)
	section("Commands", listed(c, (*cobra.Command).IsAvailableCommand))
	section("More help", listed(c, (*cobra.Command).IsAdditionalHelpTopicCommand))
	titles, sets := grouped(c)
	for _, title := range titles {
		if title != timings && (c.Runnable() || c.HasSubCommands()) {
			section(title, sets[title].FlagUsagesWrapped(page))
		}
	}
	switch {
	case sets[timings] != nil:
		b.WriteString("\nTimings, such as --stop-grace, have a page of their own: pitcrew help timings\n")
	case c.HasAvailableSubCommands():
		b.WriteString("\nHelp for one command: pitcrew help COMMAND\n")
	}
	_, _ = fmt.Fprint(c.OutOrStdout(), b.String()) //nolint:errcheck // nobody reads it then
}

// listed names those subcommands, each with its purpose.
func listed(c *cobra.Command, which func(*cobra.Command) bool) string {
	const indent = 14
	var b strings.Builder
	for _, s := range c.Commands() {
		if which(s) {
			b.WriteString(hang(fmt.Sprintf("  %-*s%s", indent-2, s.Name(), s.Short), page, indent) + "\n")
		}
	}
	return b.String()
}

// hang breaks a line between words; what follows the first break is indented.
func hang(line string, width, indent int) string {
	return strings.Join(layout.Break(line, width, indent), "\n")
}

// timingsTopic is the second help page of run: the flags that say how often and how long.
func timingsTopic() *cobra.Command {
	run := runCommand()
	_, sets := grouped(run)
	return &cobra.Command{
		Use: "timings", Short: "Flags of run and doctor that say how often and how long",
		Long: "Timings are flags of pitcrew run and pitcrew doctor. The defaults fit a Cloud TPU. All pitcrews of a checkpoint directory " +
			"should have the same --lease times.\n\n" +
			"--lease-unread and a twentieth of it, --stop-grace, --dump-grace and --leftovers-grace together stay below 6 minutes. After " +
			"6 minutes another machine may train into the same directory.\n\n" +
			strings.TrimRight(sets[timings].FlagUsagesWrapped(page), "\n"),
	}
}

// unknown is the error for a command that does not exist.
func unknown(root *cobra.Command, args []string) error {
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		return usage("there is no command %q; did you mean pitcrew %s?", args[0], strings.Join(near, " or pitcrew "))
	}
	if _, err := exec.LookPath(args[0]); err == nil {
		return usage("there is no command %q; to run a training: pitcrew run -- %s", args[0], quoted(args))
	}
	return usage("there is no command %q; see pitcrew --help", args[0])
}

// helpKnowsItsTopics has help refuse what is no command, as pitcrew itself does.
func helpKnowsItsTopics(root *cobra.Command) {
	help, _, err := root.Find([]string{"help"})
	if err != nil || help.Run == nil {
		return
	}
	show := help.Run
	help.Run = nil
	help.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			if topic, _, err := root.Find(args); err != nil || topic == root {
				return unknown(root, args)
			}
		}
		show(c, args)
		return nil
	}
}

// unknownFlag names the flags that are near a mistyped one. Cobra finds near commands, so each flag stands for a command.
func unknownFlag(c *cobra.Command, err error) error {
	missing := (*pflag.NotExistError)(nil)
	if !errors.As(err, &missing) {
		return exit{crew.CodeUsage, err}
	}
	known := &cobra.Command{SuggestionsMinimumDistance: 2}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	near := known.SuggestionsFor(missing.GetSpecifiedName())
	if len(near) == 0 || len(near) > 3 {
		return usage("%w; see pitcrew help %s", err, c.Name())
	}
	return usage("%w; did you mean --%s?", err, strings.Join(near, " or --"))
}

// quoted are words as a shell reads them.
func quoted(args []string) string {
	words := make([]string, 0, len(args))
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n\"'\\$`*?[]{}()<>|&;#~!") {
			a = shell(a)
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// A release sets these by -ldflags "-X main.version=... -X main.commit=...", because Go then knows nothing of the checkout.
var version, commit string

// versionText is pitcrew's version, the commit that it was built from, and Go's version.
func versionText() string {
	v, from, golang := cmp.Or(version, "(devel)"), commit, "unknown Go"
	if info, ok := debug.ReadBuildInfo(); ok {
		v, golang = cmp.Or(version, info.Main.Version, "(devel)"), info.GoVersion
		set := map[string]string{}
		for _, s := range info.Settings {
			set[s.Key] = s.Value
		}
		from = cmp.Or(from, set["vcs.revision"])
		if set["vcs.modified"] == "true" {
			from += " with changes"
		}
	}
	return fmt.Sprintf("%s, commit %s, %s", v, cmp.Or(from, "unknown"), golang)
}
