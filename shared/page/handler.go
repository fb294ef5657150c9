package page

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// Site serves the pages of a ledger. It only reads; who may give orders is served forms for them.
type Site struct {
	Ledger *ledger.Ledger
	// Policies are those that the deployment knows now.
	Policies func(ctx context.Context) (Policies, error)
	Now      func() time.Time
	Log      *slog.Logger
	// Orders let people give orders; nil lets nobody.
	Orders *Orders
}

// Policies are the policies in force by label.
type Policies interface {
	For(ctx context.Context, label string) policy.Policy
}

// perPage is how many rows a page has.
const perPage = 100

// Handler serves the site. Whoever serves it says who may call it.
func (s Site) Handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", s.page(s.fleet))
	m.HandleFunc("GET /incidents", s.page(s.history))
	m.HandleFunc("GET /incident/{project}/{name}/{id}", s.page(s.incident))
	m.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write([]byte(Style)) //nolint:errcheck // the reader has gone
	})
	m.HandleFunc("POST /orders/{project}/{name}", s.order)
	var pages http.Handler = m
	if s.Orders != nil {
		pages = s.Orders.keyed(m)
	}
	return secured(http.NewCrossOriginProtection().Handler(pages))
}

// secured forbids all that a page does not need: scripts, frames, anything from elsewhere, and to be kept. Only the pages themselves learn which
// page led to them: without that a browser hides of which origin a form is.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}

// page serves what a function writes. Nothing is sent before all of it is written.
func (s Site) page(write func(r *http.Request, out *bytes.Buffer) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var out bytes.Buffer
		switch err := write(r, &out); {
		case errors.Is(err, ledger.ErrNotFound):
			http.Error(w, "there is no such incident", http.StatusNotFound)
		case err != nil:
			s.Log.ErrorContext(r.Context(), "page not shown", "path", r.URL.Path, "error", err.Error())
			http.Error(w, "the page cannot be shown now: "+err.Error(), http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(out.Bytes()) //nolint:errcheck // the reader has gone
		}
	}
}

// fleet reads what the first page shows. What would follow is computed for the rows that it shows.
func (s Site) fleet(r *http.Request, out *bytes.Buffer) error {
	ctx, now := r.Context(), s.Now()
	documents, err := s.Ledger.Workloads(ctx)
	if err != nil {
		return err
	}
	f := Fleet{Frame: Frame{Title: "Fleet", Path: "/", At: now}, Past: map[string][]view.Incident{}}
	byID := map[string]incident.Workload{}
	var rows []view.Row
	for _, w := range documents {
		byID[w.ID] = w
		rows = append(rows, w.Shown(now).Row())
	}
	policies, err := s.Policies(ctx)
	if err != nil {
		return err
	}
	for _, row := range view.WorstOf(rows, perPage) {
		w := byID[row.Workload]
		f.Workloads = append(f.Workloads, incident.View(w.Limited(policies.For(ctx, w.Label)), w, now))
	}
	f.More = len(documents) - len(f.Workloads)
	if f.Sights, err = s.sights(ctx, documents, now); err != nil {
		return err
	}
	if f.Paused, err = s.paused(ctx, now); err != nil {
		return err
	}
	past, err := s.Ledger.ClosedBetween(ctx, now.Add(-day), now.Add(time.Second), mostPast)
	if err != nil {
		return err
	}
	for _, a := range past {
		if w, known := byID[a.Workload]; known && (w.Closed == nil || w.Closed.ID != a.ID) {
			f.Past[a.Workload] = append(f.Past[a.Workload], w.ShownIncident(a.Incident, now))
		}
	}
	for _, w := range f.Workloads {
		for _, in := range []*view.Incident{w.Incident, w.Closed} {
			if in != nil {
				f.Past[w.ID] = append(f.Past[w.ID], *in)
			}
		}
	}
	return WriteFleet(out, f)
}

// mostPast bounds how many incidents of a day are read for the picture of the fleet.
const mostPast = 500

// sights say of each project whether Pitstop sees it.
func (s Site) sights(ctx context.Context, all []incident.Workload, now time.Time) (found []view.Sight, err error) {
	seen := map[string]bool{}
	for _, w := range all {
		if seen[w.Project] {
			continue
		}
		seen[w.Project] = true
		one, err := s.Ledger.Sight(ctx, w.Project, now)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

// paused says who paused everything, and why; empty where nobody has.
func (s Site) paused(ctx context.Context, now time.Time) (string, error) {
	p, err := s.Ledger.Pause(ctx)
	if err != nil || !p.Holds(now) {
		return "", err
	}
	return strings.TrimSuffix("everything is paused by "+p.By+": "+p.Why, ": "), nil
}

// incident reads what the page of an incident shows.
func (s Site) incident(r *http.Request, out *bytes.Buffer) error {
	now := s.Now()
	w, _, err := s.Ledger.Workload(r.Context(), r.PathValue("project")+"/"+r.PathValue("name"))
	if err != nil {
		return err
	}
	in, err := s.Ledger.Incident(r.Context(), w, r.PathValue("id"))
	if err != nil {
		return err
	}
	page := Incident{Frame: Frame{Title: in.ID, Path: r.URL.Path, At: now}, Workload: w.ID, In: w.ShownIncident(in, now)}
	if shown := w.Shown(now); shown.Row().Incident == in.ID || shown.Incident == nil && shown.Closed != nil && shown.Closed.ID == in.ID { // others are over
		page.Forms = s.forms(r, w, now)
	}
	return WriteIncident(out, page)
}

// history reads a page of all incidents: those that are open, and then those of the archive, the newest first.
func (s Site) history(r *http.Request, out *bytes.Buffer) error {
	ctx, now := r.Context(), s.Now()
	h := History{Frame: Frame{Title: "Incidents", Path: "/incidents", At: now}, Filter: FilterOf(r.URL.Query())}
	documents, err := s.Ledger.Workloads(ctx)
	if err != nil {
		return err
	}
	byID := map[string]incident.Workload{}
	seen := map[string]bool{}
	take := func(w incident.Workload, in incident.Incident) {
		p := Past{Workload: w.ID, Incident: w.ShownIncident(in, now), Lost: w.ZonesOf(in)}
		if key := w.ID + "/" + in.ID; !seen[key] && h.Filter.Asks(p) {
			seen[key] = true
			h.All = append(h.All, p)
		}
	}
	until := now.Add(time.Second)
	if at := h.Filter.Until; !at.IsZero() {
		until = at.Add(day)
	}
	for _, w := range documents {
		byID[w.ID] = w
		if w.ID == h.Filter.Workload {
			h.Forms = s.forms(r, w, now)
		}
		for _, in := range []*incident.Incident{w.Incident, w.Closed} {
			if in != nil && in.Opened.Before(until) {
				take(w, *in)
			}
		}
	}
	closed, err := s.Ledger.ClosedBetween(ctx, until.Add(-ledger.KeepArchive), until, perPage)
	if err != nil {
		return err
	}
	for _, a := range closed {
		if w, known := byID[a.Workload]; known {
			take(w, a.Incident)
		}
	}
	h.More = len(closed) == perPage
	h.sort()
	return WriteHistory(out, h)
}
