package incident

import (
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// saveDue is when the save before what is announced for a slot is due; zero for never. Where the maintenance may be started early that is
// once every slice has its notice, and at the latest some time after the last one. Else it is the lead before the window.
func (d *diagnosis) saveDue(s *slot) time.Time {
	n := d.notice(s)
	last := d.lastDue(n)
	if last.IsZero() || !s.Released.IsZero() || n.End || d.p.Unreadable != "" || !d.notEarly().IsZero() {
		return last
	}
	at, all := n.LastWord, true
	for i := range d.slots {
		switch o := &d.slots[i]; {
		case d.isAwaited(o):
			at = later(at, d.notice(o).LastWord)
		default:
			all = all && !o.Released.IsZero()
		}
	}
	if !all {
		at = d.by(at, bounds.NoticeFor)
	}
	if at.Before(last) && !d.told(ToldNotice, s.Name, s.Incarnation.ID, at) {
		return at
	}
	return last
}

// save is what leads to a verified save before the maintenance; nil where there is one. Early are the calls that start the maintenance once
// it is saved.
func (d *diagnosis) save(early []Want, notEarly story.Reason) *Step {
	save, until := d.in.Save, d.saveEnds()
	switch {
	case d.savesAnew(early):
		by := d.newSaveBy()
		return d.askForSave(by, by)
	case save.Asked.IsZero():
		return d.window(notEarly)
	case !save.Found.At.IsZero():
		return nil
	case save.Acked.IsZero() && save.Refused != "":
		return d.window(story.SaveRefused.With(save.Refused))
	case save.Acked.IsZero() && d.over(until):
		return d.window(story.SaveUnanswered.With())
	case save.Acked.IsZero():
		return d.askForSave(save.By, until)
	case d.w.Directory == "":
		return d.window(story.NoDirectory.With())
	}
	s := call(view.Saving, story.AckProvesNothing.With(), until, Want{Action: events.ActionVerify, By: save.Asked, Mode: d.saveMode()})
	if d.over(until) { // steps that are saved before the maintenance stops the training need not be done again
		s.Label, s.Until = view.Window, d.windowEnds()
	}
	if d.passed(later(until, save.Acked), bounds.CheckFor) {
		return d.window(story.SaveUnverified.With(save.Refused))
	}
	return s
}

// savesAnew reports whether a save is to be asked for that was not yet: the first one, one right before the window where the last one was
// long before it, or one right before the early start. A notice of which only lines tell has one.
func (d *diagnosis) savesAnew(early []Want) bool {
	save, n := d.in.Save, d.first()
	switch {
	case save.Asked.IsZero():
		return early != nil || d.isSoon(n) || n.Status == events.NoticeOngoing
	case early != nil && !save.Found.At.IsZero() && d.now.Sub(save.complete()) >= bounds.SavedFor:
		return true
	}
	lead, _ := d.lead()
	return n.Status == events.NoticePending && !n.Told && d.isSoon(n) && d.lastDue(n).Sub(save.Asked) >= lead
}

// complete is when the save was complete, as far as is known: it may be long after its crew acknowledged it.
func (s Save) complete() time.Time { return later(s.Acked, s.Found.At) }

// askForSave asks the training for the save with that deadline, and waits until a time.
func (d *diagnosis) askForSave(by, until time.Time) *Step {
	s := call(view.Saving, d.whenSaved(), until, Want{Action: events.ActionSave, By: by, Mode: d.saveMode()})
	switch {
	case d.forbids(policy.RequestCheckpoint):
		return d.window(story.SwitchOff.With(string(policy.RequestCheckpoint)))
	case d.w.Training.Seen.IsZero():
		return d.window(story.NobodyToSave.With())
	}
	return d.mayBe(policy.RequestCheckpoint, s)
}

// newSaveBy is until when a save has to be there that is asked for now: until the window, or, long before it, until the window's own save
// is due.
func (d *diagnosis) newSaveBy() time.Time {
	n := d.first()
	lead, _ := d.lead()
	switch last := d.lastDue(n); {
	case n.Status != events.NoticePending || !n.WindowStart.After(d.now):
		return d.by(d.now, bounds.SaveFor)
	case last.Sub(d.now) >= lead:
		return last
	}
	return n.WindowStart
}

// saveEnds is until when the save has to be there that was asked for last. Maintenance that has begun leaves a few minutes.
func (d *diagnosis) saveEnds() time.Time {
	s := d.in.Save
	by := d.by(s.Asked, s.By.Sub(s.Asked))
	for _, t := range d.in.Troubles {
		if happened := t.Cause == events.CauseMaintenance && !t.Announced; happened {
			by = earlier(by, d.by(later(t.Heard, s.Asked), bounds.SaveFor))
		}
	}
	return by
}

// whenSaved says how long before the event, and how, the training is asked to save.
func (d *diagnosis) whenSaved() story.Reason {
	n, mode := d.first(), string(d.saveMode())
	left := n.WindowStart.Sub(d.now)
	if n.Status != events.NoticePending || left <= 0 {
		return story.SavesNow.With(mode)
	}
	lead, why := d.lead()
	return story.SavesBefore.With(events.Span(left), events.Span(lead), why.String(), mode)
}
