//go:build !heart

package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Heard is the state of a slice's crew when Pitstop listened for it without the log: from the crew's record on its machine.
type Heard struct {
	At time.Time `json:"at,omitzero"`
	// Seen is when the crew wrote the record; zero where nothing could be read, which proves nothing. Runs says that the crew runs
	// the training, and Attempt which attempt.
	Seen    time.Time `json:"seen,omitzero"`
	Runs    bool      `json:"runs,omitzero"`
	Attempt int       `json:"attempt,omitzero"`
}

// runs reports whether the crew reported a running training just before Pitstop listened.
func (h Heard) runs() bool { return h.Runs && h.At.Sub(h.Seen) < HeardFor }

// patience is three times the longest gap seen between two steps.
func (p Progress) patience() time.Duration { return 3 * time.Duration(p.GapSeconds) * time.Second }

// silence is the time of the last sign of a step, and how long a silence is still usual: three times the longest gap seen, and more
// before the first step of an attempt and as long as no gap was seen.
func (w Workload) silence() (since time.Time, usual time.Duration) {
	p := w.Progress
	later := func(t time.Time) {
		if t.After(since) {
			since = t
		}
	}
	later(p.At)
	later(p.Stepped)
	later(w.Crew.Started)
	for i := range w.Slices {
		later(w.Slices[i].Since)
	}
	usual = max(HangFor, p.patience())
	if w.Crew.Attempt > p.Attempt {
		usual = max(usual, ResumeFor)
	}
	if p.GapSeconds == 0 {
		usual = max(usual, NoGapFor)
	}
	return since, usual
}

// stepsAt reports whether the last step is no longer ago than is usual.
func (w Workload) stepsAt(now time.Time) bool {
	return now.Sub(w.Progress.At) < max(HangFor, w.Progress.patience())
}

// stepsExpected reports whether a training that has done steps has to do more of them, and no person has heard of a standstill.
func (w Workload) stepsExpected() bool {
	if w.Incident != nil || w.Crew.Theirs || w.Crew.Seen.IsZero() || w.Progress.At.IsZero() || w.Crew.Finished || w.claimsDone() && w.probes() || len(w.Slices) == 0 {
		return false
	}
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Condition != Ready || w.leftAlone(s) {
			return false
		}
	}
	since, _ := w.silence()
	return since.After(w.Progress.StallReported)
}

// hushed reports whether a training has done no step for longer than is usual. Lines may be lost or late, so Pitstop has to listen
// for its crew.
func (w Workload) hushed(now time.Time) bool {
	since, usual := w.silence()
	return now.Sub(since) >= usual && w.stepsExpected()
}

// doubted reports whether the time for a report of progress is nearly over.
func (w Workload) doubted(now time.Time) bool {
	in := w.Incident
	return in != nil && w.phase() == Resuming && !w.Crew.Seen.IsZero() && !in.Deadline.IsZero() && !now.Before(in.Deadline.Add(-ListenAgain))
}

// stillStepping reports whether the training of an incident has lately done steps, though none past the baseline: by its lines, or
// by the crew's record on its machine where no line comes. The wait for progress has an end all the same.
func (m *machine) stillStepping() bool {
	in, at := m.w.Incident, later(m.w.Progress.Stepped, m.w.Progress.At)
	lately := m.now.Sub(at) < max(HeardFor+ListenAgain, m.w.Progress.patience())
	return at.After(in.Since) && at.After(m.lastTrouble()) && lately && m.now.Sub(in.Since) < HealFor
}

// rewound reports whether a training still does steps, by its lines, after the time in which it ought to have passed its last save:
// its owner has rewound it, or it has begun again.
func (m *machine) rewound() bool {
	in, p := m.w.Incident, m.w.Progress
	return p.Attempt >= in.BaseAttempt && p.At.After(in.Since) && p.At.After(m.lastTrouble()) && m.w.stepsAt(m.now) && m.now.Sub(in.Since) >= HealFor
}

// acceptRewind accepts the training's present steps as its progress: the later checkpoints do not belong to it.
func (m *machine) acceptRewind() {
	p := &m.w.Progress
	p.High, p.CheckpointStep, p.CheckpointAt = p.Step, 0, time.Time{}
	p.Verified, p.VerifiedAt, p.VerifiedURI, p.VerifiedBytes = 0, time.Time{}, "", 0
	p.Proven = min(p.Proven, p.Step)
	m.resumed(ByStep, "training has gone on for "+events.Span(HealFor)+", at step "+events.Number(p.Step)+", though not "+pastBaseline(p.Step, m.w.Incident.Baseline))
}

// listened is when Pitstop has to listen for the crews again; zero where it suspects nothing.
func (w Workload) listened() time.Time {
	since, usual := w.silence()
	var last time.Time
	for i := range w.Slices {
		if at := w.Slices[i].Heard.At; !at.Before(since.Add(usual)) && (last.IsZero() || at.Before(last)) {
			last = at
		}
	}
	if last.IsZero() || !w.stepsExpected() {
		return time.Time{}
	}
	return last.Add(ListenAgain)
}

// noteStep counts a step that a crew records on its machine: it shows that nothing hangs. It does not confirm the end of an
// incident, because lines of users alone come in order.
func (m *machine) noteStep(e Beat) {
	s := m.w.Slice(e.Slice)
	doubt, _, _ := m.w.doubt(m.now)
	if s == nil || !e.Incarnation.Same(s.Incarnation) || doubt == "" {
		return
	}
	clamped := func(t time.Time) time.Time {
		if t.After(m.now) {
			return m.now
		}
		return t
	}
	s = m.slice(s.Name)
	s.Heard = Heard{At: m.now, Seen: clamped(e.Seen), Runs: e.Runs, Attempt: e.Attempt}
	if s.Heard.runs() {
		m.recordsTraining(s, e.Attempt) // its line may be missing
	}
	if at := clamped(e.StepAt); at.After(m.w.Progress.Stepped) && at.After(m.w.Progress.At) {
		m.w.Progress.Stepped = at
	}
}

// hangs opens an incident for a training that does no steps, on a machine that the API calls usable.
func (m *machine) hangs() {
	if !m.w.hushed(m.now) {
		return
	}
	since, usual := m.w.silence()
	for i := range m.w.Slices {
		if m.w.Slices[i].Heard.At.Before(since.Add(usual)) {
			return // Pitstop listens for its crew first
		}
	}
	runs, read := m.crewsHeard()
	silent := m.now.Sub(since)
	early := silent < usual+Grace
	text := "no step past " + events.Number(m.w.Progress.Step) + " for " + events.Span(silent) + ", "
	switch {
	case early && (!runs || m.p.Unreadable != ""):
		return // the log's lines may come late, and somebody may fix the policy
	case runs:
		text += "and the crew says that the training runs"
	case read:
		text += "and no crew says that the training runs"
	default:
		text += "and what the crew writes on its machine cannot be read"
	}
	m.open(Trouble{Cause: events.CauseHang, Slice: m.w.Slices[0].Name, Life: m.w.Slices[0].Incarnation.ID, At: since, Text: text})
	m.stopped(since)
	if m.w.mayBeDone() && m.waitForVerdict(text+", and the training may be finished") {
		return
	}
	m.decideHang(text)
}

// decideHang goes on with a training that stands still, as far as its crews report.
func (m *machine) decideHang(text string) {
	runs, read := m.crewsHeard()
	why := ""
	switch {
	case m.p.Unreadable != "":
		why = policyHeld + m.p.Unreadable
	case m.watchOnly():
		why = "the policy allows nothing"
	case m.p.Hang != policy.HangRestart:
		why = hangReport
	case !runs && !read:
		why = hangUnproven
	}
	if why != "" {
		m.enter(Watching)
		m.line(LineSeen, text, "")
		m.rehearseRestart()
		m.decided("incident opened: the training hangs; would: ask the crew for another attempt", why)
		m.coded(m.watchCode())
		if why == hangUnproven {
			m.watchSaves()
		}
		return
	}
	m.enter(Resuming)
	m.line(LineSeen, text, "")
	m.decided("incident opened: the training hangs", "")
	if m.w.Progress.Verified == 0 && m.w.Progress.CheckpointStep == 0 {
		m.escalate(CodeNoCheckpoint, text+"; and there is no checkpoint from which another attempt could go on", "look at the training: py-spy dump, or SIGQUIT")
		return
	}
	m.restart(text)
}

// watchesHang reports whether an incident was opened for a hang, and is watched.
func (m *machine) watchesHang() bool {
	return m.phase() == Watching && m.w.Incident.Troubles[0].Cause == events.CauseHang
}

// onlyHangs reports whether an incident is watched only for its hang. The policy decides about everything else.
func (m *machine) onlyHangs() bool {
	return m.watchesHang() && m.p.Unreadable == "" && !m.watchOnly()
}

// hangsNoMore ends the watch over a hang once the crew's verdict says that it gave up. No process hangs then, and the switch restart
// decides.
func (m *machine) hangsNoMore() {
	if m.onlyHangs() {
		m.enter(Resuming)
		m.settle() // a slice that cannot be used comes before its training
	}
}

// crewsHeard says whether a crew's guest attribute reports a running training, and whether all attributes could be read.
func (m *machine) crewsHeard() (runs, read bool) {
	read = true
	for i := range m.w.Slices {
		h := m.w.Slices[i].Heard
		read = read && !h.Seen.IsZero()
		runs = runs || h.runs()
	}
	return runs, read
}

const (
	hangReport   = "the policy's hang is report"
	hangUnproven = "it is not known that the training stands still"
)

// counts says which checkpoints count in a look: those past a step, or any.
func (w Workload) counts() (moreThan int64, every bool) {
	if w.phase() == Watching || w.phase() == Resuming && (&machine{w: w}).unanswering() { // somebody may have taken it back to an older step
		return 0, true
	}
	return w.verifyPast(), false
}

// newerThan is what a checkpoint has to be newer than to show that a training goes on which tells of no step. What was begun before may be
// complete only after that.
func newerThan(since time.Time) time.Time { return since.Add(ResumeFor) }

// watchSaves looks for a checkpoint of a training that is heard by its lines alone, where it may be begun again unasked: lines may be lost, and
// what it saves shows that it goes on.
func (m *machine) watchSaves() {
	if m.w.provider().onlyLines && m.w.Directory != "" && m.mayBeginAgain() {
		since, _ := m.w.silence()
		m.send(Effect{Action: events.ActionVerify, Reason: "no step is told", By: newerThan(since)})
	}
}

// mayBeginAgain reports whether a training that stands still may be begun again without a question. While a person is asked, a training whose
// lines are lost may go on.
func (m *machine) mayBeginAgain() bool {
	return m.p.Hang == policy.HangRestart && m.level(policy.Restart) == policy.Yes
}

// savedWhileWatched ends the watch over a hang: what was saved since shows that the training goes on, and that its lines are lost. Where a
// slice cannot be used the watch goes on.
func (m *machine) savedWhileWatched(e Checked) {
	if !m.allReady() {
		return
	}
	m.finish(Observed, ByCheckpoint, m.watchCode(), "checkpoint "+events.Number(e.Step)+" is newer than the last step that was told: the training goes on, and its lines do not come",
		"find out why its lines do not come; until one does, no hang of it is told")
}

// foundNoSave takes a look that found nothing new while a hang is watched. The training is begun again once it has saved nothing for twice
// the time in which it saves. Until then the watch goes on: it keeps all other care.
func (m *machine) foundNoSave(e Checked) {
	effect, p := m.w.effect(events.ActionVerify, ""), m.w.Progress
	began := m.w.Incident.Troubles[0].At
	since, _ := m.w.silence()
	switch {
	case m.p.Unreadable != "", !e.None && (!e.Stale || e.Saves == nil):
		m.lookLater(m.now.Add(backoff(effect.Failures+1)), e.Text)
	case e.None:
		m.looksNoMore("nothing was ever saved")
	case !m.onlyHangs(), !m.mayBeginAgain():
		m.looksNoMore("the policy does not allow to begin it again")
	case later(later(p.At, p.Stepped), m.w.Crew.Started).After(began), m.w.speaksUnbound(began):
		m.looksNoMore("its crew has spoken since")
	case newerThan(since).After(effect.By): // a slice could not be used for a while
		m.drop(events.ActionVerify, "")
		m.watchSaves()
	default:
		m.saves(e.Step, e.At, e.URI, e.Bytes)
		m.hangsUnsaved(since, m.savesEvery(e.Saves, began))
	}
}

// lookLater repeats a look for a checkpoint at a time.
func (m *machine) lookLater(at time.Time, why string) {
	effect := m.effect(events.ActionVerify, "")
	effect.Begun, effect.RequestID, effect.LastFailure, effect.Retry = time.Time{}, "", why, at
	effect.Failures++
}

// speaksUnbound reports whether a crew whose life is not known has written since a moment.
func (w Workload) speaksUnbound(since time.Time) bool {
	return slices.ContainsFunc(w.Unbound, func(k Unbound) bool { return k.Time.After(since) })
}

// looksNoMore ends the look for a checkpoint. The watch goes on.
func (m *machine) looksNoMore(why string) {
	m.drop(events.ActionVerify, "")
	m.line(LineCame, "no new checkpoint shows whether it stands still", why)
}

// enoughSaves is how many checkpoints of its present lives tell how often a training saves.
const enoughSaves = 3

// savesEvery is the longest time between two checkpoints of the present lives, or between the last of them and the time of the last step. It is
// zero where too little is known: how often an earlier life saved says nothing of this one, and a training may save more often at its
// beginning.
func (m *machine) savesEvery(saves []time.Time, last time.Time) (most time.Duration) {
	var born time.Time
	for i := range m.w.Slices {
		if s := &m.w.Slices[i]; !s.IsReleased() {
			born = later(born, s.Incarnation.Created)
		}
	}
	saves = slices.DeleteFunc(slices.Clone(saves), func(t time.Time) bool { return !t.After(born) || t.After(last) })
	if len(saves) < enoughSaves || last.Sub(born) < NoGapFor {
		return 0
	}
	for i, next := range append(saves[1:len(saves):len(saves)], last) {
		most = max(most, next.Sub(saves[i]))
	}
	return most
}

// hangsUnsaved goes on with a training that tells of no step and has saved nothing since.
func (m *machine) hangsUnsaved(since time.Time, every time.Duration) {
	until := newerThan(since).Add(2 * every)
	switch {
	case every == 0:
		m.looksNoMore("it has not saved " + events.Number(enoughSaves) + " times in its present life, so how often it saves is not known")
		m.coded(CodeSavesUnknown)
	case m.now.Before(until):
		m.lookLater(until, "nothing new is saved")
		m.inc().Deadline = later(m.w.Incident.Deadline, until.Add(ResumeFor))
		m.decided("look for a new checkpoint at "+until.UTC().Format(time.RFC3339), "by then it has saved nothing for twice the longest time between two of its checkpoints")
	case !m.allReady():
		m.lookLater(m.now.Add(CheckFor), "a slice cannot be used")
	default:
		m.enter(Resuming)
		m.restart(m.w.Incident.Troubles[0].Text + ", and nothing was saved in the last " + events.Span(m.now.Sub(newerThan(since))))
		if m.phase() == Restarting {
			m.inc().StoodAt = m.now
		}
	}
}

// movesAgain takes a sign that a training which stood still may do so no longer. The request for another attempt is taken back, unless the
// call may be made by now.
func (m *machine) movesAgain(why string) {
	in := m.w.Incident
	if in == nil || in.StoodAt.IsZero() {
		return
	}
	called := func(effect Effect) bool {
		return effect.Action == events.ActionRestart && (effect.Maybe || !effect.Begun.IsZero())
	}
	if m.w.has(called) {
		m.inc().StoodAt = in.StoodAt.Add(-SavedFor) // if no call was made, it is looked at again before the next one
		return
	}
	m.uncharge(events.ActionRestart)
	m.watchOn(why)
}

// watchesAgain looks once more at what a training saves, right before the crew is asked for another attempt. It does so where the last look
// is too long ago, the policy has changed, or somebody has spoken, and reports whether it does.
func (m *machine) watchesAgain(effect *Effect) bool {
	at := m.w.Incident.StoodAt
	if at.IsZero() || effect.Action != events.ActionRestart || effect.Maybe || !effect.Begun.IsZero() || m.mayBeginAgain() && m.now.Sub(at) < SavedFor && !m.w.speaksUnbound(at) {
		return false
	}
	m.uncharge(events.ActionRestart)
	m.watchOn("what was decided " + events.Span(m.now.Sub(at)) + " ago may have changed")
	return true
}

// watchOn goes back to the watch over a hang, and to what the training saves.
func (m *machine) watchOn(why string) {
	m.enter(Watching)
	m.decided("watch on", why)
	m.watchSaves()
}

// unanswering reports whether no line has come of the attempt that a training which hangs was asked for, and only lines could tell of it. A
// further request might end an attempt that trains.
func (m *machine) unanswering() bool {
	in, c := m.w.Incident, m.w.Crew
	return m.w.provider().onlyLines && !c.Seen.IsZero() && in.Cause == events.CauseHang && in.Charged > 0 && c.Attempt < c.LeaseAttempt
}
