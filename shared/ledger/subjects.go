package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitstop.internal/events"
)

// Subject is the workload and slice of a node, a queued resource or workers.
type Subject struct {
	Workload string `json:"workload"`
	Slice    string `json:"slice"`
	// Incarnation is the life that the subject was mapped for. The workers of a former life keep theirs, so that a late entry
	// is recognized as late.
	Incarnation events.Incarnation `json:"incarnation"`
	// Since and Until are of machines of GKE alone, which Jobs use one after the other: when a reading showed the slice on it first, and
	// when one no longer did. Until is zero while the slice is on it.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// At reports whether the subject belonged to the slice at a time. One that is not known is any.
func (s Subject) At(at time.Time) bool {
	return at.IsZero() || !at.Before(s.Since) && (s.Until.IsZero() || !at.After(s.Until))
}

// same reports whether both are equal. A slice that is still being created has no known life yet.
func (s Subject) same(o Subject) bool {
	return s.Workload == o.Workload && s.Slice == o.Slice && (s.Incarnation == o.Incarnation || s.Incarnation.Same(o.Incarnation))
}

// SubjectKind is the kind of a subject.
type SubjectKind string

// The kinds of subjects. Workers are stored under the common part of the names of a slice's workers.
const (
	Node           SubjectKind = "node"
	QueuedResource SubjectKind = "queuedResource"
	Worker         SubjectKind = "worker"
	Machine        SubjectKind = "machine" // of GKE

	// onMachines is stored under the name of a slice.
	onMachines SubjectKind = "machines"
)

// AnyZone stands for the zone of a machine of GKE: its name is the only one in the project, and a reading of a cluster does not say its
// zone.
const AnyZone = "any"

func subjectID(project, zone string, kind SubjectKind, name string) string {
	return project + "/" + zone + "/" + string(kind) + "/" + name
}

const subjectSchema = 1

// Subject finds the subject of a name in a zone, or ErrNotFound.
func (l *Ledger) Subject(ctx context.Context, project, zone string, kind SubjectKind, name string) (Subject, error) {
	s, _, err := load[Subject](ctx, l, Subjects, subjectID(project, zone, kind, name), subjectSchema)
	return s, err
}

// Map records the subject of a name in a zone from now on. It does not write if that is already known.
func (l *Ledger) Map(ctx context.Context, project, zone string, kind SubjectKind, name string, s Subject) error {
	return l.remap(ctx, subjectID(project, zone, kind, name), func(old Subject, known bool) (Subject, bool) {
		return s, !known || !old.same(s) || !old.Until.IsZero()
	})
}

// Leave records until when a machine of GKE belonged to a slice. One that belongs to another slice or life stays with it.
func (l *Ledger) Leave(ctx context.Context, project, name string, s Subject, until time.Time) error {
	return l.remap(ctx, subjectID(project, AnyZone, Machine, name), func(old Subject, known bool) (Subject, bool) {
		left := old
		left.Until = until
		return left, known && old.same(s) && old.Until.IsZero()
	})
}

// remap replaces a subject by what change makes of it, which may not be known. It does not write if change says that nothing changes.
func (l *Ledger) remap(ctx context.Context, id string, change func(old Subject, known bool) (Subject, bool)) error {
	for range tries {
		old, rev, err := load[Subject](ctx, l, Subjects, id, subjectSchema)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		s, changes := change(old, err == nil)
		if !changes {
			return nil
		}
		if _, err := l.store(ctx, Subjects, id, Record{Schema: subjectSchema}, s, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s %s: %w", Subjects, id, ErrConflict)
}

// Machines are the machines of GKE that are mapped to a life of a slice, in order. A process that begins learns from them which ones the
// slice has left.
type Machines struct {
	Incarnation events.Incarnation `json:"incarnation"`
	Names       []string           `json:"names,omitempty"`
}

// Machines returns the machines that are mapped to a slice in a zone. It returns none where none were ever kept.
func (l *Ledger) Machines(ctx context.Context, project, zone, slice string) (Machines, error) {
	m, _, err := load[Machines](ctx, l, Subjects, subjectID(project, zone, onMachines, slice), subjectSchema)
	if errors.Is(err, ErrNotFound) {
		return Machines{}, nil
	}
	return m, err
}

// KeepMachines records the machines that are mapped to a slice in a zone.
func (l *Ledger) KeepMachines(ctx context.Context, project, zone, slice string, m Machines) error {
	id := subjectID(project, zone, onMachines, slice)
	for range tries {
		_, rev, err := load[Machines](ctx, l, Subjects, id, subjectSchema)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if _, err := l.store(ctx, Subjects, id, Record{Schema: subjectSchema}, m, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s %s: %w", Subjects, id, ErrConflict)
}

// Find finds the workload that the subject of a log entry belongs to: by its node, else its queued resource, else its
// worker or machine.
func (l *Ledger) Find(ctx context.Context, s events.Subject) (Subject, error) {
	if s.Node != "" {
		return l.Subject(ctx, s.Project, s.Zone, Node, s.Node)
	}
	if s.QueuedResource != "" {
		return l.Subject(ctx, s.Project, s.Zone, QueuedResource, s.QueuedResource)
	}
	if group, _, ok := s.Group(); ok {
		return l.Subject(ctx, s.Project, s.Zone, Worker, group)
	}
	if s.Worker != "" && s.Platform() == events.PlatformGKE {
		return l.Subject(ctx, s.Project, AnyZone, Machine, s.Worker)
	}
	return Subject{}, fmt.Errorf("ledger: %s: %w", s, ErrNotFound)
}
