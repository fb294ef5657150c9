//go:build !heart

package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pitstop.internal/events"
)

// A line of the crew is a hint: anyone who may write logs can write one. A decision that ends care or spends a budget rests on the
// crew's verdict, which lies beside the checkpoints, or in the crew's guest attribute where there is no directory.

// claim notes a line about the end of the training, and makes patrol read the crew's guest attribute for its verdict.
func (m *machine) claim(c Claim) {
	c.ProbeUntil = m.now.Add(ProbeFor)
	m.w.Crew.Claim, m.changed = c, true
}

// claimsDone reports whether a line calls the training done, and Pitstop has not looked for the crew's verdict since.
func (w Workload) claimsDone() bool {
	c := w.Crew.Claim
	return c.Finished && !c.Unconfirmed && !w.Crew.Finished
}

// mayBeDone reports whether the crew's verdict must be read before anything is brought back. Either a line calls the training done,
// or a verdict did before a line reported a later attempt.
func (w Workload) mayBeDone() bool { return w.claimsDone() || w.Crew.Done > 0 && !w.Crew.Finished }

// probes reports whether patrol reads the crew's guest attribute because of a claim.
func (w Workload) probes() bool { return !w.Crew.Claim.ProbeUntil.IsZero() && !w.Crew.Finished }

// unproven reports whether budgets are spent and only lines show progress since, with no checkpoint directory to prove it.
func (w Workload) unproven() bool {
	return w.Directory == "" && w.Incident == nil && w.Budgets != (Budgets{}) && w.Progress.At.After(w.Budgets.Since) && w.Progress.High > w.Progress.Proven
}

// probeDue is when patrol has to read the crew's guest attribute because of a claim; zero where there is no claim.
func (w Workload) probeDue() (due time.Time) {
	every := ListenAgain
	switch {
	case w.probes():
	case w.unproven():
		every = ProveEvery
	default:
		return time.Time{}
	}
	for i := range w.Slices {
		if at := w.Slices[i].Heard.At.Add(every); due.IsZero() || at.Before(due) {
			due = at
		}
	}
	return due
}

// endProbe stops reading the guest attribute for a verdict that does not come. Without a directory nothing else can confirm the
// claim.
func (m *machine) endProbe() {
	c := m.w.Crew.Claim
	if c.ProbeUntil.IsZero() || m.now.Before(c.ProbeUntil) {
		return
	}
	c.ProbeUntil = time.Time{}
	c.Unconfirmed = c.Unconfirmed || m.w.Directory == ""
	m.w.Crew.Claim, m.changed = c, true
}

// askForVerdict asks the function checkpoint for the crew's verdict, unless that request is under way.
func (m *machine) askForVerdict(why string) {
	if m.w.Directory == "" || m.w.effect(events.ActionHear, "") != nil {
		return
	}
	m.decided("read the crew's verdict", why)
	m.send(Effect{Action: events.ActionHear, Reason: why})
}

// waitForVerdict makes a decision wait until the crew's verdict has been read, and reports whether it waits. It does not wait if
// the verdict was read within HearFor, or could not be read for as long: then the decision is taken.
func (m *machine) waitForVerdict(why string) bool {
	in, p := m.w.Incident, m.phase()
	elsewhere := p != Looking && (p != Resuming || m.toBeReplaced() != nil) // a slice may have been lost while the verdict is read
	switch {
	case m.w.Directory == "", !in.HeardAt.IsZero() && m.now.Sub(in.HeardAt) < HearFor:
		return false
	case !in.Hearing, elsewhere:
		if elsewhere {
			m.enter(Looking)
		}
		m.drop(events.ActionHear, "") // the earlier request may be tried again much later
		m.askForVerdict(why)
		in = m.inc()
		in.Hearing, in.Deadline = true, m.now.Add(HearFor)
		return true
	case !m.isOverdue():
		return true
	}
	m.goOnUnheard()
	return false
}

// goOnUnheard ends the wait for a verdict that could not be read in time, and says why.
func (m *machine) goOnUnheard() {
	last := ""
	if effect := m.w.effect(events.ActionHear, ""); effect != nil {
		last = effect.LastFailure
	}
	m.heard()
	m.line(LineCame, "the crew's verdict could not be read in "+events.Span(HearFor), last)
	m.unconfirmed()
}

// heard notes that Pitstop has looked for the verdict.
func (m *machine) heard() {
	m.drop(events.ActionHear, "")
	m.inc().HeardAt, m.inc().Hearing = m.now, false
}

// unconfirmed notes that no verdict calls the training done: no decision waits for one any more.
func (m *machine) unconfirmed() {
	if c := &m.w.Crew; !c.Finished {
		c.Done = 0
		c.Claim.Unconfirmed = c.Claim.Finished
	}
}

// verdictRead takes the verdict that the function checkpoint read beside the checkpoints.
func (m *machine) verdictRead(e VerdictRead) {
	effect := m.begun(e.Request)
	if effect == nil {
		return
	}
	if !e.SavedAt.IsZero() {
		m.saves(e.Saved, e.SavedAt, e.SavedURI, e.SavedBytes)
	}
	if e.Attempt > 0 {
		m.leaseNames(e.Attempt)
	}
	if e.Failure == nil && m.boundBaseline(e.Saved) && e.Verdict == nil {
		p := m.w.Progress
		m.confirm(p.Step, p.Attempt, p.At)
		if m.w.Incident == nil {
			return
		}
	}
	if m.phase() == Resuming && e.Verdict == nil && !m.w.spoke() && e.Saved > m.w.Incident.Baseline && e.SavedAt.After(m.lastTrouble()) {
		m.resumed(ByCheckpoint, "checkpoint "+events.Number(e.Saved)+" is newer than the trouble")
		return
	}
	waits := m.w.Incident.Hearing
	if e.Verdict == nil && (e.Failure != nil || !waits && m.w.Crew.Claim.Attempt > 0) && effect.Failures < MaxFailures {
		m.readVerdictAgain(e)
		return
	}
	m.heard()
	id, phase := m.w.Incident.ID, m.phase()
	if e.Verdict != nil {
		m.verdict(*e.Verdict, true)
	} else {
		m.line(LineCame, "the crew left no verdict", e.Text)
	}
	if m.w.Incident == nil || m.w.Incident.ID != id {
		return
	}
	m.unconfirmed()
	if waits && m.phase() == phase { // else the verdict has decided
		m.decideHeard()
	}
}

// readVerdictAgain reads once more later: the crew may be about to write the verdict that its line announced.
func (m *machine) readVerdictAgain(e VerdictRead) {
	effect := m.effect(events.ActionHear, "")
	effect.Failures++
	effect.Retry = m.now.Add(backoff(effect.Failures))
	effect.LastFailure = e.Text
	if e.Failure != nil {
		effect.LastFailure = e.Failure.Message
	}
	if effect.Failures == 1 {
		m.line(LineCame, "no verdict of the crew yet", effect.LastFailure)
	}
}

// decideHeard takes the decision that waited for the verdict. Lost slices are replaced before a training that hangs on them is
// restarted.
func (m *machine) decideHeard() {
	if m.phase() != Looking {
		m.inc().Deadline = m.now // the next tick decides
		return
	}
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; s.ToReplace {
			m.loseHeard(s)
			return
		}
	}
	if in := m.w.Incident; in.Cause == events.CauseHang {
		m.decideHang(in.Troubles[0].Text)
		return
	}
	m.inc().Look = true
}

// loseHeard goes on with the loss of a slice: the provider's own recovery first, where it has not had its time.
func (m *machine) loseHeard(s *Slot) {
	if m.w.Incident.Hearing && m.isOverdue() {
		m.goOnUnheard()
	}
	text := m.w.noun(s.Name) + " is " + s.State
	if m.heals(s) && s.Condition != Gone && m.now.Before(m.healedBy(s)) {
		m.lose(s, text)
		return
	}
	m.replace(text)
}

// takeVerdict takes the content of a crew's guest attribute besides its heartbeat.
func (m *machine) takeVerdict(e Beat) {
	s := m.w.Slice(e.Slice)
	if s == nil || !e.Incarnation.Same(s.Incarnation) || e.Seen.IsZero() {
		return
	}
	if e.Runs {
		m.records(e.Attempt)
	}
	if !e.StepAt.IsZero() {
		m.proven(e.Step, e.StepAt)
	}
	if e.Verdict != nil {
		m.verdict(*e.Verdict, false)
	}
}

// verdict takes the crew's last word on an attempt, unless another life has begun since. Leased says that the lease confirms it.
// Lines never outweigh a verdict: anyone may write a line about a later attempt.
func (m *machine) verdict(v events.CrewVerdict, leased bool) {
	s := m.w.Slice(v.Life.Slice)
	switch {
	case s == nil, s.ProvenHosts() != "" && v.Life.Workers != "" && s.Hosts != v.Life.Workers:
		return
	case v.Restart, !leased && v.Attempt < m.w.Crew.LeaseAttempt:
		return
	}
	m.records(v.Attempt)
	if m.w.Crew.Attempt < v.Attempt {
		m.w.Crew.Attempt, m.changed = v.Attempt, true
	}
	if v.Finished {
		m.finishedFor(v)
	} else {
		m.gaveUpFor(v)
	}
}

// finishedFor takes the verdict that the training is done, unless something struck its slices at about the time of the exit: then
// exit 0 was a save.
func (m *machine) finishedFor(v events.CrewVerdict) {
	c := &m.w.Crew
	if c.Finished || v.Attempt <= c.NotDone {
		return
	}
	at := v.Ended
	if at.IsZero() || at.After(m.now) {
		at = m.now
	}
	c.Claim, m.changed = Claim{}, true
	if what := m.struckNear(at); what != "" && !v.Certain {
		c.NotDone = v.Attempt
		if m.w.Incident != nil {
			m.line(LineCame, "the crew's verdict calls the training finished, which was a save", what)
		}
		return
	}
	c.Finished, c.FinishedAt, c.Certain, c.Done = true, at, v.Certain, v.Attempt
	m.w.Progress.Step = max(m.w.Progress.Step, v.Step)
	in := m.w.Incident
	if in == nil {
		return
	}
	switch m.phase() {
	case PhaseDeleting, PhaseCreating, Clearing, Admitting:
		return // work under way is completed
	}
	m.line(LineCame, "the crew's verdict: the training is finished", v.Reason)
	if m.phase() == Watching {
		m.finish(Observed, ByStep, m.watchCode(), "the training is finished", "")
		return
	}
	if at.Before(in.Opened) && slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return s.ToReplace }) {
		m.finish(Released, "", CodeFinished, "the training was finished before", "")
		return
	}
	m.resumed(ByStep, "the training is finished at step "+events.Number(m.w.Progress.Step))
}

// gaveUpFor takes the verdict that the crew's own restarts are spent.
func (m *machine) gaveUpFor(v events.CrewVerdict) {
	c := &m.w.Crew
	if v.Attempt <= c.GaveUp {
		return
	}
	if m.w.Incident == nil && !m.opensConfirmed(v) {
		return
	}
	m.hangsNoMore()
	if m.phase() != Resuming && m.phase() != Watching && !m.onlyAnnounced() {
		return
	}
	before := c.Spent
	c.GaveUp, c.Claim, c.Doubted, c.Spent, m.changed = v.Attempt, Claim{}, time.Time{}, Error{}, true
	if e := c.Error; e.Attempt == v.Attempt { // else the line of its end is lost, or still to come
		c.Spent = e
	}
	m.line(LineCame, fmt.Sprintf("the crew's verdict: it gave up after attempt %d", v.Attempt), v.Reason)
	if m.phase() == Watching {
		m.rehearseRestart()
		m.finish(Observed, "", m.watchCode(), "the crew has given up, and the policy allows nothing", "")
		return
	}
	if m.w.provider().trainsAgain { // it begins another attempt, or calls the slice lost
		m.inc().Look = true
		return
	}
	if e := c.Spent; e.repeats(before) && !c.Finished {
		m.escalate(CodeSameError, fmt.Sprintf("the same error twice without a step past %s: %s", events.Number(e.High), e.Sign),
			"read the training's own log and mend it: another restart would meet the same error")
		return
	}
	m.restart("the crew has given up: " + v.Reason)
}

// opensConfirmed opens the incident of a line that opened none, because such lines are doubted, once a verdict confirms it. It reports
// whether that is open.
func (m *machine) opensConfirmed(v events.CrewVerdict) bool {
	c, s := m.w.Crew.Claim, m.w.Slice(v.Life.Slice)
	doubted := !m.w.Crew.Doubted.IsZero() // then a line may have taken the place of the true crew's
	if !doubted && (c.Finished || c.Attempt != v.Attempt) || !m.mayOpen(s) {
		return false
	}
	at := m.when()
	if c.Attempt == v.Attempt {
		at = c.At
	}
	m.openCrash(Trouble{Cause: events.CauseCrash, Slice: s.Name, Life: s.Incarnation.ID, At: at, Text: "the crew gave up: " + v.Reason})
	return m.w.Incident != nil
}

// struckNear describes the trouble that Pitstop itself read on a slice within StruckWithin of a time; empty where there was none.
func (m *machine) struckNear(at time.Time) string {
	near := func(t time.Time) bool { return !t.IsZero() && t.Sub(at).Abs() <= StruckWithin }
	return cmp.Or(m.troubleThat(near), m.lossThat(near), m.maintenanceThat(near))
}

// troubleThat describes a proven trouble of the open incident from such a time.
func (m *machine) troubleThat(near func(time.Time) bool) string {
	if m.w.Incident == nil {
		return ""
	}
	for _, t := range m.w.Incident.Troubles {
		if !t.Announced && t.Proven && strikes(t.Cause) && near(t.At) {
			return t.Text
		}
	}
	return ""
}

// lossThat describes a slice that cannot be used since such a time.
func (m *machine) lossThat(near func(time.Time) bool) string {
	for i := range m.w.Slices {
		switch s := &m.w.Slices[i]; s.Condition {
		case Lost, Gone, Unhealthy, Unclear:
			if near(s.Since) && !s.IsReleased() {
				return m.w.noun(s.Name) + " is " + s.State
			}
		case Unread, Creating, Ready, Stopped, Done, Deleting:
		}
	}
	return ""
}

// maintenanceThat describes maintenance of a slice that began at such a time.
func (m *machine) maintenanceThat(near func(time.Time) bool) string {
	for i := range m.w.Slices {
		if n := m.w.Slices[i].Notice; n.InAPI && m.w.Slices[i].announced() && (near(n.WindowStart) || n.Status == events.NoticeOngoing && near(n.LastWord)) {
			return "maintenance of " + m.w.Slices[i].Name
		}
	}
	return ""
}

// strikes reports whether a cause makes a training save itself and exit.
func strikes(c events.Cause) bool {
	switch c {
	case events.CauseMaintenance, events.CausePreemption, events.CauseHostError, events.CauseTerminated, events.CauseEnd:
		return true
	case events.CauseUnknown, events.CauseGuest, events.CauseCrash, events.CauseHang: // "train; poweroff" is an end
	}
	return false
}

// unfinish counts a training's exit 0 as a save where Pitstop itself read a loss, a restart or maintenance near that exit. A
// message proves nothing.
func (m *machine) unfinish(at time.Time) {
	if m.from.Rank < events.RankReading {
		return
	}
	c := &m.w.Crew
	if !c.Finished || c.Certain || at.Sub(c.FinishedAt).Abs() > StruckWithin {
		return
	}
	c.Finished, c.NotDone, c.Done, m.changed = false, max(c.Done, c.NotDone), 0, true
}

// goesFurther resumes care where a line reports an attempt after the one that was done. The line is a hint too: the verdict is read
// again before anything is brought back.
func (m *machine) goesFurther(attempt int) {
	c := &m.w.Crew
	if c.Finished && attempt <= c.Done {
		return // a late line of the attempt that is done
	}
	if c.Finished || c.Claim != (Claim{}) && attempt > c.Claim.Attempt {
		c.Finished, c.Claim, m.changed = false, Claim{}, true
	}
}

// proven refills the budgets when a checkpoint or the crew's guest attribute shows a new highest step, made after the budgets were
// first spent.
func (m *machine) proven(step int64, at time.Time) {
	p, b := &m.w.Progress, &m.w.Budgets
	if step <= p.Proven {
		return
	}
	p.Proven, m.changed = step, true
	switch {
	case *b == (Budgets{}):
		return
	case b.Since.IsZero(): // the release before did not note it
		b.Since = m.now
		return
	case !at.After(b.Since):
		return
	}
	*b = Budgets{}
	if m.w.Incident != nil {
		m.inc().Charged = 0
	}
}

// charge spends one unit of a budget.
func (m *machine) charge(n *int) {
	if *n++; m.w.Budgets.Since.IsZero() {
		m.w.Budgets.Since = m.now
	}
	m.changed = true
}

// restartedToday lists the requests for a restart within the last day.
func (m *machine) restartedToday() []time.Time {
	return slices.DeleteFunc(slices.Clone(m.w.Crew.Restarted), func(t time.Time) bool { return m.now.Sub(t) >= 24*time.Hour })
}
