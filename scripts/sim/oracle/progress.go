package oracle

import (
	"time"

	"pitstop.internal/shared/view"
)

// Rule 6, progress is the proof: what is called proven has been done, what is called complete is complete, and health alone confirms nothing
// where a crew could tell.

// proven checks what a document says for the first time of the steps and checkpoints of a training.
func (c *Checks) proven(before, after seen) {
	if v := after.Verified; v != "" && v != before.Verified && !c.complete(v) {
		c.Violated("8 progress", after.ID, "%s is called verified, and it is not complete", v)
	}
	if high := c.highest(after.ID); after.Proven > before.Proven && after.Proven > high {
		c.Violated("8 progress", after.ID, "step %d is called proven, and the training is at %d", after.Proven, high)
	}
}

// crewless checks that an incident which health alone has confirmed is about a training without a crew that was heard lately.
func (c *Checks) crewless(r *record, w seen, in *seenIncident) {
	if in.ConfirmedBy == view.ByHealth && r.heard.After(r.opened.Add(-24*time.Hour)) && r.heard.Before(r.opened) &&
		len(c.crewed(w.ID)) == len(c.slicesOf(w.ID)) {
		c.Violated("6 progress", w.ID, "%s ended resumed by health alone, and there is a crew", in.ID)
	}
}
