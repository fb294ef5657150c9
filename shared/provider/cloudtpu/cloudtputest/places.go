package cloudtputest

import (
	"path"
	"regexp"
	"slices"

	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/shared/topology"
)

// place finds the zone or the region in the name of a resource.
var place = regexp.MustCompile(`(?:^|/)(?:zones|regions|locations)/([a-z]+-[a-z]+[0-9][^/]*)(?:/|$)`)

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
