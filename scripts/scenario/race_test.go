//go:build race

package scenario

// UnderRace says whether the race detector is at work.
const UnderRace = true
