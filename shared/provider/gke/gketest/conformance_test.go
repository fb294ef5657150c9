package gketest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke/clustertest"
	"pitstop.internal/shared/provider/gke/gketest"
)

var start = time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)

// TestTheServerKeepsTheirPromises: over a socket, and without one.
func TestTheServerKeepsTheirPromises(t *testing.T) {
	clock := cloudtputest.NewManualClock(start)
	s := gketest.New(gketest.Config{Clock: clock, Token: "secret", Seed: 7})
	h := httptest.NewServer(s)
	defer h.Close()
	c := clustertest.Cluster{
		URL: h.URL, Token: "secret", HTTP: h.Client(), Pass: clock.Advance, Slices: true, Name: "socket",
		Silence: func(_ *testing.T, node string) { s.Silence(node) },
	}
	if n := clustertest.Run(t, c); n < 40 {
		t.Errorf("only %d promises were checked", n)
	}
	c.URL, c.HTTP, c.Name = "http://cluster.invalid", &http.Client{Transport: s.Transport()}, "direct"
	clustertest.Run(t, c)
}
