// Package restart decides what follows from the end of a training: whether it is started again, when, and from whose
// budget. It follows the restart rules of Google's training service and does no I/O.
// https://cloud.google.com/vertex-ai/docs/training/understanding-training-service
package restart

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"pitstop.internal/events"
)

// Exit is how one attempt ended on one worker.
type Exit struct {
	Attempt int `json:"attempt"`
	// Code and Signal say how: one of the two. 128+n codes of a shell are left as they are.
	Code   int    `json:"code,omitzero"`
	Signal string `json:"signal,omitzero"`
	// Unknown says that nobody saw it.
	Unknown bool `json:"unknown,omitzero"`
	// Unled says that it was ended because no crew read the lease any more.
	Unled bool `json:"unled,omitzero"`
	// OOMKilled says that the kernel killed something of its group for want of memory meanwhile.
	OOMKilled bool `json:"oom_killed,omitzero"`
	// Began and Ended are when; MaxRSS is the most memory that it had, in bytes.
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`
	MaxRSS int64     `json:"max_rss,omitzero"`
	// Tail are the last lines of its output, where that is read.
	Tail []string `json:"tail,omitzero"`
	// SignalAt is when the output last told of a signal that the training had received, where that is read.
	SignalAt time.Time `json:"signal_at,omitzero"`
}

// Describe says in a few words how it ended.
func (e Exit) Describe() string {
	switch {
	case e.Unknown:
		return "nobody saw how"
	case e.Unled:
		return "no crew read the lease"
	case e.OOMKilled && e.killed():
		return "out of memory"
	case e.Signal != "":
		return e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// ShellCode is the code that a shell makes of it.
func (e Exit) ShellCode(number func(signal string) int) int {
	switch {
	case e.Unknown:
		return 125
	case e.Signal != "":
		return 128 + number(e.Signal)
	}
	return e.Code
}

func (e Exit) is(signal string, number int) bool {
	return e.Signal == signal || e.Signal == "" && e.Code == 128+number
}

func (e Exit) killed() bool { return e.is("SIGKILL", 9) }

// Clean reports whether the training is known to have exited with code 0.
func (e Exit) Clean() bool { return e.Code == 0 && e.Signal == "" && !e.Unknown }

// Circumstances are what the crew knows about the moment of an exit.
type Circumstances struct {
	// Stopped says that the crew ended it itself, for a reason that is no failure.
	Stopped bool
	// Told says that the crew passed a signal on, or a request to save is open.
	Told bool
	// Maintenance says that maintenance or a preemption was announced for about now.
	Maintenance bool
	// Lost says that a worker, or its crew, was not to be heard any more.
	Lost bool
	// First says that it never ran before.
	First bool
	// Signalled says that the output told of a received signal shortly before the exit.
	Signalled bool
	// Done says that the training reached the last step that its owner named, Short that it ended before that step.
	// Neither is set where no last step was named, or no step is known.
	Done, Short bool
}

// Class is what an exit stands for.
type Class string

// The classes.
const (
	// Finished is exit 0 in quiet times, or any end after the last step was saved: the job is done.
	Finished Class = "finished"
	// Saved is exit 0 that was asked for, comes near maintenance or a received signal, or comes before the last step: it is no
	// end of the job, and follows a save as a rule.
	Saved Class = "saved"
	// Stopped is an end that the crew decided on itself.
	Stopped Class = "stopped"
	// Interrupted is an end that lies with the machines; it is charged to the machines alone.
	Interrupted Class = "interrupted"
	// Failed is an exit that may succeed the next time.
	Failed Class = "failed"
	// Crashed is an abort or a segmentation fault: possibly transient, worth a restart of the whole job.
	Crashed Class = "crashed"
	// OutOfMemory would happen again.
	OutOfMemory Class = "out_of_memory"
	// NotRun is a command that is not there or cannot be executed.
	NotRun Class = "not_run"
)

// Classify says what an exit stands for.
func Classify(e Exit, c Circumstances) Class {
	switch {
	case c.Stopped:
		return Stopped
	case e.Unknown || e.Unled || c.Lost:
		return Interrupted
	case e.Clean() && c.Done:
		return Finished
	case e.Clean() && (c.Told || c.Maintenance || c.Signalled || c.Short):
		return Saved
	case e.Clean():
		return Finished
	case e.OOMKilled && e.killed():
		return OutOfMemory
	case c.Maintenance:
		return Interrupted
	case e.is("SIGABRT", 6), e.is("SIGSEGV", 11):
		return Crashed
	case e.Signal == "" && e.killed():
		return Failed // a shell or a container says that something was killed; often it was out of memory in a group of its own
	case e.killed(), e.is("SIGTERM", 15), e.is("SIGHUP", 1), e.is("SIGINT", 2):
		return Interrupted // somebody sent it: a shutdown, an operator, the system
	case e.Signal == "" && (e.Code == 126 || e.Code == 127) && c.First:
		return NotRun
	}
	return Failed
}

// Policy are the numbers of the rules; each is a flag.
type Policy struct {
	// Restarts is how often a training is restarted before that counts as a try of the job, Tries how many more tries the
	// job has. Both refill with progress.
	Restarts, Tries int
	// Memory is how often a training is restarted that ran out of memory, Interruptions how often one that the machines
	// interrupted.
	Memory, Interruptions int
	// NoProgress is how many restarts in a row may pass without a step past the highest one; 0 is no bound.
	NoProgress int
	// Service says that the rules are exactly those of Google's training service: see ServiceRules.
	Service bool
	// Internal is how often a training is restarted after an error of pitcrew itself; only Service counts these.
	Internal int
	// First is the wait before the first restart, Longest before any; it doubles in between. Jitter is the part of it that
	// is drawn by lot.
	First, Longest time.Duration
	Jitter         float64
}

// Defaults are the numbers of Google's training service where it has any: 5 restarts of a worker, 3 of the job.
func Defaults() Policy {
	return Policy{
		Restarts: 5, Tries: 3, Memory: 0, Interruptions: 100, NoProgress: 5,
		First: 10 * time.Second, Longest: 5 * time.Minute, Jitter: 0.2,
	}
}

// Validate returns every fault of the numbers, in one line.
func (p Policy) Validate() error {
	var faults []string
	for _, n := range []struct {
		name  string
		value int
	}{
		{"restarts", p.Restarts},
		{"job-tries", p.Tries},
		{"memory-restarts", p.Memory},
		{"interruptions", p.Interruptions},
		{"no-progress", p.NoProgress},
	} {
		if n.value < 0 {
			faults = append(faults, fmt.Sprintf("%s %d: it cannot be less than 0", n.name, n.value))
		}
	}
	if p.First < 0 || p.Longest < p.First {
		faults = append(faults, fmt.Sprintf("backoff %v to %v: the longest is at least the first", p.First, p.Longest))
	}
	if p.Jitter < 0 || p.Jitter > 1 {
		faults = append(faults, fmt.Sprintf("jitter %v: it lies between 0 and 1", p.Jitter))
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s", strings.Join(faults, "; "))
	}
	return nil
}

// Budget counts the restarts that are used. It is kept across restarts of the crew.
type Budget struct {
	Restarts      int `json:"restarts"`
	Tries         int `json:"tries"`
	Memory        int `json:"memory"`
	Interruptions int `json:"interruptions"`
	// Idle counts the restarts in a row without a step past High, and Waits all of them since then.
	Idle  int `json:"idle"`
	Waits int `json:"waits"`
	// High is the highest step that was seen, Saved the highest that was saved; less than 0 is none.
	High  int64 `json:"high"`
	Saved int64 `json:"saved"`
	// Started says that the training has run before.
	Started bool `json:"started"`
	// Service is what is used under the rules of the training service; nil is nothing. Each change makes a new one, because copies of
	// a budget share it. Progress does not refill it.
	Service *used `json:"service,omitzero"`
}

// NewBudget is the budget of a training that has not run yet.
func NewBudget() Budget { return Budget{High: -1, Saved: -1} }

// Progress takes the step that the training has come to and the one that it has saved; less than 0 is not known. New
// ground that is saved refills everything; where nobody knows the saved step, the step itself has to do.
func (b Budget) Progress(step, saved int64) Budget {
	if step > b.High {
		b.High, b.Idle, b.Waits = step, 0, 0
		if b.Saved < 0 && saved < 0 {
			b.Restarts, b.Tries, b.Memory, b.Interruptions = 0, 0, 0, 0
		}
	}
	if saved > b.Saved {
		if b.Saved >= 0 {
			b.Restarts, b.Tries, b.Memory, b.Interruptions, b.Idle, b.Waits = 0, 0, 0, 0, 0, 0
		}
		b.Saved = saved
	}
	return b
}

// Refill is the budget after somebody asked for a new attempt.
func (b Budget) Refill() Budget {
	return Budget{High: b.High, Saved: b.Saved, Started: b.Started}
}

// Left is how many restarts remain for a training that fails.
func (b Budget) Left(p Policy) int {
	if p.Service {
		return max(0, p.Tries-b.used().Tries)
	}
	left := max(0, p.Restarts-b.Restarts) + max(0, p.Tries-b.Tries)*(1+p.Restarts)
	if p.NoProgress > 0 && b.High >= 0 {
		left = min(left, max(0, p.NoProgress-b.Idle))
	}
	return left
}

// Retries are the restarts used, by kind.
func (b Budget) Retries(p Policy) events.JobRetries {
	if p.Service {
		u := b.used()
		r := events.JobRetries{Job: u.Tries, Internal: u.Internal}
		for _, n := range u.Workers {
			r.Worker = max(r.Worker, n)
		}
		return r
	}
	return events.JobRetries{Worker: b.Restarts, Job: b.Tries, Memory: b.Memory, Interruption: b.Interruptions}
}

// Next is what follows from an exit.
type Next struct {
	// Restart says that another attempt follows, After that long.
	Restart bool
	After   time.Duration
	// Finished says that the job is done, else, where there is no restart, the crew gives up.
	Finished bool
	// Reason says why, for people, in one line.
	Reason string
}

// End is how an attempt ended.
type End struct {
	Class Class
	Exit  Exit
	// Worker names the worker that ended first, Lost says that it, or its crew, was not to be heard any more.
	Worker string
	Lost   bool
	// Saved says that a new checkpoint is complete.
	Saved bool
}

// Decide says what follows from an end, and the budget after it. Chance is between 0 and 1.
func Decide(p Policy, b Budget, end End, chance float64) (Budget, Next) {
	class, e := end.Class, end.Exit
	b.Started = b.Started || class != NotRun
	again := func(why string) (Budget, Next) {
		wait := b.wait(p, chance)
		b.Waits++
		return b, Next{Restart: true, After: wait, Reason: why}
	}
	switch class {
	case Finished:
		if !e.Clean() {
			return b, Next{Finished: true, Reason: "its last step was saved before it ended: " + e.Describe()}
		}
		return b, Next{Finished: true, Reason: "exit code 0"}
	case Saved:
		why := "it saved itself; the job is not done"
		if !end.Saved {
			why = "exit code 0 without a new checkpoint; the job is not done"
		}
		if b.Waits == 0 {
			b.Waits++
			return b, Next{Restart: true, Reason: why}
		}
		return again(why)
	case Stopped:
		return b, Next{Restart: true, Reason: "the crew had stopped it"}
	case NotRun:
		return b, Next{Reason: "the command cannot be run: " + e.Describe()}
	case Interrupted, Failed, Crashed, OutOfMemory:
	}
	if p.Service {
		return b.service(p, end)
	}
	switch class {
	case Interrupted:
		if b.Interruptions >= p.Interruptions {
			return b, Next{Reason: fmt.Sprintf("%d interruptions without progress, the last: %s", p.Interruptions, e.Describe())}
		}
		b.Interruptions++
		return again("interrupted: " + e.Describe())
	case Failed, Crashed, OutOfMemory, Finished, Saved, Stopped, NotRun:
	}
	if p.NoProgress > 0 && b.High >= 0 && b.Idle >= p.NoProgress {
		return b, Next{Reason: fmt.Sprintf("%d restarts without a step past %s, the last: %s", b.Idle, events.Number(b.High), e.Describe())}
	}
	b.Idle++
	switch {
	case class == OutOfMemory:
		if b.Memory >= p.Memory {
			return b, Next{Reason: cmp.Or(spent(p.Memory, "restart", "out of memory"), "out of memory, which a restart would not mend; --memory-restarts allows some")}
		}
		b.Memory++
		return again("out of memory")
	case class == Failed && b.Restarts < p.Restarts:
		b.Restarts++
		return again(fmt.Sprintf("%s; restart %d of %d", e.Describe(), b.Restarts, p.Restarts))
	case b.Tries < p.Tries:
		b.Tries++
		b.Restarts = 0
		return again(fmt.Sprintf("%s; try %d of %d of the whole job", e.Describe(), b.Tries+1, p.Tries+1))
	}
	return b, Next{Reason: fmt.Sprintf("all restarts are spent, the last exit: %s", e.Describe())}
}

func spent(n int, word, why string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %ss are spent: %s", n, word, why)
}

// wait doubles from one restart to the next, with a part of it drawn by lot so that many jobs do not start at once.
func (b Budget) wait(p Policy, chance float64) time.Duration {
	wait := p.First
	for range b.Waits {
		if wait = min(2*wait, p.Longest); wait == p.Longest {
			break
		}
	}
	return wait + time.Duration(float64(wait)*p.Jitter*(2*chance-1))
}
