package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
)

// FarAttempt is how far an attempt of a line may be above the last one that is known by more than lines. A crew counts its own restarts in the
// lease, so that lines tell of later attempts than Pitstop has read there.
const FarAttempt = 1000

// isTooFar reports whether a line tells of an attempt far above the confirmed one. It is kept until the lease names that attempt. An answer or
// a notice is about no attempt.
func (w *Workload) isTooFar(r events.CrewReport) bool {
	switch r.Report {
	case events.ReportNotice, events.ReportSaved, events.ReportRefused:
		return false
	default:
	}
	return r.Attempt > w.Lease.Attempt+FarAttempt
}

// toldFar is when a line last told of an attempt that is too far above the last known one; zero for none. Only the lease can say whether
// it runs.
func (w *Workload) toldFar() (at time.Time) {
	for _, k := range w.Unbound {
		if w.isTooFar(k.Report()) {
			at = later(at, k.Time)
		}
	}
	return at
}

// outdated reports whether a line of an attempt is older than what is known of another attempt. The higher attempt is the newer one where it
// is confirmed. Of those that only lines tell of, the later line is the newer one, for anyone may write a number.
func (w *Workload) outdated(attempt int, told time.Time, known int, at time.Time) bool {
	confirmed := w.Lease.Attempt
	return attempt < known && (known <= confirmed || attempt < confirmed || !told.After(at))
}

func (f *facts) outdated(attempt, known int, at time.Time) bool {
	return f.w.outdated(attempt, f.from.Time, known, at)
}

// leaseNames records the attempt that the lease named when it was read: no later one has begun.
func (f *facts) leaseNames(attempt int) {
	f.w.Lease.Attempt = attempt
	f.belies(attempt)
	f.belieRuns(attempt)
}

// confirms records an attempt of which a verdict, or a crew's record on its machine, tells. None can follow the highest one: it is implausible.
func (f *facts) confirms(attempt int) {
	if attempt < events.MaxAttempt {
		f.w.Lease.Attempt = max(f.w.Lease.Attempt, attempt)
	}
}

// belies forgets the attempts after one that runs: only lines told of them.
func (f *facts) belies(attempt int) {
	t, in := &f.w.Training, f.w.Incident
	t.Attempt = min(t.Attempt, attempt)
	if t.Exit.Attempt > attempt {
		t.Exit = Exit{}
	}
	if t.Claim.Attempt > attempt {
		t.Claim = Claim{}
	}
	if t.StepAttempt > attempt {
		t.StepAttempt, t.Step = attempt, 0
	}
	if in != nil {
		in.BaseAttempt = min(in.BaseAttempt, attempt)
	}
}

// countAnew begins the count of attempts with a life: without a lease, a crew counts from 1 in every life.
func (f *facts) countAnew(since time.Time) {
	if f.w.Directory != "" {
		return
	}
	f.belies(0)
	t := &f.w.Training
	t.Verdict, t.Since, f.w.Lease.Attempt = Verdict{}, since, 0
}

// anotherTraining forgets the results of the training before: another directory has its own lease, attempts, steps and checkpoints, and no
// checkpoint in the one before saves the new training. No line from before the life that names it is one of the new training.
func (f *facts) anotherTraining(born time.Time) {
	t := &f.w.Training
	*t = Training{Seen: t.Seen, Since: later(t.Since, born)}
	f.w.Charges = nil
	for _, a := range []events.Action{events.ActionHear, events.ActionVerify, events.ActionAdmit, events.ActionRestart} { // these concern the other directory
		if x := f.w.effect(a, ""); x != nil {
			f.settle(x)
		}
	}
	if in := f.w.Incident; in != nil {
		in.Baseline, in.BaseAttempt = 0, 0
	}
}

// staleStep is longer than the crews of several slices take to report one after another, and longestStep how much a single time between two
// steps counts as a forecast of the next ones.
const (
	staleStep   = 11 * time.Minute
	longestStep = 6 * time.Hour
)

// enoughSaves is how many checkpoints of its present lives tell how often a training saves.
const enoughSaves = 3

// savesEvery is the longest time between two checkpoints of the present lives, or between the last of them and the time of the last step. It is
// zero where too little is known: how often an earlier life saved says nothing of this one, and a training may save more often at its beginning.
func (w *Workload) savesEvery(saves []time.Time, last time.Time) (most time.Duration) {
	var born time.Time
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Released.IsZero() {
			born = later(born, s.Incarnation.Created)
		}
	}
	saves = slices.DeleteFunc(slices.Clone(saves), func(t time.Time) bool { return !t.After(born) || t.After(last) })
	if len(saves) < enoughSaves || last.Sub(born) < bounds.NoGapFor {
		return 0
	}
	for i, next := range append(saves[1:len(saves):len(saves)], last) {
		most = max(most, next.Sub(saves[i]))
	}
	return most
}
