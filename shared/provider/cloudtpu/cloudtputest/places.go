package cloudtputest

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

// place finds the zone or the region in the name of a resource.
var place = regexp.MustCompile(`(?:^|/)(?:zones|regions|locations)/([a-z]+-[a-z]+[0-9][^/]*)(?:/|$)`)

// ParsePlace reads a place: a zone, and after it a capacity, an accelerator type, or both, with spaces between them. Without them it is
// the whole zone.
func ParsePlace(text string) (at view.Place, err error) {
	for i, word := range strings.Fields(text) {
		c := events.Capacity(word)
		_, shaped := topology.Parse(word)
		switch known := c == events.Spot || c == events.OnDemand || c == events.Reserved || c == events.FlexStart; {
		case i == 0:
			at.Zone = word
		case known && at.Capacity == "":
			at.Capacity = c
		case shaped == nil && at.Accelerator == "":
			at.Accelerator = word
		default:
			return view.Place{}, fmt.Errorf("%.60q is no place such as us-west4-a, us-west4-a spot or us-west4-a on_demand v5litepod-16", text)
		}
	}
	return at, nil
}

// opens has a zone, without limit where it was not offered.
func (a *API) opens(zone string) {
	if !a.offers(zone) {
		a.room[view.Place{Zone: zone}] = Unlimited
	}
}

func (a *API) offers(zone string) bool {
	_, offered := a.room[view.Place{Zone: zone}]
	return offered
}

// place is what a node is taken from.
func (n *node) place() view.Place {
	var q *api.QueuedResource
	if n.queue != nil {
		q = &n.queue.order
	}
	return placeOf(n.zone, &n.api, q)
}

// placeOf is where an order asks for a node, which a queued resource may hold.
func placeOf(zone string, n *api.Node, q *api.QueuedResource) view.Place {
	at := view.Place{Zone: zone, Accelerator: n.AcceleratorType, Capacity: capacityOf(n, q)}
	if at.Accelerator == "" {
		c := api.Node{AcceleratorConfig: n.AcceleratorConfig}
		describe(&c)
		at.Accelerator = c.AcceleratorType
	}
	return at
}

func capacityOf(n *api.Node, q *api.QueuedResource) events.Capacity {
	s := n.SchedulingConfig
	if s == nil {
		s = &api.SchedulingConfig{}
	}
	if q == nil {
		q = &api.QueuedResource{}
	}
	switch model := []string{s.ProvisioningModel, q.ProvisioningModel}; {
	case s.Spot || s.Preemptible || q.Spot != nil || slices.Contains(model, "SPOT"):
		return events.Spot
	case s.Reserved || s.ReservationName+q.ReservationName != "" || q.Guaranteed != nil && q.Guaranteed.Reserved || slices.Contains(model, "RESERVATION_BOUND"):
		return events.Reserved
	case slices.Contains(model, flexStart):
		return events.FlexStart
	}
	return events.OnDemand
}

// askedPlace is where the body of a creation asks for a slice; of several in a queued resource, for the first one.
func askedPlace(zone, collection string, body []byte) view.Place {
	n, q := &api.Node{}, (*api.QueuedResource)(nil)
	switch collection {
	case "nodes":
		_ = json.Unmarshal(body, n) //nolint:errcheck // what cannot be read is refused
	case "queuedResources":
		q = &api.QueuedResource{}
		_ = json.Unmarshal(body, q) //nolint:errcheck // likewise
		if q.Tpu != nil && len(q.Tpu.NodeSpec) > 0 && q.Tpu.NodeSpec[0] != nil && q.Tpu.NodeSpec[0].Node != nil {
			n = q.Tpu.NodeSpec[0].Node
		}
	default:
		return view.Place{}
	}
	return placeOf(zone, n, q)
}

// belongs reports whether a place belongs to another one, in which what is empty counts for all.
func belongs(at, to view.Place) bool {
	return at.Zone == to.Zone && (to.Accelerator == "" || at.Accelerator == to.Accelerator) && (to.Capacity == "" || at.Capacity == to.Capacity)
}

// free is how many more slices a place can hold; Unlimited if it never refuses.
func (a *API) free(at view.Place) int {
	free := Unlimited
	for of, n := range a.room {
		if n < 0 || !belongs(at, of) {
			continue
		}
		for _, v := range a.nodes {
			holds := v.api.State != preempted && v.api.State != terminated && v.api.State != stopped
			if holds && !v.homeless && belongs(v.place(), of) {
				n--
			}
		}
		if n = max(n, 0); free == Unlimited || n < free {
			free = n
		}
	}
	return free
}

// reservationsOf, disksOf and subnetworksOf are what an order names of a zone or a region.
func reservationsOf(n *api.Node, q *api.QueuedResource) (names []string) {
	if n != nil && n.SchedulingConfig != nil {
		names = append(names, n.SchedulingConfig.ReservationName)
	}
	if q != nil {
		names = append(names, q.ReservationName)
	}
	return names
}

func disksOf(n *api.Node) (names []string) {
	for _, d := range n.DataDisks {
		names = append(names, d.SourceDisk)
	}
	if b := n.BootDiskConfig; b != nil {
		names = append(names, b.StoragePool)
	}
	return names
}

func subnetworksOf(n *api.Node) (names []string) {
	for _, c := range append([]*api.NetworkConfig{n.NetworkConfig}, n.NetworkConfigs...) {
		// A network in auto mode has a subnetwork of its own name in every region.
		if c != nil && (path.Base(c.Subnetwork) != path.Base(c.Network) || place.MatchString(c.Subnetwork)) {
			names = append(names, c.Subnetwork)
		}
	}
	return names
}

// AddSubnetwork has a subnetwork in a region, by its short name.
func (a *API) AddSubnetwork(region, name string) { a.do(func() { a.has(region, name) }) }

// has notes where something of a short name is.
func (a *API) has(where, name string) {
	if name != "" && !place.MatchString(name) && !slices.Contains(a.homes[name], where) {
		a.homes[name] = append(a.homes[name], where)
	}
}

// settle notes that a zone has the resources in somebody's order there.
func (a *API) settle(zone string, n *api.Node, q *api.QueuedResource) {
	for _, name := range append(reservationsOf(n, q), disksOf(n)...) {
		a.has(zone, name)
	}
	for _, name := range subnetworksOf(n) {
		a.has(topology.Region(zone), name)
	}
}

// checkReservation refuses a reservation of another zone. Neither for this nor for the next is it known what the API
// itself says of it, other than of a reservation that is not found.
func (a *API) checkReservation(zone string, n *api.Node, q *api.QueuedResource) *status {
	for _, name := range reservationsOf(n, q) {
		if !a.in(zone, name) {
			return refuse(notFound, "Reservation not found: %s", name)
		}
	}
	return nil
}

// checkPlaces refuses what a node cannot have where it is ordered.
func (a *API) checkPlaces(zone string, n *api.Node) *status {
	for _, name := range disksOf(n) {
		if !a.in(zone, name) {
			return a.bad("The disk or storage pool %s is not in zone %s.", name, zone)
		}
	}
	for _, name := range subnetworksOf(n) {
		if !a.in(topology.Region(zone), name) {
			return a.bad("The subnetwork %s is not in region %s.", name, topology.Region(zone))
		}
	}
	return a.checkReservation(zone, n, nil)
}

// in reports whether the resource of a name exists in a place. An unknown name exists everywhere.
func (a *API) in(where, name string) bool {
	if found := place.FindStringSubmatch(name); found != nil {
		return found[1] == where || found[1] == topology.Region(where)
	}
	homes := a.homes[name]
	return homes == nil || slices.Contains(homes, where)
}
