package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	firestorepb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/go-json-experiment/json"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// service is one of Google's, by the name that people know.
type service struct{ name, host string }

var (
	tokenService = service{"Google's token service", "oauth2.googleapis.com"}
	machine      = service{"the metadata server", "169.254.169.254"}
)

// services are Google's by their hosts, as far as the verbs ask them.
var services = map[string]string{ //nolint:gosec // names of services, and no credentials
	"firestore.googleapis.com": "Firestore", "pubsub.googleapis.com": "Pub/Sub", "tpu.googleapis.com": "the Cloud TPU API",
	"logging.googleapis.com": "Cloud Logging", "storage.googleapis.com": "Cloud Storage", "oauth2.googleapis.com": tokenService.name,
	"cloudresourcemanager.googleapis.com": "the Resource Manager API", "iam.googleapis.com": "the IAM API",
	"iamcredentials.googleapis.com": "the IAM Credentials API", "container.googleapis.com": "the GKE API",
}

func serviceAt(host string) service { return service{cmp.Or(services[host], host), host} }

// where names a call's service for people.
func (c *request) where() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.database != "":
		return fmt.Sprintf("%s (database %s of project %s)", c.service.name, c.database, c.project)
	case c.project != "":
		return fmt.Sprintf("%s (project %s)", c.service.name, c.project)
	case c.service == machine, c.service.name == c.service.host:
		return c.service.name
	}
	return c.service.name + " (" + c.service.host + ")"
}

// mayBeMade says what to do about a change that was sent and not answered.
const mayBeMade = "; the change may have been made: look with pitstop status before you repeat it"

// rateError is the answer of a service that takes calls only at a lower rate.
type rateError string

func (e rateError) Error() string { return string(e) }

// Error implements error, with the way out.
func (u *unanswered) Error() string {
	c := u.request
	line := c.service.name
	if c.service != machine && c.service.name != c.service.host {
		line += " (" + c.service.host + ")"
	}
	var rate rateError
	limited := errors.As(u.failure, &rate) || status.Code(u.failure) == codes.ResourceExhausted
	switch {
	case limited:
		line += " takes no more calls for now"
	case u.failure != nil:
		line += " cannot be reached"
	default:
		line += fmt.Sprintf(" did not answer within %s", u.limit)
	}
	if u.as != "" {
		line += " as " + u.as
	}
	if u.failure != nil {
		line += ": " + reason(u.failure)
	}
	switch {
	case u.doubt:
		line += mayBeMade
	case limited:
		line += "; try again in a minute"
	case c.service == machine:
		line += "; run gcloud auth application-default login, unless this machine is Google's and its metadata server is only slow"
	default:
		line += "; check the network, HTTPS_PROXY and, in a VPC, Private Google Access"
	}
	if u.failure == nil && u.limit < answerMost {
		line += "; a longer --timeout waits longer"
	}
	return line
}

// reason is the innermost text of a failure: clients put their own around it.
func reason(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if i := strings.LastIndex(text, "desc = "); i >= 0 {
		text = strings.Trim(text[i+len("desc = "):], `"`)
	}
	text = strings.TrimPrefix(text, "transport: ")
	return strings.TrimPrefix(text, "Error while dialing: ")
}

// credentialsError says that there is nothing to ask Google with.
type credentialsError struct{ error }

func (e credentialsError) Error() string {
	text := reason(e.error)
	if strings.Contains(text, "could not find default credentials") {
		text = "none were found on this machine"
	}
	return "Google cannot be asked without credentials: " + text + "; run gcloud auth application-default login"
}

// tokenError says that Google gives no token for the credentials.
type tokenError struct{ as, said string }

func (e tokenError) Error() string {
	return "Google does not accept the credentials of " + e.as + " (" + e.said + "); run gcloud auth application-default login"
}

// refusal is an answer by which Google refused a call.
type refusal struct {
	service service
	project string
	// permission is the one that is missing, if it is known.
	permission, database string
	why                  why
	text                 string
}

// why says what kind of refusal it is.
type why int

const (
	notPermitted why = iota
	notAccepted
	notEnabled
	noProject
	noQuotaProject
	noDatabase
	// notAllowed is a refusal that no role would end: a perimeter, billing, a quota for good.
	notAllowed
	// tooOften is a limit of rate: the same call may pass later.
	tooOften
)

// refused makes one line of refusals, with the way out.
func refused(all []refusal, as string) string {
	first := all[0]
	who := cmp.Or(as, "the caller")
	switch first.why {
	case notAccepted:
		return fmt.Sprintf("%s does not accept the credentials of %s; run gcloud auth application-default login", first.service.name, who)
	case notEnabled:
		return fmt.Sprintf("%s is not enabled in project %s; run gcloud services enable %s --project %s", first.service.name, first.project,
			first.service.host, first.project)
	case noProject:
		return fmt.Sprintf("there is no project %s that %s may see; check --project", first.project, who)
	case noQuotaProject:
		return fmt.Sprintf("%s may not bill its calls to its quota project: permission serviceusage.services.use is missing; "+
			"run gcloud auth application-default set-quota-project %s", who, first.project)
	case noDatabase:
		return fmt.Sprintf("project %s has no Firestore database %s; check --project, --prefix and --database", first.project, first.database)
	case notAllowed, tooOften:
		in := first.service.name
		if first.project != "" {
			in += " (project " + first.project + ")"
		}
		return in + " refuses " + who + ": " + first.text
	case notPermitted:
	}
	var lacks []string
	for _, r := range all {
		if r.why == notPermitted {
			text := r.service.name + " refuses " + who + ": "
			if r.permission != "" {
				text += "permission " + r.permission + " is missing"
			} else {
				text += r.text
			}
			if r.project != "" {
				text += " in project " + r.project
			}
			if !slices.Contains(lacks, text) {
				lacks = append(lacks, text)
			}
		}
	}
	return strings.Join(lacks, "; ") + "; ask for a role that has it: the verb's --help names one"
}

// permissionNamed finds the permission that a message names.
var permissionNamed = regexp.MustCompile(`(?:[Pp]ermission '?|does not have )([a-z]+\.[a-zA-Z]+\.[a-zA-Z]+)`)

// projectOf is the project in the name of a resource, without the verb that a REST API may add to it.
var projectOf = regexp.MustCompile(`(?:^|/)projects/([^/]+?)(?:/|(?::[a-zA-Z]+)?$)`)

// The older REST APIs have reasons of their own, in errors[].reason.
// https://cloud.google.com/storage/docs/json_api/v1/status-codes#403-forbidden
var (
	// permissionReasons are the reasons that a permission is missing. Often there is none.
	permissionReasons = []string{"", "IAM_PERMISSION_DENIED", "forbidden", "insufficientPermissions", "required", "authError"}
	rateReasons       = []string{"RATE_LIMIT_EXCEEDED", "rateLimitExceeded", "userRateLimitExceeded"}
)

// refusalOf reads a refusal. Google names the permission in the details, in the message, or not at all, as Firestore and Pub/Sub do;
// then it is the one that the call needs. Where Google's reason is something else, its own text says best what.
func refusalOf(c *request, message, reasonCode string, details map[string]string) refusal {
	r := refusal{
		service: c.service, project: c.project, database: c.database, permission: c.permission,
		text: strings.Join(strings.Fields(message), " "),
	}
	if m := permissionNamed.FindStringSubmatch(message); m != nil {
		r.permission = m[1]
	}
	if p := details["permission"]; p != "" {
		r.permission = p
	}
	if r.project == "" {
		if m := projectOf.FindStringSubmatch(cmp.Or(details["resource"], details["consumer"])); m != nil {
			r.project = m[1]
		}
	}
	switch {
	case reasonCode == "SERVICE_DISABLED":
		r.why = notEnabled
	case reasonCode == "CONSUMER_INVALID", strings.HasPrefix(message, "Permission denied on resource project"):
		r.why = noProject
	case reasonCode == "USER_PROJECT_DENIED":
		r.why = noQuotaProject
	case slices.Contains(rateReasons, reasonCode):
		r.why = tooOften
	case !slices.Contains(permissionReasons, reasonCode):
		r.why, r.permission = notAllowed, ""
	}
	return r
}

// restRefusal reads a refusal of a REST API.
func restRefusal(c *request, code int, raw []byte) refusal {
	var answer struct {
		Error struct {
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
			Details []struct {
				Reason   string            `json:"reason"`
				Metadata map[string]string `json:"metadata"`
			} `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal(raw, &answer) //nolint:errcheck // what cannot be read names nothing
	e := answer.Error
	var reasonCode string
	var details map[string]string
	if len(e.Errors) > 0 {
		reasonCode = e.Errors[0].Reason
	}
	for _, d := range e.Details {
		if d.Reason != "" {
			reasonCode, details = d.Reason, d.Metadata
		}
	}
	if reasonCode == "accessNotConfigured" {
		reasonCode = "SERVICE_DISABLED"
	}
	r := refusalOf(c, cmp.Or(e.Message, http.StatusText(code)), reasonCode, details)
	if code == http.StatusUnauthorized {
		r.why = notAccepted
	}
	return r
}

// noSuchDatabase is how Firestore says that a database is missing. A document that is missing is no refusal.
var noSuchDatabase = regexp.MustCompile(`^The database .* does not exist`)

// rpcRefusal reads a refusal over gRPC. Other errors are none.
func rpcRefusal(c *request, s *status.Status) (refusal, bool) {
	var reasonCode string
	var details map[string]string
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			reasonCode, details = info.GetReason(), info.GetMetadata()
		}
	}
	r := refusalOf(c, s.Message(), reasonCode, details)
	switch {
	case s.Code() == codes.PermissionDenied:
	case s.Code() == codes.Unauthenticated:
		r.why = notAccepted
	case s.Code() == codes.NotFound && noSuchDatabase.MatchString(s.Message()):
		r.why = noDatabase
	default:
		return r, false
	}
	return r, true
}

// rpcCall is a call of a gRPC method, as far as the method says.
func rpcCall(method string) *request {
	name := path.Base(method)
	c := &request{service: serviceAt("pubsub.googleapis.com")}
	if strings.HasPrefix(method, "/google.firestore.") {
		c.service = serviceAt("firestore.googleapis.com")
	}
	if strings.HasPrefix(method, "/google.cloud.tpu.") {
		c.service = serviceAt("tpu.googleapis.com")
	}
	switch name {
	case "ListNodes":
		c.permission = "tpu.nodes.list"
	case "RunQuery":
		c.permission = "datastore.entities.list"
	case "BatchGetDocuments":
		c.permission = "datastore.entities.get"
	case "Commit":
		c.permission, c.changes = "datastore.entities.update", true
	case "Publish":
		c.permission, c.changes = "pubsub.topics.publish", true
	case "Pull":
		c.permission, c.waits = "pubsub.subscriptions.consume", true
	case "Acknowledge", "ModifyAckDeadline":
		c.permission = "pubsub.subscriptions.consume"
	}
	return c
}

// databaseIn is the database in the name of a resource of Firestore.
var databaseIn = regexp.MustCompile(`/databases/([^/]+)`)

// read takes from a request what it says of the call.
func (c *request) read(q any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var name string
	switch q := q.(type) {
	case interface{ GetDatabase() string }:
		name = q.GetDatabase()
	case interface{ GetParent() string }:
		name = q.GetParent()
	case interface{ GetTopic() string }:
		name = q.GetTopic()
	case interface{ GetSubscription() string }:
		name = q.GetSubscription()
	}
	if m := projectOf.FindStringSubmatch(name); m != nil {
		c.project = m[1]
	}
	if m := databaseIn.FindStringSubmatch(name); m != nil {
		c.database = m[1]
	}
	if w, ok := q.(*firestorepb.CommitRequest); ok {
		for _, one := range w.GetWrites() {
			if e, ok := one.GetCurrentDocument().GetConditionType().(*firestorepb.Precondition_Exists); ok && !e.Exists {
				c.permission = "datastore.entities.create"
			}
		}
	}
}

// restPermissions are the permissions that calls of REST APIs need, where Google does not name them. The first pattern that fits counts.
var restPermissions = []struct {
	host, method string
	path         *regexp.Regexp
	permission   string
}{
	{"tpu", http.MethodGet, regexp.MustCompile(`/locations$`), "tpu.locations.list"},
	{"tpu", http.MethodGet, regexp.MustCompile(`/nodes$`), "tpu.nodes.list"},
	{"tpu", http.MethodGet, regexp.MustCompile(`/nodes/[^/:]+$`), "tpu.nodes.get"},
	{"tpu", http.MethodPatch, regexp.MustCompile(`/nodes/[^/:]+$`), "tpu.nodes.update"},
	{"tpu", http.MethodGet, regexp.MustCompile(`/queuedResources$`), "tpu.queuedresources.list"},
	{"tpu", http.MethodGet, regexp.MustCompile(`/queuedResources/[^/:]+`), "tpu.queuedresources.get"},
	{"tpu", http.MethodGet, regexp.MustCompile(`/operations$`), "tpu.operations.list"},
	{"tpu", http.MethodPost, regexp.MustCompile(`/nodes/[^/:]+:getGuestAttributes$`), "tpu.nodes.getGuestAttributes"},
	{"tpu", http.MethodPost, regexp.MustCompile(`:simulateMaintenanceEvent$`), "tpu.nodes.simulateMaintenanceEvent"},
	{"logging", http.MethodPost, regexp.MustCompile(`/entries:list$`), "logging.logEntries.list"},
	{"logging", http.MethodPost, regexp.MustCompile(`/entries:write$`), "logging.logEntries.create"},
	{"storage", http.MethodGet, regexp.MustCompile(`/b/[^/]+/o$`), "storage.objects.list"},
	{"storage", http.MethodGet, regexp.MustCompile(`/b/[^/]+/o/`), "storage.objects.get"},
	{"storage", http.MethodGet, regexp.MustCompile(`/b/[^/]+$`), "storage.buckets.get"},
	{"container", http.MethodGet, regexp.MustCompile(`/clusters/[^/]+$`), "container.clusters.get"},
	{"iamcredentials", http.MethodPost, regexp.MustCompile(`:generateAccessToken$`), "iam.serviceAccounts.getAccessToken"},
}

// restCall is a call of a REST API.
func restCall(r *http.Request) *request {
	u := r.URL
	c := &request{service: serviceAt(u.Hostname()), changes: r.Method == http.MethodPatch ||
		strings.HasSuffix(u.Path, ":simulateMaintenanceEvent")}
	if m := projectOf.FindStringSubmatch(u.Path); m != nil && m[1] != "-" {
		c.project = m[1]
	}
	for _, p := range restPermissions {
		if strings.HasPrefix(u.Host, p.host+".") && r.Method == p.method && p.path.MatchString(u.Path) {
			c.permission = p.permission
			break
		}
	}
	return c
}
