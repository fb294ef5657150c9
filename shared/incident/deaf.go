package incident

import "pitstop.internal/shared/policy"

// StaysAway says why Pitstop does not start the maintenance of a slice before its window, though its notice and the policy let it: nobody
// would bring it back. Empty is no such reason.
func (w Workload) StaysAway(p policy.Policy, slice string) string {
	d := diagnose(p, &w, w.Ended)
	if s := d.slot(slice); s != nil {
		return d.staysAway(s).String()
	}
	return ""
}

// deaf says why the crew of a slice may not hear a request to save before what is announced; nothing where it may, or where none is to be made.
func (d *diagnosis) deaf(s *slot) string {
	if d.forbids(policy.RequestCheckpoint) || s.Heard.At.Before(d.notice(s).LastWord) {
		return ""
	}
	return d.w.deaf(s.Slot)
}
