package goodput

import (
	"cmp"
	"slices"
	"strings"

	"pitstop.internal/shared/topology"
)

func sum[K comparable](m map[K]*Sum, k K) *Sum {
	if m[k] == nil {
		m[k] = &Sum{}
	}
	return m[k]
}

func (s *Sum) add(l Loss) {
	s.Losses++
	if l.Announced {
		s.Announced++
	}
	if l.InTime {
		s.InTime++
	}
	if l.Chips == 0 {
		s.SizeUnknown++
	}
	switch l.Outcome {
	case Back:
		s.Back++
		s.GapSum += l.Gap
		s.GapMost = max(s.GapMost, l.Gap)
		s.gaps = append(s.gaps, l.Gap)
	case BackUnseen:
		s.BackUnseen++
	case GivenUp:
		s.GivenUp++
	case NotTold:
		s.NotTold++
	case NotBack:
		s.NotBack++
		s.NotBackChipHours += l.ChipHours + l.ChipHoursAtLeast
		return
	}
	s.ChipHours += l.ChipHours
	s.ChipHoursAtLeast += l.ChipHoursAtLeast
}

// finish sorts the gaps. A percentile is the least gap that so many percent do not exceed.
func (s *Sum) finish() {
	if n := len(s.gaps); n > 0 {
		slices.Sort(s.gaps)
		s.GapP50, s.GapP95 = s.gaps[(n*50+99)/100-1], s.gaps[(n*95+99)/100-1]
	}
}

// Report ends the record and closes every open loss.
func (a *Account) Report() Report {
	a.report.To = a.now
	a.report.Workloads = a.spent()
	slices.SortFunc(a.report.Interruptions, func(x, y Interruption) int {
		return cmp.Or(cmp.Compare(y.Lost(), x.Lost()), x.From.Compare(y.From), strings.Compare(x.Project, y.Project), strings.Compare(x.Workload, y.Workload))
	})
	var left []*machine
	for k, m := range a.machines {
		if m.gap != nil && m.key == k {
			left = append(left, m)
		}
	}
	slices.SortFunc(left, func(m, o *machine) int { return cmp.Or(m.gap.At.Compare(o.gap.At), m.compare(o.key)) })
	for _, m := range left {
		switch {
		case m.unnamed:
			a.close(m, NotTold, a.now)
		case m.gap.released && m.gap.ordered.IsZero():
			a.close(m, GivenUp, a.now)
		default:
			a.close(m, NotBack, a.now)
		}
	}
	r := a.report
	r.LeadNeeded = a.lead.Seconds()
	r.Leaks.Left = a.leaks()
	r.Total.finish()
	r.Groups, r.Recreated = []Group{}, []Recreated{}
	for c, s := range a.byClass {
		s.finish()
		r.Groups = append(r.Groups, Group{c, *s})
	}
	slices.SortFunc(r.Groups, func(g, o Group) int {
		return cmp.Or(cmp.Compare(o.Losses, g.Losses), cmp.Compare(g.Cause, o.Cause), cmp.Compare(g.Zone, o.Zone), cmp.Compare(g.Generation, o.Generation))
	})
	for w, s := range a.byAgent {
		s.finish()
		r.Recreated = append(r.Recreated, Recreated{w, *s})
	}
	slices.SortFunc(r.Recreated, func(w, o Recreated) int {
		return cmp.Or(cmp.Compare(o.Losses, w.Losses), cmp.Compare(w.By, o.By), cmp.Compare(w.Principal, o.Principal))
	})
	r.Unsure = a.doubtsOf(r.Total)
	return r
}

func (a *Account) leaks() []Leak {
	left := []Leak{}
	for k, q := range a.queues {
		if q.lost.IsZero() {
			continue
		}
		l := Leak{Project: k.project, Zone: k.zone, QueuedResource: k.name, Since: q.lost, Held: a.now.Sub(q.lost).Hours()}
		if shape, err := topology.Parse(q.Accelerator); err == nil {
			l.Chips = shape.Chips * max(1, len(q.Nodes))
		}
		left = append(left, l)
	}
	slices.SortFunc(left, func(l, o Leak) int {
		return cmp.Or(l.Since.Compare(o.Since), strings.Compare(l.Project, o.Project), strings.Compare(l.Zone, o.Zone), strings.Compare(l.QueuedResource, o.QueuedResource))
	})
	return left
}
