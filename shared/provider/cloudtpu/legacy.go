package cloudtpu

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"path"
	"slices"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/tpu/apiv1/tpupb"
	"github.com/go-json-experiment/json"
	"google.golang.org/api/googleapi"
	api "google.golang.org/api/tpu/v2alpha1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/recent"
)

// legacy is the Cloud TPU API, v1: TPU Nodes, whose machines nobody can see. They have neither metadata nor guest
// attributes, no announced maintenance and no queued resources; calls have no request ID, so a repeated creation is refused
// because the name is taken, and a repeated deletion because of the state.
// https://cloud.google.com/tpu/docs/reference/rest/v1/projects.locations.nodes
type legacy struct {
	methods LegacyMethods
	// specs are the specifications of the last readings.
	specs recent.Memory[provider.Ref, legacyRemembered]
}

type legacyRemembered struct {
	node  *tpupb.Node
	slice provider.Slice
}

// legacyFields are the fields of v1, in the form of fields for v2alpha1.
var legacyFields = schemas{
	"Node": {
		"acceleratorType": {copied, ""}, "apiVersion": {output, ""}, "cidrBlock": {regional, ""}, "createTime": {output, ""},
		"description": {copied, ""}, "health": {output, ""}, "healthDescription": {output, ""}, "ipAddress": {output, ""},
		"labels": {copied, ""}, "name": {recomputed, ""}, "network": {portable, ""}, "networkEndpoints": {output, ""},
		"port": {output, ""}, "schedulingConfig": {copied, "SchedulingConfig"}, "serviceAccount": {output, ""},
		"state": {output, ""}, "symptoms": {output, ""}, "tensorflowVersion": {portable, ""},
		"useServiceNetworking": {copied, ""},
	},
	"SchedulingConfig": {"preemptible": {copied, ""}, "reserved": {copied, ""}},
}

// legacyNode is the key of a legacy node in its specification; the specification of a TPU VM has "node" instead.
const legacyNode = "legacy_node"

// specOf is legacySpec with a memory for unchanged nodes.
func (l *legacy) specOf(r provider.Ref, n *tpupb.Node) (spec []byte, name string, err error) {
	if last, ok := l.specs.Get(r); ok && proto.Equal(last.node, n) {
		return last.slice.Spec, last.slice.SpecHash, nil
	}
	return legacySpec(n)
}

// legacySpec writes the specification for creating a legacy node again.
func legacySpec(n *tpupb.Node) (spec []byte, hash string, err error) {
	data, err := protojson.Marshal(n)
	if err != nil {
		return nil, "", fmt.Errorf("specification: %w", err)
	}
	node, err := legacyFields.keepJSON("Node", data)
	if err != nil {
		return nil, "", err
	}
	drop(node, "labels", events.LabelIncident)
	dropEmpty(node, "labels", "schedulingConfig")
	if node["useServiceNetworking"] == true {
		delete(node, "cidrBlock") // the API chose it, and accepts no other next to it
	}
	spec, err = json.Marshal(map[string]any{legacyNode: node}, json.Deterministic(true))
	if err != nil {
		return nil, "", fmt.Errorf("specification: %w", err)
	}
	return spec, events.ID("spec", string(spec)), nil
}

// readLegacySpec reads a stored specification.
func readLegacySpec(spec []byte) (*tpupb.Node, error) {
	var r struct {
		Node *stdjson.RawMessage `json:"legacy_node"`
	}
	if err := stdjson.Unmarshal(spec, &r); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	if r.Node == nil {
		return nil, fmt.Errorf("specification: it has no legacy node")
	}
	n := new(tpupb.Node)
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(*r.Node, n); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	return n, nil
}

// legacyLife is the identifier of a life of a legacy node: v1 offers only the creation time.
func legacyLife(i events.Incarnation) string {
	if i.Created.IsZero() {
		return ""
	}
	return i.Created.Format(time.RFC3339Nano)
}

// sliceOf converts a legacy node to a slice.
func (l *legacy) sliceOf(r provider.Ref, n *tpupb.Node) (s provider.Slice, err error) {
	if last, ok := l.specs.Get(r); ok && last.node == n {
		return last.slice, nil // it is shared with the last reading, so all of it is the same
	}
	key := r
	r.Legacy, r.QueuedResource = true, ""
	s = seen(r, legacyShown(n), nil)
	s.Incarnation.ID = legacyLife(s.Incarnation)
	if s.Spec, s.SpecHash, err = l.specOf(key, n); err == nil {
		l.specs.Put(key, legacyRemembered{n, s}, len(s.Spec))
	}
	return s, err
}

// legacyShown is a legacy node as v2alpha1 would show it, without what its specification says.
func legacyShown(n *tpupb.Node) *api.Node {
	return &api.Node{
		State: enum(n.State), Health: enum(n.Health), HealthDescription: n.HealthDescription, AcceleratorType: n.AcceleratorType, CreateTime: legacyTime(n.CreateTime),
		Labels: n.Labels, SchedulingConfig: legacyScheduling(n),
		NetworkEndpoints: make([]*api.NetworkEndpoint, len(n.NetworkEndpoints)), Symptoms: legacySymptoms(n),
	}
}

// enum is the name of a value, as v2alpha1 writes it; empty for one that is not set.
func enum(v interface {
	protoreflect.Enum
	fmt.Stringer
},
) string {
	if v.Number() == 0 {
		return ""
	}
	return v.String()
}

func legacyTime(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339Nano)
}

func legacyScheduling(n *tpupb.Node) *api.SchedulingConfig {
	if n.SchedulingConfig == nil {
		return nil
	}
	return &api.SchedulingConfig{Preemptible: n.SchedulingConfig.Preemptible, Reserved: n.SchedulingConfig.Reserved}
}

func legacySymptoms(n *tpupb.Node) []*api.Symptom {
	var all []*api.Symptom
	for _, y := range n.Symptoms {
		all = append(all, &api.Symptom{SymptomType: enum(y.SymptomType)})
	}
	return all
}

// legacyOperation converts an operation of v1 to one of v2alpha1. The metadata of both versions has the same layout.
func legacyOperation(o *longrunningpb.Operation) *api.Operation {
	op := &api.Operation{Name: o.Name, Done: o.Done}
	if e := o.GetError(); e != nil {
		op.Error = &api.Status{Code: int64(e.Code), Message: e.Message}
		for _, d := range e.Details {
			op.Error.Details = append(op.Error.Details, googleapi.RawMessage(detail(d)))
		}
	}
	var m tpupb.OperationMetadata
	if proto.Unmarshal(o.Metadata.GetValue(), &m) == nil {
		op.Metadata, _ = stdjson.Marshal(map[string]string{"verb": m.Verb, "target": m.Target}) //nolint:errcheck // strings can always be written
	}
	return op
}

// ours reports whether a node belongs to this version, which may also show nodes of the other.
func ours(n *tpupb.Node) bool { return n.ApiVersion <= tpupb.Node_V1 }

func (l *legacy) read(ctx context.Context, r provider.Ref) (provider.Slice, error) {
	n, err := call(ctx, about(r, "read legacy"), otherCall, func(ctx context.Context) (*tpupb.Node, error) {
		return l.methods.Node(ctx, r.String())
	})
	switch {
	case is(err, reason.NotFound) || err == nil && !ours(n):
		return gone(r), nil
	case err != nil:
		return provider.Slice{}, err
	}
	return l.sliceOf(r, n)
}

// list reads the legacy nodes of a zone; whole says that the list is complete.
func (l *legacy) list(ctx context.Context, project, zone string) (all []provider.Slice, whole bool, err error) {
	nodes, partial, err := pages(ctx, "list legacy nodes in "+zone, func(ctx context.Context, token string) ([]*tpupb.Node, string, bool, error) {
		page, err := l.methods.Nodes(ctx, zoneName(project, zone), token)
		if err != nil {
			return nil, "", false, err
		}
		return page.Nodes, page.NextPageToken, len(page.Unreachable) > 0, nil
	})
	if err != nil {
		return nil, false, err
	}
	for _, n := range nodes {
		if !ours(n) {
			continue
		}
		s, err := l.sliceOf(provider.Ref{Project: project, Zone: zone, Name: path.Base(n.Name)}, n)
		if err != nil {
			return nil, false, err
		}
		all = append(all, s)
	}
	return all, !partial, nil
}

func (l *legacy) create(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string) (operation string, err error) {
	what := about(r, "create legacy")
	n, err := readLegacySpec(spec)
	if err != nil {
		return "", &provider.Error{Call: what, Class: reason.Invalid, Message: err.Error(), Cause: err}
	}
	for k, v := range labels {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[k] = v
	}
	o := createFree
	if c := n.SchedulingConfig; c != nil && c.Reserved {
		o = createReserved
	}
	return l.start(ctx, what, o, func(ctx context.Context) (*longrunningpb.Operation, error) {
		return l.methods.CreateNode(ctx, zoneOf(r), r.Name, n)
	})
}

// start begins an operation, and returns its name.
func (l *legacy) start(ctx context.Context, what string, o occasion, f func(context.Context) (*longrunningpb.Operation, error)) (string, error) {
	op, err := call(ctx, what, o, f)
	if err != nil {
		return "", err
	}
	return started(what, o, hidden{}, legacyOperation(op))
}

// operations lists the operations of a zone, as far as they are named. The service that lists them has no version, so operations of
// TPU VMs may be among them; secrets are the values that the error of one may repeat.
func (l *legacy) operations(
	ctx context.Context, project, zone string, names []string, secrets func(*api.Operation) hidden,
) ([]provider.Operation, error) {
	ops, _, err := pages(ctx, "list operations of legacy nodes in "+zone, func(ctx context.Context, token string) ([]provider.Operation, string, bool, error) {
		page, err := l.methods.Operations(ctx, zoneName(project, zone), token)
		if err != nil {
			return nil, "", false, err
		}
		var all []provider.Operation
		for _, o := range page.Operations {
			if len(names) > 0 && !slices.Contains(names, o.Name) {
				continue
			}
			op := legacyOperation(o)
			all = append(all, operationOf(op, func() hidden { return secrets(op) }))
		}
		return all, page.NextPageToken, false, nil
	})
	return ops, err
}
