package patrol

import (
	"context"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
)

// forgottenAfter is the age from which an idle queued resource is reported. It is long because provisioning takes an hour or
// two.
const forgottenAfter = 2 * time.Hour

// queued is the kind of a queued resource.
const queued = "queued resource"

// forgotten is a queued resource that holds quota and brings no slice.
type forgotten struct {
	name, state, workload string
	ordered               time.Time
	chips                 int
	// by is the incident that ordered it, if there is one.
	by string
}

// janitor reports at every sweep the queued resources of a zone that hold quota, bring no slice and belong to no open
// incident. It touches none: one that Pitstop ordered becomes an incident of its own as soon as it is read, and the others
// belong to their owners.
func (t *round) janitor(ctx context.Context, z *zone, name string, list provider.Listing) {
	if provider.Of(name) == provider.GKE {
		t.clusters = append(t.clusters, name) // they are listed once more, after what is due
		return
	}
	found := []provider.Leftover{}
	for _, q := range leftBehind(list, func(slice string) (workload string, busy bool) {
		id := z.known[place{name, slice}]
		return id, t.isDue[id]
	}) {
		t.Fleet.Log.InfoContext(ctx, "queued resource forgotten", "workload", q.workload, "zone", name, "queued_resource", q.name,
			"state", q.state, "hours", int(list.At.Sub(q.ordered).Hours()), "chips", q.chips, "incident", q.by)
		found = append(found, provider.Leftover{
			Kind: queued, Zone: name, Name: q.name, Chips: q.chips,
			Why: "it was ordered at " + q.ordered.UTC().Format(time.RFC3339) + ", is " + q.state + ", and brings no slice",
		})
	}
	if !list.Partial { // otherwise what was found before counts on
		t.left.Found[name] = found
	}
}

// leftovers finds likewise what is left over in the clusters that a sweep listed. All of it is kept for status, and what sweeps have found
// for long is reported. Pitstop makes nothing of the kind in a cluster, so it deletes nothing. A tick does it last: nothing waits for a
// report.
func (t *round) leftovers(ctx context.Context) {
	if !t.sweeping {
		return
	}
	for _, name := range t.clusters {
		found, unread, err := t.Provider.Leftovers(ctx, t.Project, name)
		if err == nil || len(unread) > 0 {
			t.left.Found[name] = found
			t.left.Unread = append(t.left.Unread, unread...)
		}
		if err == nil {
			delete(t.unswept, name)
		} else if t.unswept[name] != err.Error() {
			t.unswept[name] = err.Error()
			t.unreadLog(name, err).WarnContext(ctx, "it cannot be read what is left over; what was found there before counts on")
		}
	}
	kept, err := t.Fleet.Ledger.SaveLeftovers(ctx, t.Project, t.left)
	if !t.try("what is left over", err) {
		return
	}
	for _, l := range kept {
		if l.Kind != queued && l.Stays() && l.Seen.Equal(t.left.At) {
			t.Fleet.Log.InfoContext(ctx, "left over", "kind", l.Kind, "zone", l.Zone, "name", l.Name, "hours", int(l.Seen.Sub(l.Since).Hours()), "chips", l.Chips, "why", l.Why)
		}
	}
}

// leftBehind finds them in a listing. The function of returns the workload of a slice, and whether it has work due.
func leftBehind(list provider.Listing, of func(slice string) (workload string, busy bool)) []forgotten {
	var all []forgotten
	for _, s := range list.Slices {
		dead := s.Condition == evidence.Lost || s.Condition == evidence.Stopped || strings.HasPrefix(s.State, "PROVISIONING")
		if s.QueuedResource == "" || s.Incarnation.Known() || !dead || s.Ordered.IsZero() || list.At.Sub(s.Ordered) < forgottenAfter {
			continue
		}
		if i := slices.IndexFunc(all, func(q forgotten) bool { return q.name == s.QueuedResource }); i >= 0 {
			all[i].chips += s.Chips
			continue
		}
		workload, busy := of(s.Name)
		if busy {
			continue
		}
		all = append(all, forgotten{
			name: s.QueuedResource, state: s.State, workload: workload, ordered: s.Ordered, chips: s.Chips, by: s.Labels[events.LabelIncident],
		})
	}
	return all
}
