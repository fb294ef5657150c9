package trainingtest

import (
	"context"
	"math"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
)

// Crash ends the attempt that runs with an exit code. The crew says so and restarts it.
func (t *Training) Crash(code int) {
	t.lock(func() {
		if !t.running {
			return
		}
		t.high = max(t.high, t.now())
		t.report(events.CrewReport{Report: events.ReportExited, ExitCode: code, Step: t.high, RestartsLeft: t.left})
		t.ended()
	})
}

// FallBack ends the attempt that runs, and leaves its newest checkpoints, as many as these, such that they cannot be restored: the
// next attempt begins from an older one.
func (t *Training) FallBack(checkpoints int64) {
	t.lock(func() { t.saved = max(0, t.saved-checkpoints*t.CheckpointEvery) })
	t.Crash(1)
}

// Loop makes that many next attempts end with an exit code; anew says that each ends with a different one.
func (t *Training) Loop(code, times int, anew bool) {
	t.lock(func() { t.Fails, t.FailsTimes, t.failed, t.FailsAnew = code, times, 0, anew })
}

// Hang stops the steps and leaves the process running: there is no report of a step after it, until its owner ends it.
func (t *Training) Hang() {
	t.lock(func() {
		if !t.running {
			return
		}
		t.high = max(t.high, t.now())
		t.halt()
		t.hung = t.Clock.Now()
		t.run++
		if next := t.ReportEvery - t.hung.Sub(t.first)%t.ReportEvery; t.first.Before(t.hung) {
			t.later(next, t.reports) // of the steps since its last line
		}
		t.from, t.first = t.high, t.Clock.Now().Add(math.MaxInt64/2)
	})
}

// Hangs reports whether a process is there that does no steps.
func (t *Training) Hangs() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running && t.first.Sub(t.Clock.Now()) > 365*24*time.Hour
}

// Still is since when a training has stood still without a report: it hangs, or died with its crew. Zero if it has not.
func (t *Training) Still() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.running:
		return t.hung
	case t.crashed:
		return t.dead
	}
	return time.Time{}
}

// Stepping is since when the attempt that runs has done steps; zero where none does.
func (t *Training) Stepping() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first := t.first.Add(t.StepTakes); t.running && t.hung.IsZero() && !first.After(t.Clock.Now()) {
		return first
	}
	return time.Time{}
}

// Die ends the training and its crew without a word, on a machine that is READY and HEALTHY all the time.
func (t *Training) Die() {
	t.lock(func() {
		t.stop()
		t.crashed, t.dead = true, t.Clock.Now()
	})
}

// Finish has the training that runs end, because its work is done, and so does whatever starts it again, until its owner begins
// another one.
func (t *Training) Finish() {
	t.lock(func() {
		if t.running {
			t.done = true
			t.finish()
		}
	})
}

func (t *Training) finish() {
	t.doneAt = t.Clock.Now()
	t.stop()
	t.crashed = true // it does not start again by itself
	t.conclude(true, "exit code 0")
	t.report(events.CrewReport{Report: events.ReportFinished, Step: t.high})
}

// ProveFinished has the word come that the work of a training was done when it ran last, though it runs no more: it was held back on
// the machine.
func (t *Training) ProveFinished() {
	t.lock(func() {
		if !t.running && t.attempt > 0 {
			t.done = true
			t.finish()
		}
	})
}

// Finished reports whether the work of the training is done.
func (t *Training) Finished() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done
}

// FinishedAt is when the work of the training was done last; zero where it never was.
func (t *Training) FinishedAt() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.doneAt
}

// Reboot starts the crew, or the training if there is no crew, like an owner who found it dead or done: if it was done, it
// is a new training.
func (t *Training) Reboot() {
	t.lock(func() {
		if !t.up {
			return
		}
		t.stop()
		t.crashed, t.left, t.pause = false, t.Restarts, t.Backoff
		t.Fails, t.done = 0, false
		t.later(t.BootTakes, t.boot)
	})
}

// Saves changes how the saves go that are asked for from now on.
func (t *Training) Saves(takes time.Duration, torn bool, refuses string) {
	t.lock(func() { t.SaveTakes, t.Torn, t.Refuses = takes, torn, refuses })
}

// Haunt turns the machine of the running training into a zombie once the API shows it lost: it goes on training and writing
// checkpoints for that long, as far as the lease lets its crew.
func (t *Training) Haunt(d time.Duration) {
	t.lock(func() {
		if !t.running || t.NoCrew || t.Directory == "" {
			return
		}
		life, group, step, until := t.life, t.group, t.now(), t.Clock.Now().Add(d)
		every := time.Duration(t.CheckpointEvery) * t.StepTakes
		var haunt func()
		haunt = func() {
			t.lock(func() {
				l, _, err := checkpoint.ReadLease(context.Background(), t.store, t.Directory)
				if err != nil || !l.Admits(t.Slice, life, group, 0) || t.up && t.life.Same(life) || t.Clock.Now().After(until) {
					return
				}
				step += max(1, int64(time.Minute/t.StepTakes)) // it trains as fast as before, and saves more often
				t.write(step, true)
				t.saved = max(t.saved, step)
				t.haunted = t.Clock.Now()
				t.Clock.At(t.Clock.Now().Add(every), haunt)
			})
		}
		t.Clock.At(t.Clock.Now().Add(every), haunt)
	})
}

// Haunted is when a zombie wrote into the checkpoint directory last, and Began when the attempt was begun that is the last.
func (t *Training) Haunted() (haunted, began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.haunted, t.began
}
