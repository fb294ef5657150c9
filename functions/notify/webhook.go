package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/shared/fault"
)

// Webhook posts to any program, signed. The headers webhook-id, webhook-timestamp and webhook-signature follow
// https://www.standardwebhooks.com, for which most languages have a library.
type Webhook struct {
	url    string
	key    []byte
	now    func() time.Time
	client *http.Client
}

// NewWebhook returns a target for a webhook. A secret that begins with whsec_ is base64 after that prefix; any other is
// taken as it is.
func NewWebhook(url, secret string, now func() time.Time) (*Webhook, error) {
	key := []byte(secret)
	if coded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(coded); err != nil {
			return nil, errors.New("WEBHOOK_SECRET is not base64 after whsec_")
		}
	}
	return &Webhook{url: url, key: key, now: now, client: newClient()}, nil
}

// Name implements Target.
func (*Webhook) Name() string { return "webhook" }

// Knows implements Target: a repetition has the same webhook-id, and each update in it the same id.
func (*Webhook) Knows() bool { return true }

// webhookBody is the body that a program gets. Times are RFC 3339, in UTC.
type webhookBody struct {
	Schema  int             `json:"schema"`
	ID      string          `json:"id"`
	Updates []webhookUpdate `json:"updates"`
}

// webhookUpdate is one step of one incident; events.IncidentUpdated documents its fields.
type webhookUpdate struct {
	ID          string                 `json:"id"`
	Step        string                 `json:"step"`
	Text        string                 `json:"text"`
	NeedsPerson bool                   `json:"needs_person"`
	Incident    events.IncidentUpdated `json:"incident"`
}

func webhook(m Message) webhookBody {
	b := webhookBody{Schema: events.Schema, ID: m.ID()}
	for _, u := range m.Updates {
		b.Updates = append(b.Updates, webhookUpdate{stepID(u), u.Step(), line(single(u).title), loud(u), u})
	}
	return b
}

// Send implements Target.
func (w *Webhook) Send(ctx context.Context, m Message) (thread string, err error) {
	body := webhook(m)
	data, err := json.Marshal(body)
	if err != nil {
		return "", fault.Permanent(err)
	}
	at := strconv.FormatInt(w.now().Unix(), 10)
	_, _, err = post(ctx, w.client, w.url, http.Header{
		"Webhook-Id": {body.ID}, "Webhook-Timestamp": {at}, "Webhook-Signature": {w.sign(body.ID, at, data)},
	}, data)
	return "", err
}

// sign is the signature of a body: HMAC-SHA256 over the ID, the time in seconds since 1970 and the body, joined by dots.
func (w *Webhook) sign(id, at string, body []byte) string {
	h := hmac.New(sha256.New, w.key)
	h.Write([]byte(id + "." + at + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}
