package oracle

import (
	"testing"
	"time"

	"pitstop.internal/scripts/sim/faults"
)

// TestAHangMustBeTold unless its training was left to a person since it stands still: that an incident ended resumed tells nobody of it.
func TestAHangMustBeTold(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(r *record, at time.Time)
		want int
	}{
		"no incident ends":           {func(*record, time.Time) {}, 1},
		"one ends resumed":           {func(r *record, at time.Time) { r.closed = at }, 1},
		"one leaves it to a person":  {func(r *record, at time.Time) { r.closed, r.left = at, at }, 0},
		"one ends as its owner came": {func(r *record, at time.Time) { r.closed = at.Add(23 * time.Hour) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			checks, g, now := trainsInPods()
			checks.chaos, checks.releases = &faults.Chaos{}, faults.NewReleases()
			g.usable = now.Now()
			pass(now, time.Hour)
			r := checks.record("demo/set")
			r.heard = now.Now()
			g.Hang()
			pass(now, time.Hour)
			c.ends(r, now.Now())
			pass(now, 23*time.Hour)
			checks.unseen("demo/set", g.Training)
			if got := len(checks.Violations); got != c.want {
				t.Errorf("%d violations, want %d: %v", got, c.want, checks.Violations)
			}
		})
	}
}
