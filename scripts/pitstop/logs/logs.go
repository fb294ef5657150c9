// Package logs has the verbs that read log entries: of files, or of a project.
package logs

import (
	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/deployment"
)

// verbs are those of this room on a deployment.
type verbs struct{ deployment.Deployment }

// Commands are the verbs that read files of log entries, or say which entries Pitstop reads.
func Commands() []*cobra.Command { return []*cobra.Command{explainCommand(), filterCommand()} }

// DeploymentCommands are the verbs that read the log of a project.
func DeploymentCommands(d deployment.Deployment) []*cobra.Command {
	v := verbs{d}
	return d.Bound(v.reportCommand(), v.goodputCommand())
}
