package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// opensForHang is the trouble of a training that does no step for longer than is usual, on machines that can be used. Its crews are listened for
// first: lines may be lost or late.
func (d *diagnosis) opensForHang() *Trouble {
	since, usual := d.w.silence()
	due := d.by(since, usual)
	if !d.w.expectsSteps() || !d.over(due) || d.w.Training.Claim.Finished && d.w.probes() {
		return nil
	}
	if slices.ContainsFunc(d.slots, func(s slot) bool { return s.Heard.At.Before(due) }) {
		return nil
	}
	if runs, _ := d.crewsHeard(); (!runs || d.p.Unreadable != "") && !d.passed(due, bounds.Grace) {
		return nil // lines may come late, and somebody may mend the policy
	}
	first := d.slots[0]
	return &Trouble{
		Cause: events.CauseHang, Slice: first.Name, Life: first.Incarnation.ID, At: since, Rank: events.RankAudit,
		Text: "no step past " + events.Number(d.w.Training.Step) + " for " + events.Span(d.now.Sub(since)) + ", and " + d.saysCrew(),
	}
}

// crewsHeard says whether the record of a crew on its machine reports a running training, and whether all records could be read.
func (d *diagnosis) crewsHeard() (runs, read bool) {
	read = true
	for i := range d.slots {
		h := d.slots[i].Heard
		runs, read = runs || h.runs(), read && !h.Seen.IsZero()
	}
	return runs, read
}

// saysCrew is what the crews' records say, for people.
func (d *diagnosis) saysCrew() string {
	switch runs, read := d.crewsHeard(); {
	case runs:
		return "the crew says that the training runs"
	case read:
		return "no crew says that the training runs"
	}
	return "what the crew writes on its machine cannot be read"
}

// handleHang decides on a training that stands still: it is begun again where its owner says so, and where that is proven. Else people are told,
// and it is watched while all other care goes on.
func (d *diagnosis) handleHang() *Step {
	first, t := d.in.Troubles[0], d.w.Training
	if !d.hangs() {
		return nil
	}
	if s := d.hearsClaim(d.in.Opened); s != nil {
		return s
	}
	runs, read := d.crewsHeard()
	switch {
	case d.p.Unreadable != "":
		return d.watchHang(story.PolicyUnreadable.With(d.p.Unreadable))
	case d.p.Hang != policy.HangRestart:
		return d.watchHang(story.HangOnlyReported.With())
	case !runs && !read:
		return d.watchSaves()
	case t.Saved.Step == 0 && t.Reported.Step == 0:
		return escalate(reason.CodeNoCheckpoint, story.NothingSaved.With(first.Text), story.LookAtTraining.With())
	}
	return d.anotherAttempt(story.Said.With(first.Text))
}

// hangs reports whether the incident is about a training that stands still, and nothing else is known to have happened to it since.
func (d *diagnosis) hangs() bool {
	first := d.in.Troubles[0]
	return d.in.cause() == events.CauseHang && d.whole() && !d.hasRestarted() && !d.hasGivenUp() && !d.w.Training.Exit.At.After(first.At)
}

// watchHang watches a training that stands still.
func (d *diagnosis) watchHang(why story.Reason, wants ...Want) *Step {
	until := d.by(d.in.Opened, bounds.WatchFor)
	for _, w := range wants {
		until = later(later(until, d.callBy(w.Action)), d.by(w.From, bounds.ResumeFor))
	}
	if d.over(until) {
		return ends(End{Outcome: view.Observed, Code: reason.CodeHangReport, Reason: why})
	}
	return call(view.Watching, why, until, wants...)
}

// watchSaves looks for a checkpoint of a training that is heard by its lines alone, where it may be begun again unasked: lines may be lost, and
// what it saves shows that it goes on. It is begun again once it has saved nothing for twice the time in which it saves.
func (d *diagnosis) watchSaves() *Step {
	t, began, why := d.w.Training, d.in.Troubles[0].At, story.HangUnproven.With()
	since, _ := d.w.silence()
	newer := d.by(since, bounds.ResumeFor) // what was begun before may be complete only after that
	look := Want{Action: events.ActionVerify, By: newer}
	due := d.by(newer, 2*time.Duration(t.SavesEvery)*time.Second)
	switch looked, speaks := t.Looked.After(d.in.Opened), d.w.speaksSince(began); {
	case d.w.restartsIn(d.in.ID) > 0 && (!speaks || d.restarts()):
	case t.Saved.At.After(newer):
		return ends(End{Outcome: view.Observed, By: view.ByCheckpoint, Code: reason.CodeHangReport, Reason: story.SavesUntold.With(), Advice: story.FindLines.With()})
	case !d.w.provider().onlyLines, d.w.Directory == "", d.level(policy.Restart) != policy.Yes, speaks:
		return d.watchHang(why)
	case !looked:
		return d.watchHang(why, look)
	case t.SavesEvery == 0:
		return d.watchHang(story.SavesUnknown.With())
	case t.Looked.Before(due), d.passed(t.Looked, bounds.SavedFor):
		look.From = due
		return d.watchHang(story.SavedNothing.With(), look)
	}
	return d.anotherAttempt(story.HangsUnsaved.With(d.in.Troubles[0].Text))
}

// speaksSince reports whether a crew has written since a time, whether its life is known or not.
func (w *Workload) speaksSince(t time.Time) bool {
	return slices.ContainsFunc(w.Slices, func(s Slot) bool { return s.Spoke.After(t) }) ||
		slices.ContainsFunc(w.Unbound, func(u Unbound) bool { return u.Time.After(t) })
}

// restarts reports whether somebody may be writing the lease with another attempt.
func (d *diagnosis) restarts() bool {
	x := d.w.effect(events.ActionRestart, "")
	return x != nil && x.Stage() == view.StageBegun
}
