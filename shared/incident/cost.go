package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// What an incident has cost is computed here, and nowhere else, and is never stored: from its runs and its troubles, which are facts.

// stand is a time in which the training stood still.
type stand struct {
	// from is since when, and until is zero while it goes on. AtLeast says that it was longer than that.
	from, until time.Time
	atLeast     bool
	// steps are those that had to be done again after it. They had taken that long.
	steps int64
	took  time.Duration
}

// stands are the times in which the training stood still in an incident.
func (in *Incident) stands() (all []stand) {
	end := in.countsUntil()
	for i := range in.Runs {
		s, stop := stand{until: end}, time.Time{}
		var next *Run
		if i+1 < len(in.Runs) {
			next = &in.Runs[i+1]
		}
		stop, s.atLeast = in.stopOf(&in.Runs[i], next)
		s.from = later(stop, in.After)
		switch {
		case stop.IsZero():
			continue
		case next == nil:
			s.atLeast = s.atLeast || in.wasWatched()
		case end.IsZero() || !next.From.After(end):
			s.until, s.atLeast = next.From, s.atLeast || next.Early
			s.steps, s.took = in.Runs[i].doneAgain(stop, next)
		}
		if s.until.IsZero() || s.until.After(s.from) {
			all = append(all, s)
		}
	}
	return all
}

// countsUntil is until when an incident counts: its end or, where it was left to people, until somebody took it over; zero while that goes on.
func (in *Incident) countsUntil() time.Time {
	if in.isLeft() {
		return in.Taken
	}
	return in.Closed
}

// isLeft reports whether an incident was left to people: it costs until the training is back, or somebody takes it over.
func (in *Incident) isLeft() bool { return in.endedAs(view.Escalated) }

// wasWatched reports whether an incident ended that was only watched: the training may stand still for longer.
func (in *Incident) wasWatched() bool { return in.endedAs(view.Observed) }

func (in *Incident) endedAs(o view.Outcome) bool {
	return !in.Closed.IsZero() && in.Ending != nil && in.Ending.Outcome == o
}

// standsStill reports whether the training is not back from an incident, as far as is known.
func (in *Incident) standsStill() bool {
	n := len(in.Runs)
	if n == 0 || in.Ending != nil && in.Ending.Code == reason.CodeFinished {
		return false
	}
	stop, _ := in.stopOf(&in.Runs[n-1], nil)
	return !stop.IsZero() && (in.Closed.IsZero() || !stop.After(in.Closed))
}

// stopOf is when a run ended, as far as is known; zero while it may go on. Next is the run after it, nil for none. AtLeast says that it ended before
// that.
func (in *Incident) stopOf(r, next *Run) (stop time.Time, atLeast bool) {
	last := r.Over
	if next != nil && (last.IsZero() || next.From.Before(last)) {
		last = next.From
	}
	struck := in.struckWithin(r.Until, last)
	switch {
	case r.Attempt == 0: // whether it ran before, nobody tells
		return last, true
	case in.hung(r, last), !r.Late && r.isStill(r.Over):
		return r.Until, false
	case !r.Over.IsZero() && !r.Late:
		return last, false
	case !struck.IsZero(): // a crew that was silent before may have stood still before
		return struck, struck.After(r.toldBy())
	case last.IsZero() && in.lastTrouble().After(r.toldBy()), last.After(r.toldBy()):
		return r.toldBy(), true
	}
	return last, r.Over.IsZero()
}

// hung reports whether an incident was told that a run did no steps any more, before it was over by a time; zero for a run that may go on.
func (in *Incident) hung(r *Run, over time.Time) bool {
	return slices.ContainsFunc(in.Troubles, func(t Trouble) bool {
		return t.Cause == events.CauseHang && !t.At.Before(r.Until) && (over.IsZero() || t.At.Before(over))
	})
}

// struckWithin is when something first struck the machines between two times, as a log says; zero where none does. Until is zero for a loss that nothing
// else shows: then only what Pitstop itself has read counts.
func (in *Incident) struckWithin(since, until time.Time) (first time.Time) {
	for _, t := range in.Troubles {
		told := t.Rank >= events.RankAudit && t.At.Before(until) || t.proven() && until.IsZero() && endsLife(t.Cause)
		if told && !t.Announced && t.Cause.Infrastructure() && t.At.After(since) {
			first = earliest(first, t.At)
		}
	}
	return first
}

// doneAgain is how many steps of a run had to be done again by the next one, and how long they had taken. Those since the last line are reckoned at
// the pace of the lines.
func (r *Run) doneAgain(stop time.Time, next *Run) (steps int64, took time.Duration) {
	if r.Attempt == 0 || next.Attempt == 0 || r.Last <= r.First {
		return 0, 0
	}
	pace := r.pace()
	if steps = r.Last - next.First; pace > 0 {
		steps += int64(max(0, stop.Sub(r.Until)) / pace)
	}
	steps = max(0, steps)
	return steps, time.Duration(steps) * pace
}

// addCost adds what the incident has cost by a time. All slices of the workload stand still together, whether their machines are there or not, and
// count as they were at their loss: what they could have done is lost.
func (w *Workload) addCost(v *view.Incident, in *Incident, now time.Time) {
	c := &v.Cost.Cost
	for _, s := range in.stands() {
		c.AtLeast = c.AtLeast || s.atLeast || s.until.IsZero()
		c.AwaySeconds += max(0, cmp.Or(s.until, now).Sub(s.from).Seconds())
		c.AgainSteps += s.steps
		c.AgainSeconds += s.took.Seconds()
	}
	if v.Down.IsZero() {
		return
	}
	for i := range w.Slices {
		s, l := &w.Slices[i], &w.Slices[i].Life
		if n := slices.IndexFunc(in.Troubles, func(t Trouble) bool { return t.Slice == s.Name }); n >= 0 {
			l = cmp.Or(w.remembered(s.Name, in.Troubles[n].Life), l)
		}
		v.Cost.Slices = append(v.Cost.Slices, view.IdleSlice{Slice: s.Name, Accelerator: l.Accelerator, Chips: l.Chips, Capacity: l.Capacity})
		c.ChipHours += c.Lost().Hours() * float64(l.Chips)
	}
	c.Dollars = c.ChipHours * v.Cost.ChipHourPrice
}
