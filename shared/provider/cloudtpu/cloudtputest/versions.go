package cloudtputest

import (
	"encoding/json"
	"maps"

	stable "google.golang.org/api/tpu/v2"
	api "google.golang.org/api/tpu/v2alpha1"
)

// The versions of the API. Those of TPU VMs have the same nodes and operations, and so have those of legacy TPU Nodes.
const (
	version = "v2alpha1"
	general = "v2"
	// former is the version of the API whose nodes are legacy TPU Nodes.
	former      = "v1"
	formerAlpha = "v1alpha1"
)

// apiVersions is how a node says by which version it was created.
var apiVersions = map[string]string{version: "V2_ALPHA1", general: "V2", former: "V1", formerAlpha: "V1_ALPHA1"}

// ofLegacy reports whether a version is one of legacy TPU Nodes.
func ofLegacy(version string) bool { return version == former || version == formerAlpha }

// methods are the methods of each version of the API.
var methods = map[string]map[string]*method{
	version: present, general: without(present, map[string][]string{
		"POST nodes":     {"nodeId"},
		"DELETE nodes/*": nil,
	},
		"POST nodes/*:performMaintenance", "POST nodes/*:simulateMaintenanceEvent", "GET reservations",
		"GET queuedResources/*:getMaintenanceInfo", "POST queuedResources/*:performMaintenanceQueuedResource"),
	former: legacyMethods, formerAlpha: without(legacyMethods, map[string][]string{
		"POST nodes":     {"nodeId", "requestId"},
		"DELETE nodes/*": {"requestId"},
	}),
}

// without are methods without some of them, and others with another query.
func without(all map[string]*method, queries map[string][]string, absent ...string) map[string]*method {
	rest := maps.Clone(all)
	for _, pattern := range absent {
		delete(rest, pattern)
	}
	for pattern, query := range queries {
		m := *rest[pattern]
		m.query = query
		rest[pattern] = &m
	}
	return rest
}

// strict decodes the body of a call of v2 as that version describes it, so that a field of v2alpha1 alone is refused. It returns the
// body as v2alpha1 describes it.
func (c *request) strict(into any) ([]byte, *status) {
	switch into.(type) {
	case *api.Node:
		var n stable.Node
		refused := strictly(c.body, &n)
		return marshal(&n), refused
	case *api.QueuedResource:
		var q stable.QueuedResource
		if refused := strictly(c.body, &q); refused != nil {
			return nil, refused
		}
		order := recast[api.QueuedResource](&q)
		for i, spec := range specsOf(q.Tpu) {
			if m := spec.MultisliceParams; m != nil {
				order.Tpu.NodeSpec[i].MultiNodeParams = &api.MultiNodeParams{NodeCount: m.NodeCount, NodeIdPrefix: m.NodeIdPrefix}
			}
		}
		return marshal(order), nil
	}
	return c.body, nil // both versions describe it alike
}

func specsOf(t *stable.Tpu) []*stable.NodeSpec {
	if t == nil {
		return nil
	}
	return t.NodeSpec
}

// recast is a value of another version: the fields that both versions have.
func recast[T any](v any) *T {
	var out T
	must(json.Unmarshal(marshal(v), &out))
	return &out
}

// as is a value of v2alpha1 as a version shows it.
func as(version string, v any) any {
	if version != general {
		return v
	}
	switch v := v.(type) {
	case *api.Node:
		return recast[stable.Node](v)
	case *api.QueuedResource:
		return queuedAs(v)
	case *api.ListNodesResponse:
		return recast[stable.ListNodesResponse](v)
	case *api.ListQueuedResourcesResponse:
		out := recast[stable.ListQueuedResourcesResponse](v)
		for i, q := range v.QueuedResources {
			out.QueuedResources[i] = queuedAs(q)
		}
		return out
	}
	return v
}

func queuedAs(v *api.QueuedResource) *stable.QueuedResource {
	out := recast[stable.QueuedResource](v)
	for i, spec := range specsOf(out.Tpu) {
		if m := v.Tpu.NodeSpec[i].MultiNodeParams; m != nil {
			spec.MultisliceParams = &stable.MultisliceParams{NodeCount: m.NodeCount, NodeIdPrefix: m.NodeIdPrefix}
		}
	}
	return out
}
