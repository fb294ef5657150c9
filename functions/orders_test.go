package functions_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"pitstop.internal/events"
	"pitstop.internal/functions/console"
	"pitstop.internal/functions/order"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/orders"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

const audience = "/projects/123456789012/locations/us-central1/services/console-operators"

// google has the keys of Google's sign-in, and of Google's other tokens.
type google struct {
	signIn *ecdsa.PrivateKey
	others *rsa.PrivateKey
}

func newGoogle(t *testing.T) *google {
	t.Helper()
	signIn, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	others, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &google{signIn, others}
}

func raw(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// RoundTrip answers with the public keys, and with nothing else.
func (g *google) RoundTrip(r *http.Request) (*http.Response, error) {
	var key map[string]string
	switch r.URL.String() {
	case "https://www.gstatic.com/iap/verify/public_key-jwk":
		point, err := g.signIn.PublicKey.Bytes()
		if err != nil {
			return nil, err
		}
		key = map[string]string{"alg": "ES256", "crv": "P-256", "kid": "1", "kty": "EC", "use": "sig", "x": raw(point[1:33]), "y": raw(point[33:])}
	case "https://www.googleapis.com/oauth2/v3/certs":
		key = map[string]string{"alg": "RS256", "kid": "1", "kty": "RSA", "use": "sig", "n": raw(g.others.N.Bytes()), "e": raw(big.NewInt(int64(g.others.E)).Bytes())}
	default:
		return nil, fmt.Errorf("nothing is at %s", r.URL)
	}
	body, err := json.Marshal(map[string]any{"keys": []any{key}})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body))), Request: r}, err
}

// identity is a token of the sign-in, as changed.
func (g *google) identity(t *testing.T, change func(header, claims map[string]any)) string {
	t.Helper()
	header := map[string]any{"alg": "ES256", "typ": "JWT", "kid": "1"}
	claims := map[string]any{
		"iss": "https://cloud.google.com/iap", "aud": audience, "email": "ada@example.com", "sub": "accounts.google.com:1", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	if change != nil {
		change(header, claims)
	}
	signed := raw(fleettest.JSON(t, header)) + "." + raw(fleettest.JSON(t, claims))
	sum := sha256.Sum256([]byte(signed))
	var signature []byte
	switch header["alg"] {
	case "ES256":
		r, s, err := ecdsa.Sign(rand.Reader, g.signIn, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case "RS256":
		var err error
		if signature, err = rsa.SignPKCS1v15(rand.Reader, g.others, crypto.SHA256, sum[:]); err != nil {
			t.Fatal(err)
		}
	}
	return signed + "." + raw(signature)
}

// served is a console over TLS, and a browser with cookies that the sign-in has let through as ada.
func served(t *testing.T, d *fleettest.Bench, publisher ledger.Publisher) (base string, browser *http.Client, g *google, identity *string) {
	t.Helper()
	g = newGoogle(t)
	h, err := console.New(t.Context(), console.Deps{
		Ledger: d.Ledger, Policies: d.Policies, Audience: audience, Keys: &http.Client{Transport: g}, Publisher: publisher, Now: d.Clock.Now, Log: slog.New(slog.DiscardHandler),
	})
	d.Must(err)
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	jar, err := cookiejar.New(nil)
	d.Must(err)
	own := g.identity(t, nil)
	identity = &own
	inner := s.Client().Transport
	browser = &http.Client{Jar: jar, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if *identity != "" {
			r.Header.Set("X-Goog-IAP-JWT-Assertion", *identity)
		}
		return inner.RoundTrip(r)
	})}
	return s.URL, browser, g, identity
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// ask makes a request, with a form if there is one.
func ask(t *testing.T, c *http.Client, address string, form url.Values) (status int, body string) {
	t.Helper()
	method, content := http.MethodGet, ""
	if form != nil {
		method, content = http.MethodPost, form.Encode()
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	}
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close() //nolint:errcheck // it is read
	said, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(said)
}

// offered are the forms of a page, by verb.
func offered(t *testing.T, page string) map[evidence.Verb]url.Values {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	found := map[evidence.Verb]url.Values{}
	for n := range doc.Descendants() {
		of := attributes(n)
		if n.Data != "form" || of["method"] != "post" {
			continue
		}
		form := url.Values{"to": {of["action"]}}
		for in := range n.Descendants() {
			if in.Data == "input" {
				form.Set(attributes(in)["name"], attributes(in)["value"])
			}
		}
		found[evidence.Verb(form.Get("verb"))] = form
	}
	return found
}

func attributes(n *html.Node) map[string]string {
	all := map[string]string{}
	for _, a := range n.Attr {
		all[a.Key] = a.Val
	}
	return all
}

// asking is a deployment in which a lost slice waits for a person's approval.
func asking(t *testing.T) (*fleettest.Bench, view.Workload) {
	t.Helper()
	d := deployed(t, cloudtputest.NodeConfig{Spot: true, Labels: fleettest.Label("asks")})
	var err error
	d.Policies.File, err = policy.Parse([]byte("policies: {asks: {preset: spot, switches: {recreate: ask}}}"))
	d.Must(err)
	d.Must(d.API.Preempt(fleettest.Zone, "llama"))
	d.tick()
	w := d.Shown(llamaID)
	if w.Incident == nil || w.Incident.Asked == "" {
		t.Fatalf("nothing is asked: %+v", w.Incident)
	}
	d.Sender.Sent()
	return d.Bench, w
}

// TestAnOrderOnThePageIsCarriedOut: from the form over the topic into the ledger, in the name of who is signed in; once, though it arrives twice.
func TestAnOrderOnThePageIsCarriedOut(t *testing.T) {
	for verb, did := range map[evidence.Verb]func(w view.Workload) bool{
		evidence.VerbApprove: func(w view.Workload) bool { return len(w.Requests) > 0 },
		evidence.VerbCancel:  func(w view.Workload) bool { return w.Incident == nil && w.Closed.Outcome == view.Released },
		evidence.VerbPause:   func(w view.Workload) bool { return w.Pause != nil && w.Pause.By == "ada@example.com" },
	} {
		t.Run(string(verb), func(t *testing.T) {
			d, before := asking(t)
			base, browser, _, _ := served(t, d, d.Sender)
			status, page := ask(t, browser, base+"/incident/"+before.ID+"/"+before.Incident.ID, nil)
			form := offered(t, page)[verb]
			if form == nil {
				t.Fatalf("%d: it is not offered:\n%s", status, page)
			}
			form.Set("why", "the run matters")
			if status, page := ask(t, browser, base+form.Get("to"), form); status != http.StatusOK || !strings.Contains(page, string(verb)+": sent") {
				t.Fatalf("%d:\n%s", status, page)
			}
			sent := d.Sender.Sent()
			if w := d.Shown(before.ID); len(sent) != 1 || sent[0].Type != events.TypeOperatorOrdered || len(w.Orders) != len(before.Orders) {
				t.Fatalf("the console sent %v and wrote %+v", fleettest.Types(sent), w.Orders)
			}
			for _, outcome := range []string{"handled", "ignored"} {
				d.Want(d.Deliver(order.New(d.Fleet.Advancer), fleettest.Event(sent[0])), outcome)
			}
			w := d.Shown(before.ID)
			if len(w.Orders) != len(before.Orders)+1 || !did(w) {
				t.Errorf("orders %+v, %+v", w.Orders, w)
			}
			if status, page := ask(t, browser, base+"/incident/"+before.ID+"/"+before.Incident.ID, nil); status != http.StatusOK || !strings.Contains(page, "ada@example.com: "+string(verb)) || !strings.Contains(page, "the run matters") {
				t.Errorf("the story names nobody:\n%s", page)
			}
		})
	}
}

// TestAnOrderThatCameTooLateSaysSo where the one who gave it looks, and once.
func TestAnOrderThatCameTooLateSaysSo(t *testing.T) {
	d, w := asking(t)
	o := orders.Order{Word: evidence.Word{By: "ada@example.com", Why: "yes", ID: "1"}, Verb: evidence.VerbApprove, Workload: w.ID, Incident: "llama-20260301-9", Action: w.Incident.Asked, At: d.Clock.Now()}
	e, err := events.Wrap(o.Message(), "//test", "", "", d.Clock.Now())
	d.Must(err)
	for _, outcome := range []string{"handled", "ignored"} {
		d.Want(d.Deliver(order.New(d.Fleet.Advancer), fleettest.Event(e)), outcome)
	}
	after := d.Shown(w.ID)
	base, browser, _, _ := served(t, d, d.Sender)
	if status, page := ask(t, browser, base+"/incidents?workload="+w.ID, nil); status != http.StatusOK || !strings.Contains(page, "ada@example.com: refused approve: llama-20260301-9 is over") {
		t.Errorf("%d, the page does not say it:\n%s", status, page)
	}
	if got := after.Orders[len(after.Orders)-1]; len(after.Orders) != 1 || got.Verb != evidence.VerbRefused || got.Text != "approve: llama-20260301-9 is over" || after.Incident.Granted {
		t.Errorf("orders %+v", after.Orders)
	}
}

// TestNobodyButTheSignedInSeesThePages: a token counts that Google's sign-in has signed, for this service and for now.
func TestNobodyButTheSignedInSeesThePages(t *testing.T) {
	d, _ := asking(t)
	base, browser, g, identity := served(t, d, d.Sender)
	forger := newGoogle(t)
	change := func(key string, value any) func(header, claims map[string]any) {
		return func(header, claims map[string]any) {
			if _, of := header[key]; of {
				header[key] = value
				return
			}
			claims[key] = value
		}
	}
	brief := g.identity(t, nil)
	brief = brief[:strings.LastIndexByte(brief, '.')+len(".ada")]
	tokens := map[string]string{
		"none": "", "no token": "ada@example.com", "forged": forger.identity(t, nil), "expired": g.identity(t, change("exp", time.Now().Add(-time.Minute).Unix())),
		"for another service": g.identity(t, change("aud", "/projects/1/locations/us-central1/services/other")),
		"of another issuer":   g.identity(t, change("iss", "https://accounts.google.com")),
		"without a signature": g.identity(t, change("alg", "none")),
		"with the public key": g.identity(t, change("alg", "HS256")),
		"signed too briefly":  brief,
		"without an address":  g.identity(t, change("email", "")),
		"Google's, but not of the sign-in": g.identity(t, func(header, claims map[string]any) {
			header["alg"], claims["iss"] = "RS256", "https://accounts.google.com"
		}),
	}
	for name, token := range tokens {
		*identity = token
		for _, form := range []url.Values{nil, {"verb": {"pause"}, "why": {"x"}}} {
			address := base + "/"
			if form != nil {
				address = base + "/orders/demo/llama"
			}
			if status, body := ask(t, browser, address, form); status != http.StatusForbidden || !strings.Contains(body, "through Google's sign-in") || strings.Contains(body, "llama") {
				t.Errorf("%s: %d %q", name, status, body)
			}
		}
	}
	*identity = g.identity(t, nil)
	if status, body := ask(t, browser, base+"/", nil); status != http.StatusOK || !strings.Contains(body, "llama") {
		t.Errorf("signed in: %d %q", status, body)
	}
	if sent := d.Sender.Sent(); len(sent) > 0 {
		t.Errorf("an order was published: %v", fleettest.Types(sent))
	}
}

// TestAViewerCannotOrder: there is no form, and a form from elsewhere is refused.
func TestAViewerCannotOrder(t *testing.T) {
	d, w := asking(t)
	base, browser, _, _ := served(t, d, nil)
	status, page := ask(t, browser, base+"/incident/"+w.ID+"/"+w.Incident.ID, nil)
	if forms := offered(t, page); status != http.StatusOK || len(forms) > 0 {
		t.Errorf("%d, forms %v", status, forms)
	}
	if status, body := ask(t, browser, base+"/orders/"+w.ID, url.Values{"verb": {"pause"}, "why": {"x"}}); status != http.StatusForbidden || !strings.Contains(body, "these pages only show") {
		t.Errorf("%d %q", status, body)
	}
}

// TestAFormIsOfOnePersonAndOneBrowser.
func TestAFormIsOfOnePersonAndOneBrowser(t *testing.T) {
	d, w := asking(t)
	base, browser, g, identity := served(t, d, d.Sender)
	address := base + "/incident/" + w.ID + "/" + w.Incident.ID
	_, page := ask(t, browser, address, nil)
	form := offered(t, page)[evidence.VerbPause]
	form.Set("why", "x")
	other, err := cookiejar.New(nil)
	d.Must(err)
	stranger := &http.Client{Jar: other, Transport: browser.Transport}
	if status, body := ask(t, stranger, base+form.Get("to"), form); status != http.StatusForbidden || !strings.Contains(body, "out of date") {
		t.Errorf("without the cookie: %d %q", status, body)
	}
	ask(t, stranger, address, nil)
	if status, body := ask(t, stranger, base+form.Get("to"), form); status != http.StatusForbidden || !strings.Contains(body, "of another page") {
		t.Errorf("with a cookie of its own: %d %q", status, body)
	}
	*identity = g.identity(t, func(_, claims map[string]any) { claims["email"] = "eve@example.com" })
	if status, body := ask(t, browser, base+form.Get("to"), form); status != http.StatusForbidden || !strings.Contains(body, "of another page") {
		t.Errorf("as another person: %d %q", status, body)
	}
	if sent := d.Sender.Sent(); len(sent) > 0 {
		t.Errorf("an order was published: %v", fleettest.Types(sent))
	}
}
