package incident

import (
	"slices"

	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// stopForAbuse ends all automation where the provider suspects abuse: nothing is called until that is settled. A clean-up waits for its calls that are
// under way.
func (d *diagnosis) stopForAbuse() *Step {
	suspected := d.suspected()
	switch {
	case len(suspected) == 0:
		return nil
	case d.in.Ending == nil && d.watchOnly():
		return ends(End{Outcome: view.Observed, Code: reason.CodeAbuse, Reason: story.Abused.With(suspected[0].Name), Advice: story.AnswerGoogle.With(d.w.Name)})
	case d.in.Ending == nil:
		return escalate(reason.CodeAbuse, story.Abused.With(suspected[0].Name), story.AnswerGoogle.With(d.w.Name))
	}
	until := d.by(d.in.Ending.At, bounds.ClearFor)
	switch {
	case !d.leavesBehind(*d.in.Ending):
		return ends(*d.in.Ending)
	case d.over(until):
		return escalate(reason.CodeAbuse, story.AbuseLeft.With(), story.DeleteLabelled.With(d.in.ID))
	}
	return wait(view.Clearing, story.Abused.With(suspected[0].Name), until)
}

// suspected are the slots on which the provider suspects abuse.
func (d *diagnosis) suspected() []*slot {
	return d.those(func(s *slot) bool { return s.Suspected && s.Released.IsZero() })
}

// knowsAbuse reports whether people were told of the suspicion: until it is settled, nothing opens an incident.
func (d *diagnosis) knowsAbuse() bool {
	return slices.ContainsFunc(d.w.Slices, func(s Slot) bool {
		return s.Suspected && s.Released.IsZero() && d.told(ToldAbuse, s.Name, s.Incarnation.ID, s.SuspectedAt)
	})
}
