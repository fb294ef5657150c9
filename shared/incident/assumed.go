//go:build !heart

package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// Assumed is a workload of one slice that trains, with the slice as a reading describes it. Nothing more is known than a plan needs. Saved
// is when its last checkpoint was complete; zero for none.
func Assumed(project, provider string, r Read, saved time.Time) Workload {
	w := New(project, r.Slice, provider)
	s := Slot{Name: r.Slice, Life: Life{Zone: r.Zone, Incarnation: r.Incarnation, Facts: r.Facts, Condition: Ready, State: "READY", Admission: Admitted}}
	s.Spec = "its own"
	if !s.Incarnation.Known() {
		s.Incarnation = events.Incarnation{Zone: s.Zone, ID: "the one that is there"}
	}
	w.Slices, w.Directory, w.Crew.Seen, w.Progress.VerifiedAt = []Slot{s}, r.Directory, time.Unix(0, 0), saved
	return w
}

// IfRead is the plan for the case that the API showed a slice in another condition now, if the policy allowed everything.
func (w Workload) IfRead(p policy.Policy, slice string, c Condition, now time.Time) Plan {
	s := w.Slice(slice)
	return w.IfAllowed(p, Read{
		Origin: Origin{Time: now, Rank: events.RankReading}, Slice: s.Name, Zone: s.Zone, Condition: c, Incarnation: s.Incarnation,
		State: w.Words().States[c], Facts: s.Facts,
	}, now)
}

// SaveDue is when the save before announced maintenance is due for a training that has written so many checkpoints with that time between
// them; zero for never.
func SaveDue(p policy.Policy, r Read, notice events.Notice, from Origin, every time.Duration, checkpoints int) time.Time {
	w := Assumed("", cloudTPU, r, time.Time{})
	w.Crew.Seen, w.Pace.Gaps = from.Time, slices.Repeat([]int64{int64(every.Seconds())}, checkpoints)
	noticed, _, _ := Advance(p, w, Noticed{Origin: from, Slice: r.Slice, Incarnation: r.Incarnation, Notice: notice}, from.Time)
	if n := noticed.Notice(r.Slice); n != nil {
		return n.Due
	}
	return time.Time{}
}
