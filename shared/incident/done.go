//go:build !heart

package incident

import (
	"slices"
	"time"
)

// complete takes the provider's word that the work of every slice is complete: the training is finished, and nothing is missing once
// its slices are gone. What is left to its owner need not be done, unless others of its group are waited for: a group is done as a whole.
func (m *machine) complete() {
	c := &m.w.Crew
	waited := func(s Slot) bool { return !s.IsReleased() || len(m.othersInGroup(&s)) > 0 }
	if c.Finished || !slices.ContainsFunc(m.w.Slices, waited) ||
		slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return waited(s) && s.Condition != Done }) {
		return
	}
	c.Finished, c.Complete, c.Certain, c.FinishedAt, c.Claim, m.changed = true, true, true, m.when(), Claim{}, true
	if m.w.Incident == nil {
		return
	}
	text := "the training is finished, by the API"
	m.line(LineSeen, text, "")
	switch m.phase() {
	case PhaseDeleting, PhaseCreating, Clearing, Admitting: // work under way is completed
	case Watching:
		m.finish(Observed, ByHealth, m.watchCode(), text, "")
	default:
		m.resumed(ByHealth, text)
	}
}

// trainsAgain forgets that the provider called the training done, once another life has begun under the name of a slice.
func (m *machine) trainsAgain() {
	if c := &m.w.Crew; c.Complete {
		c.Finished, c.Complete, c.Certain, c.FinishedAt, m.changed = false, false, false, time.Time{}, true
	}
}
