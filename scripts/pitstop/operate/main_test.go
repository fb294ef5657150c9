package operate

import (
	"os"
	"testing"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
)

func TestMain(m *testing.M) {
	// Lines without end: the tests of texts look for sentences.
	if err := os.Setenv("COLUMNS", "10000"); err != nil {
		panic(err)
	}
	deploymenttest.Verbs = func(d deployment.Deployment) []*cobra.Command {
		return Commands(d, map[string]string{events.TopicRecreate: "recreate", events.TopicLogs: "logevent"})
	}
	os.Exit(m.Run())
}
