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

// reported takes a line of the crew.
func (m *machine) reported(e Reported) {
	s := m.w.Slice(e.Slice)
	if s == nil {
		return
	}
	r := e.Report
	switch notice := r.Report == events.ReportNotice; {
	case notice && r.Life != "":
		return // no Pod is told of preemption or maintenance
	case !notice && m.when().Before(m.w.Crew.Since):
		return // the line belongs to another training
	}
	switch who, ended := s.speaker(r, m.when()); {
	case who != unknownCrew && m.tooFar(r):
		m.bound(e)
		return
	case who == formerCrew:
		m.remember(r, ended)
		return
	case who == newestCrew && r.Life != "" && s.endedBy(m.when()):
		return // it is of a training that nobody waits for
	case who == unknownCrew, s.endedBy(m.when()) && r.Report != events.ReportNotice:
		m.keep(e, s) // no known crew could have written it
		return
	}
	m.speaks()
	m.bound(e)
	if s = m.w.Slice(s.Name); s.Spoke.IsZero() {
		m.slice(s.Name).Spoke = m.now
		s = m.w.Slice(s.Name)
	}
	m.runsIn(s, r)
	m.take(s, r)
}

// speaks notes that a known crew has spoken. Where none had before, nobody expected a step of it: it has at least its full time from here on.
func (m *machine) speaks() {
	if m.w.Crew.Seen.IsZero() {
		m.w.Crew.Seen, m.changed = m.now, true
		if m.phase() == Resuming {
			in := m.inc()
			in.Since, in.Deadline = m.now, later(in.Deadline, m.lasts(Resuming))
			m.decided("wait for progress past step "+events.Number(in.Baseline), "its crew speaks")
		}
	}
	m.movesAgain("its crew speaks")
}

// take takes what the crew of a slice reports.
func (m *machine) take(s *Slot, r events.CrewReport) {
	switch r.Report {
	case events.ReportStarted:
		m.started(s, r)
	case events.ReportProgress:
		m.progress(s, r)
	case events.ReportSaved:
		m.saveAcked(r)
	case events.ReportRefused:
		m.saveRefused(r)
	case events.ReportExited:
		if m.crashed(r) { // else the line comes again, and may be of an incident before
			m.exited(s, r)
			m.noteError()
		}
	case events.ReportGaveUp:
		m.gaveUp(s, r)
	case events.ReportFinished:
		m.finished(r)
	case events.ReportNotice:
		m.crewNotice(s, r)
	}
}

// runsIn takes from a crew's report that training runs in its slice, though nobody admitted it.
func (m *machine) runsIn(s *Slot, r events.CrewReport) {
	if runs := r.Report == events.ReportStarted || r.Report == events.ReportProgress || r.Report == events.ReportSaved; runs && s.names(r) {
		m.trains(s, false)
	}
}

// recordsTraining takes from a crew's record on its machine that training runs in its slice. A crew begins nothing there before the lease
// names the slice, whether or not the write was answered.
func (m *machine) recordsTraining(s *Slot, attempt int) {
	led := s.Admission == AwaitsAdmission || m.w.leaseNamesOtherZone(s) && attempt >= s.Leased
	m.trains(s, led)
}

// trains notes that training runs in a slice that Pitstop created, or that waits for admission, though nobody admitted it. A crew
// whose life has replaced the one that the lease names takes the lease over after a while. So does a crew where Pitstop never wrote
// a lease. Led says that the lease is known to name the slice: a line does not show that.
func (m *machine) trains(s *Slot, led bool) {
	if s.Maker == "" && !led || s.Condition == Gone || s.Condition == Lost {
		return // or the line is late, and the training has ended since
	}
	if m.phase() == Clearing && s.IsReleased() {
		return // its owner has deleted the slice that it replaces: it goes, whoever trains there
	}
	s = m.slice(s.Name)
	if led {
		s.markAdmitted()
	}
	if m.phase() == Clearing {
		m.spareRunningTraining(s)
		return
	}
	s.Maker = ""
}

// spareRunningTraining excludes from a clean-up a slice whose crew has taken the lease over, and every slice that trains with it:
// no slice of a Multislice trains alone. Where one of them may be in deletion it excludes none; the crew's next line tries again.
func (m *machine) spareRunningTraining(s *Slot) {
	with := func(o Slot) bool { // it trains with that slice
		return (o.Maker != "" || o.Name == s.Name) && !o.IsReleased() && o.Condition != Gone && o.Condition != Lost
	}
	if m.w.effect(events.ActionDelete, s.Name) == nil {
		s.Maker = ""
		return
	}
	if m.w.has(func(effect Effect) bool { return effect.Action == events.ActionDelete && m.mayDeleteSome(effect, with) }) {
		return
	}
	var kept []string
	for _, o := range m.w.Slices {
		if with(o) {
			kept = append(kept, o.Name)
		}
	}
	for _, name := range kept {
		o := m.slice(name)
		o.Maker, o.ToReplace = "", false
		m.drop(events.ActionDelete, name)
	}
	m.decided("keep "+strings.Join(kept, ", "), "its crew says that training runs there")
	m.cleared(m.slice(s.Name))
}

// mayDeleteSome reports whether a deletion may still take one of some slices, alone or with leftovers that go with it.
func (m *machine) mayDeleteSome(effect Effect, some func(Slot) bool) bool {
	anyOf := func(is func(Slot) bool) bool {
		return slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return effect.Concerns(s.Name) && is(s) })
	}
	goes := anyOf(func(s Slot) bool { return s.leftBehind() && !some(s) })
	return anyOf(some) && (goes || effect.UnderWay(m.now) || !m.outlived(&effect))
}

// began notes that an attempt has begun.
func (m *machine) began(r events.CrewReport) {
	if r.Attempt > m.w.Crew.Attempt {
		m.w.Crew.Attempt, m.w.Crew.Started, m.changed = r.Attempt, m.when(), true
	}
	m.goesFurther(r.Attempt)
}

// stepped keeps the last step of the newest attempt. It reports whether the line brings one.
func (m *machine) stepped(r events.CrewReport) bool {
	p := &m.w.Progress
	same := r.Attempt == p.Attempt
	// No attempt goes back that far, or does fewer steps for that long: the kept step is none.
	denied := same && (r.Step < p.Step/2 && m.when().After(p.At) || r.Step < p.Step && m.when().Sub(p.At) > staleStep)
	if m.outdated(r.Attempt, p.Attempt, p.At) || same && r.Step <= p.Step && r.CheckpointStep <= p.CheckpointStep && !denied {
		return false
	}
	before := *p
	m.stepBelies(r.Attempt)
	if denied || r.Attempt < before.Attempt {
		p.High, p.CheckpointStep = 0, p.Verified
	}
	p.Step, p.Attempt, p.At = r.Step, r.Attempt, later(p.At, m.when())
	p.High = max(p.High, r.Step)
	if p.CheckpointStep > p.High { // nobody saves a step that nobody has done
		p.CheckpointStep = p.Verified
	}
	p.CheckpointStep = max(p.CheckpointStep, r.CheckpointStep)
	m.checkpointTold(before, r, p.At)
	m.goesFurther(r.Attempt)
	c := &m.w.Crew
	c.Attempt, m.changed = max(c.Attempt, r.Attempt), true
	if p.At.After(c.Left) {
		c.Theirs = false // it does steps since a person took it over
	}
	if p.At.After(c.Claim.At) {
		c.Claim = Claim{} // it does steps, so it has not ended
	}
	return true
}

// crashed keeps the end of an attempt that did not end well. The worker that failed first counts, whichever line comes first. It
// reports whether the end of the attempt is news.
func (m *machine) crashed(r events.CrewReport) bool {
	c, at := &m.w.Crew, m.when()
	if r.ExitCode == 0 && r.Signal == "" || m.outdated(r.Attempt, c.Exited, c.Error.At) {
		return false
	}
	was, e := c.Error, Error{Attempt: r.Attempt, At: at, Sign: r.Sign(), High: m.w.Progress.High, Exit: r.Exit()}
	if r.Attempt == c.Exited {
		if was.Attempt != r.Attempt || !at.Before(was.At) {
			return false
		}
		e.High = was.High
	}
	c.Error, m.changed = e, true
	if r.Attempt == c.GaveUp {
		c.Spent = e // the line about giving up came before this one
	}
	if r.Attempt == c.Exited {
		if in := m.w.Incident; in != nil && in.Error == was {
			m.inc().Error = e
		}
		return false
	}
	c.Exited, c.Attempt = r.Attempt, max(c.Attempt, r.Attempt)
	return true
}

func (m *machine) started(s *Slot, r events.CrewReport) {
	m.began(r)
	in := m.w.Incident
	if in == nil || r.Attempt <= in.BaseAttempt {
		return
	}
	switch m.phase() {
	case Resuming, Restarting, Watching, Window, Healing:
		m.seenOnce(fmt.Sprintf("crew on %d of %s of %s: attempt %d runs from step %s",
			max(r.Workers, 1), count(max(s.Workers, 1), "worker"), s.Name, r.Attempt, events.Number(r.Step)))
	}
}

// progress keeps the last step, and ends an incident whose training goes on. It refills no budget: a line proves no progress.
func (m *machine) progress(s *Slot, r events.CrewReport) {
	before, at := m.w.Progress, m.when()
	if s.ToReplace { // its steps before the loss count, and confirm nothing
		if at.Before(s.Since) {
			m.stepped(r)
		}
		return
	}
	if !m.stepped(r) {
		return // an older line
	}
	if gap := at.Sub(before.At); m.w.Incident == nil && !before.At.IsZero() && r.Attempt == before.Attempt && r.Step > before.Step {
		m.w.Progress.GapSeconds = max(before.GapSeconds, int64(min(gap, longestGap)/time.Second))
	}
	m.confirm(r.Step, r.Attempt, at)
	m.doubtBaseline(at)
}

// staleStep is longer than the crews of several slices take to report one after another.
const staleStep = 11 * time.Minute

// longestGap bounds how much a single gap counts as a forecast of the next ones.
const longestGap = 6 * time.Hour

// confirm ends the open incident if this progress proves that its trouble is over.
func (m *machine) confirm(step int64, attempt int, at time.Time) {
	in := m.w.Incident
	// The attempt does not matter, as long as no other one has begun since: an attempt that began and ended before the trouble may never
	// have been reported.
	followed := attempt < m.w.Crew.Attempt && at.Before(m.w.Crew.Started)
	if in == nil || step <= in.Baseline && !m.noBaseline(step) || followed || !at.After(m.lastTrouble()) || !m.stepsConfirm(attempt, at) {
		return
	}
	if step <= in.Baseline {
		in = m.inc()
		in.Baseline = 0
	}
	if m.phase() == Watching {
		m.finish(Observed, ByStep, m.watchCode(), "training goes on: "+pastBaseline(step, in.Baseline), "")
		return
	}
	m.resumed(ByStep, pastBaseline(step, in.Baseline))
}

// noBaseline reports whether a step shows that nobody had reached the baseline, where no directory can tell: no training goes back that far.
func (m *machine) noBaseline(step int64) bool {
	in := m.w.Incident
	return m.w.Directory == "" && step < in.Baseline/2
}

// doubtBaseline has Pitstop read what stands beside the checkpoints where steps do not pass a baseline of which only lines tell.
func (m *machine) doubtBaseline(at time.Time) {
	in := m.w.Incident
	if in == nil || m.phase() != Resuming || in.Baseline <= m.w.Progress.Verified || m.w.Progress.Step > in.Baseline || !at.After(m.lastTrouble()) {
		return
	}
	if in.HeardAt.IsZero() || m.now.Sub(in.HeardAt) >= FarEvery {
		m.askForVerdict("no step is past " + events.Number(in.Baseline) + ", of which only lines tell")
	}
}

// boundBaseline lowers what lines told of checkpoints to the newest step that stands in the directory: a training resumes from no later one.
// It reports whether the baseline was above that step.
func (m *machine) boundBaseline(step int64) bool {
	p := &m.w.Progress
	if p.CheckpointStep > step {
		p.CheckpointStep, m.changed = step, true
	}
	if m.w.Incident.Baseline <= step {
		return false
	}
	m.inc().Baseline = step
	m.line(LineCame, "the newest checkpoint is "+events.Number(step)+", so a step past it is progress", "")
	return true
}

// stepsConfirm reports whether an attempt's steps at that time confirm that the training goes on in this phase. While a slice
// cannot be used, the reports may come from a zombie: the API decides.
func (m *machine) stepsConfirm(attempt int, at time.Time) bool {
	in := m.w.Incident
	switch m.phase() {
	case Resuming, Restarting:
		return true
	case Admitting:
		return !m.awaitsAdmission()
	case Healing, Starting:
		return m.onlyOrderedMissing()
	case Looking: // a worker's clock may go before, and the API has not been read since
		return m.mayTrainWhole() && at.Sub(m.lastTrouble()) >= SickFor
	case Window:
		return m.mayTrainWhole() && !in.Down.IsZero() && attempt > in.BaseAttempt
	case Approving:
		return m.asksAboutTraining()
	case Watching:
		return m.allReady() && !m.isToCome()
	}
	return false
}

// onlyOrderedMissing reports whether no slice is missing that ever trained. One that its owner has ordered, and that was never usable,
// did not train.
func (m *machine) onlyOrderedMissing() bool {
	others := func(s Slot) bool { return s.isMissed() && !s.NeverUsable }
	return !slices.ContainsFunc(m.w.Slices, others) && !m.awaitsAdmission()
}

// asksAboutTraining reports whether a person is asked something that a training which goes on answers. Where they are asked about
// maintenance, that is still to come.
func (m *machine) asksAboutTraining() bool {
	asked := m.w.Incident.Asked
	return asked == events.ActionRestart || asked == events.ActionDelete && m.allReady()
}

// mayTrainWhole reports whether training may run in every slice that somebody waits for.
func (m *machine) mayTrainWhole() bool { return m.allReady() && !m.awaitsAdmission() }

// isToCome reports whether the announced event that the incident is about has stopped no training yet.
func (m *machine) isToCome() bool {
	in := m.w.Incident
	return in.Down.IsZero() && (in.Cause == events.CauseMaintenance || in.Cause == events.CauseEnd) && m.anyAnnounced()
}

// awaitsAdmission reports whether a slice waits for admission: the others do the steps, without it.
func (m *machine) awaitsAdmission() bool {
	return slices.ContainsFunc(m.w.Slices, func(s Slot) bool {
		return m.w.leaseNamesOtherZone(&s) && !s.IsReleased() && s.Admission != LeftToPerson
	})
}

func pastBaseline(step, baseline int64) string {
	return "step " + events.Number(step) + " > " + events.Number(baseline)
}

// lastTrouble is when the last trouble happened, without troubles that are only announced.
func (m *machine) lastTrouble() time.Time {
	in := m.w.Incident
	last := in.Down
	for _, t := range in.Troubles {
		if !t.Announced && t.At.After(last) {
			last = t.At
		}
	}
	if last.IsZero() {
		last = in.Opened
	}
	return last
}

// exited takes the new end of a training process. The first worker to fail is the cause; the failures of its siblings are
// consequences.
func (m *machine) exited(s *Slot, r events.CrewReport) {
	t := Trouble{Cause: events.CauseCrash, Slice: s.Name, Life: s.Incarnation.ID, At: m.when(), Text: r.Describe()}
	if r.Interrupted {
		t.Cause = events.CauseUnknown // somebody or something ended it: that is the machine's trouble
	}
	in := m.w.Incident
	if in == nil {
		// A crew that gave up after this attempt has already reported its end.
		if m.mayOpen(s) && !m.reportedBefore() && s.Condition != Gone && s.Condition != Lost && r.Attempt > m.w.Crew.GaveUp {
			m.openCrash(t)
		}
		return
	}
	if !r.Interrupted && m.onlyAnnounced() {
		m.trouble(t, s.Incarnation)
		m.line(LineSeen, t.Text, fmt.Sprintf("the crew restarts it, %d restarts left", r.RestartsLeft))
		m.inc().BaseAttempt = max(in.BaseAttempt, r.Attempt)
		return
	}
	m.stopped(m.when())
	switch m.phase() {
	case Resuming, Restarting, Looking, Admitting:
		m.trouble(t, s.Incarnation)
		m.line(LineSeen, t.Text, fmt.Sprintf("the crew restarts it, %d restarts left", r.RestartsLeft))
		in = m.inc()
		in.BaseAttempt = max(in.BaseAttempt, r.Attempt)
		if m.phase() == Resuming {
			m.renew()
		}
	case Window, Healing, PhaseGrace, PhaseDeleting, PhaseCreating, Saving, Maintaining, Watching, Starting:
		// Machines that end the training make no failure of the training.
		m.line(LineSeen, t.Text, "a consequence")
		m.inc().BaseAttempt = max(in.BaseAttempt, r.Attempt)
	}
}

// noteError stores the last attempt's error with the open incident.
func (m *machine) noteError() {
	if m.w.Incident != nil {
		m.inc().Error = m.w.Crew.Error
	}
}

// reportedBefore reports whether a line is older than the moment at which the training's trouble was left to a person. People
// already know of it, however late the line comes.
func (m *machine) reportedBefore() bool {
	return m.w.Crew.Theirs || !m.from.Time.IsZero() && !m.from.Time.After(m.w.Crew.Left)
}

func (m *machine) openCrash(t Trouble) {
	in := m.open(t)
	in.BaseAttempt = max(in.BaseAttempt, m.w.Crew.Exited)
	in.Down = t.At
	m.takeOrWatch(t.Text, "leave the restart to the crew, and ask it for one when it has given up", func(m *machine) {
		m.enter(Resuming)
		m.line(LineSeen, t.Text, "")
		m.decided("incident opened: training crash; the crew restarts it", "the slice lives, so its crew acts first")
		m.settle() // a slice that cannot be used comes before its training
	})
}

// gaveUp notes a line that says that the crew's own restarts are spent. The line opens an incident, once in DoubtFor until a verdict
// confirms such a line. A restart is spent on it only when the crew's verdict says the same.
func (m *machine) gaveUp(s *Slot, r events.CrewReport) {
	claim := m.w.Crew.Claim
	late := m.outdated(r.Attempt, m.w.Crew.Attempt, m.w.Crew.Started)
	if r.Attempt <= m.w.Crew.GaveUp || r.Attempt == claim.Attempt || m.outdated(r.Attempt, claim.Attempt, claim.At) {
		return
	}
	opens := m.w.Incident == nil
	if opens {
		if late || !m.mayOpen(s) || m.reportedBefore() {
			return
		}
		if doubted := m.w.Crew.Doubted; !doubted.IsZero() && m.now.Sub(doubted) < DoubtFor {
			m.claim(Claim{Attempt: r.Attempt, At: m.when()})
			return
		}
		m.w.Crew.Doubted = m.now
		m.openCrash(Trouble{Cause: events.CauseCrash, Slice: s.Name, Life: s.Incarnation.ID, At: m.when(), Text: r.Describe()})
	}
	if p := m.phase(); p != Resuming && p != Watching && !m.onlyAnnounced() {
		if opens {
			m.claim(Claim{Attempt: r.Attempt, At: m.when()}) // the line opens no second incident
		}
		return
	}
	m.w.Crew.Attempt, m.changed = max(m.w.Crew.Attempt, r.Attempt), true
	m.line(LineSeen, "crew: gave up", r.Reason)
	switch {
	case late: // another attempt has begun since: its outcome counts
	case m.phase() == Watching && !m.onlyHangs():
		m.rehearseRestart()
		m.finish(Observed, "", m.watchCode(), "the crew says that it has given up, and the policy allows nothing", "")
	default:
		m.claim(Claim{Attempt: r.Attempt, At: m.when()})
		m.askForVerdict("a line alone proves nothing")
	}
}

// restart asks the crew for a new attempt, within the training budget of the workload.
func (m *machine) restart(why string) {
	if m.unreadable() {
		return
	}
	in := m.w.Incident
	switch {
	case m.w.Crew.Finished:
		m.resumed(ByStep, "the training is finished")
	case (m.w.mayBeDone() || m.w.Budgets.Restarts >= MaxRestarts) && m.waitForVerdict(why):
	case m.w.Budgets.Restarts >= MaxRestarts:
		m.escalate(CodeBudget, fmt.Sprintf("%s; %d restarts were asked for without progress past step %s", why, MaxRestarts, events.Number(in.Baseline)),
			"read the training's own log and mend it; a verified checkpoint of a new step refills the budget")
	case len(m.restartedToday()) >= m.p.DailyRestarts():
		m.rehearseRestart()
		m.escalate(CodeRestartsADay, fmt.Sprintf("%s; the policy allows %d restarts a day, and all are spent", why, m.p.DailyRestarts()),
			"find out why it needs so many; restart it by hand, or raise restarts_per_day in the policy")
	case in.Cause == events.CauseHang && m.p.Hang != policy.HangRestart && m.w.Crew.GaveUp < m.w.Crew.Attempt:
		m.rehearseRestart()
		m.escalate(CodeHangReport, why+", and "+hangReport, "restart the training by hand, or set hang: restart in the policy")
	case m.level(policy.Restart) == policy.No:
		m.rehearseRestart()
		m.escalate(CodePolicyNo, why+", and "+m.no(policy.Restart), "restart the training by hand, or allow the switch restart")
	case m.w.Directory == "":
		m.escalate(CodeNoLease, why+", and without a checkpoint directory there is no lease through which a crew could be asked",
			"restart the training by hand; name its directory by "+events.MetadataCheckpointDir)
	case m.level(policy.Restart) == policy.Ask:
		m.ask(events.ActionRestart)
	default:
		m.sendRestart(why)
	}
}

func (m *machine) sendRestart(why string) {
	m.enter(Restarting)
	m.chargeRestart()
	m.decided(fmt.Sprintf("ask the crew for another attempt (%d of %d)", m.w.Budgets.Restarts, MaxRestarts), why)
	m.send(Effect{Action: events.ActionRestart, Reason: why})
}

// chargeRestart charges the training for another attempt.
func (m *machine) chargeRestart() {
	m.charge(&m.w.Budgets.Restarts)
	m.inc().Charged++
	m.w.Crew.Restarted = append(slices.Clip(m.restartedToday()), m.now)
}

// claimsEnd keeps a line that calls the training done and that no verdict has confirmed yet. It reports whether that is news.
func (m *machine) claimsEnd(r events.CrewReport) bool {
	c, at := m.w.Crew, m.when()
	furtherSince := m.outdated(r.Attempt, c.Attempt, c.Started) || m.w.Progress.Attempt == r.Attempt && m.w.Progress.At.After(at)
	switch {
	case c.Finished, r.Attempt <= c.NotDone, c.Claim.Finished && m.outdated(r.Attempt, c.Claim.Attempt, c.Claim.At), furtherSince:
		return false
	case c.Claim.Finished && r.Attempt == c.Claim.Attempt:
		if at.After(c.Claim.At) {
			m.w.Crew.Claim.At, m.changed = at, true // another slice's crew says so later: no earlier step withdraws the claim
		}
		return false
	}
	m.claim(Claim{Attempt: r.Attempt, Finished: true, At: at})
	return true
}

// finished notes a line that says that the training is done. Care goes on until the crew's verdict confirms it.
func (m *machine) finished(r events.CrewReport) {
	if !m.claimsEnd(r) {
		return
	}
	if m.w.Incident == nil {
		return
	}
	switch m.phase() {
	case PhaseDeleting, PhaseCreating, Clearing, Admitting:
		return // work under way is completed, and the verdict is read when it matters
	case Watching:
		m.line(LineSeen, r.Describe(), "the crew's verdict decides")
	default:
		m.line(LineSeen, r.Describe(), "")
		m.askForVerdict("a line alone ends no care")
	}
}

// crewNotice takes what the metadata server told a crew. The line is written where users' code runs, so it may start a save or a
// look and nothing more.
func (m *machine) crewNotice(s *Slot, r events.CrewReport) {
	if r.Notice != nil {
		m.noticed(Noticed{Origin: m.from, Slice: s.Name, Incarnation: s.Incarnation, Notice: *r.Notice, Text: r.Describe()})
	}
	if r.Preempted {
		m.interrupted(Interrupted{
			Origin: m.from, Slice: s.Name, Incarnation: s.Incarnation, Cause: events.CausePreemption, Text: r.Describe(),
		})
	}
}
