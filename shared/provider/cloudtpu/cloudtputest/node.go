package cloudtputest

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

// node is one life of a node.
type node struct {
	zone, name string
	api        api.Node
	// legacy is the order through v1, for a legacy TPU Node; nil for a TPU VM. The fields common to both versions are in api.
	legacy  *tpupb.Node
	created time.Time
	shape   topology.Shape
	// group is what the host names of the workers have in common.
	group  string
	notice *events.Notice
	queue  *queue
	// gone says that no part of it is left.
	gone bool
	// turn rises whenever something new happens to the node, which cancels everything planned before.
	turn int
	// exited begins the maintenance that waits for the process on the TPU to exit; nil where none waits.
	exited func()
	// homeless is a node for which there never was capacity.
	homeless bool
	// busy is the update that is in flight, if one is.
	busy *operation
	// guest holds the guest attributes by worker, namespace and key.
	guest map[int]map[[2]string]string
}

func (n *node) incarnation() events.Incarnation {
	if n.legacy != nil {
		return events.Incarnation{Zone: n.zone, ID: stamp(n.created), Created: n.created}
	}
	return events.Incarnation{Zone: n.zone, ID: strconv.FormatInt(n.api.Id, 10), Created: n.created}
}

func (n *node) host(worker int) string { return n.group + "-w-" + strconv.Itoa(worker) }

// event is an event about the node.
func (n *node) event(k Kind, c events.Cause) Event {
	e := Event{
		Kind: k, Zone: n.zone, Node: n.name, Incarnation: n.incarnation(), Group: n.group, Workers: n.shape.Workers,
		State: n.api.State, Health: n.api.Health, Cause: c, Legacy: n.legacy != nil,
	}
	at := n.place()
	e.Accelerator, e.Capacity = at.Accelerator, at.Capacity
	if n.queue != nil {
		e.QueuedResource = n.queue.name
	}
	return e
}

// The states of a node that are set here.
const (
	creating  = "CREATING"
	ready     = "READY"
	deleting  = "DELETING"
	repairing = "REPAIRING"
	stopped   = "STOPPED"
	stopping  = "STOPPING"
	starting  = "STARTING"
	preempted = "PREEMPTED"

	healthy          = "HEALTHY"
	unhealthy        = "UNHEALTHY_MAINTENANCE"
	timedOut         = "TIMEOUT"
	healthUnknown    = "HEALTH_UNSPECIFIED"
	terminated       = "TERMINATED"
	initiatorUser    = "USER"
	initiatorService = "SERVICE"
)

func kindOf(state, health string) Kind {
	switch state {
	case creating:
		return Created
	case ready:
		if health == healthy || health == healthUnknown || health == "" {
			return Ready
		}
	case deleting:
		return Deleting
	case stopping, stopped:
		return Stopped
	case preempted, terminated:
		return Lost
	}
	return Unhealthy
}

// set brings a node into a state and cancels everything planned for it.
func (a *API) set(n *node, state, health string, c events.Cause) {
	n.turn++
	if n.api.State == state && n.api.Health == health {
		return
	}
	n.api.State, n.api.Health = state, health
	n.endpoints()
	a.emit(n.event(kindOf(state, health), c))
	if k := kindOf(state, health); n.queue != nil && (k == Lost || k == Deleting) {
		initiator := initiatorService
		if k == Deleting {
			initiator = initiatorUser
		}
		a.suspend(n.queue, initiator)
	}
	a.pump(n.zone)
}

// endpoints shows the addresses of the workers while there are any.
func (n *node) endpoints() {
	switch n.api.State {
	case ready, repairing, "RESTARTING", "REIMAGING", "HIDING", "HIDDEN", "UNHIDING":
		if len(n.api.NetworkEndpoints) > 0 {
			return
		}
	default:
		n.api.NetworkEndpoints = nil
		return
	}
	id := uint64(n.api.Id) //nolint:gosec // any bits will do
	for w := range n.shape.Workers {
		e := &api.NetworkEndpoint{
			IpAddress: fmt.Sprintf("10.%d.%d.%d", id>>8&0x7f, id&0xff^uint64(w>>8), w&0xff), Port: 8470,
		}
		if c := n.api.NetworkConfig; c != nil && c.EnableExternalIps {
			e.AccessConfig = &api.AccessConfig{ExternalIp: fmt.Sprintf("203.0.%d.%d", id&0xff, w&0xff)}
		}
		n.api.NetworkEndpoints = append(n.api.NetworkEndpoints, e)
	}
}

// add makes a node from an order.
func (a *API) add(zone, name string, order *api.Node, legacy *tpupb.Node, q *queue) *node {
	n := &node{zone: zone, name: name, api: *order, legacy: legacy, created: a.clock.Now(), queue: q, shape: shapeOf(order)}
	n.group = fmt.Sprintf("t1v-n-%08x", uint32(a.random("node "+zone+" "+name))) //nolint:gosec // half of it is wanted
	n.api.Name = a.parent(zone) + "/nodes/" + name
	n.api.Id = int64(a.random("node "+zone+" "+name) >> 1)
	n.api.CreateTime = stamp(n.created)
	n.api.ApiVersion = "V2_ALPHA1"
	if legacy != nil {
		n.api.ApiVersion = "V1"
	}
	n.api.Labels, n.api.Metadata = maps.Clone(order.Labels), maps.Clone(order.Metadata)
	describe(&n.api)
	n.api.QueuedResource, n.api.MultisliceNode = "", false
	if q != nil {
		n.api.QueuedResource = a.parent(zone) + "/queuedResources/" + q.name
		n.api.MultisliceNode = len(q.nodes) > 1
		if q.order.Spot != nil || q.order.ProvisioningModel == "SPOT" {
			s := api.SchedulingConfig{}
			if n.api.SchedulingConfig != nil {
				s = *n.api.SchedulingConfig
			}
			s.Spot = true
			n.api.SchedulingConfig = &s
		}
	}
	n.api.State, n.api.Health, n.api.HealthDescription = creating, "", ""
	n.api.Symptoms, n.api.UpcomingMaintenance, n.api.NetworkEndpoints = nil, nil, nil
	n.guest = map[int]map[[2]string]string{}
	for w := range n.shape.Workers {
		n.guest[w] = map[[2]string]string{{"hostkeys", "hostname"}: n.host(w)}
	}
	a.nodes[key{zone, name}] = n
	a.emit(n.event(Created, ""))
	return n
}

// remove ends a node.
func (a *API) remove(n *node, c events.Cause) {
	if n.gone {
		return
	}
	n.gone = true
	n.turn++
	delete(a.nodes, key{n.zone, n.name})
	a.emit(n.event(Gone, c))
	if n.queue != nil {
		a.suspend(n.queue, initiatorService)
	}
	a.pump(n.zone)
}

// apiTypes are the names of the generations in an accelerator configuration.
var apiTypes = map[string]string{
	"v2": "V2", "v3": "V3", "v4": "V4", "v5litepod": "V5LITE_POD", "v5p": "V5P", "v6e": "V6E",
}

// describe adds the other of the two ways to say what accelerator a node is: the API shows both.
func describe(n *api.Node) {
	shape := shapeOf(n)
	if n.AcceleratorType == "" {
		number := shape.Chips
		if shape.Generation != "v5litepod" && shape.Generation != "v6e" {
			number = shape.Cores
		}
		n.AcceleratorType = shape.Generation + "-" + strconv.Itoa(number)
	}
	if n.AcceleratorConfig == nil {
		n.AcceleratorConfig = &api.AcceleratorConfig{Type: apiTypes[shape.Generation], Topology: topologyOf(shape)}
	}
}

// topologyOf is a topology of as many chips, as even as they come.
func topologyOf(s topology.Shape) string {
	sides := 2
	if s.Generation == "v4" || s.Generation == "v5p" {
		sides = 3
	}
	dims := make([]int, sides)
	for i := range dims {
		dims[i] = 1
	}
	rest := s.Chips
	for f := 2; rest > 1; {
		if rest%f != 0 {
			f++
			continue
		}
		rest /= f
		slices.Sort(dims)
		dims[0] *= f
	}
	slices.Sort(dims)
	if sides == 3 && dims[0] == 1 { // 2x2x1 is how it is written
		dims = append(dims[1:], 1)
	}
	var b strings.Builder
	for i, d := range dims {
		if i > 0 {
			b.WriteByte('x')
		}
		b.WriteString(strconv.Itoa(d))
	}
	return b.String()
}

// shapeOf is the ordered shape of a node; empty if it cannot be understood.
func shapeOf(n *api.Node) topology.Shape {
	if n.AcceleratorType != "" || n.AcceleratorConfig == nil {
		s, err := topology.Parse(n.AcceleratorType)
		if err != nil {
			return topology.Shape{}
		}
		return s
	}
	chips := 1
	for side := range strings.SplitSeq(n.AcceleratorConfig.Topology, "x") {
		k, err := strconv.Atoi(side)
		if err != nil || k < 1 || k > 1024 || chips > 1<<20 {
			return topology.Shape{}
		}
		chips *= k
	}
	for prefix, name := range apiTypes {
		if name != n.AcceleratorConfig.Type {
			continue
		}
		for _, number := range []int{chips, 2 * chips} {
			if s, err := topology.Parse(prefix + "-" + strconv.Itoa(number)); err == nil && s.Chips == chips {
				return s
			}
		}
	}
	return topology.Shape{}
}

var (
	labelKey   = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	labelValue = regexp.MustCompile(`^[a-z0-9_-]{0,63}$`)
)

// checkOrder refuses what the API refuses of an order for a node.
func (a *API) checkOrder(zone string, n *api.Node) *status {
	if n.RuntimeVersion == "" {
		return a.bad("runtime_version is required.")
	}
	if n.AcceleratorType != "" && n.AcceleratorConfig != nil {
		return a.bad("accelerator_type and accelerator_config are mutually exclusive.")
	}
	if n.NetworkConfig != nil && len(n.NetworkConfigs) > 0 {
		return a.bad("network_config and network_configs are mutually exclusive.")
	}
	if len(n.Description) > 512 {
		return a.bad("description is longer than 512 characters.")
	}
	if refused := a.checkLabels(n.Labels); refused != nil {
		return refused
	}
	if shapeOf(n).Chips == 0 {
		return a.bad("accelerator type %q is invalid.", accelerator(n))
	}
	if !a.offers(zone) {
		name := accelerator(n)
		return a.bad("The requested accelerator configuration for accelerator type, %q, could not be found in the zonal "+
			"accelerator configurations for %q.; the accelerator %s was not found in zone %s", name, zone, name, zone)
	}
	return a.checkPlaces(zone, n)
}

func accelerator(n *api.Node) string {
	if n.AcceleratorConfig != nil && n.AcceleratorType == "" {
		return n.AcceleratorConfig.Type + " " + n.AcceleratorConfig.Topology
	}
	return n.AcceleratorType
}

func (a *API) checkLabels(labels map[string]string) *status {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if !labelKey.MatchString(k) || !labelValue.MatchString(labels[k]) {
			return a.bad("label %q: %q is invalid.", k, labels[k])
		}
	}
	return nil
}

// checkQuota refuses an order above the project's quota in a zone. https://cloud.google.com/tpu/docs/quota
func (a *API) checkQuota(zone string, chips int) *status {
	limit, limited := a.quota[zone]
	if !limited {
		return nil
	}
	for _, n := range in(a.nodes, zone) {
		chips += n.shape.Chips
	}
	for _, q := range in(a.queues, zone) {
		if q.state == failed || q.state == suspended { // otherwise it holds no quota yet, or its nodes hold it
			chips += q.chips()
		}
	}
	if chips <= limit {
		return nil
	}
	return refuse(resourceExhausted, "Quota 'TPUV5sPreemptibleLitepodPerProjectPerZoneForTPUAPI' exhausted. Limit %d in zone %s", limit, zone)
}

func (a *API) stockout(zone string, at view.Place) *status {
	if at.Capacity == events.Reserved {
		return refuse(failedPrecondition, "There is insufficient reserved capacity for the request.%s", a.eid())
	}
	return refuse(resourceExhausted, "There is no more capacity in the zone %q; you can try in another zone where Cloud TPU "+
		"Nodes are offered (see https://cloud.google.com/tpu/docs/regions)%s", zone, a.eid())
}

func (a *API) unknown(kind string, c *request) *status {
	return refuse(notFound, "Resource '%s/%s/%s' was not found", a.parent(c.zone), kind, c.id)
}

func (a *API) find(c *request) (*node, *status) {
	n := a.nodes[key{c.zone, c.id}]
	if n == nil || !a.shows(c, n) {
		return nil, a.unknown("nodes", c)
	}
	return n, nil
}

// in lists what lies in a zone, or everywhere for the zone "-", by name.
func in[T any](all map[key]T, zone string) []T {
	var keys []key
	for k := range all {
		if zone == "-" || k.zone == zone {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(strings.Compare(a.zone, b.zone), strings.Compare(a.name, b.name))
	})
	items := make([]T, len(keys))
	for i, k := range keys {
		items[i] = all[k]
	}
	return items
}

func (a *API) getNode(c *request) (any, *status) {
	n, refused := a.find(c)
	if refused != nil {
		return nil, refused
	}
	return n.resource(c.version), nil
}

// shown is a node as the API shows it now. Google does not document whether a node in a queued resource keeps its notice:
// here it does not, which is the harder case.
func (n *node) shown() *api.Node {
	shown := n.api
	if n.api.State != "PREEMPTED" && n.api.State != "TERMINATED" {
		shown.UpcomingMaintenance = noticeAPI(n.notice)
	}
	return &shown
}

// listed is a page of the nodes that a version of the API shows, each as it shows them.
func listed[T any](a *API, c *request, shown func(*node) T) (items []T, next string, refused *status) {
	var all []T
	for _, n := range in(a.nodes, c.zone) {
		if a.shows(c, n) {
			all = append(all, shown(n))
		}
	}
	return page(a, c, all)
}

func (a *API) listNodes(c *request) (any, *status) {
	if c.fault.Unreachable {
		return &api.ListNodesResponse{Unreachable: []string{a.parent(c.zone)}}, nil
	}
	items, next, refused := listed(a, c, (*node).shown)
	return &api.ListNodesResponse{Nodes: items, NextPageToken: next}, refused
}

func (a *API) createNode(c *request) (any, *status) {
	var order api.Node
	if refused := c.decode(&order); refused != nil {
		return nil, refused
	}
	name := c.query.Get("nodeId")
	if !idWord.MatchString(name) {
		return nil, a.bad("node_id %q is invalid.", name)
	}
	if op := a.repeated(c); op != nil {
		return op.shown(), nil
	}
	if refused := a.checkOrder(c.zone, &order); refused != nil {
		return nil, refused
	}
	return a.create(c, name, &order, nil)
}

// create begins to make a node of an order that is in order.
func (a *API) create(c *request, name string, order *api.Node, legacy *tpupb.Node) (any, *status) {
	if a.nodes[key{c.zone, name}] != nil {
		return nil, refuse(alreadyExists, "Resource '%s/nodes/%s' already exists", a.parent(c.zone), name)
	}
	if refused := a.checkQuota(c.zone, shapeOf(order).Chips); refused != nil {
		return nil, refused
	}
	room := a.free(placeOf(c.zone, order, nil)) != 0
	n := a.add(c.zone, name, order, legacy, nil)
	a.planEnd(n)
	n.homeless, n.api.ApiVersion = !room, apiVersions[c.version]
	d := a.timing.Create
	if n.homeless {
		d = a.timing.Refuse
	}
	return a.start(c, n, nil, "create", d, func(late *status) (any, *status) {
		switch {
		case n.gone || n.api.State == deleting:
			return nil, refuse(cancelled, "The operation was cancelled: node %s was deleted.", name)
		case late == nil && n.homeless:
			late = a.stockout(c.zone, n.place())
		case late == nil && n.api.State != creating:
			late = refuse(internal, "TPU operation failed: an internal error%s", a.eid())
		}
		if late != nil {
			a.remove(n, "")
			return nil, late
		}
		a.set(n, ready, healthy, "")
		return n.resource(c.version), nil
	}), nil
}

// notNow refuses a call that the state of a node does not allow.
func (a *API) notNow(verb string, n *node) *status {
	return a.bad("%s is not supported while in state %s", verb, n.api.State)
}

// inFlight refuses the second of two changes at a time.
func inFlight() *status { return refuse(aborted, "unable to queue the operation") }

func (a *API) deleteNode(c *request) (any, *status) {
	if op := a.repeated(c); op != nil {
		return op.shown(), nil
	}
	n, refused := a.find(c)
	switch {
	case refused != nil:
		return nil, refused
	case n.busy != nil:
		return nil, inFlight()
	case n.api.State == deleting:
		return nil, a.notNow("delete", n)
	}
	state, health := n.api.State, n.api.Health
	a.set(n, deleting, health, "")
	return a.start(c, n, nil, "delete", a.timing.Delete, func(late *status) (any, *status) {
		if late != nil && !n.gone {
			a.set(n, state, health, "")
			return nil, late
		}
		a.remove(n, "")
		return empty{}, nil
	}), nil
}

// masks are the fields that an update may name, in both spellings.
var masks = map[string]string{
	"description": "description", "tags": "tags", "labels": "labels", "metadata": "metadata",
	"data_disks": "disks", "dataDisks": "disks",
	"network_config.enable_external_ips": "ips", "networkConfig.enableExternalIps": "ips",
}

func (a *API) updateNode(c *request) (any, *status) {
	var change api.Node
	if refused := c.decode(&change); refused != nil {
		return nil, refused
	}
	fields, refused := a.changed(c, &change)
	if refused != nil {
		return nil, refused
	}
	n, refused := a.find(c)
	switch {
	case refused != nil:
		return nil, refused
	case n.busy != nil:
		return nil, inFlight()
	case n.api.State != ready && n.api.State != stopped:
		return nil, a.notNow("update", n)
	}
	return a.update(c, n, "update", a.timing.Patch, func(late *status) (any, *status) {
		if late == nil && (n.gone || n.api.State != ready && n.api.State != stopped) {
			late = a.notNow("update", n)
		}
		if late != nil {
			return nil, late
		}
		for _, f := range fields {
			a.setField(n, f, &change)
		}
		return n.shown(), nil
	}), nil
}

// changed are the fields that the mask of an update names.
func (a *API) changed(c *request, change *api.Node) (fields []string, refused *status) {
	for f := range strings.SplitSeq(c.query.Get("updateMask"), ",") {
		if masks[f] == "" {
			return nil, a.bad("update_mask %q: supported are description, tags, labels, metadata, data_disks, "+
				"network_config.enable_external_ips.", f)
		}
		fields = append(fields, masks[f])
	}
	if slices.Contains(fields, "labels") {
		if refused := a.checkLabels(change.Labels); refused != nil {
			return nil, refused
		}
	}
	if slices.Contains(fields, "disks") {
		return fields, a.checkPlaces(c.zone, &api.Node{DataDisks: change.DataDisks})
	}
	return fields, nil
}

// setField gives a field of a node the value that it has in the change.
func (a *API) setField(n *node, field string, change *api.Node) {
	switch field {
	case "description":
		n.api.Description = change.Description
	case "tags":
		n.api.Tags = change.Tags
	case "labels":
		n.api.Labels = change.Labels
	case "metadata":
		a.setMetadata(n, change.Metadata)
	case "disks":
		n.api.DataDisks = change.DataDisks
	case "ips":
		config := api.NetworkConfig{}
		if n.api.NetworkConfig != nil {
			config = *n.api.NetworkConfig
		}
		config.EnableExternalIps = change.NetworkConfig != nil && change.NetworkConfig.EnableExternalIps
		n.api.NetworkConfig, n.api.NetworkEndpoints = &config, nil
		n.endpoints()
	}
}

// setMetadata replaces the whole map, as an update does.
func (a *API) setMetadata(n *node, m map[string]string) {
	old := n.api.Metadata
	n.api.Metadata = maps.Clone(m)
	all := maps.Clone(m)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, old)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		was, had := old[k]
		is, has := m[k]
		if was == is && had == has {
			continue
		}
		e := n.event(Metadata, "")
		e.Key, e.Value, e.Removed = k, is, !has
		a.emit(e)
	}
}

func (a *API) stopNode(c *request) (any, *status) {
	if refused := c.decode(&api.StopNodeRequest{}); refused != nil {
		return nil, refused
	}
	n, refused := a.find(c)
	switch {
	case refused != nil:
		return nil, refused
	case n.busy != nil:
		return nil, inFlight()
	case n.shape.Workers > 1:
		return nil, a.bad("stop is only supported for single TPU nodes.")
	case n.api.State != ready:
		return nil, a.notNow("stop", n)
	}
	health := n.api.Health
	a.set(n, stopping, health, "")
	return a.move(c, n, "stop", a.timing.Stop, stopping, [2]string{ready, health}, [2]string{stopped, ""}), nil
}

func (a *API) startNode(c *request) (any, *status) {
	if refused := c.decode(&api.StartNodeRequest{}); refused != nil {
		return nil, refused
	}
	n, refused := a.find(c)
	switch {
	case refused != nil:
		return nil, refused
	case n.busy != nil:
		return nil, inFlight()
	case n.api.State != stopped:
		return nil, a.notNow("start", n)
	}
	a.set(n, starting, "", "")
	return a.move(c, n, "start", a.timing.Start, starting, [2]string{stopped, ""}, [2]string{ready, healthy}), nil
}

// move brings a node from a passing state to the next, or back when the operation fails.
func (a *API) move(c *request, n *node, verb string, d time.Duration, passing string, back, on [2]string) any {
	return a.update(c, n, verb, d, func(late *status) (any, *status) {
		switch {
		case n.gone || n.api.State != passing:
			return nil, refuse(cancelled, "The operation was cancelled: node %s is %s.", n.name, n.api.State)
		case late != nil:
			a.set(n, back[0], back[1], "")
			return nil, late
		}
		a.set(n, on[0], on[1], "")
		return n.resource(c.version), nil
	})
}

func (a *API) performMaintenance(c *request) (any, *status) {
	if refused := c.decode(&api.PerformMaintenanceRequest{}); refused != nil {
		return nil, refused
	}
	n, refused := a.find(c)
	if refused == nil {
		refused = mayPerform(n)
	}
	if refused != nil {
		return nil, refused
	}
	return a.perform(c, n, nil, []*node{n}), nil
}

// mayPerform refuses to start maintenance that was not announced, already runs or cannot be moved, or on a slice that is too
// small for it.
func mayPerform(n *node) *status {
	if !n.shape.MaintainsEarly() {
		return refuse(failedPrecondition, "Maintenance of node %s cannot be started by hand: %s does not support it.", n.name, accelerator(&n.api))
	}
	if n.notice == nil || n.notice.Status == events.NoticeOngoing || !n.notice.CanReschedule || n.api.State != ready {
		return refuse(failedPrecondition, "Node %s has no pending maintenance that can be rescheduled.", n.name)
	}
	return nil
}

// perform starts the maintenance of nodes at once.
func (a *API) perform(c *request, n *node, q *queue, nodes []*node) any {
	if c.fault.LateCode == 0 {
		for _, n := range nodes {
			a.beginMaintenance(n, a.timing.Maintenance)
		}
	}
	return a.start(c, n, q, "performMaintenance", a.timing.Perform, func(late *status) (any, *status) {
		if late != nil {
			return nil, late
		}
		if q != nil {
			return q.shown(), nil
		}
		return n.shown(), nil
	})
}

func (a *API) simulateMaintenanceEvent(c *request) (any, *status) {
	if refused := c.decode(&api.SimulateMaintenanceEventRequest{}); refused != nil {
		return nil, refused
	}
	n, refused := a.find(c)
	if refused == nil && n.api.State != ready {
		refused = a.notNow("simulateMaintenanceEvent", n)
	}
	if refused != nil {
		return nil, refused
	}
	return a.perform(c, n, nil, []*node{n}), nil
}

// autocheckpoint is how long maintenance waits for a process that checkpoints itself.
// https://cloud.google.com/tpu/docs/autocheckpoint
const autocheckpoint = 5 * time.Minute

// maintain begins maintenance of a node for d. Where the node has autocheckpoint, Google first sends SIGTERM to the process that
// holds the TPU, and waits until it exits or five minutes are over.
func (a *API) maintain(n *node, d time.Duration) {
	if !n.api.AutocheckpointEnabled || n.exited != nil {
		a.beginMaintenance(n, d)
		return
	}
	turn := n.turn
	n.exited = func() {
		if n.exited = nil; n.turn == turn {
			a.beginMaintenance(n, d)
		}
	}
	a.emit(n.event(Signalled, events.CauseMaintenance))
	a.after(autocheckpoint, func() {
		if n.turn == turn && n.exited != nil {
			n.exited()
		}
	})
}

// beginMaintenance takes a node under maintenance for d; below zero it never returns from it.
func (a *API) beginMaintenance(n *node, d time.Duration) {
	now := a.clock.Now()
	notice := events.Notice{Unscheduled: true, WindowStart: now, WindowEnd: now.Add(max(d, 0))}
	if n.notice != nil {
		notice = *n.notice
	}
	notice.Status = events.NoticeOngoing
	a.announce(n, &notice)
	n.api.HealthDescription = "The TPU had a maintenance event at " + stamp(now)
	a.set(n, ready, unhealthy, events.CauseMaintenance)
	a.heal(n, d, events.CauseMaintenance)
}

// heal makes a node usable again after d, unless something else happens to it before. Its announced maintenance, if it
// was that, is over then. What the API says of its health keeps speaking of it.
func (a *API) heal(n *node, d time.Duration, c events.Cause) {
	if d < 0 {
		return
	}
	turn := n.turn
	a.after(d, func() {
		if n.turn != turn {
			return
		}
		if c == events.CauseMaintenance {
			a.announce(n, nil)
		}
		a.set(n, ready, healthy, "")
	})
}

// announce changes what maintenance a node announces.
func (a *API) announce(n *node, notice *events.Notice) {
	if notice == nil && n.notice == nil || notice != nil && n.notice != nil && notice.Equal(*n.notice) {
		return
	}
	n.notice = notice
	e := n.event(Noticed, "")
	if notice != nil {
		told := *notice
		e.Notice = &told
	}
	a.emit(e)
}

func (a *API) getGuestAttributes(c *request) (any, *status) {
	var ask api.GetGuestAttributesRequest
	if refused := c.decode(&ask); refused != nil {
		return nil, refused
	}
	n, refused := a.find(c)
	if refused != nil {
		return nil, refused
	}
	if a.blocked {
		return nil, refuse(permissionDenied,
			"Constraint constraints/compute.disableGuestAttributesAccess violated for project %s.", a.project)
	}
	namespace, name, one := strings.Cut(strings.Trim(ask.QueryPath, "/"), "/")
	out := &api.GetGuestAttributesResponse{}
	if n.api.State != ready {
		return out, nil
	}
	for w := range n.shape.Workers {
		if len(ask.WorkerIds) > 0 && ask.WorkerIds[0] != "" && !slices.Contains(ask.WorkerIds, strconv.Itoa(w)) {
			continue
		}
		v := &api.GuestAttributesValue{}
		for k, value := range n.guest[w] {
			if (namespace == "" || k[0] == namespace) && (!one || k[1] == name) {
				v.Items = append(v.Items, &api.GuestAttributesEntry{Namespace: k[0], Key: k[1], Value: value})
			}
		}
		if a.guests != nil && (namespace == "" || namespace == events.GuestNamespace) {
			if value, ok := a.guests(n.zone, n.name, w); ok {
				v.Items = append(v.Items, &api.GuestAttributesEntry{Namespace: events.GuestNamespace, Key: events.GuestKey, Value: value})
			}
		}
		slices.SortFunc(v.Items, func(a, b *api.GuestAttributesEntry) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Key, b.Key))
		})
		out.GuestAttributes = append(out.GuestAttributes, &api.GuestAttributes{QueryPath: ask.QueryPath, QueryValue: v})
	}
	return out, nil
}
