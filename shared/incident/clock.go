package incident

import (
	"time"

	"pitstop.internal/shared/bounds"
)

// by is when a time is up that began then: time in which calls were held back does not count, up to HeldForMost in all. No rule adds a
// duration to a time in any other way.
func (d *diagnosis) by(since time.Time, span time.Duration) time.Time {
	until, held := since.Add(span), time.Duration(0)
	for _, h := range d.w.Holds {
		from := later(h.From, since)
		if !from.Before(until) {
			break // it was over by then
		}
		if more := min(h.Until.Sub(from), bounds.HeldForMost-held); more > 0 {
			until, held = until.Add(more), held+more
		}
	}
	return until
}

// inRealTime is when a time is up that began then, for what goes on outside whether calls are held back or not.
func inRealTime(since time.Time, span time.Duration) time.Time { return since.Add(span) }

// before is the time that lies so long before another one.
func before(t time.Time, span time.Duration) time.Time { return t.Add(-span) }

// over reports whether a time has come.
func (d *diagnosis) over(t time.Time) bool { return !d.now.Before(t) }

// passed reports whether a time is up that began then.
func (d *diagnosis) passed(since time.Time, span time.Duration) bool {
	return d.over(d.by(since, span))
}

// heldBy is when the present hold will have lasted for as long as holds may; zero where nothing is held.
func (d *diagnosis) heldBy() time.Time {
	if !d.w.isHeld(d.now) {
		return time.Time{}
	}
	n := len(d.w.Holds)
	left := bounds.HeldForMost
	for _, h := range d.w.Holds[:n-1] {
		left -= h.Until.Sub(h.From)
	}
	return d.w.Holds[n-1].From.Add(left)
}

// isHeld reports whether calls are held back, or were until shortly before.
func (w *Workload) isHeld(now time.Time) bool {
	n := len(w.Holds)
	return n > 0 && !w.Holds[n-1].Until.Add(bounds.RequestFor).Before(now)
}

// holdsAt reports whether calls are held back at that very moment.
func (w *Workload) holdsAt(now time.Time) bool {
	n := len(w.Holds)
	return n > 0 && now.Before(w.Holds[n-1].Until)
}

// maxHolds bounds how many holds are remembered apart.
const maxHolds = 16

// hold records until when calls are held back. One that begins within a gap after the last one has lasted since then. Of too many, the two
// oldest count as one.
func (w *Workload) hold(next Hold, gap time.Duration) (news bool) {
	if n := len(w.Holds); n > 0 && !next.From.After(w.Holds[n-1].Until.Add(gap)) {
		last := &w.Holds[n-1]
		news = last.Code != next.Code || last.Why != next.Why || last.Until.Before(next.Until)
		last.Until, last.Code, last.Why = later(last.Until, next.Until), next.Code, next.Why
		return news
	}
	if len(w.Holds) >= maxHolds {
		w.Holds[1].From = w.Holds[1].From.Add(-w.Holds[0].Until.Sub(w.Holds[0].From))
		w.Holds = w.Holds[1:]
	}
	w.Holds = append(w.Holds, next)
	return true
}
