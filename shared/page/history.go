package page

import (
	"cmp"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/view"
)

// Filter says which incidents are asked for; empty fields ask for all.
type Filter struct {
	Workload, Cause, Zone, End string
	// Until is the last day of opening, zero for today.
	Until time.Time
}

// FilterOf reads a filter from the query of a page. What it cannot read asks for all.
func FilterOf(q url.Values) Filter {
	f := Filter{Workload: q.Get("workload"), Cause: q.Get("cause"), Zone: q.Get("zone"), End: q.Get("end")}
	if at, err := time.Parse(time.DateOnly, q.Get("until")); err == nil {
		f.Until = at
	}
	return f
}

// UntilText is the day as a form has it.
func (f Filter) UntilText() string {
	if f.Until.IsZero() {
		return ""
	}
	return f.Until.Format(time.DateOnly)
}

// Asks reports whether an incident is asked for.
func (f Filter) Asks(p Past) bool {
	named := f.Workload == "" || p.Workload == f.Workload || strings.HasSuffix(p.Workload, "/"+f.Workload)
	return named && (f.Cause == "" || string(p.Cause) == f.Cause) && (f.Zone == "" || slices.Contains(p.zones(), f.Zone)) &&
		(f.End == "" || string(p.Outcome) == f.End || f.End == open && p.Outcome == "")
}

// open is the end of what has not ended.
const open = "open"

// Past is an incident with its workload.
type Past struct {
	Workload string
	view.Incident
	// Lost are the zones of the slices that it struck.
	Lost []string
}

func (p Past) zones() []string { return p.Lost }

// History is what the page of all incidents shows.
type History struct {
	Frame
	Filter Filter
	// All are the incidents that are asked for, the newest first. More says that there are older ones.
	All  []Past
	More bool
	// Forms are the orders that its reader may give about the one workload that is asked for; nil for none.
	Forms *Forms
}

type historyRow struct {
	Past
	Link, Zone, Stands, Away, Spent string
}

type shownHistory struct {
	History
	Rows         []historyRow
	Causes, Ends []string
	Count, Older string
}

// WriteHistory writes the page of all incidents.
func WriteHistory(out io.Writer, h History) error {
	s := shownHistory{History: h, Count: count(len(h.All), "incident")}
	for _, c := range events.Causes() {
		s.Causes = append(s.Causes, string(c))
	}
	s.Ends = []string{open}
	for _, o := range view.Outcomes() {
		s.Ends = append(s.Ends, string(o))
	}
	for _, p := range h.All {
		r := historyRow{Past: p, Link: "/incident/" + p.Workload + "/" + p.ID, Zone: strings.Join(p.Lost, ", "), Stands: Ended(p.Incident, h.At), Away: "-", Spent: p.Cost.Short()}
		if p.Cost.AwaySeconds > 0 {
			r.Away = events.Span(p.Cost.Away())
		}
		s.Rows = append(s.Rows, r)
	}
	if n := len(h.All); h.More && n > 0 {
		q := url.Values{"workload": {h.Filter.Workload}, "cause": {h.Filter.Cause}, "zone": {h.Filter.Zone}, "end": {h.Filter.End}, "until": {h.All[n-1].Opened.UTC().Format(time.DateOnly)}}
		s.Older = "/incidents?" + q.Encode()
	}
	return render(out, "history", s)
}

// cut cuts the ID of a workload into project and name.
func cut(workload string) (project, name string, found bool) { return strings.Cut(workload, "/") }

// sort puts the newest first.
func (h *History) sort() {
	slices.SortFunc(h.All, func(a, b Past) int { return cmp.Or(b.Opened.Compare(a.Opened), cmp.Compare(a.Workload, b.Workload)) })
}
