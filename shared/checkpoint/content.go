package checkpoint

import (
	"context"
	"time"

	"google.golang.org/api/option"
)

// Deployed is the store of a deployed function: buckets alone, because a checkpoint directory comes from a node's
// metadata and must not name a file of the function.
func Deployed(opts ...option.ClientOption) Mux { return Mux{"gs": NewBucket(opts...)} }

// Reader reads objects and files as they are now: policies, whose URI comes from the deployment.
func Reader(opts ...option.ClientOption) func(ctx context.Context, uri string) ([]byte, error) {
	store := Mux{"gs": NewBucket(opts...), "file": NewFiles("/", time.Now)}
	return func(ctx context.Context, uri string) ([]byte, error) {
		o, err := store.Get(ctx, uri)
		return o.Content, err
	}
}
