package logevent_test

import (
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/shared/fleet/fleettest"
)

// TestNothingIsAcknowledgedThatCouldNotBeStored: whichever call of the ledger fails.
func TestNothingIsAcknowledgedThatCouldNotBeStored(t *testing.T) {
	for name, entry := range map[string]func(b *bench) []byte{
		"a preemption": func(b *bench) []byte {
			b.Must(b.API.Preempt(zone, slice))
			return b.preempted(worker(2))
		},
		"an entry of a worker that nobody knows": func(b *bench) []byte {
			return b.preempted("zones/" + zone + "/instances/t1v-n-ffffffff-w-0")
		},
		"a crew that gives up": func(b *bench) []byte {
			return b.crew(events.CrewReport{Report: events.ReportGaveUp, Attempt: 1, Hostname: group + "-w-0", Reason: "exit code 1"})
		},
		"a step": func(b *bench) []byte {
			return b.crew(events.CrewReport{Report: events.ReportProgress, Attempt: 1, Hostname: group + "-w-0", Step: 1100})
		},
	} {
		t.Run(name, func(t *testing.T) {
			fleettest.WithoutLedger(t, func(t *testing.T) fleettest.Delivery {
				b := training(t)
				e := fleettest.Message(entry(b), b.Clock.Now())
				return b.Delivery(id, b.handle, e)
			}, fleettest.Redelivered)
		})
	}
}
