package cloudtputest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/tpu/apiv1/tpupb"
	"google.golang.org/api/googleapi"
	api "google.golang.org/api/tpu/v2alpha1"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// overHTTP is the call over HTTP that a request of v1 by gRPC stands for; nil for a request that no LegacyMethods make. Both forms have
// the same faults and events, and the same Request. The other methods of v1 are served over HTTP alone.
// https://cloud.google.com/tpu/docs/reference/rpc/google.cloud.tpu.v1
func overHTTP(ask any) *request {
	one := func(method, path string, body any, query ...string) *request {
		return newRequest(former, method, path, body, query...)
	}
	list := func(path string, size int32, token string) *request {
		query := []string{"pageToken", token}
		if size != 0 {
			query = append(query, "pageSize", strconv.Itoa(int(size)))
		}
		return one(http.MethodGet, path, nil, query...)
	}
	switch ask := ask.(type) {
	case *tpupb.ListNodesRequest:
		return list(ask.Parent+"/nodes", ask.PageSize, ask.PageToken)
	case *tpupb.GetNodeRequest:
		return one(http.MethodGet, ask.Name, nil)
	case *tpupb.CreateNodeRequest:
		return one(http.MethodPost, ask.Parent+"/nodes", ask.Node, "nodeId", ask.NodeId)
	case *tpupb.DeleteNodeRequest:
		return one(http.MethodDelete, ask.Name, nil)
	case *tpupb.StartNodeRequest:
		return one(http.MethodPost, ask.Name+":start", empty{})
	case *longrunningpb.ListOperationsRequest:
		return list(ask.Name+"/operations", ask.PageSize, ask.PageToken)
	}
	return nil
}

// asked makes a call of v1. An answer that both versions give alike has the form of v2alpha1 until here.
func asked[T proto.Message](ctx context.Context, d *direct, ask proto.Message) (v T, err error) {
	out, err := d.make(ctx, overHTTP(ask))
	if err != nil {
		return v, err
	}
	v, _ = message(out.value).(T)
	return v, nil
}

// message is an answer as v1 gives it by gRPC.
func message(v any) proto.Message {
	switch v := v.(type) {
	case proto.Message:
		return v
	case *api.Operation:
		return operationMessage(v)
	case *api.ListOperationsResponse:
		list := &longrunningpb.ListOperationsResponse{NextPageToken: v.NextPageToken, Unreachable: v.Unreachable}
		for _, o := range v.Operations {
			list.Operations = append(list.Operations, operationMessage(o))
		}
		return list
	}
	return &emptypb.Empty{}
}

func operationMessage(o *api.Operation) *longrunningpb.Operation {
	out := &longrunningpb.Operation{Name: o.Name, Done: o.Done, Metadata: anyMessage(o.Metadata)}
	switch {
	case o.Error != nil:
		out.Result = &longrunningpb.Operation_Error{Error: grpcstatus.New(grpccodes.Code(o.Error.Code), o.Error.Message).Proto()} //nolint:gosec // a code
	case o.Done:
		out.Result = &longrunningpb.Operation_Response{Response: anyMessage(o.Response)}
	}
	return out
}

// anyMessage is a value that names its own type. v2alpha1 has no client by gRPC: of its types only the metadata has content, which
// both versions lay out alike.
func anyMessage(raw googleapi.RawMessage) *anypb.Any {
	var of struct {
		Type string `json:"@type"`
	}
	must(json.Unmarshal(raw, &of))
	out := &anypb.Any{TypeUrl: of.Type}
	switch {
	case !strings.Contains(of.Type, "."+version+"."):
		must(protojson.Unmarshal(raw, out))
	case strings.HasSuffix(of.Type, ".OperationMetadata"):
		var m tpupb.OperationMetadata
		must(protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(raw, &m)) // the name of its type is no field
		var err error
		out.Value, err = proto.Marshal(&m)
		must(err)
	}
	return out
}

func must(err error) {
	if err != nil {
		panic("cloudtputest: " + err.Error())
	}
}

// timeOf is a time as the API writes it; nil for none.
func timeOf(s string) *timestamppb.Timestamp {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return nil
	}
	return timestamppb.New(t)
}

// status is how a call by gRPC ends that was refused, or that met a page of some proxy: of that the client makes an error of its
// own.
func (out answer) status() *grpcstatus.Status {
	if out.refused != nil {
		return grpcstatus.New(grpccodes.Code(out.refused.code), out.refused.message) //nolint:gosec // a code
	}
	code, ok := map[int]grpccodes.Code{
		http.StatusBadRequest: grpccodes.Internal, http.StatusUnauthorized: grpccodes.Unauthenticated, http.StatusForbidden: grpccodes.PermissionDenied,
		http.StatusNotFound: grpccodes.Unimplemented, http.StatusTooManyRequests: grpccodes.Unavailable, http.StatusBadGateway: grpccodes.Unavailable,
		http.StatusServiceUnavailable: grpccodes.Unavailable, http.StatusGatewayTimeout: grpccodes.Unavailable,
	}[out.http]
	if !ok {
		code = grpccodes.Unknown
	}
	return grpcstatus.Newf(code, "unexpected HTTP status code received from server: %d (%s); transport: received unexpected content-type %q",
		out.http, http.StatusText(out.http), out.kind)
}

// NeverCame reports whether the error of a call says that no answer has arrived because a fault lost the call or its answer.
func NeverCame(err error) bool {
	s, ok := grpcstatus.FromError(err)
	return errors.Is(err, errLost) || ok && s.Code() == grpccodes.Unavailable && s.Message() == errLost.Error()
}

// former serves v1 by gRPC. The services only name the methods: every call is answered before it reaches them.
func (a *API) former() *grpc.Server {
	a.formerOnce.Do(func() {
		a.formerServer = grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, ask any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
			c := overHTTP(ask)
			if c == nil {
				return nil, grpcstatus.Error(grpccodes.Unimplemented, info.FullMethod+" is not simulated by gRPC")
			}
			c.principal = a.principal
			if in, ok := metadata.FromIncomingContext(ctx); ok {
				for _, v := range in.Get("authorization") {
					if p, ok := strings.CutPrefix(v, "Bearer "); ok && p != "" {
						c.principal = p
					}
				}
			}
			out, lost := a.serve(c)
			if lost { // the client sees the same of a connection that breaks
				return nil, grpcstatus.Error(grpccodes.Unavailable, errLost.Error())
			}
			if err := out.err(c); err != nil {
				return nil, err
			}
			return message(out.value), nil
		}))
		tpupb.RegisterTpuServer(a.formerServer, tpupb.UnimplementedTpuServer{})
		longrunningpb.RegisterOperationsServer(a.formerServer, longrunningpb.UnimplementedOperationsServer{})
	})
	return a.formerServer
}

// Connect connects to v1 by gRPC, without a socket and as the default principal, until the context ends. Around stands around
// every call, as around direct ones; it may be nil. An error that it returns in the place of a call has to carry a status.
func (a *API) Connect(ctx context.Context, around Around) (*grpc.ClientConn, error) {
	const buffer = 64 << 10
	wire := bufconn.Listen(buffer)
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return wire.DialContext(ctx) }),
	}
	if around != nil {
		opts = append(opts, grpc.WithUnaryInterceptor(
			func(ctx context.Context, method string, ask, into any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				next := func() error { return call(ctx, method, ask, into, conn, opts...) }
				c := overHTTP(ask)
				if c == nil {
					return next()
				}
				return around(ctx, Request{c.http, c.path, c.raw, c.body}, next)
			}))
	}
	conn, err := grpc.NewClient("passthrough:///tpu.googleapis.com", opts...)
	if err != nil {
		return nil, fmt.Errorf("cloudtputest: %w", err)
	}
	go func() { _ = a.former().Serve(wire) }()                           //nolint:errcheck // it ends with its wire
	context.AfterFunc(ctx, func() { _, _ = conn.Close(), wire.Close() }) //nolint:errcheck // nobody uses them any more
	return conn, nil
}

// legacyDirect makes the calls of v1 without a wire.
type legacyDirect struct{ direct *direct }

func (l legacyDirect) Operations(ctx context.Context, parent, page string) (*longrunningpb.ListOperationsResponse, error) {
	return asked[*longrunningpb.ListOperationsResponse](ctx, l.direct, &longrunningpb.ListOperationsRequest{Name: parent, PageToken: page})
}

func (l legacyDirect) Nodes(ctx context.Context, parent, page string) (*tpupb.ListNodesResponse, error) {
	return asked[*tpupb.ListNodesResponse](ctx, l.direct, &tpupb.ListNodesRequest{Parent: parent, PageToken: page})
}

func (l legacyDirect) Node(ctx context.Context, name string) (*tpupb.Node, error) {
	return asked[*tpupb.Node](ctx, l.direct, &tpupb.GetNodeRequest{Name: name})
}

func (l legacyDirect) CreateNode(ctx context.Context, parent, id string, n *tpupb.Node) (*longrunningpb.Operation, error) {
	return asked[*longrunningpb.Operation](ctx, l.direct, &tpupb.CreateNodeRequest{Parent: parent, NodeId: id, Node: n})
}

func (l legacyDirect) DeleteNode(ctx context.Context, name string) (*longrunningpb.Operation, error) {
	return asked[*longrunningpb.Operation](ctx, l.direct, &tpupb.DeleteNodeRequest{Name: name})
}

func (l legacyDirect) StartNode(ctx context.Context, name string) (*longrunningpb.Operation, error) {
	return asked[*longrunningpb.Operation](ctx, l.direct, &tpupb.StartNodeRequest{Name: name})
}
