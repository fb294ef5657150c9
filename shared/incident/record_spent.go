package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

const (
	// maxRan is how many times of the past are kept apart. Of too many, the two oldest of a kind count as one.
	maxRan = 64
	// ranFor is how long one is kept: no budget is for a longer time.
	ranFor = 7 * day
)

// Ran is a time in which chips stood for the workload, whether or not it could use them.
type Ran struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// ChipSeconds are all of that time, and of one kind: what they cost is the policy's to say.
	ChipSeconds float64         `json:"chip_seconds"`
	Zone        string          `json:"zone"`
	Accelerator string          `json:"accelerator,omitzero"`
	Capacity    events.Capacity `json:"capacity,omitzero"`
}

// hasMachines reports whether machines stand for a life in that condition. What is being made, or has to wait for them, has none yet.
func hasMachines(c evidence.Condition) bool {
	return c == evidence.Ready || c == evidence.Unhealthy || c == evidence.Unclear
}

// stands records since when the machines of a life stand, or that they stand no more.
func (f *facts) stands(l *Life, at time.Time) {
	switch has := hasMachines(l.Condition); {
	case has && l.Standing.IsZero():
		l.Standing = at
	case !has && !l.Standing.IsZero():
		f.w.spends(l.ran(at))
		l.Standing = time.Time{}
	}
}

// ran is the time for which the machines of a life have stood until now.
func (l *Life) ran(now time.Time) Ran {
	if l.Standing.IsZero() || !now.After(l.Standing) {
		return Ran{}
	}
	return Ran{l.Standing, now, now.Sub(l.Standing).Seconds() * float64(l.Chips), l.Zone, l.Accelerator, l.Capacity}
}

// within is how many of the chip-seconds were in a time.
func (r Ran) within(from, until time.Time) float64 {
	if part := earlier(r.Until, until).Sub(later(r.From, from)); part > 0 {
		return r.ChipSeconds * (float64(part) / float64(r.Until.Sub(r.From)))
	}
	return 0
}

// isLike reports whether chips of one kind stood in one place.
func (r Ran) isLike(o Ran) bool {
	return r.Zone == o.Zone && r.Accelerator == o.Accelerator && r.Capacity == o.Capacity
}

// spends keeps a time that is over.
func (w *Workload) spends(r Ran) {
	if r.ChipSeconds > 0 {
		w.Ran = append(w.Ran, r)
	}
	for i := 0; len(w.Ran) > maxRan && i < len(w.Ran); i++ {
		a := &w.Ran[i]
		if j := slices.IndexFunc(w.Ran[i+1:], a.isLike); j >= 0 {
			b := w.Ran[i+1+j]
			a.From, a.Until, a.ChipSeconds = earlier(a.From, b.From), later(a.Until, b.Until), a.ChipSeconds+b.ChipSeconds
			w.Ran = slices.Delete(w.Ran, i+1+j, i+2+j)
		}
	}
}
