package page

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/orders"
	"pitstop.internal/shared/view"
)

// Orders let people tell Pitstop something on the pages.
type Orders struct {
	// Who is the person who asks.
	Who func(r *http.Request) (string, error)
	// Give carries out an order, or sees to it. Its error is an orders.RefusedError where the order is not possible.
	Give func(ctx context.Context, o orders.Order) error
	// Done says what has become of an order that was given.
	Done string
	// Key signs the forms where one process serves the pages. Without it several may, and each browser keeps a key of its own in a cookie.
	Key []byte
}

// Forms are the orders that whoever reads a page may give now about a workload.
type Forms struct {
	Workload, Who, Token string
	Offers               []orders.Offer
	// Said says what has become of the order before. Last are the orders that the record has, the newest first.
	Said string
	Last []view.Spoken
}

// refusal is the page that says why an order was not taken.
type refusal struct {
	Frame
	Why, Back string
}

const (
	// keyCookie is where a browser keeps the key of its forms. By its name it comes from this very host, and over TLS. It is sent along with a link
	// from elsewhere, as from a chat, so that the forms of other tabs stay valid; it is not sent along with a form from elsewhere.
	keyCookie = "__Host-pitstop-forms"
	// longestWhy bounds what a person writes, in characters, and longestForm the whole form, in bytes.
	longestWhy, longestForm = 500, 16 << 10
	// mostLast bounds how many of the last orders a page shows.
	mostLast = 5
)

type formKey struct{}

// keyed gives each request the key of its forms.
func (o *Orders) keyed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := o.Key
		if key == nil {
			var err error
			if key, err = cookieKey(w, r); err != nil {
				http.Error(w, "this page is out of date: open it again, and then send the form", http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), formKey{}, key)))
	})
}

// cookieKey is the key that the browser keeps. One that has none yet gets one with the next page; a form without one is of no page.
func cookieKey(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if c, err := r.Cookie(keyCookie); err == nil && len(c.Value) == len(rand.Text()) {
		return []byte(c.Value), nil
	}
	if r.Method == http.MethodPost {
		return nil, errors.New("a form without the cookie of its page")
	}
	key := rand.Text()
	http.SetCookie(w, &http.Cookie{Name: keyCookie, Value: key, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	return []byte(key), nil
}

// token is what a form of this page carries for this person. Nobody else can make it.
func token(r *http.Request, who string) string {
	key, _ := r.Context().Value(formKey{}).([]byte) // without a key there is no form
	m := hmac.New(sha256.New, key)
	m.Write([]byte(who))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// forms are those about a workload; nil where the pages only show.
func (s Site) forms(r *http.Request, workload string, w incident.Workload, now time.Time) *Forms {
	if s.Orders == nil {
		return nil
	}
	who, err := s.Orders.Who(r)
	if err != nil {
		return nil
	}
	f := &Forms{Workload: workload, Who: who, Token: token(r, who), Offers: orders.Offers(w, now), Last: slices.Clone(w.Shown(now).Orders)}
	slices.Reverse(f.Last)
	f.Last = f.Last[:min(len(f.Last), mostLast)]
	switch verb := evidence.Verb(r.URL.Query().Get("given")); verb { // whatever else a link says is not shown
	case evidence.VerbApprove, evidence.VerbCancel, evidence.VerbRetry, evidence.VerbPause, evidence.VerbResume:
		f.Said = string(verb) + ": " + s.Orders.Done
	default:
	}
	return f
}

// order takes an order, and leads back to the page that it came from.
func (s Site) order(w http.ResponseWriter, r *http.Request) {
	if s.Orders == nil {
		http.Error(w, "these pages only show: give orders on the operators' page, or with pitstop approve, cancel, retry, pause and resume", http.StatusForbidden)
		return
	}
	who, err := s.Orders.Who(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, longestForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	if !hmac.Equal([]byte(r.PostForm.Get("token")), []byte(token(r, who))) {
		http.Error(w, "this form is out of date, or of another page: open the page again, and then send it", http.StatusForbidden)
		return
	}
	why := strings.TrimSpace(r.PostForm.Get("why"))
	if why == "" || !utf8.ValidString(why) || utf8.RuneCountInString(why) > longestWhy {
		http.Error(w, "say why, in up to 500 characters: the reason stays in the record beside your name", http.StatusBadRequest)
		return
	}
	o := orders.Order{
		Word: evidence.Word{By: who, Why: why, ID: rand.Text()}, Verb: evidence.Verb(r.PostForm.Get("verb")), Workload: r.PathValue("project") + "/" + r.PathValue("name"),
		Incident: r.PostForm.Get("incident"), Action: events.Action(r.PostForm.Get("action")), At: s.Now(),
	}
	err = s.Orders.Give(r.Context(), o)
	var refused orders.RefusedError
	switch {
	case errors.As(err, &refused):
		s.refuse(w, o, http.StatusConflict, refused.Error())
	case errors.Is(err, ledger.ErrNotFound):
		s.refuse(w, o, http.StatusNotFound, "there is no workload "+o.Workload)
	case err != nil:
		s.Log.ErrorContext(r.Context(), "order not given", "workload", o.Workload, "verb", string(o.Verb), "error", err.Error())
		s.refuse(w, o, http.StatusInternalServerError, err.Error())
	default:
		s.Log.InfoContext(r.Context(), "order given", "workload", o.Workload, "verb", string(o.Verb), "incident", o.Incident, "by", who, "order", o.ID)
		http.Redirect(w, r, backTo(o), http.StatusSeeOther)
	}
}

// refuse says why an order was not taken, and leads back to the page of the workload as it is now.
func (s Site) refuse(w http.ResponseWriter, o orders.Order, status int, why string) {
	var out bytes.Buffer
	q := url.Values{"workload": {o.Workload}}
	if err := render(&out, "refusal", refusal{Frame{Title: "Not done", At: s.Now()}, why, "/incidents?" + q.Encode()}); err != nil {
		http.Error(w, "not done: "+why, status)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) //nolint:errcheck // the reader has gone
}

// backTo is the page that shows what has become of an order.
func backTo(o orders.Order) string {
	q := url.Values{"given": {string(o.Verb)}}
	if o.Incident == "" {
		q.Set("workload", o.Workload)
		return "/incidents?" + q.Encode()
	}
	return incidentLink(o.Workload, o.Incident) + "?" + q.Encode()
}
