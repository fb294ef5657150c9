// Package breadth tells a test how much to do. There are three breadths:
//
//   - go test -short, for the race detector: what the detector can learn something from, once;
//   - go test: every assertion, on some of the cases where there are many;
//   - with the variable PITSTOP_FULL, as scripts/check sets it: every case.
//
// With PITSTOP_LONG, as scripts/check --long sets it, a test also does what hardly ever shows something new.
package breadth

import (
	"os"
	"testing"
)

// Variable is the environment variable that has tests run in full.
const Variable = "PITSTOP_FULL"

// LongVariable is the environment variable that has tests do what hardly ever shows something new.
const LongVariable = "PITSTOP_LONG"

// Rarely skips a test that hardly ever shows something new, unless LongVariable is set.
func Rarely(t testing.TB) {
	t.Helper()
	if os.Getenv(LongVariable) == "" {
		t.Skip("scripts/check --long runs it")
	}
}

// Full reports whether a test plays every case.
func Full() bool { return os.Getenv(Variable) != "" }

// Every is n, or 1 in full: a test of many cases plays the first of every so many.
func Every(n int) int {
	if Full() {
		return 1
	}
	return n
}

// Of is all, or few under -short: how often a test does the same. The race detector makes it several times as slow, and learns nothing from
// the repetition.
func Of[N any](all, few N) N {
	if testing.Short() {
		return few
	}
	return all
}

// Again skips a test under -short that plays again, in other cases, what the race detector sees in another.
func Again(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is the same code once more")
	}
}
