package scenario

import (
	"math/rand/v2"
	"time"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/tpu/tputest"
)

// follower lets happen what traces tell.
type follower struct {
	*troubles
	// rand draws what a trace leaves open: another stream, so that what is drawn beside it stays the same.
	rand *rand.Rand
	// short is how many shortages there are in each zone at a time.
	short map[string]int
}

// follow begins to follow the traces.
func (t *troubles) follow() {
	f := &follower{troubles: t, rand: stream(t.sim.Seed, "traces"), short: map[string]int{}}
	for _, trace := range t.sim.Traces {
		f.next(trace.moments)
	}
}

// next waits for the first of the moments that are left.
func (f *follower) next(left []moment) {
	if len(left) == 0 {
		return
	}
	f.clock.At(f.Start.Add(left[0].at), func() {
		if f.over {
			return
		}
		f.happen(left[0])
		f.next(left[1:])
	})
}

func (f *follower) happen(m moment) {
	switch m.cause {
	case noCapacity, "stockout":
		f.shortage(m)
		return
	}
	for _, e := range elsewheres {
		if causeKey(e.name) != m.cause {
			continue
		}
		if f.chaos.strikes("%s, as a trace tells", e.name) {
			f.checks.happened(e.name, "")
			f.everywhere(e, m)
		}
		return
	}
	h := happeningOf(m.cause)
	c, ok := f.slice(h, m)
	if !ok {
		return
	}
	if last, given := lengths[m.cause]; given && m.lasts > 0 {
		h.strike = func(t *troubles, c SliceConfig, zone string) error { return last(t, c, zone, m.lasts) }
	}
	f.befall(h, c)
}

// slice is the slice of a moment, or one that is drawn of those that it can happen to now.
func (f *follower) slice(h happening, m moment) (SliceConfig, bool) {
	var possible []SliceConfig
	for _, c := range f.Fleet {
		if c.Name == m.where {
			return c, true
		}
		state, _ := f.api.State(f.whereIs(c.Name), c.Name)
		if h.befalls(c.Spot) && (m.node > 0 || state == "READY") {
			possible = append(possible, c)
		}
	}
	switch {
	case len(possible) == 0:
		return SliceConfig{}, false
	case m.node > 0:
		return possible[(m.node-1)%len(possible)], true
	}
	return possible[f.rand.IntN(len(possible))], true
}

// shortage has a zone give no slices for a while, and, where all Spot capacity is gone, take back what it gave.
func (f *follower) shortage(m moment) {
	zone := m.where
	if zone == drawn {
		zones := f.world.zones()
		zone = zones[f.rand.IntN(len(zones))]
	}
	if !f.chaos.strikes("no capacity in %s, as a trace tells", zone) {
		return
	}
	lasts := m.lasts
	if lasts == 0 {
		lasts = time.Duration(f.rand.Int64N(int64(8*time.Hour))) + 10*time.Minute
	}
	f.checks.happened("stockout", "")
	f.short[zone]++
	f.api.SetCapacity(zone, 0)
	f.after(lasts, func() {
		if f.short[zone]--; f.short[zone] == 0 {
			f.api.SetCapacity(zone, tputest.Unlimited)
		}
	})
	if m.cause != noCapacity {
		return
	}
	for _, c := range f.Fleet {
		if state, _ := f.api.State(zone, c.Name); c.Spot && state == "READY" {
			f.checks.happened("preempted", c.Name)
			f.must(f.api.Preempt(zone, c.Name))
		}
	}
}

// everywhere lets something happen that concerns no single slice, for the time that a trace says.
func (f *follower) everywhere(e elsewhere, m moment) {
	now := f.clock.Now()
	switch {
	case m.lasts == 0:
		e.strike(f.troubles)
	case m.cause == "everything_paused":
		f.pauseAll(&incident.Pause{By: "ann@example.com", At: now, Until: now.Add(m.lasts)})
	case m.cause == "guest_attributes_blocked":
		f.api.BlockGuestAttributes(true)
		f.after(m.lasts, func() { f.api.BlockGuestAttributes(false) })
	}
}

// happeningOf is what may happen to a slice under the name that files give it.
func happeningOf(cause string) happening {
	for _, h := range happenings {
		if causeKey(h.name) == cause {
			return h
		}
	}
	return happening{}
}

// lengths are the causes of which a trace can say how long they last, and for those of single slices what happens then.
var lengths = map[string]func(t *troubles, c SliceConfig, zone string, d time.Duration) error{
	"host_error_repaired": func(t *troubles, c SliceConfig, zone string, d time.Duration) error {
		return t.api.HostError(zone, c.Name, d)
	},
	"maintenance_without_notice": func(t *troubles, c SliceConfig, zone string, d time.Duration) error {
		return t.api.BeginMaintenance(zone, c.Name, d)
	},
	"stockout": nil, "everything_paused": nil, "guest_attributes_blocked": nil,
}
