package patrol

import (
	"context"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider"
)

// forgottenAfter is the age from which an idle queued resource is reported. It is long because provisioning takes an hour or
// two.
const forgottenAfter = 2 * time.Hour

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
		t.clusterJanitor(ctx, name)
		return
	}
	t.left[name] = nil
	for _, q := range leftBehind(list, func(slice string) (workload string, busy bool) {
		id := z.known[place{name, slice}]
		return id, t.isDue[id]
	}) {
		t.Fleet.Log.InfoContext(ctx, "queued resource forgotten", "workload", q.workload, "zone", name, "queued_resource", q.name,
			"state", q.state, "hours", int(list.At.Sub(q.ordered).Hours()), "chips", q.chips, "incident", q.by)
		t.left[name] = append(t.left[name], provider.Leftover{
			Kind: "queued resource", Zone: name, Name: q.name, Since: q.ordered, Chips: q.chips, Why: "it is " + q.state + ", and brings no slice",
		})
	}
}

// clusterJanitor reports likewise what is left over in a cluster. Pitstop makes nothing of the kind there, so it deletes nothing.
func (t *round) clusterJanitor(ctx context.Context, name string) {
	found, err := t.Provider.Leftovers(ctx, t.Project, name)
	if !t.try("leftovers in "+name, err) {
		return
	}
	t.left[name] = found
	for _, l := range found {
		t.Fleet.Log.InfoContext(ctx, "left over", "kind", l.Kind, "zone", l.Zone, "name", l.Name, "hours", int(t.Fleet.Now().Sub(l.Since).Hours()), "chips", l.Chips, "why", l.Why)
	}
}

// storeLeftovers keeps what the sweep found left over, for status.
func (t *round) storeLeftovers(ctx context.Context, zones []string) {
	if t.sweeping {
		t.try("what is left over", t.Fleet.Ledger.SaveLeftovers(ctx, t.Project, t.left, zones))
	}
}

// leftBehind finds them in a listing. The function of returns the workload of a slice, and whether it has work due.
func leftBehind(list provider.Listing, of func(slice string) (workload string, busy bool)) []forgotten {
	var all []forgotten
	for _, s := range list.Slices {
		dead := s.Condition == incident.Lost || s.Condition == incident.Stopped || strings.HasPrefix(s.State, "PROVISIONING")
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
