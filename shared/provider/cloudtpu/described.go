package cloudtpu

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"regexp"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	api "google.golang.org/api/tpu/v2alpha1"
	"google.golang.org/protobuf/encoding/protojson"

	"pitstop.internal/shared/provider"
)

// described matches the name of a TPU, as a description of it has it.
var described = regexp.MustCompile(`^projects/([^/]+)/locations/([^/]+)/(nodes|queuedResources)/([^/]+)$`)

// Described reads a slice from the description of its node: what gcloud compute tpus tpu-vm describe writes with --format=json, or
// gcloud compute tpus describe for a legacy TPU Node. is says whether the JSON describes a TPU at all. A description says neither when
// it was made nor what a queued resource asks for. The fields of the health alone make a slice without a name, for which READY is assumed.
func Described(raw []byte) (s provider.Slice, is bool, err error) {
	var head struct {
		Name    string             `json:"name"`
		LogName stdjson.RawMessage `json:"logName"`
		Legacy  stdjson.RawMessage `json:"tensorflowVersion"`
		State   stdjson.RawMessage `json:"state"`
		Health  string             `json:"health"`
		Says    string             `json:"healthDescription"`
	}
	if stdjson.Unmarshal(raw, &head) != nil || head.LogName != nil {
		return s, false, nil //nolint:nilerr // it describes something else
	}
	if head.Name == "" && head.State == nil && head.Health+head.Says != "" {
		s = seen(provider.Ref{}, &api.Node{State: "READY", Health: head.Health, HealthDescription: head.Says}, nil)
		s.State = cmp.Or(head.Health, "health not shown")
		return s, true, nil
	}
	name := described.FindStringSubmatch(head.Name)
	if name == nil {
		return s, false, nil
	}
	r := provider.Ref{Project: name[1], Zone: name[2], Name: name[4]}
	if name[3] != "nodes" {
		return s, true, queuedDescribed(r, raw)
	}
	if !valid(r) {
		return s, true, fmt.Errorf("%.120q is not a name of a node", head.Name)
	}
	fault := func(err error) error {
		return fmt.Errorf("it describes node %s, but not as the API does: %w", r.Name, err)
	}
	if head.Legacy != nil {
		n := new(tpupb.Node)
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, n); err != nil {
			return s, true, fault(err)
		}
		shown := legacyShown(n)
		if shown.State == "" { // it has none, or one that only a newer API knows
			_ = stdjson.Unmarshal(head.State, &shown.State) //nolint:errcheck // what is no text is none
		}
		if shown.State == "" {
			return s, true, fmt.Errorf("it describes node %s without its state; describe it without naming fields", r.Name)
		}
		s, err = new(legacy).sliceOf(r, n)
		s.State = stateText(shown)
		return s, true, err
	}
	var n api.Node
	if err := stdjson.Unmarshal(raw, &n); err != nil {
		return s, true, fault(err)
	}
	if n.State == "" {
		return s, true, fmt.Errorf("it describes node %s without its state; describe it without naming fields", r.Name)
	}
	if n.QueuedResource != "" {
		if q := described.FindStringSubmatch(n.QueuedResource); q != nil {
			r.QueuedResource = q[4]
		}
	}
	s, err = new(specs).sliceOf(r, &n, nil)
	return s, true, err
}

// queuedDescribed says how to describe what a queued resource asks for.
func queuedDescribed(r provider.Ref, raw []byte) error {
	var q api.QueuedResource
	_ = stdjson.Unmarshal(raw, &q) //nolint:errcheck // the way out is the same
	node, which := "NODE", "its node"
	nodes := queuedNodes(&q, r.Name)
	if len(nodes) > 0 && word.MatchString(nodes[0].name) {
		node = nodes[0].name
	}
	if len(nodes) > 1 {
		which = fmt.Sprintf("each of its %d nodes", len(nodes))
	}
	return fmt.Errorf("it describes queued resource %s; describe %s: gcloud compute tpus tpu-vm describe %s --zone %s", r.Name, which, node, r.Zone)
}
