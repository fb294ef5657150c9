package trigger_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/trigger"
)

func pushBody(t *testing.T, data string, attributes map[string]string) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"message": map[string]any{
			"data": base64.StdEncoding.EncodeToString([]byte(data)), "attributes": attributes, "messageId": "m1",
			"publishTime": "2026-11-12T02:14:07Z", "orderingKey": "k",
		},
		"subscription": "projects/demo/subscriptions/s", "deliveryAttempt": 3,
	})
	must(t, err)
	return body
}

// adapter is an adapter whose log lines can be read.
func adapter(h trigger.Handle) (*trigger.Adapter, *bytes.Buffer) {
	var log bytes.Buffer
	return &trigger.Adapter{
		Name: "HandleTest", Handle: h, Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Drain: trigger.NewDrain(func() {}),
	}, &log
}

func post(t *testing.T, h http.Handler, body []byte, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/projects/demo/topics/t", bytes.NewReader(body))
	for k, v := range header {
		r.Header[k] = v
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestOutcomeDecidesStatus(t *testing.T) {
	for name, c := range map[string]struct {
		handle func() error
		status int
		log    string
	}{
		"handled is acknowledged":                        {func() error { return nil }, 200, "event handled"},
		"none of our concern is acknowledged":            {func() error { return fault.Ignored("code", "not ours") }, 200, "event ignored"},
		"what no redelivery can cure is acknowledged":    {func() error { return fault.Permanentf("bad") }, 200, "event rejected"},
		"anything else is left for redelivery":           {func() error { return errors.New("down") }, 500, "event left for redelivery"},
		"what a newer release wrote is left for that":    {func() error { return fault.Busy(events.ErrNewer) }, 503, "event left for later"},
		"a panic is left for redelivery and ends nobody": {func() error { panic("at the disco") }, 500, "function panicked"},
	} {
		t.Run(name, func(t *testing.T) {
			a, log := adapter(func(context.Context, cloudevents.Event) error { return c.handle() })
			if w := post(t, a, pushBody(t, "{}", nil), nil); w.Code != c.status {
				t.Errorf("status %d, want %d", w.Code, c.status)
			}
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), c.log) {
				t.Errorf("log = %q, want one line %q", log, c.log)
			}
		})
	}
}

// TestAPanicIsAnErrorWithItsStack, and whoever sent the message learns nothing of the stack.
func TestAPanicIsAnErrorWithItsStack(t *testing.T) {
	a, log := adapter(func(context.Context, cloudevents.Event) error { panic("at the disco") })
	w := post(t, a, pushBody(t, "{}", nil), nil)
	var line struct {
		Level string `json:"level"`
		Error string `json:"error"`
		Stack string `json:"stack_trace"`
	}
	must(t, json.Unmarshal(log.Bytes(), &line))
	if line.Level != "ERROR" || line.Error != "panic: at the disco" || !strings.HasPrefix(line.Stack, "panic: at the disco\n\ngoroutine ") || !strings.Contains(line.Stack, "trigger_test.go") {
		t.Errorf("logged %+v, want an error with the stack of the handler", line)
	}
	if got := strings.TrimSpace(w.Body.String()); got != "panic: at the disco" {
		t.Errorf("answered %q, want the reason alone", got)
	}
}

func TestEveryFormOfDeliveryIsUnderstood(t *testing.T) {
	ours := map[string]string{
		"ce-type": "pitstop.recreate.requested.v1", "ce-id": "id1", "ce-source": "//pitstop/functions/logevent", "ce-subject": "demo/llama-8b",
		"ce-time": "2026-11-12T02:14:06Z", "ce-causationid": "m0", "ce-correlationid": "inc", "ce-specversion": "1.0",
	}
	push := pushBody(t, `{"a":1}`, nil)
	for name, c := range map[string]struct {
		body     []byte
		header   http.Header
		wantType string
		wantID   string
		wantData string
		delivery trigger.Delivery
	}{
		"a push of a log sink": {
			body: pushBody(t, `{"a":1}`, map[string]string{"logging.googleapis.com/timestamp": "x"}), wantType: trigger.TypeMessage, wantID: "m1", wantData: `{"a":1}`,
			delivery: trigger.Delivery{
				MessageID: "m1", Subscription: "projects/demo/subscriptions/s", OrderingKey: "k", Attempt: 3,
				Published: time.Date(2026, 11, 12, 2, 14, 7, 0, time.UTC), Attributes: map[string]string{"logging.googleapis.com/timestamp": "x"},
			},
		},
		"a push of an event of ours": {
			body: pushBody(t, `{"a":1}`, ours), wantType: "pitstop.recreate.requested.v1", wantID: "id1", wantData: `{"a":1}`,
			delivery: trigger.Delivery{
				MessageID: "m1", Subscription: "projects/demo/subscriptions/s", OrderingKey: "k", Attempt: 3,
				Published: time.Date(2026, 11, 12, 2, 14, 7, 0, time.UTC), Attributes: ours,
			},
		},
		"a binary CloudEvent with a message": {
			body: push, wantType: trigger.TypeMessage, wantID: "m1", wantData: `{"a":1}`,
			header: http.Header{
				"Ce-Id": {"e1"}, "Ce-Type": {trigger.TypeMessage}, "Ce-Source": {"//pubsub"}, "Ce-Specversion": {"1.0"},
				"Content-Type": {"application/json"}, "Traceparent": {"00-105445aa7843bc8bf206b12000100000-0000000000000001-01"},
			},
			delivery: trigger.Delivery{
				MessageID: "m1", Subscription: "projects/demo/subscriptions/s", OrderingKey: "k", Attempt: 3, Trace: "105445aa7843bc8bf206b12000100000",
				Published: time.Date(2026, 11, 12, 2, 14, 7, 0, time.UTC),
			},
		},
		"a binary CloudEvent of ours": {
			body: []byte(`{"a":1}`), wantType: "pitstop.recreate.requested.v1", wantID: "id1", wantData: `{"a":1}`,
			header: http.Header{
				"Ce-Id": {"id1"}, "Ce-Type": {"pitstop.recreate.requested.v1"}, "Ce-Source": {"//x"}, "Ce-Specversion": {"1.0"}, "Content-Type": {"application/json"},
			},
			delivery: trigger.Delivery{MessageID: "id1"},
		},
		"a structured CloudEvent of ours": {
			body:     []byte(`{"specversion":"1.0","id":"id1","type":"pitstop.recreate.requested.v1","source":"//x","datacontenttype":"application/json","data":{"a":1}}`),
			wantType: "pitstop.recreate.requested.v1", wantID: "id1", wantData: `{"a":1}`,
			header:   http.Header{"Content-Type": {"application/cloudevents+json"}},
			delivery: trigger.Delivery{MessageID: "id1"},
		},
		"a structured CloudEvent whose media type is in capitals": {
			body:     []byte(`{"specversion":"1.0","id":"id1","type":"test.v1","source":"//x","data":{"a":1}}`),
			wantType: "test.v1", wantID: "id1", wantData: `{"a":1}`,
			header:   http.Header{"Content-Type": {"Application/CloudEvents+JSON ; Charset=UTF-8"}},
			delivery: trigger.Delivery{MessageID: "id1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got cloudevents.Event
			var delivery trigger.Delivery
			a, _ := adapter(func(ctx context.Context, e cloudevents.Event) error {
				got, delivery = e, trigger.FromContext(ctx)
				return nil
			})
			if w := post(t, a, c.body, c.header); w.Code != 200 {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if got.Type() != c.wantType || got.ID() != c.wantID || string(got.Data()) != c.wantData {
				t.Errorf("event = %s %s %s", got.Type(), got.ID(), got.Data())
			}
			if d := cmp.Diff(c.delivery, delivery); d != "" {
				t.Errorf("delivery (-want +got):\n%s", d)
			}
		})
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	a, _ := adapter(func(context.Context, cloudevents.Event) error {
		t.Error("the handler was called")
		return nil
	})
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"not JSON":                  {"<html>", 400},
		"truncated":                 {`{"message":{"data":"e30=`, 400},
		"another JSON":              {`{"foo":1}`, 400},
		"data that is not base64":   {`{"message":{"data":"%%"}}`, 400},
		"an event without an ID":    {`{"message":{"attributes":{"ce-type":"t","ce-source":"s"},"messageId":"m"}}`, 400},
		"larger than Pub/Sub sends": {`{"message":{"data":"` + strings.Repeat("A", 16<<20) + `"}}`, 200},
	} {
		if w := post(t, a, []byte(c.body), nil); w.Code != c.status {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.status)
		}
	}
	noMessage := fmt.Sprintf(`{"specversion":"1.0","id":"1","type":%q,"source":"//x"}`, trigger.TypeMessage)
	w := post(t, a, []byte(noMessage), http.Header{"Content-Type": {"application/cloudevents+json"}})
	if w.Code != 400 || !strings.Contains(w.Body.String(), "CloudEvent: it has no data") {
		t.Errorf("a CloudEvent without data: status %d: %s, want 400 and the missing part", w.Code, w.Body)
	}
}

// TestAProbeIsNoError: whoever asks without a message, such as a prober, opens no alert.
func TestAProbeIsNoError(t *testing.T) {
	a, log := adapter(func(context.Context, cloudevents.Event) error {
		t.Error("the handler was called")
		return nil
	})
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/", nil))
		if w.Code != 405 || w.Header().Get("Allow") != "POST" {
			t.Errorf("%s: status %d, allowed %q, want 405 and POST", method, w.Code, w.Header().Get("Allow"))
		}
	}
	if s := log.String(); strings.Count(s, "\n") != 3 || strings.Count(s, `"level":"DEBUG"`) != 3 {
		t.Errorf("log = %s, want a line of DEBUG for each", s)
	}
}

func TestChainClassifiesWhatCannotBeDecoded(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want func(error) bool
	}{
		"a fault is permanent":      {errors.New("workload is missing"), fault.IsPermanent},
		"a newer body is for later": {fmt.Errorf("schema 2: %w", events.ErrNewer), fault.IsBusy},
		"not ours stays so":         {fault.Ignored("code", "no"), fault.IsIgnored},
	} {
		handle := trigger.Chain(func(cloudevents.Event) (int, error) { return 0, c.err }, func(context.Context, int) error {
			t.Errorf("%s: handled", name)
			return nil
		})
		if err := handle(t.Context(), cloudevents.NewEvent()); !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type testConfig struct {
	Topic string `env:"TRIGGER_TEST_TOPIC, required"`
}

// registered is what register registers as a function would; the tests below read it.
var registered struct {
	builds  atomic.Int64
	failing atomic.Bool
	seen    sync.Map // ce-id -> number of calls
}

func register() {
	trigger.Register("HandleRegistered", trigger.Function[testConfig, string]{
		Decode: func(e cloudevents.Event) (string, error) {
			if e.Type() != "test.v1" {
				return "", fault.Ignored("code", "%s is unknown", e.Type())
			}
			return e.ID(), nil
		},
		Build: func(context.Context, testConfig) (func(context.Context, string) error, error) {
			registered.builds.Add(1)
			if registered.failing.Load() {
				return nil, errors.New("the database is not there yet")
			}
			return func(_ context.Context, id string) error {
				n, _ := registered.seen.LoadOrStore(id, new(atomic.Int64))
				n.(*atomic.Int64).Add(1) //nolint:forcetypeassert // only these are stored
				return nil
			}, nil
		},
	})
	trigger.Register("HandleStrict", trigger.Function[strictConfig, string]{})
}

// strictConfig can be wrong in more than one way at once.
type strictConfig struct {
	Topic string   `env:"TRIGGER_TEST_TOPIC, required"`
	Ours  []string `env:"TRIGGER_TEST_OURS, required"`
	Limit int      `env:"TRIGGER_TEST_LIMIT, default=30"`
	Mode  string   `env:"TRIGGER_TEST_MODE"`
}

func (c strictConfig) Validate() error {
	if c.Mode != "" {
		return errors.New("TRIGGER_TEST_MODE is not a mode")
	}
	return nil
}

func TestMain(m *testing.M) {
	if err := os.Setenv("LOG_LEVEL", "ERROR+4"); err != nil { // the registered function logs to standard output
		panic(err)
	}
	if os.Getenv(heldPort) != "" {
		panic(serveHeld())
	}
	register()
	os.Exit(m.Run())
}

// freeAddress returns a loopback address on which nobody listens now.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// serve starts the functions framework with the registered entry points, once, on a free loopback port, and returns its
// address.
var serve = sync.OnceValues(func() (string, error) {
	addr, err := freeAddress(context.Background())
	if err != nil {
		return "", err
	}
	host, port, _ := strings.Cut(addr, ":")
	failed := make(chan error, 1)
	go func() { failed <- funcframework.StartHostPort(host, port) }()
	for {
		select {
		case err := <-failed:
			return "", err
		default:
		}
		if c, err := net.Dial("tcp", addr); err == nil {
			return addr, c.Close()
		}
		runtime.Gosched() // the framework does not say when it listens
	}
})

func request(t *testing.T, id, ceType string) []byte {
	t.Helper()
	return pushBody(t, "x", map[string]string{"ce-type": ceType, "ce-id": id, "ce-source": "s"})
}

func TestRegisteredFunction(t *testing.T) {
	addr, err := serve()
	must(t, err)
	send := func(id, ceType string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/HandleRegistered", bytes.NewReader(request(t, id, ceType)))
		must(t, err)
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		must(t, resp.Body.Close())
		return resp.StatusCode
	}
	if got := send("1", "test.v1"); got != 500 {
		t.Errorf("without configuration: status %d, want 500", got)
	}
	if got := send("1", "unknown.v1"); got != 500 {
		t.Errorf("without configuration, a message of unknown kind: status %d, want 500, so that the fault shows at once", got)
	}
	t.Setenv("TRIGGER_TEST_TOPIC", "projects/demo/topics/t")
	if got := send("1", "unknown.v1"); got != 200 || registered.builds.Load() != 0 {
		t.Errorf("a message of unknown kind: status %d after %d builds, want 200 without any", got, registered.builds.Load())
	}
	registered.failing.Store(true)
	if got := send("1", "test.v1"); got != 500 {
		t.Errorf("a failed build: status %d, want 500", got)
	}
	registered.failing.Store(false)
	for range 3 {
		if got := send("1", "test.v1"); got != 200 {
			t.Errorf("after the failed build: status %d, want 200", got)
		}
	}
	if got := registered.builds.Load(); got != 2 {
		t.Errorf("%d builds, want 2: one that failed and one that is kept", got)
	}
	t.Run("ten thousand requests at once, none lost", func(t *testing.T) { flood(t, addr) })
	t.Run("the local pipeline takes its place", func(t *testing.T) {
		must(t, trigger.Use("HandleRegistered", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418) })))
		if got := send("1", "test.v1"); got != 418 {
			t.Errorf("status %d, want 418", got)
		}
		if err := trigger.Use("HandleNobody", nil); err == nil {
			t.Error("Use of an entry point that nobody registered returned no error")
		}
	})
}

// flood sends ten thousand requests at once. A third of the clients leave as soon as they have sent theirs.
func flood(t *testing.T, addr string) {
	t.Helper()
	const n = 10_000
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 200, MaxIdleConnsPerHost: 200}}
	defer client.CloseIdleConnections()
	sockets := make(chan struct{}, 200)
	var wg sync.WaitGroup
	var refused atomic.Int64
	for i := range n {
		body := request(t, fmt.Sprint("flood", i), "test.v1")
		wg.Go(func() {
			if i%3 == 0 {
				sockets <- struct{}{}
				defer func() { <-sockets }()
				if err := sendAndLeave(t.Context(), addr, body); err != nil {
					t.Error(err)
				}
				return
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/HandleRegistered", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			if resp.StatusCode != 200 || resp.Body.Close() != nil {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	// The clients that left cannot tell when theirs was handled; the process can.
	deadline := time.Now().Add(30 * time.Second)
	missing := n
	for missing > 0 && time.Now().Before(deadline) {
		missing = 0
		for i := range n {
			if _, ok := registered.seen.Load(fmt.Sprint("flood", i)); !ok {
				missing++
			}
		}
		runtime.Gosched()
	}
	if missing > 0 || refused.Load() > 0 {
		t.Errorf("%d of %d requests were not handled, %d were refused", missing, n, refused.Load())
	}
}

func sendAndLeave(ctx context.Context, addr string, body []byte) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c, "POST /HandleRegistered HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return errors.Join(err, c.Close())
}

func TestEveryFaultOfAConfigurationIsNamedAtOnce(t *testing.T) {
	t.Setenv("TRIGGER_TEST_LIMIT", "many")
	t.Setenv("TRIGGER_TEST_MODE", "unheard-of")
	addr, err := serve()
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/HandleStrict", bytes.NewReader(request(t, "1", "test.v1")))
	must(t, err)
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	answer, err := io.ReadAll(resp.Body)
	must(t, errors.Join(err, resp.Body.Close()))
	if resp.StatusCode != 500 {
		t.Errorf("status %d, want 500", resp.StatusCode)
	}
	for _, want := range []string{"not set: TRIGGER_TEST_TOPIC, TRIGGER_TEST_OURS", "TRIGGER_TEST_LIMIT", "TRIGGER_TEST_MODE is not a mode"} {
		if !strings.Contains(string(answer), want) {
			t.Errorf("answer = %s, want %q in it", answer, want)
		}
	}
}

func FuzzServeHTTP(f *testing.F) {
	f.Add([]byte(`{"message":{"data":"e30=","messageId":"1"},"subscription":"s"}`), "")
	f.Add([]byte(`{"message":{"attributes":{"ce-type":"t"}}}`), "")
	f.Add([]byte(`{"specversion":"1.0","id":"1","type":"t","source":"s"}`), "application/cloudevents+json")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		a, _ := adapter(func(context.Context, cloudevents.Event) error { return nil })
		w := post(t, a, body, http.Header{"Content-Type": {contentType}})
		if w.Code != 200 && w.Code != 400 {
			t.Errorf("status %d for %q", w.Code, body)
		}
	})
}

func TestWhoBroughtAMessageBackIsLogged(t *testing.T) {
	a, log := adapter(func(context.Context, cloudevents.Event) error { return nil })
	back := map[string]string{trigger.RedrivenBy: "ada@example.com", trigger.RedrivenWhy: "the bucket is there again"}
	post(t, a, pushBody(t, `{"a":1}`, back), nil)
	if s := log.String(); !strings.Contains(s, `"redriven_by":"ada@example.com"`) || !strings.Contains(s, `"redriven_why":"the bucket is there again"`) {
		t.Errorf("log = %s", s)
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
