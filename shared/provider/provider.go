// Package provider is the interface that the functions need from an API that slices come from, with its types and its errors.
// cloudtpu implements it with the Cloud TPU API, and providertest holds what every provider promises.
package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
)

// Ref names a slice.
type Ref struct {
	Project string
	// Zone is where it is: a zone of the Cloud TPU API, or the scope LOCATION/CLUSTER/NAMESPACE of a Job of GKE.
	Zone string
	Name string
	// QueuedResource is the one that holds the slice, if one does, or the JobSet of a Job: it is deleted and created with it.
	QueuedResource string
	// Legacy is a TPU Node of the API's former version, not a TPU VM.
	Legacy bool
	// Life is what Delete deletes and nothing else: the UID of the Job, or of its JobSet, as a reading showed it. The Cloud TPU API takes
	// no such condition, so there it is empty.
	Life string
}

// String is the API's own name.
func (r Ref) String() string {
	if in := strings.Split(r.Zone, "/"); len(in) == 3 {
		return "projects/" + r.Project + "/locations/" + in[0] + "/clusters/" + in[1] + "/k8s/namespaces/" + in[2] + "/jobs/" + r.Name
	}
	return "projects/" + r.Project + "/locations/" + r.Zone + "/nodes/" + r.Name
}

// Provider is an API that slices come from. No method waits for a long-running operation; the name of the operation is
// returned instead. Errors are *Error. Every provider can do what is named here; the embedded interfaces are what not every
// one can do, and one that cannot refuses with incident.Invalid.
type Provider interface {
	// Read reads one slice now. A slice that the API does not know is not an error: its condition is incident.Gone.
	Read(ctx context.Context, r Ref) (Slice, error)
	// List reads all slices of a zone, or of a cluster LOCATION/CLUSTER, page by page.
	List(ctx context.Context, project, zone string) (Listing, error)
	// Zones lists the zones and clusters that may hold slices: what List reads.
	Zones(ctx context.Context, project string) ([]string, error)
	// Create creates a slice from a stored specification, or several together, with labels added. The same request ID
	// creates once.
	Create(ctx context.Context, r Ref, spec []byte, labels map[string]string, requestID string) (operation string, err error)
	// Creatable returns why Create, with the same arguments, would be refused now: the same *Error, or nil. It changes nothing. That the
	// slice still exists is no reason. A provider that has no such call always returns nil.
	Creatable(ctx context.Context, r Ref, spec []byte, labels map[string]string, requestID string) error
	// Delete deletes a slice, and the queued resource that holds it. The same request ID deletes once. Where the provider can tell lives
	// apart, it deletes only the life that the reference names, and refuses a reference without one. An empty operation says that
	// everything is done that the call does.
	Delete(ctx context.Context, r Ref, requestID string) (operation string, err error)
	// Operations lists the operations of a zone that the provider still knows: those named, or all if none is. With an error it
	// lists the readable ones; a missing one may be running.
	Operations(ctx context.Context, project, zone string, names ...string) ([]Operation, error)

	Starter
	Maintainer
	Messenger
	Guests
	Janitor
}

// Janitor finds what is left over in a zone, beside its slices.
type Janitor interface {
	// Leftovers lists what nothing needs any more as far as the API shows it now. It is its owner's to delete. A provider whose listing
	// shows all of it, or that knows of none, lists none. Unread are the scopes that could not be read, or parts of them, and err says why;
	// an error without any is of the whole zone.
	Leftovers(ctx context.Context, project, zone string) (all []Leftover, unread []string, err error)
}

// Leftover is something that holds machines, quota or a place in a queue, and that no training uses.
type Leftover struct {
	// Kind is what it is: queued resource, Workload, ProvisioningRequest, node pool. Zone is its zone, its scope, or its cluster.
	Kind string `json:"kind"`
	Zone string `json:"zone"`
	Name string `json:"name"`
	// Chips is how many chips it holds or asks for; zero is not known.
	Chips int    `json:"chips,omitzero"`
	Why   string `json:"why"`
	// Made is when it was made, if that is known. It is not kept: one that is made anew under the name of another is left over from then on.
	Made time.Time `json:"-"`
	// Since and Seen are the first and the last of the sweeps of patrol that found it, one after the other. A provider leaves them zero.
	Since time.Time `json:"since,omitzero"`
	Seen  time.Time `json:"seen,omitzero"`
	// More is how many more there are in what was listed with it, whose names are not kept.
	More int `json:"more,omitzero"`
}

// Part names what is left over of one kind in a scope, where only that could not be read.
func Part(zone, kind string) string { return zone + " " + kind }

// Unread reports whether it is of these scopes or parts.
func (l Leftover) Unread(of []string) bool {
	return slices.Contains(of, l.Zone) || slices.Contains(of, Part(l.Zone, l.Kind))
}

// leftAfter is how long something has to be found before people hear of it: machines come within an hour or two.
const leftAfter = 2 * time.Hour

// Stays reports whether sweeps have found it for so long that people hear of it.
func (l Leftover) Stays() bool { return l.Seen.Sub(l.Since) >= leftAfter }

// IdleChipHours are those for which sweeps have found its machines unused; zero where it has no machines, or where their chips are not
// known.
func (l Leftover) IdleChipHours() float64 {
	if l.Kind != NodePool {
		return 0
	}
	return float64(l.Chips) * l.Seen.Sub(l.Since).Hours()
}

// NodePool is the kind of what has machines.
const NodePool = "node pool"

// Starter starts what was stopped.
type Starter interface {
	// Start starts a slice that was stopped.
	Start(ctx context.Context, r Ref) (operation string, err error)
}

// Maintainer starts maintenance early.
type Maintainer interface {
	// Maintain starts the announced maintenance of slices now: of one, or of several that one queued resource holds. A
	// PartError says that it began for a part of them.
	Maintain(ctx context.Context, slices []Ref) (operation string, err error)
}

// Messenger passes a word to the machines of a slice.
type Messenger interface {
	// SetMetadata sets one key of the slice's metadata and keeps the keys of others.
	SetMetadata(ctx context.Context, r Ref, key, value string) error
}

// Guests reads what the machines of a slice say of themselves.
type Guests interface {
	// Hosts reads the host names of the slice's workers; empty if there are none. Without the permission to read them, the
	// error is incident.Permission.
	Hosts(ctx context.Context, r Ref) ([]string, error)
	// Crews reads the last written states of the crews on the slice's workers; empty if there are none. The error is as for
	// Hosts.
	Crews(ctx context.Context, r Ref) ([]events.CrewState, error)
}

// Orders understand the stored specifications of a provider's slices. They call no API.
type Orders interface {
	// Waits reports whether a slice of this specification waits for capacity, or has its own: that others were refused says nothing of it.
	Waits(spec []byte) bool
	// IsApart reports whether values of a specification are stored apart from it, and Whole puts them back.
	IsApart(spec []byte) bool
	Whole(spec []byte, values map[string]string) ([]byte, error)
	// Together joins the whole specifications of slices, by name, that are created together.
	Together(names []string, specs [][]byte) ([]byte, error)
}

// Slice is a reading of a slice.
type Slice struct {
	Ref
	// At is when it was read, by the reader's clock; zero is unknown.
	At          time.Time
	Condition   evidence.Condition
	Incarnation events.Incarnation
	// State is the provider's own words: state, health, symptoms.
	State  string
	Labels map[string]string
	// Directory is the checkpoint directory that the slice's metadata names.
	Directory string
	// Data are the directories that its metadata names as those of the training's data.
	Data []string
	// Account is the service account that its workers act as.
	Account        string
	Accelerator    string
	Workers, Chips int
	// Machines are the names of its machines, in order, where log entries name it by them alone.
	Machines []string
	// Capacity is what it is taken from, as far as that is known.
	Capacity events.Capacity
	// Healing says whether the provider brings the slice back by itself once it is lost.
	Healing evidence.Heal
	// Cause is why it is lost, where the provider says so.
	Cause events.Cause
	// Failed is since when it is lost for good, by the provider's own objects; zero where it is not, or where they do not say so.
	Failed time.Time
	// Kept is why nobody but its owner may replace it: something else would go with it, or makes it anew. It is empty if Pitstop may.
	Kept string
	// Controlled says that another object made it, or its group, and makes it anew.
	Controlled bool
	// Ends is when this life ends as planned; zero if it has no planned end.
	Ends time.Time
	// WaitsSince is since when it waits for its machines, or for the end of its deletion, by the provider's own objects; zero where it does
	// not wait, or where that is not known.
	WaitsSince time.Time
	// Ordered is the creation time of the queued resource that holds the slice, or will bring it, and With names the other
	// slices that it asks for.
	Ordered time.Time
	With    []string
	// Granted says that this queued resource is not known to wait any more: what it asks for is being made, or may be there.
	Granted bool
	// Notice is announced maintenance, if any. NoticeUnread says that it could not be read.
	Notice       *events.Notice
	NoticeUnread bool
	Abuse        bool
	// Maintained is when the last maintenance event was that the provider still tells of; zero if it tells of none.
	Maintained time.Time
	// Autocheckpoint says that the provider signals the training before maintenance begins, and waits for its end.
	Autocheckpoint bool
	// Spec is the specification from which the slice can be created again, in canonical form, without the Values of its
	// metadata. These may be secrets (start-up scripts), so they are stored separately and never logged. SpecHash names both.
	// ValuesSum shows whether the values have changed, and is never stored.
	Spec      []byte
	Values    map[string]string
	ValuesSum string
	SpecHash  string
	// Bare says that the specification has no start-up script.
	Bare bool
	// Remains says that the slice itself is gone, and that something of it is left that may still train. The reading shows no life, and
	// nothing of how the slice was.
	Remains bool
}

// Evidence is the meaning of the reading for its workload.
func (s Slice) Evidence(id string) evidence.Read {
	if s.Remains { // facts would replace those that are known
		return evidence.Read{
			Origin: evidence.Origin{ID: id, Time: s.At, Rank: events.RankReading}, Slice: s.Name, Zone: s.Zone, Condition: s.Condition, State: s.State,
			Incarnation: s.Incarnation, NoticeUnread: true,
		}
	}
	return evidence.Read{
		Origin: evidence.Origin{ID: id, Time: s.At, Rank: events.RankReading},
		Slice:  s.Name, Zone: s.Zone, Condition: s.Condition, Incarnation: s.Incarnation, State: s.State, Notice: s.Notice,
		NoticeUnread: s.NoticeUnread, Maintained: s.Maintained, Incident: s.Labels[events.LabelIncident], Ordered: s.Ordered, Granted: s.Granted, Abuse: s.Abuse, Directory: s.Directory,
		Facts: evidence.Facts{
			Group: s.QueuedResource, Legacy: s.Legacy, Accelerator: s.Accelerator, Workers: s.Workers, Chips: s.Chips, Capacity: s.Capacity, Healing: s.Healing, Cause: s.Cause, Failed: s.Failed, Kept: s.Kept, Controlled: s.Controlled, Ends: s.Ends, WaitsSince: s.WaitsSince,
			Spec: s.SpecHash, Bare: s.Bare, Label: s.Labels[events.LabelPolicy], Account: s.Account,
		},
	}
}

// Misses reports whether a slice that is not listed is missing: everything was reached, and its zone was read.
func (l Listing) Misses(zone string) bool {
	return !l.Partial && (l.Only == nil || slices.Contains(l.Only, zone)) && !slices.Contains(l.Without, zone)
}

// Listing is a reading of a zone, or of a cluster.
type Listing struct {
	// At is when it was read, as of a slice.
	At     time.Time
	Slices []Slice
	// Partial says that the API could not reach everything: an unlisted slice may still exist.
	Partial bool
	// Only are the scopes that were read, where others of the cluster were not; nil is all of them.
	Only []string
	// Without are the scopes that could not be read, though they should be.
	Without []string
	// Legacy says that the zone's legacy nodes are among them; otherwise an unlisted legacy node does not count as missing.
	Legacy bool
	// Unread is why legacy nodes, or the Jobs of a namespace, are not listed, if they should be.
	Unread error
	// Unexplained is why it is not known in what Jobs wait, if that should be. The slices are listed all the same.
	Unexplained error
}

// Operation is a long-running operation of the provider.
type Operation struct {
	Name string
	Done bool
	// Failure is why it failed, nil while it runs and when it succeeded.
	Failure *evidence.Failure
}

// Error is a failed call, classified by its provider.
type Error struct {
	// Call describes the call, for people: delete node llama-8b in us-west4-a.
	Call    string
	Class   reason.FailureClass
	Message string
	// Code is the reason, if the class alone does not say it.
	Code reason.Code
	// Cause is the client's error, if the call was made.
	Cause error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (%s)", e.Call, e.Message, e.Class) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// PartError says that a call took effect for a part of what it was for, and that nobody need try again. Left is why not for the rest.
type PartError struct{ Left error }

// Error implements error.
func (e *PartError) Error() string { return "done in part: " + e.Left.Error() }

// Unwrap returns why the rest was not done.
func (e *PartError) Unwrap() error { return e.Left }

// Failure is the classified failure in an error; any other error is transient.
func Failure(err error) *evidence.Failure {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return &evidence.Failure{Class: e.Class, Message: e.Message, Code: e.Code}
	}
	return &evidence.Failure{Class: reason.Transient, Message: err.Error()}
}
