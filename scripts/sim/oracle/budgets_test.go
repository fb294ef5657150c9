package oracle

import (
	"testing"
	"time"

	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/shared/evidence"
)

// TestWhatIsDoneInVainHasAnEnd: it is counted from the last new step of the training, or from a person's word that the cause is mended.
func TestWhatIsDoneInVainHasAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		times int
		then  func(checks *Checks, pass func())
		want  int
	}{
		"as often as the budgets allow": {mostInVain, func(*Checks, func()) {}, 0},
		"once more":                     {mostInVain + 1, func(*Checks, func()) {}, 1},
		"once more, after a new step":   {mostInVain, func(checks *Checks, pass func()) { pass(); checks.spends("demo/set", "a slice was replaced") }, 0},
		"once more, after a retry": {mostInVain, func(checks *Checks, _ func()) {
			checks.words("demo/set", evidence.Retried{})
			checks.spends("demo/set", "a slice was replaced")
		}, 0},
		"and something else once": {mostInVain, func(checks *Checks, _ func()) { checks.spends("demo/set", "another attempt was named") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			checks, _, now := trainsInPods()
			checks.chaos = &faults.Chaos{}
			for range c.times {
				checks.spends("demo/set", "a slice was replaced")
			}
			c.then(checks, func() { pass(now, time.Hour) })
			if got := len(checks.Violations); got != c.want {
				t.Errorf("%d violations, want %d: %v", got, c.want, checks.Violations)
			}
		})
	}
}
