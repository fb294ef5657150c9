package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// effects makes what is under way what the plan wants. It chooses nothing.
type effects struct {
	w   *Workload
	now time.Time
	out []events.Event
}

// exclusive reports whether a call must not be made twice: nobody could tell its result from that of another creation or deletion in
// between. The other calls only write the same content again.
func (x *Effect) exclusive() bool {
	return x.Action == events.ActionCreate || x.Action == events.ActionDelete
}

// inFlight reports whether such a call was begun and may still do its work. A deletion whose outcome is not known may do it even after a
// failure.
func (x *Effect) inFlight() bool {
	return x.exclusive() && !x.Begun.IsZero() && (x.Retry.IsZero() || x.Action == events.ActionDelete)
}

// Dropped reports whether nobody wants the effect any more. It is kept for a while, since a want that comes back begins no new time.
func (x *Effect) Dropped() bool { return x.Epoch == 0 && !x.Sent.IsZero() }

// forgotten reports whether a want that comes back is another one than that of a dropped effect: its slice was usable in between, or is another
// one by now. What is about no life is forgotten after a while.
func (w *Workload) forgotten(x *Effect, now time.Time) bool {
	switch l := w.life(x.Slice); {
	case !x.Dropped():
		return false
	case l == nil || !x.Life.Known():
		return now.Sub(x.Sent) > bounds.RequestFor
	default:
		return !x.Life.Same(l.Incarnation) || l.usable().After(x.First)
	}
}

// drop forgets what was asked for.
func (x *Effect) drop(now time.Time) {
	x.again(time.Time{})
	x.Epoch, x.Sent, x.Answered = 0, now, time.Time{}
}

// mayAct reports whether the call of an effect may still do its work. A deletion that was begun and never answered does not, once a reading from
// after its time for the call shows that everything lives: whoever began it died before the call.
func (w *Workload) mayAct(x *Effect) bool {
	if !x.inFlight() || x.Action != events.ActionDelete || !x.Answered.IsZero() {
		return x.inFlight()
	}
	return slices.ContainsFunc(x.all(), func(name string) bool {
		l := w.life(name)
		return l != nil && (l.Read.Before(x.Begun.Add(bounds.CallFor)) || !l.exists() || l.Condition == evidence.Deleting || l.Condition == evidence.Lost)
	})
}

// again asks for an effect once more at a time: nothing of it is under way until then.
func (x *Effect) again(at time.Time) {
	x.Begun, x.RequestID, x.Operation, x.Retry = time.Time{}, "", "", at
}

// writesLease reports whether a call writes the lease.
func (x *Effect) writesLease() bool {
	return x.Action == events.ActionAdmit || x.Action == events.ActionRestart
}

// is reports whether an effect is the one of a want: neither its place and its reason, nor which slice of a group it names, make another one.
func (w Want) is(x *Effect) bool { return w.Action == x.Action && x.Concerns(w.Slice) }

// isFor reports whether a want is about the very slices and lives of its effect.
func (w Want) isFor(x *Effect) bool {
	mine, theirs := w.all(), x.all()
	slices.Sort(mine)
	slices.Sort(theirs)
	return slices.Equal(mine, theirs) && (w.Slice != x.Slice || w.Life.ID == x.Life.ID)
}

// begin stores the intent of a call, if the plan still wants it: this is the last look before the call, and the call is charged now. It
// reports whether that is news.
func (x *effects) begin(e evidence.Intended, plan Step) bool {
	effect := (&facts{w: x.w, now: x.now}).asked(e.Request)
	switch {
	case effect == nil || !isAmong(plan.Wants, effect):
		return false
	case effect.UnderWay(x.now): // another instance makes the call
		return false
	case !effect.Begun.IsZero() && !effect.exclusive(): // another delivery may call once more
		x.counts(effect, e.Lease)
		x.record(*effect)
		return true
	}
	if effect.writesLease() && !effect.Lease.names(x.w.toAdmit(x.now)) { // it is asked for anew, with the right lives
		effect.again(x.now)
		return false
	}
	x.counts(effect, e.Lease)
	effect.Begun, effect.RequestID = x.now, e.RequestID
	x.charge(*effect)
	x.record(*effect)
	if effect.Action == events.ActionDelete {
		x.undo(*effect)
	}
	return true
}

// counts has a call that writes the lease name the attempt that follows what stands there by now.
func (x *effects) counts(effect *Effect, read evidence.Lease) {
	if effect.writesLease() {
		effect.Lease.At, effect.Lease.Attempt = x.now, x.w.countAttempt(effect, read)
		x.w.Lease.tries(effect)
	}
}

// undo forgets the creations of what is deleted now: nothing more comes of them. An order that is withdrawn from its queue may still be granted.
func (x *effects) undo(deletion Effect) {
	x.w.Effects = slices.DeleteFunc(x.w.Effects, func(o Effect) bool {
		made := func(name string) bool {
			l := x.w.life(name)
			return deletion.Concerns(name) && l.isOurs() && (l.exists() || x.w.Incident.Ending != nil)
		}
		return o.Action == events.ActionCreate && !o.Begun.IsZero() && slices.ContainsFunc(o.all(), made)
	})
}

// firstWanted is when the first call of a kind was wanted that is wanted still; zero for none.
func (w *Workload) firstWanted(a events.Action) (first time.Time) {
	for i := range w.Effects {
		if x := &w.Effects[i]; x.Action == a && !x.Dropped() && (first.IsZero() || x.First.Before(first)) {
			first = x.First
		}
	}
	return first
}

// wantedSince is when the first call of a kind was wanted that is wanted still, or may come back; now for none.
func (w *Workload) wantedSince(a events.Action, now time.Time) time.Time {
	var first time.Time
	for i := range w.Effects {
		if x := &w.Effects[i]; x.Action == a && !w.forgotten(x, now) {
			first = earliest(first, x.First)
		}
	}
	return cmp.Or(first, now)
}

// stays reports whether an effect that nobody wants any more is kept, because its call may do its work all the same.
func (x *effects) stays(effect *Effect) bool {
	switch {
	case effect.Action == events.ActionMaintain:
		return !effect.Answered.IsZero()
	case !x.w.mayAct(effect):
		return false
	}
	return effect.Action == events.ActionDelete || !effect.Answered.IsZero() || x.now.Sub(effect.Begun) < bounds.AnswerFor
}

// awaits reports whether a reading of a slice at that time says what no earlier one could: that a call was never made.
func (w *Workload) awaits(slice string, at time.Time) bool {
	x := w.effect(events.ActionDelete, slice)
	if x == nil || x.Begun.IsZero() || !x.Answered.IsZero() {
		return false
	}
	by := x.Begun.Add(bounds.CallFor)
	return !at.Before(by) && w.life(slice).Read.Before(by)
}

// isAmong reports whether one of these wants is that of an effect.
func isAmong(wants []Want, x *Effect) bool {
	return slices.ContainsFunc(wants, func(w Want) bool { return w.is(x) })
}

// about is what tells the effects of a workload from each other: an action, and a slice of it.
type about struct {
	action events.Action
	slice  string
}

// among is a function that reports whether one of these wants is that of an effect.
func among(wants []Want) func(*Effect) bool {
	wanted := make(map[about]bool, len(wants))
	for i := range wants {
		wanted[about{wants[i].Action, wants[i].Slice}] = true
	}
	return func(o *Effect) bool {
		return wanted[about{o.Action, o.Slice}] || slices.ContainsFunc(o.With, func(name string) bool { return wanted[about{o.Action, name}] })
	}
}

// follow asks for what is wanted and not under way, and drops what is not wanted. It reports whether anything has changed.
func (x *effects) follow(plan Step) (changed bool) {
	wants, send := plan.Wants, false
	changed = x.prune(wants, plan.Asks != "")
	known := make(map[about]int, len(x.w.Effects))
	for i := range x.w.Effects {
		for _, name := range x.w.Effects[i].all() {
			if key := (about{x.w.Effects[i].Action, name}); known[key] == 0 {
				known[key] = i + 1
			}
		}
	}
	for _, want := range wants {
		effect, fresh := x.take(want, known[about{want.Action, want.Slice}]-1)
		changed = changed || fresh
		if x.isDue(effect) {
			x.ask(effect)
			send = true
		}
	}
	if send {
		x.send()
	}
	return changed || send
}

// prune drops what is done, and what is under way and not wanted unless its call may do its work by now. Asks says that a person is asked: they
// have all the time, and what they are asked about begins anew after that.
func (x *effects) prune(wants []Want, asks bool) (changed bool) {
	kept, isWanted := x.w.Effects[:0], among(wants)
	for _, o := range x.w.Effects {
		gone, dropped := x.w.isDone(&o), false
		if !gone && !o.Dropped() && !isWanted(&o) && !x.stays(&o) {
			x.unheard(&o)
			o.drop(x.now)
			dropped = true
		}
		changed = changed || gone || dropped
		if !gone && !(dropped && asks) && !x.w.forgotten(&o, x.now) {
			kept = append(kept, o)
		}
	}
	x.w.Effects = kept
	return changed
}

// unheard notes that the crew's verdict could not be read in time: no decision waits for it any longer.
func (x *effects) unheard(effect *Effect) {
	if effect.Action == events.ActionHear && x.now.Sub(effect.First) >= bounds.HearFor {
		x.w.Training.HeardAt = x.now
	}
}

// take finds the effect of a want at its place, or begins one. One that is not begun follows its want to another place or another life.
func (x *effects) take(want Want, i int) (effect *Effect, fresh bool) {
	w := x.w
	if i >= 0 && want.Action == events.ActionSave && !w.Effects[i].By.Equal(want.By) { // one with another deadline is another save
		w.Effects[i] = Effect{Want: want, First: x.now, Retry: want.From}
		return &w.Effects[i], true
	}
	if i < 0 {
		w.Effects = append(w.Effects, Effect{Want: want, First: x.now, Retry: want.From})
		return &w.Effects[len(w.Effects)-1], true
	}
	effect = &w.Effects[i]
	switch {
	case effect.Dropped():
		effect.Sent, effect.Retry, effect.Want = time.Time{}, want.From, want
	case x.isStale(effect, want):
		effect.Want, effect.Retry = want, later(want.From, x.now)
	default:
		return effect, false
	}
	return effect, true
}

// isStale reports whether a call that nobody has begun is to be made in another place, or for other lives, by now.
func (x *effects) isStale(effect *Effect, want Want) bool {
	if !effect.Begun.IsZero() || !effect.Answered.IsZero() {
		return false
	}
	moves := effect.Place != want.Place && want.Place != (view.Place{})
	asked := effect.writesLease() && effect.Retry.IsZero() && !effect.Sent.IsZero()
	return moves || !want.isFor(effect) || asked && !effect.Lease.names(x.w.toAdmit(x.now))
}

// isDue reports whether an effect has to be requested now: for the first time, again after a failure, or again since nobody has answered.
func (x *effects) isDue(effect *Effect) bool {
	if effect.Retry.IsZero() {
		return effect.Sent.IsZero() || x.w.unanswered(effect, x.now) != ""
	}
	return !x.now.Before(effect.Retry)
}

// standsAgain reports whether a reading shows that a slice still exists which somebody was said to be deleting.
func (w *Workload) standsAgain(x *Effect) bool {
	return slices.ContainsFunc(x.all(), func(name string) bool {
		l := w.life(name)
		return l != nil && l.exists() && l.Condition != evidence.Deleting && l.Since.After(x.Answered)
	})
}

// isMissing reports whether a creation was called done, and nothing is there or ordered.
func (w *Workload) isMissing(x *Effect) bool {
	l := w.life(x.Slice)
	return x.Action == events.ActionCreate && !l.exists() && l.Ordered.IsZero()
}

// unanswered says what has not come of a request in its time; empty while there is time.
func (w *Workload) unanswered(x *Effect, now time.Time) string {
	if x.Sent.IsZero() || x.Dropped() {
		return ""
	}
	since, span, what := x.Sent, bounds.RequestFor, "nobody began it"
	switch x.Stage() {
	case view.StageBegun:
		since, span, what = x.Begun, bounds.AnswerFor, "it was begun and not answered"
	case view.StageAccepted:
		since, span, what = x.Answered, bounds.OperationFor, "its operation has not ended"
	case view.StageDone:
		if x.Action == events.ActionDelete && w.standsAgain(x) {
			return "somebody else was said to delete it, and it is there again"
		}
		if !w.isMissing(x) {
			return "" // the next reading shows it
		}
		since, span, what = x.Answered, bounds.SickFor, "it was called done, and nothing was there"
	case view.StageRefused:
		return ""
	default:
	}
	if now.Sub(since) < span {
		return ""
	}
	return what + " within " + events.Span(span)
}

// ask begins the next attempt of an effect. Silence counts as a failure.
func (x *effects) ask(effect *Effect) {
	if why := x.w.unanswered(effect, x.now); why != "" {
		effect.Failures++
		effect.Last = Failure{Code: reason.CodeUnanswered, Text: why}
	}
	effect.Attempt++
	effect.again(time.Time{})
	effect.Sent, effect.Answered = time.Time{}, time.Time{}
}

// send sends all requests that nobody has begun under a new epoch: the fence refuses those of the one before.
func (x *effects) send() {
	x.w.Epoch++
	for i := range x.w.Effects {
		effect := &x.w.Effects[i]
		if effect.Stage() != view.StageWanted || effect.Attempt == 0 || effect.Dropped() {
			continue
		}
		effect.Epoch, effect.Sent = x.w.Epoch, x.now
		x.fill(effect)
		e := x.w.Request(*effect)
		effect.Digest = events.Digest(e)
		x.out = append(x.out, e)
	}
}

// asksForSave keeps the save that a request asks for. One with another deadline is another save, and so is one after a save that was found.
func (x *effects) asksForSave(effect *Effect) {
	if in := x.w.Incident; !in.Save.By.Equal(effect.By) || !in.Save.Found.At.IsZero() {
		in.Save = Save{Asked: x.now, By: effect.By}
	}
}

// fill adds what is known only when the request goes out.
func (x *effects) fill(effect *Effect) {
	switch effect.Action {
	case events.ActionAdmit, events.ActionRestart:
		effect.Lease.Attempt = cmp.Or(effect.Lease.Attempt, x.w.nextAttempt())
		effect.Lease.Lives = x.w.toAdmit(x.now)
	case events.ActionDelete:
		effect.Lives = nil
		for _, name := range effect.With {
			effect.Lives = append(effect.Lives, x.w.life(name).Incarnation)
		}
		effect.Ordered = x.w.life(effect.Slice).Ordered
	case events.ActionSave:
		x.asksForSave(effect)
	default:
	}
}
