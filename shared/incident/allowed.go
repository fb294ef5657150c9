package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// This file is what the owner allows, and what a person is asked. A rule puts its calls under their switch with mayBe. It asks for a level itself
// only where it chooses another way because of it: it prepares for nothing that is forbidden, and asks no question that leads nowhere.

// level is the lower of two levels of a switch: the lowest one since the incident opened, and the present one.
func (d *diagnosis) level(sw policy.Switch) policy.Level {
	if d.in == nil {
		return d.p.Switches.Level(sw)
	}
	return min(d.p.Switches.Level(sw), d.in.Ceiling.Level(sw))
}

// watchOnly reports whether the policy is known to allow nothing, now or at any time since the incident opened.
func (d *diagnosis) watchOnly() bool {
	s := d.p.Switches
	if d.in != nil {
		s = s.Lower(d.in.Ceiling)
	}
	return d.p.Unreadable == "" && s.WatchOnly() || d.in != nil && d.in.Ceiling.WatchOnly()
}

// forbids reports whether a switch is known to be no.
func (d *diagnosis) forbids(sw policy.Switch) bool {
	return d.p.Unreadable == "" && d.level(sw) == policy.No
}

// mayBe is a step under a switch: taken, asked about, or left to a person.
func (d *diagnosis) mayBe(sw policy.Switch, s *Step) *Step {
	return d.mayBeUnless(nil, sw, s)
}

// doubt is why a person is asked about a step that its switch allows.
type doubt struct {
	why  story.Reason
	code reason.Code
}

// mayBeUnless is a step under a switch, which a person is asked about in doubt.
func (d *diagnosis) mayBeUnless(in *doubt, sw policy.Switch, s *Step) *Step {
	if len(s.Wants) == 0 {
		return s
	}
	if s.Switch = sw; in == nil && d.level(sw) == policy.Yes && d.p.Unreadable == "" {
		return s
	}
	return d.unlessApproved(in, sw, s)
}

// unlessApproved is a step that is not simply allowed: a person is asked, or has said yes, or nothing is done.
func (d *diagnosis) unlessApproved(in *doubt, sw policy.Switch, s *Step) *Step {
	l := d.level(sw)
	questions, first, approved := d.w.questions(s.Wants), questioned(s.Wants[0].Action), d.w.approves(s.Wants)
	says := d.w.Forbids(sw, l, d.p)
	switch {
	case d.p.Unreadable != "" && d.in.Status.Asks == first && !approved:
		return &Step{Label: view.Approving, Why: s.Why, Asks: first, Questions: questions}
	case d.p.Unreadable != "":
		label := s.Label
		if d.in.Status.Label == view.Approving { // what was approved waits for whoever can read it
			label = view.Approving
		}
		return wait(label, story.PolicyUnreadable.With(d.p.Unreadable), d.heldBy())
	case l == policy.No:
		return escalate(reason.CodePolicyNo, story.UnderSwitch.With(s.Why.String(), says), story.DoOrAllow.With(d.w.asks(first, questions).String(), string(sw), d.w.Name))
	case in != nil && !approved:
		return &Step{Label: view.Approving, Why: in.why, Asks: first, Questions: questions, Code: in.code}
	case l == policy.Ask && !approved:
		return &Step{Label: view.Approving, Why: story.UnderSwitch.With(s.Why.String(), says), Asks: first, Questions: questions, Code: reason.CodePolicyAsk}
	}
	return s
}

// questions name what exactly a person is asked: each call, and the trouble that it is about. A yes covers no other call, and not the same one
// after the next trouble.
func (w *Workload) questions(wants []Want) (all []string) {
	for _, want := range wants {
		for _, name := range want.all() {
			all = append(all, strings.Join([]string{string(questioned(want.Action)), cmp.Or(name, "training"), w.asItStands(name)}, " "))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// asItStands tells the present trouble of a slice from its next one, by its life and since when that was usable; and that of the training by the
// attempt that the lease named last.
func (w *Workload) asItStands(slice string) string {
	s := w.Slice(slice)
	if s == nil {
		return events.Number(int64(w.Lease.Sure.Attempt))
	}
	if l := s.find(func(l *Life) bool { return !l.isBeingMade() }); l != nil {
		return l.Incarnation.ID + " " + l.usable().UTC().Format(time.RFC3339)
	}
	return ""
}

// isBeingMade reports whether a call of ours is making a life, or has not made it after all.
func (l *Life) isBeingMade() bool {
	return l.Maker != "" && l.usable().IsZero() && (l.Condition == evidence.Creating || l.Condition == evidence.Gone)
}

// questioned is the question behind an action: a deletion and the creation after it are one.
func questioned(a events.Action) events.Action {
	if a == events.ActionCreate {
		return events.ActionDelete
	}
	return a
}

// approves reports whether a person said yes to these calls. Who approved the start of maintenance approved the save before it.
func (w *Workload) approves(wants []Want) bool {
	in, starts := w.Incident, func(q string) bool { return strings.HasPrefix(q, string(events.ActionMaintain)+" ") }
	saves := len(wants) > 0 && wants[0].Action == events.ActionSave && slices.ContainsFunc(in.Approved, starts)
	return saves || in.approves(w.questions(wants))
}

// approves reports whether a person has said yes to all of these questions.
func (in *Incident) approves(questions []string) bool {
	return len(questions) > 0 && !slices.ContainsFunc(questions, func(q string) bool { return !slices.Contains(in.Approved, q) })
}

// Limit names who holds a switch at its level for the open incident; empty where nobody limits it, or nobody is known.
func (w Workload) Limit(s policy.Switch, p policy.Policy) string {
	if in := w.Incident; in != nil && in.Ceiling.Level(s) < p.Switches.Level(s) {
		return strings.TrimSuffix("what held before, "+in.Limits[s], ", ")
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

// permitting is the same policy with everything allowed.
func permitting(p policy.Policy) policy.Policy {
	p.Switches, p.Limits, p.Unreadable, p.Unknown, p.Hang = policy.Everything(), nil, "", false, policy.HangRestart
	return p
}
