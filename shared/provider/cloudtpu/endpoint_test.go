package cloudtpu_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// TestTheEndpointOfTheEnvironmentIsCalled has both versions of the API called over a socket, without credentials.
func TestTheEndpointOfTheEnvironmentIsCalled(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere") // there is nothing to be found
	api := cloudtputest.New(cloudtputest.Config{Project: project, Zones: map[string]int{home: 1}})
	_, err := api.AddNode(legacyOrder("llama"))
	must(t, err)
	var called sync.Map
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called.Store(r.URL.Path, true)
		if r.Header.Get("Authorization") != "" {
			t.Error("it was sent credentials")
		}
		api.ServeHTTP(w, r)
	}))
	defer fake.Close()
	for _, slash := range []string{"", "/"} {
		called.Clear()
		cloud, err := cloudtpu.Config{Endpoint: fake.URL + slash, LegacyZones: []string{home}}.Open(t.Context())
		must(t, err)
		if s, err := cloud.Read(t.Context(), provider.Ref{Project: project, Zone: home, Name: "llama"}); err != nil || !s.Incarnation.Known() {
			t.Errorf("%+v, %v", s, err)
		}
		for _, version := range []string{"v1", "v2alpha1"} {
			if _, ok := called.Load("/" + version + "/projects/" + project + "/locations/" + home + "/nodes/llama"); !ok {
				t.Errorf("%s was not called at %q", version, fake.URL+slash)
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
