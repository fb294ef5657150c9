package incident

// keep keeps what only a decision knows, since it needs the policy, for those who ask the document later: when saves are due, whether the
// policy allows nothing, and since when the training stands still.
func (d *diagnosis) keep() (changed bool) {
	for i := range d.slots {
		s := &d.slots[i]
		if due := d.saveDue(s); !due.Equal(s.Notice.Due) {
			d.w.Slices[i].Notice.Due, changed = due, true
		}
	}
	if watched := d.p.Switches.WatchOnly(); d.p.Unreadable == "" && watched != d.w.Watched {
		d.w.Watched, changed = watched, true
	}
	if d.in != nil && d.in.Down.IsZero() {
		d.in.Down = d.standsStill()
		changed = changed || !d.in.Down.IsZero()
	}
	return changed
}
