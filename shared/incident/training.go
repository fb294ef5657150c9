package incident

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
)

// Unbound is a line of a crew whose life is not known yet, or whose attempt is too far above the last one that is known by more than lines.
type Unbound struct {
	ID    string    `json:"id,omitzero"`
	Time  time.Time `json:"time,omitzero"`
	Slice string    `json:"slice"`
	// Line is what its crew wrote, without the parts that nobody needs. Its form has a schema of its own.
	Line jsontext.Value `json:"line"`
}

// Training is what crews and checkpoints tell of the training.
type Training struct {
	// Seen is when a crew first wrote a line; zero means that there is none. Since is the start of the present count of attempts: older
	// lines belong to another training.
	Seen  time.Time `json:"seen,omitzero"`
	Since time.Time `json:"since,omitzero"`
	// Attempt is the newest attempt that started, at Began.
	Attempt int       `json:"attempt,omitzero"`
	Began   time.Time `json:"began,omitzero"`
	// Exit is the newest failed end of an attempt.
	Exit Exit `json:"exit,omitzero"`
	// Claim is the last line about the end of the training, and Verdict the crew's newest verdict. Only the verdict counts. HeardAt is when
	// it was last read, or could not be.
	Claim   Claim     `json:"claim,omitzero"`
	Verdict Verdict   `json:"verdict,omitzero"`
	HeardAt time.Time `json:"heard_at,omitzero"`
	// Strikes are when something struck its machines, as Pitstop itself read, the oldest first: an exit 0 near one is a save, and no end.
	Strikes []time.Time `json:"strikes,omitempty"`

	// Step is the newest step, reported at StepAt by attempt StepAttempt, and High the highest ever. Stepped is the time of a later step
	// that a crew's record on its machine shows. GapSeconds is about steps, and not about checkpoints: the longest time between two steps of
	// one attempt in quiet times.
	Step        int64     `json:"step,omitzero"`
	StepAt      time.Time `json:"step_at,omitzero"`
	StepAttempt int       `json:"step_attempt,omitzero"`
	High        int64     `json:"high,omitzero"`
	Stepped     time.Time `json:"stepped,omitzero"`
	GapSeconds  int64     `json:"gap_seconds,omitzero"`
	// Runs are the last stretches in which it did steps.
	Runs runs `json:"runs,omitempty"`
	// Reported is the newest complete checkpoint by the crew's word, and Saved the newest one that Pitstop inspected. Proven is the highest
	// step that such a checkpoint or a crew's record on its machine showed, since ProvenAt: that refills the budgets.
	Reported Checkpoint `json:"reported,omitzero"`
	Saved    Checkpoint `json:"saved,omitzero"`
	Proven   int64      `json:"proven,omitzero"`
	ProvenAt time.Time  `json:"proven_at,omitzero"`
	// SaveSeconds is how long the last saves took that Pitstop asked for and found complete, in the mode SaveMode. GapsBetween is how many
	// seconds passed between two checkpoints of one attempt; see savePace. In both, the newest is the last.
	SaveSeconds []int64         `json:"save_seconds,omitempty"`
	SaveMode    events.SaveMode `json:"save_mode,omitzero"`
	GapsBetween []int64         `json:"gaps_between,omitempty"`
	// Looked is when the last look for a checkpoint of a training that stands still found none that is new enough. SavesEvery is what that look
	// found in the directory, for a training that no line tells of: how many seconds passed at most between two checkpoints of its present
	// lives; zero where that is not known.
	Looked     time.Time `json:"looked,omitzero"`
	SavesEvery int64     `json:"saves_every,omitzero"`
}

// gaveUp is the attempt after which the crew last gave up; 0 for none.
func (t *Training) gaveUp() int {
	if t.Verdict.GaveUp {
		return t.Verdict.Attempt
	}
	return 0
}

// lastError names the error on which the crew gave up, and the highest step by then; empty where that is not known.
func (t *Training) lastError() string {
	if e := t.Exit; e.Sign != "" && e.Attempt == t.gaveUp() {
		return e.Sign + " at " + events.Number(e.High)
	}
	return ""
}

// Exit is the failed end of an attempt.
type Exit struct {
	Attempt int       `json:"attempt,omitzero"`
	At      time.Time `json:"at,omitzero"`
	// Sign tells one error from another; see events.CrewReport. High is the highest step ever reported by then.
	Sign string `json:"sign,omitzero"`
	High int64  `json:"high,omitzero"`
	events.Exit
}

// Claim is a line about the end of the training.
type Claim struct {
	Attempt int `json:"attempt,omitzero"`
	// Finished says that the line called the training done; else it said that the crew gave up.
	Finished bool      `json:"finished,omitzero"`
	At       time.Time `json:"at,omitzero"`
}

// Verdict is the crew's last word on an attempt.
type Verdict struct {
	Attempt int `json:"attempt,omitzero"`
	// Finished says that the training is done, and GaveUp that the crew's own restarts are spent. Else the crew itself goes on.
	Finished bool `json:"finished,omitzero"`
	GaveUp   bool `json:"gave_up,omitzero"`
	// Certain says that the training reached the step that its owner named as the last one.
	Certain bool      `json:"certain,omitzero"`
	At      time.Time `json:"at,omitzero"`
}

// Checkpoint is a complete checkpoint.
type Checkpoint struct {
	Step  int64     `json:"step,omitzero"`
	At    time.Time `json:"at,omitzero"`
	URI   string    `json:"uri,omitzero"`
	Bytes int64     `json:"bytes,omitzero"`
}

// isJudged reports whether the crew's verdict is about the newest attempt: lines from before it say nothing against it.
func (t *Training) isJudged() bool {
	return t.Verdict.Attempt >= t.Attempt || !t.Began.After(t.Verdict.At)
}

// isFinished reports whether the training is done: by its provider, or by its crew's verdict on its newest attempt, unless something struck
// its machines near that exit.
func (w *Workload) isFinished() bool {
	t := &w.Training
	return w.isComplete() || t.Verdict.Finished && t.isJudged() && (t.Verdict.Certain || !w.isSave(t.Verdict.At))
}

// claimsEnd reports whether a line says that the training is over, which no verdict confirms.
func (w *Workload) claimsEnd() bool {
	t, c := &w.Training, w.Training.Claim
	return c.Attempt > t.Verdict.Attempt && !w.outdated(c.Attempt, c.At, t.Attempt, t.Began) && !t.StepAt.After(c.At)
}

// isComplete reports whether the provider calls the work of every slice done that somebody waits for. What is left to its owner need not be, unless
// others of its group are waited for.
func (w *Workload) isComplete() bool {
	is := func(s Slot) bool { return s.Condition == evidence.Done }
	isOpen := func(s Slot) bool {
		return !is(s) && (s.Released.IsZero() && !s.isInVain(w.Incident) || len(w.group(s.Name)) > 0)
	}
	return slices.ContainsFunc(w.Slices, is) && !slices.ContainsFunc(w.Slices, isOpen)
}

// mayBeFinished reports whether a fresh verdict has to be read before anything is brought back: a line calls the training done, or a verdict did
// before a line told of a later attempt.
func (w *Workload) mayBeFinished() bool {
	t := &w.Training
	return !w.isFinished() && (t.Claim.Finished && w.claimsEnd() || t.Verdict.Finished && t.Verdict.Attempt < t.Attempt && t.HeardAt.Before(t.Began))
}

// isSave reports whether an exit 0 at that time was a save: something struck the machines near it.
func (w *Workload) isSave(exit time.Time) bool {
	near := func(t time.Time) bool { return !t.IsZero() && t.Sub(exit).Abs() <= bounds.StruckWithin }
	for i := range w.Slices {
		n := w.Slices[i].Notice
		if n.InAPI && n.stands() && w.Slices[i].Released.IsZero() && near(n.WindowStart) {
			return true
		}
	}
	return slices.ContainsFunc(w.Training.Strikes, near)
}

// baseline is the step that the training has to pass: its newest checkpoint, unless it does steps before that since.
func (t *Training) baseline() int64 {
	saved := max(t.Saved.Step, t.Reported.Step)
	if t.StepAt.After(t.Saved.At) && t.StepAt.After(t.Reported.At) {
		return min(saved, max(t.Step, t.High))
	}
	return saved
}

// Baseline is the step that the training has to pass: its newest checkpoint at the opening of the incident, or from before the last thing that
// has stopped it since.
func (w *Workload) Baseline() int64 {
	t, step, since := &w.Training, w.Incident.Baseline, w.Incident.lastTrouble()
	for i := range w.Slices {
		since = later(since, later(w.Slices[i].usable(), w.Slices[i].Over))
	}
	for _, c := range []Checkpoint{t.Saved, t.Reported} {
		if !c.At.After(since) {
			step = max(step, c.Step)
		}
	}
	return step
}

// patience is three times the longest gap that was seen between two steps.
func (t *Training) patience() time.Duration { return 3 * time.Duration(t.GapSeconds) * time.Second }

// savePace is how often the training saves: the time that 95 of 100 pauses between two checkpoints do not exceed, and how many pauses
// were measured; zero where too few were.
func (t *Training) savePace() (every time.Duration, measured int) {
	if len(t.GapsBetween) < minPace {
		return 0, 0
	}
	return time.Duration(p95(t.GapsBetween)) * time.Second, len(t.GapsBetween)
}
