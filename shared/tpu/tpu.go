// Package tpu is where slices come from. Provider is what the functions need of any such API; Cloud is the first one,
// the Cloud TPU API (nodes, alone or inside queued resources), and Both has the legacy TPU Nodes of its former version with
// them. Every error is classified once, here.
package tpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// ProviderName is what a workload's document calls the Cloud TPU API.
const ProviderName = "cloud-tpu"

// Ref names a slice.
type Ref struct {
	Project string
	Zone    string
	Name    string
	// QueuedResource is the one that holds the slice, if one does: it is deleted and created with it.
	QueuedResource string
	// Legacy is a TPU Node of the API's former version, and no TPU VM.
	Legacy bool
}

// String is the API's own name.
func (r Ref) String() string {
	return "projects/" + r.Project + "/locations/" + r.Zone + "/nodes/" + r.Name
}

// Provider is an API that slices come from. No method waits for a long-running operation; the name of the operation is
// returned instead. Errors are *Error.
type Provider interface {
	// Read reads one slice now. What the API does not know is no error: its condition is incident.Gone.
	Read(ctx context.Context, r Ref) (Slice, error)
	// List reads all slices of a zone, page by page.
	List(ctx context.Context, project, zone string) (Listing, error)
	// Zones lists the zones that may hold slices.
	Zones(ctx context.Context, project string) ([]string, error)
	// Create creates a slice from a stored specification, or several together, with labels added. The same request ID
	// creates once.
	Create(ctx context.Context, r Ref, spec []byte, labels map[string]string, requestID string) (operation string, err error)
	// Delete deletes a slice, and the queued resource that holds it. The same request ID deletes once.
	Delete(ctx context.Context, r Ref, requestID string) (operation string, err error)
	// Maintain starts the announced maintenance of slices now: of one, or of several that one queued resource holds.
	Maintain(ctx context.Context, slices []Ref) (operation string, err error)
	// Start starts a slice that was stopped.
	Start(ctx context.Context, r Ref) (operation string, err error)
	// SetMetadata sets one key of the slice's metadata and loses nobody else's.
	SetMetadata(ctx context.Context, r Ref, key, value string) error
	// Hosts reads the host names of the slice's workers; empty where there are none. Where nobody may read them, the error
	// is incident.Permission.
	Hosts(ctx context.Context, r Ref) ([]string, error)
	// Crews reads how the crews on the slice's workers are, as they wrote it last; empty where there are none. The error is as
	// for Hosts.
	Crews(ctx context.Context, r Ref) ([]events.CrewState, error)
	// Operations lists the operations of a zone that the provider still knows. With an error it lists those that could be read;
	// what is not among them may be running.
	Operations(ctx context.Context, project, zone string) ([]Operation, error)
}

// Slice is a reading of a slice.
type Slice struct {
	Ref
	// At is when it was read, by the clock of whoever had it read; unknown when zero.
	At          time.Time
	Condition   incident.Condition
	Incarnation events.Incarnation
	// State is the provider's own words: state, health, symptoms.
	State  string
	Labels map[string]string
	// Directory is the checkpoint directory that the slice's metadata names.
	Directory string
	// Account is the service account that its workers act as.
	Account        string
	Accelerator    string
	Workers, Chips int
	Spot           bool
	// Ordered is when the queued resource was created that holds the slice, or is to bring it, and With names the other
	// slices that it asks for.
	Ordered time.Time
	With    []string
	// Notice is announced maintenance, if any. NoticeUnread says that this could not be read.
	Notice       *events.Notice
	NoticeUnread bool
	Abuse        bool
	// Spec is the specification from which the slice can be created again, in canonical form, but for the Values of its metadata:
	// these may be secrets (start-up scripts), and are stored apart and never logged. SpecHash names both. ValuesSum tells
	// whether the values have changed, and is stored nowhere.
	Spec      []byte
	Values    map[string]string
	ValuesSum string
	SpecHash  string
	// Bare says that the specification has no start-up script.
	Bare bool
}

// Evidence is what the reading tells about its workload.
func (s Slice) Evidence(id string) incident.Read {
	return incident.Read{
		Origin: incident.Origin{ID: id, Time: s.At, Rank: events.RankReading},
		Slice:  s.Name, Zone: s.Zone, Condition: s.Condition, Incarnation: s.Incarnation, State: s.State, Notice: s.Notice,
		NoticeUnread: s.NoticeUnread, Incident: s.Labels[events.LabelIncident], Ordered: s.Ordered, Abuse: s.Abuse,
		Facts: incident.Facts{
			QueuedResource: s.QueuedResource, Legacy: s.Legacy, Accelerator: s.Accelerator, Workers: s.Workers, Chips: s.Chips, Spot: s.Spot,
			Spec: s.SpecHash, Bare: s.Bare, Label: s.Labels[events.LabelPolicy], Directory: s.Directory, Account: s.Account,
		},
	}
}

// Listing is a reading of a zone.
type Listing struct {
	// At is when it was read, as of a slice.
	At     time.Time
	Slices []Slice
	// Partial says that the API could not reach everything: what is not listed may be there all the same.
	Partial bool
	// Legacy says that the zone's legacy nodes are among them: else none that is not listed is missing. Unread is why they are
	// not, where they should be.
	Legacy bool
	Unread error
}

// Operation is a long-running operation of the provider.
type Operation struct {
	Name string
	Done bool
	// Failure is why it failed, nil while it runs and when it succeeded.
	Failure *incident.Failure
}

// Error is a failed call, classified by the one table of this package.
type Error struct {
	// Call says what was asked, for people: delete node llama-8b in us-west4-a.
	Call    string
	Class   incident.FailureClass
	Message string
	// Code is why, where the class alone does not say.
	Code incident.Code

	cause error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (%s)", e.Call, e.Message, e.Class) }

// Unwrap returns what the client said, if there was an answer or none came.
func (e *Error) Unwrap() error { return e.cause }

// Failure is the classified failure behind an error; an error that is none of this package's is transient.
func Failure(err error) *incident.Failure {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return &incident.Failure{Class: e.Class, Message: e.Message, Code: e.Code}
	}
	return &incident.Failure{Class: incident.Transient, Message: err.Error()}
}
