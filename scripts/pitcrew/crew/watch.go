//go:build unix

package crew

import (
	"context"
	"errors"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/save"
	"pitstop.internal/shared/checkpoint"
)

// announced is what the metadata server says will happen to the machine.
type announced struct {
	// event says that there is a maintenance event, upcoming is the notice; last is when maintenance was last announced for about now.
	event     bool
	upcoming  *events.Notice
	preempted bool
	last      time.Time
}

// near reports whether maintenance or a preemption is about now.
func (a announced) near(now time.Time, recent time.Duration) bool {
	return a.preempted || a.under() || !a.last.IsZero() && now.Sub(a.last) < recent
}

// under reports whether maintenance is under way, or about to begin.
func (a announced) under() bool {
	return a.event || a.upcoming != nil && a.upcoming.Status == events.NoticeOngoing
}

// watch watches the metadata server.
func (c *crew) watch() {
	if c.Metadata == nil {
		return
	}
	watch := func(path string, tell func(text string)) {
		go c.Metadata.Watch(c.ctx, path,
			func(text string) { c.post(func() { tell(text) }) },
			func(err error) { c.post(func() { c.fault("metadata server", short(err)) }) })
	}
	watch(metadata.PathEvent, func(text string) {
		is, err := metadata.Event(text)
		c.fault(metadata.PathEvent, err)
		if err == nil {
			c.notice(func(a *announced) { a.event = is })
		}
	})
	watch(metadata.PathUpcoming, func(text string) {
		n, err := metadata.Notice(text)
		c.fault("announced maintenance", err)
		if err == nil {
			c.notice(func(a *announced) { a.upcoming = n })
		}
	})
	watch(metadata.PathPreempted, func(text string) {
		is, err := metadata.Preempted(text)
		c.fault(metadata.PathPreempted, err)
		if err == nil {
			c.notice(func(a *announced) { a.preempted = is })
		}
	})
	watch(metadata.PathAttributes, func(text string) {
		a, err := metadata.Attributes(text)
		c.fault("node metadata", err)
		value := a[events.MetadataRequest]
		if value == "" {
			return
		}
		r, err := events.DecodeCrewRequest([]byte(value))
		c.fault("request", oneLine(err))
		if err == nil {
			c.asked(r, "the request in the node's metadata")
		}
	})
}

// short has all keys of one server tell the same trouble.
func short(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return errors.New("metadata server: " + text)
}

func oneLine(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

// notice takes a changed announcement: it is reported once, and maintenance that begins now starts a save.
func (c *crew) notice(change func(*announced)) {
	now := c.clock()
	before := c.announced
	change(&c.announced)
	a := &c.announced
	if before.near(now, 0) || a.near(now, 0) {
		a.last = now
	}
	if a.preempted && !before.preempted {
		c.report(now, events.CrewReport{Report: events.ReportNotice, Preempted: true, Reason: "the metadata server says preempted"})
		if c.OnMaintenance != "" {
			c.take(save.Request{ID: "preemption " + now.UTC().Format(time.RFC3339Nano), Own: true, Mode: events.SaveSignal, Why: "preempted"})
		}
	}
	if n := a.notice(); n != nil && (before.notice() == nil || !n.Equal(*before.notice())) {
		c.report(now, events.CrewReport{Report: events.ReportNotice, Notice: n, Reason: "the metadata server announces maintenance"})
	} else if n == nil && before.notice() != nil {
		c.report(now, events.CrewReport{Report: events.ReportNotice, Notice: &events.Notice{Status: events.NoticeGone}, Reason: "the metadata server announces no maintenance any more"})
	}
	if a.under() && !before.under() && !a.preempted && c.OnMaintenance != "" {
		c.take(save.Request{
			ID: "maintenance " + now.UTC().Format(time.RFC3339Nano), Own: true, Mode: c.OnMaintenance, By: now.Add(c.Times.Save), Why: "maintenance",
		})
	}
}

// notice is the machine's maintenance as Pitstop learns of it.
func (a announced) notice() *events.Notice {
	switch {
	case a.upcoming != nil:
		return a.upcoming
	case a.under():
		return &events.Notice{Status: events.NoticeOngoing, Unscheduled: true}
	}
	return nil
}

// look looks at the checkpoint directory: worker 0 does, for the slice.
func (c *crew) look(now time.Time) {
	if c.Directory == "" || c.leader == nil {
		return
	}
	often := c.Times.Look
	if c.saver.Open() || !c.looked.fresh.IsZero() {
		often = c.Times.Hurry
	}
	due := c.looked.at.Add(often)
	if c.looked.busy {
		return
	}
	if now.Before(due) {
		c.at(due)
		return
	}
	c.verify(nil)
}

// refresh looks at the checkpoint directory again before the next attempt learns where it resumes: since that moment
// nobody saves any more. No time is no such wish.
func (c *crew) refresh(since time.Time) {
	if c.Directory != "" && since.After(c.looked.fresh) {
		c.verify(nil)
	}
	c.looked.fresh = since
}

// seenSince is when somebody last looked what there is to resume from. What cannot be seen for as long as a lease may go unread
// is not waited for.
func (c *crew) seenSince(now time.Time) time.Time {
	if f := c.looked.fresh; c.Directory == "" || !f.IsZero() && now.Sub(f) >= c.Times.Unread {
		return now
	}
	return c.looked.found
}

// verify finds the newest complete checkpoint, then goes on.
func (c *crew) verify(then func()) {
	began := c.clock()
	c.looked.busy, c.looked.at = true, began
	c.beside(limit, func(ctx context.Context) func() {
		found, err := checkpoint.Verify(ctx, c.Store, c.Directory, checkpoint.Want{})
		return func() {
			c.looked.busy = false
			// What no other look will find out either is not waited for.
			if !errors.Is(err, checkpoint.ErrTransient) && began.After(c.looked.found) {
				c.looked.found = began
			}
			missing := (*checkpoint.Missing)(nil)
			switch {
			case err == nil:
				c.keepRhythm(found)
				if found.URI != c.found.URI {
					c.speed.saved(found.Step)
				}
				c.found, c.looked.instead = found, ""
				if c.leader != nil {
					c.leader.Progress(c.step.n, found.Step)
				}
				c.fault("checkpoint directory", nil)
			case errors.As(err, &missing):
				c.found = checkpoint.Found{} // what was there is gone: nothing resumes from it
				if c.looked.instead = missing.Text; missing.None {
					c.looked.instead = "" // nobody has saved anything yet
				}
				c.fault("checkpoint directory", nil)
			default:
				c.fault("checkpoint directory", err)
			}
			if then != nil {
				then()
			}
		}
	})
}

// saves goes on with the open request.
func (c *crew) saves(now time.Time) {
	if !c.saver.Open() {
		return
	}
	if c.leader == nil && !c.saver.Unsent {
		// Worker 0 sees whether it is done, and answers.
		c.saver.Leave()
		c.keep()
		return
	}
	var handlers []int
	if c.saver.Seeks() && c.child != nil && c.every("handlers", c.Times.Hurry, now) {
		handlers = c.child.Handlers(c.Signal)
	}
	act, answers := c.saver.Look(c.world(now, handlers))
	c.act(act, handlers)
	c.answer(now, answers)
	if act != save.Watch {
		c.keep()
	}
	c.at(c.saver.Deadline())
}
