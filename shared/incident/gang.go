package incident

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// A gang is torn where one of its workers was made anew while others ran on: the others may wait for it, and it for them, without an end.
// A crew tells that by its steps. Where no crew was ever heard, only a new checkpoint shows that the training goes on.
//
// A training that stands still is brought back by the replacement of its slices, which waits until none of their workers is left. To delete
// only the workers would let a new one write beside one that still ends. Or one that ends well would count as complete work.
//
// None of that may cost a training its progress. So it first has twice the time in which it saves, and then all that was written is looked
// at. The look counts for ten minutes, and only while the slices are read as they were before it.

// torn names the slices that are usable and torn. At is when their last worker was made anew, and since is from when on that and every
// slice has been so.
func (w Workload) torn() (names []string, at, since time.Time) {
	for i := range w.Slices {
		s := &w.Slices[i]
		if s.IsReleased() {
			continue
		}
		if since = later(since, s.Since); !s.Torn.IsZero() && s.Condition == Ready {
			names, at = append(names, s.Name), later(at, s.Torn)
		}
	}
	return names, at, later(since, at)
}

// tornUnheard is torn, where no crew can tell of steps.
func (m *machine) tornUnheard() (text string, at, since time.Time) {
	names, at, since := m.w.torn()
	if names == nil || !m.w.Crew.Seen.IsZero() {
		return "", time.Time{}, time.Time{}
	}
	return fmt.Sprintf("a %s of %s was made anew while others ran on", m.w.Words().Worker, strings.Join(names, ", ")), at, since
}

// tornSlice is a slice that is torn, where no crew can tell of steps; nil where there is none.
func (w Workload) tornSlice() *Slot { return w.tornAfter(time.Time{}) }

// tornUntold is a slice that is torn and that no incident has looked at; nil where there is none.
func (w Workload) tornUntold() *Slot { return w.tornAfter(w.TornSeen) }

// tornAfter is a slice that was torn after a time.
func (w Workload) tornAfter(t time.Time) *Slot {
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Condition == Ready && s.Torn.After(t) && w.Crew.Seen.IsZero() && !w.leftAlone(s) {
			return s
		}
	}
	return nil
}

// tornDue is when a torn gang is told of; zero for never. Without a directory nobody could ever tell whether it trains.
func (w Workload) tornDue() time.Time {
	if w.tornUntold() == nil || w.Directory == "" || slices.ContainsFunc(w.Slices, Slot.isMissed) {
		return time.Time{}
	}
	_, _, since := w.torn()
	return since.Add(ResumeFor)
}

// openTorn opens an incident for a gang that has been torn for a while. A tear that another incident has looked at opens none.
func (m *machine) openTorn() {
	due := m.w.tornDue()
	if due.IsZero() || m.now.Before(due) {
		return
	}
	text, at, since := m.tornUnheard()
	s := m.w.tornUntold()
	if text == "" {
		return
	}
	m.w.TornSeen = at
	m.open(Trouble{Cause: events.CauseUnknown, Slice: s.Name, Life: s.Incarnation.ID, At: s.Torn, Text: text, Proven: true})
	m.takeOrWatch(text, "look for a new checkpoint", func(m *machine) {
		m.enterUntil(Resuming, since.Add(NoGapFor))
		m.line(LineSeen, text, "")
		m.decided("incident opened: wait for a new checkpoint", "no crew can tell whether it trains")
	})
}

// mayStandStill gives a torn gang the time in which a training saves, and reports whether it is not over.
func (m *machine) mayStandStill() bool {
	text, at, since := m.tornUnheard()
	if text != "" && at.After(m.w.TornSeen) {
		m.w.TornSeen, m.changed = at, true
	}
	until := since.Add(NoGapFor)
	if text == "" || m.w.Directory == "" || !m.now.Before(until) {
		return false
	}
	m.inc().Deadline = until
	m.decided("wait for a new checkpoint", text)
	return true
}

// newerThan is what a checkpoint of a torn gang has to be newer than to show that the training goes on. What a Pod saved at its end may be
// complete only after the next one was made.
func newerThan(since time.Time) time.Time { return since.Add(ResumeFor) }

// lookForSave looks for a checkpoint that shows that the training goes on. For a torn gang that is any that is complete since, whatever
// its step: somebody may have rewound the training.
func (m *machine) lookForSave(why string) {
	newer, until := m.lastTrouble(), m.now.Add(CheckFor)
	if text, _, since := m.tornUnheard(); text != "" {
		newer, until = newerThan(since), m.now.Add(ResumeFor)
	}
	m.inc().Deadline = until
	m.decided("look for a new checkpoint", why)
	m.send(Effect{Action: events.ActionVerify, Reason: "no crew", By: newer})
}

// lookLater repeats a look for a checkpoint at a time.
func (m *machine) lookLater(at time.Time, why string) {
	effect := m.effect(events.ActionVerify, "")
	effect.Begun, effect.RequestID, effect.LastFailure, effect.Retry = time.Time{}, "", why, at
	effect.Failures++
}

// counts says which checkpoints count in a look: those past a step, or any.
func (w Workload) counts() (moreThan int64, every bool) {
	if w.phase() == Watching || w.phase() == Resuming && (&machine{w: w}).unanswering() { // somebody may have taken it back to an older step
		return 0, true
	}
	if names, _, _ := w.torn(); (w.phase() == Resuming || w.phase() == Approving) && names != nil && w.Crew.Seen.IsZero() {
		return 0, true
	}
	return w.verifyPast(), false
}

// foundNone takes a look for a new checkpoint that found none.
func (m *machine) foundNone(e Checked) {
	text, at, since := m.tornUnheard()
	switch {
	case text == "" && m.w.spoke() && !m.unanswering() && !m.isOverdue():
		m.drop(events.ActionVerify, "") // its crew has spoken since, and has its time
	case text == "":
		m.drop(events.ActionVerify, "")
		m.unproven("the slice is usable; there is no crew that tells of steps and no new checkpoint yet")
	case m.p.Unreadable != "", !e.None && (!e.Stale || e.Saves == nil):
		// What is being written, or cannot be read, may be newer, and a former release does not look at all.
		m.lookLater(m.now.Add(backoff(m.w.effect(events.ActionVerify, "").Failures+1)), e.Text)
	case e.None:
		m.drop(events.ActionVerify, "")
		m.leaveTorn(CodeNoCheckpoint, text+", and nothing was ever saved from which it could go on")
	default:
		m.drop(events.ActionVerify, "")
		m.saves(e.Step, e.At, e.URI, e.Bytes)
		every := m.savesEvery(e.Saves, at)
		text += ", and nothing was saved in the last " + events.Span(m.now.Sub(newerThan(since)))
		m.savesNoMore(text, every, at, since.Add(max(NoGapFor, 2*every)))
	}
}

// enoughSaves is how many checkpoints of its present lives tell how often a training saves.
const enoughSaves = 3

// savesEvery is the longest time between two checkpoints of the present lives, or between the last of them and the tear. It is zero where
// too little is known: how often an earlier life saved says nothing of this one, and a training may save more often at its beginning.
func (m *machine) savesEvery(saves []time.Time, tear time.Time) (most time.Duration) {
	var born time.Time
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; !s.IsReleased() {
			born = later(born, s.Incarnation.Created)
		}
	}
	saves = slices.DeleteFunc(slices.Clone(saves), func(t time.Time) bool { return !t.After(born) || t.After(tear) })
	if len(saves) < enoughSaves || tear.Sub(born) < NoGapFor {
		return 0
	}
	for i, next := range append(saves[1:len(saves):len(saves)], tear) {
		most = max(most, next.Sub(saves[i]))
	}
	return most
}

// savesNoMore goes on with a torn gang that has saved nothing since its tear. It stands still once it has saved nothing until a time, which
// is twice the time in which it saves. Where that is not known only a person can tell: nobody sees after two hours whether a training
// stands still that saves once a day.
func (m *machine) savesNoMore(text string, every time.Duration, tear, until time.Time) {
	switch {
	case every == 0:
		m.leaveTorn(CodeSavesUnknown, text+"; it has not saved "+events.Number(enoughSaves)+" times in its present life, so how often it saves is not known")
	case m.now.Before(until):
		m.inc().Deadline = until
		m.decided("wait for a new checkpoint until "+until.UTC().Format(time.RFC3339), "that is twice the longest time between two of its checkpoints")
	case m.p.Hang != policy.HangRestart:
		m.leaveTorn(CodeHangReport, text+", and "+hangReport)
	case m.w.Crew.Unbound.After(tear):
		m.leaveTorn(CodeHangReport, text+"; a crew speaks whose life is not known, and may tell of its steps")
	case m.scattered():
		m.leaveTorn(CodeKept, text+"; it trains in several "+m.w.Words().Slice+"s, which no one call replaces")
	default:
		m.standsStill(text, tear)
	}
}

// unproven ends the wait for progress where nothing tells of it.
func (m *machine) unproven(why string) {
	switch {
	case m.unanswering():
		m.escalate(CodeOverdue, "no line has come since another attempt was asked for, and no new checkpoint is known", "look whether it trains, and why its lines do not come")
		return
	case !m.w.Crew.Seen.IsZero(): // a crew has spoken in a life before, so it ought to speak in this one
		m.restart("no crew tells of steps, and no new checkpoint is known")
		return
	}
	text, _, _ := m.tornUnheard()
	switch {
	case text == "":
		m.resumed(ByHealth, why)
	case m.w.Directory == "":
		m.resumed(ByHealth, why+"; "+text+", and without a checkpoint directory nobody can tell whether it trains")
	default:
		m.leaveTorn(CodeOverdue, text+"; whether it saves is not known: "+m.lastFailure())
	}
}

// leaveTorn tells a person of a torn gang that Pitstop may not bring back.
func (m *machine) leaveTorn(c Code, text string) {
	if m.watchOnly() {
		m.finish(Observed, "", m.watchCode(), text, "")
		return
	}
	m.escalate(c, text, "look whether it trains; if it does not, delete it and create it again, or delete its "+m.w.Words().Worker+"s together")
}

// scattered reports whether the training has slices that no one call deletes. After the first of several calls a refusal of the next would
// leave a part of it.
func (m *machine) scattered() bool {
	var first *Slot
	for i := range m.w.Slices {
		switch s := &m.w.Slices[i]; {
		case s.IsReleased():
		case first == nil:
			first = s
		case s.Group == "" || s.Group != first.Group || s.Zone != first.Zone:
			return true
		}
	}
	return false
}

// standsStill replaces every slice of a training that stands still since a tear: it needs all of them. What a person approved is about one
// tear.
func (m *machine) standsStill(text string, tear time.Time) {
	in := m.inc()
	if !in.Torn.Equal(tear) {
		in.Torn, in.Approved = tear, ""
	}
	in.StoodAt = m.now
	since := tear
	if in.Retried {
		since = later(tear, in.Opened) // the incident before has counted until then
	}
	m.stopped(since)
	if in.Cause == events.CauseUnknown {
		in.Cause = events.CauseHang
	}
	for i := range m.w.Slices {
		if !m.w.Slices[i].IsReleased() {
			m.slice(m.w.Slices[i].Name).ToReplace = true
		}
	}
	m.replace(text)
}

// stands reports whether a slice that the provider calls usable is to be replaced, because its training stands still.
func (m *machine) stands(s *Slot) bool {
	in := m.w.Incident
	return in != nil && !in.StoodAt.IsZero() && s.ToReplace && s.Condition == Ready
}

// readStanding takes a reading of a slice whose training stands still. Where it is not as it was then, nothing is known of the training any
// more.
func (m *machine) readStanding(s *Slot, e Read) {
	if m.stands(s) && !(e.Condition == Ready && e.Facts.Torn.Equal(s.Torn)) {
		m.movesAgain(m.w.noun(s.Name) + " is not as it was when its training stood still: it is " + e.State)
	}
}

// movesAgain takes a sign that a training which stood still may do so no longer. A later standstill is asked about anew.
func (m *machine) movesAgain(why string) {
	if m.leaveStanding(why) {
		m.inc().Approved = ""
	}
}

// leaveStanding ends the replacement of a training that stands still, or the request for another attempt of it. It does not where the call
// may be made by now: the other slices follow, because they train together. It reports whether it ends it.
func (m *machine) leaveStanding(why string) bool {
	in := m.w.Incident
	if in == nil || in.StoodAt.IsZero() {
		return false
	}
	deletes := func(effect Effect) bool { return effect.Action == events.ActionDelete }
	restarts := func(effect Effect) bool { return effect.Action == events.ActionRestart }
	called := func(effect Effect) bool {
		return (deletes(effect) || restarts(effect)) && (effect.Maybe || !effect.Begun.IsZero())
	}
	lost := func(s Slot) bool { return s.ToReplace && s.Condition != Ready }
	if m.w.has(called) || slices.ContainsFunc(m.w.Slices, lost) {
		m.inc().StoodAt = in.StoodAt.Add(-SavedFor) // if no call was made, it is looked at again before the next one
		return false
	}
	if m.w.has(deletes) {
		m.uncharge(events.ActionDelete)
	}
	if m.w.has(restarts) {
		m.uncharge(events.ActionRestart)
	}
	m.dropEffects(deletes)
	m.inc().StoodAt = time.Time{}
	if m.phase() == Restarting {
		m.watchOn(why)
		return true
	}
	m.resume(why)
	return true
}

// looksMeanwhile looks for a new checkpoint while a person is asked whether a training that stands still may be replaced: it may go on by
// itself, and then nobody has to answer.
func (m *machine) looksMeanwhile() {
	if text, _, since := m.tornUnheard(); text != "" && !m.w.Incident.StoodAt.IsZero() {
		m.drop(events.ActionVerify, "") // nobody has answered it
		m.send(Effect{Action: events.ActionVerify, Reason: "no crew", By: newerThan(since)})
	}
}

// looksAgain looks once more for a new checkpoint before a training that stands still is replaced, where the last look is too long ago: a
// person, a pause or a late message may have come between. It does so too where the policy does not let it begin again any more: then the
// look ends with a word to a person. It reports whether it looks.
func (m *machine) looksAgain() bool {
	at := m.w.Incident.StoodAt
	may := m.level(policy.Restart)
	allowed := m.p.Hang == policy.HangRestart && (may == policy.Yes || may == policy.Ask && m.w.Incident.Approved == events.ActionDelete)
	if at.IsZero() || allowed && m.now.Sub(at) < SavedFor || !m.leaveStanding("what was decided "+events.Span(m.now.Sub(at))+" ago may have changed") {
		return false
	}
	if m.phase() == Resuming {
		m.lookForSave("more may be saved by now")
	}
	return true
}
