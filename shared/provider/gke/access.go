package gke

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"google.golang.org/api/option"
	htransport "google.golang.org/api/transport/http"

	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// Config says which clusters are read.
type Config struct {
	// Clusters are those whose Jobs are watched, separated by commas: LOCATION/CLUSTER, or LOCATION/CLUSTER/NAMESPACE for one namespace
	// of it. PROJECT: before it names another project than the function's own. Empty means none.
	Clusters []string `env:"CLUSTERS"`
}

// named matches the name of a cluster, with its project and namespace if they are given.
var named = regexp.MustCompile(`^(?:([a-z0-9.:-]+):)?([a-z]+-[a-z0-9-]+)/([a-z][a-z0-9-]*)(?:/([a-z0-9][a-z0-9-]*))?$`)

// Validate returns every name that is none.
func (c Config) Validate() error {
	var faults []error
	for _, name := range c.Clusters {
		if !named.MatchString(name) {
			faults = append(faults, fmt.Errorf("CLUSTERS: %.80q is not LOCATION/CLUSTER, as in us-east5/trainers, or LOCATION/CLUSTER/NAMESPACE", name))
		}
	}
	return errors.Join(faults...)
}

// Cluster names a cluster, and the namespaces in which it is read; none is all of them.
type Cluster struct {
	Project, Location, Name string
	Namespaces              []string
}

// String is PROJECT/LOCATION/CLUSTER.
func (c Cluster) String() string { return c.Project + "/" + c.Location + "/" + c.Name }

// Named are the clusters of a valid configuration, in its order. Own is the function's own project.
func (c Config) Named(own string) (clusters []Cluster) {
	whole := map[string]bool{}
	for _, name := range c.Clusters {
		part := named.FindStringSubmatch(name)
		if part == nil {
			continue
		}
		one := Cluster{Project: cmp.Or(part[1], own), Location: part[2], Name: part[3]}
		at := slices.IndexFunc(clusters, func(o Cluster) bool { return o.String() == one.String() })
		if at < 0 {
			at, clusters = len(clusters), append(clusters, one)
		}
		switch in := &clusters[at].Namespaces; {
		case part[4] == "":
			whole[one.String()], *in = true, nil
		case !whole[one.String()] && !slices.Contains(*in, part[4]):
			*in = append(*in, part[4])
		}
	}
	return clusters
}

// Open makes the provider, or nil where no cluster is named. Nothing is called before the first listing. Own is the function's own
// project. The options are those of Google's clients.
//
// Permissions: container.clusters.get, container.clusters.connect, and those that the cluster itself grants by RBAC.
func (c Config) Open(own string, opts ...option.ClientOption) provider.Provider {
	if len(c.Clusters) == 0 {
		return nil
	}
	a := &access{endpoint: "https://container.googleapis.com", opts: opts}
	return New(c.Named(own), a.open, time.Now)
}

// access opens clusters with the credentials of Google's clients.
type access struct {
	endpoint string // of the GKE API
	opts     []option.ClientOption

	mu     sync.Mutex
	client *http.Client
}

// callTimeout bounds each call.
const callTimeout = 60 * time.Second

// scopes are those of a token. A cluster knows its bearer by e-mail only where the token may tell it.
var scopes = []string{"https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email"}

// calling is a client that follows no redirect: the transport would send its token wherever one leads.
func calling(through http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: through, Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// google is the client of Google's own endpoints: of the API, and of clusters with a DNS endpoint.
func (a *access) google(ctx context.Context) (*http.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client == nil {
		// The client outlives the call: its tokens must not depend on a context that ends with it.
		client, _, err := htransport.NewClient(context.WithoutCancel(ctx), append([]option.ClientOption{option.WithScopes(scopes...)}, a.opts...)...)
		if err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		a.client = calling(client.Transport)
	}
	return a.client, nil
}

// described is a cluster as the GKE API describes it: container/v1, projects.locations.clusters.get.
type described struct {
	Endpoint   string `json:"endpoint"`
	MasterAuth struct {
		CA string `json:"clusterCaCertificate"`
	} `json:"masterAuth"`
	ControlPlane struct {
		DNS struct {
			Endpoint string `json:"endpoint"`
			External bool   `json:"allowExternalTraffic"`
		} `json:"dnsEndpointConfig"`
		IP struct {
			Public string `json:"publicEndpoint"`
		} `json:"ipEndpointsConfig"`
	} `json:"controlPlaneEndpointsConfig"`
}

// address is the URL of a cluster, and the certificate authority that vouches for it: none for the DNS endpoint, whose certificate is
// public. The DNS endpoint comes last where it takes no traffic from outside: it may still be reached from the function's network.
func (d described) address() (at, ca string, err error) {
	dns, public := d.ControlPlane.DNS, cmp.Or(d.ControlPlane.IP.Public, d.Endpoint)
	switch {
	case dns.Endpoint != "" && (dns.External || public == ""):
		return "https://" + dns.Endpoint, "", nil
	case public == "":
		return "", "", errors.New("it has neither a DNS endpoint nor a public one; turn the DNS endpoint on: gcloud container clusters update CLUSTER --enable-dns-access")
	}
	pem, err := base64.StdEncoding.DecodeString(d.MasterAuth.CA)
	if err != nil || len(pem) == 0 {
		return "", "", errors.New("its certificate authority cannot be read")
	}
	return "https://" + public, string(pem), nil
}

// open makes the client of a cluster: by its DNS endpoint, else by its public one.
func (a *access) open(ctx context.Context, c Cluster) (Client, error) {
	fail := func(class reason.FailureClass, err error) (Client, error) {
		return Client{}, &provider.Error{Call: "find the endpoint of cluster " + c.Name + " in " + c.Location, Class: class, Message: err.Error(), Cause: err}
	}
	google, err := a.google(ctx)
	if err != nil {
		return fail(reason.Transient, err)
	}
	d, class, err := describe(ctx, google, a.endpoint, c)
	if err != nil {
		return fail(class, err)
	}
	at, ca, err := d.address()
	if err != nil {
		return fail(reason.Invalid, err)
	}
	if ca == "" {
		return Client{HTTP: google, URL: at}, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		return fail(reason.Invalid, errors.New("its certificate authority cannot be read"))
	}
	base := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		IdleConnTimeout: 90 * time.Second,
	}
	through, err := htransport.NewTransport(context.WithoutCancel(ctx), base, append([]option.ClientOption{option.WithScopes(scopes...)}, a.opts...)...)
	if err != nil {
		return fail(reason.Transient, err)
	}
	return Client{HTTP: calling(through), URL: at}, nil
}

// describe asks the GKE API for a cluster. One call a cluster needs no generated client, which would make every function larger.
func describe(ctx context.Context, google *http.Client, endpoint string, c Cluster) (d described, class reason.FailureClass, err error) {
	name := "projects/" + url.PathEscape(c.Project) + "/locations/" + url.PathEscape(c.Location) + "/clusters/" + url.PathEscape(c.Name)
	fields := "endpoint,masterAuth.clusterCaCertificate,controlPlaneEndpointsConfig"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/v1/"+name+"?fields="+fields, http.NoBody)
	if err != nil {
		return d, reason.Invalid, fmt.Errorf("request: %w", err)
	}
	res, err := google.Do(req)
	if err != nil {
		return d, reason.Transient, err //nolint:wrapcheck // the caller says what was asked
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	body := io.LimitReader(res.Body, 1<<20)
	if res.StatusCode == http.StatusOK {
		if err := json.UnmarshalRead(body, &d); err != nil {
			return d, reason.Transient, fmt.Errorf("the answer cannot be read: %w", err)
		}
		return d, "", nil
	}
	var answer struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.UnmarshalRead(body, &answer) //nolint:errcheck // a page that is not the API's has no message
	return d, classOf(res.StatusCode), errors.New(cmp.Or(strings.TrimSpace(answer.Error.Message), "answer "+res.Status))
}
