package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// ToRead is one thing that somebody has to go and read about a workload, because the known facts do not suffice for the next decision.
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
	// Why names the missing fact; empty where the reading only confirms a known one. Told says that lines alone make the reading due, which
	// anybody can write.
	Why  string
	Told bool

	// turned is when the slice entered the condition that the audit log has to explain. Every is how often a crew's record is read again.
	turned time.Time
	every  time.Duration
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
	// endedWithin is how far back the audit log is searched for the end of a slice, counted from when it was found gone. It is long because
	// a broken deployment looks at no slice.
	endedWithin = 6 * time.Hour
	// stoppedWithin bounds how far back the audit log is searched for who stopped a slice: the last reading that showed it usable may be
	// weeks old.
	stoppedWithin = 30 * day
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

// Answers reports whether an entry of the audit log may be the answer. A stop may have happened long before a reading showed it; an end
// may not.
func (r ToRead) Answers(e events.Entry) bool {
	if act, _ := e.Call.Act(); e.Kind == events.KindCall && act == events.ActStopped {
		return r.Kind == ReadStopper
	}
	return !e.Time.Before(r.turned.Add(-endedWithin))
}

// Silence reports whether an audit log that names nobody is an answer too. Entries come late, so at first it is not.
func (r ToRead) Silence(now time.Time) bool { return now.Sub(r.turned) >= bounds.Grace }

// Reads lists everything that somebody has to go and read now, and why. Time alone makes a reading due, so this needs no decision and no
// write.
func (w *Workload) Reads(now time.Time) (all Reads) {
	d, doubt := diagnose(policy.Policy{}, w, now), w.doubt(now)
	if d.looksAtSlices() {
		all = append(all, ToRead{Kind: ReadSlices, Why: "the open incident waits for a reading of its slices"})
	}
	if doubt.Kind == ReadTraining {
		all = append(all, doubt)
	}
	for i := range d.slots {
		all = append(all, d.readsOf(&d.slots[i], doubt)...)
	}
	for i := range w.Effects {
		if x := &w.Effects[i]; x.Operation != "" {
			all = append(all, ToRead{Kind: ReadOperation, Slice: x.Slice, Zone: x.Zone, Operation: x.Operation, Why: "it is not known to have ended"})
		}
	}
	return all
}

// looksAtSlices reports whether the open incident waits for a reading of its slices: to explain what a log tells, or to find what holds a quota.
func (d *diagnosis) looksAtSlices() bool {
	quota := func(r view.Refusal) bool { return r.Code == reason.Quota.Code() && d.now.Before(r.Until) }
	open := func(t Trouble) bool { return d.isUnexplained(t) && !d.slot(t.Slice).is(lost, coming, foreign) }
	return d.in != nil && (d.in.Status.Label == view.Looking || slices.ContainsFunc(d.in.Refusals, quota) || slices.ContainsFunc(d.in.Troubles, open))
}

// readsOf are the readings about one slice.
func (d *diagnosis) readsOf(s *slot, doubt ToRead) (all Reads) {
	add := func(k ReadKind, why string, told bool) {
		all = append(all, ToRead{Kind: k, Slice: s.Name, Life: s.Incarnation, Zone: s.Zone, Why: why, Told: told})
	}
	if s.lives() && !s.HostsKnown() {
		add(ReadHosts, "entries that name its workers are not understood", false)
	}
	if doubt.Why != "" && d.now.Sub(s.Heard.At) >= doubt.every && s.lives() {
		add(ReadCrew, doubt.Why, doubt.Told)
	}
	if at := d.listenAt(s); !at.IsZero() && d.over(at) {
		add(ReadSaver, "maintenance is announced, and nothing shows that its crew would save", !s.Notice.InAPI && s.Ends.IsZero())
	}
	return append(all, d.auditLog(s)...)
}

// auditLog is the reading of the audit log that a slice needs: Pitstop must not bring back what its owner deleted or stopped.
func (d *diagnosis) auditLog(s *slot) Reads {
	r := ToRead{Slice: s.Name, Life: s.Incarnation, Zone: s.Zone, turned: s.Since}
	switch {
	case d.isFinished() || !s.Released.IsZero() || d.in != nil && d.in.Ending != nil:
		return nil
	case d.asksWhoDeleted(s):
		r.Kind, r.Why, r.Since = ReadDeleter, "it is gone, and nobody has said why", before(s.Since, endedWithin)
	case s.isUnaccounted() && s.Stop.Unsaid.IsZero() && d.over(d.saidBy(&s.Life)):
		r.Kind, r.Why = ReadStopper, "it is stopped, and nobody has said by whom"
		r.Since = later(cmp.Or(s.Used, s.Incarnation.Created), before(d.now, stoppedWithin))
	default:
		return nil
	}
	return Reads{r}
}

// asksWhoDeleted reports whether nobody knows why a slice is gone. For a while Pitstop asks about a slice that it had left to a person too: the
// next incident may be about it.
func (d *diagnosis) asksWhoDeleted(s *slot) bool {
	if d.in != nil {
		return s.is(vanished)
	}
	return s.Condition == evidence.Gone && (d.now.Sub(s.Since) < 2*bounds.Grace || !d.told(ToldEnd, s.Name, s.Incarnation.ID, time.Time{}))
}

// isUnaccounted reports whether nobody has said who stopped a slice. A slice that was stopped when Pitstop first saw it was stopped by its owner,
// unless an incident has just made it. Its owner also suspends a queued resource.
func (l *Life) isUnaccounted() bool {
	found := l.Used.IsZero() && l.Maker == ""
	return l.Condition == evidence.Stopped && l.Incarnation.Known() && l.Group == "" && !found && l.Stop.By == ""
}

// doubt is the reading of all crews that a workload needs, as its kind and reason; without a reason there is none. Steps that only a record
// on the machine can prove are not urgent.
func (w *Workload) doubt(now time.Time) ToRead {
	since, usual := w.silence()
	switch {
	case w.expectsSteps() && now.Sub(since) >= usual:
		return ToRead{Kind: ReadTraining, Why: "no step has been reported for longer than is usual", every: bounds.ListenAgain}
	case w.isNearlyOverdue(now):
		return ToRead{Kind: ReadCrew, Why: "the incident is nearly overdue, and no progress has been reported", every: bounds.ListenAgain}
	case w.probes():
		return ToRead{Kind: ReadCrew, Why: "a line says that the training is over, and nothing confirms it", Told: true, every: bounds.ListenAgain}
	case !w.toldFar().IsZero():
		return ToRead{Kind: ReadCrew, Why: "lines tell of an attempt far above the last known one", Told: true, every: bounds.ListenAgain}
	case w.hasUnprovenSteps():
		return ToRead{Kind: ReadCrew, Why: "only lines tell of progress", Told: true, every: bounds.ProveEvery}
	}
	return ToRead{}
}

// isNearlyOverdue reports whether the open incident will soon have waited for progress, for its provider, or for the lease, in vain.
func (w *Workload) isNearlyOverdue(now time.Time) bool {
	if w.Incident == nil || w.Training.Seen.IsZero() {
		return false
	}
	st := w.Incident.Status
	return slices.Contains([]view.Phase{view.Resuming, view.Healing, view.Admitting}, st.Label) && !st.Until.IsZero() && !now.Before(before(st.Until, bounds.ListenAgain))
}

// hasUnprovenSteps reports whether only lines tell of steps that would refill a budget.
func (w *Workload) hasUnprovenSteps() bool {
	t := &w.Training
	return w.Incident == nil && w.Directory == "" && !w.spentSince().IsZero() && t.StepAt.After(t.ProvenAt) && t.High > t.Proven
}

// probes reports whether a line calls the training over, no verdict has been read since, and a crew that is there was not yet listened for long
// enough. A reading ends that, and no time alone: else it would be due for ever where nobody could read.
func (w *Workload) probes() bool {
	c, v := w.Training.Claim, w.Training.Verdict
	silent := func(s Slot) bool { return s.lives() && s.Heard.At.Before(c.At.Add(bounds.ProbeFor)) }
	return c.Attempt > v.Attempt && !c.At.IsZero() && w.Training.HeardAt.Before(c.At) && slices.ContainsFunc(w.Slices, silent)
}

// silence is the time of the last sign of a step, and how long a silence is still usual: more before the first step of an attempt, and as long
// as no gap was seen.
func (w *Workload) silence() (since time.Time, usual time.Duration) {
	t := &w.Training
	since = later(later(t.StepAt, t.Stepped), t.Began)
	for i := range w.Slices {
		since = later(since, w.Slices[i].Since)
	}
	usual = max(bounds.HangFor, t.patience())
	if t.Attempt > t.StepAttempt {
		usual = max(usual, bounds.ResumeFor)
	}
	if t.GapSeconds == 0 {
		usual = max(usual, bounds.NoGapFor)
	}
	return since, usual
}

// expectsSteps reports whether a training that has done steps has to do more of them in quiet times, and no person has it, nor was told.
func (w *Workload) expectsSteps() bool {
	t := &w.Training
	if w.Incident != nil || t.Seen.IsZero() || t.StepAt.IsZero() || w.isFinished() || len(w.Slices) == 0 {
		return false
	}
	d, idle := &diagnosis{w: w}, func(s Slot) bool { return s.Condition != evidence.Ready || !s.Released.IsZero() }
	since, _ := w.silence()
	theirs := d.told(ToldStall, "", "", since) || d.told(ToldFailed, "", "", later(t.StepAt, t.Stepped))
	return !theirs && !slices.ContainsFunc(w.Slices, idle)
}

// listenAt is when somebody has to look whether the crew of a slice would save before what is announced; zero for never, and once that is over.
func (d *diagnosis) listenAt(s *slot) time.Time {
	n := d.notice(s)
	word, again := n.LastWord, s.Heard.At.Add(bounds.ListenEvery)
	switch {
	case d.in != nil || d.w.Watched || s.Condition != evidence.Ready || d.preparesAt(s, word).IsZero():
		return time.Time{}
	case s.Heard.At.Before(word):
		return word
	case d.w.deaf(s.Slot) != "" && !isPast(n.Notice, again):
		return again
	}
	return time.Time{}
}

// deaf says why a request to save may not be heard by the crew of a slice, by the last look at its record; empty where it may.
func (w *Workload) deaf(s *Slot) string {
	h := s.Heard
	last := later(h.Seen, w.Training.StepAt)
	switch {
	case h.At.IsZero() || w.Watched || w.announcedFor(s).Status != events.NoticePending:
		return ""
	case w.Training.Seen.IsZero() && h.Seen.IsZero():
		return "no crew has been heard that could answer"
	case h.At.Sub(last) < bounds.HeardFor && !h.Looked.IsZero() && h.Seen.Sub(h.Looked) >= bounds.HeardFor:
		return "the crew cannot read what is left beside the checkpoints, for " + events.Span(h.Seen.Sub(h.Looked)) + " by now: the node's metadata alone may reach it"
	case h.At.Sub(last) < bounds.HeardFor, h.Seen.IsZero():
		return "" // lines may be late or lost, so that silence in the log alone proves nothing
	}
	return "the crew was heard " + events.Span(h.At.Sub(last)) + " ago for the last time"
}

// Due is the time from which patrol has to look at the workload; zero when nothing is due. An open incident is looked at at each tick.
func (w *Workload) Due() time.Time { return w.due(time.Time{}) }

// HasDue reports whether something is due beside planned ends that are still far away: the next one comes with every life.
func (w *Workload) HasDue(now time.Time) bool { return !w.due(now).IsZero() }

// due is Due, without the planned ends whose save is due after a time; zero leaves none out.
func (w *Workload) due(horizon time.Time) (at time.Time) {
	if w.Incident != nil {
		return w.Incident.Opened
	}
	for i := range w.Outbox {
		at = earliest(at, w.Outbox[i].Time)
	}
	d := diagnose(policy.Policy{}, w, w.Ended)
	if d.knowsAbuse() {
		return at
	}
	for i := range d.slots {
		at = earliest(at, d.dueOf(&d.slots[i], horizon))
	}
	if !w.Watched {
		at = earliest(at, d.admissionAt())
	}
	return earliest(at, w.waitTellAt())
}

// dueOf is when patrol has to look at a slice.
func (d *diagnosis) dueOf(s *slot, horizon time.Time) time.Time {
	at := d.w.hearAt(s.Slot)
	if d.isFinished() {
		return at
	}
	if far := !horizon.IsZero() && s.Notice.Due.After(horizon) && d.w.announcedFor(s.Slot).End; !far {
		at = earliest(at, d.listenAt(s), d.preparesAt(s, s.Notice.Due))
	}
	if d.leftAlone(s).IsZero() {
		at = earliest(at, d.opensAt(s), d.unexplainedAt(s))
	}
	return at
}

// unexplainedAt is when somebody has to ask who deleted or stopped a slice; zero for never.
func (d *diagnosis) unexplainedAt(s *slot) time.Time {
	switch {
	case s.Condition == evidence.Gone && s.is(vanished):
		return s.Since
	case s.isUnaccounted() && s.Stop.Unsaid.IsZero(): // word of who stopped it may come as late as any other
		return d.saidBy(&s.Life)
	}
	return time.Time{}
}

// hearAt is when the crew of a slice has to be listened for again because of a doubt; zero where there is none. A suspicion that only
// time brings is found by the readings of the zone.
func (w *Workload) hearAt(s *Slot) time.Time {
	since, usual := w.silence()
	if !s.lives() {
		return time.Time{}
	}
	if at := since.Add(usual); w.expectsSteps() && !s.Heard.At.Before(at) {
		return s.Heard.At.Add(bounds.ListenAgain)
	}
	if r := w.doubt(later(s.Heard.At, w.Training.Claim.At)); r.Why != "" && r.Kind == ReadCrew {
		return later(s.Heard.At.Add(r.every), w.Training.Claim.At)
	}
	return time.Time{}
}
