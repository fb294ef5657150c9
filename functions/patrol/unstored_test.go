package patrol_test

import (
	"testing"

	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// TestNothingIsAcknowledgedThatCouldNotBeStored: whichever call of the ledger fails.
func TestNothingIsAcknowledgedThatCouldNotBeStored(t *testing.T) {
	for name, happens := range map[string]func(b *bench){
		"a loss":          func(b *bench) { b.Must(b.API.Preempt(zone, slice)) },
		"a slice is gone": func(b *bench) { b.Must(b.API.Vanish(zone, slice)) },
		"a new life": func(b *bench) {
			b.Must(b.API.Vanish(zone, slice))
			_, err := b.API.AddNode(cloudtputest.NodeConfig{Zone: zone, Name: slice, Spot: true, Created: b.Clock.Now()})
			b.Must(err)
		},
		"a request that nobody begins": func(b *bench) {
			b.Must(b.API.Preempt(zone, slice))
			b.Want(b.tick(), fleettest.Handled)
			b.Clock.Advance(bounds.RequestFor)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fleettest.WithoutLedger(t, func(t *testing.T) fleettest.Delivery {
				b := training(t)
				happens(b)
				return b.Delivery(id, b.handle, fleettest.Message([]byte("{}"), b.Clock.Now()))
			}, fleettest.Rejected)
		})
	}
}
