package patrol

import (
	"context"
	"errors"
	"maps"
	"slices"

	"pitstop.internal/events"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
)

// unpark handles the parked entries whose subject has become known.
func (t *round) unpark(ctx context.Context) error {
	zones, err := t.Fleet.Ledger.ParkedZones(ctx, t.Project, t.Fleet.Now())
	for _, z := range zones {
		t.try("parked entries of "+z.Zone, t.unparkIn(ctx, z))
	}
	return err
}

func (t *round) unparkIn(ctx context.Context, parked ledger.ParkedZone) error {
	name := parked.Zone
	var done []string
	var nameless []incident.Workload
	for _, entry := range parked.Waiting {
		e, err := events.Read(entry.Raw)
		if err != nil {
			done = append(done, entry.Key) // a parked entry could be read when it was parked; another release wrote this one
			continue
		}
		s, err := t.Fleet.Known(ctx, e.Subject)
		if errors.Is(err, ledger.ErrNotFound) {
			if nameless == nil {
				if nameless, err = t.nameless(ctx, name); err != nil {
					return err
				}
			}
			var found bool
			if s, found = fleet.Broken(nameless, name, e); !found {
				continue
			}
			e.Rank = events.RankUser // place and time attach it to the slice, but prove nothing
			err = nil
		}
		if err != nil {
			return err
		}
		if evidence := fleet.Evidence(e, s, t.Accounts); evidence != nil {
			if err := t.take(ctx, s.Workload, evidence); err != nil {
				return err
			}
		}
		done = append(done, entry.Key)
	}
	if len(done) == 0 && !parked.Expired {
		return nil
	}
	expired, err := t.Fleet.Ledger.Unpark(ctx, t.Project, name, done, t.Fleet.Now())
	for _, entry := range expired {
		t.Fleet.Log.WarnContext(ctx, "parked entry matched no slice", "zone", name, "entry", entry.Key)
	}
	return err
}

// nameless are the workloads of a zone that have slices with unknown worker names.
func (t *round) nameless(ctx context.Context, name string) ([]incident.Workload, error) {
	found := []incident.Workload{}
	if z := t.zones[name]; z != nil {
		for _, id := range slices.Compact(slices.Sorted(maps.Values(z.known))) {
			w, err := t.Fleet.Advancer.Workload(ctx, id)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(w.Slices, func(s incident.Slot) bool { return s.ProvenHosts() == "" }) {
				found = append(found, w)
			}
		}
	}
	return found, nil
}
