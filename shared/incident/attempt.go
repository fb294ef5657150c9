//go:build !heart

package incident

import (
	"fmt"
	"time"

	"pitstop.internal/events"
)

const (
	// FarAttempt is how far an attempt of a line may be above the confirmed one. A crew counts its own restarts in the lease, so that lines
	// tell of later attempts than Pitstop has read there.
	FarAttempt = 1000
	// FarEvery is how often such lines have Pitstop read which attempt runs.
	FarEvery = time.Hour
	// DoubtFor is how long no line that the crew gave up opens an incident after one that nothing has confirmed.
	DoubtFor = 24 * time.Hour
)

// outdated reports whether a line of an attempt is older than what is known of another attempt. The higher attempt is the newer one where
// it is confirmed. Of those that only lines tell of, the later line is the newer one, for anyone may write a number.
func (m *machine) outdated(attempt, known int, at time.Time) bool {
	if attempt >= known {
		return false
	}
	confirmed := m.w.Crew.Confirmed
	return known <= confirmed || attempt < confirmed || !m.when().After(at)
}

// leaseNames notes the attempt that the lease names: no later one has begun.
func (m *machine) leaseNames(attempt int) {
	if m.w.Crew.Confirmed != attempt {
		m.w.Crew.Confirmed, m.changed = attempt, true
	}
	m.belies(attempt)
}

// records notes an attempt of which a verdict, or a crew's record on its machine, tells.
func (m *machine) records(attempt int) {
	if attempt > m.w.Crew.Confirmed && attempt <= events.MaxAttempt {
		m.w.Crew.Confirmed, m.changed = attempt, true
	}
}

// stepBelies forgets the attempts after one that does a step later than any line told of them.
func (m *machine) stepBelies(attempt int) {
	c := m.w.Crew
	if at := m.when(); at.After(c.Started) && at.After(c.Error.At) {
		m.belies(max(attempt, c.Confirmed))
	}
}

// belies forgets the attempts after one that runs: only lines told of them.
func (m *machine) belies(attempt int) {
	c, p := &m.w.Crew, &m.w.Progress
	if c.Attempt > attempt {
		c.Attempt, m.changed = attempt, true
	}
	if c.Exited > attempt {
		c.Exited, m.changed = attempt-1, true
	}
	if p.Attempt > attempt {
		p.Attempt, p.Step, m.changed = attempt, 0, true
	}
	if in := m.w.Incident; in != nil && in.BaseAttempt > attempt {
		m.inc().BaseAttempt = attempt
	}
}

// forgetImplausible forgets attempts that none can follow, at a person's word: the files beside the checkpoints say how far the training is.
func (m *machine) forgetImplausible() {
	c := &m.w.Crew
	if c.LeaseAttempt >= events.MaxAttempt {
		c.LeaseAttempt = 1
	}
	if c.Confirmed >= events.MaxAttempt {
		c.Confirmed = 0
	}
	for i := range m.effects() {
		if effect := &m.w.Effects[i]; effect.LeaseAttempt >= events.MaxAttempt {
			effect.LeaseAttempt = 0
		}
	}
	if last := max(c.LeaseAttempt, c.Confirmed); max(c.Attempt, c.Exited, m.w.Progress.Attempt) > last+FarAttempt {
		m.belies(last)
	}
}

// tooFar reports whether a line tells of an attempt far above the confirmed one. Such a line counts once the lease names that attempt, which
// is read at most once in FarEvery: beside the checkpoints in an incident, else in the crews' records on their machines.
func (m *machine) tooFar(r events.CrewReport) bool {
	c := &m.w.Crew
	other := r.Report == events.ReportNotice || r.Report == events.ReportSaved || r.Report == events.ReportRefused
	if other || r.Attempt <= c.Confirmed+FarAttempt {
		return false
	}
	if m.now.Sub(c.FarTold) < FarEvery {
		return true
	}
	switch m.phase() {
	case "":
		c.FarTold, c.Claim.ProbeUntil, m.changed = m.now, m.now.Add(ListenAgain), true
		return true
	case Watching, PhaseDeleting, PhaseCreating, Clearing, Admitting, Restarting:
		return true // nothing is read under a policy that allows nothing, and work under way reads the lease itself
	}
	c.FarTold, m.changed = m.now, true
	text := fmt.Sprintf("a line tells of attempt %s, and the last that is known by more than lines is %d", events.Number(int64(r.Attempt)), c.Confirmed)
	m.line(LineSeen, text, "no line counts that is so far above it, unless the lease names its attempt")
	m.askForVerdict(text)
	return true
}
