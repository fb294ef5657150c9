package deployment

import (
	"strings"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/publish"
)

// check refuses what no deployment is called.
func (a Place) check() error {
	if a.Project == "" {
		return cli.Usage("--project is missing: the project in which Pitstop is deployed; --demo asks the demo on this machine instead")
	}
	if err := cli.CheckProject("--project", a.Project); err != nil {
		return err
	}
	switch {
	case !cli.PrefixForm.MatchString(a.Prefix):
		return cli.Usage("--prefix %q is no prefix of a deployment: one has up to 5 small letters and digits, and ends with a hyphen, as in dev-",
			a.Prefix)
	case a.database != "" && !cli.DatabaseForm.MatchString(a.database):
		return cli.Usage("--database %q is no name of a database: one has 4 to 63 small letters, digits and hyphens", a.database)
	}
	return nil
}

// Place names a deployment on the command line.
type Place struct{ Project, Prefix, database string }

// Flags adds the flags that name a deployment.
func (a *Place) Flags(c *cobra.Command) {
	c.Flags().StringVar(&a.Project, "project", "", "the project in which Pitstop is deployed")
	c.Flags().StringVar(&a.Prefix, "prefix", "", "the prefix of the deployment's names, if it has one")
	c.Flags().StringVar(&a.database, "database", "", "its Firestore database; the default is the prefix and "+ledger.Database)
}

// Topics are those of a deployment, in full.
func (a Place) Topics() publish.Topics {
	topics := publish.Topics{}
	for typ, topic := range events.Topics() {
		topics[typ] = a.Topic(topic)
	}
	return topics
}

// Topic is a topic of the deployment, in full.
func (a Place) Topic(name string) string {
	return "projects/" + a.Project + "/topics/" + a.Prefix + strings.TrimPrefix(name, a.Prefix)
}
