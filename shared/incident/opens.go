package incident

import (
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
)

// peace is what the openings see: a diagnosis without an open incident, the trouble that the evidence tells of, and whether this is a tick. What
// only time makes due opens with a tick: until then, further readings of the same moment may come.
type peace struct {
	*diagnosis
	suspicion *Trouble
	ticks     bool
}

// opening is one kind of trouble for which an incident opens. Its trouble is nil where there is none.
type opening struct {
	name string
	// anyway says that it opens also where the training is finished, or its owner has all of it.
	anyway  bool
	trouble func(peace) *Trouble
}

// openings are in the order of their weight: the first that has a trouble opens the incident.
var openings = []opening{
	{"somebody tells of it", true, peace.heard},
	{"something is left behind", true, peace.leftBehind},
	{"a slice waits to be let in", true, func(d peace) *Trouble { return d.opensAdmission(d.ticks) }},
	{"a slice cannot be used", false, peace.unusable},
	{"maintenance is announced", false, peace.noticed},
	{"the training has failed", false, func(d peace) *Trouble { return d.opensForTraining() }},
	{"the training stands still", false, peace.hangs},
	{"it stands in a later place", false, func(d peace) *Trouble { return d.opensToMoveBack() }},
}

// opens is the trouble for which an incident has to open, with the name of its opening; nil for none. While abuse is suspected, none opens.
func (d *diagnosis) opens(suspicion *Trouble, ticks bool) (t *Trouble, name string) {
	if d.knowsAbuse() {
		return nil, ""
	}
	nobodyWaits := d.isFinished() || len(d.kept()) == 0
	for _, o := range openings {
		if nobodyWaits && !o.anyway {
			continue
		}
		if t := o.trouble(peace{d, suspicion, ticks}); t != nil {
			return t, o.name
		}
	}
	return nil, ""
}

// kept are the slots that their owner has not taken over.
func (d *diagnosis) kept() []*slot {
	return d.those(func(s *slot) bool { return s.Released.IsZero() })
}

// heard is the trouble of which the evidence itself tells.
func (d peace) heard() *Trouble {
	if d.suspicion == nil || !d.mayOpen(d.suspicion) {
		return nil
	}
	return d.suspicion
}

func (d peace) leftBehind() *Trouble { return firstOf(d.all(), d.opensForLeftover) }

func (d peace) unusable() *Trouble {
	return firstOf(d.all(), func(s *slot) *Trouble { return d.opensFor(s, d.ticks) })
}

func (d peace) noticed() *Trouble {
	if !d.ticks {
		return nil
	}
	return firstOf(d.all(), d.opensForNotice)
}

func (d peace) hangs() *Trouble {
	if !d.ticks {
		return nil
	}
	return d.opensForHang()
}

// mayOpen reports whether a suspicion may open an incident. A person's word always may. Any other evidence may not once the training is done, once
// its owner has the life, or once people were told of its end.
func (d *diagnosis) mayOpen(t *Trouble) bool {
	s := d.slot(t.Slice)
	switch {
	case t.Rank == 0:
		return true
	case d.isFinished(), s == nil, !d.leftAlone(s).IsZero(), t.Rank == events.RankUser && d.doubtsLines(s):
		return false
	}
	return t.Cause != events.CauseMaintenance || d.mayPrepare(s)
}

// doubtsLines reports whether a line alone has opened an incident about a life, and Pitstop itself has read of nothing since that struck the
// machines: the next such line opens none.
func (d *diagnosis) doubtsLines(s *slot) bool {
	var struck time.Time
	if all := d.w.Training.Strikes; len(all) > 0 {
		struck = all[len(all)-1]
	}
	return d.told(ToldDoubt, s.Name, s.Incarnation.ID, struck)
}

// opensFor is the trouble of one slot.
func (d *diagnosis) opensFor(s *slot, ticks bool) *Trouble {
	t := Trouble{Cause: events.CauseUnknown, Slice: s.Name, Life: s.Incarnation.ID, At: s.Since, Rank: events.RankReading, Text: s.Name + " is " + s.State}
	switch {
	case !d.leftAlone(s).IsZero():
		return nil
	case s.is(lost) && (ticks || d.isShownLost(s)) && s.Incarnation.Known(): // no life that was never seen is lost
		t = s.loss()
		t.Cause = d.causeOf(s)
		return &t
	case ticks && !s.is(lost) && d.isDue(d.opensAt(s)):
		return &t
	}
	return nil
}

// isDue reports whether a time is set, and has come.
func (d *diagnosis) isDue(at time.Time) bool { return !at.IsZero() && d.over(at) }

// isShownLost reports whether a reading itself shows the loss. A step at the same time hides it until the next tick.
func (d *diagnosis) isShownLost(s *slot) bool {
	return s.endedAsPlanned() || s.Condition == evidence.Lost && s.Since.After(d.w.Training.StepAt)
}

// opensAt is when a tick opens an incident for a slot that is as it is: lost, or for too long sick, stopped by nobody, or gone while the audit log
// cannot be read. It is zero for never.
func (d *diagnosis) opensAt(s *slot) time.Time {
	switch {
	case s.is(lost) && s.Incarnation.Known():
		return s.Since
	case s.is(sick):
		return later(d.sickBy(&s.Life), d.trainsUntil(s.Since))
	case s.is(vanished):
		return d.by(s.Since, bounds.Grace+bounds.AuditFor)
	case s.isUnsaid():
		return d.saidBy(&s.Life)
	}
	return time.Time{}
}

// sickBy is when a life that cannot be used has been so for too long to pass by itself.
func (d *diagnosis) sickBy(l *Life) time.Time { return d.by(l.Since, bounds.SickFor) }

// saidBy is until when word of who deleted or stopped a life may come.
func (d *diagnosis) saidBy(l *Life) time.Time { return d.by(l.Since, bounds.Grace) }

// causeOf is why a lost slot was lost, as far as readings tell.
func (d *diagnosis) causeOf(s *slot) events.Cause {
	switch {
	case s.endedAsPlanned():
		return events.CauseEnd
	case s.Condition == evidence.Lost:
		return s.lossCause()
	}
	return events.CauseUnknown
}

// trainsSince reports whether the training has done steps since a time, and does so still, by its usual distance between two of them.
func (d *diagnosis) trainsSince(since time.Time) bool { return !d.over(d.trainsUntil(since)) }

// trainsUntil is until when a training that has done steps since a time counts as one that does them still; zero where it has done none.
func (d *diagnosis) trainsUntil(since time.Time) time.Time {
	at := later(d.w.Training.StepAt, d.w.Training.Stepped)
	if !at.After(since) {
		return time.Time{}
	}
	return d.by(at, max(bounds.HangFor, d.w.Training.patience()))
}

// opensForLeftover is the trouble that a slot was made, or ordered, by an incident that is over. Pitstop cleans it up, unless the policy cannot be
// read, or people were told of it.
func (d *diagnosis) opensForLeftover(s *slot) *Trouble {
	began, goes := later(s.Ordered, s.Incarnation.Created), s.Ordered.IsZero() && s.is(moving, stopped, finished)
	surplus := s.surplus()
	if surplus != nil {
		began = later(began, surplus.Incarnation.Created)
	}
	if surplus == nil && (!d.isLeftover(s) || goes) || d.p.Unreadable != "" || d.told(ToldLate, s.Name, "", began) {
		return nil
	}
	return &Trouble{Cause: events.CauseUnknown, Slice: s.Name, At: d.now, Rank: events.RankReading, Text: s.Name + " is " + s.State + ", and what had ordered it is over"}
}

// leftAlone says why nothing about a slot opens an incident: its owner has it, or people were told before; nothing where something may.
func (d *diagnosis) leftAlone(s *slot) story.Reason {
	switch why := s.ownersDoing(); {
	case !why.IsZero():
		return why
	case s.Unused:
		return story.OwnerOrdered.With(s.Name)
	case d.told(ToldEnd, s.Name, s.Incarnation.ID, s.usable()) && s.Condition != evidence.Ready:
		return story.ToldBefore.With(s.Name, s.State)
	}
	return story.Reason{}
}

// doubtFor is how long no line that the crew gave up opens an incident after one that nothing has confirmed.
const doubtFor = 24 * time.Hour

// knownSince is until when a failure of the training says nothing new: what people know of, what steps have disproved, and what ended with a life
// before.
func (d *diagnosis) knownSince() time.Time {
	known := later(d.w.Ended, d.w.Training.StepAt)
	for i := range d.slots {
		known = later(known, d.slots[i].Incarnation.Created)
	}
	return known
}

// opensForTraining is the trouble of a training that has failed by itself, unless people know of it, or have it until it does steps again. What
// failed before a life began is over with the life before.
func (d *diagnosis) opensForTraining() *Trouble {
	t, known := d.w.Training, d.knownSince()
	if d.told(ToldFailed, "", "", t.StepAt) {
		return nil
	}
	first := d.kept()[0] // the trouble strikes nothing that its owner has
	trouble := Trouble{Cause: events.CauseCrash, Slice: first.Name, Life: first.Incarnation.ID, Rank: events.RankUser}
	doubted := d.told(ToldDoubt, "", "", later(before(d.now, doubtFor), t.Verdict.At))
	switch v := t.Verdict; {
	case t.Exit.At.After(known) && (t.Exit.Attempt > v.Attempt || v.At.After(known)):
		trouble.At, trouble.Text = t.Exit.At, "the training ended: "+t.Exit.Sign
		if t.Exit.Interrupted {
			trouble.Cause = events.CauseUnknown // somebody or something ended it: that is the machine's trouble
		}
	case v.GaveUp && t.isJudged() && v.At.After(known):
		trouble.At, trouble.Text = v.At, "the crew gave up"
	case d.claimsGivenUp() && t.Claim.At.After(known) && !doubted:
		trouble.At, trouble.Text = t.Claim.At, "a line says that the crew gave up"
	default:
		return nil
	}
	return &trouble
}
