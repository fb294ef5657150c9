package page

import (
	"fmt"
	"io"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/view"
)

// Fleet is what the first page shows.
type Fleet struct {
	Frame
	Sights []view.Sight
	// Paused says who paused everything, and why; empty where nobody has.
	Paused    string
	Workloads []view.Workload
	// Past are the incidents of the last day by workload, open and closed.
	Past map[string][]view.Incident
	// More counts the workloads that the page does not show.
	More int
}

// fleetRow is a row of the table.
type fleetRow struct {
	view.Row
	Link, Stands, Class, For, Spent, Follows, IfLost string
}

// shownFleet is what the template reads.
type shownFleet struct {
	Fleet
	Rows  []fleetRow
	Count string
	Day   Timeline
}

// day is how far the picture of the fleet looks back, and ahead.
const day = 24 * time.Hour

// WriteFleet writes the page of the fleet, the worst workload first.
func WriteFleet(out io.Writer, f Fleet) error {
	s := shownFleet{Fleet: f, Day: Timeline{Title: "The last 24 hours and the next", From: f.At.Add(-day), To: f.At.Add(day), Now: f.At}}
	all := slices.Clone(f.Workloads)
	slices.SortFunc(all, func(a, b view.Workload) int { return view.Worse(a.Row(), b.Row()) })
	for _, w := range all {
		s.Rows = append(s.Rows, f.row(w))
		s.Day.Lanes = append(s.Day.Lanes, f.lane(w))
	}
	s.Count = count(len(all), "workload")
	return render(out, "fleet", s)
}

// row is a workload in the table.
func (f Fleet) row(w view.Workload) fleetRow {
	r := fleetRow{Row: w.Row(), For: "-", Follows: "-", IfLost: "-"}
	r.Stands, r.Spent = r.StateText(f.Sights, f.At), r.Cost.Short()
	if r.Link = "/incidents?workload=" + w.ID; r.Incident != "" {
		r.Link = "/incident/" + w.ID + "/" + r.Incident
	}
	if !r.Since.IsZero() {
		r.For = events.Span(f.At.Sub(r.Since))
	}
	if text := r.NextText(f.At); text != "" {
		r.Follows = text
	}
	if w.IfLost != nil {
		r.IfLost = w.IfLost.Plan.String()
	}
	switch r.State {
	case view.GivenUp, view.Recovers, view.Unusable:
		r.Class = "bad"
	case view.Trains, view.Finished:
		r.Class = "good"
	default:
	}
	return r
}

// lane is the last day of a workload, with what is announced for the next.
func (f Fleet) lane(w view.Workload) Lane {
	l := Lane{Name: w.Name, Link: f.row(w).Link, Marks: announced(w)}
	from, known := f.At.Add(-day), f.knownUntil(w)
	at := from
	if w.Seen.After(at) {
		at = w.Seen
	}
	past := slices.Clone(f.Past[w.ID])
	slices.SortFunc(past, func(a, b view.Incident) int { return a.Down.Compare(b.Down) })
	trains := func(until time.Time) {
		if until.After(at) {
			l.Spans = append(l.Spans, Span{at, until, Trains, "trains"})
		}
	}
	for _, in := range past {
		if in.Down.IsZero() {
			continue
		}
		back := in.Down.Add(in.Cost.Away())
		if in.Closed.IsZero() || back.After(f.At) {
			back = f.At
		}
		trains(in.Down)
		l.Spans = append(l.Spans, Span{in.Down, back, Away, causeText(in.Cause) + ": " + in.ID})
		if back.After(at) {
			at = back
		}
	}
	if known.Before(f.At) && at.Before(f.At) {
		trains(known)
		if !w.Training.Finished && f.At.Sub(known) > time.Minute {
			if known.Before(from) {
				known = from
			}
			l.Spans = append(l.Spans, Span{known, f.At, Unknown, "nobody knows: patrol has been silent since"})
		}
	} else {
		trains(f.At)
	}
	return l
}

// knownUntil is until when it is known how a workload stands: until the last tick of its project's patrol, or until it was finished.
func (f Fleet) knownUntil(w view.Workload) time.Time {
	if w.Training.Finished {
		return w.Training.FinishedAt
	}
	for _, s := range f.Sights {
		if s.Project == w.Project {
			return s.Ticked
		}
	}
	return f.At
}

// announced are the maintenance and the planned ends that are announced, with the saves before them.
func announced(w view.Workload) (marks []Mark) {
	for _, s := range w.Slices {
		n := w.Announced(s.Name)
		if n == nil || n.WindowStart.IsZero() {
			continue
		}
		what := "maintenance of " + s.Name
		if n.End {
			what = "planned end of " + s.Name
		}
		marks = append(marks, Mark{n.WindowStart, Notice, what})
		if !n.Due.IsZero() {
			marks = append(marks, Mark{n.Due, Works, "a save is requested before it"})
		}
	}
	return marks
}

// count counts things whose name takes an s.
func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%s %ss", events.Number(int64(n)), word)
}
