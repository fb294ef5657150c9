package incident

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
)

// A gang is torn where one of its workers was made anew while others ran on: the others may wait for it, and it for them, without an end.
// A crew tells that by its steps. Where no crew was ever heard, only a new checkpoint shows that the training goes on.

// torn names the slices that are usable and torn, and since when the workload has been so.
func (w Workload) torn() (names []string, since time.Time) {
	for i := range w.Slices {
		if s := &w.Slices[i]; !s.Torn.IsZero() && s.Condition == Ready && !s.IsReleased() {
			names, since = append(names, s.Name), later(since, later(s.Torn, s.Since))
		}
	}
	return names, since
}

// tornWithoutCrew is torn, where no crew can tell of steps.
func (m *machine) tornWithoutCrew() (text string, since time.Time) {
	names, since := m.w.torn()
	if names == nil || !m.w.Crew.Seen.IsZero() {
		return "", time.Time{}
	}
	return fmt.Sprintf("a %s of %s was made anew while others ran on", m.w.Words().Worker, strings.Join(names, ", ")), since
}

// openTorn opens an incident for a gang that has been torn for a while. A tear that another incident has seen opens none.
func (m *machine) openTorn() {
	text, since := m.tornWithoutCrew()
	if text == "" || m.now.Sub(since) < ResumeFor || !m.allReady() {
		return
	}
	for i := range m.w.Slices {
		s := &m.w.Slices[i]
		if s.Torn.IsZero() || !s.Torn.After(m.w.Ended) || !m.mayOpen(s) {
			continue
		}
		m.open(Trouble{Cause: events.CauseUnknown, Slice: s.Name, Life: s.Incarnation.ID, At: s.Torn, Text: text, Proven: true})
		m.stopped(s.Torn)
		m.takeOrWatch(text, "look for a new checkpoint", func(m *machine) {
			m.enterUntil(Resuming, since.Add(NoGapFor))
			m.line(LineSeen, text, "")
			m.decided("incident opened: wait for a new checkpoint", "no crew can tell whether it trains")
		})
		return
	}
}

// mayStandStill gives a torn gang the time in which a training saves, and reports whether it is not over.
func (m *machine) mayStandStill() bool {
	text, since := m.tornWithoutCrew()
	until := since.Add(NoGapFor)
	if text == "" || !m.now.Before(until) {
		return false
	}
	m.inc().Deadline = until
	m.decided("wait for a new checkpoint", text)
	return true
}

// savedSince is from when on a checkpoint shows that the training goes on: what the workers that ran on were saving may have ended later.
func (m *machine) savedSince() time.Time {
	if text, since := m.tornWithoutCrew(); text != "" {
		return later(m.lastTrouble(), since.Add(SaveFor))
	}
	return m.lastTrouble()
}

// unproven ends the wait for progress where no crew can tell of it. Saved says that there is a checkpoint from before the trouble.
func (m *machine) unproven(why string, saved bool) {
	if !m.w.Crew.Seen.IsZero() { // a crew has spoken in a life before, so it ought to speak in this one
		m.restart("no crew tells of steps, and no new checkpoint is known")
		return
	}
	text, since := m.tornWithoutCrew()
	if text == "" {
		m.resumed(ByHealth, why)
		return
	}
	text += ", and no checkpoint is newer than that, " + events.Span(m.now.Sub(since)) + " ago"
	advice := "look whether it trains; if it does not, delete its " + m.w.Words().Worker + "s together"
	switch {
	case m.watchOnly():
		m.finish(Observed, "", m.watchCode(), text, "")
	case m.w.Directory == "":
		m.escalate(CodeNoLease, text+"; it names no checkpoint directory", advice)
	case !saved:
		m.escalate(CodeNoCheckpoint, text+"; and none is known from which it could go on", advice)
	default:
		m.restart(text)
	}
}

// renews reports whether a restart deletes the workers, which the provider makes anew: where no crew can be asked, or where asking the
// crews has not helped. All run, and restarts are left.
func (m *machine) renews() bool {
	if !m.w.provider().trainsAgain || !m.w.Crew.Seen.IsZero() && m.w.Incident.Charged == 0 {
		return false
	}
	return !slices.ContainsFunc(m.w.Slices, func(s Slot) bool { return !s.IsReleased() && (s.Condition != Ready || !s.Restartable) })
}

// sendRenewal has all workers deleted. The training cannot go on without each of them, so nothing newer than its last checkpoint is lost.
func (m *machine) sendRenewal(why string) {
	m.enter(Restarting)
	m.chargeRestart()
	m.decided(fmt.Sprintf("delete all its %ss, which %s makes anew (%d of %d)", m.w.Words().Worker, m.w.Words().Healer, m.w.Budgets.Restarts, MaxRestarts), why)
	m.send(Effect{Action: events.ActionRenew, Reason: why, By: m.now})
}

// cannotRenew leaves to a person what no crew can be asked for, and no provider begins anew.
func (m *machine) cannotRenew(why string) {
	m.escalate(CodeNoRestart, why+"; no crew can be asked, and no restart is left in which "+m.w.Words().Healer+" would make its "+m.w.Words().Worker+"s anew",
		"look whether it trains; if it does not, delete it and create it again by hand")
}

// notRenewed goes on where the workers could not be deleted as they were found: they are read anew, and progress is waited for once more.
// The restart stays charged, which bounds how often this happens.
func (m *machine) notRenewed(why string) {
	m.drop(events.ActionRenew, "")
	m.resume(why)
}
