package trail

import (
	"slices"
	"time"
)

// In what two builds differ in effect, besides Call, End, Cause and Time.
const (
	Incident Kind = "incident" // one build alone has it
	Refused  Kind = "refused"  // one build alone made that call in vain
)

// EffectKinds are the kinds of differences in effect, in the order in which they are printed.
func EffectKinds() []Kind { return []Kind{Call, Incident, End, Cause, Time, Refused} }

// Near is how far apart two builds may do the same: what they read and decide in between may take each its own ticks.
const Near = 2 * time.Minute

// Difference is one difference in effect.
//
// In effect two builds are the same where they make the same calls that change something, and where their incidents end in the
// same way, each within two minutes. Epochs, requests, wording and documents are left out, and so is the order of the calls. The
// comparison goes on after a difference.
type Difference struct {
	Kind     Kind    `json:"effect"`
	Run      string  `json:"run"`
	Days     float64 `json:"days,omitzero"`
	Workload string  `json:"workload"`
	// Incident is the one in which the builds differ, by this build's name for it, or by the other's where this build has none; empty where
	// a call is made outside any that ended.
	Incident string `json:"incident,omitzero"`
	// At is when the first of both steps was done.
	At time.Time `json:"at"`
	// This and Other are what each build did; one that did no such thing has none.
	This  *Step `json:"this,omitempty"`
	Other *Step `json:"other,omitempty"`
}

// effects are the differences in effect of one run, the earliest first.
func effects(this, other Trail) (found []Difference) {
	for _, id := range workloads(this, other) {
		found = append(found, compareEffects(this.workload(id), other.workload(id))...)
	}
	slices.SortStableFunc(found, func(a, b Difference) int { return a.At.Compare(b.At) })
	for i := range found {
		found[i].Run, found[i].Days = this.Run, this.Days
	}
	return found
}

func compareEffects(this, other Workload) (found []Difference) {
	add := func(k Kind, in, a, b *Step) {
		d := Difference{Kind: k, Workload: this.ID, At: first(a, b).At, This: a, Other: b}
		if in != nil {
			d.Incident = in.Incident
		}
		found = append(found, d)
	}
	// An incident that opens at another time is the same one while both last.
	both, these, others := pair(ends(this), ends(other), func(a, b *Step) bool { return near(a.Opened, b.Opened) })
	later, these, others := pair(these, others, func(a, b *Step) bool { return !a.Opened.After(b.Ended) && !b.Opened.After(a.Ended) })
	both = append(both, later...)
	for _, p := range both {
		a, b := p[0], p[1]
		switch {
		case a.Outcome != b.Outcome || a.Code != b.Code || a.ConfirmedBy != b.ConfirmedBy:
			add(End, a, a, b)
		case !near(a.Opened, b.Opened) || !near(a.Ended, b.Ended):
			add(Time, a, a, b)
		}
		if a.Cause != b.Cause {
			add(Cause, a, a, b)
		}
	}
	for _, a := range these {
		add(Incident, a, a, nil)
	}
	for _, b := range others {
		add(Incident, b, nil, b)
	}

	// in is the incident in which a step of either build is done, by its end in this build if both have it; nil outside any that ended.
	in := func(s *Step, of int) *Step {
		for _, p := range both {
			if during(s, p[of]) {
				return p[0]
			}
		}
		for _, end := range [][]*Step{these, others}[of] {
			if during(s, end) {
				return end
			}
		}
		return nil
	}
	_, a, b := pair(calls(this, true), calls(other, true), func(a, b *Step) bool { return a.sameDeed(b) && near(a.At, b.At) })
	moved, a, b := pair(a, b, func(a, b *Step) bool { return a.sameDeed(b) && in(a, 0) != nil && in(a, 0) == in(b, 1) })
	for _, p := range moved {
		add(Time, in(p[0], 0), p[0], p[1])
	}
	for _, s := range a {
		add(Call, in(s, 0), s, nil)
	}
	for _, s := range b {
		add(Call, in(s, 1), nil, s)
	}

	// A call that is refused changes nothing, and is made again and again: only whether it was refused so counts, once in an incident.
	refused := func(w Workload, of int) (once []*Step) {
		for _, s := range calls(w, false) {
			if !slices.ContainsFunc(once, func(o *Step) bool { return s.sameDeed(o) && in(s, of) == in(o, of) }) {
				once = append(once, s)
			}
		}
		return once
	}
	_, a, b = pair(refused(this, 0), refused(other, 1), func(a, b *Step) bool { return a.sameDeed(b) && in(a, 0) == in(b, 1) })
	for _, s := range a {
		add(Refused, in(s, 0), s, nil)
	}
	for _, s := range b {
		add(Refused, in(s, 1), nil, s)
	}
	return found
}

func near(a, b time.Time) bool { return a.Sub(b).Abs() <= Near }

// during reports whether a step was done in the incident with that end.
func during(s, end *Step) bool { return !s.At.Before(end.Opened) && !s.At.After(end.Ended) }

// pair brings together what belongs together, each at most once. Both lists are in the order of time.
func pair(these, others []*Step, fit func(a, b *Step) bool) (both [][2]*Step, a, b []*Step) {
	b = slices.Clone(others)
	for _, s := range these {
		if i := slices.IndexFunc(b, func(o *Step) bool { return fit(s, o) }); i >= 0 {
			both, b = append(both, [2]*Step{s, b[i]}), slices.Delete(b, i, i+1)
		} else {
			a = append(a, s)
		}
	}
	return both, a, b
}

// ends are the incidents that ended, in the order in which they opened, each with its last attribution.
func ends(w Workload) (all []*Step) {
	for i := range w.Steps {
		s := &w.Steps[i]
		if s.Kind != End {
			continue
		}
		if j := slices.IndexFunc(all, func(o *Step) bool { return o.Incident == s.Incident }); j >= 0 {
			all[j] = s
		} else {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *Step) int { return a.Opened.Compare(b.Opened) })
	return all
}

// calls are the calls that were accepted, or those that were refused.
func calls(w Workload, accepted bool) (all []*Step) {
	for i := range w.Steps {
		if s := &w.Steps[i]; s.Kind == Call && (s.Code == "") == accepted {
			all = append(all, s)
		}
	}
	return all
}

// sameDeed reports whether two calls do the same, or are refused in the same way, whenever and for whatever reason they are made.
func (s *Step) sameDeed(o *Step) bool {
	return s.Method == o.Method && s.Resource == o.Resource && s.Accelerator == o.Accelerator && s.Code == o.Code
}
