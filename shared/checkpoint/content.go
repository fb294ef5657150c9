package checkpoint

import (
	"context"
	"time"
)

// Deployed is the store of a deployed function: buckets alone, because a checkpoint directory comes from a node's
// metadata and must not name a file of the function.
func Deployed() Mux { return Mux{"gs": NewBucket()} }

// Reader reads objects and files as they are now: policies, whose URI comes from the deployment.
func Reader() func(ctx context.Context, uri string) ([]byte, error) {
	store := Mux{"gs": NewBucket(), "file": NewFiles("/", time.Now)}
	return func(ctx context.Context, uri string) ([]byte, error) {
		o, err := store.Get(ctx, uri)
		return o.Content, err
	}
}
