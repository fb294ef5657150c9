package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/auth"
	"google.golang.org/grpc/codes"

	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// asAda is Google behind this wire, for a caller who has a token.
func asAda(base http.RoundTripper) *google.Connection {
	return google.AsCaller(base, auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: aToken{}}), "ada")
}

type aToken struct{}

// Token implements auth.TokenProvider.
func (aToken) Token(context.Context) (*auth.Token, error) {
	return &auth.Token{Value: "t", Expiry: time.Now().Add(time.Hour)}, nil
}

// TestOnlyTheWayOutThatHelpsIsNamed where the API does not show the slices: a role where one is missing, the network where nothing
// answers.
func TestOnlyTheWayOutThatHelpsIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		base http.RoundTripper
		says string
	}{
		"a refusal": {forbidden{}, "the Cloud TPU API refuses ada: The caller does not have permission; " +
			"ask for a role that allows it: the verb's --help names one\n"},
		"silence": {silence{}, "the Cloud TPU API (tpu.googleapis.com) did not answer within 300ms as ada; " +
			"check the network, HTTPS_PROXY and, in a VPC, Private Google Access; a longer --timeout waits longer\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
				b.Google = asAda(c.base)
				b.OpenNodeLister = deployment.Connect(b.Google).OpenNodeLister
				b.Want([]string{"status", "llama-8b", "--timeout", "300ms"}, "the last maintenance events and autocheckpoint are not shown: "+c.says)
				b.Want([]string{"check", "llama-8b", "--timeout", "300ms"}, "check cannot read when the last maintenance event was: "+c.says)
			})
		})
	}
}

// TestStatusSaysThatLegacyNodesAreRefused: they are listed over gRPC, unlike all others.
func TestStatusSaysThatLegacyNodesAreRefused(t *testing.T) {
	w := deploymenttest.Trains("old", deploymenttest.Read(func(r *evidence.Read) { r.Facts.Legacy = true }))
	b := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	api := cloudtputest.New(cloudtputest.Config{Zones: map[string]int{"us-west4-a": 1}})
	api.Inject(cloudtputest.Fault{Method: "ListNodes", Legacy: true, Code: int(codes.PermissionDenied), Message: "The caller does not have permission"})
	server := httptest.NewUnstartedServer(api)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	b.OpenNodeLister = func(ctx context.Context, legacyZones []string) (deployment.NodeLister, error) {
		return cloudtpu.Config{Endpoint: server.URL, LegacyZones: legacyZones}.OpenWith(ctx, cloudtpu.Clients{Former: google.TrackRPC()})
	}
	b.Want([]string{"status", "old"}, "are not shown: the Cloud TPU API refuses the caller: The caller does not have permission; "+
		"ask for a role that allows it: the verb's --help names one\n")
}

// TestAVerbThatLooksAgainOpensNoOtherClient, however the zones of legacy nodes are ordered.
func TestAVerbThatLooksAgainOpensNoOtherClient(t *testing.T) {
	open := deployment.Connect(asAda(forbidden{})).OpenNodeLister
	of := func(zones ...string) deployment.NodeLister {
		t.Helper()
		api, err := open(t.Context(), zones)
		if err != nil {
			t.Fatal(err)
		}
		return api
	}
	none, two := of(), of("us-central1-b", "us-central1-a")
	if none == two || of() != none || of("us-central1-a", "us-central1-b") != two || of("us-central1-a") == two {
		t.Error("the clients are not those of their zones")
	}
}

func TestAttachSaysThatAutocheckpointIsOff(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		args []string
		says string
	}{
		"off":                       {deploymenttest.StartsCrew, []string{"attach", "llama-8b", "--policy", "spot"}, "autocheckpoint is off for llama-8b: maintenance that nobody announced begins at once"},
		"under a policy that is on": {deploymenttest.StartsCrew, []string{"attach", "llama-8b", "--policy", "night"}, "you: the policy turns it on when Pitstop creates the slice again"},
		"on":                        {`{"node":{"autocheckpointEnabled":true}}`, []string{"attach", "llama-8b", "--policy", "spot"}, ""},
		"never read":                {"", []string{"attach", "llama-8b", "--policy", "spot"}, ""},
		"detached":                  {deploymenttest.StartsCrew, []string{"detach", "llama-8b"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			hash := map[string]string{deploymenttest.StartsCrew: "spec1", "": ""}
			if _, is := hash[c.spec]; !is {
				hash[c.spec] = "spec2"
			}
			b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew, deploymenttest.Read(func(r *evidence.Read) { r.Facts.Spec = hash[c.spec] }))
			b.ReadFile = func(context.Context, string) ([]byte, error) {
				return []byte("policies: {night: {preset: spot, autocheckpoint: on}}"), nil
			}
			if c.spec != "" && c.spec != deploymenttest.StartsCrew {
				if err := b.Ledger.SaveSpec(t.Context(), "spec2", []byte(c.spec)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := b.Call(c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if c.says == "" && strings.Contains(got, "autocheckpoint") {
				t.Errorf("it says:\n%s", got)
			}
			deploymenttest.WantText(t, got, "llama-8b in us-west4-a: ", c.says)
			if c.args[len(c.args)-1] == "spot" && c.says != "" {
				deploymenttest.WantText(t, got, "  you: make sure that the training saves on SIGTERM, then delete it and create it again with autocheckpoint: "+
					"gcloud alpha compute tpus tpu-vm create llama-8b --autocheckpoint-enabled --zone us-west4-a ...; or write autocheckpoint: on into a policy of the policy file and attach that policy\n")
			}
		})
	}
	if _, err := policy.Parse([]byte("policies: {night: {autocheckpoint: on}}")); err != nil {
		t.Errorf("the policy that attach names is none: %v", err)
	}
}
