//go:build unix

package crew

import (
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/child"
)

func TestSpeedBeginsAfterTheFirstStep(t *testing.T) {
	at := func(seconds int) time.Time { return time.Date(2026, 11, 12, 2, 0, seconds, 0, time.UTC) }
	for name, c := range map[string]struct {
		see  func(*speed)
		want float64
	}{
		"nothing was seen": {func(*speed) {}, 0},
		"one step":         {func(s *speed) { s.step(7, at(90)) }, 0},
		"the first step includes the compilation": {func(s *speed) { s.step(7, at(90)); s.step(8, at(92)); s.step(27, at(100)) }, 20 * 64 / 10.0},
		"two readings of one moment":              {func(s *speed) { s.step(7, at(90)); s.step(9, at(90)) }, 0},
		"it went back to an older checkpoint":     {func(s *speed) { s.step(70, at(0)); s.step(80, at(1)); s.step(10, at(20)); s.step(15, at(30)) }, 32},
		"what the output says counts": {func(s *speed) {
			s.step(7, at(90))
			s.step(27, at(100))
			s.printed(child.Output{Examples: 100, Lines: 1})
			for range 3 { // each look sees the same
				s.printed(child.Output{Examples: 150, Lines: 2})
			}
			s.printed(child.Output{Examples: 900})
		}, 150},
	} {
		s := speed{first: -1}
		c.see(&s)
		if got := s.examples(64); got != c.want {
			t.Errorf("%s: %v examples a second, want %v", name, got, c.want)
		}
	}
	unknown := speed{first: -1}
	if steps, took := unknown.measured(); steps != 0 || took != 0 {
		t.Errorf("before any step: %d in %v", steps, took)
	}
	unknown.step(1, at(0))
	unknown.step(11, at(1))
	if got := unknown.examples(0); got != 0 {
		t.Errorf("without a batch: %v", got)
	}
}
