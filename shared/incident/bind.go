package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
)

// Unbound is a line of a crew on workers that no life of the slice is known to have. It is kept as it came until a reading says
// whose workers they are: a new life's crew may be heard before the API shows that life.
type Unbound struct {
	ID     string            `json:"id,omitzero"`
	Time   time.Time         `json:"time,omitzero"`
	Slice  string            `json:"slice"`
	Report events.CrewReport `json:"report"`
}

// maxUnbound bounds the lines that are kept. A crew writes few of them in the minute until its life is read.
const maxUnbound = 16

// speaker is the life whose crew wrote a line, as far as its host name tells.
type speaker string

const (
	newestCrew  speaker = "newest"
	formerCrew  speaker = "former"
	unknownCrew speaker = "unknown"
)

// speaker finds the life of a slice whose crew wrote a line on that host at that time. Where the newest life's host names are not known
// what was written since it began is taken for its own. For a former life it says when that ended.
func (s *Slot) speaker(host string, at time.Time) (who speaker, ended time.Time) {
	group, _, ok := events.WorkerGroup(host)
	if !ok || group == s.Hosts {
		return newestCrew, time.Time{}
	}
	next := s.Incarnation.Created
	for i := len(s.Former) - 1; i >= 0; i-- {
		former := &s.Former[i]
		if former.Hosts == group {
			return formerCrew, cmp.Or(former.End.Since, next)
		}
		next = former.Incarnation.Created
	}
	if s.Hosts == "" && !at.Before(s.Incarnation.Created) {
		return newestCrew, time.Time{}
	}
	return unknownCrew, time.Time{}
}

// endedBy reports whether a life was over by that time, as far as is known.
func (l *Life) endedBy(t time.Time) bool { return !l.End.Since.IsZero() && !t.Before(l.End.Since) }

// WasOn reports whether a former life of the slice, of which more is known than that, ran on the workers with that group of names.
func (s *Slot) WasOn(group string) bool {
	return slices.ContainsFunc(s.Former, func(l Life) bool { return l.Hosts == group })
}

// keep keeps a line as it came, once, unless it is older than the newest life: it is of one that nobody remembers.
func (m *machine) keep(e Reported, s *Slot) {
	again := func(k Unbound) bool { return k.ID == e.ID && k.Slice == e.Slice }
	if m.when().Before(s.Incarnation.Created) || len(m.w.Unbound) >= maxUnbound || slices.ContainsFunc(m.w.Unbound, again) {
		return
	}
	m.w.Unbound = append(slices.Clip(m.w.Unbound), Unbound{ID: e.ID, Time: m.when(), Slice: e.Slice, Report: e.Report})
	m.changed = true
}

// Bound are the lines whose life is known by now, in the order in which they were written: they are given to Advance as if they came
// now, each for itself.
func (w Workload) Bound() (lines []Evidence) {
	kept := slices.SortedStableFunc(slices.Values(w.Unbound), func(a, b Unbound) int { return a.Time.Compare(b.Time) })
	for _, k := range kept {
		s := w.Slice(k.Slice)
		if who, _ := s.speaker(k.Report.Hostname, k.Time); who == newestCrew && s.Named() && !s.endedBy(k.Time) {
			lines = append(lines, Reported{Origin: Origin{ID: k.ID, Time: k.Time, Rank: events.RankUser}, Slice: k.Slice, Report: k.Report})
		}
	}
	return lines
}

// bound notes that a line is kept no more: it is known whose it is.
func (m *machine) bound(e Reported) {
	kept := func(k Unbound) bool { return k.ID == e.ID && k.Slice == e.Slice }
	if slices.ContainsFunc(m.w.Unbound, kept) {
		m.w.Unbound, m.changed = slices.DeleteFunc(slices.Clone(m.w.Unbound), kept), true
	}
}

// remember takes from a line of a life that has ended what it tells of the training: which attempts began and ended, and how far they
// came. It decides nothing. What was written after that end is of a training that nobody waits for.
func (m *machine) remember(r events.CrewReport, ended time.Time) {
	if !m.when().Before(ended) {
		return
	}
	switch r.Report {
	case events.ReportStarted:
		m.began(r)
	case events.ReportProgress:
		m.stepped(r)
	case events.ReportExited:
		m.crashed(r)
	case events.ReportFinished:
		m.claimsEnd(r)
	case events.ReportSaved, events.ReportRefused, events.ReportGaveUp, events.ReportNotice:
		// They answer what has been decided without them.
	}
}
