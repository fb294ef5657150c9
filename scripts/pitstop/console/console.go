// Package console serves the pages of a deployment to the browser of the one who started it, on this machine alone.
package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/orders"
	"pitstop.internal/shared/page"
)

// Server serves pages on a loopback address. Whoever has its link may read them.
type Server struct {
	// Link opens the pages. It has a token: other users of this machine, and other pages in the browser, do not know it.
	Link string

	listener net.Listener
	http     http.Server
}

// Listen opens a server at a loopback address, as 127.0.0.1:8080; port 0 is any free one.
func Listen(ctx context.Context, address string, pages http.Handler) (*Server, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, cli.Usage("--listen %q: write HOST:PORT, as in 127.0.0.1:0", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		return nil, cli.Usage("--listen %q: the console answers on this machine alone: 127.0.0.1, [::1] or localhost", address)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, cli.Usage("--listen: %w", err)
	}
	token, at := rand.Text(), l.Addr().String()
	return &Server{
		Link: "http://" + at + "/?token=" + token, listener: l,
		http: http.Server{Handler: guarded(at, token, asking(pages)), ReadHeaderTimeout: 10 * time.Second},
	}, nil
}

// Serve serves until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() }) //nolint:errcheck // nobody reads any more
	defer stop()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.listener.Addr(), err)
	}
	return nil
}

// guarded lets in who has the token: once in the link, and then as a cookie, so that no address that is shown or shared has it. Another Host than
// the server's own comes from a page that has given its name this address.
func guarded(host, token string, next http.Handler) http.Handler {
	name := "pitstop-" + host[strings.LastIndexByte(host, ':')+1:] // a browser sends the cookies of a host to each of its ports
	is := func(given string) bool { return subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1 }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch c, err := r.Cookie(name); {
		case r.Host != host:
			http.Error(w, "this is "+host, http.StatusMisdirectedRequest)
		case is(r.URL.Query().Get("token")):
			http.SetCookie(w, &http.Cookie{Name: name, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // plain HTTP on loopback
			w.Header().Set("Referrer-Policy", "no-referrer")
			http.Redirect(w, r, "/", http.StatusSeeOther)
		case err != nil || !is(c.Value):
			http.Error(w, "open the link that pitstop printed: it has a token", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// asking gives each page its own time to ask Google in.
func asking(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		looking, end := google.NextQuestion(r.Context())
		next.ServeHTTP(w, r.WithContext(looking))
		_ = end(nil) //nolint:errcheck // the page has said what it could not read
	})
}

// Site is the pages about a deployment. Orders are given in the name of the one who started them, as in the terminal.
func Site(d deployment.Deployment, l *ledger.Ledger, where deployment.Place) page.Site {
	policies := func(ctx context.Context) (ledger.Policies, error) {
		p, _, err := d.Policies(ctx, l)
		return p, err
	}
	var caller struct {
		sync.Once
		name string
	}
	return page.Site{Ledger: l, Policies: policies, Now: d.Now, Log: slog.New(slog.DiscardHandler), Orders: &page.Orders{
		Who: func(r *http.Request) (string, error) {
			caller.Do(func() { caller.name = d.Caller(r.Context()) })
			return caller.name, nil
		},
		Give: func(ctx context.Context, o orders.Order) error {
			o.ID = "" // it is stored at once
			_, err := d.Give(ctx, l, where, o)
			var left deployment.UnpublishedError
			if errors.As(err, &left) {
				return nil // patrol publishes what follows within a minute
			}
			return google.ExplainError(ctx, err)
		},
		Done: "stored; the story has your name", Key: []byte(rand.Text()),
	}}
}
