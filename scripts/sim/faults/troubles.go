package faults

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

// Troubles are the events of a fleet: caused by Google, by the training itself, and by people. The seed decides which ones
// and when.
type Troubles struct {
	*world.World
	chaos    *Chaos
	releases *Releases
	checks   Witness
	sim      Draws
	dice     Dice
	over     bool
	// short is how many shortages there are in each place at a time.
	short map[view.Place]int
	// policies are the files between which somebody changes.
	policies [][]byte
}

// Draws are what the troubles of a run are drawn from.
type Draws struct {
	Seed   uint64
	Policy []byte
	Faults Faults
	Rates  Rates
	Traces []Trace
}

// Witness is told what happens to the fleet, and what people do.
type Witness interface {
	// Workload is that of a slice.
	Workload(slice string) string
	// ByHand reports whether a person was asked to delete the slices of a workload.
	ByHand(workload string) bool
	// Happened is told of a trouble by its name, with the slice if it concerns one.
	Happened(what, slice string)
	// Befell is told of a trouble of a Job by its name.
	Befell(what string, g *world.Gang)
	// Mends is told that a person comes to look after a slice that does not train.
	Mends(workload, slice string, usable bool)
	// JobMends is told that a person comes to look after a Job whose training hangs.
	JobMends(g *world.Gang)
	// Ordered is told of the shape in which an owner orders a slice, and took of a slice that one deletes.
	Ordered(c world.SliceConfig, shape string)
	Took(slice string)
	// Suspects is told what Google suspects on a life, or does not any more.
	Suspects(life string, suspected bool)
	// Enforced is told of the policy file in force from now on.
	Enforced(file []byte)
}

// happening is one thing that may happen to a slice.
type happening struct {
	name string
	// spot and other are how often it happens to Spot and to other slices, in times per day.
	spot, other float64
	strike      func(t *Troubles, d Dice, c world.SliceConfig, zone string) error
}

var happenings = []happening{
	{"preempted", 1.2, 0, func(t *Troubles, _ Dice, c world.SliceConfig, zone string) error { return t.API.Preempt(zone, c.Name) }},
	{"vanished", 0.1, 0, func(t *Troubles, _ Dice, c world.SliceConfig, zone string) error { return t.API.Vanish(zone, c.Name) }},
	{"terminated", 0, 0.05, func(t *Troubles, _ Dice, c world.SliceConfig, zone string) error {
		return t.API.Terminate(zone, c.Name)
	}},
	{"host error, repaired", 0.2, 0.3, func(t *Troubles, d Dice, c world.SliceConfig, zone string) error {
		return t.API.HostError(zone, c.Name, d.between(5*time.Minute, 3*time.Hour))
	}},
	{"host error, for good", 0.02, 0.05, func(t *Troubles, _ Dice, c world.SliceConfig, zone string) error {
		return t.API.HostError(zone, c.Name, -1)
	}},
	{"maintenance without notice", 0.05, 0.1, func(t *Troubles, d Dice, c world.SliceConfig, zone string) error {
		return t.API.BeginMaintenance(zone, c.Name, d.between(5*time.Minute, time.Hour))
	}},
	{"maintenance announced", 0.1, 0.8, (*Troubles).announced},
	{"training crash", 0.3, 0.4, func(t *Troubles, d Dice, c world.SliceConfig, _ string) error {
		t.Trainings[c.Name].Crash(exitCodes[d.intN(len(exitCodes))])
		return nil
	}},
	{"crash loop", 0.03, 0.05, func(t *Troubles, d Dice, c world.SliceConfig, _ string) error {
		t.Trainings[c.Name].Loop(1, 1+d.intN(8), false)
		t.Trainings[c.Name].Crash(1)
		return nil
	}},
	{"crash loop with changing errors", 0.02, 0.03, func(t *Troubles, d Dice, c world.SliceConfig, _ string) error {
		t.Trainings[c.Name].Loop(1, 1+d.intN(30), true)
		t.Trainings[c.Name].Crash(1)
		return nil
	}},
	{"crash loop for good", 0.02, 0.03, func(t *Troubles, _ Dice, c world.SliceConfig, _ string) error {
		t.Trainings[c.Name].Loop(1, 0, false)
		t.Trainings[c.Name].Crash(1)
		return nil
	}},
	{"newest checkpoints cannot be restored", 0.1, 0.2, func(t *Troubles, d Dice, c world.SliceConfig, _ string) error {
		t.Trainings[c.Name].FallBack(int64(1 + d.intN(6)))
		return nil
	}},
	{"training hangs", 0.03, 0.05, func(t *Troubles, _ Dice, c world.SliceConfig, _ string) error {
		t.Trainings[c.Name].Hang()
		return nil
	}},
	{"dead though READY", 0.03, 0.05, func(t *Troubles, _ Dice, c world.SliceConfig, _ string) error {
		t.Trainings[c.Name].Die()
		return nil
	}},
	{"saves go wrong", 0.1, 0.2, (*Troubles).savesGoWrong},
	{"preempted, and goes on as a zombie", 0.15, 0, func(t *Troubles, d Dice, c world.SliceConfig, zone string) error {
		t.Trainings[c.Name].Haunt(d.between(time.Minute, 3*time.Hour))
		return t.API.Preempt(zone, c.Name)
	}},
	{"label changed", 0.05, 0.05, (*Troubles).relabelled},
	{"lost for a moment", 0.15, 0.05, (*Troubles).flickers},
	{"forged lines", 0.2, 0.2, (*Troubles).forged},
	{"owner stops and starts", 0, 0.05, (*Troubles).stopped},
	{"stopped by nobody that the log knows", 0, 0.1, (*Troubles).stoppedSilently},
	{"owner deletes", 0.05, 0.05, (*Troubles).deleted},
	{"another controller replaces", 0.02, 0.02, (*Troubles).replaced},
	{"abuse suspected", 0.01, 0.01, (*Troubles).suspected},
}

var exitCodes = []int{1, 2, 134, 137, 139, 143}

// elsewhere is one thing that may happen to everything, in times per day.
type elsewhere struct {
	name   string
	often  float64
	strike func(t *Troubles, d Dice)
}

var elsewheres = []elsewhere{
	{"stockout", 1.5, func(t *Troubles, d Dice) { t.full(d, view.Place{Zone: t.zone(d)}) }},
	{"stockout of Spot", 0.6, func(t *Troubles, d Dice) { t.full(d, view.Place{Zone: t.zone(d), Capacity: events.Spot}) }},
	{"stockout on demand", 0.4, func(t *Troubles, d Dice) { t.full(d, view.Place{Zone: t.zone(d), Capacity: events.OnDemand}) }},
	{"stockout of reservations", 0.2, func(t *Troubles, d Dice) { t.full(d, view.Place{Zone: t.zone(d), Capacity: events.Reserved}) }},
	{"stockout of a shape", 0.2, func(t *Troubles, d Dice) {
		shape := t.Fleet[d.Of("shape").intN(len(t.Fleet))].Accelerator
		t.full(d, view.Place{Zone: t.zone(d), Accelerator: shape})
	}},
	{"stockout of Spot everywhere", 0.05, func(t *Troubles, d Dice) {
		for _, zone := range t.World.Zones() {
			t.full(d, view.Place{Zone: zone, Capacity: events.Spot})
		}
	}},
	{"stockout everywhere", 0.05, func(t *Troubles, d Dice) {
		for _, zone := range t.World.Zones() {
			t.full(d, view.Place{Zone: zone})
		}
	}},
	{"everything paused", 0.3, func(t *Troubles, d Dice) {
		until := t.Clock.Now().Add(d.between(10*time.Minute, 3*time.Hour))
		t.pauseAll(&evidence.Pause{By: "ann@example.com", At: t.Clock.Now(), Until: until})
	}},
	{"policy changed", 0.5, func(t *Troubles, d Dice) {
		t.enforce(t.policies[d.Of("file").intN(len(t.policies))])
		t.after(d.Of("lasts").between(10*time.Minute, 8*time.Hour), func() { t.enforce(t.sim.Policy) })
	}},
	{"queued resources stuck in PROVISIONING", 0.3, func(t *Troubles, d Dice) {
		t.API.StickQueuedResources(d.Of("how long each").between(time.Hour, 12*time.Hour))
		t.after(d.Of("lasts").between(time.Hour, 6*time.Hour), func() { t.API.StickQueuedResources(0) })
	}},
	{"a function broken by a deployment", 0.2, (*Troubles).brokenFunction},
	{"an upgrade, with newer documents and events", 0.4, (*Troubles).upgraded},
	{"guest attributes blocked", 0.2, func(t *Troubles, d Dice) {
		t.API.BlockGuestAttributes(true)
		t.after(d.between(time.Hour, 6*time.Hour), func() { t.API.BlockGuestAttributes(false) })
	}},
	{"log entries held up", 0.5, func(t *Troubles, d Dice) {
		t.chaos.heldUp = t.Clock.Now().Add(d.between(5*time.Minute, 30*time.Minute))
	}},
	{"approved", 4, func(t *Troubles, _ Dice) { t.approveAll() }},
}

// zone draws one of the zones.
func (t *Troubles) zone(d Dice) string {
	zones := t.World.Zones()
	return zones[d.Of("zone").intN(len(zones))]
}

// full leaves a place no room for new slices for some hours.
func (t *Troubles) full(d Dice, at view.Place) {
	t.lacks(at, d.Of("lasts").between(10*time.Minute, 8*time.Hour))
}

// lacks leaves a place no room for so long. Another shortage there may last longer.
func (t *Troubles) lacks(at view.Place, lasts time.Duration) {
	t.short[at]++
	t.API.SetRoom(at, 0)
	t.after(lasts, func() {
		if t.short[at]--; t.short[at] == 0 {
			t.API.SetRoom(at, cloudtputest.Unlimited)
		}
	})
}

// NewTroubles are those of a world, drawn from these draws. They tell the witness what happens.
func NewTroubles(w *world.World, c *Chaos, r *Releases, seen Witness, sim Draws) *Troubles {
	return &Troubles{World: w, chaos: c, releases: r, checks: seen, sim: sim, dice: NewDice(sim.Seed).Of("troubles"), short: map[view.Place]int{}, policies: [][]byte{
		[]byte("policies: {}\n"), []byte("policies: {night: {preset: watch}\n"), // the second one cannot be read
	}}
}

// after does something that ends a trouble. It happens whatever else is left out.
func (t *Troubles) after(d time.Duration, f func()) { t.Clock.At(t.Clock.Now().Add(d), f) }

// Plan begins to draw.
func (t *Troubles) Plan() {
	for _, c := range t.Fleet {
		t.each(c, func(h happening, spot bool) func(Dice) {
			return func(d Dice) {
				if t.API.Reclaimable(t.whereIs(c.Name), c.Name) == spot {
					t.befall(d, h, c)
				}
			}
		})
	}
	for _, g := range t.Gangs() {
		for _, h := range jobHappenings {
			often := t.sim.Rates.of(h.happening, g.Pool().Spot)
			t.again(h.name, g.Scope+"/"+g.Slice, often, 0, func(d Dice) { t.befallJob(d, h, g) })
		}
	}
	for _, e := range elsewheres {
		t.again(e.name, "", t.sim.Rates.ofAll(e), 0, func(d Dice) {
			if t.chaos.strikes("%s", e.name) {
				t.checks.Happened(e.name, "")
				e.strike(t, d)
			}
		})
	}
	t.follow()
}

// each draws what happens to a slice: as it is ordered, and beside that as it may stand for a while, on demand in the place of Spot.
func (t *Troubles) each(c world.SliceConfig, befalls func(h happening, spot bool) func(Dice)) {
	for _, h := range happenings {
		t.again(h.name, c.Name, t.sim.Rates.of(h, c.Spot), 0, befalls(h, c.Spot))
		t.again(h.name, c.Name+" in another capacity", t.sim.Rates.of(h, !c.Spot), 0, befalls(h, !c.Spot))
	}
}

// again does something so and so often a day, from now on, until everything calms down, except for causes that a trace
// supplies. Its times and draws depend on its name, the slice, and how often it has happened.
func (t *Troubles) again(name, slice string, often float64, before int, f func(d Dice)) {
	rate := often * t.sim.Faults.Troubles
	if rate == 0 || t.sim.traced(name) {
		return
	}
	d := t.dice.Of(name, slice).nth(before)
	wait := time.Duration(min(gap(d.Of("gap").Rand())/rate, Longest.Hours()/24) * float64(24*time.Hour))
	t.Clock.At(t.Clock.Now().Add(wait), func() {
		if t.over {
			return
		}
		f(d)
		t.again(name, slice, often, before+1, f)
	})
}

// befall lets something happen to a slice, where it is at the moment, if it is usable and it can happen to it there.
func (t *Troubles) befall(d Dice, h happening, c world.SliceConfig) {
	zone := t.whereIs(c.Name)
	if state, _ := t.API.State(zone, c.Name); state != "READY" || !h.befalls(t.API.Reclaimable(zone, c.Name)) {
		return
	}
	if !t.chaos.strikes("%s: %s in %s", h.name, c.Name, zone) {
		return
	}
	t.checks.Happened(h.name, c.Name)
	if err := h.strike(t, d, c, zone); err != nil {
		t.Must(err)
	}
}

// whereIs finds the zone of a slice that can be used, or that is there at all.
func (t *Troubles) whereIs(name string) (zone string) {
	for _, z := range t.World.Zones() {
		if state, _ := t.API.State(z, name); state == "READY" || state != "" && zone == "" {
			zone = z
		}
	}
	return zone
}

// announced has maintenance announced for later; it may be moved, withdrawn, or take place.
func (t *Troubles) announced(d Dice, c world.SliceConfig, zone string) error {
	now := t.Clock.Now().UTC().Truncate(time.Second)
	start := now.Add(d.Of("begins").between(40*time.Minute, 12*time.Hour)).Truncate(time.Minute)
	n := events.Notice{
		Status: events.NoticePending, WindowStart: start, WindowEnd: start.Add(4 * time.Hour), LatestWindowStart: start, CanReschedule: d.Of("can be moved").intN(4) > 0,
	}
	life := t.API.Incarnation(zone, c.Name)
	still := func() bool { return t.API.Node(zone, c.Name) != nil && t.API.Incarnation(zone, c.Name).Same(life) }
	changes := d.Of("changes").between(0, start.Sub(now)-1)
	switch d.Of("what becomes of it").intN(4) {
	case 0: // withdrawn
		t.after(changes, func() {
			if still() {
				t.Must(t.API.Withdraw(zone, c.Name))
			}
		})
		return t.API.Announce(zone, c.Name, n)
	case 1: // moved
		moved := n
		moved.WindowStart, moved.WindowEnd, moved.LatestWindowStart = start.Add(3*time.Hour), start.Add(7*time.Hour), start.Add(3*time.Hour)
		t.after(changes, func() {
			if still() && t.API.Node(zone, c.Name).Health != "UNHEALTHY_MAINTENANCE" {
				t.Must(t.API.Announce(zone, c.Name, moved))
			}
		})
		start = moved.WindowStart
	}
	t.after(start.Sub(now)+d.Of("late").between(0, 30*time.Minute), func() {
		if node := t.API.Node(zone, c.Name); still() && node.State == "READY" && node.UpcomingMaintenance != nil {
			t.Must(t.API.BeginMaintenance(zone, c.Name, d.Of("lasts").between(5*time.Minute, time.Hour)))
		}
	})
	return t.API.Announce(zone, c.Name, n)
}

// flickers shows a slice as lost that Google brings back in the same life.
func (t *Troubles) flickers(d Dice, c world.SliceConfig, zone string) error {
	life, take, shown := t.API.Incarnation(zone, c.Name), t.API.Terminate, "TERMINATED"
	if t.API.Reclaimable(zone, c.Name) {
		take, shown = t.API.Preempt, "PREEMPTED"
	}
	t.after(d.between(time.Second, 2*time.Minute), func() {
		if n := t.API.Node(zone, c.Name); n != nil && n.State == shown && t.API.Incarnation(zone, c.Name).Same(life) {
			t.Must(t.API.SetState(zone, c.Name, "READY"))
			t.Must(t.API.SetHealth(zone, c.Name, "HEALTHY"))
		}
	})
	return take(zone, c.Name)
}

// stopped has the owner stop a slice of one worker, and start it again some hours later.
func (t *Troubles) stopped(d Dice, c world.SliceConfig, zone string) error {
	if len(t.API.Hosts(zone, c.Name)) != 1 || c.QueuedResource != "" {
		return nil
	}
	t.after(d.between(time.Hour, 6*time.Hour), func() {
		if n := t.API.Node(zone, c.Name); n != nil && n.State == "STOPPED" {
			t.Try(t.API.Start(zone, c.Name, Owner))
		}
	})
	t.Try(t.API.Stop(zone, c.Name, Owner)) // something else may be under way with it
	return nil
}

// stoppedSilently has a slice of one worker be found stopped, and no entry says why.
func (t *Troubles) stoppedSilently(_ Dice, c world.SliceConfig, zone string) error {
	if len(t.API.Hosts(zone, c.Name)) != 1 || c.QueuedResource != "" {
		return nil
	}
	return t.API.SetState(zone, c.Name, "STOPPED")
}

// deleted has the owner delete a slice, and create it again some hours later.
func (t *Troubles) deleted(d Dice, c world.SliceConfig, zone string) error {
	if c.QueuedResource != "" {
		return t.took(c, t.API.OwnerDeleteQueuedResource(zone, c.QueuedResource, Owner))
	}
	order := t.World.Order(c)
	order.Zone = zone
	t.after(d.between(2*time.Hour, 10*time.Hour), func() {
		if t.whereIs(c.Name) == "" {
			t.Try(t.API.OwnerCreate(order, Owner))
		}
	})
	return t.took(c, t.API.OwnerDelete(zone, c.Name, Owner))
}

// took takes note of a deletion, unless the cloud refused it because something else is under way.
func (t *Troubles) took(c world.SliceConfig, err error) error {
	if t.Try(err); err == nil {
		t.checks.Took(c.Name)
	}
	return nil
}

// savesGoWrong has the saves of a training be slow, torn, or refused for some hours.
func (t *Troubles) savesGoWrong(d Dice, c world.SliceConfig, _ string) error {
	training := t.Trainings[c.Name]
	takes, torn, refuses := training.SaveTakes, training.Torn, training.Refuses
	switch d.Of("what").intN(3) {
	case 0:
		training.Saves(d.Of("takes").between(2*time.Minute, 20*time.Minute), torn, refuses)
	case 1:
		training.Saves(takes, true, refuses)
	case 2:
		training.Saves(takes, torn, "the process does not handle the signal")
	}
	t.after(d.Of("lasts").between(time.Hour, 12*time.Hour), func() { training.Saves(takes, c.Trainer.Torn, c.Crew.Refuses) })
	return nil
}

// relabelled has the owner name another policy on a slice, and the first one again some hours later.
func (t *Troubles) relabelled(d Dice, c world.SliceConfig, zone string) error {
	label := []string{"watch", "spot", "reserved", "no-such-policy"}[d.Of("label").intN(4)]
	t.after(d.Of("lasts").between(30*time.Minute, 6*time.Hour), func() { t.labelAgain(c) })
	t.Try(t.API.SetLabel(zone, c.Name, events.LabelPolicy, label, Owner))
	return nil
}

// labelAgain has the owner of a slice name its first policy again, as soon as it is there and nothing else is under way with it.
func (t *Troubles) labelAgain(c world.SliceConfig) {
	if z := t.whereIs(c.Name); z == "" || t.API.SetLabel(z, c.Name, events.LabelPolicy, c.Policy, Owner) != nil {
		t.after(time.Hour, func() { t.labelAgain(c) })
	}
}

// Owner is who owns the whole fleet.
const Owner = "ada@example.com"

// replaced has another controller take a slice over: preempted, deleted and created again by somebody else.
func (t *Troubles) replaced(d Dice, c world.SliceConfig, zone string) error {
	if c.QueuedResource != "" {
		return nil
	}
	order := t.World.Order(c)
	order.Zone = zone
	if t.API.Reclaimable(zone, c.Name) {
		if err := t.API.Preempt(zone, c.Name); err != nil {
			return err
		}
	}
	const controller = "babysitter@example.com"
	t.after(d.between(time.Second, 5*time.Minute), func() {
		t.Try(t.API.OwnerDelete(zone, c.Name, controller))
		t.after(3*time.Minute, func() {
			if t.whereIs(c.Name) == "" {
				t.Try(t.API.OwnerCreate(order, controller))
			}
		})
	})
	return nil
}

// suspected has Google suspect abuse on a slice for some hours.
func (t *Troubles) suspected(d Dice, c world.SliceConfig, zone string) error {
	life := t.API.Incarnation(zone, c.Name)
	t.after(d.between(time.Hour, 12*time.Hour), func() {
		if t.API.Incarnation(zone, c.Name).Same(life) {
			t.Must(t.API.ClearSymptoms(zone, c.Name))
			t.checks.Suspects(life.ID, false)
		}
	})
	t.checks.Suspects(life.ID, true)
	return t.API.AddSymptom(zone, c.Name, "PROJECT_ABUSE", 0)
}

// enforce puts another policy file there.
func (t *Troubles) enforce(file []byte) {
	t.Opts.Policy = file
	t.checks.Enforced(file)
}

// Calm ends all troubles, so that running incidents must come to their ends.
func (t *Troubles) Calm() {
	t.over, t.chaos.over = true, true
	for _, at := range t.API.Scarce() {
		t.API.SetRoom(at, cloudtputest.Unlimited)
	}
	t.API.BlockGuestAttributes(false)
	t.API.StickQueuedResources(0)
	for _, c := range t.GKE {
		c.Calm()
	}
	t.enforce(t.sim.Policy)
	t.pauseAll(nil)
	var approve func()
	approve = func() {
		t.approveAll()
		t.Clock.At(t.Clock.Now().Add(time.Hour), approve)
	}
	t.Clock.At(t.Clock.Now().Add(time.Hour), approve)
}

// logged is what the sinks let through of an entry of the simulated world: late, twice, never, or without what need not be
// there. put is called for an entry whose time is put off.
func (c *Chaos) logged(w *world.World, raw []byte, put func(e events.Entry)) {
	e, err := events.Read(raw)
	d := c.dice.Of("log entry", e.ID)
	copies := 1
	switch {
	case c.happens(d.Of("lost"), c.EntryLost, "a log entry is lost"):
		return
	case c.happens(d.Of("twice"), c.EntryTwice, "a log entry comes twice"):
		copies = 2
	case c.happens(d.Of("bare"), c.EntryBare, "a log entry comes without what need not be there"):
		raw = bare(raw)
		e, err = events.Read(raw)
	case c.happens(d.Of("skewed"), c.EntrySkewed, "a log entry has the time of a clock that goes wrong"):
		raw = skewed(raw, d.Of("how skewed").between(-5*time.Minute, 5*time.Minute))
		if e, err = events.Read(raw); err == nil {
			put(e)
		}
	}
	wait := world.SinksTake
	for i := range copies {
		if d := d.nth(i); c.happens(d.Of("late"), c.EntryLate, "a log entry is late") {
			wait = d.Of("how late").between(time.Minute, 30*time.Minute)
		} else {
			wait = max(wait, c.heldUp.Sub(w.Clock.Now()))
		}
		w.Bring(raw, e, err, wait)
	}
}

// bare takes from an entry what need not be there.
func bare(raw []byte) []byte {
	return edited(raw, func(entry map[string]any) {
		delete(entry, "receiveTimestamp")
		delete(entry, "severity")
		delete(entry, "operation")
		if p, ok := entry["protoPayload"].(map[string]any); ok {
			delete(p, "metadata")
			delete(p, "request")
			delete(p, "requestMetadata")
		}
	})
}

// skewed puts the time of an entry off.
func skewed(raw []byte, by time.Duration) []byte {
	return edited(raw, func(entry map[string]any) {
		if s, ok := entry["timestamp"].(string); ok {
			if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
				entry["timestamp"] = at.Add(by).UTC().Format(time.RFC3339Nano)
			}
		}
	})
}

func edited(raw []byte, edit func(entry map[string]any)) []byte {
	var entry map[string]any
	if err := json.Unmarshal(raw, &entry); err != nil {
		return raw
	}
	edit(entry)
	out, err := json.Marshal(entry, json.Deterministic(true))
	if err != nil {
		return raw
	}
	return out
}

// approveAll says yes to everything that waits for a person.
func (t *Troubles) approveAll() {
	ids, err := t.Ledger.All(context.Background())
	t.Must(err)
	for _, id := range ids {
		doc, _, err := t.Ledger.Workload(context.Background(), id)
		if fault.IsBusy(err) {
			continue
		}
		t.Must(err)
		if in := doc.Shown(t.Clock.Now()).Incident; in != nil && in.Phase == view.Approving {
			t.Clock.Go(func() { t.Approve(id, "ann@example.com") })
			t.Clock.Settle()
		}
	}
}

// pauseAll pauses everything, or lifts that.
func (t *Troubles) pauseAll(p *evidence.Pause) {
	t.Must(t.Ledger.SetPause(context.Background(), p))
}
