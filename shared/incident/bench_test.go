package incident_test

import (
	"fmt"
	"testing"

	"pitstop.internal/shared/incident"
)

// BenchmarkAdvance is one decision: on a slice of four workers, and of as many as a slice has. Each case is one piece of
// evidence in the phase in which it usually comes.
func BenchmarkAdvance(b *testing.B) {
	for _, workers := range []int{4, 1536} {
		for _, c := range []struct{ name, path, last string }{
			{"opens", "", "preempted"},
			{"again", "preempted", "preempted"},
			{"decides", "preempted", "read lost"},
			{"answered", "preempted, read lost, intend delete 0", "accepted delete 0"},
			{"recreates", "preempted, read lost, intend delete 0, accepted delete 0", "read gone"},
			{"progress", "", "progress"},
			{"ticks", "preempted, read lost, intend delete 0, accepted delete 0", "tick"},
		} {
			b.Run(fmt.Sprintf("workers=%d/%s", workers, c.name), func(b *testing.B) {
				n := node{w: quiet(true), now: start}
				if c.path != "" {
					n = at(b, policies["everything"], true, c.path, nil)
				}
				n.w.Slices[0].Workers = workers
				if c.name == "decides" && workers > 4 { // and at the end of the longest story that is kept
					in := *n.w.Incident
					for len(in.Timeline) < incident.MaxLines {
						in.Timeline = append(in.Timeline, in.Timeline[0])
					}
					n.w.Incident = &in
				}
				e := evidence(n.w, n.now)[c.last]
				b.ReportAllocs()
				for b.Loop() {
					incident.Advance(policies["everything"], n.w, e, n.now)
				}
			})
		}
	}
}
