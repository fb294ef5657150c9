package page

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"pitstop.internal/shared/ledger"
)

// Site serves the pages of a ledger. It only reads; who may give orders is served forms for them.
type Site struct {
	Ledger *ledger.Ledger
	// Policies are those that the deployment knows now.
	Policies func(ctx context.Context) (ledger.Policies, error)
	Now      func() time.Time
	Log      *slog.Logger
	// Orders let people give orders; nil lets nobody.
	Orders *Orders
}

// perPage is how many rows a page has.
const perPage = 100

// Handler serves the site. Whoever serves it says who may call it.
func (s Site) Handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", s.page(s.fleet))
	m.HandleFunc("GET /incidents", s.page(s.history))
	m.HandleFunc("GET /losses", s.page(s.losses))
	m.HandleFunc("GET /time", s.page(s.time))
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

// paused says who paused everything, and why; empty where nobody has.
func (s Site) paused(ctx context.Context, now time.Time) (string, error) {
	p, err := s.Ledger.Pause(ctx)
	if err != nil || !p.Holds(now) {
		return "", err
	}
	return strings.TrimSuffix("everything is paused by "+p.By+": "+p.Why, ": "), nil
}
