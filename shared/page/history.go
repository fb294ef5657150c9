package page

import (
	"bytes"
	"context"
	"errors"
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

// Filter says which incidents are asked for; empty fields ask for all.
type Filter struct {
	Workload, Cause, Zone, End string
	// From and Until are the first and the last day on which they ended, in UTC; zero for no bound.
	From, Until time.Time
}

// open is the end of what has not ended.
const open = "open"

// FilterOf reads a filter from the query of a page. What it cannot read asks for all.
func FilterOf(q url.Values) Filter {
	date := func(name string) time.Time {
		at, err := time.Parse(time.DateOnly, q.Get(name))
		if err != nil {
			return time.Time{}
		}
		return at
	}
	return Filter{Workload: q.Get("workload"), Cause: q.Get("cause"), Zone: q.Get("zone"), End: q.Get("end"), From: date("from"), Until: date("until")}
}

// Query is the filter as the query of a page.
func (f Filter) Query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"workload": f.Workload, "cause": f.Cause, "zone": f.Zone, "end": f.End, "from": f.Date(f.From), "until": f.Date(f.Until),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// Date is a day as a form has it.
func (Filter) Date(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(time.DateOnly)
}

// Causes and Ends are what a form offers.
func (Filter) Causes() []events.Cause { return events.Causes() }

// Ends are the ends of incidents.
func (Filter) Ends() []string {
	all := []string{open}
	for _, o := range view.Outcomes() {
		all = append(all, string(o))
	}
	return all
}

// Asks reports whether an incident is asked for.
func (f Filter) Asks(p view.Past) bool {
	named := f.Workload == "" || p.Workload == f.Workload || strings.HasSuffix(p.Workload, "/"+f.Workload)
	ended := f.End == "" || string(p.Outcome) == f.End || f.End == open && p.Outcome == ""
	return named && ended && (f.Cause == "" || string(p.Cause) == f.Cause) && p.Struck(f.Zone) && (p.Closed.IsZero() || f.within(p.Closed))
}

func (f Filter) within(at time.Time) bool {
	return !at.Before(f.From) && (f.Until.IsZero() || at.Before(f.end()))
}

// end is when the last day is over; zero for no bound.
func (f Filter) end() time.Time {
	if f.Until.IsZero() {
		return f.Until
	}
	return f.Until.Add(day)
}

// selects reports whether rows have to be read to know whether they are asked for.
func (f Filter) selects() bool { return f.Workload+f.Cause+f.Zone+f.End != "" }

// asked reads the rows of closed incidents that are asked for, so many at most, and reads no more rows than that bound. Next is the rank before which
// the rest follows; empty where nothing does.
func (s Site) asked(ctx context.Context, on *Frame, f Filter, before string, most, reads int) (all []view.Past, next string, err error) {
	var found []view.Past
	if f.Workload != "" {
		found, err = s.ofWorkload(ctx, on, f, before)
	} else {
		found, next, err = s.Ledger.Past(ctx, ledger.Ended{From: f.From, Until: f.end(), Before: before, Most: reads})
	}
	if err = on.without(err); err != nil {
		return nil, "", err
	}
	for _, p := range found {
		if !f.Asks(p) {
			continue
		}
		if len(all) == most {
			return all, all[most-1].Rank(), nil
		}
		all = append(all, p)
	}
	return all, next, nil
}

// named are the IDs that a name may stand for: one without a project may be of each.
func (s Site) named(ctx context.Context, name string) (ids []string, err error) {
	if strings.Contains(name, "/") {
		return []string{name}, nil
	}
	ids, err = s.Ledger.Projects(ctx)
	for i := range ids {
		ids[i] += "/" + name
	}
	return ids, err
}

// ofWorkload are the closed incidents of a workload.
func (s Site) ofWorkload(ctx context.Context, on *Frame, f Filter, before string) (all []view.Past, err error) {
	ids, err := s.named(ctx, f.Workload)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		found, err := s.Ledger.PastOf(ctx, id)
		if err = on.without(err); err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, view.Newest)
	return slices.DeleteFunc(all, func(p view.Past) bool { return before != "" && p.Rank() >= before }), nil
}

// History is what the page of all incidents shows.
type History struct {
	Frame
	Filter Filter
	// All are the incidents that are asked for, the newest first. Before is the rank before which older ones follow; empty where none do.
	All    []view.Past
	Before string
	// Later says that this is not the first page.
	Later bool
	// Forms are the orders that its reader may give about the one workload that is asked for; nil for none.
	Forms *Forms
}

type historyRow struct {
	view.Past
	Link, Where, When, Stands, Away, Spent string
}

type shownHistory struct {
	History
	Rows                 []historyRow
	Count, Older, Losses string
}

// mostScanned bounds the rows that are read for a page whose filter the ledger does not know.
const mostScanned = 1000

// history reads a page of all incidents: those that are open, and then those of the archive, what ended last first.
func (s Site) history(r *http.Request, out *bytes.Buffer) error {
	ctx, q, now := r.Context(), r.URL.Query(), s.Now()
	h := History{Frame: Frame{Title: "Incidents", Path: "/incidents", At: now}, Filter: FilterOf(q), Later: q.Get("before") != ""}
	if !h.Later && (h.Filter.Until.IsZero() || now.Before(h.Filter.end())) {
		documents, err := s.Ledger.Open(ctx, perPage)
		if err = h.without(err); err != nil {
			return err
		}
		for _, w := range documents {
			if p := w.OpenPast(now); p != nil && h.Filter.Asks(*p) {
				h.All = append(h.All, *p)
			}
		}
	}
	reads := perPage
	if h.Filter.selects() {
		reads = mostScanned
	}
	closed, before, err := s.asked(ctx, &h.Frame, h.Filter, q.Get("before"), perPage, reads)
	if err != nil {
		return err
	}
	h.All, h.Before = append(h.All, closed...), before
	if strings.Contains(h.Filter.Workload, "/") {
		switch w, _, err := s.Ledger.Workload(ctx, h.Filter.Workload); {
		case err == nil:
			h.Forms = s.forms(r, h.Filter.Workload, w, now)
		case !errors.Is(err, ledger.ErrNotFound):
			return err
		}
	}
	slices.SortFunc(h.All, view.Newest)
	return WriteHistory(out, h)
}

// WriteHistory writes the page of all incidents.
func WriteHistory(out io.Writer, h History) error {
	s := shownHistory{History: h, Count: count(len(h.All), "incident") + ", the newest first"}
	if h.Later {
		s.Count = "the next " + s.Count
	}
	for _, p := range h.All {
		r := historyRow{
			Past: p, Link: incidentLink(p.Workload, p.ID), Where: strings.Join(p.Zones, ", "), When: stamp(p.Opened), Stands: p.Ended(h.At), Away: "-", Spent: p.Cost.Short(),
		}
		if p.Cost.AwaySeconds > 0 {
			r.Away = p.Cost.AwayText()
		}
		s.Rows = append(s.Rows, r)
	}
	if h.Before != "" {
		q := h.Filter.Query()
		q.Set("before", h.Before)
		s.Older = "/incidents?" + q.Encode()
	}
	s.Losses = "/losses?" + h.Filter.Query().Encode()
	return render(out, "history", s)
}

// incidentLink leads to the page of an incident.
func incidentLink(workload, id string) string {
	project, name, _ := strings.Cut(workload, "/")
	return "/incident/" + url.PathEscape(project) + "/" + url.PathEscape(name) + "/" + url.PathEscape(id)
}
