package cloudtputest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/view"
)

// NodeConfig is a node that somebody has ordered.
type NodeConfig struct {
	Zone, Name string
	// Accelerator is v5litepod-16 when empty.
	Accelerator      string
	Spot             bool
	Labels, Metadata map[string]string
	// Order is what else was ordered: the fields above are put on top of it. Legacy is the same of a legacy TPU Node, which has
	// no metadata.
	Order  *api.Node
	Legacy *tpupb.Node

	// State and Health are READY and HEALTHY when State is empty. Notice is maintenance that is announced.
	State, Health string
	Notice        *events.Notice
	// RunsFor is how long it lives: it is a flex-start node then. Zero is for as long as its order says, or for ever.
	RunsFor time.Duration
	// Created is when it was made: now when zero. ID and Group are made up when empty; Group is what the host names of the
	// workers have in common, t1v-n-9472280f.
	Created time.Time
	ID      int64
	Group   string
}

func (c NodeConfig) order() *api.Node {
	n := api.Node{RuntimeVersion: runtimes[0]}
	if c.Order != nil {
		n = *clone(c.Order)
	}
	if c.Accelerator != "" {
		n.AcceleratorType = c.Accelerator
	}
	switch {
	case n.AcceleratorType == "" && n.AcceleratorConfig == nil:
		n.AcceleratorType = "v5litepod-16"
	case n.AcceleratorType != "":
		n.AcceleratorConfig = nil // a reading shows both, an order has one
	}
	if c.Spot {
		n.SchedulingConfig = &api.SchedulingConfig{Spot: true}
	}
	if c.RunsFor > 0 {
		n.SchedulingConfig = &api.SchedulingConfig{ProvisioningModel: flexStart}
	}
	if c.Labels != nil {
		n.Labels = maps.Clone(c.Labels)
	}
	if c.Metadata != nil {
		n.Metadata = maps.Clone(c.Metadata)
	}
	return &n
}

// settle gives a node the life in its configuration.
func (c NodeConfig) settle(n *node) {
	if !c.Created.IsZero() {
		n.created = c.Created
		n.api.CreateTime = stamp(c.Created)
	}
	if c.ID != 0 {
		n.api.Id = c.ID
	}
	if c.Group != "" {
		n.group = c.Group
		for w, g := range n.guest {
			g[[2]string{"hostkeys", "hostname"}] = n.host(w)
		}
	}
	n.api.State, n.api.Health = c.State, c.Health
	if c.State == "" {
		n.api.State, n.api.Health = ready, healthy
	}
	n.endpoints()
	if c.Notice != nil {
		notice := *c.Notice
		n.notice = &notice
	}
}

// AddNode adds a node, as if it had always been there, and returns its life. The observer gets its state, but no creation.
// If the zone did not offer the accelerator, it does from then on, without limit.
func (a *API) AddNode(c NodeConfig) (life events.Incarnation, err error) {
	a.do(func() {
		if a.nodes[key{c.Zone, c.Name}] != nil {
			err = fmt.Errorf("cloudtputest: node %s in %s is there already", c.Name, c.Zone)
			return
		}
		var n *node
		if n, err = a.place(c, nil); err == nil {
			life = n.incarnation()
		}
	})
	return life, err
}

// place makes a node whose creating operation is long forgotten.
func (a *API) place(c NodeConfig, q *queue) (*node, error) {
	a.opens(c.Zone)
	order, legacy := c.order(), c.legacyOrder()
	if legacy != nil {
		order = legacyShared(legacy)
	}
	a.settle(c.Zone, order, nil)
	if refused := a.checkOrder(c.Zone, order); refused != nil {
		return nil, fmt.Errorf("cloudtputest: node %s: %s", c.Name, refused.message)
	}
	observer := a.observer
	a.observer = nil // its creation is no news
	n := a.add(c.Zone, c.Name, order, legacy, q)
	a.observer = observer
	c.settle(n)
	if c.RunsFor > 0 && q == nil {
		n.runFor(c.RunsFor)
	}
	a.planEnd(n)
	a.emit(n.event(kindOf(n.api.State, n.api.Health), ""))
	return n, nil
}

// QueuedConfig is a queued resource that somebody has ordered.
type QueuedConfig struct {
	Zone, Name string
	Nodes      []NodeConfig
	Spot       bool
	// Order is what else was ordered: tier and policy.
	Order *api.QueuedResource
	// State is ACTIVE when empty; only then, and when it is suspending, are the nodes there. Initiator is who brought it
	// into the state: SERVICE when empty. Code and Message say why it FAILED.
	State, Initiator string
	Code             int
	Message          string
}

// order is what a caller sends to order it.
func (c QueuedConfig) order(parent string) *api.QueuedResource {
	order := api.QueuedResource{}
	if c.Order != nil {
		order = *clone(c.Order)
	}
	if c.Spot {
		order.Spot = &api.Spot{}
	}
	order.Tpu = &api.Tpu{}
	for _, n := range c.Nodes {
		order.Tpu.NodeSpec = append(order.Tpu.NodeSpec, &api.NodeSpec{Parent: parent, NodeId: n.Name, Node: n.order()})
	}
	return &order
}

// AddQueuedResource puts a queued resource there, as if it had always been.
func (a *API) AddQueuedResource(c QueuedConfig) (err error) {
	a.do(func() {
		if a.queues[key{c.Zone, c.Name}] != nil {
			err = fmt.Errorf("cloudtputest: queued resource %s in %s is there already", c.Name, c.Zone)
			return
		}
		a.opens(c.Zone)
		order := c.order(a.parent(c.Zone))
		for _, n := range order.Tpu.NodeSpec {
			a.settle(c.Zone, n.Node, order)
		}
		q, refused := a.order(c.Zone, c.Name, order)
		if refused != nil {
			err = fmt.Errorf("cloudtputest: queued resource %s: %s", c.Name, refused.message)
			return
		}
		for _, n := range c.Nodes {
			if !n.Created.IsZero() && n.Created.Before(q.created) { // it existed before its nodes
				q.created = n.Created
				q.order.CreateTime = stamp(q.created)
			}
		}
		a.queues[key{c.Zone, c.Name}] = q
		switch c.State {
		case waiting:
			a.wait(q)
			return
		case provisioning:
			a.provision(q)
			return
		case "":
			q.state = active
		default:
			q.state = c.State
		}
		if q.initiator = c.Initiator; q.initiator == "" {
			q.initiator = initiatorService
		}
		if c.Code != 0 {
			q.failed = &status{c.Code, c.Message}
		}
		if q.state != active && q.state != suspending {
			return
		}
		for _, n := range c.Nodes {
			n.Zone = c.Zone
			if _, err = a.place(n, q); err != nil {
				return
			}
		}
	})
	return err
}

// SetCapacity says how many slices a zone holds at a time from now on, or Unlimited. Existing slices stay.
func (a *API) SetCapacity(zone string, slices int) { a.SetRoom(view.Place{Zone: zone}, slices) }

// SetRoom says the same of a place: of what a zone gives of one capacity, or in one shape. What is empty in the place counts for all.
func (a *API) SetRoom(at view.Place, slices int) {
	a.do(func() {
		a.room[at] = slices
		a.emit(Event{Kind: Supply, Zone: at.Zone, Accelerator: at.Accelerator, Capacity: at.Capacity, Value: strconv.Itoa(slices)})
		a.pump(at.Zone)
	})
}

// Capacity is how many slices a zone holds at a time, or Unlimited.
func (a *API) Capacity(zone string) int { return a.Room(view.Place{Zone: zone}) }

// Room is how many slices a place holds at a time, or Unlimited. Whether its zone holds as many is another number.
func (a *API) Room(at view.Place) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n, bound := a.room[at]; bound {
		return n
	}
	return Unlimited
}

// Scarce are the places that hold a bounded number of slices, in order.
func (a *API) Scarce() (places []view.Place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, n := range a.room {
		if n >= 0 {
			places = append(places, at)
		}
	}
	slices.SortFunc(places, func(p, o view.Place) int {
		return cmp.Or(cmp.Compare(p.Zone, o.Zone), cmp.Compare(p.Capacity, o.Capacity), cmp.Compare(p.Accelerator, o.Accelerator))
	})
	return places
}

// SetQuota says how many chips the project may hold in a zone from now on. Existing slices stay. Lost slices, and the slices
// of a failed or suspended queued resource, count until they are deleted.
func (a *API) SetQuota(zone string, chips int) {
	a.do(func() {
		a.quota[zone] = chips
		a.pump(zone)
	})
}

// BlockGuestAttributes forbids, or allows again, to read guest attributes, as an organization's policy does.
func (a *API) BlockGuestAttributes(blocked bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.blocked = blocked
}

// OnGuests makes f supply Pitstop's own guest attribute at the time that it is read.
func (a *API) OnGuests(f func(zone, name string, worker int) (value string, ok bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.guests = f
}

// SetGuestAttribute writes a guest attribute, as a worker does.
func (a *API) SetGuestAttribute(zone, name string, worker int, namespace, key, value string) error {
	return a.with(zone, name, func(n *node) {
		if n.guest[worker] != nil {
			n.guest[worker][[2]string{namespace, key}] = value
		}
	})
}

// with acts on a node.
func (a *API) with(zone, name string, f func(*node)) error {
	found := false
	a.do(func() {
		if n := a.nodes[key{zone, name}]; n != nil {
			found = true
			f(n)
		}
	})
	if !found {
		return fmt.Errorf("cloudtputest: no node %s in %s", name, zone)
	}
	return nil
}

// Preempt takes a node back. It keeps its name until it is deleted; a queued resource that holds it is suspended.
func (a *API) Preempt(zone, name string) error {
	return a.with(zone, name, func(n *node) { a.set(n, preempted, "", events.CausePreemption) })
}

// Terminate ends a node: it is TERMINATED and keeps its name until it is deleted.
func (a *API) Terminate(zone, name string) error {
	return a.with(zone, name, func(n *node) { a.set(n, terminated, "", events.CauseTerminated) })
}

// Vanish ends a node without a trace in any log, as happens to one preempted node in nine.
func (a *API) Vanish(zone, name string) error {
	return a.with(zone, name, func(n *node) { a.remove(n, events.CausePreemption) })
}

// HostError breaks a host of a node: it is under repair for that long, or for good when that is below zero.
func (a *API) HostError(zone, name string, down time.Duration) error {
	return a.with(zone, name, func(n *node) {
		a.set(n, repairing, timedOut, events.CauseHostError)
		a.heal(n, down, events.CauseHostError)
	})
}

// Announce announces maintenance of a node. It begins when BeginMaintenance says so.
func (a *API) Announce(zone, name string, notice events.Notice) error {
	return a.with(zone, name, func(n *node) { a.announce(n, &notice) })
}

// Withdraw takes an announcement back.
func (a *API) Withdraw(zone, name string) error {
	return a.with(zone, name, func(n *node) { a.announce(n, nil) })
}

// BeginMaintenance takes a node under maintenance for that long, announced or not, or for good when that is below zero.
// It is READY all the time and UNHEALTHY_MAINTENANCE meanwhile; the announcement is gone in the end.
func (a *API) BeginMaintenance(zone, name string, d time.Duration) error {
	return a.with(zone, name, func(n *node) { a.beginMaintenance(n, d) })
}

// Maintain begins maintenance that nobody announced, as Google does: a node with autocheckpoint gets SIGTERM first.
func (a *API) Maintain(zone, name string, d time.Duration) error {
	return a.with(zone, name, func(n *node) { a.maintain(n, d) })
}

// Exited tells that the process on the TPU has exited, which maintenance may wait for.
func (a *API) Exited(zone, name string) error {
	return a.with(zone, name, func(n *node) {
		if n.exited != nil {
			n.exited()
		}
	})
}

// SetState brings a node into any state and cancels everything planned for it.
func (a *API) SetState(zone, name, state string) error {
	return a.with(zone, name, func(n *node) { a.set(n, state, n.api.Health, "") })
}

// SetHealth gives a node any health and cancels everything planned for it.
func (a *API) SetHealth(zone, name, health string) error {
	return a.with(zone, name, func(n *node) { a.set(n, n.api.State, health, "") })
}

// AddSymptom shows a symptom on a worker of a node: OUT_OF_MEMORY, PROJECT_ABUSE.
func (a *API) AddSymptom(zone, name, symptom string, worker int) error {
	return a.with(zone, name, func(n *node) {
		n.api.Symptoms = append(n.api.Symptoms[:len(n.api.Symptoms):len(n.api.Symptoms)], &api.Symptom{
			CreateTime: stamp(a.clock.Now()), SymptomType: symptom, WorkerId: strconv.Itoa(worker),
		})
	})
}

// ClearSymptoms takes all symptoms of a node away.
func (a *API) ClearSymptoms(zone, name string) error {
	return a.with(zone, name, func(n *node) { n.api.Symptoms = nil })
}

// FailQueuedResource ends the wait or the provisioning of a queued resource.
func (a *API) FailQueuedResource(zone, name string, code int, message string) error {
	found := false
	a.do(func() {
		if q := a.queues[key{zone, name}]; q != nil {
			found = true
			a.fail(q, &status{code, message})
		}
	})
	if !found {
		return fmt.Errorf("cloudtputest: no queued resource %s in %s", name, zone)
	}
	return nil
}

// OwnerCreate has somebody order a node, as a call that leaves operations and audit entries.
func (a *API) OwnerCreate(c NodeConfig, principal string) error {
	if c.Legacy != nil {
		return a.callOf(former, principal, http.MethodPost, c.Zone, "/nodes", url.Values{"nodeId": {c.Name}}, c.legacyOrder())
	}
	return a.call(principal, http.MethodPost, c.Zone, "/nodes", url.Values{"nodeId": {c.Name}}, c.order())
}

// OwnerDelete has somebody delete a node.
func (a *API) OwnerDelete(zone, name, principal string) error {
	return a.callOf(a.versionOf(zone, name), principal, http.MethodDelete, zone, "/nodes/"+name, nil, nil)
}

// OwnerDeleteQueuedResource has somebody delete a queued resource with everything in it.
func (a *API) OwnerDeleteQueuedResource(zone, name, principal string) error {
	return a.call(principal, http.MethodDelete, zone, "/queuedResources/"+name, url.Values{"force": {"true"}}, nil)
}

// StickQueuedResources has queued resources stay in PROVISIONING for so much longer from now on.
func (a *API) StickQueuedResources(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stuck = d
}

// OwnerCreateQueuedResource has somebody order a queued resource, as a call that leaves operations and audit entries.
func (a *API) OwnerCreateQueuedResource(c QueuedConfig, principal string) error {
	return a.call(principal, http.MethodPost, c.Zone, "/queuedResources", url.Values{"queuedResourceId": {c.Name}}, c.order(a.parent(c.Zone)))
}

// SetLabel has somebody change one label of a node.
func (a *API) SetLabel(zone, name, k, value, principal string) error {
	n := a.Node(zone, name)
	if n == nil {
		return fmt.Errorf("cloudtputest: no node %s in %s", name, zone)
	}
	labels := maps.Clone(n.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[k] = value
	return a.call(principal, http.MethodPatch, zone, "/nodes/"+name, url.Values{"updateMask": {"labels"}}, &api.Node{Labels: labels})
}

// Stop has somebody stop a node. The API allows it for nodes of one worker.
func (a *API) Stop(zone, name, principal string) error {
	return a.callOf(a.versionOf(zone, name), principal, http.MethodPost, zone, "/nodes/"+name+":stop", nil, &api.StopNodeRequest{})
}

// Start has somebody start a node that was stopped.
func (a *API) Start(zone, name, principal string) error {
	return a.callOf(a.versionOf(zone, name), principal, http.MethodPost, zone, "/nodes/"+name+":start", nil, &api.StartNodeRequest{})
}

// SetMetadata has somebody change one key of a node's metadata.
func (a *API) SetMetadata(zone, name, k, value, principal string) error {
	all := a.Metadata(zone, name)
	if all == nil {
		all = map[string]string{}
	}
	all[k] = value
	mask := url.Values{"updateMask": {"metadata"}}
	return a.call(principal, http.MethodPatch, zone, "/nodes/"+name, mask, &api.Node{Metadata: all})
}

// versionOf is the version of the API through which a node is stopped, started and deleted.
func (a *API) versionOf(zone, name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.nodes[key{zone, name}]; n != nil && n.legacy != nil {
		return former
	}
	return version
}

func (a *API) call(principal, httpMethod, zone, path string, query url.Values, body any) error {
	return a.callOf(version, principal, httpMethod, zone, path, query, body)
}

// callOf makes a call of somebody in the world: no fault meets it.
func (a *API) callOf(version, principal, httpMethod, zone, path string, query url.Values, body any) error {
	c := &request{
		http: httpMethod, path: "/" + version + "/" + a.parent(zone) + path, query: query, principal: principal, owner: true,
	}
	if body != nil {
		c.body = marshal(body)
	}
	out, _ := a.serve(c)
	if out.http == http.StatusOK {
		return nil
	}
	var refused struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(out.body, &refused); err != nil {
		return fmt.Errorf("cloudtputest: %s %s: %w", httpMethod, path, err)
	}
	return fmt.Errorf("cloudtputest: %s %s: %s", httpMethod, path, refused.Error.Message)
}
