// Package saving says how often a workload saves, what it has lost by its incidents, and what another time between two saves would gain. It does
// no I/O.
package saving

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/interval"
	"pitstop.internal/shared/view"
)

const (
	// OftenEnough is the longest time between two saves without a warning. Google's guides advise to save about hourly.
	OftenEnough = time.Hour
	// Worthwhile is the gain, in points of goodput, that a change has at least if it is advised: another interval surely, for the optimum is flat.
	Worthwhile = 0.3
	// fewestGaps is from how many measured times between saves on their median is believed.
	fewestGaps = 5
	// coarse is the time between two saves below which the measured time says only "at most": crews tell of a checkpoint with their
	// progress, every five minutes.
	coarse = 10 * time.Minute
	// assumedSave and assumedBack stand for a save that was never timed, and for the time from a loss until training goes on.
	assumedSave = time.Minute
	assumedBack = 10 * time.Minute
	// latest is how many incidents of a workload count at most, the latest first.
	latest = 64
	// month is how many hours one has.
	month = 730
)

// History is what a workload has lost: how often unsaved steps, and during how much training.
type History struct {
	Losses  int
	Trained time.Duration
	// Back is how long it took in the mean until it trained again, and Lifetimes are the times of training between two stops.
	Back      time.Duration
	Lifetimes []time.Duration
}

// HistoryOf counts the latest incidents of a workload in which its training stopped without a verified save: those that are shown with it, and those of
// the archive. The time in which it stood still is no training.
func HistoryOf(w view.Workload, archived []view.Past, now time.Time) (h History) {
	since := cmp.Or(w.Seen, w.Training.Seen)
	all := w.Pasts(archived)
	slices.SortFunc(all, view.Newest)
	if len(all) > latest {
		all, since = all[:latest], time.Time{} // the oldest one that counts says since when
	}
	for _, p := range all {
		if since.IsZero() || p.Opened.Before(since) {
			since = p.Opened
		}
	}
	if since.IsZero() {
		return h
	}
	slices.SortFunc(all, func(a, b view.Past) int { return a.Down.Compare(b.Down) })
	var away time.Duration
	ran := since
	for _, p := range all {
		if p.Down.IsZero() || p.Retried { // a retry deals with what another incident has lost
			continue
		}
		if !p.Saved {
			h.Losses++
		}
		away += p.Cost.Away()
		h.Lifetimes = append(h.Lifetimes, max(0, p.Down.Sub(ran)))
		ran = p.Down.Add(p.Cost.Away())
	}
	if stops := len(h.Lifetimes); stops > 0 {
		h.Back = away / time.Duration(stops)
	}
	h.Trained = max(0, now.Sub(since)-away)
	return h
}

// Unsaved is for how long the training of a workload has made steps since its newest checkpoint, as its crew has told.
func Unsaved(w view.Workload) time.Duration {
	if t := w.Training; !t.CheckpointAt.IsZero() {
		return t.StepAt.Sub(t.CheckpointAt)
	}
	return 0
}

// Every is the time between two saves of a workload, as its crew has told. Since is how long the training runs without a new checkpoint: AtLeast says
// that the next one is overdue, and only that is known. The time is zero if too little is known.
func Every(w view.Workload, since time.Duration) (every time.Duration, atLeast bool) {
	if len(w.Training.GapSeconds) >= fewestGaps {
		every = median(w.Training.GapSeconds)
	}
	if since > max(every, OftenEnough) {
		return since, true
	}
	return every, false
}

// Habit is how often a workload saves, and how often it would lose least.
type Habit struct {
	// EverySeconds is the time between two saves. AtLeast says that the next save is overdue and only this long is known.
	EverySeconds float64 `json:"every_seconds"`
	AtLeast      bool    `json:"at_least,omitzero"`
	// BestSeconds is the time that loses least. GainPoints are the points of goodput that it likely gains, and nine in ten of the rates of
	// loss that the history allows gain between GainLeast and GainMost. For a workload that saves at least hourly it is an hour at most.
	BestSeconds float64 `json:"best_seconds"`
	GainPoints  float64 `json:"gain_points"`
	GainLeast   float64 `json:"gain_least_points"`
	GainMost    float64 `json:"gain_most_points"`
	// StepSeconds is how long a step takes; 0 is not known.
	StepSeconds float64 `json:"step_seconds,omitzero"`
	// ChipHours a month are what that gain is worth, and Dollars their price; 0 where that is not known.
	ChipHours float64 `json:"chip_hours_a_month,omitzero"`
	Dollars   float64 `json:"dollars_a_month,omitzero"`
	// AfterStart are the seconds after a start at which a training saves whose losses come in bursts; empty where they do not.
	AfterStart []float64 `json:"after_start_seconds,omitempty"`
	// SaveSeconds is how long a save takes: the median of SavesTimed, or an assumption where that is 0.
	SaveSeconds float64 `json:"save_seconds"`
	SavesTimed  int     `json:"saves_timed"`
	// Losses is how often unsaved steps were lost in TrainedSeconds.
	Losses         int     `json:"losses"`
	TrainedSeconds float64 `json:"trained_seconds"`
	// Record is what the weighing rests on.
	Record interval.Record `json:"-"`
}

// Weigh compares the time between two saves of a record with the one that loses least. Timed is how many saves were timed, and step how many
// seconds a step takes; 0 is unknown.
func Weigh(r interval.Record, timed int, step float64) Habit {
	r.Save, r.Back = max(r.Save, time.Second), cmp.Or(r.Back, assumedBack)
	best := interval.Best(r.Save, interval.BetweenLosses(r.Losses, r.Trained))
	if r.Every <= OftenEnough && r.Save < OftenEnough/2 {
		best = min(best, OftenEnough-r.Save) // a history without losses is no reason to save less often than the guides say
	}
	a := r.Weigh(rounded(best + r.Save))
	return Habit{
		EverySeconds: r.Every.Seconds(), BestSeconds: a.Every.Seconds(), GainPoints: tenth(a.Gain), GainLeast: tenth(a.Least), GainMost: tenth(a.Most),
		StepSeconds: step, SaveSeconds: r.Save.Seconds(), SavesTimed: timed, Losses: r.Losses, TrainedSeconds: r.Trained.Seconds(), Record: r,
	}
}

// Of compares the time between two saves in use, as Every tells it, with the one that loses least. Price is that of a chip-hour; 0 is unknown.
func Of(w view.Workload, every time.Duration, atLeast bool, h History, price float64) Habit {
	save, timed := assumedSave, 0
	if w.Training.SaveMode == events.SaveSignal && len(w.Training.SaveSeconds) > 0 { // a natural save waits for the next checkpoint
		save, timed = median(w.Training.SaveSeconds), len(w.Training.SaveSeconds)
	}
	s := Weigh(interval.Record{Losses: h.Losses, Trained: h.Trained, Back: h.Back, Save: save, Every: every}, timed, w.Training.StepSeconds)
	s.AtLeast = atLeast
	chips := 0
	for _, slice := range w.Slices {
		chips += slice.Chips
	}
	s.ChipHours = math.Round(max(0, s.GainPoints) / 100 * month * float64(chips))
	s.Dollars = math.Round(s.ChipHours * price)
	if interval.Bursty(h.Lifetimes) {
		between := interval.BetweenLosses(h.Losses, h.Trained)
		for age := time.Duration(0); len(s.AfterStart) < 5; {
			age += rounded(interval.Next(age, save, between) + save)
			s.AfterStart = append(s.AfterStart, age.Seconds())
		}
	}
	return s
}

// Advises reports whether another interval is worth the trouble. Nobody is told to save less often because of a save that was only
// assumed: many frameworks train on while they save.
func (s Habit) Advises() bool {
	switch {
	case s.GainLeast <= Worthwhile:
		return false
	case s.shorter():
		return s.EverySeconds > coarse.Seconds()
	}
	return s.SavesTimed > 0
}

// shorter reports whether the workload should save more often.
func (s Habit) shorter() bool { return s.BestSeconds < s.EverySeconds }

// Seldom reports whether the saves are further apart than Google's guides advise.
func (s Habit) Seldom() bool { return s.EverySeconds > OftenEnough.Seconds() }

// State says how often the workload saves.
func (s Habit) State() string {
	if s.AtLeast {
		return "no checkpoint for " + span(s.EverySeconds)
	}
	return "it saves every " + span(s.EverySeconds)
}

// Advice names the time that loses least and what that rests on; the second part is empty if there is no advice.
func (s Habit) Advice() (do, because string) {
	if !s.Advises() {
		return "save about every hour, as Google's guides say; so few losses are known that it may gain nothing", ""
	}
	saves := "no save was timed, so one of " + span(s.SaveSeconds) + " is assumed"
	if s.SavesTimed > 0 {
		saves = fmt.Sprintf("a save takes %s (%d timed)", span(s.SaveSeconds), s.SavesTimed)
	}
	do = fmt.Sprintf("%s: %+.1f points of goodput [%.1f, %.1f]", s.Change(), s.GainPoints, s.GainLeast, s.GainMost)
	if s.ChipHours > 0 {
		do += ", " + events.Number(int64(s.ChipHours)) + " chip-hours a month"
	}
	if s.Dollars > 0 {
		do += ", " + events.Number(int64(s.Dollars)) + " dollars"
	}
	meanwhile := "save more often still"
	if !s.shorter() {
		meanwhile = "change nothing"
	}
	losses := "1 loss"
	if s.Losses != 1 {
		losses = events.Number(int64(s.Losses)) + " losses"
	}
	because = fmt.Sprintf("%s of unsaved steps in %s of training, besides an assumed one in %d h; %s; if training goes on during a save, %s",
		losses, span(s.TrainedSeconds), int(interval.Prior.Hours()), saves, meanwhile)
	if len(s.AfterStart) > 0 {
		var after []string
		for _, a := range s.AfterStart {
			after = append(after, span(a))
		}
		because += "; losses come in bursts: it loses still less with saves at " + strings.Join(after, ", ") + " after a start, and then ever less often"
	}
	return do, because
}

// Change names the time between two saves that loses least in the place of the one in use.
func (s Habit) Change() string {
	return "save every " + s.apart(s.BestSeconds) + " instead of " + s.apart(s.EverySeconds)
}

// apart is a time between two saves, in steps too where their time is known: that is what a person sets. Two digits of it are known.
func (s Habit) apart(seconds float64) string {
	if s.StepSeconds == 0 {
		return span(seconds)
	}
	steps := max(1, seconds/s.StepSeconds)
	digits := math.Pow(10, max(0, math.Floor(math.Log10(steps))-1))
	return events.Number(int64(math.Round(steps/digits)*digits)) + " steps (" + span(seconds) + ")"
}

func span(seconds float64) string { return events.Span(time.Duration(seconds * float64(time.Second))) }

// tenth writes off what is less than a tenth of a point.
func tenth(points float64) float64 { return math.Trunc(10*points) / 10 }

// rounded is a time between saves as a person sets it: whole minutes, or tens of seconds.
func rounded(d time.Duration) time.Duration {
	if d < 2*time.Minute {
		return max(d.Round(10*time.Second), 10*time.Second)
	}
	return d.Round(time.Minute)
}

func median(seconds []int64) time.Duration {
	sorted := slices.Sorted(slices.Values(seconds))
	return time.Duration(sorted[len(sorted)/2]) * time.Second
}
