package checkpoint

import (
	"errors"

	"pitstop.internal/shared/incident"
)

// Failure is what an error of a directory means as a failure of the request that met it.
func Failure(err error) *incident.Failure {
	f := &incident.Failure{Class: incident.Transient, Message: err.Error()}
	switch {
	case errors.Is(err, ErrPermission):
		f.Class = incident.Permission
	case errors.Is(err, ErrForeign), errors.Is(err, ErrInvalid):
		f.Class = incident.Invalid
	}
	return f
}
