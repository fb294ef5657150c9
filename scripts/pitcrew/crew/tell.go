//go:build unix

package crew

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/scripts/pitcrew/save"
)

// report says something to Pitstop.
func (c *crew) report(now time.Time, r events.CrewReport) {
	r.Project, r.Zone, r.Node = c.Machine.Project, c.Machine.Place(), c.Machine.Node
	r.Life = c.Machine.Incarnation().ID
	if r.Hostname == "" {
		r.Hostname, r.Worker = c.Machine.Host, c.Machine.Worker
	}
	if r.Attempt == 0 {
		r.Attempt = max(c.plan.Attempt, c.status.Attempt)
	}
	if r.Step == 0 {
		r.Step = max(0, c.step.n)
	}
	if s := c.speed; s.first >= 0 && s.attempt == r.Attempt && r.Step == c.step.n {
		r.StepAt, r.FirstStep, r.FirstStepAt = c.step.at, s.first, s.since.UTC()
		if c.Read || c.ProgressFile != "" { // a step that only a checkpoint shows has its save in it
			r.StepsSeconds, r.SavesSeconds, r.RestoreSeconds = tenths(s.inSteps), tenths(s.inSaves), s.restore
		}
	}
	if r.CheckpointURI == "" {
		r.CheckpointStep, r.CheckpointURI = c.found.Step, c.found.URI
	}
	c.fault("reports", c.spool.Add(now, r))
}

// tenths are seconds to the tenth.
func tenths(d time.Duration) float64 { return d.Round(time.Second / 10).Seconds() }

// happened tells of what the leader has seen.
func (c *crew) happened(now time.Time, e agree.Event) {
	if e.Began {
		c.report(now, events.CrewReport{
			Report: events.ReportStarted, Attempt: e.Attempt, ReadyAt: e.Ready.UTC(), Workers: e.Workers, Step: c.found.Step, RestartsLeft: e.Left, Retries: e.Retries,
		})
		c.clearEarlier(e.Attempt)
		return
	}
	cause, next := e.Ended, e.Verdict
	own := cause.Slice == c.Machine.Slice
	switch cause.Class {
	case restart.Finished, restart.Stopped, restart.Saved:
	case restart.Failed, restart.Crashed, restart.OutOfMemory, restart.Interrupted, restart.NotRun:
		if own {
			r := events.CrewReport{
				Report: events.ReportExited, Attempt: e.Attempt, Worker: cause.Worker, Hostname: cause.Host,
				ExitCode: cause.Exit.Code, Signal: cause.Exit.Signal, RestartsLeft: e.Left, Retries: e.Retries, Tail: cause.Exit.Tail,
				Interrupted: cause.Class == restart.Interrupted, OutOfMemory: cause.Class == restart.OutOfMemory,
				Reason: strings.TrimSuffix(cause.Exit.Describe()+"; "+c.forgets, "; "),
			}
			if cause.Exit.Unknown {
				r.Signal = "unknown"
			}
			c.report(now, r)
		}
	}
	switch {
	case e.Finished, e.GaveUp:
		c.conclude(now, e)
	case c.told != nil:
	case cause.Class == restart.Stopped:
		c.Say("%s", e.Why)
	case c.announced.preempted:
		c.Say("%s; nothing starts on this machine any more: it is preempted", e.Why)
	case cause.Class == restart.Saved && c.WaitSaved:
		c.Say("%s; waiting until the lease names a new attempt", e.Why)
	default:
		c.Say("%s; starting again %s", e.Why, within(next.After))
	}
}

// answer tells how requests to save ended. Worker 0 speaks for the slice.
func (c *crew) answer(now time.Time, answers []save.Answer) {
	for _, a := range answers {
		if a.Saved {
			c.Note("%s: saved step %d", a.Request.Why, a.Step)
		} else {
			c.Say("%s: not saved: %s", a.Request.Why, a.Reason)
		}
		if a.Request.Own || c.leader == nil {
			continue
		}
		c.answered = answered{id: a.Request.ID, at: a.At}
		r := events.CrewReport{Report: events.ReportRefused, SaveID: a.Request.ID, Reason: a.Reason}
		at := now
		if a.Saved {
			r.Report, r.CheckpointStep, r.CheckpointURI = events.ReportSaved, a.Checkpoint.Step, a.URI
		}
		c.report(at, r)
	}
}

// tell reports progress, and keeps the guest attribute.
func (c *crew) tell(now time.Time) {
	if c.leader != nil && c.child != nil && c.step.n >= 0 {
		c.leader.Progress(c.step.n, c.saved())
		first := c.step.reported < 0 // of an attempt: it is told at once
		if (c.every("report", c.Times.Report, now) || first) && c.step.n > c.step.reported {
			c.tellStep(now, c.child.Attempt)
			c.keepSpeed(now, c.child.Attempt)
		}
	}
	c.putGuest(now)
}

// tellStep reports the last step of an attempt.
func (c *crew) tellStep(now time.Time, attempt int) {
	c.step.reported = c.step.n
	rate := c.examplesPerSecond()
	r := events.CrewReport{Report: events.ReportProgress, Attempt: attempt, Workers: c.leader.Heard(now), ExamplesPerSecond: rate}
	if rate > 0 && c.primary() {
		m := c.measured()
		r.Measured = &m
	}
	c.report(now, r)
}

// The crew puts the guest attribute at most putsAMinute times, half of what the metadata server takes from all programs
// of a machine, and not again within putAgain.
const (
	putsAMinute = 5
	putAgain    = time.Second
)

// attributes reports whether there are guest attributes: those of a GKE machine are not its Pods'.
func (c *crew) attributes() bool { return c.Metadata != nil && !c.Machine.Pod.Known() }

// putGuest keeps the guest attribute: it beats, and has a verdict at once.
func (c *crew) putGuest(now time.Time) {
	if !c.attributes() || c.running["guest attribute"] {
		return
	}
	w := c.last
	if due := c.every("guest", c.Times.Beat, now); !due && (w == nil || w.shown || !c.mayPut(now)) {
		return
	}
	copy(c.puts[1:], c.puts[:])
	c.puts[0] = now
	s := events.CrewState{
		Schema: events.Schema, Seen: now.UTC(), Worker: c.Machine.Worker, Phase: string(c.status.Phase), Attempt: c.status.Attempt,
		Step: max(0, c.step.n), StepAt: c.step.at, CheckpointStep: c.found.Step, CheckpointURI: c.found.URI,
		SaveID: c.answered.id, SavedAt: c.answered.at, RequestReadAt: c.requestRead.UTC(),
	}
	if w != nil {
		s.Verdict = &w.verdict
	}
	state, err := json.Marshal(s)
	if err != nil {
		c.fault("guest attribute", err)
		return
	}
	c.once("guest attribute", func(ctx context.Context) func() {
		err := c.Metadata.Put(ctx, events.GuestNamespace, events.GuestKey, state)
		return func() {
			c.fault("guest attribute", err)
			if w != nil && err == nil {
				w.shown = true
			}
		}
	})
}

// mayPut reports whether the guest attribute may be put before its next beat.
func (c *crew) mayPut(now time.Time) bool {
	next := c.puts[0].Add(putAgain)
	if oldest := c.puts[putsAMinute-1].Add(time.Minute); oldest.After(next) {
		next = oldest
	}
	if now.Before(next) {
		c.at(next)
		return false
	}
	return true
}

// saved is the step of the last complete checkpoint; less than 0 is none that could be seen.
func (c *crew) saved() int64 {
	if c.found.URI == "" {
		return -1
	}
	return c.found.Step
}

// readStep reads the step now and then.
func (c *crew) readStep(now time.Time) {
	t := c.child
	switch {
	case t == nil || !c.every("step", c.Times.Step, now):
	case c.ProgressFile == "":
		c.stepOf(t, progressed{n: -1})
	default:
		c.once("progress file", func(ctx context.Context) func() {
			p := c.progressOf(ctx, t)
			return func() {
				if c.child == t {
					c.stepOf(t, p)
				}
			}
		})
	}
}

// stepOf takes the step of a training: from its progress file, from its output, or from its checkpoints.
func (c *crew) stepOf(t *child.Child, p progressed) {
	c.fault("progress file", p.err)
	n, at := p.n, p.at
	if c.speed.attempt != t.Attempt {
		c.speed = speed{attempt: t.Attempt, first: -1}
	}
	if n < 0 && c.Read {
		if o, ok := t.Output(); ok {
			n, at = o.Step, o.At
			c.speed.printed(o)
		}
	}
	if n >= 0 && !t.Adopted && !at.Before(t.Began) { // else the last attempt may have written it
		c.resumes(n)
	}
	if n < 0 && c.found.URI != "" && c.found.At.After(t.Began) {
		n, at = c.found.Step, c.found.At
	}
	if p.restore > 0 {
		c.speed.restore = p.restore
	}
	if n >= 0 && n != c.step.n {
		c.step.n, c.step.at = n, at.UTC()
		c.speed.step(n, at)
	}
}

// resumes takes a step of an attempt. One that lies before the checkpoint which the training was given is told of at once: each attempt
// would do the same steps, until no restart is left. Some frameworks tell the step of the checkpoint, others the one before. The bar of
// the Trainer stands at 0 until its first step is done, and one of an evaluation counts anew.
func (c *crew) resumes(n int64) {
	if c.resumed = c.resumed || n >= c.plan.Step-1; c.resumed || n == 0 || c.leader == nil || c.forgets != "" || c.plan.Checkpoint == "" {
		return
	}
	c.forgets = fmt.Sprintf("it does not resume: it was given step %s and is at step %s", events.Number(c.plan.Step), events.Number(n))
	c.Say("WARNING: attempt %d: %s. Each attempt does the steps in between again. The training has to load the newest checkpoint of %s, "+
		"which PITCREW_CHECKPOINT and PITCREW_RESUME_STEP name", c.plan.Attempt, c.forgets, c.Directory)
	now := c.clock()
	c.report(now, events.CrewReport{Report: events.ReportProgress, Step: n, Workers: c.leader.Heard(now), Reason: c.forgets})
}

// progressed is what a progress file says; less than 0 is nothing. Restore is how many seconds the training loaded its checkpoint.
type progressed struct {
	n       int64
	restore float64
	at      time.Time
	err     error
}

// patience is how long a progress file may take to be read: it may be no file, or lie on a storage that does not answer.
const patience = time.Second

// progressOf reads the progress file, beside the loop. A file that does not answer holds up only its reader.
func (c *crew) progressOf(ctx context.Context, t *child.Child) progressed {
	if c.ProgressFile == "" {
		return progressed{n: -1}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said := make(chan progressed, 1)
	late := progressed{n: -1, err: fmt.Errorf("%s does not answer", c.ProgressFile)}
	select {
	case c.reader <- struct{}{}:
	case <-ctx.Done():
		return late
	}
	path, began := c.ProgressFile, t.Began // whoever waits on touches nothing of the crew's
	go func() {
		text, at := progressText(path, began)
		n, restore := parsed(text)
		said <- progressed{n: n, restore: restore, at: at}
		<-c.reader
	}()
	select {
	case p := <-said:
		return p
	case <-ctx.Done():
		return late
	}
}

// progress reads a step from a file; less than 0 is none.
func progress(path string, since time.Time) (n int64, at time.Time) {
	text, at := progressText(path, since)
	return ParseProgress(text), at
}

// progressText is the end of a progress file: a number, or a JSON object with "step", as the file itself or as its last line. A
// file that is older than the attempt says nothing about it.
func progressText(path string, since time.Time) (text string, at time.Time) {
	info, err := os.Stat(path)
	if err != nil || info.ModTime().Before(since.Add(-time.Second)) {
		return "", at
	}
	f, err := os.Open(path)
	if err != nil {
		return "", at
	}
	defer f.Close() //nolint:errcheck // it was only read
	const most = 4 << 10
	buf := make([]byte, most)
	k, err := f.ReadAt(buf, max(0, info.Size()-most))
	if k == 0 && err != nil {
		return "", at
	}
	return string(buf[:k]), info.ModTime()
}

// ParseProgress reads the step from the end of a progress file; less than 0 is none.
func ParseProgress(text string) int64 {
	n, _ := parsed(text)
	return n
}

// parsed is the step at the end of a progress file, and the seconds of the restore; 0 is not told.
func parsed(text string) (n int64, restore float64) {
	lines := strings.Split(strings.TrimRight(text, " \t\r\n"), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if n, err := strconv.ParseInt(last, 10, 64); err == nil && n >= 0 {
		return n, 0
	}
	var object struct {
		Step    *float64 `json:"step"`
		Restore float64  `json:"restore_seconds"`
	}
	for _, s := range []string{last, text} {
		if json.Unmarshal([]byte(s), &object) == nil && object.Step != nil && *object.Step >= 0 && *object.Step < 1<<53 {
			return int64(*object.Step), max(0, object.Restore)
		}
	}
	return -1, 0
}
