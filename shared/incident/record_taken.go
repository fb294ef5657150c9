package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
)

const (
	// takenTwiceWithin is how soon after one preemption in a zone the next one counts as the second.
	takenTwiceWithin = time.Hour
	// takenFor is how long a preemption is remembered: no policy leaves a zone for longer.
	takenFor = 7 * day
)

// Taken is a zone that has preempted the workload.
type Taken struct {
	Zone string `json:"zone"`
	// At is its last preemption. Twice is the last one that came within an hour of the one before; zero for none.
	At    time.Time `json:"at"`
	Twice time.Time `json:"twice,omitzero"`
}

// takes records that a zone preempts a life, usable or still in the making. What was made before the last preemption there goes with that: it is
// one blow.
func (f *facts) takes(l *Life, at time.Time) {
	if !l.Reclaimable() || l.lossCause() != events.CausePreemption || !l.Incarnation.Known() || f.w.provider().staysInPlace {
		return
	}
	i := slices.IndexFunc(f.w.Taken, func(t Taken) bool { return t.Zone == l.Zone })
	if i < 0 {
		f.w.Taken = append(f.w.Taken, Taken{Zone: l.Zone, At: at})
		return
	}
	t := &f.w.Taken[i]
	if l.Incarnation.Created.After(t.At) && at.Sub(t.At) <= takenTwiceWithin {
		t.Twice = at
	}
	t.At = at
}
