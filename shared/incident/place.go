package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// place is where a slot is to be made next, and from when; without a zone, no place can give it. A creation keeps its place until that
// refuses it, and goes where the other slices turned out to be unless it may have been made.
func (d *diagnosis) place(s *slot, apart bool) (at view.Place, from time.Time) {
	places, x := d.placesOf(s, apart), s.create
	if x == nil || x.Zone == "" {
		return d.free(s, places)
	}
	r := d.in.refusal(x.Place)
	if !x.Begun.IsZero() || slices.Contains(places, x.Place) && !r.Never && (d.over(r.Until) || x.Retry.Equal(r.Until)) {
		return x.Place, x.Retry
	}
	return d.free(s, places)
}

// mayCome reports whether a creation that was begun may have taken effect, or still may.
func (x *Effect) mayCome() bool { return x.Zone != "" && (!x.Begun.IsZero() || x.Failures > 0) }

// placesOf are the places where a slot may be made, in their order: its own zone, those of the policy, and then what else the policy names. The
// slices of a Multislice are in one zone and have one shape, whatever they are taken from: what is lost alone goes where the others are, and what is
// lost together moves together. Where the owner has put them in several zones, each stays in its own: that is apart.
func (d *diagnosis) placesOf(s *slot, apart bool) []view.Place {
	with, zone := d.w.group(s.Name), ""
	for i := range d.slots {
		o := &d.slots[i]
		if o.is(foreign) || !o.Released.IsZero() {
			continue
		}
		if at := d.standsIn(o); at.Zone != "" && o.Name != s.Name && !slices.Contains(with, o.Name) {
			at = beside(at, o, s)
			if apart {
				at.Zone = s.ownZone()
			}
			return d.placesAt(s, at)
		}
		zone = cmp.Or(zone, o.ownZone())
	}
	if apart {
		return d.placesAt(s, view.Place{Zone: s.ownZone()})
	}
	all := []view.Place{{Zone: cmp.Or(zone, s.ownZone())}}
	for _, zone := range d.p.Zones {
		if at := (view.Place{Zone: zone}); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return append(d.leftLast(s, all), d.alternatives(s, all)...)
}

// placesAt are a place, and what else the policy names in its zone with its shape.
func (d *diagnosis) placesAt(s *slot, at view.Place) []view.Place {
	all := []view.Place{at}
	others := slices.DeleteFunc(d.alternatives(s, all), func(p view.Place) bool { return p.Zone != at.Zone || p.Accelerator != at.Accelerator })
	return append(all, others...)
}

// isApart reports whether training last ran in several zones.
func (d *diagnosis) isApart() bool {
	first := ""
	for i := range d.slots {
		if s := &d.slots[i]; s.Released.IsZero() {
			zone := d.w.trainedIn(s.Slot)
			if first = cmp.Or(first, zone); zone != "" && zone != first {
				return true
			}
		}
	}
	return false
}

// trainedIn is the zone in which training last ran in a slot. Without a lease, it ran in the newest life that was there beside the others: what
// was made after one of them was lost has never trained with it.
func (w *Workload) trainedIn(s *Slot) string {
	if in := w.Lease.Sure.of(s.Name); in.Zone != "" {
		return in.Zone
	}
	if l := s.find(func(l *Life) bool { return !l.usable().IsZero() && w.metOthers(l) }); l != nil {
		return l.Zone
	}
	return ""
}

// metOthers reports whether every slot that was ever usable had a usable life that was not over when a life was made.
func (w *Workload) metOthers(l *Life) bool {
	return !slices.ContainsFunc(w.Slices, func(o Slot) bool {
		used := func(m *Life) bool { return !m.usable().IsZero() }
		met := func(m *Life) bool {
			return used(m) && !m.overBy(l.Incarnation.Created) && !l.overBy(m.Incarnation.Created)
		}
		return o.Released.IsZero() && o.find(used) != nil && o.find(met) == nil
	})
}

// standsIn is the place in which a slot stands, or may come to stand; none while it may still be made anywhere. What is to be deleted keeps its
// place until it is gone: its provider may bring it back before that.
func (d *diagnosis) standsIn(s *slot) view.Place {
	if !s.replace || s.isOurs() || s.exists() && s.delete != nil {
		return s.stands()
	}
	if x := s.create; x != nil && x.mayCome() {
		return x.Place
	}
	return view.Place{}
}

// ownShape is the shape that its owner ordered, and ownZone the zone. Where it was only made in vain, it never was.
func (s *Slot) ownShape() string { return cmp.Or(s.Order.Accelerator, s.Accelerator) }

func (s *Slot) ownZone() string {
	zone := s.Zone
	if l := s.find(func(l *Life) bool { return !l.isBeingMade() }); l != nil {
		zone = cmp.Or(l.Incarnation.Zone, zone)
	}
	return cmp.Or(s.Order.SpecZone, zone)
}

// ownCapacity is the capacity that its owner ordered.
func (s *Slot) ownCapacity() events.Capacity { return cmp.Or(s.Order.Capacity, s.Capacity) }

// stands is the place where a slot is, or last was.
func (s *Slot) stands() view.Place {
	return s.PlaceOf(&s.Life)
}

// PlaceOf is the place of one of its lives, beside the order of its owner's.
func (s *Slot) PlaceOf(l *Life) view.Place {
	at := view.Place{Zone: l.Zone}
	if l.Accelerator != s.ownShape() {
		at.Accelerator = l.Accelerator
	}
	if l.Capacity != s.ownCapacity() {
		at.Capacity = l.Capacity
	}
	return at
}

// placeBy is the place in a zone in which an alternative of the policy is asked for. What it shares with the owner's order is as ordered.
func (s *Slot) placeBy(a policy.Alternative, zone string) view.Place {
	return s.PlaceOf(&Life{Zone: zone, Facts: evidence.Facts{
		Accelerator: cmp.Or(a.Accelerator, s.ownShape()), Capacity: cmp.Or(a.Capacity, s.ownCapacity()),
	}})
}

// beside is the place of a slot that is made beside another one in that place: in its zone, and in the shape that it has there. Slices that were
// ordered in several shapes, and never came in another one, keep their own.
func beside(at view.Place, o, s *slot) view.Place {
	shape := cmp.Or(at.Accelerator, o.ownShape())
	unlike := s.stands().Accelerator == "" && o.stands().Accelerator == "" && s.Accelerator != o.Accelerator
	if unlike || shape == s.ownShape() {
		shape = ""
	}
	return view.Place{Zone: at.Zone, Accelerator: shape}
}

// alternatives are what else the policy names for a slot, in its order, zone after zone. Slices that differ in their shapes keep them.
func (d *diagnosis) alternatives(s *slot, zones []view.Place) (all []view.Place) {
	unlike := len(d.those(func(o *slot) bool { return o.Released.IsZero() && o.ownShape() != s.ownShape() })) > 0
	for _, a := range d.p.Places {
		var kind []view.Place
		for _, zone := range zonesOf(a, zones) {
			at := s.placeBy(a, zone)
			if unknown := !slices.Contains(zones, at) && !slices.Contains(all, at); unknown && !(unlike && at.Accelerator != "") {
				kind = append(kind, at)
			}
		}
		all = append(all, d.leftLast(s, kind)...)
	}
	return all
}

// zonesOf are the zones of an alternative: its own, or else all.
func zonesOf(a policy.Alternative, all []view.Place) []string {
	if a.Zones != nil {
		return a.Zones
	}
	var zones []string
	for _, p := range all {
		zones = append(zones, p.Zone)
	}
	return zones
}

// free is the place that has not just refused and was asked longest ago, else the one to ask again first. No place is asked before its turn, and
// none before those that come before it.
func (d *diagnosis) free(s *slot, places []view.Place) (at view.Place, from time.Time) {
	var asked time.Time
	for _, p := range places {
		r, turn := d.answerOf(s, p), d.turn(s, p)
		switch until := later(r.Until, turn); {
		case r.Never:
			continue
		case d.over(until):
			if at.Zone == "" || !from.IsZero() || r.At.Before(asked) {
				at, from, asked = p, time.Time{}, r.At
			}
		case at.Zone == "" || !from.IsZero() && until.Before(from):
			at, from = p, until
		}
		if !d.over(turn) {
			break
		}
	}
	return at, from
}

// answerOf is the refusal of a place that counts for a slot: each loss begins at the first place again.
func (d *diagnosis) answerOf(s *slot, at view.Place) view.Refusal {
	r := d.in.refusal(at)
	if !r.Never && r.At.Before(s.usable()) {
		return view.Refusal{}
	}
	return r
}

// turn is from when a place may be asked, once those before it have refused.
func (d *diagnosis) turn(s *slot, at view.Place) time.Time {
	if after := s.After(d.p, at); after > 0 {
		return d.by(d.w.refusedSince(d.now), after)
	}
	return time.Time{}
}

// nextTurn is the first place whose turn is still to come, and from when it is asked; none where all have had theirs.
func (d *diagnosis) nextTurn(s *slot, apart bool) (at view.Place, from time.Time) {
	if d.isQueued(s) {
		return d.leavesFor(s, apart)
	}
	for _, p := range d.placesOf(s, apart) {
		if turn := d.turn(s, p); !d.over(turn) && !d.in.refusal(p).Never {
			return p, turn
		}
	}
	return view.Place{}, time.Time{}
}

// isQueued reports whether an order of ours waits in a queue, which may be withdrawn. What was granted may not, nor what has brought a slice. One whose
// withdrawal was refused for good waits on where it is.
func (d *diagnosis) isQueued(s *slot) bool {
	waits := s.create != nil && !s.Ordered.IsZero() && s.Granted.IsZero() && !s.Unwithdrawn.Equal(s.Ordered) && !d.w.provider().staysInPlace
	return waits && !slices.ContainsFunc(s.create.all(), func(name string) bool { return d.w.life(name).exists() })
}

// leavesFor is the first place for which an order leaves the queue in which it waits, and from when; none where it waits for as long as it takes. A wait
// is a refusal: once all places before one have refused for its time, it is asked. A place that was not asked yet is worth less of a wait.
func (d *diagnosis) leavesFor(s *slot, apart bool) (at view.Place, from time.Time) {
	places, stands := d.placesOf(s, apart), s.create.Place
	for _, p := range places[slices.Index(places, stands)+1:] {
		r, after := d.answerOf(s, p), s.After(d.p, p)
		if after <= s.After(d.p, stands) || r.Never {
			continue
		}
		waits := after
		if r.Tries == 0 {
			waits = bounds.QueueFor
		}
		if leaves := later(d.turn(s, p), d.by(s.Ordered, waits)); at.Zone == "" || leaves.Before(from) {
			at, from = p, leaves
		}
	}
	return at, from
}

// hasWaited reports whether an order has waited in its queue until it leaves it for another place.
func (d *diagnosis) hasWaited(s *slot) bool {
	if !d.isQueued(s) {
		return false
	}
	at, from := d.leavesFor(s, d.isApart())
	return at.Zone != "" && d.over(from)
}

// wasAsked reports whether a place with that time, or a longer one, has refused a slot since it was last usable.
func (d *diagnosis) wasAsked(s *slot, after time.Duration) bool {
	return slices.ContainsFunc(d.in.Refusals, func(r view.Refusal) bool { return s.After(d.p, r.Place) >= after && d.answerOf(s, r.Place).Tries > 0 })
}

// countRefused is how many places have refused what is to be created, in words.
func (d *diagnosis) countRefused() string {
	if n := len(d.w.refusals(d.now)); n != 1 {
		return events.Number(int64(n)) + " places have"
	}
	return "1 place has"
}

// refusal is the refusal of a place; empty where it has refused nothing.
func (in *Incident) refusal(at view.Place) (r view.Refusal) {
	if i := slices.IndexFunc(in.Refusals, func(r view.Refusal) bool { return r.Place == at }); i >= 0 {
		r = in.Refusals[i]
	}
	return r
}

// refusalWords are why a place refused, in words.
func refusalWords(c reason.Code) string {
	switch c {
	case reason.Stockout.Code():
		return "no capacity"
	case reason.Quota.Code():
		return "quota used up"
	default:
	}
	return strings.ReplaceAll(string(c), "_", " ")
}

// nowhere leaves a slot to a person that no place of a known policy can give.
func (d *diagnosis) nowhere(s *slot) *Step {
	if d.p.Unreadable != "" { // it may name other places
		return wait(view.PhaseCreating, story.PolicyUnreadable.With(d.p.Unreadable), d.heldBy())
	}
	text, advice := "", story.AddZones.With(s.ownShape(), d.w.Name)
	if n := len(d.in.Refusals); n > 0 {
		last := d.in.Refusals[n-1]
		text = last.Text
		if last.Code == reason.NoQuota.Code() {
			advice = story.AskForQuota.With(cmp.Or(last.Accelerator, s.ownShape()), d.w.Name)
		}
	}
	if all := d.placesOf(s, d.isApart()); len(all) == 1 && len(d.slots) > 1 {
		advice = story.CreateTogether.With(all[0].Zone, s.ownShape())
	}
	return escalate(reason.CodeNoZone, story.NoPlace.With(s.Name, text), advice)
}
