package cloudtpu

import (
	"context"
	"testing"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	tpu "cloud.google.com/go/tpu/apiv1"
	"cloud.google.com/go/tpu/apiv1/tpupb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// TestAnOperationThatIsDoneAtOnce failed only if it says so, whatever it leaves.
func TestAnOperationThatIsDoneAtOnce(t *testing.T) {
	const name = "projects/demo/locations/us-central1-a/operations/operation-1"
	holding := func(m proto.Message) *longrunningpb.Operation {
		held, err := anypb.New(m)
		must(t, err)
		return &longrunningpb.Operation{Name: name, Done: true, Result: &longrunningpb.Operation_Response{Response: held}}
	}
	for what, c := range map[string]struct {
		answer *longrunningpb.Operation
		failed string
	}{
		"that goes on":             {&longrunningpb.Operation{Name: name}, ""},
		"that leaves a node":       {holding(&tpupb.Node{Name: "n"}), ""},
		"that leaves nothing":      {holding(&emptypb.Empty{}), ""},
		"that says nothing":        {&longrunningpb.Operation{Name: name, Done: true}, ""},
		"that fails with no error": {&longrunningpb.Operation{Name: name, Done: true, Result: &longrunningpb.Operation_Error{Error: status.New(codes.OK, "").Proto()}}, ""},
		"that failed": {
			&longrunningpb.Operation{Name: name, Done: true, Result: &longrunningpb.Operation_Error{Error: status.New(codes.ResourceExhausted, "full").Proto()}}, "full",
		},
	} {
		t.Run(what, func(t *testing.T) {
			conn, err := grpc.NewClient("passthrough:///nowhere", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(
				func(_ context.Context, _ string, _, into any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
					proto.Merge(into.(proto.Message), c.answer) //nolint:forcetypeassert // every answer is one
					return nil
				}))
			must(t, err)
			client, err := tpu.NewClient(t.Context(), option.WithGRPCConn(conn))
			must(t, err)
			defer client.Close() //nolint:errcheck // nothing was sent
			calls := legacyGRPC{client}
			for method, call := range map[string]func() (*longrunningpb.Operation, error){
				"CreateNode": func() (*longrunningpb.Operation, error) {
					return calls.CreateNode(t.Context(), "p", "n", &tpupb.Node{})
				},
				"DeleteNode": func() (*longrunningpb.Operation, error) { return calls.DeleteNode(t.Context(), "n") },
				"StartNode":  func() (*longrunningpb.Operation, error) { return calls.StartNode(t.Context(), "n") },
			} {
				op, err := call()
				if err != nil || op.Name != name || op.Done != c.answer.Done || op.GetError().GetMessage() != c.failed || (op.GetError() != nil) != (c.failed != "") {
					t.Errorf("%s: %v, %v", method, op, err)
				}
			}
		})
	}
}
