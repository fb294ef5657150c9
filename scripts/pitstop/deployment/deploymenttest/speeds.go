package deploymenttest

import (
	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/peers"
)

// SpeedOn is the speed of an attempt as its crew keeps it.
func SpeedOn(attempt int, accelerator string, batch int64, rate float64) peers.Speed {
	return peers.Speed{
		Attempt: attempt, ExamplesPerSecond: rate, At: Noon,
		Measured: events.Measured{Accelerator: accelerator, Slices: 1, GlobalBatch: batch, Steps: 100, Seconds: 100 * float64(batch) / rate},
	}
}

// Measures keeps speeds in a directory as a crew does.
func (b *Bench) Measures(directory string, all ...peers.Speed) {
	b.T.Helper()
	for _, s := range all {
		if err := (peers.Board{Store: b.Checkpoints, Directory: directory}).SetSpeed(b.T.Context(), s); err != nil {
			b.T.Fatal(err)
		}
	}
}
