//go:build !heart

package incident

import (
	"cmp"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/topology"
)

// noticed keeps announced maintenance on the life that it concerns, and opens an incident only when the maintenance is under way
// already.
func (m *machine) noticed(e Noticed) {
	s := m.w.Slice(e.Slice)
	if s == nil || m.formerLife(s, e.Incarnation) || m.unheeded(s, e.Notice) {
		return
	}
	m.noticeStrikes(s, e.Notice)
	old := m.w.lastNotice(e.Slice)
	if old != nil && m.overrides(old, e) {
		return
	}
	if old != nil && old.End {
		old = nil
	}
	if e.Notice.Status == events.NoticeGone {
		m.noticeGone(s, e)
		return
	}
	if old != nil && old.Status != events.NoticeGone && !m.history(old.Notice) {
		e.Notice = completed(e.Notice, old.Notice)
	}
	if m.history(e.Notice) || old != nil && !old.newer(e) {
		return
	}
	m.keepNotice(s, e, old)
}

// unheeded reports whether a notice comes from a line that may not change what is known. Of maintenance that the API shows, a line says only
// that it has begun. Maintenance that the API does not show, lines announce once.
func (m *machine) unheeded(s *Slot, n events.Notice) bool {
	if m.from.Rank != events.RankUser {
		return false
	}
	old := s.Notice
	begins := saysBegun(old.Notice, completed(n, old.Notice))
	if old.InAPI && old.stands() {
		return !begins
	}
	return s.Alarmed && n.Status != events.NoticeGone && (!begins || m.w.Incident == nil)
}

// keepNotice keeps a word that is news in the place of the old one, and goes on with it.
func (m *machine) keepNotice(s *Slot, e Noticed, old *Notice) {
	next := m.notice(e, old)
	moved := old != nil && old.Status == events.NoticePending && !old.WindowStart.Equal(next.WindowStart)
	kept := m.slice(s.Name)
	kept.Notice, kept.Alarmed = next, kept.Alarmed && !e.InAPI
	if s = m.w.Slice(s.Name); !s.IsReleased() {
		m.followNotice(s, e.Text, moved)
	}
}

// overrides reports whether the kept notice outweighs another word: that word is older, or the kept one is a planned end, and the life
// does not see the time in that word.
func (m *machine) overrides(kept *Notice, e Noticed) bool {
	older := m.when().Before(kept.LastWord) && !saysBegun(kept.Notice, e.Notice)
	return older || kept.End && (e.Notice.Status == events.NoticeGone || kept.Tells(e.Notice))
}

// noticeStrikes takes from a notice the time at which a training gets the signal to end.
func (m *machine) noticeStrikes(s *Slot, n events.Notice) {
	switch {
	case s.IsReleased():
	case n.Status == events.NoticePending:
		m.unfinish(n.WindowStart)
	case n.Status == events.NoticeOngoing:
		m.unfinish(m.when())
	}
}

// newer reports whether a word of the same maintenance says more than the kept notice. Another worker's entry from before the
// maintenance began does not.
func (n *Notice) newer(e Noticed) bool {
	same := n.Notice.Equal(e.Notice) && (n.InAPI || !e.InAPI)
	return !same && !saysBegun(e.Notice, n.Notice)
}

// notice turns a word into the notice to keep, with the known facts about the same window.
func (m *machine) notice(e Noticed, old *Notice) Notice {
	line := m.from.Rank == events.RankUser
	n := Notice{Notice: e.Notice, LastWord: m.when(), InAPI: e.InAPI, Told: line}
	if old == nil {
		return n
	}
	n.InAPI = n.InAPI || old.InAPI
	n.Told = line && !n.InAPI
	if old.Notice.Equal(e.Notice) || n.LastWord.Before(old.LastWord) {
		n.LastWord = old.LastWord // the API confirms it; an entry that was on its way may still say more
	}
	if old.WindowStart.Equal(n.WindowStart) {
		n.Started, n.Listened, n.Deaf, n.Declined = old.Started, old.Listened, old.Deaf, old.Declined
	}
	return n
}

// followNotice goes on with a new notice.
func (m *machine) followNotice(s *Slot, text string, moved bool) {
	n := s.Notice
	switch under := n.Status == events.NoticeOngoing; {
	case m.w.Incident != nil && !m.onlyHangs():
		m.noticeInIncident(s, text, moved)
	case under && !m.from.Time.IsZero() && !m.from.Time.After(m.w.Ended):
		m.slice(s.Name).Notice.InAPI = false // its incident is over; if the maintenance still goes on, the next reading shows it
	case under && !n.Declined && m.mayOpenTogether(s):
		m.openMaintenance(s)
	}
}

// mayOpenTogether reports whether maintenance of a slice, or its sickness, may open an incident. While the owner has stopped another slice
// of the workload, no training runs that could be saved, or that has to go on.
func (m *machine) mayOpenTogether(s *Slot) bool {
	return m.mayOpen(s) && !slices.ContainsFunc(m.w.Slices, func(o Slot) bool { return o.stoppedByOwner() && !o.IsReleased() })
}

// standsUnmet reports whether maintenance of a usable slice is under way that opened nothing when its word came, for its owner had stopped a
// slice. Once a step, an incident's end or a person has come after that word, it is met.
func (m *machine) standsUnmet(s *Slot) bool {
	n := s.Notice
	return n.Status == events.NoticeOngoing && !n.Declined && s.Condition == Ready && !m.history(n.Notice) && n.LastWord.After(later(m.w.Ended, m.w.Progress.At))
}

// saysBegun reports whether one notice says that another notice's announced maintenance is under way.
func saysBegun(pending, ongoing events.Notice) bool {
	return pending.Status == events.NoticePending && ongoing.Status == events.NoticeOngoing && pending.WindowStart.Equal(ongoing.WindowStart)
}

// completed adds to a notice the fields that only an earlier word of the same maintenance gave. The log, the API and a machine's
// own metadata do not all give the same fields, and some give the state alone.
func completed(n, old events.Notice) events.Notice {
	if n.WindowStart.IsZero() {
		status := n.Status
		n = old
		n.Status = status
		return n
	}
	if n.WindowStart.Equal(old.WindowStart) {
		if n.WindowEnd.IsZero() {
			n.WindowEnd = old.WindowEnd
		}
		if n.LatestWindowStart.IsZero() {
			n.LatestWindowStart = old.LatestWindowStart
		}
	}
	return n
}

// stands reports whether maintenance is announced, or under way.
func (n Notice) stands() bool {
	return n.Status == events.NoticePending || n.Status == events.NoticeOngoing
}

// announced reports whether maintenance of a life is announced or under way. Pitstop ignores the maintenance of a released slice.
func (l *Life) announced() bool { return l.Notice.stands() && !l.IsReleased() }

// announcedInVain reports whether lines alone tell of maintenance, and have opened an incident before.
func (l *Life) announcedInVain() bool { return l.Alarmed && l.Notice.Told }

// Tells reports whether a notice already says all that another word of it says. Maintenance after the planned end of a life is no
// news.
func (n Notice) Tells(o events.Notice) bool {
	if n.End {
		return o.Status == events.NoticePending && !o.WindowStart.Before(n.WindowStart)
	}
	return n.Notice.Equal(completed(o, n.Notice))
}

// scheduleSaves sets when the save of each notice is due. Any evidence may change that: a crew's first line, another slice's
// maintenance, a slice that is usable again, another policy.
func (m *machine) scheduleSaves() {
	if m.w.Incident != nil {
		return
	}
	if watched := m.w.firstAwaitingAdmission() != "" && (m.watched() || m.p.Unreadable != "" && m.w.Watched); watched != m.w.Watched {
		m.w.Watched, m.changed = watched, true
	}
	m.planEnds()
	for i := range m.w.Slices {
		n := m.w.Slices[i].Notice
		if m.p.Unreadable != "" && !n.Due.IsZero() {
			continue // nobody knows what the policy allows
		}
		due := m.due(n)
		if !m.w.Slices[i].announced() || m.w.Slices[i].announcedInVain() {
			due = time.Time{}
		}
		if !due.Equal(n.Due) {
			m.slice(m.w.Slices[i].Name).Notice.Due = due
		}
	}
}

// due is when the save before announced maintenance must be requested: at the notice where the maintenance may be started early,
// else the lead before its window. Zero means never.
func (m *machine) due(n Notice) time.Time {
	last := m.lastDue(n)
	early := m.p.Unreadable != "" || m.level(policy.EarlyMaintenance) != policy.No && m.level(policy.RequestCheckpoint) != policy.No
	if last.IsZero() || n.End || !early || m.w.Crew.Seen.IsZero() || m.w.Directory == "" || m.notEarly() != "" {
		return last // without a crew and a directory no save can be verified
	}
	at, all := n.LastWord, true
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if !m.awaited(s) {
			all = all && s.IsReleased()
		} else if s.Notice.LastWord.After(at) {
			at = s.Notice.LastWord
		}
	}
	if !all {
		at = at.Add(NoticeFor)
	}
	if at.After(last) {
		return last
	}
	return at
}

// lastDue is the last moment for the request of the save; zero for maintenance that will not come.
func (m *machine) lastDue(n Notice) time.Time {
	if n.Status != events.NoticePending || n.Declined || n.WindowStart.IsZero() || m.history(n.Notice) {
		return time.Time{}
	}
	return n.WindowStart.Add(-m.lead())
}

// noteDeafness notes whether the crew of a slice with announced maintenance would hear a request. Pitstop only reports it: a crew
// that is silent now may still answer the request.
func (m *machine) noteDeafness(e Beat) {
	n := m.w.Notice(e.Slice)
	if n == nil || !e.Incarnation.Same(m.w.Slice(e.Slice).Incarnation) {
		return
	}
	n = &m.slice(e.Slice).Notice
	n.Listened, n.Deaf = m.now, m.deaf(e)
}

func (m *machine) deaf(e Beat) string {
	last := e.Seen
	if m.w.Progress.At.After(last) {
		last = m.w.Progress.At
	}
	switch {
	case m.level(policy.RequestCheckpoint) == policy.No && m.p.Unreadable == "":
		return "" // Pitstop is not going to ask it
	case m.w.Crew.Seen.IsZero() && e.Seen.IsZero():
		return "no crew has been heard that could answer"
	case m.now.Sub(last) < HeardFor && !e.Looked.IsZero() && e.Seen.Sub(e.Looked) >= HeardFor:
		return "the crew cannot read what is left beside the checkpoints, for " + events.Span(e.Seen.Sub(e.Looked)) + " by now: the node's metadata alone may reach it"
	case m.now.Sub(last) < HeardFor, e.Seen.IsZero():
		return "" // lines may be late or lost, so that silence in the log alone proves nothing
	}
	return "the crew was heard " + events.Span(m.now.Sub(last)) + " ago for the last time"
}

// soon reports whether the time of the last save before a window has come.
func (m *machine) soon(n Notice) bool {
	last := m.lastDue(n)
	return !last.IsZero() && !m.now.Before(last)
}

// begins reports whether maintenance is under way or about to begin.
func (m *machine) begins(n Notice) bool {
	return n.Status == events.NoticeOngoing || !n.Started.IsZero() || m.soon(n)
}

// notEarly says why announced maintenance cannot be started before its window, as far as is known; empty where it can. The slices
// of a workload train together, so all of them start early or none.
func (m *machine) notEarly() string {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		n := s.Notice
		if !m.awaited(s) {
			continue
		}
		switch {
		case n.End:
			return m.w.noun(s.Name) + " has its " + n.at()
		case n.Status != events.NoticePending:
			return "the maintenance of " + s.Name + " has begun"
		case !n.CanReschedule:
			return "the maintenance of " + s.Name + " cannot be moved"
		case s.Condition != Ready:
			return m.w.noun(s.Name) + " is " + s.State
		}
		why := ""
		if !m.w.provider().noticeSaysEarly {
			why = notInShape(s)
		}
		for _, name := range append([]string{s.Name}, m.othersInGroup(s)...) {
			why = cmp.Or(why, m.staysAway(m.w.Slice(name)))
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// StaysAway says why Pitstop does not start the maintenance of a slice before its window, though its notice and the policy let it: nobody
// would bring it back. Empty is no such reason.
func (w Workload) StaysAway(p policy.Policy, slice string) string {
	if s := w.Slice(slice); s != nil {
		return (&machine{p: p, w: w}).staysAway(s)
	}
	return ""
}

// staysAway says why nobody may bring a slice back that fails for good when its maintenance begins; empty where Pitstop does, or where no
// maintenance makes a slice fail. In its window the maintenance comes all the same, so Pitstop must not be what begins it.
func (m *machine) staysAway(s *Slot) string {
	sw := policy.RecreateNonSpot
	if s.Reclaimable {
		sw = policy.Recreate
	}
	why := ""
	switch level := m.level(sw); {
	case !m.w.provider().trainsAgain || s.IsReleased():
		return ""
	case s.Kept != "":
		why = "it is its owner's to replace: " + s.Kept
	case s.Spec == "":
		why = "its specification was never read, so it cannot be created again"
	case level != policy.Yes:
		why = m.w.Forbids(sw, level, m.p)
	case m.w.Budgets.Recreates >= MaxRecreates:
		why = "its replacements are spent"
	default:
		return ""
	}
	return m.w.noun(s.Name) + " may fail when its maintenance begins, and stay away: " + why
}

// notInShape says why maintenance of a slice cannot be started early, whatever its notice says; empty where it can.
func notInShape(s *Slot) string {
	switch shape, err := topology.Parse(s.Accelerator); {
	case err != nil:
		return "it is not known whether maintenance of " + s.Name + " can be started early: " + err.Error()
	case !shape.MaintainsEarly():
		return "maintenance of a " + s.Accelerator + " cannot be started early"
	}
	return ""
}

// windowEnd is when the maintenance ought to be over, as far as the notice says.
func windowEnd(n events.Notice) time.Time {
	if n.WindowEnd.IsZero() {
		return n.WindowStart
	}
	return n.WindowEnd
}

// history reports whether the window of a notice has been over for longer than any wait for it.
func (m *machine) history(n events.Notice) bool {
	end := windowEnd(n)
	return !end.IsZero() && m.now.After(end.Add(HealFor))
}

// noticeInIncident follows a window that moved or opened while an incident is open.
func (m *machine) noticeInIncident(s *Slot, text string, moved bool) {
	in, n := m.w.Incident, s.Notice
	switch m.phase() {
	case Saving, Maintaining, Window, Watching, Approving:
	case Healing:
		m.healsInWindow(s, text)
		return
	default:
		return // a greater trouble is being handled
	}
	if m.phase() == Approving && in.Asked != events.ActionSave && in.Asked != events.ActionMaintain {
		return
	}
	if n.Status == events.NoticeOngoing {
		if in.Begun {
			return
		}
		m.inc().Begun = true
		m.line(LineSeen, text, "")
		switch m.phase() {
		case Window:
			m.renew() // it may have begun long before its window
		case Saving:
			if d := m.now.Add(SaveFor); d.Before(in.Deadline) {
				m.inc().Deadline = d
			}
		case Maintaining, Approving:
			m.hasBegun()
		}
		return
	}
	if !moved {
		return
	}
	m.line(LineSeen, text, "")
	switch m.phase() {
	case Saving, Window:
		m.renew()
	case Watching:
		if m.watchesHang() {
			return
		}
		m.inc().Deadline = m.windowDeadline()
	}
	m.decided("follow the window", "it was moved to "+events.Window(n.WindowStart, n.WindowEnd))
}

// healsInWindow gives a slice that its maintenance made unusable the time for the provider's own recovery after the window.
func (m *machine) healsInWindow(s *Slot, text string) {
	until := m.firstHealedBy()
	if s.Notice.Status != events.NoticeOngoing || s.Condition != Unhealthy || !until.After(m.w.Incident.Deadline) {
		return
	}
	m.inc().Deadline = until
	m.line(LineSeen, text, "")
	m.decided("wait for "+m.w.recovery()+" behind the window", "the slice is under maintenance")
}

// noticeGone ends a notice: maintenance is over, or was withdrawn before it began.
func (m *machine) noticeGone(s *Slot, e Noticed) {
	old := m.w.lastNotice(s.Name)
	if old != nil && old.Status == events.NoticeGone {
		if m.when().After(old.LastWord) {
			m.slice(s.Name).Notice.LastWord = m.when() // every earlier announcement is void
		}
		return
	}
	n := s.Notice
	n.Status, n.LastWord, n.Due, n.InAPI = events.NoticeGone, m.when(), time.Time{}, false
	began := old != nil && (old.Status == events.NoticeOngoing || !old.WindowStart.IsZero() && !m.when().Before(old.WindowStart))
	m.slice(s.Name).Notice = n

	in := m.w.Incident
	if in == nil || s.IsReleased() || m.watchesHang() {
		return
	}
	switch m.phase() {
	case Saving, Maintaining, Window, Watching, Approving:
	default:
		return
	}
	m.line(LineSeen, e.Text, "")
	if !m.anyAnnounced() { // else another slice of the workload still waits for its own
		m.nothingAnnounced(began || in.Begun || !in.Down.IsZero())
	}
}

// nothingAnnounced goes on once no slice of an incident has announced maintenance any more.
func (m *machine) nothingAnnounced(began bool) {
	switch watching := m.phase() == Watching; {
	case !began && watching:
		m.finish(Observed, "", CodeWithdrawn, "the maintenance was withdrawn", "")
		return
	case !began:
		m.finish(Withdrawn, "", CodeWithdrawn, "the maintenance was withdrawn before it began", "")
		return
	}
	m.inc().Begun = true
	switch {
	case m.phase() != Watching:
		m.maintenanceOver("Google says that the maintenance is over")
	case m.w.Crew.Seen.IsZero() && m.allReady():
		m.finish(Observed, "", m.watchCode(), "the maintenance is over", "")
	}
}

// anyAnnounced reports whether any slice has announced maintenance.
func (m *machine) anyAnnounced() bool {
	return slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return m.awaited(&s) })
}

// openMaintenance opens the incident of a notice when its save is due, or when the maintenance is under way. Where a person must
// approve early maintenance, Pitstop asks them first, while there is time: the save comes right before the maintenance. A watch over a hang
// ends for it.
func (m *machine) openMaintenance(s *Slot) {
	if m.w.Incident != nil {
		m.finish(Observed, "", m.watchCode(), "maintenance comes before the training goes on", "")
	}
	n := s.Notice
	sort := "maintenance"
	if n.Unscheduled {
		sort = "unscheduled maintenance"
	}
	text := sort + " announced for " + events.Window(n.WindowStart, n.WindowEnd)
	if n.Status == events.NoticeOngoing {
		text = sort + " is under way"
	}
	cause := events.CauseMaintenance
	if n.End {
		cause, text = events.CauseEnd, n.at()
	}
	in := m.open(Trouble{Cause: cause, Slice: s.Name, Life: s.Incarnation.ID, At: m.when(), Text: text, Announced: n.Status == events.NoticePending, Proven: !n.End})
	in.Begun = n.Status == events.NoticeOngoing
	if n.Told {
		m.slice(s.Name).Alarmed = true
	}
	m.takeOrWatch(text, "nothing: no crew has been seen that could save", func(m *machine) {
		m.enter(Saving)
		m.decided("incident opened: "+m.awaits(), text)
		if n.Deaf != "" {
			m.line(LineSeen, "a request to save may not be heard by "+s.Name, n.Deaf)
		}
		if last := m.lastDue(m.firstNotice()); m.now.Before(last) && m.level(policy.EarlyMaintenance) == policy.Ask && m.notEarly() == "" {
			m.ask(events.ActionMaintain)
			return
		}
		m.startSave()
	})
	if m.phase() == Watching {
		m.inc().Deadline = m.windowDeadline()
	}
}

// windowDeadline is when unfinished maintenance needs a person: the end of the last window plus the time for the provider's own recovery.
// Maintenance that began before its window counts from now.
func (m *machine) windowDeadline() time.Time {
	end := m.now
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if m.awaited(s) && !(m.w.Incident.Begun && s.Notice.WindowStart.After(m.now)) {
			end = later(windowEnd(s.Notice.Notice), end)
		}
	}
	return end.Add(HealFor)
}

// beganEarly limits the wait for a slice that is not usable long before its window: to the time of the provider's recovery, not to the
// end of the window.
func (m *machine) beganEarly() {
	if in := m.w.Incident; m.phase() == Window && !in.Begun {
		m.inc().Begun = true
		m.renew()
	}
}

// onlyAnnounced reports whether the incident only waits for maintenance: a failure of the training is the training's own.
func (m *machine) onlyAnnounced() bool {
	in := m.w.Incident
	switch m.phase() {
	case Saving, Window:
	case Approving:
		if in.Asked != events.ActionSave && in.Asked != events.ActionMaintain {
			return false
		}
	default:
		return false
	}
	return !in.Begun && in.Down.IsZero() && m.now.Before(m.firstNotice().WindowStart) && m.allReady()
}

func (m *machine) firstNotice() Notice {
	var first Notice
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if m.awaited(s) && (!first.stands() || s.Notice.WindowStart.Before(first.WindowStart)) {
			first = s.Notice
		}
	}
	return first
}

// afterSave decides the next step after a verified save: maintenance now, where that is allowed and possible, else the window.
func (m *machine) afterSave() {
	n, why := m.firstNotice(), m.notEarly()
	level := m.level(policy.EarlyMaintenance)
	if level == policy.Ask && m.w.Incident.Approved == events.ActionMaintain {
		level = policy.Yes
	}
	switch {
	case m.w.Incident.Begun || n.Status != events.NoticePending:
		m.enterWindow(CodeBegun, "the maintenance has begun")
	case why != "":
		m.enterWindow(CodeNotEarly, why)
	case level == policy.Ask:
		m.ask(events.ActionMaintain)
	case level == policy.No:
		m.rehearse("", (*machine).sendMaintain)
		m.enterWindow(CodePolicyNo, m.no(policy.EarlyMaintenance))
	default:
		m.sendMaintain()
	}
}

func (m *machine) sendMaintain() {
	if why := m.notEarly(); why != "" {
		m.enterWindow(CodeNotEarly, why)
		return
	}
	m.enter(Maintaining)
	m.decided("start the maintenance now", "checkpoint "+events.Number(m.w.Progress.Verified)+" is verified, and the moment is ours to choose")
	effects := m.earlyMaintenance()
	if effects == nil {
		m.enterWindow(CodeNotReady, "no slice is ready for early maintenance")
		return
	}
	m.send(effects...)
}

// earlyMaintenance are the calls that start the announced maintenance: one for each slice, or for the queued resource that holds
// it.
func (m *machine) earlyMaintenance() (all []Effect) {
	called := map[string]bool{}
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if !m.awaited(s) || s.Notice.End || s.Notice.Status != events.NoticePending || s.Condition != Ready || called[s.Name] {
			continue
		}
		for _, o := range m.w.MaintainedWith(s.Name) {
			called[o.Name] = true
		}
		all = append(all, Effect{
			Action: events.ActionMaintain, Slice: s.Name, Zone: s.Zone, Incarnation: s.Incarnation, Reason: "verified checkpoint",
		})
	}
	return all
}

// maintaining reports whether a call that starts maintenance early was accepted, and whether one is under way.
func (w Workload) maintaining() (accepted, open bool) {
	for _, effect := range w.Effects {
		if effect.Action == events.ActionMaintain {
			accepted = accepted || !effect.Answered.IsZero()
			open = open || effect.Answered.IsZero()
		}
	}
	return accepted, open
}

// thinksAgain decides again on maintenance, or another attempt, that a function is about to begin, because the request may be long under way.
// It reports whether that is not begun now. Once one call may have been made, the others follow: the slices train together.
func (m *machine) thinksAgain(effect *Effect) bool {
	if effect.Action == events.ActionRestart {
		return m.watchesAgain(effect)
	}
	called := func(effect Effect) bool {
		return effect.Action == events.ActionMaintain && (effect.Maybe || !effect.Begun.IsZero())
	}
	if effect.Action != events.ActionMaintain || m.w.has(called) {
		return false
	}
	switch why := m.notEarly(); {
	case why != "":
		m.enterWindow(CodeNotEarly, why)
	case m.now.Sub(m.w.Incident.Since) < SavedFor:
		return false
	case m.w.Incident.covers(events.ActionSave):
		m.sendSave()
	default:
		m.startSave()
	}
	return true
}

// maintained goes on when every call that starts maintenance early was accepted, or will not be any more.
func (m *machine) maintained() {
	if _, open := m.w.maintaining(); open {
		return
	}
	for _, effect := range m.w.Effects {
		if effect.Action != events.ActionMaintain {
			continue
		}
		for _, s := range m.w.MaintainedWith(effect.Slice) {
			if s.announced() {
				m.slice(s.Name).Notice.Started = m.now
			}
		}
	}
	m.inc().Begun = true
	m.enter(Window)
	m.decided("wait for the maintenance to pass", "it was started early")
}

// notMaintained handles a refused call. The slices train together: where the maintenance of one slice was started, Pitstop requests
// that of the others again, for as long as that may take.
func (m *machine) notMaintained(effect *Effect, f Failure) {
	slice := effect.Slice
	effect.Failures++
	effect.Retry = m.now.Add(backoff(effect.Failures))
	switch f.Class {
	case Permission, Invalid:
	case Transient, Busy:
		return
	default:
		if len(m.w.Effects) > 1 {
			return // the outcome of the other calls is unknown, or they have begun
		}
	}
	m.drop(events.ActionMaintain, slice)
	m.notStarted(f.Reason(), "the maintenance could not be started early: "+f.Message)
}

// notStarted goes on without the calls that were not accepted.
func (m *machine) notStarted(c Code, why string) {
	accepted, open := m.w.maintaining()
	switch {
	case !accepted && open:
		return
	case !accepted:
		m.enterWindow(c, why)
		return
	}
	m.line(LineCame, "the maintenance of the other slices comes in its window", why)
	m.coded(c)
	m.maintained()
}

// maintainOverdue goes on without the calls that nobody has answered in time.
func (m *machine) maintainOverdue(took string) {
	m.dropEffects(func(effect Effect) bool { return effect.Action == events.ActionMaintain && effect.Answered.IsZero() })
	m.notStarted(CodeOverdue, "the early maintenance was not started within "+took)
}

// hasBegun waits for maintenance that is under way, once every slice's maintenance was requested: the slices train together.
func (m *machine) hasBegun() {
	if accepted, open := m.w.maintaining(); m.phase() == Maintaining && accepted && open {
		return
	}
	m.enterWindow(CodeBegun, "the "+m.awaits()+" has begun")
}

func (m *machine) enterWindow(c Code, why string) {
	m.enter(Window)
	if m.firstNotice().End {
		m.decided("wait for the planned end", why)
	} else {
		m.decided("wait for the maintenance to pass", why)
	}
	m.coded(c)
}

// maintenanceOver goes on to confirm progress, as soon as every slice is usable.
func (m *machine) maintenanceOver(why string) {
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if s.isMissed() {
			return // the next reading decides
		}
	}
	m.resume(why)
}

// resume waits for progress on usable slices, once training is admitted to all of them.
func (m *machine) resume(why string) {
	for _, name := range m.toBeReplaced() {
		m.slice(name).ToReplace = false
	}
	if !m.w.allAdmitted() {
		m.admitOnceReady()
		return
	}
	if !m.allReady() {
		m.waitForSlices()
		return
	}
	m.enter(Resuming)
	m.decided("wait for progress past step "+events.Number(m.w.Incident.Baseline), why)
}

// explainedByMaintenance attributes an incident to the last maintenance event in a reading, if the incident began at that time and
// nothing better explains it. A legacy TPU Node announces no maintenance.
func (m *machine) explainedByMaintenance(s *Slot, e Read) {
	at := e.Maintained
	near := func(in *Incident) bool { return in.Troubles[0].At.Sub(at).Abs() <= SickFor }
	if s == nil || at.IsZero() || !at.After(s.Incarnation.Created) || s.IsReleased() {
		return
	}
	text := m.w.noun(s.Name) + " had a maintenance event at " + at.UTC().Format(time.RFC3339)
	switch in, c := m.w.Incident, m.w.Closed; {
	case in != nil && near(in) && specific(in.Cause) < specific(events.CauseMaintenance):
		t := Trouble{Cause: events.CauseMaintenance, Slice: s.Name, At: at, Text: text, Proven: true}
		if m.trouble(t, s.Incarnation) {
			m.line(LineSeen, text, "its health still tells of it")
		}
	case in == nil && c != nil && near(c) && c.concerns(s.Name, s.Incarnation):
		m.reattribute(events.CauseMaintenance, text)
	}
}
