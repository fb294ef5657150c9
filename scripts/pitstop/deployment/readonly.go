package deployment

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/api/option"

	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/provider/cloudtpu"
)

// ReadOnlyTransport refuses every call that could change something.
type ReadOnlyTransport struct{ http.RoundTripper }

// reads are the endings of POST calls that only read.
var reads = []string{":getGuestAttributes", "/entries:list"}

// RoundTrip implements http.RoundTripper.
func (r ReadOnlyTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	only := q.Method == http.MethodGet
	for _, ending := range reads {
		only = only || q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, ending)
	}
	if !only {
		return nil, fmt.Errorf("%s %s is not made: watch only reads", q.Method, q.URL.Path)
	}
	return r.RoundTripper.RoundTrip(q)
}

// ReadOnlyClients is the Cloud TPU API and Cloud Logging, read-only.
type ReadOnlyClients struct {
	TPUs *cloudtpu.Client
	Log  *cloudlog.Log
}

// readOnlyClients opens both with the caller's credentials, behind readOnly.
func readOnlyClients(ctx context.Context, g *google.Connection) (ReadOnlyClients, error) {
	return ReadOnlyThrough(ctx, option.WithHTTPClient(&http.Client{Transport: ReadOnlyTransport{g}}))
}

// ReadOnlyThrough opens both with these options.
func ReadOnlyThrough(ctx context.Context, opts ...option.ClientOption) (ReadOnlyClients, error) {
	cloud, err := cloudtpu.New(ctx, opts...)
	return ReadOnlyClients{cloud, cloudlog.New(opts...)}, err
}
