package incident

import (
	"maps"

	"pitstop.internal/shared/policy"
)

// keep keeps what only a decision knows, since it needs the policy, for those who ask the document later: when saves are due, whether the
// policy allows nothing, and what it has allowed at least in the incident.
func (d *diagnosis) keep() (changed bool) {
	for i := range d.slots {
		s := &d.slots[i]
		due := d.saveDue(s)
		if d.p.Unreadable != "" && !due.IsZero() {
			due = earliest(due, s.Notice.Due, d.now) // who can read it next says when
		}
		if !due.Equal(s.Notice.Due) {
			d.w.Slices[i].Notice.Due, changed = due, true
		}
	}
	if watched := d.p.Switches.WatchOnly(); d.p.Unreadable == "" && watched != d.w.Watched {
		d.w.Watched, changed = watched, true
	}
	if d.in != nil && d.in.lowers(d.p) {
		changed = true
	}
	return changed
}

// lowers lowers the ceiling to a policy that can be read, and reports whether that takes anything away.
func (in *Incident) lowers(p policy.Policy) bool {
	lower, limits := in.Ceiling.Lower(p.Switches), policy.Limits{}
	if p.Unreadable != "" || lower == in.Ceiling {
		return false
	}
	maps.Copy(limits, in.Limits)
	for _, s := range policy.All() {
		if lower.Level(s) < in.Ceiling.Level(s) {
			limits[s] = p.Limits[s]
		}
	}
	in.Ceiling, in.Limits = lower, limits
	return true
}
