package trainingtest

import (
	"context"
	"math"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
)

// Follow says how a record goes on after one line of a crew.
type Follow struct {
	// Next is the crew's next line in the same life of its slice, and At is its time. Without one the record is silent.
	Next *events.CrewReport
	At   time.Time
	// Fails says that later attempts end like the line, until the record shows one that trains.
	Fails bool
	// Leaves says that the crew is gone after this line: the record is silent, and nobody restarts or reports.
	Leaves bool
}

// longestFailure bounds how long a failing attempt runs whose duration no record shows.
const longestFailure = time.Hour

// Recorded has the run do what a recorded line of its crew says. The line itself is not written again. Where the run has gone another
// way than the record, because Pitstop acted, a line about an earlier attempt moves no step back.
func (t *Training) Recorded(r events.CrewReport, f Follow) {
	t.lock(func() {
		if r.CheckpointStep > t.saved {
			t.write(r.CheckpointStep, true)
			t.saved = r.CheckpointStep
		}
		switch r.Report {
		case events.ReportStarted, events.ReportProgress, events.ReportSaved:
			t.recordedSteps(r, f)
		case events.ReportExited:
			t.recordedExit(r, f)
		case events.ReportGaveUp:
			t.recordedEnd(r, f, func() {
				t.left = 0
				t.conclude(false, r.Reason)
			})
		case events.ReportFinished:
			t.recordedEnd(r, f, func() { t.exits(0) })
		case events.ReportRefused, events.ReportNotice: // they change nothing about the training
		}
		t.NoCrew = t.NoCrew || f.Leaves
	})
}

// recordedSteps follows the steps of the record, and begins the attempt that it shows.
func (t *Training) recordedSteps(r events.CrewReport, f Follow) {
	if !f.Fails {
		t.Fails, t.failure = 0, nil
	}
	switch {
	case r.Attempt > t.attempt || r.Attempt == t.attempt && !t.running && r.Report != events.ReportSaved:
		if !t.up || len(t.missing) > 0 || !t.admitted() {
			return // Pitstop has not admitted it, or its machine is not there
		}
		t.attempt = r.Attempt - 1
		t.nameNext()
		t.recorded = true
		fails := t.Fails
		if f.Next != nil {
			t.Fails = 0 // the record says how this attempt ends
		}
		t.begin(r.Attempt, r.Step, t.Clock.Now())
		t.Fails = fails
	case !t.running || r.Attempt < t.attempt || r.Report == events.ReportSaved || t.ownWay() && r.Step < t.now():
		return
	}
	t.goOn(r, f)
}

// ownWay reports whether the attempt that runs was begun by the simulated crew, and not by the record.
func (t *Training) ownWay() bool { return t.attempt > t.Attempt && !t.recorded }

// goOn has the steps go on from a line to the next one of the same attempt: evenly, or not at all where it shows no new step.
func (t *Training) goOn(r events.CrewReport, f Follow) {
	now := t.Clock.Now()
	t.pace++ // what was planned for other steps does not happen
	t.from, t.first, t.high, t.hung = r.Step, now, max(t.high, r.Step), time.Time{}
	t.StepTakes, t.recorded = t.usual, f.Next != nil
	if n := f.Next; n != nil && n.Attempt == r.Attempt && n.Step > 0 {
		if steps := n.Step - r.Step; steps > 0 {
			t.StepTakes = max(f.At.Sub(now)/time.Duration(steps), time.Nanosecond)
		} else {
			t.hung, t.first = now, now.Add(math.MaxInt64/2)
		}
	}
	if t.Fails == 0 || f.Next != nil {
		t.nextCheckpoint()
		t.laterStep(t.ReportEvery, t.progress)
	}
}

// recordedExit ends the attempt that runs. Its crew restarts it where the record is silent, or shows a later attempt and not its
// start.
func (t *Training) recordedExit(r events.CrewReport, f Follow) {
	if !t.running || r.Attempt <= t.exited {
		return // several workers may tell of one exit
	}
	t.exited = r.Attempt
	if r.Attempt < t.attempt { // Pitstop was faster than the record: the crew has to report the later attempt
		t.report(events.CrewReport{
			Report: events.ReportExited, ExitCode: r.ExitCode, Signal: r.Signal, Tail: r.Tail, Reason: r.Reason, Step: t.now(),
		})
	}
	if f.Fails {
		t.Fails, t.failure = max(r.ExitCode, 1), &r
		t.FailsAfter = t.lasted(r)
	}
	t.high = max(t.high, r.Step, t.now())
	t.stop()
	t.attempt, t.recorded, t.StepTakes = max(t.attempt, r.Attempt), false, t.usual
	if r.RestartsLeft > 0 {
		t.left = r.RestartsLeft + 1 // ended takes one
	}
	if n := f.Next; n != nil && (n.Report == events.ReportStarted || n.Report == events.ReportGaveUp || n.Report == events.ReportFinished) {
		t.crashed, t.failures = true, append(t.failures, t.Clock.Now())
		return
	}
	if f.Leaves {
		t.NoCrew = true
	}
	t.ended()
}

// lasted is how long the attempt ran that a line ends: by the record, else from the start of a process to the step at which it failed.
func (t *Training) lasted(r events.CrewReport) time.Duration {
	if t.attempt > t.Attempt && r.Attempt == t.attempt {
		return max(t.Clock.Now().Sub(t.began), time.Second)
	}
	steps := time.Duration(0)
	if r.Step > t.saved {
		steps = min(time.Duration(r.Step-t.saved), longestFailure/t.usual) * t.usual
	}
	return min(t.StartTakes+steps, longestFailure)
}

// recordedEnd ends a training for which the record shows no further attempt of the crew's own.
func (t *Training) recordedEnd(r events.CrewReport, f Follow, conclude func()) {
	if r.Attempt < t.attempt && t.running {
		return // it is about an attempt before the one that Pitstop asked for
	}
	if f.Fails && t.Fails == 0 {
		t.Fails, t.FailsAfter, t.failure = 1, t.StartTakes, nil
	}
	t.attempt, t.high = max(t.attempt, r.Attempt), max(t.high, r.Step)
	t.stop()
	t.recorded, t.crashed = false, true
	conclude()
}

// admitted reports whether the lease lets this life train.
func (t *Training) admitted() bool {
	if t.NoCrew || t.Directory == "" {
		return true
	}
	l, _, err := checkpoint.ReadLease(context.Background(), t.store, t.Directory)
	return err == nil && l.Admits(t.Slice, t.life, t.group, 0)
}
