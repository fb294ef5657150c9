// Package trainingtest is a simulated training: its steps, checkpoints and crashes, with the crew beside it. It follows the machines
// of the simulated Cloud TPU API, which knows nothing of trainings.
package trainingtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// Config is a training run on one slice, with its crew.
type Config struct {
	// Slice is the node's name; the run follows it through every life and zone.
	Project, Slice, Workload string
	// With names the other slices of a Multislice: a step needs them all.
	With  []string
	Clock cloudtputest.Clock
	// Bucket holds the checkpoint directory, which is gs:// or empty: then there are neither checkpoints nor a lease.
	Bucket    *buckettest.Server
	Directory string
	// Emit takes the entries that the crew writes to Cloud Logging, and Entry makes one of a line: nil has it come from a TPU VM.
	Emit  func(entry []byte)
	Entry func(r events.CrewReport, at time.Time, n int) []byte

	// NoCrew leaves the training to itself: it starts with the machine, without reports.
	NoCrew bool
	// Restarts is the crew's own budget, Backoff the time before its first restart, doubled for each further one.
	Restarts int
	Backoff  time.Duration
	// ReportEvery is how often progress is reported.
	ReportEvery time.Duration
	// Refuses is why the crew cannot save when it is asked; Silent has it not answer at all.
	Refuses string
	Silent  bool

	// Attempt is the number of the first attempt; 1 when it is not set. Quiet says that its crew says nothing of its own.
	Attempt int
	Quiet   bool
	// Step is the step at the beginning, StepTakes the time of one, CheckpointEvery how many lie between two checkpoints.
	Step            int64
	StepTakes       time.Duration
	CheckpointEvery int64
	// SaveTakes is the time of a save. StartTakes is the time from the start of the process to its first step, BootTakes from a
	// usable machine to the start of the crew.
	SaveTakes, StartTakes, BootTakes time.Duration
	// OnSignal is the training's reaction to Google's own SIGTERM, and Exited is called when its process has exited.
	OnSignal OnSignal
	Exited   func()
	// GaveUp is called when an attempt has ended by itself and no crew begins another one; nil is not.
	GaveUp func()
	// Torn leaves every requested save without its commit marker.
	Torn bool
	// Fails is the exit code with which later attempts end after FailsAfter, FailsTimes times or, when that is 0, always.
	// FailsAnew has the code rise from one to the next.
	Fails      int
	FailsAfter time.Duration
	FailsTimes int
	FailsAnew  bool
}

// OnSignal is what a training does on SIGTERM.
type OnSignal string

// It saves itself and exits with 0, which is the default; it dies of the signal; or it goes on as if nothing had happened.
const (
	SavesItself   OnSignal = ""
	Dies          OnSignal = "dies"
	IgnoresSignal OnSignal = "ignores"
)

func (c Config) orDefault() Config {
	for _, p := range []struct {
		d    *time.Duration
		than time.Duration
	}{
		{&c.Backoff, 10 * time.Second},
		{&c.ReportEvery, 5 * time.Minute},
		{&c.StepTakes, 10 * time.Second},
		{&c.SaveTakes, 40 * time.Second},
		{&c.StartTakes, 3 * time.Minute},
		{&c.BootTakes, 90 * time.Second},
		{&c.FailsAfter, 30 * time.Second},
	} {
		if *p.d == 0 {
			*p.d = p.than
		}
	}
	if c.CheckpointEvery == 0 {
		c.CheckpointEvery = 60
	}
	if c.Restarts == 0 {
		c.Restarts = 5
	}
	c.Attempt = max(c.Attempt, 1)
	return c
}

// Training is a simulated training run: steps, checkpoints, crashes, and a crew that obeys the lease, carries out requests
// and reports. Observe passes it the events of its machine, and Changed the changes in its directory. It is safe for
// concurrent use.
type Training struct {
	Config
	store checkpoint.Store

	mu sync.Mutex
	// life, zone and group are the machine that it runs on; up says that the machine is usable.
	life    events.Incarnation
	group   string
	workers int
	up      bool
	// lives are the lives of the other slices, missing those that cannot be used.
	lives   map[string]events.Incarnation
	missing map[string]bool
	// run counts starts and stops: plans of an earlier run are dropped.
	run     int
	running bool
	attempt int
	// from is the step at which the attempt began, first when its first step begins.
	from  int64
	first time.Time
	// saved is the last complete checkpoint, high the last step that was done.
	saved, high int64
	left        int
	pause       time.Duration
	failed      int
	crashed     bool
	asked       *events.CrewRequest
	answered    string
	entries     int
	// done says that its work is done: if started again, it ends at once.
	done bool
	// doneAt is when it ended so last.
	doneAt time.Time
	// verdict is the crew's last word on the attempt that ended last; nil while another one may follow.
	verdict *events.CrewVerdict
	// dead is when the crew ended without a word, hung when the steps stopped.
	dead, hung time.Time
	// ran is the life in which the last attempt was begun, began when that was, haunted when a zombie of a former life wrote last.
	ran            events.Incarnation
	began, haunted time.Time
	// recorded says that a record tells of the attempt that runs, so that the crew itself says nothing of its steps. usual is the time
	// of a step where no record says it, failure the recorded exit that later attempts repeat.
	recorded bool
	usual    time.Duration
	// firstStep is the step at which the attempt began, at firstAt, and lastAt when it had done its last one; zero while it does steps.
	firstStep       int64
	firstAt, lastAt time.Time
	// pace counts how often a record has given the attempt other steps.
	pace    int
	failure *events.CrewReport
	exited  int // the last attempt whose exit a record told
	// lifeFrom and lifeHigh are the first and the last step of that life.
	lifeFrom, lifeHigh int64
	// started is when an attempt was begun last that was no restart of the crew's own, failures are when attempts ended by themselves.
	started  time.Time
	failures []time.Time
	attempts []pastAttempt
	// worked are the stretches that are over in which steps were done.
	worked []Stretch
}

// Stretch is a time in which steps were done, one after the other. Again is how long those had taken that had to be done again after it,
// since no checkpoint had them.
type Stretch struct {
	From, Until time.Time
	Again       time.Duration
}

// pastAttempt is when an attempt was begun, in which life, and the last step that it did by its end.
type pastAttempt struct {
	began   time.Time
	life    events.Incarnation
	reached int64
}

// New begins a run on a machine that has been up for long.
func New(c Config, life events.Incarnation, group string, workers int) *Training {
	t := &Training{Config: c.orDefault(), life: life, ran: life, group: group, workers: workers, up: true}
	t.lives, t.missing = map[string]events.Incarnation{}, map[string]bool{}
	t.store = checkpoint.Mux{"gs": checkpoint.NewBucket(option.WithHTTPClient(&http.Client{Transport: c.Bucket.Transport()}))}
	t.left, t.pause, t.usual = t.Restarts, t.Backoff, t.StepTakes
	t.saved = t.Step - t.Step%t.CheckpointEvery
	t.high = t.Step
	t.lock(func() {
		t.write(t.saved, true)
		if t.NoCrew || t.Directory == "" || t.lease(0, t.Attempt) {
			t.start(t.Attempt, t.Step, t.Clock.Now())
			t.recorded = t.Quiet
		}
	})
	return t
}

// lock runs f alone.
func (t *Training) lock(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// later runs f after d, unless the run has stopped or started again by then.
func (t *Training) later(d time.Duration, f func()) {
	run := t.run
	t.Clock.At(t.Clock.Now().Add(d), func() {
		t.lock(func() {
			if t.run == run {
				f()
			}
		})
	})
}

// laterStep runs f after d, unless the run has been stopped, restarted, or given other steps by then.
func (t *Training) laterStep(d time.Duration, f func()) {
	pace := t.pace
	t.later(d, func() {
		if t.pace == pace {
			f()
		}
	})
}

// Observe follows the machine.
func (t *Training) Observe(e cloudtputest.Event) {
	if slices.Contains(t.With, e.Node) {
		t.lock(func() { t.beside(e) })
	}
	if e.Node != t.Slice {
		return
	}
	t.lock(func() {
		switch e.Kind {
		case cloudtputest.Ready:
			if t.up && e.Incarnation.Same(t.life) {
				return
			}
			if !e.Incarnation.Same(t.life) {
				t.asked, t.answered, t.crashed, t.left, t.pause = nil, "", false, t.Restarts, t.Backoff
			}
			if t.left > 0 && !t.done && t.dead.IsZero() {
				t.crashed = false // the start-up script runs again
			}
			t.life, t.group, t.workers, t.up = e.Incarnation, e.Group, max(e.Workers, 1), true
			t.stop()
			t.later(t.BootTakes, t.boot)
		case cloudtputest.Unhealthy, cloudtputest.Stopped, cloudtputest.Lost, cloudtputest.Gone:
			if e.Incarnation.Known() && !e.Incarnation.Same(t.life) {
				return
			}
			t.up = false
			t.stop()
		case cloudtputest.Signalled:
			t.signalled()
		case cloudtputest.Metadata:
			if e.Key == events.MetadataRequest && !e.Removed {
				t.take([]byte(e.Value))
			}
		default: // the training does not notice
		}
	})
}

// beside follows the training on another slice of a Multislice: an attempt ends with any of them, and the next one waits for
// all.
func (t *Training) beside(e cloudtputest.Event) {
	switch e.Kind {
	case cloudtputest.Ready:
		t.lives[e.Node] = e.Incarnation
		if !t.missing[e.Node] {
			return
		}
		delete(t.missing, e.Node)
		if gaveUp := t.crashed && t.left == 0; len(t.missing) > 0 || t.running || gaveUp || !t.dead.IsZero() {
			return
		}
		t.crashed = false
		t.later(t.BootTakes, t.boot)
	case cloudtputest.Unhealthy, cloudtputest.Stopped, cloudtputest.Lost, cloudtputest.Gone:
		if life := t.lives[e.Node]; life.Known() && e.Incarnation.Known() && !e.Incarnation.Same(life) {
			return
		}
		t.missing[e.Node] = true
		if t.running {
			t.stop()
		}
	default: // the others do not notice
	}
}

// Changed follows the checkpoint directory. A crew reads it every ten seconds.
func (t *Training) Changed(bucket, name string, deleted bool) {
	if deleted || t.NoCrew || t.Directory == "" || !strings.HasSuffix(name, checkpoint.LeaseName) && !strings.HasSuffix(name, checkpoint.RequestName) {
		return
	}
	uri := "gs://" + bucket + "/" + name
	switch uri {
	case checkpoint.Join(t.Directory, checkpoint.LeaseName):
		t.Clock.At(t.Clock.Now().Add(10*time.Second), func() { t.lock(t.obey) })
	case checkpoint.Join(t.Directory, checkpoint.RequestName):
		t.Clock.At(t.Clock.Now().Add(10*time.Second), func() {
			o, err := t.store.Get(context.Background(), uri)
			if err == nil {
				t.lock(func() { t.take(o.Content) })
			}
		})
	}
}

// Exit ends the attempt that runs as a recorded line of the crew says: the line itself is not written again.
func (t *Training) Exit(r events.CrewReport) {
	t.lock(func() {
		if t.running {
			t.high = max(r.Step, t.now())
			t.ended()
		}
	})
}

// ExitZero ends the attempt that runs with exit 0, as a recorded line of the crew says: the line itself is not written again.
func (t *Training) ExitZero(r events.CrewReport) {
	t.lock(func() {
		if t.running {
			t.high = max(r.Step, t.now())
			t.exits(0)
		}
	})
}

// signalled is what the training does when Google sends it SIGTERM. Its crew sees no notice of maintenance, so it takes an exit 0 for
// the end of the job.
func (t *Training) signalled() {
	if !t.running {
		return
	}
	switch t.OnSignal {
	case SavesItself:
		step := t.now()
		t.write(step, false)
		t.later(t.SaveTakes, func() {
			t.write(step, true)
			t.saved, t.high = max(t.saved, step), max(t.high, step)
			t.exits(0)
			t.report(events.CrewReport{Report: events.ReportFinished, Step: t.high})
		})
	case Dies:
		t.high = max(t.high, t.now())
		t.report(events.CrewReport{Report: events.ReportExited, Signal: "SIGTERM", Interrupted: true, Step: t.high, RestartsLeft: t.left})
		t.exits(143)
	case IgnoresSignal:
	}
}

// exits ends the process of the attempt. After exit 0 only the start-up script starts it again.
func (t *Training) exits(code int) {
	if code == 0 {
		t.stop()
		t.crashed = true
		t.conclude(true, "exit code 0")
	} else {
		t.ended()
	}
	if t.Exited != nil {
		t.Clock.At(t.Clock.Now(), t.Exited)
	}
}

// LastStep is the last step that was done.
func (t *Training) LastStep() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.high, t.now())
}

// Running reports whether steps are being done, and in which life of the slice.
func (t *Training) Running() (events.Incarnation, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.life, t.running
}

// Life is the life of the slice that was usable last.
func (t *Training) Life() events.Incarnation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.life
}

// Group is what the host names of the machines of that life have in common.
func (t *Training) Group() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.group
}

// Started is when an attempt was begun last that was no restart of the crew's own.
func (t *Training) Started() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.started
}

// Failures are when attempts ended by themselves, in that order.
func (t *Training) Failures() []time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.failures)
}

// FailedAt reports whether an attempt had failed by a moment, and no other one had been begun.
func (t *Training) FailedAt(at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var failed, began time.Time
	for _, when := range t.failures {
		if !when.After(at) {
			failed = when
		}
	}
	for _, a := range t.attempts {
		if !a.began.After(at) {
			began = a.began
		}
	}
	return failed.After(began)
}

// Began is when the attempt that runs, or ran last, was begun.
func (t *Training) Began() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.began
}

// Reached is the last step of the attempts that were begun since a moment.
func (t *Training) Reached(since time.Time) (step int64) {
	return t.reached(since, func(events.Incarnation) bool { return true })
}

// ReachedIn is likewise the last step of those in the life with an ID.
func (t *Training) ReachedIn(life string, since time.Time) (step int64) {
	return t.reached(since, func(in events.Incarnation) bool { return in.ID == life })
}

// RanIn reports whether an attempt was ever begun in the life with an ID.
func (t *Training) RanIn(life string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.attempts, func(a pastAttempt) bool { return a.life.ID == life })
}

func (t *Training) reached(since time.Time, in func(life events.Incarnation) bool) (step int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.attempts {
		if a.began.After(since) && in(a.life) {
			step = max(step, a.reached)
		}
	}
	if t.running && t.began.After(since) && in(t.ran) {
		step = max(step, t.now())
	}
	return step
}

// Saved is the step of the last complete checkpoint.
func (t *Training) Saved() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.saved
}

// Stepped is how many steps were done in the life that Ran returns.
func (t *Training) Stepped() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running {
		return max(t.lifeHigh, t.now()) - t.lifeFrom
	}
	return t.lifeHigh - t.lifeFrom
}

// Ran is the life in which steps were done last, or were to be.
func (t *Training) Ran() events.Incarnation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ran
}

// State is the last guest attribute that the crew on worker 0 wrote; false if there is none.
func (t *Training) State() (s events.CrewState, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.NoCrew || !t.up {
		return s, false
	}
	now := t.Clock.Now()
	s = events.CrewState{Schema: events.Schema, Seen: now, Phase: "idle", Attempt: t.attempt, Step: t.now(), CheckpointStep: t.saved, Verdict: t.verdict}
	switch {
	case !t.dead.IsZero():
		s.Seen, s.Phase, s.StepAt = t.dead, "running", t.dead
	case t.running && !t.hung.IsZero():
		s.Phase, s.StepAt = "running", t.hung
	case t.running:
		s.Phase = "running"
		if done := now.Sub(t.first) / t.StepTakes; done > 0 {
			s.StepAt = t.first.Add(done * t.StepTakes)
		}
	}
	return s, true
}

// now is the step at this moment.
func (t *Training) now() int64 {
	if !t.running {
		return t.high
	}
	done := int64(t.Clock.Now().Sub(t.first) / t.StepTakes)
	return t.from + max(0, done)
}

// boot is what the start-up script does: the training where there is no crew, else the crew, which reads the lease.
func (t *Training) boot() {
	switch {
	case !t.up || len(t.missing) > 0 || t.running:
	case t.NoCrew || t.Directory == "":
		t.start(t.attempt+1, t.saved, t.Clock.Now().Add(t.StartTakes))
	default:
		t.obey()
	}
}

// obey reads the lease and follows it: the training runs only on the slices and in the attempt that the lease names.
func (t *Training) obey() {
	l, _, err := checkpoint.ReadLease(context.Background(), t.store, t.Directory)
	switch {
	case err != nil || !t.up:
		return
	case !l.Admits(t.Slice, t.life, t.group, 0):
		if t.running {
			t.stop()
		}
		if t.succeeds(l) {
			// The one that is named is taken over from when it cannot write any more. A lease that was written since is waited for anew.
			t.later(6*time.Minute, func() {
				if again, _, err := checkpoint.ReadLease(context.Background(), t.store, t.Directory); err == nil && again.Epoch == l.Epoch && again.Attempt == l.Attempt && t.succeeds(again) {
					t.lease(l.Epoch, max(t.attempt, l.Attempt)+1)
					t.obey()
				}
			})
		}
	case len(t.missing) > 0: // it is read again when they are there
	case l.Attempt > t.attempt:
		t.left, t.pause, t.crashed = t.Restarts, t.Backoff, false
		t.start(l.Attempt, t.saved, t.Clock.Now().Add(t.StartTakes))
	case !t.running && !t.crashed:
		t.nameNext()
		t.start(t.attempt+1, t.saved, t.Clock.Now().Add(t.StartTakes))
	}
}

// succeeds reports whether a crew may replace the one that a lease names. It may if a crew wrote the lease, or if the named
// life had this one's name and zone before, because only one life at a time has them.
func (t *Training) succeeds(l checkpoint.Lease) bool {
	if l.Epoch == 0 {
		return true
	}
	for _, a := range l.Admitted {
		if a.Slice == t.Slice && a.Incarnation.Zone == t.life.Zone && a.Incarnation.Created.Before(t.life.Created) {
			return true
		}
	}
	return false
}

// lease writes the crew's own lease, and reports whether the directory took it. One that another workload holds, or that no bucket
// can have, does not: then a crew waits.
func (t *Training) lease(epoch int64, attempt int) bool {
	l := checkpoint.Lease{
		Schema: events.Schema, Workload: t.Workload, Epoch: epoch, Attempt: attempt, Written: t.Clock.Now(), By: "crew",
		Admitted: []events.Admission{{Slice: t.Slice, Incarnation: t.life, Workers: t.group}},
	}
	err := checkpoint.WriteLease(context.Background(), t.store, t.Directory, l)
	refused := errors.Is(err, checkpoint.ErrForeign) || errors.Is(err, checkpoint.ErrInvalid)
	if err != nil && !refused {
		panic(fmt.Sprintf("trainingtest: the crew's lease: %v", err))
	}
	return !refused
}

// nameNext makes the lease name the attempt that the crew itself starts next. A bucket that does not answer is written later.
func (t *Training) nameNext() {
	l, _, err := checkpoint.ReadLease(context.Background(), t.store, t.Directory)
	if t.Directory == "" || err != nil || l.Attempt > t.attempt || !l.Admits(t.Slice, t.life, t.group, 0) {
		return
	}
	l.Attempt, l.Written, l.By = t.attempt+1, t.Clock.Now(), "crew"
	_ = checkpoint.WriteLease(context.Background(), t.store, t.Directory, l) //nolint:errcheck // the next one tries again
}

// start begins an attempt that is no restart of the crew's own.
func (t *Training) start(attempt int, from int64, first time.Time) {
	t.started = t.Clock.Now()
	t.recorded, t.StepTakes = false, t.usual
	t.begin(attempt, from, first)
}

// begin starts an attempt from a checkpoint.
func (t *Training) begin(attempt int, from int64, first time.Time) {
	t.stop() // an attempt that still runs ends here, with its steps done
	if last, n := len(t.attempts)-1, len(t.worked)-1; last >= 0 && n >= 0 && from < t.attempts[last].reached {
		t.worked[n].Again = time.Duration(t.attempts[last].reached-from) * t.usual
	}
	t.running, t.crashed, t.hung, t.dead, t.verdict = true, false, time.Time{}, time.Time{}, nil
	if t.began.IsZero() || !t.ran.Same(t.life) {
		t.lifeFrom, t.lifeHigh = from, from
	}
	t.attempt, t.from, t.first, t.ran, t.began = attempt, from, first, t.life, t.Clock.Now()
	t.firstStep, t.firstAt, t.lastAt = from, first, time.Time{}
	t.attempts = append(t.attempts, pastAttempt{began: t.began, life: t.life})
	if attempt > t.Attempt && !t.recorded {
		t.report(events.CrewReport{Report: events.ReportStarted, Workers: t.workers, Step: from})
	}
	if t.done {
		t.later(t.FailsAfter, t.finish)
		return
	}
	if t.Fails != 0 && t.crashedBefore() && (t.FailsTimes == 0 || t.failed < t.FailsTimes) {
		t.later(t.FailsAfter, func() {
			code := t.Fails
			if t.FailsAnew {
				code += t.failed % 100
			}
			t.failed++
			t.high = max(t.high, t.now())
			t.ended()
			report := events.CrewReport{Report: events.ReportExited, ExitCode: code, Step: t.high, RestartsLeft: t.left}
			if r := t.failure; r != nil {
				report.ExitCode, report.Signal, report.Tail, report.Reason = r.ExitCode, r.Signal, r.Tail, r.Reason
			}
			t.report(report)
		})
		return
	}
	t.nextCheckpoint()
	t.laterStep(t.first.Sub(t.Clock.Now())+t.ReportEvery, t.progress)
}

// crashedBefore reports whether a recorded exit has set off the failures.
func (t *Training) crashedBefore() bool { return t.attempt > t.Attempt }

func (t *Training) stop() {
	t.high = max(t.high, t.now())
	if t.running {
		t.halt()
		t.lifeHigh = max(t.lifeHigh, t.now())
		t.attempts[len(t.attempts)-1].reached = t.now()
	}
	t.run++
	t.running = false
}

// halt ends the stretch in which steps are done, if any are.
func (t *Training) halt() {
	if now := t.Clock.Now(); t.first.Before(now) {
		t.lastAt = t.stepped()
		t.worked = append(t.worked, Stretch{From: t.first, Until: now})
	}
}

// stepped is when the attempt had done its last step until now; zero where it has done none.
func (t *Training) stepped() time.Time {
	if now := t.Clock.Now(); t.lastAt.IsZero() && t.running && t.first.Before(now) {
		return t.first.Add(now.Sub(t.first).Truncate(t.StepTakes))
	}
	return t.lastAt
}

// Worked are the stretches in which steps were done until now, the last one last.
func (t *Training) Worked() []Stretch {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.Clone(t.worked)
	if now := t.Clock.Now(); t.running && t.first.Before(now) {
		all = append(all, Stretch{From: t.first, Until: now})
	}
	return all
}

func (t *Training) progress() {
	t.high = max(t.high, t.now())
	t.reports()
	t.laterStep(t.ReportEvery, t.progress)
}

// reports reports progress, unless a record tells of it.
func (t *Training) reports() {
	if !t.recorded {
		t.report(events.CrewReport{Report: events.ReportProgress, Step: t.now(), CheckpointStep: t.saved, Workers: t.workers})
	}
}

// nextCheckpoint plans the next periodic checkpoint.
func (t *Training) nextCheckpoint() {
	next := (t.now()/t.CheckpointEvery + 1) * t.CheckpointEvery
	t.laterStep(t.first.Add(time.Duration(next-t.from)*t.StepTakes).Sub(t.Clock.Now()), func() {
		t.save(next, nil)
		t.nextCheckpoint()
	})
}

// save writes a checkpoint of this step; it is complete when its time has passed. The answer to a request follows.
func (t *Training) save(step int64, asked *events.CrewRequest) {
	if asked == nil && t.asked != nil && t.asked.Mode == events.SaveNatural {
		asked, t.asked = t.asked, nil
	}
	torn := t.Torn && asked != nil
	t.write(step, false)
	t.later(t.SaveTakes, func() {
		if !torn {
			t.write(step, true)
			t.saved = max(t.saved, step)
		}
		if asked != nil {
			t.answered = asked.SaveID
			t.report(events.CrewReport{
				Report: events.ReportSaved, SaveID: asked.SaveID, Step: t.now(), CheckpointStep: step,
				CheckpointURI: checkpoint.Join(t.Directory, strconv.FormatInt(step, 10)),
			})
		}
	})
}

// write puts the objects of a checkpoint into the bucket, the commit marker last.
func (t *Training) write(step int64, complete bool) {
	if t.Directory == "" {
		return
	}
	dir := checkpoint.Join(t.Directory, strconv.FormatInt(step, 10))
	bucket, path, _ := strings.Cut(strings.TrimPrefix(dir, "gs://"), "/")
	put := func(name, content string) {
		name = checkpoint.Join(path, name)
		if _, _, exists := t.Bucket.Get(bucket, name); !exists {
			t.Bucket.Put(bucket, name, []byte(content))
		}
	}
	put("state/manifest.ocdbt", "arrays")
	put("_CHECKPOINT_METADATA", "{}")
	if complete {
		put("commit_success.txt", "Checkpoint commit was successful to "+dir)
	}
}

// take carries out a request to save, once.
func (t *Training) take(raw []byte) {
	r, err := events.DecodeCrewRequest(raw)
	switch {
	case err != nil || t.NoCrew || t.Silent || !t.running || r.SaveID == t.answered || t.asked != nil && t.asked.SaveID == r.SaveID:
	case t.Refuses != "":
		t.answered = r.SaveID
		t.report(events.CrewReport{Report: events.ReportRefused, SaveID: r.SaveID, Step: t.now(), Reason: t.Refuses})
	case r.Mode == events.SaveNatural:
		t.asked = &r
	default:
		t.asked = &r
		t.save(t.now(), &r)
	}
}

// ended is the end of an attempt by itself. The crew restarts it, within its own budget.
func (t *Training) ended() {
	t.stop()
	t.crashed, t.failures = true, append(t.failures, t.Clock.Now())
	if t.NoCrew {
		t.givesUp()
		return
	}
	if t.left == 0 {
		t.later(time.Second, func() {
			t.givesUp()
			t.conclude(false, fmt.Sprintf("%d restarts without progress", t.Restarts))
			t.report(events.CrewReport{
				Report: events.ReportGaveUp, Step: t.high, Reason: fmt.Sprintf("%d restarts without progress", t.Restarts),
			})
		})
		return
	}
	t.left--
	wait := t.pause
	t.pause *= 2
	t.later(wait, func() {
		if t.up && len(t.missing) == 0 {
			t.nameNext()
			t.begin(t.attempt+1, t.saved, t.Clock.Now().Add(t.StartTakes))
		}
	})
}

func (t *Training) givesUp() {
	if t.GaveUp != nil {
		t.Clock.At(t.Clock.Now(), t.GaveUp)
	}
}

// conclude writes the crew's verdict on the ended attempt next to the checkpoints and into the guest attribute.
func (t *Training) conclude(finished bool, reason string) {
	if t.NoCrew {
		return
	}
	t.verdict = &events.CrewVerdict{
		Schema: events.Schema, Attempt: t.attempt, Finished: finished, Ended: t.Clock.Now(), Step: t.high, Reason: reason,
		Life: events.Admission{Slice: t.Slice, Incarnation: events.Incarnation{Zone: t.life.Zone}, Workers: t.group},
	}
	if t.Directory == "" {
		return
	}
	err := checkpoint.CreateVerdict(context.Background(), t.store, t.Directory, *t.verdict)
	if err != nil && !errors.Is(err, checkpoint.ErrConflict) {
		panic(fmt.Sprintf("trainingtest: the crew's verdict: %v", err))
	}
}

// report writes a line of the crew. Worker 0 speaks for the slice.
func (t *Training) report(r events.CrewReport) {
	if t.NoCrew {
		return
	}
	r.Schema, r.Project, r.Zone, r.Node, r.Hostname, r.Attempt = events.Schema, t.Project, t.life.Zone, t.Slice, t.group+"-w-0", t.attempt
	if at := t.stepped(); !at.IsZero() {
		r.StepAt, r.FirstStep, r.FirstStepAt = at, t.firstStep, t.firstAt
	}
	if strings.Contains(r.Zone, "/") { // a Pod knows the UID of its Job, and a TPU VM nothing of the kind
		r.Life = t.life.ID
	}
	t.entries++
	entry := CrewEntry
	if t.Entry != nil {
		entry = t.Entry
	}
	t.Emit(entry(r, t.Clock.Now(), t.entries))
}

// CrewEntry is the entry of Cloud Logging that holds a line of a crew on a TPU VM.
func CrewEntry(r events.CrewReport, at time.Time, n int) []byte {
	return crewEntry(r, at, n, map[string]any{"type": "gce_instance", "labels": map[string]any{"project_id": r.Project, "zone": r.Zone, "instance_id": "0"}})
}

// PodEntry is the entry of Cloud Logging that holds a line of a crew in a Pod, whose name is the line's host name.
func PodEntry(r events.CrewReport, at time.Time, n int) []byte {
	location, rest, _ := strings.Cut(r.Zone, "/")
	cluster, namespace, _ := strings.Cut(rest, "/")
	return crewEntry(r, at, n, map[string]any{"type": "k8s_container", "labels": map[string]any{
		"project_id": r.Project, "location": location, "cluster_name": cluster, "namespace_name": namespace, "pod_name": r.Hostname, "container_name": "training",
	}})
}

func crewEntry(r events.CrewReport, at time.Time, n int, resource map[string]any) []byte {
	stamp := at.UTC().Format(time.RFC3339Nano)
	severity := "INFO"
	switch r.Report {
	case events.ReportExited, events.ReportGaveUp, events.ReportRefused:
		severity = "ERROR"
	case events.ReportStarted, events.ReportProgress, events.ReportSaved, events.ReportFinished, events.ReportNotice:
	}
	entry, err := json.Marshal(map[string]any{
		"insertId":  events.ID("crew", r.Node, stamp, strconv.Itoa(n))[:16],
		"logName":   "projects/" + r.Project + "/logs/" + events.CrewLog,
		"timestamp": stamp, "receiveTimestamp": at.Add(cloudtputest.Received).UTC().Format(time.RFC3339Nano), "severity": severity,
		"resource":    resource,
		"jsonPayload": r,
	}, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("trainingtest: crew line: %v", err))
	}
	return entry
}
