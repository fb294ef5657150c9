package show

import (
	"os"
	"testing"

	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
)

func TestMain(m *testing.M) {
	// Lines without end: the tests of texts look for sentences.
	if err := os.Setenv("COLUMNS", "10000"); err != nil {
		panic(err)
	}
	deploymenttest.Verbs = Commands
	os.Exit(m.Run())
}
