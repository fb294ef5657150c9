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
					advance(policies["everything"], n.w, e, n.now)
				}
			})
		}
	}
}

// BenchmarkRehearsal is the reading that shows the last slice of a Multislice lost, where nothing is allowed: the plan is that of all.
func BenchmarkRehearsal(b *testing.B) {
	for _, n := range []int{1, 8, 64, 128} {
		b.Run(fmt.Sprintf("slices=%d", n), func(b *testing.B) {
			w := quiet(true)
			one := w.Slices[0]
			w.Slices = nil
			for i := range n {
				one.Name, one.Incarnation = fmt.Sprintf("s%d", i), life(i+1)
				w.Slices = append(w.Slices, one)
			}
			for i := range n - 1 {
				w, _, _ = advance(policies["watch"], w, lossOf(w, w.Slices[i].Name, incident.Lost), start)
			}
			last := lossOf(w, w.Slices[n-1].Name, incident.Lost)
			b.ReportAllocs()
			for b.Loop() {
				advance(policies["watch"], w, last, start)
			}
		})
	}
}
