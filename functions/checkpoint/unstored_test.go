package checkpoint_test

import (
	"testing"

	"pitstop.internal/shared/fleet/fleettest"
)

// TestNothingIsAcknowledgedThatCouldNotBeStored: whichever call of the ledger fails.
func TestNothingIsAcknowledgedThatCouldNotBeStored(t *testing.T) {
	for name, bench := range map[string]func(*testing.T) *bench{"save": toSave, "verify": toVerify, "hear": toHear, "maintain": toMaintain} {
		t.Run(name, func(t *testing.T) {
			fleettest.WithoutLedger(t, func(t *testing.T) fleettest.Delivery {
				b := bench(t)
				return b.Delivery(id, b.handle(), fleettest.Request(b.request))
			}, fleettest.Redelivered)
		})
	}
}
