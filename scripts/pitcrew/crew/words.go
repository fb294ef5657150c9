//go:build unix

package crew

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitcrew/save"
)

// soon is for how long a worker may be missing before a person reads about it: all start within moments of each other.
const soon = 3 * time.Second

// moment is a time of the day, as in the lines of pitcrew.
func moment(t time.Time) string { return t.UTC().Format("15:04:05Z") }

// brief is a span that a person reads.
func brief(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// within is a wait that a person reads.
func within(d time.Duration) string {
	if d < 50*time.Millisecond {
		return "at once"
	}
	return "in " + brief(d).String()
}

// introduce says what this crew is going to do.
func (c *crew) introduce() {
	text := "started"
	if c.Machine.Workers > 1 {
		text += fmt.Sprintf(" as worker %d of %d", c.Machine.Worker, c.Machine.Workers)
	}
	if c.Machine.Slices > 1 {
		text += fmt.Sprintf(", slice %d of %d", c.Machine.Slice, c.Machine.Slices)
	}
	text += " for " + c.Workload
	if c.Directory != "" {
		text += "; checkpoints in " + c.Directory
	} else {
		text += "; no checkpoint directory"
	}
	c.Say("%s", text)
}

// awaited names the workers that the training waits for, and those that fell silent: a person may have to look after them.
func (c *crew) awaited(now time.Time) {
	if c.told != nil || c.leader == nil {
		return // it ends itself, or worker 0 says it
	}
	var waits, gaps, quiet string
	late := c.Times.Silent / 3 // a worker that is well asks much more often
	switch c.leader.Stage {
	case agree.Gathering, agree.Admitting:
		if missing := c.leader.Missing(now, c.Times.Silent); len(missing) > 0 {
			waits = fmt.Sprintf("the training starts when all workers are here; waiting for %d of %d: %s",
				len(missing), c.Machine.Workers, c.named(missing))
		}
		if o := c.out.view; c.leader.Stage == agree.Admitting && c.Machine.Slices > 1 && o.Ready < c.Machine.Slices {
			gaps = fmt.Sprintf("the training starts when all slices are here; %d of %d are", o.Ready, c.Machine.Slices)
		}
	case agree.Training:
		if missing := c.leader.Missing(now, late); len(missing) > 0 && !missing[0].Left {
			quiet = fmt.Sprintf("no word from %s; after %v of silence a worker counts as lost, and the attempt ends everywhere",
				c.named(missing), c.Times.Silent)
		}
		c.at(now.Add(late))
	case agree.Waiting, agree.Ending, agree.Deciding, agree.Pausing, agree.Asking, agree.Over:
	}
	if waits == "" && gaps == "" {
		c.next["waits"] = now.Add(min(c.Times.Silent/4, soon))
	} else if !c.every("waits", c.Times.Silent/4, now) {
		return
	}
	here := ""
	if c.leader.Heard(now) == c.Machine.Workers {
		here = fmt.Sprintf("all %d workers are here", c.Machine.Workers)
	}
	c.condition("workers", waits, here)
	c.condition("slices", gaps, "")
	c.waits = strings.Trim(waits+"; "+gaps, "; ")
	c.publish()
	c.condition("silence", quiet, here)
}

// named lists missing workers with number, address and reason, as many as fit a line.
func (c *crew) named(missing []agree.Absence) string {
	var names []string
	for i, m := range missing {
		if i == 8 {
			names = append(names, fmt.Sprintf("and %d more", len(missing)-i))
			break
		}
		name := fmt.Sprintf("worker %d", m.Worker)
		if m.Worker < len(c.Machine.Peers) {
			name += " (" + c.Machine.Peers[m.Worker] + ")"
		}
		switch {
		case m.Since.IsZero():
			name += ", not heard yet"
		case m.Left:
			name += ", whose pitcrew got a signal to end at " + moment(m.Since)
		default:
			name += ", silent since " + moment(m.Since)
		}
		names = append(names, name)
	}
	return strings.Join(names, "; ")
}

// silent says that worker 0 cannot be reached, and what follows for this worker; nil says that it answers again.
func (c *crew) silent(err error) {
	const what = "worker 0"
	gone := (*peers.GoneError)(nil)
	switch {
	case c.told != nil:
	case !errors.As(err, &gone):
		c.condition(what, textOf(err), "worker 0 answers")
	case c.child == nil:
		c.condition(what, gone.Error()+"; asking every second; the training starts when worker 0 answers", "")
	case c.lease.exists && c.lease.Epoch == 0:
		c.condition(what, fmt.Sprintf("%v; asking every second; the training here goes on, and ends if worker 0 is still silent at %s",
			gone, moment(c.client.Heard().Add(c.Times.Unread))), "")
	default:
		c.condition(what, gone.Error()+"; asking every second; the training here goes on", "")
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// follow takes the plan of worker 0 and prints its meaning for this worker. The same plan may come again, with another wait,
// and a wait without a plan.
func (c *crew) follow(p agree.Plan) {
	if c.told == nil {
		c.condition("wait of worker 0", p.Waits, "")
	}
	p.Waits = ""
	if p.Version == "" || p.Version == c.plan.Version {
		return
	}
	switch {
	case c.told != nil:
	case p.Over:
		c.Say("%s; worker 0 says that it was the last one; pitcrew ends", p.Reason)
	case p.Ended && p.After > 0:
		c.Say("%s; starting again %s", p.Reason, within(p.After))
		c.why = p.Reason
	case p.Ended:
		c.Say("%s", p.Reason)
		c.why = p.Reason
	case p.Run && p.Before != "" && !strings.HasPrefix(c.why, p.Before):
		c.Say("%s; starting again", p.Before)
		c.why = p.Before
	}
	c.plan = p
	if p.Save != "" && c.child != nil {
		c.take(save.Request{ID: "urged " + p.Save, Own: true, Mode: events.SaveSignal, Why: "a request that worker 0 has"})
	}
	c.readLease()
}

// resuming says what an attempt can go on from.
func (c *crew) resuming() string {
	switch {
	case c.Directory == "":
		return ""
	case c.plan.Checkpoint == "" && c.looked.instead != "":
		return "; no complete checkpoint yet: " + c.looked.instead
	case c.plan.Checkpoint == "":
		return "; no complete checkpoint yet"
	case c.found.Doubt != "" && c.found.URI == c.plan.Checkpoint:
		return fmt.Sprintf("; the newest checkpoint is step %d, but %s", c.plan.Step, c.found.Doubt)
	}
	return fmt.Sprintf("; the newest complete checkpoint is step %d", c.plan.Step)
}
