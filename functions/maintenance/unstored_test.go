package maintenance_test

import (
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/shared/fleet/fleettest"
)

// TestNothingIsAcknowledgedThatCouldNotBeStored: whichever call of the ledger fails.
func TestNothingIsAcknowledgedThatCouldNotBeStored(t *testing.T) {
	for name, e := range map[string]func(b *bench) cloudevents.Event{
		"a log entry": func(b *bench) cloudevents.Event {
			return fleettest.Message(b.entry(0, "ONGOING", b.Clock.Now()), b.Clock.Now())
		},
		"a notice of patrol":    func(b *bench) cloudevents.Event { return fleettest.Request(b.notified(events.NoticeOngoing)) },
		"a notice that is kept": func(b *bench) cloudevents.Event { return fleettest.Request(b.notified(events.NoticePending)) },
	} {
		t.Run(name, func(t *testing.T) {
			fleettest.WithoutLedger(t, func(t *testing.T) fleettest.Delivery {
				b := training(t)
				return b.Delivery(id, b.handle, e(b))
			}, fleettest.Redelivered)
		})
	}
}
