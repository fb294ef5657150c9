package faults

import (
	"context"
	"errors"
	"time"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

// People are the owners of a simulated fleet. They mend troubles left to them some hours later, as people do. Otherwise a
// fleet that is only watched, or left to a person by an incident, would be dead after a few days. Their actions are not
// faults: they happen whatever is left out of a run.
type People struct {
	*Troubles
	dice Dice
	// looks is how often they have looked.
	looks int
	// found is since when a slice is seen not to train, by name. rebooted says whether a reboot was tried last, and deleted
	// whether they deleted what a clean-up asked for. missed are the slices that did not train at the last look, pleased is
	// when there were none.
	found             map[string]time.Time
	rebooted, deleted map[string]bool
	Missed            []string
	Pleased           time.Time
}

// lookEvery is how often people look at their slices, notice how long they leave them to Pitstop and to Google.
const (
	lookEvery = 47 * time.Minute
	notice    = 6 * time.Hour
)

// NewPeople are the owners of a fleet with its troubles.
func NewPeople(t *Troubles) *People {
	return &People{
		Troubles: t, dice: NewDice(t.sim.Seed).Of("people"),
		found: map[string]time.Time{}, rebooted: map[string]bool{}, deleted: map[string]bool{},
	}
}

// Plan has them look from now on.
func (p *People) Plan() {
	p.after(lookEvery, func() {
		p.Missed = nil
		p.looks++
		for _, c := range p.Fleet {
			if !p.mind(p.dice.Of(c.Name).nth(p.looks), c) {
				p.Missed = append(p.Missed, c.Name)
			}
		}
		for _, g := range p.Gangs() {
			if !p.mindJob(p.dice.Of(g.Scope, g.Slice).nth(p.looks), g) {
				p.Missed = append(p.Missed, g.Slice)
			}
		}
		if len(p.Missed) == 0 {
			p.Pleased = p.Clock.Now()
		}
		p.Plan()
	})
}

// mind looks at one slice and reports whether it trains. While an incident is open on its workload it is Pitstop's.
func (p *People) mind(d Dice, c world.SliceConfig) bool {
	id := p.checks.Workload(c.Name)
	doc, _, err := p.Ledger.Workload(context.Background(), id) // a slice lost before it was ever seen has none
	_, trains := p.Trainings[c.Name].Running()
	hangs := trains && p.Trainings[c.Name].Hangs()
	if trains && !hangs || err != nil && !errors.Is(err, ledger.ErrNotFound) || doc.Shown(p.Clock.Now()).Incident != nil {
		delete(p.found, c.Name)
		return trains && !hangs
	}
	now := p.Clock.Now()
	since, seen := p.found[c.Name]
	if !seen {
		p.found[c.Name] = now
		return false
	}
	if now.Sub(since) < notice {
		return false
	}
	delete(p.found, c.Name)
	zone := p.whereIs(c.Name)
	state := ""
	if zone != "" {
		state, _ = p.API.State(zone, c.Name)
	}
	usable := state == "READY" && p.API.Node(zone, c.Name).Health == "HEALTHY"
	p.checks.Mends(id, c.Name, usable)
	p.checks.Happened("mended by its owner", c.Name)
	switch {
	case p.checks.ByHand(id) && !p.deleted[c.Name]: // they were asked to delete it
		p.deleted[c.Name] = true
		p.replace(d, c, zone, p.shape(d, c, doc.Shown(now)))
	case usable:
		switch {
		case hangs:
			p.Trainings[c.Name].Crash(137) // killed, and restarted by the crew
		case p.rebooted[c.Name] && doc.NothingToRetry(now) == "":
			delete(p.rebooted, c.Name)
			p.orders(doc.Shown(now), evidence.Retried{Origin: evidence.Origin{ID: world.ApprovalID, Time: now}, Word: evidence.Word{By: Owner, Why: "it does not train"}}, "retried")
		default:
			p.rebooted[c.Name] = true
			p.Trainings[c.Name].Reboot()
		}
	case state == "STOPPED":
		p.Try(p.API.Start(zone, c.Name, Owner))
	default:
		p.replace(d, c, zone, p.shape(d, c, doc.Shown(now)))
	}
	return false
}

// shape is the owner's new order for a slice: their first order, or now and then the last shape of a slice of a Multislice.
func (p *People) shape(d Dice, c world.SliceConfig, doc view.Workload) string {
	if s := doc.Slice(c.Name); s != nil && s.Ordered != "" && c.Workload != "" && d.Of("shape").intN(2) == 0 {
		return s.Accelerator
	}
	return c.Accelerator
}

// replace deletes the remains of a slice and creates it again, in its own zone, where its checkpoints are.
func (p *People) replace(d Dice, c world.SliceConfig, zone, shape string) {
	wait := time.Duration(0)
	for _, z := range p.Zones() {
		if c.QueuedResource != "" && p.API.QueuedResource(z, c.QueuedResource) != nil {
			p.checks.Took(c.Name)
			p.Try(p.API.OwnerDeleteQueuedResource(z, c.QueuedResource, Owner))
			wait = 20 * time.Minute
		}
	}
	if wait == 0 && zone != "" {
		p.checks.Took(c.Name)
		p.Try(p.API.OwnerDelete(zone, c.Name, Owner))
		wait = 20 * time.Minute
	}
	if zone == "" {
		zone = c.Zone
	}
	p.after(wait+d.Of("creates").between(0, time.Hour), func() {
		if p.whereIs(c.Name) != "" {
			return
		}
		p.Try(p.create(c, zone, shape))
	})
}

// create makes the owner of a slice order it, together with the other slices of its queued resource.
func (t *Troubles) create(c world.SliceConfig, zone, shape string) error {
	if c.QueuedResource != "" {
		q := cloudtputest.QueuedConfig{Zone: zone, Name: c.QueuedResource, Spot: c.Spot}
		for _, o := range t.Fleet {
			if o.QueuedResource == c.QueuedResource {
				order := t.Order(o)
				order.Zone = zone
				q.Nodes = append(q.Nodes, order)
			}
		}
		return t.API.OwnerCreateQueuedResource(q, Owner)
	}
	order := t.Order(c)
	order.Zone, order.Accelerator = zone, shape
	t.checks.Ordered(c, shape)
	return t.API.OwnerCreate(order, Owner)
}
