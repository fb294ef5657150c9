package trigger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
)

// TypeMessage is the CloudEvents type of a Pub/Sub message without one of Pitstop's events, such as one of a log sink. Its
// data is the message's own.
const TypeMessage = "google.cloud.pubsub.topic.v1.messagePublished"

// Delivery is Pub/Sub's description of the delivery of a message.
type Delivery struct {
	MessageID    string
	Subscription string
	OrderingKey  string
	// Attempt is the number of this delivery, 0 if Pub/Sub does not count.
	Attempt    int
	Published  time.Time
	Attributes map[string]string
	// Trace is the trace ID of the request.
	Trace string
}

// The attributes of a message that somebody has brought back from the dead letters: the person, and the reason.
const (
	RedrivenBy  = "pitstop-redriven-by"
	RedrivenWhy = "pitstop-redriven-why"
)

type deliveryKey struct{}

func withDelivery(ctx context.Context, d Delivery) context.Context {
	return context.WithValue(ctx, deliveryKey{}, d)
}

// FromContext returns the delivery that a handler was called for.
func FromContext(ctx context.Context) Delivery {
	d, _ := ctx.Value(deliveryKey{}).(Delivery)
	return d
}

// MessageID is the ID of the message that a handler was called for.
func MessageID(ctx context.Context) string { return FromContext(ctx).MessageID }

// push is the body of a push request.
// https://cloud.google.com/pubsub/docs/push#receive_push
type push struct {
	Message *struct {
		Data        []byte            `json:"data"`
		Attributes  map[string]string `json:"attributes"`
		MessageID   string            `json:"messageId"`
		PublishTime time.Time         `json:"publishTime"`
		OrderingKey string            `json:"orderingKey"`
	} `json:"message"`
	Subscription    string `json:"subscription"`
	DeliveryAttempt int    `json:"deliveryAttempt"`
}

// maxBody holds the largest message in base64, and its envelope.
const maxBody = events.MaxBytes*4/3 + 1<<20

var errTooLarge = errors.New("the body is larger than a Pub/Sub message can be")

// decode reads a request: the push body of Pub/Sub, or a CloudEvent in binary or structured form with one of Pitstop's
// events or a Pub/Sub message.
func decode(w http.ResponseWriter, r *http.Request) (cloudevents.Event, Delivery, error) {
	d := Delivery{Trace: trace(r.Header.Get("Traceparent"))}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return cloudevents.Event{}, d, errTooLarge
		}
		return cloudevents.Event{}, d, fmt.Errorf("body: %w", err)
	}
	if r.Header.Get("Ce-Id") == "" && !structured(r.Header) {
		return unwrap(body, d)
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	ce, err := cloudevents.NewEventFromHTTPRequest(r)
	if err != nil {
		return cloudevents.Event{}, d, fmt.Errorf("CloudEvent: %w", err)
	}
	if err := ce.Validate(); err != nil {
		return cloudevents.Event{}, d, fmt.Errorf("CloudEvent: %w", err)
	}
	if ce.Type() == TypeMessage {
		if len(ce.Data()) == 0 {
			return cloudevents.Event{}, d, errors.New("CloudEvent: it has no data, but should hold a Pub/Sub message")
		}
		return unwrap(ce.Data(), d)
	}
	d.MessageID, d.Published = ce.ID(), ce.Time()
	return *ce, d, nil
}

// structured reports whether the body is a whole CloudEvent. Media types are case-insensitive.
func structured(h http.Header) bool {
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), cloudevents.ApplicationCloudEventsJSON)
}

// unwrap takes the event out of a Pub/Sub message. One of Pitstop's events has its attributes in the message's.
func unwrap(body []byte, d Delivery) (cloudevents.Event, Delivery, error) {
	var p push
	if err := json.Unmarshal(body, &p); err != nil {
		return cloudevents.Event{}, d, fmt.Errorf("push body: %w", err)
	}
	m := p.Message
	if m == nil {
		return cloudevents.Event{}, d, errors.New("push body: it has no message")
	}
	d.MessageID, d.Subscription, d.OrderingKey = m.MessageID, p.Subscription, m.OrderingKey
	d.Attempt, d.Published, d.Attributes = p.DeliveryAttempt, m.PublishTime, m.Attributes
	ce := cloudevents.NewEvent()
	if t := m.Attributes["ce-type"]; t != "" {
		ce.SetType(t)
		ce.SetID(m.Attributes["ce-id"])
		ce.SetSource(m.Attributes["ce-source"])
		ce.SetSubject(m.Attributes["ce-subject"])
		if at, err := time.Parse(time.RFC3339Nano, m.Attributes["ce-time"]); err == nil {
			ce.SetTime(at)
		}
		for _, name := range []string{"causationid", "correlationid"} {
			if v := m.Attributes["ce-"+name]; v != "" {
				ce.SetExtension(name, v)
			}
		}
	} else {
		ce.SetType(TypeMessage)
		ce.SetID(m.MessageID)
		ce.SetSource("//pubsub.googleapis.com/" + p.Subscription)
		if !m.PublishTime.IsZero() {
			ce.SetTime(m.PublishTime)
		}
	}
	if err := ce.SetData(cloudevents.ApplicationJSON, m.Data); err != nil {
		return cloudevents.Event{}, d, fmt.Errorf("push body: %w", err)
	}
	if err := ce.Validate(); err != nil {
		return cloudevents.Event{}, d, fmt.Errorf("push body: attributes: %w", err)
	}
	return ce, d, nil
}

// trace is the trace ID of a W3C traceparent header.
func trace(parent string) string {
	parts := strings.Split(parent, "-")
	if len(parts) != 4 || len(parts[1]) != 32 {
		return ""
	}
	return parts[1]
}
