package fleet

import (
	"context"
	"errors"
	"slices"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
)

// DirectoryFailure turns an error of a checkpoint directory into a failure of the request that met it. Package checkpoint
// does not do that, because the crew uses it too and knows no incidents.
func DirectoryFailure(err error) *evidence.Failure {
	f := &evidence.Failure{Class: reason.Transient, Message: err.Error()}
	switch {
	case errors.Is(err, checkpoint.ErrPermission):
		f.Class = reason.Permission
	case errors.Is(err, checkpoint.ErrBeyondBelief):
		f.Class, f.Code = reason.Invalid, reason.CodeLeaseDoubted
	case errors.Is(err, checkpoint.ErrForeign):
		f.Class, f.Code = reason.Invalid, reason.CodeForeign
	case errors.Is(err, checkpoint.ErrInvalid):
		f.Class = reason.Invalid
	}
	return f
}

// TellForeign logs an error that says whose a checkpoint directory is, where it belongs to another workload. The people of that workload have
// no incident to read, so the line names both.
func (f *Fleet) TellForeign(ctx context.Context, r events.Request, dir string, err error) {
	if errors.Is(err, checkpoint.ErrForeign) {
		f.Log.ErrorContext(ctx, "checkpoint directory of another workload", "workload", r.Workload, "incident", r.Incident, "directory", dir,
			"code", string(reason.CodeForeign), "error", err.Error())
	}
}

// Places are where the slices of a workload are, and where they were in the lives that are remembered. By them a lease that a
// crew wrote by itself is known as the workload's; see checkpoint.Lease.Foreign.
func Places(w incident.Workload) (all []events.Admission) {
	for _, s := range w.Slices {
		for _, life := range append(slices.Clone(s.Former), s.Life) {
			all = append(all, events.Admission{Slice: s.Name, Incarnation: events.Incarnation{Zone: life.Zone}})
		}
	}
	return all
}
