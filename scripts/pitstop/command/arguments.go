package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

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
func oneIncident(noun string) cobra.PositionalArgs {
	return cobra.MatchAll(oneName(noun, "llama-8b-20261112-3"), func(_ *cobra.Command, args []string) error { return checkIncident(args[0]) })
}
