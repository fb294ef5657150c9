// Package incidenttest holds what tests ask of facts that are learned in any order.
package incidenttest

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// LateMost is how late an entry may be.
const LateMost = 35 * time.Minute

// Told is evidence, when it is received, and the policy of that time.
type Told struct {
	At       time.Time
	Evidence evidence.Evidence
	Policy   policy.Policy
}

// Learn passes evidence to a workload, and after each piece the lines that it binds.
func Learn(w incident.Workload, all []Told) incident.Workload {
	for _, t := range all {
		w, _, _ = incident.Advance(t.Policy, w, t.Evidence, t.At)
		for _, line := range w.Bound() {
			w, _, _ = incident.Advance(t.Policy, w, line, t.At)
		}
	}
	return w
}

// IsEntry reports whether evidence is an entry of a log, which may be late. Readings are taken, and nobody delivers them.
func IsEntry(e evidence.Evidence) bool {
	switch e := e.(type) {
	case evidence.Interrupted, evidence.Back, evidence.Called, evidence.Reported:
		return true
	case evidence.Noticed:
		return !e.InAPI
	}
	return false
}

// Order sorts evidence by its time of receipt. An entry that names a life is received when that was read, or never:
// the pipeline parks it until then. The lives of the workload itself were read before.
func Order(w incident.Workload, all []Told) []Told {
	read := map[events.Incarnation]time.Time{}
	for _, s := range w.Slices {
		read[s.Incarnation] = time.Time{}
	}
	for _, t := range all {
		if r, reads := t.Evidence.(evidence.Read); reads && r.Incarnation.Known() {
			if at, known := read[r.Incarnation]; !known || t.At.Before(at) {
				read[r.Incarnation] = t.At
			}
		}
	}
	var ordered []Told
	for _, t := range all {
		of := lifeOf(t.Evidence)
		at, known := read[of]
		switch {
		case of.Known() && IsEntry(t.Evidence) && !known:
			continue
		case of.Known() && IsEntry(t.Evidence) && !at.Before(t.At):
			t.At = at.Add(time.Second)
		}
		ordered = append(ordered, t)
	}
	slices.SortStableFunc(ordered, func(a, b Told) int { return a.At.Compare(b.At) })
	return ordered
}

func lifeOf(e evidence.Evidence) events.Incarnation {
	switch e := e.(type) {
	case evidence.Interrupted:
		return e.Incarnation
	case evidence.Back:
		return e.Incarnation
	case evidence.Noticed:
		return e.Incarnation
	}
	return events.Incarnation{}
}

// Known is what a workload knows of the outside, without what was decided, and without the times of words that say the same twice.
type Known struct {
	Slices               []Slice
	Step, CheckpointStep int64
	Attempt, Exited      int
	Claimed              bool
}

// Slice is what is known of a slice.
type Slice struct {
	Name         string
	Life         events.Incarnation
	Condition    evidence.Condition
	State, Hosts string
	Since        time.Time
	Released     bool
	StoppedBy    string
	Maintenance  events.Notice
}

// KnownOf is what a workload knows.
func KnownOf(w incident.Workload) Known {
	v := w.Shown(time.Time{})
	t := v.Training
	k := Known{Step: t.Step, CheckpointStep: t.Checkpoint, Attempt: t.Attempt, Exited: t.Exited, Claimed: t.Claimed}
	for _, s := range v.Slices {
		of := Slice{
			Name: s.Name, Life: s.Incarnation, Condition: s.Condition, State: s.State, Hosts: w.Slice(s.Name).Hosts, Since: s.Since, Released: s.Released, StoppedBy: s.StoppedBy,
		}
		if n := v.Announced(s.Name); n != nil {
			of.Maintenance = n.Notice
		}
		k.Slices = append(k.Slices, of)
	}
	return k
}
