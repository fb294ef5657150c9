package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
)

// PhaseWaits is the phase of an update that tells of a long wait while no incident is open. No incident has it.
const PhaseWaits Phase = "waiting"

// Line is one line of an incident's story. Its time is by the clock of the function that wrote it.
type Line struct {
	At   time.Time `json:"at"`
	Kind LineKind  `json:"kind"`
	Text string    `json:"text"`
	// Reason says why; Source is the ID of the log entry or message behind the line, and Logged says that it is an entry of Cloud Logging.
	Reason string `json:"reason,omitzero"`
	Source string `json:"source,omitzero"`
	Logged bool   `json:"logged,omitzero"`
	// Code is the reason of a refusal, a hold or an end, in one word.
	Code  reason.Code `json:"code,omitzero"`
	Phase Phase       `json:"phase"`
}

// Trouble is one thing that went wrong within an incident, charged separately.
type Trouble struct {
	Cause events.Cause `json:"cause"`
	Slice string       `json:"slice,omitzero"`
	At    time.Time    `json:"at"`
	Text  string       `json:"text,omitzero"`
	// Life is the provider's ID of the slice's life that the trouble struck.
	Life string `json:"life,omitzero"`
	// Announced says that it has not happened yet.
	Announced bool `json:"announced,omitzero"`
	// Proven says that the API or an audit log showed the trouble, not the training side alone.
	Proven bool `json:"proven,omitzero"`
	// Claimed says that only lines that users can write tell of the trouble.
	Claimed bool `json:"claimed,omitzero"`
}

// Refusal is a place that has refused a slice since a time, Tries times and last at At, and until when Pitstop does not ask it again.
type Refusal struct {
	Place
	Since time.Time `json:"since"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
	Tries int       `json:"tries"`
	// Never says that the zone cannot give this slice at all.
	Never bool        `json:"never,omitzero"`
	Text  string      `json:"text"`
	Code  reason.Code `json:"code,omitzero"`
}

// Call is one call by Pitstop that changes something outside: in the provider's API, or in a bucket. It is recorded before it is
// made, with the intent, and completed by its answer. Its content is not kept.
type Call struct {
	// At is when the intent was stored: no call came before.
	At time.Time `json:"at"`
	// Function makes the call of this method on this resource, each by its own name: recreate, CreateNode,
	// projects/P/locations/Z/nodes/N.
	Function string `json:"function"`
	Method   string `json:"method"`
	Resource string `json:"resource"`
	// Accelerator is the shape that a creation requests, where the owner ordered another one.
	Accelerator string `json:"accelerator,omitzero"`
	// RequestID is the ID of the request; creations and deletions carry it to the provider. Epoch, Action and Slice name the
	// request.
	RequestID string        `json:"request_id,omitzero"`
	Epoch     int64         `json:"epoch"`
	Action    events.Action `json:"action"`
	Slice     string        `json:"slice,omitzero"`
	// Again counts the later deliveries that began the call once more. Each of them reads the state before it calls.
	Again int `json:"again,omitzero"`
	// Answered is when its outcome was stored; zero while the outcome is not known. Operation names the provider's operation that
	// followed.
	Answered  time.Time `json:"answered,omitzero"`
	Operation string    `json:"operation,omitzero"`
	// Code says why the call, or its operation, failed, or why it was not made; empty for an accepted call.
	Code    reason.Code `json:"code,omitzero"`
	NotMade bool        `json:"not_made,omitzero"`
	// Folded counts the later calls like this one that it stands for, the last of them at Until.
	Folded int       `json:"folded,omitzero"`
	Until  time.Time `json:"until,omitzero"`
}

// What is the call for people: method and resource, and the shape of a creation where the owner ordered another one.
func (c Call) What() string {
	if c.Accelerator == "" {
		return c.Method + " " + c.Resource
	}
	return c.Method + " " + c.Resource + " as " + c.Accelerator
}

// Came is what came of the call.
func (c Call) Came() string {
	text := "accepted"
	switch {
	case c.NotMade:
		text = "not made"
	case c.Answered.IsZero():
		text = "its result is not known"
	case c.Operation != "" && c.Code != "":
		text = "accepted, then its operation failed"
	case c.Code != "":
		text = "refused"
	}
	if c.Folded > 0 {
		text += fmt.Sprintf(", and %d more times until %s", c.Folded, c.Until.UTC().Format("Jan 2 15:04:05"))
	}
	return text
}

// HasManyCalls reports whether the calls are too many to be shown each, unless somebody asks.
func (in Incident) HasManyCalls() bool {
	const most = 8
	return len(in.Calls)+in.CallsLeftOut > most
}

// CallsText says how many calls of each method there were, and how many of them failed.
func (in Incident) CallsText() string {
	var methods, parts []string
	made, failed := map[string]int{}, map[string]int{}
	for _, c := range in.Calls {
		if !slices.Contains(methods, c.Method) {
			methods = append(methods, c.Method)
		}
		made[c.Method] += 1 + c.Folded
		if c.Code != "" {
			failed[c.Method] += 1 + c.Folded
		}
	}
	for _, m := range methods {
		part := events.Number(int64(made[m])) + " " + m
		if n := failed[m]; n > 0 {
			part += fmt.Sprintf(" (%s in vain)", events.Number(int64(n)))
		}
		parts = append(parts, part)
	}
	if n := in.CallsLeftOut; n > 0 {
		parts = append(parts, events.Number(int64(n))+" that are not stored")
	}
	return strings.Join(parts, ", ")
}

// Spoken is an order that a person gave, as the workload keeps it.
type Spoken struct {
	evidence.Word
	At   time.Time     `json:"at"`
	Verb evidence.Verb `json:"verb"`
	// Incident is the incident that was open then; Text is the order's content, where the verb alone does not give it.
	Incident string `json:"incident,omitzero"`
	Text     string `json:"text,omitzero"`
}
