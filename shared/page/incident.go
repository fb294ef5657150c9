package page

import (
	"io"
	"net/url"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/view"
)

// Incident is what the page of an incident shows.
type Incident struct {
	Frame
	Workload string
	In       view.Incident
	// Forms are the orders that its reader may give; nil for none.
	Forms *Forms
}

type shownIncident struct {
	Incident
	Stands, Spent, Advice, Logs string
	Picture                     Timeline
	Would                       []string
	Days                        []storyDay
}

// storyDay are the lines of a story of one day, in UTC.
type storyDay struct {
	Day   string
	Lines []view.Line
}

// days are the lines of a story by day.
func days(lines []view.Line) (all []storyDay) {
	for _, l := range lines {
		day := l.At.UTC().Format("Mon Jan 2, 2006")
		if n := len(all); n == 0 || all[n-1].Day != day {
			all = append(all, storyDay{Day: day})
		}
		last := &all[len(all)-1]
		last.Lines = append(last.Lines, l)
	}
	return all
}

// WriteIncident writes the page of an incident.
func WriteIncident(out io.Writer, i Incident) error {
	in := i.In
	s := shownIncident{Incident: i, Stands: Ended(in, i.At), Spent: in.Cost.Short(), Advice: in.Advice, Would: in.WouldHave(), Days: days(in.Timeline), Picture: i.picture()}
	if !i.Alone {
		s.Logs = logsOf(i.Workload, in, i.At)
	}
	return render(out, "incident", s)
}

// Ended is how an incident ended, or for what it waits.
func Ended(in view.Incident, now time.Time) string {
	if in.Outcome != "" {
		return string(in.Outcome) + " after " + events.Span(in.Closed.Sub(in.Opened))
	}
	return "open: " + string(in.Phase) + " for " + events.Span(now.Sub(in.Since))
}

// logsOf leads to the log entries of an incident in Cloud Logging: those of its project, from shortly before to shortly after it.
func logsOf(workload string, in view.Incident, now time.Time) string {
	const around = 5 * time.Minute
	project, _, _ := cut(workload)
	from, to := in.Opened, in.Closed
	if !in.Down.IsZero() && in.Down.Before(from) {
		from = in.Down
	}
	if to.IsZero() {
		to = now
	}
	span := from.Add(-around).UTC().Format(time.RFC3339) + "/" + to.Add(around).UTC().Format(time.RFC3339)
	return "https://console.cloud.google.com/logs/query;timeRange=" + url.PathEscape(span) + "?project=" + url.QueryEscape(project)
}

// picture shows when the training stood still, what went wrong, and in which step Pitstop was.
func (i Incident) picture() Timeline {
	in := i.In
	until := in.Closed
	if until.IsZero() {
		until = i.At
	}
	from := in.Opened
	if !in.Down.IsZero() && in.Down.Before(from) {
		from = in.Down
	}
	for _, t := range in.Troubles {
		if t.At.Before(from) && from.Sub(t.At) < day {
			from = t.At
		}
	}
	margin := max(time.Minute, until.Sub(from)/20)
	t := Timeline{Title: "The course of " + in.ID, From: from.Add(-margin), To: until.Add(margin)}
	training := Lane{Name: "training"}
	if in.Down.IsZero() {
		training.Spans = append(training.Spans, Span{t.From, t.To, Trains, "trains"})
	} else {
		back := in.Down.Add(in.Cost.Away())
		training.Spans = append(training.Spans, Span{t.From, in.Down, Trains, "trains"}, Span{in.Down, back, Away, "stands still"})
		if in.Outcome == view.Resumed {
			training.Spans = append(training.Spans, Span{back, t.To, Trains, "trains again"})
		}
	}
	trouble := Lane{Name: "evidence"}
	for _, o := range in.Troubles {
		kind := Trouble
		if o.Announced {
			kind = Notice
		}
		trouble.Marks = append(trouble.Marks, Mark{o.At, kind, causeText(o.Cause) + " " + o.Slice + ": " + o.Text})
	}
	t.Lanes = append([]Lane{training, trouble}, stages(in, until)...)
	if refused := refusals(in); len(refused.Marks) > 0 {
		t.Lanes = append(t.Lanes, refused)
	}
	return t
}

// stages are the steps of Pitstop, a lane for each phase in the order in which they first came.
func stages(in view.Incident, until time.Time) (lanes []Lane) {
	at := map[view.Phase]int{}
	for k, l := range in.Timeline {
		if l.Phase == "" || l.Phase == view.Closed {
			continue
		}
		to := until
		if k+1 < len(in.Timeline) {
			to = in.Timeline[k+1].At
		}
		n, known := at[l.Phase]
		if !known {
			n = len(lanes)
			at[l.Phase] = n
			lanes = append(lanes, Lane{Name: string(l.Phase)})
		}
		spans := lanes[n].Spans
		if m := len(spans); m > 0 && !spans[m-1].To.Before(l.At) {
			spans[m-1].To = to
			continue
		}
		lanes[n].Spans = append(spans, Span{l.At, to, Works, l.Text})
	}
	return lanes
}

// refusals are the places that refused, when they did so last.
func refusals(in view.Incident) Lane {
	l := Lane{Name: "refused"}
	for _, z := range in.Zones {
		l.Marks = append(l.Marks, Mark{z.At, Refused, z.Place.String() + ": " + z.Text})
	}
	return l
}
