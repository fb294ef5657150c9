package events

import (
	"slices"
	"strconv"
	"time"
)

// Action is the kind of work that a request asks for.
type Action string

// The actions, with the request that carries each.
const (
	ActionSave     Action = "save"     // checkpoint: ask the training to save
	ActionVerify   Action = "verify"   // checkpoint: look whether a complete checkpoint is there
	ActionHear     Action = "hear"     // checkpoint: read the crew's verdict on the attempt that the lease names
	ActionMaintain Action = "maintain" // checkpoint: start the announced maintenance now
	ActionAdmit    Action = "admit"    // recovery: name the incarnations in which training may run
	ActionRestart  Action = "restart"  // recovery: ask the crew for a new attempt
	ActionDelete   Action = "delete"   // recreate: delete one slice
	ActionCreate   Action = "create"   // recreate: create one slice
	ActionStart    Action = "start"    // recovery: start one slice that was stopped
)

// Destructive reports whether the action can end a running machine or training; the brake counts these.
func (a Action) Destructive() bool {
	return a == ActionDelete || a == ActionMaintain
}

// Mutating reports whether the action changes anything outside the ledger; a pause holds these.
func (a Action) Mutating() bool { return a != ActionVerify && a != ActionHear && a != "" }

// Request is the common part of every request: the incident that asks, the action, and the fence that keeps the action to
// its target.
type Request struct {
	Schema int `json:"schema"`
	// Workload, Incident and Epoch are the fence: a request whose epoch is not the workload's current one is refused.
	Workload string `json:"workload"`
	Incident string `json:"incident"`
	Epoch    int64  `json:"epoch"`
	Action   Action `json:"action"`
	// Slice is the slice concerned; empty means all slices of the workload.
	Slice string `json:"slice,omitzero"`
	// Incarnation is the life of the slice that the decision is about; empty for a slice that does not exist yet.
	Incarnation Incarnation `json:"incarnation,omitzero"`
	// Attempt counts the tries of this action, from 1.
	Attempt int `json:"attempt"`
	// Expires is the time from which the request is refused, even if its fence is valid.
	Expires time.Time `json:"expires"`
	// Reason says why, for people.
	Reason string `json:"reason,omitzero"`
}

// Header returns the common part of any request.
func (r Request) Header() Request { return r }

// Pointer returns the part of the request that functions obey.
func (r Request) Pointer() Pointer {
	return Pointer{Workload: r.Workload, Incident: r.Incident, Epoch: r.Epoch, Action: r.Action, Slice: r.Slice}
}

// Pointer names one task of one incident. A function takes only this from the body of a request and reads the task from the
// ledger, because anybody who may publish on the topic can write the rest.
type Pointer struct {
	Workload string `json:"workload"`
	Incident string `json:"incident"`
	Epoch    int64  `json:"epoch"`
	Action   Action `json:"action"`
	Slice    string `json:"slice,omitzero"`
}

// Received is a request as it arrived.
type Received struct {
	Pointer
	// Body is the whole body. It is compared with the body that was sent, but not obeyed.
	Body []byte
}

// Digest identifies the body that arrived.
func (r Received) Digest() string { return digest(r.Body) }

// actionsOf lists the actions that a request of each type can ask for.
var actionsOf = map[string][]Action{
	TypeCheckpointRequested: {ActionSave, ActionVerify, ActionHear, ActionMaintain},
	TypeRecoveryRequested:   {ActionAdmit, ActionRestart, ActionStart},
	TypeRecreateRequested:   {ActionDelete, ActionCreate},
}

// IsRequest reports whether events of this type are requests.
func IsRequest(eventType string) bool { return actionsOf[eventType] != nil }

// DecodeRequest reads the pointer of a request of this type. The other fields may be missing or wrong.
func DecodeRequest(eventType string, data []byte) (Received, error) {
	p := pointerBody{eventType: eventType}
	if err := decode(data, eventType, &p); err != nil {
		return Received{}, err
	}
	return Received{Pointer: p.Pointer, Body: data}, nil
}

// pointerBody is the part of a body that DecodeRequest reads.
type pointerBody struct {
	Schema int `json:"schema"`
	Pointer
	eventType string
}

// Validate returns every fault in the pointer.
func (p pointerBody) Validate() error {
	var f faults
	f.schema(p.Schema)
	p.check(&f, p.eventType)
	return f.err()
}

func (p Pointer) check(f *faults, eventType string) {
	f.require("workload", p.Workload)
	f.require("incident", p.Incident)
	f.check(p.Epoch > 0, "epoch %d: an incident has at least 1", p.Epoch)
	actions := actionsOf[eventType]
	f.check(slices.Contains(actions, p.Action), "action %q is not one of %q", p.Action, actions)
}

// EventSubject is the workload.
func (r Request) EventSubject() string { return r.Workload }

func (r Request) id(eventType string) string {
	return ID(r.Workload, r.Incident, strconv.FormatInt(r.Epoch, 10), eventType, string(r.Action), r.Slice)
}

func (r Request) check(f *faults, eventType string) {
	f.schema(r.Schema)
	r.Pointer().check(f, eventType)
	f.check(r.Attempt > 0, "attempt %d: the first is 1", r.Attempt)
	f.check(!r.Expires.IsZero(), "expires is missing")
}

// SaveMode is the way to ask the training to save.
type SaveMode string

// Natural waits for the next periodic checkpoint where the crew knows that it comes in time, and asks as Signal does otherwise; Signal
// sends a signal to a process that handles it.
const (
	SaveNatural SaveMode = "natural"
	SaveSignal  SaveMode = "signal"
)

// CheckpointRequested asks for a save, for its verification, or for the start of announced maintenance. The functions
// maintenance, logevent and patrol publish it; checkpoint reacts. A repetition is harmless: the training side knows the save
// by SaveID, and the API knows the call by its request ID.
type CheckpointRequested struct {
	Request
	// SaveID names the save for the training side; it stays the same through every repetition.
	SaveID string   `json:"save_id,omitzero"`
	Mode   SaveMode `json:"mode,omitzero"`
	// By is the deadline of the save.
	By time.Time `json:"by,omitzero"`
	// A verified checkpoint must be newer than Since, and its step must be above MoreThan.
	Since    time.Time `json:"since,omitzero"`
	MoreThan int64     `json:"more_than,omitzero"`
	// Any says that a checkpoint of any step counts: the time alone decides.
	Any bool `json:"any,omitzero"`
	// Directory is where the checkpoints are: gs:// or file://.
	Directory string `json:"directory,omitzero"`
}

// EventType implements Event.
func (CheckpointRequested) EventType() string { return TypeCheckpointRequested }

// EventID implements Event.
func (e CheckpointRequested) EventID() string { return e.id(TypeCheckpointRequested) }

// Validate implements Event.
func (e CheckpointRequested) Validate() error {
	var f faults
	e.check(&f, TypeCheckpointRequested)
	if e.Action == ActionSave {
		f.require("save_id", e.SaveID)
		f.check(e.Mode == SaveNatural || e.Mode == SaveSignal, "mode %q is neither natural nor signal", e.Mode)
	}
	if e.Action == ActionVerify || e.Action == ActionHear {
		f.require("directory", e.Directory)
	}
	if e.Action == ActionMaintain {
		f.require("slice", e.Slice)
		f.check(e.Incarnation.Known(), "incarnation is missing")
	}
	return f.err()
}

// DecodeCheckpointRequested reads the body of a checkpoint request.
func DecodeCheckpointRequested(data []byte) (e CheckpointRequested, err error) {
	err = decode(data, TypeCheckpointRequested, &e)
	return e, err
}

// RecoveryRequested asks to bring training back on running slices. The functions logevent and patrol publish it; recovery
// reacts by writing the lease, or by starting a stopped slice. A repetition writes the same lease, and does not start a running slice.
type RecoveryRequested struct {
	Request
	// TrainingAttempt is the attempt that the lease will name.
	TrainingAttempt int `json:"training_attempt,omitzero"`
	// Admit is the incarnation of each slice in which training may run.
	Admit []Admission `json:"admit,omitempty"`
	// Directory holds the lease, next to the checkpoints; without a directory there is no lease.
	Directory string `json:"directory,omitzero"`
}

// Admission names the incarnation of a slice in which training may run.
type Admission struct {
	Slice       string      `json:"slice"`
	Incarnation Incarnation `json:"incarnation"`
	// Workers is the common part of the host names of the slice's workers, by which a crew recognizes its own slice.
	Workers string `json:"workers,omitzero"`
}

// EventType implements Event.
func (RecoveryRequested) EventType() string { return TypeRecoveryRequested }

// EventID implements Event.
func (e RecoveryRequested) EventID() string { return e.id(TypeRecoveryRequested) }

// Validate implements Event.
func (e RecoveryRequested) Validate() error {
	var f faults
	e.check(&f, TypeRecoveryRequested)
	if e.Action == ActionStart {
		f.require("slice", e.Slice)
		f.check(e.Incarnation.Known(), "incarnation is missing")
		return f.err()
	}
	f.check(e.TrainingAttempt > 0, "training_attempt %d: the first is 1", e.TrainingAttempt)
	f.check(len(e.Admit) > 0, "admit names no incarnation")
	for _, a := range e.Admit {
		f.check(a.Slice != "" && a.Incarnation.Known(), "admit: slice %q has no incarnation", a.Slice)
	}
	return f.err()
}

// DecodeRecoveryRequested reads the body of a recovery request.
func DecodeRecoveryRequested(data []byte) (e RecoveryRequested, err error) {
	err = decode(data, TypeRecoveryRequested, &e)
	return e, err
}

// Capacity is what a slice is taken from.
type Capacity string

// The capacities. FlexStart is ordered in a queue, for a time that is known before.
const (
	OnDemand  Capacity = "on_demand"
	Reserved  Capacity = "reserved"
	Spot      Capacity = "spot"
	FlexStart Capacity = "flex_start"
)

// Words are the capacity for people.
func (c Capacity) Words() string {
	switch c {
	case OnDemand:
		return "on demand"
	case Spot:
		return "Spot"
	case FlexStart:
		return "flex-start"
	case Reserved:
	}
	return string(c)
}

// RecreateRequested asks to delete one slice, or all slices of one queued resource, or to create them from their stored
// specifications. The functions logevent and patrol publish it; recreate reacts. A repetition deletes no other slice and
// creates none twice.
type RecreateRequested struct {
	Request
	// Zone is the zone in which to delete or create.
	Zone string `json:"zone"`
	// Accelerator is the type to create, if it differs from the owner's order.
	Accelerator string `json:"accelerator,omitzero"`
	// Capacity is what it is taken from, if that differs from the owner's order.
	Capacity Capacity `json:"capacity,omitzero"`
	// Spec is the hash of the stored specification to create from.
	Spec string `json:"spec,omitzero"`
	// QueuedResource is the queued resource of the slice, if it has one. Ordered is the creation time of a queued resource that
	// has brought no slice yet, because then there is no life to name.
	QueuedResource string    `json:"queued_resource,omitzero"`
	Ordered        time.Time `json:"ordered,omitzero"`
	// With are the other slices of the queued resource, which are deleted and created with it.
	With []Member `json:"with,omitempty"`
}

// Member is one more slice of a queued resource that is deleted or created as a whole.
type Member struct {
	Slice string `json:"slice"`
	// Incarnation is the life that the decision is about, Spec the hash of the stored specification, as for the first slice.
	Incarnation Incarnation `json:"incarnation,omitzero"`
	Spec        string      `json:"spec,omitzero"`
}

// EventType implements Event.
func (RecreateRequested) EventType() string { return TypeRecreateRequested }

// EventID implements Event.
func (e RecreateRequested) EventID() string { return e.id(TypeRecreateRequested) }

// Validate implements Event.
func (e RecreateRequested) Validate() error {
	var f faults
	e.check(&f, TypeRecreateRequested)
	f.require("slice", e.Slice)
	f.require("zone", e.Zone)
	if e.Action == ActionDelete {
		f.check(e.Incarnation.Known() || e.QueuedResource != "" && !e.Ordered.IsZero(), "incarnation is missing")
	}
	if e.Action == ActionCreate {
		f.require("spec", e.Spec)
	}
	for _, m := range e.With {
		f.check(m.Slice != "" && (m.Spec != "" || e.Action != ActionCreate), "with: slice %q has no spec", m.Slice)
	}
	f.check(e.With == nil || e.QueuedResource != "", "with: only a queued resource holds several slices")
	return f.err()
}

// DecodeRecreateRequested reads the body of a recreate request.
func DecodeRecreateRequested(data []byte) (e RecreateRequested, err error) {
	err = decode(data, TypeRecreateRequested, &e)
	return e, err
}

// IncidentClosed says that an incident ended, or that a closed one got another cause. On this event the ledger archives the
// incident's record under the incident's ID, so a repetition rewrites the same record.
type IncidentClosed struct {
	Schema   int    `json:"schema"`
	Workload string `json:"workload"`
	Incident string `json:"incident"`
	Outcome  string `json:"outcome"`
	// Revision counts the causes given to this incident, from 1.
	Revision int `json:"revision"`
}

// EventType implements Event.
func (IncidentClosed) EventType() string { return TypeIncidentClosed }

// EventID implements Event.
func (e IncidentClosed) EventID() string {
	return ID(e.Workload, e.Incident, TypeIncidentClosed, strconv.Itoa(e.Revision))
}

// EventSubject implements Event.
func (e IncidentClosed) EventSubject() string { return e.Workload }

// Validate implements Event.
func (e IncidentClosed) Validate() error {
	var f faults
	f.schema(e.Schema)
	f.require("workload", e.Workload)
	f.require("incident", e.Incident)
	f.require("outcome", e.Outcome)
	f.check(e.Revision > 0, "revision %d: the first is 1", e.Revision)
	return f.err()
}
