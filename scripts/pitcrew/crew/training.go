//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/restart"
	"pitstop.internal/scripts/pitcrew/save"
	"pitstop.internal/shared/checkpoint"
)

// stopping is a training that is being ended.
type stopping struct {
	why   string
	stage int
	at    time.Time // of the next stage
	// person says that it was asked for from outside.
	person bool
	// sent is the signal that asked the training to end, sentAt when.
	sent   syscall.Signal
	sentAt time.Time
}

// obey does what the plan says, as far as the lease allows.
func (c *crew) obey(now time.Time) {
	may, why := c.mayRun(now)
	switch {
	case c.child != nil && c.told == nil && !may:
		c.stop(now, why, 0)
	case c.child != nil && c.plan.Version != "" && (c.plan.Attempt != c.child.Attempt || !c.plan.Run) && c.told == nil:
		c.stop(now, c.plan.Reason, c.plan.Grace)
	case c.child == nil && c.told == nil && c.plan.Run && may && !c.announced.preempted &&
		(c.status.Phase == agree.Idle || c.status.Attempt < c.plan.Attempt):
		if c.mayStart(now) && c.scaled(now) {
			c.start(now)
		}
	}
	c.press(now)
}

// start starts the attempt of the plan.
func (c *crew) start(now time.Time) {
	spec := child.Spec{
		Dir: c.State, Attempt: c.plan.Attempt, Command: c.Command, Env: append(untold(os.Environ()), c.environment()...),
		Read: c.Read, Pattern: c.Pattern, Examples: c.Examples, Leftovers: c.Times.Leftovers, Terminal: c.Terminal && child.Terminal(),
		Stop: c.Times.Stop, Dump: c.Times.Dump,
	}
	if c.Directory != "" {
		spec.Unled, spec.Named = c.Times.Unled(), c.lease.named
	}
	hold, busy := c.Lock, error(nil)
	if hold != nil {
		hold = func() (held *os.File, err error) {
			held, err = c.Lock()
			busy = err
			return held, err
		}
	}
	t, err := c.keeper.Start(spec, hold)
	if c.fault("lock", busy); busy != nil {
		c.at(now.Add(time.Second))
		return
	}
	c.forgetEnd()
	c.step, c.resumed, c.forgets, c.left = step{n: -1, reported: -1}, false, "", work{}
	delete(c.seen, beyondLast)
	c.next["report"] = now.Add(c.Times.Report)
	if err != nil {
		c.unstarted(now, err)
		return
	}
	if !c.began {
		c.began = true
		c.keep()
	}
	c.child, c.stopping = t, nil
	c.lease.beaten = now // the lease that it begins under was just written, or just kept
	c.saver.Begin()
	c.set(agree.Status{Phase: agree.Running, Attempt: t.Attempt})
	c.Say("attempt %d began, process %d%s", t.Attempt, t.Training.PID, c.resuming())
	c.await(t)
	if r := c.early; r != nil {
		c.early = nil
		c.asked(*r, "a request from before the training began")
	}
}

// work is what the processes that a command has left have done when they were looked at last, and since when that is nothing. Trains says
// that one of them has done a step.
type work struct {
	at, since time.Time
	used      time.Duration
	step      int64
	trains    bool
}

// idle takes a look at them, and returns for how long they have done nothing: no step, less than a hundredth of a processor, and
// without a TPU.
func (w *work) idle(now time.Time, used time.Duration, tpu bool, step int64) time.Duration {
	switch { // what used a processor before, and counts no more, has ended: it may be what trained
	case used < w.used:
		w.trains = false
	case !w.at.IsZero() && step != w.step:
		w.trains = true
	}
	if w.at.IsZero() || tpu || step != w.step || used < w.used || used-w.used > now.Sub(w.at)/100 {
		w.since = now
	}
	w.at, w.used, w.step = now, used, step
	return now.Sub(w.since)
}

// helpers ends what a command has left that does nothing for long, such as a mount. The command itself has trained then. A training that
// hangs is left alone, as any other.
func (c *crew) helpers(now time.Time) {
	if c.child == nil || !c.every("helpers", c.Times.Idle/15, now) {
		return
	}
	if c.stopping != nil || !c.child.Left() {
		c.left = work{}
		return
	}
	used, tpu := c.child.Work()
	switch idle := c.left.idle(now, used, tpu, c.step.n); {
	case idle < c.Times.Idle:
	case c.left.trains:
		c.condition("left hangs", fmt.Sprintf("what the command has left has trained, and does nothing since step %s: it may hang, and the attempt goes on",
			events.Number(c.step.n)), "")
	default:
		c.Say("what the command has left has done nothing for %v, and has no TPU open: ending it as a helper", brief(idle))
		c.child.EndRest()
		c.left = work{}
	}
}

// unstarted ends the attempt of the plan, which could not begin.
func (c *crew) unstarted(now time.Time, err error) {
	c.Say("%v", err)
	e := restart.Exit{Attempt: c.plan.Attempt, Code: CodeFailed, Began: now, Ended: now}
	if f := (*child.StartError)(nil); errors.As(err, &f) {
		e.Code = f.Code
	}
	c.exited(e, restart.Circumstances{First: !c.began})
}

// variables are what an attempt may be told, behind PITCREW_.
var variables = []string{
	"ATTEMPT", "WORKER", "WORKERS", "SLICE", "SLICES", "CHECKPOINT_DIR", "CHECKPOINT", "RESUME_STEP", "GLOBAL_BATCH", "STEPS", "RUN",
	"NUM_HOSTS", "HOST_INDEX", "SERVER_ADDR",
}

// untold is an environment without what another crew told pitcrew itself, such as where to resume from: of two values of one
// name, most programs read the first.
func untold(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		name, ok := strings.CutPrefix(name, "PITCREW_")
		return ok && slices.Contains(variables, name)
	})
}

// Environment is what every attempt finds in its environment, wherever it resumes from. Without a checkpoint directory there
// is none to name.
func Environment(m metadata.Machine, attempt int, directory string) []string {
	env := []string{
		"PITCREW_ATTEMPT=" + strconv.Itoa(attempt),
		"PITCREW_WORKER=" + strconv.Itoa(m.Worker),
		"PITCREW_WORKERS=" + strconv.Itoa(m.Workers),
		"PITCREW_SLICE=" + strconv.Itoa(m.Slice),
		"PITCREW_SLICES=" + strconv.Itoa(m.Slices),
		"PITCREW_NUM_HOSTS=" + strconv.Itoa(m.Slices*m.Workers),
		"PITCREW_HOST_INDEX=" + strconv.Itoa(m.Slice*m.Workers+m.Worker),
	}
	if directory != "" {
		env = append(env, "PITCREW_CHECKPOINT_DIR="+directory)
	}
	return env
}

// environment is what this attempt finds in its environment.
func (c *crew) environment() []string {
	env := Environment(c.Machine, c.plan.Attempt, c.Directory)
	add := func(name, value string) { env = append(env, "PITCREW_"+name+"="+value) }
	if c.Scale != nil {
		add("GLOBAL_BATCH", strconv.FormatInt(c.Scale.Batch, 10))
		add("STEPS", strconv.FormatInt(c.scale.steps, 10))
	}
	if c.plan.Server != "" {
		add("SERVER_ADDR", c.plan.Server)
	}
	if c.plan.Checkpoint != "" {
		add("RESUME_STEP", strconv.FormatInt(c.plan.Step, 10))
		add("CHECKPOINT", c.plan.Checkpoint)
	}
	return env
}

// await brings the end of a training into the loop.
func (c *crew) await(t *child.Child) {
	go func() {
		select {
		case <-t.Done():
		case <-c.ctx.Done():
			return
		}
		p := c.progressOf(c.ctx, t)
		c.post(func() {
			counts := c.DoneAt != nil && c.primary() && t.Exit().Clean()
			if !c.saver.Open() && !counts || c.Directory == "" {
				c.ended(t, p)
				return
			}
			// Whether it saved is seen in the directory, and only now; and so may be its last step.
			c.verify(func() { c.ended(t, p) })
		})
	}()
}

// signalledWithin is how long before an exit 0 the output may tell of a signal that the exit follows. Google gives 5
// minutes.
const signalledWithin = 15 * time.Minute

// signalled reports whether the output told of a received signal shortly before the exit.
func signalled(e restart.Exit) bool {
	return !e.SignalAt.IsZero() && e.Ended.Sub(e.SignalAt) <= signalledWithin
}

// ended takes the end of the training.
func (c *crew) ended(t *child.Child, p progressed) {
	now := c.clock()
	e := t.Exit()
	c.stepOf(t, p)
	c.keepSpeed(now, t.Attempt)
	done, short := c.reached(e)
	when := restart.Circumstances{
		Done: done, Short: short,
		Signalled: signalled(e),
		// A training that ends after a signal has not failed. One that saved itself and ends with 0 has not finished either.
		Stopped:     c.stopping != nil && (!c.stopping.person || !e.Clean()),
		Told:        c.told != nil || c.saver.Told(now.Add(-c.Times.Recent)),
		Maintenance: c.announced.near(now, c.Times.Recent),
	}
	if class := restart.Classify(e, when); c.leader != nil && c.step.n > c.step.reported && (class == restart.Stopped || class == restart.Saved) {
		c.tellStep(now, t.Attempt) // no other report tells how far this attempt came
	}
	// A signal of pitcrew's own looks like one that a person has typed.
	own := c.stopping != nil
	saving := c.saving(now)
	c.child, c.stopping = nil, nil
	c.answer(now, c.saver.Ended(c.world(now, nil), e.Describe(), e.Clean()))
	// An adopted training that was ended from the keyboard ended under an earlier pitcrew.
	if s, ok := typed(e); ok && c.Terminal && c.told == nil && !t.Adopted && !own && s != saving {
		c.told, c.toldAt, when.Stopped = s, now, true
		c.Say("%s ended the training; pitcrew ends, too", wordFor(s))
	} else if c.told != nil {
		c.Say("the training ended %v after the signal: %s", brief(now.Sub(c.toldAt)), e.Describe())
	} else if c.client != nil && !when.Stopped {
		c.Say("attempt %d ended here: %s", e.Attempt, e.Describe())
	}
	c.exited(e, when)
}

// saving is the signal by which the training was asked to save, as long as that save is open; 0 is none. Only worker 0 sees
// when a save is done: the others give it the time that one may take.
func (c *crew) saving(now time.Time) syscall.Signal {
	r := c.saver.Request
	switch {
	case len(c.SaveCommand) > 0:
	case r != nil && c.saver.Signals(),
		c.leader == nil && c.saver.Marked.After(now.Add(-c.Times.Save)):
		return c.Signal
	}
	return 0
}

// wordFor names a signal; people at a keyboard know two of them by their keys.
func wordFor(s syscall.Signal) string {
	switch name := child.SignalName(s); s {
	case syscall.SIGINT:
		return "Ctrl-C (" + name + ")"
	case syscall.SIGQUIT:
		return "Ctrl-\\ (" + name + ")"
	default:
		return name
	}
}

// typed is the signal by which a person at the terminal has ended the training: Ctrl-C, or Ctrl-\\ where it does not react.
func typed(e restart.Exit) (syscall.Signal, bool) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		if e.Signal == child.SignalName(s) || e.Signal == "" && e.Code == 128+int(s) {
			return s, true
		}
	}
	return 0, false
}

func (c *crew) exited(e restart.Exit, when restart.Circumstances) {
	c.set(agree.Status{Phase: agree.Ended, Attempt: e.Attempt, Exit: e, When: when})
}

// set changes what this worker says.
func (c *crew) set(s agree.Status) {
	s.Worker, s.Host, s.Leaving = c.Machine.Worker, c.Machine.Host, c.told != nil
	c.status = s
	if c.client != nil {
		c.client.Say(s)
	}
}

// stop begins to end the training; within grace it may end by itself. Who has less time for it than was given comes first.
func (c *crew) stop(now time.Time, why string, grace time.Duration) {
	at := now.Add(grace)
	if s := c.stopping; s != nil && (s.stage > 0 || !at.Before(s.at)) {
		return
	}
	if grace > 0 {
		c.Say("attempt %d may end by itself within %v: %s", c.child.Attempt, brief(grace), why)
	} else {
		c.Say("ending attempt %d: %s", c.child.Attempt, why)
	}
	c.stopping = &stopping{why: why, at: at}
}

// press goes on with ending the training: SIGTERM, a dump of its stacks right before the end, SIGKILL.
func (c *crew) press(now time.Time) {
	s := c.stopping
	if s == nil || c.child == nil {
		return
	}
	for !now.Before(s.at) && s.stage < 3 {
		stage := s.stage
		s.stage++
		switch stage {
		case 0:
			c.send(syscall.SIGTERM)
			s.sent, s.sentAt = syscall.SIGTERM, now
			s.at = now.Add(c.Times.Stop)
		case 1:
			c.Say("the training has not ended %v after %s; sending SIGQUIT for its stacks, and SIGKILL in %v (%s)",
				brief(now.Sub(s.sentAt)), wordFor(s.sent), brief(c.Times.Dump), s.why)
			c.send(syscall.SIGQUIT)
			s.at = now.Add(c.Times.Dump)
		case 2:
			c.send(syscall.SIGKILL)
			s.at = now.Add(time.Second)
			s.stage = 2 // again, should something have been started meanwhile
			c.at(s.at)
			return
		}
	}
	c.at(s.at)
}

func (c *crew) send(sig syscall.Signal) {
	if err := c.child.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		c.Say("%s to the training: %v", child.SignalName(sig), err)
	}
}

// echo is for how long a signal that comes again is the same one: timeout signals its child and then the group of that, and
// sudo and wrappers pass on what the whole group got.
const echo = time.Second

// signalled takes a signal that was sent to the crew. One that ends programs is passed on to the whole training, and
// nothing is started any more; any other goes to who handles it.
func (c *crew) signalled(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok || sig == syscall.SIGCHLD || sig == syscall.SIGURG {
		return
	}
	now := c.clock()
	switch sig {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT:
	default:
		if c.child != nil {
			for _, pid := range c.child.Handlers(sig) {
				c.pass(pid, sig)
			}
		}
		return
	}
	name := wordFor(sig)
	again := false
	switch {
	case c.told == nil:
	case sig == syscall.SIGHUP:
		return // it ends already; a terminal that is gone says so more than once
	case c.told == syscall.SIGHUP: // the first one that a person or a system sends on purpose
	case now.Sub(c.toldAt) < echo:
		c.Note("%s again within a second: it counts as the same one", name)
		return
	default:
		again = true
	}
	if !again {
		c.toldAt = now
	}
	c.told = sig
	c.set(c.status)
	if again {
		c.finish = now // a person who asks twice does not want to wait
	}
	switch s := c.stopping; {
	case c.child == nil && again:
		c.Say("%s again, %v after the first signal: ending at once", name, brief(now.Sub(c.toldAt)))
	case c.child == nil:
		c.Say("%s: no training runs here; ending", name)
	case again:
		c.Say("%s again, %v after the first signal: killing the training (SIGKILL)", name, brief(now.Sub(c.toldAt)))
		c.stopping = &stopping{why: "a second signal", stage: 2, at: now, person: true, sent: sig, sentAt: now}
		c.press(now)
	default:
		next := stopping{stage: 1, at: now.Add(c.Times.Stop), person: true}
		if s != nil && s.person { // its time goes on
			next = *s
		}
		next.why, next.sent, next.sentAt = "pitcrew got "+name, sig, now
		c.Say("%s: passed on to the training, which has %v to end; a second signal, at least a second later, kills it at once",
			name, brief(next.at.Sub(now)))
		c.send(sig)
		c.saver.Mark(now)
		c.stopping = &next
	}
}

func (c *crew) pass(pid int, sig syscall.Signal) {
	if err := child.Send(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		c.Say("%s to process %d: %v", child.SignalName(sig), pid, err)
	}
}

// world is the knowledge for a decision about a save.
func (c *crew) world(now time.Time, handlers []int) save.World {
	coarse := 20 * time.Millisecond // the kernel's clock for files ticks slower
	if strings.HasPrefix(c.Directory, "gs://") {
		coarse = time.Second
	}
	return save.World{
		Coarse: coarse, Young: c.child != nil && now.Sub(c.child.Began) < c.Times.Save,
		Now: now, Running: c.child != nil && c.stopping == nil, Handled: len(handlers) > 0, Command: len(c.SaveCommand) > 0,
		Directory: c.Directory != "", Signal: child.SignalName(c.Signal), Step: max(0, c.step.n),
		Checkpoint: save.Checkpoint{Step: c.found.Step, URI: c.found.URI, At: c.found.At}, Next: c.nextCheckpoint(),
	}
}

// keepRhythm takes a complete checkpoint that was found, before it takes the place of the last one.
func (c *crew) keepRhythm(found checkpoint.Found) {
	if c.child == nil || found.URI == c.found.URI || !found.At.After(c.lastSaved()) || c.saver.Marked.After(c.lastSaved()) {
		return
	}
	c.rhythm = found.At.Sub(c.lastSaved())
}

// lastSaved is when the training last had a checkpoint to count from: in this attempt, or as it began.
func (c *crew) lastSaved() time.Time {
	if c.found.At.After(c.child.Began) {
		return c.found.At
	}
	return c.child.Began
}

// nextCheckpoint is until when the rhythm of the training brings another checkpoint, with a quarter of it to spare; zero is not known.
func (c *crew) nextCheckpoint() time.Time {
	if c.child == nil || c.rhythm == 0 {
		return time.Time{}
	}
	return c.lastSaved().Add(c.rhythm + c.rhythm/4)
}

// urged is the request for which all workers have to ask their trainings to save: worker 0 alone sees their rhythm.
func (c *crew) urged() string {
	if !c.saver.Urged {
		return ""
	}
	return c.saver.Request.ID
}

// take takes a request to save, and carries it out at once.
func (c *crew) take(r save.Request) {
	now := c.clock()
	var handlers []int
	if c.child != nil && (c.leader != nil || r.Mode == events.SaveSignal) && len(c.SaveCommand) == 0 {
		handlers = c.child.Handlers(c.Signal)
	}
	w := c.world(now, handlers)
	w.Command = w.Command && (c.leader != nil || r.Mode == events.SaveSignal) // else worker 0 sees whether a save comes by itself
	act, answers := c.saver.Take(r, w)
	if act == save.Nothing && answers == nil {
		return // it is known
	}
	c.act(act, handlers)
	c.answer(now, answers)
	c.keep()
}

// act does what the open request takes.
func (c *crew) act(act save.Act, handlers []int) {
	if (act == save.Signal || act == save.Command) && !c.child.Left() {
		c.child.EndRest() // with the save the command may end
	}
	if act != save.Watch && c.saver.Urged {
		c.Say("%s: no checkpoint of the training's own is sure to come in time; asking for one", c.saver.Request.Why)
	}
	switch act {
	case save.Signal:
		for _, pid := range handlers {
			c.pass(pid, c.Signal)
		}
		c.Note("%s: %s to %d processes", c.saver.Request.Why, child.SignalName(c.Signal), len(handlers))
	case save.Command:
		c.Note("%s: running the command of --save-command", c.saver.Request.Why)
		c.runCommand(*c.saver.Request)
	case save.Nothing, save.Watch:
	}
}

// runCommand runs the user's command that saves; it is named on the crew's own command line and nowhere else. It ends,
// with all its processes, when its time is over or the crew ends.
func (c *crew) runCommand(r save.Request) {
	pid := c.child.Training.PID
	limit := c.Times.Save
	if d := r.By.Sub(c.clock()); !r.By.IsZero() && d < limit {
		limit = d
	}
	c.commands.Add(1)
	c.beside(limit, func(ctx context.Context) func() {
		defer c.commands.Done()
		cmd := exec.CommandContext(ctx, c.SaveCommand[0], c.SaveCommand[1:]...)
		cmd.Env = append(os.Environ(), "PITCREW_PID="+strconv.Itoa(pid), "PITCREW_SAVE_ID="+r.ID)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		err := child.Run(cmd)
		if ctx.Err() != nil {
			err = fmt.Errorf("it had not ended after %v", limit.Round(time.Second))
		}
		return func() {
			if err != nil {
				c.answer(c.clock(), c.saver.Failed(r.ID, fmt.Sprintf("--save-command: %v", err)))
			}
		}
	})
}
