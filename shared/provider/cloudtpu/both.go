package cloudtpu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/api/option"
	api "google.golang.org/api/tpu/v2alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// Config says which parts of the Cloud TPU API are used.
type Config struct {
	// LegacyZones are the zones to search for legacy TPU Nodes in addition to TPU VMs, separated by commas. Most projects have
	// none, and each listing costs calls.
	LegacyZones []string `env:"LEGACY_NODE_ZONES"`
	// Endpoint is the address of another API than Google's, in both versions: of a private endpoint, or of a simulated API on
	// this machine. The deployment never sets it.
	Endpoint string `env:"TPU_ENDPOINT"`
}

// Validate returns every impossible zone, and the fault of an invalid endpoint.
func (c Config) Validate() error {
	var faults []error
	if _, err := c.endpoint(); err != nil {
		faults = append(faults, err)
	}
	for _, z := range c.LegacyZones {
		if !word.MatchString(z) {
			faults = append(faults, fmt.Errorf("LEGACY_NODE_ZONES: %.80q is not a zone", z))
		}
	}
	return errors.Join(faults...)
}

// Clients are options for the clients of both versions: the present one calls over HTTP, the former one by gRPC.
type Clients struct{ Present, Former []option.ClientOption }

// Open makes the provider: the API as it is, and with its legacy nodes where there may be any.
func (c Config) Open(ctx context.Context) (provider.Provider, error) {
	return c.OpenWith(ctx, Clients{})
}

// OpenWith is Open with options for the clients.
func (c Config) OpenWith(ctx context.Context, opts Clients) (provider.Provider, error) {
	own, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	cloud, err := New(ctx, append(own.Present, opts.Present...)...)
	if err != nil || len(c.LegacyZones) == 0 {
		return cloud, err
	}
	legacy, err := newLegacy(ctx, append(own.Former, opts.Former...)...)
	return &Both{Client: cloud, legacy: legacy, zones: c.LegacyZones}, err
}

// Over makes the provider over methods that are made by other means than a network. Without legacy methods no legacy nodes are
// looked for.
func (c Config) Over(methods Methods, former LegacyMethods) provider.Provider {
	cloud := &Client{methods: methods}
	if len(c.LegacyZones) == 0 {
		return cloud
	}
	return &Both{Client: cloud, legacy: &legacy{methods: former}, zones: c.LegacyZones}
}

// endpoint makes the options of clients that call another API than Google's. Without TLS it must be on this machine, and
// gets no credentials, because anybody on the way could read them.
func (c Config) endpoint() (Clients, error) {
	if c.Endpoint == "" {
		return Clients{}, nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return Clients{}, fmt.Errorf("TPU_ENDPOINT: %.80q is not an address such as https://HOST/ or http://127.0.0.1:PORT/", c.Endpoint)
	}
	if len(c.LegacyZones) > 0 && strings.Trim(u.Path, "/") != "" {
		return Clients{}, fmt.Errorf("TPU_ENDPOINT: %.80q has a path: legacy TPU Nodes are called by gRPC, which has none; name only a host and a port", c.Endpoint)
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	opts := Clients{Present: []option.ClientOption{option.WithEndpoint(c.Endpoint)}, Former: []option.ClientOption{option.WithEndpoint(host)}}
	if u.Scheme == "https" {
		return opts, nil
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return Clients{}, fmt.Errorf("TPU_ENDPOINT: %.80q is not on this machine: without https only 127.0.0.1, [::1] and localhost are called", c.Endpoint)
	}
	opts.Present = append(opts.Present, option.WithoutAuthentication())
	opts.Former = append(opts.Former, option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	return opts, nil
}

// Both is the Cloud TPU API in its present and its former version. Google does not document whether either version shows the
// nodes of the other, so Both handles both cases; a legacy node is always read as v1 shows it. Within a zone a name belongs
// to one slice.
type Both struct {
	*Client

	legacy *legacy
	zones  []string
}

var _ provider.Provider = (*Both)(nil)

// Read implements Provider. A slice that is not there any more may have come back as the other sort.
func (b *Both) Read(ctx context.Context, r provider.Ref) (provider.Slice, error) {
	if !valid(r) {
		return gone(r), nil
	}
	vm := r
	vm.Legacy = false
	if r.Legacy {
		s, err := b.legacy.read(ctx, r)
		if err != nil || s.Condition != evidence.Gone {
			return s, err
		}
		if s, err = b.Client.Read(ctx, vm); err != nil || s.Condition != evidence.Gone {
			return s, err
		}
		return gone(r), nil
	}
	s, err := b.Client.Read(ctx, vm)
	if err != nil || s.Condition != evidence.Gone && !s.Legacy || !slices.Contains(b.zones, r.Zone) {
		return s, err
	}
	r.Legacy = true
	former, err := b.legacy.read(ctx, r)
	if err != nil {
		return provider.Slice{}, err
	}
	if former.Condition == evidence.Gone {
		return s, nil
	}
	return former, nil
}

// List implements Provider. That the former version cannot be read keeps nothing of the present one back.
func (b *Both) List(ctx context.Context, project, zone string) (provider.Listing, error) {
	list, err := b.Client.List(ctx, project, zone)
	if err != nil || !slices.Contains(b.zones, zone) {
		return list, err
	}
	former, whole, err := b.legacy.list(ctx, project, zone)
	list.Legacy, list.Unread = whole, err
	byName := map[string]*provider.Slice{}
	for i := range former {
		byName[former[i].Name] = &former[i]
	}
	all := make([]provider.Slice, 0, len(list.Slices)+len(former))
	for i := range list.Slices {
		s := &list.Slices[i]
		f := byName[s.Name]
		switch {
		case s.Legacy && f != nil:
			s = f
		case s.Legacy: // v2alpha1 shows that it exists, but not enough of it
			list.Legacy = false
			continue
		}
		delete(byName, s.Name)
		all = append(all, *s)
	}
	for i := range former {
		if byName[former[i].Name] != nil {
			all = append(all, former[i])
		}
	}
	list.Slices = all
	return list, nil
}

// Zones implements Provider. A zone that legacy nodes are looked for in and that is none shows when it is listed.
func (b *Both) Zones(ctx context.Context, project string) ([]string, error) {
	zones, err := b.Client.Zones(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, z := range b.zones {
		if !slices.Contains(zones, z) {
			zones = append(zones, z)
		}
	}
	return zones, nil
}

// checked refuses an empty reference.
func checked(what string, r provider.Ref) error {
	r.Legacy = false
	return check(r, what)
}

// Create implements Provider. Where legacy nodes are not looked for, none is created.
func (b *Both) Create(
	ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string,
) (operation string, err error) {
	if !r.Legacy {
		return b.Client.Create(ctx, r, spec, labels, requestID)
	}
	what := about(r, "create legacy")
	if err := checked(what, r); err != nil {
		return "", err
	}
	if !slices.Contains(b.zones, r.Zone) {
		return "", &provider.Error{Call: what, Class: reason.WrongZone, Message: "legacy_node_zones does not name " + r.Zone}
	}
	return b.legacy.create(ctx, r, spec, labels)
}

// Delete implements Provider.
func (b *Both) Delete(ctx context.Context, r provider.Ref, requestID string) (operation string, err error) {
	if !r.Legacy {
		return b.Client.Delete(ctx, r, requestID)
	}
	what := about(r, "delete legacy")
	if err := checked(what, r); err != nil {
		return "", err
	}
	return b.legacy.start(ctx, what, otherCall, func(ctx context.Context) (*longrunningpb.Operation, error) {
		return b.legacy.methods.DeleteNode(ctx, r.String())
	})
}

// Start implements Provider.
func (b *Both) Start(ctx context.Context, r provider.Ref) (operation string, err error) {
	if !r.Legacy {
		return b.Client.Start(ctx, r)
	}
	what := about(r, "start legacy")
	if err := checked(what, r); err != nil {
		return "", err
	}
	return b.legacy.start(ctx, what, createCall, func(ctx context.Context) (*longrunningpb.Operation, error) {
		return b.legacy.methods.StartNode(ctx, r.String())
	})
}

// Operations implements Provider. Whether the versions share their operations nobody says: each is told once.
func (b *Both) Operations(ctx context.Context, project, zone string, names ...string) ([]provider.Operation, error) {
	ops, err := b.Client.Operations(ctx, project, zone, names...)
	if !slices.Contains(b.zones, zone) {
		return ops, err
	}
	former, unread := b.legacy.operations(ctx, project, zone, names, func(o *api.Operation) hidden {
		return b.Client.specs.hidden(project, zone, o)
	})
	for _, o := range former {
		if !slices.ContainsFunc(ops, func(p provider.Operation) bool { return p.Name == o.Name }) {
			ops = append(ops, o)
		}
	}
	return ops, errors.Join(err, unread)
}
