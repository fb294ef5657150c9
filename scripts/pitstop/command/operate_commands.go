package main

import "github.com/spf13/cobra"

// operateCommands are the verbs that change something in a deployment, or try it out. Handlers name the function that reads each topic.
func operateCommands(d deployment, handlers map[string]string) []*cobra.Command {
	return d.bounded(
		d.pauseCommand(), d.resumeCommand(), d.approveCommand(), d.cancelCommand(), d.retryCommand(), d.attachCommand(), d.detachCommand(),
		d.redriveCommand(handlers), d.canaryCommand(), d.drillCommand(), d.scaleCommand(),
	)
}

// preparing are the verbs that prepare policies, clusters and node pools.
func preparing(d deployment) []*cobra.Command {
	return []*cobra.Command{policyCommand(), gkeCommand(), d.flexCommand()}
}
