package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// Slices are the names of the slices of the fleet.
func (d *Demo) Slices() []string {
	var names []string
	for _, c := range d.Fleet {
		names = append(names, c.Name)
	}
	return names
}

// Owner is who the owner of the TPUs is in the audit log.
func (d *Demo) Owner() string { return d.Cloud.Owner() }

// onSlice does something to a slice that has a TPU now, and says where that is.
func (d *Demo) onSlice(ctx context.Context, name string, do func(c world.SliceConfig, zone string) error) error {
	c, err := d.slice(name)
	if err != nil {
		return err
	}
	return d.act(ctx, func() error {
		if zone := d.zoneOf(name); zone != "" {
			return do(c, zone)
		}
		return fmt.Errorf("%s has no TPU at the moment; pitstop status --demo shows why, and pitstop demo create %s makes one", name, name)
	})
}

// slice is a slice of the fleet.
func (d *Demo) slice(name string) (world.SliceConfig, error) {
	for _, c := range d.Fleet {
		if c.Name == name {
			return c, nil
		}
	}
	return world.SliceConfig{}, d.unknown("slice", name, d.Slices())
}

// zoneOf is where a slice is; empty if it is nowhere.
func (d *Demo) zoneOf(name string) string {
	for _, zone := range d.API.Zones() {
		if state, _ := d.API.State(zone, name); state != "" {
			return zone
		}
	}
	return ""
}

// act does something in the demo.
func (d *Demo) act(ctx context.Context, do func() error) error {
	return d.inTurn(ctx, func() error {
		d.acting.Store(true)
		defer d.acting.Store(false)
		return do()
	})
}

func (d *Demo) unknown(what, name string, known []string) error {
	near, ok := strings.CutPrefix(policy.Nearest(name, known), "did you mean ")
	if ok {
		return fmt.Errorf("the demo has no %s %q; did you mean %s", what, name, near)
	}
	return fmt.Errorf("the demo has no %s %q; there are %s", what, name, strings.Join(known, ", "))
}

// Preempt takes a Spot slice back, as Google does.
func (d *Demo) Preempt(ctx context.Context, slice string) error {
	return d.onSlice(ctx, slice, func(c world.SliceConfig, zone string) error {
		switch state, _ := d.API.State(zone, slice); {
		case !c.Spot:
			return fmt.Errorf("%s is no Spot slice, so Google does not take it back; break its host instead: pitstop demo host-error %s", slice, slice)
		case state != ready:
			return notReady(slice, state)
		}
		d.tell(slice, "you have Google take "+slice+" back")
		return d.API.Preempt(zone, slice)
	})
}

const ready = "READY"

func notReady(slice, state string) error {
	return fmt.Errorf("%s is %s at the moment; wait until it is READY", slice, state)
}

// HostError breaks a host of a slice. Google repairs it after that long; 0 is never.
func (d *Demo) HostError(ctx context.Context, slice string, repaired time.Duration) error {
	return d.onSlice(ctx, slice, func(_ world.SliceConfig, zone string) error {
		if state, _ := d.API.State(zone, slice); state != ready {
			return notReady(slice, state)
		}
		text := "you break a host of " + slice + "; Google repairs it in " + events.Span(repaired)
		if repaired == 0 {
			text, repaired = "you break a host of "+slice+"; Google does not repair it", -1
		}
		d.tell(slice, text)
		return d.API.HostError(zone, slice, repaired)
	})
}

// Maintain announces maintenance of a slice that begins then, or begins it at once and unannounced.
func (d *Demo) Maintain(ctx context.Context, slice string, in time.Duration) error {
	return d.onSlice(ctx, slice, func(c world.SliceConfig, zone string) error {
		if state, _ := d.API.State(zone, slice); state != ready {
			return notReady(slice, state)
		}
		// The slices of a Multislice stand side by side, and Google maintains them together.
		var all []string
		for _, o := range d.Fleet {
			if o.WorkloadName() == c.WorkloadName() && o.Zone == c.Zone {
				all = append(all, o.Name)
			}
		}
		if in == 0 {
			d.tell(slice, "you have Google begin maintenance of "+strings.Join(all, " and ")+", unannounced")
		} else {
			d.tell(slice, "you have Google announce maintenance of "+strings.Join(all, " and ")+" in "+events.Span(in))
		}
		for _, name := range all {
			if err := d.Cloud.Maintain(zone, name, in, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// Withdraw takes announced maintenance of a slice back.
func (d *Demo) Withdraw(ctx context.Context, slice string) error {
	return d.onSlice(ctx, slice, func(_ world.SliceConfig, zone string) error {
		if n := d.API.Node(zone, slice); n.UpcomingMaintenance == nil {
			return fmt.Errorf("no maintenance of %s is announced", slice)
		}
		d.tell(slice, "you have Google withdraw the maintenance of "+slice)
		return d.API.Withdraw(zone, slice)
	})
}

// training is the training on a slice, as its crew runs it. In a Multislice one crew speaks for all.
func (d *Demo) training(c world.SliceConfig) (*trainingtest.Training, error) {
	for _, o := range d.Fleet {
		if o.WorkloadName() == c.WorkloadName() && !o.Crew.Absent {
			return d.Trainings[o.Name], nil
		}
	}
	return nil, fmt.Errorf("%s has no crew, so nobody sees what its training does; choose another slice", c.Name)
}

// running is the training on a slice, if it makes steps.
func (d *Demo) running(c world.SliceConfig) (*trainingtest.Training, error) {
	t, err := d.training(c)
	if err != nil {
		return nil, err
	}
	if _, runs := t.Running(); !runs || t.Hangs() {
		return nil, fmt.Errorf("the training of %s does not run at the moment; pitstop status %s --demo shows why", c.Name, c.WorkloadName())
	}
	return t, nil
}

// Hang has the training of a slice make no more steps, without a word.
func (d *Demo) Hang(ctx context.Context, slice string) error {
	return d.onSlice(ctx, slice, func(c world.SliceConfig, _ string) error {
		t, err := d.running(c)
		if err != nil {
			return err
		}
		d.tell(slice, "you have the training of "+c.WorkloadName()+" stand still at step "+events.Number(t.LastStep()))
		t.Hang()
		return nil
	})
}

// Crash ends the training of a slice with an exit code, and as many attempts in a row as times says.
func (d *Demo) Crash(ctx context.Context, slice string, code, times int) error {
	return d.onSlice(ctx, slice, func(c world.SliceConfig, _ string) error {
		t, err := d.running(c)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("you have the training of %s end with exit code %d at step %s", c.WorkloadName(), code, events.Number(t.LastStep()))
		if times > 1 {
			text += fmt.Sprintf(", and the next %d attempts, too", times-1)
			t.Loop(code, times-1, false)
		}
		d.tell(slice, text)
		t.Crash(code)
		return nil
	})
}

// Stockout leaves a zone no room for new slices for that long; 0 is until Room.
func (d *Demo) Stockout(ctx context.Context, zone string, lasts time.Duration) error {
	return d.inZone(ctx, zone, func() error {
		text := "you leave " + zone + " no room for new slices"
		if lasts > 0 {
			text += ", for " + events.Span(lasts)
		}
		d.tell("", text)
		d.Cloud.Supply(zone, 0, lasts)
		return nil
	})
}

// Room gives a zone room for every slice.
func (d *Demo) Room(ctx context.Context, zone string) error {
	return d.inZone(ctx, zone, func() error {
		d.tell("", "you give "+zone+" room for every slice")
		d.Cloud.Supply(zone, cloudtputest.Unlimited, 0)
		return nil
	})
}

func (d *Demo) inZone(ctx context.Context, zone string, do func() error) error {
	if zones := d.API.Zones(); !slices.Contains(zones, zone) {
		return d.unknown("zone", zone, zones)
	}
	return d.act(ctx, do)
}

// Delete deletes a slice as its owner does. A queued resource goes with its slices.
func (d *Demo) Delete(ctx context.Context, slice string) error {
	return d.onSlice(ctx, slice, func(c world.SliceConfig, zone string) error {
		if c.QueuedResource != "" {
			d.tell(slice, "you delete the queued resource "+c.QueuedResource+" as its owner; Pitstop leaves that to you")
			return d.API.OwnerDeleteQueuedResource(zone, c.QueuedResource, d.Owner())
		}
		d.tell(slice, "you delete "+slice+" as its owner; Pitstop leaves that to you")
		return d.API.OwnerDelete(zone, slice, d.Owner())
	})
}

// Create creates a slice of the fleet that is not there, as its owner does, where it was at first.
func (d *Demo) Create(ctx context.Context, slice string) error {
	c, err := d.slice(slice)
	if err != nil {
		return err
	}
	return d.act(ctx, func() error {
		if zone := d.zoneOf(slice); zone != "" {
			return fmt.Errorf("%s is there already, in %s", slice, zone)
		}
		order := d.Order(c)
		order.Zone = c.Zone
		if c.QueuedResource != "" {
			d.tell(slice, "you create the queued resource "+c.QueuedResource+" as its owner")
			q := cloudtputest.QueuedConfig{Zone: c.Zone, Name: c.QueuedResource, Spot: c.Spot, Nodes: []cloudtputest.NodeConfig{order}}
			return d.API.OwnerCreateQueuedResource(q, d.Owner())
		}
		d.tell(slice, "you create "+slice+" as its owner")
		return d.API.OwnerCreate(order, d.Owner())
	})
}

// Holdable names what Hold holds.
var Holdable = []string{"pubsub"}

// Hold has Pub/Sub deliver nothing for that long; 0 has it deliver again.
func (d *Demo) Hold(ctx context.Context, what string, lasts time.Duration) error {
	if !slices.Contains(Holdable, what) {
		return d.unknown("service to hold", what, Holdable)
	}
	return d.act(ctx, func() error {
		if lasts > 0 {
			d.tell("", "you have Pub/Sub deliver nothing for "+events.Span(lasts)+"; it keeps every message")
		}
		until := d.Now().Add(lasts)
		d.Broker.Hold(until)
		d.Clock.At(until, func() {
			if d.Broker.Held().Equal(until) { // nobody has held it anew
				d.tell("", "Pub/Sub delivers again")
			}
		})
		return nil
	})
}

// Functions are the names of the functions.
func Functions() []string {
	var names []string
	for _, f := range world.Functions {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

// Kill ends every instance of a function, and has none start again for that long; 0 lets it start again.
func (d *Demo) Kill(ctx context.Context, function string, lasts time.Duration) error {
	if !slices.Contains(Functions(), function) {
		return d.unknown("function", function, Functions())
	}
	return d.act(ctx, func() error {
		if lasts > 0 {
			d.tell("", "you kill "+function+"; it does not start again for "+events.Span(lasts))
		}
		until := d.Now().Add(lasts)
		d.mu.Lock()
		d.down[function] = until
		d.mu.Unlock()
		d.Clock.At(until, func() {
			d.mu.Lock()
			last := d.down[function].Equal(until)
			d.mu.Unlock()
			if last { // nobody has killed it anew
				d.tell("", function+" starts again")
			}
		})
		return nil
	})
}
