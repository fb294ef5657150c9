package orders

import (
	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// Message is an order as it travels from the console to the function that carries it out.
func (o Order) Message() events.OperatorOrdered {
	return events.OperatorOrdered{
		Schema: events.Schema, ID: o.ID, Workload: o.Workload, Verb: string(o.Verb), Incident: o.Incident, Action: o.Action, By: o.By, Why: o.Why, At: o.At,
	}
}

// FromMessage is the order of a message.
func FromMessage(e events.OperatorOrdered) Order {
	return Order{
		Word: evidence.Word{By: e.By, Why: e.Why, ID: e.ID}, Verb: evidence.Verb(e.Verb), Workload: e.Workload, Incident: e.Incident, Action: e.Action, At: e.At,
	}
}
