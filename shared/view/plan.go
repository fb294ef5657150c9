package view

import (
	"cmp"
	"path"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
)

// Plan says what would follow from the present knowledge. It takes the decisions of Advance one after the other, as if every call
// did its work and every wait ran to its end. Nothing of it is stored or sent.
type Plan struct {
	// Calls are in the order of the calls, and Decisions in the order of the decisions.
	Calls     []Planned `json:"calls,omitempty"`
	Decisions []Line    `json:"decisions"`
	// Phase is the phase that the incident would reach; Outcome, Reason and Advice describe the end that it would have. Where
	// nothing would follow, the reason says why.
	Phase   Phase   `json:"phase,omitzero"`
	Outcome Outcome `json:"outcome,omitzero"`
	Reason  string  `json:"reason,omitzero"`
	Advice  string  `json:"advice,omitzero"`
}

// String is the plan in a line.
func (p Plan) String() string {
	var parts []string
	for _, l := range p.Decisions {
		parts = append(parts, l.Text)
	}
	if n := len(p.Decisions); n > 0 && p.Phase == Approving {
		parts[n-1] += " (" + p.Decisions[n-1].Reason + ")"
	}
	if p.Outcome != "" {
		end := strings.TrimSuffix(string(p.Outcome)+": "+p.Reason, ": ")
		if p.Advice != "" {
			end += "; you: " + p.Advice
		}
		parts = append(parts, end)
	}
	return cmp.Or(strings.Join(parts, "; then "), strings.TrimSuffix("nothing: "+p.Reason, ": "))
}

// Planned is a call that would be made.
type Planned struct {
	Function string        `json:"function"`
	Method   string        `json:"method"`
	Resource string        `json:"resource"`
	Action   events.Action `json:"action"`
	// Slice is the slice to create, or the first of those that are created together.
	Slice string `json:"slice,omitzero"`
	// Switch is the policy switch that has to allow the call.
	Switch policy.Switch `json:"switch,omitzero"`
	// When is the condition for the call, besides the end of the call before it.
	When string `json:"when,omitzero"`
	// Zones are the zones that a creation asks, one after the other, until one gives the slice; Resource names the first.
	Zones []ZoneFit `json:"zones,omitempty"`
}

// ZoneFit says whether the order of a slice fits a zone.
type ZoneFit struct {
	Place
	// AfterSeconds is for how long the places before it must have refused.
	AfterSeconds float64 `json:"after_seconds,omitzero"`
	// Checked says that the specification was compared with the zone. Code and Text say why the zone is not asked.
	Checked bool        `json:"checked,omitzero"`
	Code    reason.Code `json:"code,omitzero"`
	Text    string      `json:"text,omitzero"`
}

// String is the call for people: method, resource, and the order in which zones are asked.
func (c Planned) String() string {
	text := c.Method + " " + c.Resource
	if len(c.Zones) > 0 && (len(c.Zones) > 1 || c.Zones[0].Code != "" || c.Zones[0].Place != Place{Zone: c.Zones[0].Zone}) {
		var zones []string
		for _, z := range c.Zones {
			at := z.Place.String()
			if z.AfterSeconds > 0 {
				at += " after " + events.Span(time.Duration(z.AfterSeconds*float64(time.Second)))
			}
			switch {
			case z.Code != "":
				zones = append(zones, at+" is not asked ("+z.Text+")")
			case z.Text != "":
				zones = append(zones, at+" ("+z.Text+")")
			case !z.Checked:
				zones = append(zones, at+" (if the order fits)")
			default:
				zones = append(zones, at)
			}
		}
		text += ", zone after zone: " + strings.Join(zones, ", ")
	}
	if c.When != "" {
		text += ", " + c.When
	}
	if c.Switch != "" {
		text += " (" + string(c.Switch) + ")"
	}
	return text
}

// done is the call as one that was made, in short; empty for a call that changes nothing.
func (c Planned) done() string {
	name := cmp.Or(c.Slice, path.Base(c.Resource))
	switch c.Action {
	case events.ActionSave:
		return "asked the training to save"
	case events.ActionMaintain:
		return "begun the maintenance of " + name
	case events.ActionDelete:
		return "deleted " + name
	case events.ActionCreate:
		if len(c.Zones) > 0 {
			name += " in " + c.Zones[0].String()
		}
		return "created " + name
	case events.ActionStart:
		return "started " + name
	case events.ActionAdmit:
		return "let the training run there"
	case events.ActionRestart:
		return "asked the crew for another attempt"
	case events.ActionVerify, events.ActionHear:
	}
	return ""
}

// LeftZone is a zone that is asked after the others, because it has preempted the workload twice within an hour.
type LeftZone struct {
	Zone  string    `json:"zone"`
	Until time.Time `json:"until"`
}

// String says so of the zone for people, and Words without its name.
func (z LeftZone) String() string { return z.Zone + " is " + z.Words() }

// Words say what becomes of the zone, and why.
func (z LeftZone) Words() string {
	return "asked after the others until " + z.Until.UTC().Format("2006-01-02 15:04 UTC") + ": it preempted twice within an hour"
}

// Place is where a slice may be created.
type Place struct {
	Zone string `json:"zone"`
	// Accelerator is another shape, and Capacity another capacity, than its owner ordered; empty means as ordered.
	Accelerator string          `json:"accelerator,omitzero"`
	Capacity    events.Capacity `json:"capacity,omitzero"`
}

// Kind is what is another one there than its owner ordered, for people.
func (p Place) Kind() string {
	if p.Accelerator == "" {
		return p.Capacity.Words()
	}
	return strings.TrimSpace(p.Capacity.Words() + " as " + p.Accelerator)
}

// String is the place for people.
func (p Place) String() string {
	return strings.TrimSpace(p.Zone + " " + p.Kind())
}
