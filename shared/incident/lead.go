//go:build !heart

package incident

import (
	"fmt"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Bounds of the measured saves, and of the lead that follows from them.
const (
	maxPace = 20 // the most that are kept
	minPace = 5  // fewer prove nothing
	// leadMargin covers the verification, and reports that come only every few minutes.
	leadMargin = 5 * time.Minute
	minLead    = 10 * time.Minute
	maxLead    = 2 * time.Hour
)

// lead is how long before a window the save is requested.
func (m *machine) lead() time.Duration {
	d, _ := m.w.lead(m.p)
	return d
}

// lead is the policy's value, else the time that 95 of 100 saves took plus a margin. A natural save waits for the next checkpoint,
// so it may take as long as the time between two of them: saves that came too late for a shorter lead could not be measured.
func (w Workload) lead(p policy.Policy) (d time.Duration, why string) {
	if p.Lead > 0 {
		return p.Lead, "as the policy says"
	}
	var most int64
	n := 0
	if len(w.Pace.Saves) >= minPace && w.Pace.Mode == saveMode(p) {
		most, n = p95(w.Pace.Saves), len(w.Pace.Saves)
	}
	if len(w.Pace.Gaps) >= minPace && saveMode(p) == events.SaveNatural {
		most, n = max(most, p95(w.Pace.Gaps)), n+len(w.Pace.Gaps)
	}
	if n == 0 {
		return policy.DefaultLead, "until more is measured"
	}
	d = min(max(time.Duration(most)*time.Second+leadMargin, minLead), maxLead)
	return d, fmt.Sprintf("measured over %d checkpoints", n)
}

// p95 is the smallest value that 95 of 100 values do not exceed.
func p95(values []int64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(95*len(sorted)+99)/100-1]
}

// paced adds a measurement, and drops the oldest ones beyond the bound.
func paced(values []int64, d time.Duration) []int64 {
	values = append(slices.Clone(values), int64(max(d, 0).Seconds()))
	return values[max(0, len(values)-maxPace):]
}

// saveTook measures a save that was found complete.
func (m *machine) saveTook(d time.Duration) {
	p := &m.w.Pace
	if mode := m.saveMode(); p.Mode != mode {
		p.Saves, p.Mode = nil, mode
	}
	p.Saves, m.changed = paced(p.Saves, d), true
}

// checkpointTold measures the time between two checkpoints of one attempt, when the crew reports the second. Before is the progress
// until then.
func (m *machine) checkpointTold(before Progress, r events.CrewReport, at time.Time) {
	p := &m.w.Progress
	if r.Attempt != before.Attempt {
		p.CheckpointAt = time.Time{} // the time between two attempts is no time between checkpoints
	}
	if r.CheckpointStep <= before.CheckpointStep {
		return
	}
	gap := at.Sub(p.CheckpointAt)
	if known := !p.CheckpointAt.IsZero(); known && gap > 0 && gap <= policy.MaxLead {
		m.w.Pace.Gaps = paced(m.w.Pace.Gaps, gap)
	}
	p.CheckpointAt = at
}
