package incident

import (
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// Step is what a rule wants: calls, a wait, a question to a person, or the end of the incident. It is a value; what follows from it is
// done by effects and tell.
type Step struct {
	// Rule is the rule that decided, and Label its wait in the words of the view.
	Rule  string
	Label phase
	Wants []Want
	// Switch is the policy's switch that allows the calls; empty where they need none.
	Switch policy.Switch
	Why    story.Reason
	// Later names the place of a wait for capacity whose turn comes next.
	Later story.Reason
	// Until ends the wait: then the incident is left to a person, unless another rule decides. Zero is for the two waits that have no end,
	// of which people are reminded.
	Until time.Time
	// Asks is the action that waits for a person, Questions what exactly they are asked, and Code why, in one word.
	Asks      events.Action
	Questions []string
	Code      reason.Code
	End       *End
}

// The words of the view that rules use.
type phase = view.Phase

// rule is one reason to act. Its step is nil where it has nothing to say.
type rule struct {
	name string
	step func(*diagnosis) *Step
}

// rules are in the order of their weight: the first that has a step decides.
var rules = []rule{
	{"stop for abuse", (*diagnosis).stopForAbuse},
	{"clean up", (*diagnosis).cleanUp},
	{"clear what came late", (*diagnosis).clearLate},
	{"leave it to a person", (*diagnosis).leaveToPerson},
	{"leave it to its owner", (*diagnosis).leaveToOwner},
	{"the training is finished", (*diagnosis).finished},
	{"only watch", (*diagnosis).watch},
	{"replace what is lost", (*diagnosis).replaceLost},
	{"start what is stopped", (*diagnosis).start},
	{"ask who deleted it", (*diagnosis).askWho},
	{"look", (*diagnosis).look},
	{"let its provider heal it", (*diagnosis).letHeal},
	{"prepare for maintenance", (*diagnosis).maintenance},
	{"move back", (*diagnosis).moveBack},
	{"admit", (*diagnosis).admit},
	{"progress proves it", (*diagnosis).progress},
	{"the training stands still", (*diagnosis).handleHang},
	{"restart the training", (*diagnosis).restart},
	{"wait for progress", (*diagnosis).waitForProgress},
}

// plan is the step of the first rule that has one. A wait that is over is left to a person: no rule leaves a wait without a way out.
func (d *diagnosis) plan() Step {
	for _, r := range rules {
		if s := r.step(d); s != nil {
			s = d.inTime(s)
			s.Rule = r.name
			return *s
		}
	}
	return *d.overdue(&Step{Why: story.NoRule.With()})
}

// inTime is what a step comes to in view of its time and of what has become of its calls.
func (d *diagnosis) inTime(s *Step) *Step {
	if s = d.leavesToPerson(s); s.End == nil && !s.Until.IsZero() && d.over(s.Until) {
		s = d.overdue(s)
	}
	if held := d.heldOut(); held != nil && s.End != nil && s.End.Code == reason.CodeOverdue {
		s = held
	}
	return d.waitsForCall(s)
}

// overdue ends a wait whose time is up.
func (d *diagnosis) overdue(s *Step) *Step {
	if d.in.Ending != nil {
		return &Step{Label: view.Closed, Why: d.in.Ending.Reason, End: d.in.Ending}
	}
	return escalate(reason.CodeOverdue, story.Overdue.With(s.Why.String()), story.LookAtIt.With(d.w.Name))
}

// wait is a step that calls nothing.
func wait(label phase, why story.Reason, until time.Time) *Step {
	return &Step{Label: label, Why: why, Until: until}
}

// call is a step that wants calls.
func call(label phase, why story.Reason, until time.Time, wants ...Want) *Step {
	for i := range wants {
		wants[i].Why = why
	}
	return &Step{Label: label, Why: why, Until: until, Wants: wants}
}

// ends is the end of the incident.
func ends(e End) *Step { return &Step{Label: view.Closed, Why: e.Reason, End: &e} }

// escalate leaves the incident to a person.
func escalate(c reason.Code, why, advice story.Reason) *Step {
	return ends(End{Outcome: view.Escalated, Code: c, Reason: why, Advice: advice})
}
