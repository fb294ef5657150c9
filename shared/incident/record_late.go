package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
)

const (
	// maxTroubles bounds what one incident remembers of its troubles, and maxStrikes what a workload does of the strikes on its machines.
	maxTroubles = 32
	maxStrikes  = 8
	// maxMade is how many closed incidents are remembered that had begun to create.
	maxMade = 4
	day     = 24 * time.Hour
)

// learns keeps a trouble, once per cause and life for as long as the slice is not usable in between: with the first time and the best
// word of it. It reports whether that is news. Usable is since when the slice is usable, or was last.
func (in *Incident) learns(t Trouble, usable time.Time) bool {
	for i := range in.Troubles {
		known := &in.Troubles[i]
		if known.Cause != t.Cause || known.Slice != t.Slice || known.Life != t.Life || known.At.Before(usable) != t.At.Before(usable) {
			continue
		}
		was := *known
		switch comes, first := known.Announced && !t.Announced, t.At.Before(known.At); {
		case comes: // a planned end: now it has come
			known.Announced, known.At, known.Heard, known.Text = false, t.At, t.Heard, t.Text
		case first && known.Announced == t.Announced:
			known.At = t.At
		}
		if t.Rank > known.Rank {
			known.Rank, known.Text = t.Rank, t.Text
		}
		return *known != was
	}
	if len(in.Troubles) >= maxTroubles {
		return false
	}
	in.Troubles = append(in.Troubles, t)
	return true
}

// unlearns forgets troubles that have turned out not to be any, and reports whether there were some. One stays, for an incident is about
// something.
func (in *Incident) unlearns(none func(Trouble) bool) bool {
	if in == nil {
		return false
	}
	known := in.Troubles
	if in.Troubles = slices.DeleteFunc(slices.Clone(known), none); len(in.Troubles) == 0 {
		in.Troubles = known[:1]
	}
	return len(in.Troubles) != len(known)
}

// isAbout reports whether a trouble may belong to an incident: it is no older than what opened the incident by more than evidence may be late.
// A closed incident is about the lives that it knows, until its end.
func (in *Incident) isAbout(t Trouble) bool {
	first, oldest := in.Troubles[0], bounds.Linger
	if first.Cause == events.CauseHang {
		oldest = 0 // it did a step after that
	}
	if in.Closed.IsZero() {
		return !t.At.Before(in.Opened.Add(-bounds.Linger))
	}
	return in.concerns(t) && !t.At.After(in.Closed) && !t.At.Before(first.At.Add(-oldest))
}

// concerns reports whether an incident is about the life that a trouble struck.
func (in *Incident) concerns(t Trouble) bool {
	return slices.ContainsFunc(in.Troubles, func(o Trouble) bool { return o.Slice == t.Slice && o.Life == t.Life })
}

// joins keeps a trouble with each incident that it may belong to: the open one, and the one that closed last. Where that has another cause by
// it, its end is told again.
func (f *facts) joins(t Trouble) (news bool) {
	t.Heard = f.now
	for _, in := range []*Incident{f.w.Closed, f.w.Incident} {
		if in == nil || !in.isAbout(t) {
			continue
		}
		was := in.cause()
		news = in.learns(t, f.w.life(t.Slice).usable()) || news
		if in == f.w.Closed && in.cause() != was {
			f.revises()
		}
	}
	return news
}

// revises has the end of the closed incident told again.
func (f *facts) revises() {
	f.revised = true
	f.w.Closed.Revision++
}

// strike keeps when something struck the machines, if Pitstop itself has read it: a message proves nothing.
func (f *facts) strike(at time.Time) bool {
	t := &f.w.Training
	i, known := slices.BinarySearchFunc(t.Strikes, at, time.Time.Compare)
	if f.from.Rank < events.RankReading || known {
		return false
	}
	t.Strikes = slices.Insert(slices.Clone(t.Strikes), i, at)
	if n := len(t.Strikes); n > maxStrikes {
		if v := &t.Verdict; v.Finished && !v.Certain && f.w.isSave(v.At) { // the exit was a save: decided before the strike near it is forgotten
			v.Finished = false
		}
		t.Strikes = t.Strikes[n-maxStrikes:]
	}
	return true
}

// forget drops what no late evidence can reach any more, and freezes what followed from it: the one place that does so.
func forget(w *Workload, now time.Time) {
	if c := w.Closed; c != nil && now.Sub(c.Closed) > bounds.Linger && !c.standsStill() {
		w.forgetClosed()
	}
	w.Unbound = slices.DeleteFunc(w.Unbound, func(u Unbound) bool { return now.Sub(u.Time) > bounds.Linger })
	w.Holds = slices.DeleteFunc(w.Holds, func(h Hold) bool { return w.Incident == nil || h.Until.Before(w.Incident.Opened) })
	w.Charges = slices.DeleteFunc(w.Charges, func(c Charge) bool {
		return !c.At.After(w.Training.ProvenAt) && now.Sub(c.At) > day && (w.Incident == nil || w.Incident.ID != c.Incident)
	})
	w.Taken = slices.DeleteFunc(w.Taken, func(t Taken) bool { return now.Sub(t.At) > takenFor })
	w.Ran = slices.DeleteFunc(w.Ran, func(r Ran) bool { return now.Sub(r.Until) > ranFor })
	if n := len(w.Made); n > maxMade {
		w.Made = w.Made[n-maxMade:]
	}
}

// forgetClosed drops the incident that closed last: what it pays back is decided for good.
func (w *Workload) forgetClosed() {
	for i := range w.Charges {
		c := &w.Charges[i]
		c.Void = c.Void || w.Closed.paysBack(*c)
	}
	w.Closed = nil
}
