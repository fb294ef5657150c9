package oracle

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Rule 10, nothing is lost: every message is handled, every incident ends, each wait ends in time, and training goes on in the end.

// inTime checks that a wait of an incident ends by its time, and that none but a patient one is without an end.
func (c *Checks) inTime(before, after seen) {
	if in := after.Open; in != nil && in.Until.IsZero() && !in.Patient {
		c.Violated("10 nothing lost", after.ID, "phase %s has no deadline", in.Phase)
	}
	in := before.Open
	if in == nil || in.Until.IsZero() || before.phase() == after.phase() || len(c.gangs(after.ID)) > 0 {
		return
	}
	if over := c.Clock.Now().Sub(in.Until); over-c.releases.Down(in.Until) > late {
		c.Violated("10 nothing lost", after.ID, "%s was %s until %s after its deadline", in.ID, in.Phase, over.Round(time.Second))
	}
}

// Finally checks the rules that must hold at the end of a run.
func (c *Checks) Finally() {
	waiting := slices.DeleteFunc(c.Broker.Waiting(), func(m string) bool { return strings.HasPrefix(m, events.TopicTicks) }) // one a minute, for ever
	if len(waiting) > 0 {
		c.Violated("10 nothing lost", "", "%d messages are still under way: %s", len(waiting), strings.Join(waiting, ", "))
	}
	for _, id := range slices.Sorted(maps.Keys(c.Busy)) {
		doc, err := c.document(id)
		c.Violated("10 nothing lost", id, "something is still due since %s, in %s: %v", doc.due().UTC().Format(time.DateTime), doc.phase(), err)
	}
	ids, err := c.Ledger.All(context.Background())
	if err != nil {
		c.Violated("10 nothing lost", "", "%v", err)
	}
	for _, id := range ids {
		switch doc, err := c.document(id); {
		case err != nil:
			c.Violated("10 nothing lost", id, "%v", err)
		case doc.Open != nil:
			c.Violated("10 nothing lost", id, "%s has not ended: it is %s until %s", doc.Open.ID, doc.Open.Phase, doc.Open.Until.UTC().Format(time.RFC3339))
		case doc.Unsent > 0:
			c.Violated("10 nothing lost", id, "%d events are still in the outbox", doc.Unsent)
		default:
			c.cleared(doc)
			c.atPeace(id)
			c.rightCauses(id)
		}
	}
	c.jobsAtPeace()
	c.leaks()
	c.leftovers()
}

// mostSteps is how far an epoch may rise within an hour: a request a minute of each kind, for each slice, is far below it.
const mostSteps = 1000

// pace checks that a workload does not go round in circles.
func (c *Checks) pace(r *record, before, after seen) {
	if hour := c.Clock.Now().Truncate(time.Hour); !hour.Equal(r.hour) {
		r.hour, r.began = hour, before.Epoch
	}
	if after.Epoch-r.began > mostSteps && !c.Endless {
		c.Violated("10 nothing lost", after.ID, "%d requests were sent within an hour, the last in %s: it goes round in circles", after.Epoch-r.began, after.phase())
		c.Endless = true
	}
}

// late is how long after its deadline a phase may end: patrol looks once a minute, and a deployment that is broken or newer
// keeps it from looking for as long as that takes.
const late = 45 * time.Minute

// mostBytes is half of what Firestore takes of a document.
const mostBytes = 512 << 10

// atPeace checks that training goes on wherever it is not somebody else's business.
func (c *Checks) atPeace(workload string) {
	if c.record(workload).told || c.done(workload) {
		return
	}
	if c.lately(workload, func(p policy.Policy) bool { return p.Switches.WatchOnly() }) {
		return
	}
	for _, f := range c.slicesOf(workload) {
		t := c.Trainings[f.Name]
		if t.NoCrew || !c.takenAway(f.Name).IsZero() { // without a crew nobody hears of a crash
			continue
		}
		if _, running := t.Running(); !running {
			c.Violated("training goes on", workload, "%s does not train: %s", f.Name, c.stateOf(f.Name))
		}
	}
}
