package view

import (
	"time"

	"pitstop.internal/events"
)

// Sight says whether Pitstop sees a project: what its patrol and its canary tell.
type Sight struct {
	Project string `json:"project"`
	// Ticked is when patrol's last tick ended, zero for never. Failed is how much that tick could not read or do; Faults are a few of it.
	Ticked time.Time `json:"ticked,omitzero"`
	Failed int       `json:"failed,omitzero"`
	Faults []string  `json:"faults,omitempty"`
	// Blind says that the last tick is too old.
	Blind bool `json:"blind,omitzero"`
	// CanaryReturned is when the last canary came back; CanaryMissing says that the last one should be back, and is not.
	CanaryReturned time.Time `json:"canary_returned,omitzero"`
	CanaryMissing  bool      `json:"canary_missing,omitzero"`
	// Queues are what waits for Pitstop's functions, as the last tick read it; none where that is not read.
	Queues []Queue `json:"queues,omitempty"`
}

// SightLine is one thing to know of a project's sight. Loud is what comes first, and is an alarm. Do is what a person can do about it.
type SightLine struct {
	Loud, Text, Do string
}

// Lines tell whether Pitstop sees, and what to do where it does not.
func (s Sight) Lines(now time.Time) (all []SightLine) {
	const lookAt = "see the log of the function patrol, and Cloud Scheduler's job"
	switch {
	case s.Ticked.IsZero():
		all = append(all, SightLine{"BLIND", "patrol has never ticked: Pitstop sees nothing, and what follows may be old", lookAt})
	case s.Blind:
		all = append(all, SightLine{"BLIND for " + events.Span(now.Sub(s.Ticked)), "patrol's last tick was at " + s.Ticked.UTC().Format(time.RFC3339) + ", and what follows is as of then", lookAt})
	default:
		line := "patrol ticked " + events.Span(now.Sub(s.Ticked)) + " ago"
		if !s.CanaryReturned.IsZero() && !s.CanaryMissing {
			line += ", and a canary came back " + events.Span(now.Sub(s.CanaryReturned)) + " ago"
		}
		all = append(all, SightLine{Text: line})
	}
	if s.Failed > 0 {
		all = append(all, SightLine{"NOT WHOLE", "the last tick could not do all: " + s.Faults[0], ""})
	}
	if s.CanaryMissing {
		all = append(all, SightLine{"DEAF", "the last canary has not come back, so log entries may not reach Pitstop", "pitstop canary --project " + s.Project})
	}
	if !s.Blind {
		for _, q := range s.Queues {
			all = append(all, q.lines(s.Ticked, now)...)
		}
	}
	return all
}

// silence is how long patrol may be silent before nobody knows how a workload stands.
const silence = time.Hour

// KnownUntil is until when the states of the project's workloads are known.
func (s Sight) KnownUntil() time.Time { return s.Ticked.Add(silence) }

// Knows reports whether the states of the project's workloads are known.
func (s Sight) Knows(now time.Time) bool { return !now.After(s.KnownUntil()) }
