//go:build !heart

package incident

import (
	"slices"
	"time"
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
