package events

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Order describes the TPUs that a creation request asks for. Some entries hold no request, or an empty one: then the order
// is empty.
type Order struct {
	// Accelerator is the requested type, such as v5litepod-16.
	Accelerator string
	// Nodes are the names of the nodes of a queued resource.
	Nodes []string
	// Reserved says that it asks for the capacity of a reservation, and Spot that it asks for Spot capacity.
	Reserved, Spot bool
}

// maxNodes bounds the nodes of one queued resource.
const maxNodes = 1024

// orderRequest is the part of CreateNodeRequest and CreateQueuedResourceRequest that is read. Audit logs spell its fields
// as the API's JSON does or with underscores.
// https://cloud.google.com/tpu/docs/reference/rest/v2alpha1/projects.locations.queuedResources
type orderRequest struct {
	Node           orderedNode `json:"node"`
	QueuedResource struct {
		TPU struct {
			NodeSpec []struct {
				NodeID           string      `json:"nodeId"`
				Node             orderedNode `json:"node"`
				MultisliceParams manyNodes   `json:"multisliceParams"`
				MultiNodeParams  manyNodes   `json:"multiNodeParams"`
			} `json:"nodeSpec"`
		} `json:"tpu"`
	} `json:"queuedResource"`
}

type orderedNode struct {
	AcceleratorType string `json:"acceleratorType"`
}

type manyNodes struct {
	NodeCount    int    `json:"nodeCount"`
	NodeIDPrefix string `json:"nodeIdPrefix"`
}

// reservedRequest are the fields by which a creation request asks for reserved capacity.
type reservedRequest struct {
	Node struct {
		SchedulingConfig reservation `json:"schedulingConfig"`
	} `json:"node"`
	QueuedResource struct {
		reservation
		Guaranteed reservation `json:"guaranteed"`
		Spot       *struct{}   `json:"spot"`
		BestEffort *struct{}   `json:"bestEffort"`
	} `json:"queuedResource"`
}

type reservation struct {
	Reserved          bool   `json:"reserved"`
	ReservationName   string `json:"reservationName"`
	ProvisioningModel string `json:"provisioningModel"`
	Spot              bool   `json:"spot"`
	Preemptible       bool   `json:"preemptible"`
}

func (r reservation) asked() bool {
	return r.Reserved || r.ReservationName != "" || r.ProvisioningModel == "RESERVATION_BOUND"
}

// order reads a creation request. An unreadable part is left empty; that is not a fault.
func order(request jsontext.Value, queued string) (o Order) {
	var r orderRequest
	if len(request) == 0 || json.Unmarshal(request, &r, lenient, json.MatchCaseInsensitiveNames(true)) != nil {
		return Order{}
	}
	o.Accelerator = r.Node.AcceleratorType
	var from reservedRequest
	if json.Unmarshal(request, &from, lenient, json.MatchCaseInsensitiveNames(true)) == nil {
		q := from.QueuedResource
		n := from.Node.SchedulingConfig
		o.Reserved = n.asked() || q.asked() || q.Guaranteed.asked()
		o.Spot = n.Spot || n.Preemptible || q.Spot != nil || q.BestEffort != nil || q.ProvisioningModel == "SPOT"
	}
	for _, n := range r.QueuedResource.TPU.NodeSpec {
		if o.Accelerator == "" {
			o.Accelerator = n.Node.AcceleratorType
		}
		many := n.MultisliceParams
		if many.NodeCount == 0 {
			many = n.MultiNodeParams
		}
		if n.NodeID != "" {
			o.Nodes = append(o.Nodes, n.NodeID)
			continue
		}
		prefix := many.NodeIDPrefix
		if prefix == "" {
			prefix = queued
		}
		for i := range min(many.NodeCount, maxNodes-len(o.Nodes)) {
			o.Nodes = append(o.Nodes, prefix+"-"+strconv.Itoa(i))
		}
	}
	return o
}
