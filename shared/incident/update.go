package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
)

// maxHappened bounds what an update says of what went wrong: the first and the last of it.
const maxHappened = 6

// Updates says what people have to hear of one step of a workload: nothing, unless an incident has come to another place in
// its course. Phases that pass in seconds are not told, the next one tells.
func Updates(before, after Workload) (updates []events.IncidentUpdated) {
	told := map[string]string{}
	for _, in := range []*Incident{before.Closed, before.Incident} {
		if in != nil {
			told[in.ID] = in.update(before).Step()
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
	return updates
}

// Update says how an incident of a workload stands, from the document alone, so that it can be said again. Tell is false
// in a phase that passes in seconds: the next one tells.
func (in *Incident) Update(w Workload) (u events.IncidentUpdated, tell bool) {
	return in.update(w), !in.Phase.passing()
}

// passing reports whether a phase lasts for seconds where nothing is in the way.
func (p Phase) passing() bool {
	switch p {
	case Looking, Maintaining, Admitting, Restarting:
		return true
	}
	return false
}

func (in *Incident) update(w Workload) events.IncidentUpdated {
	u := events.IncidentUpdated{
		Schema: events.Schema, Workload: w.ID, Incident: in.ID, Number: len(in.Timeline) + in.LeftOut,
		At: in.lastAt().UTC(), Opened: in.Opened, Cause: in.Cause, Policy: in.Policy, Chips: in.lostChips(w),
		Phase: string(in.Phase), Asked: in.Asked, Outcome: string(in.Outcome), ConfirmedBy: string(in.ConfirmedBy),
		Code: string(in.Code), Advice: in.Advice, Down: in.Down, ChipHourPrice: in.ChipHourPrice,
	}
	for _, t := range in.Troubles {
		if s := w.Slice(t.Slice); s != nil && !slices.ContainsFunc(u.Slices, func(a events.Affected) bool { return a.Name == s.Name }) {
			u.Slices = append(u.Slices, events.Affected{Name: s.Name, Zone: s.Zone, Accelerator: s.Accelerator, Spot: s.Reclaimable})
		}
		if t.Text != "" && !slices.Contains(u.Happened, t.Text) {
			u.Happened = append(u.Happened, t.Text)
		}
	}
	if n := len(u.Happened); n > maxHappened {
		u.Happened = append(u.Happened[:maxHappened/2:maxHappened/2], u.Happened[n-maxHappened/2:]...)
	}
	for _, l := range slices.Backward(in.Timeline) {
		if l.Kind == LineDecided || l.Kind == LineEnded {
			u.Doing, u.Why = l.Text, l.Reason
			break
		}
	}
	if in.Phase == PhaseCreating && in.Reminded.After(in.WaitingSince) {
		u.Waiting = in.WaitingSince
	}
	if in.Outcome == Escalated && w.endedLast(in) {
		u.IdleChips = w.idleChips()
		if w.Idle != nil && w.Idle.Incident == in.ID {
			u.DeleteAt = w.Idle.Due.UTC()
		}
	}
	return u
}

// lastAt is when the incident ended, or when its last line was written.
func (in *Incident) lastAt() time.Time {
	if n := len(in.Timeline); in.Closed.IsZero() && n > 0 {
		return in.Timeline[n-1].At
	}
	return cmp.Or(in.Closed, in.Opened)
}

// endedLast reports whether an incident is over and none has begun since: what its slices do now is how it left them.
func (w Workload) endedLast(in *Incident) bool { return w.Incident == nil && !w.Ended.After(in.Closed) }

// idleChips are those that can be used, and do nothing once an incident is left to a person.
func (w Workload) idleChips() (chips int) {
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Condition == Ready && !s.IsReleased() {
			chips += s.Chips
		}
	}
	return chips
}
