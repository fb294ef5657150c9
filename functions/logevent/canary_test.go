package logevent_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/fleet/fleettest"
)

func TestACanaryThatComesBackIsNoted(t *testing.T) {
	b := newBench(t)
	written := b.Clock.Now()
	b.Must(b.Ledger.CanaryWritten(t.Context(), fleettest.Project, "c1", written))
	entry := strings.NewReplacer("TIME", written.Format(time.RFC3339Nano)).Replace(`{"insertId":"c1","logName":"projects/demo/logs/pitstop-canary",
		"resource":{"type":"global","labels":{"project_id":"demo"}},"timestamp":"TIME","jsonPayload":{"message":"x"}}`)
	b.Clock.Advance(time.Hour)
	before, err := b.Ledger.Canary(t.Context(), fleettest.Project)
	b.Must(err)
	b.Want(before.Missing(b.Clock.Now()), true)
	b.Want(b.Deliver(b.handle, fleettest.Message([]byte(entry), b.Clock.Now())), fleettest.Handled)
	after, err := b.Ledger.Canary(t.Context(), fleettest.Project)
	b.Must(err)
	b.Want(after.Missing(b.Clock.Now()), false)
	b.Want(b.Deliver(b.handle, fleettest.Message([]byte(entry), b.Clock.Now())), fleettest.Ignored)

	// Another project's is none of ours, and nobody is looked up for one.
	other := strings.ReplaceAll(entry, "projects/demo", "projects/other")
	b.Want(b.Deliver(b.handle, fleettest.Message([]byte(other), b.Clock.Now())), fleettest.Ignored)
	b.Want(len(b.Calls()), 0)
}
