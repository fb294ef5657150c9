// Package events is Pitstop's vocabulary: the events between functions, the reports of the training side, and the reading of
// log entries. It decides nothing.
//
// Events are decoded loosely (a publisher may be newer than its reader and add fields) and validated always. A body with a
// schema above Schema is refused with ErrNewer, so that an older function leaves it to a newer one.
package events

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Schema is the version of the event bodies that this release writes. Readers accept it and every older one.
const Schema = 1

// MaxBytes is the largest body that is read, and the limit of Pub/Sub itself.
const MaxBytes = 10 << 20

// ErrNewer says that a newer release wrote a body: this release must not decide on it.
var ErrNewer = errors.New("written by a newer release")

// Event is one message from a function to another.
type Event interface {
	// EventType is the CloudEvents type, with its version.
	EventType() string
	// EventID is the same for every repetition of the same event.
	EventID() string
	// EventSubject names the workload or node concerned.
	EventSubject() string
	// Validate returns every fault in the event, joined.
	Validate() error
}

// The CloudEvents types.
const (
	TypeMaintenanceNotified = "pitstop.maintenance.notified.v1"
	TypeCheckpointRequested = "pitstop.checkpoint.requested.v1"
	TypeRecoveryRequested   = "pitstop.recovery.requested.v1"
	TypeRecreateRequested   = "pitstop.recreate.requested.v1"
	TypeIncidentClosed      = "pitstop.incident.closed.v1"
	TypeIncidentUpdated     = "pitstop.incident.updated.v1"
	TypeOperatorOrdered     = "pitstop.operator.ordered.v1"
)

// Incarnation is one life of a slice: a node deleted and created again under the same name is another life.
type Incarnation struct {
	// Zone is the zone of the node.
	Zone string `json:"zone,omitzero"`
	// ID is the provider's own identifier, unique per life.
	ID string `json:"id,omitzero"`
	// Created is the provider's creation time.
	Created time.Time `json:"created,omitzero"`
}

// Known reports whether the incarnation names a life at all.
func (i Incarnation) Known() bool { return i.ID != "" || !i.Created.IsZero() }

// Same reports whether both name the same life. Two unknown ones are not the same.
func (i Incarnation) Same(o Incarnation) bool {
	return i.Known() && i.Zone == o.Zone && i.ID == o.ID && i.Created.Equal(o.Created)
}

// Older reports whether a life began before another one, as far as both times are known.
func (i Incarnation) Older(o Incarnation) bool {
	return !i.Created.IsZero() && i.Created.Before(o.Created)
}

// String is the short form for people.
func (i Incarnation) String() string {
	switch {
	case !i.Known():
		return "unknown"
	case i.ID == "":
		return i.Zone + "@" + i.Created.UTC().Format(time.RFC3339)
	}
	return i.ID
}

// ID derives an identifier from its parts: the same parts always make the same one.
func ID(parts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(h[:16])
}

// Envelope is an event as it travels and as an outbox keeps it: the CloudEvents attributes and the JSON body.
type Envelope struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Source  string    `json:"source"`
	Subject string    `json:"subject,omitzero"`
	Time    time.Time `json:"time"`
	// Cause is the ID of the message that led to this one; Correlation is the incident, so one query finds its whole course.
	Cause       string `json:"cause,omitzero"`
	Correlation string `json:"correlation,omitzero"`
	Data        []byte `json:"data"`
}

// Wrap makes the envelope of an event. Source is the function that sends it.
func Wrap(e Event, source, cause, correlation string, at time.Time) (Envelope, error) {
	if err := e.Validate(); err != nil {
		return Envelope{}, fmt.Errorf("event %s: %w", e.EventType(), err)
	}
	data, err := json.Marshal(e)
	if err != nil {
		return Envelope{}, fmt.Errorf("event %s: %w", e.EventType(), err)
	}
	return Envelope{
		ID: e.EventID(), Type: e.EventType(), Source: source, Subject: e.EventSubject(), Time: at.UTC(),
		Cause: cause, Correlation: correlation, Data: data,
	}, nil
}

// Digest identifies the body of an event as Wrap writes it; empty for an event that cannot be written.
func Digest(e Event) string {
	data, err := json.Marshal(e)
	if err != nil {
		return ""
	}
	return digest(data)
}

func digest(body []byte) string {
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:8])
}

// decode reads a body into the named type. It refuses a newer schema first, because a newer body may not fit.
func decode(data []byte, name string, into interface{ Validate() error }) error {
	if len(data) > MaxBytes {
		return fmt.Errorf("%d bytes are more than the limit of %d", len(data), MaxBytes)
	}
	var v struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("not a %s: %w", name, plain(err))
	}
	if v.Schema > Schema {
		return fmt.Errorf("schema %d, this release reads up to %d: %w", v.Schema, Schema, ErrNewer)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("not a %s: %w", name, plain(err))
	}
	return into.Validate()
}

// faults collects every fault in an event, so that one look shows all.
type faults []error

func (f *faults) require(name, value string) {
	if value == "" {
		*f = append(*f, errors.New(name+" is missing"))
	}
}

func (f *faults) check(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

func (f *faults) schema(version int) {
	f.check(version >= 1, "schema %d: no release wrote that", version)
}

func (f *faults) err() error { return errors.Join(*f...) }
