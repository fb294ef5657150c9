package incident

import (
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// Question is what the open incident asks a person, in words; empty where it waits for nobody.
func (w Workload) Question() string {
	in := w.Incident
	if in == nil || in.Status.Asks == "" || in.isGranted() {
		return ""
	}
	return w.asks(in.Status.Asks, in.Status.Questions).String()
}

// isGranted reports whether a person has said yes to the open question.
func (in *Incident) isGranted() bool { return in.approves(in.Status.Questions) }

// asks is a question to a person, in words.
func (w *Workload) asks(a events.Action, questions []string) story.Reason {
	about := strings.Join(askedAbout(questions), ", ")
	switch a {
	case events.ActionDelete, events.ActionCreate:
		return story.AskRecreate.With(about)
	case events.ActionMaintain:
		if w.Incident.Save.Found.At.IsZero() {
			return story.AskSaveMaintain.With()
		}
		return story.AskMaintain.With()
	case events.ActionRestart:
		return story.AskRestart.With()
	case events.ActionStart:
		return story.AskStart.With(about)
	default:
	}
	return story.Said.With(string(a))
}

// askedAbout names the slices of questions.
func askedAbout(questions []string) (names []string) {
	for _, q := range questions {
		if words := strings.Fields(q); len(words) > 1 {
			names = append(names, words[1])
		}
	}
	return names
}

// Heard reports whether the order of a message is among the last orders. A message may arrive more than once.
func (w Workload) Heard(id string) bool {
	return id != "" && slices.ContainsFunc(w.Orders, func(o view.Spoken) bool { return o.ID == id })
}

// NothingToRetry says why there is nothing to try again; empty where there is.
func (w Workload) NothingToRetry(now time.Time) string {
	if w.Incident != nil {
		return w.nothingToRepeat()
	}
	d := diagnose(policy.Policy{}, &w, now)
	kept := d.kept()
	anyOf := func(is func(*slot) bool) bool { return slices.ContainsFunc(kept, is) }
	switch {
	case d.isFinished() && d.unadmitted() == nil:
		return "the training is finished"
	case anyOf(func(s *slot) bool { return s.Suspected && s.Condition == evidence.Ready }):
		return "Google suspects abuse on a slice of it (symptom PROJECT_ABUSE): answer its notification"
	case anyOf(func(s *slot) bool { return !s.ownersDoing().IsZero() }):
		return "its owner stopped it: start it, and Pitstop watches it again"
	case anyOf((*slot).isUnusable):
		return ""
	case len(kept) == 0:
		return "its owner deleted every slice or took it over: create them, and Pitstop watches them again"
	case anyOf(func(s *slot) bool { return s.Condition != evidence.Ready }):
		return "it waits for what its owner ordered"
	case d.unadmitted() != nil:
		return ""
	}
	return d.trainsOn()
}

// nothingToRepeat says why no request of the open incident can be tried again; empty where one can.
func (w *Workload) nothingToRepeat() string {
	in := w.Incident
	suspected := func(s Slot) bool { return s.Suspected && s.Released.IsZero() }
	switch {
	case in.Ending != nil && slices.ContainsFunc(w.Slices, suspected):
		return ""
	case in.Status.Asks != "":
		return in.ID + " waits for a person: approve it, or cancel it"
	case !slices.ContainsFunc(w.Effects, func(x Effect) bool { return !x.Retry.IsZero() }):
		return in.ID + " is under way (" + string(in.Status.Label) + "), and nothing of it waits for another try"
	}
	return ""
}

// trainsOn says why the crew of usable slices is not asked for another attempt; empty where it can be.
func (d *diagnosis) trainsOn() string {
	t := d.w.Training
	switch silent := d.now.Sub(t.StepAt); {
	case t.Seen.IsZero():
		return "every slice is usable, and no crew has been heard that could be asked for another attempt"
	case !d.hasGivenUp() && silent < bounds.ResumeFor:
		return "training goes on: step " + events.Number(t.Step) + " was told " + events.Span(silent) + " ago"
	}
	return ""
}

// isUnusable reports whether a slice that was there cannot be used, which is not its owner's business.
func (s *slot) isUnusable() bool {
	return s.Released.IsZero() && s.Incarnation.Known() && s.Condition != evidence.Ready && s.Condition != evidence.Creating
}

// leaveToPerson leaves the incident to the person who has taken it over.
func (d *diagnosis) leaveToPerson() *Step {
	for _, o := range slices.Backward(d.w.Orders) {
		if o.Verb == evidence.VerbCancel && o.Incident == d.in.ID {
			return d.released(reason.CodeCancelled, story.CancelledBy.With(o.By))
		}
	}
	return nil
}

// isRetried reports whether a person has said since the incident opened, or by opening it, that it may be tried again: then what it waited for
// before counts.
func (d *diagnosis) isRetried() bool { return d.in != nil && !d.w.retried().Before(d.in.Opened) }
