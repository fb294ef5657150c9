package main

import "github.com/spf13/cobra"

// showCommands are the verbs that show a deployment and change nothing.
func showCommands(d deployment) []*cobra.Command {
	return d.bounded(d.statusCommand(), d.incidentCommand(), d.incidentsCommand(), d.checkCommand(), d.watchCommand())
}
