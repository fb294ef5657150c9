package view

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// Judged is the workload with its state in a word, and with what a person has to do. Question is what an open incident asks them; empty for
// nothing.
func (w Workload) Judged(question string) Workload {
	w.State, w.Since = w.stands()
	w.Need = w.needs(question)
	return w
}

// stands is how a workload stands, in a word, and since when.
func (w Workload) stands() (State, time.Time) {
	kept := slices.DeleteFunc(slices.Clone(w.Slices), func(s Slice) bool { return s.Released })
	switch {
	case w.Training.Finished:
		return Finished, w.Training.FinishedAt
	case len(kept) == 0:
		return Left, w.leftSince()
	case w.Incident != nil:
		return w.Incident.stands()
	case w.Training.HasGivenUp(), w.wasLeft() && !w.Closed.Down.IsZero():
		return GivenUp, w.Ended
	}
	since := w.Ended
	for _, s := range kept {
		if s.Condition != evidence.Ready && s.Condition != evidence.Done {
			return Unusable, s.Since
		}
		if s.Since.After(since) {
			since = s.Since
		}
	}
	if t := w.Training; !t.Seen.IsZero() && t.StepAt.IsZero() {
		return Beginning, t.Seen
	}
	return Trains, since
}

// leftSince is since when every slice is left to its owner: since the last of them changed, or since the incident ended that left it.
func (w Workload) leftSince() time.Time {
	since := w.Ended
	for _, s := range w.Slices {
		if s.Since.After(since) {
			since = s.Since
		}
	}
	return since
}

// stands is how a workload stands in an open incident.
func (in *Incident) stands() (State, time.Time) {
	switch {
	case in.OnlyWatched:
		return Watched, in.Opened
	case in.Down.IsZero():
		return Prepares, in.Opened
	}
	return Recovers, in.Down
}

// wasLeft reports whether the last incident was left to a person, and no step has followed.
func (w Workload) wasLeft() bool {
	c := w.Closed
	return w.Incident == nil && c != nil && c.Outcome == Escalated && !w.Training.StepAt.After(c.Closed)
}

// needs is what a person has to do: answer the question of the open incident, do what the last one left to them, or start a crew again that
// has given up.
func (w Workload) needs(question string) *Need {
	otherwise := ""
	if w.State == GivenUp {
		otherwise = "the training stays away"
	}
	switch {
	case question != "":
		otherwise = "Pitstop does nothing about it, and reminds"
		if w.State == Prepares && w.Incident.Cause == events.CauseMaintenance {
			otherwise = "the maintenance begins as announced, and Pitstop reminds"
		}
		return &Need{Text: question, Command: "pitstop approve " + w.Incident.ID, Otherwise: otherwise}
	case w.State == Finished, w.State == Left:
		return nil
	case w.wasLeft():
		return &Need{Text: w.Closed.Advice, Command: "pitstop incident " + w.Closed.ID, Otherwise: otherwise}
	case w.State == GivenUp:
		return &Need{Text: "look why its crew gave up after attempt " + events.Number(int64(w.Training.GaveUp)), Command: "pitstop retry " + w.Name, Otherwise: otherwise}
	}
	return nil
}
