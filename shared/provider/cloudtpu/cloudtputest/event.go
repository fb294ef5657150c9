package cloudtputest

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pitstop.internal/events"
	"pitstop.internal/shared/view"
)

// Kind is what an Event tells.
type Kind string

// The kinds of events.
const (
	// Called: a call of the API was answered, or its answer was lost. Status is the HTTP status; a refused call has its
	// Code and Error.
	Called Kind = "called"
	// Started and Ended are the ends of a long-running operation. An operation that failed has its Code and Error.
	Started Kind = "operation_started"
	Ended   Kind = "operation_ended"

	// What happens to a node. Cause says why, where anybody knows.
	Created   Kind = "node_created"
	Ready     Kind = "node_ready"
	Unhealthy Kind = "node_unhealthy"
	Stopped   Kind = "node_stopped" // it is being stopped or has stopped; State says which
	Lost      Kind = "node_lost"
	Deleting  Kind = "node_deleting"
	Gone      Kind = "node_gone"

	// Signalled: Google sent SIGTERM to the process that holds the TPU, which checkpoints itself before maintenance.
	Signalled Kind = "process_signalled"

	// Metadata: one key of a node's metadata has another value; Removed says that it has none any more.
	Metadata Kind = "metadata_changed"
	// Noticed: a node announces other maintenance than before. Notice is nil when it announces none any more.
	Noticed Kind = "notice_changed"
	// Queued: a queued resource is in another state.
	Queued Kind = "queued_resource_changed"
	// Supply: a place holds another number of slices from now on. Value is that number.
	Supply Kind = "capacity_changed"
)

// Event is one thing that happened in the API. Fields that do not belong to its kind are empty.
type Event struct {
	Time time.Time
	Kind Kind
	// Seq counts the events about one resource, from 1, and the calls of each method separately, so that a reading changes no
	// entry of the logs.
	Seq uint64

	Project, Zone, Node, QueuedResource string
	Incarnation                         events.Incarnation
	// Group is what the host names of the node's workers have in common: worker 2 is called Group-w-2.
	Group   string
	Workers int
	// Accelerator and Capacity are those of a node, of a creation that is called, and of a place.
	Accelerator string
	Capacity    events.Capacity
	// Legacy is a node of v1, or a call of v1: the machines of its workers are invisible.
	Legacy bool

	State, Health string
	Cause         events.Cause
	Notice        *events.Notice

	// Method is the short name of a call, DeleteNode; Principal is who made it.
	Method, Principal, RequestID string
	// Version is the version of the API that was called.
	Version string
	// Operation is the full name of an operation.
	Operation string
	Status    int
	// Code is a code of google.rpc.Status and Error its text.
	Code  int
	Error string

	Key, Value string
	Removed    bool
}

// Resource is the API's name of what the event is about.
func (e Event) Resource() string {
	switch name := "projects/" + e.Project + "/locations/" + e.Zone; {
	case e.Node != "":
		return name + "/nodes/" + e.Node
	case e.QueuedResource != "":
		return name + "/queuedResources/" + e.QueuedResource
	default:
		return name
	}
}

// Place is where a node is, or was to be created.
func (e Event) Place() view.Place {
	return view.Place{Zone: e.Zone, Accelerator: e.Accelerator, Capacity: e.Capacity}
}

// Received is how much later than it happened an entry is in the log; real ones take 0.3 to 1.1 s.
const Received = 600 * time.Millisecond

// AuditEntry is the entry of the admin activity log that an event leaves: two for each long-running operation, one when
// it starts and one when it ends, and one for a call that would have started one and was refused. It is nil for every
// other event: reads are not logged, and what Google does is no activity.
// https://cloud.google.com/tpu/docs/audit-logs
func AuditEntry(e Event) []byte {
	m, ok := methodNamed[e.Method]
	called := e.Version
	switch {
	case called != "":
	case e.Legacy:
		called = former
	default:
		called = version
	}
	if !ok || !m.mutating {
		return nil
	}
	op := map[string]any{"id": e.Operation, "producer": service}
	switch {
	case e.Kind == Started:
		op["first"] = true
	case e.Kind == Ended:
		op["last"] = true
	case e.Kind == Called && e.Code != 0:
		op = nil
	default:
		return nil
	}
	severity, status := "NOTICE", map[string]any{}
	if e.Code != 0 {
		severity, status["code"], status["message"] = "ERROR", e.Code, e.Error
	}
	method := "google.cloud.tpu." + called + ".Tpu." + e.Method
	stamp := e.Time.UTC()
	entry := map[string]any{
		"protoPayload": map[string]any{
			"@type":              "type.googleapis.com/google.cloud.audit.AuditLog",
			"status":             status,
			"authenticationInfo": map[string]any{"principalEmail": e.Principal},
			"serviceName":        service,
			"methodName":         method,
			"resourceName":       e.Resource(),
			"resourceLocation":   map[string]any{"currentLocations": []string{e.Zone}},
		},
		"insertId": events.ID("insert", e.Resource(), e.Method, strconv.FormatUint(e.Seq, 10), string(e.Kind), stamp.String())[:16],
		"resource": map[string]any{
			"type":   "audited_resource",
			"labels": map[string]any{"service": service, "method": method, "project_id": e.Project},
		},
		"timestamp":        stamp.Format(time.RFC3339Nano),
		"receiveTimestamp": stamp.Add(Received).Format(time.RFC3339Nano),
		"severity":         severity,
		"logName":          "projects/" + e.Project + "/logs/cloudaudit.googleapis.com%2Factivity",
	}
	if op != nil {
		entry["operation"] = op
	}
	// A message may hold bytes that are no UTF-8, when a test injects such an error: the entry holds a stand-in for them.
	out, err := json.Marshal(entry, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("cloudtputest: audit entry: " + err.Error())
	}
	return out
}
