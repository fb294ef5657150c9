package events

import (
	"fmt"
	"strconv"
	"time"
)

// IncidentUpdated describes the whole state of an incident. Every function that decides publishes it; notify reads the
// incident from the ledger and tells people its state there. It never holds metadata values. It also describes a long wait while no
// incident is open: then its phase is waiting, it has no cause, and each reminder has its own name in the place of an incident's.
type IncidentUpdated struct {
	Schema   int    `json:"schema"`
	Workload string `json:"workload"`
	Incident string `json:"incident"`
	// Number rises with every event of an incident: of two updates the one with the higher number is newer.
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	Opened time.Time `json:"opened"`
	Cause  Cause     `json:"cause"`
	// Policy is the name of the policy that decided; empty if the slice has no label.
	Policy string `json:"policy,omitzero"`
	// Slices are the affected slices, Chips all chips of the workload.
	Slices []Affected `json:"slices,omitempty"`
	Chips  int        `json:"chips,omitzero"`
	// Phase is its current phase; Asked is the action that a person has to approve.
	Phase string `json:"phase"`
	Asked Action `json:"asked,omitzero"`
	// Outcome is how it ended, and ConfirmedBy the proof that training goes on.
	Outcome     string `json:"outcome,omitzero"`
	ConfirmedBy string `json:"confirmed_by,omitzero"`
	// Code is the reason of an end other than resumed, in one word.
	Code string `json:"code,omitzero"`
	// Happened lists the troubles, in the order in which Pitstop learned of them.
	Happened []string `json:"happened,omitempty"`
	// Doing is the last decision, and Why its reason; Advice tells a person how to act.
	Doing  string `json:"doing,omitzero"`
	Why    string `json:"why,omitzero"`
	Advice string `json:"advice,omitzero"`
	// Cost is what it has cost so far.
	Cost Cost `json:"cost,omitzero"`
	// Waiting is since when Pitstop has waited for capacity, or a slice for its machines or its deletion, once the wait is long.
	Waiting time.Time `json:"waiting,omitzero"`
	// IdleChips are usable chips that stand idle while Pitstop waits for a person. ChipHourPrice is the policy's at the
	// opening, in dollars; 0 is unknown.
	IdleChips     int     `json:"idle_chips,omitzero"`
	ChipHourPrice float64 `json:"chip_hour_price,omitzero"`
	// Job is the state in the terms of Google's training service. Notify adds it; the update of a function that decides has none.
	Job JobTerms `json:"job,omitzero"`
}

// Cost is what an incident has cost by its end, or by now.
type Cost struct {
	// AwaySeconds is how long the training stood still. AgainSteps are the steps that it had to do again, and AgainSeconds how long they had
	// taken. AtLeast says that it was more than that, or goes on.
	AwaySeconds  float64 `json:"away_seconds"`
	AgainSteps   int64   `json:"again_steps,omitzero"`
	AgainSeconds float64 `json:"again_seconds,omitzero"`
	AtLeast      bool    `json:"at_least,omitzero"`
	// ChipHours are what the slices could have done in both times, whether their machines were there or not. Dollars are what those are worth, by
	// the policy's price at the opening; 0 where it names none.
	ChipHours float64 `json:"chip_hours"`
	Dollars   float64 `json:"dollars,omitzero"`
}

// Away is how long the training stood still.
func (c Cost) Away() time.Duration { return seconds(c.AwaySeconds) }

// Lost is how long the training stood still, with the time of the steps that it had to do again.
func (c Cost) Lost() time.Duration { return seconds(c.AwaySeconds + c.AgainSeconds) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Parts say it for people: how long the training was away, what it had to do again, and what the slices could have done meanwhile. There are none
// where it never stood still.
func (c Cost) Parts() (parts []string) {
	mark := ""
	if c.AtLeast {
		mark = ">= "
	}
	if c.AwaySeconds > 0 || c.AtLeast {
		parts = append(parts, "away "+mark+Span(c.Away()))
	}
	if c.AgainSteps > 0 {
		parts = append(parts, Number(c.AgainSteps)+" steps again, "+Span(seconds(c.AgainSeconds)))
	}
	if c.ChipHours > 0 {
		hours := mark + strconv.FormatFloat(c.ChipHours, 'f', 1, 64) + " chip-hours"
		if c.Dollars > 0 {
			hours += fmt.Sprintf(", $%.2f", c.Dollars)
		}
		parts = append(parts, hours)
	}
	return parts
}

// Affected is a slice with trouble.
type Affected struct {
	Name        string `json:"name"`
	Zone        string `json:"zone,omitzero"`
	Accelerator string `json:"accelerator,omitzero"`
	Spot        bool   `json:"spot,omitzero"`
}

// EventType implements Event.
func (IncidentUpdated) EventType() string { return TypeIncidentUpdated }

// EventID implements Event.
func (e IncidentUpdated) EventID() string {
	return ID(e.Workload, e.Incident, TypeIncidentUpdated, strconv.Itoa(e.Number), e.Step())
}

// EventSubject implements Event.
func (e IncidentUpdated) EventSubject() string { return e.Workload }

// Step names a state that is notified once in an incident: its end, the action that a person has to approve, or the phase.
func (e IncidentUpdated) Step() string {
	switch {
	case e.Outcome != "":
		return e.Outcome
	case e.Asked != "":
		return e.Phase + "/" + string(e.Asked)
	case !e.Waiting.IsZero():
		return e.Phase + "/waiting"
	}
	return e.Phase
}

// Validate implements Event.
func (e IncidentUpdated) Validate() error {
	var f faults
	f.schema(e.Schema)
	f.require("workload", e.Workload)
	f.require("incident", e.Incident)
	f.require("phase", e.Phase)
	f.check(e.Number > 0, "number %d: the first is 1", e.Number)
	f.check(!e.At.IsZero(), "at is missing")
	return f.err()
}

// IncidentPointer names an incident. Notify takes only this from the body of an update.
type IncidentPointer struct {
	Workload string `json:"workload"`
	Incident string `json:"incident"`
}

// DecodeUpdatePointer reads which incident an update is about. The other fields may be missing or wrong.
func DecodeUpdatePointer(data []byte) (IncidentPointer, error) {
	var p updatePointerBody
	err := decode(data, TypeIncidentUpdated, &p)
	return p.IncidentPointer, err
}

// updatePointerBody is the part of a body that DecodeUpdatePointer reads.
type updatePointerBody struct {
	Schema int `json:"schema"`
	IncidentPointer
}

// Validate returns every fault in the pointer.
func (p updatePointerBody) Validate() error {
	var f faults
	f.schema(p.Schema)
	f.require("workload", p.Workload)
	f.require("incident", p.Incident)
	return f.err()
}

// DecodeIncidentUpdated reads the body of an incident's update.
func DecodeIncidentUpdated(data []byte) (e IncidentUpdated, err error) {
	err = decode(data, TypeIncidentUpdated, &e)
	return e, err
}
