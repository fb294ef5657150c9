package cloudtpu

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/recent"
	"pitstop.internal/shared/topology"
)

// class says how a field of the API is treated when a slice is created again, and what it means in another zone.
type class int

const (
	// output is set only by the API, and never kept.
	output class = iota + 1
	// recomputed must be set again each time: names, and points in time, which have passed. It is never kept.
	recomputed
	// copied means the same everywhere.
	copied
	// portable names something that every zone can use.
	portable
	// zonal and regional name something that only its own zone or region can use. See Fit.
	zonal
	regional
)

// schemas are fields by schema of an API.
type schemas map[string]map[string]field

// field is a field of the API: its class and, if its value has kept fields of its own, their schema.
type field struct {
	class  class
	schema string
}

// fields are all fields that matter, by schema of the API. A reading shows much more than a caller may set. A creation that
// repeats fields added by the API is refused or, worse, accepted. A new field of the API is kept only once it is in this
// table; a test compares the table with the API's own description.
// https://cloud.google.com/tpu/docs/reference/rest/v2alpha1/projects.locations.nodes
var fields = schemas{
	"Node": {
		"acceleratorConfig": {copied, "AcceleratorConfig"}, "acceleratorType": {copied, ""}, "apiVersion": {output, ""},
		"autocheckpointEnabled": {copied, ""}, "bootDiskConfig": {copied, "BootDiskConfig"},
		"cidrBlock": {regional, ""}, "createTime": {output, ""}, "dataDisks": {copied, "AttachedDisk"},
		"description": {copied, ""}, "health": {output, ""}, "healthDescription": {output, ""}, "id": {output, ""},
		"labels": {copied, ""}, "metadata": {copied, ""}, "multisliceNode": {output, ""}, "name": {recomputed, ""},
		"networkConfig": {copied, "NetworkConfig"}, "networkConfigs": {copied, "NetworkConfig"}, "networkEndpoints": {output, ""},
		"queuedResource": {output, ""}, "runtimeVersion": {portable, ""}, "schedulingConfig": {copied, "SchedulingConfig"},
		"serviceAccount": {copied, "ServiceAccount"}, "shieldedInstanceConfig": {copied, "ShieldedInstanceConfig"},
		"state": {output, ""}, "symptoms": {output, ""}, "tags": {copied, ""}, "upcomingMaintenance": {output, ""},
	},
	"AcceleratorConfig": {"topology": {copied, ""}, "type": {copied, ""}},
	"AttachedDisk":      {"mode": {copied, ""}, "sourceDisk": {zonal, ""}, "workerIds": {copied, ""}},
	"BootDiskConfig": {
		"customerEncryptionKey": {copied, "CustomerEncryptionKey"}, "diskSizeGb": {copied, ""},
		"enableConfidentialCompute": {copied, ""}, "provisionedIops": {copied, ""}, "provisionedThroughput": {copied, ""},
		"sourceImage": {portable, ""}, "storagePool": {zonal, ""},
	},
	"CustomerEncryptionKey": {"kmsKeyName": {regional, ""}},
	"NetworkConfig": {
		"canIpForward": {copied, ""}, "enableExternalIps": {copied, ""}, "network": {portable, ""}, "queueCount": {copied, ""},
		"subnetwork": {regional, ""},
	},
	"SchedulingConfig": {
		"preemptible": {copied, ""}, "provisioningModel": {copied, ""}, "reservationName": {zonal, ""}, "reserved": {copied, ""},
		"spot": {copied, ""}, "terminationTimestamp": {recomputed, ""},
	},
	"ServiceAccount":         {"email": {portable, ""}, "scope": {copied, ""}},
	"ShieldedInstanceConfig": {"enableSecureBoot": {copied, ""}},

	"QueuedResource": {
		"bestEffort": {copied, "BestEffort"}, "createTime": {output, ""}, "guaranteed": {copied, "Guaranteed"},
		"name": {recomputed, ""}, "provisioningModel": {copied, ""}, "queueingPolicy": {copied, "QueueingPolicy"},
		"reservationName": {zonal, ""}, "runDuration": {copied, "RunDuration"}, "spot": {copied, "Spot"},
		"state": {output, ""}, "tpu": {recomputed, ""},
	},
	"BestEffort": {},
	"Guaranteed": {"minDuration": {copied, ""}, "reserved": {copied, ""}},
	"QueueingPolicy": {
		"validAfterDuration": {copied, ""}, "validAfterTime": {recomputed, ""}, "validInterval": {recomputed, ""},
		"validUntilDuration": {copied, ""}, "validUntilTime": {recomputed, ""},
	},
	"RunDuration": {"maxRunDuration": {copied, ""}, "terminationTime": {recomputed, ""}},
	"Spot":        {},
	// Nodes that are asked for alike, by prefix and number.
	"MultiNodeParams": {"nodeCount": {copied, ""}, "nodeIdPrefix": {copied, ""}, "workloadType": {copied, ""}},
}

// kept reports whether a specification keeps fields of a class.
func (c class) kept() bool { return c >= copied }

// metadataSSHKeys is the key under which the Cloud SDK stores the SSH keys of users who log in; they are not part of the
// order.
const metadataSSHKeys = "ssh-keys"

// recipe is a specification as it is stored.
type recipe struct {
	Node           *api.Node           `json:"node"`
	QueuedResource *api.QueuedResource `json:"queued_resource"`
	// Multi is the form in which the queued resource asked for this node among others alike.
	Multi *api.MultiNodeParams `json:"multi_node_params"`
	// Apart says that the values of the metadata are stored separately.
	Apart bool `json:"metadata_apart"`
	// name is that of the node.
	name string
}

// Together joins the specifications of slices, by name, that one queued resource brings.
func Together(names []string, specs [][]byte) ([]byte, error) {
	var all joint
	for i, name := range names {
		all.Together = append(all.Together, joined{name, specs[i]})
	}
	spec, err := stdjson.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	return spec, nil
}

// joint is a specification of several slices.
type joint struct {
	Together []joined `json:"together"`
}

type joined struct {
	Name string             `json:"name"`
	Spec stdjson.RawMessage `json:"spec"`
}

// specs are the specifications of the last readings, because most of a listing is unchanged since a minute ago.
type specs struct {
	recent.Memory[provider.Ref, remembered]

	// orders are the same nodes by project and their own name, or that of their queued resource. The zone of the last reading
	// does not matter, because a failed operation may have tried to create them in another one.
	orders recent.Memory[string, []*api.Node]
}

type remembered struct {
	node   *api.Node
	queued *api.QueuedResource
	order  canonical
	slice  provider.Slice
}

// canonical is the order of a slice: the specification without its metadata values, these values, a sum of them, and the
// name of all. Bare says that it has no start-up script.
type canonical struct {
	spec   []byte
	values map[string]string
	// size is how many bytes the values have.
	size int
	sum  string
	name string
	bare bool
}

// specOf is the function of that name, with a memory for unchanged nodes.
func (k *specs) specOf(r provider.Ref, n *api.Node, q *api.QueuedResource) (o canonical, err error) {
	if last, ok := k.Get(r); ok && same(last.node, n) && same(last.queued, q) {
		return last.order, nil
	}
	if o, err = specOf(r, n, q); err != nil {
		return canonical{}, err
	}
	if o.values == nil {
		return o, nil
	}
	for _, name := range slices.Compact([]string{r.Name, r.QueuedResource}) {
		key := r.Project + "/" + name
		nodes, _ := k.orders.Get(key)
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(old *api.Node) bool { return old.Name == n.Name })
		k.orders.Put(key, append(nodes, n), (len(nodes)+1)*o.size)
	}
	return o, nil
}

// same reports whether two readings are equal. A reading that is shared is the same one.
func same[T any](a, b *T) bool { return a == b || reflect.DeepEqual(a, b) }

// hidden holds the values that an operation's error may repeat, as far as this process has read them.
func (k *specs) hidden(project, zone string, o *api.Operation) hidden {
	var m struct {
		Target string `json:"target"`
	}
	if stdjson.Unmarshal(o.Metadata, &m) != nil {
		return hidden{}
	}
	return k.about(provider.Ref{Project: project, Zone: zone, Name: path.Base(m.Target)})
}

// about holds the values that an error about a slice may repeat, as far as this process has read them.
func (k *specs) about(r provider.Ref) hidden {
	nodes, _ := k.orders.Get(r.Project + "/" + r.Name)
	if r.QueuedResource != "" {
		others, _ := k.orders.Get(r.Project + "/" + r.QueuedResource)
		nodes = slices.Concat(nodes, others)
	}
	return hide(r, nodes...)
}

// specOf writes the specification for creating a slice again. The same order always makes the same bytes, whatever the API
// adds to it.
func specOf(r provider.Ref, n *api.Node, q *api.QueuedResource) (o canonical, err error) {
	node, err := fields.keep("Node", n)
	if err != nil {
		return o, err
	}
	tidyNode(node)
	whole := map[string]any{"node": node}
	if q != nil {
		queued, err := fields.keep("QueuedResource", q)
		if err != nil {
			return o, err
		}
		// An empty tier still is a tier; these two must not be left empty.
		dropEmpty(queued, "queueingPolicy", "runDuration")
		whole["queued_resource"] = queued
		if m := multiOf(r.Name, q); m != nil {
			if whole["multi_node_params"], err = fields.keep("MultiNodeParams", m); err != nil {
				return o, err
			}
		}
	}
	if o.values = apart(whole); o.values != nil {
		raw, err := json.Marshal(o.values, json.Deterministic(true))
		if err != nil {
			return o, fmt.Errorf("specification: %w", err)
		}
		o.sum, o.size = events.ID(string(raw)), len(raw)
	}
	if o.spec, err = json.Marshal(whole, json.Deterministic(true)); err != nil {
		return o, fmt.Errorf("specification: %w", err)
	}
	up, err := StartUpOf(o.spec)
	o.name, o.bare = nameOf(r, o.spec, o.values, n, q), !up.Script
	return o, err
}

// readSpecs reads a stored specification, or several that belong together.
func readSpecs(name string, spec []byte) ([]recipe, error) {
	var all joint
	if err := stdjson.Unmarshal(spec, &all); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	if all.Together == nil {
		all.Together = []joined{{name, spec}}
	}
	var recipes []recipe
	var faults []error
	for _, j := range all.Together {
		r, err := readSpec(j.Spec)
		if err != nil && !errors.Is(err, errApart) {
			return nil, fmt.Errorf("%s: %w", j.Name, err)
		}
		faults = append(faults, err)
		r.name = j.Name
		recipes = append(recipes, r)
	}
	return recipes, errors.Join(faults...)
}

// Reserved reports whether a specification, or one of several that belong together, asks for reserved capacity: news about
// other capacity does not concern it. An unreadable specification counts as no.
func Reserved(spec []byte) bool {
	if n, err := readLegacySpec(spec); err == nil {
		return reserved(&api.Node{SchedulingConfig: legacyScheduling(n)}, nil)
	}
	recipes, err := readSpecs("", spec)
	return (err == nil || errors.Is(err, errApart)) && slices.ContainsFunc(recipes, func(r recipe) bool { return reserved(r.Node, r.QueuedResource) })
}

// nodeSpecs are the nodes of a queued resource's request. Nodes once requested by prefix and number are requested so again
// if all are; otherwise each is requested by its name.
func nodeSpecs(parent string, recipes []recipe) []*api.NodeSpec {
	type alike struct {
		prefix string
		count  int64
	}
	of := map[alike]int64{}
	for _, r := range recipes {
		if m := r.Multi; m != nil {
			of[alike{m.NodeIdPrefix, m.NodeCount}]++
		}
	}
	var specs []*api.NodeSpec
	for _, r := range recipes {
		m := r.Multi
		if m == nil || of[alike{m.NodeIdPrefix, m.NodeCount}] != m.NodeCount {
			specs = append(specs, &api.NodeSpec{Parent: parent, NodeId: r.name, Node: r.Node})
			continue
		}
		if !slices.ContainsFunc(specs, func(s *api.NodeSpec) bool {
			return s.MultiNodeParams != nil && s.MultiNodeParams.NodeIdPrefix == m.NodeIdPrefix
		}) {
			specs = append(specs, &api.NodeSpec{Parent: parent, MultiNodeParams: m, Node: r.Node})
		}
	}
	return specs
}

// readSpec reads a stored specification. With errApart it returns a specification from which no slice may be created.
func readSpec(spec []byte) (recipe, error) {
	var r recipe
	if err := stdjson.Unmarshal(spec, &r); err != nil {
		return recipe{}, fmt.Errorf("specification: %w", err)
	}
	if r.Node == nil {
		return recipe{}, fmt.Errorf("specification: it has no node")
	}
	if r.Apart {
		return r, errApart
	}
	return r, nil
}

// keep reduces a value of the generated client to its input fields.
func (k schemas) keep(schema string, v any) (map[string]any, error) {
	data, err := stdjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	return k.keepJSON(schema, data)
}

// keepJSON does the same for a value as JSON.
func (k schemas) keepJSON(schema string, data []byte) (map[string]any, error) {
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	k.prune(schema, m)
	return m, nil
}

func (k schemas) prune(schema string, m map[string]any) {
	for name, v := range m {
		f := k[schema][name]
		if !f.class.kept() {
			delete(m, name)
			continue
		}
		if f.schema == "" {
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			k.prune(f.schema, v)
		case []any:
			for _, item := range v {
				if item, ok := item.(map[string]any); ok {
					k.prune(f.schema, item)
				}
			}
		}
	}
}

// tidyNode removes Pitstop's own fields, additions by others during the node's life, and the API's duplicates.
func tidyNode(n map[string]any) {
	drop(n, "metadata", events.MetadataRequest, metadataSSHKeys)
	drop(n, "labels", events.LabelIncident)
	dropEmpty(n, slices.Collect(maps.Keys(n))...)
	// The API shows both forms of the accelerator and accepts only one. In three dimensions one type comes in several
	// topologies, so there the configuration says more.
	config, _ := n["acceleratorConfig"].(map[string]any)
	generation, _ := config["type"].(string)
	dimensions, _ := config["topology"].(string)
	switch {
	case (generation == "V4" || generation == "V5P") && dimensions != "":
		delete(n, "acceleratorType")
	case n["acceleratorType"] != nil:
		delete(n, "acceleratorConfig")
	}
	// Of these, too, it accepts only one.
	if all, _ := n["networkConfigs"].([]any); len(all) > 1 {
		delete(n, "networkConfig")
	} else if n["networkConfig"] != nil {
		delete(n, "networkConfigs")
	}
}

func drop(n map[string]any, field string, keys ...string) {
	if m, ok := n[field].(map[string]any); ok {
		for _, k := range keys {
			delete(m, k)
		}
	}
}

func dropEmpty(n map[string]any, fields ...string) {
	for _, f := range fields {
		if m, ok := n[f].(map[string]any); ok && len(m) == 0 {
			delete(n, f)
		}
	}
}

// generations are the API's names for the first part of accelerator types.
var generations = map[string]string{
	"V2": "v2", "V3": "v3", "V4": "v4", "V5LITE_POD": "v5litepod", "V5P": "v5p", "V6E": "v6e",
}

// maxChips is more than any slice has.
const maxChips = 1 << 20

// acceleratorOf is the accelerator type of a node, made from its configuration if it names none; empty if unknown.
func acceleratorOf(n *api.Node) string {
	if n.AcceleratorType != "" || n.AcceleratorConfig == nil {
		return n.AcceleratorType
	}
	prefix, chips := generations[n.AcceleratorConfig.Type], 1
	sides, _, _ := strings.Cut(n.AcceleratorConfig.Topology, "_") // 4x4x8_twisted
	for side := range strings.SplitSeq(sides, "x") {
		k, err := strconv.Atoi(side)
		if err != nil || k < 1 || k > maxChips/chips {
			return ""
		}
		chips *= k
	}
	// The number in a type counts chips in some generations and TensorCores, two to a chip, in others.
	for _, number := range []int{chips, 2 * chips} {
		name := prefix + "-" + strconv.Itoa(number)
		if s, err := topology.Parse(name); err == nil && s.Chips == chips {
			return name
		}
	}
	return ""
}
