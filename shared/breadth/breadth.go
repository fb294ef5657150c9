// Package breadth tells a test how much to do. There are three breadths:
//
//   - go test -short, for the race detector: what the detector can learn something from, once;
//   - go test: every assertion, on some of the cases where there are many;
//   - with the variable PITSTOP_FULL, as scripts/check sets it: every case.
package breadth

import "os"

// Variable is the environment variable that has tests run in full.
const Variable = "PITSTOP_FULL"

// Full reports whether a test plays every case.
func Full() bool { return os.Getenv(Variable) != "" }

// Every is n, or 1 in full: a test of many cases plays the first of every so many.
func Every(n int) int {
	if Full() {
		return 1
	}
	return n
}
