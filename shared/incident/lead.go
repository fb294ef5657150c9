package incident

import (
	"slices"
	"strconv"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident/story"
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
	// longestGap is the longest time between two checkpoints that counts: nobody waits longer.
	longestGap = policy.MaxLead
)

// lead is how long before a window the save is asked for: the policy's value, else the time that 95 of 100 saves took plus a margin. A
// natural save waits for the next checkpoint, so it may take as long as the time between two of them.
func (d *diagnosis) lead() (time.Duration, story.Reason) {
	if d.p.Lead > 0 {
		return d.p.Lead, story.LeadOfPolicy.With()
	}
	var most time.Duration
	measured, t := 0, &d.w.Training
	if len(t.SaveSeconds) >= minPace && t.SaveMode == d.saveMode() {
		most, measured = time.Duration(p95(t.SaveSeconds))*time.Second, len(t.SaveSeconds)
	}
	if every, n := t.savePace(); d.saveMode() == events.SaveNatural {
		most, measured = max(most, every), measured+n
	}
	if measured == 0 {
		return policy.DefaultLead, story.LeadUnmeasured.With()
	}
	return min(max(most+leadMargin, minLead), maxLead), story.LeadMeasured.With(strconv.Itoa(measured))
}

// saveMode is how the training is asked to save.
func (d *diagnosis) saveMode() events.SaveMode {
	if d.p.Save == "" {
		return events.SaveNatural
	}
	return d.p.Save
}

// p95 is the smallest value that 95 of 100 values do not exceed.
func p95(values []int64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(95*len(sorted)+99)/100-1]
}

// paced adds a measurement, and drops the oldest ones beyond the bound.
func paced(values []int64, took time.Duration) []int64 {
	values = append(slices.Clone(values), int64(max(took, 0).Seconds()))
	return values[max(0, len(values)-maxPace):]
}
