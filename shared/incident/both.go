//go:build !heart

package incident

import (
	"pitstop.internal/events"
)

// This file has what this heart and package heart answer alike, for callers that are built with either.

// LooksAgain reports whether the intent of a call may ask for another look first.
func (in *Incident) LooksAgain() bool { return !in.StoodAt.IsZero() }

// Deaf says why a request to save may not be heard by the crew of a slice; empty where it may.
func (w Workload) Deaf(slice string) string {
	if s := w.Slice(slice); s != nil {
		return s.Notice.Deaf
	}
	return ""
}

// AdmittedIn is the life of a slice in which training may run; none where no lease lets it.
func (w Workload) AdmittedIn(slice string) events.Incarnation {
	if s := w.Slice(slice); s != nil {
		return s.Admitted()
	}
	return events.Incarnation{}
}

// IsFormer reports whether a life of a slice is over because a newer one has come.
func (w Workload) IsFormer(slice string, life events.Incarnation) bool {
	s := w.Slice(slice)
	return s != nil && s.IsFormer(life)
}

// Owns reports whether the workload owns a slice's name in a zone: the slice exists there, or is about to be created there again.
func (w Workload) Owns(slice, zone string) bool { return w.Holds(slice, zone) }

// TrainsOn is the number of slices that the workload trains on.
func (w Workload) TrainsOn() int { return w.Training() }

// VerifiedURI is the place of the newest checkpoint that Pitstop inspected and found complete; empty for none.
func (w Workload) VerifiedURI() string { return w.Progress.VerifiedURI }

// LastAttempt is the newest attempt that started; 0 for none.
func (w Workload) LastAttempt() int { return w.Crew.Attempt }

// In is where an effect creates.
func (effect Effect) In() Place { return effect.Place() }

// NamesAttempt is the attempt that a call which writes the lease puts into it.
func (effect Effect) NamesAttempt() int { return effect.LeaseAttempt }
