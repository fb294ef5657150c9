package fleet

import (
	"errors"

	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/incident"
)

// DirectoryFailure turns an error of a checkpoint directory into a failure of the request that met it. Package checkpoint
// does not do that, because the crew uses it too and knows no incidents.
func DirectoryFailure(err error) *incident.Failure {
	f := &incident.Failure{Class: incident.Transient, Message: err.Error()}
	switch {
	case errors.Is(err, checkpoint.ErrPermission):
		f.Class = incident.Permission
	case errors.Is(err, checkpoint.ErrBeyondBelief):
		f.Class, f.Code = incident.Invalid, incident.CodeLeaseDoubted
	case errors.Is(err, checkpoint.ErrForeign), errors.Is(err, checkpoint.ErrInvalid):
		f.Class = incident.Invalid
	}
	return f
}
