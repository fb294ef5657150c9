package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
)

// Lease is what stands beside the checkpoints, as far as is known. Who may train follows from it: nobody notes that on a life.
type Lease struct {
	// Sure is the newest write of Pitstop's that was made, with the lives that crews have put into it since; without lives, a crew wrote
	// the lease by itself, or nobody has.
	Sure Write `json:"sure,omitzero"`
	// Maybe are later tries to write it whose outcome is not known, the newest last; without lives, a crew may have written one.
	Maybe []Write `json:"maybe,omitempty"`
	// Attempt is the attempt that the lease named when it was last read, or a later one that a verdict or a crew's record on its machine
	// tells of. Only lines tell of attempts after it.
	Attempt int `json:"attempt,omitzero"`
	// Doubted is when it was found implausible.
	Doubted time.Time `json:"doubted,omitzero"`
}

// maxDoubts bounds the doubt, and the leases elsewhere: what stands there is read before each write.
const maxDoubts = 8

// Write is one write of the lease by Pitstop.
type Write struct {
	At      time.Time          `json:"at,omitzero"`
	Attempt int                `json:"attempt,omitzero"`
	Lives   []events.Admission `json:"lives,omitempty"`
}

// Elsewhere is the lease that Pitstop has left in another directory.
type Elsewhere struct {
	Directory string `json:"directory"`
	Lease     Lease  `json:"lease"`
}

// movesTo has the workload name another directory. What Pitstop has left there before may stand there still, and its crews wait for it.
func (w *Workload) movesTo(directory string) {
	if w.Lease.any(func(o Write) bool { return len(o.Lives) > 0 }) {
		w.Elsewhere = append(w.Elsewhere[max(0, len(w.Elsewhere)+1-maxDoubts):], Elsewhere{w.Directory, w.Lease})
	}
	w.Directory, w.Lease = directory, Lease{}
	if i := slices.IndexFunc(w.Elsewhere, func(o Elsewhere) bool { return sameDirectory(o.Directory, directory) }); i >= 0 {
		w.Lease = w.Elsewhere[i].Lease
		w.Elsewhere = slices.Delete(w.Elsewhere, i, i+1)
	}
}

// of is the life of a slice that a write names; unknown where it names none.
func (w Write) of(slice string) events.Incarnation {
	for _, a := range w.Lives {
		if a.Slice == slice {
			return a.Incarnation
		}
	}
	return events.Incarnation{}
}

// lets reports whether training may run in a life under that lease. A crew puts itself into the place of a life before it in the same zone,
// where only one lives at a time; and into that of any other, where a crew wrote the lease.
func (w Write) lets(slice string, l *Life) bool {
	return len(w.Lives) == 0 || w.of(slice).Zone == l.Zone
}

// any reports whether a lease that may stand there is so.
func (l *Lease) any(so func(Write) bool) bool { return so(l.Sure) || slices.ContainsFunc(l.Maybe, so) }

// admits reports whether training may run in the present life of a slot, whatever of Pitstop's writes were made. What one of its calls made
// waits to be named.
func (w *Workload) admits(s *Slot) bool { return w.admitsIn(s.Name, &s.Life) }

// admitsIn reports whether training may run in a life of a slice, or might have while it lived, whatever of Pitstop's writes were made.
func (w *Workload) admitsIn(slice string, l *Life) bool {
	return l.Maker == "" && !w.Lease.any(func(o Write) bool { return !o.lets(slice, l) })
}

// mayRun reports whether training may run in a life, if that life is not over.
func (w *Workload) mayRun(slice string, l *Life) bool {
	return w.Lease.any(func(o Write) bool { return o.lets(slice, l) })
}

// isOver reports whether nothing runs in a life any more, as a reading showed.
func (l *Life) isOver() bool {
	return slices.Contains([]evidence.Condition{evidence.Gone, evidence.Lost, evidence.Stopped, evidence.Done}, l.Condition)
}

// silentBy is when training has certainly ended in every life that the next lease is not to name. It is not known while one of them may
// train on: nobody new is let in beside it, whatever its slice.
func (w *Workload) silentBy() (by time.Time, known bool) {
	for i := range w.Slices {
		t, ends := w.silentIn(&w.Slices[i])
		if !ends {
			return time.Time{}, false
		}
		by = later(by, t)
	}
	return by, true
}

// silentIn is when training has certainly ended in the lives of a slot before the present one, and in that one where it is its owner's.
func (w *Workload) silentIn(s *Slot) (by time.Time, known bool) {
	for i := range s.Former {
		t, ends := w.endsBy(s.Name, &s.Former[i])
		if !ends {
			return t, false
		}
		by = later(by, t)
	}
	if s.Released.IsZero() {
		return by, true
	}
	t, ends := w.endsBy(s.Name, &s.Life)
	return later(by, t), ends
}

// endsBy is when the training of a life has certainly ended that no later lease names: once it is gone, some time after its owner has
// deleted it, or that time after a lease without it was written.
func (w *Workload) endsBy(slice string, l *Life) (by time.Time, ends bool) {
	switch {
	case l.isOver():
	case !w.mayRun(slice, l):
		if l.Incarnation.Older(events.Incarnation{Created: w.Lease.Sure.At}) {
			by = w.Lease.Sure.At.Add(bounds.TakeOverFor)
		}
	case l.Released.After(l.Incarnation.Created): // else the life before was deleted
		by = l.Released.Add(bounds.TakeOverFor)
	case l.Condition == evidence.Deleting:
		by = l.Since.Add(bounds.TakeOverFor)
	default:
		return by, false
	}
	return by, true
}

// toAdmit are the lives that a lease of that time may name: those that its owner has not taken over, and did not order in vain; and of them only those that a lease of
// Pitstop's names already, while another one may train on that is not to be named.
func (w *Workload) toAdmit(now time.Time) (all []events.Admission) {
	silent := func(by time.Time, known bool) bool { return known && !now.Before(by) }
	quiet, ours := silent(w.silentBy()), len(w.Lease.Sure.Lives) > 0
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Released.IsZero() && !s.isInVain(w.Incident) && (quiet || ours && w.admits(s) && silent(w.silentIn(s))) {
			all = append(all, events.Admission{Slice: s.Name, Incarnation: s.Incarnation, Workers: s.ProvenHosts()})
		}
	}
	return all
}

// nextAttempt is the attempt after the last one that a lease has named. What lines tell does not count.
func (w *Workload) nextAttempt() int {
	last := max(w.Lease.Attempt, w.Lease.Sure.Attempt)
	for _, m := range w.Lease.Maybe {
		last = max(last, m.Attempt)
	}
	return last + 1
}

// countAttempt is the attempt that a call puts into the lease: the one after that in the lease which was read. It stays where the lease
// names it for these lives already, and its crew has not ended it: an earlier try has written it, or a crew has begun it since it was wanted.
func (w *Workload) countAttempt(x *Effect, l evidence.Lease) int {
	written := l.Incident == w.Incident.ID && l.Attempt == x.Lease.Attempt
	begun := l.Incident == "" && l.Began.After(x.First)
	switch {
	case !x.Begun.IsZero() && l.Attempt < x.Lease.Attempt: // an earlier delivery has counted it
		return x.Lease.Attempt
	case l.Attempt == 0:
		return max(w.nextAttempt(), l.Left+1)
	case l.Names && (x.Action == events.ActionAdmit || (written || begun) && l.Attempt > w.Training.Verdict.Attempt):
		return l.Attempt
	}
	return l.Attempt + 1
}

// read keeps what a lease names that was read, whoever wrote it, and reports whether that is news. Without Pitstop's own, the crews decide.
func (l *Lease) read(read evidence.Lease, now time.Time) (news bool) {
	switch {
	case read.Attempt == 0:
		return l.misses()
	case read.Attempt >= events.MaxAttempt: // none can follow it: a person has to see to it
		return false
	}
	news, l.Attempt = l.Attempt != read.Attempt, read.Attempt
	same := !slices.ContainsFunc(read.Lives, func(a events.Admission) bool { return a.Incarnation.Zone != l.Sure.of(a.Slice).Zone })
	if len(l.Sure.Lives) == 0 || len(read.Lives) == 0 || same && len(l.Sure.Lives) == len(read.Lives) {
		return news
	}
	l.Sure = Write{At: now, Attempt: read.Attempt, Lives: read.Lives}
	return true
}

// tries keeps that an effect begins to write the lease. Each try counts: its outcome is not known.
func (l *Lease) tries(x *Effect) {
	l.Maybe = append(l.Maybe[max(0, len(l.Maybe)+1-maxDoubts):], x.Lease)
}

// misses keeps that no lease could be read where Pitstop wrote one, and reports whether that is news. Before it vanished, the crew of any life that
// still runs may have put itself into it, unseen, and may train on until it reads the next one. So nobody new is let in before that life is over.
func (l *Lease) misses() (news bool) {
	if l.any(func(w Write) bool { return len(w.Lives) == 0 }) {
		return false
	}
	l.Maybe = append(l.Maybe, Write{})
	return true
}

// names reports whether a write names these lives.
func (w Write) names(lives []events.Admission) bool {
	return slices.EqualFunc(w.Lives, lives, func(a, b events.Admission) bool { return a.Slice == b.Slice && a.Incarnation.Same(b.Incarnation) })
}

// made keeps that the lease was written. A write that began before found another lease there than it had read, and was not made.
func (l *Lease) made(w Write, now time.Time) {
	w.At = now
	*l = Lease{Sure: w, Attempt: max(l.Attempt, w.Attempt)}
}

// unmade keeps that one of the tries of an effect to write the lease made none. Others may have.
func (l *Lease) unmade(x *Effect) {
	i := slices.IndexFunc(l.Maybe, func(m Write) bool { return m.names(x.Lease.Lives) })
	if i >= 0 && x.writesLease() {
		l.Maybe = slices.Delete(l.Maybe, i, i+1)
	}
}

// leads keeps that the lease names a life, as its crew's own record of the training shows: it begins nothing before. Where crews alone have
// written the lease, that matters for what an incident made.
func (l *Lease) leads(slice string, of *Life, attempt int, seen time.Time) {
	life, theirs := of.Incarnation, len(l.Sure.Lives) == 0 && of.Maker == ""
	l.Attempt = max(l.Attempt, attempt)
	if theirs || l.Sure.of(slice).Same(life) || seen.Before(l.Sure.At.Add(bounds.TakeOverFor)) {
		return
	}
	others := slices.DeleteFunc(slices.Clone(l.Sure.Lives), func(a events.Admission) bool { return a.Slice == slice })
	l.Sure = Write{At: seen, Attempt: attempt, Lives: append(others, events.Admission{Slice: slice, Incarnation: life})}
}

// leasedAt is when the lease was last written by Pitstop; zero for never.
func (w *Workload) leasedAt() time.Time { return w.Lease.Sure.At }

// OverrulesLease reports whether a person has ordered a retry since the lease was found implausible: then Pitstop may replace it.
func (w *Workload) OverrulesLease() bool {
	return !w.Lease.Doubted.IsZero() && w.retried().After(w.Lease.Doubted)
}

// retried is when a person last said that it may be tried again.
func (w *Workload) retried() (last time.Time) {
	for _, o := range w.Orders {
		if o.Verb == evidence.VerbRetry {
			last = later(last, o.At)
		}
	}
	return last
}
