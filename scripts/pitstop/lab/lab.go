// Package lab has the verbs that play on this machine what never happens to anybody: it alone imports the simulator and the fakes.
package lab

import (
	"github.com/spf13/cobra"
)

// Commands are the verbs that need the simulator. Verbs makes those on the demo's deployment.
func Commands(verbs verbsOf) []*cobra.Command {
	return []*cobra.Command{replayCommand(), simulateCommand(), cloudCommand(), demoCommand(verbs)}
}
