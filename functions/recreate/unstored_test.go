package recreate_test

import (
	"testing"

	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
)

// TestNothingIsAcknowledgedThatCouldNotBeStored: whichever call of the ledger fails.
func TestNothingIsAcknowledgedThatCouldNotBeStored(t *testing.T) {
	for name, bench := range map[string]func(*testing.T) *bench{"delete": toDelete, "create": toCreate} {
		t.Run(name, func(t *testing.T) {
			fleettest.WithoutLedger(t, func(t *testing.T) fleettest.Delivery {
				b := bench(t)
				d := b.Delivery(id, b.handle(), fleettest.Request(b.request))
				d.Told = ledger.Specs
				return d
			}, fleettest.Redelivered)
		})
	}
}
