package patrol

import (
	"context"
	"maps"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider"
)

// zone is the last view of a zone: the slices listed, and the slices that the ledger knows there, with their workloads.
type zone struct {
	seen  map[string]sight
	known map[string]string
}

// sight holds the parts of a listed slice whose change matters.
type sight struct {
	state, spec, values, queued string
	workload, policy, directory string // what its owner says
	life                        events.Incarnation
	notice                      events.Notice
	ends                        time.Time
	hosts                       bool
}

// zone returns the memory of a zone, which is listed from then on.
func (p *patrol) zone(name string) *zone {
	z, ok := p.zones[name]
	if !ok {
		z = &zone{seen: map[string]sight{}, known: map[string]string{}}
		p.zones[name] = z
	}
	return z
}

func (p *patrol) zoneNames() []string { return slices.Sorted(maps.Keys(p.zones)) }

// list reads one zone and carries changes to the ledger. If workloads are named, it carries only their slices, changed or
// not.
func (t *round) list(ctx context.Context, name string, wanted map[string]bool) error {
	list, err := t.Fleet.List(ctx, t.Project, name)
	if err != nil {
		return err
	}
	if list.Unread != nil {
		t.try("legacy nodes of zone "+name, list.Unread)
	}
	z := t.zone(name)
	asked := func(slice string) bool {
		if wanted[z.known[slice]] {
			delete(z.seen, slice) // so that the next sight counts as a change
		}
		return wanted == nil || wanted[z.known[slice]]
	}
	listed := map[string]bool{}
	for _, s := range list.Slices {
		if listed[s.Name] = true; !asked(s.Name) {
			continue
		}
		t.try("slice "+s.Ref.String(), t.see(ctx, z, s))
	}
	if t.sweeping && wanted == nil {
		t.janitor(ctx, z, name, list)
	}
	if list.Partial {
		return nil // an unlisted slice may still exist
	}
	for _, slice := range slices.Sorted(maps.Keys(z.known)) {
		if !listed[slice] && asked(slice) {
			t.try("slice "+slice, t.missing(ctx, z, name, slice, list))
		}
	}
	if len(z.known) == 0 {
		delete(t.zones, name) // until the next sweep
	}
	return nil
}

// sightOf is the part of a listed slice whose change matters.
func sightOf(s provider.Slice) sight {
	now := sight{
		state: s.State, spec: s.SpecHash, values: s.ValuesSum, queued: s.QueuedResource, life: s.Incarnation,
		workload: s.Labels[events.LabelWorkload], policy: s.Labels[events.LabelPolicy], directory: s.Directory, ends: s.Ends,
	}
	if s.Notice != nil {
		now.notice = *s.Notice
	}
	return now
}

// see carries a listed slice to the ledger if it changed, or if its workload is due.
func (t *round) see(ctx context.Context, z *zone, s provider.Slice) error {
	now := sightOf(s)
	before, seen := z.seen[s.Name]
	now.hosts = before.hosts && before.life.Same(now.life)
	unread := !now.hosts && s.Condition == incident.Ready && t.hosts > 0
	if seen && before == now && !unread && !t.isDue[z.known[s.Name]] {
		return nil
	}
	w, err := t.observe(ctx, z, s)
	if err != nil {
		return err
	}
	z.known[s.Name] = w.ID
	if known := w.Slice(s.Name); known != nil && known.Spec != s.SpecHash {
		now.spec = "" // its specification could not be saved; the next tick tries again
	}
	if unread && w.Slice(s.Name) != nil {
		if w, err = t.nameHosts(ctx, w, s.Name); err != nil {
			return err
		}
		now.hosts = w.Slice(s.Name).HostsKnown()
	}
	if err := t.notify(ctx, w, s); err != nil {
		return err
	}
	if w, err = t.listen(ctx, w, s); err != nil {
		return err
	}
	if known := w.Slice(s.Name); known != nil && known.State == s.State {
		z.seen[s.Name] = now // otherwise it counted as older than the last reading, and the next reading decides
	}
	return nil
}

// observe gives a reading to its workload, which is looked for only if the one that the tick expects does not know the slice.
func (t *round) observe(ctx context.Context, z *zone, s provider.Slice) (incident.Workload, error) {
	if id := z.known[s.Name]; id != "" {
		w, err := t.Fleet.Advancer.Workload(ctx, id)
		if err != nil {
			return w, err
		}
		if fleet.Knows(w, s) {
			return t.Fleet.Feed(ctx, w, s)
		}
	}
	return t.Fleet.Observe(ctx, s)
}

// notify sends the function maintenance a notice that the API shows, if the ledger lacks it or knows it only from a log
// entry.
func (t *round) notify(ctx context.Context, w incident.Workload, s provider.Slice) error {
	if s.Notice == nil {
		return nil
	}
	if n := w.Notice(s.Name); n != nil && (n.InAPI || n.End) && n.Tells(*s.Notice) {
		return nil
	}
	now := t.Fleet.Now()
	env, err := events.Wrap(events.MaintenanceNotified{
		Schema: events.Schema, Project: t.Project, Node: s.Name, Incarnation: s.Incarnation, Notice: *s.Notice, Read: s.At,
	}, t.Fleet.Advancer.Source, t.Fleet.Advancer.Cause(ctx), "", now)
	if err != nil {
		return err
	}
	return t.Publisher.Publish(ctx, env)
}

// nameHosts reads the host names of a slice's workers, if they are not known.
func (t *round) nameHosts(ctx context.Context, w incident.Workload, slice string) (incident.Workload, error) {
	if !t.Fleet.Advancer.Reads(w).Has(incident.ReadHosts, slice) {
		return w, nil
	}
	t.hosts--
	return t.Fleet.MapHosts(ctx, w, *w.Slice(slice))
}

// listen reads what the crew of a slice writes on its machine, if the decision needs it.
func (t *round) listen(ctx context.Context, w incident.Workload, s provider.Slice) (incident.Workload, error) {
	if all := t.Fleet.Advancer.Reads(w); t.hosts == 0 || !all.Has(incident.ReadCrew, s.Name) && !all.Has(incident.ReadSaver, s.Name) {
		return w, nil
	}
	t.hosts--
	return t.Fleet.Listen(ctx, w, s)
}

// missing concludes from a complete listing that a slice in the ledger is gone.
func (t *round) missing(ctx context.Context, z *zone, name, slice string, list provider.Listing) error {
	id := z.known[slice]
	if before, seen := z.seen[slice]; seen && before.state == goneState && !t.isDue[id] {
		return nil
	}
	w, err := t.Fleet.Advancer.Workload(ctx, id)
	if err != nil {
		return err
	}
	s := w.Slice(slice)
	if s == nil || s.IsReleased() && s.Condition == incident.Gone {
		delete(z.known, slice)
		return nil
	}
	if s.Legacy && !list.Legacy {
		return nil // no listing looked for it
	}
	gone := provider.Slice{Ref: fleet.Ref(w, *s), At: list.At, Condition: incident.Gone, State: goneState}
	gone.Zone = name
	if w, err = t.Fleet.Feed(ctx, w, gone); err != nil {
		return err
	}
	if known := w.Slice(slice); known != nil && known.Condition == incident.Gone {
		z.seen[slice] = sight{state: goneState} // otherwise it counted as older than the last reading, and the next reading decides
	}
	return nil
}

// goneState is the reading of a slice that a complete listing did not show.
const goneState = "gone"
