// Package show has the verbs that show a deployment and change nothing.
package show

import (
	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/deployment"
)

// verbs are those of this room on a deployment.
type verbs struct{ deployment.Deployment }

// Commands are the verbs that show a deployment and change nothing.
func Commands(d deployment.Deployment) []*cobra.Command {
	v := verbs{d}
	return d.Bound(v.statusCommand(), v.incidentCommand(), v.incidentsCommand(), v.checkCommand(), v.watchCommand(), v.consoleCommand())
}
