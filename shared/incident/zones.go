//go:build !heart

package incident

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// candidates are the places to try for a slice: its old zone, then the zones of the policy, then its other shapes. The slices of a
// Multislice are in one zone and have one shape. A slice that is lost alone goes where the others are; slices that are lost
// together move together. Where the owner has put them in different zones, the slice stays in its zone and takes the shape of the
// others.
func (m *machine) candidates(s *Slot) []Place {
	places := []Place{{Zone: s.own().Zone}}
	apart, first := m.apart(), true
	for i := range m.w.Slices {
		o := &m.w.Slices[i]
		if o.IsReleased() {
			continue
		}
		if o.Name != s.Name && !m.together(o, s) {
			if at := m.anchors(o); at != (Place{}) {
				at = beside(at, *o, *s)
				switch {
				case apart && at.Accelerator == "":
					at.Zone = s.own().Zone
				case apart:
					at.Zone = s.Zone
				}
				return []Place{at}
			}
		}
		if first && !apart {
			places[0].Zone, first = o.own().Zone, false
		}
	}
	if apart {
		return places
	}
	for _, z := range m.p.Zones {
		if at := (Place{Zone: z}); !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	return append(places, m.shapes(s, places)...)
}

// apart reports whether training last ran in several zones.
func (m *machine) apart() bool {
	zone := ""
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if s.IsReleased() || !s.Admitted().Known() {
			continue
		}
		if zone != "" && s.Admitted().Zone != zone {
			return true
		}
		zone = s.Admitted().Zone
	}
	return false
}

// anchors is the place in which a slice stands, or may come to stand; none while Pitstop may still create it anywhere. A slice that
// is to be deleted keeps its place until it is gone: its provider may heal it before that.
func (m *machine) anchors(s *Slot) Place {
	if !s.ToReplace || s.Maker != "" || s.Condition != Gone && m.w.effect(events.ActionDelete, s.Name) != nil {
		return s.place()
	}
	if effect := m.w.effect(events.ActionCreate, s.Name); effect != nil && effect.mayCome() {
		return effect.Place()
	}
	return Place{}
}

// mayCome reports whether a creation that was begun may have taken effect, or still may.
func (effect Effect) mayCome() bool { return !effect.Begun.IsZero() || effect.Failures > 0 }

// together reports whether one request creates both slices.
func (m *machine) together(a, b *Slot) bool {
	return a.Group != "" && a.Group == b.Group && a.Zone == b.Zone
}

// moveRest moves the slices that are still to be created to the zone that is asked next.
func (m *machine) moveRest(effect *Effect, at time.Time) {
	if m.apart() {
		return
	}
	for i := range m.w.Effects {
		o := &m.w.Effects[i]
		if o == effect || o.Action != events.ActionCreate || o.mayCome() || o.Place() == effect.Place() {
			continue
		}
		if at.IsZero() && !o.Retry.IsZero() {
			o.Attempt++
		}
		o.Zone, o.Accelerator, o.Retry = effect.Zone, effect.Accelerator, at
		m.decided("create "+o.sliceList()+" in "+effect.Place().String()+" too", "the slices of a workload stay together")
	}
}

// rejoins moves a creation that can no longer take effect to the place where the other slices turned out to be.
func (m *machine) rejoins(effect *Effect) {
	if effect.Action != events.ActionCreate || !effect.Begun.IsZero() {
		return
	}
	s := m.w.Slice(effect.Slice)
	if slices.Contains(m.candidates(s), effect.Place()) {
		return
	}
	at, _ := m.nextPlace(s)
	if at == (Place{}) {
		return
	}
	effect.Zone, effect.Accelerator = at.Zone, at.Accelerator
	m.decided("create "+effect.sliceList()+" in "+at.String(), "the slices of a workload stay together")
}

// nextPlace is the place that was not asked for longest, among those that have not just refused the slice. Answers take their time,
// so Pitstop may ask the first place again before it has asked the last one at all. If all have refused, nextPlace is the one to
// ask again first, and when. It is empty where no place can ever give the slice.
func (m *machine) nextPlace(s *Slot) (at Place, from time.Time) {
	var asked, until time.Time
	var ready, later Place
	for _, p := range m.candidates(s) {
		var r Refusal
		if old := m.refusal(p); old != nil {
			r = *old
		}
		switch {
		case r.Never:
		case m.now.Before(r.Until):
			if later == (Place{}) || r.Until.Before(until) {
				later, until = p, r.Until
			}
		case ready == Place{} || r.At.Before(asked):
			ready, asked = p, r.At
		}
	}
	if ready != (Place{}) {
		return ready, time.Time{}
	}
	return later, until
}

func (m *machine) refusal(at Place) *Refusal {
	for i := range m.w.Incident.Zones {
		if m.w.Incident.Zones[i].Place() == at {
			return &m.w.Incident.Zones[i]
		}
	}
	return nil
}

// zoneRefused handles a zone that would not give a slice: the next zone, or this one again later.
func (m *machine) zoneRefused(effect Effect, f Failure) {
	in := m.inc()
	r := Refusal{Zone: effect.Zone, Accelerator: effect.Accelerator, At: m.now, Until: m.now.Add(m.pause(effect)), Text: f.Message, Code: f.Reason()}
	r.Never = slices.Contains([]FailureClass{WrongZone, NoQuota, CannotMove, OtherRegion}, f.Class)
	if f.Class == Quota {
		// Pitstop reads its own slices before it asks again: one of them may hold the missing quota.
		in.Look = true
		r.Until = m.now.Add(QuotaEvery)
	}
	if old := m.refusal(effect.Place()); old != nil {
		*old = r
	} else {
		in.Zones = append(in.Zones, r)
	}
	if in.WaitingSince.IsZero() {
		in.WaitingSince, in.Reminded = m.now, m.now
	}
	for _, name := range append([]string{effect.Slice}, effect.With...) {
		m.clearMadeMarks(m.w.Slice(name)) // it appeared for a moment, and was not created after all
	}
	s := m.w.Slice(effect.Slice)
	if s.Reclaimable && m.phase() == PhaseCreating {
		in.Deadline = time.Time{} // the wait for Spot capacity has no limit
	}
	to, from := m.nextPlace(s)
	if to == (Place{}) {
		m.nowhere(effect, f)
		return
	}
	why := refusalWords(f.Class) + " in " + effect.Place().String()
	next := m.effect(events.ActionCreate, effect.Slice)
	*next = Effect{
		Maker: effect.Maker, Action: events.ActionCreate, Slice: effect.Slice, With: effect.With, Zone: to.Zone, Accelerator: to.Accelerator, Attempt: effect.Attempt, Reason: why,
	}
	m.moveRest(next, from)
	if from.IsZero() {
		m.decided("create "+effect.sliceList()+" in "+to.String(), why)
		m.coded(r.Code)
		m.resend(next)
		return
	}
	next.Retry = from
	m.decided("ask "+to.String()+" again in "+events.Span(from.Sub(m.now)), "every zone refused: "+refusalWords(f.Class))
	m.coded(r.Code)
}

// moves reports whether an effect creates a slice in another zone or shape than the one in which its specification was read.
func (m *machine) moves(effect Effect) bool {
	return effect.Action == events.ActionCreate && (effect.Zone != m.w.Slice(effect.Slice).Zone || m.reshapedCreation(effect))
}

func refusalWords(c FailureClass) string {
	switch c {
	case Stockout:
		return "no capacity"
	case Quota:
		return "quota exceeded"
	case NoQuota:
		return "no quota at all"
	case ReservationFull:
		return "the reservation is full"
	case WrongZone:
		return "not offered"
	case CannotMove:
		return "the order does not fit"
	case OtherRegion:
		return "far from the checkpoints"
	default:
		return string(c)
	}
}

// nowhere ends an incident whose slice no zone can give.
func (m *machine) nowhere(effect Effect, f Failure) {
	s := m.w.Slice(effect.Slice)
	asked := s.In(effect.Place()).Accelerator
	advice := "add zones to the policy that offer " + s.own().Accelerator
	if f.Class == NoQuota {
		advice = "ask Google for quota for " + asked + ", or add zones to the policy where there is some"
	}
	if all := m.candidates(s); len(all) == 1 && len(m.w.Slices) > 1 {
		advice = "its other slices are in " + all[0].Zone + ": create all of them by hand in a zone that offers " + asked
	}
	m.escalate(CodeNoZone, "no zone can give "+effect.sliceList()+": "+f.Message, advice)
}

// recall forgets refusals whose time is over. The others hold for the next loss, too: a zone that has just refused one slice
// refuses another.
func (m *machine) recall() {
	in := m.inc()
	in.Zones = slices.DeleteFunc(in.Zones, func(r Refusal) bool { return !r.Never && !m.now.Before(r.Until) })
}

// capacityFound notes that a wait for capacity is over.
func (m *machine) capacityFound() {
	in := m.inc()
	waited := len(in.Zones) == 0 || slices.ContainsFunc(in.Zones, func(r Refusal) bool { return !r.Never })
	if since := in.WaitingSince; !since.IsZero() && waited {
		var zones []string
		for i := range m.w.Slices {
			s := &m.w.Slices[i]
			if at := s.place().String(); !s.IsReleased() && !s.isAdmitted() && !slices.Contains(zones, at) {
				zones = append(zones, at)
			}
		}
		m.decided("capacity was found in "+strings.Join(zones, ", "), "after "+events.Span(m.now.Sub(since)))
	}
	in.WaitingSince, in.Reminded = time.Time{}, time.Time{}
	m.recall()
}

// slow gives accepted creations that have neither ended nor failed in their time as much time again, once. A late slice is as good
// as an early one, and the end of the incident would delete it.
func (m *machine) slow(took string) bool {
	var names []string
	for _, effect := range m.w.Effects {
		if effect.Action == events.ActionCreate && !effect.Answered.IsZero() {
			names = append(names, effect.sliceList())
		}
	}
	if names == nil || !m.w.Incident.Slow.IsZero() {
		return false
	}
	in := m.inc()
	in.Slow, in.Look = m.now, true
	m.renew()
	m.decided("wait for "+strings.Join(names, ", ")+" for "+events.Span(RecreateFor)+" more",
		"the creation was accepted, and has neither ended nor failed within "+took)
	return true
}

// RefusedIn reports whether a place has refused a slice of this incident, whichever source reported it.
func (in *Incident) RefusedIn(at Place) bool {
	return in != nil && slices.ContainsFunc(in.Zones, func(r Refusal) bool { return r.Place() == at })
}

// OtherPlaceMayHaveIt reports whether another place than this one may give a slice: a place that would be asked and has not said
// that it never can.
func (w Workload) OtherPlaceMayHaveIt(p policy.Policy, slice string, at Place) bool {
	return slices.ContainsFunc(w.PlacesFor(p, slice), func(other Place) bool {
		return other != at && (w.Incident == nil || !slices.ContainsFunc(w.Incident.Zones, func(r Refusal) bool { return r.Place() == other && r.Never }))
	})
}

// OutOfCapacity returns the creation for which a zone had no capacity, if the evidence says so: as an answer, or as the end of an
// operation. Hearsay of another creation's failure is no news.
func (w Workload) OutOfCapacity(e Evidence) (Effect, bool) {
	if w.Incident == nil {
		return Effect{}, false
	}
	for _, effect := range w.Effects {
		f := w.failureOf(effect, e)
		if effect.Action == events.ActionCreate && f != nil && f.Class == Stockout && !f.Hearsay && w.Slice(effect.Slice) != nil {
			return effect, true
		}
	}
	return Effect{}, false
}

// failureOf is the failure of an effect of which evidence tells; nil where it tells of none.
func (w Workload) failureOf(effect Effect, e Evidence) *Failure {
	switch e := e.(type) {
	case Answered:
		if r := e.Request; w.Incident.ID == r.Incident && effect.Action == r.Action && effect.Slice == r.Slice && effect.Epoch == r.Epoch {
			return e.Failure
		}
	case Ended:
		if e.Operation != "" && effect.Operation == e.Operation {
			return e.Failure
		}
	}
	return nil
}

// pause is the time until a zone is asked again: one to two minutes. The spread follows from the effect and not from chance, so
// that the same evidence makes the same decision.
func (m *machine) pause(effect Effect) time.Duration {
	h := events.ID(m.w.ID, m.w.Incident.ID, effect.Slice, effect.Place().String(), events.Number(int64(effect.Attempt)))
	var n int
	fmt.Sscanf(h[:4], "%x", &n) //nolint:errcheck // four hexadecimal digits of a hash
	return CapacityEvery + CapacityEvery*time.Duration(n)/0x10000
}

// reminds reports whether it is time for another reminder of a wait without an end, and notes that reminder.
func (m *machine) reminds(since time.Time) bool {
	if m.now.Before(remindAt(since, m.w.Incident.Reminded)) {
		return false
	}
	m.inc().Reminded = m.now
	return true
}

// remindAt is when people have to hear of a wait again after the last message about it. A time before the wait means none.
func remindAt(since, told time.Time) time.Time {
	if told.After(since) {
		return since.Add(told.Sub(since).Truncate(RemindEvery) + RemindEvery)
	}
	return since.Add(RemindFirst)
}

// remind reports a long wait for capacity.
func (m *machine) remind() {
	in := m.w.Incident
	if in.WaitingSince.IsZero() || !m.reminds(in.WaitingSince) {
		return
	}
	why, last := "the "+m.w.Words().Group+" waits", time.Time{}
	for _, r := range in.Zones { // Pitstop does not wait for a zone that can never give it
		if !r.Never && r.At.After(last) {
			why, last = r.Text, r.At
		}
	}
	m.decided("keep asking for capacity", events.Span(m.now.Sub(in.WaitingSince))+" by now: "+why)
}
