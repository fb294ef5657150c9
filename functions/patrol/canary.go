package patrol

import (
	"context"
	"time"

	"pitstop.internal/events"
)

// Canary writes one entry into the log of a project.
type Canary interface {
	WriteCanary(ctx context.Context, project, id string, at time.Time) error
}

// canary proves that entries still get from Cloud Logging to the ledger. Once a day it writes an entry, which the function
// logevent notes when the sink brings it. Every sweep logs an entry that did not come back, until one does. It also logs an
// entry that cannot be written, which proves as little.
func (t *round) canary(ctx context.Context) error {
	if t.Canary == nil {
		return nil
	}
	now := t.Fleet.Now()
	last, err := t.Fleet.Ledger.Canary(ctx, t.Project)
	if err != nil {
		return err
	}
	missing := last.Missing(now)
	if last.Due(now) {
		id := events.ID("canary", t.Project, now.UTC().Format(time.RFC3339Nano))
		if err = t.Canary.WriteCanary(ctx, t.Project, id, now); err == nil {
			err = t.Fleet.Ledger.CanaryWritten(ctx, t.Project, id, now)
		} else {
			missing = missing || last.Overdue(now)
		}
	}
	if missing {
		t.Fleet.Log.ErrorContext(ctx, "canary missing", "project", t.Project, "canary", last.ID, "written", last.Written)
	}
	return err
}
