package deployment

import (
	"context"

	"google.golang.org/api/container/v1"
	"google.golang.org/api/option"

	"pitstop.internal/scripts/pitstop/google"
)

// ReadNodePools reads the node pools of a cluster from GKE.
func ReadNodePools(opts ...option.ClientOption) func(ctx context.Context, project, location, cluster string) ([]*container.NodePool, error) {
	return func(ctx context.Context, project, location, cluster string) ([]*container.NodePool, error) {
		svc, err := container.NewService(ctx, opts...)
		if err != nil {
			return nil, err
		}
		found, err := svc.Projects.Locations.Clusters.Get("projects/" + project + "/locations/" + location + "/clusters/" + cluster).Fields("nodePools").Context(ctx).Do()
		if err != nil {
			return nil, google.ShortError(err)
		}
		return found.NodePools, nil
	}
}
