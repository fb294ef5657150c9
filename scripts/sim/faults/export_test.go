package faults

import (
	"time"

	"pitstop.internal/scripts/sim/world"
)

// Come are the troubles that are drawn for a fleet in its first day, each with its time: those of a slice, and those of everything.
func Come(s world.Scenario, d Draws) (slice, all map[string]bool) {
	w := world.New("come", s, world.Options{})
	slice, all = map[string]bool{}, map[string]bool{}
	t := NewTroubles(w, nil, nil, nil, d)
	comes := func(in map[string]bool, what string) func(Dice) {
		return func(Dice) { in[w.Clock.Now().Format("Jan 2 15:04:05  ")+what] = true }
	}
	for _, c := range s.Fleet {
		t.each(c, func(h happening, _ bool) func(Dice) { return comes(slice, h.name+": "+c.Name) })
	}
	for _, e := range elsewheres {
		t.again(e.name, "", d.Rates.ofAll(e), 0, comes(all, e.name))
	}
	for w.Clock.Step(s.Start.Add(24 * time.Hour)) {
		continue
	}
	return slice, all
}

// With is the trace with one more happening at its end.
func (t Trace) With(at time.Duration, where, cause string) Trace {
	t.moments = append(t.moments, moment{at: at, where: where, cause: cause})
	return t
}
