package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
)

// StockoutFor is how long a zone that had no capacity comes after unasked zones for the next workload.
const StockoutFor = 10 * time.Minute

// Stockout records that a zone had no capacity for a kind of slice at the last request.
type Stockout struct {
	Workload string    `json:"workload"`
	At       time.Time `json:"at"`
}

const stockoutSchema = 1

// stockoutID is the key for slices like this one in a zone, of its shape and its capacity.
func stockoutID(project, zone string, s incident.Slot) string {
	return project + "/" + zone + "/" + s.Accelerator + "/" + string(s.Capacity)
}

// Stockout says whether a zone has just refused a slice like this one for lack of capacity, and which workload's.
func (l *Ledger) Stockout(ctx context.Context, project, zone string, s incident.Slot, now time.Time) (o Stockout, ok bool, err error) {
	o, _, err = load[Stockout](ctx, l, Stockouts, stockoutID(project, zone, s), stockoutSchema)
	if errors.Is(err, ErrNotFound) {
		return Stockout{}, false, nil
	}
	return o, err == nil && now.Sub(o.At) < StockoutFor, err
}

// RememberStockout records that a zone has refused a slice of a workload for lack of capacity.
func (l *Ledger) RememberStockout(ctx context.Context, project, zone string, s incident.Slot, workload string, now time.Time) error {
	id := stockoutID(project, zone, s)
	for range tries {
		o, rev, err := load[Stockout](ctx, l, Stockouts, id, stockoutSchema)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if now.Sub(o.At) < time.Minute {
			return nil // it is already known
		}
		next := Stockout{Workload: workload, At: now.UTC()}
		if _, err := l.store(ctx, Stockouts, id, Record{Schema: stockoutSchema, Expires: now.Add(StockoutFor)}, next, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s %s: %w", Stockouts, id, ErrConflict)
}

// remember records the evidence about a zone's capacity for the next workloads. The record only saves calls, so a failed
// write is only logged.
func (a *Advancer) remember(ctx context.Context, w incident.Workload, all []evidence.Evidence, now time.Time) {
	for _, e := range all {
		t, ok := w.OutOfCapacity(e)
		if !ok {
			continue
		}
		if err := a.Ledger.RememberStockout(ctx, w.Project, t.Zone, w.Slice(t.Slice).In(t.Place), w.ID, now); err != nil {
			a.Log.WarnContext(ctx, "stockout not remembered", "workload", w.ID, "zone", t.Zone, "error", err.Error())
		}
	}
}
