package heart

import (
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Allowed says how far a policy allows an action of the open incident now, and which switch limits it. A function asks right before its
// call, so that a policy which was tightened after the request counts.
func (w *Workload) Allowed(a events.Action, p policy.Policy) (policy.Level, policy.Switch) {
	d := &diagnosis{p: p, w: w, in: w.Incident}
	sw, l := d.governs(a)
	switch {
	case d.watchOnly():
		return policy.No, sw
	case l == policy.Ask && d.in != nil && d.in.approved(d.questions(w.underWay(a))):
		return policy.Yes, sw
	}
	return l, sw
}

// underWay are the calls of a kind that are wanted or under way.
func (w *Workload) underWay(a events.Action) (all []Want) {
	for i := range w.Effects {
		if x := &w.Effects[i]; x.Action == a && !x.Dropped() {
			all = append(all, x.Want)
		}
	}
	return all
}

// governs is the switch of an action that is under way, with its level; empty for an action that only completes an allowed one.
func (d *diagnosis) governs(a events.Action) (sw policy.Switch, level policy.Level) {
	switch a {
	case events.ActionSave:
		sw = policy.RequestCheckpoint
	case events.ActionMaintain:
		sw = policy.EarlyMaintenance
	case events.ActionRestart:
		sw = policy.Restart
	case events.ActionStart:
		sw = policy.StartStopped
	case events.ActionDelete, events.ActionCreate:
		if d.in == nil || d.in.Ending == nil {
			return d.replacing(d.w.named(a))
		}
		return "", policy.Yes // Pitstop's own leftovers, in which training never ran
	case events.ActionAdmit, events.ActionVerify, events.ActionHear:
		return "", policy.Yes
	}
	return sw, d.level(sw)
}

// named are the slices that the calls of a kind are about.
func (w *Workload) named(a events.Action) (names []string) {
	for _, want := range w.underWay(a) {
		names = append(names, want.all()...)
	}
	return names
}

// Limit names who holds a switch at its level for the open incident; empty where nobody limits it, or nobody is known.
func (w Workload) Limit(s policy.Switch, p policy.Policy) string {
	if in := w.Incident; in != nil && in.Ceiling.Level(s) < p.Switches.Level(s) {
		return strings.TrimSuffix("what held at the opening, "+in.Limits[s], ", ")
	}
	return p.Limits[s]
}

// Forbids says in words that a switch does not allow something, and who limits it.
func (w Workload) Forbids(s policy.Switch, l policy.Level, p policy.Policy) string {
	if s == "" {
		return "the policy allows nothing any more"
	}
	text := "the switch " + string(s) + " is " + l.String()
	if who := w.Limit(s, p); who != "" {
		text += ", limited by " + who
	}
	return text
}
