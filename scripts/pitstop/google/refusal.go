package google

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
)

// ShortError makes one line of an answer of Google's.
func ShortError(err error) error {
	var e *googleapi.Error
	if errors.As(err, &e) && e.Message != "" {
		return errors.New(strings.Join(strings.Fields(e.Message), " "))
	}
	return err
}

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

// String names a service for people.
func (s service) String() string {
	if s == machine || s.name == s.host {
		return s.name
	}
	return s.name + " (" + s.host + ")"
}

// serviceOf is the service of a gRPC method.
func serviceOf(method string) service {
	switch {
	case strings.HasPrefix(method, "/google.firestore."):
		return serviceAt("firestore.googleapis.com")
	case strings.HasPrefix(method, "/google.cloud.tpu."):
		return serviceAt("tpu.googleapis.com")
	}
	return serviceAt("pubsub.googleapis.com")
}

// changing are the gRPC methods whose repetition would do harm.
var changing = []string{"/google.firestore.v1.Firestore/Commit", "/google.pubsub.v1.Publisher/Publish"}

// limited reports whether Google takes calls only at a lower rate, which it may say with the status of a missing permission.
func limited(said *apierror.APIError) bool {
	var rest *googleapi.Error
	return said.Reason() == "RATE_LIMIT_EXCEEDED" || errors.As(said, &rest) && len(rest.Errors) > 0 && strings.HasSuffix(rest.Errors[0].Reason, "ateLimitExceeded")
}

// ends notes how a call ended: with an answer, or with an error of its service or of the way there. What a client may try again is no
// answer.
func (q *question) ends(c *request, err error) {
	if q == nil {
		return
	}
	said, ok := apierror.FromError(err)
	if !ok {
		q.end(c, err == nil || errors.Is(err, io.EOF), failureOf(err))
		return
	}
	code, text := said.GRPCStatus().Code(), cmp.Or(strings.Join(strings.Fields(said.GRPCStatus().Message()), " "), reason(err))
	switch {
	case code == codes.Canceled:
		q.end(c, false, context.Canceled)
		return
	case code == codes.DeadlineExceeded:
		q.end(c, false, nil)
		return
	case code == codes.Unavailable, code == codes.ResourceExhausted, code == codes.Internal, limited(said):
		q.end(c, false, errors.New(text))
		return
	}
	as := q.verb.as()
	q.end(c, true, nil)
	switch {
	case code == codes.Unauthenticated:
		q.refuse(tokenError{as, text})
	case code == codes.PermissionDenied, code == codes.NotFound && strings.HasPrefix(text, "The database "):
		q.refuse(fmt.Errorf("%s refuses %s: %s; ask for a role that allows it: the verb's --help names one", c.service.name,
			cmp.Or(as, "the caller"), strings.TrimSuffix(text, ".")))
	}
}

// failureOf is what a call came to. One that ran out of time had no answer, and no more can be said of it.
func failureOf(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
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

// tokenError says that Google gives no token for the credentials, or takes none.
type tokenError struct{ as, said string }

func (e tokenError) Error() string {
	return "Google does not accept the credentials of " + cmp.Or(e.as, "the caller") + " (" + e.said + "); run gcloud auth application-default login"
}
