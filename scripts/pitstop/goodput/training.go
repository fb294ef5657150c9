package goodput

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
)

const (
	// told is how often a line comes while steps advance, and silence how long an attempt may have gone on without one: a line may be lost.
	told    = 5 * time.Minute
	silence = 12 * time.Minute
	// stalled is how long a training that makes no step may be within one. What is longer is a hang.
	stalled = 10 * time.Minute
	// mostStretches bounds the stretches of steps that are remembered. Where there are more, neighbours become one.
	mostStretches = 512
	// mostApart bounds the distances between saves that are remembered.
	mostApart = 32
	// mostSteps and mostSeconds bound what a line may claim.
	mostSteps   = 1 << 50
	mostSeconds = 1e9
)

// phase is how far the training of a workload is while its machines are there.
type phase int

const (
	silent   phase = iota // no crew has spoken
	between               // no attempt runs
	starting              // an attempt has made no step
	running
	finished
)

// phaseUses are what the time of a phase is used for, of that without one's own.
var phaseUses = map[phase]Use{silent: Unknown, between: Admission, starting: Starting, finished: Stopped}

// training is what the crew's lines say. A step is productive once: when it was done last.
type training struct {
	phase   phase
	attempt int
	// node is the slice whose lines are followed: that with the least steps.
	node string
	// step was done at the time at; first is the first step that the crew saw of this attempt.
	step, first int64
	at, firstAt time.Time
	// saved is the step of the last checkpoint that was told, and apart are the steps between the last ones.
	saved int64
	apart []int64
	// steps and saves are the seconds that the crew has counted in this attempt, up to step.
	steps, saves float64
	restore      float64
	pace         time.Duration // of one step
	batch        float64       // the examples in one step of this attempt; 0 is not known
	done         []stretch     // oldest first
	// tail is the time between the last line of an attempt that was cut off and its end.
	tail     Amount
	tailKind Kind
}

// stretch is a run of productive steps that ends with one.
type stretch struct {
	to, steps int64
	kind      Kind
	Amount
}

// trains takes a line of a crew on a slice that stands.
func (a *Account) trains(m *machine, r *events.CrewReport) {
	w := a.workloadOf(m)
	t := &w.training
	if r.Attempt < t.attempt {
		return // of an attempt that is not admitted any more
	}
	r, stepped := a.believed(*r)
	switch r.Report {
	case events.ReportStarted:
		a.starts(w, m, r.Attempt, a.readyAt(r), a.now)
	case events.ReportProgress:
		a.progress(w, m, r, stepped)
	case events.ReportExited, events.ReportGaveUp, events.ReportFinished:
		if t.phase == between || t.phase == finished {
			break
		}
		if r.Step > 0 && !r.StepAt.IsZero() {
			a.progress(w, m, r, stepped)
		}
		a.ends(w, r.Report == events.ReportFinished, a.now)
	default:
	}
}

// believed is a line without what cannot be, for the clock of a machine may be wrong, and when its last step was done: no step before the line is
// newer than the line.
func (a *Account) believed(r events.CrewReport) (*events.CrewReport, time.Time) {
	stepped := r.StepAt
	if stepped.IsZero() || stepped.After(a.now) {
		stepped = a.now
	}
	r.Step = min(r.Step, mostSteps)
	if r.FirstStep < 0 || r.FirstStep > r.Step {
		r.FirstStep, r.FirstStepAt = 0, time.Time{}
	}
	for _, s := range []*float64{&r.StepsSeconds, &r.SavesSeconds, &r.RestoreSeconds} {
		*s = min(max(0, *s), mostSeconds)
	}
	return &r, stepped
}

// readyAt is since when the crew that tells of a start waited for it; zero is not known.
func (a *Account) readyAt(r *events.CrewReport) time.Time { return earlier(r.ReadyAt, a.now) }

// starts notes that an attempt starts. Ready is since when its crew waited for that; zero is not known.
func (a *Account) starts(w *workload, m *machine, attempt int, ready, at time.Time) {
	t := &w.training
	if m.stand.use != trains {
		a.turn(m, cmp.Or(ready, at), stand{})
	}
	if attempt == t.attempt && t.phase != between && t.phase != silent {
		return // it is told again, or another slice says so
	}
	if t.phase == running && ready.After(t.at) {
		a.ends(w, false, ready) // a crew that goes on has told of the last step
	}
	if t.phase == running {
		t.tailKind, t.tail = a.goesOn(w, w.since.Add(min(told, max(0, at.Sub(w.since)))), Again, events.CauseCrash) // its last line is missing
		kind, hung := a.spend(w, at, Hang, events.CauseCrash)
		w.add(kind, Amount{Doubt: hung.Time})
		a.breaks(w, t.at, events.CauseCrash)
		t.phase = between
	}
	if t.phase == silent {
		t.phase = between
	}
	a.spendUntil(w, at)
	t.phase, t.attempt, t.node, t.restore, t.batch = starting, attempt, m.name, 0, 0
}

// progress takes the newest step of an attempt.
func (a *Account) progress(w *workload, m *machine, r *events.CrewReport, at time.Time) {
	t := &w.training
	first, firstAt := r.FirstStep, r.FirstStepAt
	if firstAt.IsZero() {
		first, firstAt = r.Step, at
	}
	began := earlier(firstAt, at)
	follows := a.follows(w, m, r, began, at)
	if r.Measured != nil && r.Attempt == t.attempt {
		t.batch = min(max(0, float64(r.Measured.GlobalBatch)), mostSteps)
	}
	if !follows {
		return
	}
	if t.phase == running && !r.FirstStepAt.IsZero() && firstAt.After(t.at) && !firstAt.Equal(t.firstAt) {
		a.interrupted(w, began, events.CauseCrash) // it went back to an older checkpoint without a new attempt
		t.phase = starting
	}
	if t.phase == starting {
		if t.pace == 0 && r.Step == first && !r.FirstStepAt.IsZero() {
			t.restore = r.RestoreSeconds
			return // how long a step takes shows in the next line
		}
		a.resumes(w, r, first, firstAt, at)
	}
	if at.After(t.at) && r.Step > t.step {
		a.stepped(w, r, at)
	}
}

// follows reports whether a line tells of the attempt that counts, and of its slowest slice.
func (a *Account) follows(w *workload, m *machine, r *events.CrewReport, firstAt, at time.Time) bool {
	t := &w.training
	if t.phase == between && r.Attempt == t.attempt && (m.name != t.node || !at.After(w.since)) {
		return false // it comes after the end, or from another slice than the one that told of it
	}
	if r.Attempt > t.attempt || t.phase != starting && t.phase != running {
		begun := firstAt // the line of its start is missing
		if begun.After(w.since) && t.phase != silent {
			begun = w.since
		}
		a.starts(w, m, r.Attempt, time.Time{}, begun)
	}
	if m.name != t.node {
		if t.phase == running && r.Step >= t.step && at.Sub(t.at) <= silence {
			return false
		}
		if t.node = m.name; t.phase == running { // it is slower, or the only one that still speaks
			t.first, t.firstAt = r.FirstStep, r.FirstStepAt
		}
	}
	return true
}

// resumes notes the first step of an attempt, and what of the steps before is lost.
func (a *Account) resumes(w *workload, r *events.CrewReport, first int64, firstAt, at time.Time) {
	t := &w.training
	pace := t.pace
	if n := r.Step - first; n > 0 {
		took := at.Sub(earlier(firstAt, at))
		if r.StepsSeconds > 0 {
			took = seconds(r.StepsSeconds)
		}
		pace = took / time.Duration(n)
	}
	begins := earlier(firstAt, at).Add(-pace)
	if begins.Before(w.since) {
		begins = w.since
	}
	if restore := seconds(max(t.restore, r.RestoreSeconds)); restore > 0 {
		a.spend(w, begins.Add(-restore), Starting, w.cause)
		a.spend(w, begins, Restoring, w.cause)
	}
	a.spend(w, begins, Starting, w.cause)
	resume := first - 1
	if first == t.first && firstAt.Equal(t.firstAt) {
		resume = t.step // the same attempt goes on
	}
	lost := a.goesBack(w, resume)
	if w.broken != nil {
		if w.broken.Again += lost; lost > 0 {
			w.Unsaved++
		}
		a.mended(w, begins)
	}
	t.phase, t.first, t.firstAt, t.pace = running, first, firstAt, pace
	t.step, t.at, t.steps, t.saves = resume, begins, -pace.Seconds(), 0 // the first step is not in the crew's count
}

// goesBack moves the time of the steps after one from the productive to what is done again, and returns how much that is.
func (a *Account) goesBack(w *workload, resume int64) (lost time.Duration) {
	t := &w.training
	if rest := t.tail; rest.Time > 0 {
		w.add(t.tailKind, Amount{Doubt: -rest.Doubt})
		rest.Doubt = 0
		if kept := resume - t.step; kept > 0 && t.pace > 0 && t.step > 0 { // more was done than a line told
			part := rest.part(int64(min(rest.Time, times(kept, t.pace))), int64(rest.Time))
			kind := t.tailKind
			kind.Use, kind.Cause = Productive, ""
			w.move(t.tailKind, kind, part)
			w.add(kind, Amount{Doubt: part.Time / 20}) // the pace was not always the same
			rest.Time -= part.Time
			t.done = append(t.done, stretch{resume, kept, kind, part})
			if w.broken != nil {
				w.broken.From = w.broken.From.Add(part.Time)
			}
		}
		w.add(t.tailKind, Amount{Doubt: rest.Time}) // whether steps were done in the rest of it, no line tells
		t.tail = Amount{}
	}
	for n := len(t.done) - 1; n >= 0 && t.done[n].to > resume; n-- {
		s := &t.done[n]
		part := s.part(s.to-resume, s.steps)
		to := s.kind
		to.Use, to.Cause = Again, w.cause
		if part.Doubt = 0; w.Unsplit {
			part.Doubt = part.Time / 10 // among it are saves
		}
		w.move(s.kind, to, part)
		lost += part.Time
		if s.to-s.steps >= resume {
			t.done = t.done[:n]
			continue
		}
		s.steps -= s.to - resume
		s.to = resume
		s.Time, s.Chips, s.Examples = s.Time-part.Time, s.Chips-part.Chips, s.Examples-part.Examples
	}
	return lost
}

// stepped puts the time since the last step that was told into the account.
func (a *Account) stepped(w *workload, r *events.CrewReport, at time.Time) {
	t := &w.training
	n, whole := r.Step-t.step, max(0, at.Sub(w.since))
	inSteps, inSaves := whole, time.Duration(0)
	switch {
	case r.StepsSeconds > 0 || r.SavesSeconds > 0:
		inSteps, inSaves = seconds(r.StepsSeconds-t.steps), seconds(r.SavesSeconds-t.saves)
		inSteps = min(max(0, inSteps), whole)
		inSaves = min(max(0, inSaves), whole-inSteps)
		if rest := whole - inSteps - inSaves; rest < time.Second {
			inSteps += rest // the crew's numbers are rounded
		}
		t.steps, t.saves = r.StepsSeconds, r.SavesSeconds
	case n > 1:
		w.Unsplit = true
		if usual := times(n, t.pace); t.pace > 0 && whole > 2*usual+stalled {
			inSteps = usual
		}
	}
	kind, spent := a.spend(w, w.since.Add(inSteps), Productive, "")
	a.spend(w, w.since.Add(inSaves), Saving, "")
	if rest := at.Sub(w.since); rest < stalled {
		a.spend(w, at, Unknown, "") // as in an evaluation
	}
	a.spend(w, at, Hang, w.cause)
	if d := r.CheckpointStep - t.saved; t.saved > 0 && d > 0 {
		t.apart = append(t.apart[max(0, len(t.apart)-mostApart):], d)
	}
	t.saved = r.CheckpointStep
	w.Stepped += n
	t.pace = inSteps / time.Duration(n)
	t.step, t.at = r.Step, at
	spent.Examples = float64(n) * t.batch
	w.add(kind, Amount{Examples: spent.Examples})
	t.done = append(t.done, stretch{r.Step, n, kind, spent})
	if len(t.done) >= mostStretches {
		t.done = joined(t.done)
	}
}

// joined makes one of each two neighbours of the older half.
func joined(all []stretch) []stretch {
	var out []stretch
	for i, s := range all {
		if n := len(out) - 1; n >= 0 && i < len(all)/2 && i%2 == 1 && out[n].kind == s.kind {
			out[n].to = s.to
			out[n].steps += s.steps
			out[n].Add(s.Amount)
			continue
		}
		out = append(out, s)
	}
	return slices.Clip(out)
}

// ends notes that an attempt has ended by a time, and that its last step is told.
func (a *Account) ends(w *workload, done bool, at time.Time) {
	t := &w.training
	stopped := at
	switch {
	case t.phase != running:
		a.spendUntil(w, at)
	case at.Sub(w.since) > max(stalled, 3*t.pace):
		stopped = w.since
		a.spend(w, at, Hang, events.CauseCrash)
	default:
		stopped = w.since
		a.spend(w, at, Again, events.CauseCrash) // of a step that never ended
	}
	if done {
		t.phase, t.done, w.broken = finished, nil, nil // what comes is another training
		return
	}
	a.breaks(w, stopped, events.CauseCrash)
	t.phase = between
}

// interrupted notes that the machines of a workload, or its attempt, are lost. The steps after the crew's last line are in doubt.
func (a *Account) interrupted(w *workload, at time.Time, cause events.Cause) {
	t := &w.training
	stopped := at
	if t.phase == running {
		stopped = w.since
		t.tailKind, t.tail = a.goesOn(w, at, Again, cause)
	}
	a.breaks(w, stopped, cause)
	if t.phase != silent {
		t.phase = between
	}
}

// goesOn puts the time after the crew's last line into the account: for a while the attempt went on like before. How far is in doubt.
func (a *Account) goesOn(w *workload, at time.Time, use Use, cause events.Cause) (Kind, Amount) {
	t := &w.training
	most := at.Sub(w.since)
	if most > silence {
		most = silence
	}
	inSaves := 0.0
	if t.steps+t.saves > 0 {
		inSaves = t.saves / (t.steps + t.saves)
	}
	until := w.since.Add(most)
	a.spend(w, w.since.Add(time.Duration(inSaves*float64(most))), Saving, "")
	kind, spent := a.spend(w, until, use, cause)
	spent.Doubt = spent.Time
	if t.pace > 0 {
		spent.Examples = spent.Time.Seconds() / t.pace.Seconds() * t.batch
	}
	w.add(kind, Amount{Doubt: spent.Doubt, Examples: spent.Examples})
	a.spend(w, at, Unknown, "")
	return kind, spent
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// times is so many steps of a pace, a century at most.
func times(n int64, pace time.Duration) time.Duration {
	const century = 36525 * 24 * time.Hour
	return time.Duration(min(float64(n)*float64(pace), float64(century)))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
