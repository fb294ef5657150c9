//go:build !heart

package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
)

// Unbound is a line of a crew in a life that is not known, or on workers that no life of the slice is known to have. It is kept until a
// reading shows whose it is: a new life's crew may write before the API shows that life.
type Unbound struct {
	ID     string            `json:"id,omitzero"`
	Time   time.Time         `json:"time,omitzero"`
	Slice  string            `json:"slice"`
	Report events.CrewReport `json:"report"`
}

const (
	// maxUnbound bounds the lines that are kept of a workload. A crew writes few of them in the minute until its life is read. Where
	// there are more slices, each has room for one line, up to mostUnbound: a document has a limit.
	maxUnbound  = 16
	mostUnbound = 32
	// longestReason bounds the reason in one of them, and longestNames all its names, in bytes.
	longestReason = 160
	longestNames  = 256
)

// speaker is the life whose crew wrote a line.
type speaker string

const (
	newestCrew  speaker = "newest"
	formerCrew  speaker = "former"
	unknownCrew speaker = "unknown"
)

// speaker finds the life of a slice whose crew wrote a line at that time. A line that names its life is of that life. A line in a
// Pod that names none is of none that is known: Pods of any life have the same names. Else speaker compares the names of the life's
// workers, where those are known and have the Cloud TPU API's form, and otherwise the time. For a former life it also returns the end
// of that life.
func (s *Slot) speaker(r events.CrewReport, at time.Time) (who speaker, ended time.Time) {
	switch inPod := strings.Contains(r.Zone, "/"); {
	case r.Life != "":
		return s.speakerOf(r.Life)
	case inPod:
		return unknownCrew, time.Time{}
	}
	group, _, named := events.WorkerGroup(r.Hostname)
	if named && group == s.Hosts {
		return newestCrew, time.Time{}
	}
	next := s.Incarnation.Created
	for i := len(s.Former) - 1; i >= 0; i-- {
		former := &s.Former[i]
		inItsTime := at.Before(next) && !at.Before(former.Incarnation.Created)
		if named && group == former.Hosts || inItsTime && (!named || former.ProvenHosts() == "") {
			return formerCrew, cmp.Or(former.End.Since, next)
		}
		next = former.Incarnation.Created
	}
	if named && s.ProvenHosts() != "" || at.Before(s.Incarnation.Created) {
		return unknownCrew, time.Time{}
	}
	return newestCrew, time.Time{}
}

// speakerOf finds the life with that ID among those of a slice.
func (s *Slot) speakerOf(life string) (who speaker, ended time.Time) {
	if life == s.Incarnation.ID {
		return newestCrew, time.Time{}
	}
	next := s.Incarnation.Created
	for i := len(s.Former) - 1; i >= 0; i-- {
		former := &s.Former[i]
		if life == former.Incarnation.ID {
			return formerCrew, cmp.Or(former.End.Since, next)
		}
		next = former.Incarnation.Created
	}
	return unknownCrew, time.Time{}
}

// names reports whether a line itself says that the crew of the newest life wrote it, by the life or by its workers. Where lines alone
// name the workers, the first one has no more weight than the next.
func (s *Slot) names(r events.CrewReport) bool {
	group, _, ok := events.WorkerGroup(r.Hostname)
	return r.Life != "" && r.Life == s.Incarnation.ID || r.Life == "" && ok && (group == s.Hosts || s.HostsTold)
}

// endedBy reports whether a life was over by that time, as far as is known.
func (l *Life) endedBy(t time.Time) bool { return !l.End.Since.IsZero() && !t.Before(l.End.Since) }

// WasOn reports whether a former life that is still remembered ran on the workers with that group of names.
func (s *Slot) WasOn(group string) bool {
	return slices.ContainsFunc(s.Former, func(l Life) bool { return l.Hosts == group })
}

// keep keeps a line once, without the parts that nobody needs: a document has a limit. If there are too many, the oldest line of the
// slice and life with the most lines goes: who makes up a life pushes out its own lines first. A line that is older than the newest
// life is not kept, because its life is forgotten.
func (m *machine) keep(e Reported, s *Slot) {
	again := func(k Unbound) bool { return k.ID == e.ID && k.Slice == e.Slice }
	r := e.Report
	if m.when().Before(s.Incarnation.Created) || len(r.Hostname)+len(r.Life)+len(r.SaveID)+len(r.Signal) > longestNames || slices.ContainsFunc(m.w.Unbound, again) {
		return
	}
	r.CheckpointURI, r.Measured, r.Reason, r.Tail = "", nil, clipTo(r.Reason, longestReason), r.LastWords()
	kept := append(slices.Clone(m.w.Unbound), Unbound{ID: e.ID, Time: m.when(), Slice: e.Slice, Report: r})
	if len(kept) > max(maxUnbound, min(len(m.w.Slices), mostUnbound)) {
		spare := spareLine(kept)
		kept = slices.DeleteFunc(kept, func(k Unbound) bool { return k.ID == spare.ID && k.Slice == spare.Slice })
	}
	m.w.Unbound, m.changed = kept, true
}

// spareLine is the oldest line of the slice with the most lines, and there of the life with the most.
func spareLine(kept []Unbound) Unbound {
	type life struct{ slice, id string }
	ofSlice, ofLife := map[string]int{}, map[life]int{}
	for _, k := range kept {
		ofSlice[k.Slice]++
		ofLife[life{k.Slice, k.Report.Life}]++
	}
	return slices.MinFunc(kept, func(a, b Unbound) int {
		return cmp.Or(
			cmp.Compare(ofSlice[b.Slice], ofSlice[a.Slice]),
			cmp.Compare(ofLife[life{b.Slice, b.Report.Life}], ofLife[life{a.Slice, a.Report.Life}]),
			a.Time.Compare(b.Time),
		)
	})
}

// forgetFormer drops the kept lines of a slice that its newest life cannot have written.
func (m *machine) forgetFormer(s *Slot) {
	stale := func(k Unbound) bool {
		who, _ := s.speaker(k.Report, k.Time)
		return k.Slice == s.Name && (who == formerCrew || k.Time.Before(s.Incarnation.Created))
	}
	if slices.ContainsFunc(m.w.Unbound, stale) {
		m.w.Unbound, m.changed = slices.DeleteFunc(slices.Clone(m.w.Unbound), stale), true
	}
}

// Bound are the lines whose life is known by now, in the order in which they were written. The caller passes them to Advance, one
// by one.
func (w Workload) Bound() (lines []Evidence) {
	kept := slices.SortedStableFunc(slices.Values(w.Unbound), func(a, b Unbound) int { return a.Time.Compare(b.Time) })
	for _, k := range kept {
		s := w.Slice(k.Slice)
		if who, _ := s.speaker(k.Report, k.Time); who == newestCrew && (k.Report.Life != "" || s.HostsKnown()) && !s.endedBy(k.Time) {
			lines = append(lines, Reported{Origin: Origin{ID: k.ID, Time: k.Time, Rank: events.RankUser}, Slice: k.Slice, Report: k.Report})
		}
	}
	return lines
}

// bound removes a line from the kept ones: its life is known.
func (m *machine) bound(e Reported) {
	kept := func(k Unbound) bool { return k.ID == e.ID && k.Slice == e.Slice }
	if slices.ContainsFunc(m.w.Unbound, kept) {
		m.w.Unbound, m.changed = slices.DeleteFunc(slices.Clone(m.w.Unbound), kept), true
	}
}

// remember records the attempts and steps that a former life's crew reported. It decides nothing. A line from after the end of that
// life belongs to a training that nobody waits for.
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
		// These lines concern decisions made without a former life's crew.
	}
}
