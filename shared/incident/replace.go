//go:build !heart

package incident

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// lose handles the proven loss of a slice: the provider's own recovery first, where there is one, else replacement.
func (m *machine) lose(s *Slot, what string) {
	name := s.Name
	m.stopped(m.now)
	m.inc().StoodAt = time.Time{} // it is replaced because it is lost, and not because it stands still
	m.raiseBaseline()
	if m.watched() {
		m.watch(what, "nothing", func(m *machine) { m.lose(m.w.Slice(name), what) })
		return
	}
	m.slice(name).ToReplace = true
	m.replaceGone()
	m.drop(events.ActionCreate, name) // Pitstop's creation, if there was one, took effect: the lost slice is the one that it created
	if m.phase() == "" {
		m.enter(Looking)
		m.line(LineSeen, what, "")
	}
	if m.unreadable() {
		if m.phase() != Looking {
			m.enter(Looking)
		}
		return // the next reading decides, under a policy that can be read
	}
	if m.w.mayBeDone() && m.waitForVerdict(what+", and the training may be finished") {
		return
	}
	if m.heals(s) && s.Condition != Gone && m.now.Before(m.healedBy(s)) {
		m.enter(Healing)
		m.decided("wait for "+m.w.recovery(), what+", and only Spot is replaced at once")
		return
	}
	m.replace(what)
}

// auditUnread says that nobody knows who deleted a slice.
func (m *machine) auditUnread(s *Slot) string {
	return m.w.noun(s.Name) + " has been gone for " + events.Span(m.now.Sub(s.Since)) + ", and the audit log could not be read: who deleted it is not known"
}

const auditAdvice = "look who deleted it; let the function patrol read the audit log (roles/logging.viewer); then pitstop retry "

// loseGone treats a gone slice as lost, because nobody explained its end in time.
func (m *machine) loseGone(s *Slot) {
	m.lose(s, m.w.noun(s.Name)+" is gone, and nothing says within "+events.Span(Grace)+" that its owner deleted it")
}

// raiseBaseline notes how far the training is saved when a slice is lost: training resumes there, and progress has to pass it.
func (m *machine) raiseBaseline() {
	if saved := max(m.w.Progress.Verified, m.w.Progress.CheckpointStep); saved > m.w.Incident.Baseline {
		m.inc().Baseline = saved
	}
}

// replace checks whether the policy allows the replacement of the lost slices.
func (m *machine) replace(why string) {
	if m.unreadable() {
		return
	}
	sw := m.w.governs(events.ActionDelete)
	if m.payer() == Training && m.level(policy.Restart) < m.level(sw) {
		sw = policy.Restart // to begin the training again is a restart too
	}
	switch {
	case m.watchOnly():
		m.watch(why, "nothing", func(m *machine) { m.replace(why) })
	case m.level(sw) == policy.No:
		m.rehearse("", func(m *machine) { m.replace(why) })
		m.escalate(CodePolicyNo, why+", and "+m.no(sw), "recreate "+strings.Join(m.toBeReplaced(), ", ")+" by hand, or allow the switch "+string(sw))
	case (m.level(sw) == policy.Ask || m.bare() != "") && m.w.Incident.Approved != events.ActionDelete:
		m.ask(events.ActionDelete)
	default:
		m.remove(why)
	}
}

// bare names the slices that a replacement would bring back as empty machines. Nothing would train there, at the full price, so
// Pitstop asks a person whatever the policy says.
func (m *machine) bare() string {
	var names []string
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.ToReplace && s.Bare {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, ", ")
}

// replaceGone adds slices to the replacement that have been gone for longer than any word about their end takes.
func (m *machine) replaceGone() {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if s.Condition == Gone && !s.IsReleased() && !s.ToReplace && !s.End.Reported && s.ownerSilent(m.now) {
			m.slice(s.Name).ToReplace = true
		}
	}
}

// replaceSick replaces again the slices that Pitstop created and that did not become usable in the time for the provider's own recovery.
// It reports whether there are any.
func (m *machine) replaceSick() bool {
	var sick []string
	for i := range m.w.Slices {
		switch s := &m.w.Slices[i]; s.Condition {
		case Unhealthy, Unclear:
			if s.ToReplace && m.creationUnderWay(s) && m.now.Sub(s.Since) >= HealFor {
				sick = append(sick, m.w.noun(s.Name)+" is "+s.State)
				m.drop(events.ActionCreate, s.Name)
			}
		case Unread, Creating, Ready, Stopped, Lost, Done, Deleting, Gone:
		}
	}
	if sick != nil {
		m.replace(strings.Join(sick, ", ") + " after " + events.Span(HealFor))
	}
	return sick != nil
}

// toBeReplaced names the slices that are to be replaced.
func (m *machine) toBeReplaced() []string {
	var names []string
	for i := range m.w.Slices {
		if m.w.Slices[i].ToReplace {
			names = append(names, m.w.Slices[i].Name)
		}
	}
	return names
}

// remove deletes the lost slices, unless something forbids it or must be known first.
func (m *machine) remove(why string) {
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; m.stillToReplace(s) && m.lookAtGroup(s) {
			return
		}
	}
	m.replaceGroup()
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; m.stillToReplace(s) && !m.mayReplace(s) {
			return
		}
	}
	payer := m.payer()
	if m.overspends(payer) {
		return
	}
	out := m.toBeDeleted()
	if !slices.ContainsFunc(out, m.deletionWanted) {
		m.chargeReplacement(payer)
	} // else it joins the replacement that is under way
	if out == nil {
		m.recreate(why)
		return
	}
	m.enter(PhaseDeleting)
	m.decided("recreate: delete "+strings.Join(out, ", ")+" first", why+m.saved())
	m.sendDeletions(out, why)
}

// overspends reports whether the payer's budget for a replacement is spent. It waits for what may refill the budget, and leaves the rest
// to a person.
func (m *machine) overspends(payer Payer) bool {
	spent := func() bool {
		return payer == Infrastructure && m.w.Budgets.Recreates >= MaxRecreates || payer == Training && m.w.Budgets.Restarts >= MaxRestarts
	}
	if spent() && m.waitForVerdict("replacements are spent unless the training is saved further") {
		return true
	}
	names := strings.Join(m.toBeReplaced(), ", ")
	switch {
	case spent() && payer == Training:
		m.escalate(CodeBudget, fmt.Sprintf("%s ended by an error of the training, and %d restarts brought no progress", names, MaxRestarts),
			"read the training's own log and mend it; a verified checkpoint of a new step refills the budget")
	case payer == Training && len(m.restartedToday()) >= m.p.DailyRestarts():
		m.escalate(CodeRestartsADay, fmt.Sprintf("%s ended by an error of the training; the policy allows %d restarts a day, and all are spent", names, m.p.DailyRestarts()),
			"find out why it needs so many; recreate it by hand, or raise restarts_per_day in the policy")
	case !spent():
		return false
	default:
		m.escalate(CodeBudget, fmt.Sprintf("%s were replaced %d times without progress", names, MaxRecreates),
			"look at the start-up script and the hosts; a verified checkpoint of a new step refills the budget")
	}
	return true
}

// chargeReplacement charges the payer of a replacement.
func (m *machine) chargeReplacement(payer Payer) {
	m.inc().Payer = payer
	switch payer {
	case Infrastructure:
		m.charge(&m.w.Budgets.Recreates)
	case Training:
		m.chargeRestart()
	case Nobody:
	}
}

// deletionWanted reports whether the deletion of a slice is wanted.
func (m *machine) deletionWanted(slice string) bool {
	return m.w.effect(events.ActionDelete, slice) != nil
}

// sendDeletions requests the deletion of the slices that no request names yet, each with its group.
func (m *machine) sendDeletions(names []string, why string) {
	var effects []Effect
	for _, name := range names {
		if m.deletionWanted(name) || slices.ContainsFunc(effects, func(effect Effect) bool { return effect.Concerns(name) }) {
			continue
		}
		s := m.deletionHandle(m.w.Slice(name))
		effects = append(effects, Effect{
			Action: events.ActionDelete, Slice: s.Name, With: m.othersInGroup(s), Zone: s.Zone, Incarnation: s.Incarnation, Ordered: s.Ordered, Reason: why,
		})
	}
	if effects != nil {
		m.send(effects...)
	}
}

// mayReplace reports whether nothing forbids the replacement of a slice. It waits for facts that are not known yet and leaves the
// rest to a person.
func (m *machine) mayReplace(s *Slot) bool {
	c, fault, advice := m.irreplaceable(s)
	switch {
	case fault == "":
		return true
	case c == CodeNoSpec && m.waitForSpec(s):
	case c == CodeUnverified && m.waitForVerdict(s.Name+" still exists, and nobody has looked at what is saved"):
	default:
		m.escalate(c, fault, advice)
	}
	return false
}

// replaceGroup adds every slice of a queued resource to the replacement: the queued resource is deleted and created as a whole.
func (m *machine) replaceGroup() {
	for _, name := range m.toBeReplaced() {
		s := m.w.Slice(name)
		if !m.stillToReplace(s) {
			continue
		}
		for _, other := range m.othersInGroup(s) {
			if !m.w.Slice(other).ToReplace {
				m.slice(other).ToReplace = true
			}
		}
	}
}

// deletionHandle is the slice whose life a deletion request can name to delete a slice: the slice itself, or another one in its
// queued resource. Nil where none of them was ever seen alive.
func (m *machine) deletionHandle(s *Slot) *Slot {
	for _, name := range append([]string{s.Name}, m.othersInGroup(s)...) {
		if o := m.w.Slice(name); o.Incarnation.Known() || !o.Ordered.IsZero() {
			return o
		}
	}
	return nil
}

// groupGrew reports whether Pitstop has learned of more slices in a queued resource since it decided to delete it.
func (m *machine) groupGrew(effect *Effect) bool {
	if effect.Action != events.ActionDelete || m.phase() != PhaseDeleting {
		return false
	}
	for _, name := range m.othersInGroup(m.w.Slice(effect.Slice)) {
		if !effect.Concerns(name) {
			return true
		}
	}
	return false
}

// decideDeletionAnew decides again on a whole queued resource, before any deletion in it took effect.
func (m *machine) decideDeletionAnew(effect *Effect, why string) {
	m.uncharge(events.ActionDelete)
	m.drop(events.ActionDelete, effect.Slice)
	m.replace(why)
}

// creationUnderWay reports whether a creation of the slice is under way: then no life under its name has to go.
func (m *machine) creationUnderWay(s *Slot) bool {
	effect := m.w.effect(events.ActionCreate, s.Name)
	return effect != nil && effect.inFlight()
}

// stillToReplace reports whether a slice is to be replaced, and no creation of it is under way yet.
func (m *machine) stillToReplace(s *Slot) bool { return s.ToReplace && !m.creationUnderWay(s) }

// toBeDeleted names the slices that must be gone before a new one can take their name.
func (m *machine) toBeDeleted() []string {
	var names []string
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.Condition != Gone && m.stillToReplace(s) {
			names = append(names, s.Name)
		}
	}
	return names
}

// describeLossInGroup says which slice was lost in the queued resource that holds a slice.
func (m *machine) describeLossInGroup(s *Slot) string {
	for _, name := range m.othersInGroup(s) {
		if o := m.w.Slice(name); o.ToReplace {
			return m.w.noun(o.Name) + " is " + o.State
		}
	}
	return m.w.noun(s.Name) + " is " + s.State
}

// lossInGroup reports whether another slice of the same queued resource is to be replaced.
func (m *machine) lossInGroup(s *Slot) bool {
	for _, name := range m.othersInGroup(s) {
		if m.w.Slice(name).ToReplace {
			return true
		}
	}
	return false
}

// lookAtGroup requests readings of the other slices in a queued resource: the document only knows their state from before this
// loss. Their own readings then decide, or the end of the time for them.
func (m *machine) lookAtGroup(s *Slot) bool {
	unread := ""
	for _, name := range m.othersInGroup(s) {
		switch o := m.w.Slice(name); {
		case o.Condition == Lost || o.Condition == Gone:
		case name == m.reading:
			return false
		default:
			unread = name
		}
	}
	until := s.Since.Add(SickFor)
	if unread == "" || !m.now.Before(until) {
		return false
	}
	if m.phase() != Looking {
		m.enter(Looking)
	}
	if in := m.w.Incident; !in.Hearing && until.Before(in.Deadline) {
		m.inc().Deadline = until
		m.decided("look at "+unread+" too", "the "+m.w.group(s.Group)+" holds both")
	}
	return true
}

// waitForSpec waits until a reading shows how an existing slice was ordered: it may have been lost before Pitstop read that.
func (m *machine) waitForSpec(s *Slot) bool {
	switch {
	case s.Condition == Gone:
		return false
	case m.phase() != Looking:
		m.enter(Looking)
		m.decided("look at "+s.Name, "how it was ordered has not been read yet")
		return true
	}
	return !m.isOverdue()
}

// irreplaceable says why a slice must not, or cannot, be replaced now.
func (m *machine) irreplaceable(s *Slot) (c Code, fault, advice string) {
	if s.Spec == "" {
		return CodeNoSpec, "the specification of " + s.Name + " was never read, so it cannot be created again", "create it by hand"
	}
	if s.Kept != "" {
		return CodeKept, s.Name + " is its owner's to replace: " + s.Kept, "look at it, and create it again by hand if it is still wanted"
	}
	if c, fault, advice = m.mayNotHaveFailed(s); fault != "" {
		return c, fault, advice
	}
	if s.Condition != Gone && m.deletionHandle(s) == nil {
		return CodeNoLife, s.Name + " was never seen alive, so no request to delete it could name its life", "delete and create it by hand"
	}
	goes := s.Condition == Lost || s.Condition == Gone || s.Condition == Deleting && s.Group != ""
	if goes || !m.unsaved(s) {
		return "", "", ""
	}
	// The slice still lives: a replacement may lose work.
	return CodeUnverified, s.Name + " still exists (" + s.State + ") and no checkpoint of its training has been verified",
		"save the training if it can be saved, then recreate " + s.Name + " by hand"
}

// mayNotHaveFailed says why a slice may still come back, or may have been complete, where its provider does either by itself.
func (m *machine) mayNotHaveFailed(s *Slot) (c Code, fault, advice string) {
	if failed := s.Condition == Lost || s.Condition == Gone || s.Condition == Deleting; m.w.provider().trainsAgain && !failed {
		return CodeKept, s.Name + " has not failed (" + s.State + "), and " + m.w.Words().Healer + " may still bring it back", "look at its " + m.w.Words().Worker + "s; delete and create it by hand if it does not come back"
	}
	if m.w.provider().goesOnceDone && s.Condition == Gone && !m.w.Incident.Retried && !m.w.Incident.saw(s) {
		return CodeKept, s.Name + " is gone, and nobody saw whether it had failed or was complete", "create it again by hand if it was not complete; a longer time to live lets Pitstop see its end"
	}
	return "", "", ""
}

// saw reports whether Pitstop itself read that this life failed, since it was last usable and before it was gone.
func (in *Incident) saw(s *Slot) bool {
	return slices.ContainsFunc(in.Troubles, func(t Trouble) bool {
		return t.Slice == s.Name && t.Life == s.Incarnation.ID && t.Proven && !t.Announced && !t.At.Before(s.usable()) && t.At.Before(s.Since)
	})
}

// unsaved reports whether a living slice has something to lose: training may have run there, and no save of it exists. Training may
// have begun even in a slice that was never admitted, once it was usable: a start-up script may have started it, or a crew that
// took the lease over.
func (m *machine) unsaved(s *Slot) bool {
	return (!s.leftBehind() || !s.usable().IsZero()) && m.w.Progress.VerifiedAt.IsZero()
}

// saved describes the checkpoint from which a replacement can resume.
func (m *machine) saved() string {
	p := m.w.Progress
	switch {
	case !p.VerifiedAt.IsZero():
		return fmt.Sprintf(", checkpoint %s verified %s ago", events.Number(p.Verified), events.Span(m.now.Sub(p.VerifiedAt)))
	case p.CheckpointStep > 0:
		return ", last checkpoint " + events.Number(p.CheckpointStep)
	}
	return ""
}

// deletedByOthers reports whether a slice that was to be deleted is gone, and no call of Pitstop's can have deleted it: its owner may
// have. Where the next one waits for admission, word of that may come while it is made, and takes it away again.
func (m *machine) deletedByOthers(s *Slot) bool {
	effect := m.w.effect(events.ActionDelete, s.Name)
	mayHave := func(c Call) bool {
		return c.Action == events.ActionDelete && effect.Concerns(c.Slice) && !c.NotMade && c.Code != NotFound.Code() && !c.At.Before(m.w.Incident.Since)
	}
	return m.w.provider().trainsUnasked && effect != nil && !slices.ContainsFunc(m.w.Incident.Calls, mayHave)
}

// deletedByUs reports whether a call of Pitstop may have deleted a slice in this incident, by that time. Then a tool that creates it again
// does what Pitstop is about to do. Times of lives are whole seconds, and so is this one.
func (m *machine) deletedByUs(s *Slot, by time.Time) bool {
	if m.w.Incident == nil || !m.w.provider().trainsUnasked {
		return false
	}
	ours := m.w.calls(Effect{Action: events.ActionDelete, Slice: s.Name, Zone: s.Zone})
	return slices.ContainsFunc(m.w.Incident.Calls, func(c Call) bool {
		return c.Action == events.ActionDelete && c.Resource == ours[0].Resource && !c.NotMade && c.Code == "" && !by.Before(c.At.Truncate(time.Second))
	})
}

// explainEnd waits for word of who deleted a slice that was to be deleted, with its group, and gives its charge back.
func (m *machine) explainEnd(s sight) {
	effect := *m.w.effect(events.ActionDelete, s.Name)
	for _, name := range append([]string{effect.Slice}, effect.With...) {
		m.slice(name).ToReplace = false
	}
	m.drop(events.ActionDelete, s.Name)
	m.uncharge(events.ActionDelete)
	m.cannotServe(s)
}

// goOnOnceGone goes on once everything that had to go is gone.
func (m *machine) goOnOnceGone(s *Slot) {
	took := events.Span(m.now.Sub(m.w.Incident.Since))
	m.dropDone(events.ActionDelete, s.Name)
	if m.toBeDeleted() == nil {
		m.recreate("the old one is proven gone, after " + took)
	}
}

// keepIfAlive stops a deletion that has not been called when the API shows that the slice lives. Its provider has brought it back
// meanwhile, or is about to, and its training is not saved.
func (m *machine) keepIfAlive(s *Slot) {
	if m.deletionMayTakeEffect(s) || s.Condition != Ready && !s.onlyStopped() && !m.unsaved(s) {
		return
	}
	effect := m.w.effect(events.ActionDelete, s.Name)
	all := append([]string{effect.Slice}, effect.With...)
	for _, name := range all {
		if s.Condition == Ready && m.w.Slice(name).Condition != Ready {
			return // the queued resource goes as a whole
		}
	}
	if c, fault, advice := m.irreplaceable(s); s.Condition != Ready && len(all) > 1 {
		m.escalate(c, fault, advice)
		return
	}
	for _, name := range all {
		m.slice(name).ToReplace = false
	}
	s = m.w.Slice(s.Name)
	m.line(LineSeen, m.describe(s), "")
	m.drop(events.ActionDelete, s.Name)
	// One charge covers a deletion that goes on and the deletion of another slice.
	if !slices.ContainsFunc(m.w.Slices, func(o Slot) bool { return m.stillToReplace(&o) }) {
		m.uncharge(events.ActionDelete)
	}
	m.goOnWithout(s)
}

// goOnWithout goes on without the replacement of a slice that lives.
func (m *machine) goOnWithout(s *Slot) {
	why := m.w.Words().Healer + " healed the slice before it was deleted"
	wait := "wait for " + m.w.recovery()
	switch {
	case s.onlyStopped():
		wait, why = waitForStopper, "the slice is only stopped"
	case s.Condition != Ready:
		why = "the slice lives, and no checkpoint of its training has been verified"
	}
	switch {
	case len(m.toBeReplaced()) > 0:
		if m.toBeDeleted() == nil {
			m.recreate(why)
		}
	case s.Condition == Ready && !m.w.allAdmitted():
		m.admitOnceReady()
	case s.Condition == Ready:
		m.resume(why)
	default:
		m.enter(Healing)
		m.decided(wait, why)
	}
}

// deletionMayTakeEffect reports whether the deletion of a slice may take effect, or has. A deletion that was begun and never
// answered does not take effect if a reading from after its time for the call shows the slice alive: the instance that began it
// died before the call.
func (m *machine) deletionMayTakeEffect(s *Slot) bool {
	effect := m.w.effect(events.ActionDelete, s.Name)
	switch {
	case effect == nil:
		return true
	case !effect.Retry.IsZero():
		return false
	}
	return !effect.Answered.IsZero() || effect.UnderWay(m.when())
}

// recreate creates every slice that is to be replaced and whose creation is not under way yet.
func (m *machine) recreate(why string) {
	m.enter(PhaseCreating)
	m.recall()
	m.inc().Slow = time.Time{}
	var effects, waiting []Effect
	for _, name := range m.toBeReplaced() {
		s := m.w.Slice(name)
		if m.creationUnderWay(s) {
			m.decided("wait for "+name, why)
			continue
		}
		concerned := func(effect Effect) bool { return effect.Concerns(name) }
		if slices.ContainsFunc(effects, concerned) || slices.ContainsFunc(waiting, concerned) {
			continue
		}
		place, at := m.nextPlace(s)
		effect := Effect{
			Action: events.ActionCreate, Slice: name, With: m.othersInGroup(s), Zone: place.Zone, Accelerator: place.Accelerator, Reason: why, Retry: at,
		}
		switch {
		case place == Place{}:
			last := m.w.Incident.Zones[len(m.w.Incident.Zones)-1]
			m.nowhere(effect, Failure{Code: last.Code, Message: last.Text})
			return
		case !at.IsZero():
			waiting = append(waiting, effect)
			m.decided("ask "+place.String()+" for "+effect.sliceList()+" in "+events.Span(at.Sub(m.now)), "every zone has just refused")
			continue
		}
		effects = append(effects, effect)
		m.decided("create "+effect.sliceList()+" in "+place.String(), why)
	}
	m.wants(waiting...)
	if effects != nil {
		m.send(effects...)
	}
}

// markArrived notes that a new slice exists: nothing of it remains to be created.
func (m *machine) markArrived(s *Slot) {
	m.slice(s.Name).ToReplace = false
	m.dropDone(events.ActionCreate, s.Name)
}

// goOnOnceThere goes on when a new slice is usable, or stopped, and admits training when all can be used.
func (m *machine) goOnOnceThere() {
	for _, name := range m.toBeReplaced() {
		if m.w.effect(events.ActionCreate, name) == nil && m.w.effect(events.ActionDelete, name) == nil {
			m.replace(name + " is lost too") // Pitstop waited for it meanwhile
			return
		}
	}
	if len(m.toBeReplaced()) > 0 {
		return
	}
	m.capacityFound()
	m.admitOnceReady()
}

// admitOnceReady lets training run in the new incarnations: through the lease, where there is one.
func (m *machine) admitOnceReady() {
	if !m.allReady() {
		m.waitForSlices()
		return
	}
	if m.w.Directory == "" {
		m.markAllAdmitted(func(s Slot) bool { return !s.IsReleased() })
		m.resume("a new slice is usable; without a checkpoint directory there is no lease")
		return
	}
	m.enter(Admitting)
	m.decided("admit training to the new slice", "it is usable, and the former one is proven gone")
	m.send(Effect{Action: events.ActionAdmit, Reason: "new incarnation"})
}

// waitForSlices waits for the slices that were not replaced and cannot be used: training needs all of them. Gone slices come first,
// each with its own time in which somebody may name its owner as the deleter.
func (m *machine) waitForSlices() {
	var gone *Slot
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if s.Condition == Lost && m.stillToReplace(s) && m.heals(s) && m.now.Before(m.healedBy(s)) {
			s = m.slice(s.Name)
			s.ToReplace = false // the provider may still bring this slice back, so the gone slice's replacement leaves it out
		}
		if s.Condition == Gone && !s.IsReleased() && (gone == nil || s.Since.Before(gone.Since)) {
			gone = s
		}
	}
	if gone != nil {
		m.waitForWord(m.w.Slice(gone.Name))
		return
	}
	m.waitForRecovery()
}

// waitForWord waits for word of who deleted a slice, first from the owner and then from the audit log, and goes on once that time
// is over.
func (m *machine) waitForWord(s *Slot) {
	audited := later(s.Since.Add(Grace), m.w.Incident.Opened)
	switch {
	case s.ownerSilent(m.now):
		m.loseGone(s)
	case m.now.Sub(audited) >= AuditFor:
		m.escalate(CodeAuditUnread, m.auditUnread(s), auditAdvice+m.w.Name)
	case m.now.Sub(s.Since) < Grace:
		m.enterUntil(PhaseGrace, m.orHealed(s.Since.Add(Grace)))
		m.decided("wait "+events.Span(Grace)+" for word of who deleted "+s.Name, "nothing says that it was lost; what an owner deletes is released")
	case m.phase() == PhaseGrace:
		m.inc().Deadline = m.orHealed(audited.Add(AuditFor))
	default:
		m.enterUntil(PhaseGrace, m.orHealed(audited.Add(AuditFor)))
		m.decided("wait for the audit log", "it has not been read since word of a deletion had to be in it; what an owner deletes is released")
		m.coded(CodeAuditUnread)
	}
}

// orHealed is the end of a wait for word about a slice, or the end of the time that another slice has to heal, if that comes first. A
// stopped slice waits with it: whoever deleted the one may want the other stopped.
func (m *machine) orHealed(until time.Time) time.Time {
	if by := m.firstHealedBy(Stopped); by.Before(until) {
		return by
	}
	return until
}

// waitForRecovery waits for the provider to bring back the unusable slices, until the first of them has had its time.
func (m *machine) waitForRecovery() {
	m.enter(Healing)
	if slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return s.isMissed() && !s.onlyStopped() }) {
		m.decided("wait for "+m.w.recovery(), m.describeUnusable())
		return
	}
	m.decided(waitForStopper, m.describeUnusable())
}

// allAdmitted reports whether training may run in every slice's current life.
func (w Workload) allAdmitted() bool {
	for i := range w.Slices {
		if s := &w.Slices[i]; !s.IsReleased() && s.Incarnation.Known() && !s.isAdmitted() {
			return false
		}
	}
	return true
}

// markAdopted notes that training may run in the created slices from now on. They are no leftovers any more. A slice in its owner's
// own shape counts as the owner's order again.
func (m *machine) markAdopted() {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if s.Maker != "" {
			m.slice(s.Name).Maker = ""
		}
		if s = &m.w.Slices[i]; s.Order != (Order{}) && !s.Reshaped() {
			m.slice(s.Name).Order = Order{}
		}
	}
}

// markAllAdmitted notes the slices in whose current lives training may run.
func (m *machine) markAllAdmitted(these func(Slot) bool) {
	m.markAdopted()
	for i := range m.w.Slices {
		if s := m.w.Slices[i]; these(s) && !s.isAdmitted() {
			m.slice(s.Name).markAdmitted()
		}
	}
}

// healedBy is the end of the time that the provider has to bring a slice back. It counts from its loss, and of a slice that is only sick
// from the incident's opening at the earliest, unless a person asked for a retry. Under maintenance it counts from the end of the window.
func (m *machine) healedBy(s *Slot) time.Time {
	from, in := s.Since, m.w.Incident
	if s.Condition == Stopped || s.Condition != Lost && !in.Retried {
		from = later(from, in.Opened)
	}
	if s.Condition == Unhealthy && s.Notice.Status == events.NoticeOngoing {
		from = later(from, windowEnd(s.Notice.Notice))
	}
	return from.Add(HealFor)
}

// firstHealedBy is when the first of the slices that exist and cannot be used has had its time to heal, and no earlier than now. Where
// there is none it counts from now. Slices in the conditions but are left out.
func (m *machine) firstHealedBy(but ...Condition) time.Time {
	var first time.Time
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if by := m.healedBy(s); s.isMissed() && s.Condition != Gone && !slices.Contains(but, s.Condition) && (first.IsZero() || by.Before(first)) {
			first = by
		}
	}
	if first.IsZero() {
		return m.now.Add(HealFor)
	}
	return later(first, m.now)
}
