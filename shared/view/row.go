package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
)

// Row is a workload in one line of a table: what somebody reads who is responsible for many.
type Row struct {
	Workload string    `json:"workload"`
	State    State     `json:"state"`
	Since    time.Time `json:"since,omitzero"`
	// Incident is the one that the row tells of, with its cause and cost: the open one, or the last one while it is left to a person.
	Incident string       `json:"incident,omitzero"`
	Cause    events.Cause `json:"cause,omitzero"`
	Cost     Cost         `json:"cost,omitzero"`
	// Need is what a person has to do; nil where nobody is needed.
	Need *Need `json:"need,omitempty"`
	// Next is what Pitstop does next, or what it does now; empty for nothing. At is until when that lasts, or when it begins.
	Next string    `json:"next,omitzero"`
	At   time.Time `json:"at,omitzero"`
}

// Row is the workload in one line.
func (w Workload) Row() Row {
	r := Row{Workload: w.ID, State: w.State, Since: w.Since, Need: w.Need}
	in := w.Incident
	if in == nil && w.wasLeft() {
		in = w.Closed
	}
	if in != nil {
		r.Incident, r.Cause, r.Cost = in.ID, in.Cause, in.Cost
	}
	r.Next, r.At = w.next()
	return r
}

// next is what Pitstop does next, or does now, in a few words.
func (w Workload) next() (text string, at time.Time) {
	if w.Incident != nil {
		return w.Incident.doing(), w.Incident.Deadline
	}
	if w.State == Left {
		return "nothing: it is left to its owner", at
	}
	if i := slices.IndexFunc(w.Slices, func(s Slice) bool { return s.Why != "" }); w.State == Unusable && i >= 0 {
		return w.Slices[i].Why, at
	}
	if at := w.Training.HangsAt; !at.IsZero() {
		return "if no step comes: take it for a hang", at
	}
	for _, s := range w.Slices {
		if n := w.Announced(s.Name); n != nil && !n.Due.IsZero() && (at.IsZero() || n.Due.Before(at)) {
			text, at = "ask for a save", n.Due
		}
	}
	return text, at
}

// doing is what was decided last.
func (in *Incident) doing() string {
	for _, l := range slices.Backward(in.Timeline) {
		if l.Kind == LineDecided {
			return l.Text
		}
	}
	return ""
}

// weights are the states, the one first that is worst.
var weights = []State{GivenUp, Recovers, Unusable, Watched, Prepares, Beginning, Trains, Finished, Left}

// RankedBefore is a rank after which come only workloads that stand no worse than that; none of them waits for a person.
func RankedBefore(s State) string { return strconv.Itoa(1 + slices.Index(weights, s)) }

// Rank is a text by which the worst row comes first: those that wait for a person, then those whose training stands still. What has been so for
// longest comes first. No two workloads have the same.
func (r Row) Rank() string {
	weight := "0"
	if r.Need == nil {
		weight = RankedBefore(r.State)
	}
	return weight + " " + RankTime(r.Since) + " " + r.Workload
}

// RankTime is a time in a text by which things are sorted.
func RankTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }

// Worse compares two rows for a table whose worst row comes first.
func Worse(a, b Row) int { return strings.Compare(a.Rank(), b.Rank()) }

// InTouch reports whether the crew was heard lately: it writes a line every five minutes while steps advance.
func (t Training) InTouch(now time.Time) bool {
	return !t.Spoke.IsZero() && now.Sub(t.Spoke) <= bounds.HeardFor
}

// StateText is how it stands, in words. After a silent hour of its project's patrol nobody knows.
func (r Row) StateText(sights []Sight, now time.Time) string {
	if !r.known(sights, now) {
		return "unknown, was " + string(r.State)
	}
	return string(r.State)
}

func (r Row) known(sights []Sight, now time.Time) bool {
	return !slices.ContainsFunc(sights, func(s Sight) bool { return strings.HasPrefix(r.Workload, s.Project+"/") && !s.Knows(now) })
}

// NextText is what Pitstop does, and until when or when; empty for nothing.
func (r Row) NextText(now time.Time) string {
	switch {
	case r.Next == "" && r.Need != nil:
		return "nothing until you act"
	case r.At.IsZero():
		return r.Next
	case r.Incident != "":
		return r.Next + ", until " + clock(r.At, now)
	}
	return r.Next + " at " + clock(r.At, now)
}

// clock is a time for people who see the present one: with its day where that is another one.
func clock(at, now time.Time) string {
	if at.UTC().Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return at.UTC().Format("15:04")
	}
	return at.UTC().Format("Jan 2 15:04")
}

// Short is the cost in a word: in dollars where there is a price; a dash for none.
func (c Cost) Short() string {
	switch {
	case c.AwaySeconds == 0:
		return "-"
	case c.ChipHourPrice > 0:
		return fmt.Sprintf("$%.2f", c.ChipHours*c.ChipHourPrice)
	}
	return fmt.Sprintf("%.1f chip-hours", c.ChipHours)
}

// AwayText is how long the training stood still.
func (c Cost) AwayText() string {
	if c.AtLeast {
		return ">= " + events.Span(c.Away())
	}
	return events.Span(c.Away())
}
