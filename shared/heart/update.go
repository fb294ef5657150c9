package heart

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/view"
)

// maxHappened bounds the troubles in an update: the first and the last of them stay.
const maxHappened = 6

// passing are the steps that last for seconds when there is no obstacle.
var passing = []view.Phase{view.Looking, view.Maintaining, view.Admitting, view.Restarting}

// Updates says what people have to hear of one step of a workload: nothing, unless an incident has moved on in its course. Steps that pass
// in seconds are not reported; the next update covers them.
func Updates(before, after Workload) (updates []events.IncidentUpdated) {
	told := map[string]string{}
	for _, in := range []*Incident{before.Closed, before.Incident} {
		if in != nil {
			u, _ := in.Update(before)
			told[in.ID] = u.Step()
		}
	}
	for _, in := range []*Incident{after.Closed, after.Incident} {
		if in == nil {
			continue
		}
		if u, tell := in.Update(after); tell && told[in.ID] != u.Step() {
			updates = append(updates, u)
		}
	}
	if at := after.waitTold(); !at.IsZero() && !at.Equal(before.waitTold()) {
		if u, waits := after.WaitUpdate(after.waitID()); waits {
			updates = append(updates, u)
		}
	}
	return updates
}

// Update describes the state of a workload's incident, from the document alone, so that it can be repeated. Tell is false in a step that
// passes in seconds: the next one reports.
func (in *Incident) Update(w Workload) (u events.IncidentUpdated, tell bool) {
	u = events.IncidentUpdated{
		Schema: events.Schema, Workload: w.ID, Incident: in.ID, Number: max(1, len(in.Lines)+in.LeftOut), At: in.lastAt().UTC(), Opened: in.Opened, Cause: in.cause(),
		Policy: in.Policy, Chips: w.chips(), Phase: string(in.Status.Label), Asked: in.Status.Asks, Down: in.Down, ChipHourPrice: in.ChipHourPrice,
	}
	if e := in.Ending; e != nil && !in.Closed.IsZero() {
		u.Outcome, u.ConfirmedBy, u.Code, u.Advice = string(e.Outcome), string(e.By), string(e.Code), e.Advice.String()
		if e.Outcome == view.Escalated && w.Incident == nil && !w.Ended.After(in.Closed) {
			u.IdleChips = w.idleChips()
		}
	}
	u.Slices, u.Happened = in.happened(&w)
	for _, l := range slices.Backward(in.Lines) {
		if l.Kind == view.LineDecided || l.Kind == view.LineEnded {
			u.Doing, u.Why = l.What.String(), l.Why.String()
			break
		}
	}
	if in.Status.Label == view.PhaseCreating && !in.Status.Reminded.IsZero() {
		u.Waiting = in.Status.Since
	}
	return u, !slices.Contains(passing, in.Status.Label)
}

// happened is which slices were struck, and what by.
func (in *Incident) happened(w *Workload) (struck []events.Affected, texts []string) {
	for _, t := range in.Troubles {
		if s := w.slot(t.Slice); s != nil && !slices.Contains(struck, affected(s)) {
			struck = append(struck, affected(s))
		}
		if t.Text != "" && !slices.Contains(texts, t.Text) {
			texts = append(texts, t.Text)
		}
	}
	if n := len(texts); n > maxHappened {
		texts = append(texts[:maxHappened/2:maxHappened/2], texts[n-maxHappened/2:]...)
	}
	return struck, texts
}

// lastAt is when the incident ended, or when its last line was written.
func (in *Incident) lastAt() time.Time {
	if n := len(in.Lines); in.Closed.IsZero() && n > 0 {
		return in.Lines[n-1].At
	}
	return cmp.Or(in.Closed, in.Opened)
}

func affected(s *Slot) events.Affected {
	return events.Affected{Name: s.Name, Zone: s.Zone, Accelerator: s.Accelerator, Spot: s.Reclaimable}
}

// chips is the number of chips of all slices.
func (w *Workload) chips() (n int) {
	for i := range w.Slices {
		n += w.Slices[i].Chips
	}
	return n
}

// idleChips are the usable chips that do nothing once an incident is left to a person.
func (w *Workload) idleChips() (chips int) {
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Condition == evidence.Ready && !s.IsReleased() {
			chips += s.Chips
		}
	}
	return chips
}

// waiting are the slices that wait by the provider's own objects, the one that has waited longest first.
func (w *Workload) waiting() (all []*Slot) {
	for i := range w.Slices {
		if s := &w.Slices[i]; !s.waitingSince().IsZero() {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *Slot) int { return a.WaitsSince.Compare(b.WaitsSince) })
	return all
}

// waitTellAt is when people have to hear of a long wait in quiet times next; zero for never.
func (w *Workload) waitTellAt() time.Time {
	if all := w.waiting(); w.Incident == nil && len(all) > 0 {
		return remindAt(all[0].WaitsSince, w.waitTold())
	}
	return time.Time{}
}

// remindAt is when people have to hear of a wait again after they were last told of it. A time before the wait means not yet.
func remindAt(since, told time.Time) time.Time {
	if told.After(since) {
		return since.Add(told.Sub(since).Truncate(bounds.RemindEvery) + bounds.RemindEvery)
	}
	return since.Add(bounds.RemindFirst)
}

// tellWait keeps that people are told of a long wait in quiet times. Nothing else follows from it: its owner and the cluster place the
// slice.
func tellWait(w *Workload, now time.Time) bool {
	due := w.waitTellAt()
	if due.IsZero() || now.Before(due) || w.Unread {
		return false
	}
	remember(w, Told{Of: ToldWait, At: now})
	return true
}

// waitID names the word of a long wait that people heard last. Each such word has its own name, and no incident has one like it.
func (w *Workload) waitID() string {
	return "wait-" + events.ID(w.ID, "wait", w.waitTold().UTC().Format(time.RFC3339))[:8]
}

// WaitUpdate describes the long wait of which people were last told, if that word has this name and the wait still lasts.
func (w *Workload) WaitUpdate(id string) (u events.IncidentUpdated, waits bool) {
	all, told := w.waiting(), w.waitTold()
	if told.IsZero() || id != w.waitID() || len(all) == 0 || w.Incident != nil {
		return u, false
	}
	since := all[0].WaitsSince
	u = events.IncidentUpdated{
		Schema: events.Schema, Workload: w.ID, Incident: id, Number: 1, At: told.UTC(), Opened: since, Waiting: since, Policy: w.Label,
		Phase: string(view.PhaseWaits), Chips: w.chips(), Doing: "nothing: Pitstop waits with it, and makes no call",
		Advice: "look at it: " + w.Words().Describe + " " + all[0].Name,
	}
	const most = maxHappened - 1
	for _, s := range all[:min(most, len(all))] {
		u.Slices = append(u.Slices, affected(s))
		u.Happened = append(u.Happened, w.Words().Slice+" "+s.Name+" is "+s.State)
	}
	if more := len(all) - most; more > 0 {
		u.Happened = append(u.Happened, "and "+events.Number(int64(more))+" more of its slices wait")
	}
	return u, true
}
