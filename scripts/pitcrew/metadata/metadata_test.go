package metadata_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/metadata/metadatatest"
)

// told collects what a watch tells.
type told struct {
	mu     sync.Mutex
	texts  []string
	faults []error
	any    chan struct{}
}

func (w *told) text(s string) {
	w.mu.Lock()
	w.texts = append(w.texts, s)
	w.mu.Unlock()
	w.any <- struct{}{}
}

func (w *told) fault(err error) {
	w.mu.Lock()
	w.faults = append(w.faults, err)
	w.mu.Unlock()
	w.any <- struct{}{}
}

func (w *told) until(t *testing.T, what string, f func(texts []string, faults []error) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		w.mu.Lock()
		ok := f(w.texts, w.faults)
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-w.any:
		case <-ctx.Done():
			t.Fatalf("not told: %s; %q %v", what, w.texts, w.faults)
		}
	}
}

func last(texts []string) string {
	if len(texts) == 0 {
		return "nothing"
	}
	return texts[len(texts)-1]
}

func TestWatchTellsEveryChangeThroughEveryTrouble(t *testing.T) {
	s := metadatatest.New("demo", "us-west4-a", "host", time.Now)
	host, stop := s.Start()
	defer stop()
	c := metadata.New(host)
	c.Retry, c.Hang = 2*time.Millisecond, time.Second
	w := &told{any: make(chan struct{}, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Watch(ctx, metadata.PathAttributes, w.text, w.fault)
	}()
	w.until(t, "the first reading", func(texts []string, _ []error) bool { return last(texts) == "{}" })
	s.Set("instance/attributes/key", "one")
	w.until(t, "a change", func(texts []string, _ []error) bool { return last(texts) == `{"key":"one"}` })
	for _, f := range []metadatatest.Fault{{Status: 503}, {Gone: true}} {
		s.Break(f)
		w.until(t, "the trouble", func(_ []string, faults []error) bool { return len(faults) > 0 && faults[len(faults)-1] != nil })
		s.Set("instance/attributes/key", "meanwhile")
		s.Break(metadatatest.Fault{})
		w.until(t, "its end and what changed meanwhile", func(texts []string, faults []error) bool {
			return last(texts) == `{"key":"meanwhile"}` && faults[len(faults)-1] == nil
		})
		s.Set("instance/attributes/key", "one")
		w.until(t, "back", func(texts []string, _ []error) bool { return last(texts) == `{"key":"one"}` })
	}
	s.Remove("instance/attributes/key")
	w.until(t, "the removal", func(texts []string, _ []error) bool { return last(texts) == "{}" })
	cancel()
	<-done
}

// TestAServerThatDoesNotWaitIsNotAskedWithoutEnd: what answers for the metadata server in a cluster may not know how.
func TestAServerThatDoesNotWaitIsNotAskedWithoutEnd(t *testing.T) {
	asked := make(chan time.Time, 1000)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- time.Now()
		w.Header().Set("Metadata-Flavor", "Google")
		w.Header().Set("ETag", "e1")
		_, _ = w.Write([]byte("NONE")) //nolint:errcheck // a test's
	}))
	defer h.Close()
	c := metadata.New(strings.TrimPrefix(h.URL, "http://"))
	c.Retry = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Watch(ctx, metadata.PathEvent, func(string) {}, func(error) {})
	}()
	// Once for the value, once to wait for another; then it sees that nobody waits.
	<-asked
	second := <-asked
	if again := (<-asked).Sub(second); again < 10*c.Retry {
		t.Errorf("asked again after %v", again)
	}
	cancel()
	<-done
}

func TestWatchWaitsForAValueThatIsNotThereYet(t *testing.T) {
	s := metadatatest.New("demo", "us-west4-a", "host", time.Now)
	host, stop := s.Start()
	defer stop()
	c := metadata.New(host)
	c.Retry = time.Millisecond
	w := &told{any: make(chan struct{}, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.Watch(ctx, metadata.PathUpcoming, w.text, w.fault)
	w.until(t, "nothing", func(texts []string, _ []error) bool { return len(texts) == 1 && texts[0] == "" })
	s.Set("instance/upcoming-maintenance", `{"maintenanceStatus":"ONGOING"}`)
	w.until(t, "something", func(texts []string, _ []error) bool { return len(texts) == 2 && texts[1] != "" })
	s.Remove("instance/upcoming-maintenance")
	w.until(t, "nothing again", func(texts []string, faults []error) bool {
		return len(texts) == 3 && texts[2] == "" && len(faults) == 0
	})
}

func TestGuestAttributesAreLimited(t *testing.T) {
	s := metadatatest.New("demo", "us-west4-a", "host", time.Now)
	host, stop := s.Start()
	defer stop()
	c := metadata.New(host)
	for n := range 11 {
		err := c.Put(t.Context(), events.GuestNamespace, events.GuestKey, []byte("{}"))
		if (err != nil) != (n == 10) {
			t.Errorf("query %d: %v", n, err)
		}
	}
	if v, refused := s.Guest(events.GuestNamespace, events.GuestKey); v != "{}" || refused != 1 {
		t.Errorf("%q, %d refused", v, refused)
	}
}

func TestWhatIsNoMetadataServer(t *testing.T) {
	s := metadatatest.New("demo", "us-west4-a", "host", time.Now)
	host, stop := s.Start()
	c := metadata.New(host)
	if _, err := c.Get(t.Context(), "instance/none"); !errors.Is(err, metadata.ErrNotFound) {
		t.Error(err)
	}
	stop()
	if _, err := c.Machine(t.Context()); err == nil {
		t.Error("a machine without a server")
	}
}

func TestNotice(t *testing.T) {
	at := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	for text, want := range map[string]*events.Notice{
		"":       nil,
		"{}":     nil,
		"NONE\n": nil,
		`{ "error": "no notifications have been received yet, try again later" }`:                                                                 nil,
		`{"maintenanceStatus":"PENDING","canReschedule":"TRUE","maintenanceType":"SCHEDULED","windowStartTime":"2026-12-01T02:00:00Z"}`:           {Status: events.NoticePending, CanReschedule: true, WindowStart: at},
		`{"maintenance_status":"ONGOING","can_reschedule":false,"type":"UNSCHEDULED","window_start_time":"2026-12-01T02:00:00Z","x":[1],"n":1e3}`: {Status: events.NoticeOngoing, Unscheduled: true, WindowStart: at},
	} {
		got, err := metadata.Notice(text)
		if err != nil || (got == nil) != (want == nil) || got != nil && !got.Equal(*want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if _, err := metadata.Notice("<html>"); err == nil {
		t.Error("no error")
	}
}

func TestOnlyDocumentedWordsCount(t *testing.T) {
	for text, want := range map[string]struct{ announced, known bool }{
		"": {false, true}, "NONE": {false, true}, " NONE\n": {false, true},
		"TERMINATE_ON_HOST_MAINTENANCE": {true, true}, "MIGRATE_ON_HOST_MAINTENANCE\n": {true, true},
		"FALSE": {}, "terminate": {}, "<html>": {}, `{"error":"try again later"}`: {}, "0": {},
	} {
		if got, err := metadata.Event(text); got != want.announced || (err == nil) != want.known {
			t.Errorf("event %q: %t, %v", text, got, err)
		}
	}
	for text, want := range map[string]struct{ preempted, known bool }{
		"": {false, true}, "FALSE": {false, true}, "TRUE": {true, true}, "true\n": {true, true}, "NONE": {}, "<html>": {}, "1": {},
	} {
		if got, err := metadata.Preempted(text); got != want.preempted || (err == nil) != want.known {
			t.Errorf("preempted %q: %t, %v", text, got, err)
		}
	}
}

func FuzzNotice(f *testing.F) {
	f.Add(`{"maintenanceStatus":"PENDING","windowStartTime":"2026-12-01T02:00:00Z"}`)
	f.Add(`{"maintenanceStatus":1,"canReschedule":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := metadata.Notice(text)
		if err == nil && n != nil && n.Status != events.NoticePending && n.Status != events.NoticeOngoing {
			t.Errorf("%q: %+v", text, n)
		}
	})
}
