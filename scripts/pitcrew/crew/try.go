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
	// Unsure says that a checkpoint came after the signal, and perhaps without regard to it. Unread is why nobody knows
	// whether one came.
	Unsure bool
	Unread error
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
	began look
}

// look is the newest complete checkpoint at one moment. None has no URI; err is why nobody knows.
type look struct {
	found checkpoint.Found
	err   error
}

// fault is why the look says nothing. That a checkpoint is missing is known.
func (l look) fault() error {
	if errors.As(l.err, new(*checkpoint.Missing)) {
		return nil
	}
	return l.err
}

// newer reports whether a complete checkpoint is known to have come since an earlier look.
func (l look) newer(earlier look) bool {
	return l.fault() == nil && earlier.fault() == nil && l.found.URI != "" &&
		(l.found.URI != earlier.found.URI || l.found.At.After(earlier.found.At))
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
	t.began = t.newest(ctx)
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
	after := t.newest(ctx)
	if after.newer(t.began) {
		t.seen.Came = after.found
	}
	if t.seen.Looked = after.err; t.began.fault() != nil {
		t.seen.Looked = t.began.err
	}
	t.seen.First = t.speed.first
	t.seen.Steps, t.seen.Took = t.speed.measured()
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
		if t.seen.Handlers > 0 && (t.ProgressFile == "" && t.Pattern == "" || steps >= triedSteps) {
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
		t.speed.printed(o)
	}
	if n >= 0 && (t.speed.first < 0 || n != t.speed.last) {
		t.speed.step(n, at)
	}
}

// save asks the command to save, and waits for a complete checkpoint, or for its end.
func (t *trial) save(ctx context.Context, limit time.Duration) {
	before, asked := t.newest(ctx), time.Now()
	for _, pid := range t.child.Handlers(t.Signal) {
		t.seen.Asked = child.Send(pid, t.Signal) == nil || t.seen.Asked
	}
	if !t.seen.Asked {
		return // it has just ended
	}
	t.seen.Unread = before.fault()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(limit)
	defer over.Stop()
	came := false
	for waiting := true; waiting && !came && !t.seen.Saved; {
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
		came = after.newer(before)
		if t.readStep(); after.found.URI != "" && !t.running() && after.found.Step >= t.speed.last {
			t.seen.Saved = true // its last step was saved just before
		}
		t.seen.After = time.Since(asked)
	}
	if came {
		select {
		case <-t.child.Done():
		case <-time.After(endsWithin):
		case <-ctx.Done():
		}
		t.seen.Saved, t.seen.Unsure = credit(t.began, before, t.running())
	}
}

// credit says whether a checkpoint that came after the signal came of it. A command that also saves without a signal, and goes on,
// may have done so again. Began is the look at the begin of the trial, before the one right before the signal.
func credit(began, before look, runs bool) (saved, unsure bool) {
	alone := before.newer(began) || began.fault() != nil
	return !alone || !runs, alone && runs
}

// newest looks for the newest complete checkpoint.
func (t *trial) newest(ctx context.Context) look {
	if t.Store == nil || t.Directory == "" {
		return look{}
	}
	found, err := checkpoint.Verify(ctx, t.Store, t.Directory, checkpoint.Want{})
	return look{found, err}
}
