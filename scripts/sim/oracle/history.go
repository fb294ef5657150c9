package oracle

import (
	"pitstop.internal/shared/ledger"
)

// History: a decision depends on its evidence alone, and nobody changes that.

// repeats makes a decision again.
func (c *Checks) repeats(s ledger.Step, before seen) {
	if len(s.Evidence) == 0 {
		return
	}
	again, decide := s.Before, c.Hooks.Decision()
	for _, e := range s.Evidence {
		again, _, _ = decide(s.Policy, again, e, s.At)
		after := see(again, c.Clock.Now())
		c.stepped(before, after)
		c.steady(s, before, after)
		before = after
	}
	if !alike(again.WithoutOutbox(), s.After.WithoutOutbox()) {
		c.Violated("history", before.ID, "the same evidence makes another document")
	}
}

// stepped counts where one piece of evidence has brought an incident: into a phase, or to its end.
func (c *Checks) stepped(before, after seen) {
	from, to := before.phase(), after.phase()
	if from == to && (before.Open == nil || before.Open.ID == after.Open.ID) {
		return
	}
	if after.Open == nil {
		to = string(after.Over.Outcome)
	}
	c.reached[to]++
}
