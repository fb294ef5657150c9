package cloudtputest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/api/googleapi"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/view"
)

// Request is a call before it is carried out. Method, Path and Query are exactly what the generated client would send.
type Request struct {
	Method, Path, Query string
	Body                []byte
}

// Place is where a creation asks for a slice; empty for another call.
func (r Request) Place() view.Place {
	if r.Method != http.MethodPost {
		return view.Place{}
	}
	_, rest, _ := strings.Cut(r.Path, "/locations/")
	zone, collection, _ := strings.Cut(rest, "/")
	return askedPlace(zone, collection, r.Body)
}

// Around stands around every direct call. It makes the call by calling next, or returns an error in its place.
type Around func(ctx context.Context, r Request, next func() error) error

// Direct returns the methods of both versions without a wire: no HTTP, no JSON of answers. Calls are made as the default principal,
// with the same effects, events, faults and errors as those of the generated client. The answers are shared and must not be changed.
// Around may be nil.
func (a *API) Direct(around Around) (cloudtpu.Methods, cloudtpu.LegacyMethods) {
	if around == nil {
		around = func(_ context.Context, _ Request, next func() error) error { return next() }
	}
	d := &direct{a, around}
	return d, legacyDirect{d}
}

type direct struct {
	api    *API
	around Around
}

// firstPage is the query of most calls, encoded in firstPageRaw.
var (
	firstPage    = url.Values{"alt": {"json"}, "pageToken": {""}, "prettyPrint": {"false"}}
	firstPageRaw = firstPage.Encode()
)

// call makes one call. The query holds names and values in turn.
func call[T any](ctx context.Context, d *direct, version, method, path string, body any, query ...string) (v T, err error) {
	out, err := d.make(ctx, newRequest(version, method, path, body, query...))
	if err != nil {
		return v, err
	}
	v, _ = out.value.(T)
	return v, nil
}

// newRequest is a call that goes over no wire. The query holds names and values in turn.
func newRequest(version, method, path string, body any, query ...string) *request {
	values, raw := firstPage, firstPageRaw
	if len(query) != 2 || query[0] != "pageToken" || query[1] != "" {
		values = url.Values{"alt": {"json"}, "prettyPrint": {"false"}}
		for i := 0; i < len(query); i += 2 {
			values.Set(query[i], query[i+1])
		}
		raw = values.Encode()
	}
	c := &request{path: "/" + version + "/" + path, http: method, query: values, raw: raw, direct: true}
	if body != nil {
		c.body = marshal(body)
	}
	return c
}

// make carries a call out.
func (d *direct) make(ctx context.Context, c *request) (out answer, err error) {
	c.principal = d.api.principal
	err = d.around(ctx, Request{c.http, c.path, c.raw, c.body}, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		var lost bool
		if out, lost = d.api.serve(c); lost {
			return errLost
		}
		return out.err(c)
	})
	return out, err
}

// err is what the client of a version makes of an answer that is no success.
func (out answer) err(c *request) error {
	if out.http < http.StatusMultipleChoices {
		return nil
	}
	if c.legacy() {
		return out.status().Err()
	}
	return googleapi.CheckResponse(&http.Response{
		StatusCode: out.http, Header: http.Header{"Content-Type": {out.kind}}, Body: io.NopCloser(bytes.NewReader(out.body)),
	})
}

func get[T any](ctx context.Context, d *direct, path string, query ...string) (*T, error) {
	return call[*T](ctx, d, version, http.MethodGet, path, nil, query...)
}

func change(ctx context.Context, d *direct, method, path string, body any, query ...string) (*api.Operation, error) {
	return call[*api.Operation](ctx, d, version, method, path, body, query...)
}

func (d *direct) Locations(ctx context.Context, parent, page string) (*api.ListLocationsResponse, error) {
	return get[api.ListLocationsResponse](ctx, d, parent+"/locations", "pageToken", page)
}

func (d *direct) Operations(ctx context.Context, parent, page string) (*api.ListOperationsResponse, error) {
	return get[api.ListOperationsResponse](ctx, d, parent+"/operations", "pageToken", page)
}

func (d *direct) Nodes(ctx context.Context, parent, page string) (*api.ListNodesResponse, error) {
	return get[api.ListNodesResponse](ctx, d, parent+"/nodes", "pageToken", page)
}

func (d *direct) Node(ctx context.Context, name string) (*api.Node, error) {
	return get[api.Node](ctx, d, name)
}

func (d *direct) CreateNode(ctx context.Context, parent, id, requestID string, n *api.Node) (*api.Operation, error) {
	return change(ctx, d, http.MethodPost, parent+"/nodes", n, "nodeId", id, "requestId", requestID)
}

func (d *direct) DeleteNode(ctx context.Context, name, requestID string) (*api.Operation, error) {
	return change(ctx, d, http.MethodDelete, name, nil, "requestId", requestID)
}

func (d *direct) UpdateNode(ctx context.Context, name, mask string, n *api.Node) (*api.Operation, error) {
	return change(ctx, d, http.MethodPatch, name, n, "updateMask", mask)
}

func (d *direct) StartNode(ctx context.Context, name string) (*api.Operation, error) {
	return change(ctx, d, http.MethodPost, name+":start", &api.StartNodeRequest{})
}

func (d *direct) PerformMaintenance(ctx context.Context, name string) (*api.Operation, error) {
	return change(ctx, d, http.MethodPost, name+":performMaintenance", &api.PerformMaintenanceRequest{})
}

func (d *direct) SimulateMaintenanceEvent(ctx context.Context, name string, workers ...string) (*api.Operation, error) {
	return change(ctx, d, http.MethodPost, name+":simulateMaintenanceEvent", &api.SimulateMaintenanceEventRequest{WorkerIds: workers})
}

func (d *direct) GuestAttributes(ctx context.Context, name string) (*api.GetGuestAttributesResponse, error) {
	return call[*api.GetGuestAttributesResponse](
		ctx, d, version, http.MethodPost, name+":getGuestAttributes", &api.GetGuestAttributesRequest{})
}

func (d *direct) QueuedResources(ctx context.Context, parent, page string) (*api.ListQueuedResourcesResponse, error) {
	return get[api.ListQueuedResourcesResponse](ctx, d, parent+"/queuedResources", "pageToken", page)
}

func (d *direct) QueuedResource(ctx context.Context, name string) (*api.QueuedResource, error) {
	return get[api.QueuedResource](ctx, d, name)
}

func (d *direct) CreateQueuedResource(ctx context.Context, parent, id, requestID string, q *api.QueuedResource) (*api.Operation, error) {
	return change(ctx, d, http.MethodPost, parent+"/queuedResources", q, "queuedResourceId", id, "requestId", requestID)
}

func (d *direct) DeleteQueuedResource(ctx context.Context, name, requestID string) (*api.Operation, error) {
	return change(ctx, d, http.MethodDelete, name, nil, "force", "true", "requestId", requestID)
}

func (d *direct) MaintenanceInfo(ctx context.Context, name string) (*api.GetMaintenanceInfoResponse, error) {
	return get[api.GetMaintenanceInfoResponse](ctx, d, name+":getMaintenanceInfo")
}

func (d *direct) PerformMaintenanceQueuedResource(ctx context.Context, name string, nodes []string) (*api.Operation, error) {
	ask := &api.PerformMaintenanceQueuedResourceRequest{NodeNames: nodes}
	return change(ctx, d, http.MethodPost, name+":performMaintenanceQueuedResource", ask)
}
