package cloudtpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/api/googleapi"
	api "google.golang.org/api/tpu/v2alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

const (
	noCapacity = `There is no more capacity in the zone "us-central1-b"; you can try in another zone where Cloud TPU Nodes are offered (see https://cloud.google.com/tpu/docs/regions) [EID: 0xf3bb52b78a15cd16]`
	exhausted  = "Resource has been exhausted (e.g. check quota)."
	wrongZone  = `Cloud TPU received a bad request. The requested accelerator configuration for accelerator type, "v6e-1", could not be found in the zonal accelerator configurations for "asia-east1-a".; the accelerator v6e-1 was not found in zone asia-east1-a [EID: 0x1a]`
)

func TestOperationFailures(t *testing.T) {
	for name, c := range map[string]struct {
		code     code
		message  string
		details  string
		occasion occasion
		want     reason.FailureClass
	}{
		"no more capacity":             {code: 8, message: noCapacity, want: reason.Stockout},
		"insufficient capacity":        {code: 8, message: "insufficient capacity", want: reason.Stockout},
		"in capitals":                  {code: 8, message: "INSUFFICIENT CAPACITY", want: reason.Stockout},
		"a stockout of Compute Engine": {code: 9, message: "GCE_STOCKOUT", want: reason.Stockout},
		"an exhausted pool":            {code: 13, message: "ZONE_RESOURCE_POOL_EXHAUSTED", want: reason.Stockout},
		"an exhausted pool in the details": {
			code: 8, message: "Resources are exhausted.", want: reason.Stockout,
			details: `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"ZONE_RESOURCE_POOL_EXHAUSTED"}`,
		},

		"a quota": {
			code: 8, want: reason.Quota,
			message: "Quota 'TPUV2sPreemptiblePodPerProjectPerRegionForTPUAPI' exhausted. Limit 32 in region europe-west4",
		},
		"a quota limit":                {code: 8, message: "Quota limit 'X' has been exceeded. Limit: 32", want: reason.Quota},
		"a quota of nothing":           {code: 8, message: "Quota limit 'X' has been exceeded. Limit: 0", want: reason.NoQuota},
		"a quota of nothing in a zone": {code: 8, message: "Quota 'TPUV5s' exhausted. Limit 0 in zone us-west4-a", want: reason.NoQuota},
		"a quota of nothing, exactly":  {code: 8, message: "Quota exceeded: limit 0.0.", want: reason.NoQuota},
		"a quota of a fraction":        {code: 8, message: "Quota limit 'X' has been exceeded. Limit: 0.5", want: reason.Quota},
		"a quota of calls":             {code: 8, message: "Quota exceeded for quota metric 'calls' and limit 'calls per minute', limit: 0", want: reason.Transient},
		"a quota in the details": {
			code: 8, message: "Limit reached.", want: reason.Quota,
			details: `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[]}`,
		},
		"a quota under another code":               {code: 7, message: "Quota exceeded for resource.", want: reason.Quota},
		"exhausted, on a call that orders nothing": {code: 8, message: exhausted, want: reason.Transient},
		"exhausted, on a creation":                 {code: 8, message: exhausted, occasion: createFree, want: reason.Quota},
		"exhausted, at the end of a creation":      {code: 8, message: exhausted, occasion: createCall, want: reason.Quota},
		"too many calls": {
			code: 8, want: reason.Transient,
			message: "Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute' of service 'tpu.googleapis.com' for consumer 'project_number:1'.",
		},
		"too many calls by reason": {
			code: 8, message: "Quota exceeded.", want: reason.Transient,
			details: `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"}`,
		},
		"exhausted, and nothing says what of": {code: 8, message: "Resource has been exhausted.", want: reason.Transient},

		"a full reservation": {
			code: 9, want: reason.ReservationFull, occasion: createReserved,
			message: "Insufficient reserved capacity. Contact customer support to increase your reservation. [EID: 0x77]",
		},
		"a full reservation, for an order that names none": {
			code: 9, message: "Insufficient reserved capacity. Contact customer support to increase your reservation.", occasion: createFree, want: reason.Stockout,
		},
		"a full reservation, for an order that is not known": {
			code: 8, message: "Insufficient reserved capacity. Contact customer support to increase your reservation.", occasion: createCall, want: reason.Stockout,
		},
		"a zone without the accelerator": {code: 3, message: wrongZone, want: reason.WrongZone},
		"the short form of it":           {code: 3, message: "the accelerator v6e-1 was not found in zone asia-east1-a", want: reason.WrongZone},
		"a zone that nobody knows":       {code: 7, message: "Permission denied on 'locations/us-wset4-a' (or it may not exist).", want: reason.WrongZone},

		"a reservation that an order never asked for": {code: 5, message: "Reservation not found", occasion: createFree, want: reason.Stockout},
		"a reservation that some creation may have asked for": {
			code: 5, message: "Reservation not found", occasion: createCall, want: reason.Stockout,
		},
		"a reservation that was asked for":     {code: 5, message: "Reservation not found", occasion: createReserved, want: reason.Invalid},
		"a reservation, and it is no creation": {code: 5, message: "Reservation not found", want: reason.NotFound},

		"a policy of the organization": {
			code: 9, message: "Constraint constraints/compute.disableGuestAttributesAccess violated for project demo.", want: reason.Permission,
		},

		"an update of a node that was preempted": {
			code: 3, want: reason.NotInState,
			message: "Cloud TPU received a bad request. update is not supported while in state PREEMPTED [EID: 0x5]",
		},
		"a queued resource that is being provisioned": {
			code: 3, message: "DeleteQueuedResource is not supported when state is PROVISIONING", want: reason.NotInState,
		},
		"the same under its other code": {
			code: 9, message: "DeleteQueuedResource is not supported when state is PROVISIONING", want: reason.NotInState,
		},
		"any other precondition": {code: 9, message: "not now", want: reason.NotInState},

		"a name that is taken":       {code: 6, message: "Resource 'x' already exists", want: reason.Exists},
		"two changes at a time":      {code: 10, message: "unable to queue the operation", want: reason.Busy},
		"a missing slice":            {code: 5, message: "Resource 'x' was not found", want: reason.NotFound},
		"a call that is not allowed": {code: 7, message: "Permission 'tpu.nodes.create' denied", want: reason.Permission},
		"who is not known":           {code: 16, message: "Request had invalid authentication credentials.", want: reason.Permission},
		"a wrong request":            {code: 3, message: "runtime_version is required", want: reason.Invalid},
		"an internal error":          {code: 13, message: "TPU operation failed: an internal error [EID: 0xabc]", want: reason.Transient},
		"an unavailable service":     {code: 14, message: "try again", want: reason.Transient},
		"a cancelled operation":      {code: 1, message: "cancelled", want: reason.Transient},
		"a code that is none":        {code: 99, message: "?", want: reason.Transient},

		"a node that is called quota is not there":     {code: 5, message: "Resource 'projects/p/locations/z/nodes/quota' was not found", want: reason.NotFound},
		"a node that is called quota is not permitted": {code: 7, message: "Permission denied on 'projects/p/locations/z/nodes/quota-per-minute'", want: reason.Permission},
	} {
		t.Run(name, func(t *testing.T) {
			s := &api.Status{Code: int64(c.code), Message: c.message}
			if c.details != "" {
				s.Details = []googleapi.RawMessage{googleapi.RawMessage(c.details)}
			}
			got := statusFailure(s, c.occasion)
			if got.Class != c.want {
				t.Errorf("class %s, want %s", got.Class, c.want)
			}
			if strings.Contains(got.Message, "EID") || got.Message == "" {
				t.Errorf("message %q", got.Message)
			}
			sent := codes.Code(c.code) //nolint:gosec // each of the table is small
			for way, err := range map[string]error{"gRPC": refusal(t, sent, c.message, c.details), "HTTP": answer(t, 500, rpc(500, wireName(c.code), c.message, "["+c.details+"]"))} {
				if again := callFailure(err, c.occasion); again.Class != got.Class || again.Message != got.Message {
					t.Errorf("by %s: %+v, want %+v", way, again, got)
				}
			}
		})
	}
}

// wireName is the name of a code in the body of an answer.
func wireName(c code) string {
	for name, is := range codeNames {
		if is == c {
			return name
		}
	}
	return ""
}

// refusal is an error by gRPC.
func refusal(tb testing.TB, c codes.Code, message, details string) error {
	tb.Helper()
	s := status.New(c, message).Proto()
	if details != "" {
		d := new(anypb.Any)
		must(tb, protojson.Unmarshal([]byte(details), d))
		s.Details = append(s.Details, d)
	}
	return status.FromProto(s).Err()
}

// answer is an error as the generated client makes it of an answer.
func answer(tb testing.TB, status int, body string) error {
	tb.Helper()
	return googleapi.CheckResponse(&http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}})
}

// rpc is the body of an error of the API.
func rpc(status int, name, message, details string) string {
	if details == "" {
		details = "[]"
	}
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%q,"details":%s}}`, status, strconv.Quote(message), name, details)
}

// TestGRPCFailures: a status by gRPC is known however the client wraps it, and what the client says itself is no answer of the API.
func TestGRPCFailures(t *testing.T) {
	unknown := status.New(codes.ResourceExhausted, "full").Proto()
	unknown.Details = []*anypb.Any{{TypeUrl: "type.googleapis.com/google.rpc.QuotaFailure.V9"}}
	for name, c := range map[string]struct {
		err  error
		want reason.FailureClass
		text string
	}{
		"a precondition": {refusal(t, codes.FailedPrecondition, "not now", ""), reason.NotInState, "not now"},
		"out of range":   {refusal(t, codes.OutOfRange, "page 9", ""), reason.Invalid, "page 9"},
		"no token": {
			refusal(t, codes.Unauthenticated, "transport: per-RPC creds failed due to error: auth: cannot fetch token: 503", ""), reason.Transient,
			"transport: per-RPC creds failed due to error: auth: cannot fetch token: 503",
		},
		"no such method":             {refusal(t, codes.Unimplemented, "unknown service", ""), reason.Transient, "unknown service"},
		"lost data":                  {refusal(t, codes.DataLoss, "gone", ""), reason.Transient, "gone"},
		"too late":                   {refusal(t, codes.DeadlineExceeded, "context deadline exceeded", ""), reason.Transient, "context deadline exceeded"},
		"no message":                 {refusal(t, codes.Internal, "", ""), reason.Transient, "an error without a message"},
		"a detail that nobody knows": {status.FromProto(unknown).Err(), reason.Quota, "full"},
	} {
		t.Run(name, func(t *testing.T) {
			asClient, ok := apierror.FromError(c.err)
			if !ok {
				t.Fatal("the client does not know it")
			}
			for _, err := range []error{c.err, asClient, fmt.Errorf("wrapped: %w", asClient)} {
				got := callFailure(err, otherCall)
				if got.Class != c.want || got.Message != c.text || strings.Contains(got.Message, "rpc error") {
					t.Errorf("%s, %q; want %s, %q", got.Class, got.Message, c.want, c.text)
				}
				if said(err) != status.Convert(c.err).Message() {
					t.Errorf("the API says %q", said(err))
				}
			}
		})
	}
}

// TestACallThatItsCallerEnded fails with the caller's own error, whatever status the client makes of the end. The end of a call that
// waits for a token has the status of a caller whom nobody knows.
func TestACallThatItsCallerEnded(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for code, byCaller := range map[codes.Code]bool{
		codes.Canceled: true, codes.DeadlineExceeded: true, codes.Unauthenticated: true, codes.NotFound: false, codes.PermissionDenied: false,
	} {
		failed := status.Error(code, "transport: per-RPC creds failed due to error: context deadline exceeded")
		if err := ended(t.Context(), failed); !errors.Is(err, failed) {
			t.Errorf("%s of a call that goes on: %v", code, err)
		}
		if err := ended(over, failed); errors.Is(err, context.DeadlineExceeded) != byCaller {
			t.Errorf("%s of a call that its caller ended: %v", code, err)
		}
	}
}

func TestCallFailures(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want reason.FailureClass
		text string
	}{
		"a taken name, by text":    {err: answer(t, 409, `{"error":{"code":409,"message":"Resource 'x' already exists"}}`), want: reason.Exists},
		"a conflict without words": {err: answer(t, 409, `{"error":{"code":409,"message":"conflict"}}`), want: reason.Busy},
		"a list of one error":      {err: answer(t, 404, "["+rpc(404, "NOT_FOUND", "Resource 'x' was not found", "")+"]"), want: reason.NotFound},
		"a proxy's 404 proves no absence": {
			err: answer(t, 404, "<html>not found</html>"), want: reason.Transient, text: "HTTP status 404 Not Found",
		},
		"a proxy's 409":            {err: answer(t, 409, "<html>"), want: reason.Transient},
		"a proxy's 403":            {err: answer(t, 403, "no"), want: reason.Transient},
		"a proxy's 502":            {err: answer(t, 502, ""), want: reason.Transient, text: "HTTP status 502 Bad Gateway"},
		"a JSON that says nothing": {err: answer(t, 404, `{"error":{}}`), want: reason.Transient},

		"too late": {err: context.DeadlineExceeded, want: reason.Transient, text: "context deadline exceeded"},
		"no connection": {
			err:  &url.Error{Op: "Post", URL: "https://tpu.googleapis.com/v2alpha1/x?requestId=1", Err: errors.New("connection refused")},
			want: reason.Transient, text: "connection refused",
		},
		"an answer that is cut off": {err: io.ErrUnexpectedEOF, want: reason.Transient},
	} {
		t.Run(name, func(t *testing.T) {
			got := callFailure(fmt.Errorf("wrapped: %w", c.err), otherCall)
			if got.Class != c.want {
				t.Errorf("class %s, want %s", got.Class, c.want)
			}
			if c.text != "" && strings.TrimPrefix(got.Message, "wrapped: ") != c.text {
				t.Errorf("message %q, want %q", got.Message, c.text)
			}
		})
	}
}

func TestAnswersWithoutACode(t *testing.T) {
	for status, want := range map[int]reason.FailureClass{
		400: reason.Invalid, 401: reason.Permission, 403: reason.Permission, 404: reason.NotFound, 405: reason.Invalid,
		408: reason.Transient, 409: reason.Busy, 410: reason.NotFound, 412: reason.NotInState, 413: reason.Invalid,
		429: reason.Transient, 499: reason.Transient, 500: reason.Transient, 501: reason.Transient,
		502: reason.Transient, 503: reason.Transient, 504: reason.Transient,
	} {
		err := answer(t, status, fmt.Sprintf(`{"error":{"code":%d,"message":"x"}}`, status))
		if got := callFailure(err, otherCall); got.Class != want || got.Message != "x" {
			t.Errorf("%d: %+v, want %s", status, got, want)
		}
	}
}

func TestMessagesAreOneShortLine(t *testing.T) {
	for in, want := range map[string]string{
		"two\nlines\tand  more ":              "two lines and more",
		"x [EID: 0xF3] and y [EID: 0x0]":      "x and y",
		"\xff":                                "?",
		strings.Repeat("ü", maxMessage):       strings.Repeat("ü", maxMessage/2) + "...",
		"a" + strings.Repeat("ü", maxMessage): "a" + strings.Repeat("ü", maxMessage/2-1) + "...",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%.20q) = %q, want %q", in, got, want)
		}
	}
}

func TestUnwrap(t *testing.T) {
	err := error(&provider.Error{Call: "read node x in z", Class: reason.Transient, Message: "late", Cause: context.DeadlineExceeded})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error("the cause is hidden")
	}
	if want := "read node x in z: late (transient)"; err.Error() != want {
		t.Errorf("%q, want %q", err.Error(), want)
	}
	if got := provider.Failure(fmt.Errorf("x: %w", err)); got.Class != reason.Transient || got.Message != "late" {
		t.Errorf("Failure = %+v", got)
	}
}

func TestAuditedFailuresAreOfTheSameTable(t *testing.T) {
	for name, c := range map[string]struct {
		call events.Call
		want *evidence.Failure
	}{
		"a success":  {events.Call{Method: "CreateNode"}, nil},
		"a stockout": {events.Call{Method: "CreateNode", Code: 8, Message: noCapacity}, &evidence.Failure{Class: reason.Stockout, Message: plain(noCapacity)}},
		"a quota": {
			events.Call{Method: "CreateQueuedResource", Code: 8, Message: "Quota 'TPUV5s' exhausted. Limit 32 in zone us-west4-a"},
			&evidence.Failure{Class: reason.Quota, Message: "Quota 'TPUV5s' exhausted. Limit 32 in zone us-west4-a"},
		},
		"a refusal in disguise": {
			events.Call{Method: "CreateNode", Code: 5, Message: "Reservation not found [EID: 0x1f]"}, &evidence.Failure{Class: reason.Stockout, Message: "Reservation not found"},
		},
		"a reservation that nobody asked for": {
			events.Call{Method: "CreateNode", Code: 9, Message: "Insufficient reserved capacity."}, &evidence.Failure{Class: reason.Stockout, Message: "Insufficient reserved capacity."},
		},
		"a full reservation": {
			events.Call{Method: "CreateNode", Code: 9, Message: "Insufficient reserved capacity.", Order: events.Order{Reserved: true}},
			&evidence.Failure{Class: reason.ReservationFull, Message: "Insufficient reserved capacity."},
		},
		"nothing there": {events.Call{Method: "DeleteNode", Code: 5, Message: "no such node"}, &evidence.Failure{Class: reason.NotFound, Message: "no such node"}},
		"not allowed":   {events.Call{Method: "StopNode", Code: 7, Message: "no"}, &evidence.Failure{Class: reason.Permission, Message: "no"}},
		"without a word": {
			events.Call{Method: "StopNode", Code: 99}, &evidence.Failure{Class: reason.Transient, Message: "an error without a message"},
		},
	} {
		if d := cmp.Diff(c.want, Audited(c.call)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(429, 8, noCapacity, "")
	f.Add(400, 3, wrongZone, "{}")
	f.Add(404, 5, "Reservation not found", "[")
	f.Add(502, 0, "", "<html>")
	f.Add(409, 10, "unable to queue \xff the operation [EID: 0x", "null")
	classes := map[reason.FailureClass]bool{
		reason.Transient: true, reason.Busy: true, reason.NotInState: true, reason.Stockout: true, reason.Quota: true,
		reason.ReservationFull: true, reason.WrongZone: true, reason.Exists: true, reason.NotFound: true,
		reason.Permission: true, reason.Invalid: true,
	}
	f.Fuzz(func(t *testing.T, status, c int, message, body string) {
		for _, o := range []occasion{otherCall, createCall, createFree, createReserved} {
			s := &api.Status{Code: int64(c), Message: message, Details: []googleapi.RawMessage{googleapi.RawMessage(body)}}
			got := statusFailure(s, o)
			failures := []evidence.Failure{got}
			for _, b := range []string{body, rpc(status, "", message, "")} {
				if err := answer(t, status, b); err != nil {
					failures = append(failures, callFailure(err, o))
				}
			}
			for _, x := range failures {
				if !classes[x.Class] {
					t.Errorf("class %q", x.Class)
				}
				if x.Message == "" || strings.ContainsAny(x.Message, "\n\r\t") || len(x.Message) > maxMessage+3 || !utf8.ValidString(x.Message) {
					t.Errorf("message %q", x.Message)
				}
			}
			s.Message += " [EID: 0x1f]"
			if again := statusFailure(s, o); again.Class != got.Class || message != "" && again.Message != got.Message {
				t.Errorf("%+v with an EID, %+v without", again, got)
			}
		}
	})
}
