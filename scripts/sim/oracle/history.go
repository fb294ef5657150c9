package oracle

import (
	"pitstop.internal/shared/ledger"
)

// History: a decision depends on its evidence alone, and nobody changes that.

// repeats makes a decision again, which the document after it shows.
func (c *Checks) repeats(s ledger.Step, before, after seen) {
	if len(s.Evidence) == 0 {
		return
	}
	again, decide := s.Before, c.Hooks.Decision()
	for i, e := range s.Evidence {
		again, _, _ = decide(s.Policy, again, e, s.At)
		next := after
		if i < len(s.Evidence)-1 {
			next = see(again, again.Shown(c.Clock.Now()))
		}
		c.stepped(before, next)
		c.steady(s, before, next)
		before = next
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
