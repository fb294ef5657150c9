package page

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/view"
)

// Fleet is what the first page shows.
type Fleet struct {
	Frame
	Sights []view.Sight
	// Paused says who paused everything, and why; empty where nobody has.
	Paused    string
	Workloads []view.Workload
	// Past are the incidents of the last day by workload, open and closed. Those that ended before PastFrom were not read; zero says that all were.
	Past     map[string][]view.Past
	PastFrom time.Time
	// Next is the rank after which the rest follows; empty where nothing does. Later says that this is not the first page.
	Next  string
	Later bool
}

// fleetRow is a row of the table.
type fleetRow struct {
	view.Row
	Link, Stands, Class, For, Spent, Follows, IfLost string
}

// shownFleet is what the template reads.
type shownFleet struct {
	Fleet
	Rows        []fleetRow
	Count, More string
	Day         Timeline
}

const (
	// day is how far the picture of the fleet looks back, and ahead.
	day = 24 * time.Hour
	// mostOfDay bounds how many incidents of the last day are read for it.
	mostOfDay = 1000
)

// fleet reads what the first page shows: the worst workloads, and what of them has happened in the last day.
func (s Site) fleet(r *http.Request, out *bytes.Buffer) error {
	ctx, now, after := r.Context(), s.Now(), r.URL.Query().Get("after")
	f := Fleet{Frame: Frame{Title: "Fleet", Path: "/", At: now}, Later: after != ""}
	documents, next, err := s.Ledger.Worst(ctx, after, perPage)
	if err = f.without(err); err != nil {
		return err
	}
	policies, err := s.Policies(ctx)
	if err != nil {
		return err
	}
	f.Next = next
	var projects []string
	for _, w := range documents {
		v := ledger.View(ctx, policies, w, now)
		f.Workloads, projects = append(f.Workloads, v), append(projects, v.Project)
	}
	if f.Sights, err = s.Ledger.Sights(ctx, projects, now); err != nil {
		return err
	}
	if f.Paused, err = s.paused(ctx, now); err != nil {
		return err
	}
	if err := f.ReadDay(ctx, s.Ledger); err != nil {
		return err
	}
	return WriteFleet(out, f)
}

// ReadDay reads what has happened to the workloads in the last day. The archive has it, and of the present the workloads themselves: the open incident,
// and the one that ended last, whose cost may go on.
func (f *Fleet) ReadDay(ctx context.Context, l *ledger.Ledger) error {
	past, older, err := l.Past(ctx, ledger.Ended{From: f.At.Add(-day), Most: mostOfDay})
	if err = f.without(err); err != nil {
		return err
	}
	if older != "" && len(past) > 0 {
		f.PastFrom = past[len(past)-1].Closed
	}
	f.Past = map[string][]view.Past{}
	for _, p := range past {
		f.Past[p.Workload] = append(f.Past[p.Workload], p)
	}
	for _, w := range f.Workloads {
		f.Past[w.ID] = w.Pasts(f.Past[w.ID])
	}
	return nil
}

// WriteFleet writes the page of the fleet, the worst workload first.
func WriteFleet(out io.Writer, f Fleet) error {
	s := shownFleet{Fleet: f, Day: Timeline{Name: "day", Title: "The last 24 hours, and what is announced", From: f.At.Add(-day), To: f.At.Add(time.Hour), Now: f.At}}
	all := slices.Clone(f.Workloads)
	slices.SortFunc(all, func(a, b view.Workload) int { return view.Worse(a.Row(), b.Row()) })
	for _, w := range all {
		s.Rows = append(s.Rows, f.row(w))
		l := f.lane(w)
		s.Day.Lanes = append(s.Day.Lanes, l)
		for _, m := range l.Marks {
			if m.At.Before(f.At.Add(day)) {
				s.Day.To = latest(s.Day.To, m.At.Add(time.Hour))
			}
		}
	}
	s.Count = count(len(all), "workload") + ", the worst first"
	if f.Later {
		s.Count = "the next " + s.Count
	}
	if f.Next != "" && !f.Alone {
		s.More = "/?" + url.Values{"after": {f.Next}}.Encode()
	}
	return render(out, "fleet", s)
}

// KeepFleet writes the page of the fleet for a file: it has all workloads, and no links.
func KeepFleet(out io.Writer, f Fleet) error {
	f.Title, f.Alone = "Fleet", true
	return WriteFleet(out, f)
}

// row is a workload in the table.
func (f Fleet) row(w view.Workload) fleetRow {
	r := fleetRow{Row: w.Row(), For: "-", Follows: "-", IfLost: "-"}
	r.Stands, r.Spent = r.StateText(f.Sights, f.At), r.Cost.Short()
	switch {
	case f.Alone:
	case r.Incident != "":
		r.Link = incidentLink(w.ID, r.Incident)
	default:
		r.Link = "/incidents?" + url.Values{"workload": {w.ID}}.Encode()
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
	l := Lane{Name: w.Name, Marks: announced(w)}
	at := latest(f.At.Add(-day), w.Seen, f.PastFrom)
	until, over := endOf(w, f.At)
	sight, seen := f.sight(w)
	if !over && seen && sight.Blind {
		until = sight.Ticked
	}
	past := slices.Clone(f.Past[w.ID])
	slices.SortFunc(past, func(a, b view.Past) int { return a.Down.Compare(b.Down) })
	add := func(to time.Time, kind Kind, says string) {
		if to.After(at) {
			l.Spans = append(l.Spans, Span{at, to, kind, says})
			at = to
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
		add(earliest(in.Down, until), Trains, "trains")
		add(earliest(back, until), Away, causeText(in.Cause)+", "+in.ID)
	}
	if since := stillSince(w); !since.IsZero() {
		add(earliest(since, until), Trains, "trains")
		add(until, Away, string(w.State))
	}
	add(until, Trains, "trains")
	if until.Before(f.At) && !over {
		add(earliest(sight.KnownUntil(), f.At), Blind, "Pitstop does not see: its patrol is silent")
		add(f.At, Unknown, "nobody knows: its patrol has been silent for more than an hour")
	}
	return l
}

// endOf is when a training was finished, or left to its owner; now while it is neither.
func endOf(w view.Workload, now time.Time) (end time.Time, over bool) {
	switch {
	case w.Training.Finished:
		return w.Training.FinishedAt, true
	case w.State == view.Left:
		return w.Since, true
	}
	return now, false
}

// stillSince is since when a training stands still of which no incident tells; zero for none.
func stillSince(w view.Workload) time.Time {
	switch {
	case w.State == view.Unusable:
		return w.Since
	case w.State == view.GivenUp && w.Closed == nil:
		return w.Training.Spoke
	}
	return time.Time{}
}

// sight is that of the workload's project.
func (f Fleet) sight(w view.Workload) (view.Sight, bool) {
	i := slices.IndexFunc(f.Sights, func(s view.Sight) bool { return s.Project == w.Project })
	if i < 0 {
		return view.Sight{}, false
	}
	return f.Sights[i], true
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

// latest is the last of some times, and earliest is the first of two.
func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
