package recovery_test

import (
	"testing"

	"pitstop.internal/shared/fleet/fleettest"
)

// TestARequestIsAPointer: whatever else the body of a request to admit, restart or start says, the function obeys the
// ledger.
func TestARequestIsAPointer(t *testing.T) {
	for name, arrange := range map[string]func(*testing.T) *bench{
		"admit": toAdmit, "restart": toRestart, "start": toStart,
	} {
		t.Run(name, func(t *testing.T) {
			fleettest.ObeysPointersAlone(t, func(t *testing.T) fleettest.Acting {
				t.Helper()
				b := arrange(t)
				return fleettest.Acting{Bench: b.Bench, Request: b.request, Handle: b.handle()}
			})
		})
	}
}
