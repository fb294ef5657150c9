package events

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// pubsubMessage is a message of Pub/Sub as its own tools write it, alone or in the envelope of a pull or push.
// https://cloud.google.com/pubsub/docs/reference/rest/v1/PubsubMessage
type pubsubMessage struct {
	Data        jsontext.Value `json:"data"`
	MessageID   string         `json:"messageId"`
	PublishTime string         `json:"publishTime"`
	Attributes  struct {
		// These attributes are ours, and these GKE's. All are strings, but the tool that wrote the file may have changed their
		// type.
		Type            jsontext.Value `json:"ce-type"`
		TypeURL         jsontext.Value `json:"type_url"`
		Payload         jsontext.Value `json:"payload"`
		ProjectID       jsontext.Value `json:"project_id"`
		ClusterLocation jsontext.Value `json:"cluster_location"`
		ClusterName     jsontext.Value `json:"cluster_name"`
		// SinkTime is on every message of a log sink.
		SinkTime jsontext.Value `json:"logging.googleapis.com/timestamp"`
	} `json:"attributes"`
}

// content is the message's body: base64, as Pub/Sub writes it, or plain, as another tool wrote it.
func (m *pubsubMessage) content() []byte {
	s := text(m.Data)
	if s == "" {
		return m.Data
	}
	if raw, err := base64.StdEncoding.DecodeString(s); err == nil {
		return raw
	}
	return []byte(s)
}

// message reads an object that is not a log entry. A message of a log sink holds an entry. Two other sorts are known:
// patrol's notices, and GKE's notifications, whose payload is in the attributes.
func (l *logEntry) message(e *Entry, f *faults) (inner []byte) {
	e.Kind = KindForeign
	e.Ignored = "not a log entry: it has no logName"
	raw := l.raw
	if l.Message.Kind() == '{' {
		raw = l.Message
	} else if l.Attributes == nil {
		var several bool
		if raw, inner, several = wrapped(l.raw); several {
			e.Ignored = "several Pub/Sub messages at once: give them as an array"
		}
		if raw == nil {
			return inner
		}
	}
	var m pubsubMessage
	known := peek(raw, &m)
	body := m.content()
	e.ID, e.Time = m.MessageID, f.parse("publishTime", m.PublishTime)
	var sent struct {
		LogName string `json:"logName"`
	}
	switch a := &m.Attributes; {
	case known && strings.HasPrefix(text(a.TypeURL), "type.googleapis.com/google.container."):
		l.notified(e, &m)
	case known && text(a.Type) == TypeMaintenanceNotified:
		l.patrol(e, f, body)
	case known && peek(body, &sent) && sent.LogName != "":
		return body
	case known && len(a.SinkTime) > 0:
		e.Ignored = "a Pub/Sub message of a log sink whose data has no logName"
		if text(m.Data) == "" && m.Data.Kind() != '{' {
			e.Ignored = "a Pub/Sub message of a log sink without data"
		}
	case l.Attributes != nil || known && len(m.Data) > 0:
		e.PubSub = true
		e.Ignored = "a Pub/Sub message that no log sink sent"
	}
	return nil
}

// wrapped takes the message out of a CloudEvent in structured mode, or out of the answer to a pull with a single message. A CloudEvent of
// Eventarc has the entry itself in it.
// https://cloud.google.com/eventarc/docs/cloudevents
func wrapped(raw []byte) (message, entry []byte, several bool) {
	var event struct {
		Data jsontext.Value `json:"data"`
	}
	var data struct {
		Message jsontext.Value `json:"message"`
		LogName string         `json:"logName"`
	}
	if peek(raw, &event) && event.Data.Kind() == '{' && peek(event.Data, &data) {
		switch {
		case data.LogName != "":
			return nil, event.Data, false
		case data.Message.Kind() == '{':
			return data.Message, nil, false
		}
	}
	var pulled struct {
		Received few[struct {
			Message jsontext.Value `json:"message"`
		}] `json:"receivedMessages"`
	}
	if !peek(raw, &pulled) || pulled.Received.count == 0 {
		return nil, nil, false
	}
	if pulled.Received.count > 1 {
		return nil, nil, true
	}
	return pulled.Received.first[0].Message, nil, false
}

func (l *logEntry) notified(e *Entry, m *pubsubMessage) {
	n := notification{}
	if !peek([]byte(loose(m.Attributes.Payload)), &n) {
		n = notification{}
	}
	n.Type = text(m.Attributes.TypeURL)
	c, says := n.cluster()
	l.inCluster(e, RankUser, c, says)
	e.PubSub = true
	e.Subject = Subject{
		Project: loose(m.Attributes.ProjectID), Zone: text(m.Attributes.ClusterLocation), Cluster: text(m.Attributes.ClusterName),
	}
	n.about(&e.Subject)
}

// patrol reads a notice that patrol found in the API.
func (l *logEntry) patrol(e *Entry, f *faults, body []byte) {
	e.Kind, e.PubSub, e.Ignored = KindNotice, true, ""
	n, err := DecodeMaintenanceNotified(body)
	switch {
	case errors.Is(err, ErrNewer):
		e.Ignored = "a notice of patrol from a newer release"
	case err != nil:
		*f = append(*f, err)
	}
	e.Rank, e.Cause, e.Notice = RankReading, CauseMaintenance, n.Notice
	e.Subject = Subject{Project: n.Project, Zone: n.Incarnation.Zone, Node: n.Node}
	if !n.Read.IsZero() {
		e.Time = n.Read
	}
}
