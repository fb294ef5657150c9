package cloudlog_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/cloudlog/cloudlogtest"
)

// TestTheLogOfTheEnvironmentIsCalled without credentials.
func TestTheLogOfTheEnvironmentIsCalled(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere") // there is nothing to be found
	now := time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)
	log := cloudlogtest.New("demo", func() time.Time { return now })
	log.Write(fmt.Appendf(nil, `{"insertId":"1","severity":"INFO","timestamp":%q}`, now.Format(time.RFC3339)))
	now = now.Add(time.Minute)
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("it was sent credentials")
		}
		log.ServeHTTP(w, r)
	}))
	defer fake.Close()
	t.Setenv(cloudlog.EmulatorHost, fake.Listener.Addr().String())
	found, err := cloudlog.New().Since(t.Context(), "demo", `severity="INFO"`, now.Add(-time.Hour))
	if err != nil || len(found) != 1 {
		t.Errorf("%d entries, %v", len(found), err)
	}
}
