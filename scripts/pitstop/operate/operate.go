// Package operate has the verbs that change something in a deployment, try it out, or prepare it.
package operate

import (
	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/deployment"
)

// verbs are those of this room on a deployment.
type verbs struct{ deployment.Deployment }

// Commands are the verbs that change something in a deployment, or try it out. Handlers name the function that reads each topic.
func Commands(d deployment.Deployment, handlers map[string]string) []*cobra.Command {
	v := verbs{d}
	return d.Bound(
		v.pauseCommand(), v.resumeCommand(), v.approveCommand(), v.cancelCommand(), v.retryCommand(), v.attachCommand(), v.detachCommand(),
		v.redriveCommand(handlers), v.canaryCommand(), v.drillCommand(), v.scaleCommand(),
	)
}

// LocalCommands are the verbs that prepare policies, clusters and node pools.
func LocalCommands(d deployment.Deployment) []*cobra.Command {
	v := verbs{d}
	return []*cobra.Command{policyCommand(), gkeCommand(), v.flexCommand()}
}
