package loopback_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pitstop.internal/scripts/sim/loopback"
)

// TestWhoIsServed: a request by a name of this machine alone, from a program.
func TestWhoIsServed(t *testing.T) {
	served := 0
	s := httptest.NewServer(loopback.Only(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ })))
	t.Cleanup(s.Close)
	none := "none"
	for _, c := range []struct {
		host, origin string
		says         string // empty where it is served
	}{
		{"127.0.0.1:8090", none, ""},
		{"127.0.0.1", none, ""},
		{"127.1.2.3:80", none, ""},
		{"localhost:8090", none, ""},
		{"localhost", none, ""},
		{"LocalHost:8090", none, ""},
		{"[::1]:8090", none, ""},
		{"[::1]", none, ""},
		{"evil.example:8090", none, "the header Host is no name of this machine"},
		{"evil.example", none, "the header Host is no name of this machine"},
		{"127.0.0.1.evil.example:8090", none, "the header Host is no name of this machine"},
		{"localhost.evil.example", none, "the header Host is no name of this machine"},
		{"192.0.2.1:8090", none, "the header Host is no name of this machine"},
		{"0.0.0.0:8090", none, "the header Host is no name of this machine"},
		{"127.0.0.1:8090", "https://evil.example", "a page of a browser sent this"},
		{"127.0.0.1:8090", "http://127.0.0.1:8090", "a page of a browser sent this"},
		{"localhost", "null", "a page of a browser sent this"},
		{"localhost", "", "a page of a browser sent this"},
	} {
		served = 0
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		r.Header.Set("Content-Type", "text/plain")
		if c.origin != none {
			r.Header.Set("Origin", c.origin)
		}
		res, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		code, calls := http.StatusOK, 1
		if c.says != "" {
			code, calls = http.StatusForbidden, 0
		}
		if res.StatusCode != code || served != calls || !strings.HasPrefix(string(text), c.says) || strings.Count(string(text), "\n") != min(1, len(c.says)) {
			t.Errorf("Host %q, Origin %q: answer %d %q, served %d times", c.host, c.origin, res.StatusCode, text, served)
		}
	}
}
