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

// replaceLost deletes what is lost, and then makes it again. What must not be replaced is left to a person.
func (d *diagnosis) replaceLost() *Step {
	all := d.those(func(s *slot) bool { return s.replace })
	if len(all) == 0 {
		return nil
	}
	if first := d.beforeReplacing(all); first != nil {
		return first
	}
	s := d.deletes(all)
	if s == nil {
		s = d.creates(all)
	}
	return d.mayBeUnless(d.doubts(all), d.replacing(names(all)), s)
}

// doubts is why a replacement needs a yes that its switch does not ask for: nothing would train on an empty machine, at the full price, or the
// budget of money would be passed.
func (d *diagnosis) doubts(all []*slot) *doubt {
	if slices.ContainsFunc(all, func(s *slot) bool { return s.Bare }) {
		return &doubt{story.EmptyMachine.With(strings.Join(names(all), ", ")), reason.CodeEmptyMachine}
	}
	return d.passesBudget(all)
}

// beforeReplacing is what comes before: a look at what goes with the lost slices and at what is saved, or the reason why they are a person's.
func (d *diagnosis) beforeReplacing(all []*slot) *Step {
	if look := firstOf(all, d.lookAtGroup); look != nil {
		return look
	}
	since := d.in.Opened
	for _, s := range all {
		if since = later(since, s.Since); s.is(lost, sick) {
			since = later(since, earlier(s.healsBy, d.now)) // what goes with another has time left
		}
	}
	begins := d.beginning(all)
	if d.w.mayBeFinished() && !d.isDeleting() && len(d.unbegun(all)) > 0 {
		if hear := d.hears(view.Looking, story.MayBeDone.With(), before(since, bounds.HearFor)); hear != nil {
			return hear
		}
	}
	if no := firstOf(all, func(s *slot) *Step { return d.irreplaceable(s, since) }); no != nil {
		return no
	}
	if d.forbids(d.replacing(names(all))) {
		return nil // it comes to nothing
	}
	return firstOf(begins, func(s *slot) *Step { return d.overspends(s, since) })
}

// beginning are the slots whose replacement is not under way yet. What is lost while others are being deleted goes with those.
func (d *diagnosis) beginning(all []*slot) []*slot {
	if d.w.has(events.ActionDelete) {
		return nil
	}
	return d.unbegun(all)
}

// unbegun are the slots of which nothing was deleted or created yet.
func (d *diagnosis) unbegun(all []*slot) []*slot {
	return slices.DeleteFunc(slices.Clone(all), func(s *slot) bool { return s.create != nil || s.is(coming) || s.EndedBy == d.in.ID })
}

// isDeleting reports whether something is being deleted that is still there.
func (d *diagnosis) isDeleting() bool {
	return len(d.those(func(s *slot) bool { return s.delete != nil && s.exists() })) > 0
}

// overspends leaves a replacement to a person once the budget of its payer is spent, unless the verdict refills it.
func (d *diagnosis) overspends(s *slot, since time.Time) *Step {
	payer := d.w.payer(d.in, s.Name)
	spent, today := d.isSpent(payer)
	if spent {
		if hear := d.hears(view.Looking, story.SpentUnlessSaved.With(), before(since, bounds.HearFor)); hear != nil {
			return hear
		}
	}
	switch {
	case spent && payer == events.ActionRestart:
		return escalate(reason.CodeBudget, story.CrashesSpent.With(s.Name), story.MendTraining.With(d.w.Name))
	case spent:
		return escalate(reason.CodeBudget, story.ReplacesSpent.With(s.Name), story.LookAtHosts.With(d.w.Name))
	case today:
		return d.spentToday(d.w.isNow(s))
	}
	return nil
}

// replacing is the switch of a replacement of these slices.
func (d *diagnosis) replacing(lost []string) (sw policy.Switch) {
	sw = policy.Recreate
	restarts := false
	for _, name := range lost {
		s := d.w.Slice(name)
		if s == nil {
			continue
		}
		if of := policy.Replaces(s.ownCapacity()); of != sw {
			sw = policy.RecreateNonSpot
		}
		restarts = restarts || d.in != nil && d.w.payer(d.in, name) == events.ActionRestart
	}
	if restarts && d.level(policy.Restart) < d.level(sw) {
		sw = policy.Restart // to begin the training again is a restart too
	}
	return sw
}

// names are the names of slots.
func names(all []*slot) (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// payer is whose budget a replacement is charged to: the training's, where it ended a slice by an error of its own and nothing struck the slice;
// nobody's, where the slice ended as planned; else that of the replacements.
func (w *Workload) payer(in *Incident, slice string) events.Action {
	payer := events.ActionDelete
	for _, name := range append(w.group(slice), slice) {
		switch l := w.life(name); {
		case l.Cause == events.CauseCrash && !in.struck() && !w.isMaintained(in):
			return events.ActionRestart
		case l.endedAsPlanned(), in.movesBack():
			payer = ""
		}
	}
	return payer
}

// isMaintained reports whether maintenance is known to have begun on a slice of the incident. Who began it does not matter.
func (w *Workload) isMaintained(in *Incident) bool {
	return in.isPrepared() && slices.ContainsFunc(w.Slices, func(s Slot) bool {
		return s.Notice.Started.After(in.Opened) || s.Notice.Status == events.NoticeOngoing && s.Notice.InAPI
	})
}

// struck reports whether something else than the training itself is known to have gone wrong.
func (in *Incident) struck() bool {
	return slices.ContainsFunc(in.Troubles, func(t Trouble) bool {
		return t.Rank > events.RankUser && !t.Announced && t.Cause.Infrastructure() && t.Cause != events.CauseUnknown
	})
}

// deletes is the deletion of what has to be gone before; nil where nothing has to.
func (d *diagnosis) deletes(all []*slot) *Step {
	i := slices.IndexFunc(all, d.mustGo)
	if i < 0 {
		return nil
	}
	first := all[i]
	why := d.w.isNow(first)
	if d.isQueued(first) {
		next, _ := d.leavesFor(first, d.isApart())
		why = story.TurnHasCome.With(next.String(), first.create.Place.String(), first.Ordered.UTC().Format("15:04"))
	}
	s := call(view.PhaseDeleting, why, d.callBy(events.ActionDelete))
	covered := map[string]bool{}
	for _, o := range all {
		if d.mustGo(o) && !covered[o.Name] {
			s.Wants = append(s.Wants, d.deletion(d.handle(o), s.Why))
			cover(covered, s.Wants)
		}
	}
	if d.over(s.Until) {
		return escalate(reason.CodeOverdue, story.DeletionLasts.With(first.Name, first.State, d.barring()), story.DeleteByHand.With(first.Name, d.w.Name))
	}
	return s
}

// mustGo reports whether something has to be deleted before a slot can be made again. What turned bad since its creation began came of it.
func (d *diagnosis) mustGo(s *slot) bool {
	if d.hasWaited(s) {
		return true
	}
	if s.is(coming) || !s.exists() {
		return false
	}
	x := s.create
	return x == nil || !x.inFlight() || s.Since.After(x.Begun)
}

// handle is the slot whose life a request can name to delete a slot: itself, or another one of its group; nil where none was ever seen alive.
func (d *diagnosis) handle(s *slot) *slot {
	for _, name := range append([]string{s.Name}, d.w.group(s.Name)...) {
		if o := d.slot(name); o.Incarnation.Known() || !o.Ordered.IsZero() {
			return o
		}
	}
	return nil
}

// deletion is the deletion of a life, with what goes with it.
func (d *diagnosis) deletion(s *slot, why story.Reason) Want {
	w := Want{Action: events.ActionDelete, Slice: s.Name, With: d.w.group(s.Name), Place: view.Place{Zone: s.Zone}, Life: s.Incarnation, Why: why}
	if !s.exists() {
		w.Life = events.Incarnation{} // only its order is there
	}
	if x := s.create; !s.Ordered.IsZero() || x != nil && len(x.With) > 0 { // one order is cancelled as a whole
		w.With = nil
		for _, o := range d.slots {
			together := o.Ordered.Equal(s.Ordered) && !s.Ordered.IsZero() || x != nil && x.Concerns(o.Name)
			if o.Name != s.Name && together {
				w.With = append(w.With, o.Name)
			}
		}
	}
	return w
}

// cover notes the slices that the last of these calls is about.
func cover(covered map[string]bool, wants []Want) {
	for _, name := range wants[len(wants)-1].all() {
		covered[name] = true
	}
}

// creates is the creation of what is gone.
func (d *diagnosis) creates(all []*slot) *Step {
	first := all[max(0, slices.IndexFunc(all, func(s *slot) bool { return !s.isThere() }))]
	since, queues, apart, covered := d.wantedSince(events.ActionCreate), d.w.waitsForCapacity(d.now), d.isApart(), map[string]bool{}
	s := call(view.PhaseCreating, d.whyCreated(first, apart), time.Time{})
	for _, o := range all {
		s.Until = earliest(s.Until, d.comesBy(o, since, queues))
		if covered[o.Name] || o.isThere() {
			continue
		}
		at, from := d.place(o, apart)
		if at.Zone == "" {
			return d.nowhere(o)
		}
		if r := d.in.refusal(at); !from.IsZero() && from.Equal(r.Until) {
			s.Why = story.EveryZoneRefused.With(refusalWords(r.Code))
		}
		if after := o.After(d.p, at); d.over(from) && after > 0 && !d.wasAsked(o, after) {
			s.Why = story.AsksNext.With(d.countRefused(), events.Span(d.now.Sub(d.w.refusedSince(d.now))))
		}
		if next, turn := d.nextTurn(o, apart); queues && next.Zone != "" {
			s.Later = story.TurnComes.With(next.String(), turn.UTC().Format("2006-01-02 15:04 UTC"))
		}
		s.Wants = append(s.Wants, Want{Action: events.ActionCreate, Slice: o.Name, With: d.w.group(o.Name), Place: at, From: from, Why: s.Why})
		cover(covered, s.Wants)
	}
	if no := d.comesTooLate(first, s.Until); no != nil {
		return no
	}
	return s
}

// isThere reports whether a slot needs no creation: it exists, and no call that may make another was begun.
func (s *slot) isThere() bool { return s.exists() && (s.create == nil || s.create.Begun.IsZero()) }

// comesTooLate leaves to a person what has not come in its time, or for as long as the policy waits for capacity.
func (d *diagnosis) comesTooLate(s *slot, until time.Time) *Step {
	switch waits := d.w.waitsForCapacity(d.now) || len(d.those(d.isFilled)) > 0; {
	case waits && d.p.GiveUpAfter > 0 && d.passed(d.w.refusedSince(d.now), d.p.GiveUpAfter):
		return escalate(reason.CodeGaveUp, story.GaveUp.With(events.Span(d.p.GiveUpAfter)), story.CreateByHand.With(s.Name))
	case !until.IsZero() && d.over(until):
		return escalate(reason.CodeOverdue, story.CreationLasts.With(s.Name), story.CreateByHand.With(s.Name))
	}
	return nil
}

// comesBy is until when a slot has to be there; zero for capacity for Spot, which is one of the two waits that have no end, unless the policy gives up
// after a time. A creation that was accepted, and has not failed, has as much time again: what comes late is as good as what comes early.
func (d *diagnosis) comesBy(s *slot, since time.Time, queues bool) time.Time {
	x := s.create
	switch {
	case !s.healsBy.IsZero(): // it is there, and not usable yet
		return s.healsBy
	case s.exists():
		return d.by(s.Since, 2*bounds.RecreateFor)
	case s.ownCapacity() == events.Spot && queues && d.p.GiveUpAfter > 0:
		return d.by(d.w.refusedSince(d.now), d.p.GiveUpAfter)
	case s.ownCapacity() == events.Spot && queues:
		return time.Time{}
	case x != nil && !x.Answered.IsZero():
		return d.by(x.First, 2*bounds.RecreateFor+d.p.LastTurn())
	}
	return d.by(since, bounds.RecreateFor+d.p.LastTurn())
}

// isFilled reports whether an order of ours in a queue is being filled: as long as that lasts, nothing is there.
func (d *diagnosis) isFilled(s *slot) bool {
	return s.Condition == evidence.Creating && d.madeBy(s.Slot) && s.Group != ""
}

// lookAtGroup waits for a reading of what goes with a lost slice: only its state from before the loss is known. So it does for a reading of the
// lost slice itself, once somebody has made another one of its group again: a group is made as a whole.
func (d *diagnosis) lookAtGroup(s *slot) *Step {
	if !s.is(lost) {
		return nil
	}
	for _, name := range d.w.group(s.Name) {
		o, since, of := d.slot(name), s.Since, name
		switch {
		case s.Condition == evidence.Gone && o.exists() && d.answersOurs(o.Slot):
			since, of = o.made(), s.Name
		case s.Condition == evidence.Gone || o.is(lost, coming, vanished) || !o.Read.Before(s.Since) || o.delete != nil:
			continue
		}
		if until := d.by(since, bounds.SickFor); !d.over(until) {
			return wait(view.Looking, story.GroupToo.With(of), until)
		}
	}
	return nil
}

// irreplaceable says why a slice must not, or cannot, be replaced: nothing that still lives is deleted before its training is saved.
func (d *diagnosis) irreplaceable(s *slot, since time.Time) *Step {
	switch {
	case s.Spec == "":
		return d.unspecified(s)
	case s.Kept != "":
		return escalate(reason.CodeKept, story.Kept.With(s.Name, s.Kept), story.CreateByHand.With(s.Name))
	case d.mayStillTrain(s):
		return escalate(reason.CodeKept, story.NotFailed.With(s.Name, s.State, d.w.Words().Healer), story.LookAtWorkers.With(d.w.Words().Worker))
	case d.mayBeDone(s):
		return escalate(reason.CodeKept, story.MayHaveBeenDone.With(s.Name), story.CreateByHand.With(s.Name))
	case s.exists() && !s.is(coming) && d.handle(s) == nil:
		return escalate(reason.CodeNoLife, story.NeverAlive.With(s.Name), story.CreateByHand.With(s.Name))
	case !d.isUnsaved(s):
		return nil
	}
	if hear := d.hears(view.Looking, story.SeeWhatIsSaved.With(), before(since, bounds.HearFor)); hear != nil {
		return hear
	}
	return escalate(reason.CodeUnverified, story.Unverified.With(s.Name, s.State), story.SaveByHand.With(s.Name))
}

// unspecified waits for a reading of how a slice was ordered, for a while.
func (d *diagnosis) unspecified(s *slot) *Step {
	if until := d.by(d.in.Opened, bounds.LookFor); s.exists() && !d.over(until) {
		return wait(view.Looking, story.SpecUnread.With(s.Name), until)
	}
	return escalate(reason.CodeNoSpec, story.NoSpec.With(s.Name), story.CreateByHand.With(s.Name))
}

// mayBeDone reports whether a slice that is gone may have been removed because its work was complete.
func (d *diagnosis) mayBeDone(s *slot) bool {
	return d.w.provider().goesOnceDone && s.Condition == evidence.Gone && s.EndedBy == "" && !d.in.saw(s.Slot)
}

// isUnsaved reports whether a slice that still lives has something to lose: training may have run there, and no checkpoint of it is verified. What
// is on its way out has nothing to lose any more.
func (d *diagnosis) isUnsaved(s *slot) bool {
	lives := s.exists() && s.Condition != evidence.Lost && s.Condition != evidence.Deleting && !d.isGoing(s) && !s.is(coming)
	return lives && (s.Maker == "" || !s.usable().IsZero()) && d.w.Training.Saved.At.IsZero()
}

// mayStillTrain reports whether a provider that begins the training again by itself has not given a slice up.
func (d *diagnosis) mayStillTrain(s *slot) bool {
	return d.w.provider().trainsAgain && s.exists() && s.Condition != evidence.Lost && s.Condition != evidence.Deleting && !s.is(coming)
}

// saw reports whether Pitstop itself read that a life failed, after it was last usable and before it was gone.
func (in *Incident) saw(s *Slot) bool {
	return slices.ContainsFunc(in.Troubles, func(t Trouble) bool {
		seen := t.Slice == s.Name && t.Life == s.Incarnation.ID && t.proven() && !t.Announced
		return seen && !t.At.Before(s.usable()) && t.At.Before(s.Since)
	})
}
