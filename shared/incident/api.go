package incident

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// This file has what functions and the ledger ask of a document. Nothing here changes it.

// HasOpenIncident reports whether an incident is open.
func (w *Workload) HasOpenIncident() bool { return w.Incident != nil }

// WithoutOutbox is the document without the events that are still to be published.
func (w *Workload) WithoutOutbox() Workload {
	next := *w
	next.Outbox = nil
	return next
}

// TrainsOn is the number of slices that the workload trains on.
func (w *Workload) TrainsOn() int {
	n := 0
	for i := range w.Slices {
		if !w.Slices[i].IsReleased() {
			n++
		}
	}
	return n
}

// Notice is a slice's announced maintenance that is not over, or nil.
func (w *Workload) Notice(slice string) *Notice {
	if s := w.Slice(slice); s != nil {
		if n := w.announcedFor(s); n.stands() {
			return &n
		}
	}
	return nil
}

// announcedFor is what is announced for a slice: its maintenance, or its planned end.
func (w *Workload) announcedFor(s *Slot) Notice {
	n := (&diagnosis{w: w}).notice(&slot{Slot: s})
	n.Due = s.Notice.Due
	return n
}

// MaintainedWith are the slices whose announced maintenance starts together with that of a slice, including the slice itself: one call
// starts the maintenance of a whole group.
func (w *Workload) MaintainedWith(slice string) (all []Slot) {
	if w.Slice(slice) == nil {
		return nil
	}
	others := w.group(slice)
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Name == slice || slices.Contains(others, s.Name) && s.Life.Notice.Status == events.NoticePending {
			all = append(all, *s)
		}
	}
	return all
}

// Broken is when the API first showed this life of a slice lost or broken; zero when it did not.
func (w *Workload) Broken(slice string) time.Time {
	s := w.Slice(slice)
	if s == nil || !s.Incarnation.Known() {
		return time.Time{}
	}
	switch s.Condition {
	case evidence.Lost, evidence.Unhealthy, evidence.Unclear:
		return s.Since
	case evidence.Unread, evidence.Creating, evidence.Ready, evidence.Stopped, evidence.Done, evidence.Deleting, evidence.Gone:
	}
	if w.Incident == nil {
		return time.Time{}
	}
	for _, t := range w.Incident.Troubles {
		if t.Slice == slice && t.Life == s.Incarnation.ID && t.proven() && !t.Announced && t.Cause.Infrastructure() {
			return t.At
		}
	}
	return time.Time{}
}

// Owns reports whether the workload owns a slice's name in a zone: the slice exists there, or is about to be created there again.
func (w *Workload) Owns(slice, zone string) bool {
	s := w.Slice(slice)
	if s == nil {
		return false
	}
	if x := w.effect(events.ActionCreate, slice); w.Incident != nil && x != nil && x.Zone == zone {
		return true
	}
	return s.Zone == zone && (s.Condition != evidence.Gone || !w.isFinished() && (&diagnosis{w: w}).leftAlone(&slot{Slot: s}).IsZero())
}

// MayHave reports whether an incident with this ID may belong to the workload.
func (w *Workload) MayHave(id string) bool { return strings.HasPrefix(id, incidentsOf(w.Name)) }

// AdmittedIn is the newest life of a slice in which training may run, or might; none where no lease let it.
func (w *Workload) AdmittedIn(slice string) events.Incarnation {
	if s := w.Slice(slice); s != nil {
		if l := s.find(func(l *Life) bool { return w.admitsIn(slice, l) }); l != nil {
			return l.Incarnation
		}
	}
	return w.Lease.Sure.of(slice)
}

// Egress describes the cost of training in another region than that of its checkpoints, at a price in dollars for each GiB; 0 means
// an unknown price.
func (w Workload) Egress(price float64) string {
	n := w.Training.Saved.Bytes
	if n == 0 {
		return "how much a restore reads from there is not known: no checkpoint has been verified"
	}
	text := "a restore reads " + size(n) + " from there, and a save writes as much"
	if price == 0 {
		return text + ", at a price that the policy does not name (egress_price)"
	}
	return text + fmt.Sprintf(": $%.2f each at the policy's price", price*float64(n)/(1<<30))
}

// size writes a number of bytes.
func size(n int64) string {
	const unit = 1024
	v, i := float64(n)/unit, 0
	for ; v >= unit && i < 4; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}

// OutOfCapacity returns the creation for which a zone had no capacity, if the evidence says so: as an answer, or as the end of an
// operation. Hearsay of another creation's failure is no news.
func (w *Workload) OutOfCapacity(e evidence.Evidence) (creation Effect, is bool) {
	var x *Effect
	var failure *evidence.Failure
	switch e := e.(type) {
	case evidence.Answered:
		x, failure = (&facts{w: w}).asked(e.Request), e.Failure
	case evidence.Ended:
		x, failure = w.carriedOutBy(e.Operation), e.Failure
	}
	if x == nil || x.Action != events.ActionCreate || failure == nil || failure.Class != reason.Stockout || failure.Hearsay {
		return Effect{}, false
	}
	return *x, w.Slice(x.Slice) != nil
}

// carriedOutBy is the effect that an operation of the provider carries out; nil for none.
func (w *Workload) carriedOutBy(operation string) *Effect {
	i := slices.IndexFunc(w.Effects, func(x Effect) bool { return operation != "" && x.Operation == operation })
	if i < 0 {
		return nil
	}
	return &w.Effects[i]
}

// OtherPlaceMayHaveIt reports whether another place than this one may give a slice: a place that would be asked and has not said that it
// never can.
func (w *Workload) OtherPlaceMayHaveIt(p policy.Policy, slice string, at view.Place) bool {
	return slices.ContainsFunc(w.PlacesFor(p, slice, w.Ended), func(other view.Place) bool {
		return other != at && (w.Incident == nil || !w.Incident.refusal(other).Never)
	})
}

// PlacesFor are the places in which a slice may be created, in the order in which Pitstop asks them.
func (w Workload) PlacesFor(p policy.Policy, slice string, now time.Time) []view.Place {
	d := diagnose(p, &w, now)
	if s := d.slot(slice); s != nil {
		return d.placesOf(s, d.isApart())
	}
	return nil
}

// Deaf says why a request to save may not be heard by the crew of a slice; empty where it may.
func (w *Workload) Deaf(slice string) string {
	if s := w.Slice(slice); s != nil {
		return w.deaf(s)
	}
	return ""
}

// IsReleased reports whether Pitstop leaves the life to its owner alone.
func (l *Life) IsReleased() bool { return !l.Released.IsZero() }

// HostsKnown reports whether the host names of the workers are known, or no further question can find them.
func (l *Life) HostsKnown() bool { return l.ProvenHosts() != "" || l.HostsAsked }

// SpecIn is the zone in which the specification was read.
func (l *Life) SpecIn() string { return cmp.Or(l.SpecZone, l.Zone) }

// WasOn reports whether a former life that is still remembered ran on the workers with that group of names.
func (s *Slot) WasOn(group string) bool {
	return slices.ContainsFunc(s.Former, func(l Life) bool { return l.Hosts == group })
}

// Alternative is the one of the policy by which a slice is made in a place, or stands there; named says that there is one.
func (s *Slot) Alternative(p policy.Policy, at view.Place) (a policy.Alternative, named bool) {
	if at == (view.Place{Zone: at.Zone}) && (at.Zone == s.ownZone() || slices.Contains(p.Zones, at.Zone)) {
		return policy.Alternative{}, false // it is as ordered
	}
	i := slices.IndexFunc(p.Places, func(a policy.Alternative) bool {
		return s.placeBy(a, at.Zone) == at && (a.Zones == nil || slices.Contains(a.Zones, at.Zone))
	})
	if i < 0 {
		return policy.Alternative{}, false
	}
	return p.Places[i], true
}

// After is for how long all places before one must have refused.
func (s *Slot) After(p policy.Policy, at view.Place) time.Duration {
	a, _ := s.Alternative(p, at)
	return a.After
}

// PriceIn is what an hour of a chip costs in a place by the policy, in dollars; 0 is unknown.
func (s *Slot) PriceIn(p policy.Policy, at view.Place) float64 {
	a, _ := s.Alternative(p, at)
	return cmp.Or(a.ChipHourPrice, p.ChipHourPrice)
}

// AsOrdered reports whether the slice stands, or last stood, in the shape and the capacity that its owner ordered.
func (s *Slot) AsOrdered() bool { return s.stands() == view.Place{Zone: s.Zone} }

// In is a slice as it is once it is created in a place: the other facts do not hold there.
func (s Slot) In(p view.Place) Slot {
	s.Accelerator, s.Capacity = cmp.Or(p.Accelerator, s.ownShape()), cmp.Or(p.Capacity, s.ownCapacity())
	return s
}

// IsFormer reports whether a life of a slice is over because a newer one has come. One exception: somebody ordered this life elsewhere
// before Pitstop created its own, which is gone without having been admitted. Then the older one is not former.
func (w *Workload) IsFormer(slice string, life events.Incarnation) bool {
	s := w.Slice(slice)
	if s == nil {
		return false
	}
	unused := s.Condition == evidence.Gone && !w.admits(s) && s.Zone != life.Zone && w.AdmittedIn(slice).Older(life)
	return life.Older(s.Incarnation) && !unused
}

// Tells reports whether a notice already says all that another word of it says. Maintenance after the planned end of a life is no news.
func (n Notice) Tells(o events.Notice) bool {
	if n.End {
		return o.Status == events.NoticePending && !o.WindowStart.Before(n.WindowStart)
	}
	return n.Notice.Equal(o)
}

// RefusedIn reports whether a place has refused a slice of this incident, whichever source reported it.
func (in *Incident) RefusedIn(at view.Place) bool {
	return in != nil && slices.ContainsFunc(in.Refusals, func(r view.Refusal) bool { return r.Place == at })
}
