package cloudtputest

import (
	"maps"
	"regexp"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	api "google.golang.org/api/tpu/v2alpha1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// legacyMethods are all methods of v1, as present are those of v2alpha1. No call of it has a request ID.
// https://cloud.google.com/tpu/docs/reference/rest/v1
var legacyMethods = map[string]*method{
	"GET locations":   present["GET locations"],
	"GET locations/*": present["GET locations/*"],

	"GET nodes":   {name: "ListNodes", query: listQuery, serve: (*API).listLegacyNodes},
	"GET nodes/*": present["GET nodes/*"],
	"POST nodes": {
		name: "CreateNode", mutating: true, body: true, query: []string{"nodeId"}, serve: (*API).createLegacyNode,
	},
	"DELETE nodes/*":     {name: "DeleteNode", mutating: true, serve: (*API).deleteNode},
	"POST nodes/*:stop":  present["POST nodes/*:stop"],
	"POST nodes/*:start": present["POST nodes/*:start"],
	"POST nodes/*:reimage": {
		name: "ReimageNode", mutating: true, body: true, serve: (*API).reimageNode,
	},

	"GET operations":           present["GET operations"],
	"GET operations/*":         present["GET operations/*"],
	"POST operations/*:cancel": present["POST operations/*:cancel"],
	"DELETE operations/*":      present["DELETE operations/*"],

	"GET acceleratorTypes": {name: "ListAcceleratorTypes", query: findQuery, serve: (*API).listLegacyTypes},
	"GET acceleratorTypes/*": {name: "GetAcceleratorType", serve: func(a *API, c *request) (any, *status) {
		return a.legacyNamed(c, legacyTypes)
	}},
	"GET tensorflowVersions": {name: "ListTensorFlowVersions", query: findQuery, serve: (*API).listTensorFlowVersions},
	"GET tensorflowVersions/*": {name: "GetTensorFlowVersion", serve: func(a *API, c *request) (any, *status) {
		return a.legacyNamed(c, tensorFlows)
	}},
}

// legacyTypes and tensorFlows are what legacy nodes come as; a node may be ordered with any version.
var (
	legacyTypes = []string{"v2-8", "v2-32", "v3-8", "v3-32"}
	tensorFlows = []string{"2.11.0", "2.12.0", "pytorch-1.13"}
)

// legacy reports whether a call is about legacy TPU Nodes.
func (c *request) legacy() bool { return ofLegacy(c.version) }

// shows reports whether a version of the API knows a node. No version changes a node of the other.
func (a *API) shows(c *request, n *node) bool {
	return (n.legacy != nil) == c.legacy() || a.mingled && c.http == "GET"
}

// resource is a node as a version of the API shows it now.
func (n *node) resource(version string) any {
	if ofLegacy(version) {
		return n.shownLegacy()
	}
	return n.shown()
}

// shownLegacy is a node as v1 shows it now; of a TPU VM that is not much.
func (n *node) shownLegacy() *tpupb.Node {
	shown := new(tpupb.Node)
	if n.legacy != nil {
		shown = proto.CloneOf(n.legacy)
	}
	shown.Name, shown.AcceleratorType, shown.Labels = n.api.Name, n.api.AcceleratorType, maps.Clone(n.api.Labels)
	shown.CreateTime = timestamppb.New(n.created)
	shown.State = tpupb.Node_State(tpupb.Node_State_value[n.api.State])
	shown.Health, shown.HealthDescription = tpupb.Node_Health(tpupb.Node_Health_value[n.api.Health]), n.api.HealthDescription
	shown.ApiVersion = tpupb.Node_ApiVersion(tpupb.Node_ApiVersion_value[n.api.ApiVersion])
	if c := n.api.SchedulingConfig; c != nil {
		shown.SchedulingConfig = &tpupb.SchedulingConfig{Preemptible: c.Preemptible || c.Spot, Reserved: c.Reserved}
	}
	for _, e := range n.api.NetworkEndpoints {
		shown.NetworkEndpoints = append(shown.NetworkEndpoints, &tpupb.NetworkEndpoint{IpAddress: e.IpAddress, Port: int32(e.Port)}) //nolint:gosec // a port
	}
	if len(shown.NetworkEndpoints) > 0 {
		shown.IpAddress, shown.Port = shown.NetworkEndpoints[0].IpAddress, "8470" //nolint:staticcheck // v1 still shows both
	}
	for _, y := range n.api.Symptoms {
		shown.Symptoms = append(shown.Symptoms, &tpupb.Symptom{
			CreateTime: timeOf(y.CreateTime), Details: y.Details, WorkerId: y.WorkerId,
			SymptomType: tpupb.Symptom_SymptomType(tpupb.Symptom_SymptomType_value[y.SymptomType]),
		})
	}
	if n.legacy != nil && n.legacy.UseServiceNetworking && n.api.State != creating {
		shown.CidrBlock = "10.96.0.0/29" // the API has chosen one
	}
	shown.ServiceAccount = "service-100000000001@cloud-tpu.iam.gserviceaccount.com"
	return shown
}

func (a *API) listLegacyNodes(c *request) (any, *status) {
	if c.fault.Unreachable {
		return &tpupb.ListNodesResponse{Unreachable: []string{a.parent(c.zone)}}, nil
	}
	items, next, refused := listed(a, c, (*node).shownLegacy)
	return &tpupb.ListNodesResponse{Nodes: items, NextPageToken: next}, refused
}

// legacyShared is what of an order for a legacy node both versions know.
func legacyShared(n *tpupb.Node) *api.Node {
	order := &api.Node{
		AcceleratorType: n.AcceleratorType, Labels: maps.Clone(n.Labels), Description: n.Description, RuntimeVersion: n.TensorflowVersion,
		CidrBlock: n.CidrBlock,
	}
	if c := n.SchedulingConfig; c != nil {
		order.SchedulingConfig = &api.SchedulingConfig{Preemptible: c.Preemptible, Reserved: c.Reserved}
	}
	return order
}

// slash29 is the only size of a block that a legacy node takes.
var slash29 = regexp.MustCompile(`^[0-9.]+/29$`)

func (a *API) createLegacyNode(c *request) (any, *status) {
	order := new(tpupb.Node)
	if err := protojson.Unmarshal(c.body, order); err != nil {
		return nil, refuse(invalidArgument, "Invalid node. %s", err.Error())
	}
	name := c.query.Get("nodeId")
	switch {
	case !idWord.MatchString(name):
		return nil, a.bad("node_id %q is invalid.", name)
	case order.TensorflowVersion == "":
		return nil, a.bad("tensorflow_version is required.")
	case order.CidrBlock != "" && order.UseServiceNetworking:
		return nil, a.bad("cidr_block should not be specified with use_service_networking.")
	case order.CidrBlock != "" && !slash29.MatchString(order.CidrBlock):
		return nil, a.bad("cidr_block %q is no /29 block.", order.CidrBlock)
	}
	shared := legacyShared(order)
	if refused := a.checkOrder(c.zone, shared); refused != nil {
		return nil, refused
	}
	return a.create(c, name, shared, order)
}

// reimageNode installs another version on a node, which is away meanwhile.
func (a *API) reimageNode(c *request) (any, *status) {
	var ask struct {
		TensorflowVersion string `json:"tensorflowVersion"`
	}
	if refused := c.decode(&ask); refused != nil {
		return nil, refused
	}
	n, refused := a.find(c)
	switch {
	case refused != nil:
		return nil, refused
	case n.busy != nil:
		return nil, inFlight()
	case n.api.State != ready || ask.TensorflowVersion == "":
		return nil, a.notNow("reimage", n)
	}
	const passing = "REIMAGING"
	a.set(n, passing, n.api.Health, "")
	return a.move(c, n, "reimage", a.timing.Start, passing, [2]string{ready, healthy}, [2]string{ready, healthy}), nil
}

func (a *API) listLegacyTypes(c *request) (any, *status) {
	var all []*tpupb.AcceleratorType
	for _, name := range legacyTypes {
		all = append(all, &tpupb.AcceleratorType{Name: a.parent(c.zone) + "/acceleratorTypes/" + name, Type: name})
	}
	items, next, refused := page(a, c, all)
	return &tpupb.ListAcceleratorTypesResponse{AcceleratorTypes: items, NextPageToken: next}, refused
}

func (a *API) listTensorFlowVersions(c *request) (any, *status) {
	var all []*tpupb.TensorFlowVersion
	for _, name := range tensorFlows {
		all = append(all, &tpupb.TensorFlowVersion{Name: a.parent(c.zone) + "/tensorflowVersions/" + name, Version: name})
	}
	items, next, refused := page(a, c, all)
	return &tpupb.ListTensorFlowVersionsResponse{TensorflowVersions: items, NextPageToken: next}, refused
}

// legacyNamed is one of what legacy nodes come as.
func (a *API) legacyNamed(c *request, names []string) (any, *status) {
	for _, name := range names {
		switch {
		case name != c.id:
		case c.collection == "acceleratorTypes":
			return &tpupb.AcceleratorType{Name: a.parent(c.zone) + "/acceleratorTypes/" + name, Type: name}, nil
		default:
			return &tpupb.TensorFlowVersion{Name: a.parent(c.zone) + "/tensorflowVersions/" + name, Version: name}, nil
		}
	}
	return nil, a.unknown(c.collection, c)
}

// legacyOrder is an order through v1; nil for a TPU VM.
func (c NodeConfig) legacyOrder() *tpupb.Node {
	if c.Legacy == nil {
		return nil
	}
	n := proto.CloneOf(c.Legacy)
	shared := c.order()
	n.AcceleratorType = shared.AcceleratorType
	if n.TensorflowVersion == "" {
		n.TensorflowVersion = tensorFlows[1]
	}
	if c.Labels != nil {
		n.Labels = maps.Clone(c.Labels)
	}
	if c.Spot {
		n.SchedulingConfig = &tpupb.SchedulingConfig{Preemptible: true}
	}
	return n
}
