package cloudtputest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/shared/view"
)

// queue is a queued resource.
type queue struct {
	zone, name string
	order      api.QueuedResource
	created    time.Time
	state      string
	initiator  string
	failed     *status
	nodes      []ordered
	// version is the version of the API that ordered it; v2alpha1 when empty.
	version string
	// turn rises with every state, as that of a node does.
	turn int
	// ripe says that it has waited as long as it has to.
	ripe bool
}

// ordered is one node that a queued resource asks for.
type ordered struct {
	name string
	node *api.Node
}

// The states of a queued resource that are set here.
// https://cloud.google.com/tpu/docs/queued-resources
const (
	waiting      = "WAITING_FOR_RESOURCES"
	provisioning = "PROVISIONING"
	active       = "ACTIVE"
	failed       = "FAILED"
	suspending   = "SUSPENDING"
	suspended    = "SUSPENDED"
)

// shown is a queued resource as the API shows it now.
func (q *queue) shown() *api.QueuedResource {
	shown := q.order
	s := &api.QueuedResourceState{State: q.state, StateInitiator: q.initiator}
	switch q.state {
	case provisioning:
		s.ProvisioningData = &api.ProvisioningData{}
	case active:
		s.ActiveData = &api.ActiveData{}
	case suspending:
		s.SuspendingData = &api.SuspendingData{}
	case suspended:
		s.SuspendedData = &api.SuspendedData{}
	case deleting:
		s.DeletingData = &api.DeletingData{}
	case "ACCEPTED":
		s.AcceptedData = &api.AcceptedData{}
	case creating:
		s.CreatingData = &api.CreatingData{}
	case failed:
		s.FailedData = &api.FailedData{}
		if q.failed != nil {
			s.FailedData.Error = &api.Status{Code: int64(q.failed.code), Message: q.failed.message}
		}
	}
	shown.State = s
	return &shown
}

// enter brings a queued resource into a state and cancels everything planned for it.
func (a *API) enter(q *queue, state, initiator string) {
	q.turn++
	if q.state == state {
		return
	}
	q.state, q.initiator = state, initiator
	e := Event{Kind: Queued, Zone: q.zone, QueuedResource: q.name, State: state}
	if q.failed != nil && state == failed {
		e.Code, e.Error = q.failed.code, q.failed.message
	}
	a.emit(e)
}

// members are the nodes of a queued resource that are there.
func (a *API) members(q *queue) []*node {
	var all []*node
	for _, o := range q.nodes {
		if n := a.nodes[key{q.zone, o.name}]; n != nil && n.queue == q {
			all = append(all, n)
		}
	}
	return all
}

// chips is how many chips a queued resource asks for.
func (q *queue) chips() (n int) {
	for _, o := range q.nodes {
		n += shapeOf(o.node).Chips
	}
	return n
}

// wait puts a queued resource into the line for capacity.
func (a *API) wait(q *queue) {
	q.ripe, q.failed = false, nil
	a.enter(q, waiting, initiatorService)
	a.waiting = append(a.waiting, q)
	turn := q.turn
	a.after(a.timing.Queue, func() {
		if q.turn == turn {
			q.ripe = true
			a.pump(q.zone)
		}
	})
	if p := q.order.QueueingPolicy; p != nil {
		until, err := time.ParseDuration(p.ValidUntilDuration)
		if err != nil {
			return
		}
		a.after(until, func() {
			if q.turn == turn {
				a.fail(q, refuse(deadlineExceeded, "The request expired: it could not be fulfilled within %s.",
					p.ValidUntilDuration))
			}
		})
	}
}

// fail ends the wait or the provisioning of a queued resource.
func (a *API) fail(q *queue, why *status) {
	q.failed = why
	a.leave(q)
	a.enter(q, failed, initiatorService)
	for _, n := range a.members(q) {
		a.remove(n, "")
	}
}

// leave takes a queued resource out of the line.
func (a *API) leave(q *queue) {
	a.waiting = slices.DeleteFunc(a.waiting, func(o *queue) bool { return o == q })
}

// pump provisions what waits in a zone, first come, first served, as far as there is capacity.
func (a *API) pump(zone string) {
	var full []view.Place
	for i := 0; i < len(a.waiting); i++ {
		q := a.waiting[i]
		if q.zone != zone || !q.ripe || q.state != waiting {
			continue
		}
		at := placeOf(zone, q.nodes[0].node, &q.order)
		if slices.Contains(full, at) {
			continue
		}
		if free := a.free(at); free != Unlimited && free < len(q.nodes) {
			full = append(full, at)
			continue
		}
		a.leave(q)
		i--
		if refused := a.checkQuota(zone, q.chips()); refused != nil {
			a.fail(q, refused)
			continue
		}
		a.provision(q)
	}
}

// provision makes the nodes of a queued resource.
func (a *API) provision(q *queue) {
	a.enter(q, provisioning, initiatorService)
	var made []*node
	for _, o := range q.nodes {
		if a.nodes[key{q.zone, o.name}] != nil {
			a.fail(q, refuse(alreadyExists, "Resource '%s/nodes/%s' already exists", a.parent(q.zone), o.name))
			return
		}
		n := a.add(q.zone, o.name, o.node, nil, q)
		n.api.ApiVersion = apiVersions[cmp.Or(q.version, version)]
		a.planEnd(n)
		made = append(made, n)
	}
	turn := q.turn
	a.after(a.timing.Create+a.stuck, func() {
		if q.turn != turn {
			return
		}
		a.enter(q, active, initiatorService)
		for _, n := range made {
			if !n.gone && n.api.State == creating {
				a.set(n, ready, healthy, "")
			}
		}
	})
}

// suspend ends an active queued resource after one of its nodes was lost or deleted: the others go too, and its name stays.
func (a *API) suspend(q *queue, initiator string) {
	if q.state != active && q.state != provisioning {
		return
	}
	a.enter(q, suspending, initiator)
	for _, n := range a.members(q) {
		if kindOf(n.api.State, n.api.Health) != Lost && n.api.State != deleting {
			a.set(n, deleting, n.api.Health, "")
		}
	}
	turn := q.turn
	a.after(a.timing.Suspend, func() {
		if q.turn != turn {
			return
		}
		a.enter(q, suspended, initiator)
		for _, n := range a.members(q) {
			a.remove(n, "")
		}
	})
}

func (a *API) findQueued(c *request) (*queue, *status) {
	q := a.queues[key{c.zone, c.id}]
	if q == nil {
		return nil, a.unknown("queuedResources", c)
	}
	return q, nil
}

func (a *API) getQueuedResource(c *request) (any, *status) {
	q, refused := a.findQueued(c)
	if refused != nil {
		return nil, refused
	}
	return q.shown(), nil
}

func (a *API) listQueuedResources(c *request) (any, *status) {
	if c.fault.Unreachable {
		return &api.ListQueuedResourcesResponse{Unreachable: []string{a.parent(c.zone)}}, nil
	}
	var all []*api.QueuedResource
	for _, q := range in(a.queues, c.zone) {
		all = append(all, q.shown())
	}
	items, next, refused := page(a, c, all)
	return &api.ListQueuedResourcesResponse{QueuedResources: items, NextPageToken: next}, refused
}

func (a *API) createQueuedResource(c *request) (any, *status) {
	var order api.QueuedResource
	if refused := c.decode(&order); refused != nil {
		return nil, refused
	}
	name := c.query.Get("queuedResourceId")
	if !idWord.MatchString(name) {
		return nil, a.bad("queued_resource_id %q is invalid.", name)
	}
	if op := a.repeated(c); op != nil {
		return op.shown(), nil
	}
	q, refused := a.order(c.zone, name, &order)
	if refused != nil {
		return nil, refused
	}
	if a.queues[key{c.zone, name}] != nil {
		return nil, refuse(alreadyExists, "Resource '%s' already exists", q.order.Name)
	}
	for _, o := range q.nodes {
		if a.nodes[key{c.zone, o.name}] != nil {
			return nil, refuse(alreadyExists, "Resource '%s/nodes/%s' already exists", a.parent(c.zone), o.name)
		}
	}
	q.version = c.version
	a.queues[key{c.zone, name}] = q
	if c.fault.LateCode == 0 {
		a.wait(q)
	} else {
		a.enter(q, creating, initiatorUser)
	}
	return a.start(c, nil, q, "create", a.timing.Accept, func(late *status) (any, *status) {
		if late != nil {
			a.drop(q)
			return nil, late
		}
		return q.shown(), nil
	}), nil
}

// mostNodes bounds a queued resource, so that a wrong number does not fill the memory. Google's own bound is not published.
const mostNodes = 1000

// order reads what a queued resource asks for.
func (a *API) order(zone, name string, order *api.QueuedResource) (*queue, *status) {
	q := &queue{zone: zone, name: name, order: *order, created: a.clock.Now()}
	q.order.Name = a.parent(zone) + "/queuedResources/" + name
	q.order.CreateTime = stamp(q.created)
	q.order.State = nil
	tiers := 0
	for _, given := range []bool{order.Spot != nil, order.Guaranteed != nil, order.BestEffort != nil} {
		if given {
			tiers++
		}
	}
	if tiers > 1 {
		return nil, a.bad("only one of best_effort, guaranteed, spot can be given.")
	}
	if order.Tpu == nil || len(order.Tpu.NodeSpec) == 0 {
		return nil, a.bad("tpu.node_spec is required.")
	}
	for _, spec := range order.Tpu.NodeSpec {
		if spec.Node == nil || spec.Parent != a.parent(zone) {
			return nil, a.bad("node_spec: node is required and parent must be %q.", a.parent(zone))
		}
		if (spec.NodeId == "") == (spec.MultiNodeParams == nil) {
			return nil, a.bad("node_spec: exactly one of node_id, multi_node_params is required.")
		}
		if refused := a.checkOrder(zone, spec.Node); refused != nil {
			return nil, refused
		}
		if refused := a.checkReservation(zone, nil, order); refused != nil {
			return nil, refused
		}
		asked := int64(1)
		if spec.MultiNodeParams != nil {
			asked = spec.MultiNodeParams.NodeCount
		}
		if asked > int64(mostNodes-len(q.nodes)) {
			return nil, a.bad("a queued resource asks for at most %d nodes.", mostNodes)
		}
		if m := spec.MultiNodeParams; m != nil {
			if m.NodeCount < 2 {
				return nil, a.bad("multi_node_params.node_count must be greater than 1.")
			}
			prefix := m.NodeIdPrefix
			if prefix == "" {
				prefix = name
			}
			for i := range m.NodeCount {
				q.nodes = append(q.nodes, ordered{prefix + "-" + strconv.FormatInt(i, 10), spec.Node})
			}
			continue
		}
		if !idWord.MatchString(spec.NodeId) {
			return nil, a.bad("node_id %q is invalid.", spec.NodeId)
		}
		q.nodes = append(q.nodes, ordered{spec.NodeId, spec.Node})
	}
	return q, nil
}

// drop forgets a queued resource.
func (a *API) drop(q *queue) {
	q.turn++
	a.leave(q)
	if a.queues[key{q.zone, q.name}] == q {
		delete(a.queues, key{q.zone, q.name})
		a.emit(Event{Kind: Queued, Zone: q.zone, QueuedResource: q.name, State: "NOT_FOUND"})
	}
}

func (a *API) deleteQueuedResource(c *request) (any, *status) {
	if op := a.repeated(c); op != nil {
		return op.shown(), nil
	}
	q, refused := a.findQueued(c)
	if refused != nil {
		return nil, refused
	}
	// Google reads true and false in any case: gcloud writes True.
	force := strings.EqualFold(c.query.Get("force"), "true")
	if !force && c.query.Has("force") && !strings.EqualFold(c.query.Get("force"), "false") {
		return nil, refuse(invalidArgument, "Invalid value at 'force' (TYPE_BOOL), %q", c.query.Get("force"))
	}
	switch q.state {
	case waiting, "ACCEPTED", failed, suspended:
	case active, suspending:
		if force {
			break
		}
		fallthrough
	default:
		return nil, refuse(failedPrecondition, "DeleteQueuedResource is not supported when state is %s", q.state)
	}
	// If its deletion is to fail, it stays as it is, with its nodes.
	d, members := a.timing.Delete, a.members(q)
	if len(members) == 0 {
		d = a.timing.Accept
	}
	if c.fault.LateCode == 0 {
		a.leave(q)
		a.enter(q, deleting, initiatorUser)
		for _, n := range members {
			a.set(n, deleting, n.api.Health, "")
		}
	}
	return a.start(c, nil, q, "delete", d, func(late *status) (any, *status) {
		if late != nil {
			return nil, late
		}
		for _, n := range members {
			a.remove(n, "")
		}
		a.after(a.timing.Linger, func() { a.drop(q) })
		return empty{}, nil
	}), nil
}

func (a *API) resetQueuedResource(c *request) (any, *status) {
	if refused := c.decode(&api.ResetQueuedResourceRequest{}); refused != nil {
		return nil, refused
	}
	q, refused := a.findQueued(c)
	if refused != nil {
		return nil, refused
	}
	switch q.state {
	case active, failed, suspended:
	default:
		return nil, refuse(failedPrecondition, "ResetQueuedResource is not supported when state is %s", q.state)
	}
	return a.start(c, nil, q, "reset", a.timing.Accept, func(late *status) (any, *status) {
		if late != nil {
			return nil, late
		}
		members := a.members(q)
		a.wait(q)
		for _, n := range members {
			a.remove(n, "")
		}
		return q.shown(), nil
	}), nil
}

func (a *API) getMaintenanceInfo(c *request) (any, *status) {
	q, refused := a.findQueued(c)
	if refused != nil {
		return nil, refused
	}
	out := &api.GetMaintenanceInfoResponse{}
	for _, n := range a.members(q) {
		if n.notice != nil {
			out.NodeUpcomingMaintenances = append(out.NodeUpcomingMaintenances, &api.NodeUpcomingMaintenanceInfo{
				NodeName: n.name, NodeUid: n.api.Id, UpcomingMaintenance: noticeAPI(n.notice),
			})
		}
	}
	return out, nil
}

func (a *API) performMaintenanceQueuedResource(c *request) (any, *status) {
	var ask api.PerformMaintenanceQueuedResourceRequest
	if refused := c.decode(&ask); refused != nil {
		return nil, refused
	}
	q, refused := a.findQueued(c)
	if refused != nil {
		return nil, refused
	}
	if len(ask.NodeNames) == 0 {
		return nil, a.bad("node_names is required.")
	}
	var nodes []*node
	for _, name := range ask.NodeNames {
		i := slices.IndexFunc(a.members(q), func(n *node) bool { return name == n.name || name == n.api.Name })
		if i < 0 {
			return nil, refuse(notFound, "Resource '%s' was not found in queued resource %s", name, q.name)
		}
		n := a.members(q)[i]
		if refused := mayPerform(n); refused != nil {
			return nil, refused
		}
		nodes = append(nodes, n)
	}
	return a.perform(c, nil, q, nodes), nil
}
