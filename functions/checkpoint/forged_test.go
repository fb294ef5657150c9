package checkpoint_test

import (
	"testing"

	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/fleet/fleettest"
)

// TestARequestIsAPointer: whatever else the body of a request to save, verify or start maintenance says, the function obeys
// the ledger.
func TestARequestIsAPointer(t *testing.T) {
	for name, arrange := range map[string]func(*testing.T) *bench{
		"save": toSave, "maintain": toMaintain, "maintain a queued resource": toMaintainQueued,
		"verify": toVerify, "hear": toHear,
		"verify an older checkpoint": func(t *testing.T) *bench { // which a request that asks for less would accept
			t.Helper()
			b := toVerify(t)
			b.commit("1100")
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "save" {
				breadth.Again(t)
			}
			fleettest.ObeysPointersAlone(t, func(t *testing.T) fleettest.Acting {
				t.Helper()
				b := arrange(t)
				return fleettest.Acting{Bench: b.Bench, Request: b.request, Handle: b.handle()}
			})
		})
	}
}
