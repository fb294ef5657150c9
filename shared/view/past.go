package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
)

// Past is an incident in one line: what lists and pictures of many show, and what sums of many add up. The archive keeps it beside the incident.
type Past struct {
	Workload string       `json:"workload"`
	ID       string       `json:"id"`
	Cause    events.Cause `json:"cause"`
	// Zones are those of the slices that it struck.
	Zones  []string  `json:"zones,omitempty"`
	Opened time.Time `json:"opened"`
	Closed time.Time `json:"closed,omitzero"`
	// Outcome is how it ended; Phase is what an open one waits for, since Since.
	Outcome Outcome   `json:"outcome,omitzero"`
	Phase   Phase     `json:"phase,omitzero"`
	Since   time.Time `json:"since,omitzero"`
	// Down is since when the training stood still; zero where it ran on. Cost is without the slices.
	Down time.Time `json:"down,omitzero"`
	Cost Cost      `json:"cost"`
	// Took is how many seconds it spent in each phase; see Stretches. Still is in how many of them the training stood still.
	Took  map[Phase]float64 `json:"took,omitempty"`
	Still map[Phase]float64 `json:"still,omitempty"`
	// Saved says that a verified save came before. Retried says that a person opened it to try again.
	Saved   bool `json:"saved,omitzero"`
	Retried bool `json:"retried,omitzero"`
}

// Past is the incident in one line. Zones are those of the slices that it struck.
func (in Incident) Past(workload string, zones []string) Past {
	p := Past{
		Workload: workload, ID: in.ID, Cause: in.Cause, Zones: zones, Opened: in.Opened, Closed: in.Closed, Outcome: in.Outcome, Down: in.Down, Cost: in.Cost,
		Saved: in.Save.Verified, Retried: in.Retried,
	}
	p.Cost.Slices = nil
	until := in.Closed
	if in.Outcome == "" {
		p.Phase, p.Since, until = in.Phase, in.Since, p.Back()
	}
	add := func(to *map[Phase]float64, of Phase, took time.Duration) {
		if *to == nil {
			*to = map[Phase]float64{}
		}
		(*to)[of] += took.Seconds()
	}
	for _, s := range in.Stretches(until) {
		if in.Outcome != "" {
			add(&p.Took, s.Phase, s.To.Sub(s.From))
		}
		if still := s.within(p.Down, p.Back()); still > 0 {
			add(&p.Still, s.Phase, still)
		}
	}
	return p
}

// Back is when the training was back, if it stood still in one piece; zero where it never did.
func (p Past) Back() time.Time {
	if p.Down.IsZero() {
		return p.Down
	}
	return p.Down.Add(p.Cost.Away())
}

// Pasts are all incidents of a workload: those of the archive, and in their newest state those that are shown with it.
func (w Workload) Pasts(archived []Past) []Past {
	all := slices.Clone(archived)
	for _, in := range []*Incident{w.Incident, w.Closed} {
		if in != nil {
			all = slices.DeleteFunc(all, func(p Past) bool { return p.ID == in.ID })
			all = append(all, in.Past(w.ID, nil))
		}
	}
	return all
}

// Rank is a text by which what ended last comes last. No two incidents have the same.
func (p Past) Rank() string { return RankTime(p.Closed) + " " + p.Workload + "/" + p.ID }

// Newest compares two incidents for a list that begins with what is open, and goes on with what ended last.
func Newest(a, b Past) int {
	return cmp.Or(compareOpen(a, b), b.Closed.Compare(a.Closed), b.Opened.Compare(a.Opened), strings.Compare(a.Workload, b.Workload), strings.Compare(b.ID, a.ID))
}

func compareOpen(a, b Past) int {
	switch {
	case a.Closed.IsZero() == b.Closed.IsZero():
		return 0
	case a.Closed.IsZero():
		return -1
	}
	return 1
}

// Ended is how an incident ended, or for what it waits.
func (p Past) Ended(now time.Time) string {
	if p.Outcome != "" {
		return string(p.Outcome) + " after " + events.Span(p.Closed.Sub(p.Opened))
	}
	return "open: " + string(p.Phase) + " for " + events.Span(now.Sub(p.Since))
}

// Struck reports whether it struck in that zone; it did in an empty one.
func (p Past) Struck(zone string) bool { return zone == "" || slices.Contains(p.Zones, zone) }

// Stretch is a time in which an incident waited for one thing. Says is what was said first in it.
type Stretch struct {
	Phase    Phase
	From, To time.Time
	Says     string
}

// within is how much of it lies between two times.
func (s Stretch) within(from, to time.Time) time.Duration {
	if s.From.After(from) {
		from = s.From
	}
	if s.To.Before(to) {
		to = s.To
	}
	return max(0, to.Sub(from))
}

// Noticing is the time before the opening of an incident: the training stood still, and Pitstop did not know it yet.
const Noticing = "noticing"

// Stretches are the times of an incident up to one, one after the other. A story whose middle is not stored has none: what took how long in it is not known.
func (in Incident) Stretches(until time.Time) (all []Stretch) {
	if in.LeftOut > 0 {
		return nil
	}
	if !in.Down.IsZero() && in.Down.Before(in.Opened) {
		all = append(all, Stretch{Noticing, in.Down, in.Opened, "the training stood still, and Pitstop did not know it yet"})
	}
	for i, l := range in.Timeline {
		to := until
		if i+1 < len(in.Timeline) {
			to = in.Timeline[i+1].At
		}
		switch n := len(all); {
		case l.Phase == "", l.Phase == Closed, !to.After(l.At):
		case n > 0 && all[n-1].Phase == l.Phase && !all[n-1].To.Before(l.At):
			all[n-1].To = to
		default:
			all = append(all, Stretch{l.Phase, l.At, to, l.Text})
		}
	}
	return all
}
