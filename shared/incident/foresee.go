package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Foreseen is what would be decided on something that has not happened. Nothing of it is stored or sent.
type Foreseen struct {
	// Decisions are in the order in which they would be made.
	Decisions []Line `json:"decisions"`
	// Phase is where the incident would stand then; Outcome, Reason and Advice how it would have ended.
	Phase   Phase   `json:"phase,omitzero"`
	Outcome Outcome `json:"outcome,omitzero"`
	Reason  string  `json:"reason,omitzero"`
	Advice  string  `json:"advice,omitzero"`
}

// IfLost is what would be decided if the API showed a slice lost now: up to the creation of another one where it comes to
// that, and to the end of the time for Google's own recovery where there is one. The decisions are those of Advance, under
// this policy.
func (w Workload) IfLost(p policy.Policy, slice string, now time.Time) Foreseen {
	s := w.Slice(slice)
	if s == nil {
		return Foreseen{}
	}
	read := func(name string, c Condition) Evidence {
		o := w.Slice(name)
		return Read{
			Origin: Origin{Time: now, Rank: events.RankReading}, Slice: name, Zone: o.Zone, Condition: c, Incarnation: o.Incarnation, State: map[Condition]string{
				Lost: "PREEMPTED", Gone: "gone",
			}[c],
		}
	}
	w.Pause = nil // it holds calls, and no decision
	f := w.foreseer(p, now)
	f.learn(read(slice, Lost))
	if f.phase() == Looking { // at the others in its queued resource, as they are now
		for i := range w.Slices {
			if o := &w.Slices[i]; o.Name != slice && o.Group == s.Group && o.Zone == s.Zone {
				f.learn(read(o.Name, o.Condition))
			}
		}
	}
	if f.phase() == Healing || f.phase() == Looking && s.Spec == "" { // nobody reads its order by then
		f.now = f.w.Incident.Deadline
		f.learn(Ticked{})
	}
	if f.phase() == Removing {
		for _, o := range slices.Clone(f.w.Slices) {
			if o.Replace {
				f.learn(read(o.Name, Gone))
			}
		}
	}
	return f.foreseen()
}

// AtDeadline is what would be decided if nothing but time passed until the open incident's deadline.
func (w Workload) AtDeadline(p policy.Policy) Foreseen {
	if w.Incident == nil || w.Incident.Deadline.IsZero() {
		return Foreseen{}
	}
	f := w.foreseer(p, w.Incident.Deadline)
	f.learn(Ticked{})
	return f.foreseen()
}

// PlacesFor are where a slice may be created, in the order in which they are asked.
func (w Workload) PlacesFor(p policy.Policy, slice string) []Place {
	s := w.Slice(slice)
	if s == nil {
		return nil
	}
	if w.Incident == nil {
		w.Incident = &Incident{}
	}
	return (&machine{p: p, w: w}).candidates(s)
}

// foreseer advances a copy of a workload, and keeps nothing but what is decided.
type foreseer struct {
	p   policy.Policy
	w   Workload
	now time.Time
	// told is how much of the story of the open incident is told already, and over the ID of the one that closed last.
	told int
	over string
}

func (w Workload) foreseer(p policy.Policy, now time.Time) foreseer {
	f := foreseer{p: p, w: w, now: now}
	if w.Incident != nil {
		f.told = len(w.Incident.Timeline) + w.Incident.LeftOut
	}
	if w.Closed != nil {
		f.over = w.Closed.ID
	}
	return f
}

func (f *foreseer) phase() Phase {
	if f.w.Incident == nil {
		return ""
	}
	return f.w.Incident.Phase
}

func (f *foreseer) learn(e Evidence) { f.w, _, _ = Advance(f.p, f.w, e, f.now) }

func (f *foreseer) foreseen() (seen Foreseen) {
	in := f.w.Incident
	if in == nil && f.w.Closed != nil && f.w.Closed.ID != f.over {
		in = f.w.Closed // it would have ended
	}
	if in == nil {
		return Foreseen{}
	}
	for _, l := range in.Timeline[min(max(0, f.told-in.LeftOut), len(in.Timeline)):] {
		if l.Kind == LineDecided {
			seen.Decisions = append(seen.Decisions, l)
		}
	}
	if f.w.Incident != nil {
		seen.Phase = in.Phase
		return seen
	}
	seen.Outcome, seen.Reason, seen.Advice = in.Outcome, in.Reason, in.Advice
	return seen
}
