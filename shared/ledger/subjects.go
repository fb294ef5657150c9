package ledger

import (
	"context"
	"errors"
	"fmt"

	"pitstop.internal/events"
)

// Subject is the workload and slice of a node, a queued resource or workers.
type Subject struct {
	Workload string `json:"workload"`
	Slice    string `json:"slice"`
	// Incarnation is the life that the subject was mapped for. The workers of a former life keep theirs, so that a late entry
	// is recognized as late.
	Incarnation events.Incarnation `json:"incarnation"`
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
	id := subjectID(project, zone, kind, name)
	for range tries {
		old, rev, err := load[Subject](ctx, l, Subjects, id, subjectSchema)
		switch {
		case err == nil && old.same(s):
			return nil
		case err != nil && !errors.Is(err, ErrNotFound):
			return err
		}
		if _, err := l.store(ctx, Subjects, id, Record{Schema: subjectSchema}, s, rev); !errors.Is(err, ErrConflict) {
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
