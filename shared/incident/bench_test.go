package incident_test

import (
	"fmt"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// night is a policy that allows everything.
var night = policy.Policy{
	Name: "night", Switches: policy.Everything(), Zones: []string{"us-west4-a", "us-west4-b"}, Lead: 10 * time.Minute, Save: events.SaveNatural, Hash: "h",
}

// fleet is a workload of so many Spot slices that trains.
func fleet(slices int) incident.Workload {
	w := incident.New("demo", "llama-8b", "cloud-tpu")
	for i := range slices {
		w, _, _ = incident.Advance(night, w, reads(fmt.Sprintf("s%d", i), i, evidence.Ready, start), start)
	}
	w, _, _ = incident.Advance(night, w, progress(48180, start), start)
	return w
}

// reads is a reading of the n-th life.
func reads(name string, n int, c evidence.Condition, at time.Time) evidence.Read {
	return evidence.Read{
		Origin: evidence.Origin{ID: "read", Time: at, Rank: events.RankReading}, Slice: name, Zone: "us-west4-a", Condition: c, State: string(c),
		Incarnation: events.Incarnation{Zone: "us-west4-a", ID: fmt.Sprint(7700 + n), Created: start.Add(-24 * time.Hour)},
		Facts:       evidence.Facts{Accelerator: "v5litepod-1536", Workers: 1536, Chips: 6144, Capacity: events.Spot, Spec: "spec1", Label: "night"},
		Directory:   "gs://ckpt/llama-8b",
	}
}

// progress is a line of the first slice's crew.
func progress(step int64, at time.Time) evidence.Reported {
	return evidence.Reported{Origin: evidence.Origin{ID: "line", Time: at, Rank: events.RankUser}, Slice: "s0", Report: events.CrewReport{
		Schema: 1, Report: events.ReportProgress, Zone: "us-west4-a", Node: "s0", Hostname: "t1v-n-3f2a9c01-w-0", Attempt: 1, Step: step, CheckpointStep: 48000,
	}}
}

// BenchmarkAdvance is one decision, by what it is about.
func BenchmarkAdvance(b *testing.B) {
	lost := func(w incident.Workload) incident.Workload {
		w, _, _ = incident.Advance(night, w, reads("s0", 0, evidence.Lost, start), start.Add(time.Second))
		w, _, _ = incident.Advance(night, w, evidence.Ticked{}, start.Add(time.Second)) // it opens the incident
		if w.Incident == nil {
			b.Fatal("no incident is open")
		}
		return w
	}
	tick := evidence.Ticked{Origin: evidence.Origin{Time: start.Add(time.Minute), Rank: events.RankReading}}
	for _, c := range []struct {
		name string
		w    incident.Workload
		e    evidence.Evidence
	}{
		{"no news", fleet(1), progress(48180, start)},
		{"no news of 64 slices", fleet(64), progress(48180, start)},
		{"a tick", lost(fleet(1)), tick},
		{"a tick of 64 slices", lost(fleet(64)), tick},
		{"a loss", fleet(1), reads("s0", 0, evidence.Lost, start)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				incident.Advance(night, c.w, c.e, start.Add(time.Minute))
			}
		})
	}
}

// BenchmarkForecast is what would follow from the loss of one slice while all others are lost too.
func BenchmarkForecast(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("slices=%d", n), func(b *testing.B) {
			w, now := fleet(n), start.Add(time.Minute) // a step at the same time would hide the loss
			for i := range n - 1 {
				w, _, _ = incident.Advance(night, w, reads(fmt.Sprintf("s%d", i+1), i+1, evidence.Lost, now), now)
			}
			b.ReportAllocs()
			for b.Loop() {
				if plan := w.IfLost(night, "s0", now); len(plan.Calls) < 2*n {
					b.Fatal(plan)
				}
			}
		})
	}
}
