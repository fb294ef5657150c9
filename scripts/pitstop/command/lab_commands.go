package main

import "github.com/spf13/cobra"

// labCommands are the verbs that need the simulator. Verbs makes those on the demo's deployment.
func labCommands(verbs verbsOf) []*cobra.Command {
	return []*cobra.Command{replayCommand(), simulateCommand(), cloudCommand(), demoCommand(verbs)}
}
