package events_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
)

func TestTheOrderOfACreation(t *testing.T) {
	for name, c := range map[string]struct {
		method, resource, request string
		want                      events.Order
	}{
		"a node":                    {"CreateNode", "nodes/n", `{"nodeId":"n","node":{"acceleratorType":"v5litepod-16"}}`, events.Order{Accelerator: "v5litepod-16"}},
		"a node, in the other form": {"CreateNode", "nodes/n", `{"node_id":"n","node":{"accelerator_type":"v4-8"}}`, events.Order{Accelerator: "v4-8"}},
		"a node without details":    {"CreateNode", "nodes/n", `{}`, events.Order{}},
		"a node without a request":  {"CreateNode", "nodes/n", ``, events.Order{}},
		"a request that is none":    {"CreateNode", "nodes/n", `"redacted"`, events.Order{}},
		"a queued resource": {
			"CreateQueuedResource", "queuedResources/q", `{"queuedResource":{"tpu":{"nodeSpec":[{"nodeId":"n","node":{"acceleratorType":"v6e-8"}}]}}}`,
			events.Order{Accelerator: "v6e-8", Nodes: []string{"n"}},
		},
		"a queued resource of many": {
			"CreateQueuedResource", "queuedResources/q", `{"queued_resource":{"tpu":{"node_spec":[{"multislice_params":{"node_count":2},"node":{"accelerator_type":"v6e-8"}}]}}}`,
			events.Order{Accelerator: "v6e-8", Nodes: []string{"q-0", "q-1"}},
		},
		"a queued resource of many with a prefix": {
			"CreateQueuedResource", "queuedResources/q", `{"queuedResource":{"tpu":{"nodeSpec":[{"multiNodeParams":{"nodeCount":2,"nodeIdPrefix":"p"}}]}}}`,
			events.Order{Nodes: []string{"p-0", "p-1"}},
		},
		"a node of a reservation": {
			"CreateNode", "nodes/n", `{"node":{"acceleratorType":"v6e-8","schedulingConfig":{"reserved":true}}}`, events.Order{Accelerator: "v6e-8", Reserved: true},
		},
		"a queued resource of a reservation": {
			"CreateQueuedResource", "queuedResources/q", `{"queued_resource":{"reservation_name":"projects/p/locations/z/reservations/r"}}`, events.Order{Reserved: true},
		},
		"a queued resource with its capacity guaranteed": {
			"CreateQueuedResource", "queuedResources/q", `{"queuedResource":{"guaranteed":{"reserved":true}}}`, events.Order{Reserved: true},
		},
		"a reservation in another shape": {
			"CreateNode", "nodes/n", `{"node":{"acceleratorType":"v6e-8","schedulingConfig":"spot"}}`, events.Order{Accelerator: "v6e-8"},
		},
		"a count that is none": {
			"CreateQueuedResource", "queuedResources/q", `{"queuedResource":{"tpu":{"nodeSpec":[{"multiNodeParams":{"nodeCount":-5}}]}}}`, events.Order{},
		},
		"a deletion": {"DeleteNode", "nodes/n", `{"node":{"acceleratorType":"v4-8"}}`, events.Order{}},
	} {
		request := ""
		if c.request != "" {
			request = `,"request":` + c.request
		}
		raw := `{"logName":"projects/p/logs/cloudaudit.googleapis.com%2Factivity","timestamp":"2026-11-12T02:14:06Z","protoPayload":{` +
			`"methodName":"google.cloud.tpu.v2alpha1.Tpu.` + c.method + `","resourceName":"projects/p/locations/us-west4-a/` + c.resource + `"` + request + `}}`
		e, err := events.Read([]byte(raw))
		if err != nil || e.Ignored != "" {
			t.Errorf("%s: %v, ignored %q", name, err, e.Ignored)
		}
		if d := cmp.Diff(c.want, e.Call.Order); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	huge := `{"logName":"projects/p/logs/cloudaudit.googleapis.com%2Factivity","protoPayload":{"methodName":"google.cloud.tpu.v2.Tpu.CreateQueuedResource",` +
		`"resourceName":"projects/p/locations/z/queuedResources/q","request":{"queuedResource":{"tpu":{"nodeSpec":[` +
		strings.TrimSuffix(strings.Repeat(`{"multiNodeParams":{"nodeCount":1000000000}},`, 3), ",") + `]}}}}}`
	if e, err := events.Read([]byte(huge)); err != nil || len(e.Call.Order.Nodes) != 1024 {
		t.Errorf("a claim of three thousand million nodes: %d are taken, %v", len(e.Call.Order.Nodes), err)
	}
}
