package gke_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"

	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/reason"
)

func TestClustersAreNamed(t *testing.T) {
	c := gke.Config{Clusters: []string{"us-east5/a", "us-east5/b/teams", "other:us-east5-b/c", "us-east5/b/more", "us-east5/d/x", "us-east5/d", "us-east5/d/y"}}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	want := []gke.Cluster{
		{Project: "demo", Location: "us-east5", Name: "a"},
		{Project: "demo", Location: "us-east5", Name: "b", Namespaces: []string{"teams", "more"}},
		{Project: "other", Location: "us-east5-b", Name: "c"},
		{Project: "demo", Location: "us-east5", Name: "d"},
	}
	if diff := cmp.Diff(want, c.Named("demo")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	err := gke.Config{Clusters: []string{"a", "us-east5/", "us-east5/a/b/c", "us-east5/A", "../x/y", "us-east5/ok"}}.Validate()
	if err == nil || strings.Count(err.Error(), "CLUSTERS:") != 5 {
		t.Errorf("%v", err)
	}
	if p := (gke.Config{}).Open("demo"); p != nil {
		t.Errorf("without clusters there is %v", p)
	}
}

// google answers for the API of GKE, and for a DNS endpoint.
type google struct {
	status  int
	cluster string
	asked   []string
}

func (g *google) RoundTrip(r *http.Request) (*http.Response, error) {
	g.asked = append(g.asked, r.URL.Host+r.URL.Path)
	answer := func(code int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	switch {
	case r.URL.Host != "container.googleapis.com":
		return answer(http.StatusOK, `{"kind":"List","items":[]}`)
	case g.status != 0:
		return answer(g.status, `{"error":{"code":1,"message":"the account may not get this cluster"}}`)
	}
	return answer(http.StatusOK, g.cluster)
}

func TestAClusterIsReachedByItsDNSEndpoint(t *testing.T) {
	for name, c := range map[string]struct {
		cluster string
		status  int
		host    string
		class   reason.FailureClass
		why     string
	}{
		"open":            {cluster: `{"endpoint":"203.0.113.1","controlPlaneEndpointsConfig":{"dnsEndpointConfig":{"endpoint":"gke-1.us-east5.gke.goog","allowExternalTraffic":true}}}`, host: "gke-1.us-east5.gke.goog"},
		"from inside":     {cluster: `{"controlPlaneEndpointsConfig":{"dnsEndpointConfig":{"endpoint":"gke-1.us-east5.gke.goog"}}}`, host: "gke-1.us-east5.gke.goog"},
		"none":            {cluster: `{}`, class: reason.Invalid, why: "--enable-dns-access"},
		"no certificate":  {cluster: `{"endpoint":"203.0.113.1","masterAuth":{"clusterCaCertificate":"%%"}}`, class: reason.Invalid, why: "certificate authority"},
		"forbidden":       {status: http.StatusForbidden, class: reason.Permission, why: "may not get"},
		"unknown":         {status: http.StatusNotFound, class: reason.NotFound, why: "may not get"},
		"no answer":       {status: http.StatusServiceUnavailable, class: reason.Transient, why: "may not get"},
		"not what it was": {cluster: `[`, class: reason.Transient, why: "cannot be read"},
	} {
		g := &google{status: c.status, cluster: c.cluster}
		p := gke.Config{Clusters: []string{"us-east5/research"}}.Open(project, option.WithHTTPClient(&http.Client{Transport: g}))
		_, err := p.List(t.Context(), project, "us-east5/research")
		if g.asked[0] != "container.googleapis.com/v1/projects/demo/locations/us-east5/clusters/research" {
			t.Errorf("%s: first asked %s", name, g.asked[0])
		}
		if c.host == "" {
			if f := provider.Failure(err); f == nil || f.Class != c.class || !strings.Contains(f.Message, c.why) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(g.asked) != 5 || !strings.HasPrefix(g.asked[1], c.host+"/") {
			t.Errorf("%s: asked %q, %v", name, g.asked, err)
		}
	}
}
