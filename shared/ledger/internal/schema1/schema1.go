// Package schema1 reads what the release before has written: documents of schema 1.
package schema1

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// Unmarshal reads the document of a workload.
func Unmarshal(document []byte, w *incident.Workload, opts ...json.Options) error {
	var old workload
	if err := json.Unmarshal(document, &old, opts...); err != nil {
		return err
	}
	*w = old.Workload
	w.Schema, w.Slices = incident.Schema, make([]incident.Slot, len(old.Slices))
	labelled := slices.ContainsFunc(old.Slices, func(s slice) bool { return s.Label != "" })
	for i := range old.Slices {
		w.Slices[i] = old.Slices[i].slot()
		if !labelled { // an early document has the workload's alone
			w.Slices[i].Label = w.Label
		}
	}
	if in := old.Incident; in != nil {
		w.Incident, w.Effects = &in.Incident, in.Tasks
		w.Incident.FromPhase()
		w.Incident.Hearing = !in.HearBy.IsZero()
		for i := range w.Effects {
			w.Effects[i].Maker = in.ID
		}
	}
	for _, n := range old.Notices {
		if s := w.Slice(n.Slice); s != nil && s.Incarnation.Same(n.Incarnation) {
			s.Notice = n.Notice
		}
	}
	return nil
}

// workload is a workload of that release: what is known of a life stands on its slice.
type workload struct {
	incident.Workload
	Slices   []slice       `json:"slices"`
	Notices  []notice      `json:"notices"`
	Incident *openIncident `json:"incident"`
}

// openIncident is an incident that is open. What it wants, and until when it waits for a verdict, stands in it.
type openIncident struct {
	incident.Incident
	Tasks  []incident.Effect `json:"tasks"`
	HearBy time.Time         `json:"hear_by"`
}

// notice is announced maintenance; it names its life.
type notice struct {
	Slice       string             `json:"slice"`
	Incarnation events.Incarnation `json:"incarnation"`
	incident.Notice
}

// slice is a slice with the facts of its life, and with the lives that it names.
type slice struct {
	Name           string             `json:"name"`
	Zone           string             `json:"zone"`
	QueuedResource string             `json:"queued_resource,omitzero"`
	Legacy         bool               `json:"legacy,omitzero"`
	Accelerator    string             `json:"accelerator,omitzero"`
	Workers        int                `json:"workers,omitzero"`
	Chips          int                `json:"chips,omitzero"`
	Spot           bool               `json:"spot,omitzero"`
	Spec           string             `json:"spec,omitzero"`
	SpecZone       string             `json:"spec_zone,omitzero"`
	Own            incident.Order     `json:"own,omitzero"`
	Label          string             `json:"label,omitzero"`
	Account        string             `json:"account,omitzero"`
	Claims         string             `json:"claims,omitzero"`
	Bare           bool               `json:"bare,omitzero"`
	Group          string             `json:"group,omitzero"`
	Asked          bool               `json:"asked,omitzero"`
	Abuse          bool               `json:"abuse,omitzero"`
	AbuseAt        time.Time          `json:"abuse_at,omitzero"`
	AbuseTold      bool               `json:"abuse_told,omitzero"`
	Incarnation    events.Incarnation `json:"incarnation,omitzero"`
	Admitted       events.Incarnation `json:"admitted,omitzero"`
	Lease          int                `json:"lease,omitzero"`
	Condition      incident.Condition `json:"condition"`
	State          string             `json:"state,omitzero"`
	Since          time.Time          `json:"since,omitzero"`
	Used           time.Time          `json:"used,omitzero"`
	Stop           incident.Stop      `json:"stop,omitzero"`
	Heard          incident.Heard     `json:"heard,omitzero"`
	Told           events.Incarnation `json:"told,omitzero"`
	Discarded      events.Incarnation `json:"discarded,omitzero"`
	DiscardBy      time.Time          `json:"discard_by,omitzero"`
	Unused         bool               `json:"unused,omitzero"`
	Moved          bool               `json:"moved,omitzero"`
	Left           bool               `json:"left,omitzero"`
	Until          time.Time          `json:"until,omitzero"`
	Made           string             `json:"made,omitzero"`
	Ordered        time.Time          `json:"ordered,omitzero"`
	Replace        bool               `json:"replace,omitzero"`
	Released       time.Time          `json:"released,omitzero"`
}

// slot is the slice as this release has it.
func (s slice) slot() incident.Slot {
	next := incident.Slot{Name: s.Name, Order: s.Own, ToReplace: s.Replace, Life: incident.Life{
		Incarnation: s.Incarnation, Zone: s.Zone, SpecZone: s.SpecZone, Hosts: s.Group, HostsAsked: s.Asked,
		Facts: incident.Facts{
			Group: s.QueuedResource, Legacy: s.Legacy, Accelerator: s.Accelerator, Workers: s.Workers, Chips: s.Chips,
			Reclaimable: s.Spot, Spec: s.Spec, Bare: s.Bare, Label: s.Label, Account: s.Account, Claims: s.Claims,
		},
		Condition: s.Condition, State: s.State, Since: s.Since, Used: s.Used, Stop: s.Stop, Heard: s.Heard,
		Abuse: incident.Abuse{Suspected: s.Abuse, At: s.AbuseAt, Reported: s.AbuseTold},
		Maker: s.Made, Ordered: s.Ordered, NeverUsable: s.Unused, Leased: s.Lease,
		End: incident.End{
			Released: s.Released, Reported: s.Told.Same(s.Incarnation), Discarded: s.Discarded.Same(s.Incarnation), DiscardBy: s.DiscardBy,
		},
	}}
	switch {
	case s.Admitted.Same(s.Incarnation):
		next.Admission = incident.Admitted
	case s.Moved:
		next.Admission = incident.AwaitsAdmission
	case s.Left:
		next.Admission = incident.LeftToPerson
	}
	before := incident.Life{End: incident.End{SilentBy: s.Until}}
	if s.Admitted.Known() && next.Admission != incident.Admitted {
		before.Incarnation, before.Zone, before.Admission = s.Admitted, s.Admitted.Zone, incident.Admitted
	}
	if before != (incident.Life{}) {
		next.Former = []incident.Life{before}
	}
	return next
}
