package cloudtputest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	api "google.golang.org/api/tpu/v2alpha1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"pitstop.internal/events"
	"pitstop.internal/shared/topology"
)

// operation is a long-running operation.
type operation struct {
	version, name, id, zone, verb, target, method, principal string
	request                                                  string
	event                                                    Event
	created, ended                                           time.Time
	done                                                     bool
	failed                                                   *status
	response                                                 json.RawMessage
	// final is its form in the API once it is done.
	final *api.Operation
}

// empty is the empty answer.
type empty struct{}

// typeURL is how a value names its type where any type may stand.
func typeURL(version, name string) string {
	return "type.googleapis.com/google.cloud.tpu." + version + "." + name
}

// shown is an operation as the API shows it now.
func (o *operation) shown() *api.Operation {
	if o.final != nil {
		return o.final
	}
	meta := map[string]any{
		"@type": typeURL(o.version, "OperationMetadata"), "createTime": stamp(o.created), "target": o.target, "verb": o.verb,
		"apiVersion": o.version,
	}
	shown := &api.Operation{Name: o.name, Done: o.done}
	if o.done {
		meta["endTime"] = stamp(o.ended)
		if o.failed != nil {
			shown.Error = &api.Status{Code: int64(o.failed.code), Message: o.failed.message}
		} else {
			shown.Response = []byte(o.response)
		}
	}
	shown.Metadata = marshal(meta)
	if o.done {
		o.final = shown
	}
	return shown
}

func marshal(v any) []byte {
	var b []byte
	var err error
	if m, ok := v.(proto.Message); ok {
		b, err = protojson.Marshal(m)
	} else {
		b, err = json.Marshal(v)
	}
	must(err)
	return b
}

// start begins an operation on a node or a queued resource. When it ends, end carries it out, or undoes it if it is to
// fail, and says what came of it.
func (a *API) start(c *request, n *node, q *queue, verb string, d time.Duration, end func(late *status) (any, *status)) any {
	return a.begin(c, n, q, verb, d, end).shown()
}

func (a *API) begin(
	c *request, n *node, q *queue, verb string, d time.Duration, end func(late *status) (any, *status),
) *operation {
	now := a.clock.Now()
	o := &operation{
		version: c.version, zone: c.zone, verb: verb, method: c.called, principal: c.principal, created: now, request: c.key(),
	}
	if n != nil {
		o.event, o.target = n.event("", ""), n.api.Name
		o.event.State, o.event.Health = "", ""
	} else {
		o.event, o.target = Event{Zone: q.zone, QueuedResource: q.name}, q.order.Name
	}
	r := a.random(o.target)
	o.id = fmt.Sprintf("operation-%d-%013x-%08x-%08x", now.UnixMilli(), now.UnixMicro(), r>>32, r&0xffffffff)
	o.name = a.parent(c.zone) + "/operations/" + o.id
	o.event.Method, o.event.Principal, o.event.Operation = o.method, o.principal, o.name
	o.event.RequestID, o.event.Version = c.query.Get("requestId"), c.version
	a.ops = append(a.ops, o)
	a.opByName[o.name] = o
	if o.request != "" {
		a.requests[o.request] = o
	}
	e := o.event
	e.Kind = Started
	a.emit(e)
	var late *status
	if c.fault.LateCode != 0 {
		late = &status{c.fault.LateCode, c.fault.LateMessage}
	}
	if d += c.fault.Slow; d > 0 {
		a.after(d, func() { a.end(o, late, end) })
	} else {
		a.end(o, late, end)
	}
	return o
}

// end carries an operation out.
func (a *API) end(o *operation, late *status, end func(late *status) (any, *status)) {
	if o.done {
		return
	}
	v, why := end(late)
	o.done, o.ended, o.failed = true, a.clock.Now(), why
	if why == nil {
		o.response = response(o.version, v)
	}
	e := o.event
	if e.Kind = Ended; why != nil {
		e.Code, e.Error = why.code, why.message
	}
	a.emit(e)
}

// response is what an operation leaves, with the name of its type.
func response(version string, v any) json.RawMessage {
	name := "type.googleapis.com/google.protobuf.Empty"
	switch v.(type) {
	case *api.Node, *tpupb.Node:
		name = typeURL(version, "Node")
	case *api.QueuedResource:
		name = typeURL(version, "QueuedResource")
	}
	v = as(version, v)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(marshal(v), &fields); err != nil {
		panic("cloudtputest: " + err.Error())
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	fields["@type"] = marshal(name)
	return marshal(fields)
}

// update begins an operation during which no other change of the node is taken.
func (a *API) update(c *request, n *node, verb string, d time.Duration, end func(late *status) (any, *status)) any {
	var own *operation
	ended := false
	own = a.begin(c, n, nil, verb, d, func(late *status) (any, *status) {
		if ended = true; n.busy == own {
			n.busy = nil
		}
		return end(late)
	})
	if !ended {
		n.busy = own
	}
	return own.shown()
}

// pattern is the entry of the method table that a call has come by.
func (c *request) pattern() string {
	p := c.http + " " + c.collection
	if c.id != "" {
		p += "/*"
	}
	if c.verb != "" {
		p += ":" + c.verb
	}
	return p
}

// key is what two calls with the same request ID have in common; empty for a call without one.
func (c *request) key() string {
	id := c.query.Get("requestId")
	if id == "" {
		return ""
	}
	return strings.Join([]string{c.pattern(), c.zone, c.target(), strings.ToLower(id)}, "\x00")
}

// repeated is the operation that an earlier call with the same request ID started, or nil.
func (a *API) repeated(c *request) *operation { return a.requests[c.key()] }

// forget drops the operations that ended long ago, and in the end their request IDs.
func (a *API) forget() {
	now := a.clock.Now()
	old := 0
	for old < len(a.ops) && a.ops[old].done && !a.ops[old].ended.Add(a.timing.Retain).After(now) {
		delete(a.opByName, a.ops[old].name)
		a.past = append(a.past, a.ops[old])
		old++
	}
	a.ops = slices.Delete(a.ops, 0, old)
	for old = 0; old < len(a.past) && !a.past[old].ended.Add(a.timing.Remember).After(now); old++ {
		if o := a.past[old]; a.requests[o.request] == o {
			delete(a.requests, o.request)
		}
	}
	a.past = slices.Delete(a.past, 0, old)
}

func (a *API) findOperation(c *request) (*operation, *status) {
	o := a.opByName[a.parent(c.zone)+"/operations/"+c.id]
	if o == nil || ofLegacy(o.version) != c.legacy() && !a.mingled {
		return nil, a.unknown("operations", c)
	}
	return o, nil
}

func (a *API) getOperation(c *request) (any, *status) {
	o, refused := a.findOperation(c)
	if refused != nil {
		return nil, refused
	}
	return o.shown(), nil
}

func (a *API) listOperations(c *request) (any, *status) {
	if c.fault.Unreachable {
		return &api.ListOperationsResponse{Unreachable: []string{a.parent(c.zone)}}, nil
	}
	var all []*operation
	for _, o := range a.ops {
		if (c.zone == "-" || o.zone == c.zone) && (ofLegacy(o.version) == c.legacy() || a.mingled) {
			all = append(all, o)
		}
	}
	items, next, refused := page(a, c, all)
	out := &api.ListOperationsResponse{NextPageToken: next}
	for _, o := range items {
		out.Operations = append(out.Operations, o.shown())
	}
	return out, refused
}

func (a *API) cancelOperation(c *request) (any, *status) {
	if _, refused := a.findOperation(c); refused != nil {
		return nil, refused
	}
	return nil, refuse(unimplemented, "Operation is not implemented, or supported, or enabled.")
}

func (a *API) deleteOperation(c *request) (any, *status) {
	o, refused := a.findOperation(c)
	switch {
	case refused != nil:
		return nil, refused
	case !o.done:
		return nil, refuse(failedPrecondition, "Operation %s is not done.", o.name)
	}
	delete(a.opByName, o.name)
	a.ops = slices.DeleteFunc(a.ops, func(p *operation) bool { return p == o })
	a.past = append(a.past, o)
	return empty{}, nil
}

func (a *API) location(zone string) *api.Location {
	return &api.Location{
		Name: a.parent(zone), LocationId: zone,
		Labels: map[string]string{"cloud.googleapis.com/region": topology.Region(zone)},
	}
}

func (a *API) listLocations(c *request) (any, *status) {
	var all []*api.Location
	for _, z := range a.zoneNames() {
		all = append(all, a.location(z))
	}
	items, next, refused := page(a, c, all)
	return &api.ListLocationsResponse{Locations: items, NextPageToken: next}, refused
}

func (a *API) getLocation(c *request) (any, *status) {
	if !a.offers(c.zone) {
		return nil, refuse(notFound, "Location %s is unknown.", a.parent(c.zone))
	}
	return a.location(c.zone), nil
}

func (a *API) generateServiceIdentity(c *request) (any, *status) {
	if refused := c.decode(&api.GenerateServiceIdentityRequest{}); refused != nil {
		return nil, refused
	}
	return &api.GenerateServiceIdentityResponse{
		Identity: &api.ServiceIdentity{Email: "service-100000000001@cloud-tpu.iam.gserviceaccount.com"},
	}, nil
}

// accelerators are the types that every zone claims to offer.
var accelerators = []string{
	"v2-8", "v3-8", "v4-8", "v4-32", "v5litepod-1", "v5litepod-8", "v5litepod-16", "v5litepod-256", "v5p-8", "v5p-128",
	"v6e-1", "v6e-8", "v6e-16", "v6e-256",
}

func (a *API) acceleratorType(zone, name string) *api.AcceleratorType {
	n := &api.Node{AcceleratorType: name}
	describe(n)
	return &api.AcceleratorType{
		Name: a.parent(zone) + "/acceleratorTypes/" + name, Type: name,
		AcceleratorConfigs: []*api.AcceleratorConfig{n.AcceleratorConfig},
	}
}

func (a *API) listAcceleratorTypes(c *request) (any, *status) {
	var all []*api.AcceleratorType
	if a.offers(c.zone) {
		for _, name := range accelerators {
			all = append(all, a.acceleratorType(c.zone, name))
		}
	}
	items, next, refused := page(a, c, all)
	return &api.ListAcceleratorTypesResponse{AcceleratorTypes: items, NextPageToken: next}, refused
}

func (a *API) getAcceleratorType(c *request) (any, *status) {
	if !a.offers(c.zone) || !slices.Contains(accelerators, c.id) {
		return nil, a.unknown("acceleratorTypes", c)
	}
	return a.acceleratorType(c.zone, c.id), nil
}

// runtimes are a few runtime versions; a node may be ordered with any.
var runtimes = []string{"tpu-ubuntu2204-base", "v2-alpha-tpuv5", "v2-alpha-tpuv5-lite", "v2-alpha-tpuv6e"}

func (a *API) runtime(zone, name string) *api.RuntimeVersion {
	return &api.RuntimeVersion{Name: a.parent(zone) + "/runtimeVersions/" + name, Version: name}
}

func (a *API) listRuntimeVersions(c *request) (any, *status) {
	var all []*api.RuntimeVersion
	for _, name := range runtimes {
		all = append(all, a.runtime(c.zone, name))
	}
	items, next, refused := page(a, c, all)
	return &api.ListRuntimeVersionsResponse{RuntimeVersions: items, NextPageToken: next}, refused
}

func (a *API) getRuntimeVersion(c *request) (any, *status) {
	if !slices.Contains(runtimes, c.id) {
		return nil, a.unknown("runtimeVersions", c)
	}
	return a.runtime(c.zone, c.id), nil
}

func (a *API) listReservations(*request) (any, *status) {
	return &api.ListReservationsResponse{}, nil
}

// Running is how many operations have not ended.
func (a *API) Running() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, o := range a.ops {
		if !o.done {
			n++
		}
	}
	return n
}

// Node is a node as the API shows it now, or nil. What it refers to is the API's own, and nobody changes it.
func (a *API) Node(zone, name string) *api.Node {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.nodes[key{zone, name}]; n != nil {
		return n.shown()
	}
	return nil
}

// Nodes are the nodes of a zone, or of all zones for "-", in order of zone and name, each as Node returns it.
func (a *API) Nodes(zone string) []*api.Node {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*api.Node
	for _, n := range in(a.nodes, zone) {
		all = append(all, n.shown())
	}
	return all
}

// QueuedResource is a queued resource as the API shows it now, or nil; as Node.
func (a *API) QueuedResource(zone, name string) *api.QueuedResource {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.queues[key{zone, name}]; q != nil {
		return q.shown()
	}
	return nil
}

// QueuedResources are the names of the queued resources of a zone, in order.
func (a *API) QueuedResources(zone string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var names []string
	for _, q := range in(a.queues, zone) {
		names = append(names, q.name)
	}
	return names
}

// Incarnation is the life of a node now; none where there is no such node.
func (a *API) Incarnation(zone, name string) events.Incarnation {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.nodes[key{zone, name}]; n != nil {
		return n.incarnation()
	}
	return events.Incarnation{}
}

// State is the state and the life of a node now; empty where there is no such node.
func (a *API) State(zone, name string) (string, events.Incarnation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.nodes[key{zone, name}]; n != nil {
		return n.api.State, n.incarnation()
	}
	return "", events.Incarnation{}
}

// Reclaimable reports whether Google may take a node back at any time.
func (a *API) Reclaimable(zone, name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.nodes[key{zone, name}]
	return n != nil && n.place().Capacity == events.Spot
}

// Label is the value of a node's label; empty where it has none.
func (a *API) Label(zone, name, label string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.nodes[key{zone, name}]; n != nil {
		return n.api.Labels[label]
	}
	return ""
}

// Hosts are the host names of a node's workers.
func (a *API) Hosts(zone, name string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.nodes[key{zone, name}]
	if n == nil {
		return nil
	}
	hosts := make([]string, n.shape.Workers)
	for w := range hosts {
		hosts[w] = n.host(w)
	}
	return hosts
}

// Metadata is a copy of a node's metadata; nil where there is no such node.
func (a *API) Metadata(zone, name string) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.nodes[key{zone, name}]; n != nil {
		return maps.Clone(n.api.Metadata)
	}
	return nil
}

// clone copies a value of the generated client.
func clone[T any](v *T) *T {
	var c T
	if err := json.Unmarshal(marshal(v), &c); err != nil {
		panic("cloudtputest: " + err.Error())
	}
	return &c
}
