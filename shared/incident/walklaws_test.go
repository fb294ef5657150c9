package incident_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// learn advances the document, and holds the laws.
func (w *walk) learn(what string, e evidence.Evidence) {
	fmt.Fprintf(&w.path, "\n  %s %s", w.now.Format("02 15:04:05"), what)
	if len(w.told) < 30 {
		w.told = append(w.told, e)
	}
	before := w.w
	document := marshal(before)
	after, sent, changed := incident.Advance(w.p, before, e, w.now)
	if got := marshal(before); got != document {
		w.breaks("it has changed its argument: %s", cmp.Diff(document, got))
	}
	if !changed && (len(sent) > 0 || marshal(after) != document) {
		w.breaks("it says that nothing has changed, and something has: %s", cmp.Diff(document, marshal(after)))
	}
	w.twice(e, after)
	w.judge(before, after, sent)
	w.w = after
	for _, e := range sent {
		if r, ok := e.(interface{ Header() events.Request }); ok {
			w.open = append(w.open, r.Header())
			fmt.Fprintf(&w.path, " -> %s %s", r.Header().Action, r.Header().Slice)
		}
	}
	if in := after.Incident; in != nil {
		fmt.Fprintf(&w.path, " [%s]", in.Status.Rule)
	}
	if before.Incident != nil && after.Incident == nil && after.Closed != nil {
		fmt.Fprintf(&w.path, " [%s: %s]", after.Closed.Ending.Outcome, after.Closed.Ending.Reason)
		w.ends[after.Closed.Ending.Outcome]++
		if e := after.Closed.Ending; e.Code == "" && e.Outcome != view.Resumed || e.Reason.IsZero() {
			w.breaks("it ends %s, and does not say why: %q", e.Outcome, e.Reason)
		}
	}
}

// twice holds that the same evidence teaches nothing again, and that a second tick of one moment changes nothing.
func (w *walk) twice(e evidence.Evidence, after incident.Workload) {
	if _, ticks := e.(evidence.Ticked); !ticks { // one may end an incident, and the next open another
		if _, sent, _ := incident.Advance(w.p, after, e, w.now); len(sent) > 0 {
			w.breaks("the same evidence twice sends %s", sent[0].EventType())
		}
	}
	tick := evidence.Ticked{Origin: evidence.Origin{Time: w.now, Rank: events.RankReading}}
	once, _, _ := incident.Advance(w.p, after, tick, w.now)
	due, reads := once.Due(), once.Reads(w.now)
	if once.Incident == nil && !due.IsZero() && !due.After(w.now) && len(reads) == 0 && w.p.Unreadable == "" {
		w.breaks("something is due since %s, and there is nothing to read, and a tick changes nothing", due)
	}
	two, sent, changed := incident.Advance(w.p, once, tick, w.now)
	if len(sent) > 0 || changed || marshal(once) != marshal(two) {
		w.breaks("a second tick sends %d events, and changes %s", len(sent), cmp.Diff(marshal(once), marshal(two)))
	}
}

// judge holds what may be sent.
func (w *walk) judge(before, after incident.Workload, sent []events.Event) {
	if after.Epoch < before.Epoch || after.Epoch > before.Epoch+3 {
		w.breaks("the epoch goes from %d to %d", before.Epoch, after.Epoch)
	}
	for _, e := range sent {
		if err := e.Validate(); err != nil {
			w.breaks("a faulty event: %v", err)
		}
		r, ok := e.(interface{ Header() events.Request })
		if !ok {
			continue
		}
		if h := r.Header(); h.Action.Mutating() && w.p.Switches.WatchOnly() {
			w.breaks("%s under a policy that allows nothing", h.Action)
		}
		if d, ok := e.(events.RecreateRequested); ok && d.Action == events.ActionDelete {
			w.judgeDeletion(after, d)
		}
	}
	for _, x := range after.Effects {
		if !x.Life.Known() {
			continue
		}
		key := fmt.Sprint(after.Incident.ID, x.Action, x.Slice, x.Life.ID)
		if first, known := w.wanted[key]; known && !first.Equal(x.First) && !usableSince(after, x.Slice, first) {
			w.breaks("%s of %s is wanted anew since %s, and was since %s", x.Action, x.Slice, x.First, first)
		}
		w.wanted[key] = x.First
	}
}

// usableSince reports whether a slice has become usable since a time: a call about it that is wanted after that is another one.
func usableSince(w incident.Workload, slice string, t time.Time) bool {
	return slices.ContainsFunc(w.Slices, func(s incident.Slot) bool {
		return s.Name == slice && (s.Condition == evidence.Ready && s.Since.After(t) || s.Used.After(t))
	})
}

// judgeDeletion holds that nothing is deleted that lives and is not saved, or that somebody stopped.
func (w *walk) judgeDeletion(after incident.Workload, d events.RecreateRequested) {
	for _, name := range append([]string{d.Slice}, members(d)...) {
		for _, s := range after.Slices {
			lives := s.Condition == evidence.Ready || s.Condition == evidence.Unhealthy || s.Condition == evidence.Unclear
			if s.Name == name && lives && s.Maker == "" && after.Training.Saved.At.IsZero() {
				w.breaks("%s lives, nothing is saved, and it is deleted", name)
			}
			if s.Name == name && s.Condition == evidence.Stopped && s.Maker == "" {
				w.breaks("%s is stopped, and it is deleted", name)
			}
		}
	}
}

func members(d events.RecreateRequested) (names []string) {
	for _, m := range d.With {
		names = append(names, m.Slice)
	}
	return names
}

// waitsForEnd lets nothing but time pass: every incident ends, but for the two named waits.
func (w *walk) waitsForEnd() {
	for range 14 * 24 * 6 {
		if w.w.Incident == nil {
			return
		}
		w.now = w.now.Add(10 * time.Minute)
		after, sent, _ := incident.Advance(w.p, w.w, evidence.Ticked{Origin: evidence.Origin{Time: w.now, Rank: events.RankReading}}, w.now)
		w.judge(w.w, after, sent)
		if after.Incident == nil && after.Closed != nil {
			w.ends[after.Closed.Ending.Outcome]++
		}
		w.w = after
	}
	if in := w.w.Incident; in != nil && !in.Status.Until.IsZero() {
		w.breaks("it never ends: %s since %s", in.Status.Rule, in.Status.Since)
	}
}

// looksAhead holds that a look ahead changes nothing, and that it tells of no call under a policy that allows none.
func (w *walk) looksAhead() {
	document := marshal(w.w)
	lost, deadline := w.w.IfLost(w.p, w.pick(), w.now), w.w.AtDeadline(w.p)
	w.w.IfRead(w.p, w.pick(), evidence.Stopped, w.now)
	if got := marshal(w.w); got != document {
		w.breaks("a look ahead has changed the document: %s", cmp.Diff(document, got))
	}
	if calls := append(lost.Calls, deadline.Calls...); w.p.Switches.WatchOnly() && len(calls) > 0 {
		w.breaks("%s would be called under a policy that allows nothing", calls[0])
	}
}

func (w *walk) breaks(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

func marshal(w incident.Workload) string {
	data, err := json.Marshal(w, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(data)
}
