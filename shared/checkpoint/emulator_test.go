package checkpoint_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
)

// TestTheStorageOfTheEnvironmentIsCalled, in both forms of its address, and without credentials.
func TestTheStorageOfTheEnvironmentIsCalled(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere") // there is nothing to be found
	bucket := buckettest.New(time.Now, "ckpt")
	bucket.Put("ckpt", "policy.yaml", []byte("policies: {}"))
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("it was sent credentials")
		}
		bucket.ServeHTTP(w, r)
	}))
	defer fake.Close()
	var generation int64 // of an object that is not there
	for _, host := range []string{fake.URL, fake.Listener.Addr().String()} {
		t.Setenv(checkpoint.EmulatorHost, host)
		got, err := checkpoint.Reader()(t.Context(), "gs://ckpt/policy.yaml")
		if err != nil || string(got) != "policies: {}" {
			t.Errorf("%s: %q, %v", host, got, err)
		}
		if generation, err = checkpoint.Deployed().Put(t.Context(), "gs://ckpt/lease", []byte("{}"), generation); err != nil {
			t.Errorf("%s: a write: %v", host, err)
		}
	}
}
