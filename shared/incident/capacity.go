package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// A wait for capacity begins with the first place that refuses a slice, or with an order that waits in a queue, and ends with the slice. The story
// has one line for it, however many places are asked and how often. What that line shows is made from the refusals whenever somebody looks.

// refusals are the places that have refused since a creation was wanted, in the order in which they first did.
func (w *Workload) refusals(now time.Time) []view.Refusal {
	return w.Incident.refusedFrom(w.wantedSince(events.ActionCreate, now))
}

// refusedFrom are the places that have refused from a time on.
func (in *Incident) refusedFrom(since time.Time) []view.Refusal {
	all := slices.DeleteFunc(slices.Clone(in.Refusals), func(r view.Refusal) bool { return r.At.Before(since) })
	slices.SortStableFunc(all, func(a, b view.Refusal) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Place.String(), b.Place.String()))
	})
	return all
}

// waitsForCapacity reports whether a creation was refused for want of capacity since it was wanted, or waits in a queue.
func (w *Workload) waitsForCapacity(now time.Time) bool {
	return slices.ContainsFunc(w.refusals(now), func(r view.Refusal) bool { return !r.Never }) || w.queuedSince() != time.Time{}
}

// queuedSince is since when an order waits in a queue; zero for none. An incident waits for it from its opening on.
func (w *Workload) queuedSince() (since time.Time) {
	for i := range w.Slices {
		if at := w.Slices[i].Ordered; !at.IsZero() {
			since = earliest(since, later(at, w.Incident.Opened))
		}
	}
	return since
}

// refusedSince is since when what is to be created waits for capacity: since the first refusal, or the order that waits in a queue. Where neither
// is known, it is since the creation was wanted.
func (w *Workload) refusedSince(now time.Time) time.Time {
	since := w.queuedSince()
	for _, r := range w.refusals(now) {
		since = earliest(since, r.Since)
	}
	return cmp.Or(since, w.wantedSince(events.ActionCreate, now))
}

// isTry reports whether evidence is one more try of the wait: the line of the wait shows what came of it.
func (w *Workload) isTry(e evidence.Evidence, now time.Time) bool {
	full := func(f *evidence.Failure) bool { return f != nil && isOfPlace(f.Class) && !isForGood(f.Class) }
	switch e := e.(type) {
	case evidence.Read: // what a place accepts shows for a moment before that place refuses it
		return (e.Condition == evidence.Creating || e.Condition == evidence.Gone) && w.effect(events.ActionCreate, e.Slice) != nil && w.waitsForCapacity(now)
	case evidence.Answered:
		return e.Request.Action == events.ActionCreate && (e.Failure == nil || full(e.Failure)) && w.waitsForCapacity(now)
	case evidence.Ended:
		return full(e.Failure) && w.waitsForCapacity(now)
	}
	return false
}

// capacityFound tells that a place gives what others had refused: where, and after what time and how many tries.
func (w *Workload) capacityFound(s *Slot, now time.Time) story.Reason {
	since, at := w.refusedSince(now), view.Place{Zone: s.Zone}
	if x := w.effect(events.ActionCreate, s.Name); x != nil {
		at = x.Place
	}
	found := later(since, cmp.Or(s.Incarnation.Created, now))
	return story.CapacityFound.With(at.String(), events.Span(found.Sub(since)), tries(w.refusals(now)))
}

// addCapacity adds what the wait for capacity is about: each place with its last answer, and which one is asked now, or next.
func (w *Workload) addCapacity(v *view.Wait, now time.Time) {
	v.Since, v.Places = w.refusedSince(now), w.refusals(now)
	for _, r := range v.Places {
		v.Tries += r.Tries
	}
	for i := range w.Effects {
		x := &w.Effects[i]
		if x.Action != events.ActionCreate || x.Dropped() || x.Zone == "" {
			continue
		}
		ask := view.Ask{Place: x.Place, At: cmp.Or(x.Begun, x.Retry, x.Sent), Asked: !x.Begun.IsZero()}
		if v.Next == nil || ask.At.Before(v.Next.At) {
			v.Next = &ask
		}
	}
	v.Later = w.Incident.Status.Later.String()
	v.Text = capacityText(*v)
}

// lacked is the last wait for capacity of an incident in words, which was told at a time: the present one, or one that is over.
func (w *Workload) lacked(in Incident, told, now time.Time) string {
	if in.Closed.IsZero() && w.Incident != nil {
		if v := w.shownWait(now); v.Text != "" {
			return v.Text
		}
	}
	v := view.Wait{Since: told, Places: in.refusedFrom(told)}
	for _, r := range v.Places {
		v.Since = earlier(v.Since, r.Since)
	}
	return capacityText(v)
}

// capacityText is a wait for capacity in words. One that is over has no next place.
func capacityText(v view.Wait) string {
	var answers []string
	for _, r := range v.Places {
		answers = append(answers, answer(r, v.Since))
	}
	parts := []string{story.WaitsSince.With(dated(v.Since, time.Time{})).String()}
	if len(answers) > 0 {
		parts[0] = story.Answers.With(tries(v.Places), dated(v.Since, time.Time{}), strings.Join(answers, ", ")).String()
	}
	if v.Next == nil {
		return parts[0]
	}
	next, until := story.AskedNext, story.SpotWaits.With()
	if v.Next.Asked {
		next = story.AskedNow
	}
	if !v.Until.IsZero() {
		until = story.WaitsUntil.With(dated(v.Until, v.Since))
	}
	parts = append(parts, next.With(v.Next.Place.String(), dated(v.Next.At, v.Since)).String(), v.Later, until.String(), helps(v).String())
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}

// answer is the last answer of a place.
func answer(r view.Refusal, since time.Time) string {
	if r.Never {
		return story.NeverGives.With(r.Place.String(), refusalWords(r.Code)).String()
	}
	return story.GaveNone.With(r.Place.String(), refusalWords(r.Code), dated(r.At, since)).String()
}

// helps is what a person can do about a wait for capacity.
func helps(v view.Wait) story.Reason {
	switch {
	case slices.ContainsFunc(v.Places, func(r view.Refusal) bool { return r.Code == reason.Quota.Code() || r.Code == reason.NoQuota.Code() }):
		return story.QuotaHelps.With()
	case len(v.Places) == 1 && v.Next.Place == v.Places[0].Place:
		return story.PlacesHelp.With()
	}
	return story.NobodyNeeded.With()
}

// tries is how often places were asked in vain, in words.
func tries(places []view.Refusal) string {
	n := 0
	for _, r := range places {
		n += r.Tries
	}
	if n == 1 {
		return "1 try"
	}
	return events.Number(int64(n)) + " tries"
}

// dated is a time for people, with its day where that is another one than that of a time that they have read before.
func dated(t, read time.Time) string {
	if t, read = t.UTC(), read.UTC(); t.Format(time.DateOnly) == read.Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("Jan 2 15:04")
}
