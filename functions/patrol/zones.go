package patrol

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// zone is the last view of a zone, or of a cluster: the slices listed, and the slices that the ledger knows there, with their workloads.
type zone struct {
	seen  map[place]sight
	known map[place]string
}

// place is the name of a slice in its zone. A cluster has several zones: the scopes of its namespaces.
type place struct{ zone, name string }

func placeOf(s provider.Slice) place { return place{s.Zone, s.Name} }

// places are those of the known slices, in order.
func (z *zone) places() []place {
	return slices.SortedFunc(maps.Keys(z.known), func(a, b place) int {
		return cmp.Or(strings.Compare(a.zone, b.zone), strings.Compare(a.name, b.name))
	})
}

// sight holds the parts of a listed slice whose change matters.
type sight struct {
	state, spec, values, queued string
	workload, policy, directory string // what its owner says
	healing                     evidence.Heal
	life                        events.Incarnation
	notice                      events.Notice
	ends, waits                 time.Time
	hosts                       bool
}

// zone returns the memory of a zone, or of the cluster that has it, which is listed from then on.
func (p *patrol) zone(name string) *zone {
	name = provider.Listed(name)
	z, ok := p.zones[name]
	if !ok {
		z = &zone{seen: map[place]sight{}, known: map[place]string{}}
		p.zones[name] = z
	}
	return z
}

// zoneNames are the zones, and then the clusters: one that does not answer keeps no TPU waiting.
func (p *patrol) zoneNames() []string {
	return slices.SortedFunc(maps.Keys(p.zones), func(a, b string) int {
		return cmp.Or(strings.Compare(provider.Of(a), provider.Of(b)), strings.Compare(a, b))
	})
}

// missed notes the workloads of a zone or cluster that could not be read.
func (t *round) missed(name string) {
	for _, workload := range t.zones[name].known {
		t.unread[workload] = true
	}
}

// list reads one zone or cluster and carries changes to the ledger. If workloads are named, it carries only their slices, changed or
// not.
func (t *round) list(ctx context.Context, name string, wanted map[string]bool) error {
	list, err := t.Fleet.List(ctx, t.Project, name)
	if err != nil {
		return err
	}
	if list.Unread != nil {
		t.try("unlisted in zone "+name, list.Unread)
	}
	t.tellUnexplained(ctx, name, list.Unexplained)
	z := t.zone(name)
	asked := func(at place) bool {
		if wanted[z.known[at]] {
			delete(z.seen, at) // so that the next sight counts as a change
		}
		return wanted == nil || wanted[z.known[at]]
	}
	listed := map[place]bool{}
	for _, s := range list.Slices {
		if listed[placeOf(s)] = true; !asked(placeOf(s)) {
			continue
		}
		t.try("slice "+s.Ref.String(), t.see(ctx, z, s))
	}
	if t.sweeping && wanted == nil {
		t.janitor(ctx, z, name, list)
	}
	for _, at := range z.places() {
		switch {
		case listed[at]:
		case !list.Misses(at.zone): // it may still exist, and nobody has read how it is
			t.unread[z.known[at]] = true
		case asked(at):
			t.try("slice "+at.name, t.missing(ctx, z, at, list))
		}
	}
	if list.Partial {
		return nil
	}
	if len(z.known) == 0 && provider.Of(name) == provider.CloudTPU {
		delete(t.zones, name) // until the next sweep; of a cluster no log entry may tell before that
	}
	return nil
}

// tellUnexplained tells once that it cannot be read in what Jobs wait, and how to mend that. Readings are complete without it.
func (t *round) tellUnexplained(ctx context.Context, name string, no error) {
	if no == nil || t.waits[name] == no.Error() {
		return
	}
	t.waits[name] = no.Error()
	t.unreadLog(name, no).WarnContext(ctx, "it cannot be read in what Jobs wait; everything else is read")
}

// unreadLog is for a line about something in a cluster that cannot be read. It has why, and how to mend that.
func (t *round) unreadLog(name string, no error) *slog.Logger {
	line := t.Fleet.Log.With("cluster", name, "error", strings.Join(strings.Fields(no.Error()), " "))
	if provider.Failure(no).Class == reason.Permission {
		line = line.With("way_out", "apply again what pitstop gke rbac prints")
	}
	return line
}

// sightOf is the part of a listed slice whose change matters.
func sightOf(s provider.Slice) sight {
	now := sight{
		state: s.State, spec: s.SpecHash, values: s.ValuesSum, queued: s.QueuedResource, life: s.Incarnation,
		workload: s.Labels[events.LabelWorkload], policy: s.Labels[events.LabelPolicy], directory: s.Directory, ends: s.Ends, waits: s.WaitsSince, healing: s.Healing,
	}
	if s.Notice != nil {
		now.notice = *s.Notice
	}
	return now
}

// see carries a listed slice to the ledger if it changed, or if its workload is due.
func (t *round) see(ctx context.Context, z *zone, s provider.Slice) error {
	now := sightOf(s)
	at := placeOf(s)
	if s.Remains && z.known[at] == "" {
		return nil // nobody knows what it is of
	}
	before, seen := z.seen[at]
	now.hosts = before.hosts && before.life.Same(now.life)
	unread := !now.hosts && s.Condition == evidence.Ready && t.hosts > 0 && provider.Of(s.Zone) == provider.CloudTPU
	moved := t.moved(s)
	if seen && before == now && !unread && !moved && !t.isDue[z.known[at]] {
		return nil
	}
	w, err := t.observe(ctx, z, s)
	if err != nil {
		return err
	}
	z.known[at] = w.ID
	if known := w.Slice(s.Name); known != nil && known.Spec != s.SpecHash {
		now.spec = "" // its specification could not be saved; the next tick tries again
	}
	if unread && w.Slice(s.Name) != nil {
		if w, err = t.nameHosts(ctx, w, s.Name); err != nil {
			return err
		}
		now.hosts = w.Slice(s.Name).HostsKnown()
	}
	if moved && w.Slice(s.Name) != nil {
		if err := t.mapMachines(ctx, w, s); err != nil {
			return err
		}
	}
	if err := t.notify(ctx, w, s); err != nil {
		return err
	}
	if w, err = t.listen(ctx, w, s); err != nil {
		return err
	}
	if known := w.Slice(s.Name); known != nil && known.State == s.State {
		z.seen[at] = now // otherwise it counted as older than the last reading, and the next reading decides
	}
	return nil
}

// ofGKE are the machines of a slice that log entries name as those of GKE.
func ofGKE(s provider.Slice) []string {
	return slices.DeleteFunc(slices.Clone(s.Machines), func(name string) bool {
		return events.Subject{Worker: name}.Platform() != events.PlatformGKE
	})
}

// moved reports whether a slice may be on other machines of GKE than the ledger has, or be there in another life. What remains of a
// deleted one stays where it was.
func (t *round) moved(s provider.Slice) bool {
	was, known := t.on[placeOf(s)]
	names := ofGKE(s)
	return provider.Of(s.Zone) == provider.GKE && !s.Remains && (!known || !slices.Equal(names, was.Names) || len(names) > 0 && !was.Incarnation.Same(s.Incarnation))
}

// mapMachines carries to the ledger on which machines of GKE a slice is, as far as this tick may write more. The next tick writes the
// rest.
func (t *round) mapMachines(ctx context.Context, w incident.Workload, s provider.Slice) (err error) {
	at, names := placeOf(s), ofGKE(s)
	was, known := t.on[at]
	if !known {
		if was, err = t.Fleet.Ledger.Machines(ctx, t.Project, s.Zone, s.Name); err != nil {
			return err
		}
		t.on[at] = was
	}
	if !t.moved(s) {
		return nil
	}
	may := func() bool {
		t.machines--
		return t.machines >= 0
	}
	same := was.Incarnation.Same(s.Incarnation)
	is := ledger.Machines{Incarnation: was.Incarnation}
	for _, name := range was.Names {
		if same && slices.Contains(names, name) || !may() {
			is.Names = append(is.Names, name)
		}
	}
	if same || len(is.Names) == 0 { // otherwise the life before has yet to leave some
		is.Incarnation = s.Incarnation
		for _, name := range names {
			if !slices.Contains(is.Names, name) && may() {
				is.Names = append(is.Names, name)
			}
		}
		slices.Sort(is.Names)
	}
	if err := t.Fleet.MapMachines(ctx, w, s, was, is); err != nil {
		return err
	}
	t.on[at] = is
	return nil
}

// observe gives a reading to its workload, which is looked for only if the one that the tick expects does not know the slice.
func (t *round) observe(ctx context.Context, z *zone, s provider.Slice) (incident.Workload, error) {
	if id := z.known[placeOf(s)]; id != "" {
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

// listen reads what the crew of a slice writes on its machine, if the decision needs it. Half of the reads of a tick are not for what lines
// alone make due.
func (t *round) listen(ctx context.Context, w incident.Workload, s provider.Slice) (incident.Workload, error) {
	all, left := t.Fleet.Advancer.Reads(w), t.hosts
	due := append(all.Of(incident.ReadCrew, s.Name), all.Of(incident.ReadSaver, s.Name)...)
	if !slices.ContainsFunc(due, func(r incident.ToRead) bool { return !r.Told }) {
		left -= hostReads / 2
	}
	if len(due) == 0 || left <= 0 {
		return w, nil
	}
	t.hosts--
	return t.Fleet.Listen(ctx, w, s)
}

// missing concludes from a complete listing that a slice in the ledger is gone.
func (t *round) missing(ctx context.Context, z *zone, at place, list provider.Listing) error {
	id := z.known[at]
	gone := provider.Slice{Ref: provider.Ref{Project: t.Project, Zone: at.zone, Name: at.name}, At: list.At, Condition: evidence.Gone, State: goneState}
	if before, seen := z.seen[at]; seen && before.state == goneState && !t.moved(gone) && !t.isDue[id] {
		return nil
	}
	w, err := t.Fleet.Advancer.Workload(ctx, id)
	if err != nil {
		return err
	}
	if t.moved(gone) {
		if err := t.mapMachines(ctx, w, gone); err != nil {
			return err
		}
	}
	s := w.Slice(at.name)
	if s == nil || s.IsReleased() && s.Condition == evidence.Gone {
		delete(z.known, at)
		return nil
	}
	if s.Legacy && !list.Legacy {
		return nil // no listing looked for it
	}
	gone.Ref = fleet.Ref(w, *s)
	gone.Zone = at.zone
	if w, err = t.Fleet.Feed(ctx, w, gone); err != nil {
		return err
	}
	if known := w.Slice(at.name); known != nil && (known.Condition == evidence.Gone || known.Condition == evidence.Done) {
		z.seen[at] = sight{state: goneState} // otherwise it counted as older than the last reading, and the next reading decides
	}
	return nil
}

// goneState is the reading of a slice that a complete listing did not show.
const goneState = "gone"
