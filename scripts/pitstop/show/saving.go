package show

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/interval"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/view"
)

const (
	// oftenEnough is the longest time between two saves without a warning. Google's guides advise to save about hourly.
	oftenEnough = time.Hour
	// worthwhile is the gain, in points of goodput, that another interval surely has if it is advised. The optimum is flat. Wasteful is the
	// likely gain from which on status warns, and lately how long ago a workload was interrupted last for that: what is lost seldom is little.
	worthwhile = 0.3
	wasteful   = 2.0
	lately     = 3 * 24 * time.Hour
	// fewestGaps is from how many measured times between saves on their median is believed.
	fewestGaps = 5
	// coarse is the time between two saves below which the measured time says only "at most": crews tell of a checkpoint with their
	// progress, every five minutes.
	coarse = 10 * time.Minute
	// assumedSave and assumedBack stand for a save that was never timed, and for the time from a loss until training goes on.
	assumedSave = time.Minute
	assumedBack = 10 * time.Minute
	// lastLosses is how many incidents of a workload are read at most, the latest first.
	lastLosses = 64
	// month is how many hours one has.
	month = 730
)

// history is what a workload has lost: how often unsaved steps, and during how much training.
type history struct {
	losses  int
	trained time.Duration
	// back is how long it took in the mean until it trained again, and lifetimes are the times of training between two stops.
	back      time.Duration
	lifetimes []time.Duration
}

// saving is how often a workload saves, and how often it would lose least.
type saving struct {
	// EverySeconds is the time between two saves. AtLeast says that the next save is overdue and only this long is known.
	EverySeconds float64 `json:"every_seconds"`
	AtLeast      bool    `json:"at_least,omitzero"`
	// BestSeconds is the time that loses least. GainPoints are the points of goodput that it likely gains, and nine in ten of the rates of
	// loss that the history allows gain between GainLeast and GainMost. For a workload that saves at least hourly it is an hour at most.
	BestSeconds float64 `json:"best_seconds"`
	GainPoints  float64 `json:"gain_points"`
	GainLeast   float64 `json:"gain_least_points"`
	GainMost    float64 `json:"gain_most_points"`
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
}

// everySaved is the time between two saves of a workload, as its crew has told. Since is how long the training runs without a new
// checkpoint. The time is zero if too little is known.
func everySaved(w deployment.Workload, since time.Duration) (every time.Duration, atLeast bool) {
	if len(w.Training.GapSeconds) >= fewestGaps {
		every = median(w.Training.GapSeconds)
	}
	if since > max(every, oftenEnough) {
		return since, true
	}
	return every, false
}

// savingOf compares the time between two saves in use with the one that loses least. Price is that of a chip-hour; 0 is unknown.
func savingOf(w deployment.Workload, every time.Duration, atLeast bool, h history, price float64) saving {
	save, timed := assumedSave, 0
	if w.Training.SaveMode == events.SaveSignal && len(w.Training.SaveSeconds) > 0 { // a natural save waits for the next checkpoint
		save, timed = max(median(w.Training.SaveSeconds), time.Second), len(w.Training.SaveSeconds)
	}
	between := interval.BetweenLosses(h.losses, h.trained)
	best := interval.Best(save, between)
	if every <= oftenEnough && save < oftenEnough/2 {
		best = min(best, oftenEnough-save) // a history without losses is no reason to save less often than the guides say
	}
	r := interval.Record{Losses: h.losses, Trained: h.trained, Back: cmp.Or(h.back, assumedBack), Save: save, Every: every}
	a := r.Weigh(rounded(best + save))
	s := saving{
		EverySeconds: every.Seconds(), AtLeast: atLeast, BestSeconds: a.Every.Seconds(), GainPoints: tenth(a.Gain), GainLeast: tenth(a.Least), GainMost: tenth(a.Most),
		SaveSeconds: save.Seconds(), SavesTimed: timed, Losses: h.losses, TrainedSeconds: h.trained.Seconds(),
	}
	chips := 0
	for _, slice := range w.Slices {
		chips += slice.Chips
	}
	s.ChipHours = math.Round(max(0, a.Gain) / 100 * month * float64(chips))
	s.Dollars = math.Round(s.ChipHours * price)
	if interval.Bursty(h.lifetimes) {
		for age := time.Duration(0); len(s.AfterStart) < 5; {
			age += rounded(interval.Next(age, save, between) + save)
			s.AfterStart = append(s.AfterStart, age.Seconds())
		}
	}
	return s
}

// tenth writes off what is less than a tenth of a point.
func tenth(points float64) float64 { return math.Trunc(10*points) / 10 }

// advises reports whether another interval is worth the trouble. Nobody is told to save less often because of a save that was only
// assumed: many frameworks train on while they save.
func (s saving) advises() bool {
	switch {
	case s.GainLeast <= worthwhile:
		return false
	case s.shorter():
		return s.EverySeconds > coarse.Seconds()
	}
	return s.SavesTimed > 0
}

// shorter reports whether the workload should save more often.
func (s saving) shorter() bool { return s.BestSeconds < s.EverySeconds }

// seldom reports whether the saves are further apart than Google's guides advise.
func (s saving) seldom() bool { return s.EverySeconds > oftenEnough.Seconds() }

// state says how often the workload saves.
func (s saving) state() string {
	every := terminal.SecondsText(s.EverySeconds)
	if s.AtLeast {
		return "no checkpoint for " + every
	}
	return "it saves every " + every
}

// advice names the time that loses least and what that rests on; the second part is empty if there is no advice.
func (s saving) advice() (do, because string) {
	if !s.advises() {
		return "save about every hour, as Google's guides say; so few losses are known that it may gain nothing", ""
	}
	saves := fmt.Sprintf("no save was timed, so one of %s is assumed", terminal.SecondsText(s.SaveSeconds))
	if s.SavesTimed > 0 {
		saves = fmt.Sprintf("a save takes %s (%d timed)", terminal.SecondsText(s.SaveSeconds), s.SavesTimed)
	}
	do = fmt.Sprintf("save every %s instead of %s: %+.1f points of goodput [%.1f, %.1f]",
		terminal.SecondsText(s.BestSeconds), terminal.SecondsText(s.EverySeconds), s.GainPoints, s.GainLeast, s.GainMost)
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
	because = fmt.Sprintf("%s of unsaved steps in %s of training, besides an assumed one in %d h; %s; if training goes on during a save, %s",
		terminal.Numbered(s.Losses, "loss", "losses"), terminal.SecondsText(s.TrainedSeconds), int(interval.Prior.Hours()), saves, meanwhile)
	if len(s.AfterStart) > 0 {
		var after []string
		for _, a := range s.AfterStart {
			after = append(after, terminal.SecondsText(a))
		}
		because += "; losses come in bursts: it loses still less with saves at " + strings.Join(after, ", ") + " after a start, and then ever less often"
	}
	return do, because
}

// historian reads what workloads have lost.
type historian struct {
	ledger *ledger.Ledger
	// archived are the keys of the archive, listed at most once between two calls of again.
	archived map[string][]string
	// known is what was read, and for which state of the workload: a look at a workload without news reads nothing.
	known map[string]remembered
}

type remembered struct {
	state string
	history
}

func newHistorian(l *ledger.Ledger) *historian {
	return &historian{ledger: l, known: map[string]remembered{}}
}

// again begins another look.
func (r *historian) again() { r.archived = nil }

// of reads what a workload has lost: from what is shown of it, and from its latest incidents in the archive.
func (r *historian) of(ctx context.Context, w deployment.Workload, now time.Time) (history, error) {
	state := w.Ended.String()
	if w.Incident != nil {
		state = w.Incident.ID
	}
	if k, ok := r.known[w.ID]; ok && k.state == state {
		return k.history, nil
	}
	if r.archived == nil {
		var err error
		if r.archived, err = r.ledger.Archived(ctx); err != nil {
			return history{}, err
		}
	}
	since, ids := w.Seen, r.archived[w.ID]
	if since.IsZero() {
		since = w.Training.Seen
	}
	if len(ids) > lastLosses {
		ids, since = ids[:lastLosses], time.Time{} // the oldest one that is read says since when
	}
	found, err := incidentsOf(ctx, r.ledger, []deployment.Workload{w}, map[string][]string{w.ID: ids}, now)
	if err != nil {
		return history{}, err
	}
	var incidents []view.Incident
	for _, t := range found {
		incidents = append(incidents, t.Incident)
		if since.IsZero() || t.Opened.Before(since) {
			since = t.Opened
		}
	}
	h := historyOf(incidents, since, now)
	r.known[w.ID] = remembered{state, h}
	return h, nil
}

// wastes is how a workload saves that likely loses much by the time between its saves; nil is no such one.
func (r *historian) wastes(ctx context.Context, w deployment.Workload, price float64, now time.Time) (*saving, error) {
	every, atLeast := everySaved(w, unsaved(w))
	if every == 0 || w.Training.Finished || every <= oftenEnough && w.Incident == nil && now.Sub(w.Ended) > lately {
		return nil, nil //nolint:nilnil // most save often enough
	}
	h, err := r.of(ctx, w, now)
	if err != nil {
		return nil, err
	}
	if s := savingOf(w, every, atLeast, h, price); s.advises() && s.GainPoints > wasteful {
		return &s, nil
	}
	return nil, nil //nolint:nilnil // likewise
}

// historyOf counts the incidents in which a training stopped without a verified save. The time in which it stood still is no
// training.
func historyOf(incidents []view.Incident, since, now time.Time) (h history) {
	if since.IsZero() {
		return h
	}
	h.trained = now.Sub(since)
	slices.SortFunc(incidents, func(a, b view.Incident) int { return a.Down.Compare(b.Down) })
	var away time.Duration
	ran := since
	stops := 0
	for i := range incidents {
		in := &incidents[i]
		if in.Down.IsZero() || in.Retried { // a retry deals with what another incident has lost
			continue
		}
		if !in.Save.Verified {
			h.losses++
		}
		stops++
		away += in.Cost.Away()
		h.lifetimes = append(h.lifetimes, max(0, in.Down.Sub(ran)))
		ran = in.Down.Add(in.Cost.Away())
	}
	h.trained -= away
	if stops > 0 {
		h.back = away / time.Duration(stops)
	}
	h.trained = max(0, h.trained)
	return h
}

// unsaved is for how long the training of a workload has made steps since its newest checkpoint, as its crew has told.
func unsaved(w deployment.Workload) time.Duration {
	if t := w.Training; !t.CheckpointAt.IsZero() {
		return t.StepAt.Sub(t.CheckpointAt)
	}
	return 0
}

// resumed is when the training of a workload began again for the last time, as far as that is known: an outage is no time in which it
// could have saved.
func resumed(w deployment.Workload) time.Time {
	at := w.Training.Started
	if w.Closed != nil && w.Closed.Closed.After(at) && !w.Closed.Down.IsZero() {
		at = w.Closed.Closed
	}
	return at
}

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
