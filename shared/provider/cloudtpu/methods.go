package cloudtpu

import (
	"context"
	"fmt"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	api "google.golang.org/api/tpu/v2alpha1"
	htransport "google.golang.org/api/transport/http"
)

// Methods are the methods of the Cloud TPU API, v2alpha1, that Client calls. A name is the full name of a resource, and a parent
// that of a zone or of a project. What a method returns may be shared with others, so nobody changes it. Errors are those of
// the generated client.
type Methods interface {
	Locations(ctx context.Context, parent, page string) (*api.ListLocationsResponse, error)
	Operations(ctx context.Context, parent, page string) (*api.ListOperationsResponse, error)

	Nodes(ctx context.Context, parent, page string) (*api.ListNodesResponse, error)
	Node(ctx context.Context, name string) (*api.Node, error)
	CreateNode(ctx context.Context, parent, id, requestID string, n *api.Node) (*api.Operation, error)
	DeleteNode(ctx context.Context, name, requestID string) (*api.Operation, error)
	UpdateNode(ctx context.Context, name, mask string, n *api.Node) (*api.Operation, error)
	StartNode(ctx context.Context, name string) (*api.Operation, error)
	PerformMaintenance(ctx context.Context, name string) (*api.Operation, error)
	SimulateMaintenanceEvent(ctx context.Context, name string, workers ...string) (*api.Operation, error)
	GuestAttributes(ctx context.Context, name string) (*api.GetGuestAttributesResponse, error)

	QueuedResources(ctx context.Context, parent, page string) (*api.ListQueuedResourcesResponse, error)
	QueuedResource(ctx context.Context, name string) (*api.QueuedResource, error)
	CreateQueuedResource(ctx context.Context, parent, id, requestID string, q *api.QueuedResource) (*api.Operation, error)
	DeleteQueuedResource(ctx context.Context, name, requestID string) (*api.Operation, error)
	MaintenanceInfo(ctx context.Context, name string) (*api.GetMaintenanceInfoResponse, error)
	PerformMaintenanceQueuedResource(ctx context.Context, name string, nodes []string) (*api.Operation, error)
}

// rest makes the calls over HTTP, with the generated client except for the long listings.
type rest struct {
	*api.ProjectsLocationsService

	nodes  *lister[api.Node]
	queues *lister[api.QueuedResource]
}

var _ Methods = rest{}

// newREST makes the generated client, and listers that share its connections and credentials.
func newREST(ctx context.Context, opts ...option.ClientOption) (rest, error) {
	// These are the options that the generated client would add itself.
	opts = append([]option.ClientOption{internaloption.WithDefaultScopes(api.CloudPlatformScope)}, opts...)
	opts = append(opts, internaloption.WithDefaultEndpoint("https://tpu.googleapis.com/"), //nolint:staticcheck // likewise
		internaloption.WithDefaultEndpointTemplate("https://tpu.UNIVERSE_DOMAIN/"),
		internaloption.WithDefaultMTLSEndpoint("https://tpu.mtls.googleapis.com/"), internaloption.EnableNewAuthLibrary())
	client, endpoint, err := htransport.NewClient(ctx, opts...)
	if err != nil {
		return rest{}, fmt.Errorf("cloud tpu client: %w", err)
	}
	s, err := api.NewService(ctx, option.WithHTTPClient(client), option.WithEndpoint(endpoint))
	if err != nil {
		return rest{}, fmt.Errorf("cloud tpu client: %w", err)
	}
	base := googleapi.ResolveRelative(s.BasePath, "v2alpha1/")
	return rest{
		s.Projects.Locations, &lister[api.Node]{client: client, base: base, field: "nodes"},
		&lister[api.QueuedResource]{client: client, base: base, field: "queuedResources"},
	}, nil
}

func (s rest) Locations(ctx context.Context, parent, page string) (*api.ListLocationsResponse, error) {
	return s.List(parent).PageToken(page).Context(ctx).Do()
}

func (s rest) Operations(ctx context.Context, parent, page string) (*api.ListOperationsResponse, error) {
	return s.ProjectsLocationsService.Operations.List(parent).PageToken(page).Context(ctx).Do()
}

func (s rest) Nodes(ctx context.Context, parent, page string) (*api.ListNodesResponse, error) {
	items, next, unreachable, err := s.nodes.page(ctx, parent, page)
	if err != nil {
		return nil, err
	}
	return &api.ListNodesResponse{Nodes: items, NextPageToken: next, Unreachable: unreachable}, nil
}

func (s rest) Node(ctx context.Context, name string) (*api.Node, error) {
	return s.ProjectsLocationsService.Nodes.Get(name).Context(ctx).Do()
}

func (s rest) CreateNode(ctx context.Context, parent, id, requestID string, n *api.Node) (*api.Operation, error) {
	return s.ProjectsLocationsService.Nodes.Create(parent, n).NodeId(id).RequestId(requestID).Context(ctx).Do()
}

func (s rest) DeleteNode(ctx context.Context, name, requestID string) (*api.Operation, error) {
	return s.ProjectsLocationsService.Nodes.Delete(name).RequestId(requestID).Context(ctx).Do()
}

func (s rest) UpdateNode(ctx context.Context, name, mask string, n *api.Node) (*api.Operation, error) {
	return s.ProjectsLocationsService.Nodes.Patch(name, n).UpdateMask(mask).Context(ctx).Do()
}

func (s rest) StartNode(ctx context.Context, name string) (*api.Operation, error) {
	return s.ProjectsLocationsService.Nodes.Start(name, &api.StartNodeRequest{}).Context(ctx).Do()
}

func (s rest) PerformMaintenance(ctx context.Context, name string) (*api.Operation, error) {
	return s.ProjectsLocationsService.Nodes.PerformMaintenance(name, &api.PerformMaintenanceRequest{}).Context(ctx).Do()
}

func (s rest) SimulateMaintenanceEvent(ctx context.Context, name string, workers ...string) (*api.Operation, error) {
	ask := &api.SimulateMaintenanceEventRequest{WorkerIds: workers}
	return s.ProjectsLocationsService.Nodes.SimulateMaintenanceEvent(name, ask).Context(ctx).Do()
}

func (s rest) GuestAttributes(ctx context.Context, name string) (*api.GetGuestAttributesResponse, error) {
	return s.ProjectsLocationsService.Nodes.GetGuestAttributes(name, &api.GetGuestAttributesRequest{}).Context(ctx).Do()
}

func (s rest) QueuedResources(ctx context.Context, parent, page string) (*api.ListQueuedResourcesResponse, error) {
	items, next, unreachable, err := s.queues.page(ctx, parent, page)
	if err != nil {
		return nil, err
	}
	return &api.ListQueuedResourcesResponse{QueuedResources: items, NextPageToken: next, Unreachable: unreachable}, nil
}

func (s rest) QueuedResource(ctx context.Context, name string) (*api.QueuedResource, error) {
	return s.ProjectsLocationsService.QueuedResources.Get(name).Context(ctx).Do()
}

func (s rest) CreateQueuedResource(ctx context.Context, parent, id, requestID string, q *api.QueuedResource) (*api.Operation, error) {
	return s.ProjectsLocationsService.QueuedResources.Create(parent, q).QueuedResourceId(id).RequestId(requestID).Context(ctx).Do()
}

// DeleteQueuedResource deletes a queued resource with everything that it holds.
func (s rest) DeleteQueuedResource(ctx context.Context, name, requestID string) (*api.Operation, error) {
	return s.ProjectsLocationsService.QueuedResources.Delete(name).Force(true).RequestId(requestID).Context(ctx).Do()
}

func (s rest) MaintenanceInfo(ctx context.Context, name string) (*api.GetMaintenanceInfoResponse, error) {
	return s.ProjectsLocationsService.QueuedResources.GetMaintenanceInfo(name).Context(ctx).Do()
}

func (s rest) PerformMaintenanceQueuedResource(ctx context.Context, name string, nodes []string) (*api.Operation, error) {
	ask := &api.PerformMaintenanceQueuedResourceRequest{NodeNames: nodes}
	return s.ProjectsLocationsService.QueuedResources.PerformMaintenanceQueuedResource(name, ask).Context(ctx).Do()
}
