//go:build !heart

package incident

import (
	"cmp"
	"time"

	"pitstop.internal/events"
)

// ToRead is one thing that somebody has to go and read about a workload, because the known facts do not suffice for the next
// decision.
type ToRead struct {
	Kind ReadKind
	// Slice and Life are the subject of the reading; empty where it concerns all slices of the workload.
	Slice string
	Life  events.Incarnation
	// Zone is where the slice stands, or where the operation runs. Operation is the operation's name.
	Zone      string
	Operation string
	// Since is the time from which the audit log is searched.
	Since time.Time
	// Why names the missing fact; empty where the reading only confirms a known one. Told says that lines alone make the reading due,
	// which anybody can write.
	Why  string
	Told bool

	// turned is when the slice entered the condition that the audit log has to explain.
	turned time.Time
}

// ReadKind is the kind of a reading.
type ReadKind string

// The kinds of readings.
const (
	ReadSlices    ReadKind = "slices"    // every slice of the workload, in the API
	ReadTraining  ReadKind = "training"  // whether a training does steps that no line reports, by every reading of its slices
	ReadHosts     ReadKind = "hosts"     // the host names of a slice's workers
	ReadCrew      ReadKind = "crew"      // whether the crew of a slice trains, in its guest attribute
	ReadSaver     ReadKind = "saver"     // whether the crew of a slice would save before maintenance, in the same place
	ReadDeleter   ReadKind = "deleter"   // who deleted a slice that is gone, in the audit log
	ReadStopper   ReadKind = "stopper"   // who stopped a slice, in the audit log
	ReadOperation ReadKind = "operation" // whether one of Pitstop's operations has ended
)

const (
	// endedWithin is how far back the audit log is searched for the end of a slice, counted from when it was found gone. It is long
	// because a broken deployment looks at no slice.
	endedWithin = 6 * time.Hour
	// stoppedWithin bounds how far back the audit log is searched for the person or service that stopped a slice. The last reading
	// that showed it usable may be weeks old.
	stoppedWithin = 30 * 24 * time.Hour
)

// Reads are all things that have to be read about a workload at one time.
type Reads []ToRead

// Of returns the readings of one kind about a slice; about any, if none is named.
func (all Reads) Of(kind ReadKind, slice string) (some Reads) {
	for _, r := range all {
		if r.Kind == kind && (slice == "" || r.Slice == slice) {
			some = append(some, r)
		}
	}
	return some
}

// Has reports whether there is such a reading.
func (all Reads) Has(kind ReadKind, slice string) bool { return len(all.Of(kind, slice)) > 0 }

// Reads lists everything that somebody has to go and read now, and why. Time alone makes a reading due, so Reads stands apart from
// Advance: the question needs no decision and no write.
func (w Workload) Reads(now time.Time) (all Reads) {
	if in := w.Incident; in != nil && in.Look {
		all = append(all, ToRead{Kind: ReadSlices, Why: "the open incident waits for a reading of its slices"})
	}
	if w.hushed(now) {
		all = append(all, ToRead{Kind: ReadTraining, Why: whyHushed})
	}
	doubt, every, told := w.doubt(now)
	for i := range w.Slices {
		s := &w.Slices[i]
		if s.lives() && !s.HostsKnown() {
			all = append(all, s.toRead(ReadHosts, "entries that name its workers are not understood"))
		}
		if doubt != "" && now.Sub(s.Heard.At) >= every && (s.Condition == Ready || every == ListenAgain) {
			r := s.toRead(ReadCrew, doubt)
			r.Told = told
			all = append(all, r)
		}
		if w.unheard(s, now) {
			r := s.toRead(ReadSaver, "maintenance is announced, and nothing shows that its crew would save")
			r.Told = !s.Notice.InAPI && !s.Notice.End
			all = append(all, r)
		}
		all = append(all, w.auditLog(s, now)...)
	}
	return append(all, w.operations()...)
}

// toRead is a reading about a slice.
func (s *Slot) toRead(kind ReadKind, why string) ToRead {
	return ToRead{Kind: kind, Slice: s.Name, Life: s.Incarnation, Zone: s.Zone, Why: why}
}

// auditLog is the reading of the audit log that a slice needs.
func (w Workload) auditLog(s *Slot, now time.Time) Reads {
	var r ToRead
	switch {
	case w.asksWhoDeleted(s, now):
		r = s.toRead(ReadDeleter, "it is gone, and nobody has said why")
		r.Since = s.Since.Add(-endedWithin)
	case w.asksWhoStopped(s, now):
		r = s.toRead(ReadStopper, "it is stopped, and nobody has said by whom")
		r.Since = later(cmp.Or(s.Used, s.Incarnation.Created), now.Add(-stoppedWithin))
	default:
		return nil
	}
	r.turned = s.Since
	return Reads{r}
}

// operations are Pitstop's own operations that may still run.
func (w Workload) operations() (all Reads) {
	for _, effect := range w.Effects {
		if effect.Operation != "" {
			all = append(all, ToRead{
				Kind: ReadOperation, Slice: effect.Slice, Zone: effect.Zone, Operation: effect.Operation, Why: "it is not known to have ended",
			})
		}
	}
	return all
}

// doubt says why Pitstop has to listen for all crews of a workload, and how often; empty where there is no reason. Told says that lines
// alone are the reason.
func (w Workload) doubt(now time.Time) (why string, every time.Duration, told bool) {
	switch {
	case w.hushed(now):
		return whyHushed, ListenAgain, false
	case w.doubted(now):
		return "the incident is nearly overdue, and no progress has been reported", ListenAgain, false
	case w.probes():
		return "a line says that the training is over, and nothing confirms it", ListenAgain, true
	case w.unproven():
		return "only lines tell of progress", ProveEvery, true
	}
	return "", 0, false
}

const whyHushed = "no step has been reported for longer than is usual"

// unheard reports whether Pitstop has to look for a sign of life of a slice's crew, because the slice's maintenance is announced.
func (w Workload) unheard(s *Slot, now time.Time) bool {
	n := &s.Notice
	if n.Status != events.NoticePending || s.Condition != Ready || w.Incident != nil || w.leftAlone(s) {
		return false
	}
	return n.Listened.IsZero() || n.Deaf != "" && !now.Before(n.Listened.Add(ListenEvery))
}

// asksWhoDeleted reports whether a slice is gone, and nobody has said why. Pitstop must not bring back a slice that its owner
// deleted, so it first asks everywhere it can. For a while it also asks about a slice that was left to a person before it was gone,
// because the next incident may be about it.
func (w Workload) asksWhoDeleted(s *Slot, now time.Time) bool {
	if s.Condition != Gone || s.ToReplace || s.ownersBusiness(w) {
		return false
	}
	if w.Incident == nil {
		return !s.End.Reported || now.Sub(s.Since) < 2*Grace
	}
	return w.phase() != Clearing && !w.knowsWhyGone(s)
}

// asksWhoStopped reports whether patrol has to ask the audit log now who stopped a slice. An earlier answer may be incomplete:
// entries come late.
func (w Workload) asksWhoStopped(s *Slot, now time.Time) bool {
	return s.unaccounted() && !w.leftAlone(s) && s.Stop.Unsaid.IsZero() && now.Sub(s.Since) >= Grace && w.phase() != Clearing
}

// Answers reports whether an entry of the audit log may be the answer. A stop may have happened long before a reading showed it; an
// end may not.
func (r ToRead) Answers(e events.Entry) bool {
	if act, _ := e.Call.Act(); e.Kind == events.KindCall && act == events.ActStopped {
		return r.Kind == ReadStopper
	}
	return !e.Time.Before(r.turned.Add(-endedWithin))
}

// Silence reports whether an audit log that names nobody is an answer too. Entries come late, so at first it is not.
func (r ToRead) Silence(now time.Time) bool { return now.Sub(r.turned) >= Grace }
