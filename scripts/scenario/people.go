package scenario

import (
	"context"
	"errors"
	"time"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/tpu/tputest"
)

// people are the owners of a simulated fleet. They mend troubles left to them some hours later, as people do. Otherwise a
// fleet that is only watched, or left to a person by an incident, would be dead after a few days. Their actions are not
// faults: they happen whatever is left out of a run.
type people struct {
	*troubles
	dice dice
	// looks is how often they have looked.
	looks int
	// found is since when a slice is seen not to train, by name. rebooted says whether a reboot was tried last, and deleted
	// whether they deleted what a clean-up asked for. missed are the slices that did not train at the last look, pleased is
	// when there were none.
	found             map[string]time.Time
	rebooted, deleted map[string]bool
	missed            []string
	pleased           time.Time
}

// lookEvery is how often people look at their slices, notice how long they leave them to Pitstop and to Google.
const (
	lookEvery = 47 * time.Minute
	notice    = 6 * time.Hour
)

func newPeople(t *troubles) *people {
	return &people{
		troubles: t, dice: newDice(t.sim.Seed).of("people"),
		found: map[string]time.Time{}, rebooted: map[string]bool{}, deleted: map[string]bool{},
	}
}

// plan has them look from now on.
func (p *people) plan() {
	p.after(lookEvery, func() {
		p.missed = nil
		p.looks++
		for _, c := range p.Fleet {
			if !p.mind(p.dice.of(c.Name).nth(p.looks), c) {
				p.missed = append(p.missed, c.Name)
			}
		}
		if len(p.missed) == 0 {
			p.pleased = p.Clock.Now()
		}
		p.plan()
	})
}

// mind looks at one slice and reports whether it trains. While an incident is open on its workload it is Pitstop's.
func (p *people) mind(d dice, c world.SliceConfig) bool {
	id := p.checks.workload(c.Name)
	doc, _, err := p.Ledger.Workload(context.Background(), id) // a slice lost before it was ever seen has none
	_, trains := p.Trainings[c.Name].Running()
	hangs := trains && p.Trainings[c.Name].Hangs()
	if trains && !hangs || err != nil && !errors.Is(err, ledger.ErrNotFound) || doc.Incident != nil {
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
	p.checks.mends(id, c.Name, usable)
	p.checks.happened("mended by its owner", c.Name)
	switch {
	case p.checks.byHand(id) && !p.deleted[c.Name]: // they were asked to delete it
		p.deleted[c.Name] = true
		p.replace(d, c, zone, p.shape(d, c, doc))
	case usable:
		switch {
		case hangs:
			p.Trainings[c.Name].Crash(137) // killed, and restarted by the crew
		case p.rebooted[c.Name] && doc.NothingToRetry(now) == "":
			delete(p.rebooted, c.Name)
			p.orders(doc, incident.Retried{Origin: incident.Origin{ID: world.ApprovalID, Time: now}, Word: incident.Word{By: owner, Why: "it does not train"}}, "retried")
		default:
			p.rebooted[c.Name] = true
			p.Trainings[c.Name].Reboot()
		}
	case state == "STOPPED":
		p.Try(p.API.Start(zone, c.Name, owner))
	default:
		if s := doc.Slice(c.Name); s != nil && s.Discarded.Known() {
			p.Trainings[c.Name].Loop(0, 0, false) // it was left to them because of a crash, whose cause they mend first
		}
		p.replace(d, c, zone, p.shape(d, c, doc))
	}
	return false
}

// shape is the owner's new order for a slice: their first order, or now and then the last shape of a slice of a Multislice.
func (p *people) shape(d dice, c world.SliceConfig, doc incident.Workload) string {
	if s := doc.Slice(c.Name); s != nil && s.Reshaped() && c.Workload != "" && d.of("shape").intN(2) == 0 {
		return s.Accelerator
	}
	return c.Accelerator
}

// replace deletes the remains of a slice and creates it again, in its own zone, where its checkpoints are.
func (p *people) replace(d dice, c world.SliceConfig, zone, shape string) {
	wait := time.Duration(0)
	for _, z := range p.Zones() {
		if c.QueuedResource != "" && p.API.QueuedResource(z, c.QueuedResource) != nil {
			p.checks.took(c.Name)
			p.Try(p.API.OwnerDeleteQueuedResource(z, c.QueuedResource, owner))
			wait = 20 * time.Minute
		}
	}
	if wait == 0 && zone != "" {
		p.checks.took(c.Name)
		p.Try(p.API.OwnerDelete(zone, c.Name, owner))
		wait = 20 * time.Minute
	}
	if zone == "" {
		zone = c.Zone
	}
	p.after(wait+d.of("creates").between(0, time.Hour), func() {
		if p.whereIs(c.Name) != "" {
			return
		}
		p.Try(p.create(c, zone, shape))
	})
}

// create makes the owner of a slice order it, together with the other slices of its queued resource.
func (t *troubles) create(c world.SliceConfig, zone, shape string) error {
	if c.QueuedResource != "" {
		q := tputest.QueuedConfig{Zone: zone, Name: c.QueuedResource, Spot: c.Spot}
		for _, o := range t.Fleet {
			if o.QueuedResource == c.QueuedResource {
				order := t.Order(o)
				order.Zone = zone
				q.Nodes = append(q.Nodes, order)
			}
		}
		return t.API.OwnerCreateQueuedResource(q, owner)
	}
	order := t.Order(c)
	order.Zone, order.Accelerator = zone, shape
	t.checks.ordered(c, shape)
	return t.API.OwnerCreate(order, owner)
}
