package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// describes records the facts of a reading beside the condition, and reports whether they tell of another training. What an unusable slice may
// not show any more stays as it was, and so does an order that was not read.
func (f *facts) describes(s *Slot, e evidence.Read) bool {
	next := e.Facts
	if !e.Incarnation.Known() && s.Incarnation.Known() { // only the order is there, and the owner's later changes to the life are newer
		e.Directory, next.Label, next.Spec, next.Account, next.Claims = "", s.Label, "", s.Account, s.Claims
	}
	if e.Condition == evidence.Gone || e.Facts == (evidence.Facts{}) {
		if s.Condition != e.Condition {
			s.WaitsSince = time.Time{} // that was another wait
		}
		return false
	}
	switch e.Condition {
	case evidence.Lost:
		next.Cause, next.Failed = cmp.Or(next.Cause, s.Cause), cmp.Or(next.Failed, s.Failed)
		fallthrough
	case evidence.Unhealthy, evidence.Unclear, evidence.Stopped, evidence.Done, evidence.Deleting:
		next.Ends = cmp.Or(next.Ends, s.Ends)
		if s.Reclaimable() || next.Capacity == "" {
			next.Capacity = s.Capacity
		}
	default:
	}
	if next.Spec == "" {
		next.Spec, next.Bare = s.Spec, s.Bare
	} else {
		s.SpecZone = e.Zone
	}
	s.Facts = next
	return f.leads(s, e)
}

// leads records the checkpoint directory, as the newest slice names it: it says which training the workload runs.
func (f *facts) leads(s *Slot, e evidence.Read) bool {
	newer := func(o Slot) bool { return o.Released.IsZero() && o.Incarnation.Created.After(s.Incarnation.Created) }
	if e.Directory == "" || sameDirectory(f.w.Directory, e.Directory) || slices.ContainsFunc(f.w.Slices, newer) {
		return false
	}
	if f.w.Directory != "" {
		f.anotherTraining(s.Incarnation.Created)
	}
	f.w.movesTo(e.Directory)
	return true
}

// sameDirectory reports whether two names mean one checkpoint directory.
func sameDirectory(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// showsLoss records in the open incident that a reading shows a loss. It takes back what was told of the loss of machines that the slice had
// left before.
func (f *facts) showsLoss(s *Slot) bool {
	in := f.w.Incident
	if in == nil || !s.Released.IsZero() || s.Condition != evidence.Lost && !s.endedAsPlanned() {
		return false
	}
	news := f.trouble(s.loss())
	return in.unlearns(func(t Trouble) bool {
		return t.Slice == s.Name && t.Life == s.Incarnation.ID && !t.proven() && s.failedBefore(t.Cause, t.At)
	}) || news
}

// loss is the trouble that a reading of a lost slice shows.
func (s *Slot) loss() Trouble {
	t := Trouble{Cause: s.lossCause(), Slice: s.Name, Life: s.Incarnation.ID, At: s.Since, Rank: events.RankReading, Text: s.Name + " is " + cmp.Or(s.State, string(s.Condition))}
	if t.Cause == events.CauseEnd {
		t.Text += ", as planned for " + s.Ends.UTC().Format(time.RFC3339)
	}
	return t
}

// lossCause is why a life was lost, as far as its own reading tells.
func (l *Life) lossCause() events.Cause {
	switch {
	case l.endedAsPlanned():
		return events.CauseEnd
	case l.Cause != "":
		return l.Cause
	case l.Reclaimable():
		return events.CausePreemption
	}
	return events.CauseTerminated
}

// labelled records the label of all slices together, and reports whether it is another one.
func (f *facts) labelled() bool {
	was := f.w.Label
	f.w.Label = f.w.labels()
	return f.w.Label != was
}

// mapped records the host names of a life's workers. The name in a line stands until the API gives one.
func (f *facts) mapped(e evidence.Mapped) bool {
	l, told := f.w.life(e.Slice), f.from.Rank < events.RankReading
	switch {
	case l == nil || !e.Incarnation.Same(l.Incarnation) || e.Group == "" && (told || l.HostsAsked):
		return false
	case e.Group == "":
		l.HostsAsked = true
		return true
	case l.Hosts == e.Group && l.HostsTold == told, told && l.Hosts != "":
		return false
	}
	l.Hosts, l.HostsTold = e.Group, told
	return true
}
