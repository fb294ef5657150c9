package cloudtpu

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/api/googleapi"
	api "google.golang.org/api/tpu/v2alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/reason"
)

// code is a code of google.rpc.Status. Long-running operations fail with one, and HTTP answers are converted to one.
// https://cloud.google.com/apis/design/errors#handling_errors
type code int

const (
	canceled           code = 1
	unknown            code = 2
	invalidArgument    code = 3
	deadlineExceeded   code = 4
	notFound           code = 5
	alreadyExists      code = 6
	permissionDenied   code = 7
	resourceExhausted  code = 8
	failedPrecondition code = 9
	aborted            code = 10
	internal           code = 13
	unavailable        code = 14
	unauthenticated    code = 16
)

var codeNames = map[string]code{
	"CANCELLED": canceled, "UNKNOWN": unknown, "INVALID_ARGUMENT": invalidArgument, "DEADLINE_EXCEEDED": deadlineExceeded,
	"NOT_FOUND": notFound, "ALREADY_EXISTS": alreadyExists, "PERMISSION_DENIED": permissionDenied,
	"RESOURCE_EXHAUSTED": resourceExhausted, "FAILED_PRECONDITION": failedPrecondition, "ABORTED": aborted,
	"OUT_OF_RANGE": invalidArgument, "UNIMPLEMENTED": internal, "INTERNAL": internal, "UNAVAILABLE": unavailable,
	"DATA_LOSS": internal, "UNAUTHENTICATED": unauthenticated,
}

// occasion is the kind of call that failed, as far as the meaning of the failure depends on it.
type occasion int

const (
	otherCall occasion = iota
	// createCall is a creation, or a start, without further details: the end of an operation does not say which capacity was requested.
	createCall
	createFree     // of an order without a reservation
	createReserved // of one with a reservation
)

// rule is one row of the table. Every condition that it names must fit.
type rule struct {
	codes     []code // one of these; none named: any
	pattern   *regexp.Regexp
	text      []string   // all of these, in the message or the details, in lower case
	occasions []occasion // one of these; none named: any
	class     reason.FailureClass
}

// rules is the table of failures: the first row that fits decides, and a failure without a row is transient. One code means
// several things (8 is both "no capacity" and "quota"), so texts come before codes. Many messages hold the name of a node,
// so a text that could be part of a name counts only with its code.
// https://cloud.google.com/tpu/docs/troubleshooting/troubleshoot-vms
var rules = []rule{
	// Too many calls, not too many TPUs.
	{text: []string{"rate_limit_exceeded"}, class: reason.Transient},
	{text: []string{"quota", "per minute"}, class: reason.Transient},

	// Seen on orders without a reservation too: then it says only that there is no capacity, and so it does where the order is not known.
	{text: []string{"insufficient reserved capacity"}, occasions: []occasion{createReserved}, class: reason.ReservationFull},
	{text: []string{"insufficient reserved capacity"}, class: reason.Stockout},

	{text: []string{"no more capacity"}, class: reason.Stockout},
	{text: []string{"insufficient capacity"}, class: reason.Stockout},
	{text: []string{"gce_stockout"}, class: reason.Stockout},
	{text: []string{"zone_resource_pool_exhausted"}, class: reason.Stockout},
	{text: []string{"not have enough resources available"}, class: reason.Stockout},

	// A quota of zero: waiting does not help.
	{text: []string{"quota"}, pattern: noQuota, class: reason.NoQuota},
	// Google uses the same words for both. If no capacity was ordered, the calls were too many.
	{codes: []code{resourceExhausted}, text: []string{"resource has been exhausted"}, occasions: []occasion{otherCall}, class: reason.Transient},
	{codes: []code{resourceExhausted}, text: []string{"quota"}, class: reason.Quota},
	{text: []string{"google.rpc.quotafailure"}, class: reason.Quota},
	{text: []string{"quota exceeded"}, class: reason.Quota},
	{text: []string{"quota limit"}, class: reason.Quota},

	{text: []string{"could not be found in the zonal"}, class: reason.WrongZone},
	{codes: []code{invalidArgument}, text: []string{"was not found in zone"}, class: reason.WrongZone},
	{text: []string{"the accelerator", "was not found in zone"}, class: reason.WrongZone},
	{text: []string{"permission denied on 'locations/", "may not exist"}, class: reason.WrongZone},

	// Seen on Spot requests that name no reservation: a disguised refusal for lack of capacity. If the requested capacity is
	// unknown, waiting is the smaller mistake.
	{text: []string{"reservation not found"}, occasions: []occasion{createFree, createCall}, class: reason.Stockout},
	{text: []string{"reservation not found"}, occasions: []occasion{createReserved}, class: reason.Invalid},

	// A policy of the organization, whatever code it comes with.
	{text: []string{"constraint constraints/", "violated"}, class: reason.Permission},

	{text: []string{"not supported while in state"}, class: reason.NotInState},
	{text: []string{"is not supported when state is"}, class: reason.NotInState},

	{codes: []code{alreadyExists}, class: reason.Exists},
	{codes: []code{aborted}, text: []string{"already exists"}, class: reason.Exists},
	{codes: []code{aborted}, class: reason.Busy},
	{codes: []code{failedPrecondition}, class: reason.NotInState},
	{codes: []code{notFound}, class: reason.NotFound},
	{codes: []code{permissionDenied, unauthenticated}, class: reason.Permission},
	{codes: []code{invalidArgument}, class: reason.Invalid},
}

// noQuota finds the end of a message about a quota of zero: Limit: 0, or Limit 0 in zone us-west4-a.
var noQuota = regexp.MustCompile(`\blimit:? 0(\.0+)?([^0-9.]|\.?$|\.\s)`)

// classify looks a failure up in the table.
func classify(c code, text string, o occasion) reason.FailureClass {
	text = strings.ToLower(text)
	for i := range rules {
		if rules[i].fits(c, text, o) {
			return rules[i].class
		}
	}
	return reason.Transient
}

func (r *rule) fits(c code, text string, o occasion) bool {
	if len(r.codes) > 0 && !slices.Contains(r.codes, c) || len(r.occasions) > 0 && !slices.Contains(r.occasions, o) {
		return false
	}
	if r.pattern != nil && !r.pattern.MatchString(text) {
		return false
	}
	for _, t := range r.text {
		if !strings.Contains(text, t) {
			return false
		}
	}
	return true
}

// Audited classifies a failure in the audit log of somebody's call, by the same table. It is nil for a call that did not
// fail. The log says which capacity a creation requested only where it holds the request.
func Audited(c events.Call) *evidence.Failure {
	if c.Code == 0 {
		return nil
	}
	o := otherCall
	switch {
	case !strings.HasPrefix(c.Method, "Create"):
	case c.Order.Reserved:
		o = createReserved
	default:
		o = createCall
	}
	f := failure(code(c.Code), c.Message, "", o)
	return &f
}

// callFailure classifies the error of a call.
func callFailure(err error, o occasion) evidence.Failure {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answerFailure(answer, o)
	}
	if s, ok := errors.AsType[grpcError](err); ok {
		return grpcFailure(s.GRPCStatus(), o)
	}
	// There is no sign that the call was refused: no answer came, or none that could be read. The address in url.Error helps
	// nobody.
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err
	}
	return evidence.Failure{Class: reason.Transient, Message: plain(err.Error())}
}

func answerFailure(e *googleapi.Error, o occasion) evidence.Failure {
	if e.Message == "" {
		// A page of some proxy on the way, not an answer of the API. Above all its 404 does not prove absence.
		text := plain("HTTP status " + strconv.Itoa(e.Code) + " " + http.StatusText(e.Code))
		return evidence.Failure{Class: reason.Transient, Message: text}
	}
	details, err := json.Marshal(e.Details)
	if err != nil {
		details = nil
	}
	return failure(answerCode(e), e.Message, string(details), o)
}

// grpcError is an error of a gRPC client. Its text has more than the message of the API in it.
type grpcError interface {
	error
	GRPCStatus() *status.Status
}

// notAnswers begin the messages that the gRPC client makes itself under a code of the API's: of a page of some proxy on the way, and
// of a token that cannot be fetched, for which the call was never sent. Their codes say nothing about the API's answer.
var notAnswers = []string{"unexpected HTTP status code received from server", "transport: per-RPC creds failed"}

// grpcFailure classifies the status with which a call by gRPC ended.
func grpcFailure(s *status.Status, o occasion) evidence.Failure {
	if slices.ContainsFunc(notAnswers, func(begins string) bool { return strings.HasPrefix(s.Message(), begins) }) {
		return evidence.Failure{Class: reason.Transient, Message: plain(s.Message())}
	}
	var details strings.Builder
	for _, d := range s.Proto().GetDetails() {
		details.Write(detail(d))
	}
	c := code(s.Code())
	if same, ok := grpcCodes[s.Code()]; ok {
		c = same
	}
	return failure(c, s.Message(), details.String(), o)
}

// grpcCodes are the codes of gRPC that have no row of their own in the table, as codeNames has them.
var grpcCodes = map[codes.Code]code{codes.OutOfRange: invalidArgument, codes.Unimplemented: internal, codes.DataLoss: internal}

// detail is a detail of a status as JSON, or only its type if this program does not know that.
func detail(d *anypb.Any) []byte {
	if raw, err := protojson.Marshal(d); err == nil {
		return raw
	}
	raw, _ := json.Marshal(map[string]string{"@type": d.GetTypeUrl()}) //nolint:errcheck,errchkjson // a string can always be written
	return raw
}

// statusFailure classifies the error with which an operation ended.
func statusFailure(s *api.Status, o occasion) evidence.Failure {
	var details strings.Builder
	for _, d := range s.Details {
		details.Write(d)
	}
	return failure(code(s.Code), s.Message, details.String(), o)
}

func failure(c code, message, details string, o occasion) evidence.Failure {
	f := evidence.Failure{Class: classify(c, message+"\n"+details, o), Message: plain(message)}
	if f.Message == "" {
		f.Message = "an error without a message"
	}
	return f
}

// answerCode converts an HTTP answer to a code. Several codes share one HTTP status, so the name in the body comes first.
func answerCode(e *googleapi.Error) code {
	var body struct {
		Error struct {
			Status string `json:"status"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(e.Body), &body) == nil {
		if c, ok := codeNames[body.Error.Status]; ok {
			return c
		}
	}
	switch e.Code {
	case http.StatusUnauthorized:
		return unauthenticated
	case http.StatusForbidden:
		return permissionDenied
	case http.StatusNotFound, http.StatusGone:
		return notFound
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return deadlineExceeded
	case http.StatusConflict:
		return aborted
	case http.StatusPreconditionFailed:
		return failedPrecondition
	case http.StatusTooManyRequests:
		return resourceExhausted
	case http.StatusServiceUnavailable, http.StatusBadGateway:
		return unavailable
	case 499: // the client closed the request
		return canceled
	}
	if e.Code >= 400 && e.Code < 500 {
		return invalidArgument
	}
	return unknown
}

// eid is the identifier that Google appends to a message. It differs each time, so without its removal no two messages would
// be equal.
var eid = regexp.MustCompile(`\s*\[EID: 0x[0-9a-fA-F]+\]`)

// maxMessage bounds a message stored in a document.
const maxMessage = 500

// plain makes one short line of a message.
func plain(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(eid.ReplaceAllString(s, ""), "?")), " ")
	if len(s) <= maxMessage {
		return s
	}
	cut := maxMessage
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
