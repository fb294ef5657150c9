package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	vkit "cloud.google.com/go/firestore/apiv1"
	"gocloud.dev/docstore/gcpfirestore"
	"gocloud.dev/gcp"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// connections holds the collections that were opened.
type connections struct {
	mu   sync.Mutex
	open map[string]Collection
}

func newConnections() *connections { return &connections{open: map[string]Collection{}} }

func (c *connections) get(ctx context.Context, open Opener, name string) (Collection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if got, ok := c.open[name]; ok {
		return got, nil
	}
	got, err := open(context.WithoutCancel(ctx), name)
	if err != nil {
		return nil, err
	}
	c.open[name] = bounded{got}
	return c.open[name], nil
}

func (c *connections) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var faults []error
	for name, col := range c.open {
		if err := col.Close(); err != nil {
			faults = append(faults, fmt.Errorf("ledger: close %s: %w", name, err))
		}
	}
	clear(c.open)
	return errors.Join(faults...)
}

// Database is the name of the Firestore database, which is Pitstop's own and never the project's default one.
const Database = "pitstop"

// EmulatorHost names the variable with the address of Firestore's emulator.
const EmulatorHost = "FIRESTORE_EMULATOR_HOST"

// Firestore opens the collections of a database in Firestore. With FIRESTORE_EMULATOR_HOST set it is the emulator's. The options
// are those of its client; without any it has the default credentials. A connection that could not be made is tried again at the
// next call: an instance must not stay without a ledger because its first call for credentials failed.
func Firestore(project, database string, opts ...option.ClientOption) Opener {
	var (
		mu     sync.Mutex
		client *vkit.Client
	)
	connect := func() (*vkit.Client, error) {
		mu.Lock()
		defer mu.Unlock()
		if client != nil {
			return client, nil
		}
		c, err := dial(context.Background(), opts)
		if err == nil {
			client = c
		}
		return c, err
	}
	return func(_ context.Context, name string) (Collection, error) {
		c, err := connect()
		if err != nil {
			return nil, err
		}
		path := "projects/" + project + "/databases/" + database + "/documents/" + name
		opened, err := gcpfirestore.OpenCollection(c, path, colID, nil)
		if err != nil {
			return nil, err
		}
		return Docstore(opened), nil
	}
}

func dial(ctx context.Context, opts []option.ClientOption) (*vkit.Client, error) {
	emulator := os.Getenv(EmulatorHost)
	switch {
	case emulator != "":
		return vkit.NewClient(ctx, append([]option.ClientOption{
			option.WithEndpoint(emulator), option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		}, opts...)...)
	case len(opts) > 0:
		return vkit.NewClient(ctx, opts...)
	}
	creds, err := gcp.DefaultCredentials(ctx)
	if err != nil {
		return nil, err
	}
	client, _, err := gcpfirestore.Dial(ctx, creds.TokenSource)
	return client, err
}
