package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// Run is a stretch of the training in which it did steps, one after the other.
type Run struct {
	// Attempt did them. It is 0 where no crew tells of any: then the training may have begun once its machines could be used.
	Attempt int `json:"attempt,omitzero"`
	// From is when its first step was seen, which is First. Early says that no line tells when: it was not before that.
	From  time.Time `json:"from,omitzero"`
	First int64     `json:"first,omitzero"`
	Early bool      `json:"early,omitzero"`
	// Until is when its last known step was seen, which is Last.
	Until time.Time `json:"until,omitzero"`
	Last  int64     `json:"last,omitzero"`
	// Over is when it ended; zero while it may go on. Late says that it was found ended then, and no line tells since when.
	Over time.Time `json:"over,omitzero"`
	Late bool      `json:"late,omitzero"`
}

const (
	// maxRuns bounds the runs of an incident, and keptRuns those that are known in quiet times: word of the end of one comes late.
	maxRuns  = 32
	keptRuns = 3
	// toldWithin is by when a crew has told of a step: it writes a line every five minutes while it does some.
	toldWithin = 6 * time.Minute
)

// toldBy is by when its crew would have told of the next step.
func (r *Run) toldBy() time.Time { return r.Until.Add(r.pace() + toldWithin) }

// pace is how long a step of it takes; zero where that is not known.
func (r *Run) pace() time.Duration {
	if r.Last <= r.First {
		return 0
	}
	return r.Until.Sub(r.From) / time.Duration(r.Last-r.First)
}

// isStill reports whether a run had done no step for much longer than one takes, by a time at which its crew told of the last one.
func (r *Run) isStill(at time.Time) bool {
	return !r.Early && r.pace() > 0 && at.After(r.Until.Add(3*r.pace()+lateMargin))
}

// runs are stretches in the order in which they were.
type runs []Run

// onRuns changes the runs of the training, and those of the incidents that may still learn of them. It reports whether anything is another one.
func (f *facts) onRuns(change func(runs) runs) (news bool) {
	t := &f.w.Training
	next := change(slices.Clone(t.Runs))
	if next = next[max(0, len(next)-keptRuns):]; !slices.Equal(next, t.Runs) {
		t.Runs, news = next, true
	}
	for _, in := range []*Incident{f.w.Incident, f.w.Closed} {
		if in == nil || !in.learnsRuns() {
			continue
		}
		next := change(slices.Clone(in.Runs))
		if slices.Equal(next, in.Runs) {
			continue
		}
		was := in.stands()
		if in.Runs, news = next, true; in == f.w.Closed && !slices.Equal(was, in.stands()) {
			f.revises()
		}
	}
	return news
}

// learnsRuns reports whether a closed incident may still learn of runs: what was left to people, until the training is back.
func (in *Incident) learnsRuns() bool { return !in.isLeft() || in.Taken.IsZero() && in.standsStill() }

// handsOver records that somebody has taken over what the last incident left to people, and reports whether that ends its cost.
func (f *facts) handsOver(at time.Time) bool {
	in := f.w.Closed
	if in == nil || !in.isLeft() || !in.learnsRuns() || at.Before(in.Closed) {
		return false
	}
	in.Taken = at
	f.revises()
	return true
}

// runsSince are the run in which something happened, and those after it.
func (t *Training) runsSince(at time.Time) runs {
	first := len(t.Runs) - 1
	for first > 0 && t.Runs[first].From.After(at) {
		first--
	}
	return slices.Clone(t.Runs[max(0, first):])
}

// tellsRun records the steps of which a line tells. A line of a crew that names no first step says only that it did one in the time of a line.
func (f *facts) tellsRun(r events.CrewReport) (news bool) {
	t, at := &f.w.Training, f.from.Time
	run := Run{Attempt: r.Attempt, From: r.FirstStepAt, First: r.FirstStep, Until: f.by(r.StepAt), Last: r.Step}
	if run.Until.IsZero() || run.Until.After(at) {
		run.Until = at
	}
	began := run.From
	if began.IsZero() || began.After(run.Until) {
		began = f.w.usableSince()
		run.From, run.First, run.Early = later(began, at.Add(-toldWithin)), cmp.Or(min(r.Step, r.CheckpointStep), r.Step), true
		if r.Attempt == t.Attempt {
			run.From = later(run.From, t.Began)
		}
		run.From = earlier(run.From, run.Until)
	}
	return f.onRuns(func(all runs) runs { return all.with(run, t.Since, began) })
}

// usableSince is since when every slice can be used that can be.
func (w *Workload) usableSince() (since time.Time) {
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Condition == evidence.Ready {
			since = later(since, s.Since)
		}
	}
	return since
}

// showsStep records a step that a crew's record on its machine shows.
func (f *facts) showsStep(e evidence.Beat) {
	at := f.by(e.StepAt)
	f.onRuns(func(all runs) runs {
		if i := all.of(e.Attempt, f.w.Training.Since, time.Time{}); i >= 0 {
			all[i].goesOn(at, e.Step)
		}
		return all
	})
}

// endsRun records that a run had ended by a time; late where it may have ended before. Attempt is the one that ended; 0 for any.
func (f *facts) endsRun(attempt int, at time.Time, late bool) {
	f.onRuns(func(all runs) runs { return all.ended(attempt, at, late) })
}

// mayRun records that machines can be used again, on which no crew tells of steps.
func (f *facts) mayRun() {
	t := &f.w.Training
	if whole := !slices.ContainsFunc(f.w.Slices, func(s Slot) bool { return s.Condition != evidence.Ready && s.Released.IsZero() }); !t.Seen.IsZero() || !whole {
		return
	}
	f.onRuns(func(all runs) runs {
		if n := len(all); n == 0 || all[n-1].Over.IsZero() || f.from.Time.Before(all[n-1].Over) { // an older reading knows nothing of that end
			return all
		}
		return all.add(Run{From: f.from.Time, Until: f.from.Time, Early: true})
	})
}

// belieRuns forgets the runs of attempts after one that runs: only lines told of them.
func (f *facts) belieRuns(attempt int) {
	f.onRuns(func(all runs) runs {
		return append(runs(nil), slices.DeleteFunc(all, func(r Run) bool { return r.Attempt > attempt })...) // none is nil: so it stays out of the document
	})
}

// with are the runs with what a line tells of one. Attempts from before since were counted in another way, and it did not begin before began.
func (all runs) with(r Run, since, began time.Time) runs {
	if i := all.of(r.Attempt, since, began); i >= 0 {
		if all[i].Early && !r.Early {
			all[i].From, all[i].First, all[i].Early = r.From, r.First, false
		}
		all[i].goesOn(r.Until, r.Last)
		return all
	}
	n := len(all)
	switch {
	case n == 0:
	case all[n-1].Attempt == 0 && all[n-1].Early && !r.Until.Before(all[n-1].From): // its machines could be used: now its crew tells of it
		return append(all[:n-1], r)
	case r.From.Before(all[n-1].From), !r.Until.After(all[n-1].Over):
		return all // it is older than what is known
	}
	return all.add(r)
}

func (all runs) add(r Run) runs {
	if len(all) >= maxRuns {
		return all
	}
	return append(all, r)
}

// of is the place of the run of an attempt; less than 0 for none.
func (all runs) of(attempt int, since, began time.Time) int {
	for i := len(all) - 1; i >= 0; i-- {
		begunAnew := !all[i].Over.IsZero() && began.After(all[i].Over)
		if all[i].Attempt == attempt && !all[i].Until.Before(since) && !begunAnew {
			return i
		}
	}
	return -1
}

// goesOn records a later step of a run. One after its end shows that it had not ended.
func (r *Run) goesOn(at time.Time, step int64) {
	if !at.After(r.Until) {
		return
	}
	if r.Until, r.Last = at, max(r.Last, step); at.After(r.Over) {
		r.Over, r.Late = time.Time{}, false
	}
}

// ended are the runs with the end of the one that had begun by a time. Word of an end from before its last step says nothing.
func (all runs) ended(attempt int, at time.Time, late bool) runs {
	for i := len(all) - 1; i >= 0; i-- {
		r := &all[i]
		if at.Before(r.From) || attempt > 0 && r.Attempt > 0 && attempt != r.Attempt {
			continue
		}
		sooner := r.Over.IsZero() || at.Before(r.Over) || r.Late && !late
		if sooner && !at.Before(r.Until) {
			r.Over, r.Late = at, late
		}
		return all
	}
	if len(all) == 0 {
		return append(all, Run{Over: at, Late: late})
	}
	return all
}
