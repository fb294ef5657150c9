package oracle

import (
	"pitstop.internal/shared/bounds"
)

// Rule 5, the budgets: while a training does no new step, nobody brings its slices back or begins it again without end.

// mostInVain is how often Pitstop may replace a slice, or name another attempt, without a step of the training.
const mostInVain = bounds.MaxRecreates + bounds.MaxRestarts

// inVain counts what Pitstop has done for a training since it did a new step.
type inVain struct {
	step  int64
	count map[string]int
}

// spends takes note that Pitstop has brought a slice back, or has named another attempt. A person who orders a retry says that the cause is
// mended.
func (c *Checks) spends(workload, what string) {
	r := c.record(workload)
	if high := c.highest(workload); r.spent.count == nil || high > r.spent.step {
		r.spent = inVain{high, map[string]int{}}
	}
	if r.spent.count[what]++; r.spent.count[what] == mostInVain+1 {
		c.Violated("5 budgets", workload, "%s %d times, and the training has done no step past %d", what, mostInVain+1, r.spent.step)
	}
}

// refills takes note of the time at which progress refilled the budgets.
func (c *Checks) refills(before, after seen) {
	if after.Proven > before.Proven && !after.Spending.Equal(before.Spending) {
		c.record(after.ID).refilled = c.Clock.Now()
	}
}
