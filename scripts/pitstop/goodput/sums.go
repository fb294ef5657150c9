package goodput

import (
	"cmp"
	"slices"
	"strings"

	"pitstop.internal/events"
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
		s.gaps.add(l.Gap)
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

func (s *Sum) finish() {
	s.GapP50, s.GapP95 = min(s.gaps.percentile(50), s.GapMost), min(s.gaps.percentile(95), s.GapMost)
}

// Report ends the record and closes every open loss.
func (a *Account) Report() Report {
	a.report.To = a.now
	a.report.Workloads, a.report.Dearest = a.spent()
	var left []*machine
	for _, m := range a.machines {
		if m.gap != nil {
			left = append(left, m)
		}
	}
	slices.SortFunc(left, func(m, o *machine) int {
		return cmp.Or(m.gap.from.Compare(o.gap.from), strings.Compare(m.project, o.project), strings.Compare(m.zone, o.zone), strings.Compare(m.name, o.name))
	})
	for _, m := range left {
		switch {
		case m.unnamed:
			a.close(m, NotTold)
		case m.gap.released && m.gap.ordered.IsZero():
			a.close(m, GivenUp)
		default:
			a.close(m, NotBack)
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
	r.Unsure = a.unsure(r)
	return r
}

func (a *Account) leaks() []Leak {
	left := []Leak{}
	for k, q := range a.queues {
		if q.lost.IsZero() {
			continue
		}
		l := Leak{Project: k.project, Zone: k.zone, QueuedResource: k.name, Since: q.lost, Held: a.now.Sub(q.lost).Hours()}
		if shape, err := topology.Parse(q.accelerator); err == nil {
			l.Chips = shape.Chips * max(1, len(q.nodes))
		}
		left = append(left, l)
	}
	slices.SortFunc(left, func(l, o Leak) int {
		return cmp.Or(l.Since.Compare(o.Since), strings.Compare(l.Project, o.Project), strings.Compare(l.Zone, o.Zone), strings.Compare(l.QueuedResource, o.QueuedResource))
	})
	return left
}

// unsure lists the facts that the logs do not hold.
func (a *Account) unsure(r Report) []string {
	out := []string{}
	say := func(n int, one, many string) {
		switch {
		case n == 1:
			out = append(out, "1 "+one)
		case n > 1:
			out = append(out, events.Number(int64(n))+" "+many)
		}
	}
	t := r.Total
	say(t.SizeUnknown, "loss is of a TPU whose type no entry names: its generation is unknown, and its chip-hours are a lower bound from its named workers",
		"losses are of TPUs whose type no entry names: their generation is unknown, and their chip-hours are a lower bound from their named workers")
	say(t.NotTold, "loss names only workers, and Google restarted none of them; a recreated TPU has new workers, so no entry says when it was back",
		"losses name only workers, and Google restarted none of them; a recreated TPU has new workers, so no entry says when it was back")
	say(t.BackUnseen, "TPU was back at a time that no entry names: later it was lost or created again, so it was there in between",
		"times a TPU was back at a time that no entry names: later it was lost or created again, so it was there in between")
	say(t.NotBack, "TPU was not back under its name when the record ended: another may have replaced it",
		"TPUs were not back under their names when the record ended: others may have replaced them")
	say(a.matched, "time the report matched workers to a node, because both were lost or taken down at the same time in the same zone",
		"times the report matched workers to a node, because both were lost or taken down at the same time in the same zone")
	say(a.apart, "of these matches is of entries more than five minutes apart: nothing else in the zone fits",
		"of these matches are of entries more than five minutes apart: nothing else in the zone fits")
	say(a.restarts, "restart by Google follows no loss in the record: the entry of the loss is missing, or it is older",
		"restarts by Google follow no loss in the record: the entries of the losses are missing, or they are older")
	say(a.others[plainVM], "loss is of a plain VM, an instance of Compute Engine that is no TPU: not in this report",
		"losses are of plain VMs, instances of Compute Engine that are no TPUs: not in this report")
	say(a.others[ofGKE], "loss is of a machine of GKE, and no Job is known that failed with it: not in this report",
		"losses are of machines of GKE, and no Job is known that failed with them: not in this report")
	say(a.clusters.explained, "Job failed within 10 minutes after a machine of its cluster was lost: its cause and notice are that machine's, for no entry says where a Job ran",
		"Jobs failed within 10 minutes after a machine of their cluster was lost: their causes and notices are those of the machines, for no entry says where a Job ran")
	say(a.clusters.made, "Job counts as back from its creation on: no entry says when its Pods ran again", "Jobs count as back from their creation on: no entry says when their Pods ran again")
	say(a.clusters.alone, "Job failed and no machine of its cluster was lost shortly before: its training may have ended by itself",
		"Jobs failed and no machine of their clusters was lost shortly before: their trainings may have ended by themselves")
	say(a.clusters.untold, "failure is of a JobSet, or of a Job whose creation is not in the record, so that it may have no TPU: not in this report",
		"failures are of JobSets, or of Jobs whose creation is not in the record, so that they may have no TPU: not in this report")
	say(a.others[ofGroup], "loss is of a machine that is named like one of a managed instance group: not in this report",
		"losses are of machines that are named like those of managed instance groups: not in this report")
	say(a.others[unnamed], "loss names no machine: not in this report", "losses name no machine: not in this report")
	unknown := 0
	for c, s := range a.byClass {
		if c.Cause == events.CauseUnknown {
			unknown += s.Losses
		}
	}
	unknown -= a.clusters.alone
	say(unknown, "loss has no entry of its own: somebody deleted or recreated the TPU", "losses have no entry of their own: somebody deleted or recreated the TPU")
	return out
}
