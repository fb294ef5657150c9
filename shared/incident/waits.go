//go:build !heart

package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
)

// WaitingSince is since when the life waits for its machines, or for the end of its deletion, by the provider's own objects; zero where
// it does not wait, or nothing says since when.
func (l Life) WaitingSince() time.Time {
	if l.Condition != Creating && l.Condition != Deleting {
		return time.Time{}
	}
	return l.WaitsSince
}

// waiting are the slices that wait, the one that has waited longest first.
func (w Workload) waiting() (all []Slot) {
	for i := range w.Slices {
		if s := w.Slices[i]; !s.WaitingSince().IsZero() {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b Slot) int { return a.WaitsSince.Compare(b.WaitsSince) })
	return all
}

// waitDue is when people have to hear of a long wait next; zero for never.
func (w Workload) waitDue() time.Time {
	if all := w.waiting(); len(all) > 0 {
		return remindAt(all[0].WaitsSince, w.WaitTold)
	}
	return time.Time{}
}

// tellWait tells people of a long wait, unless it may be over and could not be read. Nothing else follows from it: its owner and the cluster place it.
func (m *machine) tellWait() {
	if due := m.w.waitDue(); !due.IsZero() && !m.now.Before(due) && !m.unread {
		m.w.WaitTold, m.changed = m.now, true
	}
}

// waitID names the word of a long wait that people heard last. Each such word has its own name, and no incident has one like it.
func (w Workload) waitID() string {
	return "wait-" + events.ID(w.ID, "wait", w.WaitTold.UTC().Format(time.RFC3339))[:8]
}

// WaitUpdate describes the long wait of which people were last told, if that word has this name and the wait still lasts.
func (w Workload) WaitUpdate(id string) (u events.IncidentUpdated, waits bool) {
	all := w.waiting()
	if w.WaitTold.IsZero() || id != w.waitID() || len(all) == 0 || w.Incident != nil {
		return u, false
	}
	since := all[0].WaitsSince
	u = events.IncidentUpdated{
		Schema: events.Schema, Workload: w.ID, Incident: id, Number: 1, At: w.WaitTold.UTC(), Opened: since, Waiting: since,
		Policy: w.Label, Phase: string(PhaseWaits), Chips: w.Chips(),
		Doing:  "nothing: Pitstop waits with it, and makes no call",
		Advice: "look at it: " + w.Words().Describe + " " + all[0].Name + inPlace(all[0].Zone),
	}
	const most = maxHappened - 1
	for _, s := range all[:min(most, len(all))] {
		u.Slices = append(u.Slices, events.Affected{Name: s.Name, Zone: s.Zone, Accelerator: s.Accelerator, Spot: s.Reclaimable})
		u.Happened = append(u.Happened, w.noun(s.Name)+" is "+s.State)
	}
	if more := len(all) - most; more > 0 {
		u.Happened = append(u.Happened, "and "+events.Number(int64(more))+" more of its slices wait")
	}
	return u, true
}

// toldOfWait are the updates about a wait that a step brings.
func toldOfWait(before, after Workload) (updates []events.IncidentUpdated) {
	if after.WaitTold.Equal(before.WaitTold) || after.WaitTold.IsZero() {
		return nil
	}
	if u, waits := after.WaitUpdate(after.waitID()); waits {
		updates = append(updates, u)
	}
	return updates
}
