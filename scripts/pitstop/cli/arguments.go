package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pitstop.internal/shared/policy"
)

// Day is 24 hours.
const Day = 24 * time.Hour

// days is a span of time as people write it: that of time.ParseDuration, and days before it, as in 30d or 1d12h.
type days time.Duration

// Set and the methods below implement pflag.Value.
func (d *days) Set(text string) error {
	count, rest, in := strings.Cut(text, "d")
	if !in {
		count, rest = "0", text
	}
	n, err := strconv.ParseInt(count, 10, 32)
	var more time.Duration
	if rest != "" && err == nil {
		more, err = time.ParseDuration(rest)
	}
	if err != nil || n > 100*365 || n < 0 || more < 0 {
		return fmt.Errorf("%q is no span of time such as 30d, 12h or 1d12h", text)
	}
	*d = days(time.Duration(n)*Day + more)
	return nil
}

func (d *days) String() string {
	whole, rest := time.Duration(*d)/Day, time.Duration(*d)%Day
	switch {
	case whole <= 0:
		return time.Duration(*d).String()
	case rest == 0:
		return strconv.Itoa(int(whole)) + "d"
	}
	return strconv.Itoa(int(whole)) + "d" + rest.String()
}

// Type is how pflag calls it in help.
func (*days) Type() string { return "duration" }

// SpanVar adds a flag for a span of time that may be days.
func SpanVar(f *pflag.FlagSet, span *time.Duration, name string, value time.Duration, usage string) {
	*span = value
	f.Var((*days)(span), name, usage)
}

// What the arguments look like. A verb checks them before it asks Google anything.
var (
	projectForm  = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z][a-z0-9-]{0,28}[a-z0-9]$`)
	PrefixForm   = regexp.MustCompile(`^([a-z][a-z0-9]{0,4}-)?$`)
	DatabaseForm = regexp.MustCompile(`^(\(default\)|[a-z][a-z0-9-]{2,61}[a-z0-9])$`)
	NameForm     = regexp.MustCompile(`^[A-Za-z0-9_~+][A-Za-z0-9_.~+-]*$`)
	incidentForm = regexp.MustCompile(`^[A-Za-z0-9_~+][A-Za-z0-9_~+-]*-[0-9]{8}-[0-9]+$`)
	LabelForm    = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)
)

// CheckProject refuses what no project is called.
func CheckProject(flag, project string) error {
	switch {
	case project == "":
		return Usage("%s is missing: it names a project, as in %s my-project", flag, flag)
	case !projectForm.MatchString(project):
		return Usage("%s %q is no ID of a project: one has small letters, digits and hyphens, as in my-project-123", flag, project)
	}
	return nil
}

// CheckWorkload refuses what no workload is called.
func CheckWorkload(word string) error {
	project, name, ok := strings.Cut(word, "/")
	if !ok {
		project, name = "", word
	}
	if !NameForm.MatchString(name) || ok && !projectForm.MatchString(project) {
		return Usage("%q is no workload: name it NAME or PROJECT/NAME, as status does", word)
	}
	return nil
}

// CheckWorkloads refuses what no workloads are called.
func CheckWorkloads(words []string) error {
	for _, w := range words {
		if err := CheckWorkload(w); err != nil {
			return err
		}
	}
	return nil
}

// CheckIncident refuses what no incident's ID looks like: NAME-DATE-NUMBER, or that behind PROJECT/ or PROJECT/NAME/.
func CheckIncident(word string) error {
	parts := strings.Split(word, "/")
	id := parts[len(parts)-1]
	isNoName := func(p string) bool { return !NameForm.MatchString(p) }
	if len(parts) > 3 || !incidentForm.MatchString(id) || slices.ContainsFunc(parts[:len(parts)-1], isNoName) {
		return Usage("%q is no ID of an incident: one is NAME-DATE-NUMBER, as in llama-8b-20261112-2, alone or behind PROJECT/", word)
	}
	return nil
}

// OneWorkload is for verbs about one workload.
func OneWorkload() cobra.PositionalArgs {
	return cobra.MatchAll(OneName("workload", "llama-8b"), func(_ *cobra.Command, args []string) error { return CheckWorkload(args[0]) })
}

// OneIncident is for verbs about one incident.
func OneIncident() cobra.PositionalArgs {
	return cobra.MatchAll(OneName("incident", "llama-8b-20261112-2"), func(_ *cobra.Command, args []string) error { return CheckIncident(args[0]) })
}

// FileFlag marks a flag that names a file.
const FileFlag = "names a file"

// NamesFile says that a flag names a file.
func NamesFile(f *pflag.FlagSet, flag string) {
	if err := f.SetAnnotation(flag, FileFlag, nil); err != nil {
		panic(err) // there is no such flag
	}
}

// Group is a command that only others below it carry out.
func Group(use, short string, of ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return NoCommand(c, args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(of...)
	return c
}

// NoCommand says that there is no such command, and names the nearest.
func NoCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return Usage("%s has no command %q; %s", c.CommandPath(), name, nearest(c, name, names))
}

// WrongFlag is the error of a wrong flag. For an unknown flag it names the nearest.
func WrongFlag(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
		return NoCommand(c, args[0]) // the flags belong to the command that was meant
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return Usage("%w; %s --help lists the flags", err, c.CommandPath())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	name := "--" + unknown.GetSpecifiedName()
	return Usage("%s has no flag %s; %s", c.CommandPath(), name, nearest(c, name, names))
}

// nearest names the flag or command that is probably meant, or the help that lists all.
func nearest(c *cobra.Command, name string, known []string) string {
	if hint := policy.Nearest(name, known); strings.HasPrefix(hint, "did you mean ") {
		return hint
	}
	return c.CommandPath() + " --help lists all"
}

// NoArgs is for commands that only take flags.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage("%s takes no %q, only flags; see pitstop %s --help", c.Name(), args[0], c.Name())
	}
	return nil
}

// WhyFlag adds the flag for the reason of a person.
func WhyFlag(c *cobra.Command, why *string) {
	c.Flags().StringVar(why, "why", "", "the reason, for the people who read it later")
}

// OneName is for verbs that take one argument.
func OneName(what, as string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usage("%s takes one %s, as in %s; got %d", c.Name(), what, as, len(args))
		}
		return nil
	}
}
