//go:build unix

package crew

import (
	"context"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/shared/checkpoint"
)

// triedSteps is how many steps after the first one a trial waits for.
const triedSteps = 5

// endsWithin is how long a command that has saved may take to end by itself; frameworks that end after the save do so soon.
const endsWithin = 3 * time.Second

// Seen is what a trial showed.
type Seen struct {
	// Handlers is how many processes of the command handle the signal to save.
	Handlers int
	// Steps were done after the First one that was seen, in Took. First is less than 0 if none was.
	First, Steps int64
	Took         time.Duration
	// Examples is how many examples a second these were; 0 is not known.
	Examples float64
	// Came is the newest complete checkpoint, if it came during the trial; Looked is why none could be found out.
	Came   checkpoint.Found
	Looked error
	// Asked says that the training got the signal, Saved that a complete checkpoint came of it, or that it ended without an unsaved
	// step; After that long.
	Asked, Saved bool
	After        time.Duration
	// Ended says that the command ended by itself, and Exit how.
	Ended bool
	Exit  restart.Exit
}

// trial is a command that runs to be looked at.
type trial struct {
	Options
	child *child.Child
	speed speed
	seen  Seen
}

// Try starts the command on this worker, without a lease. It looks for as long as limit at what the command does. If it handles
// the signal and has done a step, the signal asks it to save, which may take as long again. Then the command is killed.
func Try(ctx context.Context, o Options, limit time.Duration) (Seen, error) {
	dir, err := os.MkdirTemp("", "pitcrew-try-")
	if err != nil {
		return Seen{}, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder in the temporary one
	var k child.Keeper
	defer k.Close()
	t := trial{Options: o, speed: speed{first: -1}}
	before := t.newest(ctx)
	t.child, err = k.Start(child.Spec{
		Dir: dir, Attempt: 1, Command: o.Command, Env: append(untold(os.Environ()), t.environment()...),
		Read: o.Read, Pattern: o.Pattern, Examples: o.Examples, Leftovers: time.Second,
	}, nil)
	if err != nil {
		return Seen{}, err
	}
	t.watch(ctx, limit)
	if t.running() && t.seen.Handlers > 0 && t.speed.first >= 0 {
		t.save(ctx, limit)
	}
	if t.seen.Ended = !t.running(); !t.seen.Ended {
		_ = t.child.Signal(syscall.SIGKILL) //nolint:errcheck // it may just have ended
	}
	<-t.child.Done()
	t.seen.Exit = t.child.Exit()
	if after := t.newest(ctx); after.URI != before.URI || after.At.After(before.At) {
		t.seen.Came = after
	}
	t.seen.First = t.speed.first
	if t.seen.First >= 0 {
		t.seen.Steps, t.seen.Took = t.speed.measured()
	}
	t.seen.Examples = t.speed.examples(batchOf(o))
	return t.seen, nil
}

// environment is what the only attempt finds in its environment. Where the hosts meet is known on a single one alone: nobody agrees.
func (t *trial) environment() []string {
	env := Environment(t.Machine, 1, t.Directory)
	if s := t.Scale; s != nil {
		env = append(env, "PITCREW_GLOBAL_BATCH="+strconv.FormatInt(s.Batch, 10), "PITCREW_STEPS="+strconv.FormatInt((s.Examples+s.Batch-1)/s.Batch, 10))
	}
	if t.Machine.Workers*t.Machine.Slices == 1 {
		if server, err := FreeServer(t.Machine); err == nil {
			env = append(env, "PITCREW_SERVER_ADDR="+server)
		}
	}
	return env
}

func (t *trial) running() bool {
	select {
	case <-t.child.Done():
		return false
	default:
		return true
	}
}

// watch looks at the command until it has shown enough, or for as long as limit.
func (t *trial) watch(ctx context.Context, limit time.Duration) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		if t.seen.Handlers == 0 {
			t.seen.Handlers = len(t.child.Handlers(t.Signal))
		}
		t.readStep()
		steps, _ := t.speed.measured()
		if t.seen.Handlers > 0 && (t.ProgressFile == "" && t.Pattern == "" || t.speed.first >= 0 && steps >= triedSteps) {
			return
		}
		select {
		case <-tick.C:
		case <-t.child.Done():
			t.readStep()
			return
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (t *trial) readStep() {
	n, at := int64(-1), time.Time{}
	if t.ProgressFile != "" {
		n, at = progress(t.ProgressFile, t.child.Began)
	}
	if o, ok := t.child.Output(); ok && t.Read {
		if n < 0 {
			n, at = o.Step, o.At
		}
		t.speed.printed(o.Examples)
	}
	if n >= 0 && (t.speed.first < 0 || n != t.speed.last) {
		t.speed.step(n, at)
	}
}

// save asks the command to save, and waits for a complete checkpoint, or for its end.
func (t *trial) save(ctx context.Context, limit time.Duration) {
	before, asked := t.newest(ctx), time.Now()
	if t.child.Signal(t.Signal) != nil {
		return // it has just ended
	}
	t.seen.Asked = true
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(limit)
	defer over.Stop()
	for waiting := true; waiting && !t.seen.Saved; {
		select {
		case <-tick.C:
		case <-t.child.Done():
			waiting = false
		case <-over.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
		after := t.newest(ctx)
		t.seen.Saved = after.URI != "" && (after.URI != before.URI || after.At.After(before.At))
		if t.readStep(); after.URI != "" && !t.running() && after.Step >= t.speed.last {
			t.seen.Saved = true // its last step was saved just before
		}
		t.seen.After = time.Since(asked)
	}
	if t.seen.Saved {
		select {
		case <-t.child.Done():
		case <-time.After(endsWithin):
		case <-ctx.Done():
		}
	}
}

// newest is the newest complete checkpoint; none has no URI.
func (t *trial) newest(ctx context.Context) checkpoint.Found {
	if t.Store == nil || t.Directory == "" {
		return checkpoint.Found{}
	}
	found, err := checkpoint.Verify(ctx, t.Store, t.Directory, checkpoint.Want{})
	if t.seen.Looked = err; errors.As(err, new(*checkpoint.Missing)) {
		return checkpoint.Found{}
	}
	return found
}
