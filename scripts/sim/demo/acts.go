package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/view"
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
		return fmt.Errorf("%s has no TPU at the moment; %s shows why, and %s makes one", name, d.call("status --demo"), d.call("demo create "+name))
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

// queuedZone is where the queued resource of a slice is; empty if it is nowhere.
func (d *Demo) queuedZone(c world.SliceConfig) string {
	for _, zone := range d.API.Zones() {
		if c.QueuedResource != "" && d.API.QueuedResource(zone, c.QueuedResource) != nil {
			return zone
		}
	}
	return ""
}

// call is a call of the command, for people who make it.
func (d *Demo) call(args string) string { return d.calledAs + " " + args }

// done tells what somebody has done, unless it failed.
func (d *Demo) done(err error, slice, text string) error {
	if err == nil {
		d.tell(slice, text)
	}
	return err
}

// act does something in the demo.
func (d *Demo) act(ctx context.Context, do func() error) error {
	return d.inTurn(ctx, func() error {
		d.acting.Store(true)
		defer d.acting.Store(false)
		return refused(do())
	})
}

// refused is the error of an act. The simulated API names its package first, which says nothing to those who read it.
func refused(err error) error {
	if err == nil {
		return nil
	}
	if why, ok := strings.CutPrefix(err.Error(), "cloudtputest: "); ok {
		return errors.New("the simulated Cloud TPU API refuses that: " + why)
	}
	return err
}

func (d *Demo) unknown(what, name string, known []string) error {
	near, ok := strings.CutPrefix(policy.Nearest(name, known), "did you mean ")
	if ok {
		return fmt.Errorf("the demo has no %s %q; did you mean %s", what, name, near)
	}
	are := "are"
	if len(known) == 1 {
		are = "is"
	}
	return fmt.Errorf("the demo has no %s %q; there %s %s", what, name, are, strings.Join(known, ", "))
}

// Preempt takes a Spot slice back, as Google does.
func (d *Demo) Preempt(ctx context.Context, slice string) error {
	return d.onSlice(ctx, slice, func(c world.SliceConfig, zone string) error {
		switch state, _ := d.API.State(zone, slice); {
		case c.Spot && state == ready && !d.API.Reclaimable(zone, slice):
			return fmt.Errorf("%s stands on demand at the moment, so Google does not take it back; break its host instead: %s", slice, d.call("demo host-error "+slice))
		case !c.Spot:
			return fmt.Errorf("%s is no Spot slice, so Google does not take it back; break its host instead: %s", slice, d.call("demo host-error "+slice))
		case state != ready:
			return notReady(slice, state)
		}
		return d.done(d.API.Preempt(zone, slice), slice, "you have Google take "+slice+" back")
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
		return d.done(d.API.HostError(zone, slice, repaired), slice, text)
	})
}

// Maintain announces maintenance of a slice that begins then, or begins it at once and unannounced.
func (d *Demo) Maintain(ctx context.Context, slice string, in time.Duration) error {
	return d.onSlice(ctx, slice, func(c world.SliceConfig, zone string) error {
		// The slices of a Multislice stand side by side, and Google maintains them together.
		var all []string
		for _, o := range d.Fleet {
			if o.WorkloadName() != c.WorkloadName() || o.Zone != c.Zone {
				continue
			}
			switch state, _ := d.API.State(zone, o.Name); state {
			case ready:
				all = append(all, o.Name)
			case "":
				return fmt.Errorf("%s has no TPU in %s at the moment; Google maintains the slices of a Multislice together", o.Name, zone)
			default:
				return notReady(o.Name, state)
			}
		}
		var begun []string
		var err error
		for _, name := range all {
			if err = d.Cloud.Maintain(zone, name, in, 0); err != nil {
				break
			}
			begun = append(begun, name)
		}
		switch names := strings.Join(begun, " and "); {
		case begun == nil:
		case in == 0:
			d.tell(slice, "you have Google begin maintenance of "+names+", unannounced")
		default:
			d.tell(slice, "you have Google announce maintenance of "+names+" in "+events.Span(in))
		}
		return err
	})
}

// Withdraw takes announced maintenance of a slice back.
func (d *Demo) Withdraw(ctx context.Context, slice string) error {
	return d.onSlice(ctx, slice, func(_ world.SliceConfig, zone string) error {
		if n := d.API.Node(zone, slice); n.UpcomingMaintenance == nil {
			return fmt.Errorf("no maintenance of %s is announced", slice)
		}
		return d.done(d.API.Withdraw(zone, slice), slice, "you have Google withdraw the maintenance of "+slice)
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
	if t.Hangs() {
		return nil, fmt.Errorf("the training of %s hangs at step %s; wait until Pitstop has restarted it", c.Name, events.Number(t.LastStep()))
	}
	if _, runs := t.Running(); !runs {
		return nil, fmt.Errorf("the training of %s does not run at the moment; %s shows why", c.Name, d.call("status "+c.WorkloadName()+" --demo"))
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
		t.Hang()
		d.tell(slice, "you have the training of "+c.WorkloadName()+" stand still at step "+events.Number(t.LastStep()))
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
		t.Crash(code)
		d.tell(slice, text)
		return nil
	})
}

// Stockout leaves a zone, or a part of it that cloudtputest.ParsePlace reads, no room for new slices for that long; 0 is until Room.
func (d *Demo) Stockout(ctx context.Context, zone, of string, lasts time.Duration) error {
	return d.inPlace(ctx, zone, of, func(at view.Place) error {
		text := "you leave " + at.String() + " no room for new slices"
		if lasts > 0 {
			text += ", for " + events.Span(lasts)
		}
		d.Cloud.Supply(at, 0, lasts)
		d.tell("", text)
		return nil
	})
}

// Room gives a zone, or a part of it, room for every slice.
func (d *Demo) Room(ctx context.Context, zone, of string) error {
	return d.inPlace(ctx, zone, of, func(at view.Place) error {
		d.Cloud.Supply(at, cloudtputest.Unlimited, 0)
		d.tell("", "you give "+at.String()+" room for every slice")
		return nil
	})
}

func (d *Demo) inPlace(ctx context.Context, zone, of string, do func(at view.Place) error) error {
	if zones := d.API.Zones(); !slices.Contains(zones, zone) {
		return d.unknown("zone", zone, zones)
	}
	at, err := cloudtputest.ParsePlace(zone + " " + of)
	if err != nil {
		return err
	}
	return d.act(ctx, func() error { return do(at) })
}

// Delete deletes a slice as its owner does. A queued resource goes with its slices, and goes alone where it has none.
func (d *Demo) Delete(ctx context.Context, slice string) error {
	c, err := d.slice(slice)
	if err != nil {
		return err
	}
	if c.QueuedResource == "" {
		return d.onSlice(ctx, slice, func(_ world.SliceConfig, zone string) error {
			return d.done(d.API.OwnerDelete(zone, slice, d.Owner()), slice, "you delete "+slice+" as its owner; Pitstop leaves that to you")
		})
	}
	return d.act(ctx, func() error {
		zone := d.queuedZone(c)
		switch {
		case zone == "":
			return fmt.Errorf("%s has no queued resource at the moment; %s makes one", slice, d.call("demo create "+slice))
		case d.queuedState(c, zone) == deleting:
			return goesAway(c.QueuedResource)
		}
		return d.deleteQueued(c, zone)
	})
}

// deleteQueued deletes the queued resource of a slice as its owner does.
func (d *Demo) deleteQueued(c world.SliceConfig, zone string) error {
	return d.done(d.API.OwnerDeleteQueuedResource(zone, c.QueuedResource, d.Owner()), c.Name,
		"you delete the queued resource "+c.QueuedResource+" as its owner; Pitstop leaves that to you")
}

func (d *Demo) queuedState(c world.SliceConfig, zone string) string {
	if q := d.API.QueuedResource(zone, c.QueuedResource); q != nil {
		return q.State.State
	}
	return ""
}

// deleting is the state of what will soon be gone.
const deleting = "DELETING"

func goesAway(name string) error { return fmt.Errorf("%s is DELETING; wait until it is gone", name) }

// goneWithin is how long an empty queued resource takes at most to be gone.
const goneWithin = 10 * time.Minute

// Create creates a slice of the fleet that is not there, as its owner does, where it was at first. If an empty queued resource has its
// name, Create deletes that first.
func (d *Demo) Create(ctx context.Context, slice string) error {
	c, err := d.slice(slice)
	if err != nil {
		return err
	}
	var zone string
	err = d.act(ctx, func() (err error) {
		zone, err = d.clearWay(c)
		return err
	})
	if err != nil {
		return err
	}
	for until := d.Now().Add(goneWithin); zone != "" && d.queuedState(c, zone) != ""; {
		if d.Now().After(until) {
			return fmt.Errorf("the queued resource %s is still there; try again later", c.QueuedResource)
		}
		if err := d.Sleep(ctx, 5*time.Second); err != nil {
			return err
		}
	}
	return d.act(ctx, func() error {
		order := d.Order(c)
		order.Zone = c.Zone
		if c.QueuedResource != "" {
			q := cloudtputest.QueuedConfig{Zone: c.Zone, Name: c.QueuedResource, Spot: c.Spot, Nodes: []cloudtputest.NodeConfig{order}}
			return d.done(d.API.OwnerCreateQueuedResource(q, d.Owner()), slice, "you create the queued resource "+c.QueuedResource+" as its owner")
		}
		return d.done(d.API.OwnerCreate(order, d.Owner()), slice, "you create "+slice+" as its owner")
	})
}

// clearWay reports why a slice cannot be created now. An empty queued resource of its name it deletes, and says where that is.
func (d *Demo) clearWay(c world.SliceConfig) (zone string, err error) {
	if zone := d.zoneOf(c.Name); zone != "" {
		if state, _ := d.API.State(zone, c.Name); state == deleting {
			return "", goesAway(c.Name)
		}
		return "", fmt.Errorf("%s is there already, in %s", c.Name, zone)
	}
	zone = d.queuedZone(c)
	switch state := d.queuedState(c, zone); state {
	case "":
		return "", nil
	case deleting:
		return "", goesAway(c.QueuedResource)
	case "SUSPENDED", "SUSPENDING", "FAILED":
		return zone, d.deleteQueued(c, zone)
	default: // it will bring the slice
		return "", fmt.Errorf("the queued resource %s is %s in %s already; %s gives it room", c.QueuedResource, state, zone, d.call("demo room "+zone))
	}
}

// Holdable names what Hold holds.
var Holdable = []string{"pubsub"}

// Hold has Pub/Sub deliver nothing for that long; 0 has it deliver again.
func (d *Demo) Hold(ctx context.Context, what string, lasts time.Duration) error {
	if !slices.Contains(Holdable, what) {
		return d.unknown("service to hold", what, Holdable)
	}
	return d.act(ctx, func() error {
		if lasts == 0 && !d.Broker.Held().After(d.Now()) {
			return nil // it delivers
		}
		until := d.Now().Add(lasts)
		d.Broker.Hold(until)
		if lasts > 0 {
			d.tell("", "you have Pub/Sub deliver nothing for "+events.Span(lasts)+"; it keeps every message")
		}
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
		if lasts == 0 && !d.isDown(function) {
			return nil // it runs
		}
		until := d.Now().Add(lasts)
		d.mu.Lock()
		d.down[function] = until
		d.mu.Unlock()
		if lasts > 0 {
			d.tell("", "you kill "+function+"; it does not start again for "+events.Span(lasts))
		}
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
