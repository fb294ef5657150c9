package cloudtpu_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/reason"
)

// TestTheEndpointOfTheEnvironmentIsCalled has both versions of the API called over a socket, without credentials.
func TestTheEndpointOfTheEnvironmentIsCalled(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere") // there is nothing to be found
	api := cloudtputest.New(cloudtputest.Config{Project: project, Zones: map[string]int{home: 1}})
	_, err := api.AddNode(legacyOrder("llama"))
	must(t, err)
	var called sync.Map
	fake := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called.Store(r.URL.Path, true)
		if r.Header.Get("Authorization") != "" {
			t.Error("it was sent credentials")
		}
		api.ServeHTTP(w, r)
	}))
	for _, slash := range []string{"", "/"} {
		called.Clear()
		cloud, err := cloudtpu.Config{Endpoint: fake.URL + slash, LegacyZones: []string{home}}.Open(t.Context())
		must(t, err)
		if s, err := cloud.Read(t.Context(), provider.Ref{Project: project, Zone: home, Name: "llama"}); err != nil || !s.Incarnation.Known() {
			t.Errorf("%+v, %v", s, err)
		}
		for _, path := range []string{"/google.cloud.tpu.v1.Tpu/GetNode", "/v2alpha1/projects/" + project + "/locations/" + home + "/nodes/llama"} {
			if _, ok := called.Load(path); !ok {
				t.Errorf("%s was not called at %q", path, fake.URL+slash)
			}
		}
	}
}

func TestWhichEndpointIsTaken(t *testing.T) {
	for endpoint, fault := range map[string]string{ //nolint:gosec // addresses, and no credentials
		"": "", "https://tpu.p.example.com/": "", "http://127.0.0.1:8080": "", "http://[::1]:8080/": "", "http://localhost:1": "",
		"http://tpu.googleapis.com/": "is not on this machine", "http://127.0.0.1.example.com": "is not on this machine", "http://10.0.0.1:80": "is not on this machine",
		"127.0.0.1:8080": "is not an address", "ftp://127.0.0.1": "is not an address", "https://": "is not an address", "http://me:secret@127.0.0.1": "is not an address",
		"http://127.0.0.1/?a=b": "is not an address", "http://127.0.0.1\n": "is not an address",
	} {
		err := cloudtpu.Config{Endpoint: endpoint}.Validate()
		if (err == nil) != (fault == "") || err != nil && (!strings.Contains(err.Error(), fault) || !strings.HasPrefix(err.Error(), "TPU_ENDPOINT: ") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v, want %q", endpoint, err, fault)
		}
	}
}

// TestAnEndpointOfLegacyNodesHasNoPath, because gRPC cannot call it.
func TestAnEndpointOfLegacyNodesHasNoPath(t *testing.T) {
	for endpoint, ok := range map[string]bool{"https://tpu.p.example.com/": true, "https://tpu.p.example.com": true, "https://tpu.p.example.com/tpu/": false} {
		if err := (cloudtpu.Config{Endpoint: endpoint}).Validate(); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
		err := cloudtpu.Config{Endpoint: endpoint, LegacyZones: []string{home}}.Validate()
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "TPU_ENDPOINT: ") {
			t.Errorf("%s, with legacy nodes: %v", endpoint, err)
		}
	}
}

// TestAPageOfAProxyIsNoAnswerOfTheFormerVersion has each call meet a page that some proxy on the way makes: whatever its status is,
// it proves neither that a node is absent nor that a call is not permitted.
func TestAPageOfAProxyIsNoAnswerOfTheFormerVersion(t *testing.T) {
	for _, code := range []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
		http.StatusTooManyRequests, http.StatusBadGateway,
	} {
		fake := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(code)
			_, _ = w.Write([]byte("<!DOCTYPE html><title>Error</title>")) //nolint:errcheck // the caller sees that it is short
		}))
		p, err := cloudtpu.Config{Endpoint: fake.URL, LegacyZones: []string{home}}.Open(t.Context())
		must(t, err)
		_, err = p.Read(t.Context(), provider.Ref{Project: project, Zone: home, Name: "llama", Legacy: true})
		class(t, err, reason.Transient)
		if !strings.Contains(err.Error(), strconv.Itoa(code)) {
			t.Errorf("%d: %v", code, err)
		}
	}
}
