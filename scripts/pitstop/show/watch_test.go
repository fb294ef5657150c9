package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/go-json-experiment/json"
	"google.golang.org/api/option"

	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

func TestWatchTellsWhatHappensAndTouchesNothing(t *testing.T) {
	b, api, clock := deploymenttest.CloudOf(t)
	minutes := 0
	b.Sleep = func(_ context.Context, d time.Duration) error {
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
	got, err := b.Call("watch")
	if err != nil {
		t.Fatal(err)
	}
	deploymenttest.WantText(t, got, "demo/llama-8b  policy spot", "llama-8b us-west4-a v5litepod-16 spot  READY", "if llama-8b died now: recreate: delete llama-8b first; then create llama-8b in us-west4-a",
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
	b, _, _ := deploymenttest.CloudOf(t)
	got, err := b.Call("watch", "--once", "--json")
	if err != nil || strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, `{`) || !strings.Contains(got, `"if_lost"`) {
		t.Errorf("%v: %s", err, got)
	}
}

// TestWatchAsJSONIsJSON: what could not be looked at, too.
func TestWatchAsJSONIsJSON(t *testing.T) {
	b, api, clock := deploymenttest.CloudOf(t)
	minutes := 0
	b.Sleep = func(_ context.Context, d time.Duration) error {
		clock.Advance(d)
		switch minutes++; minutes {
		case 1:
			api.Inject(cloudtputest.Fault{Method: "ListLocations", Times: -1, Code: 14, Message: "try again"})
		case 30:
			return context.Canceled
		}
		return nil
	}
	got, err := b.Call("watch", "--json")
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for line := range strings.Lines(got) {
		var o struct {
			At    time.Time `json:"at"`
			Error string    `json:"error"`
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if strings.Contains(o.Error, "try again") && o.At.After(deploymenttest.Noon) {
			failed++
		}
	}
	if failed == 0 {
		t.Errorf("it does not tell what failed:\n%s", got)
	}
}

// pages is a log whose answers have one entry each, one a second.
type pages struct {
	began time.Time
	n     int
}

func (p pages) RoundTrip(r *http.Request) (*http.Response, error) {
	var q struct{ Filter, PageToken string }
	if err := json.UnmarshalRead(r.Body, &q, json.MatchCaseInsensitiveNames(true)); err != nil {
		return nil, err
	}
	text, _, _ := strings.Cut(strings.TrimPrefix(q.Filter, `timestamp>="`), `"`)
	since, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, err
	}
	first := max(0, int(math.Ceil(since.Sub(p.began).Seconds())))
	at, _ := strconv.Atoi(q.PageToken) //nolint:errcheck // without one it is the first
	at = max(at, first)
	answer := `{}`
	if at < p.n {
		answer = fmt.Sprintf(`{"entries":[{"insertId":"e%d","timestamp":"%s","logName":"projects/demo/logs/x"}]`, at, p.began.Add(time.Duration(at)*time.Second).Format(time.RFC3339))
		if at+1 < p.n {
			answer += fmt.Sprintf(`,"nextPageToken":"%d"`, at+1)
		}
		answer += "}"
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// reader is a watch of a log with so many entries; came are those that were delivered, unless fails says otherwise.
func reader(t *testing.T, n int, fails func(id string) error) (w *watched, came *[]string) {
	t.Helper()
	b, _, clock := deploymenttest.CloudOf(t)
	clock.Advance(time.Hour)
	s, err := deployment.ReadOnlyThrough(t.Context(), option.WithHTTPClient(&http.Client{Transport: deploymenttest.ByHost{"logging.googleapis.com": pages{deploymenttest.Noon, n}}}))
	if err != nil {
		t.Fatal(err)
	}
	w = verbs{b.Deployment}.newWatch(s, "demo", terminal.NewPrinter(io.Discard, true))
	w.until = deploymenttest.Noon
	came = new([]string)
	w.entries = func(_ context.Context, e cloudevents.Event) error {
		if err := fails(e.ID()); err != nil {
			return err
		}
		*came = append(*came, e.ID())
		return nil
	}
	return w, came
}

// TestWatchReadsALongLogInParts: what is read counts, and the next look goes on behind it.
func TestWatchReadsALongLogInParts(t *testing.T) {
	w, came := reader(t, 45, func(string) error { return nil })
	for look, want := range []struct {
		entries int
		more    bool
	}{{20, true}, {39, true}, {45, false}, {45, false}} {
		err := w.readLog(t.Context())
		if len(*came) != want.entries || (err != nil) != want.more || err != nil && !strings.Contains(err.Error(), "more than") {
			t.Fatalf("look %d: %d entries, %v, want %d", look, len(*came), err, want.entries)
		}
	}
	if want := deploymenttest.Noon.Add(time.Hour - lookBack); !w.until.Equal(want) {
		t.Errorf("it reads on from %s, want %s", w.until, want)
	}
}

// TestWatchDeliversAgainWhatFailed: once it works, and not for ever; the others do not wait for it.
func TestWatchDeliversAgainWhatFailed(t *testing.T) {
	left := map[string]int{"e3": 2, "e7": 1}
	w, came := reader(t, 10, func(id string) error {
		if left[id] > 0 {
			left[id]--
			return errors.New("the API cannot be reached")
		}
		return nil
	})
	for look, want := range []struct {
		entries int
		says    string
	}{{8, "the API cannot be reached (and 1 more)"}, {9, "the API cannot be reached"}, {10, ""}, {10, ""}} {
		err := w.readLog(t.Context())
		if len(*came) != want.entries || (err == nil) != (want.says == "") || err != nil && !strings.HasSuffix(err.Error(), want.says) {
			t.Fatalf("look %d: %v, %v", look, *came, err)
		}
	}
	tried := 0
	w, came = reader(t, 3, func(id string) error {
		if id == "e1" {
			tried++
			return errors.New("it never works")
		}
		return nil
	})
	var err error
	for range deliveries {
		if err != nil && strings.Contains(err.Error(), "given up") {
			t.Errorf("after %d tries: %v", tried, err)
		}
		err = w.readLog(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "entry e1 failed 20 times, and watch gives it up") {
		t.Errorf("at last: %v", err)
	}
	if err := w.readLog(t.Context()); err != nil || tried != deliveries || len(*came) != 2 {
		t.Errorf("%d tries, %v: %v", tried, *came, err)
	}
}

func TestWatchEndsWhereNothingMayBeRead(t *testing.T) {
	b, api, _ := deploymenttest.CloudOf(t)
	api.Inject(cloudtputest.Fault{Method: "ListLocations", Times: -1, Code: 7, Message: "Permission 'tpu.locations.list' denied"})
	if got, err := b.Call("watch"); err == nil || !strings.Contains(err.Error(), "tpu.locations.list") {
		t.Errorf("%v: %s", err, got)
	}
}

// TestWatchOnlyReads: whatever the code behind it comes to call.
func TestWatchOnlyReads(t *testing.T) {
	b, api, _ := deploymenttest.CloudOf(t)
	s, err := b.OpenReadOnly(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := provider.Ref{Project: "demo", Zone: "us-west4-a", Name: "llama-8b"}
	for name, call := range map[string]func() error{
		"delete": func() error { _, err := s.TPUs.Delete(t.Context(), r, "id"); return err },
		"create": func() error {
			_, err := s.TPUs.Create(t.Context(), provider.Ref{Project: "demo", Zone: "us-west4-a", Name: "n"}, []byte(`{"node":{"runtimeVersion":"v2"}}`), nil, "id")
			return err
		},
		"maintain": func() error { _, err := s.TPUs.Maintain(t.Context(), []provider.Ref{r}); return err },
		"metadata": func() error { return s.TPUs.SetMetadata(t.Context(), r, "k", "v") },
		"label":    func() error { return s.TPUs.SetLabel(t.Context(), r, "k", "v") },
		"simulate": func() error { _, err := s.TPUs.Simulate(t.Context(), r); return err },
		"canary":   func() error { return s.Log.WriteCanary(t.Context(), "demo", "c", deploymenttest.Noon) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "is not made: watch only reads") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.TPUs.Hosts(t.Context(), r); err != nil {
		t.Errorf("host names are read: %v", err)
	}
	if state, _ := api.State("us-west4-a", "llama-8b"); state != "READY" {
		t.Errorf("the TPU is %s", state)
	}
}

// TestWatchTellsWhatItCannotRead once, however often it reads the same part of the log.
func TestWatchTellsWhatItCannotRead(t *testing.T) {
	b, _, clock, log := deploymenttest.LoggedCloud(t)
	minutes := 0
	b.Sleep = func(_ context.Context, d time.Duration) error {
		clock.Advance(d)
		if minutes++; minutes == 1 {
			log.Write([]byte(`{"insertId":"odd","logName":"projects/demo/logs/cloudaudit.googleapis.com%2Fsystem_event","timestamp":"` + clock.Now().Format(time.RFC3339) +
				`","resource":{"type":"gce_instance"},"protoPayload":{"methodName":"compute.instances.preempted","resourceName":"projects/demo/zones/us-west4-a/instances/t1v-n-3f2a9c01-w-2","status":"OK"}}`))
		}
		if minutes == 6 {
			return context.Canceled
		}
		return nil
	}
	got, err := b.Call("watch")
	if n := strings.Count(got, "cannot be read: log entry: protoPayload.status is a string, which does not fit there"); err != nil || n != 1 {
		t.Errorf("%v: it tells %d times, want once:\n%s", err, n, got)
	}
}
