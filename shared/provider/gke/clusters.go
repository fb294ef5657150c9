package gke

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// Name is GKE's name in a workload's document.
const Name = provider.GKE

// Opener makes the client of a cluster.
type Opener func(ctx context.Context, c Cluster) (Client, error)

// Clusters provides the slices of some clusters. It reads, deletes and creates them, and starts their maintenance early; every other call is
// refused with incident.Invalid.
// A cluster is listed as LOCATION/CLUSTER, and the zone of a slice is its scope LOCATION/CLUSTER/NAMESPACE. It is safe for concurrent
// use.
type Clusters struct {
	open Opener
	now  func() time.Time
	all  []*watched
}

var _ provider.Provider = (*Clusters)(nil)

// watched is a cluster that is read.
type watched struct {
	Cluster

	orders orders

	mu     sync.Mutex
	client *Client // nil until it is opened, and after a failed call: the endpoint may have changed
}

// New makes the provider. Each client is opened at the first call.
func New(clusters []Cluster, open Opener, now func() time.Time) *Clusters {
	c := &Clusters{open: open, now: now}
	for _, one := range clusters {
		c.all = append(c.all, &watched{Cluster: one, orders: orders{cluster: one.String()}})
	}
	return c
}

// Zones implements provider.Provider: the clusters of a project that are read, as LOCATION/CLUSTER. It makes no call.
func (c *Clusters) Zones(_ context.Context, project string) (names []string, err error) {
	for _, w := range c.all {
		if w.Project == project {
			names = append(names, w.Location+"/"+w.Name)
		}
	}
	return names, nil
}

// List implements provider.Provider, with four lists for a cluster, or three for each of its named namespaces and one; one more where
// there is TPU7x. A cluster that is not read has a partial listing, which proves nothing.
func (c *Clusters) List(ctx context.Context, project, zone string) (provider.Listing, error) {
	if w := c.named(project, zone); w != nil {
		return c.list(ctx, w, zone)
	}
	return provider.Listing{Partial: true}, nil
}

// named is the cluster LOCATION/CLUSTER of a project, or nil.
func (c *Clusters) named(project, zone string) *watched {
	i := slices.IndexFunc(c.all, func(w *watched) bool { return w.Project == project && w.Location+"/"+w.Name == zone })
	if i < 0 {
		return nil
	}
	return c.all[i]
}

// listTimeout bounds the listing of a cluster. One that does not answer must not keep patrol from the others.
const listTimeout = 20 * time.Second

func (c *Clusters) list(ctx context.Context, w *watched, zone string) (l provider.Listing, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	client, err := c.clientOf(ctx, w)
	if err != nil {
		return l, err
	}
	now := c.now()
	o, err := client.listAll(ctx, w.Namespaces...)
	if err != nil || len(o.Unread) > 0 {
		w.forget(client)
	}
	if err != nil {
		return l, err
	}
	w.orders.listed()
	l.Without, l.Unread, l.Unexplained = scopesOf(o.Unread, zone), reasons(o.Unread), o.Unexplained
	for _, namespace := range w.Namespaces {
		l.Only = append(l.Only, zone+"/"+namespace)
	}
	readings := Readings(o, w.Location, w.Name, now)
	groups := map[string][]string{}
	for _, r := range readings {
		if r.Group != "" && !r.Remains {
			groups[r.Scope+"/"+r.Group] = append(groups[r.Scope+"/"+r.Group], r.Name)
		}
	}
	for _, r := range readings {
		s := r.slice(w.Project)
		for _, other := range groups[r.Scope+"/"+r.Group] {
			if other != r.Name && !r.Remains {
				s.With = append(s.With, other)
			}
		}
		l.Slices = append(l.Slices, s)
	}
	return l, nil
}

// clientOf opens the client of a cluster, if it is not open.
func (c *Clusters) clientOf(ctx context.Context, w *watched) (*Client, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.client == nil {
		client, err := c.open(ctx, w.Cluster)
		if err != nil {
			return nil, err
		}
		client.orders = &w.orders
		w.client = &client
	}
	return w.client, nil
}

// forget has the client opened again by the next call.
func (w *watched) forget(client *Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.client == client {
		w.client = nil
	}
}

// Read implements provider.Provider. It lists the cluster: what a slice is in shows by its Pods and machines alone.
func (c *Clusters) Read(ctx context.Context, r provider.Ref) (provider.Slice, error) {
	l, err := c.List(ctx, r.Project, provider.Listed(r.Zone))
	if err != nil {
		return provider.Slice{}, err
	}
	for _, s := range l.Slices {
		if s.Zone == r.Zone && s.Name == r.Name {
			return s, nil
		}
	}
	what := "read Job " + r.Name + " in " + r.Zone
	switch {
	case slices.Contains(l.Without, r.Zone):
		return provider.Slice{}, &provider.Error{Call: what, Class: provider.Failure(l.Unread).Class, Message: l.Unread.Error(), Cause: l.Unread}
	case l.Partial:
		return provider.Slice{}, &provider.Error{Call: what, Class: reason.Invalid, Message: "CLUSTERS does not name the cluster " + provider.Listed(r.Zone) + " of " + r.Project}
	case !l.Misses(r.Zone):
		return provider.Slice{}, &provider.Error{Call: what, Class: reason.Invalid, Message: "CLUSTERS does not name its namespace"}
	}
	return provider.Slice{Ref: r, Condition: evidence.Gone, State: "not found"}, nil
}

// slice is a reading as every provider gives it.
func (r Reading) slice(project string) provider.Slice {
	s := provider.Slice{
		Ref:       provider.Ref{Project: project, Zone: r.Scope, Name: r.Name, QueuedResource: r.Group, Life: r.Life},
		Condition: r.State, State: string(r.State) + ": " + r.Why, Incarnation: r.Incarnation, Labels: map[string]string{}, Directory: r.Directory,
		Accelerator: strings.TrimSpace(r.Accelerator + " " + r.Topology), Workers: r.Workers, Chips: r.Chips, Capacity: r.Capacity,
		Healing: evidence.HealsNever, Cause: r.Cause, Failed: r.Failed, Kept: r.Kept, Controlled: r.Controlled, Ends: r.Ends.Truncate(time.Second), WaitsSince: r.WaitsSince, Ordered: r.Ordered, Notice: r.Notice,
		Machines: r.Machines, Remains: r.Remains,
	}
	if r.Heals {
		s.Healing = evidence.HealsAlways
	}
	for name, value := range map[string]string{events.LabelPolicy: r.Policy, events.LabelWorkload: r.label(), events.LabelIncident: r.Incident} {
		if value != "" {
			s.Labels[name] = value
		}
	}
	if r.State == Ready { // how many Pods of how many are ready is no news
		s.State = string(Ready)
	}
	if r.EndsAssumed {
		s.Ends = s.Ends.Truncate(time.Minute)
	}
	if o := r.order; o != nil {
		s.Spec, s.Values, s.ValuesSum, s.SpecHash = o.spec, maps.Clone(o.values), o.sum, o.name
	}
	return s
}

// label is the owner's word for the workload; empty where there is none.
func (r Reading) label() string {
	if r.Workload == cmp.Or(r.Group, r.Name) {
		return ""
	}
	return r.Workload
}

// Operations implements provider.Provider. Kubernetes answers each call at once.
func (c *Clusters) Operations(context.Context, string, string, ...string) ([]provider.Operation, error) {
	return nil, nil
}

// Hosts implements provider.Guests. The names of machines say nothing of their Pods.
func (c *Clusters) Hosts(context.Context, provider.Ref) ([]string, error) { return nil, nil }

// Crews implements provider.Guests. A Pod has no guest attributes.
func (c *Clusters) Crews(context.Context, provider.Ref) ([]events.CrewState, error) { return nil, nil }

// refused refuses a call that Pitstop does not make.
func refused(verb string, r provider.Ref) error {
	return &provider.Error{
		Call: fmt.Sprintf("%s Job %s in %s", verb, r.Name, r.Zone), Class: reason.Invalid,
		Message: "Pitstop does not do this with Jobs of GKE; do it with kubectl",
	}
}

// Start implements provider.Starter.
func (c *Clusters) Start(_ context.Context, r provider.Ref) (string, error) {
	return "", refused("start", r)
}

// SetMetadata implements provider.Messenger.
func (c *Clusters) SetMetadata(_ context.Context, r provider.Ref, key, _ string) error {
	return refused("set "+key+" of", r)
}
