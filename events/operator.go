package events

import "time"

// OperatorOrdered is an order that a person gave on the console's pages. The operators' console publishes it, and may write nothing itself; the
// function order carries it out. A repetition is the same order: it has the same ID.
type OperatorOrdered struct {
	Schema int `json:"schema"`
	// ID tells it from every other order.
	ID       string `json:"id"`
	Workload string `json:"workload"`
	// Verb is the order in a word.
	Verb string `json:"verb"`
	// Incident is the one that the person saw open; empty without one. Action is the question that an approval answers.
	Incident string `json:"incident,omitzero"`
	Action   Action `json:"action,omitzero"`
	// By is who gave it, and Why is their reason.
	By  string    `json:"by"`
	Why string    `json:"why"`
	At  time.Time `json:"at"`
}

// EventType implements Event.
func (OperatorOrdered) EventType() string { return TypeOperatorOrdered }

// EventID implements Event.
func (e OperatorOrdered) EventID() string { return ID(e.Workload, TypeOperatorOrdered, e.ID) }

// EventSubject implements Event.
func (e OperatorOrdered) EventSubject() string { return e.Workload }

// Validate implements Event.
func (e OperatorOrdered) Validate() error {
	var f faults
	f.schema(e.Schema)
	f.require("id", e.ID)
	f.require("workload", e.Workload)
	f.require("verb", e.Verb)
	f.require("by", e.By)
	f.require("why", e.Why)
	f.check(!e.At.IsZero(), "at is missing")
	return f.err()
}

// DecodeOperatorOrdered reads the body of an order.
func DecodeOperatorOrdered(data []byte) (e OperatorOrdered, err error) {
	err = decode(data, TypeOperatorOrdered, &e)
	clean(&e) // a person wrote it
	return e, err
}
