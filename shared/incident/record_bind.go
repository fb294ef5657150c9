package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

const (
	// maxUnbound bounds the lines that are kept of a workload. A crew writes few of them in the minute until its life is read. Where there are
	// more slices, each has room for one line, up to mostUnbound: a document has a limit.
	maxUnbound  = 16
	mostUnbound = 32
	// longestReason bounds the reason in one of them, and longestNames all its names, in bytes.
	longestReason = 160
	longestNames  = 256
)

// speaker is the life of a slice whose crew wrote a line at that time; nil where that is not known. A line that names its life is of that life.
// A line in a Pod that names none is of none that is known: Pods of any life have the same names. Else the names of the life's workers tell,
// where they are known and have the Cloud TPU API's form, and otherwise the time.
func (s *Slot) speaker(r events.CrewReport, at time.Time) *Life {
	group, _, named := events.WorkerGroup(r.Hostname)
	switch inPod := strings.Contains(r.Zone, "/"); {
	case r.Life != "":
		return s.find(func(l *Life) bool { return l.Incarnation.ID == r.Life })
	case inPod:
		return nil
	case named && group == s.Hosts:
		return &s.Life
	}
	if l := s.formerSpeaker(group, named, at); l != nil || named && s.ProvenHosts() != "" || at.Before(s.Incarnation.Created) {
		return l
	}
	return &s.Life
}

// formerSpeaker is the earlier life on those workers, or of that time where its workers are not known; nil for none.
func (s *Slot) formerSpeaker(group string, named bool, at time.Time) *Life {
	return s.find(func(l *Life) bool {
		inItsTime := at.Before(s.succeeded(l)) && !at.Before(l.Incarnation.Created)
		return l != &s.Life && (named && group == l.Hosts || inItsTime && (!named || l.ProvenHosts() == ""))
	})
}

// succeeded is when the life after a former one began: it was over by then.
func (s *Slot) succeeded(l *Life) time.Time {
	next := s.Incarnation.Created
	for i := len(s.Former) - 1; i >= 0 && &s.Former[i] != l; i-- {
		next = s.Former[i].Incarnation.Created
	}
	return next
}

// isNamedBy reports whether a line itself says that the crew of a life wrote it. Where lines alone name the workers, the first one has no more
// weight than the next.
func (l *Life) isNamedBy(r events.CrewReport) bool {
	group, _, ok := events.WorkerGroup(r.Hostname)
	return r.Life != "" && r.Life == l.Incarnation.ID || r.Life == "" && ok && (group == l.Hosts || l.HostsTold)
}

// keep keeps a line once, without the parts that nobody needs. If there are too many, the oldest of the slice and life with the most lines
// goes: who makes up a life pushes out its own lines first.
func (f *facts) keep(e evidence.Reported) bool {
	r, w := e.Report, f.w
	kept := func(k Unbound) bool { return k.ID == e.ID && k.Slice == e.Slice }
	if len(r.Hostname)+len(r.Life)+len(r.SaveID)+len(r.Signal) > longestNames || slices.ContainsFunc(w.Unbound, kept) {
		return false
	}
	r.ReadyAt, r.CheckpointURI, r.Measured, r.Tail = time.Time{}, "", nil, r.LastWords()
	r.Reason = strings.ToValidUTF8(r.Reason[:min(len(r.Reason), longestReason)], "")
	line, err := json.Marshal(r)
	if err != nil {
		return false // it was read as JSON, so it can be written
	}
	w.Unbound = append(w.Unbound, Unbound{ID: e.ID, Time: f.from.Time, Slice: e.Slice, Line: line})
	if len(w.Unbound) > max(maxUnbound, min(len(w.Slices), mostUnbound)) {
		i := spareLine(w.Unbound)
		w.Unbound = slices.Delete(w.Unbound, i, i+1)
	}
	return true
}

// Report is the line as it was read; empty for one that this release cannot read.
func (u Unbound) Report() (r events.CrewReport) {
	if json.Unmarshal(u.Line, &r) != nil {
		return events.CrewReport{}
	}
	return r
}

// spareLine is the place of the oldest line of the slice with the most lines, and there of the life with the most.
func spareLine(kept []Unbound) (spare int) {
	n, lives := map[string]int{}, make([]string, len(kept))
	for i, k := range kept {
		lives[i] = k.Slice + " " + k.Report().Life
		n[k.Slice]++
		n[lives[i]]++
	}
	for i, k := range kept {
		o := kept[spare]
		if cmp.Or(n[o.Slice]-n[k.Slice], n[lives[spare]]-n[lives[i]], k.Time.Compare(o.Time), cmp.Compare(k.ID, o.ID)) < 0 {
			spare = i
		}
	}
	return spare
}

// Bound are the lines whose life and attempt are known by now, in the order in which they were written. The caller passes them to Advance,
// one by one.
func (w *Workload) Bound() (lines []evidence.Evidence) {
	for _, k := range slices.SortedStableFunc(slices.Values(w.Unbound), func(a, b Unbound) int { return a.Time.Compare(b.Time) }) {
		s, r := w.Slice(k.Slice), k.Report()
		l := s.speaker(r, k.Time)
		if l == nil || w.isTooFar(r) || l == &s.Life && (r.Life == "" && !s.HostsKnown() || s.overBy(k.Time)) {
			continue
		}
		lines = append(lines, evidence.Reported{Origin: evidence.Origin{ID: k.ID, Time: k.Time, Rank: events.RankUser}, Slice: k.Slice, Report: r})
	}
	return lines
}

// unbind removes a line from the kept ones: its life is known. It reports whether it was there.
func (f *facts) unbind(e evidence.Reported) bool {
	n := len(f.w.Unbound)
	f.w.Unbound = slices.DeleteFunc(f.w.Unbound, func(k Unbound) bool { return k.ID == e.ID && k.Slice == e.Slice })
	return len(f.w.Unbound) < n
}
