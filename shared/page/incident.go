package page

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/view"
)

// Incident is what the page of an incident shows.
type Incident struct {
	Frame
	// Of is its workload.
	Of view.Workload
	In view.Incident
	// Forms are the orders that its reader may give; nil for none.
	Forms *Forms
}

type shownIncident struct {
	Incident
	Stands, Logs string
	Need         *view.Need
	Cost, Would  []string
	Save         string
	Picture      Timeline
	Days         []storyDay
}

// storyDay are the lines of a story of one day, in UTC.
type storyDay struct {
	Day   string
	Lines []storyLine
}

// storyLine is a line of the story. Entry leads to the log entry that it comes from; empty for none.
type storyLine struct {
	view.Line
	Entry string
}

// incident reads what the page of an incident shows.
func (s Site) incident(r *http.Request, out *bytes.Buffer) error {
	ctx, now := r.Context(), s.Now()
	w, _, err := s.Ledger.Workload(ctx, r.PathValue("project")+"/"+r.PathValue("name"))
	if err != nil {
		return err
	}
	in, err := s.Ledger.Incident(ctx, w, r.PathValue("id"))
	if err != nil {
		return err
	}
	policies, err := s.Policies(ctx)
	if err != nil {
		return err
	}
	i := Incident{Frame: Frame{Path: r.URL.Path, At: now}, Of: ledger.View(ctx, policies, w, now), In: w.ShownIncident(in, now)}
	if i.Title = i.In.ID; i.isLast() {
		i.Forms = s.forms(r, i.Of.ID, w, now)
	}
	return WriteIncident(out, i)
}

// WriteIncident writes the page of an incident.
func WriteIncident(out io.Writer, i Incident) error {
	in := i.In
	s := shownIncident{Incident: i, Stands: in.Past(i.Of.ID, nil).Ended(i.At), Cost: in.Cost.Parts(), Would: in.WouldHave(), Days: i.days(), Picture: i.picture(), Need: i.need(), Save: saved(in.Save)}
	if !i.Alone {
		s.Logs = logs(i.Of.Project, "", i.from().Add(-aroundIncident), i.until().Add(aroundIncident))
	}
	return render(out, "incident", s)
}

// need is what a person has to do about it; nil where nobody is needed.
func (i Incident) need() *view.Need {
	w, in := i.Of, i.In
	switch current := w.Row().Incident == in.ID; {
	case current && w.Need != nil:
		return w.Need
	case in.Advice != "":
		return &view.Need{Text: in.Advice}
	}
	return nil
}

// isLast reports whether there is no later incident of its workload: about others there is nothing to order.
func (i Incident) isLast() bool {
	w := i.Of
	return w.Row().Incident == i.In.ID || w.Incident == nil && w.Closed != nil && w.Closed.ID == i.In.ID
}

// IsOpen reports whether it is the open incident of its workload.
func (i Incident) IsOpen() bool { return i.Of.Incident != nil && i.Of.Incident.ID == i.In.ID }

// saved says what came of the save that an incident asked for; empty where it asked for none.
func saved(s view.Save) string {
	switch {
	case s.Requested.IsZero():
		return ""
	case s.Result == "":
		return "requested at " + stamp(s.Requested) + ", and not answered yet"
	case s.Failed != "":
		return "requested at " + stamp(s.Requested) + ": " + string(s.Result) + ", " + s.Failed
	}
	return "requested at " + stamp(s.Requested) + ": " + string(s.Result)
}

// days are the lines of the story by day.
func (i Incident) days() (all []storyDay) {
	for _, l := range i.In.Timeline {
		day := l.At.UTC().Format("Mon Jan 2, 2006")
		if n := len(all); n == 0 || all[n-1].Day != day {
			all = append(all, storyDay{Day: day})
		}
		line := storyLine{Line: l}
		if l.Logged && l.Source != "" && l.Kind == view.LineSeen && !i.Alone {
			line.Entry = logs(i.Of.Project, "insertId="+quoted(l.Source), l.At.Add(-aroundEntry), l.At.Add(aroundEntry))
		}
		last := &all[len(all)-1]
		last.Lines = append(last.Lines, line)
	}
	return all
}

const (
	// aroundIncident is how much of the log before and after an incident is shown with it.
	aroundIncident = 5 * time.Minute
	// aroundEntry is how far the time of an entry may be from that at which Pitstop learned of it.
	aroundEntry = day
)

// logs leads to the entries of a project's log that a query selects within a time, in Cloud Logging.
func logs(project, query string, from, to time.Time) string {
	address := "https://console.cloud.google.com/logs/query"
	if query != "" {
		address += ";query=" + url.PathEscape(query)
	}
	span := from.UTC().Format(time.RFC3339) + "/" + to.UTC().Format(time.RFC3339)
	return address + ";timeRange=" + url.PathEscape(span) + "?project=" + url.QueryEscape(project)
}

// quoted is a text in the query language of Cloud Logging.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// from is when it began: when the training stood still, or when it opened.
func (i Incident) from() time.Time {
	if d := i.In.Down; !d.IsZero() {
		return earliest(d, i.In.Opened)
	}
	return i.In.Opened
}

// until is its end, or now.
func (i Incident) until() time.Time {
	if i.In.Closed.IsZero() {
		return i.At
	}
	return i.In.Closed
}

// picture shows when the training stood still, what went wrong, in which step Pitstop was, and which calls it made.
func (i Incident) picture() Timeline {
	in, from, until := i.In, i.from(), i.until()
	for _, t := range in.Troubles {
		if t.At.Before(from) && from.Sub(t.At) < day {
			from = t.At
		}
	}
	margin := max(time.Minute, until.Sub(from)/20)
	t := Timeline{Name: "course", Title: "The course of " + in.ID, From: from.Add(-margin), To: until.Add(margin)}
	trouble := Lane{Name: "went wrong"}
	for _, o := range in.Troubles {
		kind := Trouble
		if o.Announced {
			kind = Notice
		}
		trouble.Marks = append(trouble.Marks, Mark{o.At, kind, strings.TrimSpace(causeText(o.Cause)+" "+o.Slice) + ": " + o.Text})
	}
	t.Lanes = append([]Lane{training(in, t), trouble}, steps(in, until)...)
	return t
}

// training is when it ran, and when it stood still.
func training(in view.Incident, t Timeline) Lane {
	l := Lane{Name: "training"}
	if in.Down.IsZero() {
		l.Spans = append(l.Spans, Span{t.From, t.To, Trains, "trains"})
		return l
	}
	back := in.Down.Add(in.Cost.Away())
	l.Spans = append(l.Spans, Span{t.From, in.Down, Trains, "trains"}, Span{in.Down, back, Away, "stands still"})
	if in.Outcome == view.Resumed {
		l.Spans = append(l.Spans, Span{back, t.To, Trains, "trains again"})
		l.Marks = append(l.Marks, Mark{in.Closed, Proof, "proven by its " + string(in.ConfirmedBy)})
	}
	return l
}

// steps are those of Pitstop, a lane for each in the order in which they first came, with the calls that it made. Each place in which a slice was to be
// created has a lane of its own.
func steps(in view.Incident, until time.Time) (lanes []Lane) {
	lane := func(name string) *Lane {
		i := slices.IndexFunc(lanes, func(l Lane) bool { return l.Name == name })
		if i < 0 {
			i = len(lanes)
			if strings.HasPrefix(name, createIn) { // after the wait for it
				last := slices.IndexFunc(lanes, func(l Lane) bool { return l.Name == string(view.PhaseCreating) })
				for last >= 0 && last+1 < len(lanes) && strings.HasPrefix(lanes[last+1].Name, createIn) {
					last++
				}
				if last >= 0 {
					i = last + 1
				}
			}
			lanes = slices.Insert(lanes, i, Lane{Name: name})
		}
		return &lanes[i]
	}
	for _, s := range in.Stretches(until) {
		if s.Phase != view.Noticing {
			l := lane(string(s.Phase))
			l.Spans = append(l.Spans, Span{s.From, s.To, Works, s.Says})
		}
	}
	for _, c := range in.Calls {
		name, known := phasesOf[c.Action]
		if !known {
			continue
		}
		about := string(name)
		if c.Action == events.ActionCreate {
			about = createIn + strings.TrimSpace(zoneOf(c.Resource)+" "+c.Accelerator)
		}
		l := lane(about)
		kind := Called
		if c.Code != "" {
			kind = Refused
		}
		l.Marks = append(l.Marks, Mark{c.At, kind, c.Method + ": " + c.Came()})
		if c.Folded > 0 {
			l.Marks = append(l.Marks, Mark{c.Until, kind, c.Method + ": " + c.Came()})
		}
	}
	return lanes
}

// createIn begins the name of the lane of a place.
const createIn = "create in "

// phasesOf are the phases in which calls are made.
var phasesOf = map[events.Action]view.Phase{
	events.ActionSave: view.Saving, events.ActionMaintain: view.Maintaining, events.ActionDelete: view.PhaseDeleting, events.ActionCreate: view.PhaseCreating,
	events.ActionStart: view.Starting, events.ActionAdmit: view.Admitting, events.ActionRestart: view.Restarting,
}

// zoneOf is the zone in the name of a resource.
func zoneOf(resource string) string {
	_, after, _ := strings.Cut(resource, "locations/")
	zone, _, _ := strings.Cut(after, "/")
	return zone
}
