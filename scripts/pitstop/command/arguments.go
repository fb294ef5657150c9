package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const day = 24 * time.Hour

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
	if err != nil || n > 100*365 || n < 0 {
		return fmt.Errorf("%q is no span of time such as 30d, 12h or 1d12h", text)
	}
	*d = days(time.Duration(n)*day + more)
	return nil
}

func (d *days) String() string {
	whole, rest := time.Duration(*d)/day, time.Duration(*d)%day
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

// spanVar adds a flag for a span of time that may be days.
func spanVar(f *pflag.FlagSet, span *time.Duration, name string, value time.Duration, usage string) {
	*span = value
	f.Var((*days)(span), name, usage)
}

// What the arguments look like. A verb checks them before it asks Google anything.
var (
	projectForm  = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z][a-z0-9-]{0,28}[a-z0-9]$`)
	prefixForm   = regexp.MustCompile(`^([a-z][a-z0-9]{0,4}-)?$`)
	databaseForm = regexp.MustCompile(`^(\(default\)|[a-z][a-z0-9-]{2,61}[a-z0-9])$`)
	nameForm     = regexp.MustCompile(`^[A-Za-z0-9_~+][A-Za-z0-9_.~+-]*$`)
	incidentForm = regexp.MustCompile(`^[A-Za-z0-9_~+][A-Za-z0-9_~+-]*-[0-9]{8}-[0-9]+$`)
	labelForm    = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)
)

// checkProject refuses what no project is called.
func checkProject(flag, project string) error {
	switch {
	case project == "":
		return usage("%s is missing: it names a project, as in %s my-project", flag, flag)
	case !projectForm.MatchString(project):
		return usage("%s %q is no ID of a project: one has small letters, digits and hyphens, as in my-project-123", flag, project)
	}
	return nil
}

// check refuses what no deployment is called.
func (a place) check() error {
	if a.project == "" {
		return usage("--project is missing: the project in which Pitstop is deployed; --demo asks the demo on this machine instead")
	}
	if err := checkProject("--project", a.project); err != nil {
		return err
	}
	switch {
	case !prefixForm.MatchString(a.prefix):
		return usage("--prefix %q is no prefix of a deployment: one has up to 5 small letters and digits, and ends with a hyphen, as in dev-",
			a.prefix)
	case a.database != "" && !databaseForm.MatchString(a.database):
		return usage("--database %q is no name of a database: one has 4 to 63 small letters, digits and hyphens", a.database)
	}
	return nil
}

// checkWorkload refuses what no workload is called.
func checkWorkload(word string) error {
	project, name, ok := strings.Cut(word, "/")
	if !ok {
		project, name = "", word
	}
	if !nameForm.MatchString(name) || ok && !projectForm.MatchString(project) {
		return usage("%q is no workload: name it NAME or PROJECT/NAME, as status does", word)
	}
	return nil
}

func checkWorkloads(words []string) error {
	for _, w := range words {
		if err := checkWorkload(w); err != nil {
			return err
		}
	}
	return nil
}

// checkIncident refuses what no incident's ID looks like: NAME-DATE-NUMBER, or that behind PROJECT/ or PROJECT/NAME/.
func checkIncident(word string) error {
	parts := strings.Split(word, "/")
	id := parts[len(parts)-1]
	isNoName := func(p string) bool { return !nameForm.MatchString(p) }
	if len(parts) > 3 || !incidentForm.MatchString(id) || slices.ContainsFunc(parts[:len(parts)-1], isNoName) {
		return usage("%q is no ID of an incident: one is NAME-DATE-NUMBER, as in llama-8b-20261112-3, alone or behind PROJECT/", word)
	}
	return nil
}

// oneWorkload is for verbs about one workload.
func oneWorkload() cobra.PositionalArgs {
	return cobra.MatchAll(oneName("workload", "llama-8b"), func(_ *cobra.Command, args []string) error { return checkWorkload(args[0]) })
}

// oneIncident is for verbs about one incident.
func oneIncident() cobra.PositionalArgs {
	return cobra.MatchAll(oneName("incident", "llama-8b-20261112-3"), func(_ *cobra.Command, args []string) error { return checkIncident(args[0]) })
}
