package console_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/evidence"
)

// forms are the orders that a page offers, by verb.
func forms(t *testing.T, page string) map[string]url.Values {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]url.Values{}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" || attribute(n, "method") != "post" {
			continue
		}
		values := url.Values{"to": {attribute(n, "action")}}
		for in := range n.Descendants() {
			if in.Data == "input" {
				values.Set(attribute(in, "name"), attribute(in, "value"))
			}
		}
		found[values.Get("verb")] = values
	}
	return found
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// send sends a form, and returns the page that it leads to.
func send(t *testing.T, c *http.Client, base string, form url.Values, change ...func(*http.Request)) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+form.Get("to"), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", base)
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

// visitor is a browser with the link open.
func visitor(t *testing.T, link string) (c *http.Client, base string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c = &http.Client{Jar: jar}
	if status, body := get(t, c, link); status != http.StatusOK {
		t.Fatalf("%d: %s", status, body)
	}
	base, _, _ = strings.Cut(link, "/?")
	return c, base
}

const asking = "/incident/demo/llama-8b/llama-8b-20261121-3"

// TestAnOrderOnAPageIsStoredAsInTheTerminal: each with the caller's name and the reason, which stays text.
func TestAnOrderOnAPageIsStoredAsInTheTerminal(t *testing.T) {
	t.Parallel()
	why := `the run <b>matters</b>, ` + strings.Repeat("да", 230) // nearly as long as may be
	for verb, at := range map[evidence.Verb]struct{ page, says string }{
		evidence.VerbApprove: {asking, "ada@example.com: approve recreate llama-8b"},
		evidence.VerbCancel:  {asking, "ada@example.com: cancel"},
		evidence.VerbPause:   {asking, "ada@example.com: pause"},
		evidence.VerbResume:  {asking, "ada@example.com: resume"},
		evidence.VerbRetry:   {"/incidents?workload=demo/bert", "bert"},
	} {
		t.Run(string(verb), func(t *testing.T) {
			t.Parallel()
			link, b := served(t, deploymenttest.Training("bert").GivesUp(2).Workload, deploymenttest.Asking())
			c, base := visitor(t, link)
			page := func() map[string]url.Values {
				status, body := get(t, c, base+at.page)
				if status != http.StatusOK {
					t.Fatalf("%d: %s", status, body)
				}
				return forms(t, body)
			}
			offered := page()
			if verb == evidence.VerbResume {
				offered[string(evidence.VerbPause)].Set("why", "first")
				send(t, c, base, offered[string(evidence.VerbPause)])
				offered = page()
			}
			form := offered[string(verb)]
			if form == nil {
				t.Fatalf("it is not offered: %v", offered)
			}
			form.Set("why", why)
			status, body := send(t, c, base, form)
			if status != http.StatusOK || !strings.Contains(body, string(verb)+": stored") || !strings.Contains(body, at.says) || strings.Contains(body, "<b>matters") {
				t.Errorf("%d, it does not say %q:\n%s", status, at.says, body)
			}
			w := b.Workload()
			if verb == evidence.VerbRetry {
				var err error
				if w, _, err = b.Ledger.Workload(t.Context(), "demo/bert"); err != nil {
					t.Fatal(err)
				}
			}
			if o := w.Orders[len(w.Orders)-1]; o.Verb != verb || o.By != "ada@example.com" || o.Why != why {
				t.Errorf("the record has %+v", o)
			}
		})
	}
}

// TestAnOrderThatIsNoOrderIsRefused: without a token, with another one, from elsewhere, without a reason, or about what is over.
func TestAnOrderThatIsNoOrderIsRefused(t *testing.T) {
	t.Parallel()
	link, b := served(t, deploymenttest.Trains("bert"), deploymenttest.Asking())
	c, base := visitor(t, link)
	_, body := get(t, c, base+asking)
	form := forms(t, body)[string(evidence.VerbApprove)]
	form.Set("why", "yes")
	with := func(name, value string) url.Values {
		f := maps.Clone(form)
		f[name] = []string{value}
		return f
	}
	before := b.Workload().Epoch
	for name, o := range map[string]struct {
		form   url.Values
		change func(*http.Request)
		status int
		says   string
	}{
		"no token":          {with("token", ""), nil, http.StatusForbidden, "open the page again"},
		"another token":     {with("token", "AAAA"), nil, http.StatusForbidden, "open the page again"},
		"another origin":    {form, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden, "cross-origin"},
		"an origin hidden":  {form, func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden, "cross-origin"},
		"another site":      {form, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden, "cross-origin"},
		"another host":      {form, func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest, "this is "},
		"no reason":         {with("why", " "), nil, http.StatusBadRequest, "say why"},
		"a novel":           {with("why", strings.Repeat("a", 501)), nil, http.StatusBadRequest, "say why"},
		"not text":          {with("why", "yes\xff"), nil, http.StatusBadRequest, "say why"},
		"another question":  {with("action", "restart"), nil, http.StatusConflict, "asks for something else now"},
		"another incident":  {with("incident", "llama-8b-20261121-2"), nil, http.StatusConflict, "llama-8b-20261121-2 is over"},
		"no verb":           {with("verb", "attach"), nil, http.StatusConflict, "there is no order attach"},
		"another workload":  {with("to", "/orders/demo/nobody"), nil, http.StatusNotFound, "there is no workload demo/nobody"},
		"nothing to retry":  {with("verb", "retry"), nil, http.StatusConflict, "waits for a person: approve it, or cancel it"},
		"no pause to lift":  {with("verb", "resume"), nil, http.StatusConflict, "was not paused"},
		"too long to read":  {with("more", strings.Repeat("a", 17<<10)), nil, http.StatusBadRequest, "cannot be read"},
		"not the browser's": {form, func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusForbidden, "open the link"},
	} {
		change := func(*http.Request) {}
		if o.change != nil {
			change = o.change
		}
		browser := c
		if name == "not the browser's" {
			browser = &http.Client{}
		}
		if status, body := send(t, browser, base, o.form, change); status != o.status || !strings.Contains(body, o.says) {
			t.Errorf("%s: %d %q, want %d %q", name, status, body, o.status, o.says)
		}
	}
	if w := b.Workload(); len(w.Orders) != 0 || w.Epoch != before {
		t.Errorf("an order was taken: %+v", w.Orders)
	}
}
