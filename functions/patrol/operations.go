package patrol

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// followOperations follows Pitstop's own operations for the rest of the tick, so that the next step need not wait for
// another tick. After each wait it reads the due workloads again, because other functions have written meanwhile.
func (t *round) followOperations(ctx context.Context, start time.Time) {
	for first := true; t.Fleet.Now().Sub(start) < pollFor; first = false {
		running := t.running(ctx, start, first)
		if len(running) == 0 || t.Sleep(ctx, pollEvery) != nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(running)) {
			t.try("operations of "+name, t.follow(ctx, name, running[name]))
		}
		t.lookAgain(ctx)
	}
}

// running finds Pitstop's own operations by zone, each with its workload. At first the held documents say it, unless an answer
// may have come since they were read.
func (t *round) running(ctx context.Context, start time.Time, first bool) map[string]map[string]string {
	if first && t.counted {
		if found, awaited := t.operations(t.held.All(), start); len(found) > 0 || !awaited {
			return found
		}
	}
	due, err := t.Fleet.Advancer.Due(ctx, t.owns)
	t.try("due workloads", err)
	found, _ := t.operations(slices.Values(due), start)
	return found
}

// operations finds the operations to be read. awaited says that a request sent before a time has no answer in the documents.
func (t *round) operations(of iter.Seq[incident.Workload], sent time.Time) (found map[string]map[string]string, awaited bool) {
	found = map[string]map[string]string{}
	for w := range of {
		for _, r := range t.Fleet.Advancer.Reads(w).Of(incident.ReadOperation, "") {
			if found[r.Zone] == nil {
				found[r.Zone] = map[string]string{}
			}
			found[r.Zone][r.Operation] = w.ID
		}
		for _, effect := range w.Effects {
			asked := effect.Stage() == view.StageWanted || effect.Stage() == view.StageBegun
			awaited = awaited || asked && effect.Operation == "" && effect.Sent.Before(sent)
		}
	}
	return found, awaited
}

// follow reports ended operations to their workloads. An operation that the provider no longer knows has ended too, unless
// the list of operations was incomplete.
func (t *round) follow(ctx context.Context, name string, running map[string]string) error {
	names := slices.Sorted(maps.Keys(running))
	ops, unread := t.Provider.Operations(ctx, t.Project, name, names...)
	still := map[string]bool{}
	failures := map[string]*evidence.Failure{}
	for _, op := range ops {
		still[op.Name] = !op.Done
		failures[op.Name] = op.Failure
	}
	for _, op := range names {
		if _, known := failures[op]; still[op] || unread != nil && !known {
			continue
		}
		w, err := t.Fleet.Advancer.Advance(ctx, running[op], evidence.Ended{
			Origin: evidence.Origin{Time: t.Fleet.Now(), Rank: events.RankReading}, Operation: op, Failure: failures[op],
		})
		if err != nil {
			return err
		}
		if w.Incident == nil {
			continue
		}
		t.wantLook(w)
	}
	return unread
}
