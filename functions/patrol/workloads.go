package patrol

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider"
)

// sweep finds all zones and workloads again, so that none is missed because the memory lacks it. Zones without a known slice
// are listed at this tick, then left alone until the next sweep.
func (t *round) sweep(ctx context.Context) error {
	known, unlisted := t.known(ctx)
	names, err := t.Provider.Zones(ctx, t.Project)
	if err = cmp.Or(err, unlisted); err != nil {
		for _, name := range names { // where the Cloud TPU API names no zones, the clusters are listed all the same
			t.zone(name)
		}
		return err
	}
	t.zones = map[string]*zone{}
	for _, name := range names {
		t.zone(name)
	}
	for _, w := range known {
		t.expect(w)
		if t.Fleet.Advancer.Reads(w).Has(incident.ReadTraining, "") {
			t.silent = append(t.silent, w.ID)
		}
	}
	return nil
}

// known reads every workload, and keeps the metadata values of its slices from expiring. It does not ask the API: a workload
// that waits for a month may need the values whatever the API says.
func (t *round) known(ctx context.Context) (known []incident.Workload, err error) {
	known, err = t.Fleet.Advancer.Workloads(ctx, t.owns)
	if known == nil {
		return nil, err
	}
	t.try("workloads", err)
	for _, w := range known {
		t.try("metadata values of "+w.ID, t.Fleet.RenewValues(ctx, w))
	}
	return known, nil
}

// expect makes the tick look for a workload's slices in their zones.
func (t *round) expect(w incident.Workload) {
	for _, s := range w.Slices {
		if !s.IsReleased() || s.Condition != evidence.Gone {
			t.zone(s.Zone).known[place{s.Zone, s.Name}] = w.ID
		}
	}
	for _, effect := range w.Effects {
		if effect.Action != events.ActionCreate {
			continue
		}
		z := t.zone(effect.Zone)
		for _, s := range w.Slices {
			at := place{effect.Zone, s.Name}
			if effect.Concerns(s.Name) && z.known[at] == "" { // the name may belong to another workload there
				z.known[at] = w.ID
			}
		}
	}
}

// collect finds the workloads that have work due, and sends the requests left in their outboxes.
func (t *round) collect(ctx context.Context) error {
	due, err := t.Fleet.Advancer.Due(ctx, t.owns)
	t.counted = err == nil
	for _, w := range due {
		if w.Incident != nil {
			t.open++
		}
		t.addDue(w.ID)
		t.expect(w)
		if len(w.Outbox) > 0 {
			t.try("outbox of "+w.ID, t.Fleet.Advancer.Flush(ctx, w.ID))
		}
	}
	for _, id := range t.silent {
		t.addDue(id)
	}
	return err
}

func (t *round) addDue(id string) {
	if !t.isDue[id] {
		t.due, t.isDue[id] = append(t.due, id), true
	}
}

// take feeds log entries to a workload, and schedules another look if the workload wants one. Entries do not come again, so
// the document must be read after them.
func (t *round) take(ctx context.Context, id string, e ...evidence.Evidence) error {
	t.held.Forget(id)
	w, changed, err := t.Fleet.Advancer.AdvanceChanged(ctx, id, e...)
	if err == nil && changed && t.Fleet.Advancer.Reads(w).Has(incident.ReadSlices, "") {
		t.wantLook(w)
	}
	return err
}

// wantLook schedules another look for the slices of a workload in their zones.
func (t *round) wantLook(w incident.Workload) {
	t.expect(w)
	want := func(zone string) {
		if provider.Of(zone) == provider.GKE {
			return // a cluster is listed once a tick: the next one looks
		}
		if t.again[zone] == nil {
			t.again[zone] = map[string]bool{}
		}
		t.again[zone][w.ID] = true
	}
	for _, s := range w.Slices {
		want(s.Zone)
	}
	for _, effect := range w.Effects {
		if effect.Action == events.ActionCreate {
			want(effect.Zone)
		}
	}
}

// lookAgain reads again the zones that need it. One page of a zone replaces one call for each slice.
func (t *round) lookAgain(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(t.again)) {
		t.try("zone "+name, t.list(ctx, name, t.again[name]))
	}
	clear(t.again)
}
