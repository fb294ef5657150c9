//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/shared/checkpoint"
)

// lastWord is the end of an attempt that no other attempt follows. Its verdict is written beside the checkpoints before
// the end is reported, and before the end is written down in the state directory: a crew that is killed in between
// decides again.
type lastWord struct {
	event   agree.Event
	verdict events.CrewVerdict
	at      time.Time
	// written says that the verdict stands beside the checkpoints, or that its time is over; reported that the line is
	// out; shown that the guest attribute has the verdict.
	written, reported, shown bool
	err                      error
}

// showing is how long a crew that is about to exit waits for the guest attribute.
const showing = 5 * time.Second

// conclude takes the end of an attempt that no other attempt follows. The slices of a Multislice wrote its verdict to
// agree on it.
func (c *crew) conclude(now time.Time, e agree.Event) {
	c.forgetEnd()
	c.last = &lastWord{
		event: e, verdict: e.Verdict.CrewVerdict, at: now,
		written: c.Directory == "" || c.Machine.Slices > 1, shown: !c.attributes(),
	}
	c.writeVerdict(now)
}

// writeVerdict writes the verdict beside the checkpoints, for as long as the other workers may take to end, then
// reports the end.
func (c *crew) writeVerdict(now time.Time) {
	w := c.last
	if w == nil || w.reported {
		return
	}
	until := w.at.Add(max(c.Times.Finish, parting))
	switch {
	case w.written:
	case !now.Before(until):
		w.written = true
		uri := checkpoint.Join(c.Directory, events.VerdictObject(w.event.Attempt))
		c.Say("the verdict on attempt %d could not be written to %s within %v; Pitstop may not learn of its end: %v",
			w.event.Attempt, uri, until.Sub(w.at), w.err)
	case c.every("verdict", time.Second, now):
		c.once("verdict", func(ctx context.Context) func() {
			err := checkpoint.CreateVerdict(ctx, c.Store, c.Directory, w.verdict)
			return func() { w.written, w.err = w.written || err == nil || errors.Is(err, checkpoint.ErrConflict), err }
		})
	}
	c.at(until)
	if w.written {
		c.reportEnd(w)
		c.remember()
	}
}

// reportEnd tells Pitstop that the training is finished or given up, once.
func (c *crew) reportEnd(w *lastWord) {
	if w.reported {
		return
	}
	w.reported = true
	r := events.CrewReport{Report: events.ReportFinished, Attempt: w.event.Attempt}
	switch {
	case w.event.GaveUp:
		r.Report, r.Reason = events.ReportGaveUp, w.verdict.Reason
		next := fmt.Sprintf("ending with exit code %d. When the cause is mended, start pitcrew again", w.verdict.Code)
		if c.StayAfterGivingUp {
			next = "waiting until the lease names a new attempt, as Pitstop may have it (pitstop retry). Without Pitstop, mend the cause, end " +
				"pitcrew and start it again; with --give-up exit it ends by itself"
		}
		c.Say("%s; gave up; %s", w.event.Why, next)
	case w.event.Ended.Exit.Clean():
		c.Say("finished: attempt %d ended with exit code 0", w.event.Attempt)
	default:
		r.Reason = w.verdict.Reason
		c.Say("finished: %s", w.event.Why)
	}
	c.report(w.at, r)
}

// concluded reports whether a crew may exit: the end is reported, and the guest attribute has the verdict or had its
// time.
func (c *crew) concluded(now time.Time) bool {
	w := c.last
	if w == nil {
		return true
	}
	until := w.at.Add(showing)
	if now.Before(until) {
		c.at(until)
	}
	return w.reported && (w.shown || !now.Before(until))
}

// forgetEnd forgets the last word on an attempt, because another one begins.
func (c *crew) forgetEnd() {
	if c.last != nil {
		c.reportEnd(c.last)
		c.last = nil
	}
}

// lastStep is the last finished step that is known of the attempt that began then; less than 0 is none. A checkpoint
// tells it that was completed since, and where nothing else does, the one that the attempt resumed from.
func (c *crew) lastStep(began time.Time) int64 {
	if c.step.n < 0 || c.found.At.After(began) {
		return max(c.step.n, c.saved())
	}
	return c.step.n
}

// savedNew reports whether the newest complete checkpoint came since the attempt of this worker began that has ended, and since it
// was last asked to save.
func (c *crew) savedNew() bool {
	asked := c.status.Exit.Began
	for _, at := range []time.Time{c.saver.Asked, c.saver.Marked, c.status.Exit.SignalAt} {
		if at.After(asked) {
			asked = at
		}
	}
	return c.found.URI != "" && !asked.IsZero() && !c.found.At.Before(asked.Add(-c.world(asked, nil).Coarse))
}

// beyondLast is the condition that a training goes on beyond the last step that its owner named.
const beyondLast = "--done-at reached"

// stays tells of a training that has not ended long after its last step. What a command has left then trains no more.
func (c *crew) stays(now time.Time) {
	if c.child == nil || c.DoneAt == nil || !c.primary() || c.stopping != nil || c.lastStep(c.child.Began) < *c.DoneAt {
		delete(c.next, beyondLast)
		return
	}
	if c.next[beyondLast].IsZero() {
		c.next[beyondLast] = now.Add(c.Times.Finish)
	}
	if now.Before(c.next[beyondLast]) {
		c.at(c.next[beyondLast])
		return
	}
	saved, left := c.saved() >= *c.DoneAt, c.child.Left()
	then := fmt.Sprintf("waiting for the end of process %d", c.child.Training.PID)
	switch {
	case saved && left:
		then = "its checkpoint is complete: ending what the command has left"
		c.child.EndRest()
	case c.seen[beyondLast] != "":
		return
	case saved:
		then += "; its checkpoint is complete, so SIGTERM to that process ends the job"
	default:
		then += "; no complete checkpoint of that step is there yet"
	}
	c.condition(beyondLast, fmt.Sprintf("attempt %d reached the last step (--done-at %s) and has not ended %v later; %s",
		c.child.Attempt, events.Number(*c.DoneAt), brief(c.Times.Finish), then), "")
}

// reached compares an exit 0 of the primary with the last step that the owner named.
func (c *crew) reached(e restart.Exit) (done, short bool) {
	if c.DoneAt == nil || !c.primary() || !e.Clean() {
		return false, false
	}
	switch {
	case c.lastStep(e.Began) >= *c.DoneAt:
		return true, false
	case c.step.n >= 0:
		c.Say("attempt %d ended with exit code 0 at step %s, before --done-at %s: the training is not finished",
			e.Attempt, events.Number(c.step.n), events.Number(*c.DoneAt))
		return false, true
	}
	c.fault("--done-at",
		fmt.Errorf("--done-at %d: no step is known, so exit code 0 counts as it does without the flag", *c.DoneAt))
	return false, false
}

// primary reports whether this worker says when the job is done.
func (c *crew) primary() bool { return c.leader != nil && c.Machine.Slice == 0 }

// clearEarlier removes what earlier attempts of a single slice left beside the checkpoints, while the next one already
// runs.
func (c *crew) clearEarlier(attempt int) {
	if c.Directory == "" || c.Machine.Slices > 1 || attempt <= keptAttempts {
		return
	}
	c.once("earlier attempts", func(ctx context.Context) func() {
		err := c.board.Clear(ctx, attempt-keptAttempts)
		return func() { c.fault("earlier attempts", err) }
	})
}

// keptAttempts is of how many attempts something is kept beside the checkpoints.
const keptAttempts = 3
