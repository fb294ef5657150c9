package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/shared/cloudlog/cloudlogtest"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/tpu"
	"pitstop.internal/shared/tpu/tputest"
)

// byHost has each of Google's APIs answered by its own.
type byHost map[string]http.RoundTripper

func (h byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if t := h[r.URL.Host]; t != nil {
		return t.RoundTrip(r)
	}
	return nil, errors.New("nobody answers at " + r.URL.Host)
}

// cloudOf is a project's TPUs and its log, on a clock that passes as watch sleeps.
func cloudOf(t *testing.T) (b *bench, api *tputest.API, clock *tputest.ManualClock) {
	t.Helper()
	clock = tputest.NewManualClock(noon)
	api = tputest.New(tputest.Config{Clock: clock, Zones: map[string]int{"us-west4-a": tputest.Unlimited, "us-west4-b": tputest.Unlimited}})
	log := cloudlogtest.New("demo", clock.Now)
	api.Observe(func(e tputest.Event) {
		for _, raw := range tputest.SystemEntries(e) {
			log.Write(raw)
		}
	})
	b = deployedWith(t, ledgertest.NewStore().Open)
	b.now = clock.Now
	b.deployment.look = func(ctx context.Context) (sight, error) {
		through := readOnly{byHost{"tpu.googleapis.com": api.Transport(), "logging.googleapis.com": log.Transport()}}
		return sightThrough(ctx, option.WithHTTPClient(&http.Client{Transport: through}))
	}
	if _, err := api.AddNode(tputest.NodeConfig{
		Zone: "us-west4-a", Name: "llama-8b", Accelerator: "v5litepod-16", Spot: true, Created: noon.Add(-48 * time.Hour),
		Labels: map[string]string{events.LabelPolicy: "spot"}, Metadata: map[string]string{"startup-script": "pitcrew run -- python3 train.py"},
	}); err != nil {
		t.Fatal(err)
	}
	return b, api, clock
}

func TestWatchTellsWhatHappensAndTouchesNothing(t *testing.T) {
	b, api, clock := cloudOf(t)
	minutes := 0
	b.sleep = func(_ context.Context, d time.Duration) error {
		clock.Advance(d)
		switch minutes++; minutes {
		case 2:
			if err := api.Preempt("us-west4-a", "llama-8b"); err != nil {
				t.Error(err)
			}
		case 6:
			return context.Canceled
		}
		return nil
	}
	got, err := b.call("watch")
	if err != nil {
		t.Fatal(err)
	}
	wants(t, got, "demo/llama-8b  policy spot", "llama-8b us-west4-a v5litepod-16 spot  READY", "if llama-8b died now: recreate: delete llama-8b first; then create llama-8b in us-west4-a",
		"node llama-8b is PREEMPTED", "only watch; would: DeleteNode projects/demo/locations/us-west4-a/nodes/llama-8b", "was terminated (PREEMPTED)")
	if state, _ := api.State("us-west4-a", "llama-8b"); state != "PREEMPTED" {
		t.Errorf("the TPU is %s", state)
	}
	first, _, _ := strings.Cut(got, "12:0")
	if strings.Contains(first, "only watch") {
		t.Errorf("it begins with what has not happened:\n%s", got)
	}
}

func TestWatchOnceAndAsJSON(t *testing.T) {
	b, _, _ := cloudOf(t)
	got, err := b.call("watch", "--once", "--json")
	if err != nil || strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, `{`) || !strings.Contains(got, `"if_lost"`) {
		t.Errorf("%v: %s", err, got)
	}
}

func TestWatchEndsWhereNothingMayBeRead(t *testing.T) {
	b, api, _ := cloudOf(t)
	api.Inject(tputest.Fault{Method: "ListLocations", Times: -1, Code: 7, Message: "Permission 'tpu.locations.list' denied"})
	if got, err := b.call("watch"); err == nil || !strings.Contains(err.Error(), "tpu.locations.list") {
		t.Errorf("%v: %s", err, got)
	}
}

// TestWatchOnlyReads: whatever the code behind it comes to call.
func TestWatchOnlyReads(t *testing.T) {
	b, api, _ := cloudOf(t)
	s, err := b.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := tpu.Ref{Project: "demo", Zone: "us-west4-a", Name: "llama-8b"}
	for name, call := range map[string]func() error{
		"delete": func() error { _, err := s.cloud.Delete(t.Context(), r, "id"); return err },
		"create": func() error {
			_, err := s.cloud.Create(t.Context(), tpu.Ref{Project: "demo", Zone: "us-west4-a", Name: "n"}, []byte(`{"node":{"runtimeVersion":"v2"}}`), nil, "id")
			return err
		},
		"maintain": func() error { _, err := s.cloud.Maintain(t.Context(), []tpu.Ref{r}); return err },
		"metadata": func() error { return s.cloud.SetMetadata(t.Context(), r, "k", "v") },
		"label":    func() error { return s.cloud.SetLabel(t.Context(), r, "k", "v") },
		"simulate": func() error { _, err := s.cloud.Simulate(t.Context(), r); return err },
		"canary":   func() error { return s.log.WriteCanary(t.Context(), "demo", "c", noon) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "is not made: watch only reads") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.cloud.Hosts(t.Context(), r); err != nil {
		t.Errorf("host names are read: %v", err)
	}
	if state, _ := api.State("us-west4-a", "llama-8b"); state != "READY" {
		t.Errorf("the TPU is %s", state)
	}
}
