package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// maxHappened bounds what an update says of what went wrong: the first and the last of it.
const maxHappened = 6

// Updates says what people have to hear of one step of a workload: nothing, unless an incident has come to another place in
// its course. Phases that pass in seconds are not told, the next one tells.
func Updates(p policy.Policy, before, after Workload, now time.Time) (updates []events.IncidentUpdated) {
	told := map[string]string{}
	for _, in := range []*Incident{before.Closed, before.Incident} {
		if in != nil {
			told[in.ID] = in.update(p, before, now).Step()
		}
	}
	for _, in := range []*Incident{after.Closed, after.Incident} {
		if in == nil || in.Phase.passing() {
			continue
		}
		if u := in.update(p, after, now); told[in.ID] != u.Step() {
			updates = append(updates, u)
		}
	}
	return updates
}

// passing reports whether a phase lasts for seconds where nothing is in the way.
func (p Phase) passing() bool {
	switch p {
	case Looking, Maintaining, Admitting, Restarting:
		return true
	}
	return false
}

// update says how an incident of a workload stands.
func (in *Incident) update(p policy.Policy, w Workload, now time.Time) events.IncidentUpdated {
	u := events.IncidentUpdated{
		Schema: events.Schema, Workload: w.ID, Incident: in.ID, Number: len(in.Timeline) + in.LeftOut, At: now.UTC(), Opened: in.Opened,
		Cause: in.Cause, Policy: in.Policy, Chips: in.lostChips(w), Phase: string(in.Phase), Asked: in.Asked, Outcome: string(in.Outcome),
		ConfirmedBy: string(in.ConfirmedBy), Code: string(in.Code), Advice: in.Advice, Down: in.Down, ChipHourPrice: p.ChipHourPrice,
	}
	for _, t := range in.Troubles {
		if s := w.Slice(t.Slice); s != nil && !slices.ContainsFunc(u.Slices, func(a events.Affected) bool { return a.Name == s.Name }) {
			u.Slices = append(u.Slices, events.Affected{Name: s.Name, Zone: s.Zone, Accelerator: s.Accelerator, Spot: s.Spot})
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
	if in.Phase == Recreating && in.Reminded.After(in.WaitingSince) {
		u.Waiting = in.WaitingSince
	}
	if in.Outcome == Escalated {
		u.IdleChips = w.idleChips()
		if w.Idle != nil && w.Idle.Incident == in.ID {
			u.DeleteAt = w.Idle.Due.UTC()
		}
	}
	return u
}

// idleChips are those that can be used, and do nothing once an incident is left to a person.
func (w Workload) idleChips() (chips int) {
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Condition == Ready && !s.IsReleased() {
			chips += s.Chips
		}
	}
	return chips
}
