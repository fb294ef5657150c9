package show

import (
	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/console"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/terminal"
)

func (d verbs) consoleCommand() *cobra.Command {
	var where deployment.Place
	var address string
	c := &cobra.Command{
		Use:   "console",
		Short: "Show a deployment in the browser",
		Long: "Serve pages about a deployment to your own browser, until you interrupt it: the fleet with the last 24 hours and what is announced,\n" +
			"each incident as a picture and as words, all incidents, what they add up to, and where the time went. On the pages of a workload you can approve, cancel, retry, pause and resume, as\n" +
			"with the commands of these names. The pages answer on this machine alone, to whoever has the link that console prints.\n\n" +
			"This needs roles/datastore.viewer, and orders need roles/datastore.user. A policy file needs roles/storage.objectViewer.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := d.Ledger(where)
			if err != nil {
				return err
			}
			looking, end := google.NextQuestion(c.Context())
			_, err = d.Workloads(looking, l, nil)
			if err := end(err); err != nil { // who cannot read the ledger learns it here, and not from an empty page
				return err
			}
			s, err := console.Listen(c.Context(), address, console.Site(d.Deployment, l, where).Handler())
			if err != nil {
				return err
			}
			terminal.Print(c.OutOrStdout(), "open "+s.Link+" (Ctrl-C ends it)")
			return s.Serve(c.Context())
		},
	}
	where.Flags(c)
	c.Flags().StringVar(&address, "listen", "127.0.0.1:0", "the loopback address to answer on")
	return c
}
