package gke

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cloud.google.com/go/auth"
	"google.golang.org/api/option"
)

// static is a token that never changes.
type static string

// Token implements auth.TokenProvider.
func (s static) Token(context.Context) (*auth.Token, error) {
	return &auth.Token{Value: string(s)}, nil
}

// public is a cluster with a public endpoint, as the GKE API describes it with a certificate authority. It returns the tokens that came.
func public(t *testing.T, authority func(*httptest.Server) []byte) (c Client, tokens *[]string) {
	t.Helper()
	tokens = new([]string)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*tokens = append(*tokens, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"kind":"List","items":[]}`) //nolint:errcheck // the test sees it
	}))
	t.Cleanup(server.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority(server)}))
	host := strings.TrimPrefix(server.URL, "https://")
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"endpoint":"`+host+`","masterAuth":{"clusterCaCertificate":"`+ca+`"}}`) //nolint:errcheck // likewise
	}))
	t.Cleanup(api.Close)
	a := &access{endpoint: api.URL, opts: []option.ClientOption{option.WithAuthCredentials(auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: static("token")}))}}
	c, err := a.open(t.Context(), Cluster{Project: "demo", Location: "us-east5", Name: "research"})
	if err != nil {
		t.Fatal(err)
	}
	return c, tokens
}

// TestAClusterIsReachedByItsPublicEndpoint: with the function's token, and only where the cluster's own certificate authority vouches
// for it.
func TestAClusterIsReachedByItsPublicEndpoint(t *testing.T) {
	c, tokens := public(t, func(s *httptest.Server) []byte { return s.Certificate().Raw })
	if _, err := c.List(t.Context()); err != nil || len(*tokens) != 4 || (*tokens)[0] != "Bearer token" {
		t.Errorf("tokens %q, %v", *tokens, err)
	}
	c, tokens = public(t, func(*httptest.Server) []byte {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		of := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true}
		raw, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	})
	if _, err := c.List(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") || len(*tokens) > 0 {
		t.Errorf("by another authority: tokens %q, %v", *tokens, err)
	}
}

// TestARedirectGetsNoToken: neither the API of GKE nor a cluster sends the function's token to another host.
func TestARedirectGetsNoToken(t *testing.T) {
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"kind":"List","items":[]}`) //nolint:errcheck // the test sees it
	}))
	t.Cleanup(thief.Close)
	away := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	}
	cluster := httptest.NewTLSServer(http.HandlerFunc(away))
	t.Cleanup(cluster.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cluster.Certificate().Raw}))
	redirects := false
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if redirects {
			away(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"endpoint":"`+strings.TrimPrefix(cluster.URL, "https://")+`","masterAuth":{"clusterCaCertificate":"`+ca+`"}}`) //nolint:errcheck // likewise
	}))
	t.Cleanup(api.Close)
	a := &access{endpoint: api.URL, opts: []option.ClientOption{option.WithAuthCredentials(auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: static("token")}))}}
	c, err := a.open(t.Context(), Cluster{Project: "demo", Location: "us-east5", Name: "research"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.List(t.Context()); err == nil || len(stolen) > 0 {
		t.Errorf("a cluster redirects: tokens %q, %v", stolen, err)
	}
	redirects = true
	if _, err := a.open(t.Context(), Cluster{Project: "demo", Location: "us-east5", Name: "other"}); err == nil || len(stolen) > 0 {
		t.Errorf("the API redirects: tokens %q, %v", stolen, err)
	}
}
