package incident_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// newWorld begins with a workload that its owner has just made.
func newWorld(seed uint64) *world {
	o := &world{
		Rand: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), //nolint:gosec // a walk is repeated by its seed
		zones: []string{"z1", "z2", "z3"}, last: map[string]string{}, seen: map[string]string{}, w: incident.New("p", "llama", "cloud-tpu"),
	}
	o.policy = policy.Policy{Name: "everything", Switches: policy.Everything(), Zones: o.zones, Hash: "h"}
	if !o.chance(15) {
		o.w.Directory = "gs://llama"
	}
	names := []string{"a", "b"}[:1+o.IntN(2)]
	for _, name := range names {
		l := o.make(name, "z1", "")
		l.ready, l.booted = o.now, o.now
		o.read(name, "z1")
	}
	o.pass(2 * time.Minute)
	if o.lease != nil && o.chance(60) { // an incident before has written it
		var named []events.Admission
		for slice, l := range o.lease.lives {
			named = append(named, events.Admission{Slice: slice, Incarnation: l.inc})
		}
		o.w.Lease = incident.Lease{Sure: incident.Write{At: o.now, Attempt: 2, Lives: named}}
		o.put(lease{epoch: 1, incident: "before", attempt: 2, lives: o.lease.lives}, "an incident before")
	}
	return o
}

// owned are the lives that run, and were not called to be deleted.
func (o *world) owned() (all []*life) {
	for _, l := range o.lives {
		if l.stands(o.now) {
			all = append(all, l)
		}
	}
	return all
}

// ownerDeletes deletes a life, and word of it comes later, or never.
func (o *world) ownerDeletes(l *life) {
	o.note("its owner deletes %s", l.id())
	o.delete(l)
	at := o.now
	if o.chance(90) {
		late := []time.Duration{time.Minute, 30 * time.Minute}[o.IntN(2)]
		o.later(o.within(late), func() {
			origin := evidence.Origin{ID: "owner", Time: at, Rank: events.RankAudit}
			o.give(evidence.Called{Origin: origin, Slice: l.slice, Zone: l.inc.Zone, Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com"})
		})
	}
}

// training is the life of a slice that trains.
func (o *world) training(slice string) *life {
	for _, l := range o.lives {
		if l.slice == slice && l.trains > 0 {
			return l
		}
	}
	return nil
}

// ownerMakes makes a slice, and word of it comes later, or never.
func (o *world) ownerMakes(slice, zone string) {
	o.note("its owner makes %s", o.make(slice, zone, "").id())
	if at := o.now; o.chance(60) {
		o.later(o.within(10*time.Minute), func() {
			origin := evidence.Origin{ID: "owner", Time: at, Rank: events.RankAudit}
			o.give(evidence.Called{Origin: origin, Slice: slice, Zone: zone, Act: events.ActCreated, Method: "CreateNode", Principal: "ann@example.com"})
		})
	}
}

// ownerMoves makes a slice elsewhere and deletes it where it trained, soon after or before, while its crew may see nothing of it.
func (o *world) ownerMoves(slice, zone string) {
	last, next := o.training(slice), o.make(slice, zone, "")
	o.note("its owner moves it to %s", next.id())
	next.ready = o.now.Add(o.within(2 * time.Minute))
	next.booted = next.ready
	if last == nil {
		return
	}
	if o.chance(50) {
		last.blind = o.now.Add(o.within(30 * time.Minute))
	}
	o.later(o.within(10*time.Minute), func() { o.ownerDeletes(last) })
}

// scene is whom something may happen to: a slice, a zone for it, and one of the lives that run; nil where none does.
type scene struct {
	slice, zone string
	life        *life
}

// happenings are what may happen. A number up to a hundred is drawn: the first of them happens that stands above it, and that can happen.
var happenings = []struct {
	below int
	can   func(*world, scene) bool
	do    func(*world, scene)
}{
	{12, (*world).runs, (*world).preempt},
	{20, (*world).runs, func(o *world, at scene) { o.ownerDeletes(at.life) }},
	{30, (*world).isFree, func(o *world, at scene) { o.ownerMakes(at.slice, at.zone) }},
	{46, (*world).isFree, func(o *world, at scene) { o.ownerMoves(at.slice, at.zone) }},
	{52, (*world).runs, (*world).blind},
	{55, (*world).always, (*world).vanish},
	{57, (*world).hasDirectory, func(o *world, _ scene) { o.putBad(lease{foreign: true, attempt: 3, epoch: 4}) }},
	{58, (*world).hasDirectory, func(o *world, _ scene) { o.putBad(lease{wild: true, attempt: 2_000_000, epoch: 1}) }},
	{66, (*world).trains, func(o *world, at scene) { o.gaveUp(at.life) }},
	{76, (*world).always, func(o *world, _ scene) { o.steps() }},
	{80, (*world).always, (*world).retry},
	{82, (*world).isOpen, (*world).cancel},
	{86, (*world).always, func(o *world, _ scene) { o.beat() }},
	{88, (*world).hasRoom, (*world).add},
	{93, (*world).trains, (*world).exits},
}

func (*world) always(scene) bool           { return true }
func (*world) runs(at scene) bool          { return at.life != nil }
func (*world) trains(at scene) bool        { return at.life != nil && at.life.trains > 0 }
func (o *world) isFree(at scene) bool      { return o.at(at.slice, at.zone) == nil }
func (o *world) hasDirectory(_ scene) bool { return o.w.Directory != "" }
func (o *world) isOpen(_ scene) bool       { return o.w.Incident != nil }
func (o *world) hasRoom(_ scene) bool      { return len(o.w.Slices) < 2 }

func (o *world) preempt(at scene) {
	o.note("%s is preempted", at.life.id())
	at.life.dead = o.now
}

func (o *world) blind(at scene) {
	at.life.blind = o.now.Add(o.within(40 * time.Minute))
	o.note("the crew of %s is blind until %s", at.life.id(), at.life.blind.Format("15:04"))
}

func (o *world) vanish(_ scene) {
	o.note("the lease vanishes")
	o.lease = nil
}

func (o *world) retry(_ scene) {
	o.give(evidence.Retried{Origin: o.origin(events.RankUser), Word: evidence.Word{By: "ann"}})
}

func (o *world) cancel(_ scene) {
	o.give(evidence.Cancelled{Origin: o.origin(events.RankUser), Word: evidence.Word{By: "ann"}, Incident: o.w.Incident.ID})
}

func (o *world) add(at scene) {
	l := o.make("c", at.zone, "")
	o.note("its owner adds %s", l.id())
	o.read("c", at.zone)
}

// step has something happen, or nothing.
func (o *world) step() {
	at := scene{slice: o.w.Slices[o.IntN(len(o.w.Slices))].Name, zone: o.zones[o.IntN(len(o.zones))]}
	if running := o.owned(); len(running) > 0 {
		at.life = running[o.IntN(len(running))]
	}
	n := o.IntN(100)
	for _, h := range happenings {
		if n < h.below && h.can(o, at) {
			h.do(o, at)
			return
		}
	}
}

// exits ends an attempt, and its crew begins the next one by itself.
func (o *world) exits(at scene) {
	l, last := at.life, o.lease
	if last == nil || last.lives[l.slice] != l || last.attempt != l.trains || o.now.Before(l.blind) {
		return
	}
	for _, m := range l.with {
		m.trains, m.over = 0, last.attempt
	}
	next := *last
	next.incident = ""
	next.attempt++
	o.put(next, "the crew of "+l.id()+", after an exit")
}

// putBad puts a lease there that is not the workload's, and takes it away again after a while.
func (o *world) putBad(bad lease) {
	o.written++
	bad.generation = o.written
	last := o.lease
	o.lease = &bad
	o.note("lease: %s", &bad)
	o.later(o.within(time.Hour), func() {
		if o.lease == &bad {
			o.note("it goes")
			o.lease = last
		}
	})
}

// gaveUp ends an attempt for good.
func (o *world) gaveUp(l *life) {
	o.note("attempt %d gives up in %s", l.trains, l.id())
	attempt := l.trains
	for _, m := range l.with {
		m.trains, m.over = 0, attempt
	}
	o.report(l, events.ReportExited, attempt)
	o.report(l, events.ReportGaveUp, attempt)
}

func (o *world) report(l *life, kind events.Report, attempt int) {
	l.told = attempt
	r := events.CrewReport{Report: kind, Attempt: attempt, Zone: l.inc.Zone, Life: l.inc.ID, Node: l.slice, Step: int64(len(o.journal))}
	if kind == events.ReportExited {
		r.ExitCode = 139
	}
	o.give(evidence.Reported{Origin: o.origin(events.RankUser), Slice: l.slice, Report: r})
}

// steps has crews tell of their steps.
func (o *world) steps() {
	for _, l := range o.lives {
		if l.trains > 0 {
			o.report(l, events.ReportStarted, l.trains)
			o.report(l, events.ReportProgress, l.trains)
		}
	}
}

// beat reads what crews write on their machines.
func (o *world) beat() {
	for _, l := range o.lives {
		if l.alive(o.now) {
			o.give(evidence.Beat{Origin: o.origin(events.RankUser), Slice: l.slice, Incarnation: l.inc, Seen: o.now, Runs: l.trains > 0, Attempt: l.trains})
		}
	}
}

// patrol reads all that is there, and gives the time.
func (o *world) patrol() {
	for _, s := range o.w.Slices {
		for _, zone := range o.zones {
			known := zone == s.Zone || slices.ContainsFunc(s.Former, func(l incident.Life) bool { return l.Zone == zone })
			if o.chance(90) && (known || o.at(s.Name, zone) != nil) {
				o.looks(s.Name, zone)
			}
		}
	}
	o.give(evidence.Ticked{})
}

// leaseWalk goes on for some steps.
func leaseWalk(seed uint64, steps int) *world {
	o := newWorld(seed)
	for range steps {
		if o.broken != "" {
			break
		}
		o.step()
		spans := []time.Duration{30 * time.Second, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 25 * time.Minute}
		for end := o.now.Add(spans[o.IntN(len(spans))]); o.now.Before(end) && o.broken == ""; {
			o.patrol()
			o.pass([]time.Duration{30 * time.Second, time.Minute, 3 * time.Minute}[o.IntN(3)])
		}
	}
	return o
}

// TestNeverTwoTrain walks through what may happen to lives, crews and the lease: no two lives of a slice ever train at once, nor two
// attempts in one directory. Set PITSTOP_WALK to see one walk.
func TestNeverTwoTrain(t *testing.T) {
	n := uint64(2000)
	if testing.Short() {
		n = 200
	}
	if one, err := strconv.ParseUint(os.Getenv("PITSTOP_WALK"), 10, 64); err == nil {
		o := leaseWalk(one, 30)
		t.Fatalf("%s\n%s", o.broken, strings.Join(o.journal, "\n"))
	}
	broken, trains, leases, ours, risky := 0, 0, 0, 0, 0
	for seed := range n {
		o := leaseWalk(seed, 30)
		leases, ours = leases+o.written, ours+o.ours
		risky += o.risky
		if o.broken != "" {
			if broken++; broken <= 40 {
				t.Errorf("walk %d: %s", seed, o.broken)
			}
		}
		for _, l := range o.lives {
			trains += min(l.trains, 1)
		}
	}
	t.Logf("%d walks, %d broken; %d leases were written, %d by the heart, %d of them beside a life that still stood, and training runs in %d lives", n, broken, leases, ours, risky, trains)
}
