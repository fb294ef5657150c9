package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident/story"
	"pitstop.internal/shared/view"
)

// teller writes the story of the open incident: what was seen, what came of calls, and the step of the plan. It decides nothing.
type teller struct {
	w      *Workload
	now    time.Time
	source evidence.Origin
}

// step tells the step of the plan if it is another one than was told last, and reports whether anything has changed. The end of its wait, and
// the words of its reason, make no other step.
func (t *teller) step(plan Step) bool {
	st := &t.w.Incident.Status
	same := st.Rule == plan.Rule && st.Label == plan.Label && slices.Equal(st.Questions, plan.Questions)
	changed := !same || !st.Until.Equal(plan.Until) || !st.Later.Equal(plan.Later)
	if same {
		st.Until, st.Later = plan.Until, plan.Later
	} else {
		*st = Status{Rule: plan.Rule, Label: plan.Label, Since: t.now, Until: plan.Until, Later: plan.Later, Asks: plan.Asks, Questions: plan.Questions}
	}
	what, why, lacks := t.w.describe(plan), plan.Why, t.lacks(plan)
	if lacks {
		what = story.AwaitCapacity.With()
	}
	if x := t.w.barred(plan); x != nil {
		what, why = story.LeaveState.With(events.Span(bounds.BarredFor), t.w.holder(x.Slice)), story.Bars.With(x.Last.Text)
	}
	if !t.isTold(func(l Line) bool { return l.Kind == view.LineDecided && l.What.Equal(what) }) {
		t.line(Line{Kind: view.LineDecided, What: what, Why: why, Code: plan.Code})
		changed = true
	}
	changed = lacks && t.tellTurn(plan) || changed
	return t.remind(plan, lacks) || changed
}

// tellTurn tells, once, that another place than those that have refused is asked, since its turn has come.
func (t *teller) tellTurn(plan Step) bool {
	what := t.w.describe(plan)
	if plan.Why.Sentence != story.AsksNext || t.isTold(func(l Line) bool { return l.What.Equal(what) }) {
		return false
	}
	t.line(Line{Kind: view.LineDecided, What: what, Why: plan.Why})
	return true
}

// lacks reports whether a step is a wait for capacity. It has one line, whatever place is asked next.
func (t *teller) lacks(plan Step) bool {
	return plan.Label == view.PhaseCreating && plan.Asks == "" && t.w.waitsForCapacity(t.now)
}

// barred is a deletion of a step that a state forbids; nil for none.
func (w *Workload) barred(plan Step) *Effect {
	for i := range w.Effects {
		if x := &w.Effects[i]; !x.Barred.IsZero() && !x.Dropped() && isAmong(plan.Wants, x) {
			return x
		}
	}
	return nil
}

// holder names the resource whose deletion deletes a slice.
func (w *Workload) holder(slice string) string {
	words := w.Words()
	if l := w.life(slice); l.Group != "" {
		return words.Group + " " + l.Group
	}
	return w.noun(slice)
}

// noun names a slice with what its provider calls it.
func (w *Workload) noun(slice string) string { return w.Words().Slice + " " + slice }

// isNow says how a slot stands.
func (w *Workload) isNow(s *slot) story.Reason {
	return story.IsNow.With(w.noun(s.Name), cmp.Or(s.State, string(s.Condition)))
}

// isTold reports whether a line that is so was told since the present wait began.
func (t *teller) isTold(is func(Line) bool) bool {
	in := t.w.Incident
	return slices.ContainsFunc(in.Lines, func(l Line) bool { return !l.At.Before(in.Status.Since) && is(l) })
}

// remind reminds people of a wait that has no end, or lacks capacity: first after an hour, and then every few hours. The line of a wait for capacity
// tells of it by itself.
func (t *teller) remind(plan Step, lacks bool) bool {
	st := &t.w.Incident.Status
	if !plan.Until.IsZero() && !lacks || plan.End != nil || t.now.Before(remindAt(st.Since, st.Reminded)) {
		return false
	}
	if st.Reminded = t.now; lacks {
		return true
	}
	t.line(Line{Kind: view.LineDecided, What: story.Still.With(t.w.describe(plan).String()), Why: story.WaitedFor.With(events.Span(t.now.Sub(st.Since)))})
	return true
}

// waitTellAt is when people have to hear of a long wait in quiet times next; zero for never. The slice counts that has waited longest, by the
// provider's own objects.
func (w *Workload) waitTellAt() time.Time {
	var since time.Time
	for i := range w.Slices {
		since = earliest(since, w.Slices[i].waitingSince())
	}
	if w.Incident != nil || since.IsZero() {
		return time.Time{}
	}
	return remindAt(since, w.waitTold())
}

// remindAt is when people have to hear of a wait again after they were last told of it. A time before the wait means not yet.
func remindAt(since, told time.Time) time.Time {
	if told.After(since) {
		return since.Add(told.Sub(since).Truncate(bounds.RemindEvery) + bounds.RemindEvery)
	}
	return since.Add(bounds.RemindFirst)
}

// tellWait keeps that people are told of a long wait in quiet times. Nothing else follows from it: its owner and the cluster place the
// slice.
func tellWait(w *Workload, now time.Time) bool {
	due := w.waitTellAt()
	if due.IsZero() || now.Before(due) || w.Unread {
		return false
	}
	remember(w, Told{Of: ToldWait, At: now})
	return true
}

// ended tells the end.
func (t *teller) ended(e End) {
	t.w.Incident.Status = Status{Label: view.Closed, Since: t.now}
	t.line(Line{Kind: view.LineEnded, What: story.Ended.With(string(e.Outcome), string(e.By)), Why: e.Reason, Code: e.Code})
}

// describe is a step in the words of the story.
func (w *Workload) describe(plan Step) story.Reason {
	switch {
	case plan.Asks != "":
		return story.WaitForYes.With(w.asks(plan.Asks, plan.Questions).String())
	case len(plan.Wants) == 0:
		return w.describeWait(plan.Label)
	}
	first := plan.Wants[0]
	var names []string
	for _, want := range plan.Wants {
		names = append(names, want.all()...)
	}
	all := story.List(names)
	switch first.Action {
	case events.ActionDelete:
		if l := w.life(first.Slice); !l.Ordered.IsZero() && (plan.Label == view.Clearing || !l.exists()) {
			return story.CancelOrder.With(w.Words().Group, l.Group, first.Zone)
		}
		if plan.Label == view.Clearing {
			return story.DeleteLeftover.With(all, first.Zone)
		}
		return story.DeleteFirst.With(all)
	case events.ActionCreate:
		return story.Create.With(all, first.Place.String())
	case events.ActionStart:
		return story.DoStart.With(all)
	default:
	}
	return doing[first.Action].With()
}

// doing are the calls about the whole workload in the words of the story.
var doing = map[events.Action]story.Sentence{
	events.ActionSave: story.DoSave, events.ActionVerify: story.DoVerify, events.ActionHear: story.DoHear, events.ActionMaintain: story.DoMaintain,
	events.ActionAdmit: story.DoAdmit, events.ActionRestart: story.DoRestart,
}

// describeWait is a wait in the words of the story.
func (w *Workload) describeWait(label view.Phase) story.Reason {
	switch label {
	case view.Healing:
		return story.WaitForHealer.With(w.Words().Healer)
	case view.Window:
		if w.Incident.cause() == events.CauseEnd {
			return story.WaitForEnd.With()
		}
	case view.Resuming:
		if w.Training.Seen.IsZero() { // nobody tells of steps
			return story.WaitForSign.With()
		}
		return story.WaitForStepPast.With(events.Number(w.Baseline()))
	}
	return waits[label].With()
}

// waits are the waits in the words of the story.
var waits = map[view.Phase]story.Sentence{
	view.Looking: story.LookAtAPI, view.PhaseGrace: story.WaitForDeleter, view.Window: story.WaitForWindow, view.Watching: story.OnlyWatch,
	view.Clearing: story.CleanUpFirst, view.Saving: story.DoSave, view.Closed: story.NothingToDo, view.Maintaining: story.WaitForStart,
	view.Approving: story.WaitForPerson, view.PhaseDeleting: story.WaitForDeletion, view.PhaseCreating: story.WaitForSlice,
	view.Admitting: story.WaitForAdmission, view.Restarting: story.WaitForAttempt, view.Starting: story.WaitForStopped,
}

// line adds a line. A story that grows too long loses its middle, a few lines at once: a reader needs the beginning and the present state.
func (t *teller) line(l Line) {
	const spare = 8
	in := t.w.Incident
	l.At, l.Source, l.Label = t.now, t.source.ID, in.Status.Label
	l.Logged = l.Kind == view.LineSeen && t.source.FromLog()
	if n := len(in.Lines); n >= bounds.MaxLines {
		in.Lines = append(in.Lines[:n/2:n/2], in.Lines[n/2+spare:]...)
		in.LeftOut += spare
	}
	in.Lines = append(in.Lines, l)
}

// shown is a line in English.
func (l Line) shown() view.Line {
	return view.Line{At: l.At, Kind: l.Kind, Text: l.What.String(), Reason: l.Why.String(), Source: l.Source, Logged: l.Logged, Code: l.Code, Phase: l.Label}
}
