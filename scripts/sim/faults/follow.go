package faults

import (
	"time"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// follower lets happen what traces tell.
type follower struct{ *Troubles }

// follow begins to follow the traces.
func (t *Troubles) follow() {
	f := &follower{t}
	for i, trace := range t.sim.Traces {
		f.next(NewDice(t.sim.Seed).Of("traces").nth(i), trace.moments)
	}
}

// next waits for the first of the moments that are left. The dice draw what a trace leaves open.
func (f *follower) next(d Dice, left []moment) {
	if len(left) == 0 {
		return
	}
	f.Clock.At(f.Start.Add(left[0].at), func() {
		if f.over {
			return
		}
		f.happen(d, left[0])
		f.next(d.Of("next"), left[1:])
	})
}

func (f *follower) happen(d Dice, m moment) {
	if m.cause == "stockout" {
		f.shortage(d, m)
		return
	}
	for _, e := range elsewheres {
		if causeKey(e.name) != m.cause {
			continue
		}
		if f.chaos.strikes("%s, as a trace tells", e.name) {
			f.checks.Happened(e.name, "")
			f.everywhere(d, e, m)
		}
		return
	}
	h := happeningOf(m.cause)
	c, ok := f.slice(d, h, m)
	if !ok {
		return
	}
	if last, given := lengths[m.cause]; given && m.lasts > 0 {
		h.strike = func(t *Troubles, _ Dice, c world.SliceConfig, zone string) error { return last(t, c, zone, m.lasts) }
	}
	f.befall(d, h, c)
}

// slice is the slice of a moment, or one that is drawn of those that it can happen to now.
func (f *follower) slice(d Dice, h happening, m moment) (world.SliceConfig, bool) {
	var possible []world.SliceConfig
	for _, c := range f.Fleet {
		if c.Name == m.where {
			return c, true
		}
		zone := f.whereIs(c.Name)
		state, _ := f.API.State(zone, c.Name)
		if h.befalls(f.API.Reclaimable(zone, c.Name)) && state == "READY" {
			possible = append(possible, c)
		}
	}
	if len(possible) == 0 {
		return world.SliceConfig{}, false
	}
	return possible[d.Of("slice").intN(len(possible))], true
}

// shortage makes a place give no slices for a while.
func (f *follower) shortage(d Dice, m moment) {
	at, err := cloudtputest.ParsePlace(m.where)
	f.Must(err)
	if at.Zone == drawn {
		at.Zone = f.zone(d)
	}
	if !f.chaos.strikes("no capacity in %s, as a trace tells", at) {
		return
	}
	lasts := m.lasts
	if lasts == 0 {
		lasts = d.Of("lasts").between(10*time.Minute, 8*time.Hour)
	}
	f.checks.Happened("stockout", "")
	f.lacks(at, lasts)
}

// everywhere lets something happen that concerns no single slice, for the time that a trace says.
func (f *follower) everywhere(d Dice, e elsewhere, m moment) {
	now := f.Clock.Now()
	switch {
	case m.lasts == 0:
		e.strike(f.Troubles, d)
	case m.cause == "everything_paused":
		f.pauseAll(&evidence.Pause{By: "ann@example.com", At: now, Until: now.Add(m.lasts)})
	case m.cause == "guest_attributes_blocked":
		f.API.BlockGuestAttributes(true)
		f.after(m.lasts, func() { f.API.BlockGuestAttributes(false) })
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
var lengths = map[string]func(t *Troubles, c world.SliceConfig, zone string, d time.Duration) error{
	"host_error_repaired": func(t *Troubles, c world.SliceConfig, zone string, d time.Duration) error {
		return t.API.HostError(zone, c.Name, d)
	},
	"maintenance_without_notice": func(t *Troubles, c world.SliceConfig, zone string, d time.Duration) error {
		return t.API.BeginMaintenance(zone, c.Name, d)
	},
	"stockout": nil, "everything_paused": nil, "guest_attributes_blocked": nil,
}
