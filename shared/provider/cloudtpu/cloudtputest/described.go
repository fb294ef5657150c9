package cloudtputest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"pitstop.internal/shared/provider/cloudtpu/internal/discovery"
)

// Described passes calls on, and holds each call and answer against the discovery document of its version, which is in the module of
// Google's clients. It reports every misfit.
func Described(next http.Handler, fault func(error)) (http.Handler, error) {
	served := roundTripper(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		next.ServeHTTP(w, r)
		return w.Result(), nil
	})
	checked := map[string]http.RoundTripper{}
	for v := range methods {
		d, err := discovery.Version(v)
		if err != nil {
			return nil, err
		}
		checked[v] = d.Transport(served, fault, nil)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		through := checked[v]
		if through == nil || !strings.HasPrefix(rest, "projects/") { // another API has a v2 too
			next.ServeHTTP(w, r)
			return
		}
		answer, err := through.RoundTrip(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close() //nolint:errcheck // it is in memory
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body) //nolint:errcheck // the caller sees that it is short
	}), nil
}

// roundTripper is a function that carries a call.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
