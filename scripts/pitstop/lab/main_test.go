package lab

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// Lines without end: the tests of texts look for sentences.
	if err := os.Setenv("COLUMNS", "10000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
