package console_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/console"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger/ledgertest"
)

// serve serves the pages about a fleet in which one workload asks a person, and returns their link.
func serve(t *testing.T) string {
	t.Helper()
	link, _ := served(t, deploymenttest.Trains("bert"), deploymenttest.Asking())
	return link
}

// served serves the pages about a fleet.
func served(t *testing.T, all ...incident.Workload) (link string, b *deploymenttest.Bench) {
	t.Helper()
	b = deploymenttest.New(t, ledgertest.NewStore().Open, all...)
	s, err := console.Listen(t.Context(), "127.0.0.1:0", console.Site(b.Deployment, b.Ledger, deployment.Place{Project: "demo"}).Handler())
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s.Link, b
}

// get reads a page.
func get(t *testing.T, c *http.Client, address string, change ...func(*http.Request)) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(r)
	}
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close() //nolint:errcheck // it is read
	raw, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(raw)
}

// TestThePagesShowADeployment: whoever opens the link sees the fleet, walks to the incident, and finds it among all.
func TestThePagesShowADeployment(t *testing.T) {
	t.Parallel()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	link, visitor := serve(t), &http.Client{Jar: jar}
	status, fleet := get(t, visitor, link)
	base, _, _ := strings.Cut(link, "/?")
	const one = "/incident/demo/llama-8b/llama-8b-20261121-3"
	for _, want := range []string{"demo/llama-8b</a> needs you: recreate llama-8b; <code>pitstop approve llama-8b-20261121-3", "demo: patrol ticked 20 s ago", `href="` + one, "2 workloads, the worst first"} {
		if status != http.StatusOK || !strings.Contains(fleet, want) {
			t.Errorf("%d: it does not say %q:\n%s", status, want, fleet)
		}
	}
	for path, want := range map[string]string{
		one: "wait for approval: recreate llama-8b", "/incidents?workload=llama-8b": one, "/incidents?workload=bert": "No incident fits.", "/incidents?end=open&cause=preemption": one,
		"/incidents?zone=us-west4-a": one, "/incidents?zone=elsewhere": "No incident fits.",
	} {
		if status, body := get(t, visitor, base+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, it does not say %q:\n%s", path, status, want, body)
		}
	}
	if status, _ := get(t, visitor, base+"/incident/demo/llama-8b/llama-8b-20261121-9"); status != http.StatusNotFound {
		t.Errorf("an incident that is not there: %d", status)
	}
}

// TestTwoConsolesStayOpenInOneBrowser: a browser tells cookies apart by their names and the host, and not by the port.
func TestTwoConsolesStayOpenInOneBrowser(t *testing.T) {
	t.Parallel()
	c, first := visitor(t, serve(t))
	second := serve(t)
	for _, address := range []string{second, first + "/"} {
		if status, body := get(t, c, address); status != http.StatusOK {
			t.Errorf("%d: %s", status, body)
		}
	}
}

// TestNobodyElseSeesThePages: neither without the token, nor with another one, nor from a page whose name leads to this address.
func TestNobodyElseSeesThePages(t *testing.T) {
	t.Parallel()
	link, stranger := serve(t), &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	at, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		query  string
		change func(*http.Request)
		status int
	}{
		"with the link":  {at.RawQuery, func(*http.Request) {}, http.StatusSeeOther},
		"without":        {"", func(*http.Request) {}, http.StatusForbidden},
		"another token":  {"token=AAAA", func(*http.Request) {}, http.StatusForbidden},
		"another cookie": {"", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "pitstop-" + at.Port(), Value: "AAAA"}) }, http.StatusForbidden}, //nolint:gosec // it is sent
		"another host":   {at.RawQuery, func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
	} {
		if status, body := get(t, stranger, "http://"+at.Host+"/?"+c.query, c.change); status != c.status || strings.Contains(body, "llama") {
			t.Errorf("%s: %d, want %d: %s", name, status, c.status, body)
		}
	}
	for _, address := range []string{"0.0.0.0:0", "8080", "example.com:80"} {
		var wrong cli.UsageError
		if _, err := console.Listen(t.Context(), address, nil); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
