package incident

import (
	"cmp"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// This file is the way back: where the policy says so, a training that stands in another shape or capacity than its owner ordered is moved back to
// its first place before its next loss. Nothing is deleted without a verified save, and without one everything stays as it is for a while.

// backFor is the time for that save: no maintenance presses it.
const backFor = 30 * time.Minute

// otherwise are the slots that stand in another shape or capacity than their owner ordered.
func (d *diagnosis) otherwise() []*slot {
	return d.those(func(s *slot) bool { return s.is(serving) && !s.AsOrdered() })
}

// mayMoveBack reports whether the policy allows to move these slots back: it says so, and no person has to be asked.
func (d *diagnosis) mayMoveBack(all []*slot) bool {
	says := d.p.BackToFirst == policy.BackAfterSave && d.p.Unreadable == "" && (d.in == nil || d.doubts(all) == nil)
	return says && d.level(d.replacing(names(all))) == policy.Yes && d.level(policy.RequestCheckpoint) == policy.Yes
}

// opensToMoveBack is the trouble of a training that goes on where it stands otherwise than ordered, once it has done so for as long as a zone that
// preempts is left, and for as long after the last incident.
func (d *diagnosis) opensToMoveBack() *Trouble {
	all := d.otherwise()
	if len(all) == 0 || !d.whole() || !d.mayMoveBack(all) || d.w.Directory == "" || d.passed(d.w.Training.StepAt, bounds.ResumeFor) {
		return nil
	}
	since := d.w.Ended
	for _, s := range all {
		since = later(since, s.usable())
	}
	if !d.passed(since, cmp.Or(d.p.LeaveZoneFor, policy.DefaultLeaveZoneFor)) {
		return nil
	}
	s := all[0]
	return &Trouble{
		Cause: events.CauseMove, Slice: s.Name, Life: s.Incarnation.ID, At: d.now, Rank: events.RankReading, Announced: true,
		Text: s.Name + " stands in " + s.stands().String() + ", and the policy moves it back",
	}
}

// movesBack reports whether an incident was opened to move a training back.
func (in *Incident) movesBack() bool {
	return len(in.Troubles) > 0 && in.Troubles[0].Cause == events.CauseMove
}

// moveBack saves, and deletes what stands otherwise than ordered once the save is verified: then it is replaced as what is lost.
func (d *diagnosis) moveBack() *Step {
	all, save, why := d.otherwise(), d.in.Save, story.MovesBack.With()
	if !d.in.movesBack() || len(all) == 0 || !d.whole() || d.isStruck() {
		return nil
	}
	by := save.By
	if save.Asked.IsZero() {
		by = d.by(d.in.Opened, backFor)
	}
	looksBy := d.by(later(by, save.Acked), bounds.CheckFor)
	switch {
	case !d.mayMoveBack(all) && d.p.Unreadable == "":
		return staysThere(story.NotAllowedBack.With())
	case !save.Found.At.IsZero() && d.passed(save.complete(), bounds.SavedFor):
		return staysThere(story.SavedTooLongAgo.With(events.Span(bounds.SavedFor)))
	case !save.Found.At.IsZero():
		s := d.deletes(all)
		for i := range s.Wants {
			s.Wants[i].Why = why
		}
		s.Why = why
		return d.mayBe(d.replacing(names(all)), s)
	case save.Acked.IsZero() && save.Refused != "":
		return staysThere(story.SaveRefused.With(save.Refused))
	case save.Acked.IsZero() && !d.over(by):
		return d.mayBe(policy.RequestCheckpoint, call(view.Saving, why, by, Want{Action: events.ActionSave, By: by, Mode: d.saveMode()}))
	case save.Acked.IsZero():
		return staysThere(story.SaveUnanswered.With())
	case d.over(looksBy):
		return staysThere(story.SaveUnverified.With(save.Refused))
	}
	return call(view.Saving, story.AckProvesNothing.With(), looksBy, Want{Action: events.ActionVerify, By: save.Asked, Mode: d.saveMode()})
}

// staysThere ends the incident with everything as it was.
func staysThere(why story.Reason) *Step {
	return ends(End{Outcome: view.Withdrawn, Code: reason.CodeNotMoved, Reason: why})
}
