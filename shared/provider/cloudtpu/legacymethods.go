package cloudtpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	tpu "cloud.google.com/go/tpu/apiv1"
	"cloud.google.com/go/tpu/apiv1/tpupb"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// LegacyMethods are the methods of the former version, v1, that are called for legacy TPU Nodes. What a method returns may be
// shared with others, so nobody changes it. Errors carry a gRPC status, as those of the client do.
type LegacyMethods interface {
	Operations(ctx context.Context, parent, page string) (*longrunningpb.ListOperationsResponse, error)
	Nodes(ctx context.Context, parent, page string) (*tpupb.ListNodesResponse, error)
	Node(ctx context.Context, name string) (*tpupb.Node, error)
	CreateNode(ctx context.Context, parent, id string, n *tpupb.Node) (*longrunningpb.Operation, error)
	DeleteNode(ctx context.Context, name string) (*longrunningpb.Operation, error)
	StartNode(ctx context.Context, name string) (*longrunningpb.Operation, error)
}

// legacyGRPC makes the calls of the former version by gRPC, the only protocol of its client.
type legacyGRPC struct{ client *tpu.Client }

var _ LegacyMethods = legacyGRPC{}

// alive has a connection tested while calls wait for answers. Otherwise a connection that broke unnoticed would take every call until
// its time is up.
var alive = keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}

func newLegacy(ctx context.Context, opts ...option.ClientOption) (*legacy, error) {
	c, err := tpu.NewClient(ctx, append([]option.ClientOption{option.WithGRPCDialOption(grpc.WithKeepaliveParams(alive))}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("cloud tpu client of legacy nodes: %w", err)
	}
	return &legacy{methods: legacyGRPC{c}}, nil
}

// Operations reads one page. The client's iterator would go on to the next page by itself.
func (s legacyGRPC) Operations(ctx context.Context, parent, page string) (*longrunningpb.ListOperationsResponse, error) {
	it := s.client.ListOperations(ctx, &longrunningpb.ListOperationsRequest{Name: parent})
	ops, next, err := it.InternalFetch(0, page)
	if err != nil {
		return nil, ended(ctx, err)
	}
	return &longrunningpb.ListOperationsResponse{Operations: ops, NextPageToken: next}, nil
}

// Nodes reads one page. The client's iterator would skip an empty page, and with it the places that were not reached.
func (s legacyGRPC) Nodes(ctx context.Context, parent, page string) (*tpupb.ListNodesResponse, error) {
	it := s.client.ListNodes(ctx, &tpupb.ListNodesRequest{Parent: parent})
	if _, _, err := it.InternalFetch(0, page); err != nil {
		return nil, ended(ctx, err)
	}
	list, ok := it.Response.(*tpupb.ListNodesResponse)
	if !ok {
		return nil, fmt.Errorf("the client answers a listing with %T", it.Response)
	}
	return list, nil
}

func (s legacyGRPC) Node(ctx context.Context, name string) (*tpupb.Node, error) {
	n, err := s.client.GetNode(ctx, &tpupb.GetNodeRequest{Name: name})
	return n, ended(ctx, err)
}

func (s legacyGRPC) CreateNode(ctx context.Context, parent, id string, n *tpupb.Node) (*longrunningpb.Operation, error) {
	op, err := s.client.CreateNode(ctx, &tpupb.CreateNodeRequest{Parent: parent, NodeId: id, Node: n})
	if err != nil {
		return nil, ended(ctx, err)
	}
	return begun(op, func() error { _, err := op.Poll(ctx); return err }), nil
}

func (s legacyGRPC) DeleteNode(ctx context.Context, name string) (*longrunningpb.Operation, error) {
	op, err := s.client.DeleteNode(ctx, &tpupb.DeleteNodeRequest{Name: name})
	if err != nil {
		return nil, ended(ctx, err)
	}
	return begun(op, func() error { _, err := op.Poll(ctx); return err }), nil
}

func (s legacyGRPC) StartNode(ctx context.Context, name string) (*longrunningpb.Operation, error) {
	op, err := s.client.StartNode(ctx, &tpupb.StartNodeRequest{Name: name})
	if err != nil {
		return nil, ended(ctx, err)
	}
	return begun(op, func() error { _, err := op.Poll(ctx); return err }), nil
}

// begun is an operation as its call returned it. The client hides the failure of one that is done already behind poll, which
// then makes no call. Poll also fails where the operation leaves something else than a node, as a deletion may: that is no failure of
// the operation.
func begun(op interface {
	Name() string
	Done() bool
}, poll func() error,
) *longrunningpb.Operation {
	o := &longrunningpb.Operation{Name: op.Name(), Done: op.Done()}
	if !o.Done {
		return o
	}
	if failed, ok := errors.AsType[*apierror.APIError](poll()); ok && failed != nil {
		o.Result = &longrunningpb.Operation_Error{Error: failed.GRPCStatus().Proto()}
	}
	return o
}

// ended replaces the status of a call that its caller ended by the caller's own error, so that errors.Is finds it. A call that ends
// while it waits for a token has the status Unauthenticated.
func ended(ctx context.Context, err error) error {
	if c := status.Code(err); ctx.Err() != nil && (c == codes.Canceled || c == codes.DeadlineExceeded || c == codes.Unauthenticated) {
		return ctx.Err()
	}
	return err
}
