//go:build !heart

package incident

import (
	"cmp"
	"slices"

	"pitstop.internal/events"
)

// Order is a slice as its owner ordered it. It is kept once the slice is created in another shape: Pitstop asks for it first the
// next time.
type Order struct {
	Zone        string `json:"zone"`
	Accelerator string `json:"accelerator"`
	// Spec is the hash of a specification that gives its shape.
	Spec string `json:"spec"`
	// SpecZone is where the specification was read, if not in Zone.
	SpecZone string `json:"spec_zone,omitzero"`
}

// SpecIn is the zone in which the specification was read.
func (o Order) SpecIn() string { return cmp.Or(o.SpecZone, o.Zone) }

// own is the slice as its owner ordered it.
func (s Slot) own() Order {
	if s.Order != (Order{}) {
		return s.Order
	}
	o := Order{Zone: s.Zone, Accelerator: s.Accelerator, Spec: s.Spec}
	if read := s.SpecIn(); read != s.Zone {
		o.SpecZone = read
	}
	return o
}

// SpecIn is the zone in which the specification was read.
func (l Life) SpecIn() string { return cmp.Or(l.SpecZone, l.Zone) }

// Reshaped reports whether the slice has, or last had, another shape than the one that its owner ordered.
func (s Slot) Reshaped() bool { return s.Accelerator != s.own().Accelerator }

// place is where the slice is, or last was.
func (s Slot) place() Place {
	if s.Reshaped() {
		return Place{Zone: s.Zone, Accelerator: s.Accelerator}
	}
	return Place{Zone: s.Zone}
}

// Place is where an effect creates.
func (effect Effect) Place() Place { return Place{Zone: effect.Zone, Accelerator: effect.Accelerator} }

// In is a slice as it is once it is created in a place: the facts about one shape do not hold for another.
func (s Slot) In(p Place) Slot {
	s.Accelerator = s.own().Accelerator
	if p.Accelerator != "" {
		s.Accelerator = p.Accelerator
	}
	return s
}

// beside is the place of a slice that is created beside another slice in this place. It takes the other's present shape, whatever
// its owner ordered first. Slices that were ordered in several shapes, and never came in another one, keep their own.
func beside(p Place, o, s Slot) Place {
	is := o.In(p).Accelerator
	unlike := s.Order == (Order{}) && o.Order == (Order{}) && s.Accelerator != o.Accelerator
	if unlike || is == s.own().Accelerator {
		is = ""
	}
	return Place{Zone: p.Zone, Accelerator: is}
}

// Before is the lost state of a slice that comes back in another shape.
type Before struct {
	Slice       string `json:"slice"`
	Accelerator string `json:"accelerator,omitzero"`
	Chips       int    `json:"chips,omitzero"`
}

// Lost is the slice as it was at its loss, to count the cost.
func (in *Incident) Lost(s Slot) Slot {
	for _, b := range in.Before {
		if b.Slice == s.Name {
			s.Accelerator, s.Chips = b.Accelerator, b.Chips
		}
	}
	return s
}

// lostChips are the chips that the workload was without.
func (in *Incident) lostChips(w Workload) (chips int) {
	for i := range w.Slices {
		chips += in.Lost(w.Slices[i]).Chips
	}
	return chips
}

// Training is the number of slices that the workload trains on.
func (w Workload) Training() (n int) {
	for i := range w.Slices {
		if !w.Slices[i].IsReleased() {
			n++
		}
	}
	return n
}

// reshapes stores, before slices are created in another shape, their present shape and their owner's order.
func (m *machine) reshapes(effect Effect) {
	for _, name := range append([]string{effect.Slice}, effect.With...) {
		s := m.w.Slice(name)
		if s.In(effect.Place()).Accelerator == s.Accelerator {
			continue
		}
		if s.Order == (Order{}) {
			s = m.slice(name)
			s.Order = s.own()
			if z := s.Admitted().Zone; z != "" && z != s.Zone {
				s.Order.Zone, s.Order.SpecZone = z, s.SpecIn() // the zone where it appeared for a moment since could not give it
			}
		}
		if in := m.inc(); !slices.ContainsFunc(in.Before, func(b Before) bool { return b.Slice == name }) {
			in.Before = append(slices.Clip(in.Before), Before{name, s.Accelerator, s.Chips})
		}
	}
}

// reordered treats an owner's new order as the order of every slice that already has that shape, as long as no earlier order may
// still take effect: Pitstop orders the slices of a Multislice alike.
func (m *machine) reordered() {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if !s.Reshaped() || m.comesAsOther(s) {
			continue
		}
		if slices.ContainsFunc(m.w.Slices, func(o Slot) bool { return !o.IsReleased() && o.own().Accelerator == s.Accelerator }) {
			m.slice(s.Name).Order = Order{}
		}
	}
}

// comesAsOther reports whether a creation that may still take effect has another shape than the slice.
func (m *machine) comesAsOther(s *Slot) bool {
	if m.w.Incident == nil {
		return false
	}
	effect := m.w.effect(events.ActionCreate, s.Name)
	return effect != nil && effect.mayCome() && s.In(effect.Place()).Accelerator != s.Accelerator
}

// shapes are the other shapes in which a slice may be created, zone after zone. The slices of a Multislice are alike, and stay
// alike: slices that differ have no other shape. A shape in the policy that equals the owner's order is no other shape either.
func (m *machine) shapes(s *Slot, zones []Place) (all []Place) {
	own := s.own().Accelerator
	for i := range m.w.Slices {
		if o := &m.w.Slices[i]; !o.IsReleased() && o.own().Accelerator != own {
			return nil
		}
	}
	for _, shape := range m.p.Shapes {
		if shape.Accelerator == own {
			continue
		}
		in := shape.Zones
		if in == nil {
			for _, z := range zones {
				in = append(in, z.Zone)
			}
		}
		for _, zone := range in {
			if at := (Place{Zone: zone, Accelerator: shape.Accelerator}); !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	return all
}

// reshapedCreation reports whether a creation has another shape than the slice.
func (m *machine) reshapedCreation(effect Effect) bool {
	s := m.w.Slice(effect.Slice)
	return effect.Action == events.ActionCreate && s.In(effect.Place()).Accelerator != s.Accelerator
}
