//go:build !heart

package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
)

// maxHappened bounds the troubles in an update: the first and the last of them stay.
const maxHappened = 6

// Updates says what people have to hear of one step of a workload: nothing, unless an incident has moved on in its course. Pitstop
// does not report phases that pass in seconds; the next update covers them.
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
	return append(updates, toldOfWait(before, after)...)
}

// Update describes the state of a workload's incident, from the document alone, so that it can be repeated. Tell is false in a
// phase that passes in seconds: the next one reports.
func (in *Incident) Update(w Workload) (u events.IncidentUpdated, tell bool) {
	return in.update(w), !passing(in.Phase)
}

// passing reports whether a phase lasts for seconds when there is no obstacle.
func passing(p Phase) bool {
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
	u.Doing, u.Why = in.lastStep()
	if in.Phase == PhaseCreating && in.Reminded.After(in.WaitingSince) {
		u.Waiting = in.WaitingSince
	}
	if in.Outcome == Escalated && w.endedLast(in) {
		u.IdleChips = w.idleChips()
	}
	return u
}

// lastStep is the last decision, and its reason.
func (in *Incident) lastStep() (text, reason string) {
	for _, l := range slices.Backward(in.Timeline) {
		if l.Kind == LineDecided || l.Kind == LineEnded {
			return l.Text, l.Reason
		}
	}
	return "", ""
}

// lastAt is when the incident ended, or when its last line was written.
func (in *Incident) lastAt() time.Time {
	if n := len(in.Timeline); in.Closed.IsZero() && n > 0 {
		return in.Timeline[n-1].At
	}
	return cmp.Or(in.Closed, in.Opened)
}

// endedLast reports whether an incident is over and none has begun since: its slices are still as it left them.
func (w Workload) endedLast(in *Incident) bool { return w.Incident == nil && !w.Ended.After(in.Closed) }

// idleChips are the usable chips that do nothing once an incident is left to a person.
func (w Workload) idleChips() (chips int) {
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Condition == Ready && !s.IsReleased() {
			chips += s.Chips
		}
	}
	return chips
}
